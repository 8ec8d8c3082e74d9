/* The line for transfers ("slots"): decides which of the scrapes that are due gets the next free
 * one.
 *
 * While slots are free, every scrape gets one. When they run short, the job that holds the fewest
 * comes first, and within a job its hosts (pods) take turns. A share that a job or host does not
 * use is lent to the others. As soon as its owner needs it again, the others get no more of it.
 *
 * A target that hangs holds its slot until its timeout, so turns alone would leave quick targets
 * waiting for hanging ones. Scrapes are therefore sorted by how long the last one held its slot,
 * apart from the time that the target was asked to sample: slow scrapes may hold half of the slots;
 * slow ones and those of targets that have never been tried may together hold three quarters. The
 * last quarter is for targets that are known to answer. The quicker class comes first, but each
 * class is sure of an eighth of the free slots. Pure logic; one thread, no locking.
 */
#ifndef PROFPULL_SCRAPER_SLOTS_H
#define PROFPULL_SCRAPER_SLOTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/map.h"
#include "base/str.h"

struct scrape;

/* Each class gets at least one of this many slots, before the quicker classes get theirs. */
#define SLOTS_LEAST 8
/* The last scrape was slow if it held its slot for longer than this, besides sampling. */
#define SLOTS_SLOW_MS 2000

enum slot_class {
    SLOT_QUICK, /* may have every slot */
    SLOT_NEW,  /* an untried target; may have three quarters of the slots together with SLOT_SLOW */
    SLOT_SLOW, /* may have half of the slots */
};
#define SLOT_CLASSES (SLOT_SLOW + 1)
/* Returns "quick", "new" or "slow". Static storage. */
const char *slot_class_name(enum slot_class c);

/* The class of a scrape by the size of its body. While memory is short, a free slot is not enough:
 * scrapes whose responses would have to wait for memory are held back. */
enum slot_body {
    SLOT_BODY_ANY, /* never held back: memory was not short, or the response comes much later */
    SLOT_BODY_SMALL,
    SLOT_BODY_LARGE,
};
#define SLOT_BODIES (SLOT_BODY_LARGE + 1)

struct slot_lane;
TAILQ_HEAD(slot_ring, slot_lane);

struct slots {
    unsigned max;
    unsigned used[SLOT_CLASSES];
    unsigned waiting[SLOT_BODIES][SLOT_CLASSES];
    uint64_t turns; /* the number of turns that lanes have had so far */
    size_t n_jobs;
    unsigned *held;          /* the slots that each job holds */
    struct slot_ring *rings; /* the lanes in which scrapes wait, for each body, class and job */
    struct map *lanes; /* body, class, job, host -> struct slot_lane, of scrapes that wait or run */
};

/* Returns false if out of memory. Call slots_done() in any case. */
bool slots_init(struct slots *s, unsigned max, size_t n_jobs);
/* Prepares for jobs with larger numbers. Returns false if out of memory: nothing has changed then.
 */
bool slots_grow(struct slots *s, size_t n_jobs);
void slots_done(struct slots *s);

/* Returns the number of scrapes that hold a slot. */
unsigned slots_used(const struct slots *s);
/* Returns the class of a scrape by its own last attempt. */
enum slot_class slot_class_of(const struct scrape *sc);
/* Puts a scrape in line for a slot (sc->lane, sc->link). Returns false if out of memory. */
bool slots_wait(struct slots *s, struct scrape *sc, enum slot_class c, enum slot_body body);
/* Returns the class in which a scrape waits for a slot, or holds it. */
enum slot_class slots_class(const struct scrape *sc);
/* Returns the body class with which the scrape was put in line. */
enum slot_body slots_body(const struct scrape *sc);
/* Takes a scrape that waits out of the line. */
void slots_give_up(struct slots *s, struct scrape *sc);
/* Returns the scrape that gets a free slot now, or NULL. held_back: the bodies that wait, as bits
 * 1U << enum slot_body. */
struct scrape *slots_take(struct slots *s, unsigned held_back);
/* Returns the number of scrapes with such a body that wait for a slot. */
unsigned slots_waiting(const struct slots *s, enum slot_body body);
/* Frees the slot of a scrape. */
void slots_release(struct slots *s, struct scrape *sc);

#endif
