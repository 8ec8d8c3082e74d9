#include "symbols/process.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/map.h"

struct place {
    uint64_t file; /* a hash of the name and the offset in the file */
    uint64_t start;
};

struct process {
    uint64_t number;
    size_t n;
    size_t cap;
    struct place *places;
};

struct symbol_processes {
    pthread_mutex_t lock;
    struct map *processes;
    uint64_t last_number;
};

static void process_free(void *p)
{
    struct process *process = p;
    free(process->places);
    free(process);
}

struct symbol_processes *symbol_processes_new(void)
{
    struct symbol_processes *ps = calloc(1, sizeof(*ps));
    if (ps == NULL) {
        return NULL;
    }
    pthread_mutex_init(&ps->lock, NULL);
    ps->last_number = 1; /* numbers begin with 2 */
    ps->processes = map_new();
    return ps->processes != NULL ? ps : symbol_processes_free(ps);
}

struct symbol_processes *symbol_processes_free(struct symbol_processes *ps)
{
    if (ps != NULL) {
        map_free(ps->processes, process_free);
        pthread_mutex_destroy(&ps->lock);
        free(ps);
    }
    return NULL;
}

static void forget_all(struct symbol_processes *ps)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    while (map_next(ps->processes, &cursor, &key, &value)) {
        map_remove_at(ps->processes, cursor);
        process_free(value);
    }
}

static struct process *find_process(struct symbol_processes *ps, uint64_t target)
{
    struct sv key = {(const char *)&target, sizeof(target)};
    struct process *p = map_get(ps->processes, key);
    if (p != NULL) {
        return p;
    }
    if (map_count(ps->processes) >= SYMBOL_PROCESSES_MAX) {
        forget_all(ps);
    }
    p = calloc(1, sizeof(*p));
    if (p == NULL || !map_put(ps->processes, key, p, NULL)) {
        free(p);
        return NULL;
    }
    p->number = ++ps->last_number;
    return p;
}

static struct place place_of(const struct symbol_binary *b)
{
    return (struct place){hash_bytes(b->file.p, b->file.n, b->offset), b->start};
}

/* Returns false if a file of the process is mapped elsewhere now. */
static bool is_where_it_was(const struct process *p, struct place place, bool *ret_found)
{
    *ret_found = false;
    for (size_t i = 0; i < p->n; i++) {
        if (p->places[i].file == place.file) {
            *ret_found = true;
            return p->places[i].start == place.start;
        }
    }
    return true;
}

static bool add_place(struct process *p, struct place place)
{
    if (p->n == SYMBOL_PROCESS_MAPPINGS_MAX) {
        return true;
    }
    if (p->n == p->cap) {
        size_t cap = p->cap == 0 ? 8 : 2 * p->cap;
        struct place *places = realloc(p->places, cap * sizeof(*places));
        if (places == NULL) {
            return false;
        }
        p->places = places;
        p->cap = cap;
    }
    p->places[p->n++] = place;
    return true;
}

/* Adds the mappings of a profile. Returns false if one of them has moved, or if out of memory. */
static bool add_places(struct process *p, const struct symbol_binary *binaries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool found;
        struct place place = place_of(&binaries[i]);
        if (binaries[i].file.n == 0) {
            continue;
        }
        if (!is_where_it_was(p, place, &found) || (!found && !add_place(p, place))) {
            return false;
        }
    }
    return true;
}

uint64_t symbol_process_number(struct symbol_processes *ps, uint64_t target,
                               const struct symbol_binary *binaries, size_t n)
{
    pthread_mutex_lock(&ps->lock);
    struct process *p = find_process(ps, target);
    if (p != NULL && !add_places(p, binaries, n)) {
        p->n = 0;
        p->number = ++ps->last_number;
        (void)add_places(p, binaries, n);
    }
    uint64_t number = p != NULL ? p->number : 0;
    pthread_mutex_unlock(&ps->lock);
    return number;
}
