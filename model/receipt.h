/* A receipt: says when all profiles of one request are safe at every destination.
 *
 * The receiver makes a receipt for a request whose sender wants to know that, and passes it on with
 * each profile. A queue that takes a profile adds a part to the receipt, and ends the part when the
 * profile is safe or lost. The receipt is settled when every part has ended well, or as soon as one
 * part was lost. One thread waits for that; any thread may call the other functions.
 */
#ifndef PROFPULL_MODEL_RECEIPT_H
#define PROFPULL_MODEL_RECEIPT_H

#include <stdbool.h>

#include "base/loop.h"

struct receipt;

/* Makes a receipt. The caller owns the reference. Returns NULL if out of memory. */
struct receipt *receipt_new(void);
struct receipt *receipt_ref(struct receipt *r);
struct receipt *receipt_unref(struct receipt *r); /* accepts NULL, returns NULL */

/* Adds a part, which holds a reference. Must not be called after receipt_wait(). */
void receipt_add(struct receipt *r);
/* Ends a part and drops its reference. safe: false if the sender should send the profile again. */
void receipt_end(struct receipt *r, bool safe);
/* Notes that no queue took a profile, and the sender should send it again. */
void receipt_fail(struct receipt *r);

/* Posts the task when the receipt is settled, or at once if it is settled already. Call it once for
 * each receipt. The waiter keeps its reference until the task has run or is cancelled. */
void receipt_wait(struct receipt *r, struct loop *loop, struct loop_task *task);
/* Ends the wait. Returns false if the task has been posted already; then it will run. */
bool receipt_cancel(struct receipt *r);
/* Returns true if no part has failed so far. For the waiter this means that all profiles are
 * safe. */
bool receipt_is_good(struct receipt *r);

#endif
