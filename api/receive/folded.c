#include "api/receive/folded.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/utf8.h"
#include "pprof/put.h"

/* Indexes of the strings before the names of functions: "", type, unit, and the two of the period.
 */
enum { STRING_TYPE = 1, STRING_UNIT, STRING_CPU, STRING_NANOSECONDS, STRING_FUNCTIONS };
#define SHOWN_MAX 100

static const struct folded_type types[] = {
    {"cpu", "process_cpu", "cpu", "nanoseconds", .is_time = true},
    {"itimer", "process_cpu", "cpu", "nanoseconds", .is_time = true},
    {"wall", "wall", "wall", "nanoseconds", .is_time = true},
    {"alloc_objects", "memory", "alloc_objects", "count", false},
    {"alloc_space", "memory", "alloc_space", "bytes", false},
    {"inuse_objects", "memory", "inuse_objects", "count", false},
    {"inuse_space", "memory", "inuse_space", "bytes", false},
    {"goroutines", "goroutine", "goroutine", "count", false},
    {"mutex_count", "mutex", "contentions", "count", false},
    {"mutex_duration", "mutex", "delay", "nanoseconds", false},
    {"lock_count", "mutex", "contentions", "count", false},
    {"lock_duration", "mutex", "delay", "nanoseconds", false},
    {"block_count", "block", "contentions", "count", false},
    {"block_duration", "block", "delay", "nanoseconds", false},
    {"alloc_in_new_tlab_objects", "memory", "alloc_in_new_tlab_objects", "count", false},
    {"alloc_in_new_tlab_bytes", "memory", "alloc_in_new_tlab_bytes", "bytes", false},
    {"alloc_outside_tlab_objects", "memory", "alloc_outside_tlab_objects", "count", false},
    {"alloc_outside_tlab_bytes", "memory", "alloc_outside_tlab_bytes", "bytes", false},
    {"live", "memory", "live", "count", false},
    {"exceptions", "exceptions", "exceptions", "count", false},
};

const struct folded_type *folded_type_find(struct sv suffix)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (sv_eq_str(suffix, types[i].suffix)) {
            return &types[i];
        }
    }
    return NULL;
}

const struct folded_type *folded_type_of(struct sv app, struct sv *ret_service)
{
    size_t dot = app.n;
    while (dot > 0 && app.p[dot - 1] != '.') {
        dot--;
    }
    *ret_service = dot == 0 ? app : (struct sv){app.p, dot - 1};
    return folded_type_find(dot == 0 ? SV("cpu") : sv_skip(app, dot));
}

/* ---- reading --------------------------------------------------------------------------------- */

struct conversion {
    const struct folded_input *in;
    struct map *ids;      /* name -> id of a function, from 1; its location has the same id */
    struct sv *functions; /* [id - 1]: the name, a view of the text */
    size_t n_functions;
    size_t cap_functions;
    uint64_t *frames; /* ids of the functions on the current line */
    size_t cap_frames;
    struct buf sample;
    struct buf *out;
    size_t n_lines;
    size_t n_samples;
    struct err *err;
};

/* Makes room for one more element in an array. */
static bool grow(void **array, size_t n, size_t *cap, size_t size)
{
    if (n < *cap) {
        return true;
    }
    size_t more = *cap == 0 ? 64 : 2 * *cap;
    void *bigger = realloc(*array, more * size);
    if (bigger == NULL) {
        return false;
    }
    *array = bigger;
    *cap = more;
    return true;
}

static bool find_function(struct conversion *c, struct sv name, uint64_t *ret_id)
{
    void *known = map_get(c->ids, name);
    if (known != NULL) {
        *ret_id = (uint64_t)(uintptr_t)known;
        return true;
    }
    if (c->n_functions == FOLDED_FUNCTIONS_MAX) {
        return err_set(c->err, ERR_LIMIT, "more than %d different functions", FOLDED_FUNCTIONS_MAX);
    }
    void *functions = c->functions;
    bool ok = grow(&functions, c->n_functions, &c->cap_functions, sizeof(*c->functions));
    c->functions = functions;
    if (!ok || !map_put(c->ids, name, (void *)(uintptr_t)(c->n_functions + 1), NULL)) {
        return err_memory(c->err);
    }
    c->functions[c->n_functions++] = name;
    *ret_id = c->n_functions;
    return true;
}

/* Reads the frames of a stack as ids, the root first. */
static bool read_frames(struct conversion *c, struct sv stack, size_t *ret_n)
{
    size_t n = 0;
    bool more = true;
    while (more) {
        struct sv name = stack;
        more = sv_cut(stack, ';', &name, &stack);
        if (n == FOLDED_DEPTH_MAX) {
            return err_set(c->err, ERR_LIMIT, "line %zu: more than %d frames", c->n_lines,
                           FOLDED_DEPTH_MAX);
        }
        void *frames = c->frames;
        bool ok = grow(&frames, n, &c->cap_frames, sizeof(*c->frames));
        c->frames = frames;
        if (!ok) {
            return err_memory(c->err);
        }
        if (!find_function(c, name, &c->frames[n])) {
            return false;
        }
        n++;
    }
    *ret_n = n;
    return true;
}

/* Converts a count of samples to nanoseconds, if the type is a time. False if the result needs more
 * than 63 bits. */
static bool scale(const struct folded_input *in, uint64_t *value)
{
    uint64_t factor = in->type->is_time ? (uint64_t)NS_PER_S / in->sample_rate : 1;
    if (*value > INT64_MAX / (factor == 0 ? 1 : factor)) {
        return false;
    }
    *value *= factor;
    return true;
}

