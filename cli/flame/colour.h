/* Colours of a flame graph: one hue for each package, in two shades that distinguish neighbours.
 * Pure; any thread.
 */
#ifndef PROFPULL_CLI_FLAME_COLOUR_H
#define PROFPULL_CLI_FLAME_COLOUR_H

#include "base/buf.h"
#include "base/str.h"
#include "cli/terminal/terminal.h"

enum colour_role {
    COLOUR_FUNCTION, /* by the package of its name */
    COLOUR_ROOT,
    COLOUR_MATCH,    /* the name matches the search */
    COLOUR_SELECTED, /* the box that keys move */
};

/* Appends the sequence that sets background and foreground for a box; nothing without colours. */
void colour_put(enum terminal_colours colours, enum colour_role role, struct sv name,
                struct buf *out);
/* Appends the sequence that ends colours; nothing without colours. */
void colour_end(enum terminal_colours colours, struct buf *out);

/* Returns the package of a function: "net/http" of "net/http.(*conn).serve", "java.lang" of
 * "java.lang.Thread.run", the name itself if it has none. */
struct sv colour_package(struct sv name);
/* Returns the part of a function's name that says most in few columns: "http.(*conn).serve", then
 * (harder) "serve". */
struct sv colour_short(struct sv name, bool harder);

#endif
