/* The log: exact lines in both formats, cutting, levels, threads, the limiter. */
#include "tests/unit/lib/testing.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"

SCOPED_POINTER(log, log_free)

#define T0 INT64_C(1795231414123000000)
#define HEAD "ts=2026-11-21T03:23:34.123Z level=info msg="
#define JSON_HEAD "{\"ts\":\"2026-11-21T03:23:34.123Z\",\"level\":\"info\",\"msg\":"

/* The line with its newline, as a string. */
static const char *line_of(char out[LOG_LINE_MAX + 1], enum log_format format, const char *msg,
                           const struct log_field *fields)
{
    size_t len = log_line_format(out, T0, LOG_INFO, format, msg, fields);
    assert_in_range(len, 1, LOG_LINE_MAX);
    out[len] = '\0';
    CHECK_INT(strlen(out), len, "no NUL within");
    return out;
}

TEST(writes_every_type)
{
    char out[LOG_LINE_MAX + 1];
    const struct log_field fields[] = {
        LOG_STR("url", "http://10.0.0.1:6060/debug/pprof/heap?gc=1"),
        LOG_SV("part", ((struct sv){.p = "abcdef", .n = 3})),
        LOG_INT("status", 500),
        LOG_INT("low", INT64_MIN),
        LOG_FLOAT("took", 0.25),
        LOG_FLOAT("many", 1e21),
        LOG_FLOAT("nan", (double)NAN),
        LOG_FLOAT("inf", (double)-INFINITY),
        LOG_STR("null", NULL),
        LOG_END,
    };
    CHECK_STR(line_of(out, LOG_LOGFMT, "scrape failed", fields),
              HEAD "\"scrape failed\" url=\"http://10.0.0.1:6060/debug/pprof/heap?gc=1\" part=abc "
                   "status=500 low=-9223372036854775808 took=0.25 many=1e+21 nan=NaN inf=-Inf "
                   "null=\"\"\n",
              "");
    CHECK_STR(line_of(out, LOG_JSON, "scrape failed", fields),
              JSON_HEAD "\"scrape failed\",\"url\":\"http://10.0.0.1:6060/debug/pprof/heap?gc=1\","
                        "\"part\":\"abc\",\"status\":500,\"low\":-9223372036854775808,"
                        "\"took\":0.25,\"many\":1e+21,\"nan\":\"NaN\",\"inf\":\"-Inf\","
                        "\"null\":\"\"}\n",
              "");
    CHECK_STR(line_of(out, LOG_LOGFMT, "ready", &LOG_END), HEAD "ready\n", "");
    CHECK_STR(line_of(out, LOG_JSON, "ready", &LOG_END), JSON_HEAD "\"ready\"}\n", "");
}

TEST(names_the_level)
{
    static const char *const want[] = {" level=debug ", " level=info ", " level=warn ",
                                       " level=error "};
    for (int level = LOG_DEBUG; level <= LOG_ERROR; level++) {
        char out[LOG_LINE_MAX + 1];
        out[log_line_format(out, T0, (enum log_level)level, LOG_LOGFMT, "x", &LOG_END)] = '\0';
        CHECK_CONTAINS(out, want[level], "");
    }
}

