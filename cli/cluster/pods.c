#include "cli/cluster/pods.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/ascii.h"
#include "http/url.h"

#define TEXT_MAX ((size_t)256 * 1024)
/* Bytes of a message of the status that are shown. */
#define MESSAGE_MAX 300

/* ---- names ----------------------------------------------------------------------------------- */

/* A kind of object that has pods. */
struct pods_kind {
    const char *names[4]; /* as kubectl takes them; NULL after the last one */
    const char *plural;
    const char *group;    /* NULL: the core group */
    const char *api;      /* the beginning of its path */
    const char *selector; /* the member of spec with the selector; NULL for a pod */
    bool plain;           /* the selector is a map of labels, without matchLabels around it */
};

static const struct pods_kind kinds[] = {
    {{"pod", "pods", "po"}, "pods", NULL, "/api/v1", NULL, false},
    {{"deployment", "deployments", "deploy"},
     "deployments",
     "apps",
     "/apis/apps/v1",
     "selector",
     false},
    {{"statefulset", "statefulsets", "sts"},
     "statefulsets",
     "apps",
     "/apis/apps/v1",
     "selector",
     false},
    {{"daemonset", "daemonsets", "ds"}, "daemonsets", "apps", "/apis/apps/v1", "selector", false},
    {{"replicaset", "replicasets", "rs"},
     "replicasets",
     "apps",
     "/apis/apps/v1",
     "selector",
     false},
    {{"job", "jobs"}, "jobs", "batch", "/apis/batch/v1", "selector", false},
    {{"service", "services", "svc"}, "services", NULL, "/api/v1", "selector", true},
};

static const struct pods_kind *find_kind(struct sv name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        for (const char *const *n = kinds[i].names; *n != NULL; n++) {
            if (sv_eq_str(name, *n)) {
                return &kinds[i];
            }
        }
    }
    return NULL;
}

bool pods_is_name(const char *text)
{
    struct sv kind;
    struct sv rest;
    return strstr(text, "://") == NULL && sv_cut(sv_from(text), '/', &kind, &rest) &&
           find_kind(kind) != NULL;
}

bool pods_is_pod(const struct pods_name *name)
{
    return name->kind->selector == NULL;
}

bool pods_is_object_name(struct sv v)
{
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];
        if (!ascii_is_lower(c) && !ascii_is_digit(c) && c != '-' && c != '.') {
            return false;
        }
    }
    return v.n > 0 && v.n <= PODS_NAME_MAX;
}

bool pods_parse(const char *text, struct pods_name *ret, struct err *err)
{
    struct sv kind;
    struct sv rest = SV("");
    struct sv name;
    *ret = (struct pods_name){.namespace = SV("")};
    if (sv_cut(sv_from(text), '/', &kind, &rest)) {
        ret->kind = find_kind(kind);
        ret->name = rest;
        if (sv_cut(rest, '/', &ret->namespace, &name)) {
            ret->name = name;
        } else {
            ret->namespace = SV("");
        }
    }
    if (ret->kind == NULL) {
        return err_set(err, ERR_INPUT,
                       "\"%s\": expected KIND/NAME or KIND/NAMESPACE/NAME, where KIND is pod, "
                       "deployment, statefulset, daemonset, replicaset, job or service",
                       text);
    }
    bool ok = pods_is_object_name(ret->name) &&
              (ret->namespace.n == 0 || pods_is_object_name(ret->namespace));
    return ok || err_set(err, ERR_INPUT,
                         "\"%s\": expected the names of objects of Kubernetes (lower case letters, "
                         "digits, \"-\" and \".\")",
                         text);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static json_t *list_pods(struct cluster *c, const char *namespace, const char *parameter,
                         struct sv value, struct err *err)
{
    struct buf path;
    struct buf query;
    json_t *list = NULL;
    buf_init(&path, TEXT_MAX);
    buf_init(&query, TEXT_MAX);
    buf_puts(&path, "/api/v1/");
    if (namespace != NULL) {
        buf_printf(&path, "namespaces/%s/", namespace);
    }
    buf_puts(&path, "pods");
    url_encode_pair(sv_from(parameter), value, &query);
    struct cluster_ask ask = {
        .path = path.data,
        .query = {query.data, query.len},
        .verb = "list",
        .resource = "pods",
        .namespace = namespace,
    };
    if (!buf_ok(&path) || !buf_ok(&query)) {
        err_memory(err);
    } else {
        list = cluster_get(c, &ask, err);
        bool is_list = json_is_array(json_object_get(list, "items"));
        if (!is_list && err->kind == ERR_NONE) {
            err_set(err, ERR_REFUSED, "%s: GET %s: expected a list of pods",
                    cluster_access(c)->name, path.data);
        }
        if (!is_list) {
            json_decref(list);
            list = NULL;
        }
    }
    buf_done(&path);
    buf_done(&query);
    return list;
}

json_t *pods_selected(struct cluster *c, const char *namespace, struct sv selector, struct err *err)
{
    return list_pods(c, namespace, "labelSelector", selector, err);
}

json_t *pods_named(struct cluster *c, struct sv namespace, struct sv name, struct err *err)
{
    char in[PODS_NAME_MAX + 1];
    char field[PODS_NAME_MAX + sizeof("metadata.name=")];
    snprintf(in, sizeof(in), "%.*s", SV_ARG(namespace));
    snprintf(field, sizeof(field), "metadata.name=%.*s", SV_ARG(name));
    return list_pods(c, in, "fieldSelector", sv_from(field), err);
}

/* ---- selectors ------------------------------------------------------------------------------- */

static void put_labels(const json_t *labels, struct buf *out)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)labels, name, value)
    {
        const char *text = json_string_value(value);
        buf_printf(out, "%s%s=%s", out->len > 0 ? "," : "", name, text == NULL ? "" : text);
    }
}

