#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/ascii.h"
#include "base/clock.h"
#include "base/utf8.h"

/* ---- the text of a line --------------------------------------------------------------------- */

#define CUT_MARK "..."
/* Bytes that are reserved for the end of a cut value and of the line: ..."}\n */
#define END_ROOM (sizeof(CUT_MARK "\"}\n") - 1)

struct line {
    char *out;
    size_t len;
    enum log_format format;
    bool cut; /* the line was cut: nothing more is added */
};

static bool fits(const struct line *l, size_t n)
{
    /* The end of a value may already occupy a part of the reserve. */
    size_t room = l->len < LOG_LINE_MAX - END_ROOM ? LOG_LINE_MAX - END_ROOM - l->len : 0;
    return n <= room;
}

/* Appends if it fits, otherwise cuts the line here. */
static bool put(struct line *l, const char *p, size_t n)
{
    if (l->cut || !fits(l, n)) {
        l->cut = true;
        return false;
    }
    memcpy(l->out + l->len, p, n);
    l->len += n;
    return true;
}

/* Appends the end of a value or of the line, which always fits. */
static void put_end(struct line *l, const char *s)
{
    size_t n = strlen(s);
    memcpy(l->out + l->len, s, n);
    l->len += n;
}

/* Returns true for a control character of either set. The second set, U+0080 to U+009F, controls
 * terminals as well. */
static bool is_control(uint32_t rune)
{
    return rune < 0x20 || (rune >= 0x7f && rune <= 0x9f);
}

/* Appends one character of a quoted value, in the escapes that JSON and logfmt share, whole or not
 * at all. Returns false if the line is full. */
static bool put_rune(struct line *l, const char *p, size_t len, uint32_t rune)
{
    char text[8];
    if (len == 0) {
        return put(l, UTF8_REPLACEMENT, sizeof(UTF8_REPLACEMENT) - 1);
    }
    if (!is_control(rune) && rune != '"' && rune != '\\') {
        return put(l, p, len);
    }
    static const char special[] = "\"\\\n\r\t";
    const char *at = rune == 0 || rune >= 0x80 ? NULL : strchr(special, (int)rune);
    if (at != NULL) {
        return put(l, (const char[]){'\\', "\"\\nrt"[at - special]}, 2);
    }
    int n = snprintf(text, sizeof(text), "\\u%04" PRIx32, rune);
    return put(l, text, n < 0 ? 0 : (size_t)n);
}

static void put_quoted(struct line *l, struct sv v)
{
    if (!put(l, "\"", 1)) {
        return;
    }
    bool whole = true;
    while (v.n > 0 && whole) {
        uint32_t rune;
        size_t len = utf8_decode(v, &rune);
        whole = put_rune(l, v.p, len, rune);
        v = sv_skip(v, len == 0 ? 1 : len);
    }
    put_end(l, whole ? "\"" : CUT_MARK "\"");
}

/* Returns true if a logfmt value must be quoted. */
static bool needs_quotes(struct sv v)
{
    if (v.n == 0) {
        return true;
    }
    while (v.n > 0) {
        uint32_t rune;
        size_t len = utf8_decode(v, &rune);
        if (len == 0 || is_control(rune) || rune == ' ' || rune == '=' || rune == '"') {
            return true;
        }
        v = sv_skip(v, len);
    }
    return false;
}

/* Appends a value without quotes if it fits. A value that is cut is quoted, because its mark "..."
 * needs quotes. */
static void put_text(struct line *l, struct sv v)
{
    if (l->format == LOG_JSON || needs_quotes(v) || !fits(l, v.n)) {
        put_quoted(l, v);
    } else {
        put(l, v.p, v.n);
    }
}

static void put_number(struct line *l, const struct log_field *f)
{
    char text[NUM_TEXT_MAX];
    if (f->type == LOG_FIELD_INT) {
        (void)snprintf(text, sizeof(text), "%" PRId64, f->i);
    } else {
        num_format(f->f, text);
    }
    /* JSON has no infinities. */
    bool plain =
        l->format == LOG_LOGFMT || ascii_is_digit(text[0]) || (text[0] == '-' && text[1] != 'I');
    if (plain) {
        put(l, text, strlen(text));
    } else {
        put_quoted(l, sv_from(text));
    }
}

