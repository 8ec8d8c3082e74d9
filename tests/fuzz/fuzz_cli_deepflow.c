/* Answers of DeepFlow: whatever is read as a tree has the sum of its nodes as its total. */
#include <jansson.h>
#include <stdlib.h>

#include "cli/query/deepflow_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    json_t *root = json_loadb((const char *)data, size, 0, NULL);
    if (root == NULL) {
        return 0;
    }
    struct tree *t = deepflow_answer_read(root, &err);
    must((t == NULL) == (err.kind != ERR_NONE));
    must(t != NULL || err.kind == ERR_REFUSED);
    if (t != NULL) {
        tree_sum(t);
        must(tree_size(t) >= 1);
        for (size_t i = 1; i < tree_size(t); i++) {
            must(tree_node(t, (uint32_t)i).parent < i);
        }
        must(tree_node(t, 0).total == tree_total(t));
    }
    tree_free(t);
    json_decref(root);
    return 0;
}