/* An operator of matchExpressions, and how a query writes it. */
struct operator_form {
    const char *name;
    const char *before;
    const char *list; /* what precedes the list of values; NULL: there is no list */
};

static const struct operator_form *find_operator(const char *name)
{
    static const struct operator_form forms[] = {
        {"In", "", " in ("},
        {"NotIn", "", " notin ("},
        {"Exists", "", NULL},
        {"DoesNotExist", "!", NULL},
    };
    for (size_t i = 0; name != NULL && i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (strcmp(forms[i].name, name) == 0) {
            return &forms[i];
        }
    }
    return NULL;
}

/* Appends one of matchExpressions. */
static void put_expression(const json_t *e, struct buf *out)
{
    const char *key = json_string_value(json_object_get(e, "key"));
    const json_t *values = json_object_get(e, "values");
    const struct operator_form *form =
        find_operator(json_string_value(json_object_get(e, "operator")));
    if (key == NULL || form == NULL) {
        return;
    }
    buf_printf(out, "%s%s%s", out->len > 0 ? "," : "", form->before, key);
    if (form->list == NULL) {
        return;
    }
    buf_puts(out, form->list);
    for (size_t i = 0; i < json_array_size(values); i++) {
        const char *value = json_string_value(json_array_get(values, i));
        buf_printf(out, "%s%s", i > 0 ? "," : "", value == NULL ? "" : value);
    }
    buf_putc(out, ')');
}

void pods_put_selector(const struct pods_name *name, const json_t *object, struct buf *out)
{
    const struct pods_kind *kind = name->kind;
    const json_t *s = json_object_get(json_object_get(object, "spec"), kind->selector);
    put_labels(kind->plain ? s : json_object_get(s, "matchLabels"), out);
    const json_t *expressions = kind->plain ? NULL : json_object_get(s, "matchExpressions");
    for (size_t i = 0; i < json_array_size(expressions); i++) {
        put_expression(json_array_get(expressions, i), out);
    }
}

