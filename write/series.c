#include "write/series.h"

#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/utf8.h"

/* The most memory for the names of LABELS_MAX labels and the external ones, and for the values that
 * are kept. */
#define SERIES_ARENA_MAX ((size_t)8 * 1024 * 1024)

/* Groups of worth, see series.h. */
enum { WORTH_REQUIRED, WORTH_IDENTITY, WORTH_EXTERNAL, WORTH_REST };

/* A label on its way into the series. */
struct candidate {
    struct series_label label;
    struct sv raw; /* the original name */
    bool external;
    bool changed;
};

struct build {
    struct series *series;
    const struct series_rules *rules;
    const struct config_label_limits *limits;
    struct candidate *at;
    size_t n;
    bool failed; /* out of memory */
};

const char *series_change_name(enum series_change change)
{
    static const char *const names[SERIES_CHANGES] = {
        [SERIES_RENAMED] = "renamed",     [SERIES_COLLISION] = "collision",
        [SERIES_LONG_NAME] = "long_name", [SERIES_SURPLUS] = "surplus",
        [SERIES_TRUNCATED] = "truncated", [SERIES_REPAIRED] = "repaired",
        [SERIES_TENANT] = "tenant",
    };
    return names[change];
}

bool series_tenant_valid(struct sv tenant)
{
    if (tenant.n == 0 || tenant.n > SERIES_TENANT_MAX || sv_eq_str(tenant, ".") ||
        sv_eq_str(tenant, "..")) {
        return false;
    }
    for (size_t i = 0; i < tenant.n; i++) {
        char c = tenant.p[i];
        if (!ascii_is_alnum(c) && (c == '\0' || strchr("!-_.*'()", c) == NULL)) {
            return false;
        }
    }
    return true;
}

struct sv series_tenant(const struct labels *l, const struct config_pairs *external)
{
    struct sv tenant = labels_get(l, SV(LABEL_TENANT));
    for (size_t i = 0; i < external->n; i++) {
        if (strcmp(external->at[i].name, LABEL_TENANT) == 0) {
            tenant = sv_from(external->at[i].value);
        }
    }
    return series_tenant_valid(tenant) ? tenant : SV("");
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool name_char(char c, bool dots)
{
    return ascii_is_word(c) || (dots && c == '.');
}

static bool name_fits(struct sv name, bool dots)
{
    if (name.n == 0 || ascii_is_digit(name.p[0]) || name.p[0] == '.') {
        return false;
    }
    for (size_t i = 0; i < name.n; i++) {
        if (!name_char(name.p[i], dots)) {
            return false;
        }
    }
    return true;
}

/* One "_" for each character that does not fit (stray continuation bytes are none); a digit or dot
 * that would come first gets one in front. Several "_" that would come first become one: `__` is
 * reserved. out has room for name.n + 1. */
static size_t rewrite_name(struct sv name, bool dots, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool continuation = ((unsigned char)c & 0xc0) == 0x80;
        if (continuation) {
            continue;
        }
        c = name_char(c, dots) ? c : '_';
        if (n == 0 && (ascii_is_digit(c) || c == '.')) {
            out[n++] = '_';
        }
        if (!(c == '_' && n == 1 && out[0] == '_')) {
            out[n++] = c;
        }
    }
    if (n == 0) {
        out[n++] = '_';
    }
    return n;
}

static struct sv arena_sv(struct build *b, const char *p, size_t n)
{
    char *copy = arena_strndup(b->series->arena, p, n);
    if (copy == NULL) {
        b->failed = true;
        return SV("");
    }
    return (struct sv){.p = copy, .n = n};
}

/* Replaces invalid UTF-8 by U+FFFD, as Go does. */
static struct sv repair(struct build *b, struct sv v)
{
    struct buf text;
    buf_init(&text, 4 * v.n + 4);
    struct sv fixed = SV("");
    if (utf8_repair(v, &text)) {
        fixed = arena_sv(b, text.data, text.len);
    } else {
        b->failed = true;
    }
    buf_done(&text);
    return fixed;
}

static struct sv wire_name(struct build *b, struct sv name)
{
    if (b->rules->names == SERIES_NAMES_ALL) {
        return utf8_valid(name) ? name : repair(b, name);
    }
    bool dots = b->rules->names == SERIES_NAMES_DOTTED;
    if (name_fits(name, dots)) {
        return name;
    }
    char *copy = arena_alloc(b->series->arena, name.n + 2);
    if (copy == NULL) {
        b->failed = true;
        return name;
    }
    return (struct sv){.p = copy, .n = rewrite_name(name, dots, copy)};
}

bool series_put_name(enum series_names names, struct sv name, struct buf *out)
{
    bool dots = names == SERIES_NAMES_DOTTED;
    if (names == SERIES_NAMES_ALL) {
        return utf8_repair(name, out);
    }
    if (name_fits(name, dots)) {
        return buf_append(out, name.p, name.n);
    }
    char *text = malloc(name.n + 2);
    bool ok = text != NULL && buf_append(out, text, rewrite_name(name, dots, text));
    free(text);
    return ok;
}

