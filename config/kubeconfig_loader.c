/* The keys of a kubeconfig, whatever they mean: for the files that read one. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "config/kubeconfig_parts.h"

bool loader_fail(struct loader *l, const struct yaml_node *n, const char *fmt, ...)
{
    char text[ERR_MSG_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    err_set(l->err, ERR_INPUT, "%s", text);
    if (n == NULL) {
        err_wrap(l->err, "kubeconfig %s", l->name);
    } else {
        err_wrap(l->err, "kubeconfig %s:%d:%d", l->name, n->line, n->column);
    }
    return false;
}

bool loader_fail_memory(struct loader *l)
{
    return err_set(l->err, ERR_MEMORY, "kubeconfig %s: not enough memory", l->name);
}

/* ---- values ---------------------------------------------------------------------------------- */

const char *loader_resolve(struct loader *l, const char *file)
{
    const char *slash = strrchr(l->name, '/');
    if (file[0] == '/' || slash == NULL) {
        return file;
    }
    return arena_printf(l->arena, "%.*s/%s", (int)(slash - l->name), l->name, file);
}

static bool read_bool(struct loader *l, const char *key, const struct yaml_node *n, bool *ret)
{
    bool scalar = n->kind == YAML_SCALAR && n->plain;
    *ret = scalar && sv_eq_str(n->text, "true");
    return *ret || (scalar && sv_eq_str(n->text, "false")) ||
           loader_fail(l, n, "%s: expected true or false", key);
}

static bool read_pem(struct loader *l, const char *key, const struct yaml_node *n, const char **ret)
{
    struct buf b;
    buf_init(&b, n->text.n + 1);
    bool ok = base64_decode(n->text, &b) && memchr(b.data, '\0', b.len) == NULL;
    *ret = ok ? arena_strndup(l->arena, b.data, b.len) : NULL;
    buf_done(&b);
    if (!ok) {
        return loader_fail(l, n, "%s: expected PEM in base64", key);
    }
    return *ret != NULL || loader_fail_memory(l);
}

static bool read_value(struct loader *l, const struct loader_row *row, const struct yaml_node *n,
                       void *out)
{
    if (row->kind == LOAD_BOOL) {
        return read_bool(l, row->key, n, out);
    }
    if (n->kind != YAML_SCALAR || n->problem != NULL) {
        return loader_fail(l, n, "%s: expected a string, got %s", row->key,
                           n->problem == NULL ? yaml_what(n) : "a text that is not allowed");
    }
    if (n->text.n == 0) {
        return true;
    }
    const char **text = out;
    if (row->kind == LOAD_PEM) {
        return read_pem(l, row->key, n, text);
    }
    *text = arena_strndup(l->arena, n->text.p, n->text.n);
    if (*text != NULL && row->kind == LOAD_FILE) {
        *text = loader_resolve(l, *text);
    }
    return *text != NULL || loader_fail_memory(l);
}

bool loader_read(struct loader *l, const struct yaml_node *n, const struct loader_row *rows,
                 void *out)
{
    for (; rows->key != NULL; rows++) {
        const struct yaml_node *value = yaml_get(n, rows->key);
        if (value != NULL && !yaml_is_null(value) &&
            !read_value(l, rows, value, (char *)out + rows->offset)) {
            return false;
        }
    }
    return true;
}

const struct yaml_node *loader_find(const struct yaml_node *list, const char *name)
{
    bool is_list = list != NULL && list->kind == YAML_LIST;
    for (size_t i = 0; is_list && i < list->n_items; i++) {
        const struct yaml_node *n = yaml_get(list->items[i].value, "name");
        if (n != NULL && n->kind == YAML_SCALAR && sv_eq_str(n->text, name)) {
            return list->items[i].value;
        }
    }
    return NULL;
}
