/* Values of Alloy's language -> what an attribute wants. Each function returns false after it has
 * reported `expected X, got Y`, and false without a report for an unknown value. */
#ifndef PROFPULL_ALLOY_CONVERT_H
#define PROFPULL_ALLOY_CONVERT_H

#include "alloy/eval.h"

/* Strings, numbers, bytes; null is "". The result has the form and the file of the value. */
bool alloy_as_string(struct alloy_eval *ev, struct config_place place, const struct alloy_value *v,
                     const struct alloy_value **ret_string);
/* Strings and secrets; null is "". */
bool alloy_as_secret(struct alloy_eval *ev, struct config_place place, const struct alloy_value *v,
                     const struct alloy_value **ret_string);
/* Numbers, and strings that hold one. A float is truncated. */
bool alloy_as_int(struct alloy_eval *ev, struct config_place place, const struct alloy_value *v,
                  int64_t *ret_value);
/* null is false. */
bool alloy_as_bool(struct alloy_eval *ev, struct config_place place, const struct alloy_value *v,
                   bool *ret_value);
/* A string in Go's form ("1h30m", "1.5h"); null is 0. In nanoseconds. */
bool alloy_as_duration(struct alloy_eval *ev, struct config_place place,
                       const struct alloy_value *v, int64_t *ret_ns);
/* An array, whose elements are the caller's to convert; null is an empty one. */
bool alloy_as_array(struct alloy_eval *ev, struct config_place place, const struct alloy_value *v,
                    const struct alloy_value **ret_array);
bool alloy_as_object(struct alloy_eval *ev, struct config_place place, const struct alloy_value *v,
                     const struct alloy_value **ret_object);

#endif
