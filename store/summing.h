/* Builds the sum of a day from the sealed files of the day (sums.h).
 *
 * The sum is a database with the tables of a file. Each set of labels has one profile, which is the
 * merge of all profiles of the set, or several if one merge would be too large. The points have the
 * sums of these profiles; nothing is left of the single ones.
 *
 * Blocks on the disk. One thread.
 */
#ifndef PROFPULL_STORE_SUMMING_H
#define PROFPULL_STORE_SUMMING_H

#include "store/private.h"

/* Limit of the files of a day: all of them are open at the same time. */
#define SUMMING_SOURCES_MAX 64

struct summing_options {
    struct store_file *const *files; /* 1 to SUMMING_SOURCES_MAX */
    size_t n_files;
    const char *path; /* of the new file; an earlier file of this name is replaced */
    int64_t key;      /* says what it is a sum of: summing_key() returns it */
    /* Called often. Returns false to give up: summing_build() then fails without an error. */
    bool (*go_on)(void *arg);
    void *arg;
};

/* Builds the sum, which is complete and on the disk afterwards. False with err; then the file may
 * exist and be incomplete. If the bytes of a profile have changed, notes that (store_bad_note()),
 * and fails. */
bool summing_build(struct store *s, const struct summing_options *o, struct err *err);
/* Reads the key of a sum. False with err if the file is no sum, or cannot be read. */
bool summing_key(const char *path, int64_t *ret, struct err *err);

#endif
