/* Validity of a rule, and the behaviour of a list of rules beyond the table of cases. */
#include <pthread.h>
#include <stdlib.h>

#include "relabel/relabel.h"
#include "relabel/rule.h"
#include "tests/unit/lib/testing.h"

SCOPED_POINTER(relabel, relabel_free)

/* ---- validation ------------------------------------------------------------------------------ */

#define ONE_SOURCE                                                                                 \
    {                                                                                              \
        .at = (const char *const[]){"a"}, .n = 1                                                   \
    }

struct verdict {
    const char *name;
    struct config_rule rule;
    const char *message; /* NULL: the rule is good */
};

#define NEEDS_TARGET(action)                                                                       \
    "relabel configuration for " action " action requires 'target_label' value"
#define ONLY_REGEX(action) action " action requires only 'regex', and no other fields"
#define ONLY_SOURCES(action)                                                                       \
    action " action requires only 'source_labels' and 'target_label', and no other fields"

/* Prometheus has a legacy naming scheme (letters, digits, underscore) and the UTF-8 scheme, its
 * default, which we follow. Grafana Alloy is between the two. Rows on which the schemes differ have
 * a comment. */
static const struct verdict verdicts[] = {
    /* Both refuse. An action that is empty in the file never becomes a rule: the reader of the
     * configuration says the same words. */
    {"no action",
     {.has_action = true, .action = (enum config_action)99},
     "relabel action cannot be empty"},
    {"replace without target", {.action = ACTION_REPLACE}, NEEDS_TARGET("replace")},
    {"replace with an empty target",
     {.action = ACTION_REPLACE, .target_label = ""},
     NEEDS_TARGET("replace")},
    {"lowercase without target", {.action = ACTION_LOWERCASE}, NEEDS_TARGET("lowercase")},
    {"keepequal without target", {.action = ACTION_KEEPEQUAL}, NEEDS_TARGET("keepequal")},
    {"dropequal without target", {.action = ACTION_DROPEQUAL}, NEEDS_TARGET("dropequal")},
    {"uppercase without target", {.action = ACTION_UPPERCASE}, NEEDS_TARGET("uppercase")},
    {"hashmod without target", {.action = ACTION_HASHMOD, .modulus = 2}, NEEDS_TARGET("hashmod")},
    {"hashmod without modulus",
     {.action = ACTION_HASHMOD, .target_label = "a"},
     "relabel configuration for hashmod requires non-zero modulus"},
    /* UTF-8 scheme: a name like any other (no reference is expanded here). Legacy: refused. */
    {"lowercase, target with a reference",
     {.action = ACTION_LOWERCASE, .target_label = "${3}"},
     NULL},
    /* Both accept. */
    {"replace, target is a reference", {.action = ACTION_REPLACE, .target_label = "${3}"}, NULL},
    /* UTF-8 scheme. Legacy and Alloy: "0${3}" is invalid 'target_label'. */
    {"replace, target starts with a digit",
     {.action = ACTION_REPLACE, .target_label = "0${3}"},
     NULL},
    {"replace, target starts with a dash",
     {.action = ACTION_REPLACE, .target_label = "-${3}"},
     NULL},
    /* Both accept. */
    {"labelmap to a reference", {.action = ACTION_LABELMAP, .replacement = "$1"}, NULL},
    {"labelmap to a reference in braces", {.action = ACTION_LABELMAP, .replacement = "${1}"}, NULL},
    /* UTF-8 scheme. Legacy and Alloy: "a-$1" is invalid 'replacement' for labelmap action. */
    {"labelmap to a name with a dash", {.action = ACTION_LABELMAP, .replacement = "a-$1"}, NULL},
    /* Both agree again. */
    {"lowercase with replacement",
     {.action = ACTION_LOWERCASE, .target_label = "a", .replacement = "x"},
     "'replacement' can not be set for lowercase action"},
    {"uppercase with an empty replacement",
     {.action = ACTION_UPPERCASE, .target_label = "a", .replacement = ""},
     "'replacement' can not be set for uppercase action"},
    {"lowercase with the default replacement",
     {.action = ACTION_LOWERCASE, .target_label = "a", .replacement = "$1"},
     NULL},
    {"labeldrop with source_labels",
     {.action = ACTION_LABELDROP, .source_labels = ONE_SOURCE},
     ONLY_REGEX("labeldrop")},
    {"labelkeep with target",
     {.action = ACTION_LABELKEEP, .target_label = "a"},
     ONLY_REGEX("labelkeep")},
    {"labelkeep with separator",
     {.action = ACTION_LABELKEEP, .separator = ","},
     ONLY_REGEX("labelkeep")},
    {"labelkeep with replacement",
     {.action = ACTION_LABELKEEP, .replacement = "x"},
     ONLY_REGEX("labelkeep")},
    {"labelkeep with modulus", {.action = ACTION_LABELKEEP, .modulus = 3}, ONLY_REGEX("labelkeep")},
    {"labelkeep with defaults",
     {.action = ACTION_LABELKEEP, .separator = ";", .replacement = "$1", .regex = "a"},
     NULL},
    {"keepequal with regex",
     {.action = ACTION_KEEPEQUAL, .target_label = "a", .regex = "(.*)"},
     ONLY_SOURCES("keepequal")},
    {"dropequal with separator",
     {.action = ACTION_DROPEQUAL, .target_label = "a", .separator = "/"},
     ONLY_SOURCES("dropequal")},
    {"dropequal with modulus",
     {.action = ACTION_DROPEQUAL, .target_label = "a", .modulus = 1},
     ONLY_SOURCES("dropequal")},
    {"dropequal with sources and target",
     {.action = ACTION_DROPEQUAL, .target_label = "a", .source_labels = ONE_SOURCE},
     NULL},
    {"labeldrop with sources that are none",
     {.action = ACTION_LABELDROP, .regex = "a", .has_source_labels = true},
     ONLY_REGEX("labeldrop")},
    {"missing parenthesis",
     {.target_label = "a", .regex = "("},
     "regex: error parsing regexp: missing closing ): `(` at byte 0"},
    {"lookahead",
     {.target_label = "a", .regex = "(?!x)"},
     "regex: error parsing regexp: invalid or unsupported Perl syntax: `(?!` at byte 0"},
    {"back-reference",
     {.target_label = "a", .regex = "(a)\\1"},
     "regex: error parsing regexp: invalid escape sequence: `\\1` at byte 3"},
    {"any UTF-8 target", {.target_label = "utf-8.label"}, NULL},
    {"any UTF-8 target with a reference", {.target_label = "utf-8.label${1}"}, NULL},
    {"bad UTF-8 target",
     {.target_label = "a\xff"},
     "\"a\xff\" is invalid 'target_label' for replace action"},
    {"bad UTF-8 replacement",
     {.target_label = "a", .replacement = "\xff"},
     "\"\xff\" is invalid 'replacement' for replace action"},
    {"empty labelmap replacement",
     {.action = ACTION_LABELMAP, .replacement = ""},
     "\"\" is invalid 'replacement' for labelmap action"},
    {"bad UTF-8 regex",
     {.target_label = "a", .regex = "a\xff"},
     "regex: error parsing regexp: invalid UTF-8: `a\xff` at byte 0"},
    {"unbalanced", {.target_label = "a", .regex = "a)|(b"}, "unexpected ): `a)|(b` at byte 1"},
    {"target that is not used",
     {.action = ACTION_LABELMAP, .target_label = "${\xff", .replacement = "$1"},
     NULL},
    {"keep", {.action = ACTION_KEEP, .regex = "a"}, NULL},
    {"hashmod", {.action = ACTION_HASHMOD, .target_label = "a", .modulus = UINT64_MAX}, NULL},
};

