/* A target group: the raw label sets that one discovery source has now.
 *
 * A source is a Kubernetes object ("pod/default/web-7f"), a static list, a file or a URL. A group
 * replaces everything known of its source; one without label sets removes it. Discovery builds
 * groups on its own thread; they are valid during the callback. Take references to keep label sets.
 */
#ifndef PROFPULL_MODEL_GROUP_H
#define PROFPULL_MODEL_GROUP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/labels.h"

/* What a group stands for, which decides the hosts that its targets may be aimed at: whoever labels
 * a Kubernetes object must not choose them. */
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
    const char *pinned_host; /* of a GROUP_POD with targets: its address ("10.1.2.3"); else NULL */
    bool moved; /* another replica owned the object, so that its targets were not known here */
};

#endif
