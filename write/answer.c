#include "write/answer.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "write/protocol.h"

static void reply_init(struct reply *r, struct sv body)
{
    *r = (struct reply){.code = "", .message = sv_trim(body)};
    r->json = body.n > 0 ? json_loadb(body.p, body.n, JSON_ALLOW_NUL, NULL) : NULL;
    const char *code = json_string_value(json_object_get(r->json, "code"));
    json_t *message = json_object_get(r->json, "message");
    if (message == NULL) {
        message = json_object_get(r->json, "error"); /* profefe */
    }
    if (code != NULL) {
        r->code = code;
    }
    if (json_is_string(message)) {
        r->message = (struct sv){.p = json_string_value(message), .n = json_string_length(message)};
    }
}

/* False if the text does not hold the mark. */
static bool find_after(struct sv text, const char *mark, struct sv *ret_rest)
{
    size_t n = strlen(mark);
    const char *at = text.n > 0 ? memmem(text.p, text.n, mark, n) : NULL;
    if (at != NULL) {
        *ret_rest = sv_skip(text, (size_t)(at - text.p) + n);
    }
    return at != NULL;
}

bool answer_mentions(struct sv text, const char *part)
{
    struct sv rest;
    return find_after(text, part, &rest);
}

bool answer_type_is(const char *content_type, const char *wanted)
{
    size_t n = strlen(wanted);
    if (strncasecmp(content_type, wanted, n) != 0) {
        return false;
    }
    char after = content_type[n];
    return after == '\0' || after == ';' || after == ' ' || after == '+';
}

void answer_set_doubtful(struct answer *a, unsigned tries)
{
    a->class = ANSWER_RETRY_DOUBTFUL;
    a->tries = tries;
}

/* ---- by status ------------------------------------------------------------------------------- */

/* "... reached, next reset at 2026-11-21T04:00:00Z": milliseconds until then, or -1. */
static int64_t until_reset_ms(struct sv message, int64_t wall_ns)
{
    struct sv time;
    int64_t reset_ns;
    if (!find_after(message, "next reset at ", &time) || !clock_take_rfc3339(&time, 9, &reset_ns)) {
        return -1;
    }
    return reset_ns > wall_ns ? (reset_ns - wall_ns) / NS_PER_MS : 0;
}

/* "push rate limit (4.0 MiB) exceeded while adding 2.3 MiB": true if that is more than the burst.
 */
static bool is_over_burst(struct sv message)
{
    struct sv rest, number, unit, whole;
    struct sv fraction = SV("");
    if (!find_after(message, " exceeded while adding ", &rest) ||
        !sv_cut(rest, ' ', &number, &unit)) {
        return false;
    }
    if (!sv_cut(number, '.', &whole, &fraction)) {
        whole = number;
    }
    uint64_t n;
    if (!parse_u64(whole, 1 << 20, &n)) {
        return false;
    }
    bool more = fraction.n > 0 && !sv_eq_str(fraction, "0");
    if (sv_starts_with(unit, SV("MiB")) || sv_starts_with(unit, SV("MB"))) {
        return n > ANSWER_BURST_MIB || (n == ANSWER_BURST_MIB && more);
    }
    return sv_starts_with(unit, SV("G")) && n > 0;
}

/* A rate limit: a 429, or the 422 of an older server. */
static void classify_rate(struct sv message, struct answer *a)
{
    bool never = is_over_burst(message);
    answer_set_doubtful(a, never ? ANSWER_FEW_TRIES : ANSWER_RATE_TRIES);
    if (never) {
        a->fault = ANSWER_FAULT_BURST;
    }
}

