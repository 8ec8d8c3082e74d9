#include "api/receive/speedscope.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/protojson.h"
#include "base/clock.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"
/* 2^63. */
#define TWO_63 9223372036854775808.0

static const struct unit {
    const char *name;
    const char *suffix;
    double ns; /* nanoseconds in one; 0: not a time */
} units[] = {
    {"none", NULL, 0},
    {"nanoseconds", "nanoseconds", 1},
    {"microseconds", "microseconds", 1e3},
    {"milliseconds", "milliseconds", 1e6},
    {"seconds", "seconds", 1e9},
    {"bytes", "bytes", 0},
};

struct speedscope {
    json_t *root;
    json_t *frames;
    json_t *profiles;
    bool *made; /* by the index of a profile */
    size_t first;
    bool is_many;
};

/* ---- the file -------------------------------------------------------------------------------- */

struct speedscope *speedscope_free(struct speedscope *s)
{
    if (s != NULL) {
        json_decref(s->root);
        free(s->made);
        free(s);
    }
    return NULL;
}

static struct sv text_of(const json_t *object, const char *key)
{
    const json_t *j = json_object_get(object, key);
    return json_is_string(j) ? (struct sv){json_string_value(j), json_string_length(j)} : SV("");
}

static double number_of(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static const struct unit *unit_of(const json_t *profile)
{
    struct sv name = text_of(profile, "unit");
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (sv_eq_str(name, units[i].name)) {
            return &units[i];
        }
    }
    return NULL;
}

/* Returns true if two profiles become one. */
static bool are_one(const json_t *a, const json_t *b)
{
    double x = number_of(a, "startValue");
    double y = number_of(b, "startValue");
    return sv_eq(text_of(a, "name"), text_of(b, "name")) &&
           sv_eq(text_of(a, "type"), text_of(b, "type")) &&
           sv_eq(text_of(a, "unit"), text_of(b, "unit")) && x <= y && x >= y;
}

static bool check_file(struct speedscope *s, struct err *err)
{
    struct sv schema = text_of(s->root, "$schema");
    s->frames = json_object_get(json_object_get(s->root, "shared"), "frames");
    s->profiles = json_object_get(s->root, "profiles");
    if (!sv_eq_str(schema, SCHEMA)) {
        return err_set(err, ERR_INPUT, "Unknown schema: %.*s", schema.n < 100 ? (int)schema.n : 100,
                       schema.p);
    }
    if (json_array_size(s->profiles) > SPEEDSCOPE_PROFILES_MAX) {
        return err_set(err, ERR_LIMIT, "more than %d profiles", SPEEDSCOPE_PROFILES_MAX);
    }
    for (size_t i = 0; i < json_array_size(s->profiles); i++) {
        const json_t *p = json_array_get(s->profiles, i);
        struct sv name = text_of(p, "unit");
        if (unit_of(p) == NULL) {
            return err_set(err, ERR_INPUT, "profile %zu: unknown unit \"%.*s\"", i,
                           name.n < 100 ? (int)name.n : 100, name.p);
        }
        s->is_many = s->is_many || !are_one(p, json_array_get(s->profiles, 0));
    }
    s->made = calloc(json_array_size(s->profiles) + 1, sizeof(bool));
    return s->made != NULL || err_memory(err);
}

struct speedscope *speedscope_new(struct sv json, struct err *err)
{
    json_error_t problem;
    struct speedscope *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        err_memory(err);
        return NULL;
    }
    if (!protojson_fits(json)) {
        err_set(err, ERR_LIMIT, "more than %d values", PROTOJSON_VALUES_MAX);
        return speedscope_free(s);
    }
    s->root = json_loadb(json.p, json.n, 0, &problem);
    if (s->root == NULL) {
        if (json_error_code(&problem) == json_error_out_of_memory) {
            err_memory(err);
        } else {
            err_set(err, ERR_INPUT, "%d:%d: %s", problem.line, problem.column, problem.text);
        }
        return speedscope_free(s);
    }
    return check_file(s, err) ? s : speedscope_free(s);
}

bool speedscope_is_many(const struct speedscope *s)
{
    return s->is_many;
}

bool speedscope_next(struct speedscope *s, struct speedscope_profile *ret)
{
    while (s->first < json_array_size(s->profiles) && s->made[s->first]) {
        s->first++;
    }
    if (s->first >= json_array_size(s->profiles)) {
        return false;
    }
    const json_t *p = json_array_get(s->profiles, s->first);
    *ret = (struct speedscope_profile){.name = text_of(p, "name"), .suffix = unit_of(p)->suffix};
    return true;
}

/* ---- a profile ------------------------------------------------------------------------------- */

struct making {
    const struct speedscope *s;
    const json_t *profile;
    struct frames *stacks;
    double factor; /* of all values */
    struct err *err;
};

