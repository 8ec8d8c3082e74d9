#include "relabel/rule.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"
#include "relabel/relabel.h"

/* ---- judging --------------------------------------------------------------------------------- */

static bool is_set(const char *s)
{
    return s != NULL && s[0] != '\0';
}

/* True if a key was given and says something else than its default. */
static bool differs(const char *s, const char *normal)
{
    return s != NULL && strcmp(s, normal) != 0;
}

static bool is_label_name(const char *s)
{
    return is_set(s) && utf8_valid(sv_from(s));
}

/* Actions by what they do with target_label. */
static bool has_target(enum config_action action)
{
    switch (action) {
    case ACTION_REPLACE:
    case ACTION_HASHMOD:
    case ACTION_LOWERCASE:
    case ACTION_UPPERCASE:
    case ACTION_KEEPEQUAL:
    case ACTION_DROPEQUAL:
        return true;
    default:
        return false;
    }
}

static bool compares(enum config_action action)
{
    return action == ACTION_KEEPEQUAL || action == ACTION_DROPEQUAL;
}

static bool changes_case(enum config_action action)
{
    return action == ACTION_LOWERCASE || action == ACTION_UPPERCASE;
}

static bool selects_labels(enum config_action action)
{
    return action == ACTION_LABELDROP || action == ACTION_LABELKEEP;
}

static bool check_target(const struct config_rule *c, const char *action, struct err *err)
{
    if (!has_target(c->action)) {
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
    bool takes_none = changes_case(c->action) || compares(c->action);
    if (takes_none && differs(c->replacement, RULE_REPLACEMENT)) {
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

/* The two kinds of action that take few keys. As in Prometheus a key that repeats its default does
 * not count, except regex. */
static bool check_others(const struct config_rule *c, const char *action, struct err *err)
{
    bool common = differs(c->separator, RULE_SEPARATOR) || c->modulus != 0 ||
                  differs(c->replacement, RULE_REPLACEMENT);
    if (compares(c->action) && (common || c->regex != NULL)) {
        return err_set(err, ERR_INPUT,
                       "%s action requires only 'source_labels' and 'target_label', "
                       "and no other fields",
                       action);
    }
    if (selects_labels(c->action) &&
        (common || c->source_labels.n > 0 || is_set(c->target_label))) {
        return err_set(err, ERR_INPUT, "%s action requires only 'regex', and no other fields",
                       action);
    }
    return true;
}

static bool check_fields(const struct config_rule *c, struct err *err)
{
    if ((unsigned)c->action > ACTION_UPPERCASE) {
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

static struct regex *compile_regex(const char *text, struct err *err)
{
    struct regex *re = regex_new(sv_from(text == NULL ? RULE_REGEX : text), 0, err);
    if (re == NULL) {
        err_wrap(err, "regex");
    }
    return re;
}

bool relabel_check_rule(const struct config_rule *rule, struct err *err)
{
    if (!check_fields(rule, err)) {
        return false;
    }
    struct regex *re = compile_regex(rule->regex, err);
    regex_free(re);
    return re != NULL;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_digit(c) || c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Length of $name or ${name} at the start of v; 0 if there is none. */
static size_t reference_length(struct sv v)
{
    size_t brace = v.n > 1 && v.p[1] == '{';
    size_t end = 1 + brace;
    while (end < v.n && is_word(v.p[end])) {
        end++;
    }
    bool closed = brace == 0 || (end < v.n && v.p[end] == '}');
    return end > 1 + brace && closed ? end + brace : 0;
}

bool relabel_legacy_target_ok(struct sv text)
{
    size_t at = 0;
    while (at < text.n) {
        char c = text.p[at];
        size_t n = is_word(c) && (at > 0 || !is_digit(c));
        if (c == '$') {
            n = reference_length((struct sv){text.p + at, text.n - at});
        }
        if (n == 0) {
            return false;
        }
        at += n;
    }
    return text.n > 0;
}

/* ---- compiling ------------------------------------------------------------------------------- */

/* A copy of a text, or of its default. p is NULL if out of memory. */
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
    r->place = "";
    if (c->pos.line > 0) {
        r->place = arena_printf(arena, "%s:%d:%d", c->pos.file == NULL ? "" : c->pos.file,
                                c->pos.line, c->pos.column);
    }
    r->separator = keep(arena, c->separator, RULE_SEPARATOR);
    r->regex_text = keep(arena, c->regex, RULE_REGEX);
    r->target_text = keep(arena, c->target_label, "");
    r->replacement_text = keep(arena, c->replacement, RULE_REPLACEMENT);
    return r->place != NULL && r->separator.p != NULL && r->regex_text.p != NULL &&
           r->target_text.p != NULL && r->replacement_text.p != NULL;
}

bool rule_init(struct rule *r, struct arena *arena, const struct config_rule *config,
               struct err *err)
{
    *r = (struct rule){.action = config->action, .modulus = config->modulus};
    if (!check_fields(config, err)) {
        return false;
    }
    r->regex = compile_regex(config->regex, err);
    if (r->regex == NULL) {
        return false;
    }
    /* Elsewhere these are names or not used, and were not judged as templates. */
    bool has_replacement = r->action == ACTION_REPLACE || r->action == ACTION_LABELMAP;
    if (!keep_texts(r, arena, config) ||
        (r->action == ACTION_REPLACE &&
         !expansion_init(&r->target, arena, r->target_text, r->regex)) ||
        (has_replacement &&
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
    if (has_target(r->action)) {
        buf_puts(out, " -> ");
        json_escape(r->target_text, out);
    }
    return buf_ok(out);
}
