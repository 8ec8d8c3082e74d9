/* Bytes of a client of HTTP/2, after the preface: whatever comes, handlers see requests as HTTP/1
 * has them, each is answered once, and all that was taken is given back at the end. The first byte
 * says in how large pieces the rest comes; requests are answered at once, held, or have their
 * bodies read, by the length of their path. */
#include <event2/buffer.h>
#include <string.h>

#include "server/connection_private.h"
#include "server/http2.h"
#include "tests/fuzz/fuzz.h"

#define BODY_MAX 4096
#define HELD_MAX 8

struct rig {
    struct connection_bodies bodies;
    struct connection_streams streams;
    struct connection *held[HELD_MAX];
    size_t n_held;
};

static void on_request(void *arg, struct connection *c, struct request *r)
{
    struct rig *rig = arg;
    struct sv rest = r->headers;
    struct sv name;
    struct sv value;
    REQUIRE(r->path.n > 0 && r->path.p[0] == '/');
    while (request_next_header(&rest, &name, &value)) {
        REQUIRE(name.n > 0 && memchr(value.p, '\n', value.n) == NULL);
    }
    if (r->path.n % 3 == 0 && rig->n_held < HELD_MAX) {
        connection_hold(c);
        rig->held[rig->n_held++] = c;
    } else if (r->path.n % 3 == 1) {
        connection_reply(c, 200, "text/plain", SV("ok"));
    } else {
        connection_read_body(c, BODY_MAX);
    }
}

static void on_body(void *arg, struct connection *c, const struct request *r)
{
    (void)arg;
    (void)r;
    REQUIRE(connection_body(c).n <= BODY_MAX);
    struct buf copy;
    buf_init(&copy, BODY_MAX);
    buf_append(&copy, connection_body(c).p, connection_body(c).n);
    connection_answer(c, &(struct connection_answer){
                             .status = 200, .body = &copy, .trailers = SV("Grpc-Status: 0\r\n")});
    buf_done(&copy);
}

static void on_refusal(void *arg, struct connection *c, const struct request *r,
                       enum connection_refusal why, int status)
{
    (void)arg;
    (void)r;
    (void)why;
    connection_reply(c, status, NULL, SV("refused"));
}

static void on_stream_end(void *arg, enum connection_stream_end how)
{
    (void)arg;
    (void)how;
}

static void on_output(void *arg)
{
    (void)arg;
}

/* Ends the waits of all handlers: those whose client is still there answer. */
static void release(struct rig *rig)
{
    for (size_t i = 0; i < rig->n_held; i++) {
        if (connection_resume(rig->held[i])) {
            connection_reply(rig->held[i], 200, NULL, SV("late"));
        }
    }
    rig->n_held = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rig rig = {.bodies = {.max = 4 * BODY_MAX}, .streams = {.max = 20, .max_of_one = 10}};
    const struct connection_options o = {.request_ms = 60000,
                                         .answer_ms = 60000,
                                         .idle_ms = 60000,
                                         .bodies = &rig.bodies,
                                         .streams = &rig.streams,
                                         .on_request = on_request,
                                         .on_body = on_body,
                                         .on_refusal = on_refusal,
                                         .on_stream_end = on_stream_end,
                                         .arg = &rig};
    struct connection owner = {.o = &o};
    struct http2 *h = http2_new(&owner, on_output, NULL);
    struct evbuffer *out = evbuffer_new();
    size_t piece = size == 0 || data[0] == 0 ? size + 1 : data[0];
    REQUIRE(h != NULL && out != NULL);
    http2_read(h, http2_preface());
    for (size_t i = 1; i < size; i += piece) {
        size_t n = size - i < piece ? size - i : piece;
        http2_read(h, (struct sv){(const char *)data + i, n});
        http2_write(h, out);
        evbuffer_drain(out, evbuffer_get_length(out));
        if (i % 5 == 0) {
            release(&rig);
        }
    }
    REQUIRE(rig.streams.now <= rig.streams.max);
    if (size % 2 == 0) {
        release(&rig);
        http2_write(h, out);
    }
    http2_free(h);
    release(&rig);
    evbuffer_free(out);
    REQUIRE(rig.streams.now == 0 && rig.bodies.now == 0);
    return 0;
}
