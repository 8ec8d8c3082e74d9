/* The inside of the HTTP client; for http/ and its tests only.
 *
 *   client.c     client, start, cancel, end of a transfer
 *   direct.c     requests without TLS and proxy, on connections of our own
 *   shard.c      one multi handle on the loop: sockets, timer, collecting what has ended
 *   resolver.c   the addresses of hosts, on lookup.c's threads
 *   options.c    settings and request -> options of an easy handle
 *   deadline.c   when a transfer has to end, and the watchdog over all of them
 *   transfer.c   the callbacks of libcurl during a transfer: headers, body, upload
 *   result.c     how a transfer ended: classification, error messages, Retry-After
 *
 * Callbacks of libcurl must not call libcurl. While a shard is inside libcurl (shard->busy), new
 * transfers wait in its `pending` list and cancelled ones in `cancelled`. Both lists are processed
 * when libcurl has returned.
 */
#ifndef PROFPULL_HTTP_PRIVATE_H
#define PROFPULL_HTTP_PRIVATE_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/err.h"
#include "base/loop.h"
#include "base/str.h"
#include "http/direct.h"
#include "http/files.h"
#include "http/guard.h"
#include "http/http.h"
#include "http/oauth2.h"
#include "http/offenders.h"
#include "http/resolver.h"
#include "http/stray.h"
#include "http/url.h"

/* The most bytes of a response that are read although sending failed. */
#define HTTP_LATE_MAX (16 * 1024)
/* The limits of the response headers of one hop, with interim (1xx) and trailing ones. */
#define HTTP_HEADER_BYTES_MAX (16 * 1024)
#define HTTP_HEADER_LINES_MAX 100
/* A Content-Type is cut to this size, with its NUL. */
#define HTTP_CONTENT_TYPE_MAX 128
/* libcurl sends a request again on a fresh connection if a kept one breaks before a response. If a
 * connection breaks later than this after sending, the server had received the request and did not
 * answer in time, so the request is not sent again. */
#define HTTP_REPEAT_MAX_MS 1000
/* A body of more than 1/16 of bodies_max_bytes must leave 1/4 of bodies_max_bytes to smaller ones:
 * a few peers with large bodies must not make all others fail. */
#define HTTP_BODIES_LARGE_PART 16
#define HTTP_BODIES_SMALL_RESERVE 4
/* The most redirects that one request may follow. */
#define HTTP_REDIRECTS_MAX 5
/* The body of a redirect is read up to this size and discarded, to keep the connection. */
#define HTTP_REDIRECT_BODY_MAX (64 * 1024)
/* The most bytes of a header line that we send, with its credentials. */
#define HTTP_REQUEST_HEADER_MAX (128 * 1024)
/* The limit of CA bundles, certificates and keys in files. libcurl copies a bundle into each
 * connection. */
#define HTTP_TLS_FILE_MAX (1024 * 1024)
#define HTTP_CONNECT_TIMEOUT_MS 10000
/* Our own timers enforce the time limits (deadline.c). libcurl needs a time for connecting as well,
 * to divide it among the addresses of a host, and gets this much more. */
#define HTTP_CONNECT_SLACK_MS 1000
/* The receive buffer of a transfer. It is small, because thousands wait at the same time and most
 * profiles are small. */
#define HTTP_RECEIVE_BUFFER (8 * 1024)
/* The buffer of an upload: the least that libcurl accepts; its default is four times as much. */
#define HTTP_UPLOAD_BUFFER (16 * 1024)
/* Easy handles that are kept beyond one for each transfer in flight. */
#define HTTP_EASY_SPARE 8
/* The longest Retry-After in seconds. A longer one counts as this. */
#define HTTP_RETRY_AFTER_MAX_S (INT64_C(366) * 24 * 3600)
#define HTTP_RESULTS (HTTP_ERR_MEMORY + 1)
/* The code of libcurl 8.6 and later for a header line without an end. */
#define HTTP_CODE_TOO_LARGE 100
/* The time that a transfer has left after a response that began before the request was sent:
 * libcurl uses all of a CPU while it cannot send the rest to a server that has ended the response.
 */
