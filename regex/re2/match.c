/* Runs a program on all its threads at once, one rune of the text after the other (Pike's machine,
 * as in regexp/exec.go). */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "regex/re2/program.h"

#define NO_ROW UINT32_MAX
/* Memory for rows above this limit in bytes is freed after a match. */
#define SLOTS_KEPT ((size_t)64 * 1024)

/* An instruction of the program, and the row of captures on the way to it. */
struct thread {
    uint32_t pc;
    uint32_t row; /* a reference; NO_ROW if the program has no captures */
};

struct threads {
    struct thread *at; /* in order of priority */
    size_t n;
};

/* Rows of capture slots, reference-counted: threads share a row until one of them writes to it. A
 * row begins with its count, or with the next free row. */
struct rows {
    size_t *at;
    size_t n; /* rows that are in use or have been */
    size_t cap;
    size_t width;
    size_t free; /* NO_ROW if none */
};

struct re2_scratch {
    struct thread *threads; /* the storage of the next three */
    struct threads now;
    struct threads next;
    struct thread *stack;
    uint32_t *seen; /* by instruction: the step in which it was reached */
    uint32_t step;
    size_t cap; /* instructions that the arrays above have room for */
    struct rows rows;
    pcre2_match_data *match;
};

/* One match. */
struct machine {
    const struct re2_program *p;
    struct re2_scratch *s;
    struct sv text;
    bool failed; /* out of memory */
};

/* ---- memory ---------------------------------------------------------------------------------- */

struct re2_scratch *re2_scratch_new(void)
{
    struct re2_scratch *s = calloc(1, sizeof(*s));
    if (s != NULL) {
        s->match = pcre2_match_data_create(1, NULL);
    }
    return s == NULL || s->match == NULL ? re2_scratch_free(s) : s;
}

struct re2_scratch *re2_scratch_free(struct re2_scratch *s)
{
    if (s != NULL) {
        free(s->threads);
        free(s->seen);
        free(s->rows.at);
        pcre2_match_data_free(s->match);
        free(s);
    }
    return NULL;
}

static bool reserve_threads(struct re2_scratch *s, size_t n)
{
    if (n <= s->cap) {
        return true;
    }
    free(s->threads);
    free(s->seen);
    s->threads = calloc(4 * n + 1, sizeof(*s->threads));
    s->seen = calloc(n, sizeof(*s->seen));
    s->step = 0;
    s->cap = 0;
    if (s->threads == NULL || s->seen == NULL) {
        return false;
    }
    s->now.at = s->threads;
    s->next.at = s->threads + n;
    s->stack = s->threads + 2 * n;
    s->cap = n;
    return true;
}

/* ---- rows of captures ------------------------------------------------------------------------ */

/* Starts with all rows free, as wide as this program needs. */
static void reset_rows(struct rows *r, size_t n_slots)
{
    r->cap = r->cap * r->width / (n_slots + 1);
    r->width = n_slots + 1;
    r->n = 0;
    r->free = NO_ROW;
}

static size_t *row_slots(const struct rows *r, size_t row)
{
    return r->at + row * r->width + 1;
}

static bool grow_rows(struct rows *r)
{
    size_t cap = r->cap == 0 ? 16 : 2 * r->cap;
    size_t *at = realloc(r->at, cap * r->width * sizeof(*at));
    if (at == NULL) {
        return false;
    }
    r->at = at;
    r->cap = cap;
    return true;
}

static uint32_t new_row(struct machine *m)
{
    struct rows *r = &m->s->rows;
    size_t row = r->free;
    if (row != NO_ROW) {
        r->free = r->at[row * r->width];
    } else if (r->n < r->cap || grow_rows(r)) {
        row = r->n++;
    } else {
        m->failed = true;
        return NO_ROW;
    }
    r->at[row * r->width] = 1;
    return (uint32_t)row;
}

static void ref_row(struct machine *m, uint32_t row)
{
    if (row != NO_ROW) {
        m->s->rows.at[row * m->s->rows.width]++;
    }
}

static void unref_row(struct machine *m, uint32_t row)
{
    struct rows *r = &m->s->rows;
    if (row != NO_ROW && --r->at[row * r->width] == 0) {
        r->at[row * r->width] = r->free;
        r->free = row;
    }
}

