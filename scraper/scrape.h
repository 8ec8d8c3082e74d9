/* One target x one profile type, and all that is known of it.
 *
 * Fifty thousand of these are kept at once, hence the small fields. Owned by the table
 * (scraper/table.h); changed by the loop's thread alone. What other threads may see (marked below)
 * is changed under the table's lock.
 */
#ifndef PROFPULL_SCRAPER_SCRAPE_H
#define PROFPULL_SCRAPER_SCRAPE_H

#include <stdint.h>
#include <sys/queue.h>

#include "scraper/next_scrape.h"
#include "scraper/schedule.h"
#include "scraper/scrape_metrics.h"
#include "scraper/targets/target_private.h"

struct group;
struct fetch;
struct delta_state;

enum scrape_state {
    STATE_IDLE,       /* waits for its next tick */
    STATE_WAITS_GATE, /* another sampling scrape of its process runs */
    STATE_WAITS_SLOT, /* too many transfers are in flight */
    STATE_IN_FLIGHT,
};

/* Somebody else who wants the same scrape and takes it over when its owner lets go of it. */
struct claim {
    struct claim *next;
    struct group *group;
    struct target *target; /* a reference */
    uint32_t entry;
};

struct scrape {
    struct schedule_item item; /* first: the schedule hands it back */
    uint32_t slot;             /* place in the table's list */
    struct scrape *next_in_bucket;
    uint64_t hash; /* of its identity */
    struct group *group;
    struct target *target;         /* a reference (seen by others) */
    uint16_t entry;                /* its place in the target (seen by others) */
    uint8_t state;                 /* enum scrape_state (seen by others) */
    uint8_t health;                /* enum scrape_health (seen by others) */
    uint8_t reason;                /* enum reason, of the last attempt (seen by others) */
    uint32_t round;                /* the update of a group that touched it last */
    bool in_gate;                  /* of its process */
    struct scrape_history history; /* (seen by others) */
    struct claim *waiting;         /* first come, first served */
    struct type_metrics *metrics;
    struct labels *series;        /* of its profiles; NULL until the first one */
    struct fetch *fetch;          /* while in flight */
    struct delta_state *baseline; /* of its deltas, a reference; NULL if there is none */
    TAILQ_ENTRY(scrape) link;     /* in the line where it waits, if it waits */
    int64_t due_ms;               /* the tick that is being served */

    /* Seen by others. */
    char *last_error; /* NULL if none */
    int64_t next_due_ms;
    int64_t last_start_ns; /* wall clock */
    uint32_t last_duration_ms;
    uint32_t last_size;
    uint32_t successes;
    uint32_t failures;
    uint32_t skipped;
};

_Static_assert(sizeof(struct scrape) <= 200, "fifty thousand of these must stay small");

TAILQ_HEAD(scrape_line, scrape);

static inline const struct config_type *scrape_type(const struct scrape *sc)
{
    return target_scrape_type(sc->target, sc->entry);
}

/* How long it samples; 0 if it does not. */
static inline uint32_t scrape_seconds(const struct scrape *sc)
{
    return sc->target->entries[sc->entry].seconds;
}

static inline int64_t scrape_interval_ms(const struct scrape *sc)
{
    return target_interval_ms(sc->target, sc->entry);
}

#endif
