/* The standard library of Alloy's language: functions by their present and their old names, and
 * constants. */
#ifndef PROFPULL_ALLOY_FUNCTIONS_H
#define PROFPULL_ALLOY_FUNCTIONS_H

#include "alloy/eval.h"

/* A call with its evaluated arguments, none of which is unknown. */
struct alloy_call {
    struct alloy_eval *ev;
    const struct alloy_expr *expr;
    struct alloy_member *args;
    size_t n;
    const char *name; /* name of the function, for messages */
};

struct alloy_function {
    const char *name;
    const char *old_name; /* NULL if it had none */
    size_t min_args;
    size_t max_args;
    const struct alloy_value *(*run)(const struct alloy_call *call);
};

/* Returns the part of the library that the first names of a chain mean, and in *ret_used their
 * number. Reports an error, with a suggestion, if they mean nothing. Never NULL. */
const struct alloy_value *alloy_library(struct alloy_eval *ev, const struct alloy_chain *chain,
                                        size_t *ret_used);
/* Checks the number of arguments and calls. */
const struct alloy_value *alloy_call_function(struct alloy_call *call,
                                              const struct alloy_function *function);

/* ---- for the files of functions (call.c) ----------------------------------------------------- */

#define ALLOY_ARGS_MAX SIZE_MAX

/* Reports that an argument is not what was expected; returns false. */
bool alloy_arg_mismatch(const struct alloy_call *call, size_t i, const char *what);
/* Returns an argument as a string; false after a report. A secret is not accepted as a string. */
bool alloy_arg_text(const struct alloy_call *call, size_t i, struct sv *ret_text);
/* Returns an argument as an array without unknown elements; false after a report. */
bool alloy_arg_array(const struct alloy_call *call, size_t i, const struct alloy_value **ret_array);
/* Returns a string with the contents of out, and frees out. */
const struct alloy_value *alloy_text_result(const struct alloy_call *call, struct buf *out);
const struct alloy_value *alloy_result(const struct alloy_call *call, const struct alloy_value *v);
const struct alloy_value *alloy_call_fail(const struct alloy_call *call, size_t arg,
                                          const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* An array that is being filled; its final size is known at the start. */
struct alloy_list {
    struct alloy_member *at;
    size_t n;
};

/* Allocates the array; false if memory ran out. */
bool alloy_start_list(const struct alloy_call *call, size_t size, struct alloy_list *list);
const struct alloy_value *alloy_list_result(const struct alloy_call *call,
                                            const struct alloy_list *list);

/* functions_text.c */
const struct alloy_value *alloy_join(const struct alloy_call *call);
const struct alloy_value *alloy_split(const struct alloy_call *call);
const struct alloy_value *alloy_replace(const struct alloy_call *call);
const struct alloy_value *alloy_to_lower(const struct alloy_call *call);
const struct alloy_value *alloy_to_upper(const struct alloy_call *call);
const struct alloy_value *alloy_trim(const struct alloy_call *call);
const struct alloy_value *alloy_trim_space(const struct alloy_call *call);
const struct alloy_value *alloy_trim_prefix(const struct alloy_call *call);
const struct alloy_value *alloy_trim_suffix(const struct alloy_call *call);
/* functions_encoding.c */
const struct alloy_value *alloy_from_base64(const struct alloy_call *call);
const struct alloy_value *alloy_from_url_base64(const struct alloy_call *call);
const struct alloy_value *alloy_to_base64(const struct alloy_call *call);
const struct alloy_value *alloy_to_url_base64(const struct alloy_call *call);
const struct alloy_value *alloy_url_encode(const struct alloy_call *call);
const struct alloy_value *alloy_url_decode(const struct alloy_call *call);
/* functions_json.c */
const struct alloy_value *alloy_json_path(const struct alloy_call *call);
const struct alloy_value *alloy_from_json(const struct alloy_call *call);
const struct alloy_value *alloy_to_json(const struct alloy_call *call);
/* functions_yaml.c */
const struct alloy_value *alloy_from_yaml(const struct alloy_call *call);
/* functions_format.c */
const struct alloy_value *alloy_format(const struct alloy_call *call);

#endif
