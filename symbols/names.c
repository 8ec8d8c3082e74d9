#include "symbols/names.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/utf8.h"

/* The part of the limit that one table may have. */
#define TABLE_PART 4
/* The bytes that a table counts besides its contents. */
#define TABLE_COST ((size_t)512)
/* How many questions before its turn the entry of a place is fetched, and its slot as many before
 * that. */
#define AHEAD 8
#define FIRST_SLOTS ((size_t)64)

/* An address. Without lines, it was asked for. */
struct entry {
    uint64_t place;
    const struct symbol_line *lines;
    uint32_t n_lines;
    uint8_t known;       /* symbol_lines_known() of the lines */
    bool asked;          /* and no answer has come */
    int64_t again_at_ms; /* if there are no lines: when it may be asked for again */
};

/* A set of pointers by a hash of their contents; NULL where free. */
struct pointer_set {
    const void **slots;
    size_t size; /* a power of two, or 0 */
    size_t n;
};

struct symbol_table {
    atomic_uint refs;
    TAILQ_ENTRY(symbol_table) link; /* by last use, the oldest first; guarded by names->lock */
    struct pprof_key key;
    atomic_size_t bytes;
    pthread_mutex_t lock; /* guards the rest */
    struct arena *arena;
    size_t arena_max;
    struct entry *entries; /* in the order in which they were added; room for half of the slots */
    uint32_t *slots;       /* place in the entries + 1; 0: free */
    size_t n_slots;
    size_t n_entries;
    size_t n_named;               /* entries with lines */
    struct pointer_set strings;   /* struct sv */
    struct pointer_set functions; /* struct symbol_function */
};

TAILQ_HEAD(table_list, symbol_table);

struct symbol_names {
    pthread_mutex_t lock;
    size_t bytes_max;
    struct map *tables;
    struct table_list order;
};

/* ---- tables ---------------------------------------------------------------------------------- */

static struct symbol_table *table_new(struct pprof_key key, size_t max)
{
    struct symbol_table *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        return NULL;
    }
    atomic_init(&t->refs, 1);
    atomic_init(&t->bytes, TABLE_COST);
    t->key = key;
    t->arena_max = max;
    t->arena = arena_new(max);
    pthread_mutex_init(&t->lock, NULL);
    return t->arena != NULL ? t : symbol_table_unref(t);
}

struct symbol_table *symbol_table_ref(struct symbol_table *t)
{
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

struct symbol_table *symbol_table_unref(struct symbol_table *t)
{
    if (t != NULL && atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) == 1) {
        arena_free(t->arena);
        free(t->entries);
        free(t->slots);
        free(t->strings.slots);
        free(t->functions.slots);
        pthread_mutex_destroy(&t->lock);
        free(t);
    }
    return NULL;
}

/* Counts what the table holds; under its lock. */
static void count_bytes(struct symbol_table *t)
{
    size_t bytes = TABLE_COST + arena_used(t->arena) +
                   t->n_slots * (sizeof(*t->slots) + sizeof(*t->entries) / 2) +
                   (t->strings.size + t->functions.size) * sizeof(void *);
    atomic_store_explicit(&t->bytes, bytes, memory_order_relaxed);
}

static struct sv key_text(const struct pprof_key *key)
{
    return (struct sv){(const char *)key, sizeof(*key)};
}

struct symbol_names *symbol_names_new(size_t bytes_max)
{
    struct symbol_names *n = calloc(1, sizeof(*n));
    if (n == NULL) {
        return NULL;
    }
    n->bytes_max = bytes_max != 0 ? bytes_max : SYMBOL_NAMES_MAX_DEFAULT;
    TAILQ_INIT(&n->order);
    pthread_mutex_init(&n->lock, NULL);
    n->tables = map_new();
    return n->tables != NULL ? n : symbol_names_free(n);
}

/* Removes a table; under the lock. */
static void remove_table(struct symbol_names *n, struct symbol_table *t)
{
    TAILQ_REMOVE(&n->order, t, link);
    (void)map_remove(n->tables, key_text(&t->key));
    symbol_table_unref(t);
}

struct symbol_names *symbol_names_free(struct symbol_names *n)
{
    if (n == NULL) {
        return NULL;
    }
    struct symbol_table *next;
    for (struct symbol_table *t = TAILQ_FIRST(&n->order); t != NULL; t = next) {
        next = TAILQ_NEXT(t, link);
        remove_table(n, t);
    }
    map_free(n->tables, NULL);
    pthread_mutex_destroy(&n->lock);
    free(n);
    return NULL;
}

