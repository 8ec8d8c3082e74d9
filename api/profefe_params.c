#include "api/profefe_params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "http/url.h"

/* Length of "2026-11-22T00:30:00". */
#define SECONDS_LENGTH 19
#define TIME_TEXT_MAX 64
/* Limit of an error in JSON: each byte of its message may become six bytes. */
#define ERROR_REPLY_MAX ((size_t)8 * ERR_MSG_MAX)

/* Limit of a text that an error quotes: two such texts fit into a message. */
#define SHOWN_MAX 256
/* Bits of a digit of an id, and the number of zero bits that fill up its last digit. */
#define DIGIT_BITS 5
#define ID_PADDING 4

static const char digits[] = "0123456789abcdefghijklmnopqrstuv";

/* ---- ids ------------------------------------------------------------------------------------- */

void profefe_id_format(int64_t time_ns, uint64_t hash, char out[PROFEFE_ID_LENGTH + 1])
{
    uint64_t second = (uint32_t)(time_ns / NS_PER_S);
    uint64_t high = second << ID_PADDING | hash >> (64 - ID_PADDING);
    uint64_t low = hash << ID_PADDING;
    for (size_t i = PROFEFE_ID_LENGTH; i > 0; i--) {
        out[i - 1] = digits[low % 32];
        low = low >> DIGIT_BITS | high << (64 - DIGIT_BITS);
        high >>= DIGIT_BITS;
    }
    out[PROFEFE_ID_LENGTH] = '\0';
}