#define HTTP_EARLY_MAX_MS 1000
/* The bytes on the wire that a response may take beyond twice its headers and body: chunks, records
 * and the handshake. */
#define HTTP_WIRE_SLACK (256 * 1024)
/* The most pieces, reads or chunks, in which a response may arrive: HTTP_PIECES_SLACK, and one more
 * for each HTTP_PIECE_BYTES bytes. */
#define HTTP_PIECES_SLACK 4096
#define HTTP_PIECE_BYTES 16
/* The connections of a shard from which more shards are used. */
#define HTTP_SHARD_CONNECTIONS 256
/* A call of libcurl that takes longer is counted, because nothing else of the loop runs
 * meanwhile. */
#define HTTP_SLOW_CALL_MS 250

/* ---- transfers ------------------------------------------------------------------------------- */

enum http_method { HTTP_GET, HTTP_HEAD, HTTP_POST, HTTP_PUT, HTTP_DELETE };

/* The limits of our own that end a transfer. */
enum http_limit {
    HTTP_LIMIT_NONE,
    HTTP_LIMIT_TOTAL,    /* timeout_ms */
    HTTP_LIMIT_CONNECT,  /* connect_timeout_ms, for each hop of a redirect */
    HTTP_LIMIT_PROGRESS, /* progress_timeout_ms */
    HTTP_LIMIT_WIRE,     /* HTTP_WIRE_SLACK: bytes, not time */
    HTTP_LIMIT_PIECES,   /* HTTP_PIECES_SLACK */
    HTTP_LIMIT_HELD,     /* GUARD_CPU_MS */
    HTTP_LIMIT_STRAY,    /* no byte may come before the request */
    HTTP_LIMIT_EARLY,    /* no response may begin before the request was sent */
    HTTP_LIMIT_SWITCH,   /* no change of protocol was asked for */
};

TAILQ_HEAD(http_list, http_transfer);

struct http_shard;

struct http_transfer {
    TAILQ_ENTRY(http_transfer) link;
    struct http_list *list; /* the one that it is in; NULL while it waits or on_done() runs */
    TAILQ_ENTRY(http_transfer) all_link;
    struct loop_timer *deadline;
    struct http_client *client;
    struct http_shard *shard;
    bool direct;              /* the request may use a direct connection (direct.h) */
    struct direct_conn *conn; /* the direct connection that it uses, or NULL */
    CURL *easy;               /* NULL if the transfer needs no libcurl */
    bool in_multi;            /* the handle is in the multi handle */
    bool cancelled;           /* it must be removed from libcurl as soon as possible */
    curl_socket_t fd; /* the last socket on which libcurl waited for it, or CURL_SOCKET_BAD */

    /* The request. */
    struct http_request request; /* url, headers and body are NULL here, settings never */
    enum http_method method;
    struct url url;
    struct curl_slist *headers;
    struct curl_slist *proxy_headers;
    struct http_token_use token; /* HTTP_AUTH_OAUTH2 */
    bool needs_token;            /* the transfer needs a token before it can be added to libcurl */
    bool proxied;
    char *lookup_host; /* host whose addresses it needs after the token; NULL: none */
    uint16_t lookup_port;
    struct resolver_use lookup;
    struct curl_slist *resolve; /* the addresses */
    struct curl_slist *connect_to;
    struct http_file *ca;
    struct http_file *cert;
    struct http_file *key;

    /* The upload. */
    size_t n_parts;
    uint64_t body_size;
    size_t part;        /* the next byte to send lies in this part */
    size_t part_offset; /* offset of this byte in the part */

