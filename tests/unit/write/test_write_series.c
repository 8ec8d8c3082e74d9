/* Labels on the wire: what is dropped, renamed and cut, in which order. */
#include "tests/unit/lib/testing.h"

#include "base/utf8.h"
#include "tests/unit/write/requests.h"
#include "write/series.h"

/* "a=b c=d" */
static void check_series(const struct series *s, const char *want, const char *row)
{
    SCOPED(buf) text = testing_buf(1 << 20);
    for (size_t i = 0; i < s->n; i++) {
        buf_printf(&text, "%s%.*s=%.*s", i > 0 ? " " : "", SV_ARG(s->at[i].name),
                   SV_ARG(s->at[i].value));
    }
    CHECK_STR(text.data, want, row);
}

static void build(struct series *s, struct labels *l, const struct config_pairs *external,
                  const struct protocol *protocol)
{
    assert_true(series_build(s, l, external, &default_limits, &protocol->labels));
}

TEST_WITH(test_table, setup, teardown)
{
    static const struct {
        const char *name;
        struct pair labels[8];
        struct config_pair external[4];
        const char *push, *ingest;
    } cases[] = {
        {"external wins, __type__ goes",
         {{"__name__", "test"},
          {"__type__", "type"},
          {"job", "foo"},
          {"foo", "bar"},
          {"service_name", "s"}},
         {{"foo", "buzz"}},
         "__name__=test foo=buzz job=foo service_name=s",
         "__name__=test foo=buzz job=foo service_name=s"},
        {"empty external removes",
         {{"__name__", "test"}, {"foo", "bar"}, {"service_name", "s"}},
         {{"foo", ""}, {"zone", "z"}},
         "__name__=test service_name=s zone=z",
         "__name__=test service_name=s zone=z"},
        {"delta stays",
         {{"__name__", "memory"},
          {"__delta__", "false"},
          {"service_name", "s"},
          {"__profile_path__", "/x"}},
         {{NULL, NULL}},
         "__delta__=false __name__=memory service_name=s",
         "__delta__=false __name__=memory service_name=s"},
        {"no service name",
         {{"__name__", "memory"}},
         {{NULL, NULL}},
         "__name__=memory service_name=unknown_service",
         "__name__=memory service_name=unknown_service"},
        {"odd names",
         {{"app.kubernetes.io/name", "x"},
          {"1st", "y"},
          {"caf\xc3\xa9", "z"},
          {"-_name__", "n"},
          {"service_name", "s"}},
         {{NULL, NULL}},
         "_1st=y _name__=n app.kubernetes.io_name=x caf_=z service_name=s",
         "_1st=y _name__=n app_kubernetes_io_name=x caf_=z service_name=s"},
        {"a collision keeps the name that needed no change",
         {{"a-b", "1"}, {"a_b", "2"}, {"service_name", "s"}},
         {{NULL, NULL}},
         "a_b=2 service_name=s",
         "a_b=2 service_name=s"},
        {"of two changed names the first",
         {{"a/b", "1"}, {"a-b", "2"}, {"service_name", "s"}},
         {{NULL, NULL}},
         "a_b=2 service_name=s",
         "a_b=2 service_name=s"},
        {"dots fold in old servers",
         {{"a.b", "1"}, {"a_b", "2"}, {"a.c", "3"}, {"service_name", "s"}},
         {{NULL, NULL}},
         "a.c=3 a_b=2 service_name=s",
         "a_b=2 a_c=3 service_name=s"},
        {"an external label wins a collision",
         {{"a_b", "1"}, {"service_name", "s"}},
         {{"a-b", "ext"}},
         "a_b=ext service_name=s",
         "a_b=ext service_name=s"},
        {"a rewritten name never becomes a reserved one",
         {{"--session_id--", "1"}, {"\xff\xff", "2"}, {"service_name", "s"}},
         {{NULL, NULL}},
         "_=2 _session_id__=1 service_name=s",
         "_=2 _session_id__=1 service_name=s"},
        {"stray bytes before a digit",
         {{"\xb2\xb2"
           "20",
           "1"},
          {"\xb2.x", "2"},
          {"service_name", "s"}},
         {{NULL, NULL}},
         "_.x=2 _20=1 service_name=s",
         "_20=1 _x=2 service_name=s"},
        {"a value that is not UTF-8",
         {{"v", "a\xff"}, {"service_name", "s"}},
         {{NULL, NULL}},
         "service_name=s v=a\xef\xbf\xbd",
         "service_name=s v=a\xef\xbf\xbd"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config_pairs external = {.at = cases[i].external};
        while (external.n < 4 && cases[i].external[external.n].name != NULL) {
            external.n++;
        }
        SCOPED(labels) *l = labels_of(cases[i].labels, 8);
        struct series s;
        build(&s, l, &external, &protocol_push);
        check_series(&s, cases[i].push, cases[i].name);
        series_done(&s);
        build(&s, l, &external, &protocol_ingest);
        check_series(&s, cases[i].ingest, cases[i].name);
        series_done(&s);
    }
}

TEST_WITH(test_file_changes_nothing, setup, teardown)
{
    SCOPED(labels) *l = testing_labels(table, "a-b", "1", "a_b", "2", "caf\xc3\xa9", "3", "__x",
                                       "4", "__name__", "cpu", "service_name", "s", NULL);
    SCOPED(series) s;
    build(&s, l, &no_external, &protocol_file);
    check_series(&s, "__name__=cpu a-b=1 a_b=2 caf\xc3\xa9=3 service_name=s", "");
    for (size_t i = 0; i < SERIES_CHANGES; i++) {
        CHECK_INT(s.changes[i], 0, series_change_name((enum series_change)i));
    }
}

/* A label "__foo__" of a sender is kept by a store, but not the tenant. */
TEST_WITH(test_private_labels_are_kept, setup, teardown)
{
    SCOPED(labels) *l = testing_labels(table, "__foo__", "1", "__tenant_id__", "t", "__name__",
                                       "cpu", "service_name", "s", NULL);
    SCOPED(series) s;
    build(&s, l, &no_external, &protocol_store);
    check_series(&s, "__foo__=1 __name__=cpu service_name=s", "");
    CHECK_STR(s.tenant.p, "t", "");
}

TEST_WITH(test_changes_are_counted, setup, teardown)
{
    SCOPED(labels) *l = testing_labels(table, "a-b", "1", "a_b", "2", "v", "\xff", "service_name",
                                       "s", "__tenant_id__", "no tenant", NULL);
    SCOPED(series) s;
    build(&s, l, &no_external, &protocol_push);
    CHECK_INT(s.changes[SERIES_RENAMED], 1, "");
    CHECK_INT(s.changes[SERIES_COLLISION], 1, "");
    CHECK_INT(s.changes[SERIES_REPAIRED], 1, "");
    CHECK_INT(s.changes[SERIES_TENANT], 1, "");
    CHECK_INT(s.changes[SERIES_SURPLUS], 0, "");
    CHECK_INT(s.tenant.n, 0, "");
}

static struct labels *many_labels(size_t n)
{
    SCOPED(labels_builder) *b = labels_builder_new(table);
    labels_builder_reset(b, NULL);
    for (size_t i = 0; i < n; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "l%03zu", i);
        labels_builder_set_str(b, name, "v");
    }
    labels_builder_set_str(b, "__name__", "memory");
    labels_builder_set_str(b, "__delta__", "false");
    labels_builder_set_str(b, "service_name", "s");
    labels_builder_set_str(b, "pod", "p");
    labels_builder_set_str(b, "instance", "i");
    struct labels *l = labels_builder_build(b);
    assert_non_null(l);
    return l;
}

