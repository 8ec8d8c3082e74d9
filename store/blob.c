#include "store/blob.h"

#include <endian.h>
#include <string.h>

#define CHECK_BYTES 8
/* part of the format of the files: must not change */
#define HASH_SEED UINT64_C(0x70726f6670756c6c)

struct reader {
    const char *p;
    const char *end;
    bool bad;
};

uint64_t blob_hash(struct sv data, const uint64_t *numbers, size_t n)
{
    uint64_t hash = hash_bytes(data.p, data.n, HASH_SEED);
    for (size_t i = 0; i < n; i++) {
        uint64_t number = htole64(numbers[i]);
        hash = hash_bytes(&number, sizeof(number), hash);
    }
    return hash;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_number(struct buf *out, uint64_t v)
{
    char bytes[10];
    size_t n = 0;
    while (v >= 0x80) {
        bytes[n++] = (char)(v | 0x80);
        v >>= 7;
    }
    bytes[n++] = (char)v;
    buf_append(out, bytes, n);
}

static void put_text(struct buf *out, struct sv text)
{
    put_number(out, text.n);
    buf_append(out, text.p, text.n);
}

/* Leaves room for the checksum. Returns where it belongs. */
static size_t begin(struct buf *out)
{
    static const char none[CHECK_BYTES] = {0};
    size_t at = out->len;
    buf_append(out, none, CHECK_BYTES);
    return at;
}

static bool finish(struct buf *out, size_t at, const uint64_t *of, size_t n_of)
{
    if (!buf_ok(out)) {
        return false;
    }
    char *blob = out->data + at;
    struct sv rest = {blob + CHECK_BYTES, out->len - at - CHECK_BYTES};
    uint64_t check = htole64(blob_hash(rest, of, n_of));
    memcpy(blob, &check, CHECK_BYTES);
    return true;
}

static void put_labels(const struct label *labels, size_t n, struct buf *out)
{
    put_number(out, n);
    for (size_t i = 0; i < n; i++) {
        put_text(out, labels[i].name);
        put_text(out, labels[i].value);
    }
}

bool blob_put_set(const struct set *set, struct buf *out)
{
    size_t at = begin(out);
    put_labels(set->labels, set->n_labels, out);
    put_number(out, set->n_types);
    for (size_t i = 0; i < set->n_types; i++) {
        put_text(out, set->types[i].type);
        put_text(out, set->types[i].unit);
    }
    put_text(out, set->period.type);
    put_text(out, set->period.unit);
    return finish(out, at, NULL, 0);
}

bool blob_put_labels(const struct label *labels, size_t n, struct buf *out)
{
    size_t at = begin(out);
    put_labels(labels, n, out);
    return finish(out, at, NULL, 0);
}

bool blob_put_sums(const int64_t *sums, size_t n, const uint64_t *of, size_t n_of, struct buf *out)
{
    size_t at = begin(out);
    for (size_t i = 0; i < n; i++) {
        put_number(out, (uint64_t)sums[i]);
    }
    return finish(out, at, of, n_of);
}

bool blob_put_ids(const int64_t *ids, size_t n, struct buf *out)
{
    size_t at = begin(out);
    for (size_t i = 0; i < n; i++) {
        put_number(out, (uint64_t)ids[i]);
    }
    return finish(out, at, NULL, 0);
}

/* ---- reading --------------------------------------------------------------------------------- */

static uint64_t read_number(struct reader *r)
{
    uint64_t v = 0;
    for (unsigned shift = 0; r->p < r->end && shift < 64; shift += 7) {
        unsigned char c = (unsigned char)*r->p++;
        v |= (uint64_t)(c & 0x7f) << shift;
        if (c < 0x80) {
            return v;
        }
    }
    r->bad = true;
    return 0;
}

static struct sv read_text(struct reader *r, struct arena *arena)
{
    uint64_t n = read_number(r);
    if (r->bad || n > (uint64_t)(r->end - r->p)) {
        r->bad = true;
        return SV("");
    }
    const char *copy = arena_strndup(arena, r->p, (size_t)n);
    r->p += n;
    r->bad = copy == NULL;
    return (struct sv){copy, (size_t)n};
}

/* Checks the checksum of a blob, and sets *ret to read the bytes after it. */
static bool check(struct sv blob, const uint64_t *of, size_t n_of, struct reader *ret)
{
    uint64_t stored;
    if (blob.n < CHECK_BYTES || blob.n > STORE_BLOB_MAX) {
        return false;
    }
    memcpy(&stored, blob.p, CHECK_BYTES);
    struct sv rest = sv_skip(blob, CHECK_BYTES);
    *ret = (struct reader){.p = rest.p, .end = rest.p + rest.n};
    return le64toh(stored) == blob_hash(rest, of, n_of);
}

static bool at_end(const struct reader *r)
{
    return !r->bad && r->p == r->end;
}

static bool in_order(const struct label *labels, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (sv_cmp(labels[i - 1].name, labels[i].name) >= 0) {
            return false;
        }
    }
    return true;
}

