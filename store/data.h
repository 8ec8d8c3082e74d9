/* The data file of a stretch, `NAME.db-data`: profiles in the order in which they were put.
 *
 * The file begins with a header, which has a random salt. Each profile is one record: a head with
 * lengths and a checksum, the facts that the tables of the database have about the profile, and its
 * bytes. A profile is stored when its record is in the file. The tables follow later, many profiles
 * in one transaction, and say up to which offset they have the records; the records after it are
 * put into the tables when the file is opened for writing again.
 *
 * The checksum of a head covers the facts, the salt and the offset of the record, so nothing inside
 * the bytes of a profile can pass for a record. The bytes have the hash that the facts name. All
 * numbers are little-endian.
 *
 *     header   0  8 bytes "pfdata2\n", 8 salt, 8 checksum of both, 8 zero
 *     head     0  4 bytes "rec\n", 4 length of the facts, 4 length of the bytes, 4 zero,
 *                 8 checksum
 *     facts       8 row, 8 time, 8 until, 8 hash, 4 format, 4 whether it may be merged,
 *                 4 number of columns, 4 number of parts, 4 length of the set, the set; for each
 *                 part 4 length of the labels, the labels, 8 for each column
 */
#ifndef PROFPULL_STORE_DATA_H
#define PROFPULL_STORE_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "pprof/summary.h"

#define DATA_SUFFIX "-data"
#define DATA_HEADER_BYTES 32
#define DATA_HEAD_BYTES 24
/* Limit of the facts of a profile. A profile whose labels need more is refused. */
#define DATA_FACTS_MAX ((size_t)64 * 1024 * 1024)

/* The facts about a profile. The texts refer to the memory that they were read from. */
struct data_facts {
    int64_t profile; /* its row */
    int64_t time_ns;
    int64_t until_ns;
    uint64_t hash; /* of its bytes, with its salt: see store_hash() */
    uint32_t format;
    bool mergeable;
    size_t n_columns;
    size_t n_parts;
    struct sv set;   /* the blob of its labels and types */
    struct sv parts; /* for data_next_part() */
};

struct data_part {
    struct sv labels; /* the blob of the labels of its samples */
    int64_t sums[SUMMARY_TYPES_MAX];
};

void data_put_header(uint64_t salt, char out[DATA_HEADER_BYTES]);
/* Reads a header. False if it is damaged, or of another program. */
bool data_read_header(const char bytes[DATA_HEADER_BYTES], uint64_t *ret_salt);

/* Append the facts: first those of the profile, then the labels and sums of each part. The row is
 * not known yet: see data_set_row(). False if out is full. */
bool data_put_facts(const struct data_facts *facts, struct buf *out);
bool data_put_part(struct sv labels, const int64_t *sums, size_t n_columns, struct buf *out);
/* Sets the row in facts that were written. */
void data_set_row(struct buf *facts, int64_t profile);
/* Makes the head of a record at an offset. */
void data_put_head(struct sv facts, size_t body_bytes, uint64_t salt, int64_t offset,
                   char out[DATA_HEAD_BYTES]);

/* Reads the lengths of a head. False if it is none. */
bool data_read_head(const char bytes[DATA_HEAD_BYTES], size_t *ret_facts, size_t *ret_body);
/* Returns true if the checksum of a head fits its facts and its place. */
bool data_head_fits(const char bytes[DATA_HEAD_BYTES], struct sv facts, uint64_t salt,
                    int64_t offset);
/* Reads facts. False if they are damaged, which their checksum excludes unless another program has
 * written them. */
bool data_read_facts(struct sv bytes, struct data_facts *ret);
/* Reads the next of facts->n_parts parts; the first call begins with *rest = facts->parts. */
bool data_next_part(const struct data_facts *facts, struct sv *rest, struct data_part *ret);

/* ---- walking over a file --------------------------------------------------------------------- */

/* Reads the records of a file one after the other. */
struct data_walk {
    int fd;
    uint64_t salt;
    int64_t at;  /* where to look for the next record */
    int64_t end; /* size of the file */
    struct buf facts;
    struct buf body;
    uint64_t damaged; /* records that were skipped because their bytes have changed */
    int64_t skipped;  /* bytes that belong to no record */
};

/* Begins at an offset. The file must not shrink during the walk. */
void data_walk_init(struct data_walk *w, int fd, uint64_t salt, int64_t at, int64_t end);
void data_walk_done(struct data_walk *w);
/* Reads the next record that is intact. Damaged bytes are skipped. Returns 1, 0 at the end, or -1
 * with err if the file cannot be read. *ret_place is the offset of the bytes in the file; all
 * results are valid until the next call. After the last record, w->at is its end. */
int data_walk_next(struct data_walk *w, struct data_facts *ret, struct sv *ret_body,
                   int64_t *ret_place, struct err *err);

#endif
