/* Names for the addresses of native code, found in a child process.
 *
 * libdw and libiberty read bytes of strangers: they may crash, hang, or take any amount of memory.
 * So they run in a child with limits and a system call filter of its own. A launcher, forked before
 * the agent has threads and a sandbox, starts the child, and a fresh one after each failure; the
 * agent itself only talks over a socket and passes open files through it. A failure costs the names
 * of one file, and is counted.
 *
 * The child keeps the last file open, so a file is opened once if its questions come one after the
 * other: ask for all addresses of a file together.
 */
#ifndef PROFPULL_SYMBOLS_HELPER_H
#define PROFPULL_SYMBOLS_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "symbols/failure.h"
#include "symbols/frames.h"

/* The defaults. Memory is address space: it counts the mapped file as well as what the child
 * allocates, so it has to be larger than the largest file. */
#define SYMBOLS_MEMORY_DEFAULT ((uint64_t)1024 * 1024 * 1024)
#define SYMBOLS_FILE_DEFAULT ((uint64_t)512 * 1024 * 1024)
#define SYMBOLS_TIMEOUT_DEFAULT_MS 60000
/* The most addresses of one question. */
#define SYMBOLS_ADDRESSES_MAX 65536

struct symbols_helper_options {
    uint64_t max_memory; /* bytes of address space of a child; 0: no limit */
    uint64_t max_file;   /* bytes of the largest file that is read; 0: no limit */
    unsigned timeout_ms; /* of a question, with the time that it waits for others; > 0 */
    bool sandbox;        /* a child that cannot restrict its system calls reads no file */
};

struct symbols_helper;

/* Forks the launcher. Call it before any thread is started, before the sandbox, and best before
 * secrets are read: launcher and child have a copy of the memory of that moment. Returns NULL with
 * ERR_SYSTEM if the system refuses a process, or with ERR_MEMORY. */
struct symbols_helper *symbols_helper_start(const struct symbols_helper_options *options,
                                            struct err *err);
/* Ends launcher and child, waits for the launcher, and frees the object. No question may be under
 * way. Accepts NULL; returns NULL. */
struct symbols_helper *symbols_helper_stop(struct symbols_helper *h);

/* Replaces the options. The new limit of memory holds for the next child, which replaces the
 * current one at the next question. Any thread may call it. */
void symbols_helper_limit(struct symbols_helper *h, const struct symbols_helper_options *options);

/* Replaces max_memory alone, like symbols_helper_limit(). Any thread may call it. */
void symbols_helper_memory(struct symbols_helper *h, uint64_t max_memory);

/* A question about one file. */
struct symbols_question {
    int fd;               /* the open file; stays the caller's */
    const char *build_id; /* lower-case hex, compared with the file's; NULL: any */
    struct symbol_mapping mapping;
    const uint64_t *addresses; /* within the mapping; sorted ones take less time */
    size_t count;              /* at most SYMBOLS_ADDRESSES_MAX */
};

/* Asks for the frames of each address. Blocks until the answer or the deadline, so only threads of
 * workers may call it; questions of several threads wait for each other. On success the caller
 * frees *ret. Returns false with the reason for people, and in *ret_failure (may be NULL) for the
 * program; the next question gets a fresh child if this one has lost its own. */
bool symbols_helper_ask(struct symbols_helper *h, const struct symbols_question *q,
                        struct symbol_frames *ret, enum symbols_failure *ret_failure,
                        struct err *err);

/* Counters since the start, for metrics. */
struct symbols_counters {
    uint64_t asked;    /* questions */
    uint64_t opened;   /* files opened; a question about the last file opens none */
    uint64_t partial;  /* of these, files whose debug information could not be read: their names are
                          those of the symbol table */
    uint64_t children; /* started, the first one included */
    uint64_t failures[SYMBOLS_FAILURES];
};
/* Any thread may call it; it does not wait for questions. */
void symbols_helper_counters(struct symbols_helper *h, struct symbols_counters *ret);

#endif
