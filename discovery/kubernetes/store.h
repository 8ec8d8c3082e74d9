/* Remembers which objects of one watch have targets, so that updates without effect are not
 * reported.
 *
 * The store keeps the name of an object, and 64 bits each for its uid, its content, its label sets
 * and the key that determines its owner. An update with the same content (a heartbeat of the
 * kubelet) costs one lookup, and an update with the same label sets is not reported. A list marks
 * the objects that it names; the others are removed when the list is complete, and never before.
 * Pure, one owner.
 *
 * Where replicas share the targets, objects of other replicas are foreign: known but not reported.
 * A foreign object that is assigned to us is pending until it is put again, because only then its
 * labels are known.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_STORE_H
#define PROFPULL_DISCOVERY_KUBERNETES_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/labels.h"
#include "discovery/kubernetes/object.h"

/* The most objects of one watch. */
#define STORE_OBJECTS_MAX 100000

struct store_options {
    size_t max; /* the most objects; further ones are refused */
    /* Takes the current targets of an object; n 0: it has none any more. key is "namespace/name"
     * (or "name"), NUL-terminated. ip: see struct object_targets. moved: the object was foreign
     * before. */
    void (*on_change)(void *arg, const char *key, struct labels *const *targets, size_t n,
                      const char *ip, bool moved);
    void *arg;
};

struct store;

struct store *store_new(const struct store_options *options); /* NULL if out of memory */
/* Frees the store; reports nothing. Accepts NULL, returns NULL. */
struct store *store_free(struct store *s);

/* Calls fn with the key of each object that has been reported, and has targets. */
void store_each(const struct store *s, void (*fn)(void *arg, struct sv key), void *arg);

struct store_counts {
    size_t reported; /* objects with targets */
    size_t foreign;
    size_t pending;
};
struct store_counts store_counts(const struct store *s);

enum store_result {
    STORE_CHANGED,
    STORE_UNCHANGED,
    STORE_FULL,
    STORE_NO_MEMORY, /* nothing has changed */
};

/* Stores the current state of an object, and reports its targets if they have changed. */
enum store_result kube_store_put(struct store *s, const struct object_id *id,
                                 const struct object_targets *targets);
/* Returns true if an object with this content (object_targets.content) is reported with its
 * targets. It counts as put then, and its targets need not be made. */
bool store_has(struct store *s, const struct object_id *id, uint64_t content);
/* Stores an object whose targets belong to another replica. key: as in struct object_targets. */
enum store_result store_put_foreign(struct store *s, const struct object_id *id, uint64_t key);
/* Call it when the owners have changed. Objects that are no longer assigned to us are reported as
 * removed and marked foreign; foreign objects that are assigned to us now become pending. */
void store_reassign(struct store *s, bool (*is_assigned)(void *arg, uint64_t key), void *arg);
/* Removes a deleted object. If the known object has another uid, it is a successor of the deleted
 * one and stays. */
enum store_result store_remove(struct store *s, const struct object_id *id);

/* Begins a list, or starts it over. */
void store_list_begin(struct store *s);
/* Ends a complete list: removes the objects that it did not name. */
void store_list_end(struct store *s);

#endif
