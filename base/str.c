#include "base/str.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/mix.h"
#include "base/utf8.h"

static bool json_escape_byte(unsigned char c, struct buf *out)
{
    static const char plain[] = "\"\\\b\f\n\r\t";
    static const char escaped[] = "\"\\bfnrt";
    const char *at = c == '\0' ? NULL : strchr(plain, c);
    if (at != NULL) {
        return buf_append(out, (const char[]){'\\', escaped[at - plain]}, 2);
    }
    return buf_printf(out, "\\u%04x", (unsigned)c);
}

bool json_escape(struct sv v, struct buf *out)
{
    size_t start = 0; /* start of the run that needs no change */
    size_t i = 0;
    while (i < v.n) {
        unsigned char c = (unsigned char)v.p[i];
        uint32_t rune;
        size_t len = utf8_decode(sv_skip(v, i), &rune);
        if (len > 0 && c >= 0x20 && c != '"' && c != '\\') {
            i += len;
            continue;
        }
        buf_append(out, v.p + start, i - start);
        if (len == 0) {
            buf_puts(out, UTF8_REPLACEMENT);
        } else {
            json_escape_byte(c, out);
        }
        i++;
        start = i;
    }
    return i == start ? buf_ok(out) : buf_append(out, v.p + start, i - start);
}

bool json_quote(struct sv v, struct buf *out)
{
    buf_putc(out, '"');
    json_escape(v, out);
    return buf_putc(out, '"');
}

bool json_key(const char *key, struct buf *out)
{
    bool first = out->len > 0 && out->data[out->len - 1] == '{';
    return buf_printf(out, "%s\"%s\":", first ? "" : ",", key);
}

bool json_member(const char *key, struct sv value, struct buf *out)
{
    json_key(key, out);
    return json_quote(value, out);
}

/* Longer words are not compared, so that the table stays small. */
#define SUGGEST_LEN_MAX 64
#define SUGGEST_DISTANCE_MAX 2

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Returns the number of insertions, deletions, replacements and swaps of neighbours that turn a
 * into b (in the variant in which no part is edited twice). */
static size_t edit_distance(struct sv a, struct sv b)
{
    size_t d[SUGGEST_LEN_MAX + 1][SUGGEST_LEN_MAX + 1];
    for (size_t i = 0; i <= a.n; i++) {
        d[i][0] = i;
    }
    for (size_t j = 0; j <= b.n; j++) {
        d[0][j] = j;
    }
    for (size_t i = 1; i <= a.n; i++) {
        for (size_t j = 1; j <= b.n; j++) {
            size_t replace = d[i - 1][j - 1] + (a.p[i - 1] == b.p[j - 1] ? 0 : 1);
            d[i][j] = min_size(replace, min_size(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1]) {
                d[i][j] = min_size(d[i][j], d[i - 2][j - 2] + 1);
            }
        }
    }
    return d[a.n][b.n];
}

const char *suggest(struct sv word, const char *const *candidates, size_t n)
{
    const char *best = NULL;
    size_t best_distance = SUGGEST_DISTANCE_MAX + 1;
    if (word.n > SUGGEST_LEN_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        struct sv candidate = sv_from(candidates[i]);
        if (candidate.n > SUGGEST_LEN_MAX) {
            continue;
        }
        size_t distance = edit_distance(word, candidate);
        if (distance < best_distance && 2 * distance < word.n) {
            best = candidates[i];
            best_distance = distance;
        }
    }
    return best;
}

void secret_free(char *s)
{
    if (s != NULL) {
        explicit_bzero(s, strlen(s));
    }
    free(s);
}

/* Read eight bytes, or four, at any address and on any machine, as a little-endian number. */
static uint64_t load8(const unsigned char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof(x));
    return le64toh(x);
}

static uint64_t load4(const unsigned char *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof(x));
    return le32toh(x);
}

/* Reads fewer than eight bytes into a number. Reading some of them twice is faster than a loop. */
static uint64_t load_tail(const unsigned char *p, size_t n)
{
    if (n >= 4) {
        return load4(p) | load4(p + n - 4) << (8 * (n - 4));
    }
    if (n == 0) {
        return 0;
    }
    return p[0] | (uint64_t)p[n / 2] << (8 * (n / 2)) | (uint64_t)p[n - 1] << (8 * (n - 1));
}

/* Every eight bytes are combined with the state by exclusive-or, and the state is mixed. The
 * initial state includes the length, so that a tail padded with zeros differs from real zeros. */
uint64_t hash_bytes(const void *p, size_t n, uint64_t seed)
{
    const unsigned char *bytes = p;
    uint64_t h = mix64(seed + MIX_GOLDEN) ^ ((uint64_t)n * MIX_ROOT3);
    while (n >= 8) {
        h = mix64(h ^ load8(bytes)) + MIX_GOLDEN;
        bytes += 8;
        n -= 8;
    }
    return mix64(h ^ load_tail(bytes, n));
}
