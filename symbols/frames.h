/* Names for addresses: the functions, files and lines that debug information or a symbol table
 * gives for each address of a question.
 *
 * A `struct symbol_frames` is one allocation with its strings; symbol_frames_free() frees it. After
 * it is made it never changes, so any thread may read it.
 */
#ifndef PROFPULL_SYMBOLS_FRAMES_H
#define PROFPULL_SYMBOLS_FRAMES_H

#include <stddef.h>
#include <stdint.h>

struct symbol_frame {
    const char *function;    /* for people: demangled if it was mangled; never empty */
    const char *system_name; /* as the file has it; never empty */
    const char *file;        /* "" if unknown */
    int64_t line;            /* 0: unknown */
    int64_t start_line;      /* line of the function's declaration; 0: unknown */
};

/* A mapping of a file into memory, as profiles have it. All addresses of a question belong to one.
 * With limit 0 there was no mapping: addresses are virtual addresses of the file. */
struct symbol_mapping {
    uint64_t start;
    uint64_t limit;
    uint64_t offset; /* in the file, of the byte at `start` */
};

struct symbol_frames {
    /* The frames of all addresses, in the order of the question; of each, the innermost (inlined)
     * function first, as the lines of a location in pprof. */
    const struct symbol_frame *frames;
    const uint32_t *ends; /* for each address, the index after its last frame */
    size_t n;             /* addresses */
    size_t n_frames;
    void *owner; /* private */
};

/* Returns the frames of the i-th address and their number; 0 if the file has no name for it. */
static inline const struct symbol_frame *symbol_frames_of(const struct symbol_frames *f, size_t i,
                                                          size_t *ret_n)
{
    uint32_t first = i == 0 ? 0 : f->ends[i - 1];
    *ret_n = f->ends[i] - first;
    return f->frames + first;
}

/* Frees the frames and empties the struct. An empty struct ({0}) is accepted. */
void symbol_frames_free(struct symbol_frames *f);

#endif
