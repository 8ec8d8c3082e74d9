/* How many profiles a second the writer gets rid of, and what that costs.
 *
 *   write-bench URL [PROFILES [BYTES [PROTOCOL [none|RATE]]]]
 *
 * Puts so many profiles (30,000) of so many bytes (30,720) into one endpoint of a protocol (push),
 * as fast as its queue takes them without a loss, and prints one line: rate, processor time, the
 * ledger. The profiles share no bytes; for protocols that read them (all but profefe) they are gzip
 * and of about that size, those of 20 services with five types each. none: requests are not
 * compressed. RATE: so many profiles a second, of 100 services by their labels. Exit code 1 if one
 * was lost.
 */
#include <inttypes.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "tests/tools/made_profile.h"
#include "write/protocols/table.h"
#include "write/write.h"

#define QUEUE_BYTES (UINT64_C(64) * 1024 * 1024)
#define CONCURRENCY 16
/* A server may answer only once it has written, some half a second later, so that a rate needs many
 * requests at the same time. */
#define PACED_CONCURRENCY 256
#define SERVICES 20
#define PACED_SERVICES 100
/* A stack takes about so many bytes of a made profile, compressed. */
#define BYTES_A_STACK 32

struct bench {
    struct loop *loop;
    struct writer *writer;
    struct intern *intern;
    struct log *log;
    uint64_t n;
    uint64_t size;
    uint64_t rate;                         /* profiles a second; 0: as fast as they are taken */
    struct sv made[SERVICES * MADE_KINDS]; /* empty: profiles that are not read */
};

/* A pprof with one sample and a long string: most protocols look no further. */
static struct sv make_data(const struct bench *b, uint64_t i)
{
    static const char head[] = "\x0a\x04\x08\x01\x10\x02\x12\x06\x0a\x01\x01\x12\x01\x05";
    /* At a rate, each service has a profile of each type, one after the other. */
    uint64_t which = b->rate > 0 ? i + i / PACED_SERVICES * SERVICES : i;
    struct sv made = b->made[which % (SERVICES * MADE_KINDS)];
    size_t size = made.n > 0 ? made.n : b->size;
    char *data = malloc(size);
    if (data == NULL) {
        exit(2);
    }
    if (made.n > 0) {
        memcpy(data, made.p, size);
    } else {
        memset(data, 'x', size);
        memcpy(data, head, sizeof(head) - 1);
    }
    return (struct sv){data, size};
}

static void make_profiles(struct bench *b)
{
    struct profile_maker maker = {.scratch = scratch_new(),
                                  .stacks = (unsigned)(b->size / BYTES_A_STACK),
                                  .different = (unsigned)(4 * b->size / BYTES_A_STACK)};
    rng_seed(&maker.rng, 1);
    uint64_t bytes = 0;
    for (unsigned i = 0; i < SERVICES * MADE_KINDS; i++) {
        b->made[i] = made_profile(&maker, i % SERVICES, i / SERVICES);
        bytes += b->made[i].n;
    }
    scratch_free(maker.scratch);
    b->size = bytes / (SERVICES * MADE_KINDS);
}

static struct profile *make(struct bench *b, uint64_t i)
{
    char instance[32];
    char service[32] = "bench";
    struct labels_builder *builder = labels_builder_new(b->intern);
    if (builder == NULL) {
        exit(2);
    }
    (void)snprintf(instance, sizeof(instance), "10.0.0.%" PRIu64 ":6060", i % 250);
    labels_builder_set(builder, SV("__name__"), SV("memory"));
    labels_builder_set(builder, SV("__delta__"), SV("false"));
    if (b->rate > 0) {
        (void)snprintf(service, sizeof(service), "service-%03" PRIu64, i % PACED_SERVICES);
    }
    labels_builder_set(builder, SV("service_name"), sv_from(service));
    labels_builder_set(builder, SV("namespace"), SV("default"));
    labels_builder_set(builder, SV("pod"), SV("bench-7f9c"));
    labels_builder_set(builder, SV("instance"), sv_from(instance));
    struct labels *l = labels_builder_build(builder);
    labels_builder_free(builder);
    struct sv data = make_data(b, i);
    struct profile *p = l != NULL ? profile_new(l, (char *)(uintptr_t)data.p, data.n) : NULL;
    if (p == NULL) {
        exit(2);
    }
    p->from_ns = p->until_ns = clock_wall_ns();
    p->scraped_ms = clock_mono_ms();
    return p;
}

/* Returns true if the i-th profile may be put at the rate asked for. */
static bool is_time(const struct bench *b, int64_t start_ns, uint64_t i)
{
    return b->rate == 0 ||
           clock_mono_ns() - start_ns >= (int64_t)(i * (uint64_t)NS_PER_S / b->rate);
}

