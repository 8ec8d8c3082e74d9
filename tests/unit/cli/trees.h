/* Trees from folded stacks, and golden files, for the tests of what is drawn of trees. */
#ifndef PROFPULL_TESTS_CLI_TREES_H
#define PROFPULL_TESTS_CLI_TREES_H

#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "store/query/tree.h"

#define TREES_GOLDEN "tests/unit/data/flame/"

/* A tree of lines "root;callee;... value". The totals are computed. */
static inline struct tree *tree_of(const char *folded)
{
    struct err err = ERR_INIT;
    struct tree *t = tree_new((size_t)64 * 1024 * 1024, &err);
    assert_non_null(t);
    struct sv rest = sv_from(folded);
    struct sv line;
    while (rest.n > 0) {
        uint64_t value;
        uint32_t node = 0;
        if (!sv_cut(rest, '\n', &line, &rest)) {
            line = rest;
            rest = SV("");
        }
        const char *space = memrchr(line.p, ' ', line.n);
        assert_non_null(space);
        size_t n = (size_t)(space - line.p);
        assert_true(parse_u64(sv_skip(line, n + 1), INT64_MAX, &value));
        struct sv stack = {line.p, n};
        while (stack.n > 0) {
            struct sv name = stack;
            uint32_t number;
            struct sv more = SV("");
            (void)sv_cut(stack, ';', &name, &more);
            assert_true(tree_name(t, name, &number, &err) &&
                        tree_child(t, node, number, &node, &err));
            stack = more;
        }
        tree_add(t, node, (int64_t)value);
    }
    tree_sum(t);
    return t;
}

/* Compares a text with a file of tests/unit/data/flame. With GOLDEN_WRITE=1 in the environment, the
 * file is written instead. */
static inline void check_golden(const struct buf *text, const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof(path), TREES_GOLDEN "%s", name);
    assert_true(buf_ok(text));
    if (getenv("GOLDEN_WRITE") != NULL) {
        FILE *out = fopen(path, "wb");
        assert_non_null(out);
        assert_int_equal(fwrite(text->data, 1, text->len, out), text->len);
        assert_int_equal(fclose(out), 0);
        return;
    }
    SCOPED(buf) want = testing_read_file(path);
    CHECK_STR(text->data, want.data, name);
}

#endif
