/* Stray responses over HTTP/2, which numbers them: a response to a request that was not made, a
 * second one to a request that was answered, and an acceptance of a request that was not read. */
#include "tests/unit/lib/http_server.h"

#include <netinet/tcp.h>

#include "http/private.h"

#define PREFACE_SIZE 24
#define FRAME_HEAD 9
#define LONG_MS 60000
#define BIG ((size_t)4 * 1024 * 1024)

/* The bytes of frames: types, flags and streams below 256. */
#define FRAME(n, type, flags, stream) "\0\0" n type flags "\0\0\0" stream
#define DATA "\0"
#define HEADERS "\1"
#define RST_STREAM "\3"
#define SETTINGS "\4"
#define PUSH_PROMISE "\5"
#define PING "\6"
#define GOAWAY "\7"
/* ":status: 200" by its number in HPACK's table. */
#define STATUS_200(stream) FRAME("\1", HEADERS, "\4", stream) "\x88"
#define BODY(stream, text) FRAME("\2", DATA, "\1", stream) text
#define ANSWER(stream, text) STATUS_200(stream) BODY(stream, text)

struct bytes {
    const char *p;
    size_t n;
};
#define BYTES(text)                                                                                \
    {                                                                                              \
        (text), sizeof(text) - 1                                                                   \
    }

/* The first connection of a peer follows the row; others behave well. */
struct row {
    const char *name;
    struct bytes with;    /* sent together with the first response */
    struct bytes idle;    /* sent after the client has the first response */
    struct bytes instead; /* sent instead of the second response on this connection */
    struct bytes early;   /* sent instead of a response, as soon as the first head is there */
    bool reused;          /* the second request goes over the same connection */
    bool may_fail;        /* libcurl 8 fails the first request as well */
};

static const struct row rows[] = {
    {.name = "a polite server", .reused = true},
    {.name = "a ping", .idle = BYTES(FRAME("\x8", PING, "\0", "\0") "12345678"), .reused = true},
    {.name = "the end", .idle = BYTES(FRAME("\x8", GOAWAY, "\0", "\0") "\0\0\0\1\0\0\0\0")},
    {.name = "the end as the second request comes",
     .instead = BYTES(FRAME("\x8", GOAWAY, "\0", "\0") "\0\0\0\1\0\0\0\0")},
    {.name = "a response to no request", .idle = BYTES(ANSWER("\3", "no"))},
    {.name = "a response to no request, joined",
     .with = BYTES(ANSWER("\3", "no")),
     .may_fail = true},
    {.name = "a second response", .idle = BYTES(ANSWER("\1", "no")), .reused = true},
    {.name = "a second response, joined", .with = BYTES(ANSWER("\1", "no")), .reused = true},
    {.name = "a second body", .idle = BYTES(BODY("\1", "no")), .reused = true},
    {.name = "a response on a stream of the server", .idle = BYTES(ANSWER("\2", "no"))},
    {.name = "a response on no stream", .idle = BYTES(ANSWER("\0", "no"))},
    {.name = "a push",
     .idle = BYTES(FRAME("\5", PUSH_PROMISE, "\4", "\1") "\0\0\0\2\x82" ANSWER("\2", "no"))},
    {.name = "HTTP/1",
     .idle = BYTES("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")},
};

struct peer {
    const struct row *row;
    atomic_bool answered;
    atomic_bool disturbed;
    atomic_uint heads; /* requests read, whole if they have no body */
};

static bool read_frame(struct server_conn *c, unsigned char head[FRAME_HEAD])
{
    static const size_t max = 1 << 20;
    if (!server_read_body(c, (char *)head, FRAME_HEAD)) {
        return false;
    }
    size_t n = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
    SCOPED_MEMORY char *junk = malloc(max);
    assert_true(junk != NULL && n <= max);
    bool ok = server_read_body(c, junk, n);
    return ok;
}

/* The stream of the next request; 0 at the end of the connection. */
static unsigned char read_head(struct server_conn *c)
{
    unsigned char head[FRAME_HEAD];
    while (read_frame(c, head)) {
        if (head[3] == SETTINGS[0] && head[4] == 0) {
            server_send_bytes(c, FRAME("\0", SETTINGS, "\1", "\0"), FRAME_HEAD);
        }
        if (head[3] == HEADERS[0]) {
            return head[8];
        }
    }
    return 0;
}

static void answer(struct server_conn *c, unsigned char stream, struct bytes more)
{
    char bytes[512] = ANSWER("\0", "ok");
    size_t n = sizeof(ANSWER("\0", "ok")) - 1;
    bytes[8] = (char)stream;
    bytes[FRAME_HEAD + 1 + 8] = (char)stream;
    if (more.n > 0) {
        memcpy(bytes + n, more.p, more.n);
    }
    server_send_bytes(c, bytes, n + more.n);
}

