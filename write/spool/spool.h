/* The spool of an endpoint keeps its queued profiles on disk as well as in memory, so that they
 * survive the process.
 *
 * The queue hands over every profile that it accepts (spool_submit) and gives it back when it is
 * sent or dropped (spool_release). Profiles that were given back in the meantime are never written,
 * so an endpoint that works costs little disk traffic. With fsync "500ms", all waiting profiles are
 * written and synced 500 ms after the first of them came; with "always", they are written and
 * synced at once; with "never", they are written after 500 ms and not synced. When a profile is
 * safe, the spool reports it (written), and the queue may free its bytes and read them back later
 * (spool_load).
 *
 * Profiles of earlier processes are read in the background and handed to the queue as entries
 * without bytes (found).
 *
 * Each spool has one thread that does all disk access; the functions here only leave requests for
 * it. While the disk fails, profiles stay in the queue, and the spool tries again every 1 to 30
 * seconds. If somebody removes its files or its directory, the spool makes them again, and writes
 * the profiles again whose bytes can still be read.
 *
 * An entry is made by its submitter and belongs to the spool from then on; it stays valid until it
 * is released. Events are called on the spool's thread, with no lock of the spool held.
 */
#ifndef PROFPULL_WRITE_SPOOL_SPOOL_H
#define PROFPULL_WRITE_SPOOL_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/labels.h"
#include "base/log.h"
#include "model/profile.h"
#include "write/spool/store.h"

/* The time for which writing waits with fsync "never". */
#define SPOOL_WRITE_DELAY_MS INT64_C(500)
/* This many waiting bytes are written at once (or a quarter of the queue, if that is less). */
#define SPOOL_FLUSH_THRESHOLD (UINT64_C(8) * 1024 * 1024)
/* The wait between attempts while the disk fails: at first, and at most. */
#define SPOOL_RETRY_MIN_MS INT64_C(1000)
#define SPOOL_RETRY_MAX_MS INT64_C(30000)
/* How often the presence of the files is checked, besides before each write. */
#define SPOOL_CHECK_MS INT64_C(5000)
/* The longest wait of a start, or of a new configuration, for the directory of a spool. */
#define SPOOL_OPEN_WAIT_MS INT64_C(5000)
/* A segment that fails to be read this often in a row is left to the next process. */
#define SPOOL_READ_TRIES 5

struct spool;

/* Makes a spool, without touching the disk; NULL if out of memory. o need not outlive the call. */
struct spool *spool_new(const struct spool_options *o, struct err *err);
/* Starts the thread, which makes the directory and locks it, and waits for that for wait_ms at
 * most: a disk may hang. Returns false if another process uses the directory, or if the place
 * cannot be right (no rights, no directory). A disk that is full, read-only, fails or hangs is no
 * error: profiles are kept in memory until it works. */
bool spool_start(struct spool *s, int64_t wait_ms, struct err *err);
/* Opens the directory on the calling thread, for tests without a thread; see spool_step(). */
bool spool_open(struct spool *s, struct err *err);
/* Returns true once the thread has tried to open the directory. Any thread. */
bool spool_is_opened(struct spool *s);
/* Writes the profiles that wait and ends the thread. There are no events after this call. Profiles
 * that were not released stay on disk for the next process. Accepts NULL. */
void spool_stop(struct spool *s, int64_t now_ms);
/* Frees all entries. Accepts NULL, returns NULL. */
struct spool *spool_free(struct spool *s);

/* ---- any thread; none of these blocks -------------------------------------------------------- */

/* Makes an entry for a profile, and takes a reference of its own; NULL if out of memory. */
struct spool_entry *spool_entry_new(struct profile *p);
/* Frees an entry that was never submitted. Accepts NULL. */
void spool_entry_free(struct spool_entry *e);
/* Makes e, which is not submitted yet, replace a part. The part is acknowledged when e is on disk
 * or released. The caller must not use the part after this. */
void spool_replace(struct spool *s, struct spool_entry *e, struct spool_entry *part);
/* Takes over an entry whose profile is to be written. The event `written` follows, unless the entry
 * is released before. */
void spool_submit(struct spool *s, struct spool_entry *e, int64_t now_ms);
/* Requests the bytes of an entry that is on disk. The event `loaded` follows. */
void spool_load(struct spool *s, struct spool_entry *e);
/* Releases an entry, which the caller must not use after this. With hold, returns true if the event
 * `acknowledged` will count it. */
bool spool_release(struct spool *s, struct spool_entry *e, bool hold);
/* Changes the limits from the next round on: spool_max_bytes and spool_fsync_ms of the
 * configuration. Files beyond a smaller limit are removed when room is needed. */
void spool_configure(struct spool *s, uint64_t max_bytes, int64_t fsync_ms);
/* Writes the waiting profiles at once. The event `flushed` follows, whether they could be written
 * or not. */
void spool_flush(struct spool *s);

struct spool_status {
    struct spool_counts counts;
    bool up;        /* the last operation worked */
    bool forbidden; /* the directory is gone, and the process may not make it again */
    bool reading;   /* records of earlier processes are still to be read */
    bool full;      /* profiles wait for room, because no profile on disk may be dropped for them */
    uint64_t limit; /* spool_max_bytes */
    uint64_t waiting;   /* profiles to be written */
    uint64_t stored;    /* profiles that were ever written, and synced as configured */
    uint64_t too_large; /* profiles that the spool could never hold */
};
struct spool_status spool_status(struct spool *s);
/* Returns false while the status is `full`. */
bool spool_has_room(struct spool *s);

/* If a round of the thread takes longer than this, it is taken to hang in a call to the disk. */
#define SPOOL_HANG_MS INT64_C(5000)
/* Returns for how long the thread has been hanging, in ms; 0 if it does not hang. Any thread. */
int64_t spool_hung_ms(const struct spool *s, int64_t now_ms);

/* Does one round of the thread's work, for tests that have no thread. Returns when the next round
 * is due (monotonic ms), INT64_MAX for never. */
int64_t spool_step(struct spool *s, int64_t now_ms);

#endif
