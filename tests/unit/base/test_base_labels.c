/* Label sets, their builder and the interned strings, with several threads too. */
#include "tests/unit/lib/testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"

struct fixture {
    struct intern *in;
    struct labels_builder *b;
};

static void fixture_begin(struct fixture *f)
{
    f->in = intern_new();
    f->b = labels_builder_new(f->in);
    assert_non_null(f->b);
}

/* Every test must release all strings. */
static void fixture_end(struct fixture *f)
{
    size_t count = 99;
    size_t bytes;
    labels_builder_free(f->b);
    intern_stats(f->in, &count, &bytes);
    CHECK_INT(count, 0, "strings left");
    intern_free(f->in);
}

FIXTURE(fixture, fixture_begin, fixture_end)

static void check_labels(const struct labels *l, const char *want)
{
    SCOPED(buf) text = testing_buf(100000);
    assert_non_null(l);
    assert_true(testing_labels_format(l, &text));
    CHECK_STR(text.data, want, "");
}

TEST_ON(struct fixture *f, sorts_and_replaces)
{
    struct labels_builder *b = f->b;
    labels_builder_set_str(b, "job", "x");
    labels_builder_set_str(b, "__address__", "h:1");
    labels_builder_set_str(b, "zone", "z");
    labels_builder_set_str(b, "Zone", "y");
    labels_builder_set_str(b, "job", "y");
    CHECK_INT(labels_builder_count(b), 4, "");
    CHECK_STR(labels_builder_at(b, 2).name.p, "job", "");
    struct labels *l = labels_builder_build(b);
    check_labels(l, "{Zone=\"y\", __address__=\"h:1\", job=\"y\", zone=\"z\"}");
    CHECK_INT(labels_count(l), 4, "");
    CHECK_STR(labels_at(l, 2).name.p, "job", "");
    CHECK_STR(labels_at(l, 2).value.p, "y", "");
    CHECK_STR(labels_get(l, SV("zone")).p, "z", "");
    CHECK_STR(labels_get(l, SV("zon")).p, "", "");
    CHECK_STR(labels_get(l, SV("zonee")).p, "", "");
    CHECK_STR(labels_get(l, SV("")).p, "", "");
    labels_unref(l);
    assert_null(labels_unref(NULL));
}

TEST_ON(struct fixture *f, empty_value_removes)
{
    labels_builder_set_str(f->b, "a", "1");
    labels_builder_set_str(f->b, "b", "2");
    labels_builder_set_str(f->b, "c", "");
    labels_builder_set_str(f->b, "a", "");
    labels_builder_del(f->b, SV("nothing"));
    labels_builder_set_str(f->b, NULL, NULL);
    CHECK_STR(labels_builder_get(f->b, SV("a")).p, "", "");
    SCOPED(labels) *l = labels_builder_build(f->b);
    check_labels(l, "{b=\"2\"}");
    labels_unref(l);
    labels_builder_del(f->b, SV("b"));
    l = labels_builder_build(f->b);
    check_labels(l, "{}");
    CHECK_INT(labels_count(l), 0, "");
    CHECK_STR(labels_get(l, SV("b")).p, "", "");
}

TEST_ON(struct fixture *f, starts_from_a_base)
{
    struct labels *base = testing_labels(f->in, "a", "1", "b", "2", "c", "3", NULL);
    labels_builder_reset(f->b, base);
    struct labels *same = labels_builder_build(f->b);
    assert_ptr_equal(same, base); /* unchanged: no second copy */
    labels_unref(same);

    labels_builder_set_str(f->b, "b", "two");
    labels_builder_del(f->b, SV("c"));
    labels_builder_set_str(f->b, "d", "4");
    SCOPED(labels) *l = labels_builder_build(f->b);
    check_labels(l, "{a=\"1\", b=\"two\", d=\"4\"}");
    check_labels(base, "{a=\"1\", b=\"2\", c=\"3\"}");
    labels_unref(base); /* the builder keeps what it needs */
    CHECK_STR(labels_builder_get(f->b, SV("a")).p, "1", "");
    SCOPED(labels) *again = labels_builder_build(f->b);
    assert_true(labels_equal(l, again));
    labels_builder_reset(f->b, l);
    labels_builder_reset(f->b, NULL);
    CHECK_INT(labels_builder_count(f->b), 0, "");
}

