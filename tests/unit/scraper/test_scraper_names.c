/* Names of addresses within the engine: those that need more memory than was reserved are added by
 * a second run, and do not cost the profile if there is no more. */
#define WORLD_SUBMITS true
#include "tests/unit/scraper/scraper_world.h"

#include "pprof/gzip.h"
#include "pprof/put.h"
#include "tests/unit/lib/pprof_writer.h"

#define MIB ((size_t)1024 * 1024)

/* The bytes that the names of a profile take. */
struct naming {
    size_t bytes;
    unsigned asked;
};

static bool wants(void *arg, const struct target *target, size_t entry, struct sv body)
{
    (void)arg, (void)target, (void)entry, (void)body;
    return true;
}

/* Appends a string to the profile, as names would be. Random letters do not compress. */
static bool rewrite(void *arg, struct target *target, size_t entry, struct scratch *scratch,
                    struct sv plain, struct buf *out, struct profile_names *ret)
{
    (void)target, (void)entry, (void)scratch;
    struct naming *n = arg;
    struct rng rng;
    char *text = testing_memory(n->bytes);
    rng_seed(&rng, 1);
    for (size_t i = 0; i < n->bytes; i++) {
        text[i] = (char)(' ' + rng_next(&rng) % 64);
    }
    buf_append(out, plain.p, plain.n);
    wire_put_bytes(out, PROFILE_STRING, text, n->bytes);
    free(text);
    n->asked++;
    *ret = (struct profile_names){.all = 3, .named = n->asked};
    return buf_ok(out);
}

enum way { AS_IT_IS, AS_DELTA, CONVERTED };

/* Scrapes once, and returns the bytes of the inflated profile. */
static size_t scrape(struct world *w, enum way way, int64_t value)
{
    struct pprof_spec spec = {.types = "inuse_objects/count", .time_nanos = w->now_ns};
    const struct pprof_row row = {"a m", NULL, {value}};
    SCOPED(buf) body = pprof_make(&spec, &row, 1);
    if (way == CONVERTED) {
        buf_clear(&body);
        buf_printf(&body, "heap profile: 1: 10 [1: 10] @ heapprofile\n1: 10 [1: 10] @ 0x1000\n");
    }
    w->types[MEMORY].delta = way == AS_DELTA ? DELTA_AUTO : DELTA_OFF;
    w->n_works = 0;
    struct http_transfer *t = next_start(w);
    turn(w, 105);
    answer(w, t, HTTP_DONE, 200, body.data, body.len);
    for (unsigned i = 0; i < 3; i++) {
        works(w);
    }
    assert_true(w->n_profiles > 0);
    const struct profile *p = w->profiles[w->n_profiles - 1];
    /* The count is that of the last run. */
    CHECK_INT(p->names.named, ((const struct naming *)w->e->options.names.arg)->asked, "");
    CHECK_INT(p->names.all, p->names.named > 0 ? 3 : 0, "");
    struct scratch *s = scratch_new();
    struct sv plain;
    CHECK_INT(gzip_plain(s, (struct sv){p->data, p->size}, 64 * MIB, 0, &plain, NULL), true, "");
    size_t n = plain.n;
    scratch_free(s);
    forget_profiles(w);
    return n;
}

static void begin(struct world *w, struct naming *n)
{
    struct target *t = make_target(w, 0, "h:1", "v", "1");
    assert_true(engine_set_group(w->e, 0, "pod", &t, 1));
    w->e->options.names = (struct scraper_names){.wants = wants, .rewrite = rewrite, .arg = n};
}

TEST_ON(struct world *w, large_names_are_added_by_a_second_run)
{
    static const char *const rows[] = {"a body", "a delta", "a conversion"};
    struct naming n = {.bytes = 1000};
    begin(w, &n);
    (void)scrape(w, AS_DELTA, 1); /* the baseline */
    for (enum way way = AS_IT_IS; way <= CONVERTED; way++) {
        uint64_t before = metric(w, "profpull_work_repeated_total");
        n = (struct naming){.bytes = 100000};
        assert_true(scrape(w, way, 2) > n.bytes);
        CHECK_INT(n.asked, 1, rows[way]);
        n = (struct naming){.bytes = 2 * MIB};
        assert_true(scrape(w, way, 3) > n.bytes);
        CHECK_INT(n.asked, 2, rows[way]);
        CHECK_INT(metric(w, "profpull_work_repeated_total") - before, 1, rows[way]);
    }
}

TEST_ON(struct world *w, names_without_room_do_not_cost_the_profile)
{
    static const char *const rows[] = {"a body", "a delta", "a conversion"};
    struct naming n = {.bytes = 1000};
    begin(w, &n);
    (void)scrape(w, AS_DELTA, 1);
    w->e->offloads.job_max = 3 * MIB;
    for (enum way way = AS_IT_IS; way <= CONVERTED; way++) {
        n = (struct naming){.bytes = 4 * MIB};
        size_t bytes = scrape(w, way, 4);
        CHECK_INT(bytes > 0 && bytes < 1000, true, rows[way]);
        CHECK_INT(n.asked, 2, rows[way]);
    }
    CHECK_INT(metric(w, "profpull_scrapes_total{job=\"one\",type=\"memory\",result=\"ok\"}"), 4,
              "");
}
