/* The manual page (roff, see man(7)) and the completions of shells, written from the tables of the
 * subcommands. Pure; any thread.
 */
#ifndef PROFPULL_CLI_MANUAL_H
#define PROFPULL_CLI_MANUAL_H

#include <stdbool.h>

#include "base/buf.h"
#include "cli/flags.h"

/* Appends the page profpull(1), with a section for each subcommand. False if out of memory. */
bool manual_page(struct buf *out);

/* Returns "bash", "zsh", "fish"; NULL past the last one. */
const char *completion_shell(size_t i);
/* Appends the completion script of a shell (one of completion_shell()). False if out of memory. */
bool completion_script(const char *shell, struct buf *out);

#endif
