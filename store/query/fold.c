/* Folds the small frames of a profile: builds a tree of its locations, and cuts it like a flame
 * graph. */
#include <string.h>

#include "pprof/put.h"
#include "store/query/layout.h"
#include "store/query/rewrite.h"

struct folding {
    struct samples s;
    struct tree *tree; /* the names of its nodes are places of locations */
    int64_t *total;    /* the total of each node */
    int64_t *other;    /* of each node: the sum of the totals of its children that are cut */
    int64_t threshold;
    struct buf *out;
    struct buf message;
};

/* ---- the tree -------------------------------------------------------------------------------- */

struct path {
    size_t *at;
    size_t cap;
    size_t n;
};

static bool read_path(struct path *path, const struct folding *f, struct scratch *scratch,
                      const struct sample *sample)
{
    struct sample_ids ids = sample_ids_of(sample);
    size_t place;
    path->n = 0;
    while (sample_ids_next(&ids, &f->s, &place)) {
        if (path->n == path->cap) {
            size_t cap = path->cap == 0 ? 64 : 2 * path->cap;
            size_t *at =
                scratch_grow(scratch, path->at, path->cap * sizeof(*at), cap * sizeof(*at));
            if (at == NULL) {
                return false;
            }
            path->at = at;
            path->cap = cap;
        }
        path->at[path->n++] = place;
    }
    return true;
}

static bool build(struct folding *f, struct scratch *scratch, struct err *err)
{
    struct path path = {.n = 0};
    struct sample sample;
    while (samples_next(&f->s, &sample)) {
        uint32_t node = 0;
        if (!read_path(&path, f, scratch, &sample)) {
            return err_memory(err);
        }
        for (size_t i = path.n; i > 0; i--) {
            if (!tree_child(f->tree, node, (uint32_t)path.at[i - 1], &node, err)) {
                return false;
            }
        }
        tree_add(f->tree, node, sample.value);
    }
    return true;
}

static bool is_kept(const struct folding *f, size_t node)
{
    return node == 0 || f->total[node] >= f->threshold;
}

/* Decides which nodes are cut, and sums up their totals. */
static bool cut(struct folding *f, struct scratch *scratch, int64_t max_nodes, struct err *err)
{
    size_t n = tree_size(f->tree);
    f->total = scratch_array(scratch, n, sizeof(*f->total));
    f->other = scratch_zeroed(scratch, n, sizeof(*f->other));
    if (f->total == NULL || f->other == NULL) {
        return err_memory(err);
    }
    tree_totals(f->tree, f->total);
    if (!layout_threshold(f->total + 1, n - 1, max_nodes, &f->threshold, err)) {
        return false;
    }
    for (uint32_t i = 1; i < n; i++) {
        uint32_t parent = tree_edge_of(f->tree, i)->parent;
        if (!is_kept(f, i) && is_kept(f, parent)) {
            f->other[parent] = tree_plus(f->other[parent], f->total[i]);
        }
    }
    return true;
}

/* ---- the profile ----------------------------------------------------------------------------- */

static void put_message(struct folding *f, uint64_t field)
{
    wire_put_bytes(f->out, field, f->message.data, f->message.len);
    buf_clear(&f->message);
}

/* Writes a sample whose stack is the path to a node. below: the id of a location to put under the
 * node, or 0. */
static void put_sample(struct folding *f, uint32_t node, uint64_t below, int64_t value)
{
    const struct pprof_ids *ids = &f->s.x.entries[PROFILE_LOCATION].ids;
    if (value <= 0) {
        return;
    }
    if (below != 0) {
        wire_put_number(&f->message, SAMPLE_LOCATION_ID, below);
    }
    while (node > 0) {
        const struct tree_edge *edge = tree_edge_of(f->tree, node);
        wire_put_number(&f->message, SAMPLE_LOCATION_ID, ids->at[edge->name]);
        node = edge->parent;
    }
    wire_put_number(&f->message, SAMPLE_VALUE, (uint64_t)value);
    put_message(f, PROFILE_SAMPLE);
}

/* Returns an id that no entry uses. */
static uint64_t free_id(const struct pprof_ids *ids)
{
    uint64_t id = 1;
    for (size_t i = 0; i < ids->n; i++) {
        id = ids->at[i] >= id ? ids->at[i] + 1 : id;
    }
    return id;
}

/* Adds the frame `other`. Returns the id of its location. */
static uint64_t put_other(struct folding *f)
{
    const struct pprof_index *x = &f->s.x;
    uint64_t function = free_id(&x->entries[PROFILE_FUNCTION].ids);
    uint64_t location = free_id(&x->entries[PROFILE_LOCATION].ids);
    unsigned char line[2 * WIRE_NUMBER_MAX];
    size_t n = wire_encode(LINE_FUNCTION_ID << 3 | WIRE_VARINT, line);
    n += wire_encode(function, line + n);
    wire_put_number(&f->message, LOCATION_ID, location);
    wire_put_bytes(&f->message, LOCATION_LINE, line, n);
    put_message(f, PROFILE_LOCATION);
    wire_put_number(&f->message, FUNCTION_ID, function);
    wire_put_number(&f->message, FUNCTION_NAME, x->summary.n[PROFILE_STRING]);
    wire_put_number(&f->message, FUNCTION_SYSTEM_NAME, x->summary.n[PROFILE_STRING]);
    put_message(f, PROFILE_FUNCTION);
    wire_put_bytes(f->out, PROFILE_STRING, "other", strlen("other"));
    return location;
}

static void put_profile(struct folding *f)
{
    struct sv plain = f->s.x.plain;
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field field = {.number = 0};
    while (wire_next(&r, &field)) {
        if (field.number != PROFILE_SAMPLE) {
            buf_append(f->out, plain.p + r.field_start, r.at - r.field_start);
        }
    }
    uint64_t other = put_other(f);
    for (uint32_t i = 0; i < tree_size(f->tree); i++) {
        if (is_kept(f, i)) {
            put_sample(f, i, 0, f->tree->self[i]);
            put_sample(f, i, other, f->other[i]);
        }
    }
}

bool rewrite_fold(struct sv plain, struct scratch *scratch, int64_t max_nodes, size_t bytes_max,
                  struct buf *out, struct err *err)
{
    static const struct query_stacks all;
    const struct store_body body = {.data = plain, .format = PROFILE_PPROF, .whole = true};
    struct folding f = {.out = out, .tree = tree_new(bytes_max, err)};
    buf_init(&f.message, out->max);
    bool ok = f.tree != NULL && samples_open(&f.s, scratch, &body, 0, &all, query_seed(), err) &&
              build(&f, scratch, err) && cut(&f, scratch, max_nodes, err);
    if (ok) {
        put_profile(&f);
        ok = (buf_ok(out) && buf_ok(&f.message)) ||
             err_set(err, ERR_LIMIT, "a profile of more than %zu bytes", out->max);
    } else {
        scratch_explain(scratch, err);
    }
    buf_done(&f.message);
    tree_free(f.tree);
    return ok;
}