/* A body over the limit (refused for good), a quota with a reset time, or a rate limit. */
static void classify_429(const struct answer_input *in, struct sv message, struct answer *a)
{
    bool too_large =
        answer_mentions(message, "message size") && answer_mentions(message, "larger than");
    if (too_large || !in->retry_on_429) {
        a->class = ANSWER_REJECTED;
        return;
    }
    int64_t reset_ms = until_reset_ms(message, in->wall_ns);
    if (reset_ms >= 0) {
        a->class = ANSWER_RETRY;
        a->delay_ms = reset_ms;
        return;
    }
    classify_rate(message, a);
}

static void classify_2xx(const struct answer_input *in, const struct reply *r, struct answer *a)
{
    /* A login page or a user interface also says 200. */
    bool ok = in->protocol->accepts != NULL ? in->protocol->accepts(in, r)
                                            : !answer_type_is(in->content_type, "text/html");
    if (ok) {
        a->class = ANSWER_SENT;
    } else {
        answer_set_doubtful(a, ANSWER_TRIES);
    }
}

/* Before version 2.2, Pyroscope answers 422 to every failure; the text contains the code. */
static void classify_422(struct sv message, struct answer *a)
{
    static const struct {
        const char *phrase;
        enum answer_class class;
        unsigned tries; /* ANSWER_RETRY_DOUBTFUL */
    } phrases[] = {
        {"unavailable:", ANSWER_RETRY, 0},
        {"deadline_exceeded:", ANSWER_RETRY, 0},
        {"canceled:", ANSWER_RETRY, 0},
        {"resource_exhausted:", ANSWER_RETRY_DOUBTFUL, ANSWER_RATE_TRIES},
        {"internal:", ANSWER_RETRY_DOUBTFUL, ANSWER_TRIES},
        {"invalid_argument:", ANSWER_REJECTED, 0},
        {"parsing ", ANSWER_REJECTED, 0},
        {"tenant", ANSWER_REJECTED, 0},
        {"", ANSWER_RETRY_DOUBTFUL, ANSWER_FEW_TRIES}, /* everything else */
    };
    size_t i = 0;
    while (phrases[i].phrase[0] != '\0' && !answer_mentions(message, phrases[i].phrase)) {
        i++;
    }
    a->class = phrases[i].class;
    a->tries = phrases[i].tries;
    if (a->tries == ANSWER_RATE_TRIES) {
        classify_rate(message, a);
    }
}

static void classify_status(const struct answer_input *in, const struct reply *r, struct answer *a)
{
    switch (in->status) {
    case 401:
    case 403:
    case 404:
        a->class = ANSWER_RETRY;
        a->delay_ms = ANSWER_SLOW_MS;
        return;
    case 408:
    case 425:
        a->class = ANSWER_RETRY;
        return;
    case 422:
        classify_422(r->message, a);
        return;
    case 429:
        classify_429(in, r->message, a);
        return;
    default:
        break;
    }
    if (in->status >= 200 && in->status < 300) {
        classify_2xx(in, r, a);
    } else if (in->status < 400) {
        a->class = ANSWER_REJECTED;
    } else if (in->protocol->classify != NULL) {
        in->protocol->classify(in, r, a);
    } else {
        a->class = in->status >= 500 ? ANSWER_RETRY : ANSWER_REJECTED;
    }
}

/* Why a profile was refused for good, from the phrases that servers use. */
static enum answer_fault fault_of(long status, struct sv message)
{
    static const struct {
        const char *phrase;
        enum answer_fault fault;
    } phrases[] = {
        {"outside of ingestion window", ANSWER_FAULT_TOO_OLD},
        {"exceeds the size limit", ANSWER_FAULT_TOO_LARGE},
        {"exceeds maximum allowed size", ANSWER_FAULT_TOO_LARGE},
        {"payload size exceeds", ANSWER_FAULT_TOO_LARGE},
        {"exceeds the samples count", ANSWER_FAULT_TOO_LARGE},
        {"larger than configured max", ANSWER_FAULT_TOO_LARGE},
        {"body too large", ANSWER_FAULT_TOO_LARGE},
    };
    for (size_t i = 0; i < sizeof(phrases) / sizeof(phrases[0]); i++) {
        if (answer_mentions(message, phrases[i].phrase)) {
            return phrases[i].fault;
        }
    }
    return status == 413 ? ANSWER_FAULT_TOO_LARGE : ANSWER_FAULT_OTHER;
}

