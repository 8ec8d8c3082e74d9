/* Reads a kubeconfig of one or several files. Unknown keys are ignored: most of them concern only
 * kubectl. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/file.h"
#include "config/kubeconfig_parts.h"
#include "config/parts.h"

#define TREE_MAX (UINT64_C(64) * 1024 * 1024)
/* The most names among which a message looks for a similar one. */
#define NAMES_SUGGESTED 256

/* ---- the parts of the file ------------------------------------------------------------------- */

/* One file, and its tree. */
struct source {
    const char *name;
    const struct yaml_node *root; /* NULL: the file has no content */
};

/* The files of a kubeconfig, the first one first. */
struct sources {
    const char *names; /* all file names, for messages that concern no single file */
    struct source at[KUBECONFIG_FILES_MAX];
    size_t n;
};

/* Reports that no file has an element with this name, and the similar name that may be meant. */
static void fail_name(struct loader *l, const struct sources *all, const char *list,
                      const char *key, const char *name)
{
    const char *names[NAMES_SUGGESTED];
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct yaml_node *elements = yaml_get(all->at[i].root, list);
        size_t n_items = elements != NULL && elements->kind == YAML_LIST ? elements->n_items : 0;
        for (size_t j = 0; j < n_items && n < NAMES_SUGGESTED; j++) {
            const struct yaml_node *of = yaml_get(elements->items[j].value, "name");
            if (of != NULL && of->kind == YAML_SCALAR) {
                names[n++] = of->text.p;
            }
        }
    }
    const char *near = suggest(sv_from(name), names, n);
    l->name = all->names;
    loader_fail(l, NULL, "no %s with the name \"%.128s\" in %s%s%.128s%s", key, name, list,
                near == NULL ? "" : "; did you mean \"", near == NULL ? "" : near,
                near == NULL ? "" : "\"?");
}

/* Finds the element with this name in the list `list`, and returns its mapping `key`. The first
 * file that has the name wins, as in kubectl; the loader's file becomes that one. */
static const struct yaml_node *find_named(struct loader *l, const struct sources *all,
                                          const char *list, const char *key, const char *name)
{
    const struct yaml_node *element = NULL;
    for (size_t i = 0; i < all->n && element == NULL; i++) {
        element = loader_find(yaml_get(all->at[i].root, list), name);
        l->name = all->at[i].name;
    }
    if (element == NULL) {
        fail_name(l, all, list, key, name);
        return NULL;
    }
    const struct yaml_node *found = yaml_get(element, key);
    if (found != NULL && (found->kind == YAML_MAPPING || yaml_is_null(found))) {
        return found;
    }
    loader_fail(l, yaml_get(element, "name"), "%s \"%.128s\" has no mapping \"%s\"", key, name,
                key);
    return NULL;
}

/* Inline data takes precedence over a file, as in kubectl. */
static void prefer_data(const char *data, const char **file)
{
    if (data != NULL) {
        *file = NULL;
    }
}

static bool check_server(struct loader *l, const struct yaml_node *cluster, struct kubeconfig *k)
{
    struct sv server = sv_from(k->server);
    while (server.n > 0 && server.p[server.n - 1] == '/') {
        server.n--;
    }
    if (server.n == 0) {
        return loader_fail(l, cluster, "the cluster has no \"server\"");
    }
    if (!check_http_url(server)) {
        return loader_fail(
            l, yaml_get(cluster, "server"),
            "server: expected a URL such as \"https://host:6443\" without user, query and "
            "fragment");
    }
    k->server = arena_strndup(l->arena, server.p, server.n);
    return k->server != NULL || loader_fail_memory(l);
}