TEST_WITH(test_surplus_order, setup, teardown)
{
    static const struct config_pair pairs[] = {{"zone", "z"}, {"cluster", "c"}};
    struct config_pairs external = {.at = pairs, .n = 2};
    SCOPED(labels) *l = many_labels(40);
    struct series s;
    build(&s, l, &external, &protocol_push);
    CHECK_INT(s.n, 24, "six are left to samples");
    CHECK_INT(s.changes[SERIES_SURPLUS], 47 - 24, "");
    /* three that are required, pod and instance, two external: 17 of the rest */
    CHECK_INT(series_get(&s, "l016").n, 1, "");
    CHECK_INT(series_get(&s, "l017").n, 0, "");
    CHECK_INT(series_get(&s, "zone").n, 1, "");
    CHECK_INT(series_get(&s, "pod").n, 1, "");
    for (size_t i = 1; i < s.n; i++) {
        assert_true(sv_cmp(s.at[i - 1].name, s.at[i].name) < 0);
    }
    /* Going on: the rest, then external ones from the end of the alphabet, then identity. */
    for (size_t i = 0; i < 17; i++) {
        assert_true(series_drop_least(&s));
    }
    CHECK_INT(series_get(&s, "zone").n, 1, "");
    assert_true(series_drop_least(&s));
    CHECK_INT(series_get(&s, "zone").n, 0, "");
    CHECK_INT(series_get(&s, "cluster").n, 1, "");
    assert_true(series_drop_least(&s));
    assert_true(series_drop_least(&s));
    check_series(&s, "__delta__=false __name__=memory instance=i service_name=s", "");
    assert_true(series_drop_least(&s));
    assert_false(series_drop_least(&s));
    CHECK_INT(s.n, 3, "");
    series_done(&s);

    build(&s, l, &external, &protocol_ingest);
    CHECK_INT(s.n, 20 + 3, "the three are not in the braces");
    series_done(&s);
}

