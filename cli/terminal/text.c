#include "cli/terminal/text.h"

#include <stdint.h>
#include <wchar.h>

#include "base/utf8.h"

#define ASCII_FIRST 0x20
#define ASCII_LAST 0x7e
#define ELLIPSIS "\xe2\x80\xa6"

locale_t terminal_text_begin(void)
{
    locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (locale != (locale_t)0) {
        (void)uselocale(locale);
    }
    return locale;
}

void terminal_text_end(locale_t locale)
{
    if (locale != (locale_t)0) {
        (void)uselocale(LC_GLOBAL_LOCALE);
        freelocale(locale);
    }
}

/* A character as it is printed. */
struct glyph {
    struct sv bytes;
    size_t columns; /* 1 or 2 */
};

/* Returns the character at the start of a text, which is not empty, and sets *ret_n to the bytes of
 * the text that it takes. */
static struct glyph glyph_of(struct sv text, bool utf8, size_t *ret_n)
{
    unsigned char c = (unsigned char)text.p[0];
    uint32_t rune;
    *ret_n = 1;
    if (c >= ASCII_FIRST && c <= ASCII_LAST) {
        return (struct glyph){{text.p, 1}, 1};
    }
    size_t n = utf8_decode(text, &rune);
    if (n > 0) {
        *ret_n = n;
    }
    if (!utf8) {
        return (struct glyph){SV("?"), 1};
    }
    int width = n > 1 ? wcwidth((wchar_t)rune) : 0;
    return width > 0 ? (struct glyph){{text.p, n}, (size_t)width}
                     : (struct glyph){SV(UTF8_REPLACEMENT), 1};
}

size_t terminal_columns(struct sv text, bool utf8)
{
    size_t columns = 0;
    size_t n;
    while (text.n > 0) {
        columns += glyph_of(text, utf8, &n).columns;
        text = sv_skip(text, n);
    }
    return columns;
}

size_t terminal_put(struct sv text, size_t max, bool utf8, struct buf *out)
{
    bool cut = terminal_columns(text, utf8) > max;
    size_t room = cut && max > 0 ? max - 1 : max;
    size_t columns = 0;
    size_t n;
    while (text.n > 0) {
        struct glyph g = glyph_of(text, utf8, &n);
        if (columns + g.columns > room) {
            break;
        }
        buf_append(out, g.bytes.p, g.bytes.n);
        columns += g.columns;
        text = sv_skip(text, n);
    }
    if (cut && max > 0) {
        buf_puts(out, utf8 ? ELLIPSIS : "~");
        columns++;
    }
    return columns;
}