TEST(escapes_values)
{
    const struct {
        struct sv value;
        const char *logfmt, *json;
    } cases[] = {
        {SV("plain-1.0/x:y,z"), "plain-1.0/x:y,z", "\"plain-1.0/x:y,z\""},
        {SV(""), "\"\"", "\"\""},
        {SV("a b"), "\"a b\"", "\"a b\""},
        {SV("a=b"), "\"a=b\"", "\"a=b\""},
        {SV("a\"b"), "\"a\\\"b\"", "\"a\\\"b\""},
        {SV("C:\\x"), "C:\\x", "\"C:\\\\x\""},
        {SV("C:\\x y"), "\"C:\\\\x y\"", "\"C:\\\\x y\""},
        {SV("a\nts=0 level=error"), "\"a\\nts=0 level=error\"", "\"a\\nts=0 level=error\""},
        {SV("\r\t\b\x1b[31m"), "\"\\r\\t\\u0008\\u001b[31m\"", "\"\\r\\t\\u0008\\u001b[31m\""},
        {SV("nul\0nul"), "\"nul\\u0000nul\"", "\"nul\\u0000nul\""},
        {SV("\x7f"), "\"\\u007f\"", "\"\\u007f\""},
        {SV("\xc2\x9b"
            "31m"),
         "\"\\u009b31m\"", "\"\\u009b31m\""},
        {SV("\xe2\x82\xac"), "\xe2\x82\xac", "\"\xe2\x82\xac\""},
        {SV("\xff"), "\"\xef\xbf\xbd\"", "\"\xef\xbf\xbd\""},
        {SV("x\xe2\x82"), "\"x\xef\xbf\xbd\xef\xbf\xbd\"", "\"x\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char out[LOG_LINE_MAX + 1];
        char want[200];
        const struct log_field fields[] = {LOG_SV("k", cases[i].value), LOG_END};
        (void)snprintf(want, sizeof(want), HEAD "x k=%s\n", cases[i].logfmt);
        CHECK_STR(line_of(out, LOG_LOGFMT, "x", fields), want, want);
        (void)snprintf(want, sizeof(want), JSON_HEAD "\"x\",\"k\":%s}\n", cases[i].json);
        CHECK_STR(line_of(out, LOG_JSON, "x", fields), want, want);
    }
}

/* Fields of a logfmt line, or -1 if it is not well-formed. */
static int count_logfmt_fields(const char *p)
{
    int fields = 0;
    for (;;) {
        size_t key = strcspn(p, "= \"\n");
        if (key == 0 || p[key] != '=') {
            return -1;
        }
        p += key + 1;
        if (*p == '"') {
            for (p++; *p != '"'; p++) {
                if (*p == '\n' || *p == '\0' || (*p == '\\' && *++p == '\0')) {
                    return -1;
                }
            }
            p++;
        } else {
            p += strcspn(p, "= \"\n");
        }
        fields++;
        if (*p == '\n') {
            return p[1] == '\0' ? fields : -1;
        }
        if (*p++ != ' ') {
            return -1;
        }
    }
}

/* For any length and characters, a line that is cut is well-formed and marked. */
static void check_cut(enum log_format format, const char *unit, size_t units)
{
    char out[LOG_LINE_MAX + 1];
    SCOPED(buf) value = testing_buf(100000);
    for (size_t i = 0; i < units; i++) {
        buf_puts(&value, unit);
    }
    const struct log_field fields[] = {LOG_INT("before", 1),
                                       LOG_SV("v", ((struct sv){.p = value.data, .n = value.len})),
                                       LOG_STR("after", "x"), LOG_INT("last", 2), LOG_END};
    line_of(out, format, "m", fields);
    bool cut = strstr(out, "last") == NULL;
    if (cut) {
        /* Either the value is marked as cut, or it is complete and the next field did not fit. */
        assert_true(strlen(out) > LOG_LINE_MAX - 40);
        assert_true(strstr(out, "...\"") != NULL || strlen(out) + 40 > LOG_LINE_MAX);
    }
    if (format == LOG_LOGFMT) {
        int n = count_logfmt_fields(out);
        assert_in_range(n, cut ? 4 : 7, 7);
    } else {
        json_error_t why;
        json_auto_t *j = json_loads(out, JSON_ALLOW_NUL, &why);
        assert_non_null(j);
        CHECK_INT(json_integer_value(json_object_get(j, "before")), 1, "");
    }
}

TEST(cuts_long_lines)
{
    static const char *const units[] = {
        "a", " ", "\"", "\n", "\x01", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xff"};
    for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
        for (size_t units_n = 650; units_n < 700; units_n++) {
            check_cut(LOG_LOGFMT, units[u], units_n); /* six bytes each at most */
            check_cut(LOG_JSON, units[u], units_n);
        }
        for (size_t units_n = 1000; units_n < 1400; units_n += 3) {
            check_cut(LOG_LOGFMT, units[u], units_n);
            check_cut(LOG_JSON, units[u], units_n);
        }
        for (size_t units_n = 3950; units_n < 4150; units_n++) {
            check_cut(LOG_LOGFMT, units[u], units_n);
            check_cut(LOG_JSON, units[u], units_n);
        }
    }
}

TEST(cuts_at_the_exact_limit)
{
    char out[LOG_LINE_MAX + 1];
    char value[LOG_LINE_MAX + 1];
    size_t head = strlen(HEAD "m v=");
    /* The longest complete value leaves room for the end of a longer one: ..."} */
    size_t fits = LOG_LINE_MAX - head - strlen("...\"}\n");
    memset(value, 'a', sizeof(value));
    const struct log_field whole[] = {LOG_SV("v", ((struct sv){.p = value, .n = fits})), LOG_END};
    line_of(out, LOG_LOGFMT, "m", whole);
    CHECK_INT(strlen(out), head + fits + 1, "");
    assert_null(strstr(out, "..."));
    const struct log_field more[] = {LOG_SV("v", ((struct sv){.p = value, .n = fits + 1})),
                                     LOG_END};
    line_of(out, LOG_LOGFMT, "m", more);
    CHECK_STR(out + strlen(out) - 5, "...\"\n", "");
    assert_true(strlen(out) <= LOG_LINE_MAX);
}

TEST(cuts_between_fields)
{
    char out[LOG_LINE_MAX + 1];
    struct log_field fields[600];
    for (size_t i = 0; i < 599; i++) {
        fields[i] = LOG_INT("key", 1234567);
    }
    fields[599] = LOG_END;
    line_of(out, LOG_LOGFMT, "m", fields);
    assert_true(count_logfmt_fields(out) > 300);
    assert_true(strlen(out) > LOG_LINE_MAX - 30);
    CHECK_STR(out + strlen(out) - 13, " key=1234567\n", "whole to the last");
    line_of(out, LOG_JSON, "m", fields);
    CHECK_STR(out + strlen(out) - 16, ",\"key\":1234567}\n", "");
}

/* ---- the writing end ------------------------------------------------------------------------- */

struct seen {
    int count;
    enum log_level level;
    char msg[100];
};

static void observe(void *arg, enum log_level level, const char *msg,
                    const struct log_field *fields)
{
    struct seen *s = arg;
    (void)fields;
    s->count++;
    s->level = level;
    (void)snprintf(s->msg, sizeof(s->msg), "%s", msg);
}

static size_t read_all(int fd, char *out, size_t size)
{
    ssize_t n = read(fd, out, size - 1);
    size_t len = n < 0 ? 0 : (size_t)n;
    out[len] = '\0';
    return len;
}

TEST(obeys_the_level)
{
    int fds[2];
    char text[LOG_LINE_MAX];
    struct seen seen = {0};
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    SCOPED(log) *log = log_new(fds[1], LOG_INFO, LOG_LOGFMT);
    log_set_observer(log, observe, &seen);

    assert_false(log_enabled(log, LOG_DEBUG));
    assert_true(log_enabled(log, LOG_INFO));
    log_debug(log, "hidden", LOG_INT("n", 1));
    CHECK_INT(read_all(fds[0], text, sizeof(text)), 0, "");
    log_info(log, "shown", LOG_INT("n", 1));
    read_all(fds[0], text, sizeof(text));
    CHECK_CONTAINS(text, "Z level=info msg=shown n=1\n", "");
    CHECK_INT(strncmp(text, "ts=20", 5), 0, "");
    CHECK_INT(seen.count, 0, "information is not observed");

    struct err e = ERR_INIT;
    err_set(&e, ERR_NETWORK, "connection refused");
    log_warn(log, "scrape failed", LOG_ERR(&e));
    read_all(fds[0], text, sizeof(text));
    CHECK_CONTAINS(text, " level=warn msg=\"scrape failed\" err=\"connection refused\"\n", "");
    CHECK_INT(seen.count, 1, "");
    CHECK_INT(seen.level, LOG_WARN, "");
    CHECK_STR(seen.msg, "scrape failed", "");

    log_set(log, LOG_ERROR, LOG_JSON);
    log_warn(log, "hidden");
    log_error(log, "worse");
    read_all(fds[0], text, sizeof(text));
    CHECK_INT(strncmp(text, "{\"ts\":\"20", 9), 0, "");
    CHECK_CONTAINS(text, "\",\"level\":\"error\",\"msg\":\"worse\"}\n", "");
    assert_null(strstr(text, "hidden"));
    CHECK_INT(seen.count, 2, "");

    log_set_observer(log, NULL, NULL);
    log_error(log, "unseen");
    CHECK_INT(seen.count, 2, "");
    close(fds[0]);
    close(fds[1]);
}

TEST(swallows_without_a_log)
{
    log_error(NULL, "x", LOG_INT("n", 1));
    assert_false(log_enabled(NULL, LOG_ERROR));
    assert_null(log_free(NULL));
    /* The line of a log without a reader is lost, and nothing else happens. */
    SCOPED(log) *log = log_new(-1, LOG_DEBUG, LOG_LOGFMT);
    log_error(log, "x");
}

#define THREADS 4
#define LINES 200

static void *log_lines(void *arg)
{
    struct log *log = arg;
    for (int i = 0; i < LINES; i++) {
        log_set(log, LOG_INFO, LOG_LOGFMT);
        log_info(log, "a line of one thread", LOG_INT("i", i), LOG_STR("end", "end of it"));
    }
    return NULL;
}

TEST(lines_do_not_mix)
{
    SCOPED(testing_log) *t = testing_log_new();
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, log_lines, testing_log(t)), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    int lines = 0;
    for (const char *p = testing_log_text(t); *p != '\0'; lines++) {
        const char *end = strchr(p, '\n');
        assert_non_null(end);
        char line[200];
        (void)snprintf(line, sizeof(line), "%.*s", (int)(end + 1 - p), p);
        CHECK_INT(count_logfmt_fields(line), 5, line);
        CHECK_CONTAINS(line, " end=\"end of it\"\n", "");
        p = end + 1;
    }
    CHECK_INT(lines, THREADS * LINES, "");
}

