/* Who shares the targets, and which of them are ours.
 *
 * A state machine without IO: it is told the members and the time, and says whether a key is ours.
 * Two replicas learn of a change at different moments, so ownership is handed over with a delay:
 *   - What another member gets is not ours any more at once.
 *   - A member that has gone keeps its keys for `handover` longer, as if it were still there: only
 *     then do the others own them.
 *   - We own nothing before we have been a member for `handover`.
 * So a key is ours only if it was ours under every set of members seen in the last `handover`; two
 * replicas that learn of every change within that time never own one key at once.
 *
 * The last known members stay when the watch is lost, and when all are gone at once (a Service that
 * was deleted, a probe that fails everywhere: if everybody stopped, nothing would be profiled). A
 * replica that is no member owns nothing. One that has been cut off from the API server for
 * `isolation` owns nothing either: the others may have taken over long ago.
 *
 * One owner, one thread. Times are monotonic milliseconds.
 */
#ifndef PROFPULL_AGENT_SHARING_MEMBERS_H
#define PROFPULL_AGENT_SHARING_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* Members beyond this are ignored, by every replica the same. */
#define MEMBERS_MAX 1000

#define MEMBERS_NONE SIZE_MAX

struct members_options {
    int64_t handover_ms;  /* 0: at once, where nobody else can be scraping */
    int64_t isolation_ms; /* 0: never */
};

struct members;

struct members *members_new(const struct members_options *options); /* NULL if out of memory */
struct members *members_free(struct members *m);                    /* accepts NULL, returns NULL */

enum members_result {
    MEMBERS_SAME,      /* the same as before, or none where there were some */
    MEMBERS_CHANGED,   /* members came or went */
    MEMBERS_NO_MEMORY, /* nothing has changed */
};

/* The members as they are now: names, sorted and each once, and which of them we are, or
 * MEMBERS_NONE. */
enum members_result members_set(struct members *m, const struct sv *names, size_t n, size_t self,
                                int64_t now_ms);
/* Whether what members_set() is told can be relied on: the watch has been answered, or has failed.
 */
void members_reachable(struct members *m, bool reachable, int64_t now_ms);
/* Time passes. True if this, or what was told since the last call, changed the owner of any key. */
bool members_tick(struct members *m, int64_t now_ms);
/* When the next tick is due; INT64_MAX if there is none. */
int64_t members_next_at(const struct members *m);

/* As of the last tick: is a key (rendezvous_hash()) ours? */
bool members_owns(const struct members *m, uint64_t key);
/* The name of the member to which a key belongs by the last known members, delays aside; NULL if
 * there are none. Good until the next members_set(). */
const char *members_owner(const struct members *m, uint64_t key);

/* Whether a key belongs to the member of that name by the last known members, delays aside, or
 * would if it were one of them; false if there are none. What we own, and what we are about to. */
bool members_is_assigned(const struct members *m, const char *name, uint64_t key);

/* The last known members. */
size_t members_count(const struct members *m);
/* Our place among them in the order of names, or MEMBERS_NONE. */
size_t members_index(const struct members *m);
const char *members_name(const struct members *m, size_t i);

enum members_state {
    MEMBERS_UNKNOWN,  /* nothing has been told yet */
    MEMBERS_OUTSIDE,  /* we are not among them */
    MEMBERS_WAITING,  /* we have come, and wait for the others to let go */
    MEMBERS_ACTIVE,   /* what is ours is ours */
    MEMBERS_ISOLATED, /* cut off for too long */
};
/* As of the last tick. */
enum members_state members_state(const struct members *m);

#endif
