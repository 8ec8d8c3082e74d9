#include "jfr/samples.h"

#include <stdlib.h>
#include <string.h>

#include "jfr/cursor.h"

#define SLOTS_FIRST 64

static const struct jfr_profile rows[JFR_PROFILES_MAX] = {
    [JFR_ROW_CPU] = {.name = "process_cpu",
                     .n_columns = 1,
                     .columns = {{"cpu", "nanoseconds"}},
                     .period_type = {"cpu", "nanoseconds"}},
    [JFR_ROW_WALL] = {.name = "wall",
                      .n_columns = 1,
                      .columns = {{"wall", "nanoseconds"}},
                      .period_type = {"wall", "nanoseconds"}},
    [JFR_ROW_IN_NEW_TLAB] = {.name = "memory",
                             .n_columns = 2,
                             .columns = {{"alloc_in_new_tlab_objects", "count"},
                                         {"alloc_in_new_tlab_bytes", "bytes"}},
                             .period_type = {"space", "bytes"}},
    [JFR_ROW_OUTSIDE_TLAB] = {.name = "memory",
                              .n_columns = 2,
                              .columns = {{"alloc_outside_tlab_objects", "count"},
                                          {"alloc_outside_tlab_bytes", "bytes"}},
                              .period_type = {"space", "bytes"}},
    [JFR_ROW_ALLOCATION_SAMPLE] = {.name = "memory",
                                   .n_columns = 2,
                                   .columns = {{"alloc_sample_objects", "count"},
                                               {"alloc_sample_bytes", "bytes"}},
                                   .period_type = {"space", "bytes"}},
    [JFR_ROW_MUTEX] = {.name = "mutex",
                       .n_columns = 2,
                       .columns = {{"contentions", "count"}, {"delay", "nanoseconds"}},
                       .period_type = {"mutex", "count"}},
    [JFR_ROW_BLOCK] = {.name = "block",
                       .n_columns = 2,
                       .columns = {{"contentions", "count"}, {"delay", "nanoseconds"}},
                       .period_type = {"block", "count"}},
    [JFR_ROW_LIVE] = {.name = "memory",
                      .n_columns = 1,
                      .columns = {{"live", "count"}},
                      .period_type = {"objects", "count"}},
    [JFR_ROW_MALLOC] = {.name = "memory",
                        .n_columns = 2,
                        .columns = {{"malloc_objects", "count"}, {"malloc_bytes", "bytes"}},
                        .period_type = {"", ""}},
};

void jfr_samples_init(struct jfr_samples *s, uint64_t seed, struct budget *budget)
{
    *s = (struct jfr_samples){.seed = seed, .budget = budget};
    merge_table_init(&s->functions, seed);
    merge_table_init(&s->locations, seed);
    merge_table_init(&s->stacks, seed);
    merge_table_init(&s->correlations, seed);
}

void jfr_samples_done(struct jfr_samples *s)
{
    merge_table_done(&s->functions);
    merge_table_done(&s->locations);
    merge_table_done(&s->stacks);
    merge_table_done(&s->correlations);
    free(s->samples);
    free(s->slots);
    s->samples = NULL;
    s->slots = NULL;
    s->n = s->cap = s->n_slots = s->slots_cap = 0;
}

static size_t slot_of(const struct jfr_samples *s, enum jfr_row row, uint32_t stack,
                      uint32_t correlation)
{
    uint64_t key = (uint64_t)stack << 32 | correlation << 4 | (uint32_t)row;
    size_t i = jfr_hash(key, s->seed) & (s->n_slots - 1);
    for (; s->slots[i] != 0; i = (i + 1) & (s->n_slots - 1)) {
        const struct jfr_sample *x = &s->samples[s->slots[i] - 1];
        if (x->row == (uint8_t)row && x->stack == stack && x->correlation == correlation) {
            break;
        }
    }
    return i;
}

static bool grow_slots(struct jfr_samples *s, struct err *err)
{
    if (s->n_slots / 4 * 3 > s->n) {
        return true;
    }
    size_t n = s->n_slots == 0 ? SLOTS_FIRST : 2 * s->n_slots;
    uint32_t *slots = budget_grow(s->budget, s->slots, &s->slots_cap, n, sizeof(*slots), err);
    if (slots == NULL) {
        return false;
    }
    s->slots = slots;
    s->n_slots = n;
    memset(slots, 0, n * sizeof(*slots));
    for (size_t i = 0; i < s->n; i++) {
        const struct jfr_sample *x = &s->samples[i];
        slots[slot_of(s, (enum jfr_row)x->row, x->stack, x->correlation)] = (uint32_t)(i + 1);
    }
    return true;
}

struct jfr_sample *jfr_samples_get(struct jfr_samples *s, enum jfr_row row, uint32_t stack,
                                   uint32_t correlation, struct err *err)
{
    if (!grow_slots(s, err)) {
        return NULL;
    }
    size_t slot = slot_of(s, row, stack, correlation);
    if (s->slots[slot] == 0) {
        struct jfr_sample *grown =
            budget_grow(s->budget, s->samples, &s->cap, s->n + 1, sizeof(*grown), err);
        if (grown == NULL) {
            return NULL;
        }
        s->samples = grown;
        grown[s->n++] =
            (struct jfr_sample){.row = (uint8_t)row, .stack = stack, .correlation = correlation};
        s->slots[slot] = (uint32_t)s->n;
        s->of_row[row]++;
    }
    return &s->samples[s->slots[slot] - 1];
}

static int64_t add_clamped(int64_t a, int64_t b)
{
    int64_t sum;
    return !__builtin_add_overflow(a, b, &sum) ? sum : b < 0 ? INT64_MIN : INT64_MAX;
}

void jfr_samples_add(struct jfr_samples *s, struct jfr_sample *sample, size_t column, int64_t value)
{
    sample->values[column] = add_clamped(sample->values[column], value);
    s->sums[sample->row][column] = add_clamped(s->sums[sample->row][column], value);
}

void jfr_samples_settle(struct jfr_samples *s, const int64_t periods[JFR_CLOCKS])
{
    for (size_t i = 0; i < s->n; i++) {
        struct jfr_sample *x = &s->samples[i];
        for (size_t clock = 0; clock < JFR_CLOCKS; clock++) {
            int64_t ns;
            if (x->pending[clock] == 0) {
                continue;
            }
            if (__builtin_mul_overflow(x->pending[clock], periods[clock], &ns)) {
                ns = INT64_MAX;
            }
            x->pending[clock] = 0;
            jfr_samples_add(s, x, 0, ns);
            s->periods[x->row] = periods[clock];
        }
    }
}

void jfr_samples_profile(const struct jfr_samples *s, enum jfr_row row, struct jfr_profile *ret)
{
    *ret = rows[row];
    ret->stacks = s->of_row[row];
    ret->period = s->periods[row];
    memcpy(ret->sums, s->sums[row], sizeof(ret->sums));
}
