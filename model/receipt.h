/* A receipt: says when all profiles of one request are safe at every destination.
 *
 * The receiver makes one for a request whose sender wants to know that, and hands it over with each
 * profile. A queue that takes a profile adds a part to the receipt, and ends the part when the
 * profile is safe or lost. The receipt is settled when every part has ended well, or as soon as one
 * has not. One thread waits for that; everything else may be called by any thread.
 */
#ifndef PROFPULL_MODEL_RECEIPT_H
#define PROFPULL_MODEL_RECEIPT_H

#include <stdbool.h>

#include "base/loop.h"

struct receipt;

/* NULL if out of memory. The reference is the caller's. */
struct receipt *receipt_new(void);
struct receipt *receipt_ref(struct receipt *r);
struct receipt *receipt_unref(struct receipt *r); /* accepts NULL, returns NULL */

/* Adds a part, which takes a reference. Not after receipt_wait(). */
void receipt_add(struct receipt *r);
/* Ends a part and drops its reference. safe: false if the sender should send the profile again. */
void receipt_end(struct receipt *r, bool safe);
/* Notes that a profile was not taken at all, and is to be sent again. */
void receipt_fail(struct receipt *r);

/* Posts the task when the receipt is settled: at once if it is already. Once for each receipt; the
 * waiter keeps its reference until the task has run or is cancelled. */
void receipt_wait(struct receipt *r, struct loop *loop, struct loop_task *task);
/* Ends the wait. False if the task has been posted already: it will run. */
bool receipt_cancel(struct receipt *r);
/* Returns true if no part has failed so far: for the waiter, whether all is safe. */
bool receipt_is_good(struct receipt *r);

#endif
