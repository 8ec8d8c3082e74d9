/* Drops and renames the labels of samples before a profile is sent.
 *
 * A profile that needs no change stays the same, byte for byte: most profiles have no labels. In a
 * profile that changes, all other fields keep their place, and new strings follow the old ones. Any
 * thread.
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

/* Labels of one sample that are looked at; further ones are surplus in a profile that changes. */
#define SAMPLE_LABELS_MAX 1024
/* Different names in a profile; one with more is not rewritten. */
#define SAMPLE_LABEL_NAMES_MAX 4096

enum sample_label_change {
    SAMPLE_LABEL_DROPPED,   /* by drop or keep */
    SAMPLE_LABEL_RENAMED,   /* by rename */
    SAMPLE_LABEL_REPAIRED,  /* a name or value that could not be carried */
    SAMPLE_LABEL_COLLISION, /* dropped: another label of the sample has the name */
    SAMPLE_LABEL_SURPLUS,   /* dropped: too many names */
    SAMPLE_LABEL_CHANGES,   /* count */
};
/* "dropped", "renamed", ... */
const char *sample_label_change_name(enum sample_label_change change);

struct sample_label_rules {
    /* Asked for each name once: appends the name to send, nothing to drop the label. Returns what
     * that is, SAMPLE_LABEL_CHANGES if it is nothing. */
    enum sample_label_change (*name)(void *arg, struct sv name, struct buf *out);
    void *arg;
    bool numbers; /* labels that are numbers are looked at as well: name() may drop or rename one */
    /* The following apply to labels that are texts. */
    bool repair;      /* values that are not UTF-8 or too long; names that differ only in "." and
                         "_" are the same */
    size_t names_max; /* of one sample: of more, those stay that most samples have */
    size_t value_max; /* bytes, with repair */
};

/* The result of rewriting a profile. */
struct sample_labels_result {
    char *data; /* the new one as gzip, from malloc(); NULL: there is nothing to change */
    size_t size;
    struct sv plain; /* what came, inflated, until the next use of the scratch */
    bool labelled;   /* it has labels that the rules are about: texts, or numbers too */
    uint64_t changes[SAMPLE_LABEL_CHANGES]; /* labels */
};

/* Rewrites a profile, gzip or plain, of at most max bytes inflated. False with ERR_INPUT for one
 * that is damaged, ERR_LIMIT, ERR_MEMORY; data is NULL then. */
bool sample_labels_rewrite(struct scratch *s, struct sv body, size_t max,
                           const struct sample_label_rules *rules, struct sample_labels_result *ret,
                           struct err *err);

#endif