static void classify_transport(const struct answer_input *in, struct answer *a)
{
    a->class = in->result == HTTP_ERR_REDIRECT ? ANSWER_REJECTED : ANSWER_RETRY;
    if (in->result == HTTP_ERR_CONFIG) {
        a->delay_ms = ANSWER_SLOW_MS;
    }
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Copies up to ANSWER_TEXT_MAX characters; control characters and line ends become spaces. */
static void copy_text(struct sv v, char *out, size_t size)
{
    struct buf text;
    buf_init(&text, 4 * ANSWER_BODY_MAX);
    utf8_repair(v, &text);
    size_t chars = 0;
    size_t n = 0;
    for (size_t i = 0; i < text.len && n + 1 < size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if ((c & 0xc0) != 0x80 && ++chars > ANSWER_TEXT_MAX) {
            break;
        }
        out[n++] = c < 0x20 || c == 0x7f ? ' ' : (char)c;
    }
    out[n] = '\0';
    buf_done(&text);
}

static void describe(const struct answer_input *in, const struct reply *r, struct answer *a)
{
    char text[4 * ANSWER_TEXT_MAX + 1];
    if (in->status == 0) {
        copy_text(sv_from(in->error), text, sizeof(text));
        (void)snprintf(a->text, sizeof(a->text), "%s",
                       text[0] ? text : http_result_name(in->result));
        return;
    }
    if (in->status >= 300 && in->status < 400) {
        /* Without the query, which may hold a secret and explains nothing. */
        struct sv shown = {.p = in->location, .n = strcspn(in->location, "?#")};
        copy_text(shown, text, sizeof(text));
        (void)snprintf(a->text, sizeof(a->text), "HTTP %ld: redirect to %s is not followed",
                       in->status, text[0] ? text : "nowhere");
        return;
    }
    if (in->status < 300) {
        copy_text(sv_from(in->content_type), text, sizeof(text));
        (void)snprintf(a->text, sizeof(a->text),
                       "HTTP %ld with content type \"%s\": not the answer of a profile store",
                       in->status, text);
        return;
    }
    copy_text(r->message, text, sizeof(text));
    (void)snprintf(a->text, sizeof(a->text), "HTTP %ld%s%s", in->status, text[0] ? ": " : "", text);
}

void answer_classify(const struct answer_input *in, struct answer *ret_answer)
{
    struct answer a = {.class = ANSWER_REJECTED, .answered = in->status != 0};
    struct reply r;
    reply_init(&r, in->body);
    if (in->status != 0) {
        classify_status(in, &r, &a);
    } else {
        classify_transport(in, &a);
    }
    if (a.class == ANSWER_REJECTED) {
        a.fault = fault_of(in->status, r.message);
    }
    bool again = a.class == ANSWER_RETRY || a.class == ANSWER_RETRY_DOUBTFUL;
    if (again && in->retry_after_ms > a.delay_ms) {
        a.delay_ms = in->retry_after_ms;
    }
    if (a.delay_ms > ANSWER_DELAY_MAX_MS) {
        a.delay_ms = ANSWER_DELAY_MAX_MS;
    }
    if (a.class != ANSWER_SENT) {
        describe(in, &r, &a);
    }
    json_decref(r.json);
    *ret_answer = a;
}

const char *answer_result_name(enum http_result result, long status)
{
    static const char *const classes[] = {"2xx", "3xx", "4xx", "5xx"};
    if (status == 429) {
        return "429";
    }
    if (status < 200) {
        return http_result_name(result);
    }
    return classes[status < 500 ? status / 100 - 2 : 3];
}
