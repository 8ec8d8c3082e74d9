/* The schedule: a binary heap of the instants at which scrapes are due, on the monotonic clock, and
 * the arithmetic of phases.
 *
 * The phase of a scrape within its interval, on the wall clock, is a hash of its identity: it
 * survives restarts, and scrapes with the same interval spread evenly. After the first tick only
 * the monotonic clock counts: a jump of the wall clock causes neither a burst nor a pause. All
 * times in milliseconds; the caller passes the current time. One thread, no locking.
 */
#ifndef PROFPULL_SCRAPER_SCHEDULE_H
#define PROFPULL_SCRAPER_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Embedded in the scheduled object; zeroed while it is not scheduled. */
struct schedule_item {
    uint32_t place; /* private: index in the heap + 1 */
};

struct schedule_node {
    int64_t due_ms;
    struct schedule_item *item;
};

struct schedule {
    struct schedule_node *heap; /* private, as is the rest */
    size_t n;
    size_t cap;
};

void schedule_init(struct schedule *s);
void schedule_done(struct schedule *s);
/* Adds an item that is not in the schedule. Returns false if out of memory. */
bool schedule_add(struct schedule *s, struct schedule_item *item, int64_t due_ms);
/* Removes an item. Does nothing if the item is not in the schedule. */
void schedule_remove(struct schedule *s, struct schedule_item *item);
/* Changes the time of an item in the schedule. */
void schedule_move(struct schedule *s, struct schedule_item *item, int64_t due_ms);
/* Returns the item that is due first, with its time, or NULL. The item stays in the schedule. */
struct schedule_item *schedule_head(const struct schedule *s, int64_t *ret_due_ms);
/* Returns the time of an item in the schedule. */
int64_t schedule_due(const struct schedule *s, const struct schedule_item *item);

/* Returns the first instant at or after now_ms whose wall time is at the phase `hash mod interval`.
 * wall_offset_ms: wall clock minus monotonic clock. interval_ms > 0. */
int64_t schedule_first(int64_t now_ms, int64_t wall_offset_ms, int64_t interval_ms, uint64_t hash);
/* Returns the first instant at which a new scrape is due, given first_ms, the first instant in its
 * phase from now on. If profpull was stopped while a target sampled, that profile is lost. So if
 * the window of sampling_ms from the previous phase is still open, and a whole sample fits in
 * before first_ms, the scrape is due at once. Otherwise it is due at first_ms. sampling_ms is 0 if
 * the target does not sample. */
int64_t schedule_resume(int64_t now_ms, int64_t first_ms, int64_t interval_ms, int64_t sampling_ms);

struct schedule_tick {
    bool run;        /* scrape now */
    int64_t next_ms; /* next tick, after now_ms, in the same phase */
    uint64_t missed; /* ticks that have passed without a scrape; the caller counts them */
};
/* Decides at now_ms about a tick that was due at due_ms <= now_ms. If a tick is late by an interval
 * or more (the machine slept, the process was stopped), it does not run: all scrapes would start at
 * once, and each of them has its next tick within an interval anyway. */
struct schedule_tick schedule_tick(int64_t due_ms, int64_t now_ms, int64_t interval_ms);

#endif
