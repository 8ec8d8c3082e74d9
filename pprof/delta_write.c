/* Writes a profile with other samples, without the entries that they do not use. Ids and indexes of
 * strings stay (an unused string becomes empty), so everything else is copied as it is. Only
 * strings that are not UTF-8 are repaired: servers refuse the whole profile for one. */
#include <string.h>

#include "base/utf8.h"
#include "pprof/delta_private.h"
#include "pprof/fields.h"
#include "pprof/put.h"

struct writer_out {
    struct pprof_index *x;
    struct buf *out;
    struct buf text;       /* the string that is repaired */
    unsigned char *sample; /* the one that is copied; room for the largest */
};

/* ---- used entries ---------------------------------------------------------------------------- */

static void use_message(struct pprof_index *x, const struct field_table *table, struct sv message);

/* Marks a mapping or a function, and its strings. */
static inline __attribute__((always_inline)) void use_entry(struct pprof_index *x, unsigned field,
                                                            uint64_t id)
{
    struct pprof_entries *e = &x->entries[field];
    bool *strings = x->entries[PROFILE_STRING].used;
    size_t place;
    if (!pprof_ids_find(&e->ids, id, &place) || e->used[place]) {
        return;
    }
    e->used[place] = true;
    if (field == PROFILE_FUNCTION) {
        const struct pprof_function *f = &x->functions[place];
        strings[f->name] = strings[f->system_name] = strings[f->file] = true;
    } else {
        use_message(x, profile_table.sub[field], pprof_span_of(x, e->spans[place]));
    }
}

/* Marks the locations of a sample, but not yet what they refer to. */
static inline __attribute__((always_inline)) void use_locations(struct pprof_index *x,
                                                                struct wire_numbers ids)
{
    struct pprof_entries *e = &x->entries[PROFILE_LOCATION];
    uint64_t id;
    size_t place;
    while (wire_numbers_next(&ids, &id)) {
        if (pprof_ids_find(&e->ids, id, &place)) {
            e->used[place] = true;
        }
    }
}

/* Marks what a field refers to. */
static inline __attribute__((always_inline)) void
use_field(struct pprof_index *x, const struct field_table *table, const struct wire_field *f)
{
    struct wire_numbers numbers = wire_numbers_of(f);
    uint64_t number;
    switch (field_kind_of(table, f)) {
    case FIELD_STRING:
        x->entries[PROFILE_STRING].used[f->value] = true;
        break;
    case FIELD_STRINGS:
        while (wire_numbers_next(&numbers, &number)) {
            x->entries[PROFILE_STRING].used[number] = true;
        }
        break;
    case FIELD_NUMBER:
    case FIELD_ID:
        if (table->ref[f->number] != 0) {
            use_entry(x, table->ref[f->number], f->value);
        }
        break;
    case FIELD_IDS:
        use_locations(x, numbers);
        break;
    case FIELD_MESSAGE:
        use_message(x, table->sub[f->number], f->bytes);
        break;
    default:
        break;
    }
}

static void use_message(struct pprof_index *x, const struct field_table *table, struct sv message)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        use_field(x, table, &f);
    }
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Copies a sample with these values, which come last. The head, whose size is known at the end, is
 * put in front of the rest. */
static void put_sample(struct writer_out *w, struct pprof_span sample, const int64_t *values)
{
    struct wire_reader r = wire_reader_of(pprof_span_of(w->x, sample));
    struct wire_field f = {.number = 0};
    unsigned char head[WIRE_HEAD_MAX];
    size_t types = w->x->summary.n[PROFILE_SAMPLE_TYPE];
    size_t n = 0;
    size_t piece = 0; /* what is copied next begins there */
    unsigned char *from = w->sample + WIRE_HEAD_MAX;
    unsigned char *at = from;
    while (wire_next(&r, &f)) {
        if (f.number == SAMPLE_VALUE) {
            at = mempcpy(at, r.in.p + piece, r.field_start - piece);
            piece = r.at;
        } else {
            use_field(w->x, profile_table.sub[PROFILE_SAMPLE], &f);
        }
    }
    at = mempcpy(at, r.in.p + piece, r.in.n - piece);
    for (size_t i = 0; i < types; i++) {
        n += wire_number_size((uint64_t)values[i]);
    }
    at += wire_encode_head(SAMPLE_VALUE, n, at);
    for (size_t i = 0; i < types; i++) {
        at += wire_encode((uint64_t)values[i], at);
    }
    n = wire_encode_head(PROFILE_SAMPLE, (size_t)(at - from), head);
    from -= n;
    memcpy(from, head, n);
    buf_append(w->out, from, (size_t)(at - from));
}

