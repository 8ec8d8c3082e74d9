/* Profiles for tests: fields of protobuf, and whole profiles of a few stacks. */
#ifndef PROFPULL_TESTS_PPROF_WRITER_H
#define PROFPULL_TESTS_PPROF_WRITER_H

#include "tests/unit/lib/testing.h"

#include "base/buf.h"
#include "pprof/scratch.h"

SCOPED_POINTER(scratch, scratch_free)

static inline void put_varint(struct buf *b, uint64_t v)
{
    while (v >= 0x80) {
        buf_putc(b, (char)(v | 0x80));
        v >>= 7;
    }
    buf_putc(b, (char)v);
}

static inline void put_num(struct buf *b, unsigned field, uint64_t v)
{
    put_varint(b, (uint64_t)field << 3);
    put_varint(b, v);
}

static inline void put_msg(struct buf *b, unsigned field, const void *data, size_t n)
{
    put_varint(b, (uint64_t)field << 3 | 2);
    put_varint(b, n);
    buf_append(b, data, n);
}

/* Puts inner into b as a field, and empties it. */
static inline void put_sub(struct buf *b, unsigned field, struct buf *inner)
{
    put_msg(b, field, inner->data, inner->len);
    buf_clear(inner);
}

/* ---- whole profiles of a few stacks ---------------------------------------------------------- */

#define PPROF_STRINGS_MAX 256
#define PPROF_COLUMNS_MAX 8

/* One sample. Frames are separated by spaces, the leaf first: "main" has a line and no address,
 * "main@5" has address 5 of the mapping, "main:3" has column 3 in its line. Labels:
 * "k=v,n=7,m=8bytes". */
struct pprof_row {
    const char *frames;
    const char *labels;
    int64_t values[PPROF_COLUMNS_MAX];
};

struct pprof_spec {
    const char *types;       /* "alloc_objects/count inuse_space/bytes" */
    const char *period_type; /* "cpu/nanoseconds"; NULL: none */
    const char *file;        /* the source of all functions; NULL: "file.c" */
    int64_t time_nanos;
    int64_t duration_nanos;
    uint64_t first_id;      /* of locations and functions; 0 = 1 */
    uint64_t mapping_start; /* with build id "b"; 0: no mapping */
    bool no_build_id;
    bool empty_build_id;     /* an index, which is not 0, to an empty string */
    const char *binary;      /* the file that is mapped; NULL: "/bin/p" */
    const char *system_name; /* of all functions; NULL: none */
    uint64_t start_line;     /* of all functions */
    bool labels_backwards;
    bool packed; /* the numbers of samples, as most writers do */
};

struct pprof_maker {
    struct buf out;
    struct buf m;
    char strings[PPROF_STRINGS_MAX][64];
    size_t n_strings;
    char frames[PPROF_STRINGS_MAX][64];
    size_t n_frames;
    const struct pprof_spec *spec;
};

static inline uint64_t pprof_text(struct pprof_maker *k, struct sv text)
{
    for (size_t i = 0; i < k->n_strings; i++) {
        if (sv_eq_str(text, k->strings[i])) {
            return i;
        }
    }
    assert_true(k->n_strings < PPROF_STRINGS_MAX && text.n < 64);
    snprintf(k->strings[k->n_strings], 64, "%.*s", SV_ARG(text));
    return k->n_strings++;
}

/* The next word up to c; false at the end. */
static inline bool pprof_word(struct sv *rest, char c, struct sv *ret)
{
    if (rest->n == 0) {
        return false;
    }
    if (!sv_cut(*rest, c, ret, rest)) {
        *ret = *rest;
        rest->n = 0;
    }
    return true;
}

static inline uint64_t pprof_frame(struct pprof_maker *k, struct sv frame)
{
    uint64_t first = k->spec->first_id == 0 ? 1 : k->spec->first_id;
    for (size_t i = 0; i < k->n_frames; i++) {
        if (sv_eq_str(frame, k->frames[i])) {
            return first + i;
        }
    }
    assert_true(k->n_frames < PPROF_STRINGS_MAX && frame.n < 64);
    snprintf(k->frames[k->n_frames], 64, "%.*s", SV_ARG(frame));
    uint64_t id = first + k->n_frames++;
    struct sv name = frame;
    struct sv address;
    uint64_t at = 0;
    uint64_t column = 0;
    if (sv_cut(frame, '@', &name, &address)) {
        assert_true(parse_u64(address, UINT64_MAX, &at));
        at += k->spec->mapping_start;
    } else if (sv_cut(frame, ':', &name, &address)) {
        assert_true(parse_u64(address, UINT64_MAX, &column));
    }
    put_num(&k->m, 1, id);
    put_num(&k->m, 2, pprof_text(k, name));
    if (k->spec->system_name != NULL) {
        put_num(&k->m, 3, pprof_text(k, sv_from(k->spec->system_name)));
    }
    put_num(&k->m, 4, pprof_text(k, sv_from(k->spec->file != NULL ? k->spec->file : "file.c")));
    if (k->spec->start_line != 0) {
        put_num(&k->m, 5, k->spec->start_line);
    }
    put_sub(&k->out, 5, &k->m);
    struct buf line = testing_buf(100);
    put_num(&line, 1, id);
    put_num(&line, 2, 7);
    if (column != 0) {
        put_num(&line, 3, column);
    }
    put_num(&k->m, 1, id);
    if (k->spec->mapping_start != 0) {
        put_num(&k->m, 2, 1);
    }
    if (at != 0) {
        put_num(&k->m, 3, at);
    }
    put_sub(&k->m, 4, &line);
    put_sub(&k->out, 4, &k->m);
    buf_done(&line);
    return id;
}

