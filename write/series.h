/* The labels of a profile as a protocol can carry them.
 *
 * Built for each attempt from the profile's labels and the endpoint's external labels; nothing is
 * kept with the queued profile. The rules, in this order:
 *
 *  1. An external label replaces the target's label of the same name (an empty one removes it).
 *  2. `__*` labels are dropped, except `__name__` and `__delta__`; `__tenant_id__` gives the
 *     tenant. A protocol may keep those that a sender gave to a profile.
 *  3. Names are rewritten to the protocol's character set (enum series_names) instead of losing the
 *     profile.
 *  4. Of two labels that have the same name now, one is kept: an external label before a target's,
 *     a name that needed no change before a changed one, then the first in the order of the
 *     original names. Where names are rewritten, names that differ only in "." and "_" count as the
 *     same, because Pyroscope 1.x folds them.
 *  5. Labels over the endpoint's limits (by default 1024, 2048, and 24 of a Pyroscope's 30) are
 *     cut, unless the protocol is unlimited. A name that is too long loses its label, and a value
 *     loses its end. Of too many labels the last are dropped in this order of worth: `__name__`,
 *     `__delta__`, service_name; instance, job, namespace, pod, container; external labels; the
 *     rest; each group by name.
 *
 * Pure; any thread.
 */
#ifndef PROFPULL_WRITE_SERIES_H
#define PROFPULL_WRITE_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/labels.h"
#include "base/str.h"
#include "config/config.h"

/* The number of labels that a server adds to those in braces. */
#define SERIES_BRACES_ADDED 4
/* The longest tenant that a Pyroscope accepts, in bytes. */
#define SERIES_TENANT_MAX 150
/* The name that servers from 1.14 on store when there is no service_name; older ones refuse the
 * profile. */
#define SERIES_NO_SERVICE "unknown_service"

/* The names that a protocol carries. */
enum series_names {
    SERIES_NAMES_ALL,    /* all UTF-8 */
    SERIES_NAMES_DOTTED, /* [A-Za-z_][A-Za-z0-9_.]*, which every version of Pyroscope accepts */
    SERIES_NAMES_PLAIN,  /* [A-Za-z_][A-Za-z0-9_]*: DeepFlow and old Pyroscopes as well */
};

/* The labels that a protocol carries. */
struct series_rules {
    enum series_names names;
    /* The labels are in braces after the service name: "app{key=value,...}". So values cannot have
     * "," or "}", and the SERIES_BRACES_ADDED labels that the server adds count towards the limit.
     */
    bool in_braces;
    bool unlimited;     /* the endpoint's limits do not matter */
    bool keeps_private; /* `__*` labels stay; of a protocol: those that a sender gave */
};

/* The changes of labels, for the metric of that name; counts of labels. */
enum series_change {
    SERIES_RENAMED,   /* the name was rewritten */
    SERIES_COLLISION, /* dropped: another label has the same name after rewriting */
    SERIES_LONG_NAME, /* dropped: name over the limit */
    SERIES_SURPLUS,   /* dropped: too many labels, or an ingest name that is too long */
    SERIES_TRUNCATED, /* value cut */
    SERIES_REPAIRED,  /* value was not UTF-8 (ingest: or held "," or "}") */
    SERIES_TENANT,    /* `__tenant_id__` is no tenant that a server would take: not used */
    SERIES_CHANGES    /* count */
};
/* Returns "renamed", "collision", ... Static storage. */
const char *series_change_name(enum series_change change);

struct series_label {
    struct sv name;
    struct sv value;
    uint8_t worth; /* order of dropping, 0 is never dropped; private */
};

struct series {
    struct series_label *at; /* in order of names */
    size_t n;
    struct sv type;    /* value of `__name__`; empty if there is none */
    struct sv service; /* never empty */
    struct sv tenant;  /* from the label, valid; empty if none */
    uint32_t changes[SERIES_CHANGES];
    struct sv examples[SERIES_CHANGES]; /* the first label of each change that the limits made */
    struct arena *arena;                /* private */
};

/* Builds the series. rules: those of the protocol, constant. Returns false if out of memory
 * (nothing to free then). Views point into l and the series: keep both until series_done(). */
bool series_build(struct series *s, const struct labels *l, const struct config_pairs *external,
                  const struct config_label_limits *limits, const struct series_rules *rules);
void series_done(struct series *s);
/* Appends a name in the form that these rules allow. Returns false if out of memory. */
bool series_put_name(enum series_names names, struct sv name, struct buf *out);
/* Returns the value of a label; empty if there is no such label. */
struct sv series_get(const struct series *s, const char *name);
/* Drops the label that is worth least, and counts it as SERIES_SURPLUS. Returns false if only
 * `__name__`, `__delta__` and service_name are left. */
bool series_drop_least(struct series *s);

/* Returns true for a tenant id that a Pyroscope accepts: 1 to 150 of [A-Za-z0-9!_.*'()-], not "."
 * or "..". */
bool series_tenant_valid(struct sv tenant);
/* Returns the tenant that series_build() would find, without building a series; empty if there is
 * none. */
struct sv series_tenant(const struct labels *l, const struct config_pairs *external);

#endif
