/* A flame graph that keys move through: the state and its picture, without a terminal. One thread.
 */
#ifndef PROFPULL_CLI_FLAME_BROWSE_H
#define PROFPULL_CLI_FLAME_BROWSE_H

#include "cli/flame/flame.h"
#include "cli/terminal/keys.h"

/* The longest text to search for, in bytes. */
#define BROWSE_SEARCH_MAX 256

struct browse;

/* Makes the state: the whole tree, with its root selected. All arguments are borrowed. The search
 * of the options is the first one. NULL with err. */
struct browse *browse_new(const struct tree *t, const struct flame_options *options,
                          const struct terminal *terminal, struct err *err);
struct browse *browse_free(struct browse *b); /* accepts NULL, returns NULL */

/* Changes the size of the picture. */
void browse_resize(struct browse *b, size_t width, size_t height);
/* Handles a key. Returns false if it asks to quit. */
bool browse_key(struct browse *b, const struct key *key);
/* Appends the picture: it begins at the first line of the screen and covers all of it. */
bool browse_draw(struct browse *b, struct buf *out, struct err *err);

/* Shows the graph on the terminal until a key or a signal ends it. Returns false with err if there
 * is no terminal. *ret_signal is the signal that has ended it, or 0: the caller raises it. */
bool browse_run(struct browse *b, int *ret_signal, struct err *err);

#endif
