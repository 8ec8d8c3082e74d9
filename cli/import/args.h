/* The command line of `profpull import`, and what follows from it for one file. Pure; any thread.
 */
#ifndef PROFPULL_CLI_IMPORT_ARGS_H
#define PROFPULL_CLI_IMPORT_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cli/cmd.h"
#include "cli/flags.h"
#include "cli/import/summary.h"
#include "write/series.h"

/* The flag is not given. */
#define IMPORT_NO_TIME INT64_MIN

struct import_args {
    struct config_endpoint_flags endpoint;
    struct cmd_config_flags config; /* instead of a URL */
    const char *endpoint_name;      /* within it */
    const char *name;
    struct flag_pairs labels;
    const char *type;
    int64_t from_ns; /* IMPORT_NO_TIME */
    int64_t until_ns;
    uint64_t max_size;
    int64_t timeout_ms;
    int64_t retry_ms;
    bool dry_run;
    bool quiet;
};

/* Returns the first problem of the command line as a whole; "" if there is none. Static storage. */
const char *import_args_problem(const struct import_args *args, char *const *paths, size_t n);

/* Checks that the protocol with these rules carries name, type and labels unchanged. The error says
 * which it does not. */
bool import_check_labels(const struct import_args *args, const struct series_rules *rules,
                         struct err *err);

/* The type by --type, the profile or the file's name, in this order; NULL with an error if none
 * says it. */
const char *import_type(const struct import_args *args, const struct import_summary *summary,
                        const char *path, struct err *err);

struct import_window {
    int64_t from_ns;
    int64_t until_ns;
    bool restamp;        /* the time in the profile is not from_ns, or missing */
    int64_t duration_ns; /* to write into the profile; -1: its own is right */
};

/* The time that a profile covers: by the flags, else by the profile, else by the time when the file
 * was written (mtime_ns; 0: unknown, now_ns then). */
struct import_window import_choose_window(const struct import_args *args,
                                          const struct import_summary *summary, int64_t mtime_ns,
                                          int64_t now_ns);

#endif
