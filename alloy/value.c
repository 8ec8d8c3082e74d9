#include "alloy/value.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct alloy_value alloy_unknown = {.kind = VALUE_UNKNOWN};
const struct alloy_value alloy_null = {.kind = VALUE_NULL};

struct alloy_value *alloy_value_new(struct arena *arena, enum alloy_value_kind kind)
{
    struct alloy_value *v = arena_alloc(arena, sizeof(*v));
    if (v != NULL) {
        v->kind = kind;
    }
    return v;
}

struct alloy_value *alloy_string(struct arena *arena, struct sv text)
{
    struct alloy_value *v = alloy_value_new(arena, VALUE_STRING);
    if (v != NULL) {
        v->text = text;
    }
    return v;
}

struct alloy_value *alloy_bool(struct arena *arena, bool truth)
{
    struct alloy_value *v = alloy_value_new(arena, VALUE_BOOL);
    if (v != NULL) {
        v->truth = truth;
    }
    return v;
}

struct alloy_value *alloy_number(struct arena *arena, struct alloy_number number)
{
    struct alloy_value *v = alloy_value_new(arena, VALUE_NUMBER);
    if (v != NULL) {
        v->number = number;
    }
    return v;
}

struct alloy_value *alloy_int(struct arena *arena, int64_t i)
{
    return alloy_number(arena, (struct alloy_number){.kind = NUMBER_INT, .i = i});
}

struct alloy_value *alloy_array(struct arena *arena, struct alloy_member *members, size_t n)
{
    struct alloy_value *v = alloy_value_new(arena, VALUE_ARRAY);
    if (v == NULL) {
        return NULL;
    }
    v->members = members;
    v->n_members = n;
    for (size_t i = 0; i < n; i++) {
        v->open = v->open || members[i].value->kind == VALUE_SPLICE;
    }
    return v;
}

static int compare_members(const void *a, const void *b)
{
    const struct alloy_member *x = a;
    const struct alloy_member *y = b;
    int order = sv_cmp(x->key, y->key);
    if (order != 0) {
        return order;
    }
    /* Equal keys are sorted by place, because the last one wins. */
    if (x->place.line != y->place.line) {
        return x->place.line < y->place.line ? -1 : 1;
    }
    return (x->place.column > y->place.column) - (x->place.column < y->place.column);
}

struct alloy_value *alloy_object(struct arena *arena, struct alloy_member *members, size_t n)
{
    struct alloy_value *v = alloy_value_new(arena, VALUE_OBJECT);
    if (v == NULL) {
        return NULL;
    }
    if (n > 0) {
        qsort(members, n, sizeof(*members), compare_members);
    }
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && sv_eq(members[kept - 1].key, members[i].key)) {
            kept--;
        }
        members[kept++] = members[i];
    }
    v->members = members;
    v->n_members = kept;
    return v;
}

const char *alloy_what(const struct alloy_value *v)
{
    static const char *const names[] = {
        [VALUE_UNKNOWN] = "an unknown value",
        [VALUE_NULL] = "null",
        [VALUE_BOOL] = "a bool",
        [VALUE_NUMBER] = "a number",
        [VALUE_STRING] = "a string",
        [VALUE_SECRET] = "a secret",
        [VALUE_BYTES] = "an array of bytes",
        [VALUE_ARRAY] = "an array",
        [VALUE_OBJECT] = "an object",
        [VALUE_FUNCTION] = "a function",
        [VALUE_HANDLE] = "a handle",
        [VALUE_SPLICE] = "a list of targets",
    };
    return v->kind == VALUE_HANDLE && v->what != NULL ? v->what : names[v->kind];
}

static int compare_key(const void *key, const void *element)
{
    return sv_cmp(*(const struct sv *)key, ((const struct alloy_member *)element)->key);
}

const struct alloy_value *alloy_member(const struct alloy_value *object, struct sv key)
{
    if (object->n_members == 0) {
        return NULL;
    }
    const struct alloy_member *m =
        bsearch(&key, object->members, object->n_members, sizeof(*m), compare_key);
    return m != NULL ? m->value : NULL;
}

/* ---- numbers --------------------------------------------------------------------------------- */

double alloy_number_float(struct alloy_number n)
{
    return n.kind == NUMBER_INT ? (double)n.i : n.kind == NUMBER_UINT ? (double)n.u : n.f;
}

static bool equal_numbers(struct alloy_number a, struct alloy_number b)
{
    if (a.kind == NUMBER_FLOAT || b.kind == NUMBER_FLOAT) {
        double x = alloy_number_float(a);
        double y = alloy_number_float(b);
        return x >= y && x <= y;
    }
    return a.kind == b.kind && a.u == b.u;
}

/* Copies the digits of a number in the form "d.ddde+XX". Returns their number. */
static int take_digits(const char *text, const char *end, char *digits)
{
    int n = 0;
    for (const char *p = text; p < end; p++) {
        if (*p != '.') {
            digits[n++] = *p;
        }
    }
    return n;
}

