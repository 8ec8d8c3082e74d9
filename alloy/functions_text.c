#include <string.h>

#include "alloy/functions.h"
#include "base/unicode.h"
#include "base/utf8.h"

const struct alloy_value *alloy_join(const struct alloy_call *call)
{
    const struct alloy_value *array;
    struct sv separator;
    struct buf out;
    if (!alloy_arg_array(call, 0, &array) || !alloy_arg_text(call, 1, &separator)) {
        return &alloy_unknown;
    }
    buf_init(&out, ALLOY_STRING_MAX);
    for (size_t i = 0; i < array->n_members; i++) {
        struct alloy_call element = *call;
        struct alloy_member arg = {.place = call->args[0].place, .value = array->members[i].value};
        struct sv text;
        element.args = &arg;
        element.n = 1;
        if (!alloy_arg_text(&element, 0, &text)) {
            buf_done(&out);
            return &alloy_unknown;
        }
        if (i > 0) {
            buf_append(&out, separator.p, separator.n);
        }
        buf_append(&out, text.p, text.n);
    }
    return alloy_text_result(call, &out);
}

/* Returns the offset of the next separator in v, or v.n. An empty separator matches after each
 * character. */
static size_t find(struct sv v, struct sv separator)
{
    if (separator.n == 0) {
        uint32_t rune;
        size_t n = v.n > 0 ? utf8_decode(v, &rune) : 0;
        return n == 0 && v.n > 0 ? 1 : n;
    }
    const char *at = v.n > 0 ? memmem(v.p, v.n, separator.p, separator.n) : NULL;
    return at != NULL ? (size_t)(at - v.p) : v.n;
}

const struct alloy_value *alloy_split(const struct alloy_call *call)
{
    struct sv text;
    struct sv separator;
    struct alloy_list list;
    if (!alloy_arg_text(call, 0, &text) || !alloy_arg_text(call, 1, &separator)) {
        return &alloy_unknown;
    }
    if (!alloy_start_list(call, text.n + 1, &list)) {
        return alloy_result(call, NULL);
    }
    bool more = separator.n > 0 || text.n > 0;
    while (more) {
        size_t n = find(text, separator);
        const struct alloy_value *part =
            alloy_result(call, alloy_string(call->ev->arena, (struct sv){text.p, n}));
        list.at[list.n++].value = part;
        more = n < text.n && part->kind != VALUE_UNKNOWN;
        text = sv_skip(text, n < text.n ? n + separator.n : n);
    }
    return alloy_list_result(call, &list);
}

const struct alloy_value *alloy_replace(const struct alloy_call *call)
{
    struct sv text;
    struct sv old;
    struct sv new;
    struct buf out;
    if (!alloy_arg_text(call, 0, &text) || !alloy_arg_text(call, 1, &old) ||
        !alloy_arg_text(call, 2, &new)) {
        return &alloy_unknown;
    }
    buf_init(&out, ALLOY_STRING_MAX);
    if (old.n == 0) { /* as in Go, an empty text matches before each character and at the end */
        buf_append(&out, new.p, new.n);
    }
    while (text.n > 0) {
        size_t n = find(text, old);
        buf_append(&out, text.p, n);
        if (n < text.n || old.n == 0) {
            buf_append(&out, new.p, new.n);
        }
        text = sv_skip(text, n < text.n ? n + old.n : n);
    }
    return alloy_text_result(call, &out);
}

static const struct alloy_value *in_case(const struct alloy_call *call, bool upper)
{
    struct sv text;
    struct buf out;
    struct buf valid;
    if (!alloy_arg_text(call, 0, &text)) {
        return &alloy_unknown;
    }
    buf_init(&out, ALLOY_STRING_MAX);
    buf_init(&valid, ALLOY_STRING_MAX);
    if (utf8_repair(text, &valid)) {
        append_in_case((struct sv){valid.data, valid.len}, upper, &out);
    }
    buf_done(&valid);
    return alloy_text_result(call, &out);
}

