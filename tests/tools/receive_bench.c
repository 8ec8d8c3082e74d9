/* How many profiles a second an API takes, on one thread and without a connection: from the bytes
 * of a request to the rules of `receive`, which drop the profile. So the figures leave out the
 * queues and stores, which cost the same for every API.
 *
 *   receive-bench [PROFILES [BYTES [API]]]
 *
 * Takes so many profiles (5,000) of so many bytes (30,720, gzip) through each API, in requests of
 * one profile, and prints a line for each: rate, and processor time of a profile in the best tenth.
 * With API, such as "otlp", takes them through this one only. Exit code 1 if one was refused.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/receive.h"
#include "api/served.h"
#include "api/tables.h"
#include "relabel/relabel.h"
#include "server/exchange.h"
#include "server/routes.h"
#include "tests/tools/made_profile.h"
#include "write/protocols/otlp.h"

/* Declared in write/protocol.h, which has a struct request as the server has. */
const struct config_protocol *const *write_protocols(void);

#define PROFILES 20
#define ROUNDS 10
#define BODY_MAX ((size_t)64 * 1024 * 1024)
/* A stack takes about so many bytes of a made profile, compressed. */
#define BYTES_A_STACK 32

struct bench {
    struct intern *intern;
    struct metrics *metrics;
    struct log *log;
    struct config *config;
    struct receive *receive;
    struct served served;
    struct scratch *scratch;
    struct sv profiles[PROFILES]; /* gzip */
};

static void require(bool ok, const char *what)
{
    if (!ok) {
        (void)fprintf(stderr, "receive-bench: %s\n", what);
        exit(1);
    }
}

/* ---- the receiver ---------------------------------------------------------------------------- */

static bool check_rule(void *arg, const struct config_rule *rule, struct err *err)
{
    (void)arg;
    return relabel_check_rule(rule, err);
}

static void start(struct bench *b)
{
    static const char text[] =
        "receive: {max_age: 0s, profile_relabel_configs: [{source_labels: [__name__], regex: .+, "
        "action: drop}]}\nwrite: [{url: \"http://127.0.0.1:1\"}]\nscrape_configs: [{job_name: "
        "x}]\n";
    struct config_options o = {.check_rule = check_rule, .protocols = write_protocols()};
    struct config_errors *errors = config_errors_new();
    struct err err = ERR_INIT;
    b->intern = intern_new();
    b->metrics = metrics_new();
    b->config = config_parse("bench", sv_from(text), &o, errors);
    require(b->config != NULL, "the configuration is wrong");
    config_errors_free(errors);
    const struct receive_options options = {
        .config = &b->config->receive, .intern = b->intern, .log = b->log, .metrics = b->metrics};
    b->receive = receive_new(&options, &err);
    require(b->receive != NULL, err.msg);
    b->served = (struct served){.receiver = b->receive, .version = "1"};
    b->scratch = scratch_new();
}

