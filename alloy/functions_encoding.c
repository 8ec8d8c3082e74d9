/* Base64 and the encoding of URLs. */
#include <string.h>

#include "alloy/functions.h"
#include "base/ascii.h"
#include "base/base64.h"

/* The standard alphabet and that of URLs differ in two characters. */
static const char standard[] = "+/";
static const char for_urls[] = "-_";

static void translate(struct buf *text, const char *from, const char *to)
{
    for (size_t i = 0; i < text->len; i++) {
        const char *at = memchr(from, text->data[i], 2);
        if (at != NULL) {
            text->data[i] = to[at - from];
        }
    }
}

/* The result is an array of bytes, not a string: "+" does not take it. */
static const struct alloy_value *from_base64(const struct alloy_call *call, const char *alphabet)
{
    struct sv text;
    struct buf in;
    struct buf out;
    if (!alloy_arg_text(call, 0, &text)) {
        return &alloy_unknown;
    }
    buf_init(&in, ALLOY_STRING_MAX);
    buf_init(&out, ALLOY_STRING_MAX);
    const char *other = alphabet == standard ? for_urls : standard;
    bool ok = true;
    for (size_t i = 0; i < text.n && ok; i++) {
        char c = text.p[i];
        ok = c != ' ' && c != '\t' && memchr(other, c, 2) == NULL;
        if (c != '\r' && c != '\n') {
            buf_putc(&in, c);
        }
    }
    translate(&in, alphabet, standard);
    ok = ok && base64_decode((struct sv){in.data, in.len}, &out);
    buf_done(&in);
    if (!ok) {
        buf_done(&out);
        return alloy_call_fail(call, 0, "expected text in base64 with padding");
    }
    const struct alloy_value *v = alloy_text_result(call, &out);
    struct alloy_value *bytes = alloy_value_new(call->ev->arena, VALUE_BYTES);
    if (v->kind == VALUE_UNKNOWN || bytes == NULL) {
        return bytes == NULL ? alloy_result(call, NULL) : v;
    }
    bytes->text = v->text;
    return alloy_result(call, bytes);
}

static const struct alloy_value *to_base64(const struct alloy_call *call, const char *alphabet)
{
    struct sv text;
    struct buf out;
    if (!alloy_arg_text(call, 0, &text)) {
        return &alloy_unknown;
    }
    buf_init(&out, ALLOY_STRING_MAX);
    base64_encode(text, &out);
    translate(&out, standard, alphabet);
    return alloy_text_result(call, &out);
}

const struct alloy_value *alloy_from_base64(const struct alloy_call *call)
{
    return from_base64(call, standard);
}

const struct alloy_value *alloy_from_url_base64(const struct alloy_call *call)
{
    return from_base64(call, for_urls);
}

const struct alloy_value *alloy_to_base64(const struct alloy_call *call)
{
    return to_base64(call, standard);
}

const struct alloy_value *alloy_to_url_base64(const struct alloy_call *call)
{
    return to_base64(call, for_urls);
}

/* Encodes a text as in a query: a space becomes "+". */
const struct alloy_value *alloy_url_encode(const struct alloy_call *call)
{
    static const char hex[] = "0123456789ABCDEF";
    struct sv text;
    struct buf out;
    if (!alloy_arg_text(call, 0, &text)) {
        return &alloy_unknown;
    }
    buf_init(&out, ALLOY_STRING_MAX);
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (ascii_is_alnum((char)c) || (c != '\0' && strchr("-._~", c) != NULL)) {
            buf_putc(&out, (char)c);
        } else if (c == ' ') {
            buf_putc(&out, '+');
        } else {
            buf_append(&out, (const char[]){'%', hex[c >> 4], hex[c & 15]}, 3);
        }
    }
    return alloy_text_result(call, &out);
}

const struct alloy_value *alloy_url_decode(const struct alloy_call *call)
{
    struct sv text;
    struct buf out;
    if (!alloy_arg_text(call, 0, &text)) {
        return &alloy_unknown;
    }
    buf_init(&out, ALLOY_STRING_MAX);
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == '%') {
            int high = text.n - i > 2 ? ascii_hex_value(text.p[i + 1]) : -1;
            int low = high >= 0 ? ascii_hex_value(text.p[i + 2]) : -1;
            if (low < 0) {
                buf_done(&out);
                return alloy_call_fail(call, 0, "expected two hexadecimal digits after \"%%\"");
            }
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+') {
            c = ' ';
        }
        buf_putc(&out, c);
    }
    return alloy_text_result(call, &out);
}
