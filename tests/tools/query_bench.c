/* How long queries take over an hour of profiles.
 *
 *   query-bench DIRECTORY [SERVICES [MINUTES [STACKS [DIFFERENT [INTERVAL]]]]]
 *
 * Fills a store in a new directory with so many services (100) of five types each, one profile
 * every INTERVAL (15) seconds for so many minutes (60), of so many stacks (150) out of DIFFERENT
 * ones (600), and prints how long filling took, and of each kind of query three times how long it
 * takes and how much of that is processor time, and the size of the result. With an interval of 300
 * seconds or more, the files are then sealed, as files are that have been merged, and days are
 * summed. A directory that is filled is asked only.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cgroup.h"
#include "store/private.h"
#include "store/query/query.h"
#include "store/query/rates.h"
#include "store/query/versions.h"
#include "tests/tools/made_profile.h"

#define T0_MS INT64_C(1795305600000)
#define SEALED_INTERVAL 300
#define VARIANTS 16
#define DAY_MINUTES (24 * 60)
#define BATCH 100
#define QUERY_BYTES ((size_t)1024 * 1024 * 1024)

struct bench {
    struct store *store;
    struct profile_maker maker;
    unsigned services;
    unsigned minutes;
    unsigned interval; /* seconds */
    uint64_t bytes;
};

static void fail(const char *what, const struct err *err)
{
    (void)fprintf(stderr, "%s: %s\n", what, err->msg);
    exit(1);
}

/* ---- filling --------------------------------------------------------------------------------- */

struct series {
    unsigned service;
    unsigned kind;
    struct sv bodies[VARIANTS];
};

/* Puts the profiles from one number to another. */
static void put_series(struct bench *b, const struct series *of, unsigned done, unsigned until)
{
    char name[32];
    char pod[32];
    (void)snprintf(name, sizeof(name), "service-%u", of->service);
    (void)snprintf(pod, sizeof(pod), "service-%u-7f9c", of->service);
    const struct label labels[] = {{SV("__name__"), sv_from(made_kinds[of->kind].name)},
                                   {SV("namespace"), SV("default")},
                                   {SV("pod"), sv_from(pod)},
                                   {SV("service_name"), sv_from(name)}};
    struct store_put puts[BATCH];
    int64_t interval_ms = b->interval * MS_PER_S;
    while (done < until) {
        unsigned batch = until - done < BATCH ? until - done : BATCH;
        for (unsigned i = 0; i < batch; i++, done++) {
            int64_t from_ns = (T0_MS + (int64_t)done * interval_ms + of->service) * NS_PER_MS;
            puts[i] = (struct store_put){.labels = labels,
                                         .n_labels = 4,
                                         .data = of->bodies[done % VARIANTS],
                                         .format = PROFILE_PPROF,
                                         .from_ns = from_ns,
                                         .until_ns = from_ns + interval_ms * NS_PER_MS};
        }
        if (!store_put(b->store, puts, batch)) {
            (void)fprintf(stderr, "put: %s\n", puts[0].problem);
            exit(1);
        }
    }
}

static void make_series(struct bench *b, struct series *of)
{
    for (unsigned i = 0; i < VARIANTS; i++) {
        of->bodies[i] = made_profile(&b->maker, of->service, of->kind);
        b->bytes += of->bodies[i].n;
    }
}

