/* The table is divided into shards by the hash, each with its lock, buckets and chains through the
 * strings. A count goes from 1 to 0 only under the lock of its shard, which searches hold too: a
 * string that is found can therefore be referenced without checking whether it is being freed.
 */
#include "base/intern.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define N_SHARDS 16
#define BUCKETS_FIRST 64
/* The approximate overhead of malloc() for each block. */
#define MALLOC_OVERHEAD 8

struct shard {
    pthread_mutex_t lock;
    struct istr **buckets;
    size_t n_buckets; /* a power of two */
    size_t count;
    size_t bytes;
};

struct intern {
    uint64_t seed;
    struct shard shards[N_SHARDS];
};

struct intern *intern_new(void)
{
    struct intern *in = calloc(1, sizeof(*in));
    if (in == NULL) {
        return NULL;
    }
    struct rng rng;
    rng_seed_random(&rng);
    in->seed = rng_next(&rng);
    for (size_t i = 0; i < N_SHARDS; i++) {
        struct shard *sh = &in->shards[i];
        pthread_mutex_init(&sh->lock, NULL);
        sh->n_buckets = BUCKETS_FIRST;
        sh->buckets = calloc(sh->n_buckets, sizeof(struct istr *));
        if (sh->buckets == NULL) {
            return intern_free(in);
        }
    }
    return in;
}

struct intern *intern_free(struct intern *in)
{
    size_t left, bytes;
    if (in == NULL) {
        return NULL;
    }
    intern_stats(in, &left, &bytes);
    if (left > 0) {
        return NULL; /* a label set still exists: a leak is better than a use after free */
    }
    for (size_t i = 0; i < N_SHARDS; i++) {
        pthread_mutex_destroy(&in->shards[i].lock);
        free(in->shards[i].buckets);
    }
    free(in);
    return NULL;
}

void intern_stats(struct intern *in, size_t *ret_count, size_t *ret_bytes)
{
    *ret_count = 0;
    *ret_bytes = 0;
    for (size_t i = 0; i < N_SHARDS; i++) {
        struct shard *sh = &in->shards[i];
        pthread_mutex_lock(&sh->lock);
        *ret_count += sh->count;
        *ret_bytes += sh->bytes + sh->n_buckets * sizeof(struct istr *);
        pthread_mutex_unlock(&sh->lock);
    }
}

static struct shard *shard_of(struct intern *in, uint64_t hash)
{
    return &in->shards[hash >> 60]; /* the buckets use the low bits */
}

static struct istr **bucket_of(const struct shard *sh, uint64_t hash)
{
    return &sh->buckets[(size_t)hash & (sh->n_buckets - 1)];
}

static size_t cost(const struct istr *s)
{
    return sizeof(*s) + s->len + 1 + MALLOC_OVERHEAD;
}

/* Changes the number of buckets. If memory runs out, the chains stay as long as they are. */
static void resize(struct shard *sh, size_t n_buckets)
{
    struct shard bigger = {.n_buckets = n_buckets};
    bigger.buckets = calloc(n_buckets, sizeof(struct istr *));
    if (bigger.buckets == NULL) {
        return;
    }
    for (size_t i = 0; i < sh->n_buckets; i++) {
        struct istr *s = sh->buckets[i];
        while (s != NULL) {
            struct istr *next = s->next;
            struct istr **bucket = bucket_of(&bigger, s->hash);
            s->next = *bucket;
            *bucket = s;
            s = next;
        }
    }
    free(sh->buckets);
    sh->buckets = bigger.buckets;
    sh->n_buckets = n_buckets;
}

static struct istr *insert(struct shard *sh, struct sv text, uint64_t hash)
{
    struct istr *s = malloc(sizeof(*s) + text.n + 1);
    if (s == NULL) {
        return NULL;
    }
    s->hash = hash;
    atomic_init(&s->refs, 1);
    s->len = (uint32_t)text.n;
    if (text.n > 0) {
        memcpy(s->text, text.p, text.n);
    }
    s->text[text.n] = '\0';
    if (sh->count >= sh->n_buckets) {
        resize(sh, sh->n_buckets * 2);
    }
    struct istr **bucket = bucket_of(sh, hash);
    s->next = *bucket;
    *bucket = s;
    sh->count++;
    sh->bytes += cost(s);
    return s;
}

struct istr *intern_get(struct intern *in, struct sv text)
{
    if (text.n > LABELS_BYTES_MAX) {
        return NULL;
    }
    uint64_t hash = hash_bytes(text.p, text.n, in->seed);
    struct shard *sh = shard_of(in, hash);
    pthread_mutex_lock(&sh->lock);
    struct istr *s = *bucket_of(sh, hash);
    while (s != NULL && !(s->hash == hash && sv_eq(istr_sv(s), text))) {
        s = s->next;
    }
    s = s == NULL ? insert(sh, text, hash) : istr_ref(s);
    pthread_mutex_unlock(&sh->lock);
    return s;
}

struct istr *istr_ref(struct istr *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

/* Removes the string from its chain, under the lock. */
static void unlink_istr(struct shard *sh, struct istr *s)
{
    struct istr **at = bucket_of(sh, s->hash);
    while (*at != s) {
        at = &(*at)->next;
    }
    *at = s->next;
    sh->count--;
    sh->bytes -= cost(s);
    if (sh->n_buckets > BUCKETS_FIRST && sh->count < sh->n_buckets / 8) {
        resize(sh, sh->n_buckets / 2);
    }
}

void intern_put(struct intern *in, struct istr *s)
{
    unsigned refs = atomic_load_explicit(&s->refs, memory_order_relaxed);
    while (refs > 1) {
        if (atomic_compare_exchange_weak_explicit(&s->refs, &refs, refs - 1, memory_order_release,
                                                  memory_order_relaxed)) {
            return;
        }
    }
    /* This may be the last reference. The lock decides, because a search may still find the
     * string. */
    struct shard *sh = shard_of(in, s->hash);
    pthread_mutex_lock(&sh->lock);
    bool last = atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1;
    if (last) {
        unlink_istr(sh, s);
    }
    pthread_mutex_unlock(&sh->lock);
    if (last) {
        free(s);
    }
}
