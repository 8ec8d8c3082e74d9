#include "scraper/inspect.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"

/* More sample types than this are not listed. */
#define TYPES_MAX 16

/* Fields of pprof's Profile message. */
enum {
    FIELD_SAMPLE_TYPE = 1,
    FIELD_SAMPLE = 2,
    FIELD_MAPPING = 3,
    FIELD_LOCATION = 4,
    FIELD_FUNCTION = 5,
    FIELD_STRING = 6,
    FIELD_TIME_NANOS = 9,
    FIELD_DURATION_NANOS = 10,
    FIELD_PERIOD_TYPE = 11,
    FIELD_COMMENT = 13,
    FIELD_DOC_URL = 15, /* the last one that is known */
};

/* ---- protobuf fields ---------------------------------------------------------------------------
 */

struct wire_reader wire_reader_of(struct sv in)
{
    return (struct wire_reader){.in = in};
}

static bool fail(struct wire_reader *r, const char *problem, bool cut)
{
    r->problem = problem;
    r->cut = cut;
    return false;
}

static bool read_varint(struct wire_reader *r, uint64_t *ret)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (r->at == r->in.n) {
            return fail(r, "a number without end", true);
        }
        uint64_t byte = (unsigned char)r->in.p[r->at++];
        if (shift == 63 && byte > 1) {
            break;
        }
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret = value;
            return true;
        }
    }
    return fail(r, "a number of more than 64 bits", false);
}

static bool skip_bytes(struct wire_reader *r, uint64_t n)
{
    if (n > r->in.n - r->at) {
        return fail(r, "a field that runs past the end", true);
    }
    r->at += (size_t)n;
    return true;
}

static bool read_value(struct wire_reader *r, struct wire_field *f)
{
    uint64_t size;
    switch (f->type) {
    case WIRE_VARINT:
        return read_varint(r, &f->value);
    case WIRE_FIXED64:
        return skip_bytes(r, 8);
    case WIRE_FIXED32:
        return skip_bytes(r, 4);
    case WIRE_BYTES:
        if (!read_varint(r, &size)) {
            return false;
        }
        f->bytes.p = r->in.p + r->at;
        f->bytes.n = (size_t)size;
        return skip_bytes(r, size);
    default:
        return fail(r, "a wire type that does not exist", false);
    }
}

bool wire_next(struct wire_reader *r, struct wire_field *ret)
{
    struct wire_field f = {.number = 0};
    uint64_t tag;
    r->field_start = r->at;
    if (r->problem != NULL || r->at == r->in.n || !read_varint(r, &tag)) {
        return false;
    }
    f.number = tag >> 3;
    f.type = (unsigned)(tag & 7);
    if (f.number == 0) {
        return fail(r, "a field with number 0", false);
    }
    if (f.number > 0x1fffffff) {
        return fail(r, "a field number that is too large", false);
    }
    if (!read_value(r, &f)) {
        return false;
    }
    *ret = f;
    return true;
}

bool profile_field_fits(const struct wire_field *f)
{
    if (f->number > FIELD_DOC_URL) {
        return true;
    }
    if (f->number == FIELD_COMMENT) {
        return f->type == WIRE_VARINT || f->type == WIRE_BYTES; /* repeated numbers may be packed */
    }
    bool is_message = f->number <= FIELD_STRING || f->number == FIELD_PERIOD_TYPE;
    return f->type == (is_message ? WIRE_BYTES : WIRE_VARINT);
}

/* ---- a summary ---------------------------------------------------------------------------------
 */

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

static bool inflate_all(struct sv body, struct buf *out, struct err *err)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)body.p, .avail_in = (uInt)body.n};
    if (inflateInit2(&z, 15 + 16) != Z_OK) {
        return err_set(err, ERR_MEMORY, "out of memory");
    }
    int rc = Z_OK;
    while (buf_ok(out) && (rc == Z_OK || (rc == Z_STREAM_END && z.avail_in > 0))) {
        Bytef chunk[16 * 1024];
        if (rc == Z_STREAM_END) {
            inflateReset(&z); /* another member follows */
        }
        z.next_out = chunk;
        z.avail_out = sizeof(chunk);
        rc = inflate(&z, Z_NO_FLUSH);
        buf_append(out, chunk, sizeof(chunk) - z.avail_out);
    }
    inflateEnd(&z);
    if (!buf_ok(out)) {
        return err_set(err, ERR_LIMIT, "inflates to more than %zu bytes", SUMMARY_INFLATED_MAX);
    }
    return rc == Z_STREAM_END || err_set(err, ERR_INPUT, "damaged or cut gzip");
}

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
    case FIELD_SAMPLE_TYPE:
        if (s->n_types < TYPES_MAX) {
            s->types[s->n_types++] = read_value_type(f->bytes);
        }
        break;
    case FIELD_SAMPLE:
        ret->samples++;
        break;
    case FIELD_TIME_NANOS:
        ret->time_ns = (int64_t)f->value;
        break;
    case FIELD_DURATION_NANOS:
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
        if (f.number != FIELD_STRING) {
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
    if (body.n < 2 || (unsigned char)body.p[0] != 0x1f || (unsigned char)body.p[1] != 0x8b) {
        return summarise_plain(body, ret, err);
    }
    if (body.n > UINT32_MAX) {
        return err_set(err, ERR_LIMIT, "larger than 4 GiB");
    }
    struct buf plain;
    buf_init(&plain, SUMMARY_INFLATED_MAX);
    bool ok = inflate_all(body, &plain, err) &&
              summarise_plain((struct sv){plain.data, plain.len}, ret, err);
    buf_done(&plain);
    return ok;
}
