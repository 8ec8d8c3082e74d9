#include "scraper/sampling.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/map.h"
#include "scraper/targets/target_private.h"

/* The seed of ranks. All processes have the same one, so that all replicas make the same choice. */
#define RANK_SEED UINT64_C(0x73616d706c65)

struct service;

/* One target of an offer. */
struct member {
    uint64_t rank;
    struct target *target; /* a reference */
    struct service *service;
    bool kept;
};

struct offer {
    TAILQ_ENTRY(offer) dirty_link;
    bool is_dirty; /* sampler_next() has not returned it yet */
    void *owner;
    size_t n;
    struct target **kept; /* up to n of them, from sampler_next() */
    struct member members[];
};

/* The targets of one service, by rank. */
struct service {
    TAILQ_ENTRY(service) touched_link;
    bool is_touched;
    struct ranked {
        uint64_t rank; /* rank and kept are copies of the member's values, for iteration */
        struct member *member;
        struct offer *offer;
        bool kept;
    } * ranked;
    size_t n;
    size_t cap;
    size_t processes;
    size_t n_kept; /* processes */
    char name[];
};

TAILQ_HEAD(offer_line, offer);
TAILQ_HEAD(service_line, service);

struct sampler {
    struct map *services; /* service_name -> struct service */
    struct offer_line dirty;
    struct service_line touched;
    size_t n_targets;
    size_t n_kept; /* targets */
    unsigned percent;
    unsigned max;
    char job[];
};

/* ---- life ------------------------------------------------------------------------------------ */

void offer_free(struct offer *o)
{
    if (o == NULL) {
        return;
    }
    for (size_t i = 0; i < o->n; i++) {
        target_unref(o->members[i].target);
    }
    free(o->kept);
    free(o);
}

static void free_service(void *value)
{
    struct service *v = value;
    free(v->ranked);
    free(v);
}

struct sampler *sampler_new(const char *job)
{
    size_t size = strlen(job) + 1;
    struct sampler *s = calloc(1, sizeof(*s) + size);
    if (s == NULL) {
        return NULL;
    }
    memcpy(s->job, job, size);
    s->services = map_new();
    TAILQ_INIT(&s->dirty);
    TAILQ_INIT(&s->touched);
    return s->services == NULL ? sampler_free(s) : s;
}

struct sampler *sampler_free(struct sampler *s)
{
    if (s != NULL) {
        map_free(s->services, free_service);
        free(s);
    }
    return NULL;
}

/* ---- services -------------------------------------------------------------------------------- */

static void touch(struct sampler *s, struct service *v)
{
    if (!v->is_touched) {
        v->is_touched = true;
        TAILQ_INSERT_TAIL(&s->touched, v, touched_link);
    }
}

static struct service *find_service(struct sampler *s, struct sv name)
{
    struct service *v = map_get(s->services, name);
    if (v != NULL) {
        return v;
    }
    v = calloc(1, sizeof(*v) + name.n + 1);
    if (v == NULL) {
        return NULL;
    }
    memcpy(v->name, name.p, name.n);
    if (!map_put(s->services, name, v, NULL)) {
        free(v);
        return NULL;
    }
    return v;
}

static bool reserve(struct service *v, size_t n)
{
    if (n <= v->cap) {
        return true;
    }
    size_t cap = v->cap == 0 ? 4 : v->cap * 2;
    cap = cap < n ? n : cap;
    struct ranked *ranked = reallocarray(v->ranked, cap, sizeof(*ranked));
    if (ranked == NULL) {
        return false;
    }
    v->ranked = ranked;
    v->cap = cap;
    return true;
}

