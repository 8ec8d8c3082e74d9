#include "alloy/eval.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "alloy/functions.h"
#include "base/err.h"
#include "config/content.h"

const struct alloy_value *alloy_mismatch(struct alloy_eval *ev, struct config_place place,
                                         const char *what, const struct alloy_value *v)
{
    if (v->kind == VALUE_UNKNOWN) {
        return v;
    }
    return alloy_fail(ev, place, "expected %s, got %s", what, alloy_what(v));
}

/* ---- literals -------------------------------------------------------------------------------- */

static const struct alloy_value *eval_number(struct alloy_eval *ev, const struct alloy_expr *e)
{
    struct alloy_number number;
    if (!alloy_number_literal(e->text, &number)) {
        return alloy_fail(ev, e->place, "expected a number in the range of a double, got %.*s",
                          SV_ARG(e->text));
    }
    return alloy_made(ev, e->place, alloy_number(ev->arena, number));
}

/* Evaluates the elements of an array or the fields of an object. An unknown one does not make the
 * others unknown. */
static const struct alloy_value *eval_items(struct alloy_eval *ev, const struct alloy_expr *e)
{
    struct alloy_member *members = arena_array(ev->arena, e->n_items + 1, sizeof(*members));
    if (members == NULL) {
        return alloy_made(ev, e->place, NULL);
    }
    for (size_t i = 0; i < e->n_items; i++) {
        const struct alloy_item *item = &e->items[i];
        members[i] = (struct alloy_member){
            .key = item->key,
            .place = e->kind == EXPR_OBJECT ? item->key_place : item->value->place,
            .value = alloy_eval(ev, item->value),
        };
    }
    return alloy_made(ev, e->place,
                      e->kind == EXPR_OBJECT ? alloy_object(ev->arena, members, e->n_items)
                                             : alloy_array(ev->arena, members, e->n_items));
}

/* ---- names, fields, indices ------------------------------------------------------------------ */

/* Fills in the chain of names that ends at e; false if it contains anything but names. */
static bool chain_of(const struct alloy_expr *e, struct alloy_chain *chain)
{
    const struct alloy_expr *links[ALLOY_CHAIN_NAMES_MAX];
    size_t n = 0;
    for (; e->kind == EXPR_FIELD && n < ALLOY_CHAIN_NAMES_MAX; e = e->left) {
        links[n++] = e;
    }
    if (e->kind != EXPR_NAME || n == ALLOY_CHAIN_NAMES_MAX) {
        return false;
    }
    links[n++] = e;
    chain->n = n;
    chain->source = links[0]->source;
    for (size_t i = 0; i < n; i++) {
        chain->names[i] = links[n - 1 - i]->text;
        chain->places[i] = links[n - 1 - i]->at;
    }
    return true;
}

/* Returns the content for one value of a Secret or a ConfigMap. The running process reads it, not
 * the loader. */
static const struct alloy_value *content_of(struct alloy_eval *ev, const struct alloy_value *data,
                                            struct sv key, struct config_place place)
{
    struct content_name name;
    const char *file = arena_printf(ev->arena, "%s/%.*s", data->holder, SV_ARG(key));
    struct alloy_value *v = alloy_value_new(ev->arena, VALUE_HANDLE);
    if (file == NULL || v == NULL) {
        return alloy_made(ev, place, NULL);
    }
    if (!content_name_parse(sv_from(file), &name)) {
        return alloy_fail(ev, place,
                          "expected a key of letters, digits, \"-\", \"_\" and \".\", got "
                          "\"%.*s\"",
                          SV_ARG(key));
    }
    v->file = file;
    v->what =
        arena_printf(ev->arena,
                     "a value of the %s %.*s/%.*s, which is read while running, and only for "
                     "user names, passwords, tokens, certificates and keys; mount it as a "
                     "file and use local.file",
                     content_kind_title(name.kind), SV_ARG(name.namespace), SV_ARG(name.object));
    return alloy_made(ev, place, v->what != NULL ? v : NULL);
}

