/* DeepFlow's tag_filter: a condition of SQL, in MySQL's dialect, on the tags of a profile.
 *
 *     or      = and { OR and }
 *     and     = not { AND not }
 *     not     = { NOT } ( "(" or ")" / test )
 *     test    = tag op literal / tag [NOT] IN "(" literal { "," literal } ")"
 *             / tag [NOT] LIKE text / tag [NOT] REGEXP text
 *     op      = "=" / "!=" / "<>" / "<" / "<=" / ">" / ">="
 *     tag     = letters, digits, "_" and "." / anything in backticks
 *     literal = 'text' / "text" / number
 *
 * Keywords may be in any case. A number compares by value with a tag whose value is a number, all
 * else bytewise. In LIKE, "%" and "*" stand for any text and "_" for one character; a regex is
 * RE2's and may match anywhere. In a text, a doubled quote is a quote, and of the escapes with a
 * backslash those that MySQL does not know keep it, so that regexes need not double theirs.
 *
 * One thread at a time: a filter holds the scratch of its regexes.
 */
#ifndef PROFPULL_API_TAG_FILTER_H
#define PROFPULL_API_TAG_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

/* Limits of a filter: its bytes, its tests, and its nested parentheses. */
#define TAG_FILTER_BYTES_MAX ((size_t)64 * 1024)
#define TAG_FILTER_TESTS_MAX 1024
#define TAG_FILTER_DEPTH_MAX 64
/* Limit of the pattern of LIKE, in bytes. */
#define TAG_FILTER_LIKE_MAX ((size_t)4096)

struct tag_filter;

/* Parses a filter; a blank text matches everything. NULL with ERR_INPUT, whose message has the
 * column, or ERR_LIMIT. */
struct tag_filter *tag_filter_parse(struct sv text, struct err *err);
struct tag_filter *tag_filter_free(struct tag_filter *f); /* accepts NULL, returns NULL */

/* Returns the value of a tag; empty for a tag that does not exist. */
typedef struct sv tag_filter_value(void *arg, struct sv tag);

/* Evaluates the filter: *ret_matches is the result. False only if out of memory. */
bool tag_filter_matches(struct tag_filter *f, tag_filter_value *value, void *arg, bool *ret_matches,
                        struct err *err);

#endif
