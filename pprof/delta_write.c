/* Writes a profile with other samples, without the entries that they do not use. Ids and indexes of
 * strings stay (an unused string becomes empty), so everything else is copied as it is. Only
 * strings that are not UTF-8 are repaired: servers refuse the whole profile for one. */
#include "base/utf8.h"
#include "pprof/delta_private.h"
#include "pprof/fields.h"
#include "pprof/put.h"

struct writer_out {
    struct pprof_index *x;
    struct buf *out;
    struct buf message; /* the sample or string being made */
};

/* ---- used entries ---------------------------------------------------------------------------- */

static void use_message(struct pprof_index *x, const struct field_table *table, struct sv message);

/* Marks an entry, and all that it refers to. */
static inline __attribute__((always_inline)) void use_entry(struct pprof_index *x, unsigned field,
                                                            uint64_t id)
{
    struct pprof_entries *e = &x->entries[field];
    size_t place;
    if (pprof_ids_find(&e->ids, id, &place) && !e->used[place]) {
        e->used[place] = true;
        use_message(x, profile_table.sub[field], pprof_span_of(x, e->spans[place]));
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
        while (wire_numbers_next(&numbers, &number)) {
            use_entry(x, table->ref[f->number], number);
        }
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

/* What the profile itself refers to. */
static void use_profile(struct pprof_index *x)
{
    struct wire_reader r = wire_reader_of(x->plain);
    struct wire_field f = {.number = 0};
    x->entries[PROFILE_STRING].used[0] = true;
    while (wire_next(&r, &f)) {
        if (f.number < PROFILE_SAMPLE || f.number > PROFILE_FUNCTION) {
            use_field(x, &profile_table, &f);
        }
    }
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Copies a sample with these values. */
static void put_sample(struct writer_out *w, struct pprof_span sample, const int64_t *values)
{
    struct wire_reader r = wire_reader_of(pprof_span_of(w->x, sample));
    struct wire_field f = {.number = 0};
    unsigned char packed[DELTA_TYPES_MAX * WIRE_NUMBER_MAX];
    size_t n = 0;
    buf_clear(&w->message);
    while (wire_next(&r, &f)) {
        if (f.number == SAMPLE_VALUE) {
            continue;
        }
        use_field(w->x, profile_table.sub[PROFILE_SAMPLE], &f);
        buf_append(&w->message, r.in.p + r.field_start, r.at - r.field_start);
    }
    for (size_t i = 0; i < w->x->summary.n[PROFILE_SAMPLE_TYPE]; i++) {
        n += wire_encode((uint64_t)values[i], packed + n);
    }
    wire_put_bytes(&w->message, SAMPLE_VALUE, packed, n);
    wire_put_bytes(w->out, PROFILE_SAMPLE, w->message.data, w->message.len);
}

static size_t put_samples(struct writer_out *w, const struct delta_stack *stacks,
                          const int64_t *values, size_t n)
{
    size_t written = 0;
    size_t types = w->x->summary.n[PROFILE_SAMPLE_TYPE];
    for (size_t i = 0; i < n; i++) {
        const int64_t *row = values + i * types;
        size_t zeros = 0;
        while (zeros < types && row[zeros] == 0) {
            zeros++;
        }
        if (zeros < types) {
            put_sample(w, stacks[i].sample, row);
            written++;
        }
    }
    return written;
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

/* Writes a string that is unused or not UTF-8. True if it is to be copied as it is. */
static bool put_other_string(struct writer_out *w, size_t i)
{
    if (!w->x->entries[PROFILE_STRING].used[i]) {
        wire_put_bytes(w->out, PROFILE_STRING, "", 0);
        return false;
    }
    struct sv text = pprof_string(w->x, i);
    if (utf8_valid(text)) {
        return true;
    }
    buf_clear(&w->message);
    utf8_repair(text, &w->message);
    wire_put_bytes(w->out, PROFILE_STRING, w->message.data, w->message.len);
    return false;
}

/* Copies the used entries, except for types, samples and the duration. */
static void put_rest(struct writer_out *w)
{
    struct pprof_index *x = w->x;
    struct wire_reader r = wire_reader_of(x->plain);
    struct wire_field f = {.number = 0};
    size_t seen[PROFILE_STRING + 1] = {0};
    while (wire_next(&r, &f)) {
        size_t i = f.number <= PROFILE_STRING ? seen[f.number]++ : 0;
        bool keep = true;
        switch (f.number) {
        case PROFILE_SAMPLE_TYPE:
        case PROFILE_SAMPLE:
        case PROFILE_DURATION_NANOS:
            keep = false;
            break;
        case PROFILE_MAPPING:
        case PROFILE_LOCATION:
        case PROFILE_FUNCTION:
            keep = x->entries[f.number].used[i];
            break;
        case PROFILE_STRING:
            keep = put_other_string(w, i);
            break;
        default:
            break;
        }
        if (keep) {
            buf_append(w->out, r.in.p + r.field_start, r.at - r.field_start);
        }
    }
}

size_t delta_write(struct pprof_index *x, const struct delta_stack *stacks, const int64_t *values,
                   size_t n, int64_t duration_nanos, struct buf *out)
{
    struct writer_out w = {.x = x, .out = out};
    buf_init(&w.message, 3 * x->plain.n + DELTA_TYPES_MAX * WIRE_NUMBER_MAX + 32);
    put_types(&w);
    size_t written = put_samples(&w, stacks, values, n);
    use_profile(x);
    put_rest(&w);
    out->failed = out->failed || !buf_ok(&w.message);
    buf_done(&w.message);
    if (duration_nanos != 0) {
        wire_put_number(out, PROFILE_DURATION_NANOS, (uint64_t)duration_nanos);
    }
    return written;
}
