/* Arguments, results and errors of a call, for the files of functions. */
#include <stdarg.h>
#include <stdio.h>

#include "alloy/functions.h"

#define MESSAGE_MAX 1024

const struct alloy_value *alloy_call_fail(const struct alloy_call *call, size_t arg,
                                          const char *fmt, ...)
{
    char message[MESSAGE_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    struct config_place place = arg < call->n ? call->args[arg].place : call->expr->place;
    return alloy_fail(call->ev, place, "%s: %s", call->name, message);
}

bool alloy_arg_mismatch(const struct alloy_call *call, size_t i, const char *what)
{
    (void)alloy_call_fail(call, i, "expected %s, got %s", what, alloy_what(call->args[i].value));
    return false;
}

bool alloy_arg_text(const struct alloy_call *call, size_t i, struct sv *ret_text)
{
    const struct alloy_value *v = call->args[i].value;
    struct buf number;
    bool ok = true;
    switch (v->kind) {
    case VALUE_STRING:
    case VALUE_BYTES:
        *ret_text = v->text;
        return true;
    case VALUE_NULL:
        *ret_text = SV("");
        return true;
    case VALUE_NUMBER:
        buf_init(&number, ALLOY_STRING_MAX);
        ok = alloy_number_put(v->number, &number);
        const char *copy = ok ? arena_strndup(call->ev->arena, number.data, number.len) : NULL;
        *ret_text = (struct sv){copy, copy != NULL ? number.len : 0};
        buf_done(&number);
        return copy != NULL || alloy_result(call, NULL) == NULL;
    default:
        return alloy_arg_mismatch(call, i, "a string");
    }
}

bool alloy_arg_array(const struct alloy_call *call, size_t i, const struct alloy_value **ret_array)
{
    const struct alloy_value *v = call->args[i].value;
    *ret_array = v;
    if (v->kind == VALUE_ARRAY && v->open) {
        (void)alloy_call_fail(
            call, i, "discovered targets are not supported here: they change while profpull runs");
        return false;
    }
    return v->kind == VALUE_ARRAY || alloy_arg_mismatch(call, i, "an array");
}

const struct alloy_value *alloy_result(const struct alloy_call *call, const struct alloy_value *v)
{
    return alloy_made(call->ev, call->expr->place, v);
}

const struct alloy_value *alloy_text_result(const struct alloy_call *call, struct buf *out)
{
    struct arena *arena = call->ev->arena;
    bool fits = buf_ok(out);
    size_t n = out->len;
    char *copy = fits ? arena_strndup(arena, n > 0 ? out->data : "", n) : NULL;
    buf_done(out);
    if (!fits) {
        return alloy_call_fail(call, call->n, "a string of more than 1 MiB");
    }
    return alloy_result(call, copy != NULL ? alloy_string(arena, (struct sv){copy, n}) : NULL);
}

bool alloy_start_list(const struct alloy_call *call, size_t size, struct alloy_list *list)
{
    *list = (struct alloy_list){.at = arena_array(call->ev->arena, size + 1, sizeof(*list->at))};
    return list->at != NULL;
}

const struct alloy_value *alloy_list_result(const struct alloy_call *call,
                                            const struct alloy_list *list)
{
    return alloy_result(call, alloy_array(call->ev->arena, list->at, list->n));
}
