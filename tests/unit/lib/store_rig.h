/* A store in a temporary directory, and profiles to put into it. */
#ifndef PROFPULL_TESTS_STORE_RIG_H
#define PROFPULL_TESTS_STORE_RIG_H

#include "tests/unit/lib/pprof_writer.h"
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "base/clock.h"
#include "store/private.h"
#include "store/store.h"

#define RIG_SECOND NS_PER_S
#define RIG_HOUR (3600 * RIG_SECOND)
/* 2026-11-22T00:00:00Z */
#define RIG_T0 (INT64_C(1795305600) * RIG_SECOND)
#define RIG_LABELS_MAX 16

struct store_rig {
    struct store_options options;
    char *directory;
    struct testing_log *log;
    struct metrics *metrics;
    struct store *store;
};

static inline void store_rig_reopen(struct store_rig *r)
{
    struct err err = ERR_INIT;
    r->store = store_close(r->store);
    /* The registry asks the store for what it shows, so they go together. */
    metrics_free(r->metrics);
    r->options.metrics = r->metrics = metrics_new();
    r->store = store_open(&r->options, &err);
    CHECK_STR(err.msg, "", "store_open");
    assert_non_null(r->store);
}

/* Opens a store with stretches of an hour, without retention and merging. */
static inline void store_rig_init(struct store_rig *r)
{
    *r = (struct store_rig){.directory = testing_mkdtemp(), .log = testing_log_new()};
    r->options = (struct store_options){.name = "local",
                                        .directory = r->directory,
                                        .stretch_ms = 3600 * MS_PER_S,
                                        .log = testing_log(r->log)};
    store_rig_reopen(r);
}

static inline void store_rig_done(struct store_rig *r)
{
    r->store = store_close(r->store);
    metrics_free(r->metrics);
    testing_log_done(r->log);
    testing_directory_leave(&r->directory);
}
SCOPED_VALUE(store_rig, store_rig_done)

static inline uint64_t store_rig_metric(struct store_rig *r, const char *text)
{
    return testing_metric(r->metrics, text);
}

/* Returns how often files had a fault of this kind. */
static inline uint64_t store_rig_faults(struct store_rig *r, const char *reason)
{
    char text[128];
    (void)snprintf(text, sizeof(text),
                   "profpull_store_file_faults_total{endpoint=\"local\",reason=\"%s\"}", reason);
    uint64_t n = store_rig_metric(r, text);
    return n == TESTING_NO_METRIC ? 0 : n;
}

static inline uint64_t store_rig_lost(struct store_rig *r)
{
    return store_rig_metric(r, "profpull_store_lost_profiles_total{endpoint=\"local\"}");
}

/* Runs a command in the directory. */
static inline void store_rig_shell(const struct store_rig *r, const char *text)
{
    SCOPED_MEMORY char *command = NULL;
    assert_true(asprintf(&command, "cd %s && %s", r->directory, text) > 0);
    assert_int_equal(system(command), 0);
}

static inline void store_rig_path(const struct store_rig *r, const char *name, char out[512])
{
    (void)snprintf(out, 512, "%s/%s", r->directory, name);
}

/* Returns how many profiles the store says that it has. */
static inline uint64_t store_rig_profiles(const struct store_rig *r)
{
    struct store_stats stats;
    store_stats(r->store, &stats);
    return stats.profiles;
}

/* "a=b,c=d", which must be in order of names. */
static inline size_t rig_labels(const char *text, struct label out[RIG_LABELS_MAX])
{
    struct sv rest = sv_from(text);
    struct sv word;
    size_t n = 0;
    while (pprof_word(&rest, ',', &word)) {
        assert_true(sv_cut(word, '=', &out[n].name, &out[n].value));
        n++;
    }
    return n;
}

/* Puts bytes; returns what became of them. */
static inline enum store_taken rig_put_bytes(struct store_rig *r, const char *labels,
                                             int64_t from_ns, struct sv data,
                                             enum profile_format format, struct store_put *ret)
{
    struct label l[RIG_LABELS_MAX];
    struct store_put put = {.labels = l,
                            .n_labels = rig_labels(labels, l),
                            .data = data,
                            .format = format,
                            .from_ns = from_ns,
                            .until_ns = from_ns + 15 * RIG_SECOND};
    bool ok = store_put(r->store, &put, 1);
    assert_int_equal(ok, put.taken == STORE_TAKEN);
    if (ret != NULL) {
        *ret = put;
    }
    return put.taken;
}

/* Puts a profile of some samples; returns its id in a buffer of the caller. */
static inline void rig_put(struct store_rig *r, const char *labels, int64_t from_ns,
                           const char *types, const struct pprof_row *rows, size_t n,
                           char id[STORE_ID_LENGTH + 1])
{
    struct pprof_spec spec = {.types = types, .time_nanos = from_ns};
    SCOPED(buf) b = pprof_make(&spec, rows, n);
    struct store_put put;
    enum store_taken taken =
        rig_put_bytes(r, labels, from_ns, (struct sv){b.data, b.len}, PROFILE_PPROF, &put);
    CHECK_STR(put.problem, "", labels);
    assert_int_equal(taken, STORE_TAKEN);
    if (id != NULL) {
        memcpy(id, put.id, STORE_ID_LENGTH + 1);
    }
}

