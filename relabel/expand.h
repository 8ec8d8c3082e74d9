/* Expands templates with references to capture groups ($1, ${1}, $name, ${name}, $$), as Go's
 * Regexp.Expand does.
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
    struct sv text; /* the literal text if n_groups is 0 */
    /* The groups that the reference may mean, since several may share a name. The first one that
     * took part in the match is expanded. */
    const size_t *groups;
    size_t n_groups;
};

/* Immutable; lives in the arena it was made in. */
struct expansion {
    const struct expansion_piece *pieces;
    size_t n;
};

/* Compiles a template. The text must be valid UTF-8; text and re must outlive the template. False
 * if out of memory. */
bool expansion_init(struct expansion *t, struct arena *arena, struct sv text,
                    const struct regex *re);
/* Returns true, and the text in *ret_text, for a template without references: it always expands to
 * that text. */
bool expansion_is_constant(const struct expansion *t, struct sv *ret_text);
/* Appends the expansion after a match of that regex on subject. */
bool expansion_write(const struct expansion *t, const struct regex_scratch *s, struct sv subject,
                     struct buf *out);

#endif
