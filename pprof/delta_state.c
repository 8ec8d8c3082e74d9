#include "pprof/delta_state.h"

#include <stdlib.h>
#include <string.h>

/* The slots for n stacks. */
static size_t slots_for(size_t n)
{
    return n + n / 4 + 1;
}

size_t delta_state_bytes(size_t n, size_t columns)
{
    return sizeof(struct delta_state) +
           slots_for(n) * (sizeof(struct pprof_key) + columns * sizeof(int64_t) + sizeof(uint8_t));
}

struct delta_state *delta_state_new(size_t n, size_t columns)
{
    size_t cap = slots_for(n);
    size_t bytes = delta_state_bytes(n, columns);
    struct delta_state *s = calloc(1, bytes);
    if (s == NULL) {
        return NULL;
    }
    atomic_init(&s->refs, 1);
    s->columns = (uint32_t)columns;
    s->bytes = bytes;
    s->cap = cap;
    s->keys = (struct pprof_key *)(s + 1);
    s->values = (int64_t *)(s->keys + cap);
    s->ages = (uint8_t *)(s->values + cap * columns);
    return s;
}

struct delta_state *delta_state_ref(struct delta_state *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

struct delta_state *delta_state_unref(struct delta_state *s)
{
    if (s != NULL && atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1) {
        free(s);
    }
    return NULL;
}

/* The slot of a key, or the free one where it would go. There is always a free one. */
static size_t slot_of(const struct delta_state *s, struct pprof_key key)
{
    /* The upper bits of the hash, brought down to 0..cap-1. */
    size_t i = (size_t)(((key.half[0] >> 32) * (uint64_t)s->cap) >> 32);
    while (!delta_state_is_free(s, i) && memcmp(&s->keys[i], &key, sizeof(key)) != 0) {
        i = i + 1 < s->cap ? i + 1 : 0;
    }
    return i;
}

bool delta_state_find(const struct delta_state *s, struct pprof_key key, size_t *ret_slot)
{
    *ret_slot = slot_of(s, key);
    return !delta_state_is_free(s, *ret_slot);
}

void delta_state_add(struct delta_state *s, struct pprof_key key, const int64_t *values,
                     uint8_t age)
{
    size_t i = slot_of(s, key);
    s->keys[i] = key;
    memcpy(delta_state_values(s, i), values, s->columns * sizeof(*values));
    s->ages[i] = age;
    s->n++;
}
