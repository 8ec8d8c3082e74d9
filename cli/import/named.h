/* Names for the addresses in profiles that are imported, by the section `symbols` of the
 * configuration: directories and debuginfod servers.
 *
 * The names of a profile are complete before it is sent, as far as they are found within
 * symbols.timeout. Questions run on the loop, and the worker that reads files waits for them.
 */
#ifndef PROFPULL_CLI_IMPORT_NAMED_H
#define PROFPULL_CLI_IMPORT_NAMED_H

#include <stddef.h>

#include "base/err.h"
#include "base/loop.h"
#include "config/config.h"

struct import_names;

/* Starts the process that reads debug information: call it before any thread is started. The
 * configuration outlives the object. Returns NULL without an error if the configuration has no
 * source of debug information. */
struct import_names *import_names_new(const struct config *config, struct err *err);
/* Gets ready to ask. Returns false with an error. Accepts NULL. */
bool import_names_open(struct import_names *names, struct loop *loop, struct err *err);
/* Ends all questions. Call it while the loop does not run. Accepts NULL, returns NULL. */
struct import_names *import_names_free(struct import_names *names);

/* Adds names to a pprof profile, gzip or plain. If names were found, replaces the bytes, which are
 * from malloc(). Blocks; the thread of the worker. Accepts NULL. */
void import_names_add(struct import_names *names, char **data, size_t *size);

#endif
