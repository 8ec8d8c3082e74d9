#include "jfr/pools.h"

#include <stdlib.h>
#include <string.h>

#include "jfr/jfr.h"

#define SLOTS_FIRST 64
/* The longest chain of constants to a text. The longest real chain is class, symbol, string. */
#define TEXT_DEPTH_MAX 4

static const enum jfr_atom stack_fields[] = {
    [JFR_STACK_TRUNCATED] = ATOM_TRUNCATED, [JFR_STACK_FRAMES] = ATOM_FRAMES};
static const enum jfr_atom frame_fields[] = {
    [JFR_FRAME_METHOD] = ATOM_METHOD_FIELD, [JFR_FRAME_LINE] = ATOM_LINE_NUMBER};
static const enum jfr_atom method_fields[] = {
    [JFR_METHOD_TYPE] = ATOM_TYPE, [JFR_METHOD_NAME] = ATOM_NAME};
static const enum jfr_atom name_field[] = {[JFR_TEXT] = ATOM_NAME};
static const enum jfr_atom string_field[] = {[JFR_TEXT] = ATOM_STRING_FIELD};

static const struct {
    enum jfr_atom class;
    const enum jfr_atom *wanted;
    size_t n_wanted;
} kinds[JFR_POOLS] = {
    [JFR_POOL_STACK_TRACE] = {ATOM_STACK_TRACE, stack_fields, 2},
    [JFR_POOL_METHOD] = {ATOM_METHOD, method_fields, 2},
    [JFR_POOL_CLASS] = {ATOM_JAVA_CLASS, name_field, 1},
    [JFR_POOL_SYMBOL] = {ATOM_SYMBOL, string_field, 1},
    [JFR_POOL_STRING] = {ATOM_STRING, string_field, 1},
    [JFR_POOL_STATE] = {ATOM_THREAD_STATE, name_field, 1},
};

void jfr_pools_init(struct jfr_pools *p, uint64_t seed, struct budget *budget)
{
    *p = (struct jfr_pools){.seed = seed, .budget = budget};
}

void jfr_pools_done(struct jfr_pools *p)
{
    for (size_t i = 0; i < JFR_POOLS; i++) {
        free(p->pools[i].slots);
        free(p->pools[i].notes);
        p->pools[i] = (struct jfr_pool){.n = 0};
    }
}

/* ---- the index ------------------------------------------------------------------------------- */

static uint32_t offset_of(const struct jfr_pools *p, uint32_t slot)
{
    return slot & (uint32_t)((UINT64_C(1) << p->offset_bits) - 1);
}

static uint64_t id_of(const struct jfr_pools *p, uint32_t slot)
{
    struct jfr_cursor c = jfr_cursor_at(p->m, offset_of(p, slot));
    return jfr_number(&c, JFR_LONG);
}

/* Returns the slot of an id: the slot that has its constant, or a free one. *ret_tag: the bits
 * above the offset for this id. */
static size_t slot_of(const struct jfr_pools *p, const struct jfr_pool *pool, uint64_t id,
                      uint32_t *ret_tag)
{
    uint64_t hash = jfr_hash(id, p->seed);
    size_t mask = pool->n_slots - 1;
    size_t i = (size_t)hash & mask;
    uint32_t tag = (uint32_t)((hash >> 32) << p->offset_bits);
    for (; pool->slots[i] != 0; i = (i + 1) & mask) {
        uint32_t slot = pool->slots[i];
        if ((slot ^ tag) >> p->offset_bits == 0 && id_of(p, slot) == id) {
            break;
        }
    }
    *ret_tag = tag;
    return i;
}

/* Makes the arrays of a pool larger, or clears them for the first entries of a chunk. */
static bool resize(struct jfr_pools *p, struct jfr_pool *pool, size_t n_slots, struct err *err)
{
    uint32_t *old = NULL;
    size_t n_old = pool->n_slots;
    size_t old_cap = pool->slots_cap;
    if (pool->n > 0) {
        old = pool->slots;
        pool->slots = NULL;
        pool->slots_cap = 0;
    }
    uint32_t *slots =
        budget_grow(p->budget, pool->slots, &pool->slots_cap, n_slots, sizeof(*slots), err);
    if (slots == NULL) {
        if (old != NULL) {
            pool->slots = old;
            pool->slots_cap = old_cap;
        }
        return false;
    }
    memset(slots, 0, n_slots * sizeof(*slots));
    pool->slots = slots;
    pool->n_slots = n_slots;
    for (size_t i = 0; old != NULL && i < n_old; i++) {
        if (old[i] != 0) {
            uint32_t tag;
            slots[slot_of(p, pool, id_of(p, old[i]), &tag)] = old[i];
        }
    }
    if (old != NULL) {
        free(old);
        p->budget->used -= old_cap * sizeof(*old);
    }
    return true;
}

