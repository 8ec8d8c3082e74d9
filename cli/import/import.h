/* Reads profiles from files and sends them through the writer, a few at a time.
 *
 * Everything except the reading of files runs on one loop, on the caller's thread. One worker reads
 * and checks the files in order. At most IMPORT_IN_FLIGHT profiles are in flight, and no further
 * one is read while they have IMPORT_BYTES bytes.
 */
#ifndef PROFPULL_CLI_IMPORT_IMPORT_H
#define PROFPULL_CLI_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cli/import/args.h"
#include "cli/one_endpoint.h"
#include "jfr/jfr.h"

#define IMPORT_IN_FLIGHT 4
/* Limit of the profiles in flight if one of the files is a recording, which becomes many profiles
 * at once. */
#define IMPORT_PENDING_MAX (IMPORT_IN_FLIGHT - 1 + JFR_PROFILES_MAX)
#define IMPORT_BYTES (UINT64_C(64) * 1024 * 1024)

struct import_totals {
    uint64_t sent;
    uint64_t sent_bytes;
    uint64_t refused; /* profiles that were not accepted, or given up */
    uint64_t bad;     /* files that cannot be read, are damaged, or have no known type */
    uint64_t skipped; /* files in directories that are no profiles */
    bool gave_up;     /* true: some files may not have been read */
};

/* Imports files, directories and "-". Reports errors on stderr, file by file, and, if progress is
 * true, shows the progress there. With --dry-run, prints to stdout what would be sent. Returns
 * false only if nothing could be started. */
bool import_run(const struct import_args *args, char *const *paths, size_t n_paths,
                struct one_endpoint *to, bool progress, struct import_totals *ret, struct err *err);

#endif
