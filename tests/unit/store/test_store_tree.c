/* Trees of stacks and their shapes. What is drawn of p1, p2 and p3 (three small profiles) is what
 * Pyroscope draws of them. */
#include "tests/unit/lib/testing.h"

#include "base/clock.h"
#include "store/query/tree_private.h"
#include "tests/unit/lib/tree_text.h"

#define TEXT_MAX 4096

#define P1                                                                                         \
    "main.main 10\nmain.main;main.work;main.hash 30\nmain.main;main.work;runtime.mallocgc 10\n"
#define P2 "main.main;main.idle 40\nmain.main;main.work;main.hash 20\n"
/* With a frame that has no name: its address stands for it. */
#define P3                                                                                         \
    "main.main;main.work;main.work 20\n"                                                           \
    "main.main;700123 50\n"

static void draw(const char *text, int64_t max_nodes, char out[TEXT_MAX])
{
    struct err err = ERR_INIT;
    struct flamegraph fg;
    SCOPED(arena) *arena = arena_new(TREE_TEST_MAX);
    SCOPED(tree) *t = tree_of(text);
    CHECK(tree_flamegraph(t, max_nodes, arena, &fg, &err), "%s", err.msg);
    flamegraph_text(&fg, 4, out, TEXT_MAX);
}

TEST(test_flamegraphs)
{
    static const struct {
        const char *name, *stacks;
        int64_t max_nodes;
        const char *want;
    } cases[] = {
        {"empty", "", 0, "total | [0 0 0 0] | total 0 self 0"},
        {"p1, all", P1, 0,
         "total main.main main.work runtime.mallocgc main.hash | [0 50 0 0] [0 50 10 1] "
         "[10 40 0 2] [10 30 30 4, 0 10 10 3] | total 50 self 30"},
        {"p1, 4", P1, 4,
         "total main.main main.work runtime.mallocgc main.hash | [0 50 0 0] [0 50 10 1] "
         "[10 40 0 2] [10 30 30 4, 0 10 10 3] | total 50 self 30"},
        {"p1, 1", P1, 1,
         "total main.main other | [0 50 0 0] [0 50 10 1] [10 40 40 2] | total 50 self 40"},
        {"p1, 2", P1, 2,
         "total main.main main.work other | [0 50 0 0] [0 50 10 1] [10 40 0 2] [10 40 40 3] | "
         "total 50 self 40"},
        {"p1, 3", P1, 3,
         "total main.main main.work other main.hash | [0 50 0 0] [0 50 10 1] [10 40 0 2] "
         "[10 30 30 4, 0 10 10 3] | total 50 self 30"},
        {"p1+p2, all", P1 P2, 0,
         "total main.main main.work runtime.mallocgc main.hash main.idle | [0 110 0 0] "
         "[0 110 10 1] [10 40 40 5, 0 60 0 2] [50 50 50 4, 0 10 10 3] | total 110 self 50"},
        {"p1+p2, 1", P1 P2, 1,
         "total main.main other | [0 110 0 0] [0 110 10 1] [10 100 100 2] | total 110 self 100"},
        {"p1+p2, 2", P1 P2, 2,
         "total main.main other main.work | [0 110 0 0] [0 110 10 1] [10 60 0 3, 0 40 40 2] "
         "[10 60 60 2] | total 110 self 60"},
        {"p1+p2, 3", P1 P2, 3,
         "total main.main other main.work main.hash | [0 110 0 0] [0 110 10 1] "
         "[10 60 0 3, 0 40 40 2] [10 50 50 4, 0 10 10 2] | total 110 self 50"},
        {"p1+p2, 4", P1 P2, 4,
         "total main.main main.work other main.hash main.idle | [0 110 0 0] [0 110 10 1] "
         "[10 40 40 5, 0 60 0 2] [50 50 50 4, 0 10 10 3] | total 110 self 50"},
        {"p1+p2+p3, all", P1 P2 P3, 0,
         "total main.main main.work runtime.mallocgc main.hash main.idle 700123 | [0 180 0 0] "
         "[0 180 10 1] [10 50 50 6, 0 40 40 5, 0 80 0 2] [100 50 50 4, 0 20 20 2, 0 10 10 3] | "
         "total 180 self 50"},
        {"p1+p2+p3, 3", P1 P2 P3, 3,
         "total main.main other main.work main.hash 700123 | [0 180 0 0] [0 180 10 1] "
         "[10 50 50 5, 0 80 0 3, 0 40 40 2] [60 50 50 4, 0 30 30 2] | total 180 self 50"},
        {"p1+p2+p3, 4", P1 P2 P3, 4,
         "total main.main other main.work main.hash 700123 | [0 180 0 0] [0 180 10 1] "
         "[10 50 50 5, 0 80 0 3, 0 40 40 2] [60 50 50 4, 0 30 30 2] | total 180 self 50"},
        {"recursion", "r;r;x 1\nr;x 2\nz 4\n", 0,
         "total z r x | [0 7 0 0] [0 3 0 2, 0 4 4 1] [0 1 0 2, 0 2 2 3] [0 1 1 3] | total 7 self "
         "4"},
        /* A function of this name shares the number of the root. One called `other` keeps its
         * children, unlike in Pyroscope. */
        {"odd names", "total;a 5\nother 3\nb;other;c 2\n", 0,
         "total a other b c | [0 10 0 0] [0 2 0 3, 0 3 3 2, 0 5 0 0] [0 2 0 2, 3 5 5 1] [0 2 2 4] "
         "| total 10 self 5"},
        {"a function called other, and what was cut", "m;other;x 5\nm;other;y 1\nm;z 1", 3,
         "total m other x | [0 7 0 0] [0 7 0 1] [0 6 0 2, 0 1 1 2] [0 5 5 3, 0 1 1 2] | total 7 "
         "self 5"},
        {"no name", ";x 2\n", 0, "total  x | [0 2 0 0] [0 2 0 1] [0 2 2 2] | total 2 self 2"},
        {"a value without a stack", " 2\na 3\n", 0,
         "total a | [0 5 2 0] [2 3 3 1] | total 5 self 3"},
        {"nothing is drawn without a width", "a;b 0\nc 1\n", 0,
         "total c | [0 1 0 0] [0 1 1 1] | total 1 self 1"},
        {"not UTF-8", "a\xff\xfe 1\n", 0,
         "total a\xef\xbf\xbd\xef\xbf\xbd | [0 1 0 0] [0 1 1 1] | total 1 self 1"},
        {"at the limit", "a 9223372036854775807\nb 5\n", 0,
         "total b a | [0 9223372036854775807 0 0] [-5 9223372036854775807 9223372036854775807 2, "
         "0 5 5 1] | total 9223372036854775807 self 9223372036854775807"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[TEXT_MAX];
        draw(cases[i].stacks, cases[i].max_nodes, text);
        CHECK_STR(text, cases[i].want, cases[i].name);
    }
}

TEST(test_order_of_arrival_does_not_matter)
{
    char one[TEXT_MAX];
    char other[TEXT_MAX];
    draw(P1 P2 P3, 4, one);
    draw(P3 P2 P1, 4, other);
    CHECK_STR(one, other, "");
}

static void diff(const char *left, const char *right, int64_t max_nodes, char out[TEXT_MAX])
{
    struct err err = ERR_INIT;
    struct flamegraph fg;
    SCOPED(arena) *arena = arena_new(TREE_TEST_MAX);
    struct tree *a = tree_of(left);
    struct tree *b = tree_of(right);
    CHECK(tree_diff(a, b, max_nodes, arena, &fg, &err), "%s", err.msg);
    tree_free(a);
    tree_free(b);
    flamegraph_text(&fg, 7, out, TEXT_MAX);
}

TEST(test_diffs)
{
    static const struct {
        const char *name, *left, *right;
        int64_t max_nodes;
        const char *want;
    } cases[] = {
        {"empty", "", "", 0, "total | [0 0 0 0 0 0 0] | total 0 self 0 left 0 right 0"},
        {"p1 and p2", P1, P2, 0,
         "total main.main main.work runtime.mallocgc main.hash main.idle | [0 50 0 0 60 0 0] "
         "[0 50 10 0 60 0 1] [10 0 0 0 40 40 5, 0 40 0 0 20 0 2] "
         "[10 30 30 40 20 20 4, 0 10 10 0 0 0 3] | total 110 self 40 left 50 right 60"},
        {"p1 and p2, 3", P1, P2, 3,
         "total main.main main.work other main.idle | [0 50 0 0 60 0 0] [0 50 10 0 60 0 1] "
         "[10 0 0 0 40 40 4, 0 40 0 0 20 0 2] [10 40 40 40 20 20 3] | total 110 self 40 left 50 "
         "right 60"},
        {"p1 and p2, 2", P1, P2, 2,
         "total main.main other | [0 50 0 0 60 0 0] [0 50 10 0 60 0 1] [10 40 40 0 60 60 2] | "
         "total 110 self 60 left 50 right 60"},
        {"p1 and p3", P1, P3, 0,
         "total main.main main.work runtime.mallocgc main.hash 700123 | [0 50 0 0 70 0 0] "
         "[0 50 10 0 70 0 1] [10 0 0 0 50 50 5, 0 40 0 0 20 0 2] "
         "[10 30 30 50 0 0 4, 0 0 0 0 20 20 2, 0 10 10 0 0 0 3] | total 120 self 50 left 50 right "
         "70"},
        {"one side", "", "a 3", 0,
         "total a | [0 0 0 0 3 0 0] [0 0 0 0 3 3 1] | total 3 self 3 left 0 right 3"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[TEXT_MAX];
        diff(cases[i].left, cases[i].right, cases[i].max_nodes, text);
        CHECK_STR(text, cases[i].want, cases[i].name);
    }
}

TEST(test_negative_values)
{
    struct err err = ERR_INIT;
    struct flamegraph fg;
    SCOPED(arena) *arena = arena_new(TREE_TEST_MAX);
    SCOPED(tree) *good = tree_of(P1);
    SCOPED(tree) *bad = tree_of("a -1\nb 3\n");
    assert_false(tree_diff(good, bad, 0, arena, &fg, &err));
    CHECK_STR(err.msg, "right tree require only positive values", "");
    CHECK_INT(err.kind, ERR_INPUT, "");
    assert_false(tree_diff(bad, good, 0, arena, &fg, &err));
    CHECK_STR(err.msg, "left tree require only positive values", "");
    char text[TEXT_MAX];
    draw("a -1\nb 3\n", 0, text);
    CHECK_STR(text, "total b | [0 2 0 0] [-1 3 3 1] | total 2 self 3", "");
}

/* ---- tree bytes ------------------------------------------------------------------------------ */

static void bytes(const char *stacks, int64_t max_nodes, char out[TEXT_MAX])
{
    struct err err = ERR_INIT;
    SCOPED(buf) b = testing_buf(TEXT_MAX / 2);
    SCOPED(tree) *t = tree_of(stacks);
    assert_true(tree_bytes(t, max_nodes, &b, &err));
    out[0] = '\0';
    for (size_t i = 0; i < b.len; i++) {
        (void)snprintf(out + 2 * i, 3, "%02x", (unsigned char)b.data[i]);
    }
}

TEST(test_bytes)
{
    char text[TEXT_MAX];
    bytes("main.main 10000000\nmain.main;main.work;main.hash 30000000\n"
          "main.main;main.work;runtime.mallocgc 10000000\n",
          0, text);
    CHECK_STR(text,
              "000001096d61696e2e6d61696e80ade20401096d61696e2e776f726b00021072756e74696d652e6d616c"
              "6c6f63676380ade20400096d61696e2e686173688087a70e00",
              "p1");
    bytes("main.main 10000000\nmain.main;main.work;main.hash 50000000\n"
          "main.main;main.work;runtime.mallocgc 10000000\nmain.main;main.idle 40000000\n",
          0, text);
    CHECK_STR(text,
              "000001096d61696e2e6d61696e80ade20402096d61696e2e776f726b00021072756e74696d652e6d616c"
              "6c6f63676380ade20400096d61696e2e6861736880e1eb1700096d61696e2e69646c6580b4891300",
              "p1+p2");
    bytes("", 0, text);
    CHECK_STR(text, "", "empty");
    bytes("a 5\na;b 3\na;c 1\n", 2, text);
    CHECK_STR(text,
              "000001"
              "016105"
              "02"
              "056f746865720100"
              "01620300",
              "cut");
}

TEST(test_bytes_have_a_limit)
{
    struct err err = ERR_INIT;
    SCOPED(buf) b = testing_buf(8);
    SCOPED(tree) *t = tree_of(P1);
    assert_false(tree_bytes(t, 0, &b, &err));
    CHECK_STR(err.msg, "a tree of more than 8 bytes", "");
    CHECK_INT(err.kind, ERR_LIMIT, "");
}

/* ---- functions, sums, limits ----------------------------------------------------------------- */

TEST(test_functions)
{
    struct err err = ERR_INIT;
    SCOPED(arena) *arena = arena_new(TREE_TEST_MAX);
    SCOPED(tree) *t = tree_of("r;r;x 1\nr;x 2\nz 4\nr;y;r 8\nz;a 4\nu 0\n");
    struct tree_function *at;
    size_t n;
    assert_true(tree_functions(t, arena, &at, &n, &err));
    static const struct {
        const char *name;
        int64_t self, total;
    } want[] = {{"r", 8, 11}, {"a", 4, 4}, {"z", 4, 8}, {"x", 3, 3}, {"y", 0, 8}};
    CHECK_INT(n, 5, "");
    for (size_t i = 0; i < n; i++) {
        assert_true(sv_eq_str(at[i].name, want[i].name));
        CHECK_INT(at[i].self, want[i].self, want[i].name);
        CHECK_INT(at[i].total, want[i].total, want[i].name);
    }
}

TEST(test_walking)
{
    SCOPED(tree) *t = tree_of("a;b 1\na 2\n");
    tree_sum(t);
    CHECK_INT(tree_size(t), 3, "");
    CHECK_INT(tree_total(t), 3, "");
    CHECK_INT(tree_node(t, 0).total, 3, "root");
    assert_true(sv_eq_str(tree_node(t, 1).name, "a"));
    CHECK_INT(tree_node(t, 1).self, 2, "a");
    CHECK_INT(tree_node(t, 1).total, 3, "a");
    assert_true(sv_eq_str(tree_node(t, 2).name, "b"));
    CHECK_INT(tree_node(t, 2).parent, 1, "b");
}

TEST(test_limit)
{
    struct err err = ERR_INIT;
    SCOPED(tree) *t = tree_new(100000, &err);
    uint32_t name;
    uint32_t node = 0;
    assert_true(tree_name(t, SV("f"), &name, &err));
    size_t n = 0;
    while (tree_child(t, node, name, &node, &err)) {
        n++;
    }
    CHECK_INT(err.kind, ERR_LIMIT, "");
    assert_true(n > 500);
    assert_true(tree_bytes_used(t) < 101000);
    /* The nodes from before are still good, but drawing them takes memory too. */
    tree_add(t, node, 1);
    CHECK_INT(tree_total(t), 1, "");
    SCOPED(arena) *arena = arena_new(TREE_TEST_MAX);
    struct flamegraph fg;
    err_clear(&err);
    bool drawn = tree_flamegraph(t, 0, arena, &fg, &err);
    assert_true(drawn || err.kind == ERR_LIMIT);
    tree_free(t);
    arena_free(arena);

    t = tree_of(P1 P2);
    arena = arena_new(200);
    assert_false(tree_flamegraph(t, 0, arena, &fg, &err));
    CHECK_STR(err.msg,
              "the result needs more memory than query.max_bytes allows: raise it, or ask for less",
              "");
    CHECK_INT(err.kind, ERR_LIMIT, "");
    assert_false(tree_diff(t, t, 0, arena, &fg, &err));
    CHECK_INT(err.kind, ERR_LIMIT, "");
}

/* Returns a number that looks random; the same for each run. */
static uint32_t next_number(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 16;
}

/* Children are found again, be they added right after their parent, after other children of it, or
 * after the children of others. */
TEST(test_children_are_found_again)
{
    enum { EDGES = 20000, NAMES = 7 };
    struct edge {
        uint32_t parent, name, node;
    } *edges = calloc(EDGES, sizeof(*edges));
    struct err err = ERR_INIT;
    SCOPED(tree) *t = tree_new(TREE_TEST_MAX, &err);
    uint32_t names[NAMES];
    uint32_t seed = 1;
    for (size_t i = 0; i < NAMES; i++) {
        assert_true(tree_name(t, (struct sv){&"abcdefg"[i], 1}, &names[i], &err));
    }
    for (size_t i = 0; i < EDGES; i++) {
        uint32_t size = (uint32_t)tree_size(t);
        edges[i].parent = i % 3 == 0 ? size - 1 : next_number(&seed) % size;
        edges[i].name = names[next_number(&seed) % NAMES];
        assert_true(tree_child(t, edges[i].parent, edges[i].name, &edges[i].node, &err));
    }
    size_t size = tree_size(t);
    assert_true(size > EDGES / 2 && size <= EDGES);
    for (size_t i = 0; i < EDGES; i++) {
        uint32_t node;
        assert_true(tree_child(t, edges[i].parent, edges[i].name, &node, &err));
        CHECK_INT(node, edges[i].node, "");
        CHECK_INT(tree_node(t, node).parent, edges[i].parent, "");
    }
    CHECK_INT(tree_size(t), size, "nothing was added");
    for (uint32_t i = 1; i < size; i++) {
        uint32_t node = 0;
        uint32_t name;
        assert_true(tree_name(t, tree_node(t, i).name, &name, &err) &&
                    tree_child(t, tree_node(t, i).parent, name, &node, &err));
        CHECK_INT(node, i, "no edge occurs twice");
    }
    free(edges);
}

/* A hundred thousand levels: nothing recurses. */
/* Adds a path name by name, and returns its node. */
static uint32_t add_path(struct tree *t, const struct tree_path *path)
{
    struct err err = ERR_INIT;
    uint32_t node = 0;
    for (uint32_t i = 0; i < path->n; i++) {
        assert_true(tree_child(t, node, path->names[i], &node, &err));
    }
    return node;
}

/* Paths of a batch share beginnings, with each other and with earlier ones; some are equal or
 * empty. */
TEST(test_paths_are_followed_together)
{
    enum { BATCHES = 200, PATHS = 7, NAMES = 3, DEPTH = 9 };
    struct err err = ERR_INIT;
    struct rng rng;
    SCOPED(tree) *t = tree_new(TREE_TEST_MAX, &err);
    SCOPED(tree) *by_name = tree_new(TREE_TEST_MAX, &err);
    uint32_t names[PATHS][DEPTH];
    rng_seed(&rng, 1);
    for (int batch = 0; batch < BATCHES; batch++) {
        struct tree_path paths[PATHS];
        for (int i = 0; i < PATHS; i++) {
            for (int k = 0; k < DEPTH; k++) {
                names[i][k] = (uint32_t)(rng_next(&rng) % NAMES);
            }
            paths[i] = (struct tree_path){.names = names[i],
                                          .n = (uint32_t)(rng_next(&rng) % (DEPTH + 1))};
        }
        tree_follow(t, paths, PATHS);
        for (int i = 0; i < PATHS; i++) {
            assert_true(tree_complete(t, &paths[i], &err));
            CHECK_INT(paths[i].node, add_path(by_name, &paths[i]), "");
        }
        CHECK_INT(tree_size(t), tree_size(by_name), "");
    }
    struct tree_path again = {.names = names[0], .n = DEPTH};
    uint32_t node = add_path(t, &again);
    tree_follow(t, &again, 1);
    CHECK_INT(again.done, DEPTH, "a known path is found without tree_complete()");
    CHECK_INT(again.node, node, "");
}

TEST(test_deep)
{
    enum { DEPTH = 100000 };
    struct err err = ERR_INIT;
    SCOPED(tree) *t = tree_new(TREE_TEST_MAX, &err);
    uint32_t name;
    uint32_t node = 0;
    assert_true(tree_name(t, SV("f"), &name, &err));
    for (int i = 0; i < DEPTH; i++) {
        assert_true(tree_child(t, node, name, &node, &err));
    }
    tree_add(t, node, 1);
    SCOPED(arena) *arena = arena_new(TREE_TEST_MAX);
    struct flamegraph fg;
    assert_true(tree_flamegraph(t, 0, arena, &fg, &err));
    CHECK_INT(fg.n_levels, DEPTH + 1, "");
    assert_true(tree_flamegraph(t, 5, arena, &fg, &err));
    CHECK_INT(fg.n_levels, DEPTH + 1, "all are equal");
    struct tree_function *at;
    size_t n;
    assert_true(tree_functions(t, arena, &at, &n, &err));
    CHECK_INT(at[0].total, 1, "");
}
