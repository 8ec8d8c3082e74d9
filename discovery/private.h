/* The internals of a discovery, shared by discovery.c and source.c. Everything runs on the loop's
 * thread. */
#ifndef PROFPULL_DISCOVERY_PRIVATE_H
#define PROFPULL_DISCOVERY_PRIVATE_H

#include <sys/queue.h>

#include "base/clock.h"
#include "discovery/counters.h"
#include "discovery/discovery.h"
#include "discovery/kubernetes/kubernetes.h"
#include "discovery/lists/file.h"
#include "discovery/lists/http.h"
#include "discovery/lists/static.h"

/* "kubernetes/<n>/" */
#define PREFIX_MAX 40
/* A source's name: prefix, role, "/", namespace, "/", name. */
#define SOURCE_MAX (PREFIX_MAX + 32 + OBJECT_KEY_MAX)

/* An API server with credentials. It is freed when it has no more users. */
struct kube_server {
    LIST_ENTRY(kube_server) link;
    struct config *owner; /* a reference; NULL: `config` is static */
    const struct config_kubernetes *config;
    struct arena *arena;
    struct kube_access access;
    size_t n_users;
};
LIST_HEAD(kube_servers, kube_server);

/* A watch for the sources of several jobs. */
struct kube_source {
    LIST_ENTRY(kube_source) link;
    struct discovery *d;
    struct config *owner; /* a reference */
    const struct config_kubernetes *config;
    struct kube_server *server;
    struct kubernetes *kubernetes;
    size_t n_users;
    bool shared;  /* pods of other replicas are not reported */
    bool started; /* once started, no further source may join */
};
LIST_HEAD(kube_sources, kube_source);

/* A source of a job. */
struct job_source {
    TAILQ_ENTRY(job_source) link;
    struct discovery *d;
    struct config *owner; /* a reference */
    const struct config_source *config;
    size_t job; /* slot of the job */
    const char *job_name;
    char shown[PREFIX_MAX]; /* "kubernetes/<n>" */
    /* name of the group; for files and objects the part before their path */
    char name[PREFIX_MAX];
    struct kube_source *kube;
    struct file_sd *files;
    struct http_sd *url;
    bool started;
};
TAILQ_HEAD(job_sources, job_source);

/* Groups that former sources of a job have reported, and that the present sources have not reported
 * (yet). */
struct leftovers {
    LIST_ENTRY(leftovers) link;
    size_t job;
    struct map *names;   /* -> itself */
    int64_t deadline_ms; /* the time at which they are dropped in any case */
};
LIST_HEAD(leftover_list, leftovers);

/* Reads of Secrets and ConfigMaps. */
struct contents {
    struct config *owner; /* a reference */
    struct kube_server *server;
    struct kube_contents *at;
};

struct discovery {
    struct discovery_options options;
    struct config *config; /* the configuration in force; a reference */
    struct discovery_counters counters;
    struct rng rng;
    struct http_client *http_sd; /* NULL without http sources */
    struct loop_timer *start;
    struct loop_timer *settle;
    struct reflectors reflectors; /* has no client if there are no kubernetes sources */
    struct discovery_sharing sharing;
    struct peers *peers; /* NULL unless targets are shared in a cluster */
    struct kube_server *peers_server;
    struct config *peers_owner; /* a reference to the configuration that owns their settings */
    struct contents contents;   /* empty unless the configuration names Secrets or ConfigMaps */
    struct kube_servers servers;
    struct kube_sources kube;
    struct job_sources sources;
    struct leftover_list leftovers;
    bool started; /* the sources have started, because members and contents are known */
    bool synced;
    int64_t unread[UNREAD_COUNT]; /* as counted in the metrics */
    /* as counted in the metrics; files and URLs are counted in lists/ */
    int64_t groups[GROUPS_COUNT];
};

/* ---- discovery.c ----------------------------------------------------------------------------- */

/* Reports a group of a source to the user. */
void discovery_report(struct discovery *d, const struct target_group *group);
/* Called when the state of a source may have changed. */
void discovery_on_progress(void *arg);
/* Adds n to the number of groups of a kind. */
void discovery_count(struct discovery *d, enum discovery_groups kind, int64_t n);
/* Updates the number of groups after Kubernetes objects have been reported. */
void discovery_count_objects(struct discovery *d);

/* ---- source.c -------------------------------------------------------------------------------- */

/* Makes the client if there is none yet. */
bool discovery_need_http(struct discovery *d, struct http_client **client, const char *name,
                         struct err *err);

/* Returns the server of a kubernetes source, and adds a user to it. owner: see the struct. */
struct kube_server *kube_server_get(struct discovery *d, const struct config *owner,
                                    const struct config_kubernetes *config, struct err *err);
/* Removes a user. Call it after freeing the objects that use its access. Accepts NULL, returns
 * NULL. */
struct kube_server *kube_server_unref(struct kube_server *server);

/* Makes a source of a job, which reports nothing before source_start(). The error names its
 * position. */
struct job_source *source_new(struct discovery *d, const struct config *owner,
                              const struct config_job *job, size_t index, struct err *err);
void source_start(struct job_source *s);
/* Returns true if all groups of the source have been reported. */
bool source_is_known(const struct job_source *s);
/* Calls fn with the name of each group that the source has reported. */
void source_each(struct job_source *s, void (*fn)(void *arg, const char *name), void *arg);
/* Frees a source; reports nothing. Accepts NULL, returns NULL. */
struct job_source *source_free(struct job_source *s);

#endif
