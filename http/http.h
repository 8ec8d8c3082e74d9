/* An asynchronous HTTP client on one loop.
 *
 * The client is designed for many slow requests at the same time. Requests that need neither TLS
 * nor a proxy use connections of our own (direct.h). All others go through libcurl
 * (curl_multi_socket_action). Transfers are distributed by host and port over many small multi
 * handles, because libcurl's work grows with the transfers in one handle, and easy handles are
 * pooled. Connections are kept alive and reused. All calls are made on the loop's thread.
 *
 * Only http and https; no Expect header (except with HTTP_AUTH_S3); no Accept-Encoding unless the
 * request has it; redirects are followed only if follow_redirects is set. The time limits of a
 * request are enforced by timers of our own, whatever state the request is in, and not by libcurl.
 * A watchdog ends and counts requests that are past their deadline by more than a second.
 * Credentials and TLS files named in the settings are re-read when they change on disk (checked at
 * most once a second); if a file becomes unreadable or empty, this is logged and the old content
 * stays in use. A file name may also name a content (contents.h). Secrets never appear in an error.
 *
 * Names are looked up on a few threads of the client (resolver.h), once for all transfers that wait
 * for a host. libcurl would take a thread and three descriptors for each transfer; it only looks up
 * names for SOCKS proxies that do not resolve them (socks4, socks5).
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
#include "base/str.h"
#include "http/lookup.h"

/* The User-Agent of profpull. */
#define USER_AGENT "profpull/" PROFPULL_VERSION

struct http_header {
    const char *name;
    const char *value;
};

enum http_auth {
    HTTP_AUTH_NONE,
    HTTP_AUTH_BASIC,
    HTTP_AUTH_HEADER,
    HTTP_AUTH_OAUTH2,
    HTTP_AUTH_S3, /* AWS Signature Version 4 */
};
enum http_tls_version {
    HTTP_TLS_DEFAULT, /* 1.2 */
    HTTP_TLS_1_0,
    HTTP_TLS_1_1,
    HTTP_TLS_1_2,
    HTTP_TLS_1_3,
};

/* The settings of all requests of one job, endpoint or API server: the "HTTP client keys" of the
 * configuration. Plain data; every string may be NULL. Must outlive the requests. */
struct http_settings {
    enum http_auth auth;
    const char *username; /* HTTP_AUTH_BASIC; HTTP_AUTH_S3: the id of the access key */
    const char *username_file;
    const char *password;
    const char *password_file;
    const char *auth_type; /* HTTP_AUTH_HEADER: "Bearer" if NULL */
    const char *credentials;
    const char *credentials_file;
    const struct http_oauth2 *oauth2; /* HTTP_AUTH_OAUTH2 */
    /* HTTP_AUTH_S3, with the secret key as the password. The caller gives x-amz-content-sha256 and
     * Content-Type. All headers are signed, so none may have an empty value; and libcurl before 8
     * signs two in the wrong order if the name of one continues that of the other with a "-". */
    const char *region; /* at most 64 bytes, without ":" */
    const char *session_token;
    const char *session_token_file;
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
        enum http_tls_version max_version; /* DEFAULT: no limit */
    } tls;
    const char *proxy_url;
    const char *no_proxy;
    bool proxy_from_environment;
    const struct http_header *proxy_headers; /* headers of the CONNECT request */
    size_t n_proxy_headers;
    bool follow_redirects; /* only to the same scheme, host and port; only GET */
    bool enable_http2;
    const struct http_header *headers;
    size_t n_headers;
};

/* Returns true if both settings make the same requests. Compares all members, and texts by their
 * contents. */
bool http_settings_equal(const struct http_settings *a, const struct http_settings *b);

/* The source of a bearer token: OAuth 2.0 with client credentials. The same client fetches the
 * token when the first request needs it, keeps it until shortly before it expires, and fetches
 * another one after a server has answered 401 to it. Waiting requests block nothing. */
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

/* A part of a request body. Bodies are sent without being copied, with an exact Content-Length, and
 * are read again if the request has to be repeated on a fresh connection. */
struct http_part {
    const void *data;
    size_t len;
};

