/* Turns mangled names of C++ and Rust into names as people write them.
 *
 * Runs in the child only: libiberty reads names of strangers, and may end the process when memory
 * is short. Private to symbols/.
 */
#ifndef PROFPULL_SYMBOLS_DEMANGLE_H
#define PROFPULL_SYMBOLS_DEMANGLE_H

/* The longest demangled name in bytes. A longer one is cut: a mangled name of a few hundred bytes
 * can stand for terabytes. */
#define DEMANGLED_MAX 65536

/* Returns the demangled name, which the caller frees, or NULL if the name is not mangled or if out
 * of memory.
 *
 * C++: without parameters and return types, with template arguments, as `c++filt -p` prints it.
 * Rust, both manglings: without the hash of the crate. */
char *demangle(const char *name);

#endif