static const struct alloy_value *field(struct alloy_eval *ev, const struct alloy_value *object,
                                       struct sv name, struct config_place place)
{
    if (object->kind == VALUE_UNKNOWN || object->opaque) {
        return object;
    }
    if (object->holder != NULL) {
        return content_of(ev, object, name, place);
    }
    if (object->kind != VALUE_OBJECT) {
        return alloy_fail(ev, place, "no field \"%.*s\" in %s", SV_ARG(name), alloy_what(object));
    }
    const struct alloy_value *v = alloy_member(object, name);
    return v != NULL ? v : alloy_fail(ev, place, "the object has no field \"%.*s\"", SV_ARG(name));
}

static const struct alloy_value *eval_chain(struct alloy_eval *ev, const struct alloy_chain *chain)
{
    size_t used = 0;
    const struct alloy_value *v = ev->resolve(ev->arg, chain, &used);
    if (v == NULL) {
        v = alloy_library(ev, chain, &used);
    }
    for (size_t i = used; i < chain->n; i++) {
        v = field(ev, v, chain->names[i], chain->places[i]);
    }
    return v;
}

static const struct alloy_value *eval_name(struct alloy_eval *ev, const struct alloy_expr *e)
{
    struct alloy_chain chain;
    if (chain_of(e, &chain)) {
        return eval_chain(ev, &chain);
    }
    return field(ev, alloy_eval(ev, e->left), e->text, e->at);
}

static const struct alloy_value *index_array(struct alloy_eval *ev, const struct alloy_value *array,
                                             const struct alloy_value *index,
                                             struct config_place place)
{
    if (array->open) {
        return alloy_fail(ev, place,
                          "an index of discovered targets is not supported: the targets change "
                          "while profpull runs");
    }
    if (index->kind != VALUE_NUMBER) {
        return alloy_mismatch(ev, place, "a number as index", index);
    }
    double at = trunc(alloy_number_float(index->number));
    if (!(at >= 0 && at < (double)array->n_members)) {
        return alloy_fail(ev, place, "index %.0f is out of range of an array of %zu", at,
                          array->n_members);
    }
    return array->members[(size_t)at].value;
}

static const struct alloy_value *eval_index(struct alloy_eval *ev, const struct alloy_expr *e)
{
    const struct alloy_value *v = alloy_eval(ev, e->left);
    const struct alloy_value *index = alloy_eval(ev, e->right);
    if (v->kind == VALUE_UNKNOWN || index->kind == VALUE_UNKNOWN) {
        return &alloy_unknown;
    }
    if (v->opaque) {
        return v;
    }
    if (v->kind == VALUE_ARRAY) {
        return index_array(ev, v, index, e->right->place);
    }
    if (v->kind != VALUE_OBJECT && v->holder == NULL) {
        return alloy_mismatch(ev, e->left->place, "an array or an object before \"[\"", v);
    }
    if (index->kind != VALUE_STRING) {
        return alloy_mismatch(ev, e->right->place, "a string as key", index);
    }
    if (v->holder != NULL) {
        return content_of(ev, v, index->text, e->right->place);
    }
    const struct alloy_value *member = alloy_member(v, index->text);
    return member != NULL ? member : &alloy_null;
}

/* ---- operators ------------------------------------------------------------------------------- */

static bool both(const struct alloy_value *a, const struct alloy_value *b,
                 enum alloy_value_kind kind)
{
    return a->kind == kind && b->kind == kind;
}

static int64_t power(int64_t base, int64_t exponent)
{
    /* Overflows wrap, as with the other operators. A negative exponent gives the base, as Alloy's
     * repeated multiplication does. */
    uint64_t result = 1;
    uint64_t factor = (uint64_t)base;
    if (exponent < 0) {
        return base;
    }
    for (; exponent > 0; exponent >>= 1) {
        if ((exponent & 1) != 0) {
            result *= factor;
        }
        factor *= factor;
    }
    return (int64_t)result;
}

