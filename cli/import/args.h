/* The command line of `profpull import`, and what follows from it for one file. Pure but for
 * messages on stderr. */
#ifndef PROFPULL_CLI_IMPORT_ARGS_H
#define PROFPULL_CLI_IMPORT_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cli/import/facts.h"
#include "cli/one_endpoint.h"

#define IMPORT_LABELS_MAX 64
/* No time given. */
#define IMPORT_NO_TIME INT64_MIN

struct import_args {
    struct endpoint_flags endpoint;
    const char *config;        /* instead of a URL */
    const char *endpoint_name; /* within it */
    const char *name;
    struct config_pair labels[IMPORT_LABELS_MAX]; /* the names are owned: import_args_done() */
    size_t n_labels;
    const char *type;
    int64_t from_ns; /* IMPORT_NO_TIME */
    int64_t until_ns;
    uint64_t max_size;
    int64_t timeout_ms;
    int64_t retry_ms;
    bool dry_run;
    bool quiet;
    bool help;
    char *const *paths;
    size_t n_paths;
};

/* False with a message on stderr: exit with usage. args is to be freed in any case. */
bool import_args_parse(struct import_args *args, int argc, char **argv);
void import_args_done(struct import_args *args);

/* "2026-11-21T03:23:34Z" (with a fraction, or +01:00 instead of Z), or seconds since 1970. */
bool import_parse_time(const char *text, int64_t *ret_ns, struct err *err);

/* Are name and labels within what the protocol carries unchanged? The error says which is not. */
bool import_check_labels(const struct import_args *args, enum config_protocol protocol,
                         struct err *err);

/* What --type, the profile and the file's name say, in this order; NULL with an error if none
 * does. */
const char *import_type(const struct import_args *args, const struct profile_facts *facts,
                        const char *path, struct err *err);

struct import_window {
    int64_t from_ns;
    int64_t until_ns;
    bool restamp;        /* the profile says another time than from_ns, or none */
    int64_t duration_ns; /* for the profile; -1: its own is right */
};

/* The time that a profile covers: what was given wins over what the profile says, and that over the
 * time when the file was written (mtime_ns; 0: not known, now_ns then). */
struct import_window import_choose_window(const struct import_args *args,
                                          const struct profile_facts *facts, int64_t mtime_ns,
                                          int64_t now_ns);

#endif
