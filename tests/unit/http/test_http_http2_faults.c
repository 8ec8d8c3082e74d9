/* No response of HTTP/2 is lost: thousands of requests share connections whose server ends them,
 * refuses streams, and answers late, in another order and in small pieces. */
#include "tests/unit/lib/http_server.h"

#include <netinet/tcp.h>

#include "http/private.h"

#define PREFACE_SIZE 24
#define FRAME_HEAD 9
#define FRAME(n, type, flags) "\0\0" n type flags "\0\0\0\0"
#define DATA '\0'
#define HEADERS '\1'
#define SETTINGS '\4'
#define END_STREAM 1
/* How many responses may wait to be sent in another order. */
#define HELD_MAX 4
#define IN_FLIGHT 16
/* Far beyond what any response takes: a request that reaches it has lost its response. */
#define TIMEOUT_MS 60000

/* ---- the server ------------------------------------------------------------------------------ */

static void put_stream(char *frame, uint32_t stream)
{
    for (int i = 0; i < 4; i++) {
        frame[5 + i] = (char)(stream >> (24 - 8 * i));
    }
}

static bool send_frame(struct server_conn *c, const char *frame, size_t n, uint32_t stream)
{
    char bytes[64];
    memcpy(bytes, frame, n);
    put_stream(bytes, stream);
    return server_send_bytes(c, bytes, n);
}

/* The answer "ok", in pieces of that size. */
static bool answer(struct server_conn *c, uint32_t stream, size_t piece)
{
    char bytes[] = FRAME("\1", "\1", "\4") "\x88" FRAME("\2", "\0", "\1") "ok";
    size_t n = sizeof(bytes) - 1;
    put_stream(bytes, stream);
    put_stream(bytes + FRAME_HEAD + 1, stream);
    for (size_t i = 0; i < n; i += piece) {
        if (!server_send_bytes(c, bytes + i, n - i < piece ? n - i : piece)) {
            return false;
        }
    }
    return true;
}

struct held {
    uint32_t streams[HELD_MAX];
    size_t n;
};

static bool answer_held(struct server_conn *c, struct held *held)
{
    bool ok = true;
    while (ok && held->n > 0) {
        ok = answer(c, held->streams[--held->n], 1000);
    }
    return ok;
}

