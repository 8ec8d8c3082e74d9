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

static void use_string(struct pprof_index *x, uint64_t i)
{
    x->string_used[i] = true;
}

static void use_strings(struct pprof_index *x, const struct field_table *table, struct sv message);

static void use_strings_of_field(struct pprof_index *x, const struct field_table *table,
                                 const struct wire_field *f)
{
    struct wire_numbers numbers = wire_numbers_of(f);
    uint64_t string;
    switch (field_kind_of(table, f)) {
    case FIELD_STRING:
        use_string(x, f->value);
        break;
    case FIELD_STRINGS:
        while (wire_numbers_next(&numbers, &string)) {
            use_string(x, string);
        }
        break;
    case FIELD_MESSAGE:
        use_strings(x, table->sub[f->number], f->bytes);
        break;
    default:
        break;
    }
}

/* Marks the strings that a message refers to. */
static void use_strings(struct pprof_index *x, const struct field_table *table, struct sv message)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        use_strings_of_field(x, table, &f);
    }
}

/* ---- samples --------------------------------------------------------------------------------- */

static bool all_zero(const int64_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (values[i] != 0) {
            return false;
        }
    }
    return true;
}

static void use_locations(struct pprof_index *x, const struct wire_field *f)
{
    struct wire_numbers ids = wire_numbers_of(f);
    uint64_t id;
    size_t place;
    while (wire_numbers_next(&ids, &id)) {
        if (pprof_ids_find(&x->location_ids, id, &place)) {
            x->locations[place].used = true;
        }
    }
}

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
        if (f.number == SAMPLE_LOCATION_ID) {
            use_locations(w->x, &f);
        } else if (f.number == SAMPLE_LABEL) {
            use_strings_of_field(w->x, profile_table.sub[PROFILE_SAMPLE], &f);
        }
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
        if (!all_zero(values + i * types, types)) {
            put_sample(w, stacks[i].sample, values + i * types);
            written++;
        }
    }
    return written;
}

/* ---- used entries ---------------------------------------------------------------------------- */

static void use_function(struct pprof_index *x, struct sv line)
{
    struct wire_reader r = wire_reader_of(line);
    struct wire_field f = {.number = 0};
    size_t place;
    while (wire_next(&r, &f)) {
        if (f.number == LINE_FUNCTION_ID && pprof_ids_find(&x->function_ids, f.value, &place) &&
            !x->functions[place].used) {
            x->functions[place].used = true;
            use_strings(x, profile_table.sub[PROFILE_FUNCTION],
                        pprof_span_of(x, x->functions[place].span));
        }
    }
}

static void use_mapping(struct pprof_index *x, uint64_t id)
{
    size_t place;
    if (id != 0 && pprof_ids_find(&x->mapping_ids, id, &place) && !x->mappings[place].used) {
        x->mappings[place].used = true;
        use_strings(x, profile_table.sub[PROFILE_MAPPING],
                    pprof_span_of(x, x->mappings[place].span));
    }
}

static void use_parts_of_locations(struct pprof_index *x)
{
    for (size_t i = 0; i < x->location_ids.n; i++) {
        if (!x->locations[i].used) {
            continue;
        }
        use_mapping(x, x->locations[i].mapping);
        struct wire_reader r = wire_reader_of(pprof_span_of(x, x->locations[i].span));
        struct wire_field f = {.number = 0};
        while (wire_next(&r, &f)) {
            if (f.number == LOCATION_LINE) {
                use_function(x, f.bytes);
            }
        }
    }
}

/* The strings that the profile itself refers to. */
static void use_strings_of_profile(struct pprof_index *x)
{
    struct wire_reader r = wire_reader_of(x->plain);
    struct wire_field f = {.number = 0};
    use_string(x, 0);
    while (wire_next(&r, &f)) {
        if (f.number < PROFILE_SAMPLE || f.number > PROFILE_FUNCTION) {
            use_strings_of_field(x, &profile_table, &f);
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

/* Writes a string that is unused or not UTF-8. True if it is to be copied as it is. */
static bool put_other_string(struct writer_out *w, size_t i)
{
    if (!w->x->string_used[i]) {
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
            keep = x->mappings[i].used;
            break;
        case PROFILE_LOCATION:
            keep = x->locations[i].used;
            break;
        case PROFILE_FUNCTION:
            keep = x->functions[i].used;
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
    use_parts_of_locations(x);
    use_strings_of_profile(x);
    put_rest(&w);
    out->failed = out->failed || !buf_ok(&w.message);
    buf_done(&w.message);
    if (duration_nanos != 0) {
        wire_put_number(out, PROFILE_DURATION_NANOS, (uint64_t)duration_nanos);
    }
    return written;
}
