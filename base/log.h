/* Structured log lines, logfmt or JSON, one write(2) each, to a file descriptor (stderr).
 *
 *     log_warn(log, "scrape failed", LOG_STR("url", url), LOG_INT("status", 500));
 *     ts=2026-11-21T03:23:34.123Z level=warn msg="scrape failed" url=http://... status=500
 *
 * Any thread may log; lines do not mix. Lines over LOG_LINE_MAX bytes are cut. Values may come from
 * outside, so control characters and invalid UTF-8 are escaped. Fields are always evaluated: check
 * log_enabled() before logging at debug level in a hot path.
 */
#ifndef PROFPULL_BASE_LOG_H
#define PROFPULL_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/labels.h"
#include "base/str.h"

#define LOG_LINE_MAX 4096

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_LOGFMT, LOG_JSON };

enum log_field_type { LOG_FIELD_END, LOG_FIELD_SV, LOG_FIELD_INT, LOG_FIELD_FLOAT };

struct log_field {
    const char *key;
    enum log_field_type type;
    struct sv sv;
    int64_t i;
    double f;
};

#define LOG_STR(k, v) ((struct log_field){.key = (k), .type = LOG_FIELD_SV, .sv = sv_from(v)})
#define LOG_SV(k, v) ((struct log_field){.key = (k), .type = LOG_FIELD_SV, .sv = (v)})
#define LOG_INT(k, v) ((struct log_field){.key = (k), .type = LOG_FIELD_INT, .i = (int64_t)(v)})
#define LOG_FLOAT(k, v) ((struct log_field){.key = (k), .type = LOG_FIELD_FLOAT, .f = (v)})
#define LOG_ERR(e) LOG_STR("err", (e)->msg)

struct log;

/* Makes a log that writes to fd, which the caller keeps and closes. Returns NULL if out of
 * memory. */
struct log *log_new(int fd, enum log_level level, enum log_format format);
struct log *log_free(struct log *log);
void log_set(struct log *log, enum log_level level, enum log_format format); /* any thread */
void log_set_level(struct log *log, enum log_level level);                   /* any thread */
bool log_enabled(const struct log *log, enum log_level level);

/* Sets a function for tests, which is called for each line at warn and above, in addition to the
 * write. Its fields end with an element of type LOG_FIELD_END. fn may be NULL. */
void log_set_observer(struct log *log,
                      void (*fn)(void *arg, enum log_level, const char *msg,
                                 const struct log_field *fields),
                      void *arg);

/* Writes one line. fields ends with an element of type LOG_FIELD_END. With a NULL log nothing is
 * written. */
void log_write(struct log *log, enum log_level level, const char *msg,
               const struct log_field *fields);

/* Writes the line with its newline, without a NUL, and returns its length. A line that would be
 * longer than LOG_LINE_MAX ends with "..." in the value that was cut, or with the last field that
 * fitted, and stays well-formed. fields ends with LOG_FIELD_END. */
size_t log_line_format(char out[LOG_LINE_MAX], int64_t wall_ns, enum log_level level,
                       enum log_format format, const char *msg, const struct log_field *fields);

#define LOG_END ((struct log_field){.type = LOG_FIELD_END})
#define log_at_(log, level, msg, ...)                                                              \
    log_write((log), (level), (msg), (const struct log_field[]){__VA_ARGS__})
#define log_debug(log, ...) log_at_(log, LOG_DEBUG, __VA_ARGS__, LOG_END)
#define log_info(log, ...) log_at_(log, LOG_INFO, __VA_ARGS__, LOG_END)
#define log_warn(log, ...) log_at_(log, LOG_WARN, __VA_ARGS__, LOG_END)
#define log_error(log, ...) log_at_(log, LOG_ERROR, __VA_ARGS__, LOG_END)

/* Allows `burst` events in each `period_ms` and counts the others. A zeroed struct is ready for
 * use. It has one owner. */
struct log_limit {
    int64_t window_start_ms;
    uint32_t seen;
    uint32_t suppressed;
};
/* Returns true if the event may be logged. *ret_suppressed is then the number of events that were
 * suppressed before it; log it as a field if it is not 0. */
bool log_limit_allow(struct log_limit *l, int64_t now_ms, int64_t period_ms, uint32_t burst,
                     uint32_t *ret_suppressed);

#endif
