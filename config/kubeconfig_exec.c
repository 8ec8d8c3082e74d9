/* The exec credential plugin of a user: its command, and the input that it gets. */
#include <string.h>

#include "base/ascii.h"
#include "base/base64.h"
#include "config/config.h"
#include "config/file.h"
#include "config/kubeconfig_parts.h"
#include "config/parts.h"

#define API "client.authentication.k8s.io/"
/* The extension of a cluster that plugins receive. */
#define EXTENSION "client.authentication.k8s.io/exec"
/* The most bytes of KUBERNETES_EXEC_INFO: Linux limits the size of a variable. */
#define INFO_MAX ((size_t)100 * 1024)

static bool fail_key(struct loader *l, const struct yaml_node *n, const char *key,
                     const char *expected)
{
    const struct yaml_node *value = yaml_get(n, key);
    if (value == NULL) {
        value = n;
    }
    return loader_fail(l, value, "exec.%s: expected %s", key, expected);
}

/* ---- the command ----------------------------------------------------------------------------- */

static bool read_version(struct loader *l, const struct yaml_node *exec, struct kubeconfig_exec *e)
{
    if (!loader_text(l, exec, "apiVersion", &e->api_version)) {
        return false;
    }
    if (e->api_version == NULL ||
        (strcmp(e->api_version, API "v1") != 0 && strcmp(e->api_version, API "v1beta1") != 0)) {
        return fail_key(l, exec, "apiVersion", "\"" API "v1\" or \"" API "v1beta1\"");
    }
    return true;
}

/* Nobody can answer the questions of a plugin. */
static bool check_interactive(struct loader *l, const struct yaml_node *exec,
                              const struct kubeconfig_exec *e)
{
    const char *mode;
    if (!loader_text(l, exec, "interactiveMode", &mode)) {
        return false;
    }
    if (mode == NULL) {
        return strcmp(e->api_version, API "v1beta1") == 0 ||
               fail_key(l, exec, "interactiveMode", "\"Never\" or \"IfAvailable\"");
    }
    if (strcmp(mode, "Always") == 0) {
        return fail_key(l, exec, "interactiveMode",
                        "\"Never\" or \"IfAvailable\", got \"Always\": there is no terminal to ask "
                        "on");
    }
    return strcmp(mode, "Never") == 0 || strcmp(mode, "IfAvailable") == 0 ||
           fail_key(l, exec, "interactiveMode", "\"Never\" or \"IfAvailable\"");
}

/* A list, empty if the key is missing; NULL after an error. */
static const struct yaml_node *get_list(struct loader *l, const struct yaml_node *exec,
                                        const char *key)
{
    static const struct yaml_node empty = {.kind = YAML_LIST};
    const struct yaml_node *list = yaml_get(exec, key);
    if (list == NULL || yaml_is_null(list)) {
        return &empty;
    }
    return list->kind == YAML_LIST || fail_key(l, exec, key, "a list") ? list : NULL;
}

static bool copy_args(struct loader *l, const struct yaml_node *exec, const struct yaml_node *args,
                      const char **ret_argv)
{
    for (const struct yaml_item *i = args->items; i != NULL; i = i->next) {
        if (i->value->kind != YAML_SCALAR || i->value->problem != NULL) {
            return fail_key(l, exec, "args", "strings");
        }
        *ret_argv = arena_strndup(l->arena, i->value->text.p, i->value->text.n);
        if (*ret_argv++ == NULL) {
            return loader_fail_memory(l);
        }
    }
    *ret_argv = NULL;
    return true;
}

static bool read_argv(struct loader *l, const struct yaml_node *exec, struct kubeconfig_exec *e)
{
    const char *command;
    if (!loader_text(l, exec, "command", &command)) {
        return false;
    }
    if (command == NULL) {
        return fail_key(l, exec, "command", "the name or the path of a program");
    }
    const struct yaml_node *args = get_list(l, exec, "args");
    if (args == NULL) {
        return false;
    }
    const char **argv = arena_array(l->arena, args->n_items + 2, sizeof(*argv));
    /* A bare name is searched in PATH. */
    if (strchr(command, '/') != NULL) {
        command = loader_resolve(l, command);
    }
    if (argv == NULL || command == NULL) {
        return loader_fail_memory(l);
    }
    argv[0] = command;
    e->argv = argv;
    return copy_args(l, exec, args, argv + 1);
}