/* How a transfer ended. */
enum http_result {
    HTTP_DONE,            /* a complete response was received, whatever its status */
    HTTP_ERR_RESOLVE,     /* host name not found */
    HTTP_ERR_CONNECT,     /* refused, unreachable, connect timeout */
    HTTP_ERR_TLS,         /* handshake or verification */
    HTTP_ERR_TIMEOUT,     /* the deadline of the whole request, or no progress */
    HTTP_ERR_TOO_LARGE,   /* body over max_body */
    HTTP_ERR_NO_ROOM,     /* all bodies together over bodies_max_bytes of the client */
    HTTP_ERR_REDIRECT,    /* a redirect to another host, or too many */
    HTTP_ERR_CUT,         /* the connection broke before the end of the response */
    HTTP_ERR_PROTOCOL,    /* not HTTP, or headers over the limit */
    HTTP_ERR_ABORTED,     /* stopped by on_head() or on_data() */
    HTTP_ERR_DESCRIPTORS, /* the process has no file descriptor left for a connection */
    HTTP_ERR_ADDRESS,     /* refuses_address() has refused the server's address */
    HTTP_ERR_CONFIG,      /* bad URL, unreadable credentials or TLS files */
    HTTP_ERR_MEMORY,
};
/* Returns a short name for metrics and reasons: "ok", "resolve", "connect", "tls", "timeout",
 * "too_large", "no_room", "redirect", "cut", "protocol", "aborted", "descriptors", "address",
 * "config", "memory". */
const char *http_result_name(enum http_result r);
/* Returns the result of a request that could not be started: HTTP_ERR_MEMORY for an error of kind
 * ERR_MEMORY, HTTP_ERR_CONFIG for every other. */
enum http_result http_result_of(const struct err *err);

struct http_response {
    enum http_result result;
    long status;       /* from the last status line, whatever the result; 0 if there was none */
    const char *error; /* a sentence if result != HTTP_DONE, else "" */
    const char *content_type; /* "" if none */
    const char *location;     /* absolute, with query values hidden as in errors; "" if none */
    int64_t retry_after_ms;   /* from Retry-After, seconds or HTTP-date; -1 if none or invalid */
    struct buf *body;         /* empty if there is on_data(); buf_take() keeps it */
    int64_t start_ns;         /* monotonic: when the request was started */
    int64_t sent_ns;          /* when it was sent on a ready connection; 0 if never */
    int64_t end_ns;
    bool connection_reused;
    bool stream_ended; /* HTTP/2: the server has ended this request before its response was whole,
                          and kept the connection */
    /* The response began before the request was sent (stray.h). On a new connection, a status of at
     * least 300 is still a refusal: the server did not want the body. A status below 300 says
     * nothing about a request that the server has not read. Over HTTP/1 such a response is an error
     * (HTTP_ERR_PROTOCOL, with its status); over HTTP/2, where a protocol may carry its refusal in
     * the trailers, it is HTTP_DONE and the caller must not take it for an acceptance. */
    bool early;
};

struct http_transfer;

/* The result of on_room() for a body that can never be received. */
#define HTTP_ROOM_NEVER SIZE_MAX

struct http_request {
    const char *method; /* GET, HEAD, POST, PUT or DELETE; "GET" if NULL */
    const char *url;    /* copied */
    const struct http_settings *settings;
    const struct http_header *headers; /* copied; override those of the settings by name */
    size_t n_headers;
    const struct http_part *body; /* the array is copied; the bytes must live until on_done() */
    size_t n_body;
    int64_t timeout_ms;          /* whole request: from http_start() to the last byte; 0 = none */
    int64_t connect_timeout_ms;  /* for each hop, lookup and TLS included; 0 = 10 s */
    int64_t progress_timeout_ms; /* without a byte sent or received since connecting; 0 = none.
                                    Ends with HTTP_ERR_TIMEOUT too */
    size_t max_body;             /* ceiling of the response body; required. Of a longer one only the
                                    beginning is read, and only with a status >= 400 */
    size_t receive_buffer; /* 0 = 8 KiB; at least 1 KiB. Held for the whole transfer: less for one
                              that waits long for little data */
    /* asks for gzip; the body is inflated before the caller sees it, and max_body limits the
     * inflated body */
    bool accept_gzip;
    /* HTTP/2 whatever the settings say: without TLS from the first byte on, through a tunnel if
     * there is a proxy; with TLS if the server agrees. */
    bool http2_only;
    bool detect_dead_peer; /* TCP keepalive and TCP_USER_TIMEOUT of 30 s (long watches) */