bool profefe_id_parse(struct sv text, uint32_t *ret_second, uint64_t *ret_hash)
{
    uint64_t high = 0;
    uint64_t low = 0;
    if (text.n != PROFEFE_ID_LENGTH) {
        return false;
    }
    for (size_t i = 0; i < text.n; i++) {
        const char *digit = memchr(digits, text.p[i], sizeof(digits) - 1);
        if (digit == NULL) {
            return false;
        }
        high = high << DIGIT_BITS | low >> (64 - DIGIT_BITS);
        low = low << DIGIT_BITS | (uint64_t)(digit - digits);
    }
    *ret_second = (uint32_t)(high >> ID_PADDING);
    *ret_hash = high << (64 - ID_PADDING) | low >> ID_PADDING;
    return true;
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void quote(struct sv text, struct buf *out)
{
    buf_init(out, ERR_MSG_MAX);
    json_quote((struct sv){text.p, text.n < SHOWN_MAX ? text.n : SHOWN_MAX}, out);
}

bool profefe_wrap(struct err *err, const char *name, const char *more, struct sv text)
{
    struct buf quoted;
    quote(text, &quoted);
    err_wrap(err, "bad \"%s\"%s %s", name, more, buf_ok(&quoted) ? quoted.data : "");
    buf_done(&quoted);
    return false;
}

/* ---- times ----------------------------------------------------------------------------------- */

static bool fail_time(struct sv text, struct err *err)
{
    struct buf quoted;
    quote(text, &quoted);
    err_set(err, ERR_INPUT, "time in unsupported format %s", buf_ok(&quoted) ? quoted.data : "");
    buf_done(&quoted);
    return false;
}

bool profefe_time(struct sv text, int64_t *ret_ns, struct err *err)
{
    char with_zone[TIME_TEXT_MAX];
    if (text.n < SECONDS_LENGTH || text.n + 1 >= sizeof(with_zone) || text.p[10] != 'T') {
        return fail_time(text, err);
    }
    memcpy(with_zone, text.p, text.n);
    with_zone[text.n] = 'Z';
    struct sv rest = {with_zone, text.n + 1};
    /* If the text has a zone of its own, the zone that was appended is left over. */
    return (clock_take_rfc3339(&rest, TIME_TEXT_MAX, ret_ns) && rest.n == 0) ||
           fail_time(text, err);
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* Decodes a text in place. Returns false at a wrong escape; then *ret_n is its position. */
static bool unescape(char *text, size_t *ret_n)
{
    size_t n = 0;
    for (size_t i = 0; text[i] != '\0'; i++) {
        int byte = text[i] == '+' ? ' ' : (unsigned char)text[i];
        if (text[i] == '%') {
            byte = url_decode_byte(sv_from(text + i));
            if (byte < 0) {
                *ret_n = i;
                return false;
            }
            i += 2;
        }
        text[n++] = (char)byte;
    }
    text[n] = '\0';
    *ret_n = n;
    return true;
}

/* Returns a decoded copy, or NULL. */
static char *decode(struct sv text, struct arena *arena, size_t *ret_n, struct err *err)
{
    /* A parameter ends at a NUL: no sender means a NUL as a part of it. */
    const char *end = text.n == 0 ? NULL : memchr(text.p, '\0', text.n);
    text.n = end == NULL ? text.n : (size_t)(end - text.p);
    char *out = arena_strndup(arena, text.p, text.n);
    if (out == NULL) {
        err_memory(err);
        return NULL;
    }
    if (!unescape(out, ret_n)) {
        struct sv bad = sv_skip(text, *ret_n);
        err_set(err, ERR_INPUT, "invalid URL escape \"%.*s\"", bad.n < 3 ? (int)bad.n : 3, bad.p);
        return NULL;
    }
    return out;
}

struct pair {
    struct label label;
    size_t place; /* position in the text, which keeps the order of labels with the same name */
};

static int compare(const void *a, const void *b)
{
    const struct pair *x = a;
    const struct pair *y = b;
    int order = sv_cmp(x->label.name, y->label.name);
    return order != 0 ? order : (x->place > y->place) - (x->place < y->place);
}

static bool take_pair(struct sv text, struct arena *arena, struct label *ret, struct err *err)
{
    struct sv name = text;
    struct sv value = SV("");
    (void)sv_cut(text, '=', &name, &value);
    ret->name.p = decode(sv_trim(name), arena, &ret->name.n, err);
    if (ret->name.p != NULL) {
        ret->value.p = decode(sv_trim(value), arena, &ret->value.n, err);
    }
    return ret->name.p != NULL && ret->value.p != NULL;
}

bool profefe_labels(struct sv text, struct arena *arena, struct label **ret, size_t *ret_n,
                    struct err *err)
{
    size_t count = 1;
    for (size_t i = 0; i < text.n; i++) {
        count += text.p[i] == ',';
    }
    struct pair *pairs = arena_array(arena, count, sizeof(*pairs));
    struct label *labels = arena_array(arena, count, sizeof(*labels));
    if (pairs == NULL || labels == NULL) {
        return err_memory(err);
    }
    size_t n = 0;
    bool more = text.n > 0;
    while (more) {
        struct sv pair = text;
        more = sv_cut(text, ',', &pair, &text);
        pairs[n].place = n;
        if (!take_pair(pair, arena, &pairs[n].label, err)) {
            return false;
        }
        n += pairs[n].label.name.n > 0;
    }
    qsort(pairs, n, sizeof(*pairs), compare);
    for (size_t i = 0; i < n; i++) {
        labels[i] = pairs[i].label;
    }
    *ret = labels;
    *ret_n = n;
    return true;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void put_labels(const struct profefe_profile *p, struct buf *out)
{
    bool any = false;
    for (size_t i = 0; i < p->n_labels; i++) {
        const struct label *l = &p->labels[i];
        if (sv_starts_with(l->name, SV("__")) || sv_eq_str(l->name, LABEL_SERVICE_NAME)) {
            continue;
        }
        buf_puts(out, any ? ",{" : ",\"labels\":[{");
        json_member("key", l->name, out);
        json_member("value", l->value, out);
        buf_putc(out, '}');
        any = true;
    }
    buf_puts(out, any ? "]" : "");
}

bool profefe_put_profile(const struct profefe_profile *p, struct buf *out)
{
    char time[32];
    clock_format_rfc3339(p->time_ns, time, sizeof(time));
    buf_putc(out, '{');
    json_member("id", p->id, out);
    json_member("type", sv_from(p->type), out);
    json_member("service", p->service, out);
    put_labels(p, out);
    buf_printf(out, ",\"created_at\":\"%.*sZ\"}", SECONDS_LENGTH, time);
    return buf_ok(out);
}

void profefe_fail(struct exchange *x, int status, const char *fmt, ...)
{
    char message[ERR_MSG_MAX];
    struct buf text;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    buf_init(&text, ERROR_REPLY_MAX);
    buf_printf(&text, "{\"code\":%d", status);
    json_member("error", sv_from(message), &text);
    buf_puts(&text, "}\n");
    exchange_text(x, status, "application/json", (struct sv){text.data, text.len});
    buf_done(&text);
}
