/* Helpers of all unit tests: see testing.h. */
#include "tests/unit/lib/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- cases ----------------------------------------------------------------------------------- */

extern const struct CMUnitTest *const __start_profpull_tests[] __attribute__((weak));
extern const struct CMUnitTest *const __stop_profpull_tests[] __attribute__((weak));

int testing_run(const char *group, CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    size_t n = (size_t)(__stop_profpull_tests - __start_profpull_tests);
    struct CMUnitTest *cases = calloc(n + 1, sizeof(*cases));
    if (cases == NULL) {
        return 1;
    }
    for (size_t i = 0; i < n; i++) {
        cases[i] = *__start_profpull_tests[i];
    }
    int failed = _cmocka_run_group_tests(group, cases, n, set_up, tear_down);
    free(cases);
    return failed;
}

/* Most programs need nothing else; those that do have a main() of their own. */
__attribute__((weak)) int main(void)
{
    return testing_run("tests", NULL, NULL);
}

/* ---- comparisons ----------------------------------------------------------------------------- */

static void where(const char *row)
{
    if (row != NULL && row[0] != '\0') {
        print_error("row: %s\n", row);
    }
}

void check_str_(const char *got, const char *want, const char *row, const char *file, int line)
{
    if (got == want || (got != NULL && want != NULL && strcmp(got, want) == 0)) {
        return;
    }
    where(row);
    print_error("got:  %s%s%s\nwant: %s%s%s\n", got != NULL ? "\"" : "", got != NULL ? got : "NULL",
                got != NULL ? "\"" : "", want != NULL ? "\"" : "", want != NULL ? want : "NULL",
                want != NULL ? "\"" : "");
    _fail(file, line);
}

void check_int_(long long got, long long want, const char *row, const char *file, int line)
{
    if (got != want) {
        where(row);
        print_error("got:  %lld\nwant: %lld\n", got, want);
        _fail(file, line);
    }
}

void check_contains_(const char *text, const char *part, const char *row, const char *file,
                     int line)
{
    if (text == NULL || strstr(text, part) == NULL) {
        where(row);
        print_error("text: %s\ndoes not contain: %s\n", text == NULL ? "NULL" : text, part);
        _fail(file, line);
    }
}

/* ---- the log --------------------------------------------------------------------------------- */

#define EXPECTED_MAX 32

struct testing_log {
    struct log *log;
    int fd; /* a file in memory */
    char *text;
    /* Both are written by whatever thread logs; read and changed under the lock. */
    pthread_mutex_t lock;
    char *unexpected; /* the first one */
    char *expected[EXPECTED_MAX];
    bool seen[EXPECTED_MAX];
    size_t n_expected;
};

static void *must(void *p)
{
    if (p == NULL) {
        print_error("out of memory\n");
        abort();
    }
    return p;
}

/* One expectation covers every line that fits it. */
static void observe(void *arg, enum log_level level, const char *msg,
                    const struct log_field *fields)
{
    struct testing_log *t = arg;
    bool known = false;
    (void)level;
    (void)fields;
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->n_expected; i++) {
        if (strstr(msg, t->expected[i]) != NULL) {
            t->seen[i] = true;
            known = true;
        }
    }
    if (!known && t->unexpected == NULL) {
        t->unexpected = must(strdup(msg));
    }
    pthread_mutex_unlock(&t->lock);
}

struct testing_log *testing_log_new(void)
{
    struct testing_log *t = must(calloc(1, sizeof(*t)));
    pthread_mutex_init(&t->lock, NULL);
    t->fd = memfd_create("log", MFD_CLOEXEC);
    assert_true(t->fd >= 0);
    /* Threads share the place to write at: only appending moves it together with the write. */
    assert_int_equal(fcntl(t->fd, F_SETFL, O_APPEND), 0);
    t->log = must(log_new(t->fd, LOG_DEBUG, LOG_LOGFMT));
    log_set_observer(t->log, observe, t);
    return t;
}

struct log *testing_log(struct testing_log *t)
{
    return t->log;
}

void testing_log_expect(struct testing_log *t, const char *part_of_message)
{
    pthread_mutex_lock(&t->lock);
    bool room = t->n_expected < EXPECTED_MAX;
    if (room) {
        t->expected[t->n_expected++] = must(strdup(part_of_message));
    }
    pthread_mutex_unlock(&t->lock);
    assert_true(room);
}

