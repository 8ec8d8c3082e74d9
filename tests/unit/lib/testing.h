/* What the unit tests share: cmocka with comparisons that name the row, a log that fails the test
 * on an unexpected warning, a temporary directory.
 *
 * Each test file is tests/unit/<room>/test_<room>_<what>.c with a main() that calls cmocka's
 * cmocka_run_group_tests(). Tables of cases print the index and a name through CHECK_* on failure.
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
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/labels.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/str.h"

/* Compare, and on a difference print both values and which row of a table it was ("" for none). */
void check_str_(const char *got, const char *want, const char *row, const char *file, int line);
void check_int_(long long got, long long want, const char *row, const char *file, int line);
void check_contains_(const char *text, const char *part, const char *row, const char *file,
                     int line);
#define CHECK_STR(got, want, row) check_str_((got), (want), (row), __FILE__, __LINE__)
#define CHECK_INT(got, want, row)                                                                  \
    check_int_((long long)(got), (long long)(want), (row), __FILE__, __LINE__)
#define CHECK_CONTAINS(text, part, row) check_contains_((text), (part), (row), __FILE__, __LINE__)

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

/* A fresh directory under $TMPDIR, removed with all in it by testing_rmdir(); the caller frees the
 * path. */
char *testing_mkdtemp(void);
void testing_rmdir(const char *path);
/* Writes a file; fails the test on error. */
void testing_write_file(const char *dir, const char *name, const char *text);

/* Label sets from a flat list of name, value, ..., NULL. */
struct labels *testing_labels(struct intern *in, const char *name, ...) __attribute__((sentinel));
/* Appends {a="b", c="d"}, with nothing escaped. */
bool testing_labels_format(const struct labels *l, struct buf *out);

#endif