/* ---- gathering ------------------------------------------------------------------------------- */

static uint8_t worth_of(const struct candidate *c)
{
    static const struct {
        const char *name;
        uint8_t worth;
    } known[] = {
        {LABEL_NAME, WORTH_REQUIRED},
        {LABEL_DELTA, WORTH_REQUIRED},
        {LABEL_SERVICE_NAME, WORTH_REQUIRED},
        {LABEL_INSTANCE, WORTH_IDENTITY},
        {LABEL_JOB, WORTH_IDENTITY},
        {"namespace", WORTH_IDENTITY},
        {"pod", WORTH_IDENTITY},
        {"container", WORTH_IDENTITY},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (sv_eq_str(c->label.name, known[i].name)) {
            return known[i].worth;
        }
    }
    return c->external ? WORTH_EXTERNAL : WORTH_REST;
}

/* Counts one more label that the limits have changed. */
static void count_cut(struct series *s, enum series_change change, struct sv name)
{
    if (s->changes[change]++ == 0) {
        s->examples[change] = name;
    }
}

static void add(struct build *b, struct sv name, struct sv value, bool external)
{
    struct series *s = b->series;
    if (value.n == 0) {
        return;
    }
    if (sv_eq_str(name, LABEL_TENANT)) {
        bool valid = series_tenant_valid(value);
        s->tenant = valid ? value : s->tenant;
        s->changes[SERIES_TENANT] += !valid;
        return;
    }
    if (!b->rules->keeps_private && sv_starts_with(name, SV("__")) &&
        !sv_eq_str(name, LABEL_NAME) && !sv_eq_str(name, LABEL_DELTA)) {
        return;
    }
    struct sv wire = wire_name(b, name);
    if (wire.n > b->limits->max_name_length && !b->rules->unlimited) {
        count_cut(s, SERIES_LONG_NAME, wire);
        return;
    }
    struct candidate *c = &b->at[b->n++];
    *c = (struct candidate){.raw = name, .external = external, .changed = wire.p != name.p};
    c->label = (struct series_label){.name = wire, .value = value};
    c->label.worth = worth_of(c);
    if (c->changed) {
        s->changes[SERIES_RENAMED]++;
    }
}

static bool is_external(const struct config_pairs *external, struct sv name)
{
    for (size_t i = 0; i < external->n; i++) {
        if (sv_eq_str(name, external->at[i].name)) {
            return true;
        }
    }
    return false;
}

static void gather(struct build *b, const struct labels *l, const struct config_pairs *external)
{
    for (size_t i = 0; i < labels_count(l); i++) {
        struct label label = labels_at(l, i);
        if (!is_external(external, label.name)) {
            add(b, label.name, label.value, false);
        }
    }
    for (size_t i = 0; i < external->n; i++) {
        add(b, sv_from(external->at[i].name), sv_from(external->at[i].value), true);
    }
}

/* ---- collisions ------------------------------------------------------------------------------ */

static int fold(char c)
{
    return c == '.' ? '_' : (unsigned char)c;
}

/* Compares names with "." taken as "_". */
static int folded_cmp(struct sv a, struct sv b)
{
    for (size_t i = 0; i < a.n && i < b.n; i++) {
        int diff = fold(a.p[i]) - fold(b.p[i]);
        if (diff != 0) {
            return diff;
        }
    }
    return a.n < b.n ? -1 : a.n > b.n;
}

/* Returns the precedence of a label. Of two labels with the same name, the one with the lower
 * precedence value is kept. */
static int precedence(const struct candidate *c)
{
    bool dotted = memchr(c->label.name.p, '.', c->label.name.n) != NULL;
    return (c->external ? 0 : 4) + (c->changed ? 2 : 0) + (dotted ? 1 : 0);
}

static int compare_names(struct sv a, struct sv b, bool exact)
{
    return exact ? sv_cmp(a, b) : folded_cmp(a, b);
}

static int by_precedence(const void *x, const void *y, void *arg)
{
    const struct candidate *a = x;
    const struct candidate *b = y;
    const bool *exact = arg;
    int diff = compare_names(a->label.name, b->label.name, *exact);
    if (diff == 0) {
        diff = precedence(a) - precedence(b);
    }
    return diff != 0 ? diff : sv_cmp(a->raw, b->raw);
}

static void drop_collisions(struct build *b)
{
    bool exact = b->rules->names == SERIES_NAMES_ALL;
    if (b->n > 0) {
        qsort_r(b->at, b->n, sizeof(b->at[0]), by_precedence, &exact);
    }
    size_t kept = 0;
    for (size_t i = 0; i < b->n; i++) {
        struct sv name = b->at[i].label.name;
        if (kept > 0 && compare_names(name, b->at[kept - 1].label.name, exact) == 0) {
            b->series->changes[SERIES_COLLISION]++;
        } else {
            b->at[kept++] = b->at[i];
        }
    }
    b->n = kept;
}

