#include "store/query/spans.h"

#include <string.h>

#include "base/ascii.h"
#include "base/clock.h"
#include "store/query/bodies.h"
#include "store/query/samples.h"

struct reading {
    struct pieces *pieces;
    const struct observer *observer;
    struct scratch *scratch;
    uint64_t seed;
};

/* Writes n hexadecimal digits in lower case. Returns false if the text is anything else, or if all
 * digits are 0. */
static bool read_id(struct sv text, size_t n, char *out)
{
    bool any = false;
    for (size_t i = 0; i < text.n; i++) {
        if (text.n != n || ascii_hex_value(text.p[i]) < 0) {
            return false;
        }
        out[i] = ascii_lower(text.p[i]);
        any = any || out[i] != '0';
    }
    return any;
}

/* Reads the id of a sample's span, followed by that of its trace, if it has one. Returns false if
 * the sample belongs to no span. */
static bool read_span(const struct samples *s, const struct sample *sample,
                      char out[OBSERVATION_ID_MAX + 1])
{
    struct wire_reader r = wire_reader_of(sample->message);
    struct wire_field f = {.number = 0};
    bool has_span = false;
    memset(out, 0, OBSERVATION_ID_MAX + 1);
    char trace[QUERY_TRACE_ID_LENGTH] = "";
    bool has_trace = false;
    while (wire_next(&r, &f)) {
        uint64_t v[LABEL_STR + 1] = {0};
        if (f.number != SAMPLE_LABEL) {
            continue;
        }
        wire_read_numbers(f.bytes, v, LABEL_STR + 1);
        struct sv key = pprof_string(&s->x, v[LABEL_KEY]);
        struct sv value = pprof_string(&s->x, v[LABEL_STR]);
        if (!has_span && (sv_eq_str(key, "span_id") || sv_eq_str(key, "profile_id"))) {
            has_span = read_id(value, QUERY_SPAN_ID_LENGTH, out);
        } else if (!has_trace && sv_eq_str(key, "trace_id")) {
            has_trace = read_id(value, QUERY_TRACE_ID_LENGTH, trace);
        }
    }
    if (has_trace) {
        memcpy(out + QUERY_SPAN_ID_LENGTH, trace, sizeof(trace));
    }
    return has_span;
}

static bool read_samples(struct reading *r, const struct store_body *body, size_t i,
                         struct err *err)
{
    static const struct query_stacks all;
    char id[OBSERVATION_ID_MAX + 1];
    struct samples s;
    struct sample sample;
    struct store_body part = *body;
    part.series = &body->series[i];
    part.n_series = 1;
    part.whole = body->whole && body->n_series == 1;
    bool ok = samples_open(&s, r->scratch, &part, body->series[i]->column, &all, r->seed, err);
    while (ok && samples_next(&s, &sample)) {
        const struct piece piece = {.series = body->series[i],
                                    .time_ns = body->from_ns,
                                    .value = sample.value,
                                    .id = id,
                                    .shared = true,
                                    .batch = (uint64_t)(body->from_ns / NS_PER_MS)};
        ok = !read_span(&s, &sample, id) || pieces_add(r->pieces, &piece, r->observer, err);
    }
    if (!ok) {
        scratch_explain(r->scratch, err);
    }
    scratch_reset(r->scratch);
    return ok;
}

static bool spans_on_body(void *arg, const struct store_body *body, struct err *err)
{
    struct reading *r = arg;
    for (size_t i = 0; i < body->n_series; i++) {
        if (!read_samples(r, body, i, err)) {
            return false;
        }
    }
    return true;
}

bool spans_each(const struct query *q, const struct query_scope *scope, struct pieces *pieces,
                const struct observer *observer, size_t work_max, struct err *err)
{
    static const struct query_stacks all;
    struct reading r = {
        .pieces = pieces, .observer = observer, .scratch = scratch_new(), .seed = query_seed()};
    if (r.scratch == NULL) {
        return err_memory(err);
    }
    scratch_limit(r.scratch, work_max);
    bool ok = query_each_body(q, scope, &all, spans_on_body, &r, err);
    scratch_free(r.scratch);
    return ok && pieces_flush(pieces, observer, err);
}
