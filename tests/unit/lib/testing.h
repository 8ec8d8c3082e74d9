/* Helpers of all unit tests: cmocka with comparisons that name the row, a log that fails the test
 * on an unexpected warning, a temporary directory.
 *
 * A test file is tests/unit/<room>/test_<room>_<what>.c. It defines its cases with TEST(),
 * TEST_WITH() or TEST_ON(); main() of testing.c runs them, unless the file has one of its own.
 * Tables of cases print the index and a name through CHECK_* on failure.
 */
#ifndef PROFPULL_TESTS_TESTING_H
#define PROFPULL_TESTS_TESTING_H

/* cmocka.h wants these first, in this order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/labels.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/str.h"

/* Begins the definition of a case:
 *
 *     TEST(empty_lists_are_equal)
 *     {
 *         assert_true(list_equal(&(struct list){0}, &(struct list){0}));
 *     }
 *
 * The cases of a program run in the order of the file. A case that is defined is run: there is no
 * list to forget it in. TEST_WITH() names cmocka's functions before and after the case, which share
 * "state" with it; both may be NULL. */
#define TEST(name) TEST_WITH(name, NULL, NULL)
#define TEST_WITH(name, set_up, tear_down)                                                         \
    static void name(void **state);                                                                \
    static const struct CMUnitTest case_##name = {#name, name, set_up, tear_down, NULL};           \
    static const struct CMUnitTest *const row_##name TEST_ROW = &case_##name;                      \
    static void name(void **state __attribute__((unused)))
/* The same for a case with a fixture, whose parameter is the state that setup() has made:
 *
 *     TEST_ON(struct fixture *f, empty_lists_are_equal)
 *     {
 *         assert_true(list_equal(f->one, f->other));
 *     }
 *
 * The file defines setup() and teardown(), which cmocka calls before and after each case. */
#define TEST_ON(parameter, name)                                                                   \
    static void name##_on(parameter);                                                              \
    TEST_WITH(name, setup, teardown)                                                               \
    {                                                                                              \
        name##_on(*state);                                                                         \
    }                                                                                              \
    static void name##_on(parameter)
/* Defines both for a fixture "struct TYPE", which begin() fills and end() empties. Before begin(),
 * all of it is 0. */
#define FIXTURE(type, begin, end)                                                                  \
    static int setup(void **state)                                                                 \
    {                                                                                              \
        struct type *made = calloc(1, sizeof(*made));                                              \
        assert_non_null(made);                                                                     \
        begin(made);                                                                               \
        *state = made;                                                                             \
        return 0;                                                                                  \
    }                                                                                              \
    static int teardown(void **state)                                                              \
    {                                                                                              \
        end(*state);                                                                               \
        free(*state);                                                                              \
        return 0;                                                                                  \
    }
/* The same for a fixture that TYPE_init() makes and that may be SCOPED(). */
#define SETUP_OF(type) FIXTURE(type, type##_init, type##_leave)
/* The linker makes an array of the pointers in this section, and names its begin and its end. gcc
 * would reorder variables. */
#ifdef __clang__
#define TEST_ROW __attribute__((section("profpull_tests"), used))
#else
#define TEST_ROW __attribute__((section("profpull_tests"), used, no_reorder))
#endif
/* Runs all cases of the program; "group" is for the log. The functions run once, before the first
 * case and after the last one; both may be NULL. Returns how many failed. */
int testing_run(const char *group, CMFixtureFunction set_up, CMFixtureFunction tear_down);

/* Declares a variable that is freed at the end of its block:
 *
 *     SCOPED(buf) text = testing_buf(100);
 *
 * The variables of a block are freed in the reverse order of their declarations. A failed assertion
 * leaves them as they are: the program ends soon after. SCOPED_VALUE() and SCOPED_POINTER() name
 * the function that frees a struct, or what a pointer to it points to. */
#define SCOPED(type) __attribute__((cleanup(type##_leave), unused)) struct type
#define SCOPED_VALUE(type, end)                                                                    \
    static inline void type##_leave(struct type *value)                                            \
    {                                                                                              \
        end(value);                                                                                \
    }