    /* The response. */
    struct buf body;
    size_t body_counted; /* part of its storage that is in the client's body_bytes */
    size_t granted;      /* bytes that on_room() has allowed the body */
    bool starved;        /* waits for http_grant(), and is not read meanwhile */
    int64_t starved_ns;  /* monotonic: since when */
    int64_t wire_start;  /* bytes that its connection had received before; -1: unknown */
    uint64_t received;   /* bytes of headers and bodies */
    uint64_t pieces;     /* of bodies */
    size_t header_bytes;
    size_t header_lines;
    uint64_t content_length; /* as announced; UINT64_MAX if not */
    size_t discarded;        /* bytes of a redirect's body */
    char *location;          /* the value of the header */
    int64_t retry_after_ms;
    unsigned redirects;
    bool head_done; /* the head of the final response is complete */
    bool is_http1;  /* its status line says so */
    bool is_http2;  /* libcurl has a connection of HTTP/2 for it */
    bool closes;    /* with HTTP/1: the connection ends after it */
    bool chunked;
    bool begins_early; /* the status line that comes next began before the request was sent */
    bool early;        /* the final response began before the request was sent */
    int64_t early_ns;  /* instant at which it began; valid if early is set */
    bool in_doubt;     /* a kept connection brought bytes that need not be about this request: it is
                          sent again, on a new one */
    bool following;    /* this response is a redirect that will be followed */
    bool repeated;     /* on a fresh connection; done once */
    bool only_kept;    /* it may use a kept connection, but not make one */
    bool none_kept;    /* there was no kept connection to take */
    bool setopt_failed;
    const char *refused_address; /* reason that refuses_address() gave */
    bool no_descriptor;          /* no file descriptor was left for a socket */
    bool opened;                 /* libcurl has made a connection for it */
    char content_type[HTTP_CONTENT_TYPE_MAX];

    /* How it ended. */
    bool stopped; /* one of our callbacks has stopped the transfer, with this result: */
    enum http_result result;
    enum http_limit limit; /* the limit that was reached */
    bool in_lookup;        /* the transfer ended while it waited for addresses */
    CURLcode code;         /* libcurl's code, or the code that libcurl would have given */
    int os_error;          /* errno of connecting; 0: unknown */
    unsigned round;        /* value of the client's `round` when the transfer ended */
    long status;
    struct err *error; /* allocated on failure; NULL if out of memory */
    int64_t start_ns;
    int64_t hop_ns; /* when it was last handed to libcurl; 0: not yet */
    int64_t sent_ns;
    int64_t progress_ns; /* when bytes were last sent or received; valid if sent_ns is not 0 */
    int64_t end_ns;
    int own_port; /* own port of its connection; valid if sent_ns is not 0 */
    bool reused;
    char curl_error[CURL_ERROR_SIZE];
    struct http_part parts[]; /* of the upload */
};

/* ---- shards ---------------------------------------------------------------------------------- */

struct http_socket;
LIST_HEAD(http_socket_list, http_socket);

struct http_shard {
    struct http_client *client;
    CURLM *multi; /* NULL before the first request, and if it could not be made again */
    struct loop_timer *timer;
    struct http_socket_list sockets;
    struct guard_socket *open; /* all connections, idle ones too */
    size_t n_open;
    size_t cap_open;
    bool any_closed; /* a connection was closed within the current call */
    struct http_list running;
    struct http_list pending;
    struct http_list cancelled;
    bool busy; /* a call of libcurl is on the stack */
};

