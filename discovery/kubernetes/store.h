/* Which objects of one watch have targets, and whether news of one changes anything.
 *
 * Kept of an object: its name, 64 bits each of its uid, of its label sets and of what its owner
 * follows from. An update with the same label sets (a heartbeat of the kubelet) goes no further. A
 * list marks what it names; what it does not name is removed when it is complete, and never before.
 * Pure, one owner.
 *
 * Where replicas share the targets, objects of the others are left to them: known but not told.
 * When such an object becomes ours it is awaited: it is told when it is put again, for only then is
 * it known what it stands for.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_STORE_H
#define PROFPULL_DISCOVERY_KUBERNETES_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/labels.h"
#include "discovery/kubernetes/object.h"

struct store_options {
    size_t max; /* objects; new ones beyond are refused */
    /* What an object stands for now: key is "namespace/name" (or "name"), NUL-terminated; n 0
     * removes it. moved: it was left to another replica before. */
    void (*on_change)(void *arg, const char *key, struct labels *const *targets, size_t n,
                      const char *ip, bool moved);
    void *arg;
};

struct store;

struct store *store_new(const struct store_options *options); /* NULL if out of memory */
/* Tells nobody. Accepts NULL, returns NULL. */
struct store *store_free(struct store *s);
/* Objects with targets that were told. */
size_t store_count(const struct store *s);
/* Objects of others, and those that have become ours and wait to be put. */
size_t store_left(const struct store *s);
size_t store_awaited(const struct store *s);

enum store_result {
    STORE_CHANGED,
    STORE_UNCHANGED,
    STORE_FULL,
    STORE_NO_MEMORY, /* nothing has changed */
};

/* An object as it is now. */
enum store_result store_put(struct store *s, const struct object_id *id,
                            const struct object_targets *targets);
/* An object as it is now, of which another replica has the targets: there are none for us. key as
 * in struct object_targets. */
enum store_result store_leave(struct store *s, const struct object_id *id, uint64_t key);
/* The owners have changed. What does not satisfy claims is told as gone and left; what was left and
 * satisfies it now is awaited. */
void store_review(struct store *s, bool (*claims)(void *arg, uint64_t key), void *arg);
/* An object that is gone. One with another uid than the known one is a predecessor: nothing
 * happens. */
enum store_result store_remove(struct store *s, const struct object_id *id);

/* A list begins (or starts over). */
void store_list_begin(struct store *s);
/* It is complete: removes what it did not name. */
void store_list_end(struct store *s);

#endif