/* Returns the first index whose rank is not lower than this one. */
static size_t index_of(const struct service *v, uint64_t rank)
{
    size_t low = 0;
    size_t high = v->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (v->ranked[middle].rank < rank) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void insert(struct sampler *s, struct offer *o, struct member *m)
{
    struct service *v = m->service;
    size_t at = index_of(v, m->rank);
    memmove(&v->ranked[at + 1], &v->ranked[at], (v->n - at) * sizeof(v->ranked[0]));
    v->ranked[at] = (struct ranked){.rank = m->rank, .member = m, .offer = o};
    v->n++;
    s->n_targets++;
    touch(s, v);
}

static void take_out(struct sampler *s, struct member *m)
{
    struct service *v = m->service;
    size_t at = index_of(v, m->rank);
    while (v->ranked[at].member != m) {
        at++;
    }
    v->n--;
    memmove(&v->ranked[at], &v->ranked[at + 1], (v->n - at) * sizeof(v->ranked[0]));
    s->n_targets--;
    s->n_kept -= m->kept;
    touch(s, v);
}

static bool starts_process(const struct service *v, size_t i)
{
    return i == 0 || v->ranked[i].rank != v->ranked[i - 1].rank;
}

static void mark_dirty(struct sampler *s, struct offer *o)
{
    if (!o->is_dirty) {
        o->is_dirty = true;
        TAILQ_INSERT_TAIL(&s->dirty, o, dirty_link);
    }
}

static void decide(struct sampler *s, struct service *v)
{
    v->processes = 0;
    for (size_t i = 0; i < v->n; i++) {
        v->processes += starts_process(v, i);
    }
    v->n_kept = s->percent == 0 ? v->processes : (v->processes * s->percent + 99) / 100;
    if (s->max > 0 && v->n_kept > s->max) {
        v->n_kept = s->max;
    }
    size_t process = 0;
    for (size_t i = 0; i < v->n; i++) {
        struct ranked *r = &v->ranked[i];
        process += starts_process(v, i);
        bool keep = process <= v->n_kept;
        if (keep != r->kept) {
            r->kept = keep;
            r->member->kept = keep;
            s->n_kept += keep ? 1U : (size_t)-1;
            mark_dirty(s, r->offer);
        }
    }
}

static void settle(struct sampler *s)
{
    struct service *v;
    while ((v = TAILQ_FIRST(&s->touched)) != NULL) {
        TAILQ_REMOVE(&s->touched, v, touched_link);
        v->is_touched = false;
        if (v->n > 0) {
            decide(s, v);
        } else {
            map_remove(s->services, sv_from(v->name));
            free_service(v);
        }
    }
}

/* ---- offers ---------------------------------------------------------------------------------- */

/* Finds the service of each member and reserves room there for all members up to this one. */
static bool find_services(struct sampler *s, struct offer *o)
{
    for (size_t i = 0; i < o->n; i++) {
        struct member *m = &o->members[i];
        /* All types of a target have the same rank, so they are kept or left out together. */
        struct sv address = labels_get(m->target->labels, SV(LABEL_ADDRESS));
        m->rank = hash_bytes(address.p, address.n, RANK_SEED);
        m->service = find_service(s, labels_get(m->target->labels, SV("service_name")));
        if (m->service == NULL) {
            return false;
        }
        touch(s, m->service);
        if (!reserve(m->service, m->service->n + i + 1)) {
            return false;
        }
    }
    return true;
}

/* Makes an offer. Returns NULL if out of memory. Takes over the references in any case. */
static struct offer *make_offer(struct sampler *s, void *owner, struct target *const *targets,
                                size_t n)
{
    struct offer *o = calloc(1, sizeof(*o) + n * sizeof(o->members[0]));
    if (o == NULL) {
        targets_unref(targets, n);
        return NULL;
    }
    o->owner = owner;
    o->n = n;
    for (size_t i = 0; i < n; i++) {
        o->members[i].target = targets[i];
    }
    o->kept = calloc(n, sizeof(struct target *));
    if (o->kept == NULL || !find_services(s, o)) {
        offer_free(o);
        return NULL;
    }
    return o;
}

/* Replaces an offer by another one; either may be NULL. */
static void exchange(struct sampler *s, struct offer *old, struct offer *next)
{
    for (size_t i = 0; old != NULL && i < old->n; i++) {
        take_out(s, &old->members[i]);
    }
    for (size_t i = 0; next != NULL && i < next->n; i++) {
        insert(s, next, &next->members[i]);
    }
    if (next != NULL) {
        mark_dirty(s, next);
    }
}

bool sampler_set(struct sampler *s, struct offer **offer, void *owner,
                 struct target *const *targets, size_t n)
{
    if (n > 0) {
        s->percent = targets[0]->job_config->sample_percent;
        s->max = targets[0]->job_config->sample_max;
    }
    struct offer *next = n == 0 ? NULL : make_offer(s, owner, targets, n);
    bool ok = n == 0 || next != NULL;
    if (ok) {
        exchange(s, *offer, next);
        offer_free(*offer);
        *offer = next;
    }
    settle(s);
    return ok;
}

bool sampler_next(struct sampler *s, void **ret_owner, struct target *const **ret_kept,
                  size_t *ret_n)
{
    struct offer *o = TAILQ_FIRST(&s->dirty);
    if (o == NULL) {
        return false;
    }
    TAILQ_REMOVE(&s->dirty, o, dirty_link);
    o->is_dirty = false;
    *ret_owner = o->owner;
    *ret_kept = o->kept;
    *ret_n = 0;
    for (size_t i = 0; i < o->n; i++) {
        if (o->members[i].kept) {
            o->kept[(*ret_n)++] = o->members[i].target;
        }
    }
    return true;
}

bool sampler_is_empty(const struct sampler *s)
{
    return s->n_targets == 0;
}

/* ---- for other threads ----------------------------------------------------------------------- */

size_t sampler_left_out(const struct sampler *s)
{
    return s->n_targets - s->n_kept;
}

size_t sampler_list(const struct sampler *s, struct sampled_service *out, size_t max)
{
    size_t cursor = 0;
    size_t n = 0;
    struct sv key;
    void *value;
    while (n < max && map_next(s->services, &cursor, &key, &value)) {
        const struct service *v = value;
        char *name = v->n_kept < v->processes ? strdup(v->name) : NULL;
        if (name != NULL) {
            out[n++] = (struct sampled_service){.job = strdup(s->job),
                                                .service = name,
                                                .processes = v->processes,
                                                .scraped = v->n_kept};
        }
    }
    return n;
}
