/* Files and names that are kept on disk by build id. */
#include "tests/unit/lib/testing.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "symbols/depot.h"
#include "symbols/saved.h"

SCOPED_POINTER(symbol_depot, symbol_depot_free)
SCOPED_POINTER(symbol_names, symbol_names_free)
SCOPED_POINTER(symbol_table, symbol_table_unref)

#define ID_A "00112233445566778899aabbccddeeff00112233"
#define ID_B "ff112233445566778899aabbccddeeff00112233"

static const struct pprof_key key_a = {{1, 2}};
static const struct pprof_key key_b = {{3, 4}};

static void fill(struct symbol_table *t)
{
    const struct symbol_answer_frame frames[] = {{SV("inner"), SV("_Zinner"), SV("a.h"), 3, 5},
                                                 {SV("outer"), SV(""), SV("a.cc"), 0, 7}};
    assert_true(symbol_table_add(t, 5, frames, 2));
    assert_true(symbol_table_add(t, UINT64_MAX, frames + 1, 1));
}

static void check_filled(struct symbol_table *t)
{
    struct symbol_location l = {.n_lines = 0};
    struct symbol_question q = {.place = 5, .location = &l};
    symbol_table_find(t, &q, 1, 0, 1);
    assert_int_equal(l.n_lines, 2);
    CHECK_STR(l.lines[0].function->system_name.p, "_Zinner", "");
    CHECK_STR(l.lines[1].function->file.p, "a.cc", "");
    assert_int_equal(l.lines[0].line, 5);
    assert_int_equal(l.lines[0].function->start_line, 3);
}

TEST(a_table_is_the_same_when_it_is_read_again)
{
    SCOPED(symbol_names) *n = symbol_names_new(0);
    struct symbol_table *t = symbol_names_table(n, key_a);
    SCOPED(symbol_table) *again = symbol_names_table(n, key_b);
    struct err err = ERR_INIT;
    SCOPED(buf) bytes = testing_buf(1 << 20);
    fill(t);
    assert_true(symbol_saved_write(t, &bytes));
    assert_true(symbol_saved_read(again, (struct sv){bytes.data, bytes.len}, &err));
    check_filled(again);
    symbol_table_unref(t);
}

TEST(damaged_tables_are_refused)
{
    SCOPED(symbol_names) *n = symbol_names_new(0);
    SCOPED(symbol_table) *t = symbol_names_table(n, key_a);
    struct err err = ERR_INIT;
    SCOPED(buf) bytes = testing_buf(1 << 20);
    fill(t);
    assert_true(symbol_saved_write(t, &bytes));
    for (size_t i = 0; i < bytes.len; i++) {
        err_clear(&err);
        assert_false(symbol_saved_read(t, (struct sv){bytes.data, i}, &err));
        assert_int_equal(err.kind, ERR_INPUT);
        bytes.data[i] ^= 1;
        assert_false(symbol_saved_read(t, (struct sv){bytes.data, bytes.len}, NULL));
        bytes.data[i] ^= 1;
    }
}

TEST(build_ids_are_hex)
{
    static const struct {
        const char *text;
        const char *want; /* "": refused */
    } cases[] = {
        {ID_A, ID_A},
        {"00112233445566778899AABBCCDDEEFF", "00112233445566778899aabbccddeeff"},
        {"abc/def/ghi/jklmnopqrstuvwxyz01", ""},
        {"../../../../etc/passwd0", ""},
        {"0011", ""},
        {"00112233445566778", ""},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char id[SYMBOL_BUILD_ID_MAX + 1] = "";
        bool ok = symbol_build_id(sv_from(cases[i].text), id);
        CHECK_STR(ok ? id : "", cases[i].want, cases[i].text);
    }
}

static void put_file(struct symbol_depot *d, const char *id, const char *text, bool keep)
{
    struct err err = ERR_INIT;
    int fd = symbol_depot_create(d, id, &err);
    CHECK_STR(err.msg, "", id);
    assert_true(write_all(fd, text, strlen(text)));
    assert_true(symbol_depot_finish(d, id, fd, keep, &err));
}

TEST(files_are_there_once_they_are_complete)
{
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    char path[512];
    snprintf(path, sizeof(path), "%s/new/cache", dir);
    SCOPED(symbol_depot) *d = symbol_depot_new(path, 1 << 20);
    assert_int_equal(symbol_depot_open(d, ID_A), -1);
    put_file(d, ID_A, "half", false);
    assert_int_equal(symbol_depot_open(d, ID_A), -1);
    put_file(d, ID_A, "whole", true);
    int fd = symbol_depot_open(d, ID_A);
    assert_true(fd >= 0);
    close(fd);
}

TEST(the_least_used_files_are_removed)
{
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    SCOPED(symbol_depot) *d = symbol_depot_new(dir, 4096);
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    put_file(d, ID_A, "a", true);
    put_file(d, ID_B, "b", true);
    testing_write_file(dir, "somebody's", "text");
    int fd = symbol_depot_open(d, ID_A);
    assert_int_equal(futimens(fd, old), 0);
    close(fd);
    assert_true(symbol_depot_trim(d) <= 4096);
    assert_int_equal(symbol_depot_open(d, ID_A), -1);
    fd = symbol_depot_open(d, ID_B);
    assert_true(fd >= 0);
    close(fd);
    char path[512];
    snprintf(path, sizeof(path), "%s/somebody's", dir);
    assert_int_equal(access(path, F_OK), 0); /* files of others stay */
}

TEST(names_are_saved_and_damaged_ones_are_removed)
{
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    SCOPED(symbol_names) *n = symbol_names_new(0);
    struct symbol_table *t = symbol_names_table(n, key_a);
    SCOPED(symbol_table) *again = symbol_names_table(n, key_b);
    struct symbol_depot *d = symbol_depot_new(dir, 1 << 20);
    struct err err = ERR_INIT;
    fill(t);
    assert_false(symbol_depot_load(d, ID_A, again, &err));
    assert_int_equal(err.kind, ERR_NONE);
    assert_true(symbol_depot_save(d, ID_A, t, &err));
    assert_true(symbol_depot_load(d, ID_A, again, &err));
    check_filled(again);
    testing_write_file(dir, ID_A ".names1", "nonsense");
    assert_false(symbol_depot_load(d, ID_A, again, &err));
    CHECK_CONTAINS(err.msg, "another format", "");
    err_clear(&err);
    assert_false(symbol_depot_load(d, ID_A, again, &err));
    assert_int_equal(err.kind, ERR_NONE); /* it is gone */
    symbol_depot_free(d);
    symbol_table_unref(t);
}

TEST(directories_have_the_layout_of_gdb)
{
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    char path[512];
    snprintf(path, sizeof(path), "%s/.build-id/00", dir);
    assert_true(make_directories(path, 0700, NULL));
    assert_int_equal(symbol_directory_open(dir, ID_A), -1);
    testing_write_file(path, "112233445566778899aabbccddeeff00112233", "program");
    int fd = symbol_directory_open(dir, ID_A);
    assert_true(fd >= 0);
    close(fd);
    testing_write_file(path, "112233445566778899aabbccddeeff00112233.debug", "debug file");
    fd = symbol_directory_open(dir, ID_A);
    char text[16] = "";
    assert_true(read(fd, text, sizeof(text) - 1) > 0);
    CHECK_STR(text, "debug file", "");
    close(fd);
}
