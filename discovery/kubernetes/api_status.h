/* The Status object in which a Kubernetes API server reports an error. */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_API_STATUS_H
#define PROFPULL_DISCOVERY_KUBERNETES_API_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "discovery/kubernetes/schema.h"

/* Longer messages are cut. */
#define API_STATUS_MESSAGE_MAX 512

struct api_status {
    bool present;
    long code;              /* HTTP status; 0 if none */
    bool expired;           /* 410, or reason Expired or Gone */
    bool too_large_version; /* the version is newer than what the server has */
    int64_t retry_after_ms; /* -1 if none */
    char message[API_STATUS_MESSAGE_MAX];
};

/* The members of a Status object that are read. */
struct kube_status {
    struct sv message;
    struct sv reason;
    struct schema_list causes;        /* struct kube_cause */
    struct schema_number retry_after; /* seconds */
    struct schema_number code;
};
struct kube_cause {
    void *next;
    struct sv reason;
};
extern const struct schema_row api_status_rows[]; /* rows of struct kube_status */

/* Resets a status to "none". */
void api_status_clear(struct api_status *s);
void api_status_set(const struct kube_status *status, struct api_status *ret);
/* Reads the body of a response whose status is not 200, in the encoding that its header names. A
 * body that is not a Status becomes the message if it is text. */
void api_status_parse(struct sv body, bool is_protobuf, struct api_status *ret);

#endif
