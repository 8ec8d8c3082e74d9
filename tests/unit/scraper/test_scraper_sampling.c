/* Which targets of a job with `sampling` are scraped: the sampler alone, and in the engine. */
#include "tests/unit/scraper/scraper_world.h"

#include "scraper/sampling.h"

#define PODS_MAX 400

/* The processes that the sampler keeps, by the number in their address. */
struct chosen {
    struct world *w;
    struct sampler *s;
    struct offer *offers[PODS_MAX]; /* of the source of process N; NULL if it has no targets */
    bool kept[PODS_MAX];
    int calls;
};

static void keep(struct chosen *c, void *owner, struct target *const *targets, size_t n)
{
    ptrdiff_t i = (struct offer **)owner - c->offers;
    assert_in_range(i, 0, PODS_MAX - 1);
    c->kept[i] = n > 0;
    for (size_t k = 0; k < n; k++) {
        assert_non_null(target_labels(targets[k]));
    }
    c->calls++;
}

/* Adds process i of a service with n targets (paths), or removes it (0). */
static bool pod(struct chosen *c, unsigned i, const char *service, size_t n, unsigned percent,
                unsigned max)
{
    struct target *targets[4];
    char address[32];
    struct err err = ERR_INIT;
    snprintf(address, sizeof(address), "10.0.%u.%u:80", i / 250, i % 250);
    for (size_t k = 0; k < n; k++) {
        char path[32];
        snprintf(path, sizeof(path), "/%zu", k);
        labels_builder_reset(c->w->b, NULL);
        labels_builder_set_str(c->w->b, "__address__", address);
        labels_builder_set_str(c->w->b, "service_name", service);
        labels_builder_set_str(c->w->b, "__profile_path_prefix__", path);
        targets[k] = target_make(NULL, 0, &c->w->jobs[0], c->w->b, NULL, &err);
        assert_non_null(targets[k]);
    }
    c->w->jobs[0].sample_percent = percent;
    c->w->jobs[0].sample_max = max;
    bool ok = sampler_set(c->s, &c->offers[i], &c->offers[i], targets, n);
    if (ok) {
        assert_int_equal(c->offers[i] != NULL, n > 0);
    }
    if (ok && n == 0) {
        keep(c, &c->offers[i], NULL, 0);
    }
    void *owner;
    struct target *const *kept;
    size_t n_kept;
    while (sampler_next(c->s, &owner, &kept, &n_kept)) {
        keep(c, owner, kept, n_kept);
    }
    return ok;
}

static size_t count_kept(const struct chosen *c)
{
    size_t n = 0;
    for (size_t i = 0; i < PODS_MAX; i++) {
        n += c->kept[i];
        assert_true(c->offers[i] != NULL || !c->kept[i]);
    }
    return n;
}

static struct chosen *begin(struct world *w)
{
    struct chosen *c = testing_memory(sizeof(*c));
    c->w = w;
    c->s = sampler_new("one");
    assert_non_null(c->s);
    return c;
}

static void end(struct chosen *c)
{
    sampler_free(c->s);
    for (size_t i = 0; i < PODS_MAX; i++) {
        offer_free(c->offers[i]);
    }
    free(c);
}

TEST_WITH(percent_is_rounded_up, setup, teardown)
{
    static const struct {
        unsigned percent, max, pods, want;
    } rows[] = {
        {10, 0, 1, 1},    {10, 0, 10, 1}, {10, 0, 11, 2},   {10, 0, 200, 20}, {1, 0, 200, 2},
        {100, 3, 2, 2},   {100, 3, 3, 3}, {100, 3, 200, 3}, {50, 7, 10, 5},   {50, 7, 200, 7},
        {100, 0, 40, 40}, {0, 0, 40, 40}, {0, 5, 40, 5},
    };
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct chosen *c = begin(*state);
        for (unsigned i = 0; i < rows[r].pods; i++) {
            assert_true(pod(c, i, "shop/cart", 1, rows[r].percent, rows[r].max));
        }
        CHECK_INT(count_kept(c), rows[r].want, "kept");
        CHECK_INT(sampler_left_out(c->s), rows[r].pods - rows[r].want, "left out");
        end(c);
    }
}

/* A new process displaces at most one, a removed one admits at most one, no other is affected, and
 * the result does not depend on the history. */
TEST_WITH(choice_stays_put, setup, teardown)
{
    struct chosen *c = begin(*state);
    struct rng rng;
    rng_seed(&rng, 5);
    for (int round = 0; round < 3000; round++) {
        bool before[PODS_MAX];
        memcpy(before, c->kept, sizeof(before));
        unsigned i = (unsigned)rng_range(&rng, 0, 100);
        bool comes = c->offers[i] == NULL;
        int calls = c->calls;
        pod(c, i, "s", comes ? 1 : 0, 100, 7);
        size_t changed = 0;
        for (size_t k = 0; k < PODS_MAX; k++) {
            changed += k != i && before[k] != c->kept[k];
        }
        assert_true(changed <= 1);
        assert_true(c->calls - calls <= 2);
    }
    struct chosen *again = begin(*state);
    for (unsigned i = PODS_MAX; i-- > 0;) {
        if (c->offers[i] != NULL) {
            pod(again, i, "s", 1, 100, 7);
        }
    }
    CHECK_INT(count_kept(c), 7, "as many as wanted");
    assert_memory_equal(c->kept, again->kept, sizeof(c->kept));
    end(again);
    end(c);
}

