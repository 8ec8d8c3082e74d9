/* Capabilities of the terminal at standard output: its size, its colours and its characters.
 *
 * The environment decides, as for other programs: TERM, COLORTERM, NO_COLOR (https://no-color.org),
 * and LC_ALL, LC_CTYPE and LANG for UTF-8. There is no terminfo database: the few sequences that
 * are sent are those of ECMA-48, which every terminal with colours has. Any thread.
 */
#ifndef PROFPULL_CLI_TERMINAL_TERMINAL_H
#define PROFPULL_CLI_TERMINAL_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* Columns and rows, if they are unknown. */
#define TERMINAL_WIDTH 80
#define TERMINAL_HEIGHT 24
/* Bounds of a width in columns: --width and the size that a terminal reports. */
#define TERMINAL_WIDTH_MIN 20
#define TERMINAL_WIDTH_MAX 1000

enum terminal_colours {
    COLOURS_NONE,
    COLOURS_8,    /* the colours of ECMA-48 */
    COLOURS_256,  /* the 6 x 6 x 6 cube of xterm */
    COLOURS_TRUE, /* 24 bits */
};

struct terminal {
    bool tty; /* standard output is a terminal */
    size_t width;
    size_t height;
    enum terminal_colours colours;
    bool utf8;
};

/* Returns the variable of the environment with a name, or NULL; getenv() outside of tests. */
typedef const char *terminal_variable(const char *name);

/* Determines the colours that the environment allows on a terminal. */
enum terminal_colours terminal_colours_of(terminal_variable *get);
/* Returns true if the environment selects UTF-8. */
bool terminal_utf8_of(terminal_variable *get);
/* Describes standard output. Without a terminal, the width is that of COLUMNS or TERMINAL_WIDTH,
 * and there are no colours. */
struct terminal terminal_describe(terminal_variable *get);

/* Returns the i-th word for --color: auto, never, 8, 256, true; NULL past the last one. */
const char *terminal_colour_word(size_t i);
/* Sets the colours that such a word names; "auto" changes nothing. */
void terminal_set_colours(struct terminal *t, const char *word);

#endif
