/* How many profiles a second the writer gets rid of, and what that costs.
 *
 *   write-bench URL [PROFILES [BYTES [PROTOCOL]]]
 *
 * Puts so many profiles (30,000) of so many bytes (30,720) into one endpoint by push, ingest or
 * profefe, as fast as its queue takes them without a loss, and prints one line: rate, processor
 * time, the ledger. The profiles share no bytes. Exit code 1 if one was lost.
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
#include "write/protocols/table.h"
#include "write/write.h"

#define QUEUE_BYTES (UINT64_C(64) * 1024 * 1024)
#define CONCURRENCY 16

struct bench {
    struct loop *loop;
    struct writer *writer;
    struct intern *intern;
    struct log *log;
    uint64_t n;
    uint64_t size;
};

/* A pprof with one sample and a long string: the writer looks no further. */
static struct profile *make(struct bench *b, uint64_t i)
{
    static const char head[] = "\x0a\x04\x08\x01\x10\x02\x12\x06\x0a\x01\x01\x12\x01\x05";
    char instance[32];
    struct labels_builder *builder = labels_builder_new(b->intern);
    char *data = malloc(b->size);
    if (builder == NULL || data == NULL) {
        exit(2);
    }
    memset(data, 'x', b->size);
    memcpy(data, head, sizeof(head) - 1);
    (void)snprintf(instance, sizeof(instance), "10.0.0.%" PRIu64 ":6060", i % 250);
    labels_builder_set(builder, SV("__name__"), SV("memory"));
    labels_builder_set(builder, SV("__delta__"), SV("false"));
    labels_builder_set(builder, SV("service_name"), SV("bench"));
    labels_builder_set(builder, SV("namespace"), SV("default"));
    labels_builder_set(builder, SV("pod"), SV("bench-7f9c"));
    labels_builder_set(builder, SV("instance"), sv_from(instance));
    struct labels *l = labels_builder_build(builder);
    labels_builder_free(builder);
    struct profile *p = l != NULL ? profile_new(l, data, b->size) : NULL;
    if (p == NULL) {
        exit(2);
    }
    p->from_ns = p->until_ns = clock_wall_ns();
    p->scraped_ms = clock_mono_ms();
    return p;
}

static void put_all(struct bench *b)
{
    for (uint64_t i = 0; i < b->n; i++) {
        struct profile *p = make(b, i);
        struct timespec pause = {.tv_nsec = 200000};
        while (writer_ledger(b->writer, 0).queued_bytes > QUEUE_BYTES / 2) {
            nanosleep(&pause, NULL);
        }
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
           " of %" PRIu64 "\n",
           (double)l.sent / seconds, (double)(l.sent * b->size) / seconds / 1e6,
           cpu / (double)b->n * 1e6, u.ru_maxrss / 1024, l.sent, l.accepted);
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

int main(int argc, char **argv)
{
    struct bench b = {.n = 30000, .size = 30720};
    bool ok = argc >= 2 && argc <= 5;
    ok = ok && (argc < 3 || parse_u64(sv_from(argv[2]), UINT32_MAX, &b.n));
    ok = ok && (argc < 4 || parse_u64(sv_from(argv[3]), 1 << 30, &b.size));
    if (!ok || b.n == 0 || b.size < 64) {
        fprintf(stderr, "usage: write-bench URL [PROFILES [BYTES [push|ingest|profefe]]]\n");
        return 2;
    }
    struct config_endpoint endpoint = {.name = "bench",
                                       .url = argv[1],
                                       .protocol = &protocol_push.config,
                                       .tenant_id = "",
                                       .remote_timeout_ms = 10000,
                                       .min_backoff_ms = 500,
                                       .max_backoff_ms = 5000,
                                       .queue_max_bytes = QUEUE_BYTES,
                                       .concurrency = CONCURRENCY,
                                       .label_limits = CONFIG_LABEL_LIMITS_DEFAULT};
    if (argc == 5 && strcmp(argv[4], "ingest") == 0) {
        endpoint.protocol = &protocol_ingest.config;
    }
    if (argc == 5 && strcmp(argv[4], "profefe") == 0) {
        endpoint.protocol = &protocol_profefe.config;
    }
    signal(SIGPIPE, SIG_IGN);
    return run(&b, &endpoint);
}
