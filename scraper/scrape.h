/* A scrape: one target x one profile type, with its state.
 *
 * There may be fifty thousand of them, hence the small fields. The table (scraper/table.h) owns
 * them and only the loop's thread changes them. The fields marked "shared" are read by other
 * threads and change under the table's lock.
 */
#ifndef PROFPULL_SCRAPER_SCRAPE_H
#define PROFPULL_SCRAPER_SCRAPE_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/labels.h"
#include "scraper/next_scrape.h"
#include "scraper/schedule.h"
#include "scraper/scrape_metrics.h"
#include "scraper/targets/target_private.h"

struct group;
struct fetch;
struct delta_state;
struct slot_lane;

enum scrape_state {
    STATE_IDLE,       /* until the next tick */
    STATE_WAITS_GATE, /* for another sampling scrape of its process */
    STATE_WAITS_SLOT, /* for one of the transfers in flight */
    STATE_IN_FLIGHT,
};

/* Another target with the same scrape. The first one of each further job follows: its job gets each
 * profile as well. The others are set aside. All of them are heirs (scraper/claims.h). */
struct claim {
    struct claim *next;
    struct group *group;
    struct target *target; /* a reference */
    struct labels *series; /* of its profiles, if it follows; NULL until the first one */
    struct type_metrics *metrics;
    uint32_t entry;
    uint32_t round; /* as that of the scrape */
    bool follows;
};

struct scrape {
    struct schedule_item item; /* first: the schedule returns it */
    uint32_t slot;             /* index in the table */
    struct scrape *next_in_bucket;
    uint64_t hash;                 /* of the identity */
    struct group *group;           /* shared */
    struct target *target;         /* a reference; shared */
    uint16_t entry;                /* index in the target; shared */
    uint8_t state;                 /* enum scrape_state; shared */
    uint8_t health;                /* enum scrape_health; shared */
    uint8_t reason;                /* enum reason, of the last attempt; shared */
    uint32_t round;                /* the last update of a group that touched it */
    bool in_gate;                  /* that of its process */
    bool off_phase;                /* due once before its phase: resumed, or asked for */
    struct scrape_history history; /* shared */
    bool apart;                    /* there was another scrape with this identity */
    bool slow;                     /* the last one took long, besides sampling and waiting */
    struct claim *claims;          /* first come, first served; the list is shared */
    struct type_metrics *metrics;
    struct labels *series;        /* of the profiles; NULL until the first one */
    struct fetch *fetch;          /* while in flight */
    struct delta_state *baseline; /* of deltas, a reference; may be NULL */
    struct slot_lane *lane;       /* while it waits for a slot or holds one (scraper/slots.h) */
    TAILQ_ENTRY(scrape) link;     /* in the queue where it waits */
    int64_t due_ms;               /* the current tick */
    uint32_t turn;                /* of its last admission (scraper/room.h); 0: none yet */

    /* All shared: */
    char *last_error; /* NULL if none */
    int64_t next_due_ms;
    int64_t last_start_ns; /* wall clock */
    uint32_t last_duration_ms;
    uint32_t last_size;
    uint32_t successes;
    uint32_t failures;
    uint32_t skipped;
};

_Static_assert(sizeof(struct scrape) <= 200, "there may be fifty thousand scrapes");

TAILQ_HEAD(scrape_line, scrape);

static inline const struct config_type *scrape_type(const struct scrape *sc)
{
    return target_scrape_type(sc->target, sc->entry);
}

/* How long the target samples before it answers; 0 if it does not. */
static inline int64_t scrape_sampling_ms(const struct scrape *sc)
{
    return (int64_t)sc->target->entries[sc->entry].seconds * MS_PER_S;
}

static inline int64_t scrape_interval_ms(const struct scrape *sc)
{
    return target_interval_ms(sc->target, sc->entry);
}

#endif
