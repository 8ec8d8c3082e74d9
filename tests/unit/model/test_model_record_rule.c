/* Rules of recorded metrics: what is refused and why, and ids. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "model/record_rule.h"

#define CPU "{__profile_type__=\"process_cpu:cpu:nanoseconds:cpu:nanoseconds\"}"
#define NAME "profiles_recorded_x"

struct rule_case {
    const char *name;
    const char *matchers[2];
    const char *group_by[2];
    const char *external[2][2]; /* names and values */
    const char *want;           /* the error; "": none */
};

static const struct rule_case cases[] = {
    {NAME, {CPU}, {"service_name", "version"}, {{"team", "shop"}}, ""},
    {NAME ":rate", {"{pod=~\"a|b\"}", CPU}, {NULL}, {{NULL, NULL}}, ""},
    {"cpu",
     {CPU},
     {NULL},
     {{NULL, NULL}},
     "metric_name: expected a name that begins with profiles_recorded_, got \"cpu\""},
    {"profiles_recorded_",
     {CPU},
     {NULL},
     {{NULL, NULL}},
     "metric_name: expected a name that begins with profiles_recorded_, got "
     "\"profiles_recorded_\""},
    {NAME ".y",
     {CPU},
     {NULL},
     {{NULL, NULL}},
     "metric_name: expected letters, digits, \"_\" and \":\", got \"profiles_recorded_x.y\""},
    {NAME,
     {"{pod=\"a\"}"},
     {NULL},
     {{NULL, NULL}},
     "matchers: expected one that requires a profile type, such as "
     "{__profile_type__=\"process_cpu:cpu:nanoseconds:cpu:nanoseconds\"}"},
    {NAME,
     {"{__profile_type__=~\"process_cpu:cpu:nanoseconds:cpu:nanoseconds\"}"},
     {NULL},
     {{NULL, NULL}},
     "matchers: expected one that requires a profile type, such as "
     "{__profile_type__=\"process_cpu:cpu:nanoseconds:cpu:nanoseconds\"}"},
    {NAME,
     {"{__profile_type__=\"cpu\"}"},
     {NULL},
     {{NULL, NULL}},
     "matchers: expected a profile type of five parts, such as "
     "process_cpu:cpu:nanoseconds:cpu:nanoseconds, got \"cpu\""},
    {NAME,
     {"{pod"},
     {NULL},
     {{NULL, NULL}},
     "matchers: 1:5: parse error: unexpected end of input inside braces"},
    {NAME,
     {CPU},
     {"a-b"},
     {{NULL, NULL}},
     "group_by: expected a label name of letters, digits and \"_\", got \"a-b\""},
    {NAME,
     {CPU},
     {"__name__"},
     {{NULL, NULL}},
     "group_by: names that begin with \"__\" are reserved by Prometheus: __name__"},
    {NAME,
     {CPU},
     {"profiles_rule_id"},
     {{NULL, NULL}},
     "group_by: the label profiles_rule_id is set by profpull"},
    {NAME, {CPU}, {"a", "a"}, {{NULL, NULL}}, "group_by: two labels a"},
    {NAME, {CPU}, {"a"}, {{"a", "b"}}, "external_labels: a is in group_by, too"},
    {NAME, {CPU}, {"a"}, {{"b", "b"}, {"b", "c"}}, "external_labels: two labels b"},
    {NAME,
     {CPU},
     {"a"},
     {{"1b", "b"}},
     "external_labels: expected a label name of letters, digits and \"_\", got \"1b\""},
};

/* labels: memory for two external labels. */
static struct record_rule rule_of(const struct rule_case *c, struct label labels[2])
{
    struct record_rule r = {.metric_name = c->name,
                            .matchers = c->matchers,
                            .group_by = c->group_by,
                            .external = labels};
    while (r.n_matchers < 2 && c->matchers[r.n_matchers] != NULL) {
        r.n_matchers++;
    }
    while (r.n_group_by < 2 && c->group_by[r.n_group_by] != NULL) {
        r.n_group_by++;
    }
    while (r.n_external < 2 && c->external[r.n_external][0] != NULL) {
        const char *const *pair = c->external[r.n_external];
        labels[r.n_external++] = (struct label){sv_from(pair[0]), sv_from(pair[1])};
    }
    return r;
}

TEST(rules_are_checked)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct label labels[2];
        struct record_rule r = rule_of(&cases[i], labels);
        struct err err = ERR_INIT;
        CHECK_INT(record_rule_check(&r, &err), cases[i].want[0] == '\0', cases[i].want);
        CHECK_STR(err.msg, cases[i].want, cases[i].name);
    }
}

TEST(long_texts_are_refused)
{
    static char text[RECORD_TEXT_MAX + 2];
    memset(text, 'a', sizeof(text) - 1);
    struct label labels[2];
    struct record_rule r = rule_of(&cases[0], labels);
    struct err err = ERR_INIT;
    r.function = text;
    assert_false(record_rule_check(&r, &err));
    CHECK_STR(err.msg, "function: 4097 bytes, limit 4096", "");
    CHECK_INT(err.kind, ERR_LIMIT, "");
}

TEST(ids_are_made_of_all_members)
{
    struct label labels[2];
    struct record_rule a = rule_of(&cases[0], labels);
    struct record_rule b = a;
    record_rule_name(&a);
    record_rule_name(&b);
    CHECK_STR(a.id, b.id, "");
    CHECK_INT(strlen(a.id), RECORD_ID_LENGTH, "");
    b.function = "f";
    record_rule_name(&b);
    assert_string_not_equal(a.id, b.id);
    b = a;
    b.n_group_by = 1;
    record_rule_name(&b);
    assert_string_not_equal(a.id, b.id);
    b = a;
    b.n_external = 0;
    record_rule_name(&b);
    assert_string_not_equal(a.id, b.id);
}

TEST(types_are_counters_or_gauges)
{
    static const struct {
        const char *type;
        bool counter;
    } types[] = {
        {"process_cpu:cpu:nanoseconds:cpu:nanoseconds", true},
        {"memory:alloc_space:bytes:space:bytes", true},
        {"memory:inuse_space:bytes:space:bytes", false},
        {"memory:inuse_objects:count:space:bytes", false},
        {"goroutine:goroutine:count:goroutine:count", false},
        {"goroutines:goroutine:count:goroutine:count", false},
        {"mutex:delay:nanoseconds:contentions:count", true},
        {"threadcreate:threadcreate:count:threadcreate:count", false},
    };
    struct record_type t;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        assert_true(record_type_split(sv_from(types[i].type), &t));
        CHECK_INT(record_type_is_counter(&t), types[i].counter, types[i].type);
    }
    assert_false(record_type_split(SV("a:b:c:d"), &t));
    assert_false(record_type_split(SV("a:b:c:d:e:f"), &t));
    assert_false(record_type_split(SV(":b:c:d:e"), &t));
}