/* Makes a profile of one sample with the value 1 that has a string of so many bytes, which cannot
 * be compressed. The caller frees it. */
static inline struct buf rig_large(size_t bytes)
{
    static const struct pprof_row row = {"a main", "", {1}};
    struct pprof_spec spec = {.types = "x/count", .time_nanos = 1};
    struct buf b = pprof_make(&spec, &row, 1);
    struct rng rng = {.state = 1};
    char *text = testing_memory(bytes);
    for (size_t i = 0; i < bytes; i++) {
        text[i] = (char)(rng_next(&rng) & 0x7f);
    }
    put_msg(&b, 6, text, bytes);
    free(text);
    return b;
}

/* Puts it. */
static inline void rig_put_large(struct store_rig *r, const char *labels, int64_t from_ns,
                                 size_t bytes)
{
    SCOPED(buf) b = rig_large(bytes);
    struct store_put put;
    (void)rig_put_bytes(r, labels, from_ns, (struct sv){b.data, b.len}, PROFILE_PPROF, &put);
    CHECK_STR(put.problem, "", labels);
}

/* ---- what scans see, as text ----------------------------------------------------------------- */

struct rig_text {
    struct buf out;
    const char *only; /* a label whose value stands for all, or NULL: all labels */
};

static inline void rig_print_labels(struct rig_text *t, const struct store_series *s)
{
    for (size_t i = 0; i < s->n_labels; i++) {
        if (t->only == NULL) {
            buf_printf(&t->out, "%s%.*s=%.*s", i > 0 ? "," : "", SV_ARG(s->labels[i].name),
                       SV_ARG(s->labels[i].value));
        } else if (sv_eq_str(s->labels[i].name, t->only)) {
            buf_printf(&t->out, "%.*s", SV_ARG(s->labels[i].value));
        }
    }
}

static inline bool rig_on_series(void *arg, const struct store_series *s)
{
    struct rig_text *t = arg;
    rig_print_labels(t, s);
    return buf_putc(&t->out, '\n');
}

static inline bool rig_on_point(void *arg, const struct store_point *p)
{
    struct rig_text *t = arg;
    rig_print_labels(t, p->series);
    return buf_printf(&t->out, " %lld %lld\n", (long long)((p->time_ns - RIG_T0) / RIG_SECOND),
                      (long long)p->value);
}

/* The time, how many series, "whole" or "part", and how many bytes. */
static inline bool rig_on_body(void *arg, const struct store_body *b)
{
    struct rig_text *t = arg;
    return buf_printf(&t->out, "%lld..%lld %zu %s %s\n",
                      (long long)((b->from_ns - RIG_T0) / RIG_SECOND),
                      (long long)((b->until_ns - RIG_T0) / RIG_SECOND), b->n_series,
                      b->whole ? "whole" : "part", b->data.n > 0 ? "bytes" : "-");
}

static inline void rig_text_init(struct rig_text *t, const char *only)
{
    *t = (struct rig_text){.only = only};
    buf_init(&t->out, 10000000);
}

enum rig_scan { RIG_SERIES, RIG_POINTS, RIG_BODIES };

/* All that a scan visits, for free(). from and until in seconds after RIG_T0. */
static inline char *rig_scan(struct store_rig *r, enum rig_scan kind, const char *selector,
                             int64_t from, int64_t until, const char *only)
{
    struct err err = ERR_INIT;
    struct rig_text t;
    struct selector *s = selector != NULL ? selector_parse(sv_from(selector), &err) : NULL;
    struct store_scan scan = {.range = {.from_ns = RIG_T0 + from * RIG_SECOND,
                                        .until_ns = RIG_T0 + until * RIG_SECOND,
                                        .selector = s},
                              .with_data = true};
    rig_text_init(&t, only);
    bool ok = kind == RIG_SERIES ? store_each_series(r->store, &scan.range, rig_on_series, &t, &err)
              : kind == RIG_POINTS ? store_each_point(r->store, &scan.range, rig_on_point, &t, &err)
                                   : store_each_body(r->store, &scan, rig_on_body, &t, &err);
    CHECK_STR(err.msg, "", selector);
    assert_true(ok);
    selector_free(s);
    return buf_take(&t.out, NULL);
}

/* Returns how many lines rig_scan() makes. */
static inline size_t rig_count(struct store_rig *r, enum rig_scan kind, const char *selector,
                               int64_t from, int64_t until, const char *only)
{
    SCOPED_MEMORY char *text = rig_scan(r, kind, selector, from, until, only);
    size_t n = 0;
    for (const char *c = text; *c != '\0'; c++) {
        n += *c == '\n';
    }
    return n;
}

static inline void rig_check(struct store_rig *r, enum rig_scan kind, const char *selector,
                             int64_t from, int64_t until, const char *only, const char *want)
{
    SCOPED_MEMORY char *got = rig_scan(r, kind, selector, from, until, only);
    CHECK_STR(got, want, selector != NULL ? selector : "all");
}

#endif