#define SCOPED_POINTER(type, end)                                                                  \
    static inline void type##_leave(struct type **pointer)                                         \
    {                                                                                              \
        (void)end(*pointer);                                                                       \
    }
SCOPED_VALUE(buf, buf_done)
SCOPED_VALUE(err, err_clear)
SCOPED_POINTER(arena, arena_free)
SCOPED_POINTER(intern, intern_free)
SCOPED_POINTER(labels, labels_unref)
SCOPED_POINTER(labels_builder, labels_builder_free)
SCOPED_POINTER(loop, loop_free)
SCOPED_POINTER(metrics, metrics_free)

/* The same for memory of malloc(), and for a directory of testing_mkdtemp():
 *
 *     SCOPED_MEMORY char *text = strdup("x");
 *     SCOPED_DIRECTORY char *dir = testing_mkdtemp();
 */
#define SCOPED_MEMORY __attribute__((cleanup(testing_memory_leave)))
#define SCOPED_DIRECTORY __attribute__((cleanup(testing_directory_leave)))
void testing_memory_leave(void *pointer);
void testing_directory_leave(char **path);

/* Returns n bytes of 0, for free(); ends the case if there is no memory. */
static inline void *testing_memory(size_t n)
{
    void *made = calloc(1, n);
    assert_non_null(made);
    return made;
}

/* Returns an empty buffer for up to max bytes. */
static inline struct buf testing_buf(size_t max)
{
    struct buf b;
    buf_init(&b, max);
    return b;
}

/* A row of the most common table: a text, and the expected result or message for it. */
struct text_case {
    const char *text;
    const char *want;
};

/* Compare, and on a difference print both values and which row of a table it was ("" for none). */
void check_str_(const char *got, const char *want, const char *row, const char *file, int line);
void check_int_(long long got, long long want, const char *row, const char *file, int line);
void check_contains_(const char *text, const char *part, const char *row, const char *file,
                     int line);
#define CHECK_STR(got, want, row) check_str_((got), (want), (row), __FILE__, __LINE__)
#define CHECK_INT(got, want, row)                                                                  \
    check_int_((long long)(got), (long long)(want), (row), __FILE__, __LINE__)
#define CHECK_CONTAINS(text, part, row) check_contains_((text), (part), (row), __FILE__, __LINE__)

/* Ends the case with a message (fail_msg()) if the condition is false. */
#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fail_msg(__VA_ARGS__);                                                                 \
        }                                                                                          \
    } while (0)

/* The value of the first sample that has this text in front of it; TESTING_NO_METRIC if there is
 * none. */
#define TESTING_NO_METRIC 999999
uint64_t testing_metric(struct metrics *m, const char *text);

/* A log that keeps its lines in memory. testing_log_done() fails the test if a line at warn or
 * above came that testing_log_expect() had not announced (as part of its message), or if an
 * announced one never came. One announcement covers every line that it fits. */
struct testing_log;
struct testing_log *testing_log_new(void);
struct log *testing_log(struct testing_log *t);
void testing_log_expect(struct testing_log *t, const char *part_of_message);
/* All lines so far, logfmt. */
const char *testing_log_text(struct testing_log *t);
void testing_log_done(struct testing_log *t);
SCOPED_POINTER(testing_log, testing_log_done)

/* A fresh directory under $TMPDIR, removed with all in it by testing_rmdir(); the caller frees the
 * path. */
char *testing_mkdtemp(void);
void testing_rmdir(const char *path);
/* Writes a file; fails the test on error. */
void testing_write_file(const char *dir, const char *name, const char *text);
/* Reads a file of 1 byte to 16 MiB; fails the test on error. The caller frees it with buf_done().
 */
struct buf testing_read_file(const char *path);

/* Label sets from a flat list of name, value, ..., NULL. */
struct labels *testing_labels(struct intern *in, const char *name, ...) __attribute__((sentinel));
/* Appends {a="b", c="d"}, with nothing escaped. */
bool testing_labels_format(const struct labels *l, struct buf *out);

#endif
