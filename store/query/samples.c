#include "store/query/samples.h"

#include "base/ascii.h"
#include "pprof/check.h"
#include "pprof/columns.h"
#include "pprof/gzip.h"
#include "pprof/quick.h"
#include "store/parts.h"
#include "store/query/named.h"

/* ---- which parts ----------------------------------------------------------------------------- */

static bool same_labels(const struct part *part, const struct store_series *series)
{
    bool same = part->n_labels == series->n_sample_labels;
    for (size_t i = 0; same && i < part->n_labels; i++) {
        same = sv_eq(part->labels[i].name, series->sample_labels[i].name) &&
               sv_eq(part->labels[i].value, series->sample_labels[i].value);
    }
    return same;
}

static bool is_wanted(const struct part *part, const struct store_body *body, size_t column)
{
    for (size_t i = 0; i < body->n_series; i++) {
        if (body->series[i]->column == column && same_labels(part, body->series[i])) {
            return true;
        }
    }
    return false;
}

/* Finds the samples that belong to the series of the body. */
static bool read_parts(struct samples *s, struct scratch *scratch, struct sv plain,
                       const struct store_body *body, struct err *err)
{
    struct parts parts;
    if (!parts_read(scratch, plain, body->labels, body->n_labels, true, &parts, err)) {
        return false;
    }
    bool *wanted = scratch_zeroed(scratch, parts.n + 1, sizeof(*wanted));
    if (wanted == NULL) {
        return err_memory(err);
    }
    for (size_t i = 0; i < parts.n; i++) {
        wanted[i] = is_wanted(&parts.at[i], body, s->column);
    }
    s->by_part = true;
    s->part_of = parts.of_sample;
    s->wanted = wanted;
    return true;
}

bool samples_open(struct samples *s, struct scratch *scratch, const struct store_body *body,
                  size_t column, const struct query_stacks *which, uint64_t seed, struct err *err)
{
    struct sv plain = SV("");
    *s = (struct samples){.column = column, .which = which};
    if (body->format != PROFILE_PPROF) {
        return err_set(err, ERR_INPUT, "not pprof: its stacks cannot be read");
    }
    bool ok = gzip_plain(scratch, body->data, SCRATCH_BUF_MAX, gzip_claim(body->data), &plain, err);
    plain = ok ? named_plain(body, scratch, plain) : plain;
    ok = ok && pprof_index_whole(&s->x, scratch, plain, "query", seed, err) &&
         (body->whole || read_parts(s, scratch, plain, body, err));
    size_t types = ok ? s->x.summary.n[PROFILE_SAMPLE_TYPE] : 0;
    if (ok && column >= types) {
        ok = err_set(err, ERR_INPUT, "no sample type %zu among %zu", column, types);
    }
    if (!ok) {
        scratch_explain(scratch, err);
        return false;
    }
    return true;
}

/* ---- which samples --------------------------------------------------------------------------- */

/* Compares hexadecimal digits, of either case. */
static bool same_id(struct sv a, struct sv b)
{
    bool same = a.n == b.n;
    for (size_t i = 0; same && i < a.n; i++) {
        same = ascii_lower(a.p[i]) == ascii_lower(b.p[i]);
    }
    return same;
}

static bool is_listed(struct sv id, const struct sv *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (same_id(id, list[i])) {
            return true;
        }
    }
    return false;
}

/* Returns true if a label of a sample names one of the selected spans or traces. */
static bool label_fits(const struct samples *s, struct sv message)
{
    uint64_t v[LABEL_STR + 1] = {0};
    const struct query_stacks *which = s->which;
    wire_read_numbers(message, v, LABEL_STR + 1);
    struct sv key = pprof_string(&s->x, v[LABEL_KEY]);
    struct sv value = pprof_string(&s->x, v[LABEL_STR]);
    if (sv_eq_str(key, "span_id") || sv_eq_str(key, "profile_id")) {
        return is_listed(value, which->span_ids, which->n_span_ids);
    }
    return sv_eq_str(key, "trace_id") && is_listed(value, which->trace_ids, which->n_trace_ids);
}

