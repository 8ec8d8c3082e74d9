/* An asynchronous HTTP client on one loop, over libcurl (curl_multi_socket_action).
 *
 * Made for many slow requests at once: transfers are spread by host and port over many small multi
 * handles (libcurl's work grows with what one handle has in flight), easy handles are pooled by
 * what is in flight. Connections are kept alive and reused. All calls on the loop's thread.
 *
 * Only http and https; no Expect: header; no Accept-Encoding unless asked; redirects are never
 * followed by the client itself, but for the case follow_same_host below. Credentials and TLS files
 * named in the settings are re-read when they change on disk (checked at most once a second).
 * Secrets never appear in an error. A file that has become unreadable or empty is logged and its
 * old content stays in use.
 *
 * The program must ignore SIGPIPE: libcurl sends with MSG_NOSIGNAL, but OpenSSL does not.
 */
#ifndef PROFPULL_HTTP_HTTP_H
#define PROFPULL_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"

/* How profpull names itself to servers. */
#define USER_AGENT "profpull/" PROFPULL_VERSION

struct http_header {
    const char *name;
    const char *value;
};

enum http_auth { HTTP_AUTH_NONE, HTTP_AUTH_BASIC, HTTP_AUTH_HEADER, HTTP_AUTH_OAUTH2 };
enum http_tls_version {
    HTTP_TLS_DEFAULT, /* 1.2 */
    HTTP_TLS_1_0,
    HTTP_TLS_1_1,
    HTTP_TLS_1_2,
    HTTP_TLS_1_3,
};

/* What is the same for all requests of one job, endpoint or API server: the "HTTP client keys" of
 * the configuration. Plain data; every string may be NULL. Must outlive the requests. */
struct http_settings {
    enum http_auth auth;
    const char *username; /* HTTP_AUTH_BASIC */
    const char *username_file;
    const char *password;
    const char *password_file;
    const char *auth_type; /* HTTP_AUTH_HEADER: "Bearer" if NULL */
    const char *credentials;
    const char *credentials_file;
    const struct http_oauth2 *oauth2; /* HTTP_AUTH_OAUTH2 */
    struct {
        const char *ca_pem;
        const char *ca_file;
        const char *cert_pem;
        const char *cert_file;
        const char *key_pem;
        const char *key_file;
        const char *server_name; /* for SNI and verification instead of the URL's host */
        bool insecure_skip_verify;
        enum http_tls_version min_version;
        enum http_tls_version max_version; /* DEFAULT: the newest there is */
    } tls;
    const char *proxy_url;
    const char *no_proxy;
    bool proxy_from_environment;
    const struct http_header *proxy_headers; /* of CONNECT */
    size_t n_proxy_headers;
    bool follow_redirects; /* to the same scheme, host and port only; GET only */
    bool enable_http2;
    const struct http_header *headers;
    size_t n_headers;
};

/* Where a bearer token comes from: OAuth 2.0 with client credentials. The token is fetched when the
 * first request needs it, by the same client, is kept until shortly before it expires, and fetched
 * again when a server has answered 401 to it. Requests wait for it without blocking anybody. */
struct http_oauth2 {
    const char *client_id;
    const char *client_secret;
    const char *client_secret_file;
    const char *token_url;
    const char *const *scopes;
    size_t n_scopes;
    const struct http_header *params; /* further parameters of the form */
    size_t n_params;
    struct http_settings transport; /* TLS and proxy on the way to token_url */
};

/* One stretch of a request body. Bodies are sent from where they lie, with an exact Content-Length,
 * and are read again if the request must be repeated on a fresh connection. */
struct http_part {
    const void *data;
    size_t len;
};

/* How a transfer ended. HTTP_DONE means that a whole response came, whatever its status. */
enum http_result {
    HTTP_DONE,            /* a whole response came, whatever its status */
    HTTP_ERR_RESOLVE,     /* host name not found */
    HTTP_ERR_CONNECT,     /* refused, unreachable, connect timeout */
    HTTP_ERR_TLS,         /* handshake or verification */
    HTTP_ERR_TIMEOUT,     /* the deadline of the whole request */
    HTTP_ERR_TOO_LARGE,   /* body over max_body */
    HTTP_ERR_NO_ROOM,     /* all bodies together over the client's bodies_max_bytes */
    HTTP_ERR_REDIRECT,    /* to another host, or too many */
    HTTP_ERR_CUT,         /* the connection broke within the response or before it */
    HTTP_ERR_PROTOCOL,    /* not HTTP, or headers over the limit */
    HTTP_ERR_ABORTED,     /* on_head() or on_data() said stop */
    HTTP_ERR_DESCRIPTORS, /* this process has no file descriptor left for a connection */
    HTTP_ERR_CONFIG,      /* bad URL, unreadable credentials or TLS files */
    HTTP_ERR_MEMORY,
};
/* Short name for metrics and reasons: "ok", "resolve", "connect", "tls", "timeout", "too_large",
 * "no_room", "redirect", "cut", "protocol", "aborted", "descriptors", "config", "memory". */
