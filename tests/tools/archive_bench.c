/* Measures a query of an archive: requests, bytes and time.
 *
 *   archive-bench DIRECTORY [SERVICES [DAYS [STACKS [DIFFERENT [DELAY [PODS]]]]]]
 *
 * Fills an archive in memory with so many services (100) of so many pods (1) for so many days (30):
 * one profile an hour for each pod, as large as a merged one, of so many stacks (20) out of
 * DIFFERENT ones (600), in stretches of an hour, which are then merged to one object for each day.
 * Each request takes DELAY milliseconds (30) longer. Then a reader with an empty cache starts, and
 * is asked for a flame graph and a timeline of one service over all days, each three times. Prints,
 * for each answer, the requests (those of the listing come first), the bytes that were read, and
 * the time; and the memory that the questions took.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/archive/private.h"
#include "store/query/query.h"
#include "tests/tools/made_profile.h"
#include "tests/tools/peak.h"

#define T0_MS INT64_C(1788220800000) /* 2026-09-01 */
#define DAY_S (24 * 3600)
#define QUERY_BYTES ((size_t)256 * 1024 * 1024)
#define CACHE_BYTES ((size_t)128 * 1024 * 1024) /* the default */

/* ---- a bucket in memory ---------------------------------------------------------------------- */

struct object {
    char *key;
    char *data;
    size_t n;
    unsigned version;
    int64_t modified_ns;
};

struct bench_bucket {
    pthread_mutex_t lock;
    struct object *at; /* in order of keys */
    size_t n;
    size_t cap;
    unsigned versions;
    unsigned delay_ms;
    int64_t now_ns;
    uint64_t requests;
    uint64_t lists;
    uint64_t bytes;
};

static void wait_for(struct bench_bucket *b)
{
    const struct timespec t = {b->delay_ms / 1000, (long)(b->delay_ms % 1000) * 1000000};
    (void)nanosleep(&t, NULL);
}

