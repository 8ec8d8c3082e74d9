/* The test helpers: their checks can fail. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void equal_strings(void **state)
{
    (void)state;
    CHECK_STR("a", "a", "");
    CHECK_STR(NULL, NULL, "");
}

static void different_strings(void **state)
{
    (void)state;
    CHECK_STR("a", "b", "row");
}

static void string_and_null(void **state)
{
    (void)state;
    CHECK_STR("a", NULL, "");
}

static void null_and_string(void **state)
{
    (void)state;
    CHECK_STR(NULL, "a", "");
}

static void equal_numbers(void **state)
{
    (void)state;
    CHECK_INT(1, 1, "");
    CHECK_INT(-1, -1, "");
}

static void different_numbers(void **state)
{
    (void)state;
    CHECK_INT(INT64_C(1) << 32, 0, NULL);
}

static void contained(void **state)
{
    (void)state;
    CHECK_CONTAINS("abc", "bc", "");
}

static void not_contained(void **state)
{
    (void)state;
    CHECK_CONTAINS("abc", "cb", "row");
}

static void nothing_contained(void **state)
{
    (void)state;
    CHECK_CONTAINS(NULL, "", "");
}

static void quiet_log(void **state)
{
    (void)state;
    SCOPED(testing_log) *t = testing_log_new();
    log_info(testing_log(t), "hello", LOG_INT("n", 1));
    log_debug(testing_log(t), "detail");
    CHECK_CONTAINS(testing_log_text(t), "msg=hello n=1\n", "");
    CHECK_CONTAINS(testing_log_text(t), "msg=detail\n", "");
}

static void unexpected_warning(void **state)
{
    (void)state;
    SCOPED(testing_log) *t = testing_log_new();
    testing_log_expect(t, "that one");
    log_warn(testing_log(t), "that one");
    log_warn(testing_log(t), "another");
}

static void expected_warning(void **state)
{
    (void)state;
    SCOPED(testing_log) *t = testing_log_new();
    testing_log_expect(t, "that one");
    testing_log_expect(t, "other");
    log_warn(testing_log(t), "it is that one");
    log_error(testing_log(t), "another");
    log_error(testing_log(t), "another");
}

static void missing_warning(void **state)
{
    (void)state;
    SCOPED(testing_log) *t = testing_log_new();
    testing_log_expect(t, "that one");
    log_info(testing_log(t), "that one"); /* not loud enough */
}

/* Runs one test silently, as a program of its own. True if it passed. */
static bool passes(const char *name, CMUnitTestFunction test)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct CMUnitTest tests[] = {{.name = name, .test_func = test}};
        bool silent =
            freopen("/dev/null", "w", stdout) != NULL && freopen("/dev/null", "w", stderr) != NULL;
        _exit(silent ? cmocka_run_group_tests(tests, NULL, NULL) : 77);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
    return WEXITSTATUS(status) == 0;
}

TEST(checks_pass_and_fail)
{
    static const struct {
        const char *name;
        CMUnitTestFunction test;
        bool want;
    } cases[] = {
        {"equal_strings", equal_strings, true},
        {"different_strings", different_strings, false},
        {"string_and_null", string_and_null, false},
        {"null_and_string", null_and_string, false},
        {"equal_numbers", equal_numbers, true},
        {"different_numbers", different_numbers, false},
        {"contained", contained, true},
        {"not_contained", not_contained, false},
        {"nothing_contained", nothing_contained, false},
        {"quiet_log", quiet_log, true},
        {"unexpected_warning", unexpected_warning, false},
        {"expected_warning", expected_warning, true},
        {"missing_warning", missing_warning, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_INT(passes(cases[i].name, cases[i].test), cases[i].want, cases[i].name);
    }
}

TEST(directories_come_and_go)
{
    struct stat st;
    char sub[300];
    SCOPED_MEMORY char *dir = testing_mkdtemp();
    assert_int_equal(stat(dir, &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    testing_write_file(dir, "a.txt", "hello");
    (void)snprintf(sub, sizeof(sub), "%s/sub", dir);
    assert_int_equal(mkdir(sub, 0700), 0);
    testing_write_file(sub, "b.txt", "");
    (void)snprintf(sub, sizeof(sub), "%s/a.txt", dir);
    assert_int_equal(stat(sub, &st), 0);
    CHECK_INT(st.st_size, 5, "");
    testing_rmdir(dir);
    assert_int_equal(stat(dir, &st), -1);
}
