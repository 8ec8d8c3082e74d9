#include <stdlib.h>

#include "base/clock.h"
#include "write/spool/spool_private.h"

/* ---- entries; any thread --------------------------------------------------------------------- */

struct spool_entry *spool_entry_new(struct profile *p)
{
    struct spool_entry *e = calloc(1, sizeof(*e));
    if (e == NULL) {
        return NULL;
    }
    e->profile = profile_ref(p);
    e->scraped_ms = p->scraped_ms;
    return e;
}

void spool_entry_free(struct spool_entry *e)
{
    if (e == NULL) {
        return;
    }
    profile_unref(e->profile);
    free(e);
}

struct spool_entry *spool_pop(struct spool_entry_list *list)
{
    struct spool_entry *e = TAILQ_FIRST(list);
    if (e != NULL) {
        TAILQ_REMOVE(list, e, link);
    }
    return e;
}

void spool_push(struct spool_entry_list *list, struct spool_entry *e)
{
    TAILQ_INSERT_TAIL(list, e, link);
}

/* Moves all entries of a list to the end of another list. */
static void move_all(struct spool_entry_list *to, struct spool_entry_list *from)
{
    TAILQ_CONCAT(to, from, link);
}

void spool_poke(struct spool *s)
{
    s->poked = true;
    pthread_cond_signal(&s->wake);
}

/* Adds an entry to `waiting`. Called under the lock, as is the next function. */
static void add_waiting(struct spool *s, struct spool_entry *e)
{
    e->state = ENTRY_WAITING;
    spool_push(&s->waiting, e);
    s->n_waiting++;
    s->waiting_bytes += e->profile->size;
}

static void remove_waiting(struct spool *s, struct spool_entry *e)
{
    TAILQ_REMOVE(&s->waiting, e, link);
    s->n_waiting--;
    s->waiting_bytes -= e->profile->size;
}

void spool_add_part(struct spool_entry *whole, struct spool_entry *part)
{
    part->whole = whole;
    part->next_part = whole->parts;
    whole->parts = part;
}

/* Frees a part that is on no list; its own parts become parts of the whole. */
static void absorb(struct spool_entry *whole, struct spool_entry *part)
{
    struct spool_entry *inner;
    while ((inner = part->parts) != NULL) {
        part->parts = inner->next_part;
        spool_add_part(whole, inner);
    }
    spool_entry_free(part);
}

void spool_remove_part(struct spool_entry *part)
{
    struct spool_entry **at = &part->whole->parts;
    while (*at != part) {
        at = &(*at)->next_part;
    }
    *at = part->next_part;
    absorb(part->whole, part);
}

void spool_replace(struct spool *s, struct spool_entry *e, struct spool_entry *part)
{
    pthread_mutex_lock(&s->lock);
    if (part->state == ENTRY_WAITING) {
        remove_waiting(s, part);
        absorb(e, part);
    } else {
        spool_add_part(e, part);
    }
    pthread_mutex_unlock(&s->lock);
}

void spool_submit(struct spool *s, struct spool_entry *e, int64_t now_ms)
{
    pthread_mutex_lock(&s->lock);
    bool first = s->n_waiting == 0;
    if (first) {
        s->waiting_since_ms = now_ms;
    }
    bool early = s->waiting_bytes < s->options.flush_threshold;
    add_waiting(s, e);
    if (first || (early && s->waiting_bytes >= s->options.flush_threshold)) {
        spool_poke(s);
    }
    pthread_mutex_unlock(&s->lock);
}

/* Adds a request for an entry. Called under the lock. */
static void request(struct spool *s, struct spool_entry *e, unsigned wants)
{
    e->wants |= (uint8_t)wants;
    if ((e->state != ENTRY_STORED && e->state != ENTRY_NEVER) || (e->wants & IS_REQUESTED) != 0) {
        return;
    }
    e->wants |= IS_REQUESTED;
    spool_push(&s->requests, e);
    spool_poke(s);
}

void spool_load(struct spool *s, struct spool_entry *e)
{
    pthread_mutex_lock(&s->lock);
    request(s, e, WANTS_LOAD);
    pthread_mutex_unlock(&s->lock);
}