static double calculate_floats(enum alloy_token_kind op, double a, double b)
{
    switch (op) {
    case TOKEN_ADD:
        return a + b;
    case TOKEN_SUB:
        return a - b;
    case TOKEN_MUL:
        return a * b;
    case TOKEN_DIV:
        return a / b;
    case TOKEN_MOD:
        return fmod(a, b);
    case TOKEN_POW:
    default:
        return pow(a, b);
    }
}

/* Computes an operation on integers. Overflows wrap. For a division, b must not be 0. */
static int64_t calculate_ints(enum alloy_token_kind op, int64_t a, int64_t b)
{
    switch (op) {
    case TOKEN_ADD:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case TOKEN_SUB:
        return (int64_t)((uint64_t)a - (uint64_t)b);
    case TOKEN_MUL:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case TOKEN_DIV:
        return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
    case TOKEN_MOD:
        return b == -1 ? 0 : a % b;
    case TOKEN_POW:
    default:
        return power(a, b);
    }
}

static uint64_t calculate_uints(enum alloy_token_kind op, uint64_t a, uint64_t b)
{
    switch (op) {
    case TOKEN_DIV:
        return a / b;
    case TOKEN_MOD:
        return a % b;
    default:
        return (uint64_t)calculate_ints(op, (int64_t)a, (int64_t)b);
    }
}

static const struct alloy_value *calculate(struct alloy_eval *ev, const struct alloy_expr *e,
                                           const struct alloy_value *left,
                                           const struct alloy_value *right)
{
    struct alloy_number a = left->number;
    struct alloy_number b = right->number;
    struct alloy_number result = {.kind = NUMBER_INT};
    bool divides = e->op == TOKEN_DIV || e->op == TOKEN_MOD;
    if (divides && !(fabs(alloy_number_float(b)) > 0)) {
        return alloy_fail(ev, e->right->place, "a division by zero");
    }
    if (a.kind == NUMBER_FLOAT || b.kind == NUMBER_FLOAT) {
        result.kind = NUMBER_FLOAT;
        result.f = calculate_floats(e->op, alloy_number_float(a), alloy_number_float(b));
        if (!isfinite(result.f)) {
            return alloy_fail(ev, e->at, "the result is not a finite number");
        }
    } else if (a.kind == NUMBER_UINT || b.kind == NUMBER_UINT) {
        result.kind = NUMBER_UINT;
        result.u = calculate_uints(e->op, a.u, b.u);
        result.kind = result.u <= INT64_MAX ? NUMBER_INT : NUMBER_UINT;
    } else {
        result.i = calculate_ints(e->op, a.i, b.i);
    }
    return alloy_made(ev, e->place, alloy_number(ev->arena, result));
}

static bool is_text(const struct alloy_value *v)
{
    return v->kind == VALUE_STRING || v->kind == VALUE_SECRET;
}

/* Appends a string as YAML writes it; "${" in a text without a form is escaped. */
static void put_form(const struct alloy_value *v, struct buf *out)
{
    if (v->form.p != NULL) {
        buf_append(out, v->form.p, v->form.n);
        return;
    }
    for (size_t i = 0; i < v->text.n; i++) {
        if (v->text.p[i] == '$' && i + 1 < v->text.n && v->text.p[i + 1] == '{') {
            buf_putc(out, '$');
        }
        buf_putc(out, v->text.p[i]);
    }
}

static struct sv keep(struct arena *arena, const struct buf *b)
{
    char *copy = buf_ok(b) ? arena_strndup(arena, b->len > 0 ? b->data : "", b->len) : NULL;
    return (struct sv){copy, copy != NULL ? b->len : 0};
}

