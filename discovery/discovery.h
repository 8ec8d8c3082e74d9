/* Discovery: watches the sources of the configuration and reports the label sets of their targets.
 *
 * Runs on a loop of its own (the discovery thread); knows no rules and no profiles. It hands target
 * groups to a callback on that thread: first the complete state of a source, then each change when
 * it happens. Kubernetes objects are cut out of the stream and parsed one at a time; of a pod only
 * its name and a hash of its label sets are kept, so that an update without effect is not reported.
 *
 * Sources are called "pod/<namespace>/<name>" (svc, node, ...), "static/<n>", "file/<n>/<path>" and
 * "http/<n>"; in a job with several kubernetes sources, which may find the same pod,
 * "kubernetes/<n>/pod/<namespace>/<name>" (n: index of the source in the job). Sources that need
 * the same objects of the same API server (the cluster's own, one kubeconfig file, or one
 * api_server with the same HTTP settings) share a watch, across jobs.
 *
 * Reference: Prometheus discovery/kubernetes for labels, client-go's reflector for list and watch.
 */
#ifndef PROFPULL_DISCOVERY_DISCOVERY_H
#define PROFPULL_DISCOVERY_DISCOVERY_H

#include "base/err.h"
#include "base/labels.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "config/config.h"
#include "discovery/callbacks.h"
#include "discovery/sources.h"
#include "http/contents.h"
#include "model/group.h"

struct discovery;
struct kube_access;

struct discovery_options {
    const struct config *config; /* takes a reference */
    struct loop *loop;
    struct intern *intern;
    struct log *log;
    struct metrics *metrics;
    struct sources *sources; /* gets the state of each source; outlives discovery */
    /* Takes a group of targets. Called on the loop's thread; the group is valid during the call. */
    void (*on_group)(void *arg, const struct target_group *group);
    /* Returns true if a label of a Kubernetes object can have an effect on the targets of a job;
     * called once for each name. Labels without effect for any job are not built, and changes of
     * them are not reported. Labels whose name does not begin with "__meta_" must be wanted. On the
     * loop's thread. NULL: all labels are built. */
    bool (*wants_label)(void *arg, size_t job, struct sv name);
    /* Called once, on the loop's thread, when every source has been read for the first time or the
     * API server has refused it (403, 404). May be NULL. */
    void (*on_synced)(void *arg);
    /* Called on the loop's thread when a permission is found to be missing, and not again while it
     * stays missing. May be NULL. */
    void (*on_forbidden)(void *arg, const struct discovery_forbidden *what);
    void *arg;
    /* Gets the values of the Secrets and ConfigMaps that the configuration names; may be NULL if it
     * names none. */
    struct http_contents *contents;
    /* The time without progress after which a list of the API server is given up, in milliseconds.
     * 0: the defaults of kubernetes/watch.h. */
    int64_t list_progress_ms;
    /* Set if replicas share the targets; may be NULL. */
    const struct discovery_sharing *sharing; /* copied */
    /* The cluster of sources that name neither kubeconfig_file nor api_server, for a command on
     * somebody's machine (kubernetes/access.h). NULL: the one that this pod runs in. Referenced. */
    const struct kube_access *local;
};

/* Reads credentials and prepares; nothing is sent before the loop runs. An error names the job and
 * the file or variable that is missing. */
struct discovery *discovery_new(const struct discovery_options *options, struct err *err);
/* Ends all requests and reports nothing. Call it on the loop's thread, but not within a callback,
 * or when the loop does not run. Accepts NULL, returns NULL. */
struct discovery *discovery_free(struct discovery *d);

/* A change to another configuration, in three steps: prepare, retire, commit. They run on the
 * loop's thread, but not within a callback. Jobs are identified by their slots (config/change.h).
 *
 * Sources of kept jobs are not touched. A changed job gets new sources, which report everything
 * again; watches of the same objects are shared with the other jobs, and listed once more. Groups
 * that only its former sources have reported are reported as gone when all new sources have been
 * read, or after five minutes. Groups of other jobs end at once.
 */
struct discovery_change;
/* Makes new sources for the jobs that are not kept (kept: by slot); sends nothing. The settings of
 * sharding must be the same as before. On failure it returns NULL with an error like that of
 * discovery_new(), and nothing has changed. */
struct discovery_change *discovery_prepare(struct discovery *d, const struct config *next,
                                           const bool *kept, struct err *err);
/* Ends the sources of the jobs that are not kept. Call it while on_group still applies the former
 * rules. */
void discovery_retire(struct discovery_change *c);
/* Starts the new sources; call it after discovery_retire(). Frees c, returns NULL. */
struct discovery_change *discovery_commit(struct discovery_change *c);
/* Drops a prepared change, in place of retire and commit. Accepts NULL, returns NULL. */
struct discovery_change *discovery_discard(struct discovery_change *c);

#endif
