/* Reads one segment of a spool from its beginning: its records, and the damaged stretches between
 * them. Reads heads, not profiles, so that a gigabyte takes a fraction of a second. Owns its file;
 * one thread.
 *
 * After damage the walk goes on at the next intact head. Bytes may have been inserted before that
 * head or cut out, so that it is not where it was written: a record is read where it is found, and
 * identified (acknowledgements, replaced records) by the place where it was written.
 */
#ifndef PROFPULL_WRITE_SPOOL_WALK_H
#define PROFPULL_WRITE_SPOOL_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "write/spool/format.h"
#include "write/spool/io.h"

/* Reads n bytes, or fewer at the end of the file; -1 on failure. */
ssize_t spool_read_full(int fd, void *p, size_t n, uint64_t offset);

/* Numbers of segments, or offsets of records. A zeroed struct is empty; free(at) at the end. */
struct spool_numbers {
    uint64_t *at;
    size_t n;
};
/* Adds a number. Returns false if out of memory. */
bool spool_numbers_add(struct spool_numbers *numbers, uint64_t number);
void spool_numbers_sort(struct spool_numbers *numbers);
/* Returns true if the numbers, which must be sorted, have this one. */
bool spool_numbers_have(const struct spool_numbers *numbers, uint64_t number);

struct spool_walk {
    int fd; /* -1: closed */
    uint64_t size;
    uint64_t offset; /* the offset of the next step */
    uint64_t salt;
    uint64_t next_place; /* the least place that the next record can have been written to */
    uint64_t body;       /* where the body of the record before `offset` begins; 0: none */
    bool header_damaged; /* the salt is that of the first intact record, at `offset` */
    struct spool_header header;
};

enum spool_walk_open {
    SPOOL_WALK_OPEN,    /* walk, then close */
    SPOOL_WALK_EMPTY,   /* a segment that was cut off before its first record */
    SPOOL_WALK_NEWER,   /* a segment of a later version */
    SPOOL_WALK_FOREIGN, /* no header of a segment, and no intact record */
    SPOOL_WALK_FAILED,  /* see errno; ENOENT, ENOTSUP (no regular file), ... */
};
enum spool_walk_open spool_walk_open(struct spool_walk *w, int dir, uint64_t segment);
void spool_walk_close(struct spool_walk *w);

enum spool_step {
    SPOOL_STEP_RECORD, /* head; its body lies within the file and has not been read. If bytes were
                          cut out of the body, the next record begins within `size` */
    SPOOL_STEP_DAMAGE, /* `size` bytes at `offset` are no record */
    SPOOL_STEP_END,
    SPOOL_STEP_FAILED, /* see errno; may be tried again */
};
struct spool_found {
    uint64_t offset; /* the offset in the file; head.offset is where the record was written */
    uint64_t size;
    struct spool_head head; /* SPOOL_STEP_RECORD */
};
enum spool_step spool_walk_next(struct spool_walk *w, struct spool_found *ret);

/* Reads the places of the acknowledged records of a segment, sorted; the caller frees ret->at. A
 * file that does not exist has none. *ret_size is where the next acknowledgement is to be written,
 * 0 for no file; *ret_bad counts damaged ones, whose profiles will be sent again. Returns false if
 * the file could not be read (see errno), or out of memory (ENOMEM). */
bool spool_acks_read(int dir, uint64_t segment, uint64_t salt, struct spool_numbers *ret,
                     uint64_t *ret_size, size_t *ret_bad);

/* The result of reading labels and data of a record and comparing their checksum. */
enum spool_body { SPOOL_BODY_OK, SPOOL_BODY_DAMAGED, SPOOL_BODY_FAILED, SPOOL_BODY_MEMORY };
/* Reads labels and data of a record, and compares their checksum. *ret_labels and *ret_data are
 * allocated with malloc(). FAILED: see errno. */
enum spool_body spool_body_read(int fd, uint64_t offset, const struct spool_head *head,
                                uint8_t **ret_labels, char **ret_data);

#endif
