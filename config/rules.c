/* Relabel rules: their types. What a rule means, and whether its parts fit together, is judged by
 * the function in the options. */
#include <string.h>

#include "config/parts.h"

/* Rules in one list: as many as relabelling takes. */
#define RULES_MAX 1000

static const char *const action_names[] = {
    [ACTION_REPLACE] = "replace",     [ACTION_KEEP] = "keep",
    [ACTION_DROP] = "drop",           [ACTION_KEEPEQUAL] = "keepequal",
    [ACTION_DROPEQUAL] = "dropequal", [ACTION_HASHMOD] = "hashmod",
    [ACTION_LABELMAP] = "labelmap",   [ACTION_LABELDROP] = "labeldrop",
    [ACTION_LABELKEEP] = "labelkeep", [ACTION_LOWERCASE] = "lowercase",
    [ACTION_UPPERCASE] = "uppercase",
};
#define ACTIONS (sizeof(action_names) / sizeof(action_names[0]))

const char *config_action_name(enum config_action action)
{
    return (size_t)action < ACTIONS ? action_names[action] : "unknown";
}

bool config_action_parse(struct sv text, enum config_action *ret_action)
{
    for (size_t i = 0; i < ACTIONS; i++) {
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
    struct config_rule *rule = out;
    const char *text = reader_text(r, at, &text_any);
    if (text == NULL) {
        return;
    }
    rule->has_action = true;
    struct sv v = sv_from(text);
    if (config_action_parse(v, &rule->action)) {
        return;
    }
    if (v.n == 0) {
        reader_error(r, at, "relabel action cannot be empty");
        return;
    }
    const char *near = v.n > 20 ? NULL : suggest(v, action_names, ACTIONS);
    reader_error(r, at, "expected %s, got %s%s%s%s", reader_choices(r, action_names, ACTIONS),
                 reader_quote(r, v), near == NULL ? "" : "; did you mean \"",
                 near == NULL ? "" : near, near == NULL ? "" : "\"?");
}

static void read_modulus(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    static const struct range range = {0, UINT64_MAX};
    struct config_rule *rule = out;
    rule->has_modulus = true;
    read_number(r, at, &range, &rule->modulus);
}

/* "$" belongs to the rule in these. */
static const struct text_kind text_raw = {.expected = "a string", .raw = true};

#define FIELD(key_, read_, member, arg_)                                                           \
    {                                                                                              \
        .key = (key_), .read = (read_), .offset = offsetof(struct config_rule, member),            \
        .arg = (arg_)                                                                              \
    }

static const struct field rule_fields[] = {
    {.key = "action", .read = read_action},
    FIELD("source_labels", read_strings, source_labels, &text_label_name),
    FIELD("separator", read_text, separator, &text_raw),
    FIELD("regex", read_text, regex, &text_raw),
    {.key = "modulus", .read = read_modulus},
    FIELD("target_label", read_text, target_label, &text_raw),
    FIELD("replacement", read_text, replacement, &text_raw),
};

/* An error about the regex is shown where the regex stands. */
static void judge(struct reader *r, const struct place *at, const struct config_rule *rule)
{
    struct err err = ERR_INIT;
    if (r->options == NULL || r->options->check_rule == NULL ||
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

static void read_rule(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    struct config_rule *rule = out;
    const struct section section = SECTION(rule_fields, rule);
    size_t before = r->reported;
    rule->pos = place_pos(r, at);
    if (yaml_is_null(at->node)) {
        reader_error(r, at, "expected a mapping, got null");
        return;
    }
    read_sections(r, at, &section, 1);
    if (r->reported == before && !r->out_of_memory) {
        judge(r, at, rule);
    }
}

void read_rules(struct reader *r, const struct place *at, const void *arg, void *out)
{
    struct config_rules *rules = out;
    void *array = NULL;
    size_t n = 0;
    if (at->node->n_items > RULES_MAX) {
        reader_error(r, at, "at most %d rules are possible, got %zu", RULES_MAX, at->node->n_items);
        return;
    }
    read_list(r, at, sizeof(struct config_rule), read_rule, arg, &array, &n);
    *rules = (struct config_rules){array, n};
}
