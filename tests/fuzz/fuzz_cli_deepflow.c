/* Answers of DeepFlow: whatever is read as a tree has the sum of its nodes as its total. */
#include <jansson.h>

#include "cli/query/deepflow_answer.h"
#include "tests/fuzz/fuzz.h"

FUZZ(in)
{
    struct err err = ERR_INIT;
    json_t *root = json_loadb(in.p, in.n, 0, NULL);
    if (root == NULL) {
        return;
    }
    struct tree *t = deepflow_answer_read(root, &err);
    REQUIRE((t == NULL) == (err.kind != ERR_NONE));
    REQUIRE(t != NULL || err.kind == ERR_REFUSED);
    if (t != NULL) {
        tree_sum(t);
        REQUIRE(tree_size(t) >= 1);
        for (size_t i = 1; i < tree_size(t); i++) {
            REQUIRE(tree_node(t, (uint32_t)i).parent < i);
        }
        REQUIRE(tree_node(t, 0).total == tree_total(t));
    }
    tree_free(t);
    json_decref(root);
}
