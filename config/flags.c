/* An endpoint from the flags of a command. They become the tree that a file would have, so that the
 * same tables check and complete them; the place of each error is the number of its flag. */
#include <string.h>

#include "config/parts.h"

struct builder {
    struct reader *r;
    int line; /* of the last node */
};

static struct yaml_node *new_node(struct builder *b, enum yaml_kind kind, const char *text)
{
    struct yaml_node *n = arena_alloc(b->r->scratch, sizeof(*n));
    if (n == NULL) {
        b->r->out_of_memory = true;
        return NULL;
    }
    *n = (struct yaml_node){
        .kind = kind, .line = ++b->line, .column = 1, .literal = true, .text = sv_from(text)};
    return n;
}

/* Puts key: value into a mapping. NULL for any of them, because there is none, adds nothing. */
static void put_node(struct builder *b, struct yaml_node *mapping, const char *key,
                     struct yaml_node *value)
{
    if (mapping == NULL || value == NULL) {
        return;
    }
    struct yaml_item *item = arena_alloc(b->r->scratch, sizeof(*item));
    struct yaml_node *name = new_node(b, YAML_SCALAR, key);
    if (item == NULL || name == NULL) {
        b->r->out_of_memory = true;
        return;
    }
    *item = (struct yaml_item){.key = name, .value = value, .next = mapping->items};
    mapping->items = item;
    mapping->n_items++;
}

static void put_text(struct builder *b, struct yaml_node *mapping, const char *key,
                     const char *text)
{
    put_node(b, mapping, key, text == NULL ? NULL : new_node(b, YAML_SCALAR, text));
}

static const struct yaml_node *make_tree(struct builder *b, const struct config_endpoint_flags *f)
{
    struct yaml_node *root = new_node(b, YAML_MAPPING, "");
    put_text(b, root, "name", f->name);
    put_text(b, root, "url", f->url);
    put_text(b, root, "protocol", f->protocol);
    put_text(b, root, "tenant_id", f->tenant);
    put_text(b, root, "bearer_token_file", f->bearer_token_file);
    if (f->username != NULL || f->password_file != NULL) {
        struct yaml_node *auth = new_node(b, YAML_MAPPING, "");
        put_text(b, auth, "username", f->username == NULL ? "" : f->username);
        put_text(b, auth, "password_file", f->password_file);
        put_node(b, root, "basic_auth", auth);
    }
    if (f->ca_file != NULL || f->insecure_skip_verify) {
        struct yaml_node *tls = new_node(b, YAML_MAPPING, "");
        struct yaml_node *skip =
            new_node(b, YAML_SCALAR, f->insecure_skip_verify ? "true" : "false");
        if (skip != NULL) {
            skip->plain = true;
        }
        put_node(b, tls, "insecure_skip_verify", skip);
        put_text(b, tls, "ca_file", f->ca_file);
        put_node(b, root, "tls_config", tls);
    }
    return root;
}

static void read_flags(struct reader *r, const void *arg, struct config *c, void *out)
{
    (void)out;
    struct builder b = {.r = r};
    struct place at = {.node = make_tree(&b, arg)};
    if (!r->out_of_memory) {
        set_defaults(c);
        read_one_endpoint(r, &at, c);
    }
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
