/* A flame graph that keys move through: what each key does, and golden pictures in
 * tests/unit/data/flame. */
#include "tests/unit/lib/testing.h"

#include "cli/flame/browse.h"
#include "tests/unit/cli/trees.h"

SCOPED_POINTER(browse, browse_free)
SCOPED_POINTER(tree, tree_free)

static const char stacks[] =
    "main;cart;json 40\nmain;cart;gzip 20\nmain;idle 10\ngc;drain;scan 30\n";

static void browse_types(struct browse *b, const char *bytes, bool goes_on)
{
    struct sv rest = sv_from(bytes);
    bool on = true;
    while (rest.n > 0) {
        struct key key;
        size_t n = key_decode(rest, false, &key);
        assert_true(n > 0);
        on = browse_key(b, &key);
        rest = sv_skip(rest, n);
    }
    assert_true(on == goes_on);
}

/* Returns the line about the selected function, which is the last but one. */
static void check_selected(struct browse *b, const char *want, const char *keys)
{
    struct err err = ERR_INIT;
    SCOPED(buf) out = testing_buf(65536);
    assert_true(browse_draw(b, &out, &err));
    CHECK_CONTAINS(out.data, want, keys);
}

TEST(keys_move)
{
    static const struct {
        const char *keys, *title, *selected;
    } cases[] = {
        {"", "t: 100\r", "100 (100.00%), self 0 (0.00%)  total\r"},
        {"j", "t: 100\r", "  main\r"},
        {"jj", "t: 100\r", "60 (60.00%), self 0 (0.00%)  cart\r"},
        {"\033[B\033[B\033[B", "t: 100\r", "  json\r"},
        {"jjjj", "t: 100\r", "  json\r"},
        {"jjk", "t: 100\r", "  main\r"},
        {"kkk", "t: 100\r", "  total\r"},
        {"jh", "t: 100\r", "  gc\r"}, /* in order of names, gc is left of main */
        {"jhh", "t: 100\r", "  gc\r"},
        {"j\033[D\033[C", "t: 100\r", "  main\r"},
        {"jl", "t: 100\r", "  main\r"},
        {"jj\r", "t: 60 (60.00%) in cart\r", "  cart\r"},
        {"jj\rj", "t: 60 (60.00%) in cart\r", "  json\r"},
        {"jj\r\177", "t: 70 (70.00%) in main\r", "  cart\r"},
        {"jj\ru\177u", "t: 100\r", "  main\r"},
        {"jj\r\033", "t: 100\r", "  cart\r"},
        {"jj\rr", "t: 100\r", "  cart\r"},
        {"jj\r\033[H", "t: 100\r", "  cart\r"},
        {"/JS\rn", "t: 100\r", "  json\r"},
        {"/an\rn", "t: 100\r", "  scan\r"},
        {"/a\rnn", "t: 100\r", "  drain\r"}, /* main, drain, cart, scan match */
        {"/a\rN", "t: 100\r", "  scan\r"},
        {"/a\r/q\177\033", "t: 100\r", "  total\r"},
        {"/a\033n", "t: 100\r", "  total\r"},
        {"?q", "t: 100\r", "  total\r"}, /* any key leaves the help */
        {"\033[6~", "t: 100\r", "  json\r"},
        {"\033[6~\033[5~", "t: 100\r", "  total\r"},
        {"\033[99~x\001", "t: 100\r", "  total\r"}, /* no meaning */
    };
    static const struct terminal terminal = {.tty = true, .width = 60, .height = 12};
    static const struct flame_options options = {.title = "t", .unit = ""};
    SCOPED(tree) *t = tree_of(stacks);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        SCOPED(browse) *b = browse_new(t, &options, &terminal, &err);
        browse_types(b, cases[i].keys, true);
        check_selected(b, cases[i].title, cases[i].keys);
        check_selected(b, cases[i].selected, cases[i].keys);
    }
}

