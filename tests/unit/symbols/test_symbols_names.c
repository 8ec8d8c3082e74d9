/* Tables of known names, and processes that are recognised. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "symbols/names.h"
#include "symbols/process.h"

SCOPED_POINTER(symbol_names, symbol_names_free)
SCOPED_POINTER(symbol_table, symbol_table_unref)

#define NOW 1000
#define AGAIN 60

static const struct pprof_key key_a = {{1, 2}};
static const struct pprof_key key_b = {{3, 4}};

static struct symbol_location find(struct symbol_table *t, uint64_t place, int64_t now, bool ask)
{
    struct symbol_location l = {.address = place};
    struct symbol_question q = {.place = place, .location = &l};
    symbol_table_find(t, &q, 1, now, AGAIN);
    CHECK_INT(q.ask, ask, "asks");
    assert_true(q.pending || !q.ask);
    return l;
}

TEST(names_are_found_and_asked_for_once)
{
    const struct symbol_answer_frame frames[] = {{SV("inner"), SV("_Zinner"), SV("a.h"), 3, 5},
                                                 {SV("outer"), SV(""), SV("a.cc"), 0, 7}};
    SCOPED(symbol_names) *n = symbol_names_new(0);
    SCOPED(symbol_table) *t = symbol_names_table(n, key_a);
    find(t, 5, NOW, true);
    find(t, 5, NOW + AGAIN - 1, false); /* it was asked for */
    find(t, 5, NOW + AGAIN, true);
    assert_true(symbol_table_add(t, 5, frames, 2));
    assert_true(symbol_table_add(t, 6, frames, 1));
    struct symbol_location l = find(t, 5, NOW, false);
    assert_int_equal(l.n_lines, 2);
    assert_int_equal(l.known, symbol_lines_known(l.lines, 2));
    assert_int_not_equal(l.known, 0);
    CHECK_STR(l.lines[0].function->system_name.p, "_Zinner", "");
    CHECK_STR(l.lines[1].function->name.p, "outer", "");
    assert_int_equal(l.lines[1].line, 7);
    assert_int_equal(l.lines[0].function->start_line, 3);
    /* equal functions are one */
    assert_ptr_equal(find(t, 6, NOW, false).lines[0].function, l.lines[0].function);
    symbol_table_unknown(t, 7, NOW + 500);
    find(t, 7, NOW + 499, false);
    find(t, 7, NOW + 500, true);
    symbol_table_unknown(t, 5, NOW + 500); /* a known name stays */
    assert_int_equal(find(t, 5, NOW, false).n_lines, 2);
}

TEST(a_table_is_nameless_until_an_answer_comes)
{
    const struct symbol_answer_frame f = {SV("f"), SV(""), SV(""), 0, 3};
    SCOPED(symbol_names) *n = symbol_names_new(0);
    SCOPED(symbol_table) *t = symbol_names_table(n, key_a);
    assert_false(symbol_table_is_nameless(t)); /* nobody has asked */
    find(t, 5, NOW, true);
    assert_true(symbol_table_is_nameless(t));
    symbol_table_unknown(t, 5, NOW + AGAIN);
    assert_true(symbol_table_is_nameless(t));
    assert_true(symbol_table_add(t, 6, &f, 1));
    assert_false(symbol_table_is_nameless(t));
}

TEST(an_address_is_pending_until_an_answer_comes)
{
    const struct symbol_answer_frame f = {SV("f"), SV(""), SV(""), 0, 3};
    SCOPED(symbol_names) *n = symbol_names_new(0);
    SCOPED(symbol_table) *t = symbol_names_table(n, key_a);
    struct symbol_location l = {.address = 1};
    struct symbol_question q[2] = {{.place = 1, .location = &l}, {.place = 2, .location = &l}};
    symbol_table_find(t, q, 2, NOW, AGAIN);
    symbol_table_find(t, q, 2, NOW, AGAIN);
    assert_true(q[0].pending && q[1].pending && !q[0].ask && !q[1].ask);
    assert_true(symbol_table_add(t, 1, &f, 1));
    symbol_table_unknown(t, 2, NOW + 500);
    symbol_table_find(t, q, 2, NOW, AGAIN);
    assert_true(!q[0].pending && !q[1].pending);
}

