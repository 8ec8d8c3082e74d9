#include "cli/leaders.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"

#define KEY_MAX ((size_t)64 * 1024)

/* A scrape of one job. Scrapes with the same identity form a list. */
struct leader {
    struct leader *next; /* the next scrape with the same identity */
    struct target *target;
    size_t entry;
    const struct leader *of; /* the scrape that it follows; NULL: it runs on its own */
    unsigned group;          /* number of the group that has reported it last */
    char source[];
};

struct leaders {
    struct map *first; /* identity -> struct leader */
    unsigned group;
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

void leaders_group(struct leaders *l)
{
    l->group++;
}

static struct leader *make(const struct leaders *l, struct target *t, const char *source, size_t i)
{
    size_t n = strlen(source) + 1;
    struct leader *leader = malloc(sizeof(*leader) + n);
    if (leader != NULL) {
        *leader = (struct leader){.target = target_ref(t), .entry = i, .group = l->group};
        memcpy(leader->source, source, n);
    }
    return leader;
}

/* Adds a leader to the end of the list, because the first target of a job keeps the scrape. */
static void add(struct leaders *l, struct sv key, struct leader *first, struct leader *leader)
{
    if (first == NULL && !map_put(l->first, key, leader, NULL)) {
        free_leader(leader);
    }
    for (struct leader *at = first; at != NULL; at = at->next) {
        if (at->next == NULL) {
            at->next = leader;
            break;
        }
    }
}

static struct leader *of_job(struct leader *first, const struct config_job *job)
{
    while (first != NULL && target_job(first->target) != job) {
        first = first->next;
    }
    return first;
}

/* Returns a scrape of another job that can be shared; NULL if there is none. */
static const struct leader *to_follow(const struct leader *first, const struct target *t, size_t i)
{
    while (first != NULL &&
           (first->of != NULL || !target_can_share(first->target, first->entry, t, i))) {
        first = first->next;
    }
    return first;
}

static struct leaders_verdict judge(struct leaders *l, struct sv key, struct target *t,
                                    const char *source, size_t i)
{
    struct leader *first = map_get(l->first, key);
    struct leader *own = of_job(first, target_job(t));
    bool came_before = own != NULL && own->group != l->group && strcmp(own->source, source) == 0;
    if (own != NULL && !came_before) {
        return (struct leaders_verdict){.duplicate_of = own->source};
    }
    const struct leader *of = own == NULL ? to_follow(first, t, i) : own->of;
    if (own == NULL && (own = make(l, t, source, i)) != NULL) {
        own->of = of;
        add(l, key, first, own);
    } else if (own != NULL) {
        own->group = l->group;
    }
    return (struct leaders_verdict){.follows = of == NULL ? NULL : target_job(of->target)->name};
}

struct leaders_verdict leaders_of(struct leaders *l, struct target *t, const char *source, size_t i)
{
    struct buf key;
    struct leaders_verdict v = {NULL, NULL};
    buf_init(&key, KEY_MAX);
    if (target_scrape_key(t, i, &key)) {
        v = judge(l, (struct sv){.p = key.data, .n = key.len}, t, source, i);
    }
    buf_done(&key);
    return v;
}
