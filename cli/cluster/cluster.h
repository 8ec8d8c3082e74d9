/* The cluster that a command asks: the one that kubectl would ask on this machine, or the one that
 * this pod runs in.
 *
 * A client makes one request at a time, and each call waits for its response; it belongs to one
 * thread. Its errors name the context and the file of the kubeconfig and say what to do, and no
 * secret is in them. The exec plugin of a kubeconfig runs when the first request needs credentials.
 */
#ifndef PROFPULL_CLI_CLUSTER_CLUSTER_H
#define PROFPULL_CLI_CLUSTER_CLUSTER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "cli/flags.h"
#include "discovery/kubernetes/access.h"
#include "http/http.h"

/* The flags that choose a cluster. */
struct cluster_flags {
    const char *kubeconfig; /* NULL: KUBECONFIG, or else ~/.kube/config */
    const char *context;    /* NULL: the current context */
};

/* clang-format off: rows of a table. `at` is the member of args that is a struct cluster_flags. */
#define CLUSTER_FLAGS(args, at)                                                                    \
    FLAG(TEXT, "kubeconfig", 0, args, at.kubeconfig, "FILE",                                       \
         "the cluster and the credentials, as for kubectl; by default the files in KUBECONFIG, "   \
         "or else ~/.kube/config, or else the cluster in which profpull runs"),                    \
        FLAG(TEXT, "context", 0, args, at.context, "NAME",                                         \
             "a context of the kubeconfig instead of the current one")
/* clang-format on */

/* An access, and a name for it in messages: `context "prod" of /home/jane/.kube/config`. */
struct cluster_access {
    struct kube_access access;
    const char *name;
    /* The access is that of a person's kubeconfig; false: the service account of this pod. */
    bool is_person;
};

/* Finds the access as kubectl does: --kubeconfig, KUBECONFIG, ~/.kube/config, the service account
 * of this pod. Strings live in the arena or in the flags. */
bool cluster_access_find(const struct cluster_flags *flags, struct arena *arena,
                         struct cluster_access *ret, struct err *err);

struct cluster;

/* Makes a client; sends nothing. The access must outlive it. timeout_ms: for each request. */
struct cluster *cluster_new(const struct cluster_access *access, int64_t timeout_ms,
                            struct err *err);
struct cluster *cluster_free(struct cluster *c); /* accepts NULL, returns NULL */
const struct cluster_access *cluster_access(const struct cluster *c);

/* One request, and the permission that it needs, for messages. */
struct cluster_ask {
    const char *path; /* "/api/v1/namespaces/shop/pods", encoded */
    struct sv query;  /* "limit=1", encoded; may be empty */
    const char *verb; /* "list" */
    const char *resource;
    const char *group;     /* "apps"; NULL for the core group */
    const char *namespace; /* NULL: the whole cluster */
    int64_t timeout_ms;    /* more than the client's timeout; 0: none */
    size_t max_body;       /* 0: CLUSTER_BODY_MAX */
};
/* The largest response, in bytes: more than a list of 1,000 large pods. */
#define CLUSTER_BODY_MAX ((size_t)64 * 1024 * 1024)

/* The response to a request. */
struct cluster_answer {
    long status;
    char content_type[128];
    struct buf body;
    int64_t duration_ns;
};
void cluster_answer_done(struct cluster_answer *a);

/* Makes a request. Returns false with an error if there is no response (ERR_NETWORK), or if the API
 * server itself refuses it with 401 or 403 (ERR_REFUSED, and the message names the verb and the
 * resource that are missing). Any other status is a success; then the caller calls
 * cluster_answer_done(). */
bool cluster_ask(struct cluster *c, const struct cluster_ask *ask, struct cluster_answer *ret,
                 struct err *err);
/* Makes a request whose response is a JSON object. Returns NULL with an error on failure, and NULL
 * without an error for the status 404. The caller decrefs the result. */
json_t *cluster_get(struct cluster *c, const struct cluster_ask *ask, struct err *err);

/* Checks that the API server answers and accepts the credentials. */
bool cluster_check(struct cluster *c, struct err *err);

#endif