static const struct label *read_labels(struct reader *r, struct arena *arena, size_t *ret_n)
{
    uint64_t n = read_number(r);
    /* A label takes two bytes at least. */
    if (r->bad || n > (uint64_t)(r->end - r->p) / 2) {
        r->bad = true;
        return NULL;
    }
    struct label *labels = arena_array(arena, (size_t)n + 1, sizeof(labels[0]));
    r->bad = labels == NULL;
    for (size_t i = 0; i < n && !r->bad; i++) {
        labels[i].name = read_text(r, arena);
        labels[i].value = r->bad ? SV("") : read_text(r, arena);
    }
    r->bad = r->bad || !in_order(labels, (size_t)n);
    *ret_n = (size_t)n;
    return labels;
}

static struct set_type read_type(struct reader *r, struct arena *arena)
{
    struct set_type t = {.type = read_text(r, arena)};
    t.unit = r->bad ? SV("") : read_text(r, arena);
    return t;
}

bool blob_read_set(struct sv blob, struct arena *arena, struct set *ret)
{
    struct reader r;
    if (!check(blob, NULL, 0, &r)) {
        return false;
    }
    ret->labels = read_labels(&r, arena, &ret->n_labels);
    uint64_t n = r.bad ? 0 : read_number(&r);
    struct set_type *types =
        n <= SUMMARY_TYPES_MAX ? arena_array(arena, (size_t)n + 1, sizeof(types[0])) : NULL;
    r.bad = r.bad || types == NULL;
    for (size_t i = 0; i < n && !r.bad; i++) {
        types[i] = read_type(&r, arena);
    }
    ret->types = types;
    ret->n_types = (size_t)n;
    if (!r.bad) {
        ret->period = read_type(&r, arena);
    }
    return at_end(&r);
}

bool blob_read_labels(struct sv blob, struct arena *arena, const struct label **ret, size_t *ret_n)
{
    struct reader r;
    if (!check(blob, NULL, 0, &r)) {
        return false;
    }
    *ret = read_labels(&r, arena, ret_n);
    return at_end(&r);
}

bool blob_read_sums(struct sv blob, const uint64_t *of, size_t n_of, int64_t ret[SUMMARY_TYPES_MAX],
                    size_t *ret_n)
{
    struct reader r;
    size_t n = 0;
    if (!check(blob, of, n_of, &r)) {
        return false;
    }
    while (!r.bad && r.p < r.end && n < SUMMARY_TYPES_MAX) {
        ret[n++] = (int64_t)read_number(&r);
    }
    *ret_n = n;
    return at_end(&r);
}

bool blob_read_ids(struct sv blob, int64_t ret[STORE_PARTS_MAX], size_t *ret_n)
{
    struct reader r;
    size_t n = 0;
    if (!check(blob, NULL, 0, &r)) {
        return false;
    }
    while (!r.bad && r.p < r.end && n < STORE_PARTS_MAX) {
        ret[n++] = (int64_t)read_number(&r);
    }
    *ret_n = n;
    return at_end(&r);
}
