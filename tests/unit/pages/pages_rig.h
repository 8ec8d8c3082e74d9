/* A store with profiles whose numbers are known, for tests of pages that read it. */
#ifndef PROFPULL_TESTS_PAGES_RIG_H
#define PROFPULL_TESTS_PAGES_RIG_H

#include "tests/unit/api/exchange_rig.h"
#include "tests/unit/lib/store_rig.h"

/* RIG_T0 in milliseconds, as the pages take times. */
#define PAGES_T0_MS (RIG_T0 / NS_PER_MS)

struct pages_rig {
    struct store_rig store;
    struct rig_process process;
};

static inline void pages_rig_init(struct pages_rig *r)
{
    store_rig_init(&r->store);
    r->process = (struct rig_process){
        .sets = ROUTE_QUERY,
        .log = r->store.options.log,
        .served = {.version = "test", .store = r->store.store},
    };
}

static inline void pages_rig_done(struct pages_rig *r)
{
    store_rig_done(&r->store);
}
SCOPED_VALUE(pages_rig, pages_rig_done)

/* Puts a profile of one sample at a second after RIG_T0. */
static inline void pages_put(struct pages_rig *r, const struct label *labels, size_t n,
                             int64_t second, const struct pprof_spec *spec,
                             const struct pprof_row *row)
{
    struct pprof_spec timed = *spec;
    timed.time_nanos = RIG_T0 + second * RIG_SECOND;
    SCOPED(buf) b = pprof_make(&timed, row, 1);
    struct store_put put = {.labels = labels,
                            .n_labels = n,
                            .data = {b.data, b.len},
                            .format = PROFILE_PPROF,
                            .from_ns = timed.time_nanos,
                            .until_ns = timed.time_nanos + 15 * RIG_SECOND};
    if (!store_put(r->store.store, &put, 1)) {
        fail_msg("store_put: %s", put.problem);
    }
}

static inline struct label pages_label(const char *name, const char *value)
{
    return (struct label){sv_from(name), sv_from(value)};
}

/* Puts ten seconds of CPU time of a pod of a service. */
static inline void pages_put_cpu(struct pages_rig *r, const char *service, const char *pod,
                                 const char *version, int64_t second, double cores)
{
    const struct pprof_spec spec = {.types = "samples/count cpu/nanoseconds",
                                    .period_type = "cpu/nanoseconds",
                                    .duration_nanos = 10 * RIG_SECOND};
    const struct pprof_row row = {"main", "", {(int64_t)(1000 * cores), (int64_t)(1e10 * cores)}};
    const struct label labels[] = {pages_label("__name__", "process_cpu"), pages_label("pod", pod),
                                   pages_label("service_name", service),
                                   pages_label("version", version)};
    pages_put(r, labels, version[0] == '\0' ? 3 : 4, second, &spec, &row);
}

static inline void pages_put_heap(struct pages_rig *r, const char *service, const char *pod,
                                  int64_t second, int64_t alloc, int64_t inuse)
{
    const struct pprof_spec spec = {.types = "alloc_space/bytes inuse_space/bytes",
                                    .period_type = "space/bytes"};
    const struct pprof_row row = {"main", "", {alloc, inuse}};
    const struct label labels[] = {pages_label("__name__", "memory"), pages_label("pod", pod),
                                   pages_label("service_name", service)};
    pages_put(r, labels, 3, second, &spec, &row);
}

static inline void pages_put_goroutines(struct pages_rig *r, const char *service, const char *pod,
                                        int64_t second, int64_t n)
{
    const struct pprof_spec spec = {.types = "goroutine/count", .period_type = "goroutine/count"};
    const struct pprof_row row = {"main", "", {n}};
    const struct label labels[] = {pages_label("__name__", "goroutine"), pages_label("pod", pod),
                                   pages_label("service_name", service)};
    pages_put(r, labels, 3, second, &spec, &row);
}

/* Asks for a path; the caller frees the answer. */
static inline struct rig_answer pages_get(const struct pages_rig *r, const char *path)
{
    char head[REQUEST_HEAD_MAX];
    (void)snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\n", path);
    return rig_ask(&r->process, head, SV(""));
}

/* Returns how often a text has another. */
static inline size_t pages_count(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, part)) != NULL; p += strlen(part)) {
        n++;
    }
    return n;
}

#endif