static void check_order(const struct labels_builder *b, const char *want)
{
    static struct label labels[LABELS_MAX];
    char text[200] = "";
    size_t n = labels_builder_in_order(b, labels);
    CHECK_INT(n, labels_builder_count(b), want);
    for (size_t i = 0; i < n; i++) {
        size_t at = strlen(text);
        snprintf(text + at, sizeof(text) - at, "%s=%s ", labels[i].name.p, labels[i].value.p);
    }
    CHECK_STR(text, want, "");
}

TEST_ON(struct fixture *f, keeps_the_order_of_setting)
{
    SCOPED(labels) *base = testing_labels(f->in, "a", "1", "b", "2", "c", "3", "d", "4", NULL);
    labels_builder_reset(f->b, base);
    labels_builder_set_str(f->b, "e", "5");
    labels_builder_set_str(f->b, "b", "two");
    labels_builder_start(f->b);
    check_order(f->b, "a=1 b=two c=3 d=4 e=5 ");
    labels_builder_set_str(f->b, "z", "9");
    labels_builder_set_str(f->b, "c", "3"); /* its value stays, its place does not */
    labels_builder_set_str(f->b, "aa", "7");
    check_order(f->b, "a=1 b=two d=4 e=5 z=9 c=3 aa=7 ");
    labels_builder_set_str(f->b, "z", "10"); /* in its place */
    labels_builder_del(f->b, SV("c"));
    labels_builder_del(f->b, SV("a"));
    check_order(f->b, "b=two d=4 e=5 z=10 aa=7 ");
    labels_builder_set_str(f->b, "a", "1");
    labels_builder_set_str(f->b, "c", "3");
    check_order(f->b, "b=two d=4 e=5 z=10 aa=7 a=1 c=3 ");
    labels_builder_start(f->b);
    check_order(f->b, "a=1 aa=7 b=two c=3 d=4 e=5 z=10 ");
    labels_builder_reset(f->b, base);
    check_order(f->b, "a=1 b=2 c=3 d=4 ");
}

TEST_ON(struct fixture *f, takes_a_base_of_another_table)
{
    struct intern *other = intern_new();
    struct labels *base = testing_labels(other, "a", "1", "b", "2", NULL);
    labels_builder_reset(f->b, base);
    SCOPED(labels) *l = labels_builder_build(f->b);
    assert_true(l != base);
    assert_true(labels_equal(l, base));
    assert_true(labels_equal(base, l));
    assert_true(labels_hash(l) == labels_hash(base));
    labels_builder_reset(f->b, NULL);
    labels_unref(base);
    intern_free(other);
    check_labels(l, "{a=\"1\", b=\"2\"}");
}

/* Rules read a label, change it, and still use the old value. */
TEST_ON(struct fixture *f, views_stay_until_reset)
{
    struct labels *base = testing_labels(f->in, "from_base", "base value", NULL);
    labels_builder_reset(f->b, base);
    labels_unref(base);
    labels_builder_set_str(f->b, "set", "first value");
    struct sv from_base = labels_builder_get(f->b, SV("from_base"));
    struct sv set = labels_builder_get(f->b, SV("set"));
    for (int i = 0; i < 500; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "label_%d", i);
        labels_builder_set_str(f->b, name, "value");
        labels_builder_set_str(f->b, "set", name);
    }
    labels_builder_del(f->b, SV("from_base"));
    labels_builder_set(f->b, SV("copy"), set);
    labels_builder_set(f->b, SV("set"), labels_builder_get(f->b, SV("set")));
    labels_builder_del(f->b, labels_builder_at(f->b, 0).name);
    CHECK_STR(from_base.p, "base value", "");
    CHECK_STR(set.p, "first value", "");
    CHECK_STR(labels_builder_get(f->b, SV("set")).p, "label_499", "");
    assert_true(labels_builder_ok(f->b));
}

