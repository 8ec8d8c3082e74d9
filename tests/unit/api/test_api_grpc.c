/* gRPC and gRPC-web as their clients see them: the same methods as over Connect, with the codes and
 * texts that Connect has.
 */
#include <unistd.h>

#include "api/connect.h"
#include "api/proto/querier.pb-c.h"
#include "api/rpc.h"
#include "api/settings.h"
#include "base/base64.h"
#include "base/clock.h"
#include "pprof/gzip.h"
#include "tests/unit/api/exchange_rig.h"

SCOPED_POINTER(scratch, scratch_free)

#define VERSION "/version.v1.Version/Version"
#define SET_SETTING "/settings.v1.SettingsService/Set"
#define DELETE_SETTING "/settings.v1.SettingsService/Delete"
#define GET_SETTINGS "/settings.v1.SettingsService/Get"
#define LABEL_VALUES "/querier.v1.QuerierService/LabelValues"
#define CHECK_HEALTH "/grpc.health.v1.Health/Check"

struct fixture {
    struct rig_process process;
    struct testing_log *log;
    bool ready;
};

static bool ready(void *arg, struct buf *text)
{
    const struct fixture *f = arg;
    buf_puts(text, "a reason");
    return f->ready;
}

static void fixture_begin(struct fixture *f)
{
    f->log = testing_log_new();
    f->ready = true;
    f->process = (struct rig_process){
        .sets = ROUTE_QUERY,
        .metrics = metrics_new(),
        .served.settings = settings_new(NULL, testing_log(f->log)),
        .served.version = "1.2.3",
        .served.ready = ready,
        .served.arg = f,
    };
}

static void fixture_end(struct fixture *f)
{
    settings_free(f->process.served.settings);
    metrics_free(f->process.metrics);
    testing_log_done(f->log);
}

FIXTURE(fixture, fixture_begin, fixture_end)

/* A request with these lines of headers besides its type. */
static struct rig_answer call(const struct fixture *f, const char *path, const char *type,
                              const char *lines, struct sv body)
{
    char head[1024];
    snprintf(head, sizeof(head), "POST %s HTTP/1.1\r\nContent-Type: %s\r\n%s", path, type, lines);
    return rig_ask(&f->process, head, body);
}

#define EMPTY SV("\0\0\0\0\0")
#define GRPC "application/grpc"

/* ---- calls ----------------------------------------------------------------------------------- */