const char *http_result_name(enum http_result r);
/* The result of a request that could not be started: HTTP_ERR_MEMORY for an error of that kind,
 * HTTP_ERR_CONFIG for every other. */
enum http_result http_result_of(const struct err *err);

struct http_response {
    enum http_result result;
    long status; /* 0 if none came; set even when result is not HTTP_DONE, if a status line came */
    const char *error;        /* a sentence if result != HTTP_DONE, else "" */
    const char *content_type; /* "" if none */
    const char *location;     /* absolute, "" if none; query values are hidden, as in errors */
    int64_t retry_after_ms;   /* from Retry-After, seconds or HTTP-date; -1 if none or nonsense */
    struct buf *body;         /* what came (with on_data: empty); buf_take() it to keep it */
    int64_t start_ns;         /* monotonic: the request was started */
    int64_t sent_ns;          /* the connection was ready and the request went out; 0 if never */
    int64_t end_ns;
    bool connection_reused;
};

struct http_transfer;

struct http_request {
    const char *method; /* "GET" if NULL */
    const char *url;    /* copied */
    const struct http_settings *settings;
    const struct http_header *headers; /* copied; override those of the settings by name */
    size_t n_headers;
    const struct http_part *body; /* the array is copied, the bytes are not: keep them until done */
    size_t n_body;
    int64_t timeout_ms;         /* whole request: name lookup to last byte; 0 = none */
    int64_t connect_timeout_ms; /* 0 = 10 s, never over timeout_ms */
    size_t max_body;            /* ceiling of the response body; required. A longer one is not read,
                                   but for the beginning if it comes with a status >= 400 */
    size_t size_hint;           /* expected response size, to reserve at once */
    size_t receive_buffer; /* 0 = 8 KiB; 1 KiB at least. Held for the whole transfer: less for one
                              that waits long and gets little */
    bool detect_dead_peer; /* TCP keepalive and TCP_USER_TIMEOUT of 30 s (long watches) */

    /* The status line and headers have come: return false to stop. May be NULL. */
    bool (*on_head)(void *arg, long status, const char *content_type);
    /* If set, body bytes are handed over as they come and max_body does not count; false = stop. */
    bool (*on_data)(void *arg, const char *data, size_t len);
    /* Exactly once, never from within http_start(). The response and all in it die on return. */
    void (*on_done)(void *arg, const struct http_response *response);
    void *arg;
};

struct http_client;

struct http_client_options {
    struct loop *loop;
    struct log *log;         /* may be NULL */
    struct metrics *metrics; /* may be NULL */
    const char *name;        /* label "client" of the metrics: "scrape", "write", "kubernetes" */
    const char *user_agent;
    unsigned shards;               /* multi handles; 0 = 1 */
    unsigned max_idle_connections; /* for all shards; 0 = 64 */
    /* What the bodies of responses may hold in memory while they are being read, all together. One
     * that would need more ends with HTTP_ERR_NO_ROOM. 0 = no ceiling but max_body for each. */
    size_t bodies_max_bytes;
};

struct http_client *http_client_new(const struct http_client_options *options, struct err *err);
/* Ends all transfers (on_done with HTTP_ERR_ABORTED). Accepts NULL, returns NULL. */
struct http_client *http_client_free(struct http_client *c);

/* Starts a request. Returns NULL only if out of memory or while the client is being freed (on_done
 * is not called then); every other failure arrives through on_done. The transfer is gone when
 * on_done has returned. on_done may start and cancel others, but not free the client. */
struct http_transfer *http_start(struct http_client *c, const struct http_request *request);
/* Ends a transfer without calling on_done. Not from within its own callbacks. */
void http_cancel(struct http_transfer *t);
size_t http_in_flight(const struct http_client *c);

#endif
