#include "alloy/endpoint.h"

#include <string.h>
#include <strings.h>

#include "base/base64.h"

#define DECODED_MAX ((size_t)64 * 1024)

static struct config_place place_of(const struct yaml_node *n)
{
    return (struct config_place){n->line, n->column, n->file};
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Returns true if an endpoint has a name that no other endpoint of the same write has. */
static bool is_own_name(const struct yaml_node *endpoints, size_t index)
{
    const struct yaml_node *name = yaml_get(endpoints->items[index].value, "name");
    if (name == NULL || name->text.n == 0) {
        return false;
    }
    for (size_t i = 0; i < endpoints->n_items; i++) {
        const struct yaml_node *other = yaml_get(endpoints->items[i].value, "name");
        if (i != index && other != NULL && sv_eq(other->text, name->text)) {
            return false;
        }
    }
    return true;
}

static const char *name_of(struct alloy_load *l, const struct alloy_node *write,
                           const struct yaml_node *endpoints, size_t index)
{
    if (endpoints->n_items == 1) {
        return write->name;
    }
    if (!is_own_name(endpoints, index)) {
        return alloy_text(l, "%s/%zu", write->name, index + 1);
    }
    const struct yaml_node *name = yaml_get(endpoints->items[index].value, "name");
    return alloy_text(l, "%s/%.*s", write->name, SV_ARG(name->text));
}

/* ---- headers --------------------------------------------------------------------------------- */

static bool is_auth_key(struct sv key)
{
    static const char *const keys[] = {"basic_auth", "authorization", "oauth2", "bearer_token",
                                       "bearer_token_file"};
    return sv_in(key, keys, sizeof(keys) / sizeof(keys[0]));
}

/* Drops other credentials of an endpoint that has the header Authorization, which takes precedence
 * in Alloy. */
static void drop_other_auth(struct alloy_load *l, struct yaml_node *e, const char *path)
{
    size_t i = 0;
    while (i < e->n_items) {
        struct sv key = e->items[i].key->text;
        if (!is_auth_key(key)) {
            i++;
            continue;
        }
        config_tell(l->notes, place_of(e->items[i].value), path,
                    "\"%.*s\" is left out: the header Authorization comes before it", SV_ARG(key));
        tree_remove(e, key.p);
    }
}

/* Converts a header "Basic dTpw" to basic_auth; false if the text does not have that form. */
static bool put_basic(struct alloy_load *l, struct yaml_node *e, const struct yaml_node *header,
                      struct sv credentials)
{
    struct buf text;
    struct sv user;
    struct sv password;
    struct sv none = {.p = NULL};
    buf_init(&text, DECODED_MAX);
    bool ok = base64_decode(credentials, &text) &&
              sv_cut((struct sv){text.data, text.len}, ':', &user, &password);
    if (ok) {
        struct yaml_node *basic = tree_mapping(&l->tree, place_of(header), NULL);
        tree_put(&l->tree, basic, "username",
                 tree_text(&l->tree, place_of(header), NULL, user, none));
        tree_put(&l->tree, basic, "password",
                 tree_text(&l->tree, place_of(header), NULL, password, none));
        tree_put(&l->tree, e, "basic_auth", basic);
    }
    buf_wipe(&text);
    return ok;
}

static void put_authorization(struct alloy_load *l, struct yaml_node *e,
                              const struct yaml_node *header, const char *path)
{
    struct sv type;
    struct sv credentials;
    struct sv form = {.p = NULL};
    drop_other_auth(l, e, path);
    if (!sv_cut(header->text, ' ', &type, &credentials)) {
        l->ev.path = path;
        (void)alloy_fail(
            &l->ev, place_of(header),
            "expected a type and credentials, such as \"Bearer ...\", in Authorization");
        return;
    }
    if (sv_eq_nocase(type, "basic") && put_basic(l, e, header, credentials)) {
        return;
    }
    if (header->form.p != NULL && header->form.n > type.n + 1 &&
        memcmp(header->form.p, header->text.p, type.n + 1) == 0) {
        form = sv_skip(header->form, type.n + 1);
    }
    struct yaml_node *authorization = tree_mapping(&l->tree, place_of(header), path);
    tree_put(&l->tree, authorization, "type",
             tree_text(&l->tree, place_of(header), path, type, (struct sv){.p = NULL}));
    tree_put(&l->tree, authorization, "credentials",
             tree_text(&l->tree, place_of(header), path, credentials, form));
    tree_put(&l->tree, e, "authorization", authorization);
}

/* Returns true for a header that profpull sets itself. */
static bool is_reserved(struct sv name)
{
    static const char *const names[] = {"host",
                                        "user-agent",
                                        "content-type",
                                        "content-length",
                                        "connection",
                                        "transfer-encoding",
                                        "content-encoding",
                                        "accept",
                                        "accept-encoding",
                                        "expect",
                                        "te",
                                        "trailer",
                                        "upgrade",
                                        "keep-alive"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (sv_eq_nocase(name, names[i])) {
            return true;
        }
    }
    return false;
}

static void sort_headers(struct alloy_load *l, struct yaml_node *e, const char *path)
{
    const struct yaml_node *given = yaml_get(e, "headers");
    if (given == NULL) {
        return;
    }
    struct yaml_node *headers = tree_mapping(&l->tree, place_of(given), given->path);
    for (size_t i = 0; i < given->n_items; i++) {
        struct sv name = given->items[i].key->text;
        const struct yaml_node *value = given->items[i].value;
        const char *p = alloy_text(l, "%s.headers.%.*s", path, SV_ARG(name));
        if (sv_eq_nocase(name, "authorization")) {
            put_authorization(l, e, value, p);
        } else if (is_reserved(name)) {
            config_tell(l->notes, place_of(value), p, "cannot be set, left out");
        } else {
            tree_put_new(&l->tree, headers, name, value);
        }
    }
    if (headers != NULL && headers->n_items > 0) {
        tree_put(&l->tree, e, "headers", headers);
    } else {
        tree_remove(e, "headers");
    }
}

/* ---- URLs ------------------------------------------------------------------------------------ */

/* Returns the name of the variable in "${NAME:-}", for messages. */
static struct sv variable_of(struct sv form)
{
    bool one = form.n > 5 && sv_starts_with(form, SV("${")) && sv_ends_with(form, SV(":-}"));
    return one ? (struct sv){form.p + 2, form.n - 5} : SV("");
}

static bool check_url(struct alloy_load *l, const struct yaml_node *e, const char *path)
{
    const struct yaml_node *url = yaml_get(e, "url");
    if (url == NULL || url->text.n > 0 || (l->for_text && url->form.p != NULL)) {
        return url != NULL;
    }
    struct sv variable = url->form.p != NULL ? variable_of(url->form) : SV("");
    l->ev.path = alloy_path(l->arena, path, SV("url"));
    if (variable.n > 0) {
        (void)alloy_fail(&l->ev, place_of(url),
                         "expected a URL, got \"\" (the variable %.*s is not set)",
                         SV_ARG(variable));
    } else {
        (void)alloy_fail(&l->ev, place_of(url), "expected a URL, got \"\"");
    }
    return false;
}

/* Adds an empty user name if there is only a password, since Alloy sends an empty one. */
static void complete_basic(struct alloy_load *l, struct yaml_node *e)
{
    const struct yaml_node *basic = yaml_get(e, "basic_auth");
    if (basic != NULL && yaml_get(basic, "username") == NULL &&
        yaml_get(basic, "username_file") == NULL) {
        struct sv none = {.p = NULL};
        struct yaml_node *name = tree_text(&l->tree, place_of(basic), NULL, SV(""), none);
        tree_put(&l->tree, tree_submapping(&l->tree, e, "basic_auth"), "username", name);
    }
}

struct yaml_node *alloy_endpoint(struct alloy_load *l, const struct alloy_node *write,
                                 const struct yaml_node *endpoints, size_t index)
{
    struct tree *t = &l->tree;
    const struct yaml_node *given = endpoints->items[index].value;
    const char *path = given->path != NULL ? given->path : write->path;
    struct yaml_node *e = tree_mapping(t, place_of(given), path);
    tree_put(t, e, "name",
             tree_text(t, place_of(given), path, sv_from(name_of(l, write, endpoints, index)),
                       (struct sv){.p = NULL}));
    for (size_t i = 0; i < given->n_items; i++) {
        if (!sv_eq_str(given->items[i].key->text, "name")) {
            tree_put_text(t, e, given->items[i].key->text, given->items[i].value);
        }
    }
    tree_put(t, e, "protocol", tree_word(t, place_of(given), path, "push"));
    if (e == NULL) {
        return NULL;
    }
    if (!check_url(l, e, path)) {
        tree_remove(e, "url");
    }
    sort_headers(l, e, path);
    complete_basic(l, e);
    return e;
}