/* Appends the shortest decimal digits that read back as the same value, without an exponent. */
static bool put_float(double value, struct buf *out)
{
    char shortest[40];
    char digits[24];
    int precision = 0;
    do {
        snprintf(shortest, sizeof(shortest), "%.*e", precision, fabs(value));
    } while (precision++ < 17 && strtod(shortest, NULL) - fabs(value) != 0);
    const char *e = strchr(shortest, 'e');
    if (e == NULL) {
        return buf_puts(out, shortest); /* not finite */
    }
    int n = take_digits(shortest, e, digits);
    int point = (int)strtol(e + 1, NULL, 10) + 1; /* digits before the point */
    buf_puts(out, value < 0 ? "-" : "");
    buf_puts(out, point <= 0 ? "0" : "");
    for (int i = point < 0 ? point : 0; i < n || i < point; i++) {
        buf_puts(out, i == point ? "." : "");
        buf_putc(out, i >= 0 && i < n ? digits[i] : '0');
    }
    return buf_ok(out);
}

bool alloy_number_put(struct alloy_number n, struct buf *out)
{
    switch (n.kind) {
    case NUMBER_INT:
        return buf_printf(out, "%lld", (long long)n.i);
    case NUMBER_UINT:
        return buf_printf(out, "%llu", (unsigned long long)n.u);
    case NUMBER_FLOAT:
    default:
        return put_float(n.f, out);
    }
}

static struct alloy_number of_u64(uint64_t u)
{
    return u <= INT64_MAX ? (struct alloy_number){.kind = NUMBER_INT, .i = (int64_t)u}
                          : (struct alloy_number){.kind = NUMBER_UINT, .u = u};
}

/* Parses digits of a base from 8 to 10. False if there are other characters, no digits, or too
 * many. */
static bool parse_digits(struct sv text, unsigned base, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.n; i++) {
        unsigned digit = (unsigned)(unsigned char)text.p[i] - '0';
        if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value)) {
            return false;
        }
    }
    *ret_value = value;
    return text.n > 0;
}

/* Parses decimal text: digits, at most one point, and an optional exponent. */
static bool parse_float(struct sv text, struct alloy_number *ret_number)
{
    char copy[400];
    char *end;
    bool plain = text.n > 0 && text.n < sizeof(copy);
    for (size_t i = 0; plain && i < text.n; i++) {
        plain = strchr("0123456789.eE+-", text.p[i]) != NULL && text.p[i] != '\0';
    }
    if (!plain) {
        return false;
    }
    memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    double value = strtod(copy, &end);
    *ret_number = (struct alloy_number){.kind = NUMBER_FLOAT, .f = value};
    return *end == '\0' && end != copy && isfinite(value);
}

bool alloy_number_literal(struct sv text, struct alloy_number *ret_number)
{
    uint64_t u;
    bool octal = text.n > 1 && text.p[0] == '0';
    if ((octal && parse_digits(text, 8, &u)) || parse_digits(text, 10, &u)) {
        *ret_number = of_u64(u);
        return true;
    }
    return parse_float(text, ret_number);
}

bool alloy_number_parse(struct sv text, struct alloy_number *ret_number)
{
    uint64_t u;
    if (parse_digits(text, 10, &u)) {
        *ret_number = of_u64(u);
        return true;
    }
    if (text.n > 1 && text.p[0] == '-' && parse_digits(sv_skip(text, 1), 10, &u) &&
        u <= (uint64_t)INT64_MAX + 1) {
        *ret_number = (struct alloy_number){.kind = NUMBER_INT, .i = (int64_t)(0 - u)};
        return true;
    }
    bool fraction = memchr(text.p, '.', text.n) != NULL || memchr(text.p, 'e', text.n) != NULL ||
                    memchr(text.p, 'E', text.n) != NULL;
    return text.n > 0 && text.p[0] != '+' && fraction && parse_float(text, ret_number);
}

/* ---- equality -------------------------------------------------------------------------------- */

static bool is_text(const struct alloy_value *v)
{
    return v->kind == VALUE_STRING || v->kind == VALUE_SECRET;
}

static bool equal_members(const struct alloy_value *a, const struct alloy_value *b)
{
    bool equal = a->n_members == b->n_members;
    for (size_t i = 0; equal && i < a->n_members; i++) {
        equal = sv_eq(a->members[i].key, b->members[i].key) &&
                alloy_equal(a->members[i].value, b->members[i].value);
    }
    return equal;
}

bool alloy_equal(const struct alloy_value *a, const struct alloy_value *b)
{
    if (is_text(a) && is_text(b)) {
        return sv_eq(a->text, b->text);
    }
    if (a->kind != b->kind) {
        return false;
    }
    switch (a->kind) {
    case VALUE_NULL:
        return true;
    case VALUE_BOOL:
        return a->truth == b->truth;
    case VALUE_NUMBER:
        return equal_numbers(a->number, b->number);
    case VALUE_BYTES:
        return sv_eq(a->text, b->text);
    case VALUE_ARRAY:
    case VALUE_OBJECT:
        return equal_members(a, b);
    case VALUE_HANDLE:
        return a->handle == b->handle;
    default:
        return false; /* functions are never equal */
    }
}
