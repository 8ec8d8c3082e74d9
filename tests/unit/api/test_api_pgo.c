/* Merged profiles for tools: /pprof, and /pgo, which refuses what the Go compiler would refuse. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "api/pgo.h"
#include "pprof/gzip.h"
#include "pprof/pgo.h"
#include "tests/unit/api/store_world.h"

#define T0 (INT64_C(1795307400) * NS_PER_S)
#define TYPE "process_cpu%3Acpu%3Ananoseconds%3Acpu%3Ananoseconds"
#define WINDOW "from=1795307340&until=1795307460"
#define PROFILE_MAX ((size_t)1024 * 1024)

static void world_begin(struct world *w)
{
    static const struct pprof_row row = {"main", NULL, {1, 10000000}};
    store_world_init(w);
    store_world_put(w, "__name__=process_cpu,service_name=shop/cart,version=1", "p1", T0, NULL);
    store_world_put(w, "__name__=process_cpu,service_name=shop/cart,version=2", "p2", T0 + NS_PER_S,
                    NULL);
    /* Without the lines that functions start at, as programs of old have it. */
    struct pprof_spec spec = {.types = "samples/count cpu/nanoseconds", .time_nanos = T0};
    SCOPED(buf) old = pprof_make(&spec, &row, 1);
    SCOPED(buf) typed = testing_buf(PROFILE_MAX);
    buf_append(&typed, old.data, old.len);
    /* period_type cpu/nanoseconds: these are the third and fourth string of pprof_make(). */
    buf_append(&typed, "\x5a\x04\x08\x03\x10\x04", 6);
    assert_int_equal(rig_put_bytes(&w->rig, "__name__=process_cpu,service_name=old", T0,
                                   (struct sv){typed.data, typed.len}, PROFILE_PPROF, NULL),
                     STORE_TAKEN);
}

FIXTURE(world, world_begin, store_world_done)

static struct rig_answer get(const struct world *w, const char *path)
{
    char head[1024];
    (void)snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\n", path);
    return rig_ask(&w->options, head, SV(""));
}

/* Samples of an answer that the compiler takes. */
static size_t check_profile(const struct rig_answer *a, const char *name, const char *row)
{
    struct err err = ERR_INIT;
    size_t samples = 0;
    char headers[256];
    struct scratch *scratch = scratch_new();
    (void)snprintf(headers, sizeof(headers), "Content-Disposition: attachment; filename=\"%s\"\r\n",
                   name);
    CHECK_INT(a->status, 200, row);
    CHECK_STR(a->type, "application/octet-stream", row);
    CHECK_STR(a->headers, headers, row);
    struct sv body = {a->body, a->n};
    assert_true(gzip_is(body));
    (void)pgo_check(scratch, body, PROFILE_MAX, &samples, &err);
    CHECK_STR(err.msg, "", row);
    scratch_free(scratch);
    return samples;
}

TEST_ON(const struct world *w, profiles_for_the_compiler)
{
    static const struct {
        const char *path;
        size_t samples;
    } cases[] = {
        {"/pgo/shop/cart?" WINDOW, 4},
        {"/pgo/shop/cart?query=%7Bversion%3D%221%22%7D&" WINDOW, 3},
        {"/pgo/shop/cart?query=%7Bversion%3D%222%22%7D&" WINDOW, 2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(rig_answer) a = get(w, cases[i].path);
        size_t samples = check_profile(&a, "default.pgo", cases[i].path);
        CHECK_INT(samples, cases[i].samples, cases[i].path);
    }
}

TEST_ON(const struct world *w, profiles_for_pprof)
{
    struct rig_answer a =
        get(w, "/pprof?query=" TYPE "%7Bservice_name%3D%22shop%2Fcart%22%7D&" WINDOW);
    assert_int_equal(check_profile(&a, "merged.pb.gz", "pprof"), 4);
    rig_answer_done(&a);
}

TEST_ON(const struct world *w, errors_that_pprof_shows)
{
    static const struct {
        const char *path;
        int status;
        const char *text;
    } cases[] = {
        {"/pgo/old?" WINDOW, 422, "no function of the profile says at which line it starts"},
        {"/pgo/nobody?" WINDOW, 404, "no CPU profile of this service in this time"},
        /* The last day, by default: nothing is so new. */
        {"/pgo/nobody", 404, "no CPU profile of this service in this time"},
        {"/pgo/", 400, "expected /pgo/SERVICE"},
        {"/pgo/shop/cart?query=%7Bx&" WINDOW, 400, "query: "},
        {"/pgo/shop/cart?from=200&until=100", 400, "query start time is after end time"},
        {"/pprof", 400, "\"query\" is required"},
        {"/pprof?query=%7B%7D&" WINDOW, 400, "\"query\" must contain a profile-type selection"},
        {"/pprof?query=cpu%7B%7D&" WINDOW, 400,
         "profile-type selection must be of the form <name>:<sample-type>"},
        {"/pprof?query=%7B&" WINDOW, 400, "parse error"},
        {"/pprof?query=a%3Ab%3Ac%3Ad%3Ae%7B%7D&" WINDOW, 404,
         "no profile of this type, time and selector"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(rig_answer) a = get(w, cases[i].path);
        CHECK_INT(a.status, cases[i].status, cases[i].path);
        CHECK_CONTAINS(a.body, cases[i].text, cases[i].path);
        CHECK_STR(a.type, "text/plain; charset=utf-8", cases[i].path);
        CHECK_STR(a.headers, "X-Go-Pprof: 1\r\n", cases[i].path);
    }
}

TEST_ON(const struct world *w, queries_end_at_their_limits)
{
    struct rig_answer a = rig_ask_within(&w->options, "GET /pgo/shop/cart?" WINDOW " HTTP/1.1\r\n",
                                         SV(""), RIG_BYTES_MAX, true);
    CHECK_INT(a.status, 504, "cancelled");
    rig_answer_done(&a);
    a = rig_ask_within(&w->options, "GET /pgo/shop/cart?" WINDOW " HTTP/1.1\r\n", SV(""), 1000,
                       false);
    assert_true(a.status == 429 || a.status == 503);
    rig_answer_done(&a);
    struct rig_process without = w->options;
    without.served.store = NULL;
    a = rig_ask(&without, "GET /pgo/shop/cart HTTP/1.1\r\n", SV(""));
    CHECK_INT(a.status, 404, "without a store");
    rig_answer_done(&a);
}
