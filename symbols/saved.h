/* A table of names as bytes, for a cache on disk.
 *
 * The bytes begin with the version of the format and a checksum. Reading trusts nothing of them.
 * The functions do no IO; any thread may call them.
 */
#ifndef PROFPULL_SYMBOLS_SAVED_H
#define PROFPULL_SYMBOLS_SAVED_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "symbols/names.h"

/* The version of the format; it is part of the names of files. */
#define SYMBOL_SAVED_VERSION 1
/* The largest table in bytes. */
#define SYMBOL_SAVED_MAX ((size_t)64 * 1024 * 1024)

/* Appends all addresses with frames. Returns false at the limit of the buffer, or if out of memory.
 */
bool symbol_saved_write(struct symbol_table *t, struct buf *out);

/* Adds the addresses of a saved table. Returns false with ERR_INPUT if the bytes are damaged or of
 * another version: nothing was added then; with ERR_LIMIT if the table is full. */
bool symbol_saved_read(struct symbol_table *t, struct sv bytes, struct err *err);

#endif
