/* The parts of the HTTP client that need no network: Retry-After, files with credentials. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "http/contents.h"
#include "http/pem.h"
#include "http/private.h"

SCOPED_POINTER(http_contents, http_contents_free)
SCOPED_POINTER(http_file, http_file_unref)

/* ---- Retry-After ----------------------------------------------------------------------------- */

TEST(test_retry_after)
{
    /* 2026-11-21T03:23:34.500Z */
    const int64_t now_ns = INT64_C(1795231414) * NS_PER_S + 500 * NS_PER_MS;
    static const struct {
        const char *value;
        int64_t want;
    } rows[] = {
        {"0", 0},
        {"1", 1000},
        {"120", 120000},
        {"31622400", INT64_C(31622400000)}, /* 366 days */
        {"31622401", INT64_C(31622400000)}, /* the longest pause that is accepted */
        {"1000000000", INT64_C(31622400000)},
        {"99999999999999999999", INT64_C(31622400000)},
        {"1e9", -1},
        {"abc", -1},
        {"-1", -1},
        {"+5", -1},
        {"1.5", -1},
        {"5s", -1},
        {"", -1},
        {"soon", -1},
        {"tomorrow", -1},
        {"now, please: as soon as possible", -1},
        {"Sat, 21 Nov 2026 03:23:44 GMT", 9500},
        {"Saturday, 21-Nov-26 03:23:44 GMT", 9500}, /* RFC 850 */
        {"Sat Nov 21 03:23:44 2026", 9500},         /* asctime() */
        {"Sat, 21 Nov 2026 03:23:34 GMT", 0},
        {"Wed, 21 Oct 2015 07:28:00 GMT", 0},
        {"Fri, 21 Nov 2036 03:23:44 GMT", INT64_C(31622400000)},
        {"Sat, 99 Nov 2026 03:23:44 GMT", -1},
        {"2026-11-21T03:23:44Z", -1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_INT(http_retry_after(sv_from(rows[i].value), now_ns), rows[i].want, rows[i].value);
    }
    char long_value[200];
    memset(long_value, '9', sizeof(long_value));
    CHECK_INT(http_retry_after((struct sv){long_value, sizeof(long_value)}, now_ns),
              INT64_C(31622400000), "long");
    for (size_t i = 0; i < 25; i++) {
        long_value[i] = "Sat, 21 Nov 2026 03:23:44"[i];
    }
    CHECK_INT(http_retry_after((struct sv){long_value, sizeof(long_value)}, now_ns), -1, "long");
}

TEST(test_result_names)
{
    for (int i = 0; i < HTTP_RESULTS; i++) {
        assert_true(strlen(http_result_name((enum http_result)i)) > 1);
    }
    CHECK_STR(http_result_name(HTTP_ERR_TOO_LARGE), "too_large", "");
    CHECK_STR(http_result_name(HTTP_ERR_NO_ROOM), "no_room", "");
    CHECK_STR(http_result_name((enum http_result)99), "unknown", "");
}

/* ---- files ----------------------------------------------------------------------------------- */

struct files {
    struct testing_log *log;
    struct http_files *files;
    char *dir;
    char path[256];
    int64_t now_ms;
    struct metrics *metrics;
    struct metric_cell *failures;
};

static const struct http_file_rule short_text = {100, NULL};
static const struct http_file_rule certificates = {1000, pem_check_certificates};

static void files_init(struct files *f)
{
    *f = (struct files){.log = testing_log_new(), .dir = testing_mkdtemp(), .now_ms = 5000};
    f->metrics = metrics_new();
    f->failures = metric_only(metrics_register(
        f->metrics, &(struct metric_desc){.name = "f", .help = "f", .type = METRIC_COUNTER}));
    f->files = http_files_new(testing_log(f->log), f->failures, NULL);
    assert_non_null(f->files);
    (void)snprintf(f->path, sizeof(f->path), "%s/secret", f->dir);
}

static void files_done(struct files *f)
{
    http_files_free(f->files);
    metrics_free(f->metrics);
    testing_directory_leave(&f->dir);
    testing_log_done(f->log);
}
SCOPED_VALUE(files, files_done)

/* Reads at this time and compares; want NULL: expects an error with this part. */
static void check_file(struct files *f, const char *want, const char *error, const char *row)
{
    struct err err = ERR_INIT;
    struct http_file *file = http_files_get(f->files, f->path, &short_text, f->now_ms, &err);
    CHECK_STR(file ? file->data : NULL, want, row);
    if (file != NULL && want != NULL) {
        CHECK_INT(file->len, strlen(want), row);
        CHECK_INT(err.kind, ERR_NONE, row);
    } else {
        CHECK_CONTAINS(err.msg, error, row);
        CHECK_CONTAINS(err.msg, f->path, row);
        assert_null(strstr(err.msg, "s3cret"));
    }
    assert_null(http_file_unref(file));
}

/* Puts another file in the same place, as Kubernetes does. */
static void replace(struct files *f, const char *text)
{
    char fresh[300];
    testing_write_file(f->dir, "fresh", text);
    (void)snprintf(fresh, sizeof(fresh), "%s/fresh", f->dir);
    assert_int_equal(rename(fresh, f->path), 0);
}

SETUP_OF(files)

TEST_ON(struct files *f, test_file_is_read_again)
{
    testing_write_file(f->dir, "secret", "one\n");
    check_file(f, "one\n", "", "first");
    replace(f, "two\n");
    f->now_ms += HTTP_FILE_CHECK_MS - 1;
    check_file(f, "one\n", "", "looked at once a second");
    f->now_ms += 1;
    check_file(f, "two\n", "", "changed");
    replace(f, "tri\n");
    http_files_forget(f->files, f->path);
    check_file(f, "tri\n", "", "forgotten: at once");
    http_files_forget(f->files, "/no/such/file");
}

TEST_ON(struct files *f, test_file_content_outlives_a_change)
{
    testing_write_file(f->dir, "secret", "one");
    SCOPED(http_file) *held = http_files_get(f->files, f->path, &short_text, f->now_ms, NULL);
    assert_non_null(held);
    replace(f, "two");
    f->now_ms += HTTP_FILE_CHECK_MS;
    check_file(f, "two", "", "");
    CHECK_STR(held->data, "one", "a reference keeps the content");
}

/* A certificate by its form: base64 of a DER sequence of five bytes. */
#define GOOD_PEM "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n"

static void check_ca(struct files *f, const char *want, long failures, const char *row)
{
    struct err err = ERR_INIT;
    f->now_ms += HTTP_FILE_CHECK_MS;
    SCOPED(http_file) *file = http_files_get(f->files, f->path, &certificates, f->now_ms, &err);
    CHECK_STR(file ? file->data : err.msg, want, row);
    CHECK_INT(metric_value(f->failures), failures, row);
}

/* A CA file that becomes bad PEM is counted and the old content kept; a good one is used again.
 */
TEST_ON(struct files *f, test_ca_file_goes_bad)
{
    testing_log_expect(f->log, "keeping its old content");
    replace(f, GOOD_PEM);
    check_ca(f, GOOD_PEM, 0, "first");
    replace(f, "-----BEGIN CERTIFICATE-----\nMAMC");
    check_ca(f, GOOD_PEM, 1, "half of a file");
    check_ca(f, GOOD_PEM, 1, "counted once");
    CHECK_CONTAINS(testing_log_text(f->log), "PEM block 1 is cut off", "");
    replace(f, GOOD_PEM GOOD_PEM);
    check_ca(f, GOOD_PEM GOOD_PEM, 1, "the new one");
    replace(f, "junk");
    check_ca(f, GOOD_PEM GOOD_PEM, 2, "no PEM at all");
}

TEST(test_pem)
{
    static const struct {
        const char *text;
        const char *want; /* "": valid */
    } certs[] = {
        {GOOD_PEM, ""},
        {"text\n" GOOD_PEM "more\n" GOOD_PEM, ""},
        {"-----BEGIN TRUSTED CERTIFICATE-----\r\nMAMC\r\nAQE=\r\n-----END TRUSTED CERTIFICATE-----",
         ""},
        {"", "found none"},
        {"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "found none"},
        {GOOD_PEM "-----BEGIN CERTIFICATE", "PEM block 2 is cut off"},
        {"-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERT", "PEM block 1 is cut off"},
        {"-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END PRIVATE KEY-----\n", "is cut off"},
        {"-----BEGIN CERTIFICATE-----\nMAMC\n-----END CERTIFICATE-----\n", "incomplete or damaged"},
        {"-----BEGIN CERTIFICATE-----\nMAMCAQEA\n-----END CERTIFICATE-----\n",
         "incomplete or damaged"},
        {"-----BEGIN CERTIFICATE-----\n\n-----END CERTIFICATE-----\n", "incomplete or damaged"},
        {"-----BEGIN CERTIFICATE-----\nMAMC!QE=\n-----END CERTIFICATE-----\n",
         "incomplete or damaged"},
        {"-----BEGIN CERTIFICATE-----\nMP////8=\n-----END CERTIFICATE-----\n",
         "incomplete or damaged"},
    };
    for (size_t i = 0; i < sizeof(certs) / sizeof(certs[0]); i++) {
        struct err err = ERR_INIT;
        CHECK_INT(pem_check_certificates(sv_from(certs[i].text), &err), certs[i].want[0] == '\0',
                  certs[i].text);
        CHECK_CONTAINS(err.msg, certs[i].want, certs[i].text);
    }
    struct err err = ERR_INIT;
    assert_true(pem_check_key(
        SV("-----BEGIN EC PRIVATE KEY-----\nx\n-----END EC PRIVATE KEY-----\n"), &err));
    assert_false(pem_check_key(SV("-----BEGIN EC PRIVATE KEY-----\nx\n"), &err));
    err_clear(&err);
    assert_false(pem_check_key(SV(GOOD_PEM), &err));
    CHECK_CONTAINS(err.msg, "found none", "");
}

TEST(test_bad_files)
{
    static const char hundred_and_one[] = "s3cret..............s3cret..............s3cret.........."
                                          "....s3cret..............s3cret......"
                                          ".........";
    static const struct {
        const char *name, *text, *error;
    } rows[] = {
        {"missing", NULL, "cannot open"},
        {"empty", "", "the file is empty"},
        {"white space", " \r\n\t\n", "the file is empty"},
        {"too large", hundred_and_one, "expected at most 100 bytes"},
    };
    assert_int_equal(sizeof(hundred_and_one) - 1, 101);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(files) f;
        files_init(&f);
        if (rows[i].text != NULL) {
            testing_write_file(f.dir, "secret", rows[i].text);
        }
        check_file(&f, NULL, rows[i].error, rows[i].name);
        f.now_ms += HTTP_FILE_CHECK_MS;
        check_file(&f, NULL, rows[i].error, rows[i].name);
        replace(&f, "good");
        check_file(&f, NULL, rows[i].error, rows[i].name);
        f.now_ms += HTTP_FILE_CHECK_MS;
        check_file(&f, "good", "", rows[i].name);
        /* Bad again: the valid content stays in use, which is logged once. */
        assert_int_equal(unlink(f.path), 0);
        if (rows[i].text != NULL) {
            replace(&f, rows[i].text);
        }
        testing_log_expect(f.log, "cannot re-read a file, keeping its old content");
        for (int k = 0; k < 3; k++) {
            f.now_ms += HTTP_FILE_CHECK_MS;
            check_file(&f, "good", "", rows[i].name);
        }
        const char *text = testing_log_text(f.log);
        CHECK_CONTAINS(text, rows[i].error, rows[i].name);
        assert_null(strstr(text, "s3cret"));
        const char *first = strstr(text, "cannot re-read");
        assert_true(first && !strstr(first + 1, "cannot re-read"));
    }
}

TEST_ON(struct files *f, test_no_regular_file)
{
    assert_int_equal(mkdir(f->path, 0700), 0);
    check_file(f, NULL, "expected a regular file", "directory");
    assert_int_equal(rmdir(f->path), 0);
    assert_int_equal(mkfifo(f->path, 0600), 0);
    f->now_ms += HTTP_FILE_CHECK_MS;
    check_file(f, NULL, "expected a regular file", "FIFO (opening it must not wait)");
}

TEST_ON(struct files *f, test_file_with_zero_byte)
{
    FILE *file = fopen(f->path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite("s3cret\0x", 1, 8, file), 8);
    assert_int_equal(fclose(file), 0);
    check_file(f, NULL, "found a zero byte", "");
}

/* A content that is no file: the last one that was put, and until then the reason why there is
 * none. */
TEST_ON(struct files *f, test_content_is_taken_as_a_file)
{
    struct err err = ERR_INIT;
    uint64_t version;
    SCOPED(http_contents) *contents = http_contents_new();
    http_files_free(f->files);
    f->files = http_files_new(testing_log(f->log), f->failures, contents);
    assert_true(contents != NULL && f->files != NULL);
    (void)snprintf(f->path, sizeof(f->path), "kubernetes:secret/n/s/k");
    check_file(f, NULL, "this object is not among those that are read", "not added");
    assert_true(http_contents_add(contents, f->path, &err));
    f->now_ms += HTTP_FILE_CHECK_MS;
    check_file(f, NULL, "not read yet", "added");
    err_set(&err, ERR_REFUSED, "forbidden");
    http_contents_fail(contents, f->path, &err);
    f->now_ms += HTTP_FILE_CHECK_MS;
    check_file(f, NULL, "forbidden", "failed");
    assert_true(http_contents_put(contents, f->path, SV("one"), &err));
    f->now_ms += HTTP_FILE_CHECK_MS;
    check_file(f, "one", "", "put");
    http_contents_fail(contents, f->path, &err);
    assert_true(http_contents_put(contents, f->path, SV("two"), &err));
    check_file(f, "one", "", "looked at once a second");
    assert_false(http_contents_refused(contents, f->path));
    http_files_forget(f->files, f->path);
    check_file(f, "two", "", "forgotten: at once");
    assert_true(http_contents_refused(contents, f->path));
    assert_false(http_contents_refused(contents, f->path));
    version = http_contents_version(contents, f->path);
    assert_true(http_contents_put(contents, f->path, SV("two"), &err));
    CHECK_INT(http_contents_version(contents, f->path), version, "the same content");
}

TEST(test_content_that_is_too_large)
{
    struct err err = ERR_INIT;
    SCOPED(http_contents) *contents = http_contents_new();
    SCOPED_MEMORY char *text = calloc(1, HTTP_CONTENT_MAX + 1);
    assert_true(contents != NULL && text != NULL);
    assert_true(http_contents_add(contents, "kubernetes:x", &err));
    assert_true(
        http_contents_put(contents, "kubernetes:x", (struct sv){text, HTTP_CONTENT_MAX}, &err));
    assert_false(
        http_contents_put(contents, "kubernetes:x", (struct sv){text, HTTP_CONTENT_MAX + 1}, &err));
    CHECK_STR(err.msg, "expected at most 1048576 bytes, got 1048577", "");
}

TEST_ON(struct files *f, test_content_without_a_reader)
{
    (void)snprintf(f->path, sizeof(f->path), "kubernetes:secret/n/s/k");
    check_file(f, NULL, "only `profpull run` and `profpull discover` read what is in Kubernetes",
               "no file");
}
