/* Keeps the replicas that share the targets, and decides which targets belong to this one.
 *
 * A state machine without IO: it receives the members and the time, and decides whether we own a
 * key. Two replicas learn of a change at different times, so ownership moves with a delay:
 *   - We stop owning a key as soon as it belongs to another member.
 *   - A member that has left keeps its keys for another `handover`; only then do the others own
 *     them.
 *   - We own nothing until we have been a member for `handover`.
 * A key is therefore ours only if it was ours under every set of members seen during the last
 * `handover`; two replicas that learn of every change within that time never own one key both.
 *
 * The last known members remain when the watch is lost, and when all members disappear at once (a
 * deleted Service, a probe that fails everywhere): otherwise nothing would be profiled. A replica
 * that is not a member owns nothing. Neither does one that has been cut off from the API server for
 * `isolation`: the others may have taken over long ago.
 *
 * One thread. Times are monotonic milliseconds.
 */
#ifndef PROFPULL_AGENT_SHARING_MEMBERS_H
#define PROFPULL_AGENT_SHARING_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* The most members. Further ones are ignored; every replica ignores the same ones. */
#define MEMBERS_MAX 1000

#define MEMBERS_NONE SIZE_MAX

struct members_options {
    int64_t handover_ms;  /* 0: ownership moves at once, if nobody else can be scraping */
    int64_t isolation_ms; /* 0: never */
};

struct members;

struct members *members_new(const struct members_options *options); /* NULL if out of memory */
struct members *members_free(struct members *m);                    /* accepts NULL, returns NULL */

enum members_result {
    MEMBERS_SAME,      /* the members are as before, or all have disappeared */
    MEMBERS_CHANGED,   /* members joined or left */
    MEMBERS_NO_MEMORY, /* the members are unchanged */
};

/* Sets the current members: unique names in order, and the index of our own, or MEMBERS_NONE. */
enum members_result members_set(struct members *m, const struct sv *names, size_t n, size_t self,
                                int64_t now_ms);
/* Notes that the watch on which members_set() relies has been answered, or has failed. */
void members_reachable(struct members *m, bool reachable, int64_t now_ms);
/* Updates the state. Returns true if the owner of any key has changed since the last tick, by the
 * passage of time or by a call. */
bool members_tick(struct members *m, int64_t now_ms);
/* Returns when the next tick is due; INT64_MAX if there is none. */
int64_t members_next_at(const struct members *m);

/* Returns true if a key (rendezvous_hash()) is ours, as of the last tick. */
bool members_owns(const struct members *m, uint64_t key);
/* Returns the name of the member that a key belongs to, regardless of delays; NULL if there are no
 * members. Valid until the next members_set(). */
const char *members_owner(const struct members *m, uint64_t key);

/* Returns true if a key is assigned to the member of that name, regardless of delays, or would be
 * if it were a member; false if there are no members. This covers the keys that we own and those
 * that we are about to own. */
bool members_is_assigned(const struct members *m, const char *name, uint64_t key);

/* Returns the number of members. */
size_t members_count(const struct members *m);
/* Returns our index in the order of names, or MEMBERS_NONE. */
size_t members_index(const struct members *m);
const char *members_name(const struct members *m, size_t i);

enum members_state {
    MEMBERS_UNKNOWN,  /* before the first members_set() */
    MEMBERS_OUTSIDE,  /* we are not a member */
    MEMBERS_WAITING,  /* we have joined, and wait for the others to release keys */
    MEMBERS_ACTIVE,   /* we own our keys */
    MEMBERS_ISOLATED, /* cut off for too long */
};
/* Returns the state as of the last tick. */
enum members_state members_state(const struct members *m);

#endif
