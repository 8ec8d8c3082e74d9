/* The text that the HTTP client parses by itself: Location, Retry-After, and the head of a response
 * that libcurl has not read. Input: "<URL>\n<the rest>". */
#include <string.h>

#include "base/ascii.h"
#include "base/clock.h"
#include "http/private.h"
#include "tests/fuzz/fuzz.h"

#define BODY_MAX 64

/* A redacted URL has no userinfo and fits its buffer. */
static void fuzz_redact(const char *text)
{
    char out[URL_REDACTED_MAX], tiny[8];
    struct url url;
    url_redact(text, out, sizeof(out));
    REQUIRE(strlen(out) < sizeof(out));
    if (url_parse(out, &url, NULL)) {
        REQUIRE(url.password == NULL);
        url_done(&url);
    }
    url_redact(text, tiny, sizeof(tiny));
    REQUIRE(strlen(tiny) < sizeof(tiny));
}

/* "Same origin" is true for the target as it will be requested, and for no other. */
static void fuzz_resolve(const char *base, const char *location)
{
    struct url from, to;
    bool same = false;
    if (!url_parse(base, &from, NULL)) {
        return;
    }
    char *target = url_resolve(base, location, &same);
    if (target != NULL) {
        REQUIRE(url_parse(target, &to, NULL));
        REQUIRE(to.user == NULL && to.password == NULL);
        REQUIRE(same == (from.https == to.https && from.port == to.port &&
                         strcmp(from.host, to.host) == 0));
        REQUIRE(!same || url_origin_hash(&from) == url_origin_hash(&to));
        url_done(&to);
    }
    free(target);
    url_done(&from);
}

static unsigned hex_digit(char c)
{
    int value = ascii_hex_value(c);
    REQUIRE(value >= 0 && !ascii_is_lower(c));
    return (unsigned)value;
}

/* Decoding what was encoded gives the same bytes. */
static void fuzz_percent(struct sv v)
{
    struct buf out;
    buf_init(&out, 3 * v.n);
    REQUIRE(url_encode(v, &out));
    size_t n = 0;
    for (size_t i = 0; i < out.len; n++) {
        unsigned c = (unsigned char)out.data[i];
        if (c == '%') {
            REQUIRE(i + 2 < out.len);
            c = hex_digit(out.data[i + 1]) * 16 + hex_digit(out.data[i + 2]);
            i += 3;
        } else {
            i += 1;
        }
        REQUIRE(n < v.n && c == (unsigned char)v.p[n]);
    }
    REQUIRE(n == v.n);
    buf_done(&out);
}

static void fuzz_late(const char *bytes, size_t n)
{
    struct http_transfer t = {.request.max_body = BODY_MAX};
    buf_init(&t.body, BODY_MAX);
    http_transfer_take_late(&t, (struct sv){bytes, n});
    REQUIRE(t.body.len <= BODY_MAX);
    REQUIRE(!t.head_done || (t.status >= 200 && t.status <= 999));
    REQUIRE(t.header_lines <= HTTP_HEADER_LINES_MAX + 1);
    REQUIRE(t.retry_after_ms >= -1);
    free(t.location);
    buf_done(&t.body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL) {
        return 0;
    }
    memcpy(text, data, size);
    text[size] = '\0';
    char *rest = memchr(text, '\n', size);
    size_t rest_len = 0;
    if (rest != NULL) {
        *rest++ = '\0';
        rest_len = size - (size_t)(rest - text);
        fuzz_late(rest, rest_len);
        int64_t ms = http_retry_after((struct sv){rest, rest_len}, INT64_C(1795231414) * NS_PER_S);
        REQUIRE(ms >= -1 && ms <= HTTP_RETRY_AFTER_MAX_S * MS_PER_S);
        fuzz_resolve(text, rest);
    }
    fuzz_redact(text);
    fuzz_percent((struct sv){(const char *)data, size});
    free(text);
    return 0;
}
