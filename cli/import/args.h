/* The command line of `profpull import`, and the properties of one file that depend on it. Pure;
 * any thread.
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

/* Value of a time whose flag is not given. */
#define IMPORT_NO_TIME INT64_MIN

struct import_args {
    struct config_endpoint_flags endpoint;
    struct cmd_config_flags config; /* a configuration to use instead of a URL */
    const char *endpoint_name;      /* the endpoint to use in this configuration */
    const char *name;
    struct flag_pairs labels;
    const char *type;
    int64_t from_ns; /* IMPORT_NO_TIME if it is not given, as until_ns */
    int64_t until_ns;
    uint64_t max_size;
    int64_t timeout_ms;
    int64_t retry_ms;
    bool dry_run;
    bool quiet;
    bool json;
};

/* Returns the first problem of the command line as a whole; "" if there is none. The text is
 * static. */
const char *import_args_problem(const struct import_args *args, char *const *paths, size_t n);

/* Checks that a protocol with these rules transports name, type and labels unchanged. The error
 * names what it would change. */
bool import_check_labels(const struct import_args *args, const struct series_rules *rules,
                         struct err *err);

/* Returns the type: that of --type, else the one that the profile shows, else the one in the name
 * of the file. NULL with an error if it is unknown. */
const char *import_type(const struct import_args *args, const struct import_summary *summary,
                        const char *path, struct err *err);

struct import_window {
    int64_t from_ns;
    int64_t until_ns;
    bool restamp;        /* the time in the profile differs from from_ns, or is missing */
    int64_t duration_ns; /* the duration to write into the profile; -1: keep its own */
};

/* Returns the time that a profile covers: as the flags say, else as the profile says, else up to
 * the time when the file was written (mtime_ns; if that is 0, up to now_ns). */
struct import_window import_choose_window(const struct import_args *args,
                                          const struct import_summary *summary, int64_t mtime_ns,
                                          int64_t now_ns);

#endif