TEST(tables_have_keys)
{
    SCOPED(symbol_names) *n = symbol_names_new(0);
    struct symbol_table *a = symbol_names_table(n, key_a);
    struct symbol_table *b = symbol_names_table(n, key_b);
    struct symbol_table *again = symbol_names_table(n, key_a);
    assert_ptr_equal(a, again);
    assert_ptr_not_equal(a, b);
    assert_int_equal(symbol_names_count(n), 2);
    symbol_names_forget(n, key_a);
    assert_int_equal(symbol_names_count(n), 1);
    SCOPED(symbol_table) *fresh = symbol_names_table(n, key_a);
    assert_ptr_not_equal(fresh, a);
    symbol_table_unref(a);
    symbol_table_unref(again);
    symbol_table_unref(b);
}

/* The oldest table goes first, and pointers into it stay valid as long as it is referenced. */
TEST(memory_is_bounded)
{
    const size_t max = 256 * 1024;
    SCOPED(symbol_names) *n = symbol_names_new(max);
    struct symbol_table *first = symbol_names_table(n, key_a);
    const struct symbol_answer_frame one = {SV("first"), SV(""), SV(""), 0, 0};
    assert_true(symbol_table_add(first, 1, &one, 1));
    struct symbol_location l = find(first, 1, NOW, false);
    for (uint64_t i = 10; i < 20; i++) {
        struct symbol_table *t = symbol_names_table(n, (struct pprof_key){{i, i}});
        char name[40];
        bool ok = true;
        for (uint64_t k = 0; k < 100000 && ok; k++) {
            snprintf(name, sizeof(name), "function number %llu", (unsigned long long)k);
            const struct symbol_answer_frame f = {sv_from(name), SV(""), SV(""), 0, 0};
            ok = symbol_table_add(t, k, &f, 1);
        }
        assert_false(ok); /* at a part of the limit */
        symbol_table_unref(t);
        symbol_names_trim(n);
        assert_true(symbol_names_bytes(n) <= max);
    }
    CHECK_STR(l.lines[0].function->name.p, "first", "");
    symbol_table_unref(first);
    SCOPED(symbol_table) *again = symbol_names_table(n, key_a);
    find(again, 1, NOW, true);
}

TEST(bad_utf8_is_repaired)
{
    const struct symbol_answer_frame f = {SV("a\xff z"), SV(""), SV(""), 0, 0};
    SCOPED(symbol_names) *n = symbol_names_new(0);
    SCOPED(symbol_table) *t = symbol_names_table(n, key_a);
    assert_true(symbol_table_add(t, 1, &f, 1));
    CHECK_STR(find(t, 1, NOW, false).lines[0].function->name.p, "a\xef\xbf\xbd z", "");
}

static void count_one(void *arg, uint64_t place, const struct symbol_line *lines, size_t n)
{
    *(uint64_t *)arg += place * n + lines[0].line;
}

TEST(each_address_with_frames_is_listed)
{
    const struct symbol_answer_frame f = {SV("f"), SV(""), SV(""), 0, 3};
    uint64_t sum = 0;
    SCOPED(symbol_names) *n = symbol_names_new(0);
    SCOPED(symbol_table) *t = symbol_names_table(n, key_a);
    assert_true(symbol_table_add(t, 10, &f, 1));
    assert_true(symbol_table_add(t, 20, &f, 1));
    find(t, 30, NOW, true);
    symbol_table_each(t, count_one, &sum);
    assert_int_equal(sum, 36);
}

TEST(a_process_is_known_by_its_mappings)
{
    struct symbol_binary app = {.start = 0x1000, .file = SV("/app")};
    struct symbol_binary libc = {.start = 0x9000, .file = SV("/libc"), .offset = 0x100};
    const struct symbol_binary moved = {.start = 0xa000, .file = SV("/libc"), .offset = 0x100};
    const struct symbol_binary nameless = {.start = 0xb000, .file = SV("")};
    struct symbol_processes *ps = symbol_processes_new();
    uint64_t first = symbol_process_number(ps, 1, &app, 1);
    assert_int_not_equal(first, 0);
    assert_int_equal(symbol_process_number(ps, 1, &libc, 1), first);
    assert_int_equal(symbol_process_number(ps, 1, &nameless, 1), first);
    assert_int_not_equal(symbol_process_number(ps, 2, &app, 1), first);
    uint64_t second = symbol_process_number(ps, 1, &moved, 1);
    assert_int_not_equal(second, first);
    assert_int_equal(symbol_process_number(ps, 1, &app, 1), second);
    symbol_processes_free(ps);
}
