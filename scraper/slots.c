#include "scraper/slots.h"

#include <stdlib.h>
#include <string.h>

#include "scraper/scrape.h"

/* A lane: the scrapes of one class, body, job and host. A lane exists while one of them waits or
 * runs. */
struct slot_lane {
    TAILQ_ENTRY(slot_lane) link; /* in its ring, while scrapes wait */
    struct scrape_line waiting;
    struct lane_key {
        uint64_t host; /* a hash */
        uint32_t job;
        uint16_t class;
        uint16_t body;
    } key;
    uint64_t turn; /* the number of its place in its ring: the lowest comes first */
    unsigned n;    /* scrapes that wait or run */
};

const char *slot_class_name(enum slot_class c)
{
    static const char *const names[SLOT_CLASSES] = {
        [SLOT_QUICK] = "quick", [SLOT_NEW] = "new", [SLOT_SLOW] = "slow"};
    return names[c];
}

bool slots_init(struct slots *s, unsigned max, size_t n_jobs)
{
    *s = (struct slots){.max = max, .lanes = map_new()};
    return s->lanes != NULL && slots_grow(s, n_jobs);
}

/* Copies the scrapes that wait, and the numbers of slots, of the jobs so far. */
static void move_jobs(const struct slots *s, unsigned *held, struct slot_ring *rings, size_t n_jobs)
{
    for (size_t job = 0; job < s->n_jobs; job++) {
        held[job] = s->held[job];
        for (size_t c = 0; c < SLOT_BODIES * SLOT_CLASSES; c++) {
            TAILQ_CONCAT(&rings[c * n_jobs + job], &s->rings[c * s->n_jobs + job], link);
        }
    }
}

bool slots_grow(struct slots *s, size_t n_jobs)
{
    unsigned *held = calloc(n_jobs + 1, sizeof(*held));
    struct slot_ring *rings = calloc(SLOT_BODIES * SLOT_CLASSES * n_jobs + 1, sizeof(*rings));
    if (held == NULL || rings == NULL) {
        free(held);
        free(rings);
        return false;
    }
    for (size_t i = 0; i < SLOT_BODIES * SLOT_CLASSES * n_jobs; i++) {
        TAILQ_INIT(&rings[i]);
    }
    move_jobs(s, held, rings, n_jobs);
    free(s->held);
    free(s->rings);
    s->held = held;
    s->rings = rings;
    s->n_jobs = n_jobs;
    return true;
}

void slots_done(struct slots *s)
{
    s->lanes = map_free(s->lanes, free);
    free(s->held);
    free(s->rings);
}

