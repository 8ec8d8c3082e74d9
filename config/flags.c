/* Makes an endpoint from the flags of a command. The flags become the tree that a file would have,
 * so that the same tables check and complete them. The line of an error is the number of its
 * flag. */
#include <string.h>

#include "config/parts.h"

#define KEYS_MAX 8

struct mapping {
    struct yaml_node node;
    struct yaml_item items[KEYS_MAX];
    struct yaml_node keys[KEYS_MAX];
    struct yaml_node values[KEYS_MAX];
};

struct tree {
    int line; /* line of the last node: the number of its flag */
    struct mapping root;
    struct mapping auth;
    struct mapping tls;
};

static struct yaml_node make_node(struct tree *t, enum yaml_kind kind, const char *text)
{
    return (struct yaml_node){
        .kind = kind, .line = ++t->line, .column = 1, .literal = true, .text = sv_from(text)};
}

static void put_node(struct tree *t, struct mapping *m, const char *key,
                     const struct yaml_node *value)
{
    size_t i = m->node.n_items++;
    m->keys[i] = make_node(t, YAML_SCALAR, key);
    m->items[i] = (struct yaml_item){.key = &m->keys[i], .value = value};
    m->node.items = m->items;
}

/* Adds a key with a text; adds nothing if the text is NULL. */
static void put_text(struct tree *t, struct mapping *m, const char *key, const char *text)
{
    if (text != NULL) {
        struct yaml_node *value = &m->values[m->node.n_items];
        *value = make_node(t, YAML_SCALAR, text);
        put_node(t, m, key, value);
    }
}

static void make_tree(struct tree *t, const struct config_endpoint_flags *f)
{
    t->root.node = make_node(t, YAML_MAPPING, "");
    put_text(t, &t->root, "name", f->name);
    put_text(t, &t->root, "url", f->url);
    put_text(t, &t->root, "protocol", f->protocol);
    put_text(t, &t->root, "tenant_id", f->tenant);
    put_text(t, &t->root, "bearer_token_file", f->bearer_token_file);
    if (f->username != NULL || f->password_file != NULL) {
        t->auth.node = make_node(t, YAML_MAPPING, "");
        put_text(t, &t->auth, "username", f->username == NULL ? "" : f->username);
        put_text(t, &t->auth, "password_file", f->password_file);
        put_node(t, &t->root, "basic_auth", &t->auth.node);
    }
    if (f->ca_file != NULL || f->insecure_skip_verify) {
        t->tls.node = make_node(t, YAML_MAPPING, "");
        put_text(t, &t->tls, "insecure_skip_verify", f->insecure_skip_verify ? "true" : "false");
        t->tls.values[0].plain = true;
        put_text(t, &t->tls, "ca_file", f->ca_file);
        put_node(t, &t->root, "tls_config", &t->tls.node);
    }
}

static void read_flags(struct reader *r, const void *arg, struct config *c, void *out)
{
    (void)out;
    struct tree tree = {0};
    struct place at = {.node = &tree.root.node};
    make_tree(&tree, arg);
    set_defaults(c);
    read_one_endpoint(r, &at, c);
}

struct config *config_endpoint_from_flags(const struct config_endpoint_flags *flags,
                                          const struct config_options *options, struct err *err)
{
    struct config_errors *errors = config_errors_new();
    if (errors == NULL) {
        err_memory(err);
        return NULL;
    }
    struct config *c = config_read("command line", options, errors, read_flags, flags, NULL);
    if (c == NULL) {
        const struct config_error *e = config_errors_at(errors, 0);
        err_set(err, ERR_INPUT, "%s%s%s", e->path, e->path[0] == '\0' ? "" : ": ", e->message);
    }
    config_errors_free(errors);
    return c;
}