TEST_ON(struct fixture *f, a_call_of_each_protocol)
{
    const struct {
        const char *type;
        struct sv request, reply;
        const char *trailers;
    } rows[] = {
        {"application/grpc", EMPTY, SV("\0\0\0\0\2\x08\1"), "grpc-status: 0\r\n"},
        {"application/grpc+proto", EMPTY, SV("\0\0\0\0\2\x08\1"), "grpc-status: 0\r\n"},
        {"application/grpc+json", SV("\0\0\0\0\2{}"), SV("\0\0\0\0\x12{\"QuerierAPI\":\"1\"}"),
         "grpc-status: 0\r\n"},
        {"application/grpc-web", EMPTY, SV("\0\0\0\0\2\x08\1\x80\0\0\0\x10grpc-status: 0\r\n"), ""},
        {"application/grpc-web+proto", EMPTY,
         SV("\0\0\0\0\2\x08\1\x80\0\0\0\x10grpc-status: 0\r\n"), ""},
        {"application/grpc-web+json", SV("\0\0\0\0\2{}"),
         SV("\0\0\0\0\x12{\"QuerierAPI\":\"1\"}\x80\0\0\0\x10grpc-status: 0\r\n"), ""},
        {"application/grpc-web-text", SV("AAAAAAA="),
         SV("AAAAAAIIAYAAAAAQZ3JwYy1zdGF0dXM6IDANCg=="), ""},
        {"application/proto", SV(""), SV("\x08\1"), ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(rig_answer) a = call(f, VERSION, rows[i].type, "", rows[i].request);
        CHECK_INT(a.status, 200, rows[i].type);
        CHECK_STR(a.type, rows[i].type, rows[i].type);
        CHECK_STR(a.trailers, rows[i].trailers, rows[i].type);
        CHECK_INT(a.n, rows[i].reply.n, rows[i].type);
        assert_memory_equal(a.body, rows[i].reply.p, rows[i].reply.n);
    }
    assert_int_equal(testing_metric(f->process.metrics,
                                    "profpull_connect_calls_total{method=\"version.v1."
                                    "Version/Version\",code=\"ok\"}"),
                     sizeof(rows) / sizeof(rows[0]));
}

/* HTTP/1.0 has no trailers for the status. */
TEST_ON(struct fixture *f, grpc_needs_trailers_and_grpc_web_does_not)
{
    static const char old[] = "POST " VERSION " HTTP/1.0\r\nContent-Type: ";
    char head[256];
    snprintf(head, sizeof(head), "%s" GRPC "\r\n", old);
    struct rig_answer a = rig_ask(&f->process, head, EMPTY);
    assert_int_equal(a.status, 415);
    CHECK_CONTAINS(a.headers, "Accept-Post: application/json, ", "");
    assert_null(strstr(a.headers, "application/grpc,"));
    rig_answer_done(&a);
    snprintf(head, sizeof(head), "%sapplication/grpc-web\r\n", old);
    a = rig_ask(&f->process, head, EMPTY);
    assert_int_equal(a.status, 200);
    assert_int_equal(a.n, 28);
    rig_answer_done(&a);
    a = call(f, VERSION, "application/grpc+thrift", "", EMPTY);
    assert_int_equal(a.status, 415);
    CHECK_CONTAINS(a.headers, ", application/grpc, ", "");
    rig_answer_done(&a);
}

/* ---- failures -------------------------------------------------------------------------------- */

struct failure {
    const char *name, *path, *lines;
    struct sv body;
    const char *status; /* lines of headers */
};

TEST_ON(struct fixture *f, failures_have_a_status_in_the_head)
{
    const struct failure rows[] = {
        {"an error of a method", LABEL_VALUES, "", EMPTY,
         "grpc-status: 3\r\ngrpc-message: name is required\r\n"},
        {"a code that a method chooses", "/vcs.v1.VCSService/GetFile", "", EMPTY,
         "grpc-status: 16\r\ngrpc-message: invalid token\r\n"},
        {"another one", "/adhocprofiles.v1.AdHocProfileService/Get", "", EMPTY,
         "grpc-status: 5\r\ngrpc-message: there is no uploaded profile\r\n"},
        {"no such method", "/version.v1.Version/Other", "", EMPTY,
         "grpc-status: 12\r\ngrpc-message: there is no method /version.v1.Version/Other\r\n"},
        {"no message", VERSION, "", SV(""),
         "grpc-status: 12\r\ngrpc-message: expected one message, got none\r\n"},
        {"two messages", VERSION, "", SV("\0\0\0\0\0\0\0\0\0\0"),
         "grpc-status: 12\r\ngrpc-message: expected one message, got more\r\n"},
        {"a frame that is cut", VERSION, "", SV("\0\0\0"),
         "grpc-status: 3\r\ngrpc-message: the frame of a message has 5 bytes, got 3\r\n"},
        {"a message that is cut", VERSION, "", SV("\0\0\0\0\2x"),
         "grpc-status: 3\r\ngrpc-message: the message has 2 bytes, got 1\r\n"},
        {"a message beyond the limit", VERSION, "", SV("\0\xff\0\0\0x"),
         "grpc-status: 8\r\ngrpc-message: the message has 4278190080 bytes, the limit is 1048576"},
        {"flags that do not exist", VERSION, "", SV("\2\0\0\0\0"),
         "grpc-status: 3\r\ngrpc-message: the frame of a message begins with 0 or 1, got 2\r\n"},
        {"a message that is none", VERSION, "", SV("\0\0\0\0\1\xff"),
         "grpc-status: 3\r\ngrpc-message: unmarshal message: "},
        {"compressed, nobody knows how", VERSION, "", SV("\1\0\0\0\0"), "grpc-status: 13\r\n"},
        {"an unknown compression", VERSION, "grpc-encoding: zstd\r\n", SV("\1\0\0\0\1x"),
         "grpc-accept-encoding: gzip\r\ngrpc-status: 12\r\ngrpc-message: unknown grpc-encoding "
         "\"zstd\", expected gzip\r\n"},
        {"gzip that is none", VERSION, "grpc-encoding: gzip\r\n", SV("\1\0\0\0\1x"),
         "grpc-status: 3\r\n"},
        {"no time", VERSION, "grpc-timeout: 0m\r\n", EMPTY,
         "grpc-status: 4\r\ngrpc-message: context deadline exceeded\r\n"},
        {"a time that is none", VERSION, "grpc-timeout: 1.5S\r\n", EMPTY, "grpc-status: 3\r\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(rig_answer) a = call(f, rows[i].path, GRPC, rows[i].lines, rows[i].body);
        CHECK_INT(a.status, 200, rows[i].name);
        CHECK_STR(a.type, GRPC, rows[i].name);
        CHECK_CONTAINS(a.headers, rows[i].status, rows[i].name);
        CHECK_INT(a.n, 0, rows[i].name);
        CHECK_STR(a.trailers, "", rows[i].name);
    }
}

TEST_ON(struct fixture *f, failures_of_grpc_web_are_in_the_body)
{
    struct rig_answer a = call(f, LABEL_VALUES, "application/grpc-web+proto", "", EMPTY);
    const struct sv want = SV("\x80\0\0\0\x30grpc-status: 3\r\n"
                              "grpc-message: name is required\r\n");
    assert_int_equal(a.status, 200);
    assert_int_equal(a.n, want.n);
    assert_memory_equal(a.body, want.p, want.n);
    rig_answer_done(&a);
    a = call(f, LABEL_VALUES, "application/grpc-web-text", "", SV("AAAA"));
    SCOPED(buf) plain = testing_buf(1000);
    assert_true(base64_decode((struct sv){a.body, a.n}, &plain));
    CHECK_CONTAINS(plain.data + 5, "grpc-status: 3\r\ngrpc-message: the frame of a message", "");
    rig_answer_done(&a);
    buf_done(&plain);
    a = call(f, LABEL_VALUES, "application/grpc-web-text", "", SV("?"));
    buf_init(&plain, 1000);
    assert_true(base64_decode((struct sv){a.body, a.n}, &plain));
    CHECK_CONTAINS(plain.data + 5, "grpc-message: the body is not base64", "");
    rig_answer_done(&a);
}

/* Each method fails over gRPC with the code and the text that it has over Connect. */
TEST_ON(struct fixture *f, codes_and_texts_are_those_of_connect)
{
    const struct {
        const char *path;
        struct sv message;
        const char *name;
        unsigned number;
    } rows[] = {
        {LABEL_VALUES, SV(""), "invalid_argument", 3},
        {"/querier.v1.QuerierService/SelectSeries", SV(""), "invalid_argument", 3},
        {"/querier.v1.QuerierService/Series", SV("\x0a\1{"), "invalid_argument", 3},
        {"/querier.v1.QuerierService/ProfileTypes", SV("\x08\1\x10\2"), "unavailable", 14},
        {DELETE_SETTING, SV(""), "invalid_argument", 3},
        {"/vcs.v1.VCSService/GithubApp", SV(""), "unimplemented", 12},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char want[64];
        char json[64];
        SCOPED(buf) frame = testing_buf(1000);
        buf_append(&frame, "\0\0\0\0", 4);
        buf_putc(&frame, (char)rows[i].message.n);
        buf_append(&frame, rows[i].message.p, rows[i].message.n);
        struct rig_answer connect = call(f, rows[i].path, "application/proto", "", rows[i].message);
        struct rig_answer grpc =
            call(f, rows[i].path, GRPC, "", (struct sv){frame.data, frame.len});
        snprintf(want, sizeof(want), "grpc-status: %u\r\ngrpc-message: ", rows[i].number);
        snprintf(json, sizeof(json), "{\"code\":\"%s\",\"message\":\"", rows[i].name);
        CHECK_CONTAINS(grpc.headers, want, rows[i].path);
        CHECK_CONTAINS(connect.body, json, rows[i].path);
        char *text = strstr(grpc.headers, want) + strlen(want);
        text[strcspn(text, "\r")] = '\0';
        /* JSON and headers escape different characters. */
        if (strpbrk(text, "%") == NULL) {
            CHECK_CONTAINS(connect.body, text, rows[i].path);
        }
        rig_answer_done(&connect);
        rig_answer_done(&grpc);
    }
}

TEST(messages_are_percent_encoded)
{
    SCOPED(buf) out = testing_buf(1000);
    rpc_put_message(&out, SV("100% of \"x\"\n\xc3\xa4\x7f~"));
    CHECK_STR(out.data, "100%25 of \"x\"%0A%C3%A4%7F~", "");
}

/* ---- compression and time -------------------------------------------------------------------- */

TEST_ON(struct fixture *f, messages_may_be_compressed_both_ways)
{
    char value[5000];
    struct sv packed;
    SCOPED(scratch) *s = scratch_new();
    memset(value, 'v', sizeof(value));
    SCOPED(buf) json = testing_buf(100000);
    SCOPED(buf) frame = testing_buf(100000);
    buf_printf(&json, "{\"setting\":{\"name\":\"n\",\"value\":\"%.*s\"}}", (int)sizeof(value),
               value);
    assert_true(gzip_deflate(s, (struct sv){json.data, json.len}, &packed));
    const char head[] = {1, 0, 0, (char)(packed.n >> 8), (char)packed.n};
    buf_append(&frame, head, sizeof(head));
    buf_append(&frame, packed.p, packed.n);
    struct rig_answer a = call(f, SET_SETTING, "application/grpc+json",
                               "grpc-encoding: gzip\r\ngrpc-accept-encoding: br, gzip\r\n",
                               (struct sv){frame.data, frame.len});
    CHECK_STR(a.trailers, "grpc-status: 0\r\n", "");
    CHECK_CONTAINS(a.headers, "grpc-encoding: gzip\r\n", "");
    assert_int_equal(a.body[0], 1);
    assert_true(a.n < 1000);
    struct sv plain;
    struct err err = ERR_INIT;
    assert_true(gzip_inflate(s, (struct sv){a.body + 5, a.n - 5}, 100000, 0, &plain, &err));
    assert_true(plain.n > sizeof(value));
    rig_answer_done(&a);
    /* A client that does not say that it takes gzip gets none. */
    a = call(f, GET_SETTINGS, GRPC, "Accept-Encoding: gzip\r\n", EMPTY);
    assert_int_equal(a.body[0], 0);
    assert_true(a.n > sizeof(value));
    assert_null(strstr(a.headers, "grpc-encoding"));
    rig_answer_done(&a);
}

TEST(timeouts)
{
    const struct {
        const char *text;
        int64_t ms; /* -1: not a timeout */
    } rows[] = {
        {"1H", 3600000},    {"2M", 120000}, {"3S", 3000}, {"4m", 4}, {"5u", 1},
        {"1001u", 2},       {"6n", 1},      {"0S", 0},    {"0n", 0}, {"99999999H", 359999996400000},
        {"100000000m", -1}, {"", -1},       {"1", -1},    {"S", -1}, {"1s", -1},
        {"-1S", -1},        {" 1S", -1},    {"1.5S", -1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t ms = -1;
        CHECK_INT(rpc_timeout(sv_from(rows[i].text), &ms), rows[i].ms >= 0, rows[i].text);
        CHECK_INT(ms, rows[i].ms, rows[i].text);
    }
}

/* ---- health ---------------------------------------------------------------------------------- */

TEST_ON(struct fixture *f, the_health_of_services)
{
    const struct {
        const char *name;
        bool ready;
        struct sv request;
        const char *body, *status;
    } rows[] = {
        {"the server", true, SV("\0\0\0\0\2{}"), "{\"status\":\"SERVING\"}", "grpc-status: 0\r\n"},
        {"a service", true, SV("\0\0\0\0\x26{\"service\":\"querier.v1.QuerierService\"}"),
         "{\"status\":\"SERVING\"}", "grpc-status: 0\r\n"},
        {"not ready", false, SV("\0\0\0\0\2{}"), "{\"status\":\"NOT_SERVING\"}",
         "grpc-status: 0\r\n"},
        {"no service of this server", true,
         SV("\0\0\0\0\x24{\"service\":\"push.v1.PusherService\" }  "), NULL, "grpc-status: 5\r\n"},
        {"half a name", true, SV("\0\0\0\0\x16{\"service\":\"querier\"}  "), NULL,
         "grpc-status: 5\r\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        f->ready = rows[i].ready;
        struct sv request = rows[i].request;
        SCOPED(buf) frame = testing_buf(1000);
        buf_append(&frame, "\0\0\0\0", 4);
        buf_putc(&frame, (char)(request.n - 5));
        buf_append(&frame, request.p + 5, request.n - 5);
        struct rig_answer a =
            call(f, CHECK_HEALTH, "application/grpc+json", "", (struct sv){frame.data, frame.len});
        if (rows[i].body != NULL) {
            CHECK_STR(a.body + 5, rows[i].body, rows[i].name);
            CHECK_STR(a.trailers, rows[i].status, rows[i].name);
        } else {
            CHECK_CONTAINS(a.headers, rows[i].status, rows[i].name);
        }
        rig_answer_done(&a);
    }
    struct rig_answer a = call(f, "/grpc.health.v1.Health/Watch", GRPC, "", EMPTY);
    CHECK_CONTAINS(a.headers, "grpc-status: 12\r\n", "");
    rig_answer_done(&a);
}

static bool reverse(struct connect_call *c, const void *request, struct err *err)
{
    const struct sv *message = request;
    (void)err;
    for (size_t i = message->n; i > 0; i--) {
        buf_putc(&c->reply_bytes, message->p[i - 1]);
    }
    return true;
}

/* A method that reads its message itself gets the bytes of it, over each protocol. */
TEST_ON(struct fixture *f, methods_may_take_bytes)
{
    const struct connect_method methods[] = {{"/x.X/Reverse", NULL, NULL, reverse}};
    const struct {
        const char *type;
        struct sv body, reply;
        const char *headers;
    } rows[] = {
        {"application/grpc", SV("\0\0\0\0\3abc"), SV("\0\0\0\0\3cba"), ""},
        {"application/proto", SV("abc"), SV("cba"), ""},
        {"application/grpc+json", SV("\0\0\0\0\2{}"), SV(""), "grpc-status: 12\r\n"},
    };
    const struct server_options options = {.metrics = f->process.metrics};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char head[256];
        char decoded[256];
        struct request r;
        int n = snprintf(head, sizeof(head),
                         "POST /x.X/Reverse HTTP/1.1\r\nContent-Type: %s\r\n\r\n", rows[i].type);
        assert_int_equal(request_parse((struct sv){head, (size_t)n}, decoded, &r), 0);
        struct exchange x = {
            .request = &r, .options = &options, .body = rows[i].body, .bytes_max = 1 << 20};
        buf_init(&x.headers, 4096);
        buf_init(&x.trailers, 4096);
        buf_init(&x.reply, 1 << 20);
        connect_serve(&x, methods, 1, 1 << 20);
        CHECK_INT(x.reply.len, rows[i].reply.n, rows[i].type);
        assert_memory_equal(x.reply.data, rows[i].reply.p, rows[i].reply.n);
        CHECK_CONTAINS(x.headers.data, rows[i].headers, rows[i].type);
        buf_done(&x.headers);
        buf_done(&x.trailers);
        buf_done(&x.reply);
    }
}
