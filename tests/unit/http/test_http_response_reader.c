/* The framing of responses: each case is read in one piece and byte by byte. */
#include "tests/unit/lib/testing.h"

#include "http/response_reader.h"

#define LINE_MAX_BYTES 64
#define OK "HTTP/1.1 200 OK\r\n"
#define CHUNKED OK "Transfer-Encoding: chunked\r\n\r\n"

/* The result of reading: lines in brackets, the body as it is, how it ended. */
struct reading {
    char text[512];
    size_t len;
    struct response_reader reader;
};

static void put(struct reading *g, const char *before, struct sv v, const char *after)
{
    int n =
        snprintf(g->text + g->len, sizeof(g->text) - g->len, "%s%.*s%s", before, SV_ARG(v), after);
    assert_true(n >= 0 && (size_t)n < sizeof(g->text) - g->len);
    g->len += (size_t)n;
}

/* Returns false at the end of what can be read. */
static bool take(struct reading *g, struct sv *in)
{
    struct sv piece;
    for (;;) {
        switch (response_reader_next(&g->reader, in, &piece)) {
        case RESPONSE_MORE:
            assert_int_equal(in->n, 0);
            return true;
        case RESPONSE_LINE:
            put(g, "[", piece, "]");
            break;
        case RESPONSE_BODY:
            assert_true(piece.n > 0);
            put(g, "", piece, "");
            break;
        case RESPONSE_END:
            put(g, response_reader_keeps(&g->reader) ? " keeps" : " closes", SV(""), "");
            return false;
        case RESPONSE_BAD:
            put(g, " bad: ", sv_from(g->reader.error), "");
            return false;
        case RESPONSE_LONG_LINE:
            put(g, " long line", SV(""), "");
            return false;
        case RESPONSE_NO_MEMORY:
            fail_msg("out of memory");
        }
    }
}

static void read_all(struct reading *g, const char *text, size_t step, bool to_head)
{
    struct sv all = sv_from(text);
    bool more = true;
    *g = (struct reading){0};
    response_reader_init(&g->reader, LINE_MAX_BYTES, to_head);
    for (size_t i = 0; more && i < all.n; i += step) {
        struct sv in = {all.p + i, step < all.n - i ? step : all.n - i};
        more = take(g, &in);
    }
    if (more) {
        put(g, response_reader_may_end(&g->reader) ? " may end" : " cut", SV(""), "");
    }
    response_reader_done(&g->reader);
}

struct row {
    const char *in;
    const char *want;
    bool to_head;
};

static void check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t step = 1; step < 4096; step = step < 8 ? step + 1 : 4096) {
            struct reading g;
            read_all(&g, rows[i].in, step, rows[i].to_head);
            CHECK_STR(g.text, rows[i].want, rows[i].in);
        }
        struct reading g;
        read_all(&g, rows[i].in, 4096, rows[i].to_head);
        CHECK_STR(g.text, rows[i].want, rows[i].in);
    }
}
#define CHECK_ROWS(rows) check_rows((rows), sizeof(rows) / sizeof((rows)[0]))

TEST(test_whole_responses)
{
    static const struct row rows[] = {
        {.in = OK "Content-Length: 3\r\n\r\nabc",
         .want = "[HTTP/1.1 200 OK][Content-Length: 3][]abc keeps"},
        {.in = "HTTP/1.1 200\nContent-Length:3\n\nabc",
         .want = "[HTTP/1.1 200][Content-Length:3][]abc keeps"},
        {.in = OK "content-length: 0\r\n\r\n",
         .want = "[HTTP/1.1 200 OK][content-length: 0][] keeps"},
        {.in = OK "Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
         .want = "[HTTP/1.1 200 OK][Content-Length: 1][Content-Length: 1][]a keeps"},
        {.in = CHUNKED "2\r\nab\r\n1;x=\"y\"\r\nc\r\n0\r\n\r\n",
         .want = "[HTTP/1.1 200 OK][Transfer-Encoding: chunked][]abc[] keeps"},
        {.in = CHUNKED "0002 \r\nab\n00\r\nX-T: 1\r\n\r\n",
         .want = "[HTTP/1.1 200 OK][Transfer-Encoding: chunked][]ab[X-T: 1][] keeps"},
        {.in = "HTTP/1.1 204 No Content\r\n\r\n", .want = "[HTTP/1.1 204 No Content][] keeps"},
        {.in = "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
         .want = "[HTTP/1.1 304 Not Modified][Content-Length: 9][] keeps"},
        {.in = OK "Content-Length: 9\r\n\r\n",
         .want = "[HTTP/1.1 200 OK][Content-Length: 9][] keeps",
         .to_head = true},
        {.in = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nContent-Length: 5\r\n\r\n" OK
               "Content-Length: 1\r\n\r\na",
         .want = "[HTTP/1.1 100 Continue][][HTTP/1.1 103 Early][Content-Length: 5][]"
                 "[HTTP/1.1 200 OK][Content-Length: 1][]a keeps"},
    };
    CHECK_ROWS(rows);
}