/* Limits of the endpoint's own, tighter and wider than a Pyroscope's. */
TEST_WITH(test_own_limits, setup, teardown)
{
    static const struct config_label_limits tight = {
        .max_names = 5, .max_name_length = 16, .max_value_length = 16};
    static const struct config_label_limits wide = {
        .max_names = 100, .max_name_length = 2000, .max_value_length = 4000};
    static char name[1500];
    static char value[3000];
    memset(name, 'n', sizeof(name) - 1);
    memset(value, 'v', sizeof(value) - 1);
    SCOPED(labels) *l = testing_labels(
        table, "__name__", "memory", "__delta__", "false", "service_name", "0123456789abcdefg",
        "pod", "p", "namespace", "n", "app", "a", "seventeen_letters", "x", name, value, NULL);
    struct series s;
    assert_true(series_build(&s, l, &no_external, &tight, &protocol_push.labels));
    check_series(&s,
                 "__delta__=false __name__=memory namespace=n pod=p service_name=0123456789abcdef",
                 "tight");
    CHECK_INT(s.changes[SERIES_SURPLUS], 1, "app");
    CHECK_INT(sv_eq_str(s.examples[SERIES_SURPLUS], "app"), true, "app");
    CHECK_INT(s.changes[SERIES_LONG_NAME], 2, "names");
    CHECK_INT(s.examples[SERIES_LONG_NAME].n, sizeof(name) - 1, "the first in order");
    CHECK_INT(s.changes[SERIES_TRUNCATED], 1, "value");
    CHECK_INT(sv_eq_str(s.examples[SERIES_TRUNCATED], "service_name"), true, "value");
    series_done(&s);
    assert_true(series_build(&s, l, &no_external, &tight, &protocol_ingest.labels));
    CHECK_INT(s.n, 4, "three that do not count, and one");
    CHECK_INT(series_get(&s, "namespace").n, 1, "the first of the identity");
    series_done(&s);
    assert_true(series_build(&s, l, &no_external, &wide, &protocol_push.labels));
    CHECK_INT(s.n, 8, "wide");
    CHECK_INT(series_get(&s, name).n, sizeof(value) - 1, "wide");
    series_done(&s);
}

TEST_WITH(test_exactly_at_the_limit, setup, teardown)
{
    SCOPED(labels) *l = many_labels(19);
    SCOPED(series) s;
    build(&s, l, &no_external, &protocol_push);
    CHECK_INT(s.n, 24, "");
    CHECK_INT(s.changes[SERIES_SURPLUS], 0, "");
}