TEST(good_and_bad_rules)
{
    for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++) {
        const struct verdict *v = &verdicts[i];
        struct err err = ERR_INIT;
        bool ok = relabel_check_rule(&v->rule, &err);
        if (v->message == NULL) {
            CHECK_STR(err.msg, "", v->name);
        } else {
            CHECK_CONTAINS(err.msg, v->message, v->name);
            CHECK_INT(err.kind, ERR_INPUT, v->name);
        }
        CHECK_INT(ok, v->message == NULL, v->name);
        /* Compiling judges the same. */
        struct err again = ERR_INIT;
        SCOPED(relabel) *r = relabel_new(&(struct config_rules){&v->rule, 1}, &again);
        CHECK_INT(r != NULL, ok, v->name);
    }
}

/* Prometheus lower-cases the action and Alloy does not; we do. */
TEST(action_case)
{
    enum config_action action = ACTION_REPLACE;
    assert_true(config_action_parse(SV("Keep"), &action));
    CHECK_INT(action, ACTION_KEEP, "");
    assert_false(config_action_parse(SV(""), &action));
    assert_false(config_action_parse(SV("keeps"), &action));
}

/* ---- lists ----------------------------------------------------------------------------------- */

struct fixture {
    struct intern *in;
    struct labels_builder *b;
    struct relabel_scratch *s;
};

