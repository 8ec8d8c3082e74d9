#include "cli/cluster/agents.h"

#include <stdio.h>
#include <string.h>

#include "cli/cluster/proxy.h"

#define ARENA_MAX (UINT64_C(64) * 1024 * 1024)
#define SELECTOR "app.kubernetes.io/name=profpull"
#define ADMIN_PORT 4041
#define PORT_MAX 65535

static const char *namespace_of(const struct agents *a)
{
    const char *namespace = a->access.access.namespace;
    return namespace == NULL ? "default" : namespace;
}

/* Lists the pods with the label. A person who may not list those of all namespaces gets those of
 * the context's. */
static json_t *list_labelled(struct agents *a, const char *namespace, struct err *err)
{
    struct err first = ERR_INIT;
    json_t *list = pods_selected(a->cluster, namespace, SV(SELECTOR), &first);
    if (list == NULL && namespace == NULL && first.kind == ERR_REFUSED) {
        list = pods_selected(a->cluster, namespace_of(a), SV(SELECTOR), err);
        if (list == NULL || json_array_size(json_object_get(list, "items")) > 0) {
            return list;
        }
        json_decref(list);
        list = NULL;
    }
    if (list == NULL) {
        *err = first;
        err_append(err, first.kind == ERR_REFUSED && namespace == NULL
                            ? "; or name the namespace of profpull with -n"
                            : "");
    }
    return list;
}

/* Lists the pods of the workload that a person names. */
static json_t *list_named(struct agents *a, const char *operand, const char *namespace,
                          struct err *err)
{
    struct pods_name name;
    return pods_parse(operand, &name, err)
               ? pods_of(a->cluster, &name, namespace == NULL ? namespace_of(a) : namespace, err)
               : NULL;
}

/* Removes pods without an address, and those that have ended. */
static void keep_running(json_t *list)
{
    json_t *items = json_object_get(list, "items");
    for (size_t i = json_array_size(items); i > 0; i--) {
        const json_t *pod = json_array_get(items, i - 1);
        const char *phase =
            json_string_value(json_object_get(json_object_get(pod, "status"), "phase"));
        if (!pods_has_address(pod) || phase == NULL || strcmp(phase, "Running") != 0) {
            (void)json_array_remove(items, i - 1);
        }
    }
}

static bool find(const struct agents_flags *flags, const char *operand, struct agents *a,
                 struct err *err)
{
    a->list = operand == NULL ? list_labelled(a, flags->namespace, err)
                              : list_named(a, operand, flags->namespace, err);
    if (a->list == NULL) {
        return false;
    }
    keep_running(a->list);
    return agents_count(a) > 0 ||
           err_set(err, ERR_INPUT,
                   "%s: no pod of profpull runs in %s%s: `kubectl get pods -A -l " SELECTOR
                   "` lists them. One that was installed in another way is named as "
                   "deploy/NAMESPACE/NAME",
                   a->access.name, flags->namespace == NULL ? "the cluster" : "namespace ",
                   flags->namespace == NULL ? "" : flags->namespace);
}

bool agents_find(const struct agents_flags *flags, const char *operand, int64_t timeout_ms,
                 struct agents *ret, struct err *err)
{
    *ret = (struct agents){.arena = arena_new(ARENA_MAX)};
    if (ret->arena == NULL) {
        return err_memory(err);
    }
    if (cluster_access_find(&flags->cluster, ret->arena, &ret->access, err)) {
        ret->cluster = cluster_new(&ret->access, timeout_ms, err);
    }
    return ret->cluster != NULL && find(flags, operand, ret, err);
}

void agents_done(struct agents *a)
{
    json_decref(a->list);
    cluster_free(a->cluster);
    arena_free(a->arena);
    *a = (struct agents){.arena = NULL};
}

size_t agents_count(const struct agents *a)
{
    return json_array_size(json_object_get(a->list, "items"));
}

const json_t *agents_at(const struct agents *a, size_t i)
{
    return json_array_get(json_object_get(a->list, "items"), i);
}

static json_int_t port_of(const json_t *ports)
{
    for (size_t i = 0; i < json_array_size(ports); i++) {
        const json_t *port = json_array_get(ports, i);
        const char *name = json_string_value(json_object_get(port, "name"));
        if (name != NULL && strcmp(name, "admin") == 0) {
            return json_integer_value(json_object_get(port, "containerPort"));
        }
    }
    return 0;
}

unsigned agents_port(const json_t *pod)
{
    const json_t *containers = json_object_get(json_object_get(pod, "spec"), "containers");
    json_int_t port = 0;
    for (size_t i = 0; port == 0 && i < json_array_size(containers); i++) {
        port = port_of(json_object_get(json_array_get(containers, i), "ports"));
    }
    return port > 0 && port <= PORT_MAX ? (unsigned)port : ADMIN_PORT;
}

bool agents_get(struct cluster *c, const json_t *pod, const char *path, struct sv query,
                struct cluster_answer *ret, struct err *err)
{
    char port[16];
    snprintf(port, sizeof(port), "%u", agents_port(pod));
    return proxy_get(c, pods_meta(pod, "namespace"), pods_meta(pod, "name"), port, path, query, ret,
                     err);
}
