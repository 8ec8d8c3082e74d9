/* Reads one segment of a spool from its beginning: the records that are there, and the stretches
 * between them that are not records any more. Reads heads, not profiles, so that a gigabyte takes a
 * fraction of a second. Owns its file; one thread.
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

/* Numbers of segments, or offsets of records. Zeroed is empty; free(at). */
struct spool_numbers {
    uint64_t *at;
    size_t n;
};
/* False if out of memory. */
bool spool_numbers_add(struct spool_numbers *numbers, uint64_t number);
void spool_numbers_sort(struct spool_numbers *numbers);
/* In sorted ones. */
bool spool_numbers_have(const struct spool_numbers *numbers, uint64_t number);

struct spool_walk {
    int fd; /* -1: closed */
    uint64_t size;
    uint64_t offset; /* of what comes next */
    uint64_t salt;
    bool header_damaged; /* and the salt taken from the first record */
    struct spool_header header;
};

enum spool_walk_open {
    SPOOL_WALK_OPEN,    /* walk, then close */
    SPOOL_WALK_EMPTY,   /* ours, cut off before its first record */
    SPOOL_WALK_NEWER,   /* of a later version */
    SPOOL_WALK_FOREIGN, /* no segment, or with nothing left that shows it */
    SPOOL_WALK_FAILED,  /* see errno; ENOENT, ENOTSUP (no regular file), ... */
};
enum spool_walk_open spool_walk_open(struct spool_walk *w, int dir, uint64_t segment);
void spool_walk_close(struct spool_walk *w);

enum spool_step {
    SPOOL_STEP_RECORD, /* head; its body lies within the file and has not been read */
    SPOOL_STEP_DAMAGE, /* `size` bytes at `offset` are no record */
    SPOOL_STEP_END,
    SPOOL_STEP_FAILED, /* see errno; may be tried again */
};
struct spool_found {
    uint64_t offset;
    uint64_t size;
    struct spool_head head; /* SPOOL_STEP_RECORD */
};
enum spool_step spool_walk_next(struct spool_walk *w, struct spool_found *ret);

/* The offsets of the records of a segment that are done, sorted; free(ret->at). A file that is not
 * there has none. *ret_size is where the next one is to be written, 0 for no file; *ret_bad counts
 * damaged entries (what they were for will be sent again). False if it could not be read (see
 * errno), or out of memory (ENOMEM). */
bool spool_acks_read(int dir, uint64_t segment, uint64_t salt, struct spool_numbers *ret,
                     uint64_t *ret_size, size_t *ret_bad);

/* Reads labels and data of a record and compares the check sum. */
enum spool_body { SPOOL_BODY_OK, SPOOL_BODY_DAMAGED, SPOOL_BODY_FAILED, SPOOL_BODY_MEMORY };
/* *ret_labels and *ret_data are malloc'd. FAILED: see errno. */
enum spool_body spool_body_read(int fd, uint64_t offset, const struct spool_head *head,
                                uint8_t **ret_labels, char **ret_data);

#endif