/* Reads the object, and appends its selector. */
static bool read_selector(struct cluster *c, const struct pods_name *name, const char *namespace,
                          struct buf *out, struct err *err)
{
    const struct pods_kind *kind = name->kind;
    struct buf path;
    buf_init(&path, TEXT_MAX);
    buf_printf(&path, "%s/namespaces/%s/%s/%.*s", kind->api, namespace, kind->plural,
               SV_ARG(name->name));
    struct cluster_ask ask = {
        .path = path.data,
        .verb = "get",
        .resource = kind->plural,
        .group = kind->group,
        .namespace = namespace,
    };
    json_t *object = buf_ok(&path) ? cluster_get(c, &ask, err) : NULL;
    if (object != NULL) {
        pods_put_selector(name, object, out);
    } else if (err->kind == ERR_NONE) {
        err_set(err, ERR_INPUT, "%s: there is no %s %s/%.*s: `kubectl get %s -n %s` lists them",
                cluster_access(c)->name, kind->names[0], namespace, SV_ARG(name->name),
                kind->plural, namespace);
    }
    bool ok = object != NULL;
    if (ok && out->len == 0) {
        ok = err_set(err, ERR_INPUT, "%s %s/%.*s has no selector, so it has no pods",
                     kind->names[0], namespace, SV_ARG(name->name));
    }
    json_decref(object);
    buf_done(&path);
    return ok;
}

json_t *pods_of(struct cluster *c, const struct pods_name *name, const char *namespace,
                struct err *err)
{
    char in[PODS_NAME_MAX + 1];
    struct buf selector;
    json_t *list = NULL;
    struct sv given = name->namespace.n > 0 ? name->namespace : sv_from(namespace);
    snprintf(in, sizeof(in), "%.*s", SV_ARG(given));
    buf_init(&selector, TEXT_MAX);
    if (pods_is_pod(name)) {
        list = pods_named(c, given, name->name, err);
    } else if (read_selector(c, name, in, &selector, err)) {
        list = pods_selected(c, in, (struct sv){selector.data, selector.len}, err);
    }
    if (list != NULL && json_array_size(json_object_get(list, "items")) == 0) {
        bool pod = pods_is_pod(name);
        err_set(err, ERR_INPUT, "%s: %s %s/%.*s%s: `kubectl get pods -n %s` lists them",
                cluster_access(c)->name, pod ? "there is no pod" : name->kind->names[0], in,
                SV_ARG(name->name), pod ? "" : " has no pods", in);
        json_decref(list);
        list = NULL;
    }
    buf_done(&selector);
    return list;
}

/* ---- status ---------------------------------------------------------------------------------- */

const char *pods_meta(const json_t *pod, const char *member)
{
    const char *text = json_string_value(json_object_get(json_object_get(pod, "metadata"), member));
    return text == NULL ? "" : text;
}

bool pods_has_address(const json_t *pod)
{
    const char *ip = json_string_value(json_object_get(json_object_get(pod, "status"), "podIP"));
    return ip != NULL && ip[0] != '\0';
}

/* Appends " (REASON: MESSAGE)" of a condition or of a waiting container. */
static bool put_reason(const json_t *of, struct buf *out)
{
    const char *reason = json_string_value(json_object_get(of, "reason"));
    struct sv message = sv_trim(sv_from(json_string_value(json_object_get(of, "message"))));
    message.n = message.n < MESSAGE_MAX ? message.n : MESSAGE_MAX;
    if (reason == NULL || reason[0] == '\0') {
        return false;
    }
    buf_puts(out, " (");
    json_escape(sv_from(reason), out);
    buf_puts(out, message.n == 0 ? "" : ": ");
    json_escape(message, out);
    buf_putc(out, ')');
    return true;
}

void pods_describe(const json_t *pod, struct buf *out)
{
    const json_t *status = json_object_get(pod, "status");
    const json_t *conditions = json_object_get(status, "conditions");
    const json_t *containers = json_object_get(status, "containerStatuses");
    const char *phase = json_string_value(json_object_get(status, "phase"));
    bool said = false;
    buf_puts(out, "its phase is ");
    json_escape(sv_from(phase == NULL ? "unknown" : phase), out);
    for (size_t i = 0; !said && i < json_array_size(containers); i++) {
        const json_t *state = json_object_get(json_array_get(containers, i), "state");
        said = put_reason(json_object_get(state, "waiting"), out);
    }
    for (size_t i = 0; !said && i < json_array_size(conditions); i++) {
        const json_t *c = json_array_get(conditions, i);
        const char *type = json_string_value(json_object_get(c, "type"));
        const char *value = json_string_value(json_object_get(c, "status"));
        said = type != NULL && value != NULL && strcmp(type, "PodScheduled") == 0 &&
               strcmp(value, "False") == 0 && put_reason(c, out);
    }
}
