/* The Connect protocol as its clients see it, and the small services of Pyroscope. */
#include <jansson.h>
#include <unistd.h>

#include "api/settings.h"
#include "base/clock.h"
#include "pprof/gzip.h"
#include "tests/unit/api/exchange_rig.h"

SCOPED_POINTER(scratch, scratch_free)

#define GET_SETTINGS "/settings.v1.SettingsService/Get"
#define SET_SETTING "/settings.v1.SettingsService/Set"
#define DELETE_SETTING "/settings.v1.SettingsService/Delete"
#define VERSION "/version.v1.Version/Version"
#define JSON_TYPE "Content-Type: application/json\r\n"

struct fixture {
    struct rig_process options;
    struct testing_log *log;
};

static void fixture_begin(struct fixture *f)
{
    f->log = testing_log_new();
    f->options = (struct rig_process){
        .sets = ROUTE_QUERY,
        .metrics = metrics_new(),
        .served.settings = settings_new(NULL, testing_log(f->log)),
        .served.version = "1.2.3",
    };
}

static void fixture_end(struct fixture *f)
{
    settings_free(f->options.served.settings);
    metrics_free(f->options.metrics);
    testing_log_done(f->log);
}

FIXTURE(fixture, fixture_begin, fixture_end)

/* Asks for the version. */
struct row {
    const char *head; /* after the request line */
    const char *line; /* NULL: a POST of the method */
    struct sv body;
    int status;
    const char *type;
    const char *text;    /* part of the body */
    const char *headers; /* part of them, NULL: any */
};

static void check_row(const struct fixture *f, const struct row *row)
{
    char head[1024];
    snprintf(head, sizeof(head), "%s\r\n%s",
             row->line != NULL ? row->line : "POST " VERSION " HTTP/1.1", row->head);
    SCOPED(rig_answer) a = rig_ask(&f->options, head, row->body);
    CHECK_INT(a.status, row->status, head);
    if (a.status != 0 && a.type != NULL) {
        CHECK_STR(a.type, row->type, head);
        CHECK_CONTAINS(a.body, row->text, head);
        if (row->headers != NULL) {
            CHECK_CONTAINS(a.headers, row->headers, head);
        }
    }
}

/* The head of the request, its line (NULL: that of a call of Version), its body, and the answer:
 * status, type, a part of the body, and a part of the headers or NULL. */
#define ROW(head, line, body, ...)                                                                 \
    {                                                                                              \
        head, line, {body, sizeof(body) - 1}, __VA_ARGS__                                          \
    }
#define JSON "application/json"