static int setup(void **state)
{
    struct fixture *f = test_calloc(1, sizeof(*f));
    f->in = intern_new();
    f->b = labels_builder_new(f->in);
    f->s = relabel_scratch_new();
    *state = f;
    return f->in == NULL || f->b == NULL || f->s == NULL;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    relabel_scratch_free(f->s);
    labels_builder_free(f->b);
    intern_free(f->in);
    test_free(f);
    return 0;
}

static struct relabel *compile(const struct config_rule *rules, size_t n)
{
    struct err err = ERR_INIT;
    struct relabel *r = relabel_new(&(struct config_rules){rules, n}, &err);
    CHECK_STR(err.msg, "", "");
    assert_non_null(r);
    return r;
}

TEST(errors_name_the_rule)
{
    const struct config_rule rules[] = {
        {.target_label = "a"},
        {.target_label = "a", .regex = "[", .pos = {"rules.yaml", 7, 3}},
    };
    struct err err = ERR_INIT;
    assert_null(relabel_new(&(struct config_rules){rules, 2}, &err));
    CHECK_STR(err.msg,
              "rule 2 (rules.yaml:7:3): regex: error parsing regexp: missing closing ]: `[` "
              "at byte 0",
              "");
    err_clear(&err);
    const struct config_rule no_target = {.action = ACTION_REPLACE};
    assert_null(relabel_new(&(struct config_rules){&no_target, 1}, &err));
    CHECK_STR(err.msg, "rule 1: " NEEDS_TARGET("replace"), "");
}

TEST(too_many_rules)
{
    struct config_rule *rules = test_calloc(RELABEL_RULES_MAX + 1, sizeof(*rules));
    for (size_t i = 0; i <= RELABEL_RULES_MAX; i++) {
        rules[i] = (struct config_rule){.target_label = "a", .regex = "b", .replacement = "c"};
    }
    struct err err = ERR_INIT;
    assert_null(relabel_new(&(struct config_rules){rules, RELABEL_RULES_MAX + 1}, &err));
    CHECK_INT(err.kind, ERR_LIMIT, "");
    CHECK_STR(err.msg, "1001 relabel rules, at most 1000 are allowed", "");
    relabel_free(compile(rules, RELABEL_RULES_MAX));
    test_free(rules);
}

TEST_ON(struct fixture *f, empty_list)
{
    struct relabel *r = compile(NULL, 0);
    CHECK_INT(relabel_count(r), 0, "");
    labels_builder_set_str(f->b, "a", "b");
    struct relabel_verdict v = relabel_apply(r, f->s, f->b, NULL, NULL);
    CHECK_INT(v.outcome, RELABEL_KEPT, "");
    CHECK_INT(labels_builder_count(f->b), 1, "");
    relabel_free(r);
    assert_null(relabel_free(NULL));
    assert_null(relabel_scratch_free(NULL));
}

TEST_ON(struct fixture *f, disabled_rules_have_no_effect)
{
    const struct config_rule rules[] = {
        {.action = ACTION_DROP, .disabled = true},
        {.target_label = "t", .replacement = "x", .disabled = true},
        {.target_label = "u", .replacement = "y"},
    };
    SCOPED(relabel) *r = compile(rules, 3);
    SCOPED(buf) text = testing_buf(1000);
    CHECK_INT(relabel_count(r), 3, "");
    labels_builder_set_str(f->b, "a", "b");
    struct relabel_verdict v = relabel_apply(r, f->s, f->b, NULL, NULL);
    CHECK_INT(v.outcome, RELABEL_KEPT, "");
    CHECK_STR(labels_builder_get(f->b, SV("t")).p, "", "");
    CHECK_STR(labels_builder_get(f->b, SV("u")).p, "y", "");
    assert_true(relabel_describe(r, 2, &text));
    CHECK_STR(text.data, "replace replacement=\"x\" -> t (disabled)", "");
}

