/* Templates with references to capture groups: $1, ${1}, $name, ${name}, $$ (Go's Regexp.Expand).
 *
 * A name is the longest run of letters, digits and underscores. Digits without a leading zero are
 * the number of a group, anything else is the name of one. A group that does not exist or did not
 * take part in the match expands to nothing. A $ without a reference after it stands for itself.
 */
#ifndef PROFPULL_RELABEL_EXPAND_H
#define PROFPULL_RELABEL_EXPAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "regex/regex.h"

struct expansion_piece {
    struct sv text; /* if n_groups is 0 */
    /* The first of these that took part in the match counts; groups may share a name. */
    const size_t *groups;
    size_t n_groups;
};

/* Immutable; lives in the arena it was made in. */
struct expansion {
    const struct expansion_piece *pieces;
    size_t n;
};

/* text must be valid UTF-8 and outlive the template, and so must re. False if out of memory. */
bool expansion_init(struct expansion *t, struct arena *arena, struct sv text,
                    const struct regex *re);
/* The text of a template without references, which expands to itself; false if it has some. */
bool expansion_is_constant(const struct expansion *t, struct sv *ret_text);
/* Appends the expansion after a match of that regex on subject. */
bool expansion_write(const struct expansion *t, const struct regex_scratch *s, struct sv subject,
                     struct buf *out);

#endif
