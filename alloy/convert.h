/* Converts values of Alloy's language to the type of an attribute. Each function returns false
 * after it has reported `expected X, got Y`. For an unknown value it returns false without a
 * report. */
#ifndef PROFPULL_ALLOY_CONVERT_H
#define PROFPULL_ALLOY_CONVERT_H

#include "alloy/eval.h"

/* Accepts strings, numbers and bytes; null is "". The result keeps the form and the file of the
 * value. */
bool alloy_as_string(struct alloy_eval *ev, struct config_place place, const struct alloy_value *v,
                     const struct alloy_value **ret_string);
/* Accepts strings and secrets; null is "". */
bool alloy_as_secret(struct alloy_eval *ev, struct config_place place, const struct alloy_value *v,
                     const struct alloy_value **ret_string);
/* Accepts numbers, and strings that hold one. A float is truncated. */
bool alloy_as_int(struct alloy_eval *ev, struct config_place place, const struct alloy_value *v,
                  int64_t *ret_value);
/* Accepts bools; null is false. */
bool alloy_as_bool(struct alloy_eval *ev, struct config_place place, const struct alloy_value *v,
                   bool *ret_value);
/* Accepts a string in Go's form ("1h30m", "1.5h"); null is 0. The result is in nanoseconds. */
bool alloy_as_duration(struct alloy_eval *ev, struct config_place place,
                       const struct alloy_value *v, int64_t *ret_ns);
/* Accept an array or an object, whose elements the caller converts; null is an empty one. */
bool alloy_as_array(struct alloy_eval *ev, struct config_place place, const struct alloy_value *v,
                    const struct alloy_value **ret_array);
bool alloy_as_object(struct alloy_eval *ev, struct config_place place, const struct alloy_value *v,
                     const struct alloy_value **ret_object);

#endif