static void put_all(struct bench *b)
{
    int64_t start = clock_mono_ns();
    for (uint64_t i = 0; i < b->n; i++) {
        struct timespec pause = {.tv_nsec = 200000};
        while (writer_ledger(b->writer, 0).queued_bytes > QUEUE_BYTES / 2 ||
               !is_time(b, start, i)) {
            nanosleep(&pause, NULL);
        }
        struct profile *p = make(b, i);
        writer_put(b->writer, p, 1);
    }
}

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void on_drained(void *arg)
{
    sem_post(arg);
}

static int report(struct bench *b, int64_t start_ns, double cpu)
{
    struct write_ledger l = writer_ledger(b->writer, 0);
    double seconds = (double)(clock_mono_ns() - start_ns) / 1e9;
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    printf("%.0f profiles/s, %.1f MB/s, %.1f us of processor time each, peak %ld MB; sent %" PRIu64
           " of %" PRIu64 ", %" PRIu64 " bytes each\n",
           (double)l.sent / seconds, (double)(l.sent * b->size) / seconds / 1e6,
           cpu / (double)b->n * 1e6, u.ru_maxrss / 1024, l.sent, l.accepted, b->size);
    for (int d = 0; d < WRITE_DROPS; d++) {
        if (l.dropped[d] > 0) {
            printf("  dropped for %s: %" PRIu64 "\n", write_drop_name((enum write_drop)d),
                   l.dropped[d]);
        }
    }
    return l.sent == b->n ? 0 : 1;
}

static int run(struct bench *b, const struct config_endpoint *endpoint)
{
    struct err err = ERR_INIT;
    sem_t drained;
    sem_init(&drained, 0, 0);
    struct config config = {.endpoints = endpoint, .n_endpoints = 1};
    struct metrics *metrics = metrics_new();
    b->intern = intern_new();
    b->log = log_new(STDERR_FILENO, LOG_WARN, LOG_LOGFMT);
    b->loop = loop_new(&err);
    struct writer_options options = {
        .config = &config, .loop = b->loop, .intern = b->intern, .log = b->log, .metrics = metrics};
    b->writer = writer_new(&options, &err);
    struct loop_thread *thread =
        b->writer != NULL ? loop_thread_start(b->loop, "write", &err) : NULL;
    if (thread == NULL) {
        fprintf(stderr, "write-bench: %s\n", err.msg);
        return 2;
    }
    int64_t start = clock_mono_ns();
    double cpu = cpu_seconds();
    put_all(b);
    writer_drain(b->writer, clock_mono_ms() + 60000, on_drained, &drained);
    while (sem_wait(&drained) != 0) {
        ;
    }
    loop_thread_join(thread);
    int code = report(b, start, cpu_seconds() - cpu);
    writer_free(b->writer);
    loop_free(b->loop);
    metrics_free(metrics);
    log_free(b->log);
    intern_free(b->intern);
    return code;
}

/* NULL if there is none of that name. */
static const struct config_protocol *protocol_named(const char *name)
{
    const struct config_protocol *const *all = write_protocols();
    while (*all != NULL && strcmp((*all)->name, name) != 0) {
        all++;
    }
    return *all;
}

int main(int argc, char **argv)
{
    struct bench b = {.n = 30000, .size = 30720};
    const struct config_protocol *protocol = protocol_named(argc > 4 ? argv[4] : "push");
    bool ok = argc >= 2 && argc <= 6 && protocol != NULL;
    ok = ok && (argc < 3 || parse_u64(sv_from(argv[2]), UINT32_MAX, &b.n));
    ok = ok && (argc < 4 || parse_u64(sv_from(argv[3]), 1 << 30, &b.size));
    bool plain = argc == 6 && strcmp(argv[5], "none") == 0;
    ok = ok && (argc < 6 || plain || (parse_u64(sv_from(argv[5]), 100000, &b.rate) && b.rate > 0));
    if (!ok || b.n == 0 || b.size < 200) {
        fprintf(stderr, "usage: write-bench URL [PROFILES [BYTES [PROTOCOL [none|RATE]]]]\n");
        return 2;
    }
    if (protocol->is_otlp || protocol->reads_sample_labels) {
        make_profiles(&b);
    }
    unsigned usual = b.rate > 0 ? PACED_CONCURRENCY : CONCURRENCY;
    struct config_endpoint endpoint = {
        .name = "bench",
        .url = argv[1],
        .protocol = protocol,
        .tenant_id = "",
        .remote_timeout_ms = 10000,
        .min_backoff_ms = 500,
        .max_backoff_ms = 5000,
        .queue_max_bytes = QUEUE_BYTES,
        .concurrency = protocol->concurrency > 0 ? protocol->concurrency : usual,
        .otlp_request_bytes = 4 << 20,
        .otlp_compression = plain ? OTLP_PLAIN : OTLP_GZIP,
        .sample_names_max = protocol->reads_sample_labels ? 6 : 0,
        .sample_repair = true,
        .label_limits = CONFIG_LABEL_LIMITS_DEFAULT};
    signal(SIGPIPE, SIG_IGN);
    return run(&b, &endpoint);
}
