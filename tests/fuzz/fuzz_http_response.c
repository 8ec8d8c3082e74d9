/* The framing of HTTP/1 responses. Input: a byte (bit 0: the request was HEAD; the rest: where the
 * bytes are cut), and what the server sends. In pieces it is read as it is in one. */
#include <string.h>

#include "http/response_reader.h"
#include "tests/fuzz/fuzz.h"

#define LINE_MAX_BYTES 256

/* The result of reading: lines with their ends, the body, and the last event. */
struct reading {
    struct response_reader reader;
    struct buf text;
    enum response_event last;
    bool may_end;
    bool keeps;
};

/* False once nothing more can be read. */
static bool take(struct reading *g, struct sv in)
{
    struct sv piece;
    for (;;) {
        size_t before = in.n;
        g->last = response_reader_next(&g->reader, &in, &piece);
        REQUIRE(in.n <= before && piece.n <= before + LINE_MAX_BYTES + 1);
        if (g->last == RESPONSE_BODY) {
            REQUIRE(piece.n > 0);
        } else if (g->last == RESPONSE_LINE) {
            REQUIRE(piece.n <= LINE_MAX_BYTES && memchr(piece.p, '\n', piece.n) == NULL);
        } else {
            REQUIRE(g->last != RESPONSE_MORE || in.n == 0);
            REQUIRE(g->last != RESPONSE_BAD || g->reader.error != NULL);
            return g->last == RESPONSE_MORE;
        }
        REQUIRE(buf_append(&g->text, piece.p, piece.n));
        REQUIRE(g->last == RESPONSE_BODY || buf_putc(&g->text, '\n'));
    }
}

static void read_all(struct reading *g, struct sv all, size_t step, bool to_head)
{
    response_reader_init(&g->reader, LINE_MAX_BYTES, to_head);
    buf_init(&g->text, 2 * all.n + 16);
    bool more = true;
    for (size_t i = 0; more && i < all.n; i += step) {
        more = take(g, (struct sv){all.p + i, step < all.n - i ? step : all.n - i});
    }
    g->may_end = response_reader_may_end(&g->reader);
    g->keeps = response_reader_keeps(&g->reader);
    response_reader_done(&g->reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reading whole = {0}, pieces = {0};
    if (size < 2) {
        return 0;
    }
    struct sv all = {(const char *)data + 1, size - 1};
    read_all(&whole, all, all.n, data[0] & 1);
    read_all(&pieces, all, (size_t)(data[0] >> 1) + 1, data[0] & 1);
    REQUIRE(whole.last == pieces.last && whole.may_end == pieces.may_end &&
            whole.keeps == pieces.keeps);
    REQUIRE(
        whole.text.len == pieces.text.len &&
        (whole.text.len == 0 || memcmp(whole.text.data, pieces.text.data, whole.text.len) == 0));
    buf_done(&whole.text);
    buf_done(&pieces.text);
    return 0;
}
