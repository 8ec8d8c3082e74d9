/* Answers of the child: what is written is what is read, and whatever else comes is refused. */
#include "symbols/answer.h"

#include <stdlib.h>

#include "tests/unit/lib/testing.h"

static void write_answer(struct answer_head *ret_head, struct buf *out)
{
    struct answer_writer w;
    answer_writer_init(&w);
    answer_add_frame(&w, &(struct symbol_frame){"add", "_Z3addii", "a.cc", 3, 2});
    answer_add_frame(&w, &(struct symbol_frame){"main", "main", "a.cc", 9, 8});
    answer_end_address(&w);
    answer_end_address(&w);
    answer_add_frame(&w, &(struct symbol_frame){"x", "x", "", 0, 0});
    answer_end_address(&w);
    buf_init(out, ANSWER_MAX);
    assert_true(answer_finish(&w, ret_head, out));
    answer_writer_done(&w);
}

/* Decodes a copy of the payload. */
static bool decode(const struct answer_head *head, const struct buf *payload,
                   struct symbol_frames *ret, struct err *err)
{
    char *copy = testing_memory(payload->len);
    memcpy(copy, payload->data, payload->len);
    return answer_decode(head, copy, ret, err);
}

TEST(frames_of_each_address_come_back)
{
    struct answer_head head;
    SCOPED(buf) payload;
    struct symbol_frames frames;
    struct err err = ERR_INIT;
    size_t n;
    write_answer(&head, &payload);
    CHECK_INT(answer_payload_size(&head, 3, &err), payload.len, "");
    assert_true(decode(&head, &payload, &frames, &err));
    CHECK_INT(frames.n, 3, "");
    const struct symbol_frame *f = symbol_frames_of(&frames, 0, &n);
    CHECK_INT(n, 2, "inlined");
    CHECK_STR(f[0].function, "add", "");
    CHECK_STR(f[0].system_name, "_Z3addii", "");
    CHECK_STR(f[0].file, "a.cc", "");
    CHECK_INT(f[0].line, 3, "");
    CHECK_INT(f[0].start_line, 2, "");
    CHECK_STR(f[1].function, "main", "");
    symbol_frames_of(&frames, 1, &n);
    CHECK_INT(n, 0, "unknown");
    f = symbol_frames_of(&frames, 2, &n);
    CHECK_INT(n, 1, "no file");
    CHECK_STR(f->file, "", "");
    symbol_frames_free(&frames);
    CHECK_INT(frames.n, 0, "freed");
}

TEST(strings_are_kept_once)
{
    struct answer_head head;
    SCOPED(buf) payload;
    write_answer(&head, &payload);
    CHECK_INT(head.strings,
              sizeof("add") + sizeof("_Z3addii") + sizeof("a.cc") + sizeof("main") + sizeof("x") +
                  sizeof(""),
              "");
}

TEST(bad_bytes_in_names_become_question_marks)
{
    struct answer_writer w;
    struct answer_head head;
    struct symbol_frames frames;
    struct err err = ERR_INIT;
    size_t n;
    answer_writer_init(&w);
    answer_add_frame(&w, &(struct symbol_frame){"a\nb", "\xff\xc3\xa9", "f\x7f", -1, -1});
    answer_end_address(&w);
    SCOPED(buf) payload = testing_buf(ANSWER_MAX);
    assert_true(answer_finish(&w, &head, &payload));
    answer_writer_done(&w);
    assert_true(decode(&head, &payload, &frames, &err));
    const struct symbol_frame *f = symbol_frames_of(&frames, 0, &n);
    CHECK_STR(f->function, "a?b", "");
    CHECK_STR(f->system_name, "?\xc3\xa9", "");
    CHECK_STR(f->file, "f?", "");
    CHECK_INT(f->line, 0, "negative");
    CHECK_INT(f->start_line, 0, "negative");
    symbol_frames_free(&frames);
}

TEST(long_names_are_cut)
{
    struct answer_writer w;
    struct answer_head head;
    struct symbol_frames frames;
    size_t n;
    SCOPED_MEMORY char *name = testing_memory(2 * ANSWER_NAME_MAX + 1);
    memset(name, 'a', 2 * ANSWER_NAME_MAX);
    name[2 * ANSWER_NAME_MAX] = '\0';
    answer_writer_init(&w);
    answer_add_frame(&w, &(struct symbol_frame){name, "a", "", 0, 0});
    answer_end_address(&w);
    SCOPED(buf) payload = testing_buf(ANSWER_MAX);
    assert_true(answer_finish(&w, &head, &payload));
    assert_true(decode(&head, &payload, &frames, NULL));
    CHECK_INT(strlen(symbol_frames_of(&frames, 0, &n)->function), ANSWER_NAME_MAX, "");
    symbol_frames_free(&frames);
    answer_writer_done(&w);
}

TEST(heads_that_fit_no_question_are_refused)
{
    static const struct {
        struct answer_head head;
        const char *error;
    } rows[] = {
        {{.magic = 1}, "got the number 00000001"},
        {{.magic = ANSWER_MAGIC, .failure = SYMBOLS_FAILURES}, "expected an answer"},
        {{.magic = ANSWER_MAGIC, .addresses = 2, .strings = 1}, "for 3 addresses, got one for 2"},
        {{.magic = ANSWER_MAGIC, .failure = SYMBOLS_UNREADABLE}, "for 3 addresses"},
        {{.magic = ANSWER_MAGIC, .failure = SYMBOLS_MEMORY, .frames = 1, .strings = 1}, "expected"},
        {{.magic = ANSWER_MAGIC, .addresses = 3, .frames = UINT32_MAX}, "got one of 137438953452"},
        {{.magic = ANSWER_MAGIC, .addresses = 3, .strings = UINT32_MAX}, "got one of 4294967307"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = ERR_INIT;
        CHECK_INT(answer_payload_size(&rows[i].head, 3, &err), 0, rows[i].error);
        CHECK_CONTAINS(err.msg, rows[i].error, "");
    }
}

/* Sets four bytes of the payload. */
static void set(struct buf *payload, size_t at, uint32_t value)
{
    memcpy(payload->data + at, &value, sizeof(value));
}

TEST(payloads_that_are_not_sound_are_refused)
{
    const size_t ends = 3 * sizeof(struct answer_frame);
    const struct {
        size_t at;
        uint32_t value;
        const char *error;
    } rows[] = {
        {0, 1000, "frame 0: a string starts after"},
        {sizeof(struct answer_frame) + 4, UINT32_MAX, "frame 1: a string starts after"},
        {0, 3, "frame 0: expected a name, got none"},
        {ends, 4, "address 0: expected a frame of 0 to 3, got 4"},
        {ends + 4, 1, "address 1: expected a frame of 2 to 3, got 1"},
        {ends + 8, 2, "1 frames belong to no address"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct answer_head head;
        SCOPED(buf) payload;
        struct symbol_frames frames;
        struct err err = ERR_INIT;
        write_answer(&head, &payload);
        set(&payload, rows[i].at, rows[i].value);
        assert_false(decode(&head, &payload, &frames, &err));
        CHECK_CONTAINS(err.msg, rows[i].error, "");
    }
}