/* Regexes that a backtracking matcher gives up on decide as in Go: the first text does not match,
 * the second does. */
TEST_WITH(backtracking_regexes, setup, teardown)
{
    struct fixture *f = *state;
    static const struct {
        enum config_action action;
        enum relabel_outcome without_match, with_match;
        bool on_names;
    } rows[] = {
        {ACTION_KEEP, RELABEL_DROPPED, RELABEL_KEPT, false},
        {ACTION_DROP, RELABEL_KEPT, RELABEL_DROPPED, false},
        {ACTION_REPLACE, RELABEL_KEPT, RELABEL_KEPT, false},
        {ACTION_LABELMAP, RELABEL_KEPT, RELABEL_KEPT, true},
        {ACTION_LABELDROP, RELABEL_KEPT, RELABEL_KEPT, true},
        {ACTION_LABELKEEP, RELABEL_KEPT, RELABEL_KEPT, true},
    };
    static const char *const texts[] = {"prometheus-kube-state-metrics_v2", "aab"};
    static const char *const regexes[] = {"([a-z0-9]+-?)+", "(a+)+b"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (size_t j = 0; j < 2; j++) {
            const char *name = config_action_name(rows[i].action);
            struct config_rule rules[2] = {
                {.has_action = true, .action = rows[i].action, .regex = regexes[j]},
                {.target_label = "after", .replacement = "x"},
            };
            const char *const source[] = {"v"};
            if (!rows[i].on_names) {
                rules[0].source_labels = (struct config_strings){source, 1};
            }
            rules[0].target_label = rows[i].action == ACTION_REPLACE ? "t" : NULL;
            SCOPED(relabel) *r = compile(rules, 2);
            labels_builder_reset(f->b, NULL);
            labels_builder_set_str(f->b, rows[i].on_names ? texts[j] : "v", texts[j]);
            struct relabel_verdict v = relabel_apply(r, f->s, f->b, NULL, NULL);
            enum relabel_outcome want = j == 0 ? rows[i].without_match : rows[i].with_match;
            CHECK_INT(v.outcome, want, name);
            CHECK_STR(v.err.msg, "", name);
            CHECK_INT(labels_builder_get(f->b, SV("after")).n, want == RELABEL_KEPT ? 1 : 0, name);
        }
    }
}

TEST_ON(struct fixture *f, label_limit)
{
    const struct config_rule rule = {.action = ACTION_LABELMAP, .replacement = "copy_$1"};
    SCOPED(relabel) *r = compile(&rule, 1);
    for (int i = 0; i < (int)LABELS_MAX - 10; i++) {
        char name[16];
        snprintf(name, sizeof(name), "l%d", i);
        labels_builder_set_str(f->b, name, "x");
    }
    struct relabel_verdict v = relabel_apply(r, f->s, f->b, NULL, NULL);
    CHECK_INT(v.outcome, RELABEL_FAILED, "");
    CHECK_INT(v.err.kind, ERR_LIMIT, "");
    CHECK_CONTAINS(v.err.msg, "more than 1024 labels", "");
}

