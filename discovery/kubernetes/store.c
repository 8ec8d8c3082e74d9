#include "discovery/kubernetes/store.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"

enum entry_state { ENTRY_TOLD, ENTRY_LEFT, ENTRY_AWAITED, ENTRY_STATES };

struct entry {
    uint64_t hash; /* of the label sets and the address, if told */
    uint64_t uid;
    uint64_t key;  /* by which its owner is found; 0: it is ours */
    uint32_t list; /* the list that named it last */
    enum entry_state state;
};

struct store {
    struct store_options options;
    struct map *pods; /* "namespace/name" -> struct entry */
    uint32_t list;
    size_t n[ENTRY_STATES];
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
    return s->n[ENTRY_TOLD];
}

size_t store_left(const struct store *s)
{
    return s->n[ENTRY_LEFT];
}

size_t store_awaited(const struct store *s)
{
    return s->n[ENTRY_AWAITED];
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
    s->options.on_change(s->options.arg, key, NULL, 0, NULL, false);
}

static void set_state(struct store *s, struct entry *entry, enum entry_state state)
{
    s->n[entry->state]--;
    s->n[state]++;
    entry->state = state;
}

/* It is out of the table. True if it was told, and so is told as gone. */
static bool discard(struct store *s, struct entry *entry, const char *key)
{
    bool told = entry->state == ENTRY_TOLD;
    s->n[entry->state]--;
    free(entry);
    if (told) {
        tell_gone(s, key);
    }
    return told;
}

/* key is terminated. */
static enum store_result forget(struct store *s, struct sv key)
{
    struct entry *entry = map_remove(s->pods, key);
    return entry != NULL && discard(s, entry, key.p) ? STORE_CHANGED : STORE_UNCHANGED;
}

/* The entry of a key, a new one in the given state if there is none. */
static enum store_result find_or_add(struct store *s, struct sv key, enum entry_state state,
                                     struct entry **ret)
{
    *ret = map_get(s->pods, key);
    if (*ret != NULL) {
        return STORE_UNCHANGED;
    }
    if (map_count(s->pods) >= s->options.max) {
        return STORE_FULL;
    }
    struct entry *entry = calloc(1, sizeof(*entry));
    if (entry == NULL || !map_put(s->pods, key, entry, NULL)) {
        free(entry);
        return STORE_NO_MEMORY;
    }
    entry->state = state;
    s->n[state]++;
    *ret = entry;
    return STORE_CHANGED;
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
    struct entry *entry;
    enum store_result found = find_or_add(s, key, ENTRY_TOLD, &entry);
    if (entry == NULL) {
        return found;
    }
    bool told = found == STORE_UNCHANGED && entry->state == ENTRY_TOLD;
    bool moved = found == STORE_UNCHANGED && !told;
    bool same = told && entry->hash == hash;
    set_state(s, entry, ENTRY_TOLD);
    entry->hash = hash;
    entry->uid = hash_uid(id);
    entry->key = targets->key;
    entry->list = s->list;
    if (same) {
        return STORE_UNCHANGED;
    }
    s->options.on_change(s->options.arg, text, targets->at, targets->n, targets->ip, moved);
    return STORE_CHANGED;
}

enum store_result store_leave(struct store *s, const struct object_id *id, uint64_t key)
{
    char text[OBJECT_KEY_MAX];
    struct entry *entry;
    enum store_result found = find_or_add(s, object_key(id, text), ENTRY_LEFT, &entry);
    if (entry == NULL) {
        return found;
    }
    bool told = entry->state == ENTRY_TOLD;
    set_state(s, entry, ENTRY_LEFT);
    entry->uid = hash_uid(id);
    entry->key = key;
    entry->list = s->list;
    if (!told) {
        return STORE_UNCHANGED;
    }
    tell_gone(s, text);
    return STORE_CHANGED;
}

void store_review(struct store *s, bool (*claims)(void *arg, uint64_t key), void *arg)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    while (map_next(s->pods, &cursor, &key, &value)) {
        struct entry *entry = value;
        bool told = entry->state == ENTRY_TOLD;
        if (entry->key == 0 || claims(arg, entry->key)) {
            set_state(s, entry, told ? ENTRY_TOLD : ENTRY_AWAITED);
            continue;
        }
        set_state(s, entry, ENTRY_LEFT);
        if (told) {
            tell_gone(s, key.p);
        }
    }
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
            discard(s, entry, text);
        }
    }
}
