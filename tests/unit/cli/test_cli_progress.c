/* The progress of `profpull store`: the bar, its numbers, and sizes for people. */
#include "tests/unit/lib/testing.h"

#include "cli/store/progress.h"

TEST(bars_show_parts_and_numbers)
{
    static const struct {
        struct progress p;
        const char *want;
    } rows[] = {
        {{.files = 4, .bytes = 4096},
         "[........................]   0%  0 of 4 files, 0 B of 4.0 KiB"},
        {{.files = 4, .bytes = 4096, .files_done = 1, .bytes_done = 1024},
         "[######..................]  25%  1 of 4 files, 1.0 KiB of 4.0 KiB"},
        {{.files = 4, .bytes = 4096, .files_done = 4, .bytes_done = 4096},
         "[########################] 100%  4 of 4 files, 4.0 KiB of 4.0 KiB"},
        /* More has come than was announced. */
        {{.files = 1, .bytes = 10, .files_done = 1, .bytes_done = 20},
         "[########################] 100%  1 of 1 files, 20 B of 10 B"},
        {{.files = 3, .files_done = 1}, "[########................]  33%  1 of 3 files"},
        {{.files = 0}, "[########################] 100%  0 of 0 files"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(buf) got = testing_buf(512);
        progress_text(&rows[i].p, 200, &got);
        CHECK_STR(got.data, rows[i].want, rows[i].want);
    }
}

TEST(bars_fit_the_terminal)
{
    const struct progress p = {.files = 4, .bytes = 4096};
    SCOPED(buf) got = testing_buf(512);
    buf_puts(&got, "\r");
    progress_text(&p, 20, &got);
    assert_int_equal(got.len, 21);
}

TEST(sizes_for_people)
{
    static const struct {
        uint64_t bytes;
        const char *want;
    } rows[] = {{0, "0 B"},
                {1023, "1023 B"},
                {1024, "1.0 KiB"},
                {1536, "1.5 KiB"},
                {1048575, "1.0 MiB"},
                {UINT64_C(5) << 40, "5.0 TiB"},
                {UINT64_MAX, "16.0 EiB"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char got[PROGRESS_SIZE];
        progress_format_size(rows[i].bytes, got);
        CHECK_STR(got, rows[i].want, rows[i].want);
    }
}

/* --quiet shows nothing, and a bar that was never drawn needs no removal. */
TEST(quiet_is_quiet)
{
    struct progress p;
    progress_begin(&p, "checked", true, 3, 0);
    p.shown_ms = 0;
    progress_set(&p, 2, 0);
    assert_int_equal(p.files_done, 2);
    assert_int_equal(p.shown_ms, 0);
    assert_false(p.drawn);
}