unsigned slots_used(const struct slots *s)
{
    unsigned sum = 0;
    for (size_t c = 0; c < SLOT_CLASSES; c++) {
        sum += s->used[c];
    }
    return sum;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

enum slot_class slot_class_of(const struct scrape *sc)
{
    if (sc->successes == 0 && sc->failures == 0) {
        return SLOT_NEW;
    }
    return sc->slow ? SLOT_SLOW : SLOT_QUICK;
}

/* Makes the key of a scrape's lane. A process is "host:port"; the ports of one host share one lane.
 */
static struct lane_key key_of(const struct scrape *sc, enum slot_class c, enum slot_body body)
{
    const char *process = target_process(sc->target, sc->entry);
    const char *colon = strrchr(process, ':');
    size_t n = colon == NULL ? strlen(process) : (size_t)(colon - process);
    return (struct lane_key){.host = hash_bytes(process, n, 0),
                             .job = sc->target->job,
                             .class = (uint16_t)c,
                             .body = (uint16_t)body};
}

static struct sv key_text(const struct lane_key *key)
{
    return (struct sv){.p = (const char *)key, .n = sizeof(*key)};
}

static struct slot_ring *ring_of(struct slots *s, const struct lane_key *key)
{
    return &s->rings[(key->body * (size_t)SLOT_CLASSES + key->class) * s->n_jobs + key->job];
}

static struct slot_lane *find_lane(struct slots *s, const struct scrape *sc, enum slot_class c,
                                   enum slot_body body)
{
    const struct lane_key key = key_of(sc, c, body);
    struct slot_lane *lane = map_get(s->lanes, key_text(&key));
    if (lane != NULL) {
        return lane;
    }
    lane = malloc(sizeof(*lane));
    if (lane == NULL || !map_put(s->lanes, key_text(&key), lane, NULL)) {
        free(lane);
        return NULL;
    }
    *lane = (struct slot_lane){.key = key};
    TAILQ_INIT(&lane->waiting);
    return lane;
}

/* Takes a scrape out of its lane for good. */
static void leave_lane(struct slots *s, struct scrape *sc)
{
    struct slot_lane *lane = sc->lane;
    sc->lane = NULL;
    if (--lane->n == 0) {
        map_remove(s->lanes, key_text(&lane->key));
        free(lane);
    }
}

static void stop_waiting(struct slots *s, struct scrape *sc)
{
    struct slot_lane *lane = sc->lane;
    TAILQ_REMOVE(&lane->waiting, sc, link);
    s->waiting[lane->key.body][lane->key.class]--;
    if (TAILQ_EMPTY(&lane->waiting)) {
        TAILQ_REMOVE(ring_of(s, &lane->key), lane, link);
    }
}

static void enter_ring(struct slots *s, struct slot_lane *lane)
{
    lane->turn = s->turns++;
    TAILQ_INSERT_TAIL(ring_of(s, &lane->key), lane, link);
}

bool slots_wait(struct slots *s, struct scrape *sc, enum slot_class c, enum slot_body body)
{
    struct slot_lane *lane = find_lane(s, sc, c, body);
    if (lane == NULL) {
        return false;
    }
    if (TAILQ_EMPTY(&lane->waiting)) {
        enter_ring(s, lane);
    }
    TAILQ_INSERT_TAIL(&lane->waiting, sc, link);
    lane->n++;
    s->waiting[lane->key.body][lane->key.class]++;
    sc->lane = lane;
    return true;
}

enum slot_class slots_class(const struct scrape *sc)
{
    return (enum slot_class)sc->lane->key.class;
}

enum slot_body slots_body(const struct scrape *sc)
{
    return (enum slot_body)sc->lane->key.body;
}

void slots_give_up(struct slots *s, struct scrape *sc)
{
    stop_waiting(s, sc);
    leave_lane(s, sc);
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* Returns true if a class may have one more slot. The classes from this one on share a part of
 * them. */
static bool has_room(const struct slots *s, unsigned class)
{
    const unsigned limits[SLOT_CLASSES] = {
        [SLOT_QUICK] = s->max,
        [SLOT_NEW] = s->max - s->max / 4,
        [SLOT_SLOW] = (s->max + 1) / 2,
    };
    unsigned used = 0;
    for (unsigned c = SLOT_CLASSES; c > 0; c--) {
        used += s->used[c - 1];
        if (c - 1 <= class && used >= limits[c - 1]) {
            return false;
        }
    }
    return true;
}

unsigned slots_waiting(const struct slots *s, enum slot_body body)
{
    unsigned sum = 0;
    for (size_t c = 0; c < SLOT_CLASSES; c++) {
        sum += s->waiting[body][c];
    }
    return sum;
}

/* Returns true if the lane comes before the other one (NULL: there is none): if its job holds fewer
 * slots, or has its turn. */
static bool comes_first(const struct slots *s, const struct slot_lane *lane,
                        const struct slot_lane *other)
{
    if (lane == NULL || other == NULL) {
        return lane != NULL;
    }
    unsigned held = s->held[lane->key.job];
    unsigned others = s->held[other->key.job];
    bool same = lane->key.job == other->key.job;
    return held < others || (same && lane->turn < other->turn);
}

/* Returns the first lane of a class and body; NULL if none waits. */
static struct slot_lane *next_with_body(const struct slots *s, unsigned class, unsigned body)
{
    struct slot_lane *best = NULL;
    const struct slot_ring *rings = &s->rings[(body * (size_t)SLOT_CLASSES + class) * s->n_jobs];
    for (size_t job = 0; job < s->n_jobs && s->waiting[body][class] > 0; job++) {
        struct slot_lane *lane = TAILQ_FIRST(&rings[job]);
        best = comes_first(s, lane, best) ? lane : best;
    }
    return best;
}

/* Returns the lane whose turn it is in a class; NULL if none may have a slot now. */
static struct slot_lane *next_lane(const struct slots *s, unsigned class, unsigned held_back)
{
    struct slot_lane *best = NULL;
    for (unsigned body = 0; body < SLOT_BODIES; body++) {
        bool held = (held_back & 1U << body) != 0;
        struct slot_lane *lane = held ? NULL : next_with_body(s, class, body);
        best = comes_first(s, lane, best) ? lane : best;
    }
    return best;
}

static struct scrape *take_from(struct slots *s, struct slot_lane *lane)
{
    struct scrape *sc = TAILQ_FIRST(&lane->waiting);
    /* To the end of the ring: the other hosts come first. */
    TAILQ_REMOVE(ring_of(s, &lane->key), lane, link);
    TAILQ_REMOVE(&lane->waiting, sc, link);
    if (!TAILQ_EMPTY(&lane->waiting)) {
        enter_ring(s, lane);
    }
    s->waiting[lane->key.body][lane->key.class]--;
    s->used[lane->key.class]++;
    s->held[lane->key.job]++;
    return sc;
}

struct scrape *slots_take(struct slots *s, unsigned held_back)
{
    unsigned least = (s->max + SLOTS_LEAST - 1) / SLOTS_LEAST;
    struct slot_lane *best = NULL;
    for (unsigned class = 0; class < SLOT_CLASSES; class ++) {
        struct slot_lane *lane = has_room(s, class) ? next_lane(s, class, held_back) : NULL;
        if (lane != NULL && (best == NULL || s->used[class] < least)) {
            best = lane;
        }
    }
    return best == NULL ? NULL : take_from(s, best);
}

void slots_release(struct slots *s, struct scrape *sc)
{
    s->used[sc->lane->key.class]--;
    s->held[sc->lane->key.job]--;
    leave_lane(s, sc);
}
