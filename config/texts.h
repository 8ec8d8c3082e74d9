/* Reads the text of a configuration: one file, or all files of a directory. */
#ifndef PROFPULL_CONFIG_TEXTS_H
#define PROFPULL_CONFIG_TEXTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct config_text {
    const char *name; /* "<stdin>" for standard input */
    struct sv text;
};

struct config_texts {
    const struct config_text *at;
    size_t n;
    const char *directory; /* the directory of the files, absolute if it can be resolved */
};

/* Reads a file, or all files of a directory that end in suffix (".alloy"), in the order of their
 * names. suffix NULL: a directory is an error. The texts live in the arena, and together have at
 * most CONFIG_FILE_MAX bytes. */
bool config_texts_read(const char *path, const char *suffix, struct arena *arena,
                       struct config_texts *ret_texts, struct err *err);
/* Reads standard input. */
bool config_texts_read_stdin(struct arena *arena, struct config_texts *ret_texts, struct err *err);

#endif
