/* Drops and renames the labels of samples before a profile is sent.
 *
 * A profile that needs no change stays the same, byte for byte; most profiles have no labels. In a
 * profile that changes, all other fields keep their place, and new strings follow the old ones. Any
 * thread may call these functions.
 */
#ifndef PROFPULL_PPROF_SAMPLE_LABELS_H
#define PROFPULL_PPROF_SAMPLE_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "pprof/scratch.h"

/* The most labels of one sample that the rules see. Further labels are dropped as surplus if the
 * profile changes. */
#define SAMPLE_LABELS_MAX 1024
/* The most different names in a profile. A profile with more names is not rewritten. */
#define SAMPLE_LABEL_NAMES_MAX 4096

enum sample_label_change {
    SAMPLE_LABEL_DROPPED,   /* by drop or keep */
    SAMPLE_LABEL_RENAMED,   /* by rename */
    SAMPLE_LABEL_REPAIRED,  /* a name or value that could not be carried */
    SAMPLE_LABEL_COLLISION, /* dropped: another label of the sample has the name */
    SAMPLE_LABEL_SURPLUS,   /* dropped: too many names */
    SAMPLE_LABEL_CHANGES,   /* count */
};
/* Returns "dropped", "renamed", ... Static storage. */
const char *sample_label_change_name(enum sample_label_change change);

struct sample_label_rules {
    /* Called once for each name. Appends the name to send, or nothing to drop the label. Returns
     * the kind of change, SAMPLE_LABEL_CHANGES if there is none. */
    enum sample_label_change (*name)(void *arg, struct sv name, struct buf *out);
    void *arg;
    bool numbers; /* the rules apply to labels that are numbers as well: name() may drop or rename
                     one */
    /* The following apply to labels that are texts. */
    bool repair;      /* values that are not UTF-8 or too long; names that differ only in "." and
                         "_" are the same */
    size_t names_max; /* of one sample: if there are more, the names that most samples have stay */
    size_t value_max; /* bytes, with repair */
};

/* The result of rewriting a profile. */
struct sample_labels_result {
    char *data; /* the new one as gzip, from malloc(); NULL: there is nothing to change */
    size_t size;
    /* the original profile, inflated; valid until the next use of the scratch */
    struct sv plain;
    /* the profile has labels to which the rules apply: texts, or numbers too */
    bool labelled;
    uint64_t changes[SAMPLE_LABEL_CHANGES]; /* labels */
};

/* Rewrites a profile, gzip or plain, of at most max bytes inflated. On failure returns false with
 * ERR_INPUT for a damaged profile, ERR_LIMIT or ERR_MEMORY, and data is NULL. */
bool sample_labels_rewrite(struct scratch *s, struct sv body, size_t max,
                           const struct sample_label_rules *rules, struct sample_labels_result *ret,
                           struct err *err);

#endif
