/* Properties of the results of base's parsers and escapers. The first byte selects one; the rest is
 * the text. */
#include <jansson.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "base/utf8.h"
#include "tests/fuzz/fuzz.h"

#define OUT_MAX ((size_t)16 * 1024 * 1024)

/* Fails the run, unlike assert() in all builds. */
static void must(bool ok, const char *what)
{
    if (!ok) {
        (void)fprintf(stderr, "does not hold: %s\n", what);
        abort();
    }
}

/* The form of every error. */
static void check_refusal(const struct err *e)
{
    must(e->kind == ERR_INPUT && e->msg[0] != '\0', "a refusal has a kind and a text");
    must(strlen(e->msg) < 300, "a refusal is short");
}

static void fuzz_duration(struct sv v)
{
    struct err e = ERR_INIT;
    int64_t ms;
    int64_t again;
    char text[64];
    if (!parse_duration_ms(v, &ms, &e)) {
        check_refusal(&e);
        return;
    }
    must(e.kind == ERR_NONE, "success leaves the error alone");
    must(ms >= 0 && ms <= INT64_MAX / 1000000, "a duration fits nanoseconds");
    format_duration_ms(ms, text, sizeof(text));
    must(parse_duration_ms(sv_from(text), &again, NULL) && again == ms, "duration round trip");
}

static void fuzz_size(struct sv v)
{
    struct err e = ERR_INIT;
    uint64_t bytes;
    uint64_t again;
    char text[64];
    if (!parse_size(v, &bytes, &e)) {
        check_refusal(&e);
        return;
    }
    format_size(bytes, text, sizeof(text));
    must(parse_size(sv_from(text), &again, NULL) && again == bytes, "size round trip");
}

static void fuzz_host_port(struct sv v)
{
    struct err e = ERR_INIT;
    struct sv host;
    struct sv host_again;
    uint16_t port;
    uint16_t port_again;
    if (!split_host_port(v, &host, &port, &e)) {
        check_refusal(&e);
        return;
    }
    must(host.n > 0 && host.p >= v.p && host.p + host.n <= v.p + v.n, "the host is part of it");
    for (size_t i = 0; i < host.n; i++) {
        must(host.p[i] > ' ' && host.p[i] < 0x7f && strchr("/?#@[]\\", host.p[i]) == NULL,
             "nothing in a host ends it early in a URL");
    }
    struct buf text;
    bool ipv6 = memchr(host.p, ':', host.n) != NULL;
    buf_init(&text, OUT_MAX);
    buf_printf(&text, ipv6 ? "[%.*s]" : "%.*s", SV_ARG(host));
    if (port != 0) {
        buf_printf(&text, ":%u", (unsigned)port);
    }
    must(split_host_port((struct sv){.p = text.data, .n = text.len}, &host_again, &port_again, &e),
         "host and port put together again");
    must(sv_eq(host, host_again) && port == port_again, "host and port round trip");
    buf_done(&text);
}

static void fuzz_utf8(struct sv v)
{
    struct buf once;
    struct buf twice;
    buf_init(&once, OUT_MAX);
    buf_init(&twice, OUT_MAX);
    must(utf8_repair(v, &once), "repair has room");
    struct sv repaired = {.p = once.data, .n = once.len};
    must(utf8_valid(repaired), "what is repaired is valid");
    must(utf8_valid(v) == sv_eq(v, repaired), "what is valid stays as it is");
    must(utf8_repair(repaired, &twice) &&
             sv_eq(repaired, (struct sv){.p = twice.data, .n = twice.len}),
         "nothing is repaired twice");
    buf_done(&once);
    buf_done(&twice);
}

