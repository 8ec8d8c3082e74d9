#include "scraper/room.h"

#include <stdlib.h>
#include <string.h>

#include "scraper/offload.h"

/* The kinds of guests that can be held up apart from each other: by size, slow or not, a delta or
 * not. Each kind has a line for each job. */
#define KINDS_OF_SIZE 4U
#define KINDS (ROOM_SIZES * KINDS_OF_SIZE)
/* The lower bits of a place in line have the order of guests of the same turn. */
#define ARRIVAL_BITS 24

bool room_init(struct room *r, size_t max, struct offload_queue *pending)
{
    *r = (struct room){.max = max, .pending = pending};
    TAILQ_INIT(&r->invited);
    for (size_t i = 0; i < ROOM_SIZES; i++) {
        TAILQ_INIT(&r->growing[i]);
    }
    return room_grow(r, 0);
}

bool room_grow(struct room *r, size_t n_jobs)
{
    size_t *held = calloc(n_jobs + 1, sizeof(*held));
    struct schedule *lines = calloc(KINDS * n_jobs + 1, sizeof(*lines));
    if (held == NULL || lines == NULL) {
        free(held);
        free(lines);
        return false;
    }
    for (size_t job = 0; job < r->n_jobs; job++) {
        held[job] = r->held_by_job[job];
        for (size_t kind = 0; kind < KINDS; kind++) {
            lines[kind * n_jobs + job] = r->lines[kind * r->n_jobs + job];
        }
    }
    free(r->held_by_job);
    free(r->lines);
    r->held_by_job = held;
    r->lines = lines;
    r->n_jobs = n_jobs;
    return true;
}

