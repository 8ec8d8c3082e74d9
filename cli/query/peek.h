/* The callers and the callees of functions, in the layout of `go tool pprof -peek`. Pure; one
 * thread at a time.
 */
#ifndef PROFPULL_CLI_QUERY_PEEK_H
#define PROFPULL_CLI_QUERY_PEEK_H

#include "base/arena.h"
#include "base/err.h"
#include "store/query/tree.h"

/* A caller or a callee. */
struct peek_edge {
    struct sv name;
    int64_t value; /* of the stacks with this call; each counts once, even if the call recurs */
};

struct peek_function {
    struct tree_function function;
    struct peek_edge *callers; /* the largest first */
    size_t n_callers;
    struct peek_edge *callees;
    size_t n_callees;
};

struct peek {
    struct peek_function *at; /* by self, the largest first */
    size_t n;
    int64_t total;
};

/* Finds the functions that a regex (RE2) matches anywhere in their name; if a function has exactly
 * this name, only that one. The caller has called tree_sum(). The names point into the tree, the
 * rest is in the arena. ERR_INPUT if the regex is wrong, or if no function matches. */
bool peek_make(const struct tree *t, const char *pattern, struct arena *arena, struct peek *ret,
               struct err *err);
void peek_print(const struct peek *p, const char *unit, struct buf *out);
/* Appends one line of JSON: {"unit", "total", "functions": [{"name", "self", "total", "callers":
 * [{"name", "value"}], "callees": ...}]}. */
void peek_json(const struct peek *p, const char *unit, struct buf *out);

#endif
