/* Queries over a store that has p1 (pod a) and p2 (pod b) of the service vecdemo and p3 (pod c) of
 * vecdemo3, as the recorded exchanges of Pyroscope had; and their results as text. */
#ifndef PROFPULL_TESTS_QUERY_RIG_H
#define PROFPULL_TESTS_QUERY_RIG_H

#include "pprof/check.h"
#include "pprof/index.h"
#include "store/query/query.h"
#include "tests/unit/lib/store_rig.h"
#include "tests/unit/lib/stored.h"
#include "tests/unit/lib/tree_text.h"

#define QUERY_CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define QUERY_TEXT_MAX 16384
/* 2026-11-22T00:30:00Z, when p1 began, and a minute before and after it, in ms. */
#define QUERY_T0 INT64_C(1795307400000)
#define QUERY_S (QUERY_T0 - 60000)
#define QUERY_E (QUERY_T0 + 60000)

struct query_rig {
    struct store_rig store;
    struct query q;
    char ids[3][STORE_ID_LENGTH + 1];
    struct selector *selector;
    struct query_range range;
    struct profile_type type;
    atomic_size_t damaged;
};

static inline void query_rig_put(struct query_rig *r, const char *file, const char *labels,
                                 int64_t at_ms, char id[STORE_ID_LENGTH + 1])
{
    SCOPED(buf) b = stored_file(file);
    struct store_put put;
    enum store_taken taken = rig_put_bytes(&r->store, labels, at_ms * NS_PER_MS,
                                           (struct sv){b.data, b.len}, PROFILE_PPROF, &put);
    CHECK_STR(put.problem, "", file);
    assert_int_equal(taken, STORE_TAKEN);
    if (id != NULL) {
        memcpy(id, put.id, STORE_ID_LENGTH + 1);
    }
}

static inline void query_rig_init(struct query_rig *r)
{
    struct err err = ERR_INIT;
    *r = (struct query_rig){.range = {QUERY_S, QUERY_E, NULL}};
    store_rig_init(&r->store);
    query_rig_put(r, "p1", "__name__=process_cpu,pod=a,service_name=vecdemo", QUERY_T0, r->ids[0]);
    query_rig_put(r, "p2", "__name__=process_cpu,pod=b,service_name=vecdemo", QUERY_T0 + 15000,
                  r->ids[1]);
    query_rig_put(r, "p3", "__name__=process_cpu,pod=c,service_name=vecdemo3", QUERY_T0 + 30000,
                  r->ids[2]);
    r->q = (struct query){
        .store = r->store.store,
        .bytes_max = (size_t)64 * 1024 * 1024,
        .arena = arena_new((size_t)64 * 1024 * 1024),
        .damaged = &r->damaged,
    };
    assert_true(profile_type_parse(SV(QUERY_CPU), &r->type, &err));
}

static inline void query_rig_done(struct query_rig *r)
{
    selector_free(r->selector);
    arena_free(r->q.arena);
    store_rig_done(&r->store);
}
SCOPED_VALUE(query_rig, query_rig_done)

/* Sets the range and the selector of the next query. */
static inline void query_rig_range(struct query_rig *r, const char *selector, int64_t start_ms,
                                   int64_t end_ms)
{
    struct err err = ERR_INIT;
    r->selector = selector_free(r->selector);
    if (selector != NULL) {
        r->selector = selector_parse(sv_from(selector), &err);
        assert_non_null(r->selector);
    }
    r->range = (struct query_range){start_ms, end_ms, r->selector};
}

/* ---- text ------------------------------------------------------------------------------------ */

static inline void query_text_labels(struct buf *out, const struct query_labels *l)
{
    buf_putc(out, '{');
    for (size_t i = 0; i < l->n; i++) {
        buf_printf(out, "%s%.*s=%.*s", i > 0 ? "," : "", SV_ARG(l->at[i].name),
                   SV_ARG(l->at[i].value));
    }
    buf_putc(out, '}');
}

/* Frames of a sample, the leaf first: "hash:31<work:22 main:7", "0x700123" for one without lines.
 */
static inline void query_text_location(struct buf *out, const struct pprof_index *x, size_t place)
{
    struct sv message = pprof_span_of(x, x->entries[PROFILE_LOCATION].spans[place]);
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    bool any = false;
    while (wire_next(&r, &f)) {
        uint64_t v[LINE_LINE + 1] = {0};
        size_t function = 0;
        if (f.number != LOCATION_LINE) {
            continue;
        }
        wire_read_numbers(f.bytes, v, LINE_LINE + 1);
        assert_true(
            pprof_ids_find(&x->entries[PROFILE_FUNCTION].ids, v[LINE_FUNCTION_ID], &function));
        buf_printf(out, "%s%.*s:%llu", any ? "<" : "",
                   SV_ARG(pprof_string(x, x->functions[function].name)),
                   (unsigned long long)v[LINE_LINE]);
        any = true;
    }
    if (x->locations[place].address != 0) {
        buf_printf(out, "%s0x%llx", any ? "@" : "",
                   (unsigned long long)x->locations[place].address);
    }
}

static inline void query_text_sample(struct buf *out, const struct pprof_index *x,
                                     struct sv message)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        struct wire_numbers numbers = wire_numbers_of(&f);
        uint64_t v;
        size_t place;
        if (f.number == SAMPLE_LABEL) {
            buf_puts(out, "label ");
            continue;
        }
        while (wire_numbers_next(&numbers, &v)) {
            if (f.number == SAMPLE_VALUE) {
                buf_printf(out, "%lld", (long long)v);
                continue;
            }
            assert_true(pprof_ids_find(&x->entries[PROFILE_LOCATION].ids, v, &place));
            query_text_location(out, x, place);
            buf_putc(out, ' ');
        }
    }
    buf_putc(out, '\n');
}

static inline int query_compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The head, and the samples in order of their text, one in a line. */
static inline void query_text_profile(struct sv plain, char out[QUERY_TEXT_MAX])
{
    struct err err = ERR_INIT;
    struct pprof_summary s;
    struct pprof_index x;
    SCOPED(scratch) *scratch = scratch_new();
    char *lines[100];
    size_t n = 0;
    assert_true(pprof_check(plain, &s, &err));
    pprof_summary_name_types(plain, &s);
    assert_true(pprof_index(&x, scratch, plain, &s, 1, &err));
    SCOPED(buf) b = testing_buf(QUERY_TEXT_MAX);
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_SAMPLE) {
            assert_true(n < 100);
            buf_clear(&b);
            query_text_sample(&b, &x, f.bytes);
            lines[n++] = strdup(b.data);
        }
    }
    qsort(lines, n, sizeof(lines[0]), query_compare_lines);
    buf_clear(&b);
    buf_printf(&b, "%.*s/%.*s every %lld %.*s/%.*s at %lld for %lld, %zu mappings\n",
               SV_ARG(s.types[0].type_text), SV_ARG(s.types[0].unit_text), (long long)s.period,
               SV_ARG(s.period_type.type_text), SV_ARG(s.period_type.unit_text),
               (long long)(s.time_ns / NS_PER_MS), (long long)s.duration_ns, s.n[PROFILE_MAPPING]);
    for (size_t i = 0; i < n; i++) {
        buf_puts(&b, lines[i]);
        free(lines[i]);
    }
    assert_true(buf_ok(&b));
    memcpy(out, b.data, b.len + 1);
}

#endif
