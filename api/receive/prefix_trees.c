#include "api/receive/prefix_trees.h"

#include <stdlib.h>
#include <string.h>

#include "pprof/wire.h"

/* A node whose children are being read. */
struct open_node {
    uint64_t children; /* that are still to come */
    size_t before;     /* frames, or bytes of the key, without the node */
};

struct reader {
    struct sv in;
    size_t at;
    struct frames *stacks;
    struct open_node *open;
    size_t n_open;
    size_t cap_open;
    /* For a trie: the text of the stack, and the bytes of all stacks so far. */
    char *key;
    size_t key_len;
    size_t cap_key;
    size_t key_bytes;
    struct err *err;
};

struct node {
    struct sv name;
    uint64_t value;
    uint64_t children;
};

static bool read_number(struct reader *r, uint64_t *ret)
{
    struct wire_varint v = wire_varint(r->in.p + r->at, r->in.p + r->in.n);
    if (v.next == NULL) {
        return err_set(r->err, ERR_INPUT, "byte %zu: %s", r->at,
                       v.value != 0 ? "the tree is cut" : "a number of more than 64 bits");
    }
    r->at = (size_t)(v.next - r->in.p);
    *ret = v.value;
    return true;
}

static bool read_node(struct reader *r, struct node *ret)
{
    uint64_t n = 0;
    if (!read_number(r, &n)) {
        return false;
    }
    if (n > r->in.n - r->at) {
        return err_set(r->err, ERR_INPUT, "byte %zu: the tree is cut", r->at);
    }
    ret->name = (struct sv){r->in.p + r->at, (size_t)n};
    r->at += (size_t)n;
    return read_number(r, &ret->value) && read_number(r, &ret->children);
}

/* Remembers that the children of a node come next. */
static bool open_node(struct reader *r, uint64_t children, size_t before)
{
    if (r->n_open == FRAMES_DEPTH_MAX) {
        return err_set(r->err, ERR_LIMIT, "nodes nested more than %d deep", FRAMES_DEPTH_MAX);
    }
    if (r->n_open == r->cap_open) {
        size_t cap = r->cap_open == 0 ? 64 : 2 * r->cap_open;
        struct open_node *bigger = reallocarray(r->open, cap, sizeof(*bigger));
        if (bigger == NULL) {
            return err_memory(r->err);
        }
        r->open = bigger;
        r->cap_open = cap;
    }
    r->open[r->n_open++] = (struct open_node){children, before};
    return true;
}

/* Ends a node without children, and those whose last child it is. Returns the frames, or bytes of
 * the key, that stay. */
static size_t close_nodes(struct reader *r, size_t before)
{
    while (r->n_open > 0 && --r->open[r->n_open - 1].children == 0) {
        before = r->open[--r->n_open].before;
    }
    return before;
}

/* ---- trees ----------------------------------------------------------------------------------- */

static bool read_tree_node(struct reader *r, bool is_root)
{
    struct node n = {.name = SV("")};
    size_t before = frames_depth(r->stacks);
    if (!read_node(r, &n)) {
        return false;
    }
    /* The root is no frame; a value of its own belongs to no stack. */
    if (!is_root && (!frames_push(r->stacks, n.name, r->err) ||
                     (n.value > 0 && !frames_put(r->stacks, n.value, r->err)))) {
        return false;
    }
    if (n.children > 0) {
        return open_node(r, n.children, before);
    }
    frames_cut(r->stacks, close_nodes(r, before));
    return true;
}

/* ---- tries ----------------------------------------------------------------------------------- */

/* Appends a piece to the key. */
static bool add_piece(struct reader *r, struct sv piece)
{
    if (piece.n == 0 || piece.p == NULL) {
        return true;
    }
    if (piece.n > TRIE_STACK_MAX - r->key_len) {
        return err_set(r->err, ERR_LIMIT, "a stack of more than %zu bytes", TRIE_STACK_MAX);
    }
    if (r->key_len + piece.n > r->cap_key) {
        size_t cap = 2 * (r->key_len + piece.n);
        char *bigger = realloc(r->key, cap);
        if (bigger == NULL) {
            return err_memory(r->err);
        }
        r->key = bigger;
        r->cap_key = cap;
    }
    memcpy(r->key + r->key_len, piece.p, piece.n);
    r->key_len += piece.n;
    return true;
}

static bool put_key(struct reader *r, uint64_t value)
{
    r->key_bytes += r->key_len;
    if (r->key_bytes > TRIE_STACKS_MAX) {
        return err_set(r->err, ERR_LIMIT, "stacks of more than %zu bytes", TRIE_STACKS_MAX);
    }
    return frames_split(r->stacks, (struct sv){r->key, r->key_len}, r->err) &&
           frames_put(r->stacks, value, r->err);
}

static bool read_trie_node(struct reader *r, bool is_root)
{
    struct node n = {.name = SV("")};
    size_t before = r->key_len;
    (void)is_root;
    if (!read_node(r, &n) || !add_piece(r, n.name) || (n.value > 0 && !put_key(r, n.value))) {
        return false;
    }
    if (n.children > 0) {
        return open_node(r, n.children, before);
    }
    r->key_len = close_nodes(r, before);
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Reads nodes until the root is complete. What follows is ignored, as by Pyroscope. */
static bool read_nodes(struct reader *r, bool (*read)(struct reader *r, bool is_root))
{
    bool is_root = true;
    do {
        if (!read(r, is_root)) {
            return false;
        }
        is_root = false;
    } while (r->n_open > 0);
    return true;
}

static bool convert(struct sv in, const struct frames_options *o, bool names_live,
                    bool (*read)(struct reader *r, bool is_root), struct buf *out,
                    size_t *ret_samples, struct err *err)
{
    struct reader r = {.in = in, .err = err};
    struct frames_options options = *o;
    options.names_live = names_live;
    r.stacks = frames_new(&options, out, err);
    bool ok = r.stacks != NULL && read_nodes(&r, read) && frames_finish(r.stacks, ret_samples, err);
    frames_free(r.stacks);
    free(r.open);
    free(r.key);
    return ok;
}

bool trie_convert(struct sv in, const struct frames_options *o, struct buf *out,
                  size_t *ret_samples, struct err *err)
{
    return convert(in, o, false, read_trie_node, out, ret_samples, err);
}

bool tree_convert(struct sv in, const struct frames_options *o, struct buf *out,
                  size_t *ret_samples, struct err *err)
{
    return convert(in, o, true, read_tree_node, out, ret_samples, err);
}
