/* The inside of the writer; for write/writer.c, write/destination.c and write/change.c only.
 *
 *   writer.c       the loop's side, putting, metrics, making and freeing
 *   destination.c  making and freeing one destination
 *   change.c       another configuration at run time
 *
 * `routes` has the destination of each slot, for profiles that are put. The loop works with the
 * destinations in the list ACTIVE, which only its thread changes. A new destination waits in ADDED
 * until the loop takes it over. A removed one is in CLOSING until its calls to disks have returned.
 *
 * Lock order: the table lock before that of a queue.
 */
#ifndef PROFPULL_WRITE_WRITER_PRIVATE_H
#define PROFPULL_WRITE_WRITER_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/worker.h"
#include "write/destination.h"
#include "write/queue/merger.h"
#include "write/write.h"

/* The time for which the spools may write after the deadline of a drain. */
#define FLUSH_MS 3000

/* The task that wakes the loop; posted only if it is not posted already. Allocated apart from the
 * writer, because a task that waits in the loop may outlive it. */
struct wake {
    struct loop_task task;
    struct writer *writer; /* NULL: freed */
    atomic_bool posted;
};

struct drain {
    int64_t deadline_ms;
    void (*done)(void *arg); /* NULL: not requested */
    void *arg;
};

enum writer_list { ACTIVE, ADDED, CLOSING, WRITER_LISTS };

struct writer {
    struct writer_options options;
    struct http_client *http;
    struct merger *merger;
    struct wake *wake;
    /* The thread on which removed destinations end; made for the first change. */
    struct worker_pool *closer;
    /* The spool that was started last hangs; belongs to the thread that starts spools. */
    bool spool_hangs;

    pthread_rwlock_t table; /* guards what follows up to `lock`; held for a few instructions */
    struct destination *routes[CONFIG_ENDPOINTS_MAX];   /* by slot; NULL: none */
    struct destination_list destinations[WRITER_LISTS]; /* ACTIVE: written by the loop only */
    atomic_bool changed;                                /* the loop has something to take over */

    pthread_mutex_t lock; /* guards drain */
    struct drain drain;

    /* Only on the loop's thread. */
    enum {
        RUNNING,
        DRAINING,
        FLUSHING, /* the deadline has passed, the rest is being written to disk */
        DRAINED,
    } phase;
    struct loop_timer *deadline;
};

/* Makes the loop check all queues and pending changes. Any thread. */
void writer_wake(struct writer *w);

/* Adds the counts of l to *to. */
void write_ledger_add(struct write_ledger *to, const struct write_ledger *l);

/* ---- change.c; on the loop's thread ---------------------------------------------------------- */

/* Takes over the configuration of a change. */
void writer_adopt(struct writer *w);
/* Continues to end a destination that is being removed. Returns true if the loop is done with it; d
 * belongs to the closer then. */
bool writer_check_leaving(struct destination *d, int64_t now_ms);

#endif
