/* Lists of targets of file_sd and http_sd: valid ones, and the errors of others. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "config/target_file.h"

/* "address,address{name=value,name=value};..." or the error. */
static void parse(const char *text, struct buf *out)
{
    SCOPED(arena) *arena = arena_new(TARGET_FILE_ARENA_MAX);
    struct target_file file;
    struct err err = ERR_INIT;
    buf_clear(out);
    if (!target_file_parse(sv_from(text), arena, &file, &err)) {
        buf_puts(out, err.msg);
        return;
    }
    for (size_t i = 0; i < file.n; i++) {
        const struct config_static *g = &file.groups[i];
        for (size_t k = 0; k < g->targets.n; k++) {
            buf_printf(out, "%s,", g->targets.at[k]);
        }
        for (size_t k = 0; k < g->labels.n; k++) {
            buf_printf(out, "{%s=%s}", g->labels.at[k].name, g->labels.at[k].value);
        }
        buf_putc(out, ';');
    }
}

TEST(lists_are_read_or_refused)
{
    static const struct text_case rows[] = {
        {"- targets: [a:1, 'b:2']\n  labels: {x: y, n: 1}\n- targets: []\n",
         "a:1,b:2,{x=y}{n=1};;"},
        {"[]", ""},
        {"[{\"targets\":[\"[::1]:80\"],\"labels\":{\"__meta_x\":\"\\u00e9\"}}]",
         "[::1]:80,{__meta_x=\xc3\xa9};"},
        {"[{\"targets\":\t[\"a:1\"],\n\t\"labels\":{\"k\":\"a\\/b\"}}]", "a:1,{k=a/b};"},
        {"[{\"targets\":[\"a\"],\"labels\":{\"s\":\"\\ud83d\\ude00\"}}]",
         "a,{s=\xf0\x9f\x98\x80};"},
        {"\xef\xbb\xbf[{\"targets\":[\"a\"],\"labels\":{\"s\":\"\\ud83d\\ude00\"}}]",
         "a,{s=\xf0\x9f\x98\x80};"},
        {"\xef\xbb\xbf- targets: [a]\n- targets: [b]\n", "a,;b,;"},
        /* Environment variables are not expanded. */
        {"- targets: [a:1]\n  labels: {x: '${HOME}'}\n", "a:1,{x=${HOME}};"},
        {"", "1:1: expected a list, got nothing"},
        {"# nothing\n", "1:1: expected a list, got nothing"},
        {"null", "1:1: expected a list, got nothing"},
        {"targets: [a:1]\n", "1:1: expected a list, got a mapping"},
        {"- a:1\n", "1:3: [0]: expected a mapping, got a value"},
        {"- labels: {}\n", "1:3: [0]: missing required key \"targets\""},
        {"- targets: ['http://a/']\n",
         "1:13: [0].targets[0]: expected host:port without scheme and path (see scheme, "
         "path_prefix), got \"http://a/\""},
        {"- targets: [a:1]\n  label: {}\n",
         "2:3: [0].label: unknown key; did you mean \"labels\"?"},
        {"- targets: [a:1]\n  labels: {a: [b]}\n",
         "2:15: [0].labels.a: expected a string, got a list"},
        {"- targets: 1\n- targets: 2\n",
         "2 mistakes, the first one at: 1:12: [0].targets: expected a list, got a value"},
        {"- targets: [a:1]\n- targets: [b:", ""},
    };
    SCOPED(buf) out = testing_buf(4096);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        parse(rows[i].text, &out);
        if (i + 1 == sizeof(rows) / sizeof(rows[0])) {
            /* Half of a file is not a list. The message is libyaml's. */
            CHECK_CONTAINS(out.data, "3:1: ", rows[i].text);
            assert_null(strstr(out.data, ";"));
        } else {
            CHECK_STR(out.data, rows[i].want, rows[i].text);
        }
    }
}

TEST(too_large_lists_are_refused)
{
    static char text[CONFIG_FILE_MAX + 1];
    memset(text, ' ', sizeof(text));
    SCOPED(arena) *arena = arena_new(TARGET_FILE_ARENA_MAX);
    struct target_file file;
    struct err err = ERR_INIT;
    assert_false(target_file_parse((struct sv){text, sizeof(text)}, arena, &file, &err));
    CHECK_INT(err.kind, ERR_LIMIT, err.msg);
}

TEST(only_regular_files_are_read)
{
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    char path[4096];
    struct err err = ERR_INIT;
    SCOPED(buf) out = testing_buf(CONFIG_FILE_MAX + 1);
    testing_write_file(dir, "a.json", "[]");
    snprintf(path, sizeof(path), "%s/a.json", dir);
    assert_true(target_file_read(path, &out, &err));
    assert_true(target_file_read(path, &out, &err));
    CHECK_STR(out.data, "[]", "read twice");
    snprintf(path, sizeof(path), "%s/none.json", dir);
    assert_false(target_file_read(path, &out, &err));
    CHECK_CONTAINS(err.msg, "cannot open the file: No such file", "");
    assert_false(target_file_read(dir, &out, &err));
    CHECK_STR(err.msg, "is not a regular file", "a directory");
    /* Opening a pipe would wait for a writer. */
    snprintf(path, sizeof(path), "%s/pipe.json", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(target_file_read(path, &out, &err));
    CHECK_STR(err.msg, "is not a regular file", "a pipe");
}
