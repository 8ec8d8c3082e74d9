#include "model/selector.h"

#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "regex/regex.h"

struct matcher {
    struct sv name;
    struct sv value;
    enum matcher_op op;
    struct regex *regex; /* NULL for MATCH_EQUAL and MATCH_NOT_EQUAL */
};

struct selector {
    struct arena *arena; /* memory for names and values */
    struct regex_scratch *scratch;
    size_t bytes;
    size_t n;
    struct matcher matchers[SELECTOR_MATCHERS_MAX];
};

struct selector *selector_new(struct err *err)
{
    struct selector *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        err_memory(err);
        return NULL;
    }
    /* Each text has its NUL and is padded for alignment. */
    s->arena = arena_new(SELECTOR_BYTES_MAX + (size_t)SELECTOR_MATCHERS_MAX * 64);
    s->scratch = regex_scratch_new();
    if (s->arena == NULL || s->scratch == NULL) {
        err_memory(err);
        return selector_free(s);
    }
    return s;
}

struct selector *selector_free(struct selector *s)
{
    if (s == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < s->n; i++) {
        regex_free(s->matchers[i].regex);
    }
    regex_scratch_free(s->scratch);
    arena_free(s->arena);
    free(s);
    return NULL;
}

bool selector_add(struct selector *s, struct sv name, enum matcher_op op, struct sv value,
                  struct err *err)
{
    if (s->n == SELECTOR_MATCHERS_MAX) {
        return err_set(err, ERR_LIMIT, "more than %d matchers", SELECTOR_MATCHERS_MAX);
    }
    if (name.n > SELECTOR_BYTES_MAX - s->bytes ||
        value.n > SELECTOR_BYTES_MAX - s->bytes - name.n) {
        return err_set(err, ERR_LIMIT, "more than %zu bytes of names and values",
                       SELECTOR_BYTES_MAX);
    }
    struct matcher m = {.op = op};
    m.name = (struct sv){arena_strndup(s->arena, name.p, name.n), name.n};
    m.value = (struct sv){arena_strndup(s->arena, value.p, value.n), value.n};
    if (m.name.p == NULL || m.value.p == NULL) {
        return err_memory(err);
    }
    if (op == MATCH_REGEX || op == MATCH_NOT_REGEX) {
        m.regex = regex_new(m.value, 0, err);
        if (m.regex == NULL) {
            return false;
        }
    }
    s->bytes += name.n + value.n;
    s->matchers[s->n++] = m;
    return true;
}

struct selector *selector_copy(const struct selector *s, struct err *err)
{
    struct selector *copy = selector_new(err);
    for (size_t i = 0; copy != NULL && i < s->n; i++) {
        const struct matcher *m = &s->matchers[i];
        if (!selector_add(copy, m->name, m->op, m->value, err)) {
            return selector_free(copy);
        }
    }
    return copy;
}

/* Returns the value of a label; "" if it is missing. */
static struct sv value_of(const struct label *labels, size_t n, struct sv name)
{
    size_t low = 0;
    while (low < n) {
        size_t middle = low + (n - low) / 2;
        int order = sv_cmp(labels[middle].name, name);
        if (order == 0) {
            return labels[middle].value;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            n = middle;
        }
    }
    return SV("");
}

static bool holds(const struct selector *s, const struct matcher *m, struct sv value)
{
    if (m->regex == NULL) {
        return sv_eq(value, m->value) == (m->op == MATCH_EQUAL);
    }
    /* A text that is not UTF-8 matches no regex. If memory runs out, the text does not match. */
    enum regex_result result =
        utf8_valid(value) ? regex_match(m->regex, s->scratch, value, NULL) : REGEX_NO_MATCH;
    return result != REGEX_FAILED && (result == REGEX_MATCH) == (m->op == MATCH_REGEX);
}

bool selector_matches(const struct selector *s, const struct label *labels, size_t n)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct matcher *m = &s->matchers[i];
        if (!holds(s, m, value_of(labels, n, m->name))) {
            return false;
        }
    }
    return true;
}

const struct sv *selector_equal(const struct selector *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct matcher *m = &s->matchers[i];
        if (m->op == MATCH_EQUAL && m->value.n > 0 && sv_eq_str(m->name, name)) {
            return &m->value;
        }
    }
    return NULL;
}

bool selector_at(const struct selector *s, size_t i, struct selector_matcher *ret)
{
    if (i >= s->n) {
        return false;
    }
    const struct matcher *m = &s->matchers[i];
    *ret = (struct selector_matcher){m->name, m->op, m->value};
    return true;
}

/* Returns true for a name that needs no quotes. */
static bool is_bare(struct sv name)
{
    for (size_t i = 0; i < name.n; i++) {
        if (!ascii_is_word(name.p[i]) || (i == 0 && ascii_is_digit(name.p[i]))) {
            return false;
        }
    }
    return name.n > 0;
}

bool selector_put(const struct selector_matcher *m, struct buf *out)
{
    static const char *const ops[] = {[MATCH_EQUAL] = "=",
                                      [MATCH_NOT_EQUAL] = "!=",
                                      [MATCH_REGEX] = "=~",
                                      [MATCH_NOT_REGEX] = "!~"};
    if (is_bare(m->name)) {
        buf_append(out, m->name.p, m->name.n);
    } else {
        json_quote(m->name, out);
    }
    buf_puts(out, ops[m->op]);
    return json_quote(m->value, out);
}

bool selector_take(struct selector *s, const char *name, struct sv *ret)
{
    for (size_t i = 0; i < s->n; i++) {
        struct matcher *m = &s->matchers[i];
        if (m->op == MATCH_EQUAL && sv_eq_str(m->name, name)) {
            *ret = m->value;
            s->n--;
            memmove(m, m + 1, (s->n - i) * sizeof(*m));
            return true;
        }
    }
    return false;
}
