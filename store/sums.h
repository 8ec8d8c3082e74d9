/* The sums of days, which flame graphs of long ranges read in place of the files of each hour.
 *
 * A sum has one merged profile for each series of a day (UTC). It is made by the background thread
 * when the day is over and all of its files on this disk are sealed. It repeats what the files have
 * and may be removed at any time; the background thread makes it again.
 *
 * The key of a sum is a hash of the names and versions of the files that it was made from. A scan
 * uses a sum only if the files of the day have the same key at that moment. So a sum is never used
 * after a profile came late, or after a file was removed, changed, or found damaged.
 *
 * The list of sums is guarded by the lock of the store.
 */
#ifndef PROFPULL_STORE_SUMS_H
#define PROFPULL_STORE_SUMS_H

#include "store/private.h"

#define SUM_SUFFIX ".sum"

struct store_sum {
    struct store_file *file; /* its member `sum` is set; NULL: the last attempt has failed */
    int64_t day_ms;          /* the beginning of the day */
    int64_t key;
    uint64_t bytes;
    int64_t failed_ms; /* time of the last failure; 0: none */
    bool leaving;      /* retention has removed files of the day */
    bool beyond_limit; /* the failure was a limit, which files with this key exceed */
};

/* Takes over a file that was found in the directory, if it is a sum. Removes one that cannot be
 * used, or that was not finished. While the store opens. */
void store_sums_found(struct store *s, const char *entry);
/* Makes the newest sum that is missing, if there is room for it. At most one for each call, so that
 * retention does not wait. On the background thread. */
void store_sums_make(struct store *s, int64_t now_ns);
/* Removes the sum of a day of which retention removes a file. It is not made again. */
void store_sums_file_removed(struct store *s, const struct store_file *f);
/* Removes a sum that cannot be read; it is made again. Does nothing if the sum is no longer on the
 * list. */
void store_sums_failed(struct store *s, const struct store_file *sum, const char *why);
/* Returns the bytes of all sums. Under the lock. */
uint64_t store_sums_bytes(const struct store *s);
void store_sums_done(struct store *s);

/* Returns how many of the files from `at` on are those of a day whose sum replaces them for this
 * range, and sets *ret to the sum, with a reference. Returns 0 if there is none. `files` are in
 * order of names, and all that the range overlaps. */
size_t store_sums_cover(struct store *s, struct store_file *const *files, size_t n, size_t at,
                        const struct store_range *range, struct store_file **ret);

#endif