/* Reads values of a sample, of which *n were read before. If the value of the column is among them,
 * sets *ret_value. Returns false if a value is negative. */
static bool read_values(const struct wire_field *f, size_t column, size_t *n, int64_t *ret_value)
{
    struct wire_numbers numbers = wire_numbers_of(f);
    uint64_t v;
    while (wire_numbers_next(&numbers, &v)) {
        if ((int64_t)v < 0) {
            return false;
        }
        *ret_value = (*n)++ == column ? (int64_t)v : *ret_value;
    }
    return true;
}

/* Reads a sample that is written as usual. Returns false if it is not. Otherwise *ret_sign is
 * negative if one of the values is. */
static inline bool read_usual(const struct samples *s, struct sv message, struct sample *ret,
                              int64_t *ret_sign)
{
    struct rest r = rest_of(s->x.plain, message);
    size_t n = 0;
    ret->ids = take_bytes(&r, SAMPLE_LOCATION_ID);
    for (; is_next(&r, SAMPLE_VALUE << 3 | WIRE_VARINT); n++) {
        int64_t value = (int64_t)take(&r, SAMPLE_VALUE);
        *ret_sign |= value;
        ret->value = n == s->column ? value : ret->value;
    }
    struct wire_field packed = {.bytes = take_bytes(&r, SAMPLE_VALUE)};
    if (!read_values(&packed, s->column, &n, &ret->value)) {
        *ret_sign = -1;
    }
    while (is_next(&r, SAMPLE_LABEL << 3 | WIRE_BYTES)) {
        take_bytes(&r, SAMPLE_LABEL);
    }
    return is_good_end(&r);
}

/* Reads any sample. Returns false if it does not count. */
static bool read_any(const struct samples *s, struct sv message, int64_t *ret_value)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    bool fits = s->which->n_span_ids == 0 && s->which->n_trace_ids == 0;
    size_t n = 0;
    *ret_value = 0;
    while (wire_next(&r, &f)) {
        if (f.number == SAMPLE_VALUE && !read_values(&f, s->column, &n, ret_value)) {
            return false;
        }
        if (f.number == SAMPLE_LABEL && !fits) {
            fits = label_fits(s, f.bytes);
        }
    }
    return fits && *ret_value > 0;
}

/* Reads the value of the column. Returns false if the sample does not count. */
static inline bool read_sample(const struct samples *s, struct sv message, struct sample *ret)
{
    int64_t sign = 0;
    ret->message = message;
    ret->value = 0;
    if (s->which->n_span_ids == 0 && s->which->n_trace_ids == 0 &&
        read_usual(s, message, ret, &sign)) {
        return sign >= 0 && ret->value > 0;
    }
    ret->ids = (struct sv){NULL, 0};
    return read_any(s, message, &ret->value);
}

bool samples_next(struct samples *s, struct sample *ret)
{
    const struct pprof_entries *samples = &s->x.entries[PROFILE_SAMPLE];
    while (s->next < samples->ids.n) {
        size_t i = s->next++;
        if (s->by_part && (s->part_of[i] == PART_NONE || !s->wanted[s->part_of[i]])) {
            continue;
        }
        if (read_sample(s, pprof_span_of(&s->x, samples->spans[i]), ret)) {
            ret->index = i;
            return true;
        }
    }
    return false;
}

bool sample_ids_next(struct sample_ids *ids, const struct samples *s, size_t *ret_place)
{
    uint64_t id;
    for (;;) {
        while (ids->begun && wire_numbers_next(&ids->numbers, &id)) {
            if (pprof_ids_find(&s->x.entries[PROFILE_LOCATION].ids, id, ret_place)) {
                return true;
            }
        }
        struct wire_field f = {.number = 0};
        do {
            if (!wire_next(&ids->reader, &f)) {
                return false;
            }
        } while (f.number != SAMPLE_LOCATION_ID);
        ids->numbers = wire_numbers_of(&f);
        ids->begun = true;
    }
}
