/* Trees as graphs of functions for Graphviz. */
#include "tests/unit/lib/tree_text.h"

static void check_dot(const char *stacks, int64_t nodes, const char *unit, const char *want)
{
    struct err err = ERR_INIT;
    SCOPED(tree) *t = tree_of(stacks);
    SCOPED(buf) out = testing_buf(TREE_TEST_MAX);
    CHECK(tree_dot(t, nodes, SV("cpu"), sv_from(unit), &out, &err), "%s: %s", stacks, err.msg);
    CHECK_STR(out.data, want, stacks);
}

#define HEAD                                                                                       \
    "digraph \"cpu\" {\nnode [style=filled fillcolor=\"#f8f8f8\"]\n"                               \
    "subgraph cluster_L { \"Type: cpu\" [shape=box fontsize=16 label=\"Type: cpu\\lShowing nodes " \
    "accounting for "

TEST(functions_and_calls)
{
    check_dot("main 10000000\nmain;work;hash 50000000\nmain;idle 40000000", 0, "nanoseconds",
              HEAD "0.1s (100.00%) of 0.1s total\\l\"] }\n"
                   "N1 [label=\"main\\n0.01s (10.00%)\\nof 0.1s (100.00%)\" id=\"node1\" "
                   "fontsize=16 shape=box tooltip=\"main\"]\n"
                   "N2 [label=\"hash\\n0.05s (50.00%)\" id=\"node2\" fontsize=24 shape=box "
                   "tooltip=\"hash\"]\n"
                   "N3 [label=\"work\\n0s (0.00%)\\nof 0.05s (50.00%)\" id=\"node3\" fontsize=8 "
                   "shape=box tooltip=\"work\"]\n"
                   "N4 [label=\"idle\\n0.04s (40.00%)\" id=\"node4\" fontsize=23 shape=box "
                   "tooltip=\"idle\"]\n"
                   "N1 -> N3 [label=\" 0.05s\" weight=51 penwidth=3]\n"
                   "N3 -> N2 [label=\" 0.05s\" weight=51 penwidth=3]\n"
                   "N1 -> N4 [label=\" 0.04s\" weight=41 penwidth=3]\n}\n");
}

/* A function that is not drawn leaves a dashed line between its caller and what it calls. */
TEST(functions_that_are_left_out)
{
    check_dot("a;b;c 6\nc 3\na 5", 2, "count",
              HEAD "14 (100.00%) of 14 total\\l\"] }\n"
                   "N1 [label=\"a\\n5 (35.71%)\\nof 11 (78.57%)\" id=\"node1\" fontsize=20 "
                   "shape=box tooltip=\"a\"]\n"
                   "N2 [label=\"c\\n9 (64.29%)\" id=\"node2\" fontsize=24 shape=box "
                   "tooltip=\"c\"]\n"
                   "N1 -> N2 [label=\" 6\" weight=43 penwidth=3 style=\"dashed\"]\n}\n");
}

TEST(recursion_counts_once)
{
    check_dot("r;s;r;s 5\nr;r 1", 0, "bytes",
              HEAD "6.00B (100.00%) of 6.00B total\\l\"] }\n"
                   "N1 [label=\"r\\n1.00B (16.67%)\\nof 6.00B (100.00%)\" id=\"node1\" "
                   "fontsize=16 shape=box tooltip=\"r\"]\n"
                   "N2 [label=\"s\\n5.00B (83.33%)\" id=\"node2\" fontsize=24 shape=box "
                   "tooltip=\"s\"]\n"
                   "N1 -> N2 [label=\" 5.00B\" weight=84 penwidth=5]\n"
                   "N2 -> N1 [label=\" 5.00B\" weight=84 penwidth=5]\n}\n");
}

TEST(names_are_quoted)
{
    check_dot("a\"b\\c 2048", 0, "bytes",
              HEAD "2.00kB (100.00%) of 2.00kB total\\l\"] }\n"
                   "N1 [label=\"a\\\"b\\\\c\\n2.00kB (100.00%)\" id=\"node1\" fontsize=24 "
                   "shape=box tooltip=\"a\\\"b\\\\c\"]\n}\n");
}

TEST(a_graph_is_bounded)
{
    struct err err = ERR_INIT;
    SCOPED(tree) *t = tree_of("a;b;c 6");
    SCOPED(buf) out = testing_buf(100);
    assert_false(tree_dot(t, 0, SV("cpu"), SV("count"), &out, &err));
    assert_int_equal(err.kind, ERR_LIMIT);
}