/* Does the name of a variable suggest a secret? */
static bool is_secret(const char *name)
{
    static const char *const words[] = {"SECRET", "TOKEN", "PASSWORD", "KEY"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasestr(name, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* "NAME=value" of one element of env; its value goes to *secrets too if it is one. */
static bool read_variable(struct loader *l, const struct yaml_node *exec,
                          const struct yaml_node *element, const char **ret_variable,
                          const char ***secrets)
{
    const char *name;
    const char *value;
    if (!loader_text(l, element, "name", &name) || !loader_text(l, element, "value", &value)) {
        return false;
    }
    if (name == NULL || strchr(name, '=') != NULL) {
        return fail_key(l, exec, "env", "mappings with a name and a value");
    }
    *ret_variable = arena_printf(l->arena, "%s=%s", name, value == NULL ? "" : value);
    if (value != NULL && is_secret(name)) {
        *(*secrets)++ = value;
    }
    return *ret_variable != NULL || loader_fail_memory(l);
}

static bool read_env(struct loader *l, const struct yaml_node *exec, struct kubeconfig_exec *e)
{
    const struct yaml_node *list = get_list(l, exec, "env");
    if (list == NULL) {
        return false;
    }
    const char **env = arena_array(l->arena, list->n_items + 1, sizeof(*env));
    const char **secrets = arena_array(l->arena, list->n_items + 1, sizeof(*secrets));
    if (env == NULL || secrets == NULL) {
        return loader_fail_memory(l);
    }
    e->env = env;
    e->secrets = secrets;
    for (const struct yaml_item *i = list->items; i != NULL; i = i->next) {
        if (!read_variable(l, exec, i->value, env++, &secrets)) {
            return false;
        }
    }
    *env = NULL;
    *secrets = NULL;
    return true;
}

/* ---- KUBERNETES_EXEC_INFO -------------------------------------------------------------------- */

static void put_string(struct buf *out, struct sv v)
{
    buf_putc(out, '"');
    json_escape(v, out);
    buf_putc(out, '"');
}

static bool is_json_number(struct sv v)
{
    size_t digits = 0;
    for (size_t i = 0; i < v.n; i++) {
        if (ascii_is_digit(v.p[i])) {
            digits++;
        } else if (!(v.p[i] == '-' && i == 0)) {
            return false;
        }
    }
    return digits > 0 && digits < 16 && !(digits > 1 && v.p[v.n - digits] == '0');
}

static void put_scalar(struct buf *out, const struct yaml_node *n)
{
    bool bare = n->plain && (sv_eq_str(n->text, "true") || sv_eq_str(n->text, "false") ||
                             is_json_number(n->text));
    if (yaml_is_null(n)) {
        buf_puts(out, "null");
    } else if (bare) {
        buf_append(out, n->text.p, n->text.n);
    } else {
        put_string(out, n->text);
    }
}

/* A part of the file, as JSON. */
static void put_node(struct buf *out, const struct yaml_node *n)
{
    bool mapping = n->kind == YAML_MAPPING;
    if (n->kind == YAML_SCALAR) {
        put_scalar(out, n);
        return;
    }
    buf_putc(out, mapping ? '{' : '[');
    for (const struct yaml_item *i = n->items; i != NULL; i = i->next) {
        if (i != n->items) {
            buf_putc(out, ',');
        }
        if (mapping) {
            put_string(out, i->key->kind == YAML_SCALAR ? i->key->text : SV(""));
            buf_putc(out, ':');
        }
        put_node(out, i->value);
    }
    buf_putc(out, mapping ? '}' : ']');
}

static void put_member(struct buf *out, const char *name, const char *value)
{
    if (value != NULL) {
        buf_printf(out, ",\"%s\":", name);
        put_string(out, sv_from(value));
    }
}

static bool put_ca(struct loader *l, const struct http_settings *http, struct buf *out)
{
    struct buf file;
    buf_init(&file, CONFIG_FILE_MAX);
    struct sv pem = sv_from(http->tls.ca_pem);
    bool ok = true;
    if (http->tls.ca_file != NULL) {
        ok = file_read(http->tls.ca_file, CONFIG_FILE_MAX, &file, l->err);
        pem = (struct sv){file.data, file.len};
        if (!ok) {
            err_wrap(l->err, "kubeconfig %s: %s", l->name, http->tls.ca_file);
        }
    }
    if (ok && pem.n > 0) {
        buf_puts(out, ",\"certificate-authority-data\":\"");
        base64_encode(pem, out);
        buf_putc(out, '"');
    }
    buf_done(&file);
    return ok;
}

static const struct yaml_node *find_extension(const struct yaml_node *cluster)
{
    const struct yaml_node *list = yaml_get(cluster, "extensions");
    bool is_list = list != NULL && list->kind == YAML_LIST;
    for (const struct yaml_item *i = is_list ? list->items : NULL; i != NULL; i = i->next) {
        const struct yaml_node *name = yaml_get(i->value, "name");
        if (name != NULL && name->kind == YAML_SCALAR && sv_eq_str(name->text, EXTENSION)) {
            return yaml_get(i->value, "extension");
        }
    }
    return NULL;
}

static bool put_cluster(struct loader *l, const struct yaml_node *cluster,
                        const struct kubeconfig *k, struct buf *out)
{
    const struct yaml_node *config = find_extension(cluster);
    buf_puts(out, ",\"cluster\":{\"server\":");
    put_string(out, sv_from(k->server));
    put_member(out, "tls-server-name", k->http.tls.server_name);
    put_member(out, "proxy-url", k->http.proxy_url);
    if (k->http.tls.insecure_skip_verify) {
        buf_puts(out, ",\"insecure-skip-tls-verify\":true");
    }
    if (!put_ca(l, &k->http, out)) {
        return false;
    }
    if (config != NULL) {
        buf_puts(out, ",\"config\":");
        put_node(out, config);
    }
    buf_putc(out, '}');
    return true;
}

static bool make_info(struct loader *l, const struct yaml_node *cluster, bool provide,
                      const struct kubeconfig *k, struct kubeconfig_exec *e)
{
    struct buf out;
    buf_init(&out, INFO_MAX);
    buf_puts(&out, "{\"kind\":\"ExecCredential\",\"apiVersion\":");
    put_string(&out, sv_from(e->api_version));
    buf_puts(&out, ",\"spec\":{\"interactive\":false");
    bool ok = !provide || put_cluster(l, cluster, k, &out);
    buf_puts(&out, "}}");
    if (ok && buf_too_big(&out)) {
        ok = loader_fail(l, cluster,
                         "the cluster is too large to be told to the exec plugin "
                         "(provideClusterInfo)");
    } else if (ok) {
        e->info = buf_ok(&out) ? arena_strndup(l->arena, out.data, out.len) : NULL;
        ok = e->info != NULL || loader_fail_memory(l);
    }
    buf_done(&out);
    return ok;
}

/* ---- all of it ------------------------------------------------------------------------------- */

bool loader_exec(struct loader *l, const struct yaml_node *user, const struct yaml_node *cluster,
                 const char *user_name, struct kubeconfig *k)
{
    const struct yaml_node *exec = yaml_get(user, "exec");
    bool provide;
    if (exec == NULL || yaml_is_null(exec)) {
        return true;
    }
    if (exec->kind != YAML_MAPPING) {
        return loader_fail(l, exec, "exec: expected a mapping");
    }
    if (k->http.auth != HTTP_AUTH_NONE) {
        return err_set(l->err, ERR_INPUT,
                       "kubeconfig %s: user \"%.128s\" has both an exec plugin and a token or "
                       "password; only one is allowed",
                       l->name, user_name);
    }
    struct kubeconfig_exec *e = arena_alloc(l->arena, sizeof(*e));
    if (e == NULL) {
        return loader_fail_memory(l);
    }
    *e = (struct kubeconfig_exec){0};
    if (!read_version(l, exec, e) || !check_interactive(l, exec, e) || !read_argv(l, exec, e) ||
        !read_env(l, exec, e) || !loader_text(l, exec, "installHint", &e->install_hint) ||
        !loader_bool(l, exec, "provideClusterInfo", &provide) ||
        !make_info(l, cluster, provide, k, e)) {
        return false;
    }
    if (e->install_hint == NULL) {
        e->install_hint = "";
    }
    k->exec = e;
    return true;
}
