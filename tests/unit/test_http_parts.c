/* The parts of the HTTP client that need no network: URLs, Retry-After, files with credentials. */
#include "tests/unit/testing.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "http/pem.h"
#include "http/private.h"

/* ---- URLs ------------------------------------------------------------------------------------ */

static void test_url_parse(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        const char *text; /* NULL: refused */
        const char *host;
        uint16_t port;
        bool https;
        const char *user;
        const char *password;
    } rows[] = {
        {"http://h", "http://h/", "h", 80, false, NULL, NULL},
        {"https://h/x", "https://h/x", "h", 443, true, NULL, NULL},
        {"HTTP://Host.Example:8080/A?b=C", "http://Host.Example:8080/A?b=C", "host.example", 8080,
         false, NULL, NULL},
        {"http://10.0.0.1:6060/debug/pprof/profile?seconds=14",
         "http://10.0.0.1:6060/debug/pprof/profile?seconds=14", "10.0.0.1", 6060, false, NULL,
         NULL},
        {"http://[::1]:6060/x", "http://[::1]:6060/x", "::1", 6060, false, NULL, NULL},
        {"http://user:pa%3Ass@h:1/x", "http://h:1/x", "h", 1, false, "user", "pa:ss"},
        {"http://user@h/", "http://h/", "h", 80, false, "user", NULL},
        {"http://h/x#frag", "http://h/x", "h", 80, false, NULL, NULL},
        {"http://h/a/../b/./c", "http://h/a/../b/./c", "h", 80, false, NULL, NULL},
        {"http://h?x=1", "http://h/?x=1", "h", 80, false, NULL, NULL},
        {"", NULL, NULL, 0, false, NULL, NULL},
        {"h:80/x", NULL, NULL, 0, false, NULL, NULL},
        {"/x", NULL, NULL, 0, false, NULL, NULL},
        {"ftp://h/", NULL, NULL, 0, false, NULL, NULL},
        {"file:///etc/passwd", NULL, NULL, 0, false, NULL, NULL},
        {"http:///x", NULL, NULL, 0, false, NULL, NULL},
        {"http:/h/x", NULL, NULL, 0, false, NULL, NULL},
        {"http:h", NULL, NULL, 0, false, NULL, NULL},
        {"http://", NULL, NULL, 0, false, NULL, NULL},
        {"http://h:0/", NULL, NULL, 0, false, NULL, NULL},
        {"http://h:65536/", NULL, NULL, 0, false, NULL, NULL},
        {"http://h:x/", NULL, NULL, 0, false, NULL, NULL},
        {"http://h/a b", NULL, NULL, 0, false, NULL, NULL},
        {"http://h/a\r\nX: 1", NULL, NULL, 0, false, NULL, NULL},
        {"http://[::1/", NULL, NULL, 0, false, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = ERR_INIT;
        struct http_url url;
        enum http_result result = http_url_parse(rows[i].in, &url, &err);
        CHECK_STR(http_result_name(result), rows[i].text ? "ok" : "config", rows[i].in);
        CHECK_STR(url.text, rows[i].text, rows[i].in);
        CHECK_STR(url.host, rows[i].host, rows[i].in);
        CHECK_INT(url.port, rows[i].port, rows[i].in);
        CHECK_INT(url.https, rows[i].https, rows[i].in);
        CHECK_STR(url.user, rows[i].user, rows[i].in);
        CHECK_STR(url.password, rows[i].password, rows[i].in);
        CHECK_INT(err.kind, rows[i].text ? ERR_NONE : ERR_INPUT, rows[i].in);
        http_url_done(&url);
    }
}