    /* Returns the fault of the address of the server ("10.1.2.3") in words, or NULL if it has none.
     * A refused request is not sent, whether its connection is a new one or not. With a proxy it
     * gets the proxy's address. May be NULL. */
    const char *(*refuses_address)(const char *ip);
    /* Asks how many bytes of memory the body of a response with a status below 300 may take: when
     * its head has been received, and again when the body has outgrown the result. len: bytes that
     * the body must be allowed now; announced: its Content-Length, or UINT64_MAX. If the result is
     * below len, reading stops until http_grant(); HTTP_ROOM_NEVER ends the transfer with
     * HTTP_ERR_NO_ROOM. Must not start, cancel or grant any transfer. NULL: the client's
     * bodies_max_bytes alone decides. */
    size_t (*on_room)(void *arg, size_t len, uint64_t announced);
    /* Called after the status line and the headers; returns false to stop. May be NULL. */
    bool (*on_head)(void *arg, long status, const char *content_type);
    /* Called with each field of the head and, after the body, with each trailer; both are valid
     * until it returns. May be NULL. */
    void (*on_field)(void *arg, struct sv name, struct sv value);
    /* If set, it is called with the bytes of the body as they are received, and max_body has no
     * effect; returns false to stop. */
    bool (*on_data)(void *arg, const char *data, size_t len);
    /* Called exactly once, never within http_start(). The response is freed when it returns. */
    void (*on_done)(void *arg, const struct http_response *response);
    void *arg;
};

struct http_client;
struct http_contents;

struct http_client_options {
    struct loop *loop;
    struct log *log;         /* may be NULL */
    struct metrics *metrics; /* may be NULL */
    const char *name; /* static; label "client" of the metrics: "scrape", "write", "kubernetes" */
    unsigned shards;  /* multi handles; 0 = 1 */
    unsigned max_shards;           /* after http_client_expect(); 0: no more than that */
    unsigned max_idle_connections; /* limit for all shards together; 0 = 64 */
    /* The limit of idle connections and connections in use together, for a client that may use most
     * descriptors of the process: descriptors that requests do not need keep connections. 0: only
     * idle connections have a limit. */
    unsigned max_connections;
    /* A thread cuts connections that keep libcurl reading within one call (guard.h). */
    bool guarded;
    struct http_contents *contents; /* (contents.h) referenced; NULL: files only */
    lookup_fn *lookup;              /* for tests; NULL: getaddrinfo() */
    bool only_libcurl;              /* for tests: no direct connections (direct.h) */
    /* The ceiling of the memory of all response bodies that are being read. A transfer that would
     * exceed it ends with HTTP_ERR_NO_ROOM. A quarter of it is reserved for bodies that are smaller
     * than a sixteenth of it. 0 = none. */
    size_t bodies_max_bytes;
};

struct http_client *http_client_new(const struct http_client_options *options, struct err *err);
/* Announces the number of connections to expect. New transfers are spread over more multi handles,
 * up to max_shards, because a handle walks half of its connections at the end of each transfer.
 * Hosts then move to another handle, without their connections, so call this before the first
 * transfers if possible. */
void http_client_expect(struct http_client *c, size_t connections);
/* Ends all transfers (on_done with HTTP_ERR_ABORTED). Accepts NULL, returns NULL. */
struct http_client *http_client_free(struct http_client *c);

/* Starts a request. Returns NULL, without on_done(), only if out of memory or while the client is
 * being freed; every other failure is reported by on_done(). The transfer is freed when on_done()
 * returns. on_done() may start and cancel others, but not free the client. */
struct http_transfer *http_start(struct http_client *c, const struct http_request *request);
/* Allows a transfer that waits for memory this many bytes for its body. Reading continues, with as
 * much time left as when the transfer began to wait. Does nothing if the transfer does not wait. Of
 * the callbacks of a transfer, only on_done() may call it. */
void http_grant(struct http_transfer *t, size_t bytes);
/* Ends a transfer without calling on_done(). The transfer's own callbacks must not call it. */
void http_cancel(struct http_transfer *t);

#endif
