/* The spool's files, byte by byte: docs/spool.md describes them. All numbers are little-endian.
 *
 *     <number, 16 hex digits>.seg   a header of 512 bytes, then records
 *     <number, 16 hex digits>.ack   a header of 32 bytes, then 8 bytes for each record that is done
 *     lock                          locked by the process that writes
 *
 * A record is a head of 64 bytes, its labels, and the profile as it came. A head holds the salt of
 * its segment (a random number) and the place where it was written, which identifies the record.
 * Both are checked, and places rise: bytes inside a profile can never be taken for a record. The
 * head has a checksum of its own, so that records can be counted without being read, and the next
 * one can be found after damage, also if bytes were inserted or cut out before it.
 *
 * Pure: bytes in, values out. Any thread.
 */
#ifndef PROFPULL_WRITE_SPOOL_FORMAT_H
#define PROFPULL_WRITE_SPOOL_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/labels.h"
#include "base/str.h"

#define SPOOL_VERSION 1
#define SPOOL_HEADER_SIZE 512
#define SPOOL_HEAD_SIZE 64
#define SPOOL_ACK_HEADER_SIZE 32
#define SPOOL_ACK_SIZE 8
/* The bytes of the endpoint's name that a header has room for. */
#define SPOOL_ENDPOINT_MAX 256
/* The most bytes that are needed to recognise a header of any version. */
#define SPOOL_ANY_HEADER_MAX 4096
/* The largest size of the profile in a record, and of its labels. */
#define SPOOL_DATA_MAX (UINT32_C(1) << 30)
#define SPOOL_LABELS_MAX ((uint32_t)(LABELS_BYTES_MAX + (size_t)8 * LABELS_MAX))
/* "0123456789abcdef.seg" and a NUL. */
#define SPOOL_NAME_SIZE 21

struct spool_header {
    uint64_t segment;
    uint64_t salt;
    int64_t created_ns; /* wall clock */
    char endpoint[SPOOL_ENDPOINT_MAX + 1];
};

void spool_header_encode(const struct spool_header *h, uint8_t out[SPOOL_HEADER_SIZE]);

enum spool_header_kind {
    SPOOL_HEADER_OK,
    SPOOL_HEADER_NEWER, /* intact, but of a later version: not touched */
    SPOOL_HEADER_BAD,   /* damaged, cut off, or not a header of a segment */
};
/* Parses a header. p: the beginning of the file, SPOOL_ANY_HEADER_MAX bytes or the whole file if
 * that is shorter. */
enum spool_header_kind spool_header_parse(const uint8_t *p, size_t n, struct spool_header *ret);

#define SPOOL_FLAG_DELTA 1u
/* The record replaces others; a label that is not one of the profile lists them. */
#define SPOOL_FLAG_REPLACES 2u
/* A sender has pushed the profile. Older versions ignore this flag. */
#define SPOOL_FLAG_PUSHED 4u
#define SPOOL_REPLACES_LABEL "__spool_replaces__"

struct spool_head {
    uint8_t format; /* the format of the profile: 0 pprof, 1 JFR */
    uint8_t flags;
    uint64_t salt;
    uint64_t offset; /* where the head was written in its file: identifies the record there */
    uint32_t labels_size;
    uint32_t data_size;
    int64_t from_ns;
    int64_t until_ns;
    int64_t scraped_ns; /* wall clock: when it was complete, for its age */
    uint32_t body_crc;  /* the checksum of labels and data */
};

/* Returns the size of the whole record, in bytes. */
uint64_t spool_record_size(const struct spool_head *h);
void spool_head_encode(const struct spool_head *h, uint8_t out[SPOOL_HEAD_SIZE]);
/* Returns true if the checksum and the sizes are right. The caller compares salt and place. */
bool spool_head_parse(const uint8_t p[SPOOL_HEAD_SIZE], struct spool_head *ret);
/* Returns the place in p[0..n) where the next head with this salt may begin, n if there is none.
 * Used to continue after damage. Compares only magic and salt; NULL stands for any salt. */
size_t spool_head_search(const uint8_t *p, size_t n, const uint64_t *salt);
/* The bytes that identify the beginning of a head. */
#define SPOOL_BEGINNING_SIZE 16

/* Appends the labels, without the parameters of the request (`__param_*`): no protocol sends them,
 * and they may be secrets. */
bool spool_labels_encode(const struct labels *l, struct buf *out);
/* A record in its segment. */
struct spool_place {
    uint64_t segment;
    uint32_t offset;
};
/* Appends the label that lists n places. */
bool spool_places_encode(const struct spool_place *places, size_t n, struct buf *out);
/* Calls fn for each place that the labels of a record list. */
void spool_places_parse(const uint8_t *labels, size_t n,
                        void (*fn)(void *arg, const struct spool_place *place), void *arg);
/* Returns the labels of a record; NULL if they are not well-formed (*ret_memory is false) or if
 * memory ran out (*ret_memory is true). */
struct labels *spool_labels_parse(const uint8_t *p, size_t n, struct labels_builder *b,
                                  bool *ret_memory);

void spool_ack_header_encode(uint64_t segment, uint8_t out[SPOOL_ACK_HEADER_SIZE]);
bool spool_ack_header_parse(const uint8_t p[SPOOL_ACK_HEADER_SIZE], uint64_t *ret_segment);
void spool_ack_encode(uint64_t salt, uint32_t offset, uint8_t out[SPOOL_ACK_SIZE]);
bool spool_ack_parse(const uint8_t p[SPOOL_ACK_SIZE], uint64_t salt, uint32_t *ret_offset);

enum spool_name { SPOOL_NAME_OTHER, SPOOL_NAME_SEGMENT, SPOOL_NAME_ACK, SPOOL_NAME_LOCK };
#define SPOOL_LOCK_NAME "lock"
/* Returns the kind of a file by its name. */
enum spool_name spool_name_parse(const char *name, uint64_t *ret_segment);
void spool_name_format(char out[SPOOL_NAME_SIZE], uint64_t segment, bool ack);
/* Appends the name of an endpoint's directory below the configured one: the name of the endpoint,
 * with a leading dot and all bytes except [A-Za-z0-9._-] as %XX. */
bool spool_directory_name(const char *endpoint, struct buf *out);

#endif
