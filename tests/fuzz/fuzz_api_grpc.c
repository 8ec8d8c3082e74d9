/* Frames of gRPC and gRPC-web: what is taken for a message lies within the body and is followed by
 * nothing; and what we send as the response to such a message reads back as the same message. The
 * first byte chooses between a body, a text in base64, a timeout, and a message to be sent. */
#include <string.h>

#include "api/rpc.h"
#include "tests/fuzz/fuzz.h"

#define BODY_MAX ((size_t)64 * 1024)

static void check_body(struct sv body)
{
    struct sv message = {NULL, 0};
    struct err err = ERR_INIT;
    bool packed = false;
    enum rpc_frame result = rpc_unframe(body, BODY_MAX, &message, &packed, &err);
    REQUIRE((result == RPC_FRAME_OK) == (err.kind == ERR_NONE));
    if (result == RPC_FRAME_OK) {
        REQUIRE(message.p == body.p + 5 && message.n == body.n - 5 && message.n <= BODY_MAX);
        REQUIRE(packed == (body.p[0] == 1));
    }
}

static void check_text(struct sv text)
{
    struct buf plain;
    buf_init(&plain, text.n + 1);
    if (rpc_decode_text(text, &plain)) {
        REQUIRE(plain.len <= text.n);
        check_body((struct sv){plain.data, plain.len});
    }
    buf_done(&plain);
}

static void check_timeout(struct sv text)
{
    int64_t ms = 0;
    if (rpc_timeout(text, &ms)) {
        REQUIRE(ms >= 0 && ms <= INT64_C(99999999) * 3600 * 1000 && text.n <= 9);
    }
}

/* Takes the response apart again. */
static void check_reply(const struct exchange *x, const struct rpc_type *type, struct sv sent)
{
    struct buf plain;
    struct sv body = {x->reply.data, x->reply.len};
    struct sv message = {NULL, 0};
    bool packed = true;
    struct err err = ERR_INIT;
    buf_init(&plain, 2 * BODY_MAX);
    if (type->protocol == RPC_GRPC_WEB_TEXT) {
        REQUIRE(rpc_decode_text(body, &plain));
        body = (struct sv){plain.data, plain.len};
    }
    REQUIRE(body.n >= 5 + sent.n);
    REQUIRE((type->protocol == RPC_GRPC) == (body.n == 5 + sent.n));
    REQUIRE(rpc_unframe((struct sv){body.p, 5 + sent.n}, BODY_MAX, &message, &packed, &err) ==
            RPC_FRAME_OK);
    REQUIRE(!packed && message.n == sent.n && memcmp(message.p, sent.p, sent.n) == 0);
    buf_done(&plain);
}

static void check_message(struct sv sent)
{
    static const char *const media[] = {"application/grpc", "application/grpc-web",
                                        "application/grpc-web-text"};
    for (size_t i = 0; i < 3; i++) {
        char head[128];
        char decoded[128];
        struct request r;
        const char *echo = NULL;
        int n =
            snprintf(head, sizeof(head), "POST /x HTTP/1.1\r\nContent-Type: %s\r\n\r\n", media[i]);
        REQUIRE(request_parse((struct sv){head, (size_t)n}, decoded, &r) == 0);
        const struct rpc_type *type = rpc_type_of(&r, &echo);
        REQUIRE(type != NULL && strcmp(echo, media[i]) == 0);
        struct exchange x = {.request = &r};
        buf_init(&x.headers, 4096);
        buf_init(&x.trailers, 4096);
        buf_init(&x.reply, 2 * BODY_MAX);
        buf_append(&x.reply, sent.p, sent.n);
        rpc_succeed(&x, type);
        check_reply(&x, type, sent);
        buf_clear(&x.headers);
        buf_clear(&x.reply);
        rpc_fail(type, 3, sent, &x.headers, &x.reply);
        REQUIRE(memchr(x.headers.data, '\0', x.headers.len) == NULL);
        buf_done(&x.headers);
        buf_done(&x.trailers);
        buf_done(&x.reply);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const checks[])(struct sv) = {check_body, check_text, check_timeout,
                                                check_message};
    if (size > 0 && size <= BODY_MAX) {
        /* a copy of its own, so that reading beyond its end is noticed */
        char *copy = malloc(size);
        REQUIRE(copy != NULL);
        memcpy(copy, data + 1, size - 1);
        checks[data[0] % 4]((struct sv){copy, size - 1});
        free(copy);
    }
    return 0;
}