void room_done(struct room *r)
{
    for (size_t i = 0; r->lines != NULL && i < KINDS * r->n_jobs; i++) {
        schedule_done(&r->lines[i]);
    }
    free(r->held_by_job);
    free(r->lines);
    r->held_by_job = NULL;
    r->lines = NULL;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static size_t small_share(const struct room *r)
{
    return r->max / ROOM_SMALL_PART;
}

size_t room_most(const struct room *r)
{
    return r->max - small_share(r);
}

enum room_size room_size_of(const struct room *r, size_t bytes)
{
    return bytes > r->max / ROOM_LARGE_PART ? ROOM_LARGE : ROOM_SMALL;
}

static size_t held_in_all(const struct room *r)
{
    return r->held[ROOM_SMALL] + r->held[ROOM_LARGE];
}

bool room_is_crowded(const struct room *r, enum room_size size)
{
    size_t bytes = r->wanted[size] + r->coming[size];
    return r->wanted[size] > 0 && bytes >= (size == ROOM_LARGE ? room_most(r) : r->max);
}

/* ---- what a guest holds ---------------------------------------------------------------------- */

/* Adds a guest, with the bytes that it holds, to the counts, or removes it from them. */
static void count(struct room *r, struct room_guest *g, bool added)
{
    enum room_size size = room_size_of(r, g->held);
    size_t bytes = added ? g->held : 0 - g->held;
    r->held[size] += bytes;
    r->held_by_job[g->job] += bytes;
    r->held_slow += g->slow ? bytes : 0;
    r->reading[size] += added ? 1 : -1U;
}

static void hold(struct room *r, struct room_guest *g, size_t bytes)
{
    g->held = bytes;
    g->state = ROOM_READS;
    if (g->delta && r->pending != NULL) {
        g->promised = offload_promise(r->pending, g->promised, bytes);
    }
    count(r, g, true);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static struct schedule *line_of(struct room *r, const struct room_guest *g)
{
    unsigned kind = room_size_of(r, g->wanted) * KINDS_OF_SIZE + g->slow * 2U + g->delta;
    return &r->lines[kind * r->n_jobs + g->job];
}

static bool enter_line(struct room *r, struct room_guest *g, uint32_t turn)
{
    uint64_t mask = (UINT64_C(1) << ARRIVAL_BITS) - 1;
    int64_t place = (int64_t)((uint64_t)turn << ARRIVAL_BITS | (r->arrivals++ & mask));
    if (!schedule_add(line_of(r, g), &g->item, place)) {
        return false;
    }
    g->state = ROOM_WAITS;
    r->waiting[room_size_of(r, g->wanted)]++;
    r->wanted[room_size_of(r, g->wanted)] += g->wanted;
    return true;
}

static void leave_line(struct room *r, struct room_guest *g)
{
    schedule_remove(line_of(r, g), &g->item);
    r->waiting[room_size_of(r, g->wanted)]--;
    r->wanted[room_size_of(r, g->wanted)] -= g->wanted;
    g->state = ROOM_OUT;
}

/* Moves a guest that reads to those that grow. */
static void begin_growing(struct room *r, struct room_guest *g)
{
    enum room_size size = room_size_of(r, g->wanted);
    r->reading[room_size_of(r, g->held)]--;
    r->waiting[size]++;
    TAILQ_INSERT_TAIL(&r->growing[size], g, link);
    g->state = ROOM_GROWS;
}

/* Moves a guest that grows back to those that read. */
static void end_growing(struct room *r, struct room_guest *g)
{
    enum room_size size = room_size_of(r, g->wanted);
    r->reading[room_size_of(r, g->held)]++;
    r->waiting[size]--;
    TAILQ_REMOVE(&r->growing[size], g, link);
    g->state = ROOM_READS;
}

/* ---- who may have more ----------------------------------------------------------------------- */

/* Returns true if a guest can have so many bytes in all, in addition to the bytes that the others
 * hold. */
static bool fits(const struct room *r, const struct room_guest *g, size_t bytes)
{
    size_t others = held_in_all(r) - g->held;
    if (bytes > r->max - others) {
        return false;
    }
    if (room_size_of(r, bytes) == ROOM_SMALL) {
        bool reserved = g->held == 0 && r->waiting[ROOM_LARGE] > 0;
        return !reserved || r->held[ROOM_SMALL] + bytes <= small_share(r);
    }
    size_t large = r->held[ROOM_LARGE];
    large -= room_size_of(r, g->held) == ROOM_LARGE ? g->held : 0;
    return bytes <= room_most(r) - large;
}

/* Returns true if a guest that waits is held up by nothing other than the bytes of other guests. */
static bool may_enter(const struct room *r, const struct room_guest *g)
{
    bool is_slow_one_of_many = g->slow && r->held_slow > 0 && r->held_slow + g->wanted > r->max / 2;
    bool has_worker = !g->delta || r->pending == NULL || offload_has_place(r->pending, g->wanted);
    return !is_slow_one_of_many && has_worker;
}

static struct room_guest *head(const struct room *r, unsigned kind, int64_t *ret_place)
{
    struct room_guest *best = NULL;
    for (size_t job = 0; job < r->n_jobs; job++) {
        int64_t place;
        struct schedule_item *item = schedule_head(&r->lines[kind * r->n_jobs + job], &place);
        size_t held = r->held_by_job[job];
        if (item != NULL && (best == NULL || held < r->held_by_job[best->job] ||
                             (held == r->held_by_job[best->job] && place < *ret_place))) {
            best = (struct room_guest *)item;
            *ret_place = place;
        }
    }
    return best;
}

/* Returns the next guest of a size to admit. Kinds that are held up for a reason of their own are
 * passed over. If there are no bytes for the first guest of the other kinds, no guest of this size
 * is admitted. */
static struct room_guest *next_waiting(const struct room *r, enum room_size size)
{
    struct room_guest *best = NULL;
    int64_t best_place = 0;
    for (unsigned k = 0; k < KINDS_OF_SIZE; k++) {
        int64_t place = 0;
        struct room_guest *g = head(r, size * KINDS_OF_SIZE + k, &place);
        if (g != NULL && may_enter(r, g) && (best == NULL || place < best_place)) {
            best = g;
            best_place = place;
        }
    }
    return best != NULL && fits(r, best, best->wanted) ? best : NULL;
}

struct room_guest *room_next(struct room *r)
{
    for (size_t i = ROOM_SIZES; i > 0; i--) {
        struct room_guest *g = TAILQ_FIRST(&r->growing[i - 1]);
        if (g != NULL && fits(r, g, g->wanted)) {
            end_growing(r, g);
            count(r, g, false);
            hold(r, g, g->wanted);
            return g;
        }
        if (g == NULL && (g = next_waiting(r, (enum room_size)(i - 1))) != NULL) {
            leave_line(r, g);
            hold(r, g, g->wanted);
            return g;
        }
    }
    return NULL;
}

struct room_guest *room_victim(const struct room *r)
{
    struct room_guest *large = TAILQ_LAST(&r->growing[ROOM_LARGE], room_line);
    struct room_guest *small = TAILQ_LAST(&r->growing[ROOM_SMALL], room_line);
    struct room_guest *last = large != NULL ? large : small;
    bool is_free_soon = r->reading[ROOM_LARGE] > 0;
    if (r->reading[ROOM_SMALL] > 0) {
        is_free_soon |= large == NULL || r->held[ROOM_SMALL] > small_share(r);
    }
    return is_free_soon ? NULL : last;
}

bool room_lacks_workers(const struct room *r, const struct room_guest *g)
{
    return g->state == ROOM_WAITS && g->delta && r->pending != NULL &&
           !offload_has_place(r->pending, g->wanted) && !offload_lacks_memory(r->pending);
}

bool room_next_lacks_workers(const struct room *r)
{
    for (unsigned kind = 0; kind < KINDS; kind++) {
        int64_t place;
        const struct room_guest *g = head(r, kind, &place);
        if (g != NULL && room_lacks_workers(r, g) && fits(r, g, g->wanted)) {
            return true;
        }
    }
    return false;
}

/* ---- invitations ----------------------------------------------------------------------------- */

static void forget_invitation(struct room *r, struct room_guest *g)
{
    if (g->state == ROOM_INVITED) {
        TAILQ_REMOVE(&r->invited, g, link);
        r->coming[room_size_of(r, g->wanted)] -= g->wanted;
        g->state = ROOM_OUT;
    }
}

void room_invite(struct room *r, struct room_guest *g, size_t bytes, int64_t now_ms)
{
    g->wanted = bytes;
    g->invited_ms = now_ms;
    g->state = ROOM_INVITED;
    TAILQ_INSERT_TAIL(&r->invited, g, link);
    r->coming[room_size_of(r, bytes)] += bytes;
}

void room_forget_invited(struct room *r, int64_t now_ms)
{
    struct room_guest *g;
    while ((g = TAILQ_FIRST(&r->invited)) != NULL && now_ms - g->invited_ms >= ROOM_INVITED_MS) {
        forget_invitation(r, g);
    }
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Answers a guest that reads and asks for more. */
static enum room_answer ask_for_more(struct room *r, struct room_guest *g)
{
    begin_growing(r, g);
    if (TAILQ_FIRST(&r->growing[room_size_of(r, g->wanted)]) != g || !fits(r, g, g->wanted)) {
        return ROOM_LATER;
    }
    end_growing(r, g);
    count(r, g, false);
    hold(r, g, g->wanted);
    return ROOM_GRANTED;
}

/* Puts a new guest in line. All guests that could be admitted before it have been admitted, so if
 * the new one is the next, it need not wait. */
static enum room_answer ask_first(struct room *r, struct room_guest *g, uint32_t turn)
{
    enum room_size size = room_size_of(r, g->wanted);
    bool alone = TAILQ_EMPTY(&r->growing[size]) && r->wanted[size] == 0;
    if (!alone || !may_enter(r, g) || !fits(r, g, g->wanted)) {
        if (!enter_line(r, g, turn)) {
            return ROOM_NO_MEMORY;
        }
        if (alone || !TAILQ_EMPTY(&r->growing[size]) || next_waiting(r, size) != g) {
            return ROOM_LATER;
        }
        leave_line(r, g);
    }
    hold(r, g, g->wanted);
    return ROOM_GRANTED;
}

enum room_answer room_ask(struct room *r, struct room_guest *g, size_t bytes, uint32_t turn)
{
    forget_invitation(r, g);
    if (bytes > room_most(r)) {
        return ROOM_NEVER;
    }
    if (g->state == ROOM_WAITS || g->state == ROOM_GROWS) {
        return ROOM_LATER;
    }
    if (bytes <= g->held) {
        return ROOM_GRANTED;
    }
    g->wanted = bytes;
    return g->state == ROOM_READS ? ask_for_more(r, g) : ask_first(r, g, turn);
}

void room_leave(struct room *r, struct room_guest *g)
{
    forget_invitation(r, g);
    if (g->state == ROOM_WAITS) {
        leave_line(r, g);
    } else if (g->state == ROOM_GROWS) {
        end_growing(r, g);
    }
    if (g->state == ROOM_READS) {
        count(r, g, false);
    }
    if (g->promised > 0) {
        g->promised = offload_promise(r->pending, g->promised, 0);
    }
    g->held = 0;
    g->state = ROOM_OUT;
}
