#include "pprof/delta_state.h"

#include <stdlib.h>

size_t delta_state_bytes(size_t n, size_t columns)
{
    return sizeof(struct delta_state) +
           n * (sizeof(struct pprof_key) + columns * sizeof(int64_t) + sizeof(uint8_t));
}

struct delta_state *delta_state_new(size_t n, size_t columns)
{
    size_t bytes = delta_state_bytes(n, columns);
    struct delta_state *s = malloc(bytes);
    if (s == NULL) {
        return NULL;
    }
    *s = (struct delta_state){.columns = (uint32_t)columns, .bytes = bytes};
    atomic_init(&s->refs, 1);
    s->keys = (struct pprof_key *)(s + 1);
    s->values = (int64_t *)(s->keys + n);
    s->ages = (uint8_t *)(s->values + n * columns);
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

void delta_state_add(struct delta_state *s, struct pprof_key key, const int64_t *values,
                     uint8_t age)
{
    size_t i = s->n++;
    s->keys[i] = key;
    for (size_t j = 0; j < s->columns; j++) {
        delta_state_values(s, i)[j] = values[j];
    }
    s->ages[i] = age;
}

/* ---- looking up ------------------------------------------------------------------------------ */

static bool make_table(struct delta_finder *f)
{
    f->slots = scratch_slots(f->scratch, f->state->n, &f->mask);
    if (f->slots == NULL) {
        f->no_memory = true;
        return false;
    }
    for (size_t i = 0; i < f->state->n; i++) {
        size_t slot = (size_t)f->state->keys[i].half[0] & f->mask;
        while (f->slots[slot] != 0) {
            slot = (slot + 1) & f->mask;
        }
        f->slots[slot] = (uint32_t)i + 1;
    }
    return true;
}

bool delta_find(struct delta_finder *f, struct pprof_key key, size_t *ret)
{
    const struct delta_state *s = f->state;
    *ret = f->next;
    if (f->next < s->n && pprof_keys_equal(s->keys[f->next], key)) {
        f->next++;
        return true;
    }
    if (f->no_memory || (f->slots == NULL && !make_table(f))) {
        return false;
    }
    for (size_t i = (size_t)key.half[0] & f->mask; f->slots[i] != 0; i = (i + 1) & f->mask) {
        *ret = f->slots[i] - 1;
        if (pprof_keys_equal(s->keys[*ret], key)) {
            f->next = *ret + 1;
            return true;
        }
    }
    return false;
}
