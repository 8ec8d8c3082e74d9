#include "pprof/scratch.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_MIN ((size_t)64 * 1024)

struct block {
    struct block *next;
    size_t size;
    size_t used;
    max_align_t data[];
};

struct scratch {
    struct scratch *next; /* in a pool, */
    uint64_t round;       /* since this one of its rounds */
    struct block *blocks; /* pieces come from the first one */
    size_t bytes;         /* bytes of all blocks */
    size_t charged;       /* elsewhere */
    size_t max;           /* limit of all bytes; SIZE_MAX: none */
    bool over;            /* more than that was asked for */
    struct buf buf;
    void *kept;
    size_t kept_size;
};

struct scratch *scratch_new(void)
{
    struct scratch *s = calloc(1, sizeof(*s));
    if (s != NULL) {
        s->max = SIZE_MAX;
        buf_init(&s->buf, SCRATCH_BUF_MAX);
    }
    return s;
}

static void free_blocks(struct scratch *s)
{
    while (s->blocks != NULL) {
        struct block *next = s->blocks->next;
        free(s->blocks);
        s->blocks = next;
    }
    s->bytes = 0;
}

static void free_kept(struct scratch *s)
{
    free(s->kept);
    s->kept = NULL;
    s->kept_size = 0;
}

struct scratch *scratch_free(struct scratch *s)
{
    if (s != NULL) {
        free_blocks(s);
        buf_done(&s->buf);
        free_kept(s);
        free(s);
    }
    return NULL;
}

size_t scratch_bytes(const struct scratch *s)
{
    return s->bytes + s->buf.cap + s->kept_size;
}

void scratch_limit(struct scratch *s, size_t max)
{
    s->max = max;
    s->over = false;
    buf_clear(&s->buf); /* a failure at the last ceiling says nothing about this one */
    if (scratch_bytes(s) > max) {
        free_blocks(s);
        buf_done(&s->buf);
        free_kept(s);
    }
}

/* Returns the number of bytes that the limit still allows. */
static size_t left(const struct scratch *s)
{
    size_t used = scratch_bytes(s) + s->charged;
    return used < s->max ? s->max - used : 0;
}

/* Notes that the limit was reached. Returns false, for the caller to return. */
static bool refuse(struct scratch *s)
{
    s->over = true;
    return false;
}

bool scratch_charge(struct scratch *s, size_t n)
{
    if (s == NULL || n > left(s)) {
        return s != NULL && refuse(s);
    }
    s->charged += n;
    return true;
}

bool scratch_is_over(const struct scratch *s)
{
    return s != NULL && (s->over || buf_too_big(&s->buf));
}

void scratch_explain(const struct scratch *s, struct err *err)
{
    if (err->kind == ERR_MEMORY && scratch_is_over(s)) {
        err_set(err, ERR_LIMIT, "needs more than %zu bytes of working memory", s->max);
    }
}

struct buf *scratch_buf(struct scratch *s)
{
    buf_clear(&s->buf);
    size_t room = left(s);
    s->buf.max = room < SCRATCH_BUF_MAX - s->buf.cap ? s->buf.cap + room : SCRATCH_BUF_MAX;
    return &s->buf;
}

void *scratch_kept(struct scratch *s, size_t size, bool *ret_made)
{
    *ret_made = false;
    if (s == NULL) {
        return NULL;
    }
    if (s->kept == NULL && size > left(s)) {
        (void)refuse(s);
    } else if (s->kept == NULL) {
        s->kept = calloc(1, size > 0 ? size : 1);
        s->kept_size = s->kept != NULL ? size : 0;
        *ret_made = s->kept != NULL;
    }
    return s->kept;
}

static bool add_block(struct scratch *s, size_t size)
{
    if (size > left(s)) {
        return refuse(s);
    }
    struct block *b = malloc(sizeof(*b) + size);
    if (b == NULL) {
        return false;
    }
    b->next = s->blocks;
    b->size = size;
    b->used = 0;
    s->blocks = b;
    s->bytes += size;
    return true;
}

#ifdef ARENA_DEBUG
#define BLOCK_FOR_EACH_PIECE true /* of exactly its size */
#else
#define BLOCK_FOR_EACH_PIECE false
#endif

static size_t round_up(size_t size)
{
    size_t align = BLOCK_FOR_EACH_PIECE ? 1 : alignof(max_align_t);
    return (size + align - 1) / align * align;
}

/* Doubles the memory, so that there are few blocks, as far as the ceiling allows. */
static size_t block_size(const struct scratch *s, size_t size)
{
    size_t more = s->bytes < BLOCK_MIN ? BLOCK_MIN : s->bytes;
    more = more < left(s) ? more : left(s);
    return BLOCK_FOR_EACH_PIECE || size > more ? size : more;
}

static bool has_room(const struct block *b, size_t size)
{
    return !BLOCK_FOR_EACH_PIECE && b != NULL && size <= b->size - b->used;
}

void *scratch_array(struct scratch *s, size_t n, size_t size)
{
    if (s == NULL || n > SIZE_MAX / 4 / size) {
        return NULL;
    }
    size = round_up(n * size);
    if (!has_room(s->blocks, size) && !add_block(s, block_size(s, size))) {
        return NULL;
    }
    void *p = (char *)s->blocks->data + s->blocks->used;
    s->blocks->used += size;
    return p;
}

void *scratch_zeroed(struct scratch *s, size_t n, size_t size)
{
    void *p = scratch_array(s, n, size);
    return p == NULL ? NULL : memset(p, 0, n * size);
}