/* Percent: the choice grows and shrinks with the service, in steps of one. */
TEST_WITH(choice_grows_with_the_service, setup, teardown)
{
    struct chosen *c = begin(*state);
    size_t moved = 0;
    for (unsigned i = 0; i < 300; i++) {
        bool before[PODS_MAX];
        memcpy(before, c->kept, sizeof(before));
        pod(c, i, "s", 1, 10, 0);
        for (size_t k = 0; k < i; k++) {
            moved += before[k] != c->kept[k];
        }
        CHECK_INT(count_kept(c), (i + 10) / 10, "one in ten");
    }
    /* Without ranks, each new process would replace another one. */
    assert_true(moved < 100);
    end(c);
}

/* All targets of a process are kept or left out together, and services are independent. */
TEST_WITH(processes_and_services, setup, teardown)
{
    struct chosen *c = begin(*state);
    for (unsigned i = 0; i < 40; i++) {
        pod(c, i, i % 2 == 0 ? "even" : "odd", 3, 100, 5);
    }
    size_t even = 0;
    for (size_t i = 0; i < 40; i += 2) {
        even += c->kept[i];
    }
    CHECK_INT(even, 5, "of the one");
    CHECK_INT(count_kept(c), 10, "of both");
    CHECK_INT(sampler_left_out(c->s), 30 * 3, "targets");
    struct sampled_service list[4];
    CHECK_INT(sampler_list(c->s, list, 4), 2, "services");
    for (size_t i = 0; i < 2; i++) {
        CHECK_INT(list[i].processes, 20, list[i].service);
        CHECK_INT(list[i].scraped, 5, list[i].service);
        sampled_service_done(&list[i]);
    }
    for (unsigned i = 0; i < 40; i++) { /* all move to one service: the label changes */
        pod(c, i, "one", 1, 100, 5);
    }
    CHECK_INT(count_kept(c), 5, "of one");
    for (unsigned i = 0; i < 40; i++) {
        pod(c, i, "one", 0, 100, 5);
    }
    CHECK_INT(count_kept(c), 0, "none");
    CHECK_INT(sampler_left_out(c->s), 0, "none");
    CHECK_INT(sampler_list(c->s, list, 4), 0, "none");
    end(c);
}

/* ---- the engine ------------------------------------------------------------------------------ */

TEST_ON(struct world *w, engine_scrapes_what_is_kept)
{
    w->jobs[0].sample_max = 2;
    w->types[DELTA].enabled = true;
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof(name), "h%d:1", i);
        set(w, 0, name, "1", AT(name));
        set(w, 1, name, "1", AT(name)); /* another job, without sampling: duplicates */
    }
    CHECK_INT(metric(w, "profpull_targets{state=\"active\"}"), 22, "of both jobs");
    CHECK_INT(metric(w, "profpull_targets{state=\"left_out\"}"), 18, "left out");
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof(name), "h%d:1", i);
        set(w, 1, name, "1", NOTHING);
    }
    turn(w, 15000);
    CHECK_INT(w->n_transfers, 4, "two types of two processes");
    struct sampled_service list[4];
    CHECK_INT(engine_sampled(w->e, list, 4), 1, "services");
    CHECK_STR(list[0].job, "one", "job");
    CHECK_STR(list[0].service, "unspecified", "service");
    CHECK_INT(list[0].processes, 20, "processes");
    CHECK_INT(list[0].scraped, 2, "scraped");
    sampled_service_done(&list[0]);
    const char *gone = w->transfers[0].url;
    for (int i = 0; i < 20; i++) {
        char url[64];
        char name[32];
        snprintf(name, sizeof(name), "h%d:1", i);
        snprintf(url, sizeof(url), "http://%s/", name);
        if (sv_starts_with(sv_from(gone), sv_from(url))) {
            set(w, 0, name, "1", NOTHING);
        }
    }
    assert_true(w->transfers[0].cancelled || w->transfers[1].cancelled);
    CHECK_INT(metric(w, "profpull_targets{state=\"active\"}"), 2, "another one has its place");
    CHECK_INT(metric(w, "profpull_targets{state=\"left_out\"}"), 17, "left out");
    for (size_t i = 0; i < w->n_transfers; i++) {
        if (w->transfers[i].live) {
            succeed(w, &w->transfers[i]);
        }
    }
    w->jobs[0].sample_max = 0; /* a configuration without sampling */
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof(name), "h%d:1", i);
        set(w, 0, name, "2", AT(name));
    }
    CHECK_INT(metric(w, "profpull_targets{state=\"active\"}"), 20, "all");
    CHECK_INT(metric(w, "profpull_targets{state=\"left_out\"}"), 0, "left out");
}