static void fill(struct bench *b)
{
    unsigned n = b->services * MADE_KINDS;
    unsigned profiles = b->minutes * 60 / b->interval;
    unsigned an_hour = 3600 / b->interval > 0 ? 3600 / b->interval : 1;
    struct series *all = calloc(n, sizeof(all[0]));
    if (all == NULL) {
        exit(1);
    }
    for (unsigned i = 0; i < n; i++) {
        all[i].service = i / MADE_KINDS;
        all[i].kind = i % MADE_KINDS;
        make_series(b, &all[i]);
    }
    int64_t start = clock_mono_ms();
    /* One stretch after the other. */
    for (unsigned done = 0; done < profiles; done += an_hour) {
        unsigned until = profiles - done < an_hour ? profiles : done + an_hour;
        for (unsigned i = 0; i < n; i++) {
            put_series(b, &all[i], done, until);
        }
    }
    int64_t put_ms = clock_mono_ms() - start;
    for (unsigned i = 0; i < n; i++) {
        for (unsigned k = 0; k < VARIANTS; k++) {
            free((char *)(uintptr_t)all[i].bodies[k].p);
        }
    }
    free(all);
    if (b->interval >= SEALED_INTERVAL) {
        store_writers_close(b->store, NULL);
        /* A round makes the sum of one day. */
        for (unsigned i = 0; i <= b->minutes / DAY_MINUTES; i++) {
            store_maintain(b->store, clock_wall_ns() + 366 * 24 * 3600 * NS_PER_S);
        }
    }
    struct store_stats stats;
    store_stats(b->store, &stats);
    (void)printf("%" PRIu64 " profiles of %" PRIu64 " bytes put in %.1f s; %" PRIu64
                 " bytes on the disk\n",
                 stats.profiles, b->bytes / (b->services * MADE_KINDS * VARIANTS),
                 (double)put_ms / MS_PER_S, stats.bytes);
}

/* ---- queries --------------------------------------------------------------------------------- */

struct query_case {
    const char *name;
    const char *selector;
    bool (*run)(const struct query *q, const struct query_range *r, size_t *ret_n, struct err *err);
    bool from_noon; /* of several days: without the first and the last twelve hours */
};

static struct profile_type cpu_type(void)
{
    struct profile_type type;
    (void)profile_type_parse(SV("process_cpu:cpu:nanoseconds::"), &type, NULL);
    return type;
}

static bool bench_tree(const struct query *q, const struct query_range *r, size_t *ret_n,
                       struct err *err)
{
    static const struct query_stacks all;
    struct profile_type type = cpu_type();
    struct flamegraph fg;
    struct tree *t = query_tree(q, r, &type, &all, err);
    bool ok = t != NULL && tree_flamegraph(t, TREE_NODES_DEFAULT, q->arena, &fg, err);
    *ret_n = t != NULL ? tree_size(t) : 0;
    tree_free(t);
    return ok;
}

static bool bench_profile(const struct query *q, const struct query_range *r, size_t *ret_n,
                          struct err *err)
{
    static const struct query_profile_options all;
    struct profile_type type = cpu_type();
    struct buf out;
    buf_init(&out, QUERY_BYTES);
    bool ok = query_profile(q, r, &type, &all, &out, err);
    *ret_n = out.len;
    buf_done(&out);
    return ok;
}

static bool bench_series(const struct query *q, const struct query_range *r, size_t *ret_n,
                         struct err *err)
{
    static const struct sv by[] = {{"service_name", 12}};
    const struct query_steps steps = {.step_s = 15, .group_by = by, .n_group_by = 1};
    struct profile_type type = cpu_type();
    struct query_time_series_list list;
    bool ok = query_time_series(q, r, &type, &steps, NULL, &list, err);
    *ret_n = ok ? list.n : 0;
    return ok;
}

static bool bench_labels(const struct query *q, const struct query_range *r, size_t *ret_n,
                         struct err *err)
{
    static const struct sv names[] = {{"service_name", 12}, {"__profile_type__", 16}};
    struct query_label_sets sets;
    bool ok = query_series(q, r, names, 2, &sets, err);
    *ret_n = ok ? sets.n : 0;
    return ok;
}

/* The numbers of the overview: rates of an hour in 60 steps, and versions. */
static bool bench_overview(const struct query *q, const struct query_range *r, size_t *ret_n,
                           struct err *err)
{
    const struct query_rate_kind kinds[] = {
        {SV("cpu"), SV("nanoseconds"), MEASURE_WINDOW},
        {SV("alloc_space"), SV("bytes"), MEASURE_GROWTH},
        {SV("inuse_space"), SV("bytes"), MEASURE_LEVEL},
        {SV("goroutine"), SV("count"), MEASURE_LEVEL},
    };
    const struct query_rate_options o = {.kinds = kinds,
                                         .n_kinds = sizeof(kinds) / sizeof(kinds[0]),
                                         .step_ms = (r->end_ms - r->start_ms) / 60,
                                         .by_service = true};
    struct query_rates rates;
    struct query_versions versions;
    bool ok = query_rates(q, r, &o, &rates, err) && query_versions(q, r, &versions, err);
    *ret_n = ok ? rates.n : 0;
    return ok;
}

