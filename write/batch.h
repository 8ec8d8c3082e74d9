/* Many profiles in one request, for protocols that have build_many.
 *
 * Profiles that leave the queue wait here for others. A request is sent when it is full, or when no
 * other request of its tenant is in flight, so a profile never waits for a fixed time. A request is
 * made on a thread of the destination and sent on the writer's loop. At most BATCH_REQUESTS_MAX are
 * being made or sent, so memory is bounded. If a server refuses a request for its content, its
 * halves are sent, so that one bad profile does not lose the others.
 *
 * In the queue each profile of a request is in flight like any other; the queue does not know
 * requests. Everything on the writer's loop. */
#ifndef PROFPULL_WRITE_BATCH_H
#define PROFPULL_WRITE_BATCH_H

#include "base/err.h"

/* The most profiles in one request, and the most requests of a destination at the same time. */
#define BATCH_PROFILES_MAX 64
#define BATCH_REQUESTS_MAX 8

struct attempt;
struct batcher;
struct destination;

struct batcher *batcher_new(struct destination *d, struct err *err);
/* Ends the thread and frees the batcher. Call it after batcher_abandon(). Accepts NULL, returns
 * NULL. */
struct batcher *batcher_free(struct batcher *b);

/* Takes over an attempt, which waits here until its request is sent. */
void batcher_add(struct batcher *b, struct attempt *a);
/* Sends the requests that may be sent. Call it after all profiles that left the queue have been
 * added. Accepts NULL. */
void batcher_flush(struct batcher *b);
/* Ends all requests and frees their attempts, which no destination refers to any more. Accepts
 * NULL. */
void batcher_abandon(struct batcher *b);

#endif
