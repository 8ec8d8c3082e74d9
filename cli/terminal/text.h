/* Text from outside, such as names of functions, as it can be printed on a terminal.
 *
 * No byte of a name reaches the terminal as a command: control characters (C0, C1, DEL), the
 * characters that change the direction of text, separators of lines, and all other characters
 * without a width become '?' (ASCII) or U+FFFD (UTF-8). Widths are those of wcwidth().
 */
#ifndef PROFPULL_CLI_TERMINAL_TEXT_H
#define PROFPULL_CLI_TERMINAL_TEXT_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

/* Selects UTF-8 for wcwidth() on the calling thread, until terminal_text_end(). Without it,
 * characters outside of ASCII are replaced. Returns (locale_t)0 if the system has no such locale.
 */
locale_t terminal_text_begin(void);
void terminal_text_end(locale_t locale); /* accepts (locale_t)0 */

/* Returns the number of columns that a text takes when terminal_put() prints it. */
size_t terminal_columns(struct sv text, bool utf8);
/* Appends the beginning of a text, at most max columns of it. Returns the columns appended. If the
 * text is longer, its last column is an ellipsis: U+2026, or '~' in ASCII. */
size_t terminal_put(struct sv text, size_t max, bool utf8, struct buf *out);

#endif
