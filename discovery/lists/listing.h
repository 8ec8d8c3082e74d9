/* One list of targets that is read again and again: a file, or the answer of a URL.
 *
 * Knows what was read last, so that the same text again changes nothing, and whether the list is
 * broken now, so that this is said once and not at every reading. A list that is broken keeps what
 * its last good text said. Pure, one owner.
 */
#ifndef PROFPULL_DISCOVERY_LISTS_LISTING_H
#define PROFPULL_DISCOVERY_LISTS_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/labels.h"
#include "base/str.h"
#include "discovery/counters.h"
#include "discovery/lists/static.h"

struct listing {
    struct config_pair mark; /* the label that says where a target comes from; referenced */
    size_t n;                /* targets of the last good text */
    bool broken;             /* the last reading failed */
    /* Private. */
    bool known;
    uint64_t hash;
};

/* Takes the text as it is now. REFRESH_CHANGED: *ret has the targets, which the caller owns.
 * REFRESH_FAILED: the targets stay as they were, the error says why. */
enum discovery_refresh listing_take(struct listing *l, struct sv text, struct intern *intern,
                                    struct static_group *ret, struct err *err);
/* Notes how a reading ended. True if that is worth a line in the log: it has broken, or is good
 * again. */
bool listing_note(struct listing *l, enum discovery_refresh result);

#endif