TEST_ON(struct fixture *f, stops_at_the_label_limit)
{
    char name[32];
    for (int i = 0; i < LABELS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "label_%d", i);
        labels_builder_set_str(f->b, name, "v");
    }
    assert_true(labels_builder_ok(f->b));
    SCOPED(labels) *full = labels_builder_build(f->b);
    CHECK_INT(labels_count(full), LABELS_MAX, "");
    labels_builder_set_str(f->b, "label_7", "changes still fit");
    assert_true(labels_builder_ok(f->b));
    struct err err = ERR_INIT;
    labels_builder_set_str(f->b, "one_more", "v");
    assert_false(labels_builder_ok(f->b));
    assert_true(labels_builder_over(f->b));
    assert_false(labels_builder_explain(f->b, &err));
    CHECK_INT(err.kind, ERR_LIMIT, "");
    CHECK_STR(err.msg, "more than 1024 labels or 1048576 bytes of them", "");
    assert_null(labels_builder_build(f->b));
    labels_builder_del(f->b, SV("label_7"));
    labels_builder_set_str(f->b, "label_8", "v");
    assert_false(labels_builder_ok(f->b)); /* sticky */
    labels_builder_reset(f->b, full);
    assert_true(labels_builder_ok(f->b));
    assert_false(labels_builder_over(f->b));
    CHECK_INT(labels_builder_count(f->b), LABELS_MAX, "");
}

TEST_ON(struct fixture *f, stops_at_the_byte_limit)
{
    size_t half = LABELS_BYTES_MAX / 2 - 1;
    SCOPED_MEMORY char *text = testing_memory(LABELS_BYTES_MAX + 1);
    memset(text, 'x', LABELS_BYTES_MAX + 1);
    labels_builder_set(f->b, SV("a"), (struct sv){.p = text, .n = half});
    labels_builder_set(f->b, SV("b"), (struct sv){.p = text, .n = half});
    assert_true(labels_builder_ok(f->b));
    SCOPED(labels) *l = labels_builder_build(f->b);
    CHECK_INT(labels_get(l, SV("b")).n, half, "exactly the limit");
    labels_builder_set(f->b, SV("b"), (struct sv){.p = text, .n = half + 1});
    assert_false(labels_builder_ok(f->b));

    labels_builder_reset(f->b, l);
    labels_builder_set_str(f->b, "c", "1");
    assert_false(labels_builder_ok(f->b));
    labels_builder_reset(f->b, NULL);
    labels_builder_set(f->b, SV("a"), (struct sv){.p = text, .n = LABELS_BYTES_MAX + 1});
    assert_false(labels_builder_ok(f->b));
    labels_builder_reset(f->b, NULL);
    labels_builder_set(f->b, (struct sv){.p = text, .n = SIZE_MAX - 3}, SV("x"));
    assert_false(labels_builder_ok(f->b));
    /* Removing makes room. */
    labels_builder_reset(f->b, NULL);
    for (int i = 0; i < 300; i++) {
        labels_builder_set(f->b, SV("a"), (struct sv){.p = text, .n = 8192});
        labels_builder_del(f->b, SV("a"));
    }
    assert_true(labels_builder_ok(f->b));
    /* Replaced values live until the reset, and have a limit too. */
    labels_builder_reset(f->b, NULL);
    int changes = 0;
    while (labels_builder_ok(f->b) && changes < 1000) {
        labels_builder_set(f->b, SV("a"), (struct sv){.p = text, .n = half - (size_t)changes});
        changes++;
    }
    assert_in_range(changes, 5, 20);
}