static struct symbol_table *find_table(struct symbol_names *n, struct pprof_key key)
{
    struct symbol_table *t = map_get(n->tables, key_text(&key));
    if (t != NULL) {
        TAILQ_REMOVE(&n->order, t, link);
    } else {
        t = table_new(key, n->bytes_max / TABLE_PART);
        if (t == NULL || !map_put(n->tables, key_text(&key), t, NULL)) {
            return symbol_table_unref(t);
        }
    }
    TAILQ_INSERT_TAIL(&n->order, t, link);
    return symbol_table_ref(t);
}

struct symbol_table *symbol_names_table(struct symbol_names *n, struct pprof_key key)
{
    pthread_mutex_lock(&n->lock);
    struct symbol_table *t = find_table(n, key);
    pthread_mutex_unlock(&n->lock);
    return t;
}

void symbol_names_forget(struct symbol_names *n, struct pprof_key key)
{
    pthread_mutex_lock(&n->lock);
    struct symbol_table *t = map_get(n->tables, key_text(&key));
    if (t != NULL) {
        remove_table(n, t);
    }
    pthread_mutex_unlock(&n->lock);
}

static size_t sum_of_bytes(const struct symbol_names *n)
{
    size_t sum = 0;
    const struct symbol_table *t;
    TAILQ_FOREACH(t, &n->order, link)
    {
        sum += atomic_load_explicit(&t->bytes, memory_order_relaxed);
    }
    return sum;
}

size_t symbol_names_bytes(struct symbol_names *n)
{
    pthread_mutex_lock(&n->lock);
    size_t bytes = sum_of_bytes(n);
    pthread_mutex_unlock(&n->lock);
    return bytes;
}

size_t symbol_names_count(struct symbol_names *n)
{
    pthread_mutex_lock(&n->lock);
    size_t count = map_count(n->tables);
    pthread_mutex_unlock(&n->lock);
    return count;
}

void symbol_names_trim(struct symbol_names *n)
{
    pthread_mutex_lock(&n->lock);
    size_t sum = sum_of_bytes(n);
    struct symbol_table *next;
    for (struct symbol_table *t = TAILQ_FIRST(&n->order); t != NULL && sum > n->bytes_max;
         t = next) {
        next = TAILQ_NEXT(t, link);
        sum -= atomic_load_explicit(&t->bytes, memory_order_relaxed);
        remove_table(n, t); /* NOLINT(clang-analyzer-unix.Malloc): `next` is another table */
    }
    pthread_mutex_unlock(&n->lock);
}

/* ---- entries --------------------------------------------------------------------------------- */

static size_t first_slot(uint64_t place, size_t n_slots)
{
    return (size_t)((place * UINT64_C(0x9e3779b97f4a7c15)) >> 24) & (n_slots - 1);
}

/* Returns the slot of a place, or the free one where it belongs. */
static uint32_t *slot_at(const struct symbol_table *t, uint64_t place)
{
    size_t i = first_slot(place, t->n_slots);
    while (t->slots[i] != 0 && t->entries[t->slots[i] - 1].place != place) {
        i = (i + 1) & (t->n_slots - 1);
    }
    return &t->slots[i];
}

/* Doubles the slots and the room for entries. Returns false if there is no memory, or if the
 * entries would have half of what the texts may have. */
static bool grow_entries(struct symbol_table *t)
{
    size_t size = t->n_slots == 0 ? FIRST_SLOTS : 2 * t->n_slots;
    size_t room = size / 2 * sizeof(*t->entries);
    struct entry *entries = 2 * room <= t->arena_max ? realloc(t->entries, room) : NULL;
    if (entries == NULL) {
        return false;
    }
    t->entries = entries;
    uint32_t *slots = calloc(size, sizeof(*slots));
    if (slots == NULL) {
        return false;
    }
    free(t->slots);
    t->slots = slots;
    t->n_slots = size;
    for (size_t i = 0; i < t->n_entries; i++) {
        *slot_at(t, t->entries[i].place) = (uint32_t)i + 1;
    }
    return true;
}

/* Returns the entry of a place, which is made if necessary; NULL if there is no memory. */
static struct entry *need_entry(struct symbol_table *t, uint64_t place)
{
    if (2 * t->n_entries >= t->n_slots && !grow_entries(t)) {
        return NULL;
    }
    uint32_t *slot = slot_at(t, place);
    if (*slot == 0) {
        t->entries[t->n_entries++] = (struct entry){.place = place};
        *slot = (uint32_t)t->n_entries;
    }
    return &t->entries[*slot - 1];
}

