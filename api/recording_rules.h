/* The service settings.v1.RecordingRulesService: rules of recorded metrics that Grafana's apps and
 * `profilecli` create, in addition to those of the configuration.
 *
 * The rules are in memory and, if a directory is given, also in a file that each change replaces. A
 * thread reads the file at the start, because the disk may hang then. Any thread.
 */
#ifndef PROFPULL_API_RECORDING_RULES_H
#define PROFPULL_API_RECORDING_RULES_H

#include "base/err.h"
#include "base/log.h"
#include "server/routes.h"

#define RECORDING_RULES_FILE "recording_rules.json"
/* Limit of all rules as JSON. */
#define RECORDING_RULES_BYTES_MAX ((size_t)4 * 1024 * 1024)

struct record;
struct recording_rules;

/* Starts the service, and the thread that reads the file. directory: where the file is; NULL: the
 * rules are kept in memory only. record counts by the rules and lives longer. Returns NULL with
 * err. */
struct recording_rules *recording_rules_new(const char *directory, struct record *record,
                                            struct log *log, struct err *err);
/* Waits until the file has been read. Accepts NULL, returns NULL. */
struct recording_rules *recording_rules_free(struct recording_rules *r);

extern const struct route recording_routes[];

#endif
