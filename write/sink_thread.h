/* The thread of one destination that is not HTTP: what it delivers blocks on a disk.
 *
 * A disk may hang: a call of the system never returns. Nothing but the destination's own profiles
 * waits for it then, because no other work shares the thread. The hang is logged when it is noticed
 * and when it is over, and anybody may ask for it.
 *
 * Belongs to the writer's loop, which submits; any thread may make one, and call
 * sink_thread_hung_ms().
 */
#ifndef PROFPULL_WRITE_SINK_THREAD_H
#define PROFPULL_WRITE_SINK_THREAD_H

#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/worker.h"

/* One delivery that takes longer than this hangs. */
#define SINK_HANG_MS INT64_C(5000)

struct sink_thread;

/* endpoint: its name, for the log; borrowed. log may be NULL. */
struct sink_thread *sink_thread_new(struct loop *loop, struct log *log, const char *endpoint,
                                    struct err *err);
/* No more looking at it, and so no log lines. Accepts NULL. */
void sink_thread_unwatch(struct sink_thread *t);
/* Finishes what was submitted, which takes as long as the disk takes; on any thread once it is
 * unwatched. Accepts NULL. */
void sink_thread_stop(struct sink_thread *t);
/* Stops it first. Accepts NULL, returns NULL. */
struct sink_thread *sink_thread_free(struct sink_thread *t);

/* Items run one after the other, in order; see worker_submit(). The submitter limits their number.
 */
void sink_thread_submit(struct sink_thread *t, struct work *w);
/* For how long the delivery that runs has been hanging, in ms; 0: it does not, or none runs. */
int64_t sink_thread_hung_ms(const struct sink_thread *t, int64_t now_ms);

#endif