static void find_one(struct symbol_table *t, struct symbol_question *q, int64_t now_ms,
                     int64_t again_ms)
{
    struct entry *e = need_entry(t, q->place);
    q->ask = q->pending = false;
    if (e == NULL) {
        return;
    }
    if (e->n_lines > 0) {
        __builtin_prefetch(e->lines); /* symbol_profile_write() reads them */
        q->location->lines = e->lines;
        q->location->n_lines = e->n_lines;
        q->location->known = e->known;
    } else if (now_ms >= e->again_at_ms) {
        e->again_at_ms = now_ms + again_ms;
        q->ask = e->asked = true;
    }
    q->pending = e->asked && e->n_lines == 0;
}

/* Brings the slot of a place into the cache, from where other profiles have displaced it. Always
 * inline, since GCC removes calls of a function that only prefetches. */
static inline __attribute__((always_inline)) void fetch_slot(const struct symbol_table *t,
                                                             uint64_t place)
{
    if (t->n_slots > 0) {
        __builtin_prefetch(&t->slots[first_slot(place, t->n_slots)]);
    }
}

/* Brings the entry into the cache to which the first slot of a place leads. */
static inline __attribute__((always_inline)) void fetch_entry(const struct symbol_table *t,
                                                              uint64_t place)
{
    uint32_t slot = t->n_slots > 0 ? t->slots[first_slot(place, t->n_slots)] : 0;
    if (slot != 0) {
        __builtin_prefetch(&t->entries[slot - 1]);
    }
}

void symbol_table_find(struct symbol_table *t, struct symbol_question *questions, size_t n,
                       int64_t now_ms, int64_t again_ms)
{
    pthread_mutex_lock(&t->lock);
    size_t before = t->n_slots;
    for (size_t i = 0; i < n; i++) {
        if (i + (size_t)2 * AHEAD < n) {
            fetch_slot(t, questions[i + (size_t)2 * AHEAD].place);
        }
        if (i + AHEAD < n) {
            fetch_entry(t, questions[i + AHEAD].place);
        }
        find_one(t, &questions[i], now_ms, again_ms);
    }
    if (t->n_slots != before) {
        count_bytes(t);
    }
    pthread_mutex_unlock(&t->lock);
}

bool symbol_table_is_nameless(struct symbol_table *t)
{
    pthread_mutex_lock(&t->lock);
    bool nameless = t->n_entries > 0 && t->n_named == 0;
    pthread_mutex_unlock(&t->lock);
    return nameless;
}

/* ---- strings and functions ------------------------------------------------------------------- */

typedef uint64_t hash_fn(const void *p);
typedef bool equal_fn(const void *a, const void *b);

/* Returns the slot of an equal pointer, or the free one where this one belongs; NULL if out of
 * memory. */
static const void **set_slot(struct pointer_set *s, const void *p, hash_fn *hash, equal_fn *equal);

static bool grow_set(struct pointer_set *s, hash_fn *hash, equal_fn *equal)
{
    struct pointer_set larger = {.size = s->size == 0 ? FIRST_SLOTS : 2 * s->size};
    larger.slots = calloc(larger.size, sizeof(*larger.slots));
    if (larger.slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < s->size; i++) {
        if (s->slots[i] != NULL) {
            *set_slot(&larger, s->slots[i], hash, equal) = s->slots[i];
            larger.n++;
        }
    }
    free(s->slots);
    *s = larger;
    return true;
}

static const void **set_slot(struct pointer_set *s, const void *p, hash_fn *hash, equal_fn *equal)
{
    if (2 * s->n >= s->size && !grow_set(s, hash, equal)) {
        return NULL;
    }
    size_t i = (size_t)hash(p) & (s->size - 1);
    while (s->slots[i] != NULL && !equal(s->slots[i], p)) {
        i = (i + 1) & (s->size - 1);
    }
    return &s->slots[i];
}

static uint64_t hash_string(const void *p)
{
    const struct sv *v = p;
    return hash_bytes(v->p, v->n, 1);
}

static bool equal_strings(const void *a, const void *b)
{
    return sv_eq(*(const struct sv *)a, *(const struct sv *)b);
}

