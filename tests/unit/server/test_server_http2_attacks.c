/* Attacks by HTTP/2: each ends the connection that makes it, with its reason counted, and the
 * server goes on answering others.
 */
#include <stdlib.h>

#include "server/http2_budget.h"
#include "tests/unit/lib/http2_client.h"
#include "tests/unit/server/server_rig.h"

SCOPED_VALUE(h2_answer, h2_done)
SCOPED_VALUE(h2_client, h2_close)

/* More frames than any budget allows. */
#define MANY 20000

struct fixture {
    struct metrics *metrics;
    struct server *server;
};

static void reply_ok(struct connection *c, const struct request *r,
                     const struct server_options *options)
{
    (void)r;
    (void)options;
    reply_plain(c, 200, "ok");
}

static void work_ok(struct exchange *x)
{
    exchange_text(x, 200, "text/plain", SV("ok"));
}

static void work_large(struct exchange *x)
{
    static const char zeros[4096];
    for (int i = 0; i < 256; i++) {
        buf_append(&x->reply, zeros, sizeof(zeros));
    }
}

static const struct route routes[] = {
    {"/large", .set = ROUTE_QUERY, .work = work_large},
    {"/ok", .set = ROUTE_ADMIN, .handle = reply_ok},
    {"/work", .set = ROUTE_QUERY, .methods = ROUTE_ANY, .work = work_ok},
    {.path = NULL},
};
static const struct route *const tables[] = {routes, NULL};

static int setup(void **state)
{
    struct fixture *f = testing_memory(sizeof(*f));
    f->metrics = metrics_new();
    const struct server_options options = server_rig_options(tables, f->metrics);
    f->server = server_rig_start(&options);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    server_stop(f->server);
    metrics_free(f->metrics);
    free(f);
    return 0;
}

/* Another client is answered as ever, by a handler too. */
static void check_neighbour(const struct fixture *f)
{
    SCOPED(h2_client) c = h2_dial(f->server, SV(""));
    h2_get(&c, 1, "/ok");
    struct h2_answer a = h2_wait(&c, 1);
    assert_int_equal(a.status, 200);
    h2_done(&a);
    h2_get(&c, 3, "/work");
    a = h2_wait(&c, 3);
    assert_int_equal(a.status, 200);
    h2_done(&a);
}

static void check_ended(const struct fixture *f, const char *reason, const char *row)
{
    char text[128];
    snprintf(text, sizeof(text), "profpull_admin_connections_ended_total{reason=\"%s\"}", reason);
    for (int i = 0; testing_metric(f->metrics, text) != 1; i++) {
        if (i == 10000) {
            struct buf all = testing_buf(1 << 20);
            metrics_render(f->metrics, &all);
            fail_msg("%s: no connection ended as %s:\n%s", row, reason, all.data);
        }
        usleep(1000);
    }
}

/* Ends a client whose connection the server has ended for this reason, which hurts nobody else. */
static void check_ends(const struct fixture *f, struct h2_client *c, const char *reason,
                       const char *row)
{
    h2_close(c);
    check_ended(f, reason, row);
    check_neighbour(f);
}

/* Reads to the end of the connection; GOAWAY comes first, unless the client sent so much more that
 * the kernel threw it away. */
static void check_goaway(struct h2_client *c, uint32_t code, const char *row)
{
    SCOPED(h2_answer) a = h2_wait(c, UINT32_MAX);
    assert_true(a.closed);
    if (a.goaway != UINT32_MAX) {
        CHECK_INT(a.goaway, code, row);
    }
}

/* ---- floods ---------------------------------------------------------------------------------- */

/* Streams of flood(): one whose body is awaited, and one that has been answered. */
#define OPEN 1
#define ANSWERED 3

struct frame_row {
    const char *name;
    uint8_t type, flags;
    uint32_t id;
    struct sv payload;
};

/* Sends a frame again and again, at most so many times. Checks why the connection ends. */
static void flood(const struct frame_row *row, int most, const char *reason)
{
    void *own = NULL;
    setup(&own);
    struct fixture *f = own;
    struct h2_client c = h2_dial(f->server, SV(""));
    h2_request(&c, OPEN, "POST", "/work", NULL, NULL, 0);
    h2_get(&c, ANSWERED, "/ok");
    struct h2_answer a = h2_wait(&c, ANSWERED);
    CHECK_INT(a.status, 200, row->name);
    h2_done(&a);
    for (int n = 0; n < most; n++) {
        if (!h2_frame(&c, row->type, row->flags, row->id, row->payload)) {
            break;
        }
    }
    check_goaway(&c, NGHTTP2_ENHANCE_YOUR_CALM, row->name);
    check_ends(f, &c, reason, row->name);
    teardown(&own);
}

