/* Flame graphs in the terminal: golden files in tests/unit/data/flame, of made stacks and of the
 * profile of a Go program. */
#include "tests/unit/lib/testing.h"

#include "cli/flame/colour.h"
#include "cli/flame/flame.h"
#include "cli/terminal/text.h"
#include "tests/unit/cli/trees.h"

SCOPED_POINTER(tree, tree_free)

static const char stacks[] = "main.main;shop/cart.(*Cart).Add;encoding/json.Unmarshal 30\n"
                             "main.main;shop/cart.(*Cart).Add;encoding/json.Unmarshal;"
                             "reflect.Value.SetMapIndex 10\n"
                             "main.main;shop/cart.(*Cart).Total 25\n"
                             "runtime.gcBgMarkWorker;runtime.gcDrain 20\n"
                             "runtime.gcBgMarkWorker;runtime.gcDrain;runtime.scanobject 10\n"
                             "net/http.(*conn).serve 5\n"
                             "tiny.a 0\n";

static void print_golden(const char *folded, const struct terminal *terminal, const char *search,
                         size_t depth, const char *golden)
{
    struct err err = ERR_INIT;
    SCOPED(tree) *t = tree_of(folded);
    const struct flame_options options = {
        .title = "cart, cpu", .unit = "samples", .search = search, .depth = depth};
    SCOPED(buf) out = testing_buf((size_t)1024 * 1024);
    assert_true(flame_print(t, &options, terminal, &out, &err));
    check_golden(&out, golden);
}

TEST(golden_files)
{
    static const struct {
        struct terminal terminal;
        const char *search;
        size_t depth;
        const char *golden;
    } cases[] = {
        {{.width = 80, .utf8 = true}, NULL, 0, "plain-80.txt"},
        {{.width = 80}, NULL, 0, "ascii-80.txt"},
        {{.width = 160, .utf8 = true}, NULL, 0, "plain-160.txt"},
        {{.width = 20}, "json", 0, "search-20.txt"},
        {{.width = 80}, "GCDRAIN", 2, "depth-80.txt"},
        {{.width = 60, .utf8 = true, .colours = COLOURS_8}, "json", 0, "colours-8.txt"},
        {{.width = 60, .utf8 = true, .colours = COLOURS_256}, "json", 0, "colours-256.txt"},
        {{.width = 60, .utf8 = true, .colours = COLOURS_TRUE}, "json", 0, "colours-true.txt"},
    };
    locale_t locale = terminal_text_begin();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_golden(stacks, &cases[i].terminal, cases[i].search, cases[i].depth, cases[i].golden);
    }
    terminal_text_end(locale);
}

TEST(deeper_levels_are_counted)
{
    static const char narrow[] = "a;b 99\na;b;c 1\n";
    const struct terminal terminal = {.width = 20};
    const struct flame_options options = {.title = "t", .unit = "bytes"};
    struct err err = ERR_INIT;
    SCOPED(tree) *t = tree_of(narrow);
    SCOPED(buf) out = testing_buf(4096);
    assert_true(flame_print(t, &options, &terminal, &out, &err));
    CHECK_CONTAINS(out.data, "1 deeper levels are narrower than a column: use a larger --width\n",
                   "");
}

/* Every box lies within its caller's, boxes of a level do not overlap, and widths are shares. */
TEST(boxes_are_nested)
{
    struct err err = ERR_INIT;
    SCOPED(tree) *t = tree_of(stacks);
    for (size_t columns = 1; columns < 300; columns += 7) {
        struct chart c;
        const struct chart_options options = {.columns = columns};
        SCOPED(arena) *arena = arena_new((size_t)1024 * 1024);
        assert_true(chart_make(t, &options, arena, &c, &err));
        CHECK_INT(c.boxes[0].right, columns, "the root");
        CHECK_INT(c.total, 100, "");
        for (size_t i = 1; i < c.n; i++) {
            const struct chart_box *b = &c.boxes[i];
            const struct chart_box *caller = &c.boxes[b->parent];
            assert_true(b->left < b->right && b->left >= caller->left && b->right <= caller->right);
            assert_int_equal(caller->level + 1, b->level);
            assert_int_equal(tree_node(t, b->node).parent, caller->node);
            if (b->level == c.boxes[i - 1].level) {
                assert_true(b->left >= c.boxes[i - 1].right);
            }
            double exact = (double)tree_node(t, b->node).total * (double)columns / 100.0;
            double width = (double)(b->right - b->left);
            assert_true(width < exact + 1.01 && width > exact - 1.01);
        }
    }
}

