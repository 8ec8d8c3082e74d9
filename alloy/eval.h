/* Evaluates expressions of Alloy's language.
 *
 * Nothing is computed at run time: each expression is evaluated once. What an expression refers to
 * is found by a callback, for components, arguments and variables; functions and constants are
 * known here. Each error is reported where it arises, and its value is unknown from there on.
 */
#ifndef PROFPULL_ALLOY_EVAL_H
#define PROFPULL_ALLOY_EVAL_H

#include "alloy/syntax.h"
#include "alloy/value.h"

/* The values that one configuration may make, elements included. */
#define ALLOY_VALUES_MAX 200000
/* The longest chain of names that may refer to a component. */
#define ALLOY_CHAIN_NAMES_MAX 16

/* A name with the fields that follow it: a.b.c. */
struct alloy_chain {
    struct sv names[ALLOY_CHAIN_NAMES_MAX];
    struct config_place places[ALLOY_CHAIN_NAMES_MAX];
    size_t n;
    struct sv source; /* all of it */
};

struct alloy_eval {
    struct arena *arena;
    struct config_errors *errors;
    const char *(*env)(void *arg, const char *name); /* NULL for a variable that is not set */
    void *env_arg;
    const char *module_path; /* the directory of the file or module */
    /* Returns the value that the first names of a chain refer to, and in *ret_used their number.
     * NULL if they refer to nothing; &alloy_unknown after an error, which is reported. */
    const struct alloy_value *(*resolve)(void *arg, const struct alloy_chain *chain,
                                         size_t *ret_used);
    void *arg;
    const char *path;   /* of the attribute that is evaluated, for messages */
    const char *suffix; /* of errors: where an instance of a module is; or NULL */
    size_t n_values;
    size_t n_failures; /* alloy_fail() calls */
    bool exhausted;    /* a limit was reported */
};

/* Never NULL. */
const struct alloy_value *alloy_eval(struct alloy_eval *ev, const struct alloy_expr *e);

/* ---- for functions and conversions ----------------------------------------------------------- */

/* Reports an error and returns &alloy_unknown. */
const struct alloy_value *alloy_fail(struct alloy_eval *ev, struct config_place place,
                                     const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Reports that ALLOY_VALUES_MAX is exceeded, after which nothing more is evaluated. */
const struct alloy_value *alloy_too_many_values(struct alloy_eval *ev, struct config_place place);
/* The value, which counts against the limit; if it is NULL, reports that memory ran out. */
const struct alloy_value *alloy_made(struct alloy_eval *ev, struct config_place place,
                                     const struct alloy_value *v);
/* `expected WHAT, got a number`; silent if v is unknown. The value itself is shown only if it is no
 * secret: the source text of the expression is not shown either. */
const struct alloy_value *alloy_mismatch(struct alloy_eval *ev, struct config_place place,
                                         const char *what, const struct alloy_value *v);

#endif