static bool read_cluster(struct loader *l, const struct yaml_node *cluster, struct kubeconfig *k)
{
    static const struct loader_row rows[] = {
        {"server", LOAD_TEXT, offsetof(struct kubeconfig, server)},
        {"certificate-authority-data", LOAD_PEM, offsetof(struct kubeconfig, http.tls.ca_pem)},
        {"certificate-authority", LOAD_FILE, offsetof(struct kubeconfig, http.tls.ca_file)},
        {"insecure-skip-tls-verify", LOAD_BOOL,
         offsetof(struct kubeconfig, http.tls.insecure_skip_verify)},
        {"tls-server-name", LOAD_TEXT, offsetof(struct kubeconfig, http.tls.server_name)},
        {"proxy-url", LOAD_TEXT, offsetof(struct kubeconfig, http.proxy_url)},
        {0},
    };
    if (!loader_read(l, cluster, rows, k) || !check_server(l, cluster, k)) {
        return false;
    }
    prefer_data(k->http.tls.ca_pem, &k->http.tls.ca_file);
    if (k->http.proxy_url != NULL && !text_ok(&text_proxy_url, sv_from(k->http.proxy_url))) {
        return loader_fail(l, yaml_get(cluster, "proxy-url"), "proxy-url: expected a proxy URL");
    }
    return true;
}

/* Refuses features that profpull lacks and must not ignore. */
static bool refuse_plugins(struct loader *l, const struct yaml_node *user)
{
    static const struct {
        const char *key;
        const char *what;
    } refused[] = {
        {"auth-provider", "uses an auth-provider plugin, which is not supported yet; use a token, "
                          "a client certificate or an exec plugin"},
        {"as", "impersonates another user (\"as\"), which is not supported yet"},
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        const struct yaml_node *n = yaml_get(user, refused[i].key);
        if (n != NULL && !yaml_is_null(n)) {
            return loader_fail(l, NULL, "user \"%.128s\" %s", l->user, refused[i].what);
        }
    }
    return true;
}

/* Checks that a user has a token or a password, not both. tokenFile takes precedence over token, as
 * in kubectl. */
static bool check_login(struct loader *l, const struct yaml_node *user, struct http_settings *http)
{
    const char *token = http->credentials;
    bool bearer = token != NULL || http->credentials_file != NULL;
    if (bearer && http->username != NULL) {
        return loader_fail(l, NULL,
                           "user \"%.128s\" has both a token and a username; only one is allowed",
                           l->user);
    }
    if (token != NULL && !check_header_value(sv_from(token))) {
        return loader_fail(l, yaml_get(user, "token"),
                           "token: line breaks and control characters are not allowed");
    }
    if (http->credentials_file != NULL) {
        http->credentials = NULL;
    }
    http->auth = bearer                   ? HTTP_AUTH_HEADER
                 : http->username != NULL ? HTTP_AUTH_BASIC
                                          : HTTP_AUTH_NONE;
    return true;
}

static bool read_user(struct loader *l, const struct yaml_node *user, struct http_settings *http)
{
    static const struct loader_row rows[] = {
        {"token", LOAD_TEXT, offsetof(struct http_settings, credentials)},
        {"tokenFile", LOAD_FILE, offsetof(struct http_settings, credentials_file)},
        {"username", LOAD_TEXT, offsetof(struct http_settings, username)},
        {"password", LOAD_TEXT, offsetof(struct http_settings, password)},
        {"client-certificate-data", LOAD_PEM, offsetof(struct http_settings, tls.cert_pem)},
        {"client-certificate", LOAD_FILE, offsetof(struct http_settings, tls.cert_file)},
        {"client-key-data", LOAD_PEM, offsetof(struct http_settings, tls.key_pem)},
        {"client-key", LOAD_FILE, offsetof(struct http_settings, tls.key_file)},
        {0},
    };
    if (!refuse_plugins(l, user) || !loader_read(l, user, rows, http) ||
        !check_login(l, user, http)) {
        return false;
    }
    prefer_data(http->tls.cert_pem, &http->tls.cert_file);
    prefer_data(http->tls.key_pem, &http->tls.key_file);
    bool cert = http->tls.cert_pem != NULL || http->tls.cert_file != NULL;
    bool key = http->tls.key_pem != NULL || http->tls.key_file != NULL;
    if (cert != key) {
        return loader_fail(l, NULL, "user \"%.128s\" has a client %s without a client %s", l->user,
                           cert ? "certificate" : "key", cert ? "key" : "certificate");
    }
    return true;
}

