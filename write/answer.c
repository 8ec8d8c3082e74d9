#include "write/answer.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "write/protocol.h"
#include "write/words.h"

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

/* Finds a mark in a text, and the rest after it. Returns false if the text does not have the mark.
 */
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

/* Returns the milliseconds until the time in "... reached, next reset at 2026-11-21T04:00:00Z", or
 * -1. */
static int64_t until_reset_ms(struct sv message, int64_t wall_ns)
{
    struct sv time;
    int64_t reset_ns;
    if (!find_after(message, "next reset at ", &time) || !clock_take_rfc3339(&time, 9, &reset_ns)) {
        return -1;
    }
    return reset_ns > wall_ns ? (reset_ns - wall_ns) / NS_PER_MS : 0;
}

/* Returns true if the size in "push rate limit (4.0 MiB) exceeded while adding 2.3 MiB" is larger
 * than the default burst.
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

static void set_outage(struct answer *a)
{
    a->class = ANSWER_RETRY;
    a->scope = ANSWER_OF_ENDPOINT;
}

/* Returns true if the message is about a limit of size, which servers answer in the way of a rate
 * limit. */
static bool is_over_size(struct sv message)
{
    return (answer_mentions(message, "message size") && answer_mentions(message, "larger than")) ||
           answer_mentions(message, "message larger than max");
}

/* Classifies a rate limit, whatever its status, or a profile that no rate limit lets pass. */
static void classify_rate(struct sv message, struct answer *a)
{
    if (is_over_size(message)) {
        a->class = ANSWER_REJECTED;
    } else if (is_over_burst(message)) {
        answer_set_doubtful(a, ANSWER_FEW_TRIES);
        a->fault = ANSWER_FAULT_BURST;
    } else {
        answer_set_doubtful(a, ANSWER_RATE_TRIES);
        a->scope = ANSWER_OF_TENANT;
    }
}

/* Classifies a 429: a body over the limit (refused for good), a quota with a reset time, or a rate
 * limit. */
static void classify_429(const struct answer_input *in, struct sv message, struct answer *a)
{
    if (!in->retry_on_429) {
        a->class = ANSWER_REJECTED;
        return;
    }
    int64_t reset_ms = until_reset_ms(message, in->wall_ns);
    if (reset_ms >= 0) {
        a->class = ANSWER_RETRY;
        a->scope = ANSWER_OF_TENANT;
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
        if (in->protocol->read_taken != NULL) {
            in->protocol->read_taken(in, r, a);
        }
    } else {
        answer_set_doubtful(a, ANSWER_TRIES);
    }
}

/* Classifies an answer by its words. Returns false if they do not show who is at fault. */
static bool classify_words(const struct reply *r, struct answer *a)
{
    switch (words_meaning(r->code, r->message)) {
    case WORDS_OUTAGE:
        set_outage(a);
        return true;
    case WORDS_RATE:
        classify_rate(r->message, a);
        return true;
    case WORDS_REJECTED:
        a->class = ANSWER_REJECTED;
        return true;
    case WORDS_DOUBT:
    case WORDS_NOTHING:
    default:
        return false;
    }
}

/* Before version 2.2, Pyroscope answers 422 to every failure; the text contains the code. */
static void classify_422(const struct reply *r, struct answer *a)
{
    if (classify_words(r, a)) {
        return;
    }
    if (answer_mentions(r->message, "parsing ") || answer_mentions(r->message, "tenant")) {
        a->class = ANSWER_REJECTED;
        return;
    }
    bool doubt = words_meaning(r->code, r->message) == WORDS_DOUBT;
    answer_set_doubtful(a, doubt ? ANSWER_TRIES : ANSWER_FEW_TRIES);
}

/* Classifies the statuses that mean the same for all protocols. */
static bool classify_common(const struct answer_input *in, const struct reply *r, struct answer *a)
{
    switch (in->status) {
    case 401:
    case 403:
    case 404:
        a->class = ANSWER_RETRY;
        a->scope = ANSWER_OF_TENANT;
        a->delay_ms = ANSWER_SLOW_MS;
        return true;
    case 408:
    case 425:
        a->class = ANSWER_RETRY;
        return true;
    case 422:
        classify_422(r, a);
        return true;
    case 429:
        classify_429(in, r->message, a);
        return true;
    case 500:
        return classify_words(r, a);
    case 502:
    case 503:
    case 504:
        set_outage(a);
        return true;
    default:
        return false;
    }
}

static void classify_status(const struct answer_input *in, const struct reply *r, struct answer *a)
{
    const struct protocol *p = in->protocol;
    if (in->status >= 300 && p->knows != NULL && p->knows(in, r, a)) {
        return;
    }
    if (classify_common(in, r, a)) {
        return;
    }
    if (in->status >= 200 && in->status < 300) {
        classify_2xx(in, r, a);
    } else if (in->status < 400) {
        a->class = ANSWER_REJECTED;
    } else if (p->classify != NULL) {
        p->classify(in, r, a);
    } else {
        a->class = in->status >= 500 ? ANSWER_RETRY : ANSWER_REJECTED;
    }
}

/* Returns why a profile was refused for good, from the phrases that servers use. */
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
        {"message larger than max", ANSWER_FAULT_TOO_LARGE},
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
    a->scope = ANSWER_OF_ENDPOINT;
    if (in->result == HTTP_ERR_CONFIG) {
        a->delay_ms = ANSWER_SLOW_MS;
    }
}

