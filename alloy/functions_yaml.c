/* Converts YAML to values, by the types of YAML 1.2 with the octal numbers of 1.1, as Alloy
 * does. */
#include <string.h>

#include "alloy/functions.h"
#include "base/ascii.h"
#include "config/yaml.h"

static const struct alloy_value *import_node(const struct alloy_call *call,
                                             const struct yaml_node *n);

static bool parse_digits(struct sv digits, unsigned base, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (size_t i = 0; i < digits.n; i++) {
        int digit = ascii_hex_value(digits.p[i]);
        if (digit < 0 || digit >= (int)base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, (unsigned)digit, &value)) {
            return false;
        }
    }
    *ret_value = value;
    return digits.n > 0 && value <= INT64_MAX;
}

/* Parses 0o17, 0x1f, 0b11 and 017; false if the text has none of these forms. */
static bool parse_based(struct sv text, struct alloy_number *ret_number)
{
    static const struct {
        const char *prefix;
        unsigned base;
    } bases[] = {{"0x", 16}, {"0o", 8}, {"0b", 2}, {"0", 8}};
    for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
        struct sv prefix = sv_from(bases[i].prefix);
        uint64_t value;
        if (sv_starts_with(text, prefix) &&
            parse_digits(sv_skip(text, prefix.n), bases[i].base, &value)) {
            *ret_number = (struct alloy_number){.kind = NUMBER_INT, .i = (int64_t)value};
            return true;
        }
    }
    return false;
}

static const struct alloy_value *import_scalar(const struct alloy_call *call,
                                               const struct yaml_node *n)
{
    static const char *const yes[] = {"true", "True", "TRUE"};
    static const char *const no[] = {"false", "False", "FALSE"};
    struct arena *arena = call->ev->arena;
    struct alloy_number number;
    if (yaml_is_null(n)) {
        return &alloy_null;
    }
    if (n->plain && (sv_in(n->text, yes, 3) || sv_in(n->text, no, 3))) {
        return alloy_result(call, alloy_bool(arena, sv_in(n->text, yes, 3)));
    }
    struct sv digits = sv_starts_with(n->text, SV("+")) ? sv_skip(n->text, 1) : n->text;
    if (n->plain && digits.n > 0 &&
        (parse_based(digits, &number) || alloy_number_parse(digits, &number))) {
        return alloy_result(call, alloy_number(arena, number));
    }
    return alloy_result(call, alloy_string(arena, n->text));
}

static const struct alloy_value *import_items(const struct alloy_call *call,
                                              const struct yaml_node *n)
{
    struct arena *arena = call->ev->arena;
    bool mapping = n->kind == YAML_MAPPING;
    struct alloy_member *members = arena_array(arena, n->n_items + 1, sizeof(*members));
    if (members == NULL) {
        return alloy_result(call, NULL);
    }
    for (size_t i = 0; i < n->n_items; i++) {
        const struct yaml_item *item = &n->items[i];
        if (item->duplicate_of != NULL || (mapping && item->key->kind != YAML_SCALAR)) {
            return alloy_call_fail(call, 0, "the key at %d:%d of the text %s", item->key->line,
                                   item->key->column,
                                   item->duplicate_of != NULL ? "occurs twice" : "is no text");
        }
        members[i].key = mapping ? item->key->text : SV("");
        members[i].value = import_node(call, item->value);
    }
    return alloy_result(call, mapping ? alloy_object(arena, members, n->n_items)
                                      : alloy_array(arena, members, n->n_items));
}

static const struct alloy_value *import_node(const struct alloy_call *call,
                                             const struct yaml_node *n)
{
    if (n->problem != NULL) {
        return alloy_call_fail(call, 0, "at %d:%d of the text: %s", n->line, n->column, n->problem);
    }
    return n->kind == YAML_SCALAR ? import_scalar(call, n) : import_items(call, n);
}

const struct alloy_value *alloy_from_yaml(const struct alloy_call *call)
{
    struct sv text;
    const struct yaml_node *root;
    struct yaml_place place;
    struct err err = ERR_INIT;
    if (!alloy_arg_text(call, 0, &text)) {
        return &alloy_unknown;
    }
    if (!yaml_parse(text, call->ev->arena, &root, &place, &err)) {
        return alloy_call_fail(call, 0, "expected YAML, got a mistake at %d:%d of the text",
                               place.line, place.column);
    }
    return root != NULL ? import_node(call, root) : &alloy_null;
}
