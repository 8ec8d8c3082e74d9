/* Recognises processes by their mappings: the names that a program gives to its own addresses hold
 * only as long as the process lives.
 *
 * Any thread may call these functions.
 */
#ifndef PROFPULL_SYMBOLS_PROCESS_H
#define PROFPULL_SYMBOLS_PROCESS_H

#include <stddef.h>
#include <stdint.h>

#include "symbols/profile.h"

/* The most targets that are remembered. Beyond that all are forgotten, and their programs are asked
 * again. */
#define SYMBOL_PROCESSES_MAX 65536
/* The most mappings of a target that are remembered. */
#define SYMBOL_PROCESS_MAPPINGS_MAX 256

struct symbol_processes;

struct symbol_processes *symbol_processes_new(void); /* NULL if out of memory */
struct symbol_processes *symbol_processes_free(struct symbol_processes *ps); /* accepts NULL */

/* Returns a number that is the same from profile to profile of a target, and another one once a
 * file is mapped elsewhere than before, because the program has started again or has loaded a
 * library again. target: a hash of the target's identity. Profiles need not have all mappings of
 * their process. The number is at least 2, or 0 if out of memory. */
uint64_t symbol_process_number(struct symbol_processes *ps, uint64_t target,
                               const struct symbol_binary *binaries, size_t n);

#endif