static void make_profiles(struct bench *b, uint64_t size)
{
    struct profile_maker maker = {.scratch = b->scratch,
                                  .stacks = (unsigned)(size / BYTES_A_STACK),
                                  .different = (unsigned)(4 * size / BYTES_A_STACK)};
    rng_seed(&maker.rng, 1);
    for (unsigned i = 0; i < PROFILES; i++) {
        b->profiles[i] = made_profile(&maker, i, i % MADE_KINDS);
        require(b->profiles[i].n > 0, "out of memory");
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

static void put_label(struct buf *out, const char *name, const char *value)
{
    struct buf pair;
    buf_init(&pair, 4096);
    wire_put_bytes(&pair, 1, name, strlen(name));
    wire_put_bytes(&pair, 2, value, strlen(value));
    wire_put_bytes(out, 1, pair.data, pair.len);
    buf_done(&pair);
}

static void make_push(struct bench *b, struct sv profile, struct buf *out)
{
    struct buf series;
    struct buf sample;
    (void)b;
    buf_init(&series, BODY_MAX);
    buf_init(&sample, BODY_MAX);
    put_label(&series, "__name__", "process_cpu");
    put_label(&series, "service_name", "cart");
    put_label(&series, "pod", "cart-7f");
    wire_put_bytes(&sample, 1, profile.p, profile.n);
    wire_put_bytes(&series, 2, sample.data, sample.len);
    wire_put_bytes(out, 1, series.data, series.len);
    buf_done(&series);
    buf_done(&sample);
}

static void make_pprof(struct bench *b, struct sv profile, struct buf *out)
{
    (void)b;
    buf_append(out, profile.p, profile.n);
}

static void make_otlp(struct bench *b, struct sv profile, struct buf *out)
{
    static const struct config_pairs none = {.at = NULL, .n = 0};
    static const struct config_label_limits limits = CONFIG_LABEL_LIMITS_DEFAULT;
    static const struct series_rules rules = {.names = SERIES_NAMES_ALL, .unlimited = true};
    const struct otlp_options o = {.attributes = &none, .work_max = OTLP_WORK_MAX};
    struct err err = ERR_INIT;
    struct series series;
    struct labels_builder *builder = labels_builder_new(b->intern);
    labels_builder_set(builder, SV("__name__"), SV("process_cpu"));
    labels_builder_set(builder, SV("service_name"), SV("cart"));
    labels_builder_set(builder, SV("pod"), SV("cart-7f"));
    struct labels *labels = labels_builder_build(builder);
    labels_builder_free(builder);
    char *data = malloc(profile.n);
    require(labels != NULL && data != NULL, "out of memory");
    memcpy(data, profile.p, profile.n);
    struct profile *p = profile_new(labels, data, profile.n);
    struct otlp_encoder *e = otlp_encoder_new(&o, &err);
    require(p != NULL && e != NULL && series_build(&series, p->labels, &none, &limits, &rules),
            "out of memory");
    p->from_ns = clock_wall_ns();
    p->until_ns = p->from_ns + 15 * NS_PER_S;
    require(otlp_encoder_add(e, &series, p, &err) && otlp_encoder_write(e, out, &err), err.msg);
    series_done(&series);
    otlp_encoder_free(e);
    profile_unref(p);
}

/* Replaces the content by its gzip. */
static void pack(struct bench *b, struct buf *body)
{
    char *packed;
    size_t n;
    require(gzip_pack(b->scratch, (struct sv){body->data, body->len}, &packed, &n), "gzip");
    scratch_reset(b->scratch);
    buf_clear(body);
    buf_append(body, packed, n);
    free(packed);
}

/* ---- the bench ------------------------------------------------------------------------------- */

struct api {
    const char *name;
    const char *head;
    void (*make)(struct bench *b, struct sv profile, struct buf *out);
    bool gzip;
};

static void ask(const struct bench *b, const struct api *api, struct sv body)
{
    char text[1024];
    char decoded[1024];
    struct request r;
    int n = snprintf(text, sizeof(text), "POST %s\r\n\r\n", api->head);
    require(request_parse((struct sv){text, (size_t)n}, decoded, &r) == 0, api->head);
    static const struct route *const routes[] = {API_TABLES, NULL};
    static const char *const prefixes[] = {API_PREFIXES, NULL};
    const struct server_options options = {.sets = ROUTE_RECEIVE,
                                           .routes = routes,
                                           .api_prefixes = prefixes,
                                           .metrics = b->metrics,
                                           .log = b->log,
                                           .served = &b->served};
    struct route_match match = routes_find(&options, &r);
    require(match.route != NULL, api->head);
    struct exchange x = {
        .request = &r, .options = &options, .body = body, .bytes_max = BODY_MAX, .status = 200};
    buf_init(&x.headers, 4096);
    buf_init(&x.reply, BODY_MAX);
    match.route->work(&x);
    require(x.status < 300, x.reply.data);
    buf_done(&x.headers);
    buf_done(&x.reply);
}

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The requests of an API, and what they cost. */
struct trial {
    const struct api *api;
    struct buf bodies[PROFILES];
    size_t bytes;
    size_t inflated;
    double best_s; /* processor time of a profile in the best round; 0: none yet */
};

static void prepare(struct bench *b, const struct api *api, struct trial *t)
{
    *t = (struct trial){.api = api};
    for (size_t i = 0; i < PROFILES; i++) {
        struct buf *body = &t->bodies[i];
        buf_init(body, BODY_MAX);
        api->make(b, b->profiles[i], body);
        t->inflated += api->make == make_otlp ? body->len : gzip_claim(b->profiles[i]);
        if (api->gzip) {
            pack(b, body);
        }
        t->bytes += body->len;
    }
}

static void run(const struct bench *b, struct trial *t, uint64_t n)
{
    double start_s = cpu_s();
    for (uint64_t i = 0; i < n; i++) {
        const struct buf *body = &t->bodies[i % PROFILES];
        ask(b, t->api, (struct sv){body->data, body->len});
    }
    double each_s = (cpu_s() - start_s) / (double)n;
    t->best_s = t->best_s == 0 || each_s < t->best_s ? each_s : t->best_s;
}

static void finish(struct trial *t)
{
    printf("%-12s %7.0f profiles/s of one core, %.3f ms each, %zu bytes a request, %zu inflated\n",
           t->api->name, 1 / t->best_s, t->best_s * 1e3, t->bytes / PROFILES,
           t->inflated / PROFILES);
    for (size_t i = 0; i < PROFILES; i++) {
        buf_done(&t->bodies[i]);
    }
}

/* The profiles go through the APIs in turns, and the best turn of each counts, so that what else
 * the machine does costs all of them the same. */
static void measure(struct bench *b, const char *only, uint64_t n)
{
    static const struct api apis[] = {
        {"push", "/push.v1.PusherService/Push HTTP/1.1\r\nContent-Type: application/proto",
         make_push, false},
        {"ingest", "/ingest?name=cart&format=pprof HTTP/1.1", make_pprof, false},
        {"otlp",
         "/v1development/profiles HTTP/1.1\r\nContent-Type: application/x-protobuf\r\n"
         "Content-Encoding: gzip",
         make_otlp, true},
        {"otlp, plain", "/v1development/profiles HTTP/1.1\r\nContent-Type: application/x-protobuf",
         make_otlp, false},
    };
    struct trial trials[sizeof(apis) / sizeof(apis[0])];
    size_t n_trials = 0;
    for (size_t i = 0; i < sizeof(apis) / sizeof(apis[0]); i++) {
        if (only == NULL || strcmp(only, apis[i].name) == 0) {
            prepare(b, &apis[i], &trials[n_trials++]);
        }
    }
    uint64_t each = n / ROUNDS > 0 ? n / ROUNDS : 1;
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < n_trials; i++) {
            run(b, &trials[i], each);
        }
    }
    for (size_t i = 0; i < n_trials; i++) {
        finish(&trials[i]);
    }
}

int main(int argc, char **argv)
{
    struct bench b = {.log = log_new(STDERR_FILENO, LOG_ERROR, LOG_LOGFMT)};
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 5000;
    start(&b);
    make_profiles(&b, argc > 2 ? strtoull(argv[2], NULL, 10) : 30720);
    measure(&b, argc > 3 ? argv[3] : NULL, n);
    for (size_t i = 0; i < PROFILES; i++) {
        free((void *)(uintptr_t)b.profiles[i].p);
    }
    receive_free(b.receive);
    config_unref(b.config);
    scratch_free(b.scratch);
    metrics_free(b.metrics);
    intern_free(b.intern);
    log_free(b.log);
    return 0;
}
