#include "write/protocols/peek.h"

#include <string.h>
#include <zlib.h>

/* Fields of perftools.profiles.Profile. */
enum { FIELD_SAMPLE = 2, FIELD_PERIOD = 12 };
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/* Bytes that are inflated at a time. */
#define STEP 4096

enum state { AT_TAG, AT_VALUE, AT_LENGTH, IN_BYTES };

/* A walk over the outermost fields that takes its bytes in pieces. */
struct walk {
    struct peek *found;
    enum peek_want want;
    enum state state;
    uint64_t value; /* the varint so far */
    unsigned shift;
    uint64_t field;
    uint64_t skip; /* bytes of the field that are still to come */
    bool bad;
    bool done; /* what was wanted is found */
};

static void begin_varint(struct walk *w, enum state state)
{
    w->state = state;
    w->value = 0;
    w->shift = 0;
}

static void begin_bytes(struct walk *w, uint64_t n)
{
    begin_varint(w, n > 0 ? IN_BYTES : AT_TAG);
    w->skip = n;
}

static void on_tag(struct walk *w)
{
    w->field = w->value >> 3;
    unsigned wire = (unsigned)(w->value & 7);
    w->bad = w->field == 0;
    if (wire == WIRE_VARINT) {
        begin_varint(w, AT_VALUE);
    } else if (wire == WIRE_BYTES) {
        begin_varint(w, AT_LENGTH);
    } else if (wire == WIRE_64 || wire == WIRE_32) {
        begin_bytes(w, wire == WIRE_64 ? 8 : 4);
    } else {
        w->bad = true;
    }
}

static void on_varint(struct walk *w)
{
    if (w->state == AT_TAG) {
        on_tag(w);
        return;
    }
    if (w->state == AT_VALUE) {
        if (w->field == FIELD_PERIOD) {
            w->found->period = (int64_t)w->value;
            w->done = w->want == PEEK_PERIOD;
        }
        begin_varint(w, AT_TAG);
        return;
    }
    if (w->field == FIELD_SAMPLE) {
        w->found->has_samples = true;
        w->done = w->want == PEEK_SAMPLES;
    }
    begin_bytes(w, w->value);
}

static void walk_byte(struct walk *w, unsigned char c)
{
    if (w->shift > 63) {
        w->bad = true;
        return;
    }
    w->value |= (uint64_t)(c & 0x7f) << w->shift;
    w->shift += 7;
    if ((c & 0x80) == 0) {
        on_varint(w);
    }
}

static void walk(struct walk *w, const unsigned char *p, size_t n)
{
    while (n > 0 && !w->bad && !w->done) {
        if (w->state != IN_BYTES) {
            walk_byte(w, *p);
            p++;
            n--;
            continue;
        }
        size_t part = w->skip < n ? (size_t)w->skip : n;
        w->skip -= part;
        p += part;
        n -= part;
        if (w->skip == 0) {
            begin_varint(w, AT_TAG);
        }
    }
}

/* Between two fields, and all that there is could be read. */
static bool is_complete(const struct walk *w)
{
    return !w->bad && !w->done && w->state == AT_TAG && w->shift == 0;
}

/* True if the stream ended as it should, within the limit. */
static bool walk_gzip(struct walk *w, z_stream *z)
{
    unsigned char out[STEP];
    size_t total = 0;
    int code = Z_OK;
    while (code == Z_OK && !w->bad && !w->done && total < PEEK_MAX) {
        z->next_out = out;
        z->avail_out = sizeof(out);
        code = inflate(z, Z_NO_FLUSH);
        size_t n = sizeof(out) - z->avail_out;
        walk(w, out, n);
        total += n;
    }
    return code == Z_STREAM_END;
}

void peek_profile(const void *data, size_t size, enum peek_want want, struct peek *ret)
{
    *ret = (struct peek){.whole = false};
    struct walk w = {.found = ret, .want = want};
    const unsigned char *p = data;
    if (size < 2 || p[0] != 0x1f || p[1] != 0x8b) {
        size_t n = size < PEEK_MAX ? size : PEEK_MAX;
        walk(&w, p, n);
        ret->whole = n == size && n > 0 && is_complete(&w);
        return;
    }
    z_stream z;
    memset(&z, 0, sizeof(z));
    if (size > UINT32_MAX || inflateInit2(&z, 16 + MAX_WBITS) != Z_OK) {
        return;
    }
    z.next_in = (z_const Bytef *)(uintptr_t)p;
    z.avail_in = (uInt)size;
    bool ended = walk_gzip(&w, &z);
    (void)inflateEnd(&z);
    ret->whole = ended && is_complete(&w);
}
