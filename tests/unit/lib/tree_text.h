/* Trees from text and flame graphs to text, for tests: "main;work;hash 30\nmain 10". */
#ifndef PROFPULL_TESTS_TREE_TEXT_H
#define PROFPULL_TESTS_TREE_TEXT_H

#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "store/query/tree.h"

SCOPED_POINTER(tree, tree_free)

#define TREE_TEST_MAX ((size_t)64 * 1024 * 1024)

/* Adds stacks, the root first: one in a line. */
static inline void tree_put(struct tree *t, const char *text)
{
    struct err err = ERR_INIT;
    struct sv rest = sv_from(text);
    while (rest.n > 0) {
        struct sv line = rest;
        struct sv stack;
        struct sv value;
        if (!sv_cut(rest, '\n', &line, &rest)) {
            rest.n = 0;
        }
        assert_true(sv_cut(line, ' ', &stack, &value));
        uint32_t node = 0;
        while (stack.n > 0) {
            struct sv name = stack;
            uint32_t number;
            if (!sv_cut(stack, ';', &name, &stack)) {
                stack.n = 0;
            }
            assert_true(tree_name(t, name, &number, &err));
            assert_true(tree_child(t, node, number, &node, &err));
        }
        tree_add(t, node, strtoll(value.p, NULL, 10));
    }
}

static inline struct tree *tree_of(const char *text)
{
    struct err err = ERR_INIT;
    struct tree *t = tree_new(TREE_TEST_MAX, &err);
    assert_non_null(t);
    tree_put(t, text);
    return t;
}

/* "total a b | [0 10 0 0] [0 4 4 1, 0 6 6 2] | total 10 self 6". */
static inline void flamegraph_text(const struct flamegraph *fg, size_t width, char *out,
                                   size_t size)
{
    SCOPED(buf) b = testing_buf(size);
    for (size_t i = 0; i < fg->n_names; i++) {
        buf_printf(&b, "%s%.*s", i > 0 ? " " : "", SV_ARG(fg->names[i]));
    }
    buf_puts(&b, " |");
    for (size_t i = 0; i < fg->n_levels; i++) {
        assert_int_equal(fg->levels[i].n % width, 0);
        for (size_t j = 0; j < fg->levels[i].n; j++) {
            buf_printf(&b, "%s%lld", j == 0 ? " [" : (j % width == 0 ? ", " : " "),
                       (long long)fg->levels[i].at[j]);
        }
        buf_puts(&b, "]");
    }
    buf_printf(&b, " | total %lld self %lld", (long long)fg->total, (long long)fg->max_self);
    if (width == 7) {
        buf_printf(&b, " left %lld right %lld", (long long)fg->left, (long long)fg->right);
    }
    assert_true(buf_ok(&b) && b.len < size);
    memcpy(out, b.data, b.len + 1);
}

#endif