TEST_WITH(test_long_names_and_values, setup, teardown)
{
    static char name[1024 + 2];
    static char longer[1024 + 2];
    static char digits[1024 + 1];
    static char value[1 << 19];
    memset(name, 'n', 1024);
    memset(longer, 'm', 1024 + 1);
    memset(digits, '7', 1024); /* becomes longer by the "_" in front */
    /* three-byte characters: 2048 is not a multiple of three */
    for (size_t i = 0; i + 3 < sizeof(value); i += 3) {
        memcpy(value + i, "\xe4\xb8\xad", 3);
    }
    SCOPED(labels) *l =
        testing_labels(table, name, value, longer, "v", digits, "v", "service_name", "s", NULL);
    struct series s;
    build(&s, l, &no_external, &protocol_push);
    CHECK_INT(s.n, 2, "");
    CHECK_INT(s.at[0].name.n, 1024, "");
    CHECK_INT(s.at[0].value.n, 2046, "");
    assert_true(utf8_valid(s.at[0].value));
    CHECK_INT(s.changes[SERIES_LONG_NAME], 2, "");
    CHECK_INT(s.changes[SERIES_TRUNCATED], 1, "");
    series_done(&s);
    build(&s, l, &no_external, &protocol_file);
    CHECK_INT(s.n, 4, "no limits in files");
    CHECK_INT(s.changes[SERIES_TRUNCATED], 0, "");
    series_done(&s);
}

TEST_WITH(test_long_value_that_is_not_utf8, setup, teardown)
{
    static const size_t lengths[] = {683, 2048, 2049, 2051, 2052, 2053, 9999};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        char value[10000] = "";
        memset(value, 0xff, lengths[i]);
        SCOPED(labels) *l = testing_labels(table, "v", value, "service_name", "s", NULL);
        SCOPED(series) s;
        build(&s, l, &no_external, &protocol_push);
        struct sv v = series_get(&s, "v");
        CHECK_INT(v.n, 2046, "whole U+FFFDs");
        assert_true(utf8_valid(v));
        CHECK_INT(s.changes[SERIES_TRUNCATED], 1, "");
        CHECK_INT(s.changes[SERIES_REPAIRED], 1, "");
    }
}

TEST_WITH(test_tenant, setup, teardown)
{
    char longest[SERIES_TENANT_MAX + 2];
    memset(longest, 't', sizeof(longest));
    assert_true(series_tenant_valid(SV("team-a")));
    assert_true(series_tenant_valid(SV("a!-_.*'()Z9")));
    assert_true(series_tenant_valid((struct sv){.p = longest, .n = SERIES_TENANT_MAX}));
    assert_false(series_tenant_valid((struct sv){.p = longest, .n = SERIES_TENANT_MAX + 1}));
    static const char *const bad[] = {"", ".", "..", "a|b", "team a", "a\nb", "\xc3\xa9", "a/b"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK_INT(series_tenant_valid(sv_from(bad[i])), false, bad[i]);
    }
    assert_false(series_tenant_valid((struct sv){.p = "a\0b", .n = 3}));

    SCOPED(labels) *l = testing_labels(table, "__tenant_id__", "team-a", "service_name", "s", NULL);
    SCOPED(series) s;
    build(&s, l, &no_external, &protocol_push);
    CHECK_INT(sv_eq_str(s.tenant, "team-a"), true, "");
    check_series(&s, "service_name=s", "the label itself goes");
}

TEST_WITH(test_type_and_service, setup, teardown)
{
    SCOPED(labels) *l = testing_labels(table, "__name__", "mutex", "service_name", "shop", NULL);
    struct series s;
    build(&s, l, &no_external, &protocol_push);
    CHECK_INT(sv_eq_str(s.type, "mutex"), true, "");
    CHECK_INT(sv_eq_str(s.service, "shop"), true, "");
    series_done(&s);
    labels_unref(l);

    l = testing_labels(table, "x", "y", NULL);
    build(&s, l, &no_external, &protocol_push);
    CHECK_INT(s.type.n, 0, "");
    series_done(&s);
}
