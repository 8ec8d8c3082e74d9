/* Runs a program on all its threads at once, one rune of the text after the other (Pike's machine,
 * as in regexp/exec.go). */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "relabel/re2/program.h"

#define NO_ROW UINT32_MAX
/* More rows than this many slots are given back after a match. */
#define SLOTS_KEPT ((size_t)64 * 1024)

/* A place in the program, and the row of captures that led there. */
struct thread {
    uint32_t pc;
    uint32_t row; /* a reference; NO_ROW if the program has no captures */
};

struct threads {
    struct thread *at; /* in order of priority */
    size_t n;
};

/* Rows of capture slots, reference-counted: threads share a row until one of them writes to it. */
struct rows {
    size_t *slots;
    uint32_t *refs;
    uint32_t *free;
    size_t n_free;
    size_t cap;
    size_t width;
};

struct re2_scratch {
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

static void free_threads(struct re2_scratch *s)
{
    free(s->now.at);
    free(s->next.at);
    free(s->stack);
    free(s->seen);
    s->now.at = s->next.at = s->stack = NULL;
    s->seen = NULL;
    s->cap = 0;
}

static void free_rows(struct rows *r)
{
    free(r->slots);
    free(r->refs);
    free(r->free);
    *r = (struct rows){0};
}

struct re2_scratch *re2_scratch_free(struct re2_scratch *s)
{
    if (s != NULL) {
        free_threads(s);
        free_rows(&s->rows);
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
    free_threads(s);
    s->now.at = calloc(n, sizeof(*s->now.at));
    s->next.at = calloc(n, sizeof(*s->next.at));
    s->stack = calloc(2 * n + 1, sizeof(*s->stack));
    s->seen = calloc(n, sizeof(*s->seen));
    s->step = 0;
    if (s->now.at == NULL || s->next.at == NULL || s->stack == NULL || s->seen == NULL) {
        free_threads(s);
        return false;
    }
    s->cap = n;
    return true;
}

static bool grow_rows(struct rows *r)
{
    size_t cap = r->cap == 0 ? 16 : 2 * r->cap;
    size_t *slots = realloc(r->slots, cap * r->width * sizeof(*slots));
    r->slots = slots == NULL ? r->slots : slots;
    uint32_t *refs = realloc(r->refs, cap * sizeof(*refs));
    r->refs = refs == NULL ? r->refs : refs;
    uint32_t *free_list = realloc(r->free, cap * sizeof(*free_list));
    r->free = free_list == NULL ? r->free : free_list;
    if (slots == NULL || refs == NULL || free_list == NULL) {
        return false;
    }
    for (size_t i = cap; i > r->cap; i--) {
        r->free[r->n_free++] = (uint32_t)(i - 1);
    }
    r->cap = cap;
    return true;
}

/* Starts with all rows free, as wide as this program needs. */
static void reset_rows(struct rows *r, size_t width)
{
    if (r->width != width) {
        free_rows(r);
        r->width = width;
    }
    r->n_free = 0;
    for (size_t i = r->cap; i > 0; i--) {
        r->free[r->n_free++] = (uint32_t)(i - 1);
    }
}

/* ---- rows of captures ------------------------------------------------------------------------ */

static uint32_t new_row(struct machine *m)
{
    struct rows *r = &m->s->rows;
    if (r->n_free == 0 && !grow_rows(r)) {
        m->failed = true;
        return NO_ROW;
    }
    uint32_t row = r->free[--r->n_free];
    r->refs[row] = 1;
    return row;
}

static void ref_row(struct machine *m, uint32_t row)
{
    if (row != NO_ROW) {
        m->s->rows.refs[row]++;
    }
}

static void unref_row(struct machine *m, uint32_t row)
{
    struct rows *r = &m->s->rows;
    if (row != NO_ROW && --r->refs[row] == 0) {
        r->free[r->n_free++] = row;
    }
}

/* The row with one slot changed; takes over the reference. */
static uint32_t write_slot(struct machine *m, uint32_t row, uint32_t slot, size_t pos)
{
    struct rows *r = &m->s->rows;
    if (row != NO_ROW && r->refs[row] > 1) {
        uint32_t copy = new_row(m);
        if (copy != NO_ROW) {
            memcpy(r->slots + copy * r->width, r->slots + row * r->width,
                   r->width * sizeof(*r->slots));
        }
        unref_row(m, row);
        row = copy;
    }
    if (row != NO_ROW) {
        r->slots[row * r->width + slot] = pos;
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

/* rune has `length` bytes at pos. */
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
        return i->op == RE2_I_ANY; /* a match before the end of the text is none */
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

/* The captures of the thread of highest priority that has come to the end of program and text. */
static enum re2_result result(const struct machine *m, size_t *slots, size_t n_groups)
{
    const struct rows *r = &m->s->rows;
    for (size_t i = 0; i < m->s->now.n; i++) {
        struct thread t = m->s->now.at[i];
        if (m->p->at[t.pc].op != RE2_I_MATCH) {
            continue;
        }
        slots[0] = 0;
        slots[1] = m->text.n;
        for (size_t j = 2; j < 2 * n_groups; j++) {
            slots[j] = t.row == NO_ROW ? SIZE_MAX : r->slots[t.row * r->width + j - 2];
        }
        return RE2_MATCH;
    }
    return RE2_NO_MATCH;
}

enum re2_result re2_program_match(const struct re2_program *p, struct re2_scratch *s,
                                  struct sv text, size_t *slots, size_t n_groups)
{
    struct machine m = {.p = p, .s = s, .text = text};
    if (!reserve_threads(s, p->n)) {
        return RE2_NO_MEMORY;
    }
    reset_rows(&s->rows, p->n_slots);
    uint32_t row = p->n_slots == 0 ? NO_ROW : new_row(&m);
    for (size_t i = 0; i < p->n_slots && row != NO_ROW; i++) {
        s->rows.slots[row * p->n_slots + i] = SIZE_MAX;
    }
    begin_step(s);
    s->now.n = 0;
    add(&m, &s->now, (uint32_t)p->start, row, 0);
    for (size_t pos = 0; pos < text.n && s->now.n > 0 && !m.failed;) {
        pos = step(&m, pos);
    }
    enum re2_result r = m.failed ? RE2_NO_MEMORY : result(&m, slots, n_groups);
    if (s->rows.cap * s->rows.width > SLOTS_KEPT) {
        free_rows(&s->rows);
    }
    return r;
}