/* Expansions and joined values have a ceiling of their own. */
TEST_ON(struct fixture *f, size_limits)
{
    char *big = test_malloc(LABELS_BYTES_MAX / 2);
    memset(big, 'x', LABELS_BYTES_MAX / 2 - 1);
    big[LABELS_BYTES_MAX / 2 - 1] = '\0';
    const char *const sources[] = {"big", "big", "big"};
    const struct config_rule rules[] = {
        {.source_labels = {sources, 1}, .target_label = "t", .replacement = "$1$1$1"},
        {.source_labels = {sources, 3}, .target_label = "t", .replacement = "y"},
        {.action = ACTION_HASHMOD,
         .modulus = 3,
         .source_labels = {sources, 3},
         .target_label = "t"},
        {.action = ACTION_KEEPEQUAL, .source_labels = {sources, 3}, .target_label = "t"},
        {.action = ACTION_UPPERCASE, .source_labels = {sources, 3}, .target_label = "t"},
    };
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        struct relabel *r = compile(&rules[i], 1);
        labels_builder_reset(f->b, NULL);
        labels_builder_set_str(f->b, "big", big);
        struct relabel_verdict v = relabel_apply(r, f->s, f->b, NULL, NULL);
        CHECK_INT(v.outcome, RELABEL_FAILED, "");
        CHECK_INT(v.err.kind, ERR_LIMIT, "");
        CHECK_CONTAINS(v.err.msg, "over 1048576 bytes", "");
        relabel_free(r);
        /* The scratch works again. */
        const struct config_rule small = {.target_label = "t", .replacement = "z"};
        r = compile(&small, 1);
        labels_builder_reset(f->b, NULL);
        v = relabel_apply(r, f->s, f->b, NULL, NULL);
        CHECK_INT(v.outcome, RELABEL_KEPT, "");
        relabel_free(r);
    }
    test_free(big);
}

/* Bytes that are not UTF-8 are seen, and passed on, as U+FFFD for each bad byte. */
TEST_ON(struct fixture *f, invalid_utf8)
{
    const char *const source[] = {"a"};
    const struct config_rule rules[] = {
        {.source_labels = {source, 1}, .regex = "x(.)y", .target_label = "one"},
        {.source_labels = {source, 1}, .target_label = "all"},
        {.action = ACTION_UPPERCASE, .source_labels = {source, 1}, .target_label = "upper"},
        {.action = ACTION_LABELMAP, .regex = "n(.)", .replacement = "mapped_$1"},
    };
    SCOPED(relabel) *r = compile(rules, 4);
    labels_builder_set_str(f->b, "a", "x\xffy");
    labels_builder_set_str(f->b, "n\xfe", "v");
    struct relabel_verdict v = relabel_apply(r, f->s, f->b, NULL, NULL);
    CHECK_INT(v.outcome, RELABEL_KEPT, "");
    CHECK_STR(labels_builder_get(f->b, SV("one")).p, "\xef\xbf\xbd", "");
    CHECK_STR(labels_builder_get(f->b, SV("all")).p, "x\xef\xbf\xbdy", "");
    CHECK_STR(labels_builder_get(f->b, SV("upper")).p, "X\xef\xbf\xbdY", "");
    CHECK_STR(labels_builder_get(f->b, SV("mapped_\xef\xbf\xbd")).p, "v", "");
}

/* Prometheus would set a label without a name; there is no such thing. */
TEST_ON(struct fixture *f, labelmap_to_nothing)
{
    const struct config_rule rule = {.action = ACTION_LABELMAP, .regex = "a", .replacement = "$9"};
    SCOPED(relabel) *r = compile(&rule, 1);
    labels_builder_set_str(f->b, "a", "b");
    struct relabel_verdict v = relabel_apply(r, f->s, f->b, NULL, NULL);
    CHECK_INT(v.outcome, RELABEL_KEPT, "");
    CHECK_INT(labels_builder_count(f->b), 1, "");
}

/* ---- explain and describe -------------------------------------------------------------------- */

struct seen {
    char text[256];
};

static void note(void *arg, size_t rule, const struct labels_builder *b,
                 enum relabel_outcome outcome)
{
    struct seen *s = arg;
    size_t n = strlen(s->text);
    snprintf(s->text + n, sizeof(s->text) - n, "%zu:%d:%zu ", rule, (int)outcome,
             labels_builder_count(b));
}

TEST_ON(struct fixture *f, explain)
{
    const char *const source[] = {"b"};
    const struct config_rule rules[] = {
        {.target_label = "b", .replacement = "1"},
        {.action = ACTION_LABELDROP, .regex = "a"},
        {.action = ACTION_DROP, .source_labels = {source, 1}, .regex = "1"},
        {.target_label = "never", .replacement = "1"},
    };
    SCOPED(relabel) *r = compile(rules, 4);
    labels_builder_set_str(f->b, "a", "x");
    struct seen s = {""};
    struct relabel_verdict v = relabel_apply(r, f->s, f->b, note, &s);
    CHECK_INT(v.outcome, RELABEL_DROPPED, "");
    CHECK_INT(v.rule, 3, "");
    CHECK_STR(s.text, "1:0:2 2:0:1 3:1:1 ", "");
}

