/* The threads that add the profiles of one flame graph. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "store/query/crew.h"
#include "tests/tools/made_profile.h"
#include "tests/unit/lib/store_rig.h"

#define MIB ((size_t)1024 * 1024)
#define SERVICES 8
#define BODIES 480

static const struct query_stacks all;

/* Profiles of 15 KB of eight services, one after the other: 7 MB in all. */
struct world {
    struct query q;
    struct query_helpers helpers;
    atomic_size_t damaged;
    struct sv made[SERVICES];
    size_t at; /* the body that is read next */
    size_t damaged_at;
};

static void world_init(struct world *w)
{
    struct profile_maker maker = {.stacks = 150, .different = 600, .scratch = scratch_new()};
    *w = (struct world){.damaged_at = SIZE_MAX};
    rng_seed(&maker.rng, 1);
    for (unsigned i = 0; i < SERVICES; i++) {
        w->made[i] = made_profile(&maker, i, 0);
        assert_true(w->made[i].n > 0);
    }
    scratch_free(maker.scratch);
    w->q = (struct query){.bytes_max = 256 * MIB, .damaged = &w->damaged};
}

static void world_done(struct world *w)
{
    for (unsigned i = 0; i < SERVICES; i++) {
        free((char *)(uintptr_t)w->made[i].p);
    }
}

SCOPED_VALUE(world, world_done)
SETUP_OF(world)

/* Gives a profile to the crew, as a query does. */
static bool give(struct world *w, struct crew *c, struct sv data, uint64_t set, struct err *err)
{
    const struct label labels[] = {{SV("service_name"), SV("made")}};
    const struct store_series series = {.set = set, .column = 1};
    const struct store_series *const list[] = {&series};
    const struct store_body body = {.id = "0123",
                                    .data = data,
                                    .labels = labels,
                                    .n_labels = 1,
                                    .series = list,
                                    .n_series = 1,
                                    .whole = true};
    bool ok = crew_on_body(c, &body, err);
    if (!ok && err->kind == ERR_INPUT) {
        query_count_damaged(&w->q);
        err_clear(err);
        ok = true;
    }
    return ok;
}

static void give_all(struct world *w, struct crew *c)
{
    struct err err = ERR_INIT;
    for (size_t i = 0; i < BODIES; i++) {
        uint64_t service = i * SERVICES / BODIES;
        struct sv data = i == w->damaged_at ? SV("not a profile") : w->made[service];
        assert_true(give(w, c, data, service, &err));
    }
    CHECK_STR(err.msg, "", "give");
}

/* Returns the bytes of the tree of all profiles. */
static struct buf tree_of_all(struct world *w, unsigned helpers)
{
    struct err err = ERR_INIT;
    struct buf out = testing_buf(64 * MIB);
    atomic_store(&w->helpers.max, helpers);
    struct crew *c = crew_new(&w->q, &all, helpers == 0 ? NULL : &w->helpers, &err);
    assert_non_null(c);
    give_all(w, c);
    CHECK_INT(atomic_load(&w->helpers.busy), helpers, "while they help");
    struct tree *t = crew_finish(c, &err);
    CHECK_STR(err.msg, "", "finish");
    assert_non_null(t);
    assert_true(tree_bytes(t, 0, &out, &err));
    tree_free(t);
    assert_true(crew_had_helpers(c) == (helpers > 0));
    crew_free(c);
    CHECK_INT(atomic_load(&w->helpers.busy), 0, "at the end");
    return out;
}

TEST_ON(struct world *w, helpers_make_the_same_tree)
{
    SCOPED(buf) alone = tree_of_all(w, 0);
    assert_true(alone.len > 10000);
    for (unsigned n = 1; n <= 4; n++) {
        SCOPED(buf) helped = tree_of_all(w, n);
        assert_int_equal(helped.len, alone.len);
        assert_memory_equal(helped.data, alone.data, alone.len);
    }
}

TEST_ON(struct world *w, a_damaged_profile_is_counted_once)
{
    for (size_t i = 0; i < BODIES; i += BODIES / 3) {
        w->damaged_at = i;
        SCOPED(buf) alone = tree_of_all(w, 0);
        CHECK_INT(atomic_exchange(&w->damaged, 0), 1, "alone");
        SCOPED(buf) helped = tree_of_all(w, 3);
        CHECK_INT(atomic_exchange(&w->damaged, 0), 1, "with helpers");
        assert_int_equal(helped.len, alone.len);
        assert_memory_equal(helped.data, alone.data, alone.len);
    }
}

/* Queries share the helpers, and few profiles get none. */
TEST_ON(struct world *w, helpers_are_shared)
{
    struct err err = ERR_INIT;
    SCOPED(metrics) *m = metrics_new();
    atomic_store(&w->helpers.max, 2);
    w->helpers.helped = metrics_single(m, METRIC_COUNTER, "helped", "x");
    struct crew *first = crew_new(&w->q, &all, &w->helpers, &err);
    struct crew *second = crew_new(&w->q, &all, &w->helpers, &err);
    assert_true(first != NULL && second != NULL);
    assert_true(give(w, first, w->made[0], 0, &err));
    assert_false(crew_had_helpers(first));
    give_all(w, first);
    give_all(w, second);
    assert_true(crew_had_helpers(first));
    assert_false(crew_had_helpers(second));
    CHECK_INT(atomic_load(&w->helpers.busy), 2, "of the first");
    CHECK_INT(metric_value(w->helpers.helped), 1, "queries with helpers");
    crew_free(first); /* before its helpers have added all */
    CHECK_INT(atomic_load(&w->helpers.busy), 0, "given back");
    crew_free(second);
}

