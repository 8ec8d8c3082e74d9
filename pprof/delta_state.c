#include "pprof/delta_state.h"

#include <stdlib.h>

/* Lays the columns out for values that have no bits other than these. Returns the bytes of a
 * row. */
static size_t lay_out(struct delta_column *column, const uint64_t *bits, size_t columns)
{
    size_t row = 0;
    for (size_t j = 0; j < columns; j++) {
        uint32_t width = bits[j] == 0 ? 0 : (71 - (uint32_t)__builtin_clzll(bits[j])) / 8;
        column[j].mask = width == 0 ? 0 : UINT64_MAX >> (64 - 8 * width);
        column[j].at = (uint32_t)row;
        column[j].width = width;
        row += width;
    }
    return row;
}

struct delta_state *delta_state_new(struct scratch *scratch, size_t n, const uint64_t *bits,
                                    size_t columns)
{
    struct delta_column column[SUMMARY_TYPES_MAX];
    size_t row = lay_out(column, bits, columns);
    size_t head = sizeof(struct delta_state) + columns * sizeof(*column);
    size_t bytes = head + n * (sizeof(uint64_t) + sizeof(uint8_t) + row) + sizeof(uint64_t);
    struct delta_state *s = scratch_charge(scratch, bytes) ? malloc(bytes) : NULL;
    if (s == NULL) {
        return NULL;
    }
    *s = (struct delta_state){.columns = (uint32_t)columns, .bytes = bytes, .row = row};
    atomic_init(&s->refs, 1);
    memcpy(s->column, column, columns * sizeof(*column));
    s->keys = (uint64_t *)(void *)((char *)s + head);
    s->ages = (uint8_t *)(s->keys + n);
    s->values = (char *)(s->ages + n);
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
