#include "write/protocols/push.h"

#include <stdint.h>

/* All fields are length-delimited: tag = number << 3 | 2. */
enum { TAG_1 = 0x0a, TAG_2 = 0x12 };

static size_t varint_size(uint64_t v)
{
    size_t n = 1;
    while (v >= 0x80) {
        v >>= 7;
        n++;
    }
    return n;
}

/* Size of a field with n bytes of content. */
static size_t field_size(size_t n)
{
    return 1 + varint_size(n) + n;
}

static size_t pair_size(const struct series_label *l)
{
    return field_size(l->name.n) + field_size(l->value.n);
}

static void put_head(struct buf *b, char tag, uint64_t size)
{
    buf_putc(b, tag);
    while (size >= 0x80) {
        buf_putc(b, (char)(unsigned char)(size | 0x80));
        size >>= 7;
    }
    buf_putc(b, (char)size);
}

static void put_string(struct buf *b, char tag, struct sv v)
{
    put_head(b, tag, v.n);
    buf_append(b, v.p, v.n);
}

bool push_encode(const struct series *s, size_t profile_size, struct sv id, struct buf *prefix,
                 struct buf *suffix)
{
    if (profile_size > PUSH_PROFILE_MAX) {
        return false;
    }
    size_t sample = field_size(profile_size) + (id.n > 0 ? field_size(id.n) : 0);
    size_t series = field_size(sample);
    for (size_t i = 0; i < s->n; i++) {
        series += field_size(pair_size(&s->at[i]));
    }

    put_head(prefix, TAG_1, series);
    for (size_t i = 0; i < s->n; i++) {
        put_head(prefix, TAG_1, pair_size(&s->at[i]));
        put_string(prefix, TAG_1, s->at[i].name);
        put_string(prefix, TAG_2, s->at[i].value);
    }
    put_head(prefix, TAG_2, sample);
    put_head(prefix, TAG_1, profile_size);
    if (id.n > 0) {
        put_string(suffix, TAG_2, id);
    }
    return buf_ok(prefix) && buf_ok(suffix);
}
