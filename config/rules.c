/* Relabel rules: the types of their values. The function in the options checks the meaning of a
 * rule. */
#include <stddef.h>
#include <string.h>

#include "config/dump.h"
#include "config/parts.h"
#include "model/masking.h"

/* The most rules in one list; relabel/ has the same limit. */
#define RULES_MAX 1000

static const char *const action_names[] = {
    [ACTION_REPLACE] = "replace",     [ACTION_KEEP] = "keep",
    [ACTION_DROP] = "drop",           [ACTION_KEEPEQUAL] = "keepequal",
    [ACTION_DROPEQUAL] = "dropequal", [ACTION_HASHMOD] = "hashmod",
    [ACTION_LABELMAP] = "labelmap",   [ACTION_LABELDROP] = "labeldrop",
    [ACTION_LABELKEEP] = "labelkeep", [ACTION_LOWERCASE] = "lowercase",
    [ACTION_UPPERCASE] = "uppercase",
};
static const struct choices actions = CHOICES(action_names);

const char *config_action_name(enum config_action action)
{
    return choice_name(&actions, action);
}

bool config_action_parse(struct sv text, enum config_action *ret_action)
{
    for (size_t i = 0; i < actions.n; i++) {
        if (text.n == strlen(action_names[i]) &&
            strncasecmp(text.p, action_names[i], text.n) == 0) {
            *ret_action = (enum config_action)i;
            return true;
        }
    }
    return false;
}

static void read_action(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    const char *text = reader_text(r, at, &text_any);
    if (text == NULL) {
        return;
    }
    struct sv v = sv_from(text);
    if (config_action_parse(v, out)) {
        return;
    }
    if (v.n == 0) {
        reader_error(r, at, "relabel action cannot be empty");
        return;
    }
    reader_error(r, at, "expected %s, got %s%s",
                 reader_join(r, action_names, actions.n, "\"", " or "), reader_quote(r, v),
                 reader_hint(r, v, action_names, actions.n));
}

static void write_action(struct dumper *d, const char *key, const void *arg, const void *value)
{
    (void)arg;
    kind_choice.write(d, key, &actions, value);
}

static const struct kind kind_action = {read_action, write_action,
                                        .size = sizeof(enum config_action)};

/* "$" is part of the rule in these texts. */
static const struct text_kind text_raw = {.expected = "a string", .raw = true};
static const struct range range_any = {0, UINT64_MAX};

/* Reads a text of a rule. Like in Prometheus, null is the empty text, and no modulus. */
static void read_rule_text(struct reader *r, const struct place *at, const void *arg, void *out)
{
    if (yaml_is_null(at->node)) {
        *(const char **)out = "";
    } else {
        kind_text.read(r, at, arg, out);
    }
}

static void write_rule_text(struct dumper *d, const char *key, const void *arg, const void *value)
{
    kind_text.write(d, key, arg, value);
}

static const struct kind kind_rule_text = {read_rule_text, write_rule_text,
                                           .size = sizeof(const char *)};

static void read_modulus(struct reader *r, const struct place *at, const void *arg, void *out)
{
    if (!yaml_is_null(at->node)) {
        kind_number.read(r, at, arg, out);
    }
}

static void write_modulus(struct dumper *d, const char *key, const void *arg, const void *value)
{
    kind_number.write(d, key, arg, value);
}

static const struct kind kind_modulus = {read_modulus, write_modulus, .size = sizeof(uint64_t)};

/* Reads the key `enabled` into the member `disabled`, whose zero is the default. */
static void read_enabled(struct reader *r, const struct place *at, const void *arg, void *out)
{
    bool enabled = true;
    kind_bool.read(r, at, arg, &enabled);
    *(bool *)out = !enabled;
}

static void write_enabled(struct dumper *d, const char *key, const void *arg, const void *value)
{
    bool enabled = !*(const bool *)value;
    kind_bool.write(d, key, arg, &enabled);
}

static const struct kind kind_enabled = {read_enabled, write_enabled, .size = sizeof(bool)};

static bool has_modulus(const void *record)
{
    return ((const struct config_rule *)record)->has_modulus;
}

static bool is_given(const struct yaml_node *rule, const char *key)
{
    const struct yaml_node *n = yaml_get(rule, key);
    return n != NULL && !yaml_is_null(n);
}

/* An error about the regex is reported at the regex. */
static void check_rule(struct reader *r, const struct place *at, bool clean, void *out)
{
    struct err err = ERR_INIT;
    struct config_rule *rule = out;
    if (yaml_is_null(at->node)) {
        reader_error(r, at, "expected a mapping, got null");
        return;
    }
    rule->pos = place_pos(r, at);
    rule->has_action = yaml_get(at->node, "action") != NULL;
    rule->has_modulus = is_given(at->node, "modulus");
    rule->has_source_labels = is_given(at->node, "source_labels");
    if (!clean || r->out_of_memory || r->options == NULL || r->options->check_rule == NULL ||
        r->options->check_rule(r->options->check_arg, rule, &err)) {
        return;
    }
    if (rule->regex != NULL && strncmp(err.msg, "regex: ", 7) == 0) {
        struct place regex = place_of_key(at, "regex");
        reader_error(r, &regex, "%s", err.msg + 7);
    } else {
        reader_error(r, at, "%s", err.msg);
    }
}

/* The replacement of a rule that sets a secret parameter is not shown. */
static void write_replacement(struct dumper *d, const char *key, const void *arg, const void *value)
{
    const struct config_rule *rule =
        (const struct config_rule *)(const void *)((const char *)value -
                                                   offsetof(struct config_rule, replacement));
    bool all = dump_config(d)->global.mask_all_params;
    bool hidden = rule->target_label != NULL && mask_label(sv_from(rule->target_label), all);
    kind_text.write(d, key, hidden ? &text_secret : arg, value);
}

static const struct kind kind_replacement = {read_rule_text, write_replacement,
                                             .size = sizeof(const char *)};

static const struct field rule_rows[] = {
    ROW(config_rule, "action", action, &kind_action),
    ROW(config_rule, "source_labels", source_labels, &kind_strings, .arg = &text_label_name,
        .optional = true),
    ROW(config_rule, "separator", separator, &kind_rule_text, .arg = &text_raw),
    ROW(config_rule, "regex", regex, &kind_rule_text, .arg = &text_raw),
    ROW(config_rule, "modulus", modulus, &kind_modulus, .arg = &range_any, .when = has_modulus),
    ROW(config_rule, "target_label", target_label, &kind_rule_text, .arg = &text_raw),
    ROW(config_rule, "replacement", replacement, &kind_replacement, .arg = &text_raw),
    ROW(config_rule, "enabled", disabled, &kind_enabled, .optional = true),
};
const struct schema schema_rule =
    SCHEMA(rule_rows, sizeof(struct config_rule), .check = check_rule);

static void read_rules(struct reader *r, const struct place *at, const void *arg, void *out)
{
    if (at->node->n_items > RULES_MAX) {
        reader_error(r, at, "at most %d rules are possible, got %zu", RULES_MAX, at->node->n_items);
    } else {
        kind_list.read(r, at, arg, out);
    }
}

const struct kind kind_rules = {
    .read = read_rules, .write = write_elements, .is_array = true, .nests = true};
