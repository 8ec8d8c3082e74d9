/* Checks, compiles and describes one rule: see rule.h. */
#include "relabel/rule.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"
#include "relabel/relabel.h"

/* ---- checking -------------------------------------------------------------------------------- */

static bool is_set(const char *s)
{
    return s != NULL && s[0] != '\0';
}

/* Returns true if a key was given with a value other than its default. */
static bool differs(const char *s, const char *normal)
{
    return s != NULL && strcmp(s, normal) != 0;
}

static bool is_label_name(const char *s)
{
    return is_set(s) && utf8_valid(sv_from(s));
}

/* Properties of the actions: which members a rule may have. */
enum trait {
    TARGET = 1 << 0,     /* target_label, which must be set */
    NAMES_ONLY = 1 << 1, /* only source_labels and target_label */
    REGEX_ONLY = 1 << 2,
    NO_REPLACEMENT = 1 << 3,
    TARGET_EXPANDS = 1 << 4, /* target_label has references to groups */
    REPLACEMENT_EXPANDS = 1 << 5,
};

static const unsigned char traits[] = {
    [ACTION_REPLACE] = TARGET | TARGET_EXPANDS | REPLACEMENT_EXPANDS,
    [ACTION_KEEP] = 0,
    [ACTION_DROP] = 0,
    [ACTION_KEEPEQUAL] = TARGET | NAMES_ONLY | NO_REPLACEMENT,
    [ACTION_DROPEQUAL] = TARGET | NAMES_ONLY | NO_REPLACEMENT,
    [ACTION_HASHMOD] = TARGET,
    [ACTION_LABELMAP] = REPLACEMENT_EXPANDS,
    [ACTION_LABELDROP] = REGEX_ONLY,
    [ACTION_LABELKEEP] = REGEX_ONLY,
    [ACTION_LOWERCASE] = TARGET | NO_REPLACEMENT,
    [ACTION_UPPERCASE] = TARGET | NO_REPLACEMENT,
};

static bool has(enum config_action action, enum trait trait)
{
    return (traits[action] & trait) != 0;
}

static bool check_target(const struct config_rule *c, const char *action, struct err *err)
{
    if (!has(c->action, TARGET)) {
        return true;
    }
    if (!is_set(c->target_label)) {
        return err_set(err, ERR_INPUT,
                       "relabel configuration for %s action requires 'target_label' value", action);
    }
    if (!is_label_name(c->target_label)) {
        return err_set(err, ERR_INPUT, "\"%s\" is invalid 'target_label' for %s action",
                       c->target_label, action);
    }
    return true;
}

static bool check_replacement(const struct config_rule *c, const char *action, struct err *err)
{
    if (has(c->action, NO_REPLACEMENT) && differs(c->replacement, RULE_REPLACEMENT)) {
        return err_set(err, ERR_INPUT, "'replacement' can not be set for %s action", action);
    }
    bool is_name = c->action == ACTION_LABELMAP;
    if (c->replacement != NULL &&
        (is_name ? !is_label_name(c->replacement) : !utf8_valid(sv_from(c->replacement)))) {
        return err_set(err, ERR_INPUT, "\"%s\" is invalid 'replacement' for %s action",
                       c->replacement, action);
    }
    return true;
}

/* Checks the actions that accept few keys: NAMES_ONLY and REGEX_ONLY. As in Prometheus, a key that
 * repeats its default is accepted, except regex. */
static bool check_others(const struct config_rule *c, const char *action, struct err *err)
{
    bool common = differs(c->separator, RULE_SEPARATOR) || c->modulus != 0 ||
                  differs(c->replacement, RULE_REPLACEMENT);
    if (has(c->action, NAMES_ONLY) && (common || c->regex != NULL)) {
        return err_set(err, ERR_INPUT,
                       "%s action requires only 'source_labels' and 'target_label', "
                       "and no other fields",
                       action);
    }
    if (has(c->action, REGEX_ONLY) &&
        (common || c->has_source_labels || c->source_labels.n > 0 || is_set(c->target_label))) {
        return err_set(err, ERR_INPUT, "%s action requires only 'regex', and no other fields",
                       action);
    }
    return true;
}

static bool check_fields(const struct config_rule *c, struct err *err)
{
    if ((unsigned)c->action >= sizeof(traits) / sizeof(traits[0])) {
        return err_set(err, ERR_INPUT, "relabel action cannot be empty");
    }
    const char *action = config_action_name(c->action);
    if (c->action == ACTION_HASHMOD && c->modulus == 0) {
        return err_set(err, ERR_INPUT,
                       "relabel configuration for hashmod requires non-zero modulus");
    }
    return check_target(c, action, err) && check_replacement(c, action, err) &&
           check_others(c, action, err);
}

