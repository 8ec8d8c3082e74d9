/* The child that reads debug information: names of this very program, files that it refuses, and
 * what happens when it is killed, late, or short of memory. */
#include "symbols/helper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/unit/lib/testing.h"

SCOPED_POINTER(symbols_helper, symbols_helper_stop)

static const struct symbols_helper_options usual = {
    .max_memory = SYMBOLS_MEMORY_DEFAULT,
    .max_file = SYMBOLS_FILE_DEFAULT,
    .timeout_ms = 60000,
};

static struct symbols_helper *start(const struct symbols_helper_options *options)
{
    struct err err = ERR_INIT;
    struct symbols_helper *h = symbols_helper_start(options, &err);
    CHECK_STR(err.msg, "", "");
    assert_non_null(h);
    return h;
}

static struct symbols_counters counters(struct symbols_helper *h)
{
    struct symbols_counters c;
    symbols_helper_counters(h, &c);
    return c;
}

/* The function that is asked for. */
__attribute__((noinline)) int symbols_test_wanted(int x);
__attribute__((noinline)) int symbols_test_wanted(int x)
{
    return x + (int)getpid();
}
#define WANTED ((uint64_t)(uintptr_t)&symbols_test_wanted)

/* The mapping of this program that holds an address. */
static struct symbol_mapping own_mapping(uint64_t address)
{
    struct symbol_mapping m = {.start = 0};
    char line[4096];
    FILE *f = fopen("/proc/self/maps", "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f) != NULL) {
        char *at = line;
        uint64_t from = strtoull(at, &at, 16);
        uint64_t to = strtoull(at + 1, &at, 16);
        if (address >= from && address < to) {
            m = (struct symbol_mapping){from, to, strtoull(at + sizeof(" r-xp"), NULL, 16)};
        }
    }
    fclose(f);
    assert_int_not_equal(m.limit, 0);
    return m;
}

static int open_self(void)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* Asks for this program's function. Returns the failure. */
static enum symbols_failure ask_self(struct symbols_helper *h, struct err *err)
{
    const uint64_t address = WANTED;
    struct symbols_question q = {
        .fd = open_self(), .mapping = own_mapping(address), .addresses = &address, .count = 1};
    struct symbol_frames frames = {.n = 0};
    enum symbols_failure failure;
    if (symbols_helper_ask(h, &q, &frames, &failure, err)) {
        size_t n;
        const struct symbol_frame *f = symbol_frames_of(&frames, 0, &n);
        CHECK_INT(n, 1, "");
        CHECK_STR(f->function, "symbols_test_wanted", "");
        CHECK_CONTAINS(f->file, "test_symbols_helper.c", "");
        assert_true(f->line >= f->start_line && f->start_line > 0);
        symbol_frames_free(&frames);
    }
    close(q.fd);
    return failure;
}

static void check_self(struct symbols_helper *h)
{
    struct err err = ERR_INIT;
    enum symbols_failure failure = ask_self(h, &err);
    CHECK_STR(err.msg, "", "");
    CHECK_INT(failure, SYMBOLS_OK, "");
}

TEST(a_file_is_opened_once_for_its_questions)
{
    SCOPED(symbols_helper) *h = start(&usual);
    check_self(h);
    check_self(h);
    struct symbols_counters c = counters(h);
    CHECK_INT(c.asked, 2, "");
    CHECK_INT(c.opened, 1, "");
    CHECK_INT(c.children, 1, "");
}

TEST(a_file_without_the_wanted_build_id_is_refused)
{
    const uint64_t address = 0;
    SCOPED(symbols_helper) *h = start(&usual);
    struct symbols_question q = {
        .fd = open_self(), .build_id = "0123abcd", .addresses = &address, .count = 1};
    struct symbol_frames frames;
    enum symbols_failure failure;
    struct err err = ERR_INIT;
    assert_false(symbols_helper_ask(h, &q, &frames, &failure, &err));
    CHECK_INT(failure, SYMBOLS_BUILD_ID, "");
    CHECK_CONTAINS(err.msg, "expected a file with build id 0123abcd, got ", "");
    close(q.fd);
    check_self(h);
    CHECK_INT(counters(h).failures[SYMBOLS_BUILD_ID], 1, "");
    CHECK_INT(counters(h).children, 1, "the child goes on");
}

/* ---- files that are refused ------------------------------------------------------------------ */

/* A file in memory. */
static int file_with(const void *bytes, size_t n)
{
    int fd = memfd_create("file", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    return fd;
}

static enum symbols_failure ask_about(struct symbols_helper *h, int fd, struct err *err)
{
    const uint64_t address = 0x1000;
    struct symbols_question q = {.fd = fd, .addresses = &address, .count = 1};
    struct symbol_frames frames;
    enum symbols_failure failure;
    if (symbols_helper_ask(h, &q, &frames, &failure, err)) {
        symbol_frames_free(&frames);
    }
    return failure;
}

TEST(files_that_are_no_programs_are_refused)
{
    static const struct {
        const char *bytes;
        size_t n;
    } rows[] = {{"", 0}, {"text", 4}, {"\177ELF", 4}, {"\177ELF\2\1\1", 7}, {"!<arch>\n", 8}};
    SCOPED(symbols_helper) *h = start(&usual);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = ERR_INIT;
        int fd = file_with(rows[i].bytes, rows[i].n);
        CHECK_INT(ask_about(h, fd, &err), SYMBOLS_UNREADABLE, rows[i].bytes);
        CHECK_CONTAINS(err.msg, "expected an ELF file of a program or library", "");
        close(fd);
    }
    CHECK_INT(counters(h).failures[SYMBOLS_UNREADABLE], 5, "");
    CHECK_INT(counters(h).children, 1, "");
}

