/* A target group: the label sets that one discovery source has now, before relabelling.
 *
 * A source is a Kubernetes object ("pod/default/web-7f"), a static list, a file or a URL. A group
 * replaces the earlier group of its source; a group without label sets removes the source.
 * Discovery builds groups on its own thread. A group is valid during the callback; take references
 * to keep its label sets.
 */
#ifndef PROFPULL_MODEL_GROUP_H
#define PROFPULL_MODEL_GROUP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/labels.h"

/* The kind of a group decides which hosts its targets may have after relabelling: a person who can
 * only label a Kubernetes object must not choose the host. */
enum target_group_kind {
    GROUP_LISTED, /* addresses that the operator listed: any host */
    GROUP_OBJECT, /* a Kubernetes object whose targets differ in host: for each target the host of
                   * its own __address__ */
    GROUP_POD,    /* a pod, all of whose targets have the host `pinned_host` */
};

struct target_group {
    size_t job;         /* its slot (config/change.h) */
    const char *source; /* unique within the job */
    enum target_group_kind kind;
    struct labels *const *targets;
    size_t n_targets;
    const char *pinned_host; /* address of a GROUP_POD with targets ("10.1.2.3"); else NULL */
    bool moved; /* another replica owned the object, so that its targets were not known here */
};

#endif