static bool push_frame(struct making *m, const json_t *index, json_int_t *ret)
{
    json_int_t i = json_integer_value(index);
    const json_t *frame =
        json_is_integer(index) && i >= 0 ? json_array_get(m->s->frames, (size_t)i) : NULL;
    if (frame == NULL) {
        return err_set(m->err, ERR_INPUT, "Invalid frame %lld", (long long)i);
    }
    *ret = i;
    return frames_push(m->stacks, text_of(frame, "name"), m->err);
}

/* Adds a sample with the stack; nothing for 0. */
static bool put(struct making *m, double value)
{
    value = round(value * m->factor);
    if (!(value >= 0 && value < TWO_63)) {
        return err_set(m->err, ERR_INPUT, "a weight below 0 or of more than 63 bits");
    }
    return value < 1 || frames_put(m->stacks, (uint64_t)value, m->err);
}

static bool make_sampled(struct making *m)
{
    const json_t *samples = json_object_get(m->profile, "samples");
    const json_t *weights = json_object_get(m->profile, "weights");
    if (json_array_size(samples) != json_array_size(weights)) {
        return err_set(m->err, ERR_INPUT, "Unequal lengths of samples and weights: %zu != %zu",
                       json_array_size(samples), json_array_size(weights));
    }
    for (size_t i = 0; i < json_array_size(samples); i++) {
        const json_t *sample = json_array_get(samples, i);
        json_int_t ignored;
        frames_cut(m->stacks, 0);
        for (size_t k = 0; k < json_array_size(sample); k++) {
            if (!push_frame(m, json_array_get(sample, k), &ignored)) {
                return err_wrap(m->err, "sample %zu", i);
            }
        }
        if (!put(m, json_number_value(json_array_get(weights, i)))) {
            return err_wrap(m->err, "sample %zu", i);
        }
    }
    return true;
}

/* Opens or closes a frame. open: the indices of the open frames. */
static bool make_event(struct making *m, const json_t *event, json_int_t *open)
{
    struct sv type = text_of(event, "type");
    const json_t *frame = json_object_get(event, "frame");
    size_t depth = frames_depth(m->stacks);
    if (sv_eq_str(type, "O")) {
        json_int_t index = 0;
        bool ok = push_frame(m, frame, &index);
        open[depth] = index;
        return ok;
    }
    if (!sv_eq_str(type, "C")) {
        return err_set(m->err, ERR_INPUT, "unknown type of event");
    }
    if (depth == 0 || open[depth - 1] != json_integer_value(frame)) {
        return err_set(m->err, ERR_INPUT, "frame %lld is closed, but not open",
                       (long long)json_integer_value(frame));
    }
    frames_cut(m->stacks, depth - 1);
    return true;
}

/* Gives the time between two events to the stack that is open meanwhile. */
static bool make_events(struct making *m, const json_t *events, json_int_t *open)
{
    double last = number_of(m->profile, "startValue");
    frames_cut(m->stacks, 0);
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        double at = number_of(event, "at");
        if (at < last) {
            return err_set(m->err, ERR_INPUT, "event %zu: Events out of order", i);
        }
        if ((frames_depth(m->stacks) > 0 && !put(m, at - last)) || !make_event(m, event, open)) {
            return err_wrap(m->err, "event %zu", i);
        }
        last = at;
    }
    return true;
}

static bool make_evented(struct making *m)
{
    const json_t *events = json_object_get(m->profile, "events");
    json_int_t *open = calloc(json_array_size(events) + 1, sizeof(*open));
    bool ok = open != NULL ? make_events(m, events, open) : err_memory(m->err);
    free(open);
    return ok;
}

static bool make(struct making *m)
{
    struct sv type = text_of(m->profile, "type");
    if (sv_eq_str(type, "sampled")) {
        return make_sampled(m);
    }
    return sv_eq_str(type, "evented")
               ? make_evented(m)
               : err_set(m->err, ERR_INPUT, "Profile type %.*s not supported",
                         type.n < 100 ? (int)type.n : 100, type.p);
}

bool speedscope_convert(struct speedscope *s, const struct frames_options *o, struct buf *out,
                        struct speedscope_profile *ret, struct err *err)
{
    const json_t *first = json_array_get(s->profiles, s->first);
    const struct unit *unit = unit_of(first);
    struct frames_options options = *o;
    options.names_live = true;
    options.in_nanoseconds = unit->ns > 0;
    struct making m = {.s = s,
                       .stacks = frames_new(&options, out, err),
                       .factor = o->type->is_time && unit->ns > 0 ? unit->ns : 1,
                       .err = err};
    bool ok = m.stacks != NULL;
    for (size_t i = s->first; ok && i < json_array_size(s->profiles); i++) {
        m.profile = json_array_get(s->profiles, i);
        if (!s->made[i] && are_one(first, m.profile)) {
            s->made[i] = true;
            ok = make(&m) || err_wrap(err, "profile %zu", i);
        }
    }
    ok = ok && frames_finish(m.stacks, &ret->samples, err);
    frames_free(m.stacks);
    return ok;
}