TEST_ON(struct fixture *f, hash_is_by_content)
{
    SCOPED(labels) *a = testing_labels(f->in, "x", "1", "y", "2", NULL);
    SCOPED(labels) *b = testing_labels(f->in, "y", "2", "x", "1", NULL);
    SCOPED(labels) *empty = testing_labels(f->in, NULL, NULL);
    assert_true(labels_equal(a, b));
    assert_true(labels_hash(a) == labels_hash(b));
    assert_true(labels_mark(a) == labels_mark(b));
    assert_true(labels_mark(a) != labels_mark(empty));
    /* Shards depend on these numbers: a change moves every target. */
    assert_true(labels_hash(a) == UINT64_C(0xef31fc2f50e1f79b));
    assert_true(labels_hash(empty) == UINT64_C(0xddfc0e09c28df2ae));
    static const char *const others[][4] = {
        {"x", "1", "y", "3"},  {"x", "2", "y", "1"},  {"x1", "y", "y", "2"},
        {"x", "12", "y", "2"}, {"x", "1", "y2", "2"}, {"x", "1", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        SCOPED(labels) *c =
            testing_labels(f->in, others[i][0], others[i][1], others[i][2], others[i][3], NULL);
        assert_false(labels_equal(a, c));
        assert_true(labels_hash(a) != labels_hash(c));
        assert_true(labels_mark(a) != labels_mark(c));
    }
    assert_false(labels_equal(a, empty));
}

TEST_ON(struct fixture *f, formats_json)
{
    static const struct {
        const char *value, *json;
    } cases[] = {
        {"plain/1.0", "\"plain/1.0\""},
        {"a \"b\" \\", "\"a \\\"b\\\" \\\\\""},
        {"\a\b\f\n\r\t\v", "\"\\u0007\\b\\f\\n\\r\\t\\u000b\""},
        {"\x01\x1f\x7f", "\"\\u0001\\u001f\x7f\""},
        {"\xff\xc3", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"\xc2\x80\xc2\xa0\xe2\x80\x8b", "\"\xc2\x80\xc2\xa0\xe2\x80\x8b\""},
        {"\xf3\xa0\x80\x81", "\"\xf3\xa0\x80\x81\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char want[200];
        SCOPED(labels) *l = testing_labels(f->in, "k", cases[i].value, "z", "1", NULL);
        SCOPED(buf) text = testing_buf(1000);
        (void)snprintf(want, sizeof(want), "{\"k\":%s,\"z\":\"1\"}", cases[i].json);
        assert_true(labels_format_json(l, &text));
        CHECK_STR(text.data, want, want);
        buf_done(&text);
        buf_init(&text, 5);
        assert_false(labels_format_json(l, &text));
    }
}

TEST_ON(struct fixture *f, strings_are_shared)
{
    size_t count;
    size_t one_set;
    size_t two_sets;
    size_t nothing;
    intern_stats(f->in, &count, &nothing);
    struct labels *a = testing_labels(f->in, "name", "value", "other", "name", NULL);
    intern_stats(f->in, &count, &one_set);
    CHECK_INT(count, 3, "name, value, other");
    assert_true(one_set > nothing);
    struct labels *b = testing_labels(f->in, "name", "value", NULL);
    intern_stats(f->in, &count, &two_sets);
    CHECK_INT(count, 3, "");
    CHECK_INT(two_sets, one_set, "");
    assert_ptr_equal(labels_at(a, 0).value.p, labels_at(b, 0).value.p);
    assert_ptr_equal(labels_ref(a), a);
    labels_unref(a);
    check_labels(a, "{name=\"value\", other=\"name\"}");
    labels_unref(a);
    intern_stats(f->in, &count, &one_set);
    CHECK_INT(count, 2, "");
    labels_unref(b);
    intern_stats(f->in, &count, &one_set);
    CHECK_INT(one_set, nothing, "all is given back");
}

/* Enough strings to grow the table many times and to shrink it again. */
TEST_ON(struct fixture *f, table_grows_and_shrinks)
{
    enum { N = 20000 };
    SCOPED_MEMORY struct labels **sets = calloc(N, sizeof(struct labels *));
    size_t before;
    size_t after;
    size_t count;
    assert_non_null(sets);
    intern_stats(f->in, &count, &before);
    for (int i = 0; i < N; i++) {
        char value[32];
        (void)snprintf(value, sizeof(value), "value-%d", i);
        sets[i] = testing_labels(f->in, "name", value, NULL);
    }
    intern_stats(f->in, &count, &after);
    CHECK_INT(count, N + 1, "");
    for (int i = 0; i < N; i++) {
        char value[32];
        (void)snprintf(value, sizeof(value), "value-%d", i);
        CHECK_STR(labels_get(sets[i], SV("name")).p, value, "");
        SCOPED(labels) *again = testing_labels(f->in, "name", value, NULL);
        assert_true(labels_equal(again, sets[i]));
    }
    for (int i = 0; i < N; i++) {
        labels_unref(sets[i]);
    }
    intern_stats(f->in, &count, &after);
    CHECK_INT(count, 0, "");
    CHECK_INT(after, before, "");
}

TEST_ON(struct fixture *f, builder_agrees_with_a_model)
{
    enum { NAMES = 40 };
    int model[NAMES] = {0}; /* 0: absent */
    struct rng rng;
    rng_seed(&rng, 9);
    for (int round = 0; round < 20000; round++) {
        char name[16];
        char value[16];
        int k = (int)rng_range(&rng, 0, NAMES);
        int v = (int)rng_range(&rng, 0, 5);
        (void)snprintf(name, sizeof(name), "n%02d", k);
        (void)snprintf(value, sizeof(value), "%d", v);
        if (rng_range(&rng, 0, 50) == 0) {
            SCOPED(labels) *l = labels_builder_build(f->b);
            labels_builder_reset(f->b, l);
        } else {
            labels_builder_set_str(f->b, name, v == 0 ? "" : value);
            model[k] = v;
        }
        size_t count = 0;
        for (int i = 0; i < NAMES; i++) {
            if (model[i] != 0) {
                (void)snprintf(name, sizeof(name), "n%02d", i);
                (void)snprintf(value, sizeof(value), "%d", model[i]);
                struct label label = labels_builder_at(f->b, count);
                CHECK_STR(label.name.p, name, "");
                CHECK_STR(label.value.p, value, "");
                count++;
            }
        }
        CHECK_INT(labels_builder_count(f->b), count, "");
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

#define THREADS 4
#define SLOTS 8
#define ROUNDS 3000

struct shared {
    struct intern *in;
    _Atomic(struct labels *) slots[SLOTS];
    atomic_uint wrong;
};

struct worker {
    struct shared *shared;
    uint64_t seed;
};

/* The value is derived from the name, so that a string freed too early or mixed up is noticed. */
static bool is_sound(const struct labels *l)
{
    for (size_t i = 0; i < labels_count(l); i++) {
        struct label label = labels_at(l, i);
        if (label.name.n < 5 || !sv_starts_with(label.value, label.name)) {
            return false;
        }
    }
    return true;
}

/* Builds sets of a few strings, so that all threads make and free the same ones at the same time,
 * and swaps them with those in the slots, so that sets are freed on other threads. */
static void *work(void *arg)
{
    struct worker *w = arg;
    struct shared *s = w->shared;
    struct rng rng;
    SCOPED(labels_builder) *b = labels_builder_new(s->in);
    rng_seed(&rng, w->seed);
    for (int round = 0; b != NULL && round < ROUNDS; round++) {
        labels_builder_reset(b, NULL);
        for (int i = 0; i < 3; i++) {
            char name[16];
            char value[32];
            (void)snprintf(name, sizeof(name), "name%d", (int)rng_range(&rng, 0, 6));
            (void)snprintf(value, sizeof(value), "%s-value", name);
            labels_builder_set_str(b, name, value);
        }
        struct labels *l = labels_builder_build(b);
        SCOPED(labels) *extra = labels_ref(l);
        size_t slot = (size_t)rng_range(&rng, 0, SLOTS);
        SCOPED(labels) *old = atomic_exchange(&s->slots[slot], l);
        if (!is_sound(extra) || (old != NULL && !is_sound(old))) {
            atomic_fetch_add(&s->wrong, 1);
        }
        if (old != NULL) {
            labels_builder_reset(b, old);
            labels_builder_set_str(b, "name9", "name9-value");
            labels_unref(labels_builder_build(b));
        }
    }
    return NULL;
}

TEST_ON(struct fixture *f, threads_share_the_table)
{
    struct shared s = {.in = f->in};
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.shared = &s, .seed = i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        labels_unref(atomic_load(&s.slots[i]));
    }
    CHECK_INT(atomic_load(&s.wrong), 0, "");
    /* The teardown checks that no string is left. */
}
