/* What the HTTP client reads from the other side by itself: Location, Retry-After, and the head of
 * an answer that libcurl has not read. Input: "<URL>\n<the rest>". */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "http/private.h"

#define BODY_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Stays in a build with NDEBUG. */
static void check(bool ok)
{
    if (!ok) {
        abort();
    }
}

/* The text that is shown has no userinfo and is cut to the room that there is. */
static void fuzz_redact(const char *text)
{
    char out[HTTP_URL_REDACTED_MAX], tiny[8];
    struct http_url url;
    http_url_redact(text, out, sizeof(out));
    check(strlen(out) < sizeof(out));
    if (http_url_parse(out, &url, NULL) == HTTP_DONE) {
        check(url.password == NULL);
        http_url_done(&url);
    }
    http_url_redact(text, tiny, sizeof(tiny));
    check(strlen(tiny) < sizeof(tiny));
}

/* "Same origin" is true of the target as it will be asked for, and of no other. */
static void fuzz_resolve(const char *base, const char *location)
{
    struct http_url from, to;
    bool same = false;
    if (http_url_parse(base, &from, NULL) != HTTP_DONE) {
        return;
    }
    char *target = http_url_resolve(base, location, &same);
    if (target != NULL) {
        check(http_url_parse(target, &to, NULL) == HTTP_DONE);
        check(to.user == NULL && to.password == NULL);
        check(same ==
              (from.https == to.https && from.port == to.port && strcmp(from.host, to.host) == 0));
        check(!same || http_url_origin_hash(&from) == http_url_origin_hash(&to));
        http_url_done(&to);
    }
    free(target);
    http_url_done(&from);
}

static void fuzz_late(const char *bytes, size_t n)
{
    struct http_transfer t = {.request.max_body = BODY_MAX};
    buf_init(&t.body, BODY_MAX);
    http_transfer_take_late(&t, (struct sv){bytes, n});
    check(t.body.len <= BODY_MAX);
    check(!t.head_done || (t.status >= 200 && t.status <= 999));
    check(t.header_lines <= HTTP_HEADER_LINES_MAX + 1);
    check(t.retry_after_ms >= -1);
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
        check(ms >= -1 && ms <= HTTP_RETRY_AFTER_MAX_S * MS_PER_S);
        fuzz_resolve(text, rest);
    }
    fuzz_redact(text);
    free(text);
    return 0;
}