static void put_samples(struct writer_out *w, const struct delta_stacks *s)
{
    size_t types = w->x->summary.n[PROFILE_SAMPLE_TYPE];
    for (size_t i = 0; i < s->n_moved; i++) {
        uint32_t row = s->moved[i];
        put_sample(w, w->x->entries[PROFILE_SAMPLE].spans[s->rows[row].sample],
                   s->values + row * types);
    }
}

/* Marks what the marked locations refer to. */
static void use_of_locations(struct pprof_index *x)
{
    const struct pprof_entries *e = &x->entries[PROFILE_LOCATION];
    for (size_t i = 0; i < e->ids.n; i++) {
        if (e->used[i]) {
            use_message(x, profile_table.sub[PROFILE_LOCATION], pprof_span_of(x, e->spans[i]));
        }
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void put_types(struct writer_out *w)
{
    struct wire_reader r = wire_reader_of(w->x->plain);
    struct wire_field f = {.number = 0};
    size_t n = 0;
    while (n < w->x->summary.n[PROFILE_SAMPLE_TYPE] && wire_next(&r, &f)) {
        if (f.number == PROFILE_SAMPLE_TYPE) {
            wire_put_bytes(w->out, f.number, f.bytes.p, f.bytes.n);
            n++;
        }
    }
}

/* Is a string used, and UTF-8? */
static bool is_good_string(const struct pprof_index *x, size_t i)
{
    return x->entries[PROFILE_STRING].used[i] && utf8_valid(pprof_string(x, i));
}

/* Writes a string that is unused or not UTF-8. */
static void put_other_string(struct writer_out *w, size_t i)
{
    static const char empty[] = {PROFILE_STRING << 3 | WIRE_BYTES, 0};
    if (!w->x->entries[PROFILE_STRING].used[i]) {
        buf_append(w->out, empty, sizeof(empty));
        return;
    }
    buf_clear(&w->text);
    utf8_repair(pprof_string(w->x, i), &w->text);
    wire_put_bytes(w->out, PROFILE_STRING, w->text.data, w->text.len);
}

/* Whether a field is to be copied as it is. i: how many of its number came before it. */
static bool copies(struct writer_out *w, uint64_t number, size_t i)
{
    switch (number) {
    case PROFILE_SAMPLE_TYPE:
    case PROFILE_SAMPLE:
    case PROFILE_DURATION_NANOS:
        return false;
    case PROFILE_MAPPING:
    case PROFILE_LOCATION:
    case PROFILE_FUNCTION:
        return w->x->entries[number].used[i];
    default:
        return true;
    }
}

/* Copies the used entries, except for types, samples and the duration; what stands together in one
 * piece. */
static void put_rest(struct writer_out *w)
{
    struct pprof_index *x = w->x;
    struct wire_reader r = wire_reader_of(x->plain);
    struct wire_field f = {.number = 0};
    size_t seen[PROFILE_STRING + 1] = {0};
    size_t from = 0; /* the piece that is to be copied: up to the field at hand */
    while (wire_next(&r, &f)) {
        size_t i = f.number <= PROFILE_STRING ? seen[f.number]++ : 0;
        bool good = f.number != PROFILE_STRING || is_good_string(x, i);
        if (good && copies(w, f.number, i)) {
            continue;
        }
        if (r.field_start > from) {
            buf_append(w->out, x->plain.p + from, r.field_start - from);
        }
        from = r.at;
        if (!good) {
            put_other_string(w, i);
        }
    }
    buf_append(w->out, x->plain.p + from, x->plain.n - from);
}

/* The bytes that any sample may take. */
static size_t sample_room(const struct pprof_index *x, const struct delta_stacks *s)
{
    size_t largest = 0;
    for (size_t i = 0; i < s->n_moved; i++) {
        uint32_t n = x->entries[PROFILE_SAMPLE].spans[s->rows[s->moved[i]].sample].n;
        largest = n > largest ? n : largest;
    }
    return 2 * WIRE_HEAD_MAX + largest + DELTA_TYPES_MAX * WIRE_NUMBER_MAX;
}

bool delta_write(struct pprof_index *x, const struct delta_stacks *s, int64_t duration_nanos,
                 struct scratch *scratch, struct buf *out)
{
    struct writer_out w = {.x = x, .out = out};
    w.sample = scratch_array(scratch, sample_room(x, s), 1);
    if (w.sample == NULL) {
        return false;
    }
    buf_init(&w.text, 3 * x->plain.n);
    put_types(&w);
    put_samples(&w, s);
    use_of_locations(x);
    x->entries[PROFILE_STRING].used[0] = true;
    put_rest(&w);
    if (duration_nanos != 0) {
        wire_put_number(out, PROFILE_DURATION_NANOS, (uint64_t)duration_nanos);
    }
    bool ok = buf_ok(out) && buf_ok(&w.text);
    buf_done(&w.text);
    return ok;
}