static bool has_input(const struct server_conn *c)
{
    char byte;
    return c->rest_len > 0 || recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

/* The stream of the next whole request; 0 at the end of the connection. Answers those that are held
 * before it waits. */
static uint32_t read_request(struct server_conn *c, struct held *held)
{
    unsigned char head[FRAME_HEAD];
    char junk[65536];
    while ((has_input(c) || answer_held(c, held)) &&
           server_read_body(c, (char *)head, FRAME_HEAD)) {
        size_t n = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        if (n > sizeof(junk) || !server_read_body(c, junk, n)) {
            return 0;
        }
        if (head[3] == SETTINGS && (head[4] & 1) == 0) {
            send_frame(c, FRAME("\0", "\4", "\1"), FRAME_HEAD, 0);
        }
        if ((head[3] == HEADERS || head[3] == DATA) && (head[4] & END_STREAM) != 0) {
            return (uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 |
                   head[8];
        }
    }
    return 0;
}

/* False if the connection is over. */
static bool treat(struct server_conn *c, uint32_t stream, unsigned dice, struct held *held)
{
    char goaway[] = FRAME("\x8", "\7", "\0") "\0\0\0\0\0\0\0\0";
    switch (dice % 100) {
    case 0: /* the end, this request included */
        put_stream(goaway + 4, stream);
        return answer(c, stream, 1000) && answer_held(c, held) &&
               server_send_bytes(c, goaway, sizeof(goaway) - 1) && false;
    case 1: /* the end, announced before the answer */
        put_stream(goaway + 4, stream);
        return server_send_bytes(c, goaway, sizeof(goaway) - 1) && answer(c, stream, 1000) &&
               answer_held(c, held) && false;
    case 2: /* the end without a word */
        return false;
    case 3: /* RST_STREAM, REFUSED_STREAM */
        return send_frame(c, FRAME("\4", "\3", "\0") "\0\0\0\7", FRAME_HEAD + 4, stream);
    case 4: /* a reset */
        server_reset(c);
        return false;
    case 5:
        usleep(2000);
        return answer(c, stream, 1000);
    case 6:
        return answer(c, stream, 1);
    case 7:
        return send_frame(c, FRAME("\0", "\4", "\0"), FRAME_HEAD, 0) && answer(c, stream, 5);
    case 8:
        return send_frame(c, FRAME("\x8", "\6", "\0") "12345678", FRAME_HEAD + 8, 0) &&
               answer(c, stream, 1000);
    default:
        if (dice % 2 == 0 && held->n < HELD_MAX) {
            held->streams[held->n++] = stream;
            return true;
        }
        return answer(c, stream, 1000);
    }
}

static void serve(struct server_conn *c)
{
    char preface[PREFACE_SIZE];
    struct held held = {.n = 0};
    unsigned dice = c->number * 2654435761U;
    int one = 1;
    uint32_t stream;
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (!server_read_body(c, preface, sizeof(preface)) ||
        !send_frame(c, FRAME("\0", "\4", "\0"), FRAME_HEAD, 0)) {
        return;
    }
    while ((stream = read_request(c, &held)) != 0) {
        dice = dice * 1103515245U + 12345U;
        if (!treat(c, stream, dice >> 8, &held)) {
            return;
        }
    }
}

/* ---- the client ------------------------------------------------------------------------------ */

struct run {
    struct fixture f;
    char url[URL_SIZE];
    unsigned left;
    unsigned in_flight;
    unsigned results[HTTP_RESULTS];
    unsigned wrong;
    char body[300];
};

static void start_one(struct run *r);

static void on_done(void *arg, const struct http_response *response)
{
    struct run *r = arg;
    r->results[response->result]++;
    bool ok = response->body->len == 2 && memcmp(response->body->data, "ok", 2) == 0;
    r->wrong += response->result == HTTP_DONE && !ok;
    r->in_flight--;
    if (r->left > 0) {
        start_one(r);
    } else if (r->in_flight == 0) {
        loop_stop(r->f.loop);
    }
}

static void start_one(struct run *r)
{
    struct http_part part = {r->body, sizeof(r->body)};
    r->left--;
    r->in_flight++;
    assert_non_null(http_start(r->f.client, &(struct http_request){.method = "POST",
                                                                   .url = r->url,
                                                                   .http2_only = true,
                                                                   .body = &part,
                                                                   .n_body = 1,
                                                                   .timeout_ms = TIMEOUT_MS,
                                                                   .max_body = 100,
                                                                   .on_done = on_done,
                                                                   .arg = r}));
}

TEST(test_no_response_is_lost)
{
    const char *given = getenv("HTTP2_RUNS");
    struct run r = {.left = given != NULL ? (unsigned)strtoul(given, NULL, 10) : 2000};
    unsigned all = r.left;
    SCOPED(server) *s = server_new(serve, NULL);
    r.f = fixture_new(1);
    (void)server_url(s, "/", r.url);
    for (int i = 0; i < IN_FLIGHT; i++) {
        start_one(&r);
    }
    loop_run(r.f.loop);
    for (int i = 0; i < HTTP_RESULTS; i++) {
        if (r.results[i] > 0) {
            print_message("%u %s\n", r.results[i], http_result_name((enum http_result)i));
        }
    }
    print_message("%u connections\n", atomic_load(&s->accepted));
    CHECK_INT(r.wrong, 0, "wrong bodies");
    CHECK_INT(r.results[HTTP_ERR_TIMEOUT], 0, "lost responses");
    CHECK_INT(r.results[HTTP_DONE] > all / 2, true, "most are answered");
    fixture_done(&r.f);
}

MAIN_THAT_MAY_HANG(testing_run("tests", ignore_sigpipe, NULL))
