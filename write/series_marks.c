#include "write/series_marks.h"

#include <stdlib.h>
#include <string.h>

#define PER_BYTE 4
#define GENERATION_BYTES (SERIES_MARKS / PER_BYTE)
#define TAKEN_MAX (SERIES_MARKS / 4)

struct series_marks {
    uint8_t *now;
    uint8_t *before;
    uint32_t taken; /* slots of now */
};

struct series_marks *series_marks_new(void)
{
    struct series_marks *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return NULL;
    }
    m->now = calloc(GENERATION_BYTES, 1);
    m->before = calloc(GENERATION_BYTES, 1);
    return m->now != NULL && m->before != NULL ? m : series_marks_free(m);
}

struct series_marks *series_marks_free(struct series_marks *m)
{
    if (m != NULL) {
        free(m->now);
        free(m->before);
        free(m);
    }
    return NULL;
}

static unsigned shift_of(uint32_t slot)
{
    return slot % PER_BYTE * 2;
}

static enum series_mark read_mark(const uint8_t *marks, uint32_t slot)
{
    unsigned four = marks[slot / PER_BYTE];
    return (enum series_mark)(four >> shift_of(slot) & 3U);
}

static void put_mark(struct series_marks *m, uint32_t slot, enum series_mark mark)
{
    if (read_mark(m->now, slot) == SERIES_UNKNOWN) {
        if (m->taken == TAKEN_MAX) {
            uint8_t *older = m->before;
            m->before = m->now;
            m->now = memset(older, 0, GENERATION_BYTES);
            m->taken = 0;
        }
        m->taken++;
    }
    unsigned four = m->now[slot / PER_BYTE];
    four = (four & ~(3U << shift_of(slot))) | (unsigned)mark << shift_of(slot);
    m->now[slot / PER_BYTE] = (uint8_t)four;
}

enum series_mark series_marks_get(struct series_marks *m, uint64_t hash)
{
    uint32_t slot = (uint32_t)(hash % SERIES_MARKS);
    enum series_mark mark = read_mark(m->now, slot);
    if (mark == SERIES_UNKNOWN) {
        mark = read_mark(m->before, slot);
        if (mark != SERIES_UNKNOWN) {
            put_mark(m, slot, mark);
        }
    }
    return mark;
}

void series_marks_set(struct series_marks *m, uint64_t hash, enum series_mark mark)
{
    if (series_marks_get(m, hash) != SERIES_LABELLED) {
        put_mark(m, (uint32_t)(hash % SERIES_MARKS), mark);
    }
}