static inline void pprof_label(struct pprof_maker *k, struct buf *out, struct sv label)
{
    struct sv key;
    struct sv value;
    SCOPED(buf) b = testing_buf(1000);
    assert_true(sv_cut(label, '=', &key, &value));
    put_num(&b, 1, pprof_text(k, key));
    size_t digits = 0;
    while (digits < value.n && value.p[digits] >= '0' && value.p[digits] <= '9') {
        digits++;
    }
    uint64_t num = 0;
    if (digits > 0) {
        assert_true(parse_u64((struct sv){value.p, digits}, UINT64_MAX, &num));
        put_num(&b, 3, num);
        put_num(&b, 4, pprof_text(k, (struct sv){value.p + digits, value.n - digits}));
    } else {
        put_num(&b, 2, pprof_text(k, value));
    }
    put_sub(out, 3, &b);
}

/* One of the repeated numbers of a sample; packed ones are collected. */
static inline void pprof_number(struct pprof_maker *k, struct buf *out, struct buf *packed,
                                unsigned field, uint64_t value)
{
    if (k->spec->packed) {
        put_varint(packed, value);
    } else {
        put_num(out, field, value);
    }
}

static inline void pprof_sample(struct pprof_maker *k, const struct pprof_row *row, size_t columns)
{
    struct sv word;
    SCOPED(buf) s = testing_buf(10000);
    struct buf numbers = testing_buf(10000);
    struct sv rest = sv_from(row->frames);
    while (pprof_word(&rest, ' ', &word)) {
        pprof_number(k, &s, &numbers, 1, pprof_frame(k, word));
    }
    if (k->spec->packed) {
        put_sub(&s, 1, &numbers);
    }
    for (size_t i = 0; i < columns; i++) {
        pprof_number(k, &s, &numbers, 2, (uint64_t)row->values[i]);
    }
    if (k->spec->packed) {
        put_sub(&s, 2, &numbers);
    }
    buf_done(&numbers);
    struct sv labels[8];
    size_t n = 0;
    rest = sv_from(row->labels);
    while (pprof_word(&rest, ',', &word)) {
        labels[n++] = word;
    }
    for (size_t i = 0; i < n; i++) {
        pprof_label(k, &s, labels[k->spec->labels_backwards ? n - 1 - i : i]);
    }
    put_sub(&k->out, 2, &s);
}

/* A profile as plain protobuf; the caller frees it with buf_done(). */
static inline struct buf pprof_make(const struct pprof_spec *spec, const struct pprof_row *rows,
                                    size_t n)
{
    struct pprof_maker k = {.spec = spec, .n_strings = 1};
    struct sv rest = sv_from(spec->types);
    struct sv word;
    struct sv type;
    struct sv unit;
    size_t columns = 0;
    buf_init(&k.out, 1000000);
    buf_init(&k.m, 10000);
    while (pprof_word(&rest, ' ', &word)) {
        assert_true(sv_cut(word, '/', &type, &unit));
        put_num(&k.m, 1, pprof_text(&k, type));
        put_num(&k.m, 2, pprof_text(&k, unit));
        put_sub(&k.out, 1, &k.m);
        columns++;
    }
    if (spec->mapping_start != 0) {
        put_num(&k.m, 1, 1);
        put_num(&k.m, 2, spec->mapping_start);
        put_num(&k.m, 3, spec->mapping_start + 1000000);
        put_num(&k.m, 5, pprof_text(&k, sv_from(spec->binary != NULL ? spec->binary : "/bin/p")));
        if (spec->empty_build_id) {
            put_num(&k.m, 6, k.n_strings++);
        } else if (!spec->no_build_id) {
            put_num(&k.m, 6, pprof_text(&k, SV("b")));
        }
        put_sub(&k.out, 3, &k.m);
    }
    if (spec->period_type != NULL) {
        assert_true(sv_cut(sv_from(spec->period_type), '/', &type, &unit));
        put_num(&k.m, 1, pprof_text(&k, type));
        put_num(&k.m, 2, pprof_text(&k, unit));
        put_sub(&k.out, 11, &k.m);
    }
    for (size_t i = 0; i < n; i++) {
        pprof_sample(&k, &rows[i], columns);
    }
    for (size_t i = 0; i < k.n_strings; i++) {
        put_msg(&k.out, 6, k.strings[i], strlen(k.strings[i]));
    }
    put_num(&k.out, 9, (uint64_t)spec->time_nanos);
    if (spec->duration_nanos != 0) {
        put_num(&k.out, 10, (uint64_t)spec->duration_nanos);
    }
    assert_true(buf_ok(&k.out) && buf_ok(&k.m));
    buf_done(&k.m);
    return k.out;
}

#endif
