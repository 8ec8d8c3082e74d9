/* Admission of bodies: which responses may be read now, so that every body that is begun also
 * finds room for its end.
 *
 * A body is a guest. It asks for as many bytes as it is expected to have, and gets all of them or
 * none. A guest that gets none waits in line, and its response stays unread in the socket. If a
 * guest turns out larger than it expected, it keeps what it has and asks for more. A guest that
 * grows like this comes before all that wait, because only a body that ends gives memory back. If
 * no body can end any more because all guests need to grow, room_victim() names the guest to give
 * up.
 *
 * The turn of a guest is the number of the last admission of its scrape. The lowest turn comes
 * first, so a scrape that has waited in vain comes before all that were served since. Among jobs,
 * the one whose guests hold the fewest bytes comes first.
 *
 * A few large bodies must not keep small ones waiting: a quarter of the memory is for bodies of at
 * most a sixteenth of it. While a large body waits, small ones get no more than that quarter.
 * Guests of targets that were slow the last time hold half of the memory at most: a target may stop
 * in the middle of its response and hold memory until its deadline. A guest that will become a
 * delta also needs a place among the bodies that wait for a worker (scraper/offload.h).
 *
 * While memory is short, requests are held back as well (scraper/slots.h). A request that is sent
 * nevertheless invites a guest whose response has not arrived yet. For ROOM_INVITED_MS, an invited
 * guest counts like one that waits.
 *
 * Pure logic; one thread, no locking. The owner of a guest keeps it in place from room_ask() to
 * room_leave().
 */
#ifndef PROFPULL_SCRAPER_ROOM_H
#define PROFPULL_SCRAPER_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "scraper/schedule.h"

struct offload_queue;

/* Bodies of more than this part of the memory are large. */
#define ROOM_LARGE_PART 16
/* The part of the memory that large bodies leave to small ones. */
#define ROOM_SMALL_PART 4
/* The part of the memory that a body is expected to need if no body of its type has been seen yet.
 */
#define ROOM_UNKNOWN_PART 8
/* If the response to an invited guest has not arrived after this time, the guest is not expected
 * any more. */
#define ROOM_INVITED_MS 2000

enum room_size { ROOM_SMALL, ROOM_LARGE, ROOM_SIZES };

enum room_state {
    ROOM_OUT,     /* holds nothing and waits for nothing */
    ROOM_INVITED, /* the same, and has a place in room.invited */
    ROOM_WAITS,   /* in line, holds nothing */
    ROOM_READS,   /* holds all that it asked for */
    ROOM_GROWS,   /* holds less than it needs */
};

struct room_guest {
    struct schedule_item item;    /* first: the lines are schedules, by turn */
    TAILQ_ENTRY(room_guest) link; /* while it grows, or is invited */
    int64_t invited_ms;
    size_t held;
    size_t wanted;   /* the total that it asks for while it is invited, waits or grows */
    size_t promised; /* bytes promised to it among the bodies that wait for a worker */
    uint32_t job;
    uint8_t state; /* enum room_state */
    bool slow;     /* the target was slow in its last scrape */
    bool delta;    /* the body becomes a delta */
};

TAILQ_HEAD(room_line, room_guest);

struct room {
    size_t max;
    size_t held[ROOM_SIZES];
    size_t held_slow;
    unsigned reading[ROOM_SIZES]; /* guests in ROOM_READS */
    unsigned waiting[ROOM_SIZES]; /* guests in ROOM_WAITS and ROOM_GROWS, by what they want */
    size_t wanted[ROOM_SIZES];    /* bytes of those in ROOM_WAITS */
    size_t coming[ROOM_SIZES];    /* bytes of those in ROOM_INVITED */
    struct room_line invited;     /* the first one first */
    struct room_line growing[ROOM_SIZES];
    struct offload_queue *pending; /* NULL: there are no deltas */
    uint64_t arrivals;
    size_t n_jobs;
    size_t *held_by_job;
    struct schedule *lines; /* for each kind of guest and job */
};

enum room_answer {
    ROOM_GRANTED,
    ROOM_LATER,     /* the guest waits, or grows */
    ROOM_NEVER,     /* larger than all bodies together may be */
    ROOM_NO_MEMORY, /* there was no memory for the line itself */
};

/* Returns false if out of memory. Call room_done() in any case. max: the limit of all bodies
 * together, in bytes. */
bool room_init(struct room *r, size_t max, struct offload_queue *pending);
/* Prepares for jobs with larger numbers. Returns false if out of memory; nothing has changed then.
 */
bool room_grow(struct room *r, size_t n_jobs);
/* Frees the lines. All guests must have left before. */
void room_done(struct room *r);

/* Returns the size of the largest body that is ever admitted, in bytes. */
size_t room_most(const struct room *r);
enum room_size room_size_of(const struct room *r, size_t bytes);
/* Asks for `bytes` in all for a guest whose job, slow and delta are set. A guest that waits or
 * grows may ask again. */
enum room_answer room_ask(struct room *r, struct room_guest *g, size_t bytes, uint32_t turn);
/* Grants the next guest that waits or grows all that it wants, and returns this guest; NULL if no
 * guest can be served now. Whenever memory has become free, call this until it returns NULL. */
struct room_guest *room_next(struct room *r);
/* Returns the guest that must be given up so that the others can end; NULL if they can end without
 * that. */
struct room_guest *room_victim(const struct room *r);
/* Frees the memory that the guest holds, and removes it from the lines. */
void room_leave(struct room *r, struct room_guest *g);
/* Returns true if a guest waits only because all workers are busy and more memory would not help.
 */
bool room_lacks_workers(const struct room *r, const struct room_guest *g);
/* Returns true if the next guest in line waits only because all workers are busy. */
bool room_next_lacks_workers(const struct room *r);
/* Expects a guest of so many bytes until it asks or leaves, for ROOM_INVITED_MS at most. */
void room_invite(struct room *r, struct room_guest *g, size_t bytes, int64_t now_ms);
/* Forgets the guests that have been expected for long enough. */
void room_forget_invited(struct room *r, int64_t now_ms);
/* Returns true if as many bytes of this size wait or are invited as all bodies may have: more
 * responses would only wait longer. */
bool room_is_crowded(const struct room *r, enum room_size size);

#endif
