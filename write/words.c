#include "write/words.h"

#include <string.h>

#include "base/ascii.h"

/* ---- what comes from the request ------------------------------------------------------------- */

/* Facts about the rest of a text, so that no text takes quadratic time. */
struct scan {
    struct sv text;
    bool no_end[128];     /* no further quote of this kind is closed */
    bool no_brace;        /* no further brace is closed */
    bool ignores_strings; /* quotes in braces do not delimit strings */
    size_t plain_until;   /* braces up to there are no label set */
};

/* Returns the length of the quoted part that begins at i, or 0. An apostrophe within a word begins
 * no quoted part. */
static size_t quoted(struct scan *s, size_t i)
{
    const char *p = s->text.p;
    char quote = p[i];
    if ((quote != '"' && quote != '\'') || s->no_end[(int)quote] ||
        (i > 0 && ascii_is_alnum((unsigned char)p[i - 1]))) {
        return 0;
    }
    for (size_t k = i + 1; k < s->text.n; k++) {
        bool last = k + 1 == s->text.n || !ascii_is_alnum((unsigned char)p[k + 1]);
        if (p[k] == '\\') {
            k++;
        } else if (p[k] == quote && last) {
            return k + 1 - i;
        }
    }
    s->no_end[(int)quote] = true;
    return 0;
}

/* Returns the end of the braces that begin at i, or 0. */
static size_t closing(const struct scan *s, size_t i, bool strings)
{
    bool inside = false;
    for (size_t k = i + 1; k < s->text.n; k++) {
        char c = s->text.p[k];
        if (inside && c == '\\') {
            k++;
        } else if (strings && c == '"') {
            inside = !inside;
        } else if (!inside && c == '}') {
            return k + 1;
        }
    }
    return 0;
}

/* Returns the length of the label set that begins at i, or 0. */
static size_t label_set(struct scan *s, size_t i)
{
    if (s->text.p[i] != '{' || s->no_brace || i < s->plain_until) {
        return 0;
    }
    size_t end = s->ignores_strings ? 0 : closing(s, i, true);
    if (end == 0) {
        s->ignores_strings = true;
        end = closing(s, i, false);
        s->no_brace = end == 0;
    }
    if (end == 0 || memchr(s->text.p + i, '=', end - i) != NULL) {
        return end != 0 ? end - i : 0;
    }
    s->plain_until = end;
    return 0;
}

/* ---- credentials ----------------------------------------------------------------------------- */

/* Returns true for a character that a token may have in this place, but a word may not. */
static bool is_no_word(char c, bool first)
{
    return ascii_is_digit((unsigned char)c) || c == '=' ||
           (!first && ascii_is_upper((unsigned char)c));
}

/* Looks for credentials at i, as in a message that repeats the request: a scheme, followed by a
 * text that is not a word. Returns the length of both, and in *ret_token that of the scheme; 0 if
 * there are none. */
static size_t credentials(struct sv text, size_t i, size_t *ret_token)
{
    static const char *const schemes[] = {"basic ", "bearer "};
    struct sv rest = sv_skip(text, i);
    size_t at = 0;
    for (size_t k = 0; k < sizeof(schemes) / sizeof(schemes[0]); k++) {
        size_t n = strlen(schemes[k]);
        if (rest.n > n && sv_eq_nocase((struct sv){.p = rest.p, .n = n}, schemes[k])) {
            at = n;
        }
    }
    size_t end = at;
    bool is_token = false;
    while (at > 0 && end < rest.n &&
           (ascii_is_alnum((unsigned char)rest.p[end]) || strchr("-._~+/=", rest.p[end]) != NULL)) {
        is_token = is_token || is_no_word(rest.p[end], end == at);
        end++;
    }
    *ret_token = at;
    return is_token ? end : 0;
}

/* ---- both ------------------------------------------------------------------------------------ */

