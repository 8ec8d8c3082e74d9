/* Shows on standard error how far a command has come: a bar on a terminal, a line every ten seconds
 * elsewhere, nothing with --quiet. One thread.
 */
#ifndef PROFPULL_CLI_STORE_PROGRESS_H
#define PROFPULL_CLI_STORE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct progress {
    const char *verb; /* "downloaded" */
    bool quiet;
    bool bar;
    bool drawn; /* a bar is on the screen */
    uint64_t files;
    uint64_t files_done;
    uint64_t bytes;
    uint64_t bytes_done;
    int64_t shown_ms;
};

void progress_begin(struct progress *p, const char *verb, bool quiet, uint64_t files,
                    uint64_t bytes);
/* Takes over what is done, and shows it if it is time to. */
void progress_set(struct progress *p, uint64_t files_done, uint64_t bytes_done);
/* Removes the bar, before other output and at the end. */
void progress_clear(struct progress *p);

#define PROGRESS_SIZE 32
/* Writes a number of bytes for people: "812 B", "1.5 MiB". */
void progress_format_size(uint64_t bytes, char out[PROGRESS_SIZE]);
/* Appends the bar, of at most `columns` columns, without a line break. */
void progress_text(const struct progress *p, size_t columns, struct buf *out);

#endif
