#include "cli/terminal/terminal.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/str.h"

static bool has_text(const char *text)
{
    return text != NULL && text[0] != '\0';
}

enum terminal_colours terminal_colours_of(terminal_variable *get)
{
    const char *term = get("TERM");
    const char *more = get("COLORTERM");
    if (has_text(get("NO_COLOR")) || !has_text(term) || strcmp(term, "dumb") == 0) {
        return COLOURS_NONE;
    }
    if (has_text(more) && (strcmp(more, "truecolor") == 0 || strcmp(more, "24bit") == 0)) {
        return COLOURS_TRUE;
    }
    if (strstr(term, "-direct") != NULL) {
        return COLOURS_TRUE;
    }
    return strstr(term, "256color") != NULL ? COLOURS_256 : COLOURS_8;
}

bool terminal_utf8_of(terminal_variable *get)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *locale = get(names[i]);
        if (has_text(locale)) { /* the first of them that is set decides */
            return strcasestr(locale, "utf-8") != NULL || strcasestr(locale, "utf8") != NULL;
        }
    }
    return false;
}

static size_t bounded(uint64_t width)
{
    size_t least = width < TERMINAL_WIDTH_MIN ? TERMINAL_WIDTH_MIN : (size_t)width;
    return least > TERMINAL_WIDTH_MAX ? TERMINAL_WIDTH_MAX : least;
}

struct terminal terminal_describe(terminal_variable *get)
{
    struct winsize size = {.ws_col = 0};
    uint64_t columns;
    const char *text = get("COLUMNS");
    struct terminal t = {
        .tty = isatty(STDOUT_FILENO) == 1,
        .width = TERMINAL_WIDTH,
        .height = TERMINAL_HEIGHT,
        .utf8 = terminal_utf8_of(get),
    };
    t.colours = t.tty ? terminal_colours_of(get) : COLOURS_NONE;
    if (t.tty && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        t.width = bounded(size.ws_col);
        t.height = size.ws_row > 0 ? size.ws_row : TERMINAL_HEIGHT;
    } else if (has_text(text) && parse_u64(sv_from(text), UINT32_MAX, &columns)) {
        t.width = bounded(columns);
    }
    return t;
}

static const struct {
    const char *word;
    enum terminal_colours colours;
} words[] = {
    {"auto", COLOURS_NONE}, {"never", COLOURS_NONE}, {"8", COLOURS_8},
    {"256", COLOURS_256},   {"true", COLOURS_TRUE},
};

const char *terminal_colour_word(size_t i)
{
    return i < sizeof(words) / sizeof(words[0]) ? words[i].word : NULL;
}

void terminal_set_colours(struct terminal *t, const char *word)
{
    for (size_t i = 1; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i].word, word) == 0) {
            t->colours = words[i].colours;
        }
    }
}
