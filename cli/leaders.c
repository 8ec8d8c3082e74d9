#include "cli/leaders.h"

#include <stdlib.h>

#include "base/map.h"

#define KEY_MAX ((size_t)64 * 1024)

/* A scrape that is not shared, or that others share. */
struct leader {
    struct leader *next; /* with the same identity, and other settings */
    struct target *target;
    size_t entry;
};

struct leaders {
    struct map *first; /* identity -> struct leader */
};

struct leaders *leaders_new(void)
{
    struct leaders *l = calloc(1, sizeof(*l));
    if (l != NULL && (l->first = map_new()) == NULL) {
        return leaders_free(l);
    }
    return l;
}

static void free_leader(void *value)
{
    struct leader *leader = value;
    while (leader != NULL) {
        struct leader *next = leader->next;
        target_unref(leader->target);
        free(leader);
        leader = next;
    }
}

struct leaders *leaders_free(struct leaders *l)
{
    if (l != NULL) {
        map_free(l->first, free_leader);
        free(l);
    }
    return NULL;
}

static void add(struct leaders *l, struct sv key, struct leader *first, struct target *t, size_t i)
{
    struct leader *leader = malloc(sizeof(*leader));
    if (leader == NULL) {
        return;
    }
    *leader = (struct leader){.target = target_ref(t), .entry = i};
    if (first != NULL) {
        leader->next = first->next;
        first->next = leader;
    } else if (!map_put(l->first, key, leader, NULL)) {
        free_leader(leader);
    }
}

const char *leaders_of(struct leaders *l, struct target *t, size_t i)
{
    struct buf key;
    const char *job = NULL;
    buf_init(&key, KEY_MAX);
    if (target_scrape_key(t, i, &key)) {
        struct sv name = {.p = key.data, .n = key.len};
        struct leader *first = map_get(l->first, name);
        struct leader *leader = first;
        while (leader != NULL && target_job(leader->target) != target_job(t) &&
               !target_can_share(leader->target, leader->entry, t, i)) {
            leader = leader->next;
        }
        if (leader == NULL) {
            add(l, name, first, t, i);
        } else if (target_job(leader->target) != target_job(t)) {
            job = target_job(leader->target)->name;
        }
    }
    buf_done(&key);
    return job;
}