TEST_WITH(requests_are_answered_as_connect_says, setup, teardown)
{
    static const struct row rows[] = {
        ROW(JSON_TYPE, NULL, "{}", 200, JSON, "{\"QuerierAPI\":\"1\"}", "Accept-Encoding: gzip"),
        ROW("Content-Type: Application/JSON\r\n", NULL, "{}", 200, JSON, "1", NULL),
        ROW("Content-Type: application/json; charset=utf-8\r\n", NULL, "{}", 200,
            "application/json; charset=utf-8", "1", NULL),
        ROW("Content-Type: application/json;charset=\"UTF-8\"\r\n", NULL, "{}", 200,
            "application/json; charset=utf-8", "1", NULL),
        ROW("Content-Type: application/proto\r\n", NULL, "", 200, "application/proto", "\x08\x01",
            NULL),
        ROW("Content-Type: application/json; charset=latin1\r\n", NULL, "{}", 415, "", "",
            "Accept-Post: application/json"),
        ROW("Content-Type: application/json; a=b\r\n", NULL, "{}", 415, "", "", NULL),
        ROW("Content-Type: application/octet-stream\r\n", NULL, "{}", 415, "", "", NULL),
        ROW("Content-Type: application/connect+json\r\n", NULL, "{}", 415, "", "", NULL),
        ROW("Content-Type: application/x-protobuf\r\n", NULL, "", 415, "", "", NULL),
        ROW("", NULL, "{}", 415, "", "", NULL),
        ROW(JSON_TYPE "Connect-Protocol-Version: 1\r\n", NULL, "{}", 200, JSON, "1", NULL),
        ROW(JSON_TYPE "Connect-Protocol-Version: 2\r\n", NULL, "{}", 400, JSON,
            "{\"code\":\"invalid_argument\",\"message\":\"Connect-Protocol-Version must be "
            "\\\"1\\\": got \\\"2\\\"\"}",
            NULL),
        ROW(JSON_TYPE "Connect-Timeout-Ms: 100000\r\n", NULL, "{}", 200, JSON, "1", NULL),
        ROW(JSON_TYPE "Connect-Timeout-Ms: soon\r\n", NULL, "{}", 400, JSON, "invalid_argument",
            NULL),
        ROW(JSON_TYPE "Connect-Timeout-Ms: 10000000000\r\n", NULL, "{}", 400, JSON,
            "at most 10 digits", NULL),
        ROW(JSON_TYPE "Connect-Timeout-Ms: 0\r\n", NULL, "{}", 504, JSON,
            "{\"code\":\"deadline_exceeded\",\"message\":\"context deadline exceeded\"}", NULL),
        ROW(JSON_TYPE, NULL, "", 400, JSON,
            "unmarshal message: zero-length payload is not a valid JSON object", NULL),
        ROW(JSON_TYPE, NULL, "[]", 400, JSON,
            "{\"code\":\"invalid_argument\",\"message\":\"unmarshal message: ", NULL),
        ROW("Content-Type: application/proto\r\n", NULL, "\x08\xff", 400, JSON,
            "{\"code\":\"invalid_argument\",\"message\":\"unmarshal message: invalid protobuf\"}",
            NULL),
        ROW(JSON_TYPE "Content-Encoding: br\r\n", NULL, "{}", 501, JSON,
            "{\"code\":\"unimplemented\"", NULL),
        ROW(JSON_TYPE "Content-Encoding: gzip\r\n", NULL, "{}", 400, JSON,
            "{\"code\":\"invalid_argument\"", NULL),
        ROW(JSON_TYPE "Content-Encoding: identity\r\n", NULL, "{}", 200, JSON, "1", NULL),
        ROW(JSON_TYPE, "GET " VERSION " HTTP/1.1", "", 405, "", "", "Allow: POST"),
        ROW(JSON_TYPE, "PUT " VERSION " HTTP/1.1", "{}", 405, "", "", "Allow: POST"),
        ROW("Origin: http://x\r\n", "OPTIONS " VERSION " HTTP/1.1", "", 405, "", "", "Allow: POST"),
        ROW(JSON_TYPE, "POST " VERSION "/ HTTP/1.1", "{}", 404, "text/plain; charset=utf-8",
            "404 page not found\n", NULL),
        ROW(JSON_TYPE, "POST /version.v1.Version/version HTTP/1.1", "{}", 404,
            "text/plain; charset=utf-8", "404 page not found\n", NULL),
        ROW(JSON_TYPE, "POST //version.v1.Version/Version HTTP/1.1", "{}", 200, JSON, "1", NULL),
        ROW(JSON_TYPE, "POST /pyroscope/version.v1.Version/Version HTTP/1.1", "{}", 200, JSON, "1",
            NULL),
        ROW(JSON_TYPE, "POST /version.v2.Version/Version HTTP/1.1", "{}", 0, "", "", NULL),
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_row(*state, &rows[i]);
    }
}

TEST_ON(struct fixture *f, calls_are_counted_by_their_code)
{
    const struct row good = {JSON_TYPE, NULL, {"{}", 2}, 200, "application/json", "1", NULL};
    const struct row bad = {JSON_TYPE, NULL, {"[]", 2}, 400, "application/json", "", NULL};
    check_row(f, &good);
    check_row(f, &good);
    check_row(f, &bad);
    CHECK_INT(testing_metric(f->options.metrics, "profpull_connect_calls_total{method=\"version.v1."
                                                 "Version/Version\",code=\"ok\"}"),
              2, "ok");
    CHECK_INT(testing_metric(f->options.metrics, "profpull_connect_calls_total{method=\"version.v1."
                                                 "Version/Version\",code=\"invalid_argument\"}"),
              1, "invalid_argument");
}

TEST_ON(struct fixture *f, a_compressed_request_is_bounded)
{
    SCOPED(scratch) *scratch = scratch_new();
    static char blanks[2 * 1024 * 1024];
    struct sv packed;
    memset(blanks, ' ', sizeof(blanks));
    memcpy(blanks, "{}", 2);
    const char *head = "POST " VERSION " HTTP/1.1\r\n" JSON_TYPE "Content-Encoding: gzip\r\n";
    assert_true(gzip_deflate(scratch, (struct sv){blanks, 1000}, &packed));
    struct rig_answer a = rig_ask(&f->options, head, packed);
    CHECK_INT(a.status, 200, "small");
    rig_answer_done(&a);
    assert_true(gzip_deflate(scratch, (struct sv){blanks, sizeof(blanks)}, &packed));
    a = rig_ask(&f->options, head, packed);
    CHECK_INT(a.status, 429, a.body);
    CHECK_CONTAINS(a.body, "resource_exhausted", "bomb");
    rig_answer_done(&a);
}

