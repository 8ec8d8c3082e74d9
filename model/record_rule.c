#include "model/record_rule.h"

#include <string.h>

#include "base/ascii.h"
#include "model/selector.h"

/* Profiles whose values say how things are, not how much was used. */
static const char *const snapshots[] = {"goroutine", "goroutines", "threadcreate"};

bool record_type_split(struct sv text, struct record_type *ret)
{
    struct sv *const parts[] = {&ret->name, &ret->type, &ret->unit, &ret->period_type,
                                &ret->period_unit};
    size_t n = sizeof(parts) / sizeof(parts[0]);
    for (size_t i = 0; i + 1 < n; i++) {
        if (!sv_cut(text, ':', parts[i], &text)) {
            return false;
        }
    }
    *parts[n - 1] = text;
    return ret->name.n > 0 && ret->type.n > 0 && ret->unit.n > 0 &&
           memchr(text.p, ':', text.n) == NULL;
}

bool record_type_is_counter(const struct record_type *t)
{
    return !sv_starts_with(t->type, SV("inuse_")) &&
           !sv_in(t->type, snapshots, sizeof(snapshots) / sizeof(snapshots[0]));
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Returns true for a name of letters, digits, "_" and the extra character. */
static bool is_name(struct sv v, char extra)
{
    for (size_t i = 0; i < v.n; i++) {
        if ((!ascii_is_word(v.p[i]) && v.p[i] != extra) || (i == 0 && ascii_is_digit(v.p[i]))) {
            return false;
        }
    }
    return v.n > 0;
}

static bool check_metric(const char *name, struct err *err)
{
    struct sv v = sv_from(name != NULL ? name : "");
    if (v.n > RECORD_TEXT_MAX) {
        return err_set(err, ERR_LIMIT, "metric_name: %zu bytes, limit %d", v.n, RECORD_TEXT_MAX);
    }
    if (!sv_starts_with(v, SV(RECORD_PREFIX)) || v.n == sizeof(RECORD_PREFIX) - 1) {
        return err_set(
            err, ERR_INPUT,
            "metric_name: expected a name that begins with " RECORD_PREFIX ", got \"%.100s\"", v.p);
    }
    return is_name(v, ':') ||
           err_set(err, ERR_INPUT,
                   "metric_name: expected letters, digits, \"_\" and \":\", got \"%.100s\"", v.p);
}

static bool check_label(const char *member, struct sv name, struct err *err)
{
    if (name.n > RECORD_TEXT_MAX || !is_name(name, '_')) {
        return err_set(err, ERR_INPUT,
                       "%s: expected a label name of letters, digits and \"_\", got \"%.100s\"",
                       member, name.p);
    }
    if (sv_starts_with(name, SV("__"))) {
        return err_set(err, ERR_INPUT,
                       "%s: names that begin with \"__\" are reserved by Prometheus: %.100s",
                       member, name.p);
    }
    return !sv_eq_str(name, RECORD_ID_LABEL) ||
           err_set(err, ERR_INPUT, "%s: the label " RECORD_ID_LABEL " is set by profpull", member);
}

static bool check_external(const struct record_rule *r, size_t i, struct err *err)
{
    struct label l = r->external[i];
    if (!check_label("external_labels", l.name, err)) {
        return false;
    }
    if (l.value.n > RECORD_TEXT_MAX) {
        return err_set(err, ERR_LIMIT, "external_labels: a value of %zu bytes, limit %d", l.value.n,
                       RECORD_TEXT_MAX);
    }
    for (size_t k = 0; k < i; k++) {
        if (sv_eq(r->external[k].name, l.name)) {
            return err_set(err, ERR_INPUT, "external_labels: two labels %.100s", l.name.p);
        }
    }
    for (size_t k = 0; k < r->n_group_by; k++) {
        if (sv_eq_str(l.name, r->group_by[k])) {
            return err_set(err, ERR_INPUT, "external_labels: %.100s is in group_by, too", l.name.p);
        }
    }
    return true;
}

static bool check_group(const struct record_rule *r, size_t i, struct err *err)
{
    if (!check_label("group_by", sv_from(r->group_by[i]), err)) {
        return false;
    }
    for (size_t k = 0; k < i; k++) {
        if (strcmp(r->group_by[i], r->group_by[k]) == 0) {
            return err_set(err, ERR_INPUT, "group_by: two labels %.100s", r->group_by[i]);
        }
    }
    return true;
}

static bool check_labels(const struct record_rule *r, struct err *err)
{
    if (r->n_group_by > RECORD_LIST_MAX || r->n_external > RECORD_LIST_MAX) {
        return err_set(err, ERR_LIMIT, "%s: %zu labels, limit %d",
                       r->n_group_by > RECORD_LIST_MAX ? "group_by" : "external_labels",
                       r->n_group_by > RECORD_LIST_MAX ? r->n_group_by : r->n_external,
                       RECORD_LIST_MAX);
    }
    for (size_t i = 0; i < r->n_group_by; i++) {
        if (!check_group(r, i, err)) {
            return false;
        }
    }
    for (size_t i = 0; i < r->n_external; i++) {
        if (!check_external(r, i, err)) {
            return false;
        }
    }
    return true;
}

static bool check_type(const struct selector *s, struct err *err)
{
    struct record_type type;
    const struct sv *text = selector_equal(s, RECORD_TYPE_LABEL);
    if (text == NULL) {
        return err_set(err, ERR_INPUT,
                       "matchers: expected one that requires a profile type, such as "
                       "{" RECORD_TYPE_LABEL "=\"process_cpu:cpu:nanoseconds:cpu:nanoseconds\"}");
    }
    return record_type_split(*text, &type) ||
           err_set(err, ERR_INPUT,
                   "matchers: expected a profile type of five parts, such as "
                   "process_cpu:cpu:nanoseconds:cpu:nanoseconds, got \"%.100s\"",
                   text->p);
}

static bool check_matchers(const struct record_rule *r, struct err *err)
{
    if (r->n_matchers > RECORD_LIST_MAX) {
        return err_set(err, ERR_LIMIT, "matchers: %zu, limit %d", r->n_matchers, RECORD_LIST_MAX);
    }
    struct selector *s = selector_new(err);
    bool ok = s != NULL;
    for (size_t i = 0; ok && i < r->n_matchers; i++) {
        ok = selector_add_parsed(s, sv_from(r->matchers[i]), err) || err_wrap(err, "matchers");
    }
    ok = ok && check_type(s, err);
    selector_free(s);
    return ok;
}

bool record_rule_check(const struct record_rule *r, struct err *err)
{
    if (r->function != NULL && strlen(r->function) > RECORD_TEXT_MAX) {
        return err_set(err, ERR_LIMIT, "function: %zu bytes, limit %d", strlen(r->function),
                       RECORD_TEXT_MAX);
    }
    return check_metric(r->metric_name, err) && check_matchers(r, err) && check_labels(r, err);
}

/* ---- ids ------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, struct sv text)
{
    return hash_bytes(text.p, text.n, hash * 31 + text.n);
}

void record_rule_name(struct record_rule *r)
{
    uint64_t hash = mix(1, sv_from(r->metric_name));
    for (size_t i = 0; i < r->n_matchers; i++) {
        hash = mix(hash, sv_from(r->matchers[i]));
    }
    hash = mix(hash, SV("group_by"));
    for (size_t i = 0; i < r->n_group_by; i++) {
        hash = mix(hash, sv_from(r->group_by[i]));
    }
    for (size_t i = 0; i < r->n_external; i++) {
        hash = mix(mix(hash, r->external[i].name), r->external[i].value);
    }
    hash = mix(hash, sv_from(r->function != NULL ? r->function : ""));
    for (size_t i = 0; i < RECORD_ID_LENGTH; i++) {
        r->id[i] = (char)('a' + hash % 26);
        hash /= 26;
    }
    r->id[RECORD_ID_LENGTH] = '\0';
}
