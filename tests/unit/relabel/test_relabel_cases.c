/* Cases of files in tests/unit/data: labels in, rules, labels out or null for dropped.
 *
 * relabel.json: Prometheus' own tests, its benchmark, idioms of Kubernetes and Helm configurations,
 * and edge cases; the answers were computed with Go's regexp. labelmap.json: random rules that map
 * several labels to one name, with the answers of Prometheus' package model/relabel (v0.316). */
#include <jansson.h>
#include <stdlib.h>

#include "relabel/relabel.h"
#include "tests/unit/lib/testing.h"

#define RULES_MAX 64
#define SOURCES_MAX 16

static struct config_rule rule_of(const json_t *json, const char **sources)
{
    struct config_rule rule = {0};
    const json_t *list = json_object_get(json, "source_labels");
    for (size_t i = 0; i < json_array_size(list); i++) {
        assert_true(i < SOURCES_MAX);
        sources[i] = json_string_value(json_array_get(list, i));
        rule.source_labels = (struct config_strings){sources, i + 1};
    }
    const char *action = json_string_value(json_object_get(json, "action"));
    rule.has_action = action != NULL;
    if (action != NULL) {
        assert_true(config_action_parse(sv_from(action), &rule.action));
    }
    rule.separator = json_string_value(json_object_get(json, "separator"));
    rule.regex = json_string_value(json_object_get(json, "regex"));
    rule.target_label = json_string_value(json_object_get(json, "target_label"));
    rule.replacement = json_string_value(json_object_get(json, "replacement"));
    const json_t *modulus = json_object_get(json, "modulus");
    rule.has_modulus = modulus != NULL;
    rule.modulus = (uint64_t)json_integer_value(modulus);
    return rule;
}

static struct relabel *compile(const json_t *list, const char *id)
{
    struct config_rule rules[RULES_MAX];
    const char *sources[RULES_MAX][SOURCES_MAX];
    size_t n = json_array_size(list);
    assert_true(n <= RULES_MAX);
    for (size_t i = 0; i < n; i++) {
        rules[i] = rule_of(json_array_get(list, i), sources[i]);
    }
    struct err err = ERR_INIT;
    struct relabel *r = relabel_new(&(struct config_rules){rules, n}, &err);
    CHECK(r != NULL, "%s: %s", id, err.msg);
    assert_int_equal(relabel_count(r), n);
    return r;
}

static void fill(struct labels_builder *b, json_t *input)
{
    labels_builder_reset(b, NULL);
    const char *name;
    json_t *value;
    json_object_foreach(input, name, value)
    {
        labels_builder_set_str(b, name, json_string_value(value));
    }
}

static void check_output(struct labels_builder *b, const json_t *output, const char *id)
{
    SCOPED(labels) *labels = labels_builder_build(b);
    assert_non_null(labels);
    SCOPED(buf) text = testing_buf(1 << 20);
    assert_true(labels_format_json(labels, &text));
    SCOPED_MEMORY char *want = json_dumps(output, JSON_COMPACT | JSON_SORT_KEYS);
    CHECK_STR(text.data, want, id);
}

static void check_file(const char *path, size_t cases)
{
    json_error_t error;
    json_auto_t *all = json_load_file(path, 0, &error);
    CHECK(all != NULL, "%s:%d: %s", path, error.line, error.text);
    CHECK_INT(json_array_size(all), cases, path);
    SCOPED(intern) *in = intern_new();
    SCOPED(labels_builder) *b = labels_builder_new(in);
    struct relabel_scratch *s = relabel_scratch_new();
    for (size_t i = 0; i < json_array_size(all); i++) {
        json_t *c = json_array_get(all, i);
        const char *id = json_string_value(json_object_get(c, "id"));
        struct relabel *r = compile(json_object_get(c, "rules"), id);
        fill(b, json_object_get(c, "input"));
        struct relabel_verdict v = relabel_apply(r, s, b, NULL, NULL);
        CHECK_STR(v.err.msg, "", id);
        const json_t *output = json_object_get(c, "output");
        if (json_is_null(output)) {
            CHECK_INT(v.outcome, RELABEL_DROPPED, id);
            assert_true(v.rule >= 1 && v.rule <= relabel_count(r));
        } else {
            CHECK_INT(v.outcome, RELABEL_KEPT, id);
            CHECK_INT(v.rule, 0, id);
            check_output(b, output, id);
        }
        relabel_free(r);
    }
    relabel_scratch_free(s);
}

TEST(cases_of_prometheus_and_of_practice)
{
    check_file("tests/unit/data/relabel.json", 88);
}

TEST(labels_mapped_to_one_name)
{
    check_file("tests/unit/data/labelmap.json", 160);
}