TEST(chart_of_a_part)
{
    struct err err = ERR_INIT;
    struct chart c;
    SCOPED(tree) *t = tree_of(stacks);
    SCOPED(arena) *arena = arena_new((size_t)1024 * 1024);
    /* Node 1 is main.main, the first function that was added. */
    const struct chart_options options = {.root = 1, .columns = 65, .search = SV("JSON")};
    assert_true(chart_make(t, &options, arena, &c, &err));
    CHECK_INT(c.total, 65, "");
    CHECK_INT(c.matched, 40, "");
    CHECK_INT(c.depth, 4, "");
    CHECK_INT(c.boxes[0].node, 1, "");
    CHECK_INT(c.boxes[1].right - c.boxes[1].left, 40, "");
    CHECK_INT(chart_find(&c, 1), 0, "");
    CHECK_INT(chart_find(&c, 0), c.n, "a node outside");
}

/* No control character of a name reaches the terminal. */
TEST(control_characters)
{
    static const struct {
        const char *name, *utf8, *ascii;
    } cases[] = {
        {"plain", "plain", "plain"},
        {"\033[2Jx", "\xef\xbf\xbd[2Jx", "?[2Jx"},
        {"a\nb\tc\x7f",
         "a\xef\xbf\xbd"
         "b\xef\xbf\xbd"
         "c\xef\xbf\xbd",
         "a?b?c?"},
        {"\xc2\x9b"
         "2J",
         "\xef\xbf\xbd"
         "2J",
         "?2J"}, /* CSI as a C1 control */
        {"\xe2\x80\xae"
         "x",
         "\xef\xbf\xbd"
         "x",
         "?x"},                                                         /* right-to-left override */
        {"\xff", "\xef\xbf\xbd", "?"},                                  /* no UTF-8 */
        {"f\xc3\xbcr", "f\xc3\xbcr", "f?r"},                            /* printable */
        {"\xe2\x80\xa8", "\xef\xbf\xbd", "?"},                          /* line separator */
        {"\xe6\x97\xa5\xe6\x9c\xac", "\xe6\x97\xa5\xe6\x9c\xac", "??"}, /* two columns each */
    };
    locale_t locale = terminal_text_begin();
    assert_true(locale != (locale_t)0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(buf) out = testing_buf(4096);
        (void)terminal_put(sv_from(cases[i].name), 80, true, &out);
        CHECK_STR(out.data, cases[i].utf8, cases[i].name);
        buf_clear(&out);
        (void)terminal_put(sv_from(cases[i].name), 80, false, &out);
        CHECK_STR(out.data, cases[i].ascii, cases[i].name);
    }
    terminal_text_end(locale);
}

TEST(text_is_cut_at_columns)
{
    locale_t locale = terminal_text_begin();
    SCOPED(buf) out = testing_buf(4096);
    CHECK_INT(terminal_put(SV("abcdef"), 4, false, &out), 4, "");
    CHECK_STR(out.data, "abc~", "");
    buf_clear(&out);
    CHECK_INT(terminal_put(SV("abcd"), 4, false, &out), 4, "");
    CHECK_STR(out.data, "abcd", "");
    buf_clear(&out);
    /* A character of two columns does not fit into the last one before the ellipsis. */
    CHECK_INT(terminal_put(SV("\xe6\x97\xa5\xe6\x9c\xac"), 3, true, &out), 3, "");
    CHECK_STR(out.data, "\xe6\x97\xa5\xe2\x80\xa6", "");
    buf_clear(&out);
    CHECK_INT(terminal_put(SV("abc"), 0, true, &out), 0, "");
    CHECK_STR(out.data, "", "");
    terminal_text_end(locale);
}

