/* Label selectors: `{service_name="cart", pod=~"a.*"}`, as Prometheus and Pyroscope write them.
 *
 *     selector = [ metric-name ] [ "{" [ matcher *( "," matcher ) [","] ] "}" ]
 *     matcher  = ( label-name / quoted ) op quoted  /  quoted
 *     op       = "=" / "!=" / "=~" / "!~"
 *
 * At least one of name and braces is needed; a name, or a bare quoted string, means `__name__`.
 * Regexes are Go's, anchored at both ends. A missing label equals "". Immutable; a selector is used
 * by one thread at a time (it has the scratch of its regexes).
 */
#ifndef PROFPULL_MODEL_SELECTOR_H
#define PROFPULL_MODEL_SELECTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/labels.h"
#include "base/str.h"

#define SELECTOR_BYTES_MAX ((size_t)64 * 1024)
#define SELECTOR_MATCHERS_MAX 256

enum matcher_op { MATCH_EQUAL, MATCH_NOT_EQUAL, MATCH_REGEX, MATCH_NOT_REGEX };

struct selector;

/* Makes an empty selector, which matches everything. NULL if out of memory. */
struct selector *selector_new(struct err *err);
/* Parses a selector. Returns NULL with an error that begins with line:column: `1:9: parse error:
 * ...`; ERR_LIMIT beyond the limits above. */
struct selector *selector_parse(struct sv text, struct err *err);
/* Adds a matcher: labels match only if it holds, too. Copies both texts. */
bool selector_add(struct selector *s, struct sv name, enum matcher_op op, struct sv value,
                  struct err *err);
/* Adds the matchers of a selector in text form. */
bool selector_add_parsed(struct selector *s, struct sv text, struct err *err);
struct selector *selector_copy(const struct selector *s, struct err *err);
struct selector *selector_free(struct selector *s); /* accepts NULL, returns NULL */

/* Returns true if labels, which are in byte order of names, match. Returns false, too, if there is
 * no memory for a regex. */
bool selector_matches(const struct selector *s, const struct label *labels, size_t n);
/* Returns the value that a label must have; callers use it for lookups. NULL if no matcher requires
 * a value, or if the value is "". */
const struct sv *selector_equal(const struct selector *s, const char *name);
struct selector_matcher {
    struct sv name;
    enum matcher_op op;
    struct sv value;
};
/* Sets *ret to the i-th matcher, in order of their addition; its texts are valid as long as the
 * selector. False if there are not that many. */
bool selector_at(const struct selector *s, size_t i, struct selector_matcher *ret);
/* Appends a matcher as text that selector_parse() reads within braces: `pod="cart-1"`. */
bool selector_put(const struct selector_matcher *m, struct buf *out);
/* Removes the first matcher that requires a value of a label, and sets *ret to the value, which is
 * valid as long as the selector. False if there is none. */
bool selector_take(struct selector *s, const char *name, struct sv *ret);

#endif
