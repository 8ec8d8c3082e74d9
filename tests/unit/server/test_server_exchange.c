/* Bodies of exchanges with an API: compressed or not, as client and server say. */
#include <stdlib.h>

#include "pprof/gzip.h"
#include "server/exchange.h"
#include "tests/unit/lib/testing.h"

#define HEAD_SIZE 1024

/* An exchange whose request has these header lines. */
struct rig {
    char head[HEAD_SIZE];
    char decoded[HEAD_SIZE];
    struct request request;
    struct exchange x;
};

static void rig_init(struct rig *rig, const char *headers, struct sv body)
{
    int n = snprintf(rig->head, sizeof(rig->head), "POST / HTTP/1.1\r\n%s\r\n", headers);
    CHECK_INT(request_parse((struct sv){rig->head, (size_t)n}, rig->decoded, &rig->request), 0,
              headers);
    rig->x = (struct exchange){.request = &rig->request, .body = body, .status = 200};
    buf_init(&rig->x.headers, 1000);
    buf_init(&rig->x.reply, 1 << 20);
}

static void rig_done(struct rig *rig)
{
    buf_done(&rig->x.headers);
    buf_done(&rig->x.reply);
}
SCOPED_VALUE(rig, rig_done)

/* The caller frees. */
static struct sv pack(struct sv plain)
{
    struct scratch *s = scratch_new();
    char *data;
    size_t n;
    assert_true(gzip_pack(s, plain, &data, &n));
    scratch_free(s);
    return (struct sv){.p = data, .n = n};
}

TEST(codings_of_a_request)
{
    static const struct {
        const char *headers;
        bool packed;
        enum err_kind kind;
    } rows[] = {
        {"", false, ERR_NONE},
        {"Content-Encoding:\r\n", false, ERR_NONE},
        {"Content-Encoding: identity\r\n", false, ERR_NONE},
        {"content-encoding: GZIP\r\n", true, ERR_NONE},
        {"Content-Encoding: x-gzip\r\n", true, ERR_NONE},
        {"Content-Encoding: gzip\r\n", false, ERR_INPUT},
        {"Content-Encoding: br\r\n", true, ERR_REFUSED},
        {"Content-Encoding: gzip, gzip\r\n", true, ERR_REFUSED},
    };
    struct sv packed = pack(SV("hello"));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(rig) rig;
        struct sv body;
        struct err err = ERR_INIT;
        rig_init(&rig, rows[i].headers, rows[i].packed ? packed : SV("hello"));
        SCOPED(buf) buf = testing_buf(5);
        bool ok = exchange_inflate(&rig.x, &buf, &body, &err);
        CHECK_INT(err.kind, rows[i].kind, rows[i].headers);
        CHECK_INT(ok, rows[i].kind == ERR_NONE, rows[i].headers);
        if (ok) {
            assert_true(sv_eq(body, SV("hello")));
        }
    }
    free((void *)(uintptr_t)packed.p);
}

/* Neither more than the ceiling, nor what is mostly air. */
TEST(bombs)
{
    size_t size = (size_t)64 << 20;
    SCOPED_MEMORY char *zeros = testing_memory(size);
    struct sv packed = pack((struct sv){zeros, size});
    static const size_t ceilings[] = {1000, (size_t)128 << 20};
    for (size_t i = 0; i < 2; i++) {
        SCOPED(rig) rig;
        struct sv body;
        struct err err = ERR_INIT;
        rig_init(&rig, "Content-Encoding: gzip\r\n", packed);
        SCOPED(buf) buf = testing_buf(ceilings[i]);
        assert_false(exchange_inflate(&rig.x, &buf, &body, &err));
        CHECK_INT(err.kind, ERR_LIMIT, err.msg);
    }
    free((void *)(uintptr_t)packed.p);
}