/* With helpers, each thread has a part of the memory. */
TEST_ON(struct world *w, a_limit_of_a_helper_ends_the_query)
{
    struct err err = ERR_INIT;
    SCOPED(buf) large = testing_buf(16 * MIB);
    char *text = calloc(1, 10 * MIB);
    assert_non_null(text);
    struct rng rng;
    rng_seed(&rng, 1);
    for (size_t i = 0; i < 10 * MIB; i++) {
        text[i] = "abcd"[rng_next(&rng) % 4]; /* so that gzip makes some 3 MiB of them */
    }
    put_types(0, &large);
    wire_put_bytes(&large, PROFILE_STRING, "", 0);
    for (unsigned i = 0; i < 4; i++) {
        wire_put_bytes(&large, PROFILE_STRING, made_kinds[0].types[i],
                       strlen(made_kinds[0].types[i]));
    }
    wire_put_bytes(&large, PROFILE_STRING, text, 10 * MIB);
    struct scratch *scratch = scratch_new();
    char *packed;
    size_t n;
    assert_true(gzip_pack(scratch, (struct sv){large.data, large.len}, &packed, &n));
    w->q.bytes_max = 34 * MIB;
    atomic_store(&w->helpers.max, 1);
    for (unsigned helpers = 0; helpers < 2; helpers++) {
        struct crew *c = crew_new(&w->q, &all, helpers == 0 ? NULL : &w->helpers, &err);
        assert_non_null(c);
        give_all(w, c);
        bool ok = give(w, c, (struct sv){packed, n}, 100, &err);
        struct tree *t = ok ? crew_finish(c, &err) : NULL;
        CHECK_INT(strstr(err.msg, "memory") != NULL, helpers != 0, err.msg);
        CHECK_INT(t != NULL, helpers == 0, "tree");
        CHECK_INT(err.kind, helpers == 0 ? ERR_NONE : ERR_LIMIT, "kind");
        tree_free(t);
        crew_free(c);
    }
    scratch_free(scratch);
    free(packed);
    free(text);
}

/* ---- queries --------------------------------------------------------------------------------- */

static struct buf bytes_of_query(struct store_rig *r, struct world *w,
                                 struct query_helpers *helpers)
{
    struct err err = ERR_INIT;
    struct buf out = testing_buf(64 * MIB);
    struct profile_type type;
    struct query q = w->q;
    const struct query_range range = {RIG_T0 / NS_PER_MS, (RIG_T0 + RIG_HOUR) / NS_PER_MS, NULL};
    assert_true(profile_type_parse(SV("process_cpu:cpu:nanoseconds::"), &type, &err));
    q.store = r->store;
    q.helpers = helpers;
    struct tree *t = query_tree(&q, &range, &type, &all, &err);
    CHECK_STR(err.msg, "", "query");
    assert_non_null(t);
    assert_true(tree_bytes(t, 0, &out, &err));
    tree_free(t);
    return out;
}

/* The names of a call site come with the request, and may not fit. */
TEST_ON(struct world *w, a_call_site_beyond_the_limit_ends_the_query)
{
    SCOPED(err) err = ERR_INIT;
    struct profile_type type;
    const struct query_range range = {RIG_T0 / NS_PER_MS, (RIG_T0 + RIG_HOUR) / NS_PER_MS, NULL};
    char *name = calloc(1, 2 * MIB);
    assert_non_null(name);
    memset(name, 'x', 2 * MIB);
    const struct sv site[] = {{name, 2 * MIB}};
    const struct query_stacks which = {.call_site = site, .n_call_site = 1};
    SCOPED(store_rig) r;
    store_rig_init(&r);
    assert_true(profile_type_parse(SV("process_cpu:cpu:nanoseconds::"), &type, &err));
    w->q.store = r.store;
    w->q.bytes_max = MIB;
    w->q.helpers = &w->helpers;
    assert_null(query_tree(&w->q, &range, &type, &which, &err));
    CHECK_INT(err.kind, ERR_LIMIT, err.msg);
    free(name);
}

/* A query is asked again without helpers if their parts of the memory are too small. */
TEST_ON(struct world *w, a_query_has_the_same_tree_with_less_memory)
{
    struct store_rig r;
    store_rig_init(&r);
    for (size_t i = 0; i < BODIES; i++) {
        char labels[80];
        struct store_put put;
        (void)snprintf(labels, sizeof(labels), "__name__=process_cpu,service_name=made-%zu",
                       i * SERVICES / BODIES);
        assert_int_equal(rig_put_bytes(&r, labels, RIG_T0 + (int64_t)i * RIG_SECOND,
                                       w->made[i * SERVICES / BODIES], PROFILE_PPROF, &put),
                         STORE_TAKEN);
    }
    SCOPED(buf) alone = bytes_of_query(&r, w, NULL);
    assert_true(alone.len > 10000);
    atomic_store(&w->helpers.max, 3);
    for (size_t mib = 8; mib <= 256; mib *= 2) {
        w->q.bytes_max = mib * MIB;
        SCOPED(buf) helped = bytes_of_query(&r, w, &w->helpers);
        assert_int_equal(helped.len, alone.len);
        assert_memory_equal(helped.data, alone.data, alone.len);
        CHECK_INT(atomic_load(&w->helpers.busy), 0, "given back");
    }
    store_rig_done(&r);
}
