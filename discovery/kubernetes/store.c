#include "discovery/kubernetes/store.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"

enum entry_state { ENTRY_REPORTED, ENTRY_FOREIGN, ENTRY_PENDING, ENTRY_STATES };

struct entry {
    uint64_t hash;    /* hash of the label sets and the address, if reported */
    uint64_t content; /* hash of the content that the label sets were made of; 0: not known */
    uint64_t uid;
    uint64_t key;  /* determines its owner; 0: the object is ours */
    uint32_t list; /* number of the last list that named the object */
    enum entry_state state;
};

struct store {
    struct store_options options;
    struct map *entries; /* "namespace/name" -> struct entry */
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
    s->entries = map_new();
    return s->entries == NULL ? store_free(s) : s;
}

struct store *store_free(struct store *s)
{
    if (s != NULL) {
        map_free(s->entries, free);
        free(s);
    }
    return NULL;
}

struct store_counts store_counts(const struct store *s)
{
    return (struct store_counts){
        .reported = s->n[ENTRY_REPORTED],
        .foreign = s->n[ENTRY_FOREIGN],
        .pending = s->n[ENTRY_PENDING],
    };
}

void store_each(const struct store *s, void (*fn)(void *arg, struct sv key), void *arg)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    while (map_next(s->entries, &cursor, &key, &value)) {
        const struct entry *entry = value;
        if (entry->state == ENTRY_REPORTED) {
            fn(arg, key);
        }
    }
}

/* Reports an object as removed. The table must already be in its new state. */
static void report_removed(struct store *s, const char *key)
{
    s->options.on_change(s->options.arg, key, NULL, 0, NULL, false);
}

static void set_state(struct store *s, struct entry *entry, enum entry_state state)
{
    s->n[entry->state]--;
    s->n[state]++;
    entry->state = state;
}

/* Frees an entry that is no longer in the table. If the object had been reported, it is reported as
 * removed, and true is returned. */
static bool discard(struct store *s, struct entry *entry, const char *key)
{
    bool reported = entry->state == ENTRY_REPORTED;
    s->n[entry->state]--;
    free(entry);
    if (reported) {
        report_removed(s, key);
    }
    return reported;
}

/* Removes the entry with a key, which must be NUL-terminated. */
static enum store_result forget(struct store *s, struct sv key)
{
    struct entry *entry = map_remove(s->entries, key);
    return entry != NULL && discard(s, entry, key.p) ? STORE_CHANGED : STORE_UNCHANGED;
}

/* Finds the entry of an object and marks it as named by the current list. If there is none, adds
 * one in the given state. */
static enum store_result find_or_add(struct store *s, const struct object_id *id, struct sv key,
                                     enum entry_state state, struct entry **ret)
{
    enum store_result result = STORE_UNCHANGED;
    struct entry *entry = map_get(s->entries, key);
    *ret = NULL;
    if (entry == NULL) {
        if (map_count(s->entries) >= s->options.max) {
            return STORE_FULL;
        }
        entry = calloc(1, sizeof(*entry));
        if (entry == NULL || !map_put(s->entries, key, entry, NULL)) {
            free(entry);
            return STORE_NO_MEMORY;
        }
        entry->state = state;
        s->n[state]++;
        result = STORE_CHANGED;
    }
    entry->uid = id->uid;
    entry->list = s->list;
    *ret = entry;
    return result;
}

enum store_result kube_store_put(struct store *s, const struct object_id *id,
                                 const struct object_targets *targets)
{
    char text[OBJECT_KEY_MAX];
    struct sv key = object_key(id, text);
    if (targets->n == 0) {
        return forget(s, key);
    }
    const char *ip = targets->ip;
    uint64_t hash =
        object_hash_labels(targets->at, targets->n, hash_bytes(ip, sv_from(ip).n, targets->n));
    struct entry *entry;
    enum store_result found = find_or_add(s, id, key, ENTRY_REPORTED, &entry);
    if (entry == NULL) {
        return found;
    }
    bool moved = entry->state != ENTRY_REPORTED;
    bool same = found == STORE_UNCHANGED && !moved && entry->hash == hash;
    set_state(s, entry, ENTRY_REPORTED);
    entry->hash = hash;
    entry->content = targets->content;
    entry->key = targets->key;
    if (same) {
        return STORE_UNCHANGED;
    }
    s->options.on_change(s->options.arg, text, targets->at, targets->n, targets->ip, moved);
    return STORE_CHANGED;
}

bool store_has(struct store *s, const struct object_id *id, uint64_t content)
{
    char text[OBJECT_KEY_MAX];
    struct entry *entry = map_get(s->entries, object_key(id, text));
    if (entry == NULL || entry->state != ENTRY_REPORTED || entry->content != content ||
        content == 0) {
        return false;
    }
    entry->list = s->list;
    return true;
}

enum store_result store_put_foreign(struct store *s, const struct object_id *id, uint64_t key)
{
    char text[OBJECT_KEY_MAX];
    struct entry *entry;
    enum store_result found = find_or_add(s, id, object_key(id, text), ENTRY_FOREIGN, &entry);
    if (entry == NULL) {
        return found;
    }
    bool reported = entry->state == ENTRY_REPORTED;
    set_state(s, entry, ENTRY_FOREIGN);
    entry->key = key;
    if (!reported) {
        return STORE_UNCHANGED;
    }
    report_removed(s, text);
    return STORE_CHANGED;
}

void store_reassign(struct store *s, bool (*is_assigned)(void *arg, uint64_t key), void *arg)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    while (map_next(s->entries, &cursor, &key, &value)) {
        struct entry *entry = value;
        bool reported = entry->state == ENTRY_REPORTED;
        if (entry->key == 0 || is_assigned(arg, entry->key)) {
            set_state(s, entry, reported ? ENTRY_REPORTED : ENTRY_PENDING);
            continue;
        }
        set_state(s, entry, ENTRY_FOREIGN);
        if (reported) {
            report_removed(s, key.p);
        }
    }
}

enum store_result store_remove(struct store *s, const struct object_id *id)
{
    char text[OBJECT_KEY_MAX];
    struct sv key = object_key(id, text);
    const struct entry *entry = map_get(s->entries, key);
    if (entry == NULL || (id->uid != 0 && entry->uid != id->uid)) {
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
    while (map_next(s->entries, &cursor, &key, &value)) {
        struct entry *entry = value;
        if (entry->list != s->list) {
            char text[OBJECT_KEY_MAX];
            snprintf(text, sizeof(text), "%.*s", SV_ARG(key));
            map_remove_at(s->entries, cursor);
            discard(s, entry, text);
        }
    }
}