/* The names that a context consists of. */
struct context {
    const char *cluster;
    const char *user;
    const char *namespace;
};

static bool read_context(struct loader *l, const struct yaml_node *n, struct context *c)
{
    static const struct loader_row rows[] = {
        {"cluster", LOAD_TEXT, offsetof(struct context, cluster)},
        {"user", LOAD_TEXT, offsetof(struct context, user)},
        {"namespace", LOAD_TEXT, offsetof(struct context, namespace)},
        {0},
    };
    if (!loader_read(l, n, rows, c)) {
        return false;
    }
    if (c->cluster == NULL) {
        return loader_fail(l, n, "the context has no \"cluster\"");
    }
    return c->namespace == NULL || text_ok(&text_namespace, sv_from(c->namespace)) ||
           loader_fail(l, yaml_get(n, "namespace"), "namespace: expected the name of a namespace");
}

/* Finds the name of the current context: the first file that sets one wins. */
static bool find_current(struct loader *l, const struct sources *all, const char **ret)
{
    static const struct loader_row rows[] = {{"current-context", LOAD_TEXT, 0}, {0}};
    for (size_t i = 0; i < all->n && *ret == NULL; i++) {
        l->name = all->at[i].name;
        if (!loader_read(l, all->at[i].root, rows, ret)) {
            return false;
        }
    }
    l->name = all->names;
    return *ret != NULL || loader_fail(l, NULL, "no current-context is set");
}

/* Reads the trees of all files. context: NULL for current-context. */
static bool read_trees(struct loader *l, const struct sources *all, const char *context,
                       struct kubeconfig *k)
{
    struct context c = {0};
    if (context == NULL && !find_current(l, all, &context)) {
        return false;
    }
    const struct yaml_node *n = find_named(l, all, "contexts", "context", context);
    if (n == NULL || !read_context(l, n, &c)) {
        return false;
    }
    k->context = arena_strdup(l->arena, context);
    k->file = arena_strdup(l->arena, l->name);
    k->namespace = c.namespace;
    if (k->context == NULL || k->file == NULL) {
        return loader_fail_memory(l);
    }
    const struct yaml_node *cluster = find_named(l, all, "clusters", "cluster", c.cluster);
    if (cluster == NULL || !read_cluster(l, cluster, k)) {
        return false;
    }
    if (c.user == NULL) {
        return true;
    }
    l->user = c.user;
    const struct yaml_node *user = find_named(l, all, "users", "user", c.user);
    return user != NULL && read_user(l, user, &k->http) && loader_exec(l, user, cluster, k);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Parses a text as one more file. The text must live as long as the tree. */
static bool add_text(struct loader *l, struct sources *all, struct sv text, struct arena *scratch)
{
    struct source *s = &all->at[all->n];
    struct yaml_place place;
    *s = (struct source){.name = l->name};
    if (!yaml_parse(text, scratch, &s->root, &place, l->err)) {
        return place.line > 0
                   ? err_wrap(l->err, "kubeconfig %s:%d:%d", l->name, place.line, place.column)
                   : err_wrap(l->err, "kubeconfig %s", l->name);
    }
    if (s->root != NULL && s->root->kind != YAML_MAPPING) {
        return loader_fail(l, s->root, "expected a mapping");
    }
    all->n++;
    return true;
}

bool kubeconfig_parse(const char *name, struct sv text, const char *context, struct arena *arena,
                      struct kubeconfig *ret, struct err *err)
{
    struct loader l = {.name = name, .arena = arena, .err = err};
    struct sources all = {.names = name};
    struct kubeconfig k = {0};
    struct arena *scratch = arena_new(TREE_MAX);
    if (scratch == NULL) {
        return loader_fail_memory(&l);
    }
    schema_defaults(&schema_http, &k.http);
    bool ok = add_text(&l, &all, text, scratch) &&
              (all.at[0].root != NULL || loader_fail(&l, NULL, "expected a mapping")) &&
              read_trees(&l, &all, context, &k);
    arena_free(scratch);
    if (ok) {
        *ret = k;
    }
    return ok;
}

bool kubeconfig_load(const char *path, const char *context, struct arena *arena,
                     struct kubeconfig *ret, struct err *err)
{
    struct buf text;
    buf_init(&text, CONFIG_FILE_MAX + 1);
    bool ok = file_read(path, CONFIG_FILE_MAX, &text, err);
    if (!ok) {
        err_wrap(err, "kubeconfig %s", path);
    } else {
        ok = kubeconfig_parse(path, (struct sv){text.data, text.len}, context, arena, ret, err);
    }
    buf_done(&text);
    return ok;
}

/* Reads one file of a list. A file that is missing counts as empty, as in kubectl. */
static bool add_file(struct loader *l, struct sources *all, const char *path, struct buf *text,
                     struct arena *scratch)
{
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        return true;
    }
    l->name = path;
    if (!file_read(path, CONFIG_FILE_MAX, text, l->err)) {
        return err_wrap(l->err, "kubeconfig %s", path);
    }
    return add_text(l, all, (struct sv){text->data, text->len}, scratch);
}

