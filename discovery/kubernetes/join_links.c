#include <stdlib.h>
#include <string.h>

#include "discovery/kubernetes/join_private.h"

struct sv join_fact_key(enum join_kind kind, struct sv namespace, struct sv name,
                        char out[FACT_KEY_MAX])
{
    if (namespace.n > OBJECT_NAMESPACE_MAX || name.n > OBJECT_NAME_MAX || name.n == 0) {
        return SV("");
    }
    int n = snprintf(out, FACT_KEY_MAX, "%d/%.*s%s%.*s", (int)kind, SV_ARG(namespace),
                     namespace.n == 0 ? "" : "/", SV_ARG(name));
    return (struct sv){out, n < 0 ? 0 : (size_t)n};
}

struct fact *join_fact_get(struct join *j, enum join_kind kind, struct sv key)
{
    struct fact *f = map_get(j->facts, key);
    if (f != NULL) {
        return f;
    }
    f = calloc(1, sizeof(*f) + key.n + 1);
    if (f == NULL) {
        return NULL;
    }
    memcpy(f->key, key.p, key.n);
    f->kind = kind;
    TAILQ_INIT(&f->links);
    if (!map_put(j->facts, key, f, NULL)) {
        free(f);
        return NULL;
    }
    return f;
}

void join_fact_clear(struct fact *f)
{
    labels_unref(f->labels);
    for (size_t i = 0; i < f->n_ports; i++) {
        labels_unref(f->ports[i].labels);
    }
    free(f->ports);
    f->labels = NULL;
    f->ports = NULL;
    f->n_ports = 0;
    f->too_many_labels = false;
    f->family = 0;
    f->content = 0;
}

void join_fact_free(void *p)
{
    struct fact *f = p;
    if (f != NULL) {
        join_fact_clear(f);
        free(f);
    }
}

void join_fact_release(struct join *j, struct fact *f)
{
    if (!f->present && TAILQ_EMPTY(&f->links)) {
        map_remove(j->facts, sv_from(f->key));
        join_fact_free(f);
    }
}

void join_unlink(struct join *j, struct primary *p)
{
    struct link *link;
    while ((link = STAILQ_FIRST(&p->links)) != NULL) {
        struct fact *f = link->fact;
        STAILQ_REMOVE_HEAD(&p->links, of_primary);
        TAILQ_REMOVE(&f->links, link, of_fact);
        free(link);
        join_fact_release(j, f);
    }
}

/* Links a primary to a fact, unless it is already. */
static bool link_to(struct join *j, struct primary *p, enum join_kind kind, struct sv namespace,
                    struct sv name)
{
    char text[FACT_KEY_MAX];
    struct sv key = join_fact_key(kind, namespace, name, text);
    if (key.n == 0) {
        return true;
    }
    struct fact *f = join_fact_get(j, kind, key);
    if (f == NULL) {
        return false;
    }
    /* All links of a primary are made in a row, so an existing link to this fact is the last one in
     * its list. */
    struct link *link = TAILQ_LAST(&f->links, links);
    if (link != NULL && link->primary == p) {
        return true;
    }
    link = calloc(1, sizeof(*link));
    if (link == NULL) {
        join_fact_release(j, f);
        return false;
    }
    link->fact = f;
    link->primary = p;
    TAILQ_INSERT_TAIL(&f->links, link, of_fact);
    STAILQ_INSERT_TAIL(&p->links, link, of_primary);
    return true;
}

struct fact *join_find(const struct join *j, enum join_kind kind, struct sv namespace,
                       struct sv name)
{
    char text[FACT_KEY_MAX];
    struct sv key = join_fact_key(kind, namespace, name, text);
    struct fact *f = key.n == 0 ? NULL : map_get(j->facts, key);
    return f != NULL && f->present ? f : NULL;
}

bool join_link(struct join *j, struct primary *p)
{
    struct sv namespace = join_namespace_of(p);
    bool ok = true;
    if (j->options.uses[JOIN_NAMESPACE] && namespace.n > 0) {
        ok = link_to(j, p, JOIN_NAMESPACE, SV(""), namespace);
    }
    ok = ok && link_to(j, p, JOIN_SERVICE, namespace, join_service_of(j, p->shared));
    for (size_t i = 0; i < p->n && ok; i++) {
        struct sv pod_namespace;
        struct sv pod = join_pod_of(j, p, p->targets[i], &pod_namespace);
        ok = link_to(j, p, JOIN_NODE, SV(""), join_node_of(j, p->targets[i])) &&
             link_to(j, p, JOIN_POD, pod_namespace, pod);
    }
    return ok;
}