static void test_url_origin(void **state)
{
    (void)state;
    static const struct {
        const char *a;
        const char *b;
        bool same;
    } rows[] = {
        {"http://h/x", "http://H:80/y?z", true}, {"https://h/x", "https://u:p@h:443/", true},
        {"http://h/", "https://h/", false},      {"http://h:1/", "http://h:2/", false},
        {"http://h/", "http://g/", false},       {"http://h:80/", "https://h:80/", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct http_url a, b;
        bool same = !rows[i].same;
        assert_int_equal(http_url_parse(rows[i].a, &a, NULL), HTTP_DONE);
        assert_int_equal(http_url_parse(rows[i].b, &b, NULL), HTTP_DONE);
        CHECK_INT(http_url_origin_hash(&a) == http_url_origin_hash(&b), rows[i].same, rows[i].b);
        char *target = http_url_resolve(rows[i].a, rows[i].b, &same);
        CHECK_STR(target, b.text, rows[i].b);
        CHECK_INT(same, rows[i].same, rows[i].b);
        free(target);
        http_url_done(&a);
        http_url_done(&b);
    }
}

static void test_url_resolve(void **state)
{
    (void)state;
    static const struct {
        const char *location;
        const char *want;
    } rows[] = {
        {"/x", "http://h:1/x"},         {"x", "http://h:1/a/x"},
        {"?q=2", "http://h:1/a/b?q=2"}, {"//g/x", "http://g/x"},
        {"a b", "http://h:1/a/a%20b"},  {"https://u:p@g/#f", "https://g/"},
        {"javascript:alert(1)", NULL},  {"mailto:x@y", NULL},
        {"http://h:99999/", NULL},      {"ftp://h/", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool same = false;
        char *got = http_url_resolve("http://h:1/a/b?q=1", rows[i].location, &same);
        /* "javascript:x" may also be read as a path of the same host: never another host. */
        if (rows[i].want != NULL || got == NULL || !same) {
            CHECK_STR(got, rows[i].want, rows[i].location);
        }
        free(got);
    }
}

static void test_url_redact(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        const char *want;
    } rows[] = {
        {"http://h:1/a/b", "http://h:1/a/b"},
        {"http://user:s3cret@h:1/a", "http://h:1/a"},
        {"http://h/a?seconds=14&debug=0", "http://h/a?seconds=14&debug=0"},
        {"http://h/a?token=s3cret&x=", "http://h/a?token=...&x=..."},
        {"http://h/a?s3cret", "http://h/a?..."},
        {"http://h/a?pin=12345678901", "http://h/a?pin=..."},
        {"http://h/a#s3cret", "http://h/a"},
        /* Not URLs, but they may hold a secret all the same. */
        {"h:80/x", "h:80/x"},
        {"http://user:s3c ret@h/x", "...@h/x"},
        {"http://user:s3/cr@et@h/x", "...@h/x"},
        {"user:s3cret@h", "...@h"},
        {"h/x?s3cret", "h/x?..."},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char out[HTTP_URL_REDACTED_MAX];
        http_url_redact(rows[i].in, out, sizeof(out));
        CHECK_STR(out, rows[i].want, rows[i].in);
    }
    char small[16];
    http_url_redact("http://host/a/long/path", small, sizeof(small));
    CHECK_STR(small, "http://host/...", "cut");
}

/* ---- Retry-After ----------------------------------------------------------------------------- */

static void test_retry_after(void **state)
{
    (void)state;
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
        {"31622401", INT64_C(31622400000)}, /* F25: beyond the bound is the bound */
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

static void test_result_names(void **state)
{
    (void)state;
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
    f->files = http_files_new(testing_log(f->log), f->failures);
    assert_non_null(f->files);
    (void)snprintf(f->path, sizeof(f->path), "%s/secret", f->dir);
}

static void files_done(struct files *f)
{
    http_files_free(f->files);
    metrics_free(f->metrics);
    testing_rmdir(f->dir);
    free(f->dir);
    testing_log_done(f->log);
}

/* Reads at this time and compares; want NULL: an error with this part is expected. */
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

/* As Kubernetes does it: another file in the same place. */
static void replace(struct files *f, const char *text)
{
    char fresh[300];
    testing_write_file(f->dir, "fresh", text);
    (void)snprintf(fresh, sizeof(fresh), "%s/fresh", f->dir);
    assert_int_equal(rename(fresh, f->path), 0);
}

static void test_file_is_read_again(void **state)
{
    (void)state;
    struct files f;
    files_init(&f);
    testing_write_file(f.dir, "secret", "one\n");
    check_file(&f, "one\n", "", "first");
    replace(&f, "two\n");
    f.now_ms += HTTP_FILE_CHECK_MS - 1;
    check_file(&f, "one\n", "", "looked at once a second");
    f.now_ms += 1;
    check_file(&f, "two\n", "", "changed");
    replace(&f, "tri\n");
    http_files_forget(f.files, f.path);
    check_file(&f, "tri\n", "", "forgotten: at once");
    http_files_forget(f.files, "/no/such/file");
    files_done(&f);
}

static void test_file_content_outlives_a_change(void **state)
{
    (void)state;
    struct files f;
    files_init(&f);
    testing_write_file(f.dir, "secret", "one");
    struct http_file *held = http_files_get(f.files, f.path, &short_text, f.now_ms, NULL);
    assert_non_null(held);
    replace(&f, "two");
    f.now_ms += HTTP_FILE_CHECK_MS;
    check_file(&f, "two", "", "");
    CHECK_STR(held->data, "one", "whoever holds it keeps it");
    http_file_unref(held);
    files_done(&f);
}

/* A certificate by its form: base64 of a DER sequence of five bytes. */
#define GOOD_PEM "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n"

static void check_ca(struct files *f, const char *want, long failures, const char *row)
{
    struct err err = ERR_INIT;
    f->now_ms += HTTP_FILE_CHECK_MS;
    struct http_file *file = http_files_get(f->files, f->path, &certificates, f->now_ms, &err);
    CHECK_STR(file ? file->data : err.msg, want, row);
    CHECK_INT(metric_value(f->failures), failures, row);
    http_file_unref(file);
}

/* F14: a CA file that becomes bad PEM is counted and the old one kept; a good one comes into use.
 */
static void test_ca_file_goes_bad(void **state)
{
    (void)state;
    struct files f;
    files_init(&f);
    testing_log_expect(f.log, "keeping its old content");
    replace(&f, GOOD_PEM);
    check_ca(&f, GOOD_PEM, 0, "first");
    replace(&f, "-----BEGIN CERTIFICATE-----\nMAMC");
    check_ca(&f, GOOD_PEM, 1, "half of a file");
    check_ca(&f, GOOD_PEM, 1, "counted once");
    CHECK_CONTAINS(testing_log_text(f.log), "PEM block 1 is cut off", "");
    replace(&f, GOOD_PEM GOOD_PEM);
    check_ca(&f, GOOD_PEM GOOD_PEM, 1, "the new one");
    replace(&f, "junk");
    check_ca(&f, GOOD_PEM GOOD_PEM, 2, "no PEM at all");
    files_done(&f);
}

static void test_pem(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *want; /* "" is good */
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
        {"-----BEGIN CERTIFICATE-----\nMAMC\n-----END CERTIFICATE-----\n", "not a whole one"},
        {"-----BEGIN CERTIFICATE-----\nMAMCAQEA\n-----END CERTIFICATE-----\n", "not a whole one"},
        {"-----BEGIN CERTIFICATE-----\n\n-----END CERTIFICATE-----\n", "not a whole one"},
        {"-----BEGIN CERTIFICATE-----\nMAMC!QE=\n-----END CERTIFICATE-----\n", "not a whole one"},
        {"-----BEGIN CERTIFICATE-----\nMP////8=\n-----END CERTIFICATE-----\n", "not a whole one"},
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

static void test_bad_files(void **state)
{
    (void)state;
    static const char hundred_and_one[] = "s3cret..............s3cret..............s3cret.........."
                                          "....s3cret..............s3cret......"
                                          ".........";
    static const struct {
        const char *name;
        const char *text;
        const char *error;
    } rows[] = {
        {"missing", NULL, "cannot open"},
        {"empty", "", "the file is empty"},
        {"white space", " \r\n\t\n", "the file is empty"},
        {"too large", hundred_and_one, "expected at most 100 bytes"},
    };
    assert_int_equal(sizeof(hundred_and_one) - 1, 101);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct files f;
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
        /* Bad again: the good one stays, and that is logged once. */
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
        files_done(&f);
    }
}

static void test_no_regular_file(void **state)
{
    (void)state;
    struct files f;
    files_init(&f);
    assert_int_equal(mkdir(f.path, 0700), 0);
    check_file(&f, NULL, "expected a regular file", "directory");
    assert_int_equal(rmdir(f.path), 0);
    assert_int_equal(mkfifo(f.path, 0600), 0);
    f.now_ms += HTTP_FILE_CHECK_MS;
    check_file(&f, NULL, "expected a regular file", "FIFO (opening it must not wait)");
    files_done(&f);
}

static void test_file_with_zero_byte(void **state)
{
    (void)state;
    struct files f;
    files_init(&f);
    FILE *file = fopen(f.path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite("s3cret\0x", 1, 8, file), 8);
    assert_int_equal(fclose(file), 0);
    check_file(&f, NULL, "found a zero byte", "");
    files_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_url_parse),
        cmocka_unit_test(test_url_origin),
        cmocka_unit_test(test_url_resolve),
        cmocka_unit_test(test_url_redact),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_result_names),
        cmocka_unit_test(test_file_is_read_again),
        cmocka_unit_test(test_file_content_outlives_a_change),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_ca_file_goes_bad),
        cmocka_unit_test(test_pem),
        cmocka_unit_test(test_no_regular_file),
        cmocka_unit_test(test_file_with_zero_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
