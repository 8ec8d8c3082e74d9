/* A request to a server: the end of its head is found in the same place however the bytes come, all
 * that was read lies within its memory, and a body is the same in whatever pieces it comes. */
#include <string.h>

#include "server/body.h"
#include "server/request.h"
#include "tests/fuzz/fuzz.h"

#define BODY_MAX 4096

static void must_be_within(struct sv v, const char *text, size_t n)
{
    REQUIRE(v.n == 0 || (v.p >= text && v.p + v.n <= text + n));
}

/* Byte by byte. */
static size_t length_in_pieces(struct sv data)
{
    size_t length = 0;
    for (size_t n = 1; n <= data.n && length == 0; n++) {
        length = request_head_length((struct sv){data.p, n}, n - 1);
    }
    return length;
}

static void check_headers(const struct request *r, const char *head, size_t n)
{
    struct sv rest = r->headers;
    struct sv name;
    struct sv value;
    while (request_next_header(&rest, &name, &value)) {
        must_be_within(name, head, n);
        must_be_within(value, head, n);
        REQUIRE(name.n > 0 && memchr(value.p, '\n', value.n) == NULL);
    }
    REQUIRE(!r->is_chunked || r->body_length == 0);
    REQUIRE(!r->is_http_10 || (!r->is_chunked && !r->keeps_alive && !r->awaits_continue));
    (void)request_header_lists(r, "Connection", "close");
}

/* Takes a body in pieces of at most so many bytes; *ret_used: how many belonged to it. */
static enum body_state take_body(struct body *b, struct sv data, size_t piece, size_t *ret_used)
{
    enum body_state state = BODY_MORE;
    *ret_used = 0;
    while (state == BODY_MORE && *ret_used < data.n) {
        struct sv part = {data.p + *ret_used, data.n - *ret_used};
        size_t used;
        part.n = part.n < piece ? part.n : piece;
        state = body_take(b, part, &used);
        REQUIRE(used <= part.n && (state != BODY_MORE || used == part.n));
        *ret_used += used;
    }
    return state;
}

static void check_body(const struct request *r, struct sv data)
{
    struct body whole;
    struct body pieces;
    size_t used;
    size_t used_in_pieces;
    body_init(&whole, r, BODY_MAX);
    body_init(&pieces, r, BODY_MAX);
    enum body_state state = take_body(&whole, data, SIZE_MAX, &used);
    REQUIRE(state == take_body(&pieces, data, 1, &used_in_pieces));
    REQUIRE(whole.content.len <= BODY_MAX);
    if (state == BODY_WHOLE) {
        REQUIRE(used == used_in_pieces && whole.content.len == pieces.content.len);
        REQUIRE(memcmp(whole.content.data, pieces.content.data, whole.content.len) == 0);
        REQUIRE(r->is_chunked || whole.content.len == r->body_length);
    }
    body_done(&whole);
    body_done(&pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *head = malloc(size + 1);
    char *decoded = malloc(size + 1);
    struct request r;
    REQUIRE(head != NULL && decoded != NULL);
    if (size > 0) {
        memcpy(head, data, size);
    }
    size_t length = request_head_length((struct sv){head, size}, 0);
    REQUIRE(length <= size);
    REQUIRE(length == length_in_pieces((struct sv){head, size}));
    size_t n = length == 0 ? size : length;
    if (request_parse((struct sv){head, n}, decoded, &r) == 0) {
        REQUIRE(r.path.n > 0 && r.n_params <= REQUEST_PARAMS_MAX);
        must_be_within(r.path, decoded, n);
        must_be_within(r.query, head, n);
        for (size_t i = 0; i < r.n_params; i++) {
            must_be_within(r.params[i].name, decoded, n);
            must_be_within(r.params[i].value, decoded, n);
        }
        REQUIRE(request_param(&r, "job").p == NULL || r.n_params > 0);
        check_headers(&r, head, n);
        check_body(&r, (struct sv){head + n, size - n});
    }
    free(decoded);
    free(head);
    return 0;
}
