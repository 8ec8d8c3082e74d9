/* How many profiles a second the store takes, and how fast they are read.
 *
 *   store-bench DIR put PROFILES [FILE...]   puts the files, over and over, as so many profiles
 *   store-bench DIR paced PROFILES [FILE...] puts them at 200 a second, and merges them
 *   store-bench DIR hour SERVICES [FILE...]  an hour of so many services at 15 s, with each file as
 *                                            one type; then what merging makes of it
 *   store-bench DIR read                     visits all bodies of a service, and its points
 *
 * Without a FILE, five profiles of about 10 KB are made. DIR is a new directory, or one made by
 * "hour". Each profile differs from the others in its labels or its time. Prints and never fails on
 * a time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "store/private.h"
#include "store/store.h"
#include "tests/tools/made_profile.h"

#define BATCH 64
#define FILES_MAX 16
#define STEP_NS (15 * NS_PER_S)
#define STEPS 240
/* Profiles a second of "paced". */
#define PACE 200

struct bench {
    struct store *store;
    char *data[FILES_MAX];
    size_t size[FILES_MAX];
    size_t n_files;
    struct store_put puts[BATCH];
    struct label labels[BATCH][4];
    char texts[BATCH][2][32];
    size_t n;
    uint64_t failed;
};

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static double now(void)
{
    return (double)clock_mono_ns() / (double)NS_PER_S;
}

static void load(struct bench *b, char *const *names, int n)
{
    for (int i = 0; i < n && b->n_files < FILES_MAX; i++) {
        FILE *in = fopen(names[i], "rb");
        size_t cap = (size_t)16 * 1024 * 1024;
        char *data = malloc(cap);
        if (in == NULL || data == NULL) {
            (void)fprintf(stderr, "cannot read %s\n", names[i]);
            exit(2);
        }
        b->size[b->n_files] = fread(data, 1, cap, in);
        b->data[b->n_files++] = data;
        (void)fclose(in);
    }
}

/* Makes a profile of about 10 KB for each type. */
static void make(struct bench *b)
{
    struct profile_maker maker = {.scratch = scratch_new(), .stacks = 90, .different = 600};
    rng_seed(&maker.rng, 1);
    while (b->n_files < MADE_KINDS) {
        struct sv data = made_profile(&maker, 0, (unsigned)b->n_files);
        b->size[b->n_files] = data.n;
        b->data[b->n_files++] = (char *)(uintptr_t)data.p;
    }
    scratch_free(maker.scratch);
}

static void flush(struct bench *b)
{
    if (b->n > 0 && !store_put(b->store, b->puts, b->n)) {
        for (size_t i = 0; i < b->n; i++) {
            if (b->puts[i].taken != STORE_TAKEN && b->failed++ == 0) {
                (void)fprintf(stderr, "%s\n", b->puts[i].problem);
            }
        }
    }
    b->n = 0;
}

static void put(struct bench *b, size_t file, uint64_t service, int64_t from_ns)
{
    size_t i = b->n++;
    (void)snprintf(b->texts[i][0], 32, "type%zu", file);
    (void)snprintf(b->texts[i][1], 32, "service-%03" PRIu64, service);
    b->labels[i][0] = (struct label){SV("__name__"), sv_from(b->texts[i][0])};
    b->labels[i][1] = (struct label){SV("namespace"), SV("default")};
    b->labels[i][2] = (struct label){SV("pod"), sv_from(b->texts[i][1])};
    b->labels[i][3] = (struct label){SV("service_name"), sv_from(b->texts[i][1])};
    b->puts[i] = (struct store_put){.labels = b->labels[i],
                                    .n_labels = 4,
                                    .data = {b->data[file], b->size[file]},
                                    .from_ns = from_ns,
                                    .until_ns = from_ns + STEP_NS};
    if (b->n == BATCH) {
        flush(b);
    }
}

/* Returns the bytes that this process has caused to be written to disks, as the kernel counts them;
 * 0 if the kernel does not count them. */
static uint64_t written_bytes(void)
{
    char line[128];
    uint64_t n = 0;
    FILE *in = fopen("/proc/self/io", "r");
    while (in != NULL && fgets(line, sizeof(line), in) != NULL) {
        struct sv name;
        struct sv value;
        if (sv_cut(sv_from(line), ':', &name, &value) && sv_eq_str(name, "write_bytes")) {
            n = strtoull(value.p, NULL, 10);
        }
    }
    if (in != NULL) {
        (void)fclose(in);
    }
    return n;
}

/* Prints the bytes that were written to the disk for each profile, since `before`. */
static void print_written(uint64_t before, uint64_t n, const char *what)
{
    (void)printf("%" PRIu64 " bytes written to the disk for each profile, %s\n",
                 (written_bytes() - before) / (n > 0 ? n : 1), what);
}

static void print_rate(const struct bench *b, uint64_t n, uint64_t bytes, double wall, double cpu)
{
    struct store_stats stats;
    store_stats(b->store, &stats);
    (void)printf("%" PRIu64 " profiles of %" PRIu64 " bytes: %.0f/s, %.0f/s of processor time; "
                 "%" PRIu64 " bytes on the disk; %" PRIu64 " failed\n",
                 n, bytes / (n > 0 ? n : 1), (double)n / wall, (double)n / cpu, stats.bytes,
                 b->failed);
}

static void bench_put(struct bench *b, uint64_t n)
{
    int64_t start = INT64_C(1795305600) * NS_PER_S;
    uint64_t bytes = 0;
    uint64_t written = written_bytes();
    double wall = now();
    double cpu = cpu_seconds();
    for (uint64_t i = 0; i < n; i++) {
        size_t file = i % b->n_files;
        bytes += b->size[file];
        put(b, file, i % 100, start + (int64_t)i * NS_PER_MS / 2);
    }
    flush(b);
    print_rate(b, n, bytes, now() - wall, cpu_seconds() - cpu);
    store_writers_close(b->store, NULL);
    print_written(written, n, "without merging");
}

