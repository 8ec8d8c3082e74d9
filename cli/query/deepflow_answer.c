#include "cli/query/deepflow_answer.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/map.h"
#include "cli/query/top.h"

#define PLACE_UNKNOWN UINT32_MAX

/* ---- nodes ----------------------------------------------------------------------------------- */

/* The nodes of a response; the first one is the root. Their names belong to the JSON. */
struct nodes {
    size_t n;
    const char **names;
    int64_t *parents; /* numbers of nodes; -1: no parent */
    int64_t *selfs;
};

static bool make_nodes(struct nodes *v, size_t n, struct err *err)
{
    v->n = n;
    v->names = calloc(n + 1, sizeof(*v->names));
    v->parents = calloc(n + 1, sizeof(*v->parents));
    v->selfs = calloc(n + 1, sizeof(*v->selfs));
    return (v->names != NULL && v->parents != NULL && v->selfs != NULL) || err_memory(err);
}

static void free_nodes(struct nodes *v)
{
    free(v->names);
    free(v->parents);
    free(v->selfs);
}

/* Reads {"functions":[...],"node_values":{"values":[[function, parent, self, total],...]}}. */
static bool read_columns(const json_t *result, struct nodes *v, struct err *err)
{
    const json_t *functions = json_object_get(result, "functions");
    const json_t *rows = json_object_get(json_object_get(result, "node_values"), "values");
    if (!make_nodes(v, json_array_size(rows), err)) {
        return false;
    }
    for (size_t i = 0; i < v->n; i++) {
        const json_t *row = json_array_get(rows, i);
        json_int_t function = json_integer_value(json_array_get(row, 0));
        v->names[i] = json_string_value(json_array_get(functions, (size_t)function));
        v->parents[i] = json_integer_value(json_array_get(row, 1));
        v->selfs[i] = json_integer_value(json_array_get(row, 2));
    }
    return true;
}

/* Finds the number of a parent by its id; the parent of a root does not exist. */
static int64_t find_parent(const struct map *places, const char *id, const size_t *first)
{
    const size_t *place = id == NULL ? NULL : map_get(places, sv_from(id));
    return place == NULL ? -1 : (int64_t)(place - first);
}

/* Reads [{"profile_location_str":...,"node_id":...,"parent_node_id":...,"self_value":...},...]. */
static bool read_list(const json_t *list, struct nodes *v, struct err *err)
{
    struct map *places = map_new();
    size_t n = json_array_size(list);
    /* the address of an element stands for its index */
    size_t *marks = calloc(n + 1, sizeof(*marks));
    if (places == NULL || marks == NULL) {
        free(marks);
        map_free(places, NULL);
        return err_memory(err);
    }
    bool ok = make_nodes(v, n, err);
    for (size_t i = 0; i < n && ok; i++) {
        const json_t *node = json_array_get(list, i);
        const char *id = json_string_value(json_object_get(node, "node_id"));
        v->names[i] = json_string_value(json_object_get(node, "profile_location_str"));
        v->selfs[i] = json_integer_value(json_object_get(node, "self_value"));
        ok = id == NULL || map_put(places, sv_from(id), &marks[i], NULL) || err_memory(err);
    }
    for (size_t i = 0; i < n && ok; i++) {
        const json_t *node = json_array_get(list, i);
        const char *parent = json_string_value(json_object_get(node, "parent_node_id"));
        v->parents[i] = find_parent(places, parent, marks);
    }
    free(marks);
    map_free(places, NULL);
    return ok;
}

/* ---- the tree -------------------------------------------------------------------------------- */

/* Collects the nodes from a node up to one that has a place. Returns false if the chain does not
 * end, because it has a loop. */
static bool climb(const struct nodes *v, const uint32_t *places, size_t node, size_t *chain,
                  size_t *ret_n)
{
    int64_t at = (int64_t)node;
    *ret_n = 0;
    while (at >= 0 && places[at] == PLACE_UNKNOWN) {
        if (*ret_n == v->n || v->parents[at] >= (int64_t)v->n) {
            return false;
        }
        chain[(*ret_n)++] = (size_t)at;
        at = v->parents[at];
    }
    return true;
}

/* Gives a node and its ancestors their places in the tree; a parent may come after its children. */
static bool place(const struct nodes *v, struct tree *t, uint32_t *places, size_t node,
                  size_t *chain, struct err *err)
{
    size_t n;
    if (!climb(v, places, node, chain, &n)) {
        return err_set(err, ERR_REFUSED, "the answer has nodes without a root");
    }
    for (size_t i = n; i > 0; i--) {
        size_t at = chain[i - 1];
        uint32_t parent = v->parents[at] < 0 ? 0 : places[v->parents[at]];
        uint32_t name;
        if (v->names[at] == NULL) {
            return err_set(err, ERR_REFUSED, "the answer has nodes without a name");
        }
        if (!tree_name(t, sv_from(v->names[at]), &name, err) ||
            !tree_child(t, parent, name, &places[at], err)) {
            return false;
        }
    }
    return true;
}

static bool fill_tree(const struct nodes *v, struct tree *t, struct err *err)
{
    uint32_t *places = calloc(v->n + 1, sizeof(*places));
    size_t *chain = calloc(v->n + 1, sizeof(*chain));
    if (places == NULL || chain == NULL) {
        free(places);
        free(chain);
        return err_memory(err);
    }
    bool ok = true;
    for (size_t i = 1; i < v->n; i++) {
        places[i] = PLACE_UNKNOWN;
    }
    for (size_t i = 1; i < v->n && ok; i++) {
        ok = place(v, t, places, i, chain, err);
        if (ok) {
            tree_add(t, places[i], v->selfs[i]);
        }
    }
    free(places);
    free(chain);
    return ok;
}

struct tree *deepflow_answer_read(const json_t *result, struct err *err)
{
    struct nodes v = {.n = 0};
    bool is_list = json_is_array(result);
    struct tree *t = tree_new(TOP_BYTES_MAX, err);
    bool ok = t != NULL && (is_list ? read_list(result, &v, err) : read_columns(result, &v, err)) &&
              fill_tree(&v, t, err);
    free_nodes(&v);
    return ok ? t : tree_free(t);
}
