#include "api/deepflow_reply.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"

/* The functions of a tree: distinct names, each with its sums over all nodes. */
struct function {
    struct sv name;
    int64_t self;
    int64_t total;
    size_t place;
};

struct functions {
    struct function *at;
    size_t n;
    struct function **of_node;
};

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? (a > 0 ? INT64_MAX : INT64_MIN) : sum;
}

static bool add_node(struct functions *f, struct map *places, size_t node, struct sv name,
                     const struct tree_node *values, struct err *err)
{
    struct function *one = map_get(places, name);
    if (one == NULL) {
        one = &f->at[f->n];
        *one = (struct function){.name = name, .place = f->n};
        if (!map_put(places, name, one, NULL)) {
            return err_memory(err);
        }
        f->n++;
    }
    one->self = plus(one->self, values->self);
    one->total = plus(one->total, values->total);
    f->of_node[node] = one;
    return true;
}

static bool find_functions(const struct tree *t, struct sv root, struct arena *arena,
                           struct functions *ret, struct err *err)
{
    size_t n = tree_size(t);
    struct map *places = map_new();
    ret->n = 0;
    ret->at = arena_array(arena, n, sizeof(*ret->at));
    ret->of_node = arena_array(arena, n, sizeof(void *));
    if (places == NULL || ret->at == NULL || ret->of_node == NULL) {
        map_free(places, NULL);
        return err_set(err, ERR_LIMIT, "the answer needs more memory than query.max_bytes");
    }
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        struct tree_node node = tree_node(t, (uint32_t)i);
        ok = add_node(ret, places, i, i == 0 ? root : node.name, &node, err);
    }
    map_free(places, NULL);
    return ok;
}

/* Returns the letter for the kind of a function: a process, a thread, the kernel, a library, CUDA,
 * the service itself, or a function of the application. */
static char type_of(const struct function *f, struct sv event)
{
    static const char *const prefixes[] = {"[p]", "[t]", "[k]", "[l]", "[c]"};
    static const char letters[] = "PTKLC";
    if ((sv_starts_with(event, SV("mem-")) || sv_starts_with(event, SV("hbm-"))) &&
        f->self == f->total) {
        return 'O';
    }
    if (f->place == 0) {
        return sv_eq_str(f->name, "Total") ? 'H' : 'P';
    }
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (sv_starts_with(f->name, sv_from(prefixes[i]))) {
            return letters[i];
        }
    }
    return sv_starts_with(f->name, SV("[")) ? '?' : 'A';
}

static void put_functions(const struct functions *f, struct sv event, struct buf *out)
{
    buf_puts(out, "{\"functions\":[");
    for (size_t i = 0; i < f->n; i++) {
        buf_puts(out, i > 0 ? "," : "");
        json_quote(f->at[i].name, out);
    }
    buf_puts(out, "],\"function_types\":[");
    for (size_t i = 0; i < f->n; i++) {
        buf_printf(out, "%s\"%c\"", i > 0 ? "," : "", type_of(&f->at[i], event));
    }
    buf_puts(out, "],\"function_values\":{\"columns\":[\"self_value\",\"total_value\"],"
                  "\"values\":[");
    for (size_t i = 0; i < f->n; i++) {
        buf_printf(out, "%s[%" PRId64 ",%" PRId64 "]", i > 0 ? "," : "", f->at[i].self,
                   f->at[i].total);
    }
    buf_puts(out, "]},");
}

static void put_nodes(const struct tree *t, const struct functions *f, struct buf *out)
{
    buf_puts(out, "\"node_values\":{\"columns\":[\"function_id\",\"parent_node_id\",\"self_value\","
                  "\"total_value\"],\"values\":[");
    for (size_t i = 0; i < tree_size(t); i++) {
        struct tree_node node = tree_node(t, (uint32_t)i);
        buf_printf(out, "%s[%zu,%" PRId64 ",%" PRId64 ",%" PRId64 "]", i > 0 ? "," : "",
                   f->of_node[i]->place, i == 0 ? -1 : (int64_t)node.parent, node.self, node.total);
    }
    buf_puts(out, "]}}");
}

static bool is_empty(struct tree *t)
{
    tree_sum(t);
    return tree_size(t) <= 1;
}

static bool finish(const struct buf *out, struct err *err)
{
    if (buf_ok(out)) {
        return true;
    }
    return buf_too_big(out) ? err_set(err, ERR_LIMIT, "the answer is larger than query.max_bytes")
                            : err_memory(err);
}

bool deepflow_put_columns(struct tree *t, struct sv root, struct sv event, struct arena *arena,
                          struct buf *out, struct err *err)
{
    struct functions f;
    if (is_empty(t)) {
        buf_puts(out, "{\"functions\":null,\"function_types\":null,"
                      "\"function_values\":{\"columns\":null,\"values\":null},"
                      "\"node_values\":{\"columns\":null,\"values\":null}}");
        return finish(out, err);
    }
    if (!find_functions(t, root, arena, &f, err)) {
        return false;
    }
    put_functions(&f, event, out);
    put_nodes(t, &f, out);
    return finish(out, err);
}

/* The id of a node is its number; the root has no id. */
bool deepflow_put_list(struct tree *t, struct sv root, struct buf *out, struct err *err)
{
    size_t n = is_empty(t) ? 0 : tree_size(t);
    buf_putc(out, '[');
    for (size_t i = 0; i < n; i++) {
        struct tree_node node = tree_node(t, (uint32_t)i);
        char id[24] = "";
        char parent[24] = "";
        if (i > 0) {
            snprintf(id, sizeof(id), "%zu", i);
        }
        if (i == 0) {
            snprintf(parent, sizeof(parent), "-1");
        } else if (node.parent > 0) {
            snprintf(parent, sizeof(parent), "%" PRIu32, node.parent);
        }
        buf_puts(out, i > 0 ? ",{" : "{");
        json_member("profile_location_str", i == 0 ? root : node.name, out);
        buf_printf(out, ",\"node_id\":\"%s\",\"parent_node_id\":\"%s\"", id, parent);
        buf_printf(out, ",\"self_value\":%" PRId64 ",\"total_value\":%" PRId64 "}", node.self,
                   node.total);
    }
    buf_putc(out, ']');
    return finish(out, err);
}
