/* The exec credential plugin of a user: its command, and the input that it gets. */
#include <string.h>

#include "base/base64.h"
#include "config/config.h"
#include "config/file.h"
#include "config/kubeconfig_parts.h"
#include "config/parts.h"
#include "http/url.h"

#define API "client.authentication.k8s.io/"
/* The extension of a cluster that plugins receive. */
#define EXTENSION "client.authentication.k8s.io/exec"
/* The most bytes of KUBERNETES_EXEC_INFO: Linux limits the size of a variable. */
#define INFO_MAX ((size_t)100 * 1024)

/* The keys of a plugin. */
struct plugin {
    struct kubeconfig_exec exec;
    const char *mode;
    const char *command;
    bool provide_cluster;
};

static bool fail_key(struct loader *l, const struct yaml_node *n, const char *key,
                     const char *expected)
{
    const struct yaml_node *value = yaml_get(n, key);
    return loader_fail(l, value == NULL ? n : value, "exec.%s: expected %s", key, expected);
}

/* ---- the command ----------------------------------------------------------------------------- */

static bool check_version(struct loader *l, const struct yaml_node *exec, const char *version)
{
    bool known =
        version != NULL && (strcmp(version, API "v1") == 0 || strcmp(version, API "v1beta1") == 0);
    return known || fail_key(l, exec, "apiVersion", "\"" API "v1\" or \"" API "v1beta1\"");
}

/* Refuses a plugin that needs a terminal: nobody could answer its questions. */
static bool check_interactive(struct loader *l, const struct yaml_node *exec,
                              const struct plugin *p)
{
    bool is_beta = strcmp(p->exec.api_version, API "v1beta1") == 0;
    const char *mode = p->mode == NULL && is_beta ? "Never" : p->mode;
    if (mode != NULL && (strcmp(mode, "Never") == 0 || strcmp(mode, "IfAvailable") == 0)) {
        return true;
    }
    bool always = mode != NULL && strcmp(mode, "Always") == 0;
    return fail_key(l, exec, "interactiveMode",
                    always ? "\"Never\" or \"IfAvailable\", got \"Always\": there is no terminal "
                             "to ask on"
                           : "\"Never\" or \"IfAvailable\"");
}

/* Returns the list of a key, an empty one if the key is missing; NULL after an error. */
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
    for (size_t i = 0; i < args->n_items; i++) {
        const struct yaml_node *arg = args->items[i].value;
        if (arg->kind != YAML_SCALAR || arg->problem != NULL) {
            return fail_key(l, exec, "args", "strings");
        }
        *ret_argv = arena_strndup(l->arena, arg->text.p, arg->text.n);
        if (*ret_argv++ == NULL) {
            return loader_fail_memory(l);
        }
    }
    *ret_argv = NULL;
    return true;
}

static bool read_argv(struct loader *l, const struct yaml_node *exec, struct plugin *p)
{
    const char *command = p->command;
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
    p->exec.argv = argv;
    return copy_args(l, exec, args, argv + 1);
}

/* Adds "NAME=value" for one element of env. If the value may be a secret, it is added to *secrets
 * as well. */
static bool read_variable(struct loader *l, const struct yaml_node *exec,
                          const struct yaml_node *element, const char **ret_variable,
                          const char ***secrets)
{
    struct variable {
        const char *name;
        const char *value;
    } v = {0};
    static const struct loader_row rows[] = {
        {"name", LOAD_TEXT, offsetof(struct variable, name)},
        {"value", LOAD_TEXT, offsetof(struct variable, value)},
        {0},
    };
    if (!loader_read(l, element, rows, &v)) {
        return false;
    }
    if (v.name == NULL || strchr(v.name, '=') != NULL) {
        return fail_key(l, exec, "env", "mappings with a name and a value");
    }
    *ret_variable = arena_printf(l->arena, "%s=%s", v.name, v.value == NULL ? "" : v.value);
    if (v.value != NULL && url_name_is_secret(sv_from(v.name))) {
        *(*secrets)++ = v.value;
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
    for (size_t i = 0; i < list->n_items; i++) {
        if (!read_variable(l, exec, list->items[i].value, env++, &secrets)) {
            return false;
        }
    }
    *env = NULL;
    *secrets = NULL;
    return true;
}

/* ---- KUBERNETES_EXEC_INFO -------------------------------------------------------------------- */

/* Returns true for an integer that JSON and all its readers hold exactly. */
static bool is_json_number(struct sv v)
{
    struct sv digits = sv_skip(v, sv_starts_with(v, SV("-")) ? 1 : 0);
    uint64_t value;
    return parse_u64(digits, UINT64_C(999999999999999), &value) &&
           (digits.n == 1 || digits.p[0] != '0');
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
        json_quote(n->text, out);
    }
}