const struct alloy_value *alloy_to_lower(const struct alloy_call *call)
{
    return in_case(call, false);
}

const struct alloy_value *alloy_to_upper(const struct alloy_call *call)
{
    return in_case(call, true);
}

/* Returns a part of an argument as a string. */
static const struct alloy_value *part(const struct alloy_call *call, struct sv text)
{
    return alloy_result(call, alloy_string(call->ev->arena, text));
}

static bool has_rune(struct sv set, uint32_t rune)
{
    while (set.n > 0) {
        uint32_t member;
        size_t n = utf8_decode(set, &member);
        if (member == rune) {
            return true;
        }
        set = sv_skip(set, n == 0 ? 1 : n);
    }
    return false;
}

static bool is_space(uint32_t rune)
{
    return (rune >= 9 && rune <= 13) || rune == ' ' || rune == 0x85 || rune == 0xa0 ||
           rune == 0x1680 || (rune >= 0x2000 && rune <= 0x200a) || rune == 0x2028 ||
           rune == 0x2029 || rune == 0x202f || rune == 0x205f || rune == 0x3000;
}

/* Cuts the characters of the set, or white space if it is NULL, off both ends. */
static struct sv trim_runes(struct sv text, const struct sv *set)
{
    uint32_t rune;
    while (text.n > 0) {
        size_t n = utf8_decode(text, &rune);
        if (n == 0 || !(set != NULL ? has_rune(*set, rune) : is_space(rune))) {
            break;
        }
        text = sv_skip(text, n);
    }
    while (text.n > 0) {
        size_t n = 1;
        while (n < text.n && n < UTF8_BYTES_MAX &&
               ((unsigned char)text.p[text.n - n] & 0xc0) == 0x80) {
            n++;
        }
        size_t len = utf8_decode((struct sv){text.p + text.n - n, n}, &rune);
        if (len != n || !(set != NULL ? has_rune(*set, rune) : is_space(rune))) {
            break;
        }
        text.n -= n;
    }
    return text;
}

const struct alloy_value *alloy_trim(const struct alloy_call *call)
{
    struct sv text;
    struct sv set;
    if (!alloy_arg_text(call, 0, &text) || !alloy_arg_text(call, 1, &set)) {
        return &alloy_unknown;
    }
    return part(call, trim_runes(text, &set));
}

const struct alloy_value *alloy_trim_space(const struct alloy_call *call)
{
    struct sv text;
    const struct alloy_value *v = call->args[0].value;
    if (alloy_is_content(v)) {
        return v; /* the process that reads the content trims it */
    }
    if (!alloy_arg_text(call, 0, &text)) {
        return &alloy_unknown;
    }
    const struct alloy_value *result = part(call, trim_runes(text, NULL));
    if (v->file != NULL && result->kind == VALUE_STRING) {
        /* The trimmed string still counts as the content of the file, because keys for files trim
         * white space as well. */
        struct alloy_value *copy = alloy_value_new(call->ev->arena, VALUE_STRING);
        if (copy == NULL) {
            return alloy_result(call, NULL);
        }
        *copy = *result;
        copy->file = v->file;
        return alloy_result(call, copy);
    }
    return result;
}

const struct alloy_value *alloy_trim_prefix(const struct alloy_call *call)
{
    struct sv text;
    struct sv prefix;
    if (!alloy_arg_text(call, 0, &text) || !alloy_arg_text(call, 1, &prefix)) {
        return &alloy_unknown;
    }
    return part(call, sv_starts_with(text, prefix) ? sv_skip(text, prefix.n) : text);
}

const struct alloy_value *alloy_trim_suffix(const struct alloy_call *call)
{
    struct sv text;
    struct sv suffix;
    if (!alloy_arg_text(call, 0, &text) || !alloy_arg_text(call, 1, &suffix)) {
        return &alloy_unknown;
    }
    text.n -= sv_ends_with(text, suffix) ? suffix.n : 0;
    return part(call, text);
}