/* Returns the row with one slot changed. Takes over the reference to the row. */
static uint32_t write_slot(struct machine *m, uint32_t row, uint32_t slot, size_t pos)
{
    struct rows *r = &m->s->rows;
    if (row != NO_ROW && r->at[row * r->width] > 1) {
        uint32_t copy = new_row(m);
        if (copy != NO_ROW) {
            memcpy(row_slots(r, copy), row_slots(r, row), (r->width - 1) * sizeof(*r->at));
        }
        unref_row(m, row);
        row = copy;
    }
    if (row != NO_ROW) {
        row_slots(r, row)[slot] = pos;
    }
    return row;
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool word_at(struct sv text, size_t i)
{
    return i < text.n && ascii_is_word((unsigned char)text.p[i]);
}

static bool holds(struct sv text, size_t pos, uint32_t assertion)
{
    bool boundary = (pos > 0 && word_at(text, pos - 1)) != word_at(text, pos);
    switch ((enum re2_op)assertion) {
    case RE2_BEGIN_TEXT:
        return pos == 0;
    case RE2_END_TEXT:
        return pos == text.n;
    case RE2_BEGIN_LINE:
        return pos == 0 || text.p[pos - 1] == '\n';
    case RE2_END_LINE:
        return pos == text.n || text.p[pos] == '\n';
    case RE2_WORD_BOUNDARY:
        return boundary;
    default:
        return !boundary;
    }
}

static size_t push(struct thread *stack, size_t n, uint32_t pc, uint32_t row)
{
    stack[n] = (struct thread){pc, row};
    return n + 1;
}

/* Adds what can be reached from pc at pos without consuming a rune, in order of priority. Takes
 * over the reference to row. */
static void add(struct machine *m, struct threads *list, uint32_t pc, uint32_t row, size_t pos)
{
    struct thread *stack = m->s->stack;
    size_t n = push(stack, 0, pc, row);
    while (n > 0) {
        struct thread t = stack[--n];
        if (m->s->seen[t.pc] == m->s->step) {
            unref_row(m, t.row);
            continue;
        }
        m->s->seen[t.pc] = m->s->step;
        const struct re2_instruction *i = &m->p->at[t.pc];
        switch ((enum re2_instruction_op)i->op) {
        case RE2_I_SPLIT:
            ref_row(m, t.row);
            n = push(stack, n, i->arg, t.row);
            n = push(stack, n, i->next, t.row);
            break;
        case RE2_I_SAVE:
            n = push(stack, n, i->next, write_slot(m, t.row, i->arg, pos));
            break;
        case RE2_I_ASSERT:
            if (holds(m->text, pos, i->arg)) {
                n = push(stack, n, i->next, t.row);
            } else {
                unref_row(m, t.row);
            }
            break;
        default:
            list->at[list->n++] = t;
        }
    }
}

static bool in_ranges(const struct re2_class_set *set, uint32_t rune)
{
    size_t lo = 0;
    size_t hi = set->n_ranges;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (rune > set->ranges[mid].hi) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < set->n_ranges && rune >= set->ranges[lo].lo;
}

/* Returns true if a class has a rune, which has `length` bytes at pos. */
static bool in_class(const struct machine *m, const struct re2_class_set *set, uint32_t rune,
                     size_t pos, size_t length)
{
    if (rune < 0x80) {
        return (set->ascii[rune / 32] >> rune % 32 & 1) != 0;
    }
    if (set->properties == NULL) {
        return in_ranges(set, rune);
    }
    return pcre2_match(set->properties, (PCRE2_SPTR)m->text.p + pos, length, 0, PCRE2_NO_UTF_CHECK,
                       m->s->match, NULL) > 0;
}

static bool consumes(const struct machine *m, const struct re2_instruction *i, uint32_t rune,
                     size_t pos, size_t length)
{
    switch ((enum re2_instruction_op)i->op) {
    case RE2_I_RUNE:
        return rune == i->arg;
    case RE2_I_CLASS:
        return in_class(m, &m->p->classes[i->arg], rune, pos, length);
    default:
        return i->op == RE2_I_ANY; /* RE2_I_MATCH before the end of the text does not count */
    }
}

static void begin_step(struct re2_scratch *s)
{
    if (++s->step == 0) {
        memset(s->seen, 0, s->cap * sizeof(*s->seen));
        s->step = 1;
    }
}

/* Lets every thread consume the rune at pos; returns the position after it. */
static size_t step(struct machine *m, size_t pos)
{
    struct re2_scratch *s = m->s;
    uint32_t rune;
    size_t length = utf8_decode((struct sv){m->text.p + pos, m->text.n - pos}, &rune);
    length = length == 0 ? 1 : length;
    begin_step(s);
    s->next.n = 0;
    for (size_t i = 0; i < s->now.n; i++) {
        struct thread t = s->now.at[i];
        const struct re2_instruction *at = &m->p->at[t.pc];
        if (consumes(m, at, rune, pos, length)) {
            add(m, &s->next, at->next, t.row, pos + length);
        } else {
            unref_row(m, t.row);
        }
    }
    struct threads swap = s->now;
    s->now = s->next;
    s->next = swap;
    return pos + length;
}

/* Reports the captures of the thread of highest priority that has reached the end of both program
 * and text. Returns false if there is none. */
static bool report(const struct machine *m, size_t *slots)
{
    for (size_t i = 0; i < m->s->now.n; i++) {
        struct thread t = m->s->now.at[i];
        if (m->p->at[t.pc].op != RE2_I_MATCH) {
            continue;
        }
        slots[0] = 0;
        slots[1] = m->text.n;
        for (size_t j = 0; j < m->p->n_slots; j++) {
            slots[j + 2] = row_slots(&m->s->rows, t.row)[j];
        }
        return true;
    }
    return false;
}

bool re2_program_match(const struct re2_program *p, struct re2_scratch *s, struct sv text,
                       size_t *slots, bool *ret_matches)
{
    struct machine m = {.p = p, .s = s, .text = text};
    if (!reserve_threads(s, p->n)) {
        return false;
    }
    reset_rows(&s->rows, p->n_slots);
    uint32_t row = p->n_slots == 0 ? NO_ROW : new_row(&m);
    for (size_t i = 0; i < p->n_slots && row != NO_ROW; i++) {
        row_slots(&s->rows, row)[i] = SIZE_MAX;
    }
    begin_step(s);
    s->now.n = 0;
    add(&m, &s->now, (uint32_t)p->start, row, 0);
    for (size_t pos = 0; pos < text.n && s->now.n > 0 && !m.failed;) {
        pos = step(&m, pos);
    }
    *ret_matches = !m.failed && report(&m, slots);
    if (s->rows.cap * s->rows.width > SLOTS_KEPT) {
        free(s->rows.at);
        s->rows = (struct rows){0};
    }
    return !m.failed;
}
