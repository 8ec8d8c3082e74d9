/* The inside of a spool; for write/spool/spool*.c only.
 *
 *   spool.c          the thread: its rounds, failure and recovery
 *   spool_entries.c  entries, and the requests that other threads leave for the thread
 */
#ifndef PROFPULL_WRITE_SPOOL_SPOOL_PRIVATE_H
#define PROFPULL_WRITE_SPOOL_SPOOL_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "write/spool/spool.h"

/* The owner of an entry. */
enum {
    ENTRY_STORED,  /* the store has it, also if the store has found it */
    ENTRY_WAITING, /* in `waiting` */
    ENTRY_BUSY,    /* the thread is writing it, and checks `wants` afterwards */
    ENTRY_NEVER,   /* released before it was written; its parts are still to be acknowledged */
};
/* Requests of the queue for an entry. */
enum { WANTS_LOAD = 1, WANTS_RELEASE = 2, WANTS_HOLD = 4, IS_REQUESTED = 8 };

struct spool {
    struct spool_options options; /* with `config` */
    pthread_t thread;

    pthread_mutex_t lock; /* guards what follows up to the status */
    pthread_cond_t wake;
    pthread_cond_t opening; /* signalled when `opened` changes */
    bool opened;            /* the thread has tried to open the directory */
    /* The directory cannot be right (no rights, no directory); open_error says why. */
    bool misplaced;
    struct err open_error;
    bool waited_for;                  /* spool_start() waits for the directory */
    struct spool_entry_list waiting;  /* entries that wait to be written */
    struct spool_entry_list requests; /* entries that have to be loaded or released */
    uint64_t n_waiting;
    uint64_t waiting_bytes;
    int64_t waiting_since_ms;
    bool flush;
    bool stop;
    bool poked;                 /* there is work for the thread, which may not be waiting yet */
    struct spool_status status; /* the status at the end of the last round */
    uint64_t max_bytes;         /* the limits that the configuration wants */
    int64_t fsync_ms;

    /* Used by the thread only. */
    struct config_endpoint config; /* the configuration of the spool */
    char *name;                    /* owned by the spool, as is the next member */
    char *directory;
    struct spool_store *store;
    int64_t retry_ms; /* when to try again, while the disk fails */
    int64_t backoff_ms;
    int64_t read_ms;  /* nothing is read before this time */
    int64_t check_ms; /* when to check that the files exist */
    uint64_t said_damaged;
    uint64_t said_skipped;
    uint64_t full_bytes;     /* the bytes on disk when the status `full` was set */
    int64_t forbidden_ms;    /* when to say again that the directory cannot be used */
    struct spool_status own; /* the status as the thread sees it */
    struct log_limit failure_limit;
    struct log_limit read_limit;
    struct log_limit skip_limit;
    unsigned read_failures;
    unsigned acknowledged; /* entries acknowledged in this round */
    bool said_found;
    bool changed;
    bool started; /* there is a thread; belongs to the owner of the spool */

    _Atomic int64_t since_ms; /* monotonic: when the running round began; or BETWEEN_ROUNDS */
};

#define BETWEEN_ROUNDS INT64_MIN

/* Takes the first entry off a list. Returns NULL if the list is empty. */
struct spool_entry *spool_pop(struct spool_entry_list *list);
void spool_push(struct spool_entry_list *list, struct spool_entry *e);

/* ---- under the lock -------------------------------------------------------------------------- */

/* Wakes the thread up. */
void spool_poke(struct spool *s);
/* Adds a part to the list of the whole. The lock is not needed if only the thread has both entries.
 */
void spool_add_part(struct spool_entry *whole, struct spool_entry *part);
/* Frees a part that will never be written; the entries that it replaces become parts of the whole.
 */
void spool_remove_part(struct spool_entry *part);

/* ---- the thread ------------------------------------------------------------------------------ */

/* Takes the next request; *ret_wants is what the queue wants. Returns NULL if there is none. */
struct spool_entry *spool_take_request(struct spool *s, unsigned *ret_wants);
/* Takes all entries that wait to be written. */
void spool_take_waiting(struct spool *s, struct spool_entry_list *ret_batch);
/* Puts entries that could not be written back into `waiting`, before those that have arrived since.
 */
void spool_put_back(struct spool *s, struct spool_entry_list *batch, int64_t now_ms);
/* Frees an entry that was released before it was written. */
void spool_free_released(struct spool *s, struct spool_entry *e, unsigned wants);
/* Hands an entry to the store, which owns it from then on. Queues the requests that arrived
 * meanwhile. */
void spool_hand_to_store(struct spool *s, struct spool_entry *e);

#endif