bool kubeconfig_load_all(const struct kubeconfig_paths *paths, const char *context,
                         struct arena *arena, struct kubeconfig *ret, bool *ret_found,
                         struct err *err)
{
    struct loader l = {.name = paths->names, .arena = arena, .err = err};
    struct sources all = {.names = paths->names};
    struct kubeconfig k = {0};
    struct buf texts[KUBECONFIG_FILES_MAX];
    struct arena *scratch = arena_new(TREE_MAX);
    bool ok = scratch != NULL || loader_fail_memory(&l);
    schema_defaults(&schema_http, &k.http);
    for (size_t i = 0; i < paths->n; i++) {
        buf_init(&texts[i], CONFIG_FILE_MAX + 1);
        ok = ok && add_file(&l, &all, paths->at[i], &texts[i], scratch);
    }
    *ret_found = ok && all.n > 0;
    ok = ok && (all.n == 0 || read_trees(&l, &all, context, &k));
    for (size_t i = 0; i < paths->n; i++) {
        buf_done(&texts[i]);
    }
    arena_free(scratch);
    if (ok && all.n > 0) {
        *ret = k;
    }
    return ok;
}

/* ---- where kubectl looks --------------------------------------------------------------------- */

/* Splits a list of file names at colons; empty names are skipped. */
static bool split_paths(const char *list, struct arena *arena, struct kubeconfig_paths *ret,
                        struct err *err)
{
    struct sv rest = sv_from(list);
    while (rest.n > 0) {
        struct sv one = rest;
        struct sv after = SV("");
        (void)sv_cut(rest, ':', &one, &after);
        rest = after;
        if (one.n == 0) {
            continue;
        }
        if (ret->n == KUBECONFIG_FILES_MAX) {
            return err_set(err, ERR_LIMIT, "KUBECONFIG: expected at most %d files",
                           KUBECONFIG_FILES_MAX);
        }
        ret->at[ret->n] = arena_strndup(arena, one.p, one.n);
        if (ret->at[ret->n++] == NULL) {
            return err_memory(err);
        }
    }
    return true;
}

bool kubeconfig_paths(const char *variable, const char *home, struct arena *arena,
                      struct kubeconfig_paths *ret, struct err *err)
{
    *ret = (struct kubeconfig_paths){.names = variable};
    if (variable != NULL && variable[0] != '\0') {
        ret->is_default = false;
        return split_paths(variable, arena, ret, err);
    }
    ret->is_default = true;
    if (home == NULL || home[0] == '\0') {
        ret->names = "~/.kube/config";
        return true;
    }
    ret->at[0] = arena_printf(arena, "%s/.kube/config", home);
    ret->names = ret->at[0];
    ret->n = 1;
    return ret->at[0] != NULL || err_memory(err);
}