static bool copy_without(struct sv message, bool quotes_too, struct buf *out)
{
    struct scan s = {.text = message};
    bool ok = true;
    for (size_t i = 0; i < message.n && ok;) {
        size_t scheme;
        size_t n = label_set(&s, i);
        if (n > 0) {
            ok = buf_puts(out, "{...}");
        } else if ((n = credentials(message, i, &scheme)) > 0) {
            ok = buf_append(out, message.p + i, scheme) && buf_puts(out, "***");
        } else if (quotes_too && (n = quoted(&s, i)) > 0) {
            ok = buf_puts(out, "'...'");
        } else {
            n = 1;
            ok = buf_append(out, message.p + i, 1);
        }
        i += n;
    }
    return ok;
}

bool words_elide(struct sv message, struct buf *out)
{
    return copy_without(message, false, out);
}

/* ---- codes ----------------------------------------------------------------------------------- */

/* All codes of gRPC but OK. */
static const struct {
    const char *grpc;
    const char *connect;
    enum words_meaning meaning;
} codes[] = {
    {"Canceled", "canceled", WORDS_OUTAGE},
    {"Unknown", "unknown", WORDS_NOTHING}, /* around other errors */
    {"InvalidArgument", "invalid_argument", WORDS_REJECTED},
    {"DeadlineExceeded", "deadline_exceeded", WORDS_OUTAGE},
    {"NotFound", "not_found", WORDS_DOUBT},
    {"AlreadyExists", "already_exists", WORDS_DOUBT},
    {"PermissionDenied", "permission_denied", WORDS_DOUBT},
    {"ResourceExhausted", "resource_exhausted", WORDS_RATE},
    {"FailedPrecondition", "failed_precondition", WORDS_DOUBT},
    {"Aborted", "aborted", WORDS_DOUBT},
    {"OutOfRange", "out_of_range", WORDS_REJECTED},
    {"Unimplemented", "unimplemented", WORDS_REJECTED},
    {"Internal", "internal", WORDS_DOUBT},
    {"Unavailable", "unavailable", WORDS_OUTAGE},
    {"DataLoss", "data_loss", WORDS_DOUBT},
    {"Unauthenticated", "unauthenticated", WORDS_DOUBT},
};

/* Outages that come without a code: Go's contexts and sockets, the rings of Pyroscope. */
static const char *const outages[] = {
    "context deadline exceeded",
    "context canceled",
    "connection refused",
    "no such host",
    "empty ring",
    "too many unhealthy instances in the ring",
    "live replicas required",
};

/* Returns true if the text has head, word and tail next to each other, and not within a longer
 * word. */
static bool says(struct sv text, const char *head, const char *word, const char *tail)
{
    char part[64];
    size_t n = 0;
    const char *const parts[] = {head, word, tail};
    for (size_t i = 0; i < 3; i++) {
        size_t len = strlen(parts[i]);
        memcpy(part + n, parts[i], len);
        n += len;
    }
    const char *at = text.p;
    const char *end = text.p + text.n;
    while (at != NULL && at < end && (at = memmem(at, (size_t)(end - at), part, n)) != NULL) {
        bool begins = at == text.p || !ascii_is_word((unsigned char)at[-1]);
        bool ends = at + n == end || tail[0] != '\0' || !ascii_is_word((unsigned char)at[n]);
        if (begins && ends) {
            return true;
        }
        at++;
    }
    return false;
}

static enum words_meaning meaning_of(const char *code, struct sv text)
{
    enum words_meaning meaning = WORDS_NOTHING;
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        bool said = strcmp(code, codes[i].connect) == 0 ||
                    says(text, "code = ", codes[i].grpc, "") ||
                    says(text, "", codes[i].connect, ":");
        if (said && codes[i].meaning > meaning) {
            meaning = codes[i].meaning;
        }
    }
    for (size_t i = 0; i < sizeof(outages) / sizeof(outages[0]); i++) {
        if (says(text, "", outages[i], "")) {
            return WORDS_OUTAGE;
        }
    }
    return meaning;
}

enum words_meaning words_meaning(const char *code, struct sv message)
{
    struct buf text;
    buf_init(&text, 5 * message.n + 16);
    enum words_meaning meaning = WORDS_NOTHING;
    if (copy_without(message, true, &text)) {
        meaning = meaning_of(code, (struct sv){.p = text.data, .n = text.len});
    }
    buf_done(&text);
    return meaning;
}
