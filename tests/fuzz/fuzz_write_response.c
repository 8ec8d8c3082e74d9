/* Answers of servers and of what stands before them. The first bytes choose protocol, status,
 * result and content type; the rest is the body. No input may crash the classification, and some
 * rules hold whatever the body says. */
#include <string.h>

#include "base/utf8.h"
#include "tests/fuzz/fuzz.h"
#include "write/answer.h"
#include "write/grpc.h"
#include "write/protocols/table.h"

static const long statuses[] = {0,   200, 204, 301, 400, 401, 404, 408, 409, 413,
                                415, 422, 429, 499, 500, 501, 502, 503, 504, 999};
static const char *const types[] = {"",
                                    "application/proto",
                                    "application/json",
                                    "text/html",
                                    "application/proto; charset=x",
                                    "application/x-protobuf"};

static const struct protocol *const protocols[] = {&protocol_push, &protocol_profefe,
                                                   &protocol_ingest, &protocol_otlp};

/* The first bit set: a protocol that came later than the corpus. */
static const struct protocol *protocol_of_byte(uint8_t b)
{
    return b >= 0xf0   ? &protocol_parca
           : b >= 0x80 ? &protocol_s3
                       : protocols[b % 2 == 0 ? 0 : b % 8 / 2];
}

/* The text as the fields of an answer of gRPC: a line each, "status" and "message" by turns. */
static void take_fields(struct grpc_end *e, const char *text)
{
    struct sv rest = sv_from(text);
    struct sv line;
    for (int i = 0; rest.n > 0; i++) {
        if (!sv_cut(rest, '\n', &line, &rest)) {
            line = rest;
            rest = SV("");
        }
        grpc_end_take(e, i % 2 == 0 ? SV("grpc-status") : SV("Grpc-Message"), line);
    }
}

static void check(const struct answer_input *in, const struct answer *a)
{
    size_t n = strlen(a->text);
    REQUIRE(a->class <= ANSWER_REJECTED);
    REQUIRE(a->scope <= ANSWER_OF_PROFILE);
    REQUIRE(a->answered == (a->status != 0));
    REQUIRE(a->status == in->status || in->protocol == &protocol_parca);
    REQUIRE(a->delay_ms >= 0 && a->delay_ms <= ANSWER_DELAY_MAX_MS);
    REQUIRE(a->class == ANSWER_SENT ? n == 0 || in->protocol == &protocol_otlp : n > 0);
    REQUIRE(a->class == ANSWER_SENT || a->refused == 0);
    REQUIRE((a->class == ANSWER_RETRY_DOUBTFUL) == (a->tries > 0));
    /* The end of a gRPC call says all, even if the head of its response was lost. */
    REQUIRE(a->class != ANSWER_SENT || (in->status >= 200 && in->status < 300) ||
            in->protocol == &protocol_parca);
    REQUIRE(utf8_valid((struct sv){.p = a->text, .n = n}));
    for (size_t i = 0; i < n; i++) {
        REQUIRE((unsigned char)a->text[i] >= 0x20 && a->text[i] != 0x7f);
    }
    if (in->protocol == &protocol_parca && in->status <= 200) {
        uint64_t code = 1;
        (void)parse_u64(in->grpc_status, 1, &code); /* "00" is a number, too */
        REQUIRE((a->class == ANSWER_SENT) == (code == 0 && in->status != 204 && !in->early));
        return;
    }
    if ((in->status == 502 || in->status == 503 || in->status == 504) &&
        in->protocol != &protocol_s3) {
        REQUIRE(a->class == ANSWER_RETRY && a->scope == ANSWER_OF_ENDPOINT);
    }
    if ((in->status == 400 || in->status == 413) && in->protocol != &protocol_s3) {
        REQUIRE(a->class == ANSWER_REJECTED);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4) {
        return 0;
    }
    char text[64];
    size_t n = size - 4 < sizeof(text) - 1 ? size - 4 : sizeof(text) - 1;
    memcpy(text, data + 4, n);
    text[n] = '\0';
    struct answer_input in = {
        .protocol = protocol_of_byte(data[0]),
        .retry_on_429 = data[0] % 4 < 2,
        .status = statuses[data[1] % (sizeof(statuses) / sizeof(statuses[0]))],
        .result = (enum http_result)(data[2] % (HTTP_ERR_MEMORY + 1)),
        .error = text,
        .content_type = data[3] % 8 < 6 ? types[data[3] % 8] : text,
        .location = text,
        .retry_after_ms = data[3] % 3 == 0 ? -1 : (int64_t)data[2] << (data[3] % 40),
        .body = {.p = (const char *)data + 4,
                 .n = size - 4 < ANSWER_BODY_MAX ? size - 4 : ANSWER_BODY_MAX},
        .wall_ns = INT64_C(1795230000000000000),
    };
    struct answer a;
    struct grpc_end end;
    grpc_end_init(&end);
    take_fields(&end, text);
    in.stream_ended = data[2] % 2 == 1 && in.result == HTTP_ERR_PROTOCOL;
    in.early = data[1] >= 128;
    in.grpc_status = sv_from(end.status);
    in.grpc_message = (struct sv){.p = end.message.data, .n = end.message.len};
    answer_classify(&in, &a);
    check(&in, &a);
    grpc_end_done(&end);
    return 0;
}