/* Checks a rule. Returns its compiled regex, or NULL with an error. */
static struct regex *check_rule(const struct config_rule *c, struct err *err)
{
    if (!check_fields(c, err)) {
        return NULL;
    }
    struct regex *re = regex_new(sv_from(c->regex == NULL ? RULE_REGEX : c->regex), 0, err);
    if (re == NULL) {
        err_wrap(err, "regex");
    }
    return re;
}

bool relabel_check_rule(const struct config_rule *rule, struct err *err)
{
    struct regex *re = check_rule(rule, err);
    regex_free(re);
    return re != NULL;
}

/* ---- compiling ------------------------------------------------------------------------------- */

/* Returns a copy of a text, or of its default if the text is NULL. p is NULL if out of memory. */
static struct sv keep(struct arena *arena, const char *text, const char *normal)
{
    struct sv v = sv_from(text == NULL ? normal : text);
    return (struct sv){arena_strndup(arena, v.p, v.n), v.n};
}

static bool keep_texts(struct rule *r, struct arena *arena, const struct config_rule *c)
{
    struct sv *sources = arena_array(arena, c->source_labels.n, sizeof(*sources));
    if (sources == NULL && c->source_labels.n > 0) {
        return false;
    }
    for (size_t i = 0; i < c->source_labels.n; i++) {
        sources[i] = keep(arena, c->source_labels.at[i], "");
        if (sources[i].p == NULL) {
            return false;
        }
    }
    r->sources = sources;
    r->n_sources = c->source_labels.n;
    r->separator = keep(arena, c->separator, RULE_SEPARATOR);
    r->regex_text = keep(arena, c->regex, RULE_REGEX);
    r->target_text = keep(arena, c->target_label, "");
    r->replacement_text = keep(arena, c->replacement, RULE_REPLACEMENT);
    return r->separator.p != NULL && r->regex_text.p != NULL && r->target_text.p != NULL &&
           r->replacement_text.p != NULL;
}

bool rule_init(struct rule *r, struct arena *arena, const struct config_rule *config,
               struct err *err)
{
    const struct config_pos *pos = &config->pos;
    *r = (struct rule){.action = config->action,
                       .disabled = config->disabled,
                       .modulus = config->modulus,
                       .place = ""};
    if (pos->line > 0) {
        const char *place = arena_printf(arena, "%s:%d:%d", pos->file == NULL ? "" : pos->file,
                                         pos->line, pos->column);
        if (place == NULL) {
            return err_memory(err);
        }
        r->place = place;
    }
    r->regex = check_rule(config, err);
    if (r->regex == NULL) {
        return false;
    }
    if (!keep_texts(r, arena, config) ||
        (has(r->action, TARGET_EXPANDS) &&
         !expansion_init(&r->target, arena, r->target_text, r->regex)) ||
        (has(r->action, REPLACEMENT_EXPANDS) &&
         !expansion_init(&r->replacement, arena, r->replacement_text, r->regex))) {
        return err_memory(err);
    }
    return true;
}

void rule_done(struct rule *r)
{
    r->regex = regex_free(r->regex);
}

/* ---- describing ------------------------------------------------------------------------------ */

static void describe_text(const char *key, struct sv text, const char *normal, struct buf *out)
{
    if (!sv_eq_str(text, normal)) {
        buf_printf(out, " %s=\"", key);
        json_escape(text, out);
        buf_putc(out, '"');
    }
}

bool rule_describe(const struct rule *r, struct buf *out)
{
    buf_puts(out, config_action_name(r->action));
    for (size_t i = 0; i < r->n_sources; i++) {
        buf_puts(out, i == 0 ? " source_labels=[" : ",");
        json_escape(r->sources[i], out);
    }
    buf_puts(out, r->n_sources > 0 ? "]" : "");
    describe_text("separator", r->separator, RULE_SEPARATOR, out);
    describe_text("regex", r->regex_text, RULE_REGEX, out);
    if (r->action == ACTION_HASHMOD) {
        buf_printf(out, " modulus=%" PRIu64, r->modulus);
    }
    describe_text("replacement", r->replacement_text, RULE_REPLACEMENT, out);
    if (has(r->action, TARGET)) {
        buf_puts(out, " -> ");
        json_escape(r->target_text, out);
    }
    buf_puts(out, r->disabled ? " (disabled)" : "");
    return buf_ok(out);
}
