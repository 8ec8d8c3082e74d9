/* The manual page and the completions that are written from the tables of commands. */
#include "tests/unit/lib/testing.h"

#include <string.h>

#include "cli/cmd.h"
#include "cli/manual.h"

#define TEXT_MAX ((size_t)1024 * 1024)

static void make_text(struct buf *out, bool (*make)(struct buf *))
{
    buf_init(out, TEXT_MAX);
    assert_true(make(out));
}

/* Writes a word as roff does: hyphens as "\-". */
static void roff_word(const char *word, char *out, size_t size)
{
    size_t n = 0;
    for (; *word != '\0' && n + 3 < size; word++) {
        if (*word == '-') {
            out[n++] = '\\';
        }
        out[n++] = *word;
    }
    out[n] = '\0';
}

TEST(test_page_has_every_flag)
{
    SCOPED(buf) page;
    const struct command *c;
    const struct flag *f;
    make_text(&page, manual_page);
    for (size_t i = 0; (c = command_at(i)) != NULL; i++) {
        char title[64];
        char name[32];
        roff_word(c->name, name, sizeof(name));
        snprintf(title, sizeof(title), "\n.SS profpull %s\n", name);
        const char *section = strstr(page.data, title);
        assert_non_null(section);
        const char *end = strstr(section + 1, "\n.S");
        for (size_t k = 0; (f = command_flag(c, k)) != NULL; k++) {
            char word[128];
            char option[160];
            roff_word(f->name, word, sizeof(word));
            snprintf(option, sizeof(option), "\\-\\-%s\\fR", word);
            const char *found = strstr(section, option);
            assert_non_null(found);
            assert_true(found < end);
        }
    }
}

/* A line that begins with a dot and is no request would vanish from the page. */
TEST(test_page_has_only_known_requests)
{
    static const char *const requests[] = {".TH", ".SH", ".SS", ".PP", ".TP"};
    SCOPED(buf) page;
    make_text(&page, manual_page);
    for (const char *line = page.data; *line != '\0';) {
        size_t n = strcspn(line, "\n");
        if (line[0] == '.') {
            assert_true(sv_in((struct sv){line, n < 3 ? n : 3}, requests, 5));
        }
        assert_true(line[0] != '\'');
        line += n + (line[n] == '\n');
    }
}

TEST(test_completions_have_every_flag)
{
    const struct command *c;
    const struct flag *f;
    size_t n = 0;
    for (const char *shell; (shell = completion_shell(n)) != NULL; n++) {
        SCOPED(buf) script = testing_buf(TEXT_MAX);
        assert_true(completion_script(shell, &script));
        for (size_t i = 0; (c = command_at(i)) != NULL; i++) {
            assert_non_null(strstr(script.data, c->name));
            for (size_t k = 0; (f = command_flag(c, k)) != NULL; k++) {
                char option[96];
                snprintf(option, sizeof(option), strcmp(shell, "fish") == 0 ? "-l %s " : "--%s",
                         f->name);
                assert_non_null(strstr(script.data, option));
            }
        }
    }
    assert_int_equal(n, 3);
}

TEST(completions_have_subjects_and_names_of_types)
{
    static const char *const parts[] = {"services types top flame diff peek changes merge",
                                        "list verify", "debug info warn error",
                                        "cpu process_cpu heap"};
    for (size_t i = 0; completion_shell(i) != NULL; i++) {
        SCOPED(buf) script = testing_buf(TEXT_MAX);
        assert_true(completion_script(completion_shell(i), &script));
        for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++) {
            CHECK_CONTAINS(script.data, parts[k], completion_shell(i));
        }
    }
}

TEST(test_ceiling_is_reported)
{
    SCOPED(buf) text = testing_buf(100);
    assert_false(manual_page(&text));
    buf_clear(&text);
    assert_false(completion_script("bash", &text));
}