/* Another JSON parser must get the text as utf8_repair() makes it. */
static void fuzz_json(struct sv v)
{
    struct buf doc;
    struct buf repaired;
    buf_init(&doc, OUT_MAX);
    buf_init(&repaired, OUT_MAX);
    buf_puts(&doc, "\"");
    must(json_escape(v, &doc) && buf_puts(&doc, "\"") && utf8_repair(v, &repaired), "room");
    json_error_t why;
    json_t *j = json_loadb(doc.data, doc.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    must(j != NULL, "escaped text is JSON");
    must(sv_eq((struct sv){.p = json_string_value(j), .n = json_string_length(j)},
               (struct sv){.p = repaired.data, .n = repaired.len}),
         "JSON round trip");
    json_decref(j);
    buf_done(&doc);
    buf_done(&repaired);
}

/* Each character decoded and encoded again gives the same bytes, and no prefix ends within one. */
static void fuzz_characters(struct sv v)
{
    size_t max = v.n / 2;
    size_t cut = utf8_prefix(v, max);
    must(cut <= max, "a prefix is no longer than asked for");
    must(!utf8_valid(v) || utf8_valid((struct sv){.p = v.p, .n = cut}), "no character is cut");
    while (v.n > 0) {
        uint32_t rune;
        char bytes[UTF8_BYTES_MAX];
        size_t n = utf8_decode(v, &rune);
        must(n > 0 || rune == UTF8_REPLACEMENT_RUNE, "a bad byte gives the replacement");
        must(n == 0 || (utf8_encode(rune, bytes) == n && memcmp(bytes, v.p, n) == 0),
             "character round trip");
        v = sv_skip(v, n > 0 ? n : 1);
    }
}

static void fuzz_log(struct sv v)
{
    char line[LOG_LINE_MAX];
    char msg[256];
    (void)snprintf(msg, sizeof(msg), "%.*s", SV_ARG(v));
    const struct log_field fields[] = {LOG_SV("value", v), LOG_INT("n", v.n), LOG_END};
    size_t len = log_line_format(line, 0, LOG_WARN, LOG_JSON, msg, fields);
    must(len > 0 && len <= LOG_LINE_MAX && line[len - 1] == '\n', "one line of JSON");
    json_error_t why;
    json_t *j = json_loadb(line, len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &why);
    must(json_is_object(j), "a JSON line is an object");
    json_decref(j);
    len = log_line_format(line, 0, LOG_WARN, LOG_LOGFMT, msg, fields);
    must(len > 0 && len <= LOG_LINE_MAX && line[len - 1] == '\n', "one logfmt line");
    must(utf8_valid((struct sv){.p = line, .n = len}), "a line is valid UTF-8");
    for (size_t i = 0; i + 1 < len; i++) {
        must((unsigned char)line[i] >= 0x20 && line[i] != 0x7f, "no control within a line");
    }
}

static void fuzz_views(struct sv v)
{
    static const char *const keys[] = {"scrape_interval", "scrape_timeout", "url", "a"};
    const char *near = suggest(v, keys, sizeof(keys) / sizeof(keys[0]));
    must(near == NULL || v.n > 0, "nothing is near to nothing");
    struct sv trimmed = sv_trim(v);
    must(trimmed.n <= v.n && sv_eq(sv_trim(trimmed), trimmed), "trimming once is enough");
    struct sv head;
    struct sv tail;
    if (sv_cut(v, ':', &head, &tail)) {
        must(head.n + 1 + tail.n == v.n && sv_starts_with(v, head) && sv_ends_with(v, tail), "cut");
    }
    uint64_t hash = hash_bytes(v.p, v.n, 1);
    must(hash == hash_bytes(v.p, v.n, 1), "the hash is a function");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const targets[])(struct sv) = {
        fuzz_duration, fuzz_size,       fuzz_host_port, fuzz_utf8,
        fuzz_json,     fuzz_characters, fuzz_log,       fuzz_views,
    };
    if (size > 0) {
        targets[data[0] % (sizeof(targets) / sizeof(targets[0]))](
            (struct sv){.p = (const char *)data + 1, .n = size - 1});
    }
    return 0;
}
