/* Reads the Secrets and ConfigMaps whose values the configuration names in place of files
 * (config/content.h), with the rights of our own pod, and puts the values into the contents that
 * the HTTP clients use.
 *
 * Each object is read by itself with GET, which needs no right to list: at the start, every minute,
 * and within seconds after a server has refused a credential from it. If an object cannot be read,
 * that is logged once, and logged again when it can be read; the request is repeated, and values
 * that were read before stay in use. Other objects are not affected. Everything runs on the loop's
 * thread.
 */
#ifndef PROFPULL_DISCOVERY_KUBERNETES_CONTENTS_H
#define PROFPULL_DISCOVERY_KUBERNETES_CONTENTS_H

#include "base/err.h"
#include "base/loop.h"
#include "config/config.h"
#include "discovery/counters.h"
#include "http/contents.h"

struct kube_contents;

struct kube_contents_options {
    const struct config_strings *names;
    const char *server;                 /* URL of the API server, without a slash at the end */
    const struct http_settings *access; /* referenced */
    struct http_client *http;
    struct loop *loop;
    struct log *log;
    const struct discovery_counters *counters;
    struct http_contents *contents;
    int64_t retry_ms; /* pause after a failure, set by tests; 0: 5 s */
    /* called once, when a first attempt to read each object has ended */
    void (*on_asked)(void *arg);
    void (*on_change)(void *arg); /* called when the text of kube_contents_missing() has changed */
    void *arg;
};

/* Makes the reader; it sends nothing before kube_contents_start(). The options' pointers are
 * referenced. */
struct kube_contents *kube_contents_new(const struct kube_contents_options *options,
                                        struct err *err);
void kube_contents_start(struct kube_contents *c);
/* Appends the objects that were never read and why, with "; " between them. c may be NULL. */
void kube_contents_missing(const struct kube_contents *c, struct buf *out);
/* Frees the reader; call it before its client is freed. Accepts NULL, returns NULL. */
struct kube_contents *kube_contents_free(struct kube_contents *c);

#endif
