/* The credentials of one bucket: where they come from, and their renewal.
 *
 * The source is the one that the settings name, or with CREDENTIALS_AUTO the first one that this
 * process has, in the order of AWS's SDKs: keys in the environment, web identity, container,
 * instance; for Google a service account's key, then the metadata server. A metadata address gets a
 * request only if the settings name that source or are CREDENTIALS_AUTO.
 *
 * Temporary credentials are fetched when a request first needs them and renewed before they expire,
 * by one fetch at a time; while they are valid, requests use them, even if a renewal fails. Files
 * with tokens are read again for each fetch, because clusters rotate them. After a failure there is
 * a pause, which doubles up to a minute, in which requests fail at once with its reason.
 *
 * All calls are made on the loop's thread, or while the loop does not run. No secret appears in an
 * error or a log.
 */
#ifndef PROFPULL_BUCKET_CREDENTIALS_H
#define PROFPULL_BUCKET_CREDENTIALS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/err.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "bucket/settings.h"
#include "http/http.h"

/* The parts of the process that sources read; tests replace them. */
struct credentials_world {
    const char *(*env)(void *arg, const char *name); /* NULL if it is not set */
    int64_t (*wall_ns)(void *arg);
    void *arg;
};

struct credentials;

struct credentials_options {
    const struct bucket_settings *settings; /* must outlive the credentials */
    struct loop *loop;
    struct http_client *http;
    struct log *log;                       /* may be NULL */
    struct metrics *metrics;               /* may be NULL */
    const char *name;                      /* label "bucket" of the metrics; copied */
    const struct credentials_world *world; /* NULL: the process. Copied */
};

/* Makes the credentials; sends nothing. Returns NULL and err if out of memory. */
struct credentials *credentials_new(const struct credentials_options *o, struct err *err);
/* Frees the credentials. No request may wait for them. Accepts NULL, returns NULL. */
struct credentials *credentials_free(struct credentials *c);

/* One version of the credentials; counted references. `http` are the settings of the bucket with
 * these credentials. */
struct credentials_keys {
    unsigned refs;
    const struct http_settings *http;
};
/* Accepts NULL, returns NULL. The last reference zeroes the secrets. */
struct credentials_keys *credentials_keys_unref(struct credentials_keys *keys);

/* The wait of one request. A zeroed struct waits for nothing. */
struct credentials_use {
    TAILQ_ENTRY(credentials_use) link;
    struct credentials *of;
    bool waiting;
    /* Called once, never within credentials_get(): with a reference to keys, or with NULL and the
     * reason. */
    void (*on_ready)(void *arg, struct credentials_keys *keys, const struct err *why);
    void *arg;
};

/* Replaces the settings, which must have a source other than CREDENTIALS_CONFIGURED: a fetch is
 * started again, and the current credentials are forgotten. */
void credentials_configure(struct credentials *c, const struct bucket_settings *settings);
/* Copies the credentials, but no other setting, into the settings of a request, which must not
 * outlive the reference. */
void credentials_apply(const struct credentials_keys *keys, struct http_settings *ret_http);

/* Asks for credentials; on_ready and arg of the use are set by the caller. Returns a reference for
 * the caller, or NULL: on_ready() will be called, also after a failure. */
struct credentials_keys *credentials_get(struct credentials *c, struct credentials_use *use);
/* Ends a wait. */
void credentials_cancel(struct credentials_use *use);
/* Notes that a server has refused these keys as expired or unknown. Returns true if the next
 * request gets others: they have been fetched since, or will be, unless these have just been
 * fetched. */
bool credentials_refused(struct credentials *c, const struct credentials_keys *keys);

#endif
