/* The Status object in which a Kubernetes API server reports an error. */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_API_STATUS_H
#define PROFPULL_DISCOVERY_KUBERNETES_API_STATUS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Longer messages are cut. */
#define API_STATUS_MESSAGE_MAX 512

struct api_status {
    bool present;
    long code;              /* 0 if none */
    bool expired;           /* 410, or reason Expired or Gone */
    bool too_large_version; /* the version is newer than what the server has */
    int64_t retry_after_ms; /* -1 if none */
    char message[API_STATUS_MESSAGE_MAX];
};

/* No status at all. */
void api_status_clear(struct api_status *s);
/* Reads a Status object; of anything else, the members that it has. */
void api_status_read(const json_t *object, struct api_status *ret);
/* Reads the body of an answer other than 200; text that is not a Status becomes the message. */
void api_status_parse(const char *body, size_t len, struct api_status *ret);

#endif
