/* The internals of the join; for discovery/kubernetes/join*.c only.
 *
 *   join.c           adds, changes and removes primaries and facts; lists; reporting
 *   join_links.c     facts by key, and which primary needs which
 *   join_describe.c  the joined labels of a primary
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_JOIN_PRIVATE_H
#define PROFPULL_DISCOVERY_KUBERNETES_JOIN_PRIVATE_H

#include <sys/queue.h>

#include "base/map.h"
#include "discovery/kubernetes/join.h"

/* "<kind>/<namespace>/<name>" */
#define FACT_KEY_MAX (OBJECT_KEY_MAX + 2)

struct fact_port {
    struct labels *labels;
    unsigned number;
    bool covered; /* a port of the endpoints that are being joined has this number */
};

/* The contribution of an object, or a placeholder while the object has not been seen. */
struct fact {
    enum join_kind kind;
    bool present;
    bool too_many_labels;
    char family;
    unsigned list;
    uint32_t mark;
    uint64_t uid;
    uint64_t hash;
    uint64_t content; /* 0: not known, or not completely processed */
    uint64_t seen;    /* number of the last join_describe() that used it */
    struct labels *labels;
    struct fact_port *ports;
    size_t n_ports;
    TAILQ_HEAD(links, link) links; /* links to the primaries that need it */
    char key[];                    /* its key in the table */
};

struct link {
    struct fact *fact;
    struct primary *primary;
    TAILQ_ENTRY(link) of_fact;
    STAILQ_ENTRY(link) of_primary;
};

struct primary {
    struct labels **targets;
    size_t n;
    struct labels *shared;
    char *ip; /* address of a pod; otherwise NULL */
    uint64_t uid;
    uint64_t base;    /* hash of its own labels; 0: a change is not completely processed */
    uint64_t content; /* hash of the object that the labels were made of; 0: not known */
    uint64_t hash;    /* hash of the reported targets */
    bool reported;    /* it was reported with targets */
    unsigned list;
    uint32_t mark;
    STAILQ_HEAD(link_list, link) links;
    char key[];
};

struct join {
    struct join_options options;
    struct map *primaries;
    struct map *facts;
    size_t n_present[JOIN_KINDS];
    size_t n_reported;
    uint64_t descriptions; /* calls of join_describe() */
    struct labels_builder *builder;
    struct object_targets scratch;
    struct sv left_out; /* the pod of the first target that join_describe() has left out */
    /* For each list: the mark of the objects that it names now, and whether its primaries are
     * reported. */
    uint32_t *marks;
    bool *ready;
};

/* ---- join_links.c ---------------------------------------------------------------------------- */

/* Writes the key to out and returns it; "" if no object can have these names. */
struct sv join_fact_key(enum join_kind kind, struct sv namespace, struct sv name,
                        char out[FACT_KEY_MAX]);
/* Returns the fact with a key, and creates it if needed; NULL if out of memory. */
struct fact *join_fact_get(struct join *j, enum join_kind kind, struct sv key);
/* Returns the fact if its object is known, else NULL. */
struct fact *join_find(const struct join *j, enum join_kind kind, struct sv namespace,
                       struct sv name);
/* Drops the contribution of a fact. */
void join_fact_clear(struct fact *f);
void join_fact_free(void *fact);
/* Frees a fact that is not known and that no primary needs. */
void join_fact_release(struct join *j, struct fact *f);
/* Links a primary, which has no links, to all facts that it needs. False if out of memory. */
bool join_link(struct join *j, struct primary *p);
void join_unlink(struct join *j, struct primary *p);

/* ---- join_describe.c ------------------------------------------------------------------------- */

/* Return the names of the objects to join to a target, or to a primary; "" for none. */
struct sv join_node_of(const struct join *j, const struct labels *target);
struct sv join_pod_of(const struct join *j, const struct primary *p, const struct labels *target,
                      struct sv *ret_namespace);
struct sv join_service_of(const struct join *j, const struct labels *shared);
struct sv join_namespace_of(const struct primary *p);
/* Builds the joined targets of a primary in j->scratch, which counts those that are left out. */
enum object_status join_describe(struct join *j, const struct primary *p);

#endif
