/* The borders of frames, in whatever pieces they arrive. */
#include "server/http2_frames.h"
#include "tests/unit/lib/testing.h"

/* Bytes before the first frame, then DATA with 5 bytes, SETTINGS without any, and an unknown type
 * whose length needs all three bytes. */
#define BEFORE 3
#define LONG 0x010203

static size_t make_input(char *out)
{
    static const char start[] = "PRI"
                                "\0\0\5\0\0\0\0\0\1hello"
                                "\0\0\0\4\0\0\0\0\0"
                                "\1\2\3\xff\0\0\0\0\0";
    memcpy(out, start, sizeof(start) - 1);
    memset(out + sizeof(start) - 1, 9, LONG);
    return sizeof(start) - 1 + LONG;
}

/* Takes the input in pieces and checks that each frame ends where it should. */
static void check_pieces(struct sv input, size_t piece)
{
    static const struct {
        uint8_t type;
        uint32_t length;
    } expected[] = {{0, 5}, {4, 0}, {0xff, LONG}};
    struct http2_frames f;
    size_t n = 0;
    size_t at = 0;
    size_t end = BEFORE;
    http2_frames_init(&f, BEFORE);
    while (at < input.n) {
        size_t here = input.n - at < piece ? input.n - at : piece;
        bool whole = true;
        size_t used = http2_frames_take(&f, (struct sv){input.p + at, here}, &whole);
        assert_true(used > 0 && used <= here);
        at += used;
        if (whole) {
            assert_true(n < 3);
            assert_int_equal(f.type, expected[n].type);
            assert_int_equal(f.length, expected[n].length);
            end += HTTP2_FRAME_HEAD + expected[n++].length;
            assert_int_equal(at, end);
        }
    }
    assert_int_equal(n, 3);
}

TEST(frames_end_where_they_say)
{
    static char input[LONG + 100];
    size_t n = make_input(input);
    for (size_t piece = 1; piece < 40; piece++) {
        check_pieces((struct sv){input, n}, piece);
    }
    check_pieces((struct sv){input, n}, n);
}

TEST(no_bytes_are_no_frame)
{
    struct http2_frames f;
    bool whole = true;
    http2_frames_init(&f, 0);
    assert_int_equal(http2_frames_take(&f, SV(""), &whole), 0);
    assert_false(whole);
}