TEST(packages_and_short_names)
{
    static const struct {
        const char *name, *package, *brief, *briefest;
    } cases[] = {
        {"net/http.(*conn).serve", "net/http", "http.(*conn).serve", "serve"},
        {"main.main", "main", "main.main", "main"},
        {"main.main.func1", "main", "main.main.func1", "func1"},
        {"encoding/json.Sort[a/b.T]", "encoding/json", "json.Sort[a/b.T]", "Sort[a/b.T]"},
        {"java.lang.Thread.run", "java.lang", "java.lang.Thread.run", "run"},
        {"java/lang/Thread.run", "java/lang/Thread", "Thread.run", "run"},
        {"std::vector::push", "std", "std::vector::push", "std::vector::push"},
        {"memcpy", "memcpy", "memcpy", "memcpy"},
        {"", "", "", ""},
        {".", "", ".", "."},
        {"/", "/", "", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sv name = sv_from(cases[i].name);
        struct sv package = colour_package(name);
        struct sv brief = colour_short(name, false);
        struct sv briefest = colour_short(name, true);
        char text[128];
        (void)snprintf(text, sizeof(text), "%.*s|%.*s|%.*s", SV_ARG(package), SV_ARG(brief),
                       SV_ARG(briefest));
        char want[128];
        (void)snprintf(want, sizeof(want), "%s|%s|%s", cases[i].package, cases[i].brief,
                       cases[i].briefest);
        CHECK_STR(text, want, cases[i].name);
    }
}

/* ---- what the environment says --------------------------------------------------------------- */

static const char *dumb(const char *name)
{
    return strcmp(name, "TERM") == 0 ? "dumb" : NULL;
}
static const char *xterm(const char *name)
{
    return strcmp(name, "TERM") == 0 ? "xterm" : strcmp(name, "LC_ALL") == 0 ? "C" : "de_DE.UTF-8";
}
static const char *xterm_256(const char *name)
{
    return strcmp(name, "TERM") == 0   ? "xterm-256color"
           : strcmp(name, "LANG") == 0 ? "de_DE.utf8"
                                       : NULL;
}
static const char *truecolor(const char *name)
{
    return strcmp(name, "NO_COLOR") == 0 ? "" : "truecolor";
}
static const char *no_color(const char *name)
{
    return strcmp(name, "COLUMNS") == 0 ? "132" : "truecolor";
}
static const char *nothing(const char *name)
{
    (void)name;
    return NULL;
}

TEST(environment)
{
    static const struct {
        const char *name;
        terminal_variable *get;
        enum terminal_colours colours;
        bool utf8;
    } cases[] = {
        {"nothing", nothing, COLOURS_NONE, false},     {"dumb", dumb, COLOURS_NONE, false},
        {"xterm in C", xterm, COLOURS_NONE, false},    {"256", xterm_256, COLOURS_256, true},
        {"truecolor", truecolor, COLOURS_TRUE, false}, {"NO_COLOR", no_color, COLOURS_NONE, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_INT(terminal_colours_of(cases[i].get), cases[i].colours, cases[i].name);
        CHECK_INT(terminal_utf8_of(cases[i].get), cases[i].utf8, cases[i].name);
    }
    struct terminal t = {.colours = COLOURS_8};
    terminal_set_colours(&t, "auto");
    CHECK_INT(t.colours, COLOURS_8, "auto");
    terminal_set_colours(&t, "never");
    CHECK_INT(t.colours, COLOURS_NONE, "never");
    terminal_set_colours(&t, "true");
    CHECK_INT(t.colours, COLOURS_TRUE, "true");
}

TEST(json)
{
    struct err err = ERR_INIT;
    SCOPED(tree) *t = tree_of("a;b 1\na;c;d 2\na 3\n\"e\" 4\n");
    SCOPED(buf) out = testing_buf(4096);
    assert_true(flame_json(t, "bytes", &out, &err));
    CHECK_STR(
        out.data,
        "{\"unit\":\"bytes\",\"total\":10,\"root\":{\"name\":\"total\",\"self\":0,\"total\":10,"
        "\"children\":[{\"name\":\"a\",\"self\":3,\"total\":6,\"children\":[{\"name\":\"b\","
        "\"self\":1,\"total\":1},{\"name\":\"c\",\"self\":0,\"total\":2,\"children\":["
        "{\"name\":\"d\",\"self\":2,\"total\":2}]}]},{\"name\":\"\\\"e\\\"\",\"self\":4,"
        "\"total\":4}]}}\n",
        "");
}