static const struct alloy_value *join_strings(struct alloy_eval *ev, const struct alloy_expr *e,
                                              const struct alloy_value *a,
                                              const struct alloy_value *b)
{
    struct buf text;
    struct buf form;
    bool secret = a->kind == VALUE_SECRET || b->kind == VALUE_SECRET;
    struct alloy_value *v = alloy_value_new(ev->arena, secret ? VALUE_SECRET : VALUE_STRING);
    if (v == NULL) {
        return alloy_made(ev, e->place, NULL);
    }
    buf_init(&text, ALLOY_STRING_MAX);
    buf_init(&form, 2 * ALLOY_STRING_MAX);
    buf_append(&text, a->text.p, a->text.n);
    buf_append(&text, b->text.p, b->text.n);
    v->text = keep(ev->arena, &text);
    if (a->form.p != NULL || b->form.p != NULL) {
        put_form(a, &form);
        put_form(b, &form);
        v->form = keep(ev->arena, &form);
    }
    bool fits = buf_ok(&text) && buf_ok(&form);
    buf_done(&text);
    buf_done(&form);
    if (!fits) {
        return alloy_fail(ev, e->place, "a string of more than 1 MiB");
    }
    return alloy_made(ev, e->place, v->text.p != NULL ? v : NULL);
}

static const struct alloy_value *arithmetic(struct alloy_eval *ev, const struct alloy_expr *e,
                                            const struct alloy_value *a,
                                            const struct alloy_value *b)
{
    if (e->op == TOKEN_ADD && is_text(a)) {
        return is_text(b) ? join_strings(ev, e, a, b)
                          : alloy_mismatch(ev, e->right->place, "a string after \"+\"", b);
    }
    if (a->kind != VALUE_NUMBER) {
        return alloy_mismatch(ev, e->left->place,
                              e->op == TOKEN_ADD ? "a number or a string" : "a number", a);
    }
    if (b->kind != VALUE_NUMBER) {
        return alloy_mismatch(ev, e->right->place, "a number", b);
    }
    return calculate(ev, e, a, b);
}

static const struct alloy_value *logic(struct alloy_eval *ev, const struct alloy_expr *e,
                                       const struct alloy_value *a, const struct alloy_value *b)
{
    if (!both(a, b, VALUE_BOOL)) {
        bool left = a->kind != VALUE_BOOL;
        return alloy_mismatch(ev, left ? e->left->place : e->right->place, "true or false",
                              left ? a : b);
    }
    bool truth = e->op == TOKEN_AND ? a->truth && b->truth : a->truth || b->truth;
    return alloy_made(ev, e->place, alloy_bool(ev->arena, truth));
}

static const struct alloy_value *equality(struct alloy_eval *ev, const struct alloy_expr *e,
                                          const struct alloy_value *a, const struct alloy_value *b)
{
    if (a->open || b->open) {
        return alloy_fail(ev, e->place,
                          "comparing discovered targets is not supported: the targets change while "
                          "profpull runs");
    }
    return alloy_made(ev, e->place,
                      alloy_bool(ev->arena, alloy_equal(a, b) == (e->op == TOKEN_EQ)));
}

/* Returns -1, 0 or 1 as a is below, equal to or above b. */
static int compare_numbers(struct alloy_number a, struct alloy_number b)
{
    if (a.kind == NUMBER_INT && b.kind == NUMBER_INT) {
        return (a.i > b.i) - (a.i < b.i);
    }
    if (a.kind == NUMBER_UINT && b.kind == NUMBER_UINT) {
        return (a.u > b.u) - (a.u < b.u);
    }
    double x = alloy_number_float(a);
    double y = alloy_number_float(b);
    return (x > y) - (x < y);
}

static const struct alloy_value *comparison(struct alloy_eval *ev, const struct alloy_expr *e,
                                            const struct alloy_value *a,
                                            const struct alloy_value *b)
{
    int order;
    if (both(a, b, VALUE_NUMBER)) {
        order = compare_numbers(a->number, b->number);
    } else if (both(a, b, VALUE_STRING)) {
        order = sv_cmp(a->text, b->text);
    } else {
        return alloy_fail(ev, e->place, "expected two numbers or two strings, got %s and %s",
                          alloy_what(a), alloy_what(b));
    }
    bool truth = e->op == TOKEN_LT   ? order < 0
                 : e->op == TOKEN_LE ? order <= 0
                 : e->op == TOKEN_GT ? order > 0
                                     : order >= 0;
    return alloy_made(ev, e->place, alloy_bool(ev->arena, truth));
}