TEST(test_connections)
{
    static const struct row rows[] = {
        {.in = OK "Connection: Close\r\nContent-Length: 1\r\n\r\na",
         .want = "[HTTP/1.1 200 OK][Connection: Close][Content-Length: 1][]a closes"},
        {.in = OK "Connection: x, close\r\nContent-Length: 1\r\n\r\na",
         .want = "[HTTP/1.1 200 OK][Connection: x, close][Content-Length: 1][]a closes"},
        {.in = "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
         .want = "[HTTP/1.0 200 OK][Content-Length: 1][]a closes"},
        {.in = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na",
         .want = "[HTTP/1.0 200 OK][Connection: keep-alive][Content-Length: 1][]a keeps"},
        {.in = OK "\r\nabc", .want = "[HTTP/1.1 200 OK][]abc may end"},
        {.in = OK "Content-Length: 18446744073709551616\r\n\r\nab",
         .want = "[HTTP/1.1 200 OK][Content-Length: 18446744073709551616][]ab may end"},
        {.in = OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
         .want = "[HTTP/1.1 200 OK][Content-Length: 5][Transfer-Encoding: chunked][]a[] closes"},
    };
    CHECK_ROWS(rows);
}

TEST(test_cut_responses)
{
    static const struct row rows[] = {
        {.in = "HTT", .want = " cut"},
        {.in = OK "Content-Le", .want = "[HTTP/1.1 200 OK] cut"},
        {.in = OK "Content-Length: 3\r\n\r\nab",
         .want = "[HTTP/1.1 200 OK][Content-Length: 3][]ab cut"},
        {.in = CHUNKED "3\r\nab", .want = "[HTTP/1.1 200 OK][Transfer-Encoding: chunked][]ab cut"},
        {.in = CHUNKED "1\r\na\r\n",
         .want = "[HTTP/1.1 200 OK][Transfer-Encoding: chunked][]a cut"},
        {.in = CHUNKED "0\r\n", .want = "[HTTP/1.1 200 OK][Transfer-Encoding: chunked][] cut"},
    };
    CHECK_ROWS(rows);
}

TEST(test_bad_responses)
{
#define NO_LINE " bad: a line that is not a status line"
#define NO_STATUS " bad: a status that is not a number of three digits"
#define NO_NAME "[HTTP/1.1 200 OK] bad: a header line without a name"
#define NO_SIZE "[HTTP/1.1 200 OK][Transfer-Encoding: chunked][]"
    static const struct row rows[] = {
        {.in = "hello\r\n", .want = NO_LINE},
        {.in = "\r\n", .want = NO_LINE},
        {.in = "HTTP/2 200\r\n", .want = " bad: a version other than HTTP/1"},
        {.in = "HTTP/1.1 20\r\n", .want = " bad: a version other than HTTP/1"},
        {.in = "HTTP/1.1 2x0 OK\r\n", .want = NO_STATUS},
        {.in = "HTTP/1.1 2000 OK\r\n", .want = NO_STATUS},
        {.in = "HTTP/1.1 099 OK\r\n", .want = NO_STATUS},
        {.in = "HTTP/1.1 101 Switching\r\n",
         .want = " bad: a change of protocol that was not requested"},
        {.in = OK "no colon\r\n", .want = NO_NAME},
        {.in = OK ": x\r\n", .want = NO_NAME},
        {.in = OK "Content-Length : 3\r\n", .want = NO_NAME},
        {.in = OK "X: 1\r\n folded\r\n",
         .want = "[HTTP/1.1 200 OK][X: 1] bad: a header line without a name"},
        {.in = OK "Content-Length: -1\r\n",
         .want = "[HTTP/1.1 200 OK] bad: a Content-Length that is not a number"},
        {.in = OK "Content-Length: 1, 1\r\n",
         .want = "[HTTP/1.1 200 OK] bad: a Content-Length that is not a number"},
        {.in = OK "Content-Length: 1\r\nContent-Length: 2\r\n",
         .want = "[HTTP/1.1 200 OK][Content-Length: 1] bad: two different lengths"},
        {.in = OK "Transfer-Encoding: gzip, chunked\r\n",
         .want = "[HTTP/1.1 200 OK] bad: a transfer coding other than chunked"},
        {.in = CHUNKED "x", .want = NO_SIZE " bad: a chunk without its size"},
        {.in = CHUNKED "\r\n", .want = NO_SIZE " bad: a chunk without its size"},
        {.in = CHUNKED "ffffffffffffffffff\r\n", .want = NO_SIZE " bad: a chunk without its size"},
        {.in = CHUNKED "1\r\nabc", .want = NO_SIZE "a bad: a chunk without its size"},
        {.in = OK "X: 3456789012345678901234567890123456789012345678901234567890123456\r\n",
         .want = "[HTTP/1.1 200 OK] long line"},
        {.in = "HTTP/1.1 200 5678901234567890123456789012345678901234567890123456", .want = " cut"},
    };
    CHECK_ROWS(rows);
}

TEST(test_zero_byte)
{
    static const char text[] = OK "X: a\0b\r\n\r\n";
    struct sv in = {text, sizeof(text) - 1};
    struct reading g = {0};
    response_reader_init(&g.reader, LINE_MAX_BYTES, false);
    assert_false(take(&g, &in));
    CHECK_STR(g.text, "[HTTP/1.1 200 OK] bad: a header with a zero byte", "");
    response_reader_done(&g.reader);
}

/* Bytes after the end belong to the next response, or to none. */
TEST(test_bytes_after_the_end)
{
    struct sv in = SV(OK "Content-Length: 1\r\n\r\nabc");
    struct reading g = {0};
    response_reader_init(&g.reader, LINE_MAX_BYTES, false);
    assert_false(take(&g, &in));
    CHECK_INT(in.n, 2, "");
    response_reader_done(&g.reader);
}