/* ---- limits and values ----------------------------------------------------------------------- */

static int by_name(const void *x, const void *y)
{
    const struct series_label *a = x;
    const struct series_label *b = y;
    return sv_cmp(a->name, b->name);
}

static int by_worth(const void *x, const void *y)
{
    const struct series_label *a = x;
    const struct series_label *b = y;
    return a->worth != b->worth ? (int)a->worth - (int)b->worth : by_name(x, y);
}

static size_t label_limit(const struct build *b)
{
    const struct series *s = b->series;
    if (b->rules->unlimited) {
        return s->n;
    }
    if (!b->rules->in_braces) {
        return b->limits->max_names;
    }
    size_t required = 0;
    for (size_t i = 0; i < s->n; i++) {
        required += s->at[i].worth == WORTH_REQUIRED;
    }
    return b->limits->max_names - SERIES_BRACES_ADDED + required;
}

static void fix_value(struct build *b, struct series_label *label)
{
    struct series *s = b->series;
    size_t max = b->limits->max_value_length;
    bool limited = !b->rules->unlimited;
    bool truncated = limited && label->value.n > max;
    if (!utf8_valid(label->value)) {
        /* A character has at most four bytes, so no more of the value can be needed. */
        if (limited && label->value.n > max + 4) {
            label->value.n = max + 4;
        }
        label->value = repair(b, label->value);
        s->changes[SERIES_REPAIRED]++;
        truncated = limited && (truncated || label->value.n > max);
    }
    if (truncated) {
        label->value.n = utf8_prefix(label->value, max);
        count_cut(s, SERIES_TRUNCATED, label->name);
    }
}

static bool finish(struct build *b)
{
    struct series *s = b->series;
    if (b->failed) {
        return false;
    }
    drop_collisions(b);
    s->at = arena_array(s->arena, b->n + 1, sizeof(s->at[0]));
    if (s->at == NULL) {
        return false;
    }
    for (size_t i = 0; i < b->n; i++) {
        s->at[s->n++] = b->at[i].label;
    }
    if (series_get(s, LABEL_SERVICE_NAME).n == 0) {
        s->at[s->n++] = (struct series_label){.name = SV(LABEL_SERVICE_NAME),
                                              .value = SV(SERIES_NO_SERVICE),
                                              .worth = WORTH_REQUIRED};
    }

    qsort(s->at, s->n, sizeof(s->at[0]), by_worth);
    size_t limit = label_limit(b);
    while (s->n > limit) {
        count_cut(s, SERIES_SURPLUS, s->at[--s->n].name);
    }
    qsort(s->at, s->n, sizeof(s->at[0]), by_name);
    for (size_t i = 0; i < s->n; i++) {
        fix_value(b, &s->at[i]);
    }
    s->type = series_get(s, LABEL_NAME);
    s->service = series_get(s, LABEL_SERVICE_NAME);
    return !b->failed;
}

bool series_build(struct series *s, const struct labels *l, const struct config_pairs *external,
                  const struct config_label_limits *limits, const struct series_rules *rules)
{
    *s = (struct series){.type = SV(""), .service = SV(""), .tenant = SV("")};
    s->arena = arena_new(SERIES_ARENA_MAX);
    if (s->arena == NULL) {
        return false;
    }
    struct build b = {.series = s, .rules = rules, .limits = limits};
    size_t most = labels_count(l) + external->n;
    b.at = malloc((most + 1) * sizeof(b.at[0]));
    if (b.at != NULL) {
        gather(&b, l, external);
    }
    bool ok = b.at != NULL && finish(&b);
    free(b.at);
    if (!ok) {
        series_done(s);
    }
    return ok;
}

void series_done(struct series *s)
{
    s->arena = arena_free(s->arena);
    s->at = NULL;
    s->n = 0;
}

struct sv series_get(const struct series *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++) {
        if (sv_eq_str(s->at[i].name, name)) {
            return s->at[i].value;
        }
    }
    return SV("");
}

bool series_drop_least(struct series *s)
{
    size_t least = s->n;
    for (size_t i = 0; i < s->n; i++) {
        if (s->at[i].worth != WORTH_REQUIRED &&
            (least == s->n || by_worth(&s->at[i], &s->at[least]) >= 0)) {
            least = i;
        }
    }
    if (least == s->n) {
        return false;
    }
    count_cut(s, SERIES_SURPLUS, s->at[least].name);
    memmove(&s->at[least], &s->at[least + 1], (s->n - least - 1) * sizeof(s->at[0]));
    s->n--;
    return true;
}