static const struct query_case cases[] = {
    {"overview of all", NULL, bench_overview, false},
    {"labels of all", NULL, bench_labels, false},
    {"timeline of one service", "{service_name=\"service-7\"}", bench_series, false},
    {"timelines of all", NULL, bench_series, false},
    {"flame graph of one service", "{service_name=\"service-7\"}", bench_tree, false},
    {"flame graph of all", NULL, bench_tree, false},
    {"profile of one service", "{service_name=\"service-7\"}", bench_profile, false},
    {"one service from noon", "{service_name=\"service-7\"}", bench_tree, true},
    {"all services from noon", NULL, bench_tree, true},
};

static int64_t cpu_ms(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * MS_PER_S +
           (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

static void ask(const struct bench *b, const struct query_case *c)
{
    struct err err = ERR_INIT;
    struct query_range r = {T0_MS, T0_MS + (int64_t)b->minutes * 60 * MS_PER_S, NULL};
    struct selector *selector = NULL;
    if (c->from_noon) {
        r.start_ms += DAY_MINUTES / 2 * 60 * MS_PER_S;
        r.end_ms -= DAY_MINUTES / 2 * 60 * MS_PER_S;
    }
    if (c->selector != NULL) {
        selector = selector_parse(sv_from(c->selector), &err);
        r.selector = selector;
    }
    (void)printf("%-28s", c->name);
    for (int i = 0; i < 3; i++) {
        size_t n = 0;
        struct query_helpers helpers = {.max = cgroup_cpus("") - 1};
        struct query q = {.store = b->store,
                          .bytes_max = QUERY_BYTES,
                          .arena = arena_new(QUERY_BYTES),
                          .helpers = &helpers};
        int64_t start = clock_mono_ms();
        int64_t cpu = cpu_ms();
        if (!c->run(&q, &r, &n, &err)) {
            fail(c->name, &err);
        }
        (void)printf(" %6" PRId64 " ms (CPU %5" PRId64 ")", clock_mono_ms() - start,
                     cpu_ms() - cpu);
        if (i == 2) {
            (void)printf("  %zu\n", n);
        }
        (void)fflush(stdout);
        arena_free(q.arena);
    }
    selector_free(selector);
}

static unsigned number(int argc, char **argv, int i, unsigned otherwise)
{
    uint64_t value = otherwise;
    if (i < argc && (!parse_u64(sv_from(argv[i]), 100000, &value) || value == 0)) {
        (void)fprintf(stderr, "%s is not a number from 1 to 100000\n", argv[i]);
        exit(2);
    }
    return (unsigned)value;
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    if (argc < 2) {
        (void)fprintf(
            stderr, "query-bench DIRECTORY [SERVICES [MINUTES [STACKS [DIFFERENT [INTERVAL]]]]]\n");
        return 2;
    }
    struct bench b = {
        .services = number(argc, argv, 2, 100),
        .minutes = number(argc, argv, 3, 60),
        .interval = number(argc, argv, 6, 15),
        .maker = {.stacks = number(argc, argv, 4, 150),
                  .different = number(argc, argv, 5, 600),
                  .scratch = scratch_new()},
    };
    struct log *log = log_new(2, LOG_WARN, LOG_LOGFMT);
    const struct store_options options = {
        .name = "bench",
        .directory = argv[1],
        .stretch_ms = 3600 * MS_PER_S,
        .merge_ms = b.interval >= SEALED_INTERVAL ? SEALED_INTERVAL * MS_PER_S : 0,
        .merge_cpu = 100,
        .log = log};
    rng_seed(&b.maker.rng, 1);
    b.store = store_open(&options, &err);
    if (b.store == NULL) {
        fail(argv[1], &err);
    }
    struct store_stats stats;
    store_stats(b.store, &stats);
    if (stats.profiles == 0) {
        fill(&b);
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (!cases[i].from_noon || b.minutes > 2 * DAY_MINUTES) {
            ask(&b, &cases[i]);
        }
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    (void)printf("%ld KiB of memory at most\n", usage.ru_maxrss);
    store_close(b.store);
    scratch_free(b.maker.scratch);
    log_free(log);
    return 0;
}
