#include "base/log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log_line.h"

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

/* One write: lines of several threads do not mix, as a line is at most PIPE_BUF. A line that a full
 * disk or a slow pipe does not accept is lost: there is nowhere to report it. */
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
