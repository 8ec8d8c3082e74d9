/* Many profiles in one request, for protocols that have build_many.
 *
 * Profiles that the queue lets go wait here for company: a request leaves when it is full, or when
 * no other of its tenant is under way, so that a profile never waits for a time. A request is made
 * on a thread of the destination and sent on the writer's loop; at most BATCH_REQUESTS_MAX are
 * between the two ends, so memory is bounded. If a server refuses a request for what is in it, its
 * halves are sent, so that a bad profile costs no other one.
 *
 * To the queue a profile in a request is in flight like any other: it knows nothing of all this.
 * Everything on the writer's loop.
 */
#ifndef PROFPULL_WRITE_BATCH_H
#define PROFPULL_WRITE_BATCH_H

#include "base/err.h"

/* Most profiles in one request, and most requests of a destination at the same time. */
#define BATCH_PROFILES_MAX 64
#define BATCH_REQUESTS_MAX 8

struct attempt;
struct batcher;
struct destination;

struct batcher *batcher_new(struct destination *d, struct err *err);
/* After batcher_abandon(); ends the thread. Accepts NULL, returns NULL. */
struct batcher *batcher_free(struct batcher *b);

/* Takes over an attempt. */
void batcher_add(struct batcher *b, struct attempt *a);
/* Sends what may go; after all that the queue lets go has been added. Accepts NULL. */
void batcher_flush(struct batcher *b);
/* Ends all requests and frees the attempts, which no destination knows any more. Accepts NULL. */
void batcher_abandon(struct batcher *b);

#endif