bool spool_release(struct spool *s, struct spool_entry *e, bool hold)
{
    pthread_mutex_lock(&s->lock);
    bool waiting = e->state == ENTRY_WAITING;
    if (waiting) {
        remove_waiting(s, e);
    }
    if (waiting && e->parts != NULL) {
        e->state = ENTRY_NEVER;
        waiting = false;
    }
    if (!waiting) {
        request(s, e, hold ? WANTS_RELEASE | WANTS_HOLD : WANTS_RELEASE);
    }
    pthread_mutex_unlock(&s->lock);
    if (waiting) {
        spool_entry_free(e);
    }
    return hold && !waiting;
}

void spool_flush(struct spool *s)
{
    pthread_mutex_lock(&s->lock);
    s->flush = true;
    spool_poke(s);
    pthread_mutex_unlock(&s->lock);
}

void spool_configure(struct spool *s, uint64_t max_bytes, int64_t fsync_ms)
{
    pthread_mutex_lock(&s->lock);
    s->max_bytes = max_bytes;
    s->fsync_ms = fsync_ms;
    spool_poke(s);
    pthread_mutex_unlock(&s->lock);
}

struct spool_status spool_status(struct spool *s)
{
    pthread_mutex_lock(&s->lock);
    struct spool_status status = s->status;
    status.waiting = s->n_waiting;
    pthread_mutex_unlock(&s->lock);
    return status;
}

bool spool_has_room(struct spool *s)
{
    pthread_mutex_lock(&s->lock);
    bool has_room = !s->status.full;
    pthread_mutex_unlock(&s->lock);
    return has_room;
}

/* ---- requests for the thread ----------------------------------------------------------------- */

struct spool_entry *spool_take_request(struct spool *s, unsigned *ret_wants)
{
    pthread_mutex_lock(&s->lock);
    struct spool_entry *e = spool_pop(&s->requests);
    *ret_wants = 0;
    if (e != NULL) {
        *ret_wants = e->wants;
        e->wants = 0;
    }
    pthread_mutex_unlock(&s->lock);
    return e;
}

void spool_take_waiting(struct spool *s, struct spool_entry_list *ret_batch)
{
    struct spool_entry *e = NULL;
    TAILQ_INIT(ret_batch);
    pthread_mutex_lock(&s->lock);
    move_all(ret_batch, &s->waiting);
    TAILQ_FOREACH(e, ret_batch, link)
    {
        e->state = ENTRY_BUSY;
    }
    s->n_waiting = 0;
    s->waiting_bytes = 0;
    pthread_mutex_unlock(&s->lock);
}

void spool_free_released(struct spool *s, struct spool_entry *e, unsigned wants)
{
    s->acknowledged += (wants & WANTS_HOLD) != 0;
    spool_entry_free(e);
}

void spool_put_back(struct spool *s, struct spool_entry_list *batch, int64_t now_ms)
{
    struct spool_entry *e;
    struct spool_entry_list newer = TAILQ_HEAD_INITIALIZER(newer);
    pthread_mutex_lock(&s->lock);
    if (s->n_waiting == 0) {
        s->waiting_since_ms = now_ms;
    }
    move_all(&newer, &s->waiting);
    while ((e = spool_pop(batch)) != NULL) {
        if (e->whole != NULL) {
            spool_remove_part(e);
        } else if ((e->wants & WANTS_RELEASE) != 0 && e->parts != NULL) {
            e->state = ENTRY_NEVER;
            request(s, e, 0);
        } else if ((e->wants & WANTS_RELEASE) != 0) {
            spool_free_released(s, e, e->wants);
        } else {
            add_waiting(s, e);
        }
    }
    move_all(&s->waiting, &newer);
    pthread_mutex_unlock(&s->lock);
}

void spool_hand_to_store(struct spool *s, struct spool_entry *e)
{
    e->profile = profile_unref(e->profile);
    pthread_mutex_lock(&s->lock);
    e->state = ENTRY_STORED;
    if (e->wants != 0) {
        request(s, e, 0);
    }
    pthread_mutex_unlock(&s->lock);
}
