/* Runs a list of rules: see relabel.h. */
#include "relabel/relabel.h"

#include <inttypes.h>
#include <md5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/unicode.h"
#include "base/utf8.h"
#include "relabel/rule.h"

/* The most memory for the texts of all rules of one list. */
#define TEXTS_MAX ((size_t)64 * 1024 * 1024)

struct relabel {
    struct arena *arena;
    size_t n;
    struct rule rules[];
};

struct relabel_scratch {
    struct regex_scratch *regex;
    struct buf value;    /* the joined values of the source labels */
    struct buf repaired; /* a value or name that was not valid UTF-8 */
    struct buf target;
    struct buf text;
    struct label snapshot[LABELS_MAX];
};

/* The state of running one rule on one label set. */
struct run {
    const struct rule *rule;
    struct relabel_scratch *s;
    struct labels_builder *b;
    struct err *err;
};

/* ---- the list -------------------------------------------------------------------------------- */

struct relabel *relabel_new(const struct config_rules *rules, struct err *err)
{
    if (rules->n > RELABEL_RULES_MAX) {
        err_set(err, ERR_LIMIT, "%zu relabel rules, at most %d are allowed", rules->n,
                RELABEL_RULES_MAX);
        return NULL;
    }
    struct relabel *r = calloc(1, sizeof(*r) + rules->n * sizeof(r->rules[0]));
    if (r != NULL) {
        r->arena = arena_new(TEXTS_MAX);
    }
    if (r == NULL || r->arena == NULL) {
        err_memory(err);
        return relabel_free(r);
    }
    while (r->n < rules->n) {
        struct rule *rule = &r->rules[r->n];
        if (!rule_init(rule, r->arena, &rules->at[r->n++], err)) {
            bool placed = rule->place[0] != '\0';
            err_wrap(err, placed ? "rule %zu (%s)" : "rule %zu%s", r->n, rule->place);
            return relabel_free(r);
        }
    }
    return r;
}

struct relabel *relabel_free(struct relabel *r)
{
    if (r != NULL) {
        for (size_t i = 0; i < r->n; i++) {
            rule_done(&r->rules[i]);
        }
        arena_free(r->arena);
        free(r);
    }
    return NULL;
}

size_t relabel_count(const struct relabel *r)
{
    return r->n;
}

bool relabel_describe(const struct relabel *r, size_t rule, struct buf *out)
{
    return rule >= 1 && rule <= r->n && rule_describe(&r->rules[rule - 1], out);
}

struct relabel_scratch *relabel_scratch_new(void)
{
    struct relabel_scratch *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    buf_init(&s->value, LABELS_BYTES_MAX);
    buf_init(&s->repaired, LABELS_BYTES_MAX);
    buf_init(&s->target, LABELS_BYTES_MAX);
    buf_init(&s->text, LABELS_BYTES_MAX);
    s->regex = regex_scratch_new();
    return s->regex == NULL ? relabel_scratch_free(s) : s;
}

