#include "pprof/summary.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "pprof/fields.h"
#include "pprof/gzip.h"

/* The most sample types that are printed. */
#define PRINTED_MAX 16
/* The bytes that are inflated at first; each further attempt inflates PEEK_FACTOR times more. */
#define PEEK_FIRST ((size_t)4096)
#define PEEK_FACTOR 8

/* ---- fields ---------------------------------------------------------------------------------- */

static struct pprof_value_type read_value_type(struct sv message)
{
    uint64_t v[VALUE_TYPE_UNIT + 1] = {0};
    wire_read_numbers(message, v, VALUE_TYPE_UNIT + 1);
    return (struct pprof_value_type){.type = v[VALUE_TYPE_TYPE], .unit = v[VALUE_TYPE_UNIT]};
}

void pprof_summary_add(struct pprof_summary *s, const struct wire_field *f)
{
    if (f->number >= PROFILE_FIELDS) {
        return;
    }
    size_t n = s->n[f->number]++;
    switch (f->number) {
    case PROFILE_SAMPLE_TYPE:
        if (n < SUMMARY_TYPES_MAX) {
            s->types[n] = read_value_type(f->bytes);
        }
        break;
    case PROFILE_TIME_NANOS:
        s->time_ns = (int64_t)f->value;
        break;
    case PROFILE_DURATION_NANOS:
        s->duration_ns = (int64_t)f->value;
        break;
    case PROFILE_PERIOD_TYPE:
        s->period_type = read_value_type(f->bytes);
        break;
    case PROFILE_PERIOD:
        s->period = (int64_t)f->value;
        break;
    default:
        break;
    }
}

/* Returns the number of types that are kept. */
static size_t n_types(const struct pprof_summary *s)
{
    size_t n = s->n[PROFILE_SAMPLE_TYPE];
    return n < SUMMARY_TYPES_MAX ? n : SUMMARY_TYPES_MAX;
}

/* Returns the largest index of a string that a type refers to. */
static uint64_t last_string(const struct pprof_summary *s)
{
    uint64_t last =
        s->period_type.type > s->period_type.unit ? s->period_type.type : s->period_type.unit;
    for (size_t i = 0; i < n_types(s); i++) {
        last = s->types[i].type > last ? s->types[i].type : last;
        last = s->types[i].unit > last ? s->types[i].unit : last;
    }
    return last;
}

static void name_type(struct pprof_value_type *t, uint64_t index, struct sv text)
{
    t->type_text = t->type == index ? text : t->type_text;
    t->unit_text = t->unit == index ? text : t->unit_text;
}

/* Strings may precede or follow the types that refer to them, so this takes a pass of its own. */
void pprof_summary_name_types(struct sv plain, struct pprof_summary *s)
{
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f = {.number = 0};
    uint64_t last = last_string(s);
    uint64_t index = 0;
    while (index <= last && wire_next(&r, &f)) {
        if (f.number != PROFILE_STRING) {
            continue;
        }
        for (size_t i = 0; i < n_types(s); i++) {
            name_type(&s->types[i], index, f.bytes);
        }
        name_type(&s->period_type, index++, f.bytes);
    }
}

/* ---- profiles -------------------------------------------------------------------------------- */

/* Reads the fields of a plain profile, up to the first one of the number `until` (0: all). */
static bool read_fields(struct sv plain, uint64_t until, struct pprof_summary *ret, struct err *err)
{
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f = {.number = 0};
    *ret = (struct pprof_summary){.plain_size = plain.n};
    while ((until == 0 || ret->n[until] == 0) && wire_next(&r, &f)) {
        if (!profile_field_fits(&f)) {
            return err_set(err, ERR_INPUT, "a known field of another wire type at byte %zu",
                           r.field_start);
        }
        pprof_summary_add(ret, &f);
    }
    ret->whole = r.problem == NULL && r.at == plain.n;
    return r.problem == NULL || err_set(err, ERR_INPUT, "%s at byte %zu", r.problem, r.field_start);
}