TEST_ON(struct fixture *f, memory_of_a_request_is_bounded)
{
    SCOPED(buf) json = testing_buf(1 << 20);
    buf_puts(&json, "{\"setting\":{\"name\":\"");
    for (int i = 0; i < 100000; i++) {
        buf_putc(&json, 'x');
    }
    buf_puts(&json, "\"}}");
    SCOPED(rig_answer)
    a = rig_ask_within(&f->options, "POST " SET_SETTING " HTTP/1.1\r\n" JSON_TYPE,
                       (struct sv){json.data, json.len}, 50000, false);
    CHECK_INT(a.status, 429, a.body);
    CHECK_CONTAINS(a.body, "resource_exhausted", "memory");
}

static void check_call(const struct fixture *f, const char *path, const char *json, int status,
                       const char *text)
{
    SCOPED(rig_answer) a = rig_call(&f->options, path, json);
    CHECK_INT(a.status, status, a.body);
    CHECK_CONTAINS(a.body, text, path);
}

TEST_ON(struct fixture *f, settings_are_kept_by_name)
{
    check_call(f, GET_SETTINGS, "{}", 200, "{}");
    check_call(f, SET_SETTING,
               "{\"setting\":{\"name\":\"x\",\"value\":\"y\",\"modifiedAt\":\"1795307400000\"}}",
               200,
               "{\"setting\":{\"name\":\"x\",\"value\":\"y\",\"modifiedAt\":\"1795307400000\"}}");
    check_call(f, SET_SETTING, "{\"setting\":{\"name\":\"a\",\"value\":\"b\",\"modifiedAt\":5}}",
               200, "\"modifiedAt\":\"5\"");
    check_call(f, GET_SETTINGS, "{}", 200,
               "{\"settings\":[{\"name\":\"a\",\"value\":\"b\",\"modifiedAt\":\"5\"},{\"name\":"
               "\"x\",\"value\":\"y\",\"modifiedAt\":\"1795307400000\"}]}");
    check_call(f, SET_SETTING,
               "{\"setting\":{\"name\":\"x\",\"value\":\"z\",\"modifiedAt\":\"1795307399999\"}}",
               409, "{\"code\":\"already_exists\"");
    check_call(f, SET_SETTING,
               "{\"setting\":{\"name\":\"x\",\"value\":\"z\",\"modifiedAt\":\"1795307400000\"}}",
               200, "\"z\"");
    check_call(f, DELETE_SETTING, "{\"name\":\"x\"}", 200, "{}");
    check_call(f, DELETE_SETTING, "{\"name\":\"x\"}", 200, "{}");
    check_call(f, DELETE_SETTING, "{}", 400, "name of a setting is required");
    check_call(f, SET_SETTING, "{}", 400, "name of a setting is required");
    check_call(f, SET_SETTING, "{\"setting\":{\"value\":\"y\"}}", 400, "is required");
    check_call(f, GET_SETTINGS, "{}", 200,
               "{\"settings\":[{\"name\":\"a\",\"value\":\"b\",\"modifiedAt\":\"5\"}]}");
}

TEST_ON(struct fixture *f, a_setting_without_a_time_is_of_now)
{
    int64_t before = clock_wall_ns() / NS_PER_MS;
    SCOPED(rig_answer) a = rig_call(&f->options, SET_SETTING, "{\"setting\":{\"name\":\"x\"}}");
    json_auto_t *json = json_loads(a.body, 0, NULL);
    const char *at =
        json_string_value(json_object_get(json_object_get(json, "setting"), "modifiedAt"));
    assert_non_null(at);
    assert_true(strtoll(at, NULL, 10) >= before);
}