static size_t place_of(const struct bench_bucket *b, const char *key)
{
    size_t lo = 0;
    size_t hi = b->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (strcmp(b->at[mid].key, key) < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static struct object *find(struct bench_bucket *b, const char *key)
{
    size_t at = place_of(b, key);
    return at < b->n && strcmp(b->at[at].key, key) == 0 ? &b->at[at] : NULL;
}

static const char *bench_url(void *arg)
{
    (void)arg;
    return "s3://bench/archive";
}

static void describe(const struct object *o, struct bucket_object *ret)
{
    *ret = (struct bucket_object){.key = o->key, .size = o->n, .modified_ns = o->modified_ns};
    (void)snprintf(ret->etag, sizeof(ret->etag), "\"v%u\"", o->version);
}

static enum bucket_result bench_list(void *arg, const struct bucket_list *l,
                                     bool (*fn)(void *fn_arg, const struct bucket_object *o),
                                     void *fn_arg, int64_t deadline_ms, struct err *err)
{
    struct bench_bucket *b = arg;
    const char *prefix = l->prefix != NULL ? l->prefix : "";
    char last[ARCHIVE_KEY_SIZE] = "";
    size_t entries = 0;
    bool more = true;
    (void)deadline_ms;
    (void)err;
    wait_for(b);
    pthread_mutex_lock(&b->lock);
    b->requests++;
    for (size_t i = 0; more && i < b->n; i++) {
        struct bucket_object o;
        char common[ARCHIVE_KEY_SIZE];
        if (strncmp(b->at[i].key, prefix, strlen(prefix)) != 0 ||
            (l->start_after != NULL && strcmp(b->at[i].key, l->start_after) <= 0)) {
            continue;
        }
        const char *slash =
            l->delimiter != 0 ? strchr(b->at[i].key + strlen(prefix), l->delimiter) : NULL;
        describe(&b->at[i], &o);
        if (slash != NULL) {
            (void)snprintf(common, sizeof(common), "%.*s", (int)(slash - b->at[i].key + 1),
                           b->at[i].key);
            if (strcmp(common, last) == 0) {
                continue;
            }
            memcpy(last, common, sizeof(last));
            o = (struct bucket_object){.key = common, .is_prefix = true};
        }
        /* A page has 1,000 entries. */
        b->requests += ++entries % 1000 == 0;
        more = fn(fn_arg, &o);
    }
    b->lists++;
    pthread_mutex_unlock(&b->lock);
    return BUCKET_OK;
}

static enum bucket_result bench_head(void *arg, const char *key, int64_t deadline_ms,
                                     struct bucket_object *ret, struct err *err)
{
    struct bench_bucket *b = arg;
    (void)deadline_ms;
    (void)err;
    wait_for(b);
    pthread_mutex_lock(&b->lock);
    b->requests++;
    const struct object *o = find(b, key);
    if (o != NULL) {
        describe(o, ret);
    }
    pthread_mutex_unlock(&b->lock);
    return o != NULL ? BUCKET_OK : BUCKET_NOT_FOUND;
}

static enum bucket_result bench_get(void *arg, const char *key, const struct bucket_range *r,
                                    int64_t deadline_ms, struct bucket_read *ret, struct err *err)
{
    struct bench_bucket *b = arg;
    (void)deadline_ms;
    wait_for(b);
    pthread_mutex_lock(&b->lock);
    b->requests++;
    const struct object *o = find(b, key);
    enum bucket_result result = BUCKET_NOT_FOUND;
    if (o != NULL && r->offset < o->n) {
        struct bucket_object described;
        describe(o, &described);
        memcpy(ret->etag, described.etag, sizeof(ret->etag));
        ret->total = o->n;
        ret->len = o->n - r->offset < r->len ? o->n - (size_t)r->offset : r->len;
        memcpy(r->into, o->data + r->offset, ret->len);
        b->bytes += ret->len;
        result = BUCKET_OK;
    } else {
        err_set(err, ERR_SYSTEM, "%s: no such object or range", key);
    }
    pthread_mutex_unlock(&b->lock);
    return result;
}

static enum bucket_result bench_put(void *arg, const char *key, const void *data, size_t len,
                                    int64_t deadline_ms, struct err *err)
{
    struct bench_bucket *b = arg;
    (void)deadline_ms;
    (void)err;
    pthread_mutex_lock(&b->lock);
    struct object *o = find(b, key);
    if (o == NULL) {
        if (b->n == b->cap) {
            b->cap = 2 * b->cap + 64;
            b->at = reallocarray(b->at, b->cap, sizeof(b->at[0]));
        }
        size_t at = place_of(b, key);
        memmove(&b->at[at + 1], &b->at[at], (b->n++ - at) * sizeof(b->at[0]));
        o = &b->at[at];
        *o = (struct object){.key = strdup(key)};
    }
    free(o->data);
    o->data = malloc(len + 1);
    memcpy(o->data, data, len);
    o->n = len;
    o->version = ++b->versions;
    o->modified_ns = b->now_ns;
    b->requests++;
    pthread_mutex_unlock(&b->lock);
    return BUCKET_OK;
}

static enum bucket_result bench_put_file(void *arg, const char *key, int fd, uint64_t offset,
                                         uint64_t len, int64_t deadline_ms, struct err *err)
{
    char *data = malloc((size_t)len + 1);
    enum bucket_result result = BUCKET_FILE;
    if (data != NULL && pread(fd, data, (size_t)len, (off_t)offset) == (ssize_t)len) {
        result = bench_put(arg, key, data, (size_t)len, deadline_ms, err);
    }
    free(data);
    return result;
}

static enum bucket_result bench_remove(void *arg, const char *key, int64_t deadline_ms,
                                       struct err *err)
{
    struct bench_bucket *b = arg;
    (void)deadline_ms;
    (void)err;
    pthread_mutex_lock(&b->lock);
    struct object *o = find(b, key);
    if (o != NULL) {
        free(o->key);
        free(o->data);
        size_t i = (size_t)(o - b->at);
        memmove(o, o + 1, (--b->n - i) * sizeof(*o));
    }
    b->requests++;
    pthread_mutex_unlock(&b->lock);
    return BUCKET_OK;
}

static enum bucket_result bench_abort(void *arg, const char *prefix, int64_t before_ns,
                                      int64_t deadline_ms, size_t *ret_n, struct err *err)
{
    (void)arg;
    (void)prefix;
    (void)before_ns;
    (void)deadline_ms;
    (void)ret_n;
    (void)err;
    return BUCKET_OK;
}

static struct archive_backend backend_of(struct bench_bucket *b)
{
    return (struct archive_backend){.arg = b,
                                    .url = bench_url,
                                    .list = bench_list,
                                    .head = bench_head,
                                    .get = bench_get,
                                    .put = bench_put,
                                    .put_file = bench_put_file,
                                    .remove = bench_remove,
                                    .abort_uploads = bench_abort};
}

/* ---- filling --------------------------------------------------------------------------------- */

struct bench {
    struct bench_bucket bucket;
    const char *directory;
    unsigned services;
    unsigned days;
    unsigned pods;
    struct profile_maker maker;
    struct sv *bodies; /* one for each service */
};

static void fail(const char *what, const struct err *err)
{
    (void)fprintf(stderr, "%s: %s\n", what, err->msg);
    exit(1);
}

static struct store *open_store(struct bench *b, struct archive_backend *backend, bool read_only)
{
    struct err err = ERR_INIT;
    *backend = backend_of(&b->bucket);
    const struct archive_options archive = {.writer = read_only ? NULL : "writer-0",
                                            .merge_ms = 3600 * MS_PER_S,
                                            .cache_bytes = CACHE_BYTES,
                                            .backend = backend,
                                            .without_thread = true};
    const struct store_options options = {.name = "bench",
                                          .directory = b->directory,
                                          .stretch_ms = 3600 * MS_PER_S,
                                          .max_age_ms = 3600 * MS_PER_S,
                                          .merge_ms = 300 * MS_PER_S,
                                          .merge_cpu = 100,
                                          .archive = &archive,
                                          .read_only = read_only};
    struct store *s = store_open(&options, &err);
    if (s == NULL) {
        fail(b->directory, &err);
    }
    return s;
}

static void put_one(const struct bench *b, struct store *s, unsigned service, unsigned pod,
                    int64_t from_ns)
{
    char name[32];
    char of_pod[48];
    (void)snprintf(name, sizeof(name), "service-%u", service);
    (void)snprintf(of_pod, sizeof(of_pod), "service-%u-%u", service, pod);
    const struct label labels[] = {{SV("__name__"), sv_from(made_kinds[0].name)},
                                   {SV("namespace"), SV("default")},
                                   {SV("pod"), sv_from(of_pod)},
                                   {SV("service_name"), sv_from(name)}};
    struct store_put put = {.labels = labels,
                            .n_labels = 4,
                            .data = b->bodies[service],
                            .format = PROFILE_PPROF,
                            .from_ns = from_ns,
                            .until_ns = from_ns + 3600 * NS_PER_S};
    if (!store_put(s, &put, 1)) {
        (void)fprintf(stderr, "put: %s\n", put.problem);
        exit(1);
    }
}

static void put_hour(struct bench *b, struct store *s, unsigned hour)
{
    int64_t from_ns = (T0_MS + (int64_t)hour * 3600 * MS_PER_S) * NS_PER_MS;
    for (unsigned i = 0; i < b->services * b->pods; i++) {
        put_one(b, s, i % b->services, i / b->services, from_ns + i * NS_PER_MS);
    }
}

/* Runs a round at a time of the bucket, in which everything is due. */
static void round_at(struct bench *b, struct store *s, int64_t ms)
{
    struct archive *a = s->archive;
    b->bucket.now_ns = ms * NS_PER_MS;
    store_maintain(s, b->bucket.now_ns);
    a->list_due_ms = a->beat_due_ms = a->list_all_due_ms = a->expire_due_ms = a->days_due_ms = 0;
    archive_round(a, b->bucket.now_ns);
}

static void fill(struct bench *b)
{
    struct archive_backend backend;
    struct store *s = open_store(b, &backend, false);
    int64_t start = clock_mono_ms();
    b->bodies = calloc(b->services, sizeof(b->bodies[0]));
    for (unsigned i = 0; b->bodies != NULL && i < b->services; i++) {
        b->bodies[i] = made_profile(&b->maker, i, 0);
    }
    for (unsigned day = 0; day < b->days; day++) {
        int64_t end_ms = T0_MS + (int64_t)(day + 1) * DAY_S * MS_PER_S;
        for (unsigned hour = 0; hour < 24; hour++) {
            put_hour(b, s, day * 24 + hour);
        }
        /* Upload, merge the day, and remove its parts. */
        round_at(b, s, end_ms + 3600 * MS_PER_S);
        round_at(b, s, end_ms + 8 * 3600 * MS_PER_S);
        round_at(b, s, end_ms + 11 * 3600 * MS_PER_S);
    }
    store_close(s);
    uint64_t bytes = 0;
    for (size_t i = 0; i < b->bucket.n; i++) {
        bytes += b->bucket.at[i].n;
    }
    (void)printf("%u services of %u pods, %u days: %zu objects of %" PRIu64
                 " bytes, made in %" PRId64 " s with %" PRIu64 " requests\n",
                 b->services, b->pods, b->days, b->bucket.n, bytes,
                 (clock_mono_ms() - start) / MS_PER_S, b->bucket.requests);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void report(struct bench *b, const char *what, int64_t start_ms, size_t n)
{
    (void)printf("%-36s %4" PRIu64 " requests %9" PRIu64 " bytes %6" PRId64 " ms  %zu\n", what,
                 b->bucket.requests, b->bucket.bytes, clock_mono_ms() - start_ms, n);
    (void)fflush(stdout);
    b->bucket.requests = b->bucket.bytes = 0;
}

static void ask(struct bench *b, struct store *s, bool timeline)
{
    static const struct query_stacks all;
    static const struct sv by[] = {{"service_name", 12}};
    const struct query_steps steps = {.step_s = 3600, .group_by = by, .n_group_by = 1};
    struct err err = ERR_INIT;
    struct selector *selector = selector_parse(SV("{service_name=\"service-7\"}"), &err);
    struct query_range r = {T0_MS, T0_MS + (int64_t)b->days * DAY_S * MS_PER_S, selector};
    struct partial partial = {.parts = 0};
    struct profile_type type;
    (void)profile_type_parse(SV("process_cpu:cpu:nanoseconds::"), &type, NULL);
    for (int i = 0; i < 3; i++) {
        struct query q = {.store = s,
                          .bytes_max = QUERY_BYTES,
                          .arena = arena_new(QUERY_BYTES),
                          .partial = &partial};
        struct query_time_series_list list;
        size_t n = 0;
        int64_t start = clock_mono_ms();
        if (timeline) {
            if (!query_time_series(&q, &r, &type, &steps, NULL, &list, &err)) {
                fail("timeline", &err);
            }
            n = list.n > 0 ? list.at[0].n_points : 0;
        } else {
            struct tree *t = query_tree(&q, &r, &type, &all, &err);
            struct flamegraph fg;
            if (t == NULL || !tree_flamegraph(t, TREE_NODES_DEFAULT, q.arena, &fg, &err)) {
                fail("flame graph", &err);
            }
            n = tree_size(t);
            tree_free(t);
        }
        report(b, timeline ? "timeline of one service" : "flame graph of one service", start, n);
        if (partial.parts > 0) {
            (void)printf("the answer is partial: %s\n", partial.why);
        }
        arena_free(q.arena);
    }
    selector_free(selector);
}

/* Prints the memory that was used since peak_begin(). */
static void report_memory(size_t before)
{
    if (before == 0) {
        (void)puts("memory: not known, /proc/self/clear_refs cannot be written");
        return;
    }
    (void)printf("memory: %zu MiB more than before the first question, at most (a query may take "
                 "%zu MiB, the cache %zu MiB)\n",
                 (peak_status("VmHWM:") - before) >> 20, QUERY_BYTES >> 20, CACHE_BYTES >> 20);
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
    if (argc < 2) {
        (void)fprintf(stderr, "archive-bench DIRECTORY [SERVICES [DAYS [STACKS [DIFFERENT "
                              "[DELAY [PODS]]]]]]\n");
        return 2;
    }
    struct bench b = {.directory = argv[1],
                      .services = number(argc, argv, 2, 100),
                      .days = number(argc, argv, 3, 30),
                      .pods = number(argc, argv, 7, 1),
                      .maker = {.stacks = number(argc, argv, 4, 20),
                                .different = number(argc, argv, 5, 600),
                                .scratch = scratch_new()}};
    struct archive_backend backend;
    pthread_mutex_init(&b.bucket.lock, NULL);
    rng_seed(&b.maker.rng, 1);
    fill(&b);
    b.bucket.delay_ms = number(argc, argv, 6, 30);
    b.bucket.requests = b.bucket.bytes = 0;
    struct store *s = open_store(&b, &backend, true);
    int64_t start = clock_mono_ms();
    archive_round(s->archive, b.bucket.now_ns);
    report(&b, "listing", start, (size_t)b.bucket.lists);
    size_t before = peak_begin();
    ask(&b, s, false);
    ask(&b, s, true);
    report_memory(before);
    store_close(s);
    return 0;
}