/* Puts profiles at a rate, as scrapes do: what is written at once depends on it. */
static void bench_paced(struct bench *b, uint64_t n)
{
    int64_t start = INT64_C(1795305600) * NS_PER_S;
    uint64_t written = written_bytes();
    double wall = now();
    for (uint64_t i = 0; i < n; i++) {
        put(b, i % b->n_files, i % 100, start + (int64_t)i * (NS_PER_S / PACE));
        double early = (double)i / PACE - (now() - wall);
        if (b->n >= PACE / 10 && early > 0) {
            flush(b);
            store_pause(b->store, (int64_t)(early * 1000));
        }
    }
    flush(b);
    print_written(written, n, "before merging");
    store_writers_close(b->store, NULL);
    store_maintain(b->store, start + INT64_C(7200) * NS_PER_S);
    print_written(written, n, "merging included");
}

/* Merges and sums what is due at a time. */
static void maintain(struct bench *b, const char *what, int64_t now_ns)
{
    struct store_stats stats;
    double wall = now();
    double cpu = cpu_seconds();
    store_maintain(b->store, now_ns);
    store_stats(b->store, &stats);
    (void)printf("%s in %.1f s, %.1f s of processor time: %" PRIu64 " bytes on the disk, %" PRIu64
                 " single profiles\n",
                 what, now() - wall, cpu_seconds() - cpu, stats.bytes, stats.singles);
}

static void bench_hour(struct bench *b, uint64_t services)
{
    /* The thread of the store would merge while the hour is filled, because it is in the past. */
    store_background_stop(b->store);
    b->store->stopping = false;
    int64_t start = INT64_C(1795305600) * NS_PER_S;
    uint64_t bytes = 0;
    uint64_t n = 0;
    uint64_t written = written_bytes();
    double wall = now();
    double cpu = cpu_seconds();
    for (int64_t step = 0; step < STEPS; step++) {
        for (uint64_t s = 0; s < services; s++) {
            for (size_t f = 0; f < b->n_files; f++, n++) {
                bytes += b->size[f];
                put(b, f, s, start + step * STEP_NS + (int64_t)s * NS_PER_MS);
            }
        }
    }
    flush(b);
    print_rate(b, n, bytes, now() - wall, cpu_seconds() - cpu);
    store_writers_close(b->store, NULL);
    print_written(written, n, "before merging");
    maintain(b, "merged", start + INT64_C(7200) * NS_PER_S);
    print_written(written, n, "merging included");
    maintain(b, "summed", start + INT64_C(2 * 86400) * NS_PER_S);
}

struct visited {
    uint64_t n;
    uint64_t bytes;
};

static bool bench_on_body(void *arg, const struct store_body *body)
{
    struct visited *v = arg;
    v->n++;
    v->bytes += body->data.n;
    return true;
}

static bool bench_on_point(void *arg, const struct store_point *point)
{
    struct visited *v = arg;
    v->n++;
    v->bytes += (uint64_t)(point->value != 0);
    return true;
}

static void bench_read(struct bench *b)
{
    struct err err = ERR_INIT;
    struct selector *s =
        selector_parse(SV("{service_name=\"service-001\",__name__=\"type0\"}"), &err);
    struct store_scan scan = {.range = {.from_ns = 0, .until_ns = INT64_MAX, .selector = s},
                              .with_data = true};
    struct visited v = {0};
    double wall = now();
    (void)store_each_body(b->store, &scan, bench_on_body, &v, &err);
    (void)printf("%" PRIu64 " bodies of %" PRIu64 " bytes in %.3f s\n", v.n, v.bytes, now() - wall);
    v = (struct visited){0};
    wall = now();
    (void)store_each_point(b->store, &scan.range, bench_on_point, &v, &err);
    (void)printf("%" PRIu64 " points in %.3f s\n", v.n, now() - wall);
    selector_free(s);
}

int main(int argc, char **argv)
{
    struct bench *b = calloc(1, sizeof(*b));
    struct err err = ERR_INIT;
    uint64_t n = 0;
    if (b == NULL || argc < 3 || (argc < 4 && strcmp(argv[2], "read") != 0) ||
        (argc > 3 && !parse_u64(sv_from(argv[3]), UINT64_MAX, &n))) {
        (void)fprintf(stderr, "usage: store-bench DIR put|paced|hour N [FILE...] | DIR read\n");
        return 2;
    }
    struct store_options options = {.name = "bench",
                                    .directory = argv[1],
                                    .stretch_ms = 3600 * MS_PER_S,
                                    .merge_ms = strcmp(argv[2], "put") == 0 ? 0 : 300 * MS_PER_S,
                                    .merge_cpu = 100};
    b->store = store_open(&options, &err);
    if (b->store == NULL) {
        (void)fprintf(stderr, "%s\n", err.msg);
        return 2;
    }
    if (argc > 4) {
        load(b, argv + 4, argc - 4);
    } else {
        make(b);
    }
    if (strcmp(argv[2], "put") == 0) {
        bench_put(b, n);
    } else if (strcmp(argv[2], "paced") == 0) {
        bench_paced(b, n);
    } else if (strcmp(argv[2], "hour") == 0) {
        bench_hour(b, n);
    } else {
        bench_read(b);
    }
    store_close(b->store);
    for (size_t i = 0; i < b->n_files; i++) {
        free(b->data[i]);
    }
    free(b);
    return 0;
}
