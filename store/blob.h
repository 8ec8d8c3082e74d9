/* The blobs of the database: label sets with sample types, sums, lists of series.
 *
 * SQLite has no checksums, so each of our blobs begins with one; what is read back was on a disk,
 * and none of its bytes is trusted. Numbers are varints, texts have their length in front. Pure;
 * any thread.
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
/* Sets of string labels that the samples of one profile may have; see store/parts.h. */
#define STORE_PARTS_MAX 1024

/* A checksum of some bytes and of numbers that belong to them. */
uint64_t blob_hash(struct sv data, const uint64_t *numbers, size_t n);

/* ---- what profiles have in common: their labels and types ------------------------------------ */

struct set_type {
    struct sv type;
    struct sv unit;
};
struct set {
    const struct label *labels; /* as put */
    size_t n_labels;
    const struct set_type *types; /* none: no pprof */
    size_t n_types;
    struct set_type period;
};

/* Appends the blob; false if out is full. */
bool blob_put_set(const struct set *set, struct buf *out);
/* In memory of the arena, with NULs after all texts. False if it is damaged, or out of memory. */
bool blob_read_set(struct sv blob, struct arena *arena, struct set *ret);

/* Labels of samples. */
bool blob_put_labels(const struct label *labels, size_t n, struct buf *out);
bool blob_read_labels(struct sv blob, struct arena *arena, const struct label **ret, size_t *ret_n);

/* ---- numbers --------------------------------------------------------------------------------- */

/* Sums of a profile by column; of: the numbers of the row that they belong to. */
bool blob_put_sums(const int64_t *sums, size_t n, const uint64_t *of, size_t n_of, struct buf *out);
/* *ret_n is at most SUMMARY_TYPES_MAX. */
bool blob_read_sums(struct sv blob, const uint64_t *of, size_t n_of, int64_t ret[SUMMARY_TYPES_MAX],
                    size_t *ret_n);

/* A list of at most STORE_PARTS_MAX numbers. */
bool blob_put_ids(const int64_t *ids, size_t n, struct buf *out);
bool blob_read_ids(struct sv blob, int64_t ret[STORE_PARTS_MAX], size_t *ret_n);

#endif
