/* Flame graphs of any names: no control character reaches the terminal but our own sequences, and
 * no line is wider than the terminal. The first byte chooses the terminal, the rest is lines
 * "function;function VALUE". */
#include <string.h>

#include "base/utf8.h"
#include "cli/flame/flame.h"
#include "cli/terminal/text.h"
#include "tests/fuzz/fuzz.h"

#define BYTES_MAX ((size_t)8 * 1024 * 1024)

static void add_line(struct tree *t, struct sv line)
{
    uint64_t value = line.n + 1;
    uint32_t node = 0;
    struct sv rest;
    (void)sv_cut(line, ' ', &line, &rest);
    while (line.n > 0) {
        struct sv name = line;
        struct sv more = SV("");
        uint32_t number;
        (void)sv_cut(line, ';', &name, &more);
        if (!tree_name(t, name, &number, NULL) || !tree_child(t, node, number, &node, NULL)) {
            return;
        }
        line = more;
    }
    tree_add(t, node, (int64_t)value);
}

/* Returns the length of one of our sequences, ESC [ numbers m; 0 if there is none. */
static size_t sequence(struct sv v)
{
    size_t n = 2;
    if (v.n < 3 || v.p[0] != '\033' || v.p[1] != '[') {
        return 0;
    }
    while (n < v.n && strchr("0123456789;", v.p[n]) != NULL && v.p[n] != '\0') {
        n++;
    }
    return n < v.n && v.p[n] == 'm' ? n + 1 : 0;
}

static void check(struct sv text, const struct terminal *t)
{
    size_t columns = 0;
    while (text.n > 0) {
        uint32_t rune;
        size_t n = t->colours != COLOURS_NONE ? sequence(text) : 0;
        if (n == 0) {
            n = utf8_decode(text, &rune);
            REQUIRE(n > 0 && (rune == '\n' || rune >= 0x20) && rune != 0x7f &&
                    !(rune >= 0x80 && rune < 0xa0) && (t->utf8 || rune < 0x80));
            columns = rune == '\n' ? 0 : columns + terminal_columns((struct sv){text.p, n}, true);
            REQUIRE(columns <= t->width || t->width < 80); /* the lines about it have some 70 */
        }
        text = sv_skip(text, n);
    }
}

FUZZ_BY(choice, rest)
{
    struct err err = ERR_INIT;
    struct buf out;
    struct terminal terminal = {.width = TERMINAL_WIDTH_MIN + (choice >> 3) * 5U,
                                .colours = (enum terminal_colours)(choice & 3),
                                .utf8 = (choice & 4) != 0};
    const struct flame_options options = {.title = "t", .unit = "count", .search = "a"};
    struct tree *t = tree_new(BYTES_MAX, &err);
    REQUIRE(t != NULL);
    while (rest.n > 0) {
        struct sv line = rest;
        struct sv more = SV("");
        (void)sv_cut(rest, '\n', &line, &more);
        add_line(t, line);
        rest = more;
    }
    locale_t locale = terminal_text_begin();
    buf_init(&out, BYTES_MAX);
    tree_sum(t);
    if (tree_total(t) > 0 && flame_print(t, &options, &terminal, &out, &err)) {
        check((struct sv){out.data, out.len}, &terminal);
    }
    terminal_text_end(locale);
    buf_done(&out);
    tree_free(t);
}