/* Appends a part of the file as JSON. */
static void put_node(struct buf *out, const struct yaml_node *n)
{
    bool mapping = n->kind == YAML_MAPPING;
    if (n->kind == YAML_SCALAR) {
        put_scalar(out, n);
        return;
    }
    buf_putc(out, mapping ? '{' : '[');
    for (size_t i = 0; i < n->n_items; i++) {
        if (i > 0) {
            buf_putc(out, ',');
        }
        if (mapping) {
            const struct yaml_node *key = n->items[i].key;
            json_quote(key->kind == YAML_SCALAR ? key->text : SV(""), out);
            buf_putc(out, ':');
        }
        put_node(out, n->items[i].value);
    }
    buf_putc(out, mapping ? '}' : ']');
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
        json_key("certificate-authority-data", out);
        buf_putc(out, '"');
        base64_encode(pem, out);
        buf_putc(out, '"');
    }
    buf_done(&file);
    return ok;
}

static bool put_cluster(struct loader *l, const struct yaml_node *cluster,
                        const struct kubeconfig *k, struct buf *out)
{
    const struct yaml_node *extension = loader_find(yaml_get(cluster, "extensions"), EXTENSION);
    const struct yaml_node *config = yaml_get(extension, "extension");
    buf_puts(out, ",\"cluster\":{");
    json_member("server", sv_from(k->server), out);
    if (k->http.tls.server_name != NULL) {
        json_member("tls-server-name", sv_from(k->http.tls.server_name), out);
    }
    if (k->http.proxy_url != NULL) {
        json_member("proxy-url", sv_from(k->http.proxy_url), out);
    }
    if (k->http.tls.insecure_skip_verify) {
        buf_puts(out, ",\"insecure-skip-tls-verify\":true");
    }
    if (!put_ca(l, &k->http, out)) {
        return false;
    }
    if (config != NULL) {
        json_key("config", out);
        put_node(out, config);
    }
    buf_putc(out, '}');
    return true;
}

static bool make_info(struct loader *l, const struct yaml_node *cluster, struct plugin *p,
                      const struct kubeconfig *k)
{
    struct buf out;
    buf_init(&out, INFO_MAX);
    buf_puts(&out, "{\"kind\":\"ExecCredential\"");
    json_member("apiVersion", sv_from(p->exec.api_version), &out);
    buf_puts(&out, ",\"spec\":{\"interactive\":false");
    bool ok = !p->provide_cluster || put_cluster(l, cluster, k, &out);
    buf_puts(&out, "}}");
    if (ok && buf_too_big(&out)) {
        ok = loader_fail(
            l, cluster,
            "the cluster is too large to be passed to the exec plugin (provideClusterInfo)");
    } else if (ok) {
        p->exec.info = buf_ok(&out) ? arena_strndup(l->arena, out.data, out.len) : NULL;
        ok = p->exec.info != NULL || loader_fail_memory(l);
    }
    buf_done(&out);
    return ok;
}

/* ---- all of it ------------------------------------------------------------------------------- */

bool loader_exec(struct loader *l, const struct yaml_node *user, const struct yaml_node *cluster,
                 struct kubeconfig *k)
{
    static const struct loader_row rows[] = {
        {"apiVersion", LOAD_TEXT, offsetof(struct plugin, exec.api_version)},
        {"interactiveMode", LOAD_TEXT, offsetof(struct plugin, mode)},
        {"command", LOAD_TEXT, offsetof(struct plugin, command)},
        {"installHint", LOAD_TEXT, offsetof(struct plugin, exec.install_hint)},
        {"provideClusterInfo", LOAD_BOOL, offsetof(struct plugin, provide_cluster)},
        {0},
    };
    const struct yaml_node *exec = yaml_get(user, "exec");
    struct plugin p = {.exec.install_hint = ""};
    if (exec == NULL || yaml_is_null(exec)) {
        return true;
    }
    if (exec->kind != YAML_MAPPING) {
        return loader_fail(l, exec, "exec: expected a mapping");
    }
    if (k->http.auth != HTTP_AUTH_NONE) {
        return loader_fail(l, NULL,
                           "user \"%.128s\" has both an exec plugin and a token or password; only "
                           "one is allowed",
                           l->user);
    }
    struct kubeconfig_exec *copy = arena_alloc(l->arena, sizeof(*copy));
    if (copy == NULL) {
        return loader_fail_memory(l);
    }
    if (!loader_read(l, exec, rows, &p) || !check_version(l, exec, p.exec.api_version) ||
        !check_interactive(l, exec, &p) || !read_argv(l, exec, &p) || !read_env(l, exec, &p.exec) ||
        !make_info(l, cluster, &p, k)) {
        return false;
    }
    *copy = p.exec;
    k->exec = copy;
    return true;
}