static const struct alloy_value *eval_binary(struct alloy_eval *ev, const struct alloy_expr *e)
{
    /* Both sides are always evaluated: Alloy's && and || have no short circuit. */
    const struct alloy_value *a = alloy_eval(ev, e->left);
    const struct alloy_value *b = alloy_eval(ev, e->right);
    if (a->kind == VALUE_UNKNOWN || b->kind == VALUE_UNKNOWN) {
        return &alloy_unknown;
    }
    switch (e->op) {
    case TOKEN_OR:
    case TOKEN_AND:
        return logic(ev, e, a, b);
    case TOKEN_EQ:
    case TOKEN_NE:
        return equality(ev, e, a, b);
    case TOKEN_LT:
    case TOKEN_LE:
    case TOKEN_GT:
    case TOKEN_GE:
        return comparison(ev, e, a, b);
    default:
        return arithmetic(ev, e, a, b);
    }
}

static const struct alloy_value *eval_unary(struct alloy_eval *ev, const struct alloy_expr *e)
{
    const struct alloy_value *v = alloy_eval(ev, e->left);
    if (e->op == TOKEN_NOT) {
        return v->kind == VALUE_BOOL ? alloy_made(ev, e->place, alloy_bool(ev->arena, !v->truth))
                                     : alloy_mismatch(ev, e->left->place, "true or false", v);
    }
    if (v->kind != VALUE_NUMBER) {
        return alloy_mismatch(ev, e->left->place, "a number", v);
    }
    struct alloy_number n = v->number;
    if (n.kind == NUMBER_FLOAT) {
        n.f = -n.f;
    } else {
        n = (struct alloy_number){.kind = NUMBER_INT, .i = (int64_t)(0 - n.u)};
    }
    return alloy_made(ev, e->place, alloy_number(ev->arena, n));
}

/* ---- calls ----------------------------------------------------------------------------------- */

static const struct alloy_value *eval_call(struct alloy_eval *ev, const struct alloy_expr *e)
{
    const struct alloy_value *function = alloy_eval(ev, e->left);
    struct alloy_call call = {.ev = ev, .expr = e, .n = e->n_items};
    call.args = arena_array(ev->arena, e->n_items + 1, sizeof(struct alloy_member));
    if (call.args == NULL) {
        return alloy_made(ev, e->place, NULL);
    }
    bool known = true;
    for (size_t i = 0; i < e->n_items; i++) {
        const struct alloy_expr *arg = e->items[i].value;
        call.args[i] = (struct alloy_member){.place = arg->place, .value = alloy_eval(ev, arg)};
        known = known && call.args[i].value->kind != VALUE_UNKNOWN;
    }
    if (function->kind != VALUE_FUNCTION) {
        return alloy_mismatch(ev, e->left->place, "a function before \"(\"", function);
    }
    return known ? alloy_call_function(&call, function->function) : &alloy_unknown;
}

const struct alloy_value *alloy_eval(struct alloy_eval *ev, const struct alloy_expr *e)
{
    if (ev->exhausted) {
        return &alloy_unknown;
    }
    switch (e->kind) {
    case EXPR_NULL:
        return &alloy_null;
    case EXPR_BOOL:
        return alloy_made(ev, e->place, alloy_bool(ev->arena, e->truth));
    case EXPR_NUMBER:
    case EXPR_FLOAT:
        return eval_number(ev, e);
    case EXPR_STRING:
        return alloy_made(ev, e->place, alloy_string(ev->arena, e->text));
    case EXPR_ARRAY:
    case EXPR_OBJECT:
        return eval_items(ev, e);
    case EXPR_NAME:
    case EXPR_FIELD:
        return eval_name(ev, e);
    case EXPR_UNARY:
        return eval_unary(ev, e);
    case EXPR_BINARY:
        return eval_binary(ev, e);
    case EXPR_INDEX:
        return eval_index(ev, e);
    case EXPR_CALL:
    default:
        return eval_call(ev, e);
    }
}
