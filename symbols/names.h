/* Keeps the names that are known: tables from addresses to functions and lines, one for each binary
 * or process, within one limit of bytes.
 *
 * A table remembers for each address its frames, or that they were asked for and when they may be
 * asked for again. Strings and functions of a table exist once. They never move, and live as long
 * as the table: the holder of a reference to the table may keep pointers to them without a lock.
 * When all tables together exceed the limit, those that were used least recently are dropped; their
 * references stay valid.
 *
 * Any thread may call these functions. No lock is held beyond a call.
 */
#ifndef PROFPULL_SYMBOLS_NAMES_H
#define PROFPULL_SYMBOLS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pprof/index.h"
#include "symbols/profile.h"

/* The default limit of all tables together. */
#define SYMBOL_NAMES_MAX_DEFAULT ((size_t)64 * 1024 * 1024)

struct symbol_names;
struct symbol_table;

/* Makes an empty set of tables. Returns NULL if out of memory. */
struct symbol_names *symbol_names_new(size_t bytes_max);
/* Frees the set. Tables that are referenced elsewhere stay. Accepts NULL, returns NULL. */
struct symbol_names *symbol_names_free(struct symbol_names *n);

/* Returns a reference to the table with this key, which is made if necessary. Returns NULL if out
 * of memory. */
struct symbol_table *symbol_names_table(struct symbol_names *n, struct pprof_key key);
/* Drops a table, so that the next symbol_names_table() begins a new one. */
void symbol_names_forget(struct symbol_names *n, struct pprof_key key);
struct symbol_table *symbol_table_ref(struct symbol_table *t);
struct symbol_table *symbol_table_unref(struct symbol_table *t); /* accepts NULL, returns NULL */
/* Drops tables until all of them are within the limit. */
void symbol_names_trim(struct symbol_names *n);
/* Returns the bytes and the number of all tables. */
size_t symbol_names_bytes(struct symbol_names *n);
size_t symbol_names_count(struct symbol_names *n);

/* An address that is looked up. */
struct symbol_question {
    uint64_t place;
    struct symbol_location *location; /* gets the lines, if they are known */
    /* Set by symbol_table_find(): */
    bool ask;     /* nobody has asked for it, or not recently */
    bool pending; /* it has no name, and an answer may still come, `ask` included */
};

/* Looks up n addresses. Those that are unknown and may be asked for are marked, and count as asked
 * for until now_ms + again_ms. Addresses for which there is no memory are not marked. */
void symbol_table_find(struct symbol_table *t, struct symbol_question *questions, size_t n,
                       int64_t now_ms, int64_t again_ms);

/* Returns true if addresses were asked for, and none of them has a name so far. */
bool symbol_table_is_nameless(struct symbol_table *t);

/* One frame of an answer. Its texts are copied; bytes that are not UTF-8 become U+FFFD. */
struct symbol_answer_frame {
    struct sv name;
    struct sv system_name;
    struct sv file;
    uint64_t start_line;
    uint64_t line;
};

/* Stores the frames of an address, innermost first. Returns false if out of memory, or if the table
 * has grown to a quarter of the limit. */
bool symbol_table_add(struct symbol_table *t, uint64_t place,
                      const struct symbol_answer_frame *frames, size_t n);
/* Stores that an address has no name, so that nobody asks for it before again_at_ms. */
void symbol_table_unknown(struct symbol_table *t, uint64_t place, int64_t again_at_ms);

/* Calls fn for each address with frames, in no order. The table is locked meanwhile. */
void symbol_table_each(struct symbol_table *t,
                       void (*fn)(void *arg, uint64_t place, const struct symbol_line *lines,
                                  size_t n),
                       void *arg);

#endif