TEST_ON(struct fixture *f, settings_outlive_the_process_in_a_directory)
{
    SCOPED_MEMORY char *dir = testing_mkdtemp();
    settings_free(f->options.served.settings);
    f->options.served.settings = settings_new(dir, testing_log(f->log));
    check_call(f, SET_SETTING, "{\"setting\":{\"name\":\"x\",\"value\":\"y\",\"modifiedAt\":7}}",
               200, "y");
    settings_free(f->options.served.settings);
    f->options.served.settings = settings_new(dir, testing_log(f->log));
    check_call(f, GET_SETTINGS, "{}", 200,
               "{\"settings\":[{\"name\":\"x\",\"value\":\"y\",\"modifiedAt\":\"7\"}]}");
    testing_rmdir(dir);
    check_call(f, SET_SETTING, "{\"setting\":{\"name\":\"x\",\"value\":\"lost\"}}", 500,
               "{\"code\":\"internal\"");
    check_call(f, GET_SETTINGS, "{}", 200, "\"y\"");
}

TEST_ON(struct fixture *f, a_damaged_file_of_settings_is_logged)
{
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    testing_write_file(dir, SETTINGS_FILE, "{\"settings\":[");
    testing_log_expect(f->log, "settings are not read");
    settings_free(f->options.served.settings);
    f->options.served.settings = settings_new(dir, testing_log(f->log));
    check_call(f, GET_SETTINGS, "{}", 200, "{}");
    check_call(f, SET_SETTING, "{\"setting\":{\"name\":\"x\"}}", 200, "x");
}

TEST_ON(struct fixture *f, settings_have_a_limit)
{
    SCOPED(buf) json = testing_buf(2 * SETTINGS_BYTES_MAX);
    for (int i = 0; i < 3; i++) {
        buf_clear(&json);
        buf_printf(&json, "{\"setting\":{\"name\":\"x%d\",\"value\":\"", i);
        while (json.len < SETTINGS_BYTES_MAX / 2) {
            buf_puts(&json, "0123456789");
        }
        buf_puts(&json, "\"}}");
        check_call(f, SET_SETTING, json.data, i == 0 ? 200 : 429, i == 0 ? "x0" : "exhausted");
    }
}

TEST_WITH(what_is_not_there_is_refused_as_apps_expect, setup, teardown)
{
    static const struct {
        const char *path;
        int status;
        const char *text;
    } rows[] = {
        {"/vcs.v1.VCSService/GithubApp", 501,
         "{\"code\":\"unimplemented\",\"message\":\"GitHub integration is not configured\"}"},
        {"/vcs.v1.VCSService/GetFile", 401,
         "{\"code\":\"unauthenticated\",\"message\":\"invalid token\"}"},
        {"/vcs.v1.VCSService/GetCommit", 401, "unauthenticated"},
        {"/adhocprofiles.v1.AdHocProfileService/List", 200, "{}"},
        {"/adhocprofiles.v1.AdHocProfileService/Upload", 501, "unimplemented"},
        {"/adhocprofiles.v1.AdHocProfileService/Get", 404, "not_found"},
        {"/adhocprofiles.v1.AdHocProfileService/Diff", 501, "unimplemented"},
        {"/settings.v1.RecordingRulesService/ListRecordingRules", 503, "no recording rules"},
        {"/tenant.v1.TenantService/GetTenant", 0, ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_call(*state, rows[i].path, "{}", rows[i].status, rows[i].text);
    }
}

TEST_ON(struct fixture *f, feature_flags_name_what_there_is)
{
    struct rig_answer a =
        rig_call(&f->options, "/capabilities.v1.FeatureFlagsService/GetFeatureFlags", "{}");
    CHECK_INT(a.status, 200, a.body);
    CHECK_CONTAINS(
        a.body,
        "{\"featureFlags\":[{\"name\":\"pyroscopeRuler\",\"enabled\":true,\"description\":", "");
    CHECK_CONTAINS(a.body, "{\"name\":\"v2StorageLayer\",\"enabled\":true,", "");
    rig_answer_done(&a);
}

TEST_ON(struct fixture *f, build_information_is_that_of_prometheus)
{
    SCOPED(rig_answer)
    a = rig_ask(&f->options, "GET /api/v1/status/buildinfo HTTP/1.1\r\n", SV(""));
    json_auto_t *json = json_loads(a.body, 0, NULL);
    const json_t *data = json_object_get(json, "data");
    CHECK_STR(json_string_value(json_object_get(json, "status")), "success", a.body);
    CHECK_STR(json_string_value(json_object_get(data, "version")), "1.2.3", a.body);
    assert_int_equal(json_object_size(data), 6);
}