TEST(rules_are_described)
{
    const char *const sources[] = {"a", "b"};
    const struct config_rule rules[] = {
        {.source_labels = {sources, 2}, .regex = "x\"", .target_label = "c"},
        {.source_labels = {sources, 1}, .separator = "", .target_label = "c", .replacement = ""},
        {.action = ACTION_HASHMOD,
         .source_labels = {sources, 1},
         .modulus = 7,
         .target_label = "h"},
        {.action = ACTION_LABELDROP, .regex = "__meta_.*"},
        {.action = ACTION_KEEPEQUAL, .source_labels = {sources, 1}, .target_label = "b"},
    };
    static const char *const want[] = {
        "replace source_labels=[a,b] regex=\"x\\\"\" -> c",
        "replace source_labels=[a] separator=\"\" replacement=\"\" -> c",
        "hashmod source_labels=[a] modulus=7 -> h",
        "labeldrop regex=\"__meta_.*\"",
        "keepequal source_labels=[a] -> b",
    };
    SCOPED(relabel) *r = compile(rules, 5);
    SCOPED(buf) text = testing_buf(1000);
    for (size_t i = 0; i < 5; i++) {
        buf_clear(&text);
        assert_true(relabel_describe(r, i + 1, &text));
        CHECK_STR(text.data, want[i], "");
    }
    assert_false(relabel_describe(r, 0, &text));
    assert_false(relabel_describe(r, 6, &text));
}

/* ---- a long chain ---------------------------------------------------------------------------- */

static const char *const src_address[] = {"__address__"};
static const char *const src_port_name[] = {"__meta_kubernetes_pod_container_port_name"};
static const char *const src_name[] = {"__meta_kubernetes_pod_label_name"};
static const char *const src_phase[] = {"__meta_kubernetes_pod_phase"};
static const char *const src_scrape[] = {"__meta_kubernetes_pod_annotation_prometheus_io_scrape"};
static const char *const src_scheme[] = {"__meta_kubernetes_pod_annotation_prometheus_io_scheme"};
static const char *const src_path[] = {"__meta_kubernetes_pod_annotation_prometheus_io_path"};
static const char *const src_port[] = {"__address__",
                                       "__meta_kubernetes_pod_annotation_prometheus_io_port"};
static const char *const src_job[] = {"__meta_kubernetes_namespace",
                                      "__meta_kubernetes_pod_label_name"};
static const char *const src_namespace[] = {"__meta_kubernetes_namespace"};
static const char *const src_pod[] = {"__meta_kubernetes_pod_name"};
static const char *const src_container[] = {"__meta_kubernetes_pod_container_name"};
static const char *const src_instance[] = {"__meta_kubernetes_pod_name",
                                           "__meta_kubernetes_pod_container_name",
                                           "__meta_kubernetes_pod_container_port_name"};
static const char *const src_hash[] = {"__tmp_hash"};

/* A usual set of rules for pods, sharded by address. shard is the regex of the last keep. */
static struct relabel *pod_rules(const char *shard)
{
    const struct config_rule rules[] = {
        {.action = ACTION_KEEP, .source_labels = {src_port_name, 1}, .regex = ".*-metrics"},
        {.action = ACTION_DROP, .source_labels = {src_scrape, 1}, .regex = "false"},
        {.source_labels = {src_scheme, 1}, .regex = "(https?)", .target_label = "__scheme__"},
        {.source_labels = {src_path, 1}, .regex = "(.+)", .target_label = "__metrics_path__"},
        {.source_labels = {src_port, 2},
         .regex = "(.+?)(\\:\\d+)?;(\\d+)",
         .target_label = "__address__",
         .replacement = "$1:$3"},
        {.action = ACTION_LABELMAP,
         .regex = "__meta_kubernetes_pod_annotation_prometheus_io_param_(.+)",
         .replacement = "__param_$1"},
        {.action = ACTION_DROP, .source_labels = {src_name, 1}, .regex = ""},
        {.action = ACTION_DROP, .source_labels = {src_phase, 1}, .regex = "Succeeded|Failed"},
        {.source_labels = {src_job, 2}, .separator = "/", .target_label = "job"},
        {.source_labels = {src_namespace, 1}, .target_label = "namespace"},
        {.source_labels = {src_pod, 1}, .target_label = "pod"},
        {.source_labels = {src_container, 1}, .target_label = "container"},
        {.source_labels = {src_instance, 3}, .separator = ":", .target_label = "instance"},
        {.target_label = "cluster", .replacement = "dev-us-central-0"},
        {.action = ACTION_HASHMOD,
         .source_labels = {src_address, 1},
         .target_label = "__tmp_hash",
         .modulus = 3},
        {.action = ACTION_KEEP, .source_labels = {src_hash, 1}, .regex = shard},
        {.action = ACTION_LABELDROP, .regex = "__tmp_hash"},
    };
    return compile(rules, sizeof(rules) / sizeof(rules[0]));
}

