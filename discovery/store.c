#include "discovery/store.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"

struct entry {
    uint64_t hash; /* of the label sets and the address */
    uint64_t uid;
    uint32_t list; /* the list that named it last */
};

struct store {
    struct store_options options;
    struct map *pods; /* "namespace/name" -> struct entry */
    uint32_t list;
};

struct store *store_new(const struct store_options *options)
{
    struct store *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    s->options = *options;
    s->pods = map_new();
    return s->pods == NULL ? store_free(s) : s;
}

struct store *store_free(struct store *s)
{
    if (s != NULL) {
        map_free(s->pods, free);
        free(s);
    }
    return NULL;
}

size_t store_count(const struct store *s)
{
    return map_count(s->pods);
}

static uint64_t hash_uid(const struct object_id *id)
{
    return hash_bytes(id->uid.p, id->uid.n, 0);
}

/* Order counts, as it does in the group. */
static uint64_t hash_targets(const struct object_targets *t)
{
    uint64_t hash = hash_bytes(t->ip, sv_from(t->ip).n, t->n);
    for (size_t i = 0; i < t->n; i++) {
        uint64_t one = labels_hash(t->at[i]);
        hash = hash_bytes(&one, sizeof(one), hash);
    }
    return hash;
}

/* The table is as it will be when this is called. */
static void tell_gone(struct store *s, const char *key)
{
    s->options.on_change(s->options.arg, key, NULL, 0, NULL);
}

/* key is terminated. */
static enum store_result forget(struct store *s, struct sv key)
{
    struct entry *entry = map_remove(s->pods, key);
    if (entry == NULL) {
        return STORE_UNCHANGED;
    }
    free(entry);
    tell_gone(s, key.p);
    return STORE_CHANGED;
}

static struct entry *add(struct store *s, struct sv key)
{
    struct entry *entry = calloc(1, sizeof(*entry));
    if (entry == NULL || !map_put(s->pods, key, entry, NULL)) {
        free(entry);
        return NULL;
    }
    return entry;
}

enum store_result store_put(struct store *s, const struct object_id *id,
                            const struct object_targets *targets)
{
    char text[OBJECT_KEY_MAX];
    struct sv key = object_key(id, text);
    if (targets->n == 0) {
        return forget(s, key);
    }
    uint64_t hash = hash_targets(targets);
    struct entry *entry = map_get(s->pods, key);
    if (entry == NULL) {
        if (map_count(s->pods) >= s->options.max) {
            return STORE_FULL;
        }
        entry = add(s, key);
        if (entry == NULL) {
            return STORE_NO_MEMORY;
        }
    } else if (entry->hash == hash) {
        entry->uid = hash_uid(id);
        entry->list = s->list;
        return STORE_UNCHANGED;
    }
    *entry = (struct entry){.hash = hash, .uid = hash_uid(id), .list = s->list};
    s->options.on_change(s->options.arg, text, targets->at, targets->n, targets->ip);
    return STORE_CHANGED;
}

enum store_result store_remove(struct store *s, const struct object_id *id)
{
    char text[OBJECT_KEY_MAX];
    struct sv key = object_key(id, text);
    const struct entry *entry = map_get(s->pods, key);
    if (entry == NULL || (id->uid.n > 0 && entry->uid != hash_uid(id))) {
        return STORE_UNCHANGED;
    }
    return forget(s, key);
}

void store_list_begin(struct store *s)
{
    s->list++;
}

void store_list_end(struct store *s)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    while (map_next(s->pods, &cursor, &key, &value)) {
        struct entry *entry = value;
        if (entry->list != s->list) {
            char text[OBJECT_KEY_MAX];
            snprintf(text, sizeof(text), "%.*s", SV_ARG(key));
            map_remove_at(s->pods, cursor);
            free(entry);
            tell_gone(s, text);
        }
    }
}
