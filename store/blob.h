/* Writes and reads the blobs of the database: label sets with sample types, sums, lists of series.
 *
 * SQLite has no checksums, so each blob begins with one. The bytes of a blob were on a disk, and a
 * reader trusts none of them. Numbers are varints; texts follow their length. These functions keep
 * no state and may be called from any thread.
 */
#ifndef PROFPULL_STORE_BLOB_H
#define PROFPULL_STORE_BLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/labels.h"
#include "base/str.h"
#include "pprof/summary.h"

/* Ceilings of one blob and of what it lists. */
#define STORE_BLOB_MAX ((size_t)2 * 1024 * 1024)
/* Limit of the sets of string labels in one profile; see store/parts.h. */
#define STORE_PARTS_MAX 1024

/* Returns a checksum of bytes and of numbers that belong to them. */
uint64_t blob_hash(struct sv data, const uint64_t *numbers, size_t n);

/* ---- sets: labels and sample types, which many profiles share
 * ------------------------------------ */

struct set_type {
    struct sv type;
    struct sv unit;
};
struct set {
    const struct label *labels; /* in the order in which the profile was put */
    size_t n_labels;
    const struct set_type *types; /* none for a recording */
    size_t n_types;
    struct set_type period;
};

/* Appends the blob of a set. False if out is full. */
bool blob_put_set(const struct set *set, struct buf *out);
/* Reads a set into memory of the arena, with NULs after all texts. False if the blob is damaged, or
 * out of memory. */
bool blob_read_set(struct sv blob, struct arena *arena, struct set *ret);

/* Write and read the labels of samples. */
bool blob_put_labels(const struct label *labels, size_t n, struct buf *out);
bool blob_read_labels(struct sv blob, struct arena *arena, const struct label **ret, size_t *ret_n);

/* ---- numbers --------------------------------------------------------------------------------- */

/* Writes the sums of a profile by column. `of` are the numbers of its row: they are part of the
 * checksum. */
bool blob_put_sums(const int64_t *sums, size_t n, const uint64_t *of, size_t n_of, struct buf *out);
/* Reads the sums of a profile. *ret_n is at most SUMMARY_TYPES_MAX. */
bool blob_read_sums(struct sv blob, const uint64_t *of, size_t n_of, int64_t ret[SUMMARY_TYPES_MAX],
                    size_t *ret_n);

/* Write and read a list of at most STORE_PARTS_MAX numbers. */
bool blob_put_ids(const int64_t *ids, size_t n, struct buf *out);
bool blob_read_ids(struct sv blob, int64_t ret[STORE_PARTS_MAX], size_t *ret_n);

#endif