struct http_client {
    struct loop *loop;
    struct log *log;
    const char *name;
    struct http_files *files;
    struct http_tokens *tokens;
    struct resolver *resolver;
    struct guard *guard;         /* NULL: none */
    struct offenders *offenders; /* servers whose connections the guard has cut */
    struct http_direct *direct;  /* NULL: libcurl does all */
    struct http_list all;        /* linked by all_link */
    struct loop_timer *watchdog;
    struct http_list ended;
    struct loop_timer *ended_timer; /* for transfers that end outside of libcurl */
    size_t in_flight;
    size_t body_bytes; /* the storage of all bodies that are being read */
    size_t bodies_max_bytes;
    size_t n_starved; /* transfers that wait for http_grant() */
    size_t max_idle;
    size_t max_connections; /* idle ones and those in use; 0: max_idle counts */
    size_t n_open;          /* connections of all shards */
    bool closing;
    bool driving;   /* a caller up the stack will call http_client_run_ended() */
    unsigned round; /* number of calls of http_client_run_ended() */
    CURL *idle;     /* easy handles for reuse, each with the next one as its CURLOPT_PRIVATE */
    size_t n_idle;
    struct metric_cell *requests[HTTP_RESULTS];
    struct metric_cell *in_flight_gauge;
    struct metric_cell *body_bytes_gauge;
    struct metric_cell *connections_new;
    struct metric_cell *connections_reused;
    struct metric_cell *overdue;
    struct metric_cell *slow_calls;
    struct metric_cell *cut_calls;
    struct stray_counters strays;
    struct metric_cell *rebuilds;
    struct metric_cell *file_failures;
    unsigned n_shards;
    unsigned n_used; /* the shards over which new transfers are spread */
    /* The last shard is for HTTP/2 without TLS: other requests cannot use its connections, and its
     * requests cannot use theirs. */
    struct http_shard shards[];
};

/* Returns the limit of all connections: while there are more, idle ones are closed. */
static inline size_t http_client_max_open(const struct http_client *c)
{
    return c->max_connections > 0 ? c->max_connections : c->max_idle + c->in_flight;
}

/* ---- shard.c --------------------------------------------------------------------------------- */

/* Returns false if out of memory. */
bool http_shard_init(struct http_shard *s, struct http_client *c);
/* Frees the members of a shard, whose lists must be empty. */
void http_shard_done(struct http_shard *s);
/* Adds a prepared transfer to libcurl (t->shard), at once or as soon as the shard is not busy. */
void http_shard_add(struct http_transfer *t);
/* Removes a transfer from its list and from libcurl; the shard must not be busy. */
void http_shard_remove(struct http_transfer *t);
/* Ends a transfer that may be in libcurl because it has reached a limit. The shard must not be
 * busy. */
void http_shard_end(struct http_transfer *t, enum http_limit limit, enum http_result result);
/* Continues to read the response of a transfer that has waited for memory. */
void http_shard_resume(struct http_transfer *t);
/* Notes a socket that was made for a transfer. */
void http_shard_opened(struct http_transfer *t, int fd);
/* Closes a socket for libcurl (CURLOPT_CLOSESOCKETFUNCTION); shard is a struct http_shard. */
int http_shard_close_socket(void *shard, curl_socket_t fd);
/* Returns the socket of a connection of the transfer's shard by its own port, or -1 if there is
 * none. */
int http_shard_socket(const struct http_transfer *t, int own_port);
/* Replaces the multi handle, whose state is undefined after an error. All its transfers fail, and
 * the event is counted. */
void http_shard_rebuild(struct http_shard *s, CURLMcode code);

/* ---- client.c -------------------------------------------------------------------------------- */

void http_list_move(struct http_transfer *t, struct http_list *to);
/* Returns a handle that was used before, or a new one. Returns NULL if out of memory. */
CURL *http_client_take_easy(struct http_client *c);
/* Completes a transfer that was removed from libcurl: follows a redirect, or adds it to the ended
 * ones. */
void http_transfer_complete(struct http_transfer *t, CURLcode code);
/* Ends a transfer that is not in libcurl (any more) for a reason of our own. */
void http_transfer_fail(struct http_transfer *t, enum http_result result, const char *reason);
/* Removes a transfer from everything that it waits for, and from libcurl. */
void http_transfer_detach(struct http_transfer *t);
/* Calls on_done() of the transfers that have ended so far. Must not be called from within
 * libcurl. */
void http_client_run_ended(struct http_client *c);
struct http_transfer *http_transfer_free(struct http_transfer *t);

/* ---- deadline.c ------------------------------------------------------------------------------ */

/* Adds the transfer to the list of all transfers of its client. Returns false if out of memory;
 * http_deadline_done() must be called then as well. */
bool http_deadline_init(struct http_transfer *t);
void http_deadline_done(struct http_transfer *t);
/* Sets the timer to the next time limit of the transfer, which ends when the limit is reached. */
void http_deadline_arm(struct http_transfer *t);
/* Ends every transfer that is past a limit by more than a second, whatever it is waiting for. There
 * is none unless a timer was lost. */