/* ---- text ------------------------------------------------------------------------------------ */

static bool begins_char(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

/* Returns the number of bytes of the first n characters. */
static size_t skip_chars(struct sv v, size_t n)
{
    size_t i = 0;
    for (; i < v.n; i++) {
        if (begins_char(v.p[i]) && n-- == 0) {
            break;
        }
    }
    return i;
}

/* Appends text; control characters and line ends become spaces. Returns the new length. */
static size_t put_text(struct sv v, char *out, size_t n, size_t size)
{
    for (size_t i = 0; i < v.n && n + 1 < size; i++) {
        unsigned char c = (unsigned char)v.p[i];
        out[n++] = c < 0x20 || c == 0x7f ? ' ' : (char)c;
    }
    out[n] = '\0';
    return n;
}

void answer_copy_text(struct sv v, char *out, size_t size)
{
    struct buf text;
    buf_init(&text, 4 * ANSWER_BODY_MAX);
    utf8_repair(v, &text);
    struct sv all = {.p = text.data, .n = text.len};
    if (skip_chars(all, ANSWER_TEXT_MAX) == all.n) {
        (void)put_text(all, out, 0, size);
    } else {
        struct sv cut = SV(ANSWER_TEXT_CUT);
        struct sv head = {.p = all.p,
                          .n = skip_chars(all, ANSWER_TEXT_MAX - ANSWER_TEXT_TAIL - cut.n)};
        size_t at = all.n;
        for (size_t left = ANSWER_TEXT_TAIL; left > 0; left -= begins_char(all.p[at])) {
            at--;
        }
        size_t n = put_text(head, out, 0, size);
        n = put_text(cut, out, n, size);
        (void)put_text(sv_skip(all, at), out, n, size);
    }
    buf_done(&text);
}

/* Copies a message with its label sets shortened, because servers repeat the labels of the profile
 * before they give the reason. */
static void copy_message(struct sv message, char *out, size_t size)
{
    struct buf text;
    buf_init(&text, 5 * ANSWER_BODY_MAX);
    bool ok = words_elide(message, &text);
    answer_copy_text(ok ? (struct sv){.p = text.data, .n = text.len} : message, out, size);
    buf_done(&text);
}

static void describe(const struct answer_input *in, const struct reply *r, struct answer *a)
{
    char text[4 * ANSWER_TEXT_MAX + 1];
    if (in->status == 0) {
        answer_copy_text(sv_from(in->error), text, sizeof(text));
        (void)snprintf(a->text, sizeof(a->text), "%s",
                       text[0] ? text : http_result_name(in->result));
        return;
    }
    if (in->status >= 300 && in->status < 400 && r->own_text[0] == '\0') {
        /* Without the query, which may hold a secret and explains nothing. */
        struct sv shown = {.p = in->location, .n = strcspn(in->location, "?#")};
        answer_copy_text(shown, text, sizeof(text));
        (void)snprintf(a->text, sizeof(a->text), "HTTP %ld: redirect to %s is not followed",
                       in->status, text[0] ? text : "nowhere");
        return;
    }
    if (in->status < 300) {
        answer_copy_text(sv_from(in->content_type), text, sizeof(text));
        (void)snprintf(a->text, sizeof(a->text),
                       "HTTP %ld with content type \"%s\": not the answer of a profile store",
                       in->status, text);
        return;
    }
    char status[32];
    (void)snprintf(status, sizeof(status), "HTTP %ld", in->status);
    copy_message(r->message, text, sizeof(text));
    (void)snprintf(a->text, sizeof(a->text), "%s%s%s", in->says != NULL ? in->says : status,
                   text[0] ? ": " : "", text);
}

void answer_classify(const struct answer_input *given, struct answer *ret_answer)
{
    struct answer_input own = *given;
    const struct answer_input *in = &own;
    struct reply r;
    if (own.protocol->translate != NULL) {
        own.protocol->translate(&own);
    }
    struct answer a = {.class = ANSWER_REJECTED,
                       .scope = ANSWER_OF_PROFILE,
                       .answered = in->status != 0,
                       .status = in->status};
    reply_init(&r, in->body);
    if (in->protocol->read_refusal != NULL && r.json == NULL) {
        in->protocol->read_refusal(in, &r);
    }
    if (in->status != 0) {
        classify_status(in, &r, &a);
    } else {
        classify_transport(in, &a);
    }
    /* The server cannot have taken what it has not read. */
    bool is_early = in->early && in->status >= 200 && in->status < 300;
    if (is_early) {
        answer_set_doubtful(&a, ANSWER_TRIES);
        a.refused = 0;
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
    if (is_early) {
        (void)snprintf(a.text, sizeof(a.text), "HTTP %ld before the request was sent", in->status);
    } else if (a.class != ANSWER_SENT) {
        describe(in, &r, &a);
    }
    json_decref(r.json);
    *ret_answer = a;
}

bool answer_is_about_content(const struct answer *a)
{
    return a->class == ANSWER_REJECTED ||
           (a->class == ANSWER_RETRY_DOUBTFUL && a->scope == ANSWER_OF_PROFILE);
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