uint32_t *scratch_slots(struct scratch *s, size_t n, size_t *ret_mask)
{
    size_t slots = 16;
    while (slots < 2 * n) {
        slots *= 2;
    }
    *ret_mask = slots - 1;
    return scratch_zeroed(s, slots, sizeof(uint32_t));
}

void *scratch_grow(struct scratch *s, void *p, size_t old_size, size_t size)
{
    void *larger = scratch_array(s, size, 1);
    if (larger != NULL && old_size > 0) {
        memcpy(larger, p, old_size);
    }
    return larger;
}

static size_t used_of(const struct scratch *s)
{
    size_t used = 0;
    for (const struct block *b = s->blocks; b != NULL; b = b->next) {
        used += b->used;
    }
    return used;
}

/* Several blocks become one for the next round, with a margin: it may need a little more. */
void scratch_reset(struct scratch *s)
{
    size_t used = used_of(s), bytes = used + used / 8;
    bytes = bytes < s->bytes ? bytes : s->bytes;
    s->charged = 0;
    s->over = false;
    if (!BLOCK_FOR_EACH_PIECE && s->blocks != NULL && s->blocks->next == NULL) {
        s->blocks->used = 0;
        return;
    }
    free_blocks(s);
    if (!BLOCK_FOR_EACH_PIECE && bytes > 0) {
        (void)add_block(s, bytes); /* if this fails, the next piece asks again */
    }
}

/* ---- the pool -------------------------------------------------------------------------------- */

struct scratch_pool {
    atomic_uint refs;
    pthread_mutex_t lock; /* guards what follows */
    struct scratch *idle; /* the one that was used last comes first */
    uint64_t round;       /* counts what was taken */
    size_t bytes;
    size_t idle_max;
};

static void free_all(struct scratch *s)
{
    while (s != NULL) {
        struct scratch *next = s->next;
        scratch_free(s);
        s = next;
    }
}

struct scratch_pool *scratch_pool_new(size_t idle_max)
{
    struct scratch_pool *p = calloc(1, sizeof(*p));
    if (p != NULL) {
        p->idle_max = idle_max;
        atomic_init(&p->refs, 1);
        pthread_mutex_init(&p->lock, NULL);
    }
    return p;
}

struct scratch_pool *scratch_pool_ref(struct scratch_pool *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

struct scratch_pool *scratch_pool_unref(struct scratch_pool *p)
{
    if (p == NULL || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1) {
        return NULL;
    }
    free_all(p->idle);
    pthread_mutex_destroy(&p->lock);
    free(p);
    return NULL;
}

/* Finds the link to the largest scratch that holds at most max bytes; of several, the one that was
 * used last. Returns NULL if there is none. The caller holds the lock. */
static struct scratch **find_largest(struct scratch_pool *p, size_t max)
{
    struct scratch **ret = NULL;
    size_t largest = 0;
    for (struct scratch **at = &p->idle; *at != NULL; at = &(*at)->next) {
        size_t bytes = scratch_bytes(*at);
        if (bytes <= max && (ret == NULL || bytes > largest)) {
            ret = at;
            largest = bytes;
        }
    }
    return ret;
}

/* Takes the scratch at this link out of the list. The caller holds the lock. */
static struct scratch *unlink_at(struct scratch_pool *p, struct scratch **at)
{
    struct scratch *s = *at;
    *at = s->next;
    s->next = NULL;
    p->bytes -= scratch_bytes(s);
    return s;
}

/* Takes out the scratches that were unused for long, and then the last ones until the rest is
 * within the limit. The caller holds the lock. */
static struct scratch *take_surplus(struct scratch_pool *p)
{
    struct scratch *surplus = NULL;
    struct scratch **at = &p->idle;
    size_t kept = 0;
    while (*at != NULL) {
        size_t bytes = scratch_bytes(*at);
        if (p->round - (*at)->round > SCRATCH_IDLE_ROUNDS || bytes > p->idle_max - kept) {
            struct scratch *s = unlink_at(p, at);
            s->next = surplus;
            surplus = s;
        } else {
            kept += bytes;
            at = &(*at)->next;
        }
    }
    return surplus;
}

void scratch_pool_limit(struct scratch_pool *p, size_t idle_max)
{
    pthread_mutex_lock(&p->lock);
    p->idle_max = idle_max;
    struct scratch *surplus = p->bytes > idle_max ? take_surplus(p) : NULL;
    pthread_mutex_unlock(&p->lock);
    free_all(surplus);
}

struct scratch *scratch_pool_take(struct scratch_pool *p, size_t max)
{
    pthread_mutex_lock(&p->lock);
    struct scratch **at = find_largest(p, max);
    struct scratch *s = at != NULL ? unlink_at(p, at) : NULL;
    uint64_t round = ++p->round;
    pthread_mutex_unlock(&p->lock);
    s = s != NULL ? s : scratch_new();
    if (s != NULL) {
        s->round = round;
        scratch_limit(s, max);
    }
    return s;
}

void scratch_pool_give(struct scratch_pool *p, struct scratch *s)
{
    if (s == NULL) {
        return;
    }
    scratch_reset(s);
    pthread_mutex_lock(&p->lock);
    struct scratch *surplus = take_surplus(p);
    bool keep = scratch_bytes(s) <= p->idle_max - p->bytes;
    s->next = keep ? p->idle : surplus;
    *(keep ? &p->idle : &surplus) = s;
    p->bytes += keep ? scratch_bytes(s) : 0;
    pthread_mutex_unlock(&p->lock);
    free_all(surplus);
}

size_t scratch_pool_bytes(struct scratch_pool *p)
{
    pthread_mutex_lock(&p->lock);
    size_t bytes = p->bytes;
    pthread_mutex_unlock(&p->lock);
    return bytes;
}