TEST(codings_of_an_answer)
{
    static const struct {
        const char *headers;
        size_t size;
        bool packed;
    } rows[] = {
        {"", 5000, false},
        {"Accept-Encoding: gzip\r\n", 5000, true},
        {"Accept-Encoding: gzip\r\n", 500, false},
        {"accept-encoding: deflate, GZip , br\r\n", 5000, true},
        {"Accept-Encoding: gzip;q=0.5\r\n", 5000, true},
        {"Accept-Encoding: gzip;q=0\r\n", 5000, false},
        {"Accept-Encoding: gzip; Q=0.000, br\r\n", 5000, false},
        {"Accept-Encoding: identity, br\r\n", 5000, false},
        {"Accept-Encoding: *\r\n", 5000, false},
        {"Accept-Encoding: gzipped\r\n", 5000, false},
        {"Accept-Encoding: ,,;,gzip\r\n", 5000, true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(rig) rig;
        rig_init(&rig, rows[i].headers, SV(""));
        for (size_t n = 0; n < rows[i].size; n++) {
            buf_putc(&rig.x.reply, 'x');
        }
        exchange_deflate(&rig.x);
        CHECK_INT(strstr(rig.x.headers.data, "Content-Encoding: gzip\r\n") != NULL, rows[i].packed,
                  rows[i].headers);
        CHECK_INT(rig.x.reply.len < rows[i].size, rows[i].packed, rows[i].headers);
        CHECK_INT(gzip_claim((struct sv){rig.x.reply.data, rig.x.reply.len}), rows[i].size,
                  rows[i].headers);
    }
}

TEST(values_that_repeat)
{
    static const char head[] = "GET /a%20b+c?q=1&x=%3D&q=2+3&q&raw%21=%2B#part HTTP/1.1\r\n"
                               "Accept: a\r\nx-two:  b \r\nACCEPT: c, d;q=1\r\n\r\n";
    char decoded[sizeof(head)];
    struct request r;
    CHECK_INT(request_parse(SV(head), decoded, &r), 0, "");
    assert_true(sv_eq(r.path, SV("/a b+c")));
    assert_true(sv_eq(r.query, SV("q=1&x=%3D&q=2+3&q&raw%21=%2B")));
    assert_true(sv_eq(request_param(&r, "q"), SV("1")));
    assert_true(sv_eq(request_param_at(&r, "q", 1), SV("2 3")));
    assert_true(sv_eq(request_param_at(&r, "q", 2), SV("")));
    assert_null(request_param_at(&r, "q", 3).p);
    assert_true(sv_eq(request_param(&r, "raw!"), SV("+")));
    assert_true(sv_eq(request_header(&r, "accept"), SV("a")));
    assert_true(sv_eq(request_header(&r, "X-Two"), SV("b")));
    assert_null(request_header(&r, "X-Three").p);
    assert_true(request_header_lists(&r, "Accept", "D"));
    assert_false(request_header_lists(&r, "Accept", "b"));
}

/* The member is added to objects only, and only if parts are missing. */
TEST(a_partial_object_says_so_in_a_member)
{
    static const struct text_case rows[] = {
        {"{\"a\":1}", "{\"a\":1,\"partial\":{\"parts\":1,\"why\":\"a \\\"b\\\"\"}}"},
        {"{\"a\":1}\n", "{\"a\":1,\"partial\":{\"parts\":1,\"why\":\"a \\\"b\\\"\"}}\n"},
        {"[1]", "[1]"},
        {"", ""},
        {"}", "}"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct partial partial = {.parts = 0};
        struct exchange x = {.partial = &partial};
        buf_init(&x.reply, 4096);
        buf_puts(&x.reply, rows[i].text);
        exchange_add_partial(&x);
        CHECK_STR(x.reply.len > 0 ? x.reply.data : "", rows[i].text, "complete");
        partial_note(&partial, "a \"b\"");
        exchange_add_partial(&x);
        CHECK_STR(x.reply.len > 0 ? x.reply.data : "", rows[i].want, rows[i].text);
        buf_done(&x.reply);
    }
}

TEST(a_partial_response_says_so_in_a_header)
{
    struct partial partial = {.parts = 0};
    struct exchange x = {.partial = NULL};
    buf_init(&x.headers, 4096);
    exchange_mark_partial(&x);
    assert_int_equal(x.headers.len, 0);
    x.partial = &partial;
    exchange_mark_partial(&x);
    assert_int_equal(x.headers.len, 0);
    partial_note(&partial, "s3://b/x.db: %s", "gone\r\nSet-Cookie: x");
    partial_note(&partial, "another one");
    exchange_mark_partial(&x);
    CHECK_STR(x.headers.data, "X-Profpull-Partial: 2; s3://b/x.db: gone  Set-Cookie: x\r\n",
              "header");
    buf_done(&x.headers);
}
