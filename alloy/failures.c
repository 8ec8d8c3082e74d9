/* Errors and limits of an evaluation: for the evaluator and for the functions that it calls. */
#include <stdarg.h>
#include <stdio.h>

#include "alloy/eval.h"

#define MESSAGE_MAX 1024

const struct alloy_value *alloy_fail(struct alloy_eval *ev, struct config_place place,
                                     const char *fmt, ...)
{
    char message[MESSAGE_MAX];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    if (ev->suffix != NULL && n >= 0 && (size_t)n < sizeof(message)) {
        snprintf(message + n, sizeof(message) - (size_t)n, "%s", ev->suffix);
    }
    ev->n_failures++;
    if (!ev->exhausted) {
        config_errors_add_in(ev->errors, place.file, place.line, place.column,
                             ev->path != NULL ? ev->path : "", message);
    }
    return &alloy_unknown;
}

static const struct alloy_value *exhaust(struct alloy_eval *ev, struct config_place place,
                                         const char *why)
{
    alloy_fail(ev, place, "%s", why);
    ev->exhausted = true;
    return &alloy_unknown;
}

const struct alloy_value *alloy_too_many_values(struct alloy_eval *ev, struct config_place place)
{
    return exhaust(ev, place, "the configuration makes more than 200000 values");
}

const struct alloy_value *alloy_made(struct alloy_eval *ev, struct config_place place,
                                     const struct alloy_value *v)
{
    if (v == NULL) {
        return exhaust(ev, place, "the configuration needs too much memory");
    }
    ev->n_values += 1 + v->n_members;
    if (ev->n_values > ALLOY_VALUES_MAX) {
        return alloy_too_many_values(ev, place);
    }
    return v;
}
