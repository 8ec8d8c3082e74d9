#include "pprof/summary.h"

#include <stdio.h>

#include "base/buf.h"
#include "pprof/gzip.h"
#include "pprof/wire.h"

/* More sample types than this are not listed. */
#define TYPES_MAX 16

/* ---- a summary ------------------------------------------------------------------------------- */

struct value_type {
    uint64_t type; /* index of a string, as is unit */
    uint64_t unit;
    struct sv type_text;
    struct sv unit_text;
};

struct summary {
    struct value_type types[TYPES_MAX];
    size_t n_types;
    uint64_t strings;
};

static struct value_type read_value_type(struct sv message)
{
    struct value_type t = {.type = 0};
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f;
    while (wire_next(&r, &f)) {
        if (f.number == 1 && f.type == WIRE_VARINT) {
            t.type = f.value;
        } else if (f.number == 2 && f.type == WIRE_VARINT) {
            t.unit = f.value;
        }
    }
    return t;
}

static void take_field(const struct wire_field *f, struct summary *s, struct profile_summary *ret)
{
    switch (f->number) {
    case PROFILE_SAMPLE_TYPE:
        if (s->n_types < TYPES_MAX) {
            s->types[s->n_types++] = read_value_type(f->bytes);
        }
        break;
    case PROFILE_SAMPLE:
        ret->samples++;
        break;
    case PROFILE_TIME_NANOS:
        ret->time_ns = (int64_t)f->value;
        break;
    case PROFILE_DURATION_NANOS:
        ret->duration_ns = (int64_t)f->value;
        break;
    default:
        break;
    }
}

static bool read_fields(struct sv plain, struct summary *s, struct profile_summary *ret,
                        struct err *err)
{
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f;
    while (wire_next(&r, &f)) {
        if (!profile_field_fits(&f)) {
            return err_set(err, ERR_INPUT, "a known field of another wire type at byte %zu",
                           r.field_start);
        }
        take_field(&f, s, ret);
    }
    return r.problem == NULL || err_set(err, ERR_INPUT, "%s at byte %zu", r.problem, r.field_start);
}

/* The strings may stand before or behind what names them, hence a pass of its own. */
static void read_strings(struct sv plain, struct summary *s)
{
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f;
    while (wire_next(&r, &f)) {
        if (f.number != PROFILE_STRING) {
            continue;
        }
        for (size_t i = 0; i < s->n_types; i++) {
            if (s->types[i].type == s->strings) {
                s->types[i].type_text = f.bytes;
            }
            if (s->types[i].unit == s->strings) {
                s->types[i].unit_text = f.bytes;
            }
        }
        s->strings++;
    }
}

static void print_types(const struct summary *s, char out[SUMMARY_TYPES_MAX])
{
    struct buf text;
    buf_init(&text, (size_t)64 * 1024);
    for (size_t i = 0; i < s->n_types; i++) {
        struct sv type = s->types[i].type_text;
        struct sv unit = s->types[i].unit_text;
        buf_puts(&text, i == 0 ? "" : " ");
        json_escape((struct sv){type.n == 0 ? "?" : type.p, type.n == 0 ? 1 : type.n}, &text);
        buf_puts(&text, "/");
        json_escape((struct sv){unit.n == 0 ? "?" : unit.p, unit.n == 0 ? 1 : unit.n}, &text);
    }
    snprintf(out, SUMMARY_TYPES_MAX, "%s", buf_ok(&text) ? text.data : "?");
    buf_done(&text);
}

static bool summarise_plain(struct sv plain, struct profile_summary *ret, struct err *err)
{
    struct summary s = {.n_types = 0};
    *ret = (struct profile_summary){.inflated = plain.n};
    if (!read_fields(plain, &s, ret, err)) {
        return false;
    }
    read_strings(plain, &s);
    print_types(&s, ret->types);
    return true;
}

bool profile_summarise(struct sv body, struct profile_summary *ret, struct err *err)
{
    if (!gzip_is(body)) {
        return summarise_plain(body, ret, err);
    }
    struct scratch *s = scratch_new();
    if (s == NULL) {
        return err_memory(err);
    }
    struct sv plain;
    bool ok = gzip_inflate(s, body, SUMMARY_INFLATED_MAX, 0, &plain, err) == GZIP_OK &&
              summarise_plain(plain, ret, err);
    scratch_free(s);
    return ok;
}