TEST(keys_quit)
{
    static const struct terminal terminal = {.tty = true, .width = 60, .height = 12};
    static const struct flame_options options = {.title = "t", .unit = ""};
    struct err err = ERR_INIT;
    SCOPED(tree) *t = tree_of(stacks);
    SCOPED(browse) *b = browse_new(t, &options, &terminal, &err);
    browse_types(b, "/q\r", true);
    browse_types(b, "q", false);
}

TEST(pictures)
{
    static const struct {
        struct terminal terminal;
        const char *keys, *golden;
    } cases[] = {
        {{.width = 60, .height = 8}, "jj/json\r", "browse.txt"},
        {{.width = 40, .height = 4, .utf8 = true}, "jjj", "browse-low.txt"},
        {{.width = 60, .height = 14}, "?", "browse-help.txt"},
        {{.width = 60, .height = 8, .utf8 = true, .colours = COLOURS_TRUE},
         "j/ca",
         "browse-colours.txt"},
    };
    static const struct flame_options options = {.title = "cart, cpu", .unit = "count"};
    SCOPED(tree) *t = tree_of(stacks);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        SCOPED(browse) *b = browse_new(t, &options, &cases[i].terminal, &err);
        browse_types(b, cases[i].keys, true);
        SCOPED(buf) out = testing_buf(65536);
        assert_true(browse_draw(b, &out, &err));
        buf_putc(&out, '\n');
        check_golden(&out, cases[i].golden);
    }
}

/* A box that is too narrow after a change of the size is no longer selected. */
TEST(sizes_change)
{
    static const struct terminal terminal = {.width = 1000, .height = 12};
    static const struct flame_options options = {.title = "t", .unit = ""};
    struct err err = ERR_INIT;
    SCOPED(tree) *t = tree_of("main;a 1000\nmain;z 2\n");
    SCOPED(browse) *b = browse_new(t, &options, &terminal, &err);
    browse_types(b, "jjl", true);
    check_selected(b, "  z\r", "wide");
    browse_resize(b, 0, 0);
    check_selected(b, "|>total 100.0%", "narrow");
}

TEST(keys_are_decoded)
{
    static const struct {
        const char *bytes;
        bool more;
        size_t n;
        enum key_kind kind;
        uint32_t rune;
    } cases[] = {
        {"a", true, 1, KEY_RUNE, 'a'},
        {"\r", true, 1, KEY_ENTER, 0},
        {"\n", true, 1, KEY_ENTER, 0},
        {"\b", true, 1, KEY_BACKSPACE, 0},
        {"\033[A", true, 3, KEY_UP, 0},
        {"\033OA", true, 3, KEY_UP, 0},
        {"\033[1~x", true, 4, KEY_HOME, 0},
        {"\033[F", true, 3, KEY_END, 0},
        {"\033", true, 0, KEY_ESCAPE, 0},
        {"\033", false, 1, KEY_ESCAPE, 0},
        {"\033[", true, 0, KEY_UNKNOWN, 0},
        {"\033[", false, 2, KEY_UNKNOWN, 0},
        {"\033[5", true, 0, KEY_UNKNOWN, 0},
        {"\033x", true, 1, KEY_ESCAPE, 0},
        {"\001", true, 1, KEY_UNKNOWN, 1},
        {"\xc3\xbc", true, 2, KEY_RUNE, 0xfc},
        {"\xc3", true, 0, KEY_UNKNOWN, 0},
        {"\xc3", false, 1, KEY_UNKNOWN, 0},
        {"\xff", true, 1, KEY_UNKNOWN, 0},
        {"\033[0000000000000000000A", true, 17, KEY_UNKNOWN, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct key key;
        size_t n = key_decode(sv_from(cases[i].bytes), cases[i].more, &key);
        CHECK_INT(n, cases[i].n, cases[i].bytes);
        if (n > 0) {
            CHECK_INT(key.kind, cases[i].kind, cases[i].bytes);
        }
        if (n > 0 && cases[i].kind == KEY_RUNE) {
            CHECK_INT(key.rune, cases[i].rune, cases[i].bytes);
        }
    }
}