const char *testing_log_text(struct testing_log *t)
{
    char chunk[4096];
    ssize_t n;
    struct buf text = testing_buf((size_t)64 * 1024 * 1024);
    /* pread leaves the place where the log writes alone. */
    while ((n = pread(t->fd, chunk, sizeof(chunk), (off_t)text.len)) > 0) {
        buf_append(&text, chunk, (size_t)n);
    }
    assert_true(n == 0);
    free(t->text);
    t->text = must(buf_take(&text, NULL));
    return t->text;
}

/* The first expectation that nothing fitted, or NULL. */
static const char *missing(const struct testing_log *t)
{
    for (size_t i = 0; i < t->n_expected; i++) {
        if (!t->seen[i]) {
            return t->expected[i];
        }
    }
    return NULL;
}

void testing_log_done(struct testing_log *t)
{
    bool bad = t->unexpected != NULL || missing(t) != NULL;
    if (bad) {
        print_error("unexpected in the log: %s\nexpected, but not in the log: %s\n%s",
                    t->unexpected == NULL ? "nothing" : t->unexpected,
                    missing(t) == NULL ? "nothing" : missing(t), testing_log_text(t));
    }
    for (size_t i = 0; i < t->n_expected; i++) {
        free(t->expected[i]);
    }
    log_free(t->log);
    close(t->fd);
    pthread_mutex_destroy(&t->lock);
    free(t->unexpected);
    free(t->text);
    free(t);
    assert_false(bad);
}

/* ---- files ----------------------------------------------------------------------------------- */

char *testing_mkdtemp(void)
{
    const char *tmp = getenv("TMPDIR");
    char *path = NULL;
    if (asprintf(&path, "%s/profpull-test-XXXXXX", tmp == NULL || *tmp == '\0' ? "/tmp" : tmp) <
        0) {
        abort();
    }
    assert_non_null(mkdtemp(path));
    return path;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void testing_rmdir(const char *path)
{
    assert_int_equal(nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

void testing_directory_leave(char **path)
{
    testing_rmdir(*path);
    free(*path);
}

void testing_memory_leave(void *pointer)
{
    free(*(void **)pointer);
}

void testing_write_file(const char *dir, const char *name, const char *text)
{
    SCOPED_MEMORY char *path = NULL;
    if (asprintf(&path, "%s/%s", dir, name) < 0) {
        abort();
    }
    FILE *f = fopen(path, "we");
    bool ok = f != NULL && fputs(text, f) >= 0;
    ok = (f == NULL || fclose(f) == 0) && ok;
    if (!ok) {
        print_error("cannot write %s\n", path);
    }
    assert_true(ok);
}

struct buf testing_read_file(const char *path)
{
    char chunk[4096];
    size_t n;
    struct buf content = testing_buf(1 << 24);
    FILE *f = fopen(path, "rbe");
    CHECK(f != NULL, "%s: %s", path, strerror(errno));
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0) {
        assert_true(buf_append(&content, chunk, n));
    }
    assert_int_equal(fclose(f), 0);
    assert_true(content.len > 0);
    return content;
}

/* ---- labels ---------------------------------------------------------------------------------- */

struct labels *testing_labels(struct intern *in, const char *name, ...)
{
    struct labels_builder *b = must(labels_builder_new(in));
    va_list ap;
    va_start(ap, name);
    while (name != NULL) {
        labels_builder_set_str(b, name, va_arg(ap, const char *));
        name = va_arg(ap, const char *);
    }
    va_end(ap);
    struct labels *l = must(labels_builder_build(b));
    labels_builder_free(b);
    return l;
}

bool testing_labels_format(const struct labels *l, struct buf *out)
{
    buf_putc(out, '{');
    for (size_t i = 0; i < labels_count(l); i++) {
        struct label label = labels_at(l, i);
        buf_printf(out, "%s%s=\"%s\"", i == 0 ? "" : ", ", label.name.p, label.value.p);
    }
    return buf_putc(out, '}');
}

/* ---- metrics --------------------------------------------------------------------------------- */

uint64_t testing_metric(struct metrics *m, const char *text)
{
    SCOPED(buf) out = testing_buf((size_t)1024 * 1024);
    assert_true(metrics_render(m, &out));
    uint64_t value = TESTING_NO_METRIC;
    const char *at = out.data;
    while ((at = strstr(at, text)) != NULL) {
        struct sv number;
        struct sv tail;
        at += strlen(text);
        if (*at == ' ' && sv_cut(sv_from(at + 1), '\n', &number, &tail) &&
            parse_u64(number, UINT64_MAX, &value)) {
            break;
        }
    }
    return value;
}