static void serve_first(struct server_conn *c, struct peer *peer)
{
    const struct row *row = peer->row;
    unsigned char stream = read_head(c);
    atomic_fetch_add(&peer->heads, stream != 0);
    if (row->early.n > 0) {
        server_send_bytes(c, row->early.p, row->early.n);
        server_wait_close(c);
        return;
    }
    answer(c, stream, row->with);
    while (!atomic_load(&peer->answered)) {
        usleep(1000);
    }
    server_send_bytes(c, row->idle.p, row->idle.n);
    atomic_store(&peer->disturbed, true);
    if (row->instead.n > 0 && read_head(c) != 0) {
        server_send_bytes(c, row->instead.p, row->instead.n);
        server_wait_close(c);
    }
}

static void serve(struct server_conn *c)
{
    struct peer *peer = server_arg(c);
    char preface[PREFACE_SIZE];
    unsigned char stream;
    int one = 1;
    /* The bytes of one call have arrived, even if those of the call before are not acknowledged. */
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    server_send_bytes(c, FRAME("\0", SETTINGS, "\0", "\0"), FRAME_HEAD);
    if (!server_read_body(c, preface, sizeof(preface))) {
        return;
    }
    if (c->number == 1) {
        serve_first(c, peer);
    }
    while ((stream = read_head(c)) != 0) {
        atomic_fetch_add(&peer->heads, 1);
        answer(c, stream, (struct bytes){"", 0});
    }
}

TEST(test_responses)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct peer peer = {.row = &rows[i]};
        SCOPED(fixture) f = fixture_with(1, serve, &peer);
        fixture_ask(&f, "/", &(struct http_request){.http2_only = true});
        if (!rows[i].may_fail || f.call.result != HTTP_ERR_PROTOCOL) {
            check_result(&f.call, HTTP_DONE, rows[i].name);
            CHECK_STR(f.call.body, "ok", rows[i].name);
        }
        atomic_store(&peer.answered, true);
        while (!atomic_load(&peer.disturbed)) {
            usleep(1000);
        }
        fixture_ask(&f, "/", &(struct http_request){.http2_only = true});
        check_result(&f.call, HTTP_DONE, rows[i].name);
        CHECK_STR(f.call.body, "ok", rows[i].name);
        CHECK_INT(f.call.reused, rows[i].reused, rows[i].name);
        CHECK_INT(atomic_load(&peer.heads) >= 2, true, rows[i].name);
    }
}

/* ---- early ----------------------------------------------------------------------------------- */

struct early {
    bool early;
    bool ended; /* by the server */
    enum http_result result;
    int64_t took_ms;
    struct fixture *f;
};

static void note_early(void *arg, const struct http_response *r)
{
    struct early *e = arg;
    e->early = r->early;
    e->ended = r->stream_ended;
    e->result = r->result;
    e->took_ms = (r->end_ns - r->start_ns) / NS_PER_MS;
    loop_stop(e->f->loop);
}

/* The body is larger than the window of the stream, and the server does not widen it. */
TEST(test_early_acceptance)
{
    static const struct row early[] = {
        {.name = "and no more", .early = BYTES(ANSWER("\1", "ok"))},
        {.name = "and an end of the stream",
         .early = BYTES(ANSWER("\1", "ok") FRAME("\4", RST_STREAM, "\0", "\1") "\0\0\0\0")},
    };
    SCOPED_MEMORY char *body = testing_memory(BIG);
    struct http_part part = {body, BIG};
    for (size_t i = 0; i < 2; i++) {
        struct peer peer = {.row = &early[i]};
        SCOPED(fixture) f = fixture_with(1, serve, &peer);
        struct early e = {.f = &f};
        assert_non_null(
            http_start(f.client, &(struct http_request){.method = "POST",
                                                        .url = server_url(f.server, "/", f.url),
                                                        .http2_only = true,
                                                        .body = &part,
                                                        .n_body = 1,
                                                        .timeout_ms = LONG_MS,
                                                        .max_body = 100,
                                                        .on_done = note_early,
                                                        .arg = &e}));
        loop_run(f.loop);
        /* libcurl 7 loses the head of a response if the server has ended the stream, libcurl 8
         * takes the response for the whole. */
        if (i == 0 || e.result != HTTP_DONE) {
            CHECK_STR(http_result_name(e.result), "protocol", early[i].name);
            CHECK_INT(e.early || e.ended, true, early[i].name);
        }
        CHECK_INT(e.took_ms < LONG_MS, true, early[i].name);
    }
}

MAIN_THAT_MAY_HANG(testing_run("tests", ignore_sigpipe, NULL))