TEST(what_is_no_file_never_reaches_the_child)
{
    int ends[2];
    struct err err = ERR_INIT;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct symbols_helper *h = start(&usual);
    CHECK_INT(ask_about(h, ends[0], &err), SYMBOLS_UNREADABLE, "a pipe");
    CHECK_INT(ask_about(h, -1, &err), SYMBOLS_UNREADABLE, "no descriptor");
    CHECK_INT(counters(h).children, 0, "");
    symbols_helper_stop(h);
    close(ends[0]);
    close(ends[1]);
}

TEST(a_file_above_the_limit_is_not_read)
{
    struct symbols_helper_options options = usual;
    struct err err = ERR_INIT;
    options.max_file = 1000;
    SCOPED(symbols_helper) *h = start(&options);
    CHECK_INT(ask_self(h, &err), SYMBOLS_TOO_LARGE, "");
    CHECK_CONTAINS(err.msg, "bytes, more than 1000", "");
    options.max_file = 0;
    symbols_helper_limit(h, &options);
    check_self(h);
}

/* ---- a child that ends ----------------------------------------------------------------------- */

/* The parent of a process, or 0. */
static pid_t parent_of(const char *pid)
{
    char path[64];
    char text[512] = "";
    (void)snprintf(path, sizeof(path), "/proc/%.16s/stat", pid);
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return 0;
    }
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    return end == NULL ? 0 : (pid_t)strtol(end + 4, NULL, 10);
}

/* A process whose parent is this one, or 0. */
static pid_t child_of(pid_t parent)
{
    pid_t found = 0;
    DIR *d = opendir("/proc");
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e != NULL && found == 0; e = readdir(d)) {
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && parent_of(e->d_name) == parent) {
            found = (pid_t)strtol(e->d_name, NULL, 10);
        }
    }
    closedir(d);
    return found;
}

/* Sends a signal to the child, which the launcher has started. */
static void signal_child(int number)
{
    pid_t launcher = child_of(getpid());
    assert_true(launcher > 0);
    pid_t child = child_of(launcher);
    assert_true(child > 0);
    assert_int_equal(kill(child, number), 0);
}

TEST(a_killed_child_costs_one_answer)
{
    SCOPED(symbols_helper) *h = start(&usual);
    for (int i = 0; i < 3; i++) {
        struct err err = ERR_INIT;
        check_self(h);
        /* The child is stopped, so that it cannot answer before it is killed. */
        signal_child(SIGSTOP);
        signal_child(SIGKILL);
        CHECK_INT(ask_self(h, &err), SYMBOLS_CRASH, "");
        CHECK_STR(err.msg, "the process that reads the file has ended: signal 9", "");
    }
    check_self(h);
    struct symbols_counters c = counters(h);
    CHECK_INT(c.failures[SYMBOLS_CRASH], 3, "");
    CHECK_INT(c.children, 4, "");
}

TEST(a_late_child_is_replaced)
{
    struct symbols_helper_options options = usual;
    struct err err = ERR_INIT;
    SCOPED(symbols_helper) *h = start(&usual);
    check_self(h);
    signal_child(SIGSTOP);
    options.timeout_ms = 50;
    symbols_helper_limit(h, &options);
    CHECK_INT(ask_self(h, &err), SYMBOLS_TIMEOUT, "");
    CHECK_STR(err.msg, "no names within 50 ms", "");
    symbols_helper_limit(h, &usual);
    check_self(h);
    CHECK_INT(counters(h).children, 2, "");
}

TEST(without_a_launcher_there_are_no_names)
{
    struct err err = ERR_INIT;
    SCOPED(symbols_helper) *h = start(&usual);
    pid_t launcher = child_of(getpid());
    assert_true(launcher > 0); /* kill(0) would end all tests */
    assert_int_equal(kill(launcher, SIGKILL), 0);
    CHECK_INT(ask_self(h, &err), SYMBOLS_START, "");
    CHECK_CONTAINS(err.msg, "restart profpull to get names again", "");
}

TEST(another_limit_of_memory_needs_another_child)
{
    struct symbols_helper_options options = usual;
    SCOPED(symbols_helper) *h = start(&usual);
    check_self(h);
    options.max_memory *= 2;
    symbols_helper_limit(h, &options);
    check_self(h);
    CHECK_INT(counters(h).children, 2, "");
    symbols_helper_limit(h, &options);
    check_self(h);
    CHECK_INT(counters(h).children, 2, "the same limit");
    symbols_helper_memory(h, options.max_memory);
    check_self(h);
    CHECK_INT(counters(h).children, 2, "the same limit");
    symbols_helper_memory(h, usual.max_memory);
    check_self(h);
    CHECK_INT(counters(h).children, 3, "the first limit");
}
