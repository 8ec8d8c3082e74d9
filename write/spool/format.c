#include "write/spool/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "write/spool/crc32c.h"

static const char segment_magic[8] = {'P', 'P', 'S', 'P', 'O', 'O', 'L', '\n'};
static const char ack_magic[8] = {'P', 'P', 'A', 'C', 'K', 'E', 'D', '\n'};
static const char record_magic[4] = {'P', 'P', 'R', 'C'};

static void put32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) {
        p[i] = (uint8_t)(v >> (8 * i));
    }
}

static void put64(uint8_t *p, uint64_t v)
{
    put32(p, (uint32_t)v);
    put32(p + 4, (uint32_t)(v >> 32));
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t get64(const uint8_t *p)
{
    return (uint64_t)get32(p) | (uint64_t)get32(p + 4) << 32;
}

/* ---- the header of a segment ----------------------------------------------------------------- */

enum {
    H_VERSION = 8,
    H_SIZE = 12,
    H_SEGMENT = 16,
    H_SALT = 24,
    H_CREATED = 32,
    H_NAME_SIZE = 40,
    H_NAME = 44,
    H_CRC = SPOOL_HEADER_SIZE - 4,
};

void spool_header_encode(const struct spool_header *h, uint8_t out[SPOOL_HEADER_SIZE])
{
    size_t n = strnlen(h->endpoint, SPOOL_ENDPOINT_MAX);
    memset(out, 0, SPOOL_HEADER_SIZE);
    memcpy(out, segment_magic, sizeof(segment_magic));
    put32(out + H_VERSION, SPOOL_VERSION);
    put32(out + H_SIZE, SPOOL_HEADER_SIZE);
    put64(out + H_SEGMENT, h->segment);
    put64(out + H_SALT, h->salt);
    put64(out + H_CREATED, (uint64_t)h->created_ns);
    put32(out + H_NAME_SIZE, (uint32_t)n);
    memcpy(out + H_NAME, h->endpoint, n);
    put32(out + H_CRC, crc32c(0, out, H_CRC));
}

/* The first 16 bytes mean the same in all versions, and the check sum is at the header's end. */
enum spool_header_kind spool_header_parse(const uint8_t *p, size_t n, struct spool_header *ret)
{
    if (n < H_SEGMENT || memcmp(p, segment_magic, sizeof(segment_magic)) != 0) {
        return SPOOL_HEADER_BAD;
    }
    uint32_t version = get32(p + H_VERSION);
    uint32_t size = get32(p + H_SIZE);
    if (size < H_SEGMENT + 4 || size > n || get32(p + size - 4) != crc32c(0, p, size - 4)) {
        return SPOOL_HEADER_BAD;
    }
    if (version > SPOOL_VERSION) {
        return SPOOL_HEADER_NEWER;
    }
    uint32_t name = size == SPOOL_HEADER_SIZE ? get32(p + H_NAME_SIZE) : UINT32_MAX;
    if (version != SPOOL_VERSION || name > SPOOL_ENDPOINT_MAX) {
        return SPOOL_HEADER_BAD;
    }
    ret->segment = get64(p + H_SEGMENT);
    ret->salt = get64(p + H_SALT);
    ret->created_ns = (int64_t)get64(p + H_CREATED);
    memcpy(ret->endpoint, p + H_NAME, name);
    ret->endpoint[name] = '\0';
    return SPOOL_HEADER_OK;
}

/* ---- the head of a record -------------------------------------------------------------------- */

enum {
    R_FORMAT = 4,
    R_FLAGS = 5,
    R_SALT = 8,
    R_LABELS = 16,
    R_DATA = 20,
    R_FROM = 24,
    R_UNTIL = 32,
    R_SCRAPED = 40,
    R_OFFSET = 48,
    R_BODY_CRC = 56,
    R_HEAD_CRC = 60,
};

uint64_t spool_record_size(const struct spool_head *h)
{
    return (uint64_t)SPOOL_HEAD_SIZE + h->labels_size + h->data_size;
}

void spool_head_encode(const struct spool_head *h, uint8_t out[SPOOL_HEAD_SIZE])
{
    memset(out, 0, SPOOL_HEAD_SIZE);
    memcpy(out, record_magic, sizeof(record_magic));
    out[R_FORMAT] = h->format;
    out[R_FLAGS] = h->flags;
    put64(out + R_SALT, h->salt);
    put32(out + R_LABELS, h->labels_size);
    put32(out + R_DATA, h->data_size);
    put64(out + R_FROM, (uint64_t)h->from_ns);
    put64(out + R_UNTIL, (uint64_t)h->until_ns);
    put64(out + R_SCRAPED, (uint64_t)h->scraped_ns);
    put64(out + R_OFFSET, h->offset);
    put32(out + R_BODY_CRC, h->body_crc);
    put32(out + R_HEAD_CRC, crc32c(0, out, R_HEAD_CRC));
}

bool spool_head_parse(const uint8_t p[SPOOL_HEAD_SIZE], struct spool_head *ret)
{
    if (memcmp(p, record_magic, sizeof(record_magic)) != 0 ||
        get32(p + R_HEAD_CRC) != crc32c(0, p, R_HEAD_CRC)) {
        return false;
    }
    *ret = (struct spool_head){
        .format = p[R_FORMAT],
        .flags = p[R_FLAGS],
        .salt = get64(p + R_SALT),
        .offset = get64(p + R_OFFSET),
        .labels_size = get32(p + R_LABELS),
        .data_size = get32(p + R_DATA),
        .from_ns = (int64_t)get64(p + R_FROM),
        .until_ns = (int64_t)get64(p + R_UNTIL),
        .scraped_ns = (int64_t)get64(p + R_SCRAPED),
        .body_crc = get32(p + R_BODY_CRC),
    };
    return ret->labels_size <= SPOOL_LABELS_MAX && ret->data_size <= SPOOL_DATA_MAX;
}

size_t spool_head_search(const uint8_t *p, size_t n, const uint64_t *salt)
{
    uint8_t wanted[8];
    put64(wanted, salt != NULL ? *salt : 0);
    for (size_t at = 0; n - at >= SPOOL_BEGINNING_SIZE; at++) {
        const uint8_t *hit = memmem(p + at, n - at, record_magic, sizeof(record_magic));
        if (hit == NULL) {
            return n;
        }
        at = (size_t)(hit - p);
        if (n - at < SPOOL_BEGINNING_SIZE) {
            return n;
        }
        if (salt == NULL || memcmp(hit + R_SALT, wanted, sizeof(wanted)) == 0) {
            return at;
        }
    }
    return n;
}

/* ---- labels ---------------------------------------------------------------------------------- */

static bool put_text(struct buf *out, struct sv v)
{
    uint8_t size[4];
    put32(size, (uint32_t)v.n);
    return buf_append(out, size, sizeof(size)) && buf_append(out, v.p, v.n);
}

bool spool_labels_encode(const struct labels *l, struct buf *out)
{
    bool ok = true;
    for (size_t i = 0; ok && i < labels_count(l); i++) {
        struct label label = labels_at(l, i);
        /* The second one means something here. */
        bool kept = !sv_starts_with(label.name, SV(LABEL_PARAM_PREFIX)) &&
                    !sv_eq(label.name, SV(SPOOL_REPLACES_LABEL));
        ok = !kept || (put_text(out, label.name) && put_text(out, label.value));
    }
    return ok;
}

/* Takes one text off the front. */
static bool get_text(const uint8_t **p, size_t *n, struct sv *ret)
{
    if (*n < 4) {
        return false;
    }
    uint32_t size = get32(*p);
    if (size > *n - 4) {
        return false;
    }
    *ret = (struct sv){.p = (const char *)*p + 4, .n = size};
    *p += 4 + (size_t)size;
    *n -= 4 + (size_t)size;
    return true;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* "0000000000000001:00000200", with a space between two. */
#define PLACE_SIZE 25

bool spool_places_encode(const struct spool_place *places, size_t n, struct buf *out)
{
    uint8_t size[4];
    put32(size, (uint32_t)(n * (PLACE_SIZE + 1) - 1));
    bool ok = put_text(out, SV(SPOOL_REPLACES_LABEL)) && buf_append(out, size, sizeof(size));
    for (size_t i = 0; ok && i < n; i++) {
        ok = buf_printf(out, "%s%016llx:%08x", i == 0 ? "" : " ",
                        (unsigned long long)places[i].segment, places[i].offset);
    }
    return ok;
}

static bool parse_hex(struct sv text, uint64_t *ret)
{
    uint64_t v = 0;
    for (size_t i = 0; i < text.n; i++) {
        int digit = ascii_hex_value((unsigned char)text.p[i]);
        if (digit < 0) {
            return false;
        }
        v = v << 4 | (unsigned)digit;
    }
    *ret = v;
    return true;
}

static void parse_places(struct sv text, void (*fn)(void *arg, const struct spool_place *place),
                         void *arg)
{
    for (size_t at = 0; text.n - at >= PLACE_SIZE; at += PLACE_SIZE + 1) {
        struct spool_place place;
        uint64_t offset = 0;
        if (!parse_hex((struct sv){text.p + at, 16}, &place.segment) || text.p[at + 16] != ':' ||
            !parse_hex((struct sv){text.p + at + 17, 8}, &offset)) {
            return;
        }
        place.offset = (uint32_t)offset;
        fn(arg, &place);
        if (text.n - at <= PLACE_SIZE) {
            return;
        }
    }
}

void spool_places_parse(const uint8_t *labels, size_t n,
                        void (*fn)(void *arg, const struct spool_place *place), void *arg)
{
    struct sv name, value;
    while (n > 0 && get_text(&labels, &n, &name) && get_text(&labels, &n, &value)) {
        if (sv_eq(name, SV(SPOOL_REPLACES_LABEL))) {
            parse_places(value, fn, arg);
        }
    }
}

struct labels *spool_labels_parse(const uint8_t *p, size_t n, struct labels_builder *b,
                                  bool *ret_memory)
{
    *ret_memory = false;
    labels_builder_reset(b, NULL);
    size_t given = 0;
    while (n > 0) {
        struct sv name, value;
        if (!get_text(&p, &n, &name) || !get_text(&p, &n, &value) || name.n == 0 || value.n == 0) {
            return NULL;
        }
        if (sv_eq(name, SV(SPOOL_REPLACES_LABEL))) {
            continue;
        }
        labels_builder_set(b, name, value);
        given++;
    }
    /* Writers keep to the limit, so a larger number means that the bytes were changed. */
    if (given > LABELS_MAX) {
        return NULL;
    }
    *ret_memory = true;
    return labels_builder_build(b);
}

/* ---- acknowledgements ------------------------------------------------------------------------ */

enum { A_VERSION = 8, A_SIZE = 12, A_SEGMENT = 16, A_CRC = 28 };

void spool_ack_header_encode(uint64_t segment, uint8_t out[SPOOL_ACK_HEADER_SIZE])
{
    memset(out, 0, SPOOL_ACK_HEADER_SIZE);
    memcpy(out, ack_magic, sizeof(ack_magic));
    put32(out + A_VERSION, SPOOL_VERSION);
    put32(out + A_SIZE, SPOOL_ACK_HEADER_SIZE);
    put64(out + A_SEGMENT, segment);
    put32(out + A_CRC, crc32c(0, out, A_CRC));
}

bool spool_ack_header_parse(const uint8_t p[SPOOL_ACK_HEADER_SIZE], uint64_t *ret_segment)
{
    *ret_segment = get64(p + A_SEGMENT);
    return memcmp(p, ack_magic, sizeof(ack_magic)) == 0 && get32(p + A_VERSION) == SPOOL_VERSION &&
           get32(p + A_CRC) == crc32c(0, p, A_CRC);
}

static uint32_t ack_crc(uint64_t salt, uint32_t offset)
{
    uint8_t text[12];
    put64(text, salt);
    put32(text + 8, offset);
    return crc32c(0, text, sizeof(text));
}

void spool_ack_encode(uint64_t salt, uint32_t offset, uint8_t out[SPOOL_ACK_SIZE])
{
    put32(out, offset);
    put32(out + 4, ack_crc(salt, offset));
}

bool spool_ack_parse(const uint8_t p[SPOOL_ACK_SIZE], uint64_t salt, uint32_t *ret_offset)
{
    *ret_offset = get32(p);
    return get32(p + 4) == ack_crc(salt, *ret_offset);
}

/* ---- names ----------------------------------------------------------------------------------- */

void spool_name_format(char out[SPOOL_NAME_SIZE], uint64_t segment, bool ack)
{
    (void)snprintf(out, SPOOL_NAME_SIZE, "%016" PRIx64 "%s", segment, ack ? ".ack" : ".seg");
}

/* A name is what spool_name_format() makes of its number, and nothing else. */
enum spool_name spool_name_parse(const char *name, uint64_t *ret_segment)
{
    char again[SPOOL_NAME_SIZE];
    if (strcmp(name, SPOOL_LOCK_NAME) == 0) {
        return SPOOL_NAME_LOCK;
    }
    uint64_t segment = strtoull(name, NULL, 16);
    for (int ack = 0; ack <= 1; ack++) {
        spool_name_format(again, segment, ack != 0);
        if (strcmp(name, again) == 0) {
            *ret_segment = segment;
            return ack != 0 ? SPOOL_NAME_ACK : SPOOL_NAME_SEGMENT;
        }
    }
    return SPOOL_NAME_OTHER;
}

bool spool_directory_name(const char *endpoint, struct buf *out)
{
    for (const char *p = endpoint; *p != '\0'; p++) {
        bool plain = ascii_is_word(*p) || *p == '-' || (*p == '.' && p != endpoint);
        if (!(plain ? buf_putc(out, *p) : buf_printf(out, "%%%02X", (unsigned)(unsigned char)*p))) {
            return false;
        }
    }
    return true;
}
