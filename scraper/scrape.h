/* A scrape: one target x one profile type, with its state.
 *
 * There may be fifty thousand scrapes, hence the small fields. The table (scraper/table.h) owns
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

/* The state of a scrape. A scrape that samples enters the gate of its process first (scraper/
 * process_gate.h) and holds it until its transfer has ended; the two states with GATED hold it. */
enum scrape_state {
    SCRAPE_IDLE,             /* waits for its next tick, in its phase */
    SCRAPE_IDLE_EARLY,       /* waits for one tick before its phase: resumed, or asked for */
    SCRAPE_WAITS_GATE,       /* is due, but another scrape is sampling the same process */
    SCRAPE_WAITS_SLOT,       /* is due, and waits for a transfer */
    SCRAPE_WAITS_SLOT_GATED, /* the same, and holds the gate of its process */
    SCRAPE_IN_FLIGHT,        /* its transfer runs, or the work on its body */
    SCRAPE_IN_FLIGHT_GATED,  /* the same, and holds the gate of its process */
};
#define SCRAPE_STATES (SCRAPE_IN_FLIGHT_GATED + 1)

/* The transitions between states: bits of the states that may follow each one. status_state() sets
 * every state, and builds with -DARENA_DEBUG (those of the sanitizers) assert there that the table
 * allows it. docs/architecture.md shows the table as a diagram. */
#define SCRAPE_BIT(s) (1U << (s))
static const uint8_t scrape_transitions[SCRAPE_STATES] = {
    /* The scrape is due, or due early, or was asked for. If there is no memory to put it in line,
     * it stays idle. */
    [SCRAPE_IDLE] = SCRAPE_BIT(SCRAPE_IDLE) | SCRAPE_BIT(SCRAPE_IDLE_EARLY) |
                    SCRAPE_BIT(SCRAPE_WAITS_GATE) | SCRAPE_BIT(SCRAPE_WAITS_SLOT) |
                    SCRAPE_BIT(SCRAPE_WAITS_SLOT_GATED),
    /* Its tick is due. */
    [SCRAPE_IDLE_EARLY] = SCRAPE_BIT(SCRAPE_IDLE) | SCRAPE_BIT(SCRAPE_IDLE_EARLY),
    /* The scrape before it has left the gate; or this scrape was removed, or memory ran out. */
    [SCRAPE_WAITS_GATE] = SCRAPE_BIT(SCRAPE_WAITS_SLOT_GATED) | SCRAPE_BIT(SCRAPE_IDLE),
    /* A transfer is free, or the scrape moves to the line of another class; or it was removed, or
     * memory ran out. */
    [SCRAPE_WAITS_SLOT] =
        SCRAPE_BIT(SCRAPE_WAITS_SLOT) | SCRAPE_BIT(SCRAPE_IN_FLIGHT) | SCRAPE_BIT(SCRAPE_IDLE),
    [SCRAPE_WAITS_SLOT_GATED] = SCRAPE_BIT(SCRAPE_WAITS_SLOT_GATED) |
                                SCRAPE_BIT(SCRAPE_IN_FLIGHT_GATED) | SCRAPE_BIT(SCRAPE_IDLE),
    /* The scrape has ended, or was cancelled. */
    [SCRAPE_IN_FLIGHT] = SCRAPE_BIT(SCRAPE_IDLE),
    [SCRAPE_IN_FLIGHT_GATED] = SCRAPE_BIT(SCRAPE_IDLE),
};

static inline bool scrape_may_become(enum scrape_state from, enum scrape_state to)
{
    return (scrape_transitions[from] & SCRAPE_BIT(to)) != 0;
}

/* Another target with the same scrape. The first such target of each further job follows: its job
 * gets each profile as well. All others are set aside. Each of them may inherit the scrape
 * (scraper/claims.h). */
struct claim {
    struct claim *next;
    struct group *group;
    struct target *target; /* a reference */
    /* The labels of its profiles, if it follows; NULL until the first profile. */
    struct labels *series;
    struct type_metrics *metrics;
    uint32_t entry;
    uint32_t round; /* the last update of a group that touched this claim */
    bool follows;
};

struct scrape {
    struct schedule_item item; /* first: the schedule returns it */
    uint32_t slot;             /* index in the table */
    struct scrape *next_in_bucket;
    uint64_t hash;                 /* the hash of the identity */
    struct group *group;           /* shared */
    struct target *target;         /* a reference; shared */
    uint16_t entry;                /* index in the target; shared */
    uint8_t state;                 /* enum scrape_state; shared */
    uint8_t health;                /* enum scrape_health; shared */
    uint8_t reason;                /* enum reason, of the last attempt; shared */
    uint32_t round;                /* the last update of a group that touched it */
    struct scrape_history history; /* shared */
    /* another scrape, of other jobs, has had the same identity: baselines that are kept need
     * different keys */
    bool apart;
    bool slow; /* the last attempt took long, besides sampling and waiting */
    /* Further targets with this scrape, in the order in which they were added; the list is shared.
     */
    struct claim *claims;
    struct type_metrics *metrics;
    struct labels *series;        /* the labels of the profiles; NULL until the first profile */
    struct fetch *fetch;          /* while in flight */
    struct delta_state *baseline; /* a reference: the baseline of the next delta; may be NULL */
    struct slot_lane *lane;       /* while it waits for a slot or holds one (scraper/slots.h) */
    TAILQ_ENTRY(scrape) link;     /* in the queue where it waits */
    int64_t due_ms;               /* the current tick */
    uint32_t turn; /* the number of its last admission (scraper/room.h); 0: none yet */

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

static inline bool scrape_is_idle(const struct scrape *sc)
{
    return sc->state == SCRAPE_IDLE || sc->state == SCRAPE_IDLE_EARLY;
}

static inline bool scrape_is_in_flight(const struct scrape *sc)
{
    return sc->state == SCRAPE_IN_FLIGHT || sc->state == SCRAPE_IN_FLIGHT_GATED;
}

/* Returns true if other sampling scrapes of its process wait for this one. */
static inline bool scrape_holds_gate(const struct scrape *sc)
{
    return sc->state == SCRAPE_WAITS_SLOT_GATED || sc->state == SCRAPE_IN_FLIGHT_GATED;
}

static inline const struct config_type *scrape_type(const struct scrape *sc)
{
    return target_scrape_type(sc->target, sc->entry);
}

/* Returns for how long the target samples before it answers, in ms; 0 if it does not sample. */
static inline int64_t scrape_sampling_ms(const struct scrape *sc)
{
    return (int64_t)sc->target->entries[sc->entry].seconds * MS_PER_S;
}

static inline int64_t scrape_interval_ms(const struct scrape *sc)
{
    return target_interval_ms(sc->target, sc->entry);
}

#endif
