/* The thread of one destination that is not HTTP: its deliveries block on a disk.
 *
 * A disk may hang: a system call never returns. Then only the destination's own profiles wait,
 * because no other work shares the thread. The beginning and the end of a hang are logged, and
 * sink_thread_hung_ms() returns its duration.
 *
 * The object belongs to the writer's loop, which submits the deliveries. Any thread may make one,
 * and call sink_thread_hung_ms(). */
#ifndef PROFPULL_WRITE_SINK_THREAD_H
#define PROFPULL_WRITE_SINK_THREAD_H

#include <stdint.h>

#include "base/err.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/worker.h"

/* A delivery that takes longer than this hangs. */
#define SINK_HANG_MS INT64_C(5000)

struct sink_thread;

/* Starts a thread. endpoint: the name of the destination, for the log; borrowed. log may be NULL.
 */
struct sink_thread *sink_thread_new(struct loop *loop, struct log *log, const char *endpoint,
                                    struct err *err);
/* Ends the checks for hangs, and with them the lines of the log. Accepts NULL. */
void sink_thread_unwatch(struct sink_thread *t);
/* Finishes the deliveries that were submitted, which takes as long as the disk needs. Any thread,
 * after sink_thread_unwatch(). Accepts NULL. */
void sink_thread_stop(struct sink_thread *t);
/* Stops the thread first. Accepts NULL, returns NULL. */
struct sink_thread *sink_thread_free(struct sink_thread *t);

/* Submits an item. Items run one after the other, in order; see worker_submit(). The caller limits
 * their number.
 */
void sink_thread_submit(struct sink_thread *t, struct work *w);
/* Returns for how long the running delivery has been hanging, in ms; 0 if it does not hang, or if
 * none runs. */
int64_t sink_thread_hung_ms(const struct sink_thread *t, int64_t now_ms);

#endif
