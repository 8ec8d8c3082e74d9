/* Reads the names of native code from one ELF file, with elfutils' libdw: from DWARF with inlined
 * functions, files and lines, otherwise from the symbol table (.symtab, .dynsym, .gnu_debugdata).
 *
 * Runs in the child only (symbols/helper.h): the file is a stranger's, and libdw may crash, hang or
 * take any amount of memory. It opens no other file. Private to symbols/.
 */
#ifndef PROFPULL_SYMBOLS_NATIVE_H
#define PROFPULL_SYMBOLS_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "symbols/answer.h"
#include "symbols/failure.h"
#include "symbols/frames.h"

struct native;

/* Opens a program, a library, or a file with the debug information of one. The descriptor is used
 * until native_free() and stays the caller's. build_id: lower-case hex; "": any. Returns NULL with
 * a failure and a message for people. */
struct native *native_open(int fd, const char *build_id, enum symbols_failure *ret_failure,
                           struct err *err);
/* Closes the file; accepts NULL. Returns NULL. */
struct native *native_free(struct native *n);

/* Returns true if the file has debug information that cannot be read: it is damaged, compressed in
 * a way that this libdw does not know, or needs more memory than is allowed. Names then are those
 * of the symbol table. */
bool native_is_partial(const struct native *n);

/* Appends the frames of each address, in this order. Raw names, files and lines are those that
 * `eu-addr2line -f -i` prints for the virtual address. */
void native_ask(struct native *n, const struct symbol_mapping *mapping, const uint64_t *addresses,
                size_t count, struct answer_writer *w);

#endif
