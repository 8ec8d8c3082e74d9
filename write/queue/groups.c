/* The profiles of one series that a queue holds; see send_queue_private.h. */
#include <stdlib.h>

#include "write/queue/send_queue_private.h"

uint64_t send_group_key(const struct labels *l, enum profile_format format, bool is_delta)
{
    /* Profiles of one series that are not alike are two groups. */
    uint64_t kind = (uint64_t)format << 1 | is_delta;
    return labels_hash(l) + kind * UINT64_C(0x9e3779b97f4a7c15);
}

static struct sv key_bytes(const uint64_t *key)
{
    return (struct sv){.p = (const char *)key, .n = sizeof(*key)};
}

struct send_group *send_queue_group(const struct send_queue *q, uint64_t key)
{
    return map_get(q->groups, key_bytes(&key));
}

static struct send_group *add_group(struct send_queue *q, struct labels *l, uint64_t key)
{
    struct send_group *g = calloc(1, sizeof(*g));
    if (g == NULL || !map_put(q->groups, key_bytes(&key), g, NULL)) {
        free(g);
        return NULL;
    }
    g->key = key;
    g->labels = labels_ref(l);
    g->merge_from = SEND_QUEUE_MERGE_MIN;
    TAILQ_INIT(&g->parts);
    return g;
}

void send_queue_join(struct send_queue *q, struct send_item *it, struct labels *l, uint64_t key)
{
    struct send_group *g = send_queue_group(q, key);
    if (g == NULL) {
        g = add_group(q, l, key);
    } else if (!labels_equal(g->labels, l)) {
        /* Another series with the same hash: this profile stays alone. */
        g = NULL;
    }
    if (g != NULL) {
        it->group = g;
        it->index = g->arrivals++;
        g->members++;
    }
}

static void free_group(void *value)
{
    struct send_group *g = value;
    labels_unref(g->labels);
    free(g);
}

void send_queue_leave(struct send_queue *q, struct send_item *it)
{
    struct send_group *g = it->group;
    it->group = NULL;
    if (g != NULL && --g->members == 0) {
        (void)map_remove(q->groups, key_bytes(&g->key));
        free_group(g);
    }
}

void send_queue_free_groups(struct send_queue *q)
{
    q->groups = map_free(q->groups, free_group);
}

/* Returns the list for an item. NULL for a delta whose group is unknown: it can neither be merged
 * nor thinned out. */
static struct item_list *part_list(struct send_queue *q, const struct send_item *it)
{
    if (!it->is_delta) {
        return it->is_pushed ? NULL : &q->thinnable;
    }
    return it->group != NULL ? &it->group->parts : NULL;
}

/* Returns the last item of the list that is not younger than `it`; NULL if there is none. Usually
 * `it` is the youngest of all, or has returned from an attempt and is the oldest. */
static struct send_item *last_before(const struct item_list *list, const struct send_item *it)
{
    const struct send_item *first = TAILQ_FIRST(list);
    if (first == NULL || first->scraped_ms > it->scraped_ms) {
        return NULL;
    }
    struct send_item *at = TAILQ_LAST(list, item_list);
    while (at->scraped_ms > it->scraped_ms) {
        at = TAILQ_PREV(at, item_list, part);
    }
    return at;
}

static void insert_part(struct item_list *list, struct send_item *it)
{
    struct send_item *at = last_before(list, it);
    if (at != NULL) {
        TAILQ_INSERT_AFTER(list, at, it, part);
    } else {
        TAILQ_INSERT_HEAD(list, it, part);
    }
}

void send_queue_add_part(struct send_queue *q, struct send_item *it)
{
    struct item_list *list = part_list(q, it);
    if (list == NULL) {
        return;
    }
    insert_part(list, it);
    if (list != &q->thinnable) {
        it->group->n_parts++;
    }
}

void send_queue_remove_part(struct send_queue *q, struct send_item *it)
{
    struct item_list *list = part_list(q, it);
    if (list == NULL) {
        return;
    }
    TAILQ_REMOVE(list, it, part);
    if (list != &q->thinnable) {
        it->group->n_parts--;
    }
}
