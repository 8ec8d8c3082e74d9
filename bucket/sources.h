/* The sources of credentials: their requests and responses, step by step. No IO but reading of
 * files; one owner.
 *
 * A fetch makes the request of each step and takes its response, until all steps are done. Its
 * result is an access key or a bearer token.
 */
#ifndef PROFPULL_BUCKET_SOURCES_H
#define PROFPULL_BUCKET_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "bucket/credentials.h"
#include "bucket/settings.h"
#include "http/http.h"

/* The longest response, and the longest secret or file with one, in bytes. */
#define SOURCE_ANSWER_MAX ((size_t)64 * 1024)
#define SOURCE_TEXT_MAX ((size_t)32 * 1024)
#define SOURCE_HEADERS_MAX 3

struct credentials_fetch {
    const struct bucket_settings *settings;
    const struct credentials_world *world;
    /* The request of the current step. */
    const char *method;
    struct buf url;
    struct http_header headers[SOURCE_HEADERS_MAX];
    size_t n_headers;
    struct buf body;
    bool on_link;      /* a service of this machine: without proxy and the bucket's TLS settings */
    bool flavored;     /* the response must have "Metadata-Flavor: Google" */
    bool plain;        /* the response is a text, and a refusal has no reason to show */
    struct buf secret; /* of a header */
    struct buf role;   /* of the instance */
    /* The result. */
    struct buf key_id;
    struct buf key;
    struct buf session; /* empty: none */
    struct buf bearer;  /* empty: the three above */
    int64_t expires_ns; /* wall clock; INT64_MAX: never */
};
void credentials_fetch_init(struct credentials_fetch *f, const struct bucket_settings *settings,
                            const struct credentials_world *world);
/* Zeroes and frees all texts. */
void credentials_fetch_done(struct credentials_fetch *f);

struct credentials_method {
    enum credentials_source source;
    bool google;
    unsigned steps; /* requests; 0: request() gives the result */
    /* Returns true if this process has the source, as far as can be seen without asking it. */
    bool (*exists)(const struct credentials_fetch *f);
    /* Makes the request of a step, counted from 0. */
    bool (*request)(struct credentials_fetch *f, unsigned step, struct err *err);
    /* Takes the body of its response, whose status is 200. */
    bool (*answer)(struct credentials_fetch *f, unsigned step, struct sv body, struct err *err);
    const char *advice; /* for a source that cannot be reached */
};

/* Returns the name of a source, as in the configuration: "configured", "auto", "environment",
 * "web_identity", "container", "instance", "service_account", "metadata". */
const char *credentials_source_name(enum credentials_source s);
/* Returns true if buckets with this scheme may use the source; google: gs://, otherwise s3://. */
bool credentials_source_fits(enum credentials_source s, bool google);
/* Returns the method of the settings, or NULL with err if CREDENTIALS_AUTO finds none. */
const struct credentials_method *credentials_method_of(const struct credentials_fetch *f,
                                                       struct err *err);
/* Writes the reason of a refusal: status, and the server's code and message if it has any. */
void credentials_refusal(const struct credentials_fetch *f, long status, struct sv body,
                         struct err *err);

/* ---- for the sources ------------------------------------------------------------------------- */

/* Returns a variable of the environment; NULL if it is not set or empty. */
const char *source_env(const struct credentials_fetch *f, const char *name);
/* Requires a variable; the error says what it is for. */
bool source_need(const struct credentials_fetch *f, const char *name, const char **ret,
                 struct err *err);
/* Reads a file without white space at its ends. */
bool source_read_file(const char *path, struct buf *out, struct err *err);
void source_header(struct credentials_fetch *f, const char *name, const char *value);
/* Replaces a text. Returns false for an empty text or one with control characters or spaces. */
bool source_take(struct buf *out, const char *text);
/* Returns true for "127.0.0.1", "::1", "localhost" and the like. */
bool source_is_loopback(const char *host);

extern const struct credentials_method source_configured;
extern const struct credentials_method source_environment;
extern const struct credentials_method source_web_identity;
extern const struct credentials_method source_container;
extern const struct credentials_method source_instance;
extern const struct credentials_method source_service_account;
extern const struct credentials_method source_metadata;

#endif
