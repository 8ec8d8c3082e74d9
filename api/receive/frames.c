#include "api/receive/frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/map.h"
#include "pprof/put.h"

/* Indexes of the strings before the names of functions: "", type, unit, and the two of the period.
 */
enum { STRING_TYPE = 1, STRING_UNIT, STRING_CPU, STRING_NANOSECONDS, STRING_FUNCTIONS };
/* The most bytes of names that are copied. */
#define NAMES_MAX ((size_t)256 * 1024 * 1024)

static const struct frames_type types[] = {
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
    {"nanoseconds", "wall", "wall", "nanoseconds", .is_time = true},
    {"microseconds", "wall", "wall", "nanoseconds", .is_time = true},
    {"milliseconds", "wall", "wall", "nanoseconds", .is_time = true},
    {"seconds", "wall", "wall", "nanoseconds", .is_time = true},
    {"bytes", "memory", "samples", "bytes", false},
};

const struct frames_type *frames_type_find(struct sv suffix)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (sv_eq_str(suffix, types[i].suffix)) {
            return &types[i];
        }
    }
    return NULL;
}

const struct frames_type *frames_type_of(struct sv app, struct sv *ret_service)
{
    size_t dot = app.n;
    while (dot > 0 && app.p[dot - 1] != '.') {
        dot--;
    }
    *ret_service = dot == 0 ? app : (struct sv){app.p, dot - 1};
    return frames_type_find(dot == 0 ? SV("cpu") : sv_skip(app, dot));
}

/* ---- making and freeing ---------------------------------------------------------------------- */

struct frames {
    struct frames_options o;
    struct arena *names;  /* copies of names; NULL: none are made */
    struct map *ids;      /* name -> id of a function, from 1; its location has the same id */
    struct sv *functions; /* [id - 1]: the name */
    size_t n_functions;
    size_t cap_functions;
    uint64_t *frames; /* ids of the functions of the stack */
    size_t depth;
    size_t cap_frames;
    struct buf sample;
    struct buf *out;
    size_t n_samples;
};

struct frames *frames_free(struct frames *s)
{
    if (s != NULL) {
        arena_free(s->names);
        map_free(s->ids, NULL);
        free(s->functions);
        free(s->frames);
        buf_done(&s->sample);
        free(s);
    }
    return NULL;
}

struct frames *frames_new(const struct frames_options *o, struct buf *out, struct err *err)
{
    struct frames *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        err_memory(err);
        return NULL;
    }
    s->o = *o;
    s->out = out;
    s->ids = map_new();
    s->names = o->names_live ? NULL : arena_new(NAMES_MAX);
    buf_init(&s->sample, (size_t)FRAMES_DEPTH_MAX * 2 * WIRE_NUMBER_MAX);
    if (s->ids == NULL || (s->names == NULL && !o->names_live)) {
        err_memory(err);
        return frames_free(s);
    }
    return s;
}

/* ---- the stack ------------------------------------------------------------------------------- */

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

/* Adds a function. */
static bool add_function(struct frames *s, struct sv name, struct err *err)
{
    if (s->n_functions == FRAMES_FUNCTIONS_MAX) {
        return err_set(err, ERR_LIMIT, "more than %d different functions", FRAMES_FUNCTIONS_MAX);
    }
    if (s->names != NULL) {
        name.p = arena_strndup(s->names, name.p, name.n);
        if (name.p == NULL) {
            return err_set(err, ERR_LIMIT, "the names of functions are too long");
        }
    }
    void *functions = s->functions;
    bool ok = grow(&functions, s->n_functions, &s->cap_functions, sizeof(*s->functions));
    s->functions = functions;
    if (!ok || !map_put(s->ids, name, (void *)(uintptr_t)(s->n_functions + 1), NULL)) {
        return err_memory(err);
    }
    s->functions[s->n_functions++] = name;
    return true;
}