/* ---- the limiter ----------------------------------------------------------------------------- */

TEST(limits)
{
    static const struct {
        int64_t now;
        bool allowed;
        uint32_t suppressed;
    } steps[] = {
        {100000, true, 0}, {100001, true, 0},  {100002, false, 0}, {100999, false, 0},
        {101000, true, 2}, {101001, true, 0},  {101500, false, 0}, {150000, true, 1},
        {150001, true, 0}, {150002, false, 0}, {50, true, 1}, /* a clock that went backwards does
                                                                 not silence for long */
    };
    struct log_limit l = {0};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        char row[32];
        uint32_t suppressed = 77;
        (void)snprintf(row, sizeof(row), "step %zu", i);
        CHECK_INT(log_limit_allow(&l, steps[i].now, 1000, 2, &suppressed), steps[i].allowed, row);
        CHECK_INT(suppressed, steps[i].allowed ? steps[i].suppressed : 77, row);
    }
    struct log_limit none = {0};
    assert_false(log_limit_allow(&none, 0, 1000, 0, NULL));
    assert_false(log_limit_allow(&none, 5000, 1000, 0, NULL));
    struct log_limit first = {0};
    assert_true(log_limit_allow(&first, 5, 1000, 1, NULL));
    assert_false(log_limit_allow(&first, 6, 1000, 1, NULL));
}