bool pprof_summary_read(struct scratch *scratch, struct sv body, size_t max,
                        struct pprof_summary *ret, struct err *err)
{
    struct sv plain;
    if (!gzip_plain(scratch, body, max, 0, &plain, err) || !read_fields(plain, 0, ret, err)) {
        return false;
    }
    pprof_summary_name_types(plain, ret);
    return true;
}

/* Reads the fields in the first bytes of a profile. */
static void peek(struct sv plain, bool end, uint64_t until, struct pprof_summary *ret)
{
    (void)read_fields(plain, until, ret, NULL);
    ret->whole = ret->whole && end && plain.n > 0;
}

/* Inflates size bytes into room. Returns true if they are enough, or the whole profile. */
static bool peek_gzip(struct sv body, uint64_t until, char *room, size_t size,
                      struct pprof_summary *ret)
{
    struct gzip_start start = gzip_inflate_start(body, room, size);
    peek(start.plain, start.end, until, ret);
    return ret->n[until] > 0 || start.plain.n < size;
}

void pprof_summary_peek(struct sv body, uint64_t until, struct pprof_summary *ret)
{
    char first[PEEK_FIRST];
    size_t size = sizeof(first);
    if (!gzip_is(body)) {
        size = body.n < SUMMARY_PEEK_MAX ? body.n : SUMMARY_PEEK_MAX;
        peek((struct sv){body.p, size}, size == body.n, until, ret);
        return;
    }
    bool enough = peek_gzip(body, until, first, size, ret);
    while (!enough && size < SUMMARY_PEEK_MAX) {
        size = size * PEEK_FACTOR < SUMMARY_PEEK_MAX ? size * PEEK_FACTOR : SUMMARY_PEEK_MAX;
        char *room = malloc(size);
        enough = room == NULL || peek_gzip(body, until, room, size, ret);
        free(room);
    }
}

/* ---- JFR ------------------------------------------------------------------------------------- */

/* Offsets in the header of a chunk: its size, its start in ns since 1970, its duration in ns. All
 * are big-endian. */
enum { CHUNK_SIZE_AT = 8, CHUNK_START_AT = 32, CHUNK_DURATION_AT = 40 };

static uint64_t read_be64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return be64toh(v);
}

void jfr_summary_read(struct sv plain, struct pprof_summary *ret)
{
    *ret = (struct pprof_summary){.plain_size = plain.n, .whole = true};
    int64_t end = 0;
    while (plain.n >= JFR_CHUNK_HEADER_SIZE && memcmp(plain.p, JFR_MAGIC, sizeof(JFR_MAGIC)) == 0) {
        uint64_t size = read_be64(plain.p + CHUNK_SIZE_AT);
        int64_t start = clock_ns_or_0(read_be64(plain.p + CHUNK_START_AT));
        int64_t duration = clock_ns_or_0(read_be64(plain.p + CHUNK_DURATION_AT));
        ret->time_ns = ret->time_ns == 0 ? start : ret->time_ns;
        if (start > 0 && duration <= INT64_MAX - start && start + duration > end) {
            end = start + duration;
        }
        if (size < JFR_CHUNK_HEADER_SIZE || size > plain.n) {
            break;
        }
        plain = sv_skip(plain, (size_t)size);
    }
    ret->duration_ns = end > ret->time_ns ? end - ret->time_ns : 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

void pprof_summary_print_types(const struct pprof_summary *s, const char *unknown, char *out,
                               size_t size)
{
    struct buf text;
    buf_init(&text, (size_t)64 * 1024);
    for (size_t i = 0; i < n_types(s) && i < PRINTED_MAX; i++) {
        buf_puts(&text, i == 0 ? "" : " ");
        struct sv type = s->types[i].type_text;
        struct sv unit = s->types[i].unit_text;
        json_escape(type.n == 0 ? sv_from(unknown) : type, &text);
        buf_putc(&text, '/');
        json_escape(unit.n == 0 ? sv_from(unknown) : unit, &text);
    }
    snprintf(out, size, "%s", buf_ok(&text) ? text.data : "?");
    buf_done(&text);
}
