/* The regex of a rule or of a label matcher: Go's syntax, anchored at both ends, dot matching the
 * newline too.
 *
 * A pattern is parsed into a tree (re2/re2.h). Literals, lists of literals and "prefix, anything,
 * suffix" are compared directly; everything else runs on PCRE2 under limits, with its JIT compiler
 * where the system allows it. Where PCRE2 reaches its limits, would set other captures than Go, or
 * cannot take the pattern, a program that is linear in the text runs instead (re2/program.h). So
 * every regex that compiles has an answer in bounded time for every text. A compiled regex is
 * immutable and may be used by many threads, each with a scratch of its own.
 */
#ifndef PROFPULL_REGEX_REGEX_H
#define PROFPULL_REGEX_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* Bytes of a pattern. */
#define REGEX_PATTERN_MAX 4096
/* PCRE2 may take so many steps times bytes of text for one match, within these bounds on its steps;
 * then the linear program takes over (re2/program.h). */
#define REGEX_WORK_MAX ((size_t)2 * 1024 * 1024)
#define REGEX_STEPS_MIN 200
#define REGEX_STEPS_MAX 100000
/* The interpreter's limits on nested backtracking and on its memory in KiB, and the most that the
 * JIT's stack may grow to. */
#define REGEX_DEPTH_LIMIT 20000
#define REGEX_HEAP_LIMIT_KIB 8192
#define REGEX_JIT_STACK_MAX ((size_t)512 * 1024)
/* The PCRE2 pattern that is written for ours, in bytes: case-insensitive classes can be long. */
#define REGEX_EMITTED_MAX ((size_t)1024 * 1024)
/* Memory for the tree of one pattern. */
#define REGEX_TREE_MAX ((size_t)16 * 1024 * 1024)

struct regex;

/* For tests, which compare the ways of running a regex. */
enum regex_flag {
    REGEX_NO_FAST = 1 << 0, /* no direct comparison */
    REGEX_NO_JIT = 1 << 1,
    REGEX_NO_PCRE2 = 1 << 2, /* the linear program, unless direct comparison will do */
};

/* pattern has at most REGEX_PATTERN_MAX bytes. The error is that of Go's regexp, with the offset.
 */
struct regex *regex_new(struct sv pattern, unsigned flags, struct err *err);
struct regex *regex_free(struct regex *re); /* accepts NULL, returns NULL */
/* The number of groups, including group 0, the whole match. */
size_t regex_groups(const struct regex *re);
/* The name of a group; empty if it has none. Groups may share a name. */
struct sv regex_group_name(const struct regex *re, size_t group);
/* True if it runs without PCRE2. */
bool regex_is_fast(const struct regex *re);

/* The position of a group in the last match; start is REGEX_UNSET if it took no part. */
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

/* subject must be valid UTF-8. On REGEX_MATCH the groups are in the scratch until the next match.
 */
enum regex_result regex_match(const struct regex *re, struct regex_scratch *s, struct sv subject,
                              struct err *err);
/* A group of the last match, for group < regex_groups(). */
struct regex_span regex_group(const struct regex_scratch *s, size_t group);

/* Length in bytes of the name after a $ at the start of v: letters, digits (Unicode's L and Nd) and
 * underscores. 0 if v is not valid UTF-8 or memory has run out. */
size_t regex_word_length(struct sv v);

#endif
