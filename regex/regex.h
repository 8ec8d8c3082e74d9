/* The regex of a rule or of a label matcher. It has Go's syntax, is anchored at both ends, and its
 * dot matches the newline too.
 *
 * A pattern is parsed into a tree (re2/re2.h). Literals, lists of literals and "prefix, anything,
 * suffix" are compared directly; everything else runs on PCRE2 under limits, with its JIT compiler
 * where the system allows it. If PCRE2 reaches its limits, would set other captures than Go, or
 * cannot compile the pattern, a program whose time is linear in the text runs instead
 * (re2/program.h). So every regex that compiles gives an answer in bounded time for every text. A
 * compiled regex is immutable and may be used by many threads, each with a scratch of its own.
 */
#ifndef PROFPULL_REGEX_REGEX_H
#define PROFPULL_REGEX_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* The longest pattern, in bytes. */
#define REGEX_PATTERN_MAX 4096
/* The limit of PCRE2's steps for one match: REGEX_WORK_MAX divided by the bytes of the text, but
 * not outside REGEX_STEPS_MIN and REGEX_STEPS_MAX. At the limit the linear program takes over
 * (re2/program.h). */
#define REGEX_WORK_MAX ((size_t)2 * 1024 * 1024)
#define REGEX_STEPS_MIN 200
#define REGEX_STEPS_MAX 100000
/* The limits of the interpreter on nested backtracking and on its memory in KiB, and the limit of
 * the JIT's stack in bytes. */
#define REGEX_DEPTH_LIMIT 20000
#define REGEX_HEAP_LIMIT_KIB 8192
#define REGEX_JIT_STACK_MAX ((size_t)512 * 1024)
/* The longest PCRE2 pattern that is generated for a pattern, in bytes. Case-insensitive classes can
 * be long. */
#define REGEX_EMITTED_MAX ((size_t)1024 * 1024)
/* The limit of the memory for the tree of one pattern. */
#define REGEX_TREE_MAX ((size_t)16 * 1024 * 1024)

struct regex;

/* Flags for tests, which compare the ways of running a regex. */
enum regex_flag {
    REGEX_NO_FAST = 1 << 0, /* no direct comparison */
    REGEX_NO_JIT = 1 << 1,
    REGEX_NO_PCRE2 = 1 << 2, /* the linear program, unless direct comparison will do */
};

/* Compiles a pattern of at most REGEX_PATTERN_MAX bytes. Returns NULL with the error message of
 * Go's regexp and the offset. */
struct regex *regex_new(struct sv pattern, unsigned flags, struct err *err);
struct regex *regex_free(struct regex *re); /* accepts NULL, returns NULL */
/* Returns the number of groups, including group 0, the whole match. */
size_t regex_groups(const struct regex *re);
/* Returns the name of a group, or an empty view if it has none. Several groups may have the same
 * name. */
struct sv regex_group_name(const struct regex *re, size_t group);
/* Returns true if the regex is compared directly, without PCRE2. */
bool regex_is_fast(const struct regex *re);

/* The position of a group in the last match. start is REGEX_UNSET if the group took no part in
 * it. */
#define REGEX_UNSET SIZE_MAX
struct regex_span {
    size_t start;
    size_t end;
};

struct regex_scratch;
struct regex_scratch *regex_scratch_new(void); /* NULL if out of memory */
struct regex_scratch *regex_scratch_free(struct regex_scratch *s);

enum regex_result {
    REGEX_NO_MATCH,
    REGEX_MATCH,
    REGEX_FAILED, /* out of memory: the result is unknown */
};

/* Matches a subject, which must be valid UTF-8. After REGEX_MATCH the scratch holds the groups
 * until the next match. */
enum regex_result regex_match(const struct regex *re, struct regex_scratch *s, struct sv subject,
                              struct err *err);
/* Returns a group of the last match; group < regex_groups(). */
struct regex_span regex_group(const struct regex_scratch *s, size_t group);

/* Returns the length in bytes of the name at the start of v, which followed a $: letters, digits
 * (Unicode's L and Nd) and underscores. Returns 0 if v is not valid UTF-8 or if out of memory. */
size_t regex_word_length(struct sv v);

#endif