struct relabel_scratch *relabel_scratch_free(struct relabel_scratch *s)
{
    if (s != NULL) {
        regex_scratch_free(s->regex);
        buf_done(&s->value);
        buf_done(&s->repaired);
        buf_done(&s->target);
        buf_done(&s->text);
        free(s);
    }
    return NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool fail_buf(const struct run *run, const struct buf *b, const char *what)
{
    if (buf_too_big(b)) {
        return err_set(run->err, ERR_LIMIT, "%s over %zu bytes", what, (size_t)LABELS_BYTES_MAX);
    }
    return err_memory(run->err);
}

/* Joins the values of the source labels with the separator. */
static bool join(const struct run *run, struct sv *ret_value)
{
    const struct rule *rule = run->rule;
    if (rule->n_sources == 1) {
        *ret_value = labels_builder_get(run->b, rule->sources[0]);
        return true;
    }
    struct buf *value = &run->s->value;
    buf_clear(value);
    for (size_t i = 0; i < rule->n_sources; i++) {
        struct sv v = labels_builder_get(run->b, rule->sources[i]);
        if (i > 0) {
            buf_append(value, rule->separator.p, rule->separator.n);
        }
        buf_append(value, v.p, v.n);
    }
    if (!buf_ok(value)) {
        return fail_buf(run, value, "joined source labels are");
    }
    *ret_value = (struct sv){value->data, value->len};
    return true;
}

/* Makes text valid UTF-8, as Go does. The view is valid until the next call. */
static bool repair(const struct run *run, struct sv *text)
{
    if (utf8_valid(*text)) {
        return true;
    }
    struct buf *repaired = &run->s->repaired;
    buf_clear(repaired);
    if (!utf8_repair(*text, repaired)) {
        return fail_buf(run, repaired, "a label is");
    }
    *text = (struct sv){repaired->data, repaired->len};
    return true;
}

static enum regex_result match(const struct run *run, struct sv text)
{
    return regex_match(run->rule->regex, run->s->regex, text, run->err);
}

/* Expands a template after a match on value. The result is stored in buf if the template has
 * references. */
static bool expand(const struct run *run, const struct expansion *t, struct sv value,
                   struct buf *buf, struct sv *ret_text)
{
    if (expansion_is_constant(t, ret_text)) {
        return true;
    }
    buf_clear(buf);
    if (!expansion_write(t, run->s->regex, value, buf)) {
        return fail_buf(run, buf, "the expansion is");
    }
    *ret_text = (struct sv){buf->data, buf->len};
    return true;
}

/* ---- actions on the value of the source labels ----------------------------------------------- */

static enum relabel_outcome replace(const struct run *run, struct sv value)
{
    enum regex_result result = match(run, value);
    if (result != REGEX_MATCH) {
        return result == REGEX_FAILED ? RELABEL_FAILED : RELABEL_KEPT;
    }
    struct sv target;
    struct sv text;
    if (!expand(run, &run->rule->target, value, &run->s->target, &target) ||
        !expand(run, &run->rule->replacement, value, &run->s->text, &text)) {
        return RELABEL_FAILED;
    }
    if (target.n > 0) {
        labels_builder_set(run->b, target, text);
    }
    return RELABEL_KEPT;
}

static enum relabel_outcome keep_or_drop(const struct run *run, struct sv value)
{
    enum regex_result result = match(run, value);
    if (result == REGEX_FAILED) {
        return RELABEL_FAILED;
    }
    bool keeps = run->rule->action == ACTION_KEEP;
    return (result == REGEX_MATCH) == keeps ? RELABEL_KEPT : RELABEL_DROPPED;
}

static enum relabel_outcome compare(const struct run *run, struct sv value)
{
    bool equal = sv_eq(value, labels_builder_get(run->b, run->rule->target_text));
    bool keeps = run->rule->action == ACTION_KEEPEQUAL;
    return equal == keeps ? RELABEL_KEPT : RELABEL_DROPPED;
}

static enum relabel_outcome hashmod(const struct run *run, struct sv value)
{
    MD5_CTX md5;
    uint8_t digest[MD5_DIGEST_LENGTH];
    MD5Init(&md5);
    MD5Update(&md5, (const uint8_t *)value.p, value.n);
    MD5Final(digest, &md5);
    /* The hash is the last eight bytes of the digest, most significant first, as in Prometheus. */
    uint64_t hash = 0;
    for (size_t i = MD5_DIGEST_LENGTH - sizeof(hash); i < MD5_DIGEST_LENGTH; i++) {
        hash = hash << 8 | digest[i];
    }
    char text[24];
    int n = snprintf(text, sizeof(text), "%" PRIu64, hash % run->rule->modulus);
    labels_builder_set(run->b, run->rule->target_text, (struct sv){text, (size_t)n});
    return RELABEL_KEPT;
}

static enum relabel_outcome change_case(const struct run *run, struct sv value)
{
    struct buf *text = &run->s->text;
    buf_clear(text);
    if (!append_in_case(value, run->rule->action == ACTION_UPPERCASE, text)) {
        fail_buf(run, text, "the value is");
        return RELABEL_FAILED;
    }
    labels_builder_set(run->b, run->rule->target_text, (struct sv){text->data, text->len});
    return RELABEL_KEPT;
}

/* ---- actions on each label ------------------------------------------------------------------- */

static bool labelmap(const struct run *run, const struct label *label, struct sv name, bool matches)
{
    struct sv target = SV("");
    if (matches && !expand(run, &run->rule->replacement, name, &run->s->text, &target)) {
        return false;
    }
    if (target.n > 0) {
        labels_builder_set(run->b, target, label->value);
    }
    return true;
}

/* The actions labeldrop and labelkeep. */
static bool select_label(const struct run *run, const struct label *label, struct sv name,
                         bool matches)
{
    (void)name;
    if (matches == (run->rule->action == ACTION_LABELDROP)) {
        labels_builder_del(run->b, label->name);
    }
    return true;
}

/* ---- all rules ------------------------------------------------------------------------------- */

/* The functions of the actions. An action works on one value, or on each label, whose name is
 * passed as valid UTF-8. */
static const struct {
    enum relabel_outcome (*on_value)(const struct run *run, struct sv value);
    bool (*on_label)(const struct run *run, const struct label *label, struct sv name,
                     bool matches);
    bool raw; /* takes the value as it is, valid UTF-8 or not */
} actions[] = {
    [ACTION_REPLACE] = {.on_value = replace},
    [ACTION_KEEP] = {.on_value = keep_or_drop},
    [ACTION_DROP] = {.on_value = keep_or_drop},
    [ACTION_KEEPEQUAL] = {.on_value = compare, .raw = true},
    [ACTION_DROPEQUAL] = {.on_value = compare, .raw = true},
    [ACTION_HASHMOD] = {.on_value = hashmod, .raw = true},
    [ACTION_LABELMAP] = {.on_label = labelmap},
    [ACTION_LABELDROP] = {.on_label = select_label},
    [ACTION_LABELKEEP] = {.on_label = select_label},
    [ACTION_LOWERCASE] = {.on_value = change_case},
    [ACTION_UPPERCASE] = {.on_value = change_case},
};

static enum relabel_outcome run_on_value(const struct run *run)
{
    struct sv value = SV("");
    if (!join(run, &value) || (!actions[run->rule->action].raw && !repair(run, &value))) {
        return RELABEL_FAILED;
    }
    return actions[run->rule->action].on_value(run, value);
}

static enum relabel_outcome run_on_labels(const struct run *run)
{
    /* A rule walks a snapshot of the labels, because it may add labels to the builder. */
    size_t n = labels_builder_in_order(run->b, run->s->snapshot);
    for (size_t i = 0; i < n; i++) {
        const struct label *label = &run->s->snapshot[i];
        struct sv name = label->name;
        enum regex_result result = repair(run, &name) ? match(run, name) : REGEX_FAILED;
        if (result == REGEX_FAILED ||
            !actions[run->rule->action].on_label(run, label, name, result == REGEX_MATCH)) {
            return RELABEL_FAILED;
        }
    }
    return RELABEL_KEPT;
}

static enum relabel_outcome run_rule(const struct run *run)
{
    if (run->rule->disabled) {
        return RELABEL_KEPT;
    }
    enum relabel_outcome outcome =
        actions[run->rule->action].on_label != NULL ? run_on_labels(run) : run_on_value(run);
    if (outcome != RELABEL_FAILED && !labels_builder_ok(run->b)) {
        labels_builder_explain(run->b, run->err);
        outcome = RELABEL_FAILED;
    }
    /* The number of the rule is in the verdict. */
    if (outcome == RELABEL_FAILED && run->rule->place[0] != '\0') {
        err_wrap(run->err, "%s", run->rule->place);
    }
    return outcome;
}

struct relabel_verdict
relabel_apply(const struct relabel *r, struct relabel_scratch *s, struct labels_builder *b,
              void (*explain)(void *arg, size_t rule, const struct labels_builder *b,
                              enum relabel_outcome outcome),
              void *arg)
{
    struct relabel_verdict v = {.outcome = RELABEL_KEPT, .err = ERR_INIT};
    labels_builder_start(b);
    for (size_t i = 0; i < r->n && v.outcome == RELABEL_KEPT; i++) {
        v.outcome = run_rule(&(struct run){&r->rules[i], s, b, &v.err});
        if (v.outcome != RELABEL_KEPT) {
            v.rule = i + 1;
        }
        if (explain != NULL) {
            explain(arg, i + 1, b, v.outcome);
        }
    }
    return v;
}

/* ---- which labels the rules read ------------------------------------------------------------- */

static bool names_source(const struct rule *rule, struct sv name)
{
    for (size_t i = 0; i < rule->n_sources; i++) {
        if (sv_eq(rule->sources[i], name)) {
            return true;
        }
    }
    return false;
}

/* labelmap copies a label that matches; labeldrop and labelkeep only remove it, but fail if the
 * match fails. */
static bool matches_name(const struct run *run, struct sv name)
{
    if (!repair(run, &name)) {
        return true;
    }
    enum regex_result result = match(run, name);
    return result == REGEX_FAILED ||
           (result == REGEX_MATCH && run->rule->action == ACTION_LABELMAP);
}

static bool rule_reads(const struct run *run, struct sv name)
{
    enum config_action action = run->rule->action;
    if (actions[action].on_label != NULL) {
        return matches_name(run, name);
    }
    return names_source(run->rule, name) ||
           (actions[action].on_value == compare && sv_eq(run->rule->target_text, name));
}

bool relabel_reads(const struct relabel *r, struct relabel_scratch *s, struct sv name)
{
    for (size_t i = 0; i < r->n; i++) {
        struct err err = ERR_INIT;
        struct run run = {&r->rules[i], s, NULL, &err};
        if (!run.rule->disabled && rule_reads(&run, name)) {
            return true;
        }
    }
    return false;
}
