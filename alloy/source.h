/* The text of Alloy files: of one, or of all in a directory. */
#ifndef PROFPULL_ALLOY_SOURCE_H
#define PROFPULL_ALLOY_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct alloy_source {
    const char *name; /* "<stdin>" for standard input */
    struct sv text;
};

struct alloy_sources {
    const struct alloy_source *at;
    size_t n;
    const char *directory; /* that they are in, absolute where it can be */
};

/* Reads a file, or all files of a directory that end in ".alloy", in the order of their names. The
 * texts live in the arena, and together have at most CONFIG_FILE_MAX bytes. */
bool alloy_sources_read(const char *path, struct arena *arena, struct alloy_sources *ret_sources,
                        struct err *err);
/* The same of standard input. */
bool alloy_sources_read_stdin(struct arena *arena, struct alloy_sources *ret_sources,
                              struct err *err);
/* Does a text begin as one of Alloy does, and none of YAML: with a comment of "//", a block or an
 * attribute? */
bool alloy_is_text(struct sv text);

#endif