TEST_ON(struct fixture *f, pod_chain)
{
    static const char *const in[][2] = {
        {"__address__", "10.132.183.40:80"},
        {"__meta_kubernetes_namespace", "loki-boltdb-shipper"},
        {"__meta_kubernetes_pod_annotation_prometheus_io_param_debug", "1"},
        {"__meta_kubernetes_pod_container_name", "promtail"},
        {"__meta_kubernetes_pod_container_port_name", "http-metrics"},
        {"__meta_kubernetes_pod_label_name", "promtail-loki-boltdb-shipper"},
        {"__meta_kubernetes_pod_name", "promtail-loki-boltdb-shipper-jgtr7"},
        {"__meta_kubernetes_pod_phase", "Running"},
    };
    static const char *const out[][2] = {
        {"__address__", "10.132.183.40:80"},
        {"__param_debug", "1"},
        {"__tmp_hash", ""},
        {"cluster", "dev-us-central-0"},
        {"container", "promtail"},
        {"instance", "promtail-loki-boltdb-shipper-jgtr7:promtail:http-metrics"},
        {"job", "loki-boltdb-shipper/promtail-loki-boltdb-shipper"},
        {"namespace", "loki-boltdb-shipper"},
        {"pod", "promtail-loki-boltdb-shipper-jgtr7"},
        {"__meta_kubernetes_pod_phase", "Running"},
    };
    /* The address hashes to 1. */
    for (int shard = 0; shard < 2; shard++) {
        SCOPED(relabel) *r = pod_rules(shard == 0 ? "^0$" : "^1$");
        labels_builder_reset(f->b, NULL);
        for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++) {
            labels_builder_set_str(f->b, in[i][0], in[i][1]);
        }
        struct relabel_verdict v = relabel_apply(r, f->s, f->b, NULL, NULL);
        CHECK_INT(v.outcome, shard == 0 ? RELABEL_DROPPED : RELABEL_KEPT, "");
        CHECK_INT(v.rule, shard == 0 ? 16 : 0, "");
        for (size_t i = 0; shard == 1 && i < sizeof(out) / sizeof(out[0]); i++) {
            CHECK_STR(labels_builder_get(f->b, sv_from(out[i][0])).p, out[i][1], out[i][0]);
        }
    }
}

/* One list, used by several threads at once, each with a scratch and a builder of its own. */
#define THREADS 4

struct worker {
    pthread_t thread;
    const struct relabel *rules;
    struct intern *in;
    size_t good;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    SCOPED(labels_builder) *b = labels_builder_new(w->in);
    struct relabel_scratch *s = relabel_scratch_new();
    for (int i = 0; i < 200; i++) {
        labels_builder_reset(b, NULL);
        labels_builder_set_str(b, "__address__", "10.132.183.40:80");
        labels_builder_set_str(b, "__meta_kubernetes_pod_container_port_name", "http-metrics");
        labels_builder_set_str(b, "__meta_kubernetes_pod_label_name", "name");
        struct relabel_verdict v = relabel_apply(w->rules, s, b, NULL, NULL);
        w->good +=
            v.outcome == RELABEL_KEPT && sv_eq_str(labels_builder_get(b, SV("job")), "/name");
    }
    relabel_scratch_free(s);
    return NULL;
}

TEST_ON(struct fixture *f, threads)
{
    struct worker workers[THREADS];
    SCOPED(relabel) *r = pod_rules("^1$");
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.rules = r, .in = f->in};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        CHECK_INT(workers[i].good, 200, "");
    }
}
