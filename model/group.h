/* What discovery tells: the raw label sets that one source stands for now.
 *
 * A source is a Kubernetes object ("pod/default/web-7f"), a static list, a file or a URL. A
 * group replaces all that was known of its source; one without label sets removes it. Made by
 * discovery on its thread, valid during the callback; take references to keep label sets.
 */
#ifndef PROFPULL_MODEL_GROUP_H
#define PROFPULL_MODEL_GROUP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/labels.h"

struct target_group {
    size_t job;         /* index in config->jobs */
    const char *source; /* unique within the job */
    struct labels *const *targets;
    size_t n_targets;
    /* The host that may be contacted for these targets ("10.1.2.3"), when the one who labels them
     * must not choose it: a pod's own address. NULL where the operator wrote the address. */
    const char *pinned_host;
    /* The same where every target has a host of its own: it may not be another one than that of the
     * __address__ here. */
    bool pin_addresses;
    bool moved; /* another replica had it, and we did not know what it stands for */
};

#endif