void http_watchdog_run(struct http_client *c, int64_t now_ns);
void http_watchdog_on_timer(void *client);

/* ---- options.c ------------------------------------------------------------------------------- */

/* These return false with a reason in err; http_result_of() gives the result, unless t->result says
 * it already. */

/* Makes the headers, and a handle of libcurl with all options unless a direct connection may serve
 * the request. r: the caller's request, with the headers, which are not kept. */
bool http_options_apply(struct http_transfer *t, const struct http_request *r, struct err *err);
/* Prepares libcurl for a request that cannot use a direct connection after all. */
bool http_options_use_libcurl(struct http_transfer *t, struct err *err);
/* Sets the options that change from hop to hop: the URL and the time limits. */
bool http_options_apply_hop(struct http_transfer *t, struct err *err);
/* http_is_plain_http2() returns true for HTTP/2 without TLS. Such a request first asks for a kept
 * connection. If there is none, http_options_connect() lets it make one. */
bool http_is_plain_http2(const struct http_transfer *t);
void http_options_connect(struct http_transfer *t);
/* Passes the addresses of t->lookup_host to libcurl. */
bool http_options_resolve(struct http_transfer *t, const char *addresses, struct err *err);
/* Adds the Authorization header that the transfer has waited for. */
bool http_options_authorize(struct http_transfer *t, const char *authorization, struct err *err);

/* Returns the time limit of a request for connecting. */
int64_t http_connect_limit_ms(const struct http_request *r);
const char *http_method_name(enum http_method m);

/* ---- transfer.c ------------------------------------------------------------------------------ */

/* Sets the callbacks of t->easy. */
void http_transfer_set_callbacks(struct http_transfer *t);
/* Called when the connection is ready and the request is about to be sent; again if it is repeated.
 * peer: the address of the server. Returns false if the request must not be sent. */
bool http_transfer_ready(struct http_transfer *t, const char *peer);
/* Takes a line of a head, or a trailer, without its line end. size: its bytes with the line end.
 * Returns false to stop. */
bool http_transfer_take_line(struct http_transfer *t, struct sv line, size_t size);
/* Takes bytes of a body. Returns false to stop. */
bool http_transfer_take_body(struct http_transfer *t, struct sv bytes);
/* Notes that n further bytes of the upload have been sent. */
void http_transfer_skip(struct http_transfer *t, size_t n);
/* Forgets the response, before another hop. */
void http_transfer_reset_response(struct http_transfer *t);
/* Takes the beginning of a response that libcurl has not read because sending failed first. Calls
 * neither on_head() nor on_data(). */
void http_transfer_take_late(struct http_transfer *t, struct sv bytes);

/* Notes that the transfer waits for memory, or no longer does. */
void http_transfer_starve(struct http_transfer *t, bool starved);

/* Returns true if a response that makes no sense may not belong to the request: on a kept
 * connection, soon after the request was sent. */
bool http_transfer_may_doubt(const struct http_transfer *t);

/* Returns true if this number of pieces is too large for the bytes that were received. */
bool http_transfer_is_in_pieces(const struct http_transfer *t, uint64_t pieces);

/* ---- result.c -------------------------------------------------------------------------------- */

/* Sets t->result and, unless it is HTTP_DONE, t->error, from t->code and the response. */
void http_result_classify(struct http_transfer *t);
/* Writes "METHOD URL: reason" to t->error. */
void http_result_explain(struct http_transfer *t, const char *reason);
/* Writes the absolute target of the Location header in a form fit for a log, or "" if there is
 * none. Returns true if its scheme, host and port are those of the request. */
bool http_result_show_location(const struct http_transfer *t, char *out, size_t size);
/* Parses Retry-After, seconds or an HTTP-date. Returns milliseconds from now (0 if past), or -1 if
 * it is invalid. */
int64_t http_retry_after(struct sv value, int64_t wall_ns);

#endif