/* Takes the count off the end of a line. */
static bool take_count(struct conversion *c, struct sv *line, uint64_t *ret_count)
{
    size_t at = line->n;
    while (at > 0 && line->p[at - 1] != ' ') {
        at--;
    }
    struct sv text = sv_skip(*line, at);
    if (at == 0 || !parse_u64(text, INT64_MAX, ret_count)) {
        return err_set(c->err, ERR_INPUT,
                       "line %zu: expected a stack, a space and a count, got \"%.*s\"", c->n_lines,
                       (int)utf8_prefix(*line, SHOWN_MAX), line->p);
    }
    *line = sv_trim((struct sv){line->p, at - 1});
    return true;
}

static bool read_line(struct conversion *c, struct sv line)
{
    uint64_t count = 1;
    size_t n = 0;
    if ((c->in->counted && !take_count(c, &line, &count)) || !read_frames(c, line, &n)) {
        return false;
    }
    if (!scale(c->in, &count)) {
        return err_set(c->err, ERR_INPUT, "line %zu: the count is too large", c->n_lines);
    }
    buf_clear(&c->sample);
    /* the frames begin with the root, but those of pprof with the leaf */
    for (size_t i = n; i > 0; i--) {
        wire_put_number(&c->sample, SAMPLE_LOCATION_ID, c->frames[i - 1]);
    }
    wire_put_number(&c->sample, SAMPLE_VALUE, count);
    wire_put_bytes(c->out, PROFILE_SAMPLE, c->sample.data, c->sample.len);
    c->n_samples++;
    return true;
}

static bool read_lines(struct conversion *c)
{
    struct sv text = c->in->text;
    while (text.n > 0) {
        struct sv line = text;
        if (!sv_cut(text, '\n', &line, &text)) {
            text.n = 0;
        }
        line = sv_trim(line);
        c->n_lines++;
        if (c->n_lines > FOLDED_LINES_MAX) {
            return err_set(c->err, ERR_LIMIT, "more than %d lines", FOLDED_LINES_MAX);
        }
        if (line.n > 0 && !read_line(c, line)) {
            return false;
        }
    }
    return true;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_value_type(struct buf *out, struct buf *m, uint64_t field, uint64_t type,
                           uint64_t unit)
{
    buf_clear(m);
    wire_put_number(m, VALUE_TYPE_TYPE, type);
    wire_put_number(m, VALUE_TYPE_UNIT, unit);
    wire_put_bytes(out, field, m->data, m->len);
}

static void put_functions(const struct conversion *c, struct buf *m)
{
    for (uint64_t id = 1; id <= c->n_functions; id++) {
        unsigned char line[2 + WIRE_NUMBER_MAX] = {LINE_FUNCTION_ID << 3};
        size_t n = 1 + wire_encode(id, line + 1);
        buf_clear(m);
        wire_put_number(m, LOCATION_ID, id);
        wire_put_bytes(m, LOCATION_LINE, line, n);
        wire_put_bytes(c->out, PROFILE_LOCATION, m->data, m->len);
        buf_clear(m);
        wire_put_number(m, FUNCTION_ID, id);
        wire_put_number(m, FUNCTION_NAME, STRING_FUNCTIONS + id - 1);
        wire_put_bytes(c->out, PROFILE_FUNCTION, m->data, m->len);
    }
}

static void put_strings(const struct conversion *c)
{
    const char *first[STRING_FUNCTIONS] = {"", c->in->type->type, c->in->type->unit, "cpu",
                                           "nanoseconds"};
    for (size_t i = 0; i < STRING_FUNCTIONS; i++) {
        wire_put_bytes(c->out, PROFILE_STRING, first[i], strlen(first[i]));
    }
    for (size_t i = 0; i < c->n_functions; i++) {
        wire_put_bytes(c->out, PROFILE_STRING, c->functions[i].p, c->functions[i].n);
    }
}

static void put_rest(const struct conversion *c)
{
    const struct folded_input *in = c->in;
    struct buf m;
    buf_init(&m, 256);
    put_value_type(c->out, &m, PROFILE_SAMPLE_TYPE, STRING_TYPE, STRING_UNIT);
    put_functions(c, &m);
    put_strings(c);
    wire_put_number(c->out, PROFILE_TIME_NANOS, (uint64_t)in->time_ns);
    if (in->duration_ns > 0) {
        wire_put_number(c->out, PROFILE_DURATION_NANOS, (uint64_t)in->duration_ns);
    }
    if (in->type->is_time) {
        put_value_type(c->out, &m, PROFILE_PERIOD_TYPE, STRING_CPU, STRING_NANOSECONDS);
        wire_put_number(c->out, PROFILE_PERIOD, (uint64_t)NS_PER_S / in->sample_rate);
    }
    buf_done(&m);
}

bool folded_convert(const struct folded_input *in, struct buf *out, size_t *ret_samples,
                    struct err *err)
{
    struct conversion c = {.in = in, .ids = map_new(), .out = out, .err = err};
    buf_init(&c.sample, (size_t)FOLDED_DEPTH_MAX * 2 * WIRE_NUMBER_MAX);
    bool ok = c.ids != NULL ? read_lines(&c) : err_memory(err);
    if (ok) {
        put_rest(&c);
        ok = buf_ok(out) ||
             (buf_too_big(out) ? err_set(err, ERR_LIMIT, "the profile would be too large")
                               : err_memory(err));
    }
    *ret_samples = c.n_samples;
    map_free(c.ids, NULL);
    free(c.functions);
    free(c.frames);
    buf_done(&c.sample);
    return ok;
}