bool frames_push(struct frames *s, struct sv name, struct err *err)
{
    const void *known = map_get(s->ids, name);
    if (s->depth == FRAMES_DEPTH_MAX) {
        return err_set(err, ERR_LIMIT, "more than %d frames", FRAMES_DEPTH_MAX);
    }
    void *frames = s->frames;
    bool ok = grow(&frames, s->depth, &s->cap_frames, sizeof(*s->frames));
    s->frames = frames;
    if (!ok) {
        return err_memory(err);
    }
    if (known == NULL && !add_function(s, name, err)) {
        return false;
    }
    s->frames[s->depth++] = known != NULL ? (uint64_t)(uintptr_t)known : s->n_functions;
    return true;
}

void frames_cut(struct frames *s, size_t n)
{
    s->depth = n < s->depth ? n : s->depth;
}

size_t frames_depth(const struct frames *s)
{
    return s->depth;
}

bool frames_split(struct frames *s, struct sv text, struct err *err)
{
    bool more = true;
    frames_cut(s, 0);
    while (more) {
        struct sv name = text;
        more = sv_cut(text, ';', &name, &text);
        if (!frames_push(s, name, err)) {
            return false;
        }
    }
    return true;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Converts a count of samples to nanoseconds, if the type is a time. False if the result needs more
 * than 63 bits. */
static bool scale(const struct frames_options *o, uint64_t *value)
{
    uint64_t factor =
        o->type->is_time && !o->in_nanoseconds ? (uint64_t)NS_PER_S / o->sample_rate : 1;
    if (*value > INT64_MAX / (factor == 0 ? 1 : factor)) {
        return false;
    }
    *value *= factor;
    return true;
}

/* Returns true if the buffer has taken everything so far. */
static bool has_room(const struct frames *s, struct err *err)
{
    return buf_ok(s->out) ||
           (buf_too_big(s->out) ? err_set(err, ERR_LIMIT, "the profile would be too large")
                                : err_memory(err));
}

bool frames_put(struct frames *s, uint64_t value, struct err *err)
{
    if (s->n_samples == FRAMES_SAMPLES_MAX) {
        return err_set(err, ERR_LIMIT, "more than %d stacks", FRAMES_SAMPLES_MAX);
    }
    if (!scale(&s->o, &value)) {
        return err_set(err, ERR_INPUT, "the count is too large");
    }
    buf_clear(&s->sample);
    /* The frames begin with the root, but those of pprof with the leaf. */
    for (size_t i = s->depth; i > 0; i--) {
        wire_put_number(&s->sample, SAMPLE_LOCATION_ID, s->frames[i - 1]);
    }
    wire_put_number(&s->sample, SAMPLE_VALUE, value);
    wire_put_bytes(s->out, PROFILE_SAMPLE, s->sample.data, s->sample.len);
    s->n_samples++;
    return has_room(s, err);
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

static void put_functions(const struct frames *c, struct buf *m)
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

static void put_strings(const struct frames *c)
{
    const char *first[STRING_FUNCTIONS] = {"", c->o.type->type, c->o.type->unit, "cpu",
                                           "nanoseconds"};
    for (size_t i = 0; i < STRING_FUNCTIONS; i++) {
        wire_put_bytes(c->out, PROFILE_STRING, first[i], strlen(first[i]));
    }
    for (size_t i = 0; i < c->n_functions; i++) {
        wire_put_bytes(c->out, PROFILE_STRING, c->functions[i].p, c->functions[i].n);
    }
}

static void put_rest(const struct frames *c)
{
    const struct frames_options *in = &c->o;
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
        wire_put_number(c->out, PROFILE_PERIOD,
                        in->in_nanoseconds ? 1 : (uint64_t)NS_PER_S / in->sample_rate);
    }
    buf_done(&m);
}

bool frames_finish(struct frames *s, size_t *ret_samples, struct err *err)
{
    put_rest(s);
    *ret_samples = s->n_samples;
    return has_room(s, err);
}
