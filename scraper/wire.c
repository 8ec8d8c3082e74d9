/* The long ways of the reader. */
#include "scraper/wire.h"

static bool fail(struct wire_reader *r, const char *problem, bool cut)
{
    r->problem = problem;
    r->cut = cut;
    return false;
}

bool wire_number_slow(struct wire_reader *r, uint64_t *ret)
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
        return wire_number_slow(r, &f->value);
    case WIRE_FIXED64:
        return skip_bytes(r, 8);
    case WIRE_FIXED32:
        return skip_bytes(r, 4);
    case WIRE_BYTES:
        if (!wire_number_slow(r, &size)) {
            return false;
        }
        f->bytes.p = r->in.p + r->at;
        f->bytes.n = (size_t)size;
        return skip_bytes(r, size);
    default:
        return fail(r, "a wire type that does not exist", false);
    }
}

bool wire_next_slow(struct wire_reader *r, struct wire_field *ret)
{
    struct wire_field f = {.number = 0};
    uint64_t tag;
    r->field_start = r->at;
    if (r->problem != NULL || r->at == r->in.n || !wire_number_slow(r, &tag)) {
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
    if (f->number > PROFILE_DOC_URL) {
        return true;
    }
    if (f->number == PROFILE_COMMENT) {
        return f->type == WIRE_VARINT || f->type == WIRE_BYTES; /* repeated numbers may be packed */
    }
    bool is_message = f->number <= PROFILE_STRING || f->number == PROFILE_PERIOD_TYPE;
    return f->type == (is_message ? WIRE_BYTES : WIRE_VARINT);
}
