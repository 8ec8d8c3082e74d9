#include "write/grpc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "http/url.h"

/* The longest timeout that eight digits of milliseconds can say. */
#define TIMEOUT_MAX_MS 99999999

/* The codes of gRPC by number: their names in texts, and the status of HTTP as which each is
 * treated. */
static const struct {
    const char *says;
    long status;
} codes[] = {
    {"gRPC ok", 200},
    {"gRPC canceled", 499}, /* the server is going down */
    {"gRPC unknown", 500},
    {"gRPC invalid_argument", 400},
    {"gRPC deadline_exceeded", 504},
    {"gRPC not_found", 404},
    {"gRPC already_exists", 400},
    {"gRPC permission_denied", 403},
    {"gRPC resource_exhausted", 429},
    {"gRPC failed_precondition", 409},
    {"gRPC aborted", 409},
    {"gRPC out_of_range", 400},
    {"gRPC unimplemented", 404}, /* of a server that has no such method */
    {"gRPC internal", 500},
    {"gRPC unavailable", 503},
    {"gRPC data_loss", 500},
    {"gRPC unauthenticated", 401},
};
/* The code that stands for all unknown ones, by gRPC's rules. */
#define CODE_UNKNOWN 2

void grpc_put_frame(struct buf *out, uint32_t n)
{
    unsigned char head[GRPC_FRAME] = {0, (unsigned char)(n >> 24), (unsigned char)(n >> 16),
                                      (unsigned char)(n >> 8), (unsigned char)n};
    buf_append(out, head, sizeof(head));
}

void grpc_timeout(int64_t ms, char out[16])
{
    out[0] = '\0';
    if (ms > 0 && ms <= TIMEOUT_MAX_MS) {
        (void)snprintf(out, 16, "%" PRId64 "m", ms);
    }
}

/* ---- the end of an answer -------------------------------------------------------------------- */

void grpc_end_init(struct grpc_end *e)
{
    e->status[0] = '\0';
    buf_init(&e->message, ANSWER_BODY_MAX);
}

void grpc_end_done(struct grpc_end *e)
{
    buf_done(&e->message);
}

/* Decodes %XX; any other text is kept. */
static void decode(struct sv text, struct buf *out)
{
    while (text.n > 0) {
        int c = url_decode_byte(text);
        buf_putc(out, c >= 0 ? (char)c : text.p[0]);
        text = sv_skip(text, c >= 0 ? 3 : 1);
    }
}

void grpc_end_take(struct grpc_end *e, struct sv name, struct sv value)
{
    if (sv_eq_nocase(name, "grpc-status")) {
        (void)snprintf(e->status, sizeof(e->status), "%.*s", SV_ARG(value));
    } else if (sv_eq_nocase(name, "grpc-message")) {
        buf_clear(&e->message);
        decode(value, &e->message);
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Translates an answer without a gRPC status. By gRPC's rules, a stream that the server has ended
 * is an internal error: the server may refuse only this request, and others may pass. */
static void translate_end(struct answer_input *in)
{
    if (in->stream_ended) {
        in->status = 500;
        in->says = "the server has ended the request";
        in->grpc_message = sv_from(in->error);
    } else if (in->result != HTTP_DONE) {
        in->status = 0;
    }
}

void grpc_translate(struct answer_input *in)
{
    uint64_t code = CODE_UNKNOWN;
    if (in->status != 200 && in->status != 0) {
        return;
    }
    if (in->grpc_status.n == 0) {
        translate_end(in);
        return;
    }
    if (!parse_u64(in->grpc_status, sizeof(codes) / sizeof(codes[0]) - 1, &code)) {
        code = CODE_UNKNOWN;
    }
    in->status = codes[code].status;
    in->says = codes[code].says;
}

void grpc_read_refusal(const struct answer_input *in, struct reply *r)
{
    if (in->says != NULL) {
        r->message = sv_trim(in->grpc_message);
    }
}

bool grpc_accepts(const struct answer_input *in, const struct reply *r)
{
    (void)r;
    return in->status == 200 && in->says != NULL;
}

void grpc_classify(const struct answer_input *in, const struct reply *r, struct answer *a)
{
    (void)r;
    switch (in->status) {
    case 499:
        a->class = ANSWER_RETRY;
        a->scope = ANSWER_OF_ENDPOINT;
        break;
    case 409:
    case 500:
        answer_set_doubtful(a, ANSWER_TRIES);
        break;
    default:
        a->class = in->status >= 500 ? ANSWER_RETRY : ANSWER_REJECTED;
        break;
    }
}
