/* The key `record`: rules of recorded metrics. */
#include <string.h>

#include "base/clock.h"
#include "config/parts.h"

static const struct range range_rules = {1, 1000};
static const struct range range_series = {1, 100000};
static const struct range range_stale = {1000, (uint64_t)24 * 60 * 60 * MS_PER_S};

/* "$" is part of a regex. */
static const struct text_kind text_matcher = {
    .expected = "a selector such as {service_name=\"cart\"}", .min = 1, .raw = true};

/* Copies the external labels as labels. NULL if out of memory. */
static const struct label *labels_of(struct reader *r, const struct config_pairs *pairs)
{
    struct label *all = reader_alloc(r, pairs->n + 1, sizeof(*all));
    for (size_t i = 0; all != NULL && i < pairs->n; i++) {
        all[i] = (struct label){sv_from(pairs->at[i].name), sv_from(pairs->at[i].value)};
    }
    return all;
}

static void check_rule(struct reader *r, const struct place *at, bool clean, void *out)
{
    struct config_record_rule *rule = out;
    struct err err = ERR_INIT;
    rule->pos = place_pos(r, at);
    if (!clean || yaml_is_null(at->node)) {
        return;
    }
    const struct label *external = labels_of(r, &rule->external_labels);
    if (external == NULL) {
        return;
    }
    rule->rule = (struct record_rule){
        .metric_name = rule->metric_name,
        .matchers = rule->matchers.at,
        .n_matchers = rule->matchers.n,
        .group_by = rule->group_by.at,
        .n_group_by = rule->group_by.n,
        .external = external,
        .n_external = rule->external_labels.n,
        .function = rule->function,
    };
    if (!record_rule_check(&rule->rule, &err)) {
        reader_error(r, at, "%s", err.msg);
        return;
    }
    record_rule_name(&rule->rule);
}

static const struct field rule_rows[] = {
    ROW(config_record_rule, "metric_name", metric_name, &kind_text, .required = true),
    ROW(config_record_rule, "matchers", matchers, &kind_strings, .arg = &text_matcher,
        .required = true),
    ROW(config_record_rule, "group_by", group_by, &kind_strings, .arg = &text_label_name),
    ROW(config_record_rule, "external_labels", external_labels, &kind_pairs,
        .arg = &pairs_external),
    ROW(config_record_rule, "function", function, &kind_text),
};
static const struct schema schema_record_rule =
    SCHEMA(rule_rows, sizeof(struct config_record_rule), .check = check_rule);

/* Checks the rules against each other. Equal rules would make the same series. */
static void check_record(struct reader *r, const struct place *at, bool clean, void *out)
{
    const struct config_record *c = out;
    if (!clean) {
        return;
    }
    struct place list = place_of_key(at, "rules");
    if (c->n_rules > c->max_rules) {
        reader_error(r, &list, "%zu rules; max_rules is %u", c->n_rules, c->max_rules);
        return;
    }
    for (size_t i = 0; i < c->n_rules; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(c->rules[i].rule.id, c->rules[k].rule.id) == 0) {
                struct place rule = place_of_element(&list, i);
                reader_error(r, &rule, "the same rule as rules[%zu]", k);
            }
        }
    }
}

static const struct field record_rows[] = {
    ROW(config_record, "max_rules", max_rules, &kind_unsigned, .arg = &range_rules,
        .initial.number = CONFIG_RECORD_RULES_DEFAULT),
    ROW(config_record, "max_series", max_series, &kind_unsigned, .arg = &range_series,
        .initial.number = CONFIG_RECORD_SERIES_DEFAULT),
    ROW(config_record, "stale_after", stale_ms, &kind_duration, .arg = &range_stale,
        .initial.ms = CONFIG_RECORD_STALE_MS),
    ROW(config_record, "rules", rules, &kind_list, .arg = &schema_record_rule),
};
const struct schema schema_record =
    SCHEMA(record_rows, sizeof(struct config_record), .check = check_record);
