/* Reading a whole profile, for the tools. */
#ifndef PROFPULL_TESTS_TOOLS_READ_FILE_H
#define PROFPULL_TESTS_TOOLS_READ_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"

#define FILE_MAX ((size_t)256 * 1024 * 1024)

/* Initialises out; false with a message on stderr. */
static inline bool read_file(const char *path, struct buf *out)
{
    char chunk[65536];
    FILE *f = fopen(path, "rbe");
    if (f == NULL) {
        perror(path);
        return false;
    }
    buf_init(out, FILE_MAX);
    size_t n;
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0) {
        buf_append(out, chunk, n);
    }
    (void)fclose(f);
    return buf_ok(out);
}

#endif
