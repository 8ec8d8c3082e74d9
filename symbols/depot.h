/* A directory that keeps files with debug information, and tables of names, by build id.
 *
 * Names of files are build ids, which are checked to be hex, so no name leads out of the directory.
 * Files are written under another name and renamed when they are complete. When the directory
 * exceeds its limit of bytes, the files that were used least recently are removed. Several
 * processes may share a directory.
 *
 * The functions block, and may be called by one thread at a time.
 */
#ifndef PROFPULL_SYMBOLS_DEPOT_H
#define PROFPULL_SYMBOLS_DEPOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "symbols/names.h"

/* The longest build id in hex; GNU's have 40 digits. */
#define SYMBOL_BUILD_ID_MAX 128

struct symbol_depot;

/* Returns a depot of a directory, which is made when it is needed; NULL if out of memory. */
struct symbol_depot *symbol_depot_new(const char *directory, uint64_t bytes_max);
struct symbol_depot *symbol_depot_free(struct symbol_depot *d); /* accepts NULL, returns NULL */

/* Writes a build id in lower-case hex, with a NUL. Returns false if it is no GNU build id: Go's own
 * ids ("abc/def") and those that are too short are none. */
bool symbol_build_id(struct sv text, char ret[SYMBOL_BUILD_ID_MAX + 1]);

/* Opens the file with debug information of a build id, and counts it as used. Returns -1 if there
 * is none. */
int symbol_depot_open(struct symbol_depot *d, const char *build_id);
/* Opens such a file in a directory with the layout of gdb: DIR/.build-id/ab/cdef.debug, or without
 * ".debug". Returns -1 if there is none. */
int symbol_directory_open(const char *directory, const char *build_id);

/* Makes a file to write to. Returns -1 with an error. */
int symbol_depot_create(struct symbol_depot *d, const char *build_id, struct err *err);
/* Gives a complete file its name (keep), or removes it. Closes fd. Returns false with an error. */
bool symbol_depot_finish(struct symbol_depot *d, const char *build_id, int fd, bool keep,
                         struct err *err);

/* Loads and saves the table of names of a build id. symbol_depot_load() returns false without an
 * error if there is none; a damaged one is removed. */
bool symbol_depot_load(struct symbol_depot *d, const char *build_id, struct symbol_table *t,
                       struct err *err);
bool symbol_depot_save(struct symbol_depot *d, const char *build_id, struct symbol_table *t,
                       struct err *err);

/* Removes files until the directory is within its limit. Returns the bytes that are left. */
uint64_t symbol_depot_trim(struct symbol_depot *d);

#endif