static void put_field(struct line *l, const struct log_field *f)
{
    if (l->cut) {
        return;
    }
    size_t start = l->len;
    bool json = l->format == LOG_JSON;
    put(l, json ? ",\"" : " ", json ? 2 : 1);
    put(l, f->key, strlen(f->key));
    put(l, json ? "\":" : "=", json ? 2 : 1);
    size_t value = l->len;
    if (!l->cut && f->type == LOG_FIELD_SV) {
        put_text(l, f->sv);
    } else if (!l->cut) {
        put_number(l, f);
    }
    if (l->cut && l->len == value) {
        l->len = start; /* no byte of the value fitted: drop the field */
    }
}

size_t log_line_format(char out[LOG_LINE_MAX], int64_t wall_ns, enum log_level level,
                       enum log_format format, const char *msg, const struct log_field *fields)
{
    static const char *const levels[] = {"debug", "info", "warn", "error"};
    struct line l = {.out = out, .format = format};
    char ts[32];
    char head[96];
    clock_format_rfc3339(wall_ns, ts, sizeof(ts));
    int n = snprintf(head, sizeof(head),
                     format == LOG_JSON ? "{\"ts\":\"%s\",\"level\":\"%s\"" : "ts=%s level=%s", ts,
                     levels[level]);
    put(&l, head, n < 0 ? 0 : (size_t)n);
    put_field(&l, &LOG_STR("msg", msg));
    for (const struct log_field *f = fields; f->type != LOG_FIELD_END; f++) {
        put_field(&l, f);
    }
    put_end(&l, format == LOG_JSON ? "}\n" : "\n");
    return l.len;
}

/* ---- the log -------------------------------------------------------------------------------- */

struct log {
    int fd;
    atomic_int level;
    atomic_int format;
    void (*observer)(void *arg, enum log_level, const char *msg, const struct log_field *fields);
    void *observer_arg;
};

struct log *log_new(int fd, enum log_level level, enum log_format format)
{
    struct log *log = calloc(1, sizeof(*log));
    if (log != NULL) {
        log->fd = fd;
        log_set(log, level, format);
    }
    return log;
}

struct log *log_free(struct log *log)
{
    free(log);
    return NULL;
}

void log_set(struct log *log, enum log_level level, enum log_format format)
{
    log_set_level(log, level);
    atomic_store_explicit(&log->format, (int)format, memory_order_relaxed);
}

void log_set_level(struct log *log, enum log_level level)
{
    atomic_store_explicit(&log->level, (int)level, memory_order_relaxed);
}

bool log_enabled(const struct log *log, enum log_level level)
{
    return log != NULL && (int)level >= atomic_load_explicit(&log->level, memory_order_relaxed);
}

void log_set_observer(struct log *log,
                      void (*fn)(void *arg, enum log_level, const char *msg,
                                 const struct log_field *fields),
                      void *arg)
{
    log->observer = fn;
    log->observer_arg = arg;
}

/* Writes a line with one write(2). Lines of several threads do not mix, because a line has at most
 * PIPE_BUF bytes. A line that a full disk or a slow pipe does not accept is lost, because there is
 * nowhere to report it. */
static void write_line(int fd, const char *line, size_t len)
{
    int saved = errno;
    ssize_t n;
    do {
        n = write(fd, line, len);
    } while (n < 0 && errno == EINTR);
    errno = saved;
}

void log_write(struct log *log, enum log_level level, const char *msg,
               const struct log_field *fields)
{
    char line[LOG_LINE_MAX];
    if (!log_enabled(log, level)) {
        return;
    }
    enum log_format format =
        (enum log_format)atomic_load_explicit(&log->format, memory_order_relaxed);
    size_t len = log_line_format(line, clock_wall_ns(), level, format, msg, fields);
    write_line(log->fd, line, len);
    if (level >= LOG_WARN && log->observer != NULL) {
        log->observer(log->observer_arg, level, msg, fields);
    }
}

bool log_limit_allow(struct log_limit *l, int64_t now_ms, int64_t period_ms, uint32_t burst,
                     uint32_t *ret_suppressed)
{
    if (now_ms - l->window_start_ms >= period_ms || now_ms < l->window_start_ms) {
        l->window_start_ms = now_ms;
        l->seen = 0;
    }
    if (l->seen >= burst) {
        l->suppressed++;
        return false;
    }
    l->seen++;
    if (ret_suppressed != NULL) {
        *ret_suppressed = l->suppressed;
    }
    l->suppressed = 0;
    return true;
}
