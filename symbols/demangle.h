/* Names of C++ and Rust as people write them.
 *
 * Runs in the child only: libiberty ends the process when memory is short, and a mangled name of a
 * stranger may ask for any amount. Private to symbols/.
 */
#ifndef PROFPULL_SYMBOLS_DEMANGLE_H
#define PROFPULL_SYMBOLS_DEMANGLE_H

/* Returns the demangled name, which the caller frees, or NULL if the name is not mangled.
 *
 * C++: without parameters and return types, with template arguments, as `c++filt -p` prints it.
 * Rust, both manglings: without the hash of the crate. */
char *demangle(const char *name);

#endif