/* Makes room for n more entries: at most three quarters of the slots are used. */
static bool reserve(struct jfr_pools *p, struct jfr_pool *pool, size_t n, struct err *err)
{
    size_t want = pool->n_slots == 0 ? SLOTS_FIRST : pool->n_slots;
    while (want / 4 * 3 < pool->n + n) {
        want *= 2;
    }
    return want == pool->n_slots || resize(p, pool, want, err);
}

static bool add(struct jfr_pools *p, struct jfr_pool *pool, uint64_t id, uint32_t offset,
                struct err *err)
{
    if (!reserve(p, pool, 1, err)) {
        return false;
    }
    uint32_t tag;
    size_t slot = slot_of(p, pool, id, &tag);
    if (pool->slots[slot] == 0) {
        pool->slots[slot] = offset | tag;
        pool->n++;
    }
    return true;
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

static struct jfr_pool *pool_of(struct jfr_pools *p, const struct jfr_class *class)
{
    for (size_t i = 0; i < JFR_POOLS; i++) {
        if (kinds[i].class == (enum jfr_atom) class->atom && p->pools[i].program != JFR_NONE) {
            return &p->pools[i];
        }
    }
    return NULL;
}

/* Skips the raw head of the chunk. Some writers store it as a constant, without the length that its
 * class requires. */
static bool skip_raw_head(const struct jfr_class *class, struct jfr_cursor *c)
{
    static const unsigned char magic[] = {'F', 'L', 'R', 0};
    bool raw = class->atom == ATOM_CHUNK_HEADER && jfr_left(c) >= sizeof(magic) &&
               memcmp(c->p, magic, sizeof(magic)) == 0;
    if (raw) {
        jfr_skip(c, JFR_HEAD_SIZE);
    }
    return raw;
}

/* Reads the pool of one class. */
static bool read_pool(struct jfr_pools *p, struct jfr_metadata *m, struct jfr_cursor *c,
                      struct err *err)
{
    const unsigned char *start = c->p;
    uint64_t id = jfr_number(c, JFR_LONG);
    uint64_t n = jfr_number(c, JFR_INT);
    struct jfr_class *class = jfr_class_by_id(m, id);
    if (c->problem == NULL && class == NULL) {
        return n == 0 ||
               err_set(err, ERR_INPUT, "at offset %zu: a pool of class %llu, which is not defined",
                       (size_t)((const char *)start - m->chunk.p), (unsigned long long)id);
    }
    if (n > jfr_left(c)) {
        jfr_fail(c, "more constants than bytes");
    }
    if (c->problem != NULL) {
        return true; /* the caller reports it */
    }
    uint32_t program = jfr_compile_skip(m, class, err);
    struct jfr_pool *pool = pool_of(p, class);
    if (program == JFR_NONE) {
        return false;
    }
    for (; n > 0 && c->problem == NULL; n--) {
        uint32_t offset = (uint32_t)((const char *)c->p - m->chunk.p);
        uint64_t index = jfr_number(c, JFR_LONG);
        if (!skip_raw_head(class, c)) {
            jfr_run(m, program, c, NULL);
        }
        if (pool != NULL && c->problem == NULL && !add(p, pool, index, offset, err)) {
            return false;
        }
    }
    return true;
}

/* Reads one checkpoint. *ret_size: its bytes. *ret_delta: the distance to the one before, 0 if
 * there is none. */
static bool read_checkpoint(struct jfr_pools *p, struct jfr_metadata *m, uint64_t offset,
                            uint64_t *ret_size, int64_t *ret_delta, struct err *err)
{
    struct jfr_cursor c = jfr_cursor_at(m, offset);
    const unsigned char *start = c.p;
    uint64_t size = jfr_number(&c, JFR_INT);
    uint64_t type = jfr_number(&c, JFR_LONG);
    if (type != 1 || size > (uint64_t)(c.end - start) || size < 2) {
        return jfr_damage(m, start, "expected a checkpoint, an event of type 1", err);
    }
    *ret_size = size;
    c.end = start + size;
    c.p = c.p < c.end ? c.p : c.end;
    jfr_skip_numbers(&c, 2, JFR_LONG); /* start, duration */
    *ret_delta = (int64_t)jfr_number(&c, JFR_LONG);
    jfr_skip(&c, 1); /* mask of types */
    uint64_t n = jfr_number(&c, JFR_INT);
    for (; n > 0 && c.problem == NULL; n--) {
        if (!read_pool(p, m, &c, err)) {
            return false;
        }
    }
    return c.problem == NULL || (jfr_damage(m, start, c.problem, err), err_wrap(err, "checkpoint"));
}

static bool read_all(struct jfr_pools *p, struct jfr_metadata *m, uint64_t offset, struct err *err)
{
    int64_t delta = 1;
    /* the sum of the checkpoints so far; if it exceeds the chunk, they form a circle */
    uint64_t bytes = 0;
    while (delta != 0) {
        uint64_t size = 0;
        if (!read_checkpoint(p, m, offset, &size, &delta, err)) {
            return false;
        }
        bytes += size;
        int64_t next;
        bool inside = !__builtin_add_overflow((int64_t)offset, delta, &next) &&
                      next >= (int64_t)JFR_HEAD_SIZE && next < (int64_t)m->chunk.n;
        if (delta != 0 && (!inside || bytes > m->chunk.n)) {
            return err_set(err, ERR_INPUT, "at offset %llu: a checkpoint that follows %s",
                           (unsigned long long)offset,
                           inside ? "itself" : "one outside of the chunk");
        }
        offset = inside ? (uint64_t)next : offset;
    }
    return true;
}

static bool compile_programs(struct jfr_pools *p, struct jfr_metadata *m, struct err *err)
{
    for (size_t i = 0; i < JFR_POOLS; i++) {
        struct jfr_pool *pool = &p->pools[i];
        struct jfr_class *class = jfr_class_by_atom(m, kinds[i].class);
        pool->n = pool->n_slots = 0;
        pool->program = JFR_NONE;
        if (class != NULL) {
            pool->program = jfr_compile(m, class, kinds[i].wanted, kinds[i].n_wanted, err);
            if (pool->program == JFR_NONE) {
                return false;
            }
        }
    }
    struct jfr_class *frame = jfr_class_by_atom(m, ATOM_STACK_FRAME);
    p->frame_program = JFR_NONE;
    if (frame != NULL) {
        p->frame_program = jfr_compile(m, frame, frame_fields, 2, err);
    }
    return frame == NULL || p->frame_program != JFR_NONE;
}

static bool make_notes(struct jfr_pools *p, struct err *err)
{
    for (size_t i = 0; i < JFR_POOLS; i++) {
        struct jfr_pool *pool = &p->pools[i];
        bool wanted = i == JFR_POOL_STACK_TRACE || i == JFR_POOL_METHOD || i == JFR_POOL_STATE;
        if (!wanted || pool->n_slots == 0) {
            continue;
        }
        uint32_t *notes = budget_grow(p->budget, pool->notes, &pool->notes_cap, pool->n_slots,
                                      sizeof(*notes), err);
        if (notes == NULL) {
            return false;
        }
        pool->notes = notes;
        memset(notes, 0, pool->n_slots * sizeof(*notes));
    }
    return true;
}

bool jfr_pools_read(struct jfr_pools *p, struct jfr_metadata *m, uint64_t checkpoint,
                    struct err *err)
{
    p->m = m;
    /* At most 31 bits: JFR_CHUNK_MAX. */
    p->offset_bits = (unsigned)(64 - __builtin_clzll((uint64_t)m->chunk.n));
    return compile_programs(p, m, err) && read_all(p, m, checkpoint, err) && make_notes(p, err);
}

/* ---- constants ------------------------------------------------------------------------------- */

size_t jfr_pools_find(const struct jfr_pools *p, enum jfr_pool_kind kind, uint64_t id)
{
    const struct jfr_pool *pool = &p->pools[kind];
    if (pool->n == 0) {
        return SIZE_MAX;
    }
    uint32_t tag;
    size_t slot = slot_of(p, pool, id, &tag);
    return pool->slots[slot] == 0 ? SIZE_MAX : slot;
}

void jfr_pools_get(const struct jfr_pools *p, enum jfr_pool_kind kind, size_t slot,
                   struct jfr_value *values)
{
    const struct jfr_pool *pool = &p->pools[kind];
    struct jfr_cursor c = jfr_cursor_at(p->m, offset_of(p, pool->slots[slot]));
    memset(values, 0, JFR_SLOTS_MAX * sizeof(*values));
    jfr_number(&c, JFR_LONG);
    jfr_run(p->m, pool->program, &c, values);
}

/* Reads the constant that a value refers to. Returns false if it does not exist. */
static bool follow(const struct jfr_pools *p, enum jfr_atom class, uint64_t id,
                   struct jfr_value *ret)
{
    struct jfr_value values[JFR_SLOTS_MAX];
    for (size_t i = 0; i < JFR_POOLS; i++) {
        if (kinds[i].class == class && kinds[i].n_wanted == 1) {
            size_t slot = jfr_pools_find(p, (enum jfr_pool_kind)i, id);
            if (slot != SIZE_MAX) {
                jfr_pools_get(p, (enum jfr_pool_kind)i, slot, values);
                *ret = values[JFR_TEXT];
                return ret->at != NULL;
            }
        }
    }
    return false;
}

void jfr_pools_text(const struct jfr_pools *p, const struct jfr_value *v, struct buf *out)
{
    struct jfr_value at = *v;
    bool found = at.at != NULL;
    for (size_t depth = 0; found && depth < TEXT_DEPTH_MAX; depth++) {
        struct jfr_string text;
        if (!at.is_text) {
            found = follow(p, (enum jfr_atom)at.atom, at.number, &at);
            continue;
        }
        struct jfr_cursor c = jfr_cursor_at(p->m, (uint64_t)((const char *)at.at - p->m->chunk.p));
        jfr_string(&c, &text);
        if (text.encoding != JFR_STRING_POOL) {
            jfr_string_put(&text, out);
            return;
        }
        found = follow(p, ATOM_STRING, text.index, &at);
    }
}