TEST(frames_that_ask_for_nothing)
{
    static const struct frame_row rows[] = {
        {"PING", NGHTTP2_PING, 0, 0, {"12345678", 8}},
        {"PING with ACK", NGHTTP2_PING, H2_ACK, 0, {"12345678", 8}},
        {"SETTINGS", NGHTTP2_SETTINGS, 0, 0, {"", 0}},
        {"SETTINGS that change the window", NGHTTP2_SETTINGS, 0, 0, {"\0\4\0\0\0\1", 6}},
        {"PRIORITY", NGHTTP2_PRIORITY, 0, 5, {"\0\0\0\0\1", 5}},
        {"PRIORITY of an answered stream", NGHTTP2_PRIORITY, 0, ANSWERED, {"\0\0\0\0\1", 5}},
        {"GOAWAY", NGHTTP2_GOAWAY, 0, 0, {"\0\0\0\0\0\0\0\0", 8}},
        {"WINDOW_UPDATE", NGHTTP2_WINDOW_UPDATE, 0, 0, {"\0\0\0\1", 4}},
        {"WINDOW_UPDATE of a stream", NGHTTP2_WINDOW_UPDATE, 0, OPEN, {"\0\0\0\1", 4}},
        {"... of an answered stream", NGHTTP2_WINDOW_UPDATE, 0, ANSWERED, {"\0\0\0\1", 4}},
        {"empty DATA", NGHTTP2_DATA, 0, OPEN, {"", 0}},
        {"DATA of one byte", NGHTTP2_DATA, 0, OPEN, {"x", 1}},
        {"padded DATA", NGHTTP2_DATA, H2_PADDED, OPEN, {"\5\0\0\0\0\0", 6}},
        {"empty DATA for an answered stream", NGHTTP2_DATA, 0, ANSWERED, {"", 0}},
        {"... that ends it again", NGHTTP2_DATA, H2_END_STREAM, ANSWERED, {"", 0}},
        {"a head for an answered stream",
         NGHTTP2_HEADERS,
         H2_END_HEADERS | H2_END_STREAM,
         ANSWERED,
         {"\x82", 1}},
        {"a frame of an unknown type", 0x77, 0, 0, {"", 0}},
        {"... of an answered stream", 0x0a, 0xff, ANSWERED, {"", 0}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        flood(&rows[i], MANY, "flood");
    }
}

TEST(an_answered_stream_that_is_given_up_again_and_again)
{
    flood(&(const struct frame_row){"", NGHTTP2_RST_STREAM, 0, ANSWERED, {"\0\0\0\10", 4}}, MANY,
          "resets");
}

/* Fewer frames than the budget allows, but 19 MB of them. */
TEST(large_frames_that_ask_for_nothing)
{
    static const char zeros[16384];
    static const struct frame_row rows[] = {
        {"DATA for an answered stream", NGHTTP2_DATA, 0, ANSWERED, {zeros, sizeof(zeros)}},
        {"a frame of an unknown type", 0x77, 0, 0, {zeros, sizeof(zeros)}},
        {"GOAWAY with a long reason", NGHTTP2_GOAWAY, 0, 0, {zeros, sizeof(zeros)}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        flood(&rows[i], 1200, "flood");
    }
}

/* Frames with 255 bytes of padding and no content. */
TEST(padding_without_content)
{
    static const char padding[256] = "\xff";
    flood(&(const struct frame_row){"", NGHTTP2_DATA, H2_PADDED, OPEN, {padding, sizeof(padding)}},
          MANY, "flood");
}

/* A client that lets the server send one byte at a time. */
TEST_ON(struct fixture *f, windows_of_one_byte)
{
    struct h2_client c = h2_dial(f->server, (struct sv){"\0\4\0\0\0\1", 6});
    bool reads = h2_get(&c, 1, "/large");
    for (int i = 0; reads && i < MANY; i++) {
        reads = h2_frame(&c, NGHTTP2_WINDOW_UPDATE, 0, 1, (struct sv){"\0\0\0\1", 4});
    }
    check_goaway(&c, NGHTTP2_ENHANCE_YOUR_CALM, "");
    check_ends(f, &c, "flood", "");
}

/* ---- clients that do not attack -------------------------------------------------------------- */

/* A client learns that its body is refused after it has sent a window of it. */
TEST_ON(struct fixture *f, bodies_that_are_refused_late)
{
    static const char zeros[16384];
    SCOPED(h2_client) c = h2_dial(f->server, SV(""));
    for (uint32_t id = 1; id < 41; id += 2) {
        h2_request(&c, id, "POST", "/nothing", NULL, NULL, 0);
        SCOPED(h2_answer) a = h2_wait(&c, id);
        CHECK_INT(a.status, 404, "");
        for (int i = 0; i < 16; i++) {
            h2_frame(&c, NGHTTP2_DATA, 0, id, (struct sv){zeros, sizeof(zeros)});
        }
    }
    h2_get(&c, 41, "/ok");
    SCOPED(h2_answer) a = h2_wait(&c, 41);
    assert_int_equal(a.status, 200);
}

TEST_ON(struct fixture *f, goaway_between_a_request_and_its_answer)
{
    SCOPED(h2_client) c = h2_dial(f->server, SV(""));
    h2_request(&c, 1, "POST", "/work", NULL, NULL, 0);
    h2_frame(&c, NGHTTP2_GOAWAY, 0, 0, (struct sv){"\0\0\0\0\0\0\0\0", 8});
    h2_frame(&c, NGHTTP2_DATA, H2_END_STREAM, 1, SV("x"));
    SCOPED(h2_answer) a = h2_wait(&c, 1);
    assert_int_equal(a.status, 200);
    CHECK_STR(a.body.data, "ok", "");
    assert_int_equal(a.goaway, UINT32_MAX);
}

/* grpc-go says goodbye with the largest number of a stream. */
TEST_ON(struct fixture *f, goaway_with_the_largest_stream)
{
    struct h2_client c = h2_dial(f->server, SV(""));
    assert_true(h2_get(&c, 1, "/ok"));
    h2_frame(&c, NGHTTP2_GOAWAY, 0, 0, (struct sv){"\177\377\377\377\0\0\0\0", 8});
    h2_close(&c);
    check_ended(f, "done", "");
}

/* ---- streams --------------------------------------------------------------------------------- */

TEST(streams_that_are_given_up)
{
    static const struct {
        const char *name, *path;
        uint8_t flags;
    } rows[] = {
        {"requests to a handler", "/work", H2_END_STREAM},
        {"requests whose body does not come", "/work", 0},
        {"requests that are answered at once", "/nothing", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        void *own = NULL;
        setup(&own);
        struct fixture *f = own;
        struct h2_client c = h2_dial(f->server, SV(""));
        bool reads = true;
        for (uint32_t id = 1; reads && id < MANY; id += 2) {
            reads = h2_request(&c, id, "POST", rows[i].path, NULL, NULL, rows[i].flags) &&
                    h2_frame(&c, NGHTTP2_RST_STREAM, 0, id, (struct sv){"\0\0\0\10", 4});
        }
        check_goaway(&c, NGHTTP2_ENHANCE_YOUR_CALM, rows[i].name);
        check_ends(f, &c, "resets", rows[i].name);
        teardown(&own);
    }
}

/* A client that sends streams beyond the limit all the time. */
TEST_ON(struct fixture *f, streams_that_are_refused)
{
    struct h2_client c = h2_dial(f->server, SV(""));
    bool reads = true;
    for (uint32_t id = 1; reads && id < MANY; id += 2) {
        reads = h2_request(&c, id, "POST", "/work", NULL, NULL, 0); /* no body comes */
    }
    check_goaway(&c, NGHTTP2_ENHANCE_YOUR_CALM, "");
    check_ends(f, &c, "resets", "");
}

/* ---- heads ----------------------------------------------------------------------------------- */

TEST_ON(struct fixture *f, a_head_without_end)
{
    struct h2_client c = h2_dial(f->server, SV(""));
    static char value[8000];
    memset(value, 'x', sizeof(value));
    SCOPED(buf) block = testing_buf(1 << 20);
    h2_head(&block, "GET", "/ok");
    bool reads =
        h2_frame(&c, NGHTTP2_HEADERS, H2_END_STREAM, 1, (struct sv){block.data, block.len});
    buf_clear(&block);
    h2_header(&block, "x-more", (struct sv){value, sizeof(value)});
    for (int i = 0; reads && i < MANY; i++) {
        reads = h2_frame(&c, NGHTTP2_CONTINUATION, 0, 1, (struct sv){block.data, block.len});
    }
    check_ends(f, &c, "protocol", "");
}

TEST_ON(struct fixture *f, empty_continuations)
{
    struct h2_client c = h2_dial(f->server, SV(""));
    bool reads = h2_frame(&c, NGHTTP2_HEADERS, H2_END_STREAM, 1, SV("\x82"));
    for (int i = 0; reads && i < MANY; i++) {
        reads = h2_frame(&c, NGHTTP2_CONTINUATION, 0, 1, SV(""));
    }
    check_ends(f, &c, "protocol", "");
}

/* A header of 3,900 bytes is put into the table once; then each byte of a head stands for it. */
TEST_ON(struct fixture *f, a_head_that_unpacks_to_much)
{
    struct h2_client c = h2_dial(f->server, SV(""));
    static char value[3900];
    memset(value, 'x', sizeof(value));
    SCOPED(buf) block = testing_buf(1 << 20);
    h2_head(&block, "GET", "/ok");
    size_t at = block.len;
    h2_header(&block, "x-bomb", (struct sv){value, sizeof(value)});
    block.data[at] = 0x40; /* with indexing */
    for (int i = 0; i < 4; i++) {
        buf_putc(&block, (char)(0x80 | 62)); /* the newest entry of the table */
    }
    /* Beyond 16 KiB, the request is refused as over HTTP/1, and the connection goes on. */
    h2_frame(&c, NGHTTP2_HEADERS, H2_END_STREAM | H2_END_HEADERS, 1,
             (struct sv){block.data, block.len});
    struct h2_answer a = h2_wait(&c, 1);
    assert_int_equal(a.status, 431);
    h2_done(&a);
    assert_int_equal(
        testing_metric(f->metrics, "profpull_admin_requests_refused_total{reason=\"malformed\"}"),
        1);
    /* A head that stands for 40 MB is not unpacked to its end. */
    buf_clear(&block);
    for (int i = 0; i < 10000; i++) {
        buf_putc(&block, (char)(0x80 | 62));
    }
    h2_frame(&c, NGHTTP2_HEADERS, H2_END_STREAM | H2_END_HEADERS, 3,
             (struct sv){block.data, block.len});
    check_goaway(&c, NGHTTP2_ENHANCE_YOUR_CALM, "");
    check_ends(f, &c, "flood", "");
}

/* Each head is just refused: they count as streams that are given up. */
TEST_ON(struct fixture *f, many_heads_that_are_too_large)
{
    struct h2_client c = h2_dial(f->server, SV(""));
    static char value[8100]; /* two of them just fit into a frame */
    memset(value, 'x', sizeof(value));
    bool reads = true;
    SCOPED(buf) block = testing_buf(1 << 20);
    h2_head(&block, "GET", "/ok");
    h2_header(&block, "x-a", (struct sv){value, sizeof(value)});
    h2_header(&block, "x-b", (struct sv){value, sizeof(value)});
    for (uint32_t id = 1; reads && id < MANY; id += 2) {
        reads = h2_frame(&c, NGHTTP2_HEADERS, H2_END_STREAM | H2_END_HEADERS, id,
                         (struct sv){block.data, block.len});
    }
    check_goaway(&c, NGHTTP2_ENHANCE_YOUR_CALM, "");
    check_ends(f, &c, "flood", "");
}

/* ---- broken rules ---------------------------------------------------------------------------- */

TEST(broken_rules)
{
    static const struct frame_row rows[] = {
        {"DATA of no stream", NGHTTP2_DATA, 0, 0, {"x", 1}},
        {"DATA of a stream that was never opened", NGHTTP2_DATA, 0, 9, {"x", 1}},
        {"a stream with an even number", NGHTTP2_HEADERS, H2_END_HEADERS, 2, {"\x82", 1}},
        {"a head that does not unpack", NGHTTP2_HEADERS, H2_END_HEADERS, 3, {"\xff\xff\xff", 3}},
        {"PING of seven bytes", NGHTTP2_PING, 0, 0, {"1234567", 7}},
        {"SETTINGS of five bytes", NGHTTP2_SETTINGS, 0, 0, {"12345", 5}},
        {"a window beyond 2^31-1", NGHTTP2_WINDOW_UPDATE, 0, 0, {"\x7f\xff\xff\xff", 4}},
        {"PUSH_PROMISE", NGHTTP2_PUSH_PROMISE, H2_END_HEADERS, 1, {"\0\0\0\2\x82", 5}},
        {"CONTINUATION of nothing", NGHTTP2_CONTINUATION, H2_END_HEADERS, 1, {"", 0}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        void *own = NULL;
        setup(&own);
        struct fixture *f = own;
        struct h2_client c = h2_dial(f->server, SV(""));
        h2_request(&c, 1, "POST", "/work", NULL, NULL, 0);
        h2_frame(&c, rows[i].type, rows[i].flags, rows[i].id, rows[i].payload);
        struct h2_answer a = h2_wait(&c, UINT32_MAX);
        assert_true(a.closed);
        h2_done(&a);
        check_ends(f, &c, "protocol", rows[i].name);
        teardown(&own);
    }
}

/* These break the rules for one stream only: the connection goes on. */
TEST_ON(struct fixture *f, broken_streams)
{
    static const struct {
        const char *name, *header, *value;
    } rows[] = {
        {"a header that HTTP/2 does not have", "connection", "close"},
        {"chunks", "transfer-encoding", "chunked"},
        {"a name in upper case", "X-Up", "1"},
        {"a pseudo header after others", ":path", "/ok"},
        {"two lengths", "content-length", "1, 2"},
        {"a line break in a value", "x-split", "a\r\nb: c"},
    };
    SCOPED(h2_client) c = h2_dial(f->server, SV(""));
    uint32_t id = 1;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++, id += 2) {
        h2_request(&c, id, "GET", "/ok", rows[i].header, rows[i].value, H2_END_STREAM);
        SCOPED(h2_answer) a = h2_wait(&c, id);
        CHECK_INT(a.status, 0, rows[i].name);
        CHECK_INT(a.reset, NGHTTP2_PROTOCOL_ERROR, rows[i].name);
    }
    /* A length that the body does not have. */
    h2_request(&c, id, "POST", "/work", "content-length", "10", 0);
    h2_frame(&c, NGHTTP2_DATA, H2_END_STREAM, id, SV("short"));
    struct h2_answer a = h2_wait(&c, id);
    assert_int_equal(a.reset, NGHTTP2_PROTOCOL_ERROR);
    h2_done(&a);
    assert_int_equal(
        testing_metric(f->metrics, "profpull_admin_http2_streams_total{result=\"malformed\"}"),
        sizeof(rows) / sizeof(rows[0]) + 1);
    h2_get(&c, id + 2, "/ok");
    a = h2_wait(&c, id + 2);
    assert_int_equal(a.status, 200);
    h2_done(&a);
}

TEST_ON(struct fixture *f, rubbish_after_the_preface)
{
    struct h2_client c = {.fd = client_dial(f->server)};
    assert_int_equal(nghttp2_hd_inflate_new(&c.inflater), 0);
    h2_put(&c, NGHTTP2_CLIENT_MAGIC "GET / HTTP/1.1\r\n\r\n", NGHTTP2_CLIENT_MAGIC_LEN + 18);
    struct h2_answer a = h2_wait(&c, 1);
    assert_true(a.closed);
    h2_done(&a);
    h2_close(&c);
    check_ended(f, "protocol", "");
}

/* ---- the budget ------------------------------------------------------------------------------ */

TEST(a_budget_comes_back_with_time_and_content)
{
    struct http2_budget b;
    http2_budget_init(&b, 1000);
    assert_true(http2_budget_take(&b, HTTP2_BUDGET_MAX, 1000));
    assert_false(http2_budget_take(&b, 1, 1000));
    http2_budget_give(&b, 1);
    assert_true(http2_budget_take(&b, 0, 1000));
    assert_true(http2_budget_take(&b, HTTP2_BUDGET_RATE, 2000));
    assert_false(http2_budget_take(&b, 1, 2009));
    assert_true(http2_budget_take(&b, 0, 2010)); /* the rest of the division was kept */
    assert_true(http2_budget_take(&b, HTTP2_BUDGET_MAX, 1000000)); /* no more than the most */
    assert_false(http2_budget_take(&b, 1, 1000000));
    assert_false(http2_budget_take(&b, 1, 5)); /* the clock went back */
}