static uint64_t hash_function(const void *p)
{
    const struct symbol_function *f = p;
    const uint64_t parts[] = {hash_string(&f->name), hash_string(&f->system_name),
                              hash_string(&f->file), f->start_line};
    return hash_bytes(parts, sizeof(parts), 2);
}

static bool equal_functions(const void *a, const void *b)
{
    const struct symbol_function *f = a;
    const struct symbol_function *g = b;
    return f->start_line == g->start_line && sv_eq(f->name, g->name) &&
           sv_eq(f->system_name, g->system_name) && sv_eq(f->file, g->file);
}

static struct sv *copy_string(struct symbol_table *t, struct sv text)
{
    struct sv *copy = arena_alloc(t->arena, sizeof(*copy));
    struct buf repaired;
    buf_init(&repaired, 3 * text.n + 1);
    if (!utf8_valid(text)) {
        utf8_repair(text, &repaired);
        text = (struct sv){repaired.data, repaired.len};
    }
    char *bytes =
        copy != NULL && buf_ok(&repaired) ? arena_strndup(t->arena, text.p, text.n) : NULL;
    if (bytes != NULL) {
        *copy = (struct sv){bytes, text.n};
    }
    buf_done(&repaired);
    return bytes != NULL ? copy : NULL;
}

/* Finds or copies a text. Returns false if there is no room. */
static bool keep_string(struct symbol_table *t, struct sv text, struct sv *ret)
{
    *ret = SV("");
    if (text.n == 0) {
        return true;
    }
    const void **slot = set_slot(&t->strings, &text, hash_string, equal_strings);
    if (slot == NULL) {
        return false;
    }
    if (*slot == NULL) {
        *slot = copy_string(t, text);
        t->strings.n += *slot != NULL;
    }
    if (*slot != NULL) {
        *ret = *(const struct sv *)*slot;
    }
    return *slot != NULL;
}

static const struct symbol_function *keep_function(struct symbol_table *t,
                                                   const struct symbol_answer_frame *frame)
{
    struct symbol_function f = {.start_line = frame->start_line};
    if (!keep_string(t, frame->name, &f.name) ||
        !keep_string(t, frame->system_name, &f.system_name) ||
        !keep_string(t, frame->file, &f.file)) {
        return NULL;
    }
    const void **slot = set_slot(&t->functions, &f, hash_function, equal_functions);
    if (slot == NULL) {
        return NULL;
    }
    if (*slot == NULL) {
        struct symbol_function *copy = arena_alloc(t->arena, sizeof(*copy));
        if (copy != NULL) {
            *copy = f;
            t->functions.n++;
        }
        *slot = copy;
    }
    return *slot;
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool add_locked(struct symbol_table *t, uint64_t place,
                       const struct symbol_answer_frame *frames, size_t n)
{
    struct entry *e = need_entry(t, place);
    struct symbol_line *lines = e != NULL ? arena_array(t->arena, n, sizeof(*lines)) : NULL;
    for (size_t i = 0; lines != NULL && i < n; i++) {
        lines[i] = (struct symbol_line){keep_function(t, &frames[i]), frames[i].line};
        if (lines[i].function == NULL) {
            return false;
        }
    }
    if (lines == NULL) {
        return false;
    }
    t->n_named += e->n_lines == 0;
    e->lines = lines;
    e->n_lines = (uint32_t)n;
    e->known = symbol_lines_known(lines, n);
    return true;
}

bool symbol_table_add(struct symbol_table *t, uint64_t place,
                      const struct symbol_answer_frame *frames, size_t n)
{
    if (n == 0) {
        return true;
    }
    pthread_mutex_lock(&t->lock);
    bool ok = add_locked(t, place, frames, n);
    count_bytes(t);
    pthread_mutex_unlock(&t->lock);
    return ok;
}

void symbol_table_unknown(struct symbol_table *t, uint64_t place, int64_t again_at_ms)
{
    pthread_mutex_lock(&t->lock);
    struct entry *e = need_entry(t, place);
    if (e != NULL && e->n_lines == 0) {
        e->again_at_ms = again_at_ms;
        e->asked = false;
    }
    pthread_mutex_unlock(&t->lock);
}

void symbol_table_each(struct symbol_table *t,
                       void (*fn)(void *arg, uint64_t place, const struct symbol_line *lines,
                                  size_t n),
                       void *arg)
{
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->n_entries; i++) {
        if (t->entries[i].n_lines > 0) {
            fn(arg, t->entries[i].place, t->entries[i].lines, t->entries[i].n_lines);
        }
    }
    pthread_mutex_unlock(&t->lock);
}
