/* A parsed regex as a program that runs in time linear in the text, so that no pattern can stall
 * it.
 *
 * The program is that of Go's regexp (regexp/syntax: simplify.go, prog.go), and so are its matches
 * and captures: the leftmost branch has priority, and a repetition of something that can match the
 * empty text takes part in the match once. It is slower than PCRE2 on ordinary patterns, so it runs
 * where PCRE2 would take too long or would set other captures.
 *
 * A program is immutable and may be used by many threads, each with a scratch of its own.
 */
#ifndef PROFPULL_REGEX_RE2_PROGRAM_H
#define PROFPULL_REGEX_RE2_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "regex/re2/re2.h"

/* The limits of a program: its instructions, with counted repetitions written out; and the threads
 * of a match times their capture slots, which bounds the memory of a match. A regex without counted
 * repetitions is too short to reach either. */
#define RE2_PROGRAM_MAX 250000
#define RE2_PROGRAM_SLOTS_MAX 4500000

enum re2_instruction_op {
    RE2_I_RUNE,   /* arg: the rune */
    RE2_I_CLASS,  /* arg: index in classes */
    RE2_I_ANY,    /* any rune */
    RE2_I_SPLIT,  /* next is tried before arg */
    RE2_I_SAVE,   /* arg: the slot that takes the position */
    RE2_I_ASSERT, /* arg: an enum re2_op without width */
    RE2_I_MATCH,  /* at the end of the text */
};

struct re2_instruction {
    uint32_t op : 3;
    uint32_t next : 29;
    uint32_t arg;
};

/* A character class. Its ranges are enough unless it names Unicode properties. */
struct re2_class_set {
    uint32_t ascii[4]; /* a bit for each of the first 128 runes */
    const struct rune_range *ranges;
    size_t n_ranges;
    struct pcre2_real_code_8 *properties; /* matches a rune of the class; NULL: ranges are all */
};

struct re2_program {
    struct re2_instruction *at;
    size_t n;
    size_t start;
    size_t n_slots; /* two for each group but group 0, which is the whole text */
    struct re2_class_set *classes;
    size_t n_classes;
};

/* Compiles a tree. The program copies what it needs of the tree, but refers to classes in the
 * arena, which must outlive it. Returns NULL with ERR_LIMIT if the program would exceed the limits
 * above, with ERR_INPUT if PCRE2 does not know one of its Unicode classes, or with ERR_MEMORY. */
struct re2_program *re2_program_new(const struct re2 *re, struct arena *arena, struct err *err);
struct re2_program *re2_program_free(struct re2_program *p); /* accepts NULL, returns NULL */

/* Working memory of matches. One thread at a time may use it. */
struct re2_scratch;
struct re2_scratch *re2_scratch_new(void);                   /* NULL if out of memory */
struct re2_scratch *re2_scratch_free(struct re2_scratch *s); /* accepts NULL, returns NULL */

/* Matches the whole text, which must be valid UTF-8. If it matches, slots[2 * i] and slots[2 * i +
 * 1] are the bounds of group i in bytes, SIZE_MAX where it took no part; slots has two elements for
 * each group, group 0 included. Returns false if out of memory. */
bool re2_program_match(const struct re2_program *p, struct re2_scratch *s, struct sv text,
                       size_t *slots, bool *ret_matches);

#endif
