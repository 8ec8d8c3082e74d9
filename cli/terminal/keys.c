#include "cli/terminal/keys.h"

#include <string.h>

#include "base/utf8.h"

/* The longest sequence that is waited for. */
#define SEQUENCE_MAX 16

/* The final parts of sequences that begin with ESC [ or ESC O. */
static const struct {
    const char *tail;
    enum key_kind kind;
} sequences[] = {
    {"A", KEY_UP},  {"B", KEY_DOWN},  {"C", KEY_RIGHT}, {"D", KEY_LEFT},     {"H", KEY_HOME},
    {"F", KEY_END}, {"1~", KEY_HOME}, {"4~", KEY_END},  {"5~", KEY_PAGE_UP}, {"6~", KEY_PAGE_DOWN},
};

/* Finds the key of a sequence's tail. */
static enum key_kind kind_of(struct sv tail)
{
    for (size_t i = 0; i < sizeof(sequences) / sizeof(sequences[0]); i++) {
        if (sv_eq_str(tail, sequences[i].tail)) {
            return sequences[i].kind;
        }
    }
    return KEY_UNKNOWN;
}

static size_t decode_sequence(struct sv bytes, bool more_may_come, struct key *ret)
{
    size_t n = 2;
    if (bytes.n == 1 || (bytes.p[1] != '[' && bytes.p[1] != 'O')) {
        ret->kind = KEY_ESCAPE;
        return bytes.n == 1 && more_may_come ? 0 : 1;
    }
    /* Parameters, then a byte from '@' to '~' (ECMA-48, 5.4). */
    while (n < bytes.n && n < SEQUENCE_MAX && (bytes.p[n] < '@' || bytes.p[n] > '~')) {
        n++;
    }
    if (n == bytes.n && n < SEQUENCE_MAX) {
        return more_may_come ? 0 : n;
    }
    n += n < bytes.n;
    ret->kind = kind_of((struct sv){bytes.p + 2, n - 2});
    return n;
}

size_t key_decode(struct sv bytes, bool more_may_come, struct key *ret)
{
    unsigned char c = (unsigned char)bytes.p[0];
    *ret = (struct key){.kind = KEY_UNKNOWN};
    if (c == '\033') {
        return decode_sequence(bytes, more_may_come, ret);
    }
    if (c == '\r' || c == '\n') {
        ret->kind = KEY_ENTER;
        return 1;
    }
    if (c == 0x7f || c == '\b') {
        ret->kind = KEY_BACKSPACE;
        return 1;
    }
    size_t n = utf8_decode(bytes, &ret->rune);
    if (n == 0) {
        bool begins = c >= 0xc2 && c <= 0xf4; /* the first byte of a longer character */
        return more_may_come && begins && bytes.n < UTF8_BYTES_MAX ? 0 : 1;
    }
    ret->kind = c >= 0x20 ? KEY_RUNE : KEY_UNKNOWN;
    return n;
}
