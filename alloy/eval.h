/* Evaluates expressions of Alloy's language.
 *
 * Each expression is evaluated once, while the configuration is loaded, and never again at run
 * time. A callback finds the components, arguments and variables that an expression refers to;
 * functions and constants are built in. Each error is reported at its place, and the value of the
 * failed expression is then unknown.
 */
#ifndef PROFPULL_ALLOY_EVAL_H
#define PROFPULL_ALLOY_EVAL_H

#include "alloy/syntax.h"
#include "alloy/value.h"

/* The most values that the evaluation of one configuration may make, elements included. */
#define ALLOY_VALUES_MAX 200000
/* The longest chain of names that may refer to a component. */
#define ALLOY_CHAIN_NAMES_MAX 16

/* A name with the fields that follow it: a.b.c. */
struct alloy_chain {
    struct sv names[ALLOY_CHAIN_NAMES_MAX];
    struct config_place places[ALLOY_CHAIN_NAMES_MAX];
    size_t n;
    struct sv source; /* the whole text of the chain */
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
    const char *path;   /* path of the attribute that is being evaluated, for messages */
    const char *suffix; /* appended to errors: the place of the module's instance; or NULL */
    size_t n_values;
    size_t n_failures; /* number of alloy_fail() calls */
    bool exhausted;    /* a limit was reported */
};

/* Evaluates an expression. Never NULL; &alloy_unknown after an error. */
const struct alloy_value *alloy_eval(struct alloy_eval *ev, const struct alloy_expr *e);

/* ---- for functions and conversions ----------------------------------------------------------- */

/* Reports an error and returns &alloy_unknown. */
const struct alloy_value *alloy_fail(struct alloy_eval *ev, struct config_place place,
                                     const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Reports that ALLOY_VALUES_MAX is exceeded, after which nothing more is evaluated. */
const struct alloy_value *alloy_too_many_values(struct alloy_eval *ev, struct config_place place);
/* Counts a value against the limit and returns it. If v is NULL, reports that memory ran out. */
const struct alloy_value *alloy_made(struct alloy_eval *ev, struct config_place place,
                                     const struct alloy_value *v);
/* Reports `expected WHAT, got a number`; reports nothing if v is unknown. A value that is a secret
 * is not shown, and neither is the source text of its expression. */
const struct alloy_value *alloy_mismatch(struct alloy_eval *ev, struct config_place place,
                                         const char *what, const struct alloy_value *v);

#endif
