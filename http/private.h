/* The inside of the HTTP client; for http/http*.c and their tests only.
 *
 *   http.c           client, start, cancel, end of a transfer
 *   http_shard.c     one multi handle on the loop: sockets, timer, collecting what has ended
 *   http_options.c   settings and request -> options of an easy handle
 *   http_transfer.c  what libcurl calls during a transfer: headers, body, upload
 *   http_result.c    how it ended: classification, sentences, Retry-After
 *   http_url.c       parsing, origin, redirect targets, URLs fit for a log
 *   http_oauth2.c    tokens, fetched by transfers of the same client
 *   http_files.c     credentials and TLS files, re-read when they change
 *
 * libcurl must not be entered from its own callbacks. While a shard is inside libcurl (shard->busy)
 * new transfers wait in its `pending` list and cancelled ones in `doomed`; both are worked off when
 * libcurl has returned.
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
#include "base/map.h"
#include "base/str.h"
#include "http/http.h"
#include "http/url.h"

/* What is read of a response that came although sending failed. */
#define HTTP_LATE_MAX (16 * 1024)
/* Response headers of one hop, interim (1xx) and trailing ones included. */
#define HTTP_HEADER_BYTES_MAX (16 * 1024)
#define HTTP_HEADER_LINES_MAX 100
/* libcurl sends a request again on a fresh connection if a kept one breaks before an answer. What
 * breaks later than this after sending was not a connection that had been closed meanwhile, but a
 * server that did not answer in time: it is not asked to work as long once more. */
#define HTTP_REPEAT_MAX_MS 1000
/* Redirects that one request may follow. */
#define HTTP_REDIRECTS_MAX 5
/* Body of a redirect that is read and thrown away to keep the connection. */
#define HTTP_REDIRECT_BODY_MAX (64 * 1024)
/* One header line that we send, credentials included. */
#define HTTP_REQUEST_HEADER_MAX (128 * 1024)
/* Credentials and passwords in files. */
#define HTTP_SECRET_FILE_MAX (64 * 1024)
/* CA bundles, certificates and keys in files. libcurl copies a bundle into each connection. */
#define HTTP_TLS_FILE_MAX (1024 * 1024)
/* A file is looked at again after this time. */
#define HTTP_FILE_CHECK_MS 1000
#define HTTP_CONNECT_TIMEOUT_MS 10000
/* Per transfer; thousands wait at once, and most profiles are small. */
#define HTTP_RECEIVE_BUFFER (8 * 1024)
/* Per upload; the least that libcurl takes, where its default is four times as much. */
#define HTTP_UPLOAD_BUFFER (16 * 1024)
/* Easy handles kept over those that match what is in flight. */
#define HTTP_EASY_SPARE 8
/* A longer Retry-After counts as this. */
#define HTTP_RETRY_AFTER_MAX_S (INT64_C(366) * 24 * 3600)
/* One request for a token, and what is read of its answer. */
#define HTTP_OAUTH2_TIMEOUT_MS 10000
#define HTTP_OAUTH2_ANSWER_MAX ((size_t)64 * 1024)
/* A token is fetched anew so long before it expires (a quarter of its life at most). */
#define HTTP_OAUTH2_EARLY_MS 10000
/* Behind a failure, or a token that was refused, the next one is fetched no earlier. */
#define HTTP_OAUTH2_REST_MS 5000
#define HTTP_RESULTS (HTTP_ERR_MEMORY + 1)

/* ---- http_files.c ---------------------------------------------------------------------------- */

/* The content of a file at one time; immutable, counted, zeroed when freed. */
struct http_file {
    unsigned refs;
    size_t len;
    char data[]; /* and a NUL */
};

/* What a file must be to take the place of its old content. */
struct http_file_rule {
    size_t max;
    bool (*check)(struct sv text, struct err *err); /* may be NULL */
};

struct http_files;
/* failures counts files that were read and not taken; may be NULL. NULL if out of memory. */
struct http_files *http_files_new(struct log *log, struct metric_cell *failures);
struct http_files *http_files_free(struct http_files *f);
/* A reference to the content, at most HTTP_FILE_CHECK_MS old. If the file has become unreadable,
 * empty or against the rule, the old content stays in use, which is counted and
 * logged; without old
 * content NULL with an error that names the file and never its content. */
struct http_file *http_files_get(struct http_files *f, const char *path,
                                 const struct http_file_rule *rule, int64_t now_ms,
                                 struct err *err);
/* Makes the next http_files_get() read the file again: the other side refused the content. */
void http_files_forget(struct http_files *f, const char *path);
struct http_file *http_file_unref(struct http_file *file); /* accepts NULL, returns NULL */

/* ---- transfers ------------------------------------------------------------------------------- */

enum http_method { HTTP_GET, HTTP_HEAD, HTTP_POST, HTTP_PUT };

enum http_state {
    HTTP_PENDING, /* to be given to libcurl as soon as that is possible */
    HTTP_RUNNING,
    HTTP_DOOMED, /* cancelled, to be taken from libcurl as soon as that is possible */
    HTTP_ENDED,  /* on_done() is to be called */
};

TAILQ_HEAD(http_list, http_transfer);

struct http_shard;

struct http_transfer {
    TAILQ_ENTRY(http_transfer) link;
    struct http_list *list; /* the one that it is in; NULL while on_done() runs */
    struct http_client *client;
    struct http_shard *shard;
    CURL *easy;
    enum http_state state;
    curl_socket_t fd; /* the one that libcurl waited on last for it, or CURL_SOCKET_BAD */

    /* What was asked. */
    struct http_request request; /* url, headers and body are NULL here */
    enum http_method method;
    struct url url;
    struct curl_slist *headers;
    struct curl_slist *proxy_headers;
    struct http_token *token; /* HTTP_AUTH_OAUTH2; NULL: none was asked for */
    unsigned token_generation;
    bool needs_token; /* before it can be given to libcurl */
    struct curl_slist *connect_to;
    struct http_file *ca;
    struct http_file *cert;
    struct http_file *key;

    /* The upload. */
    struct http_part *parts;
    size_t n_parts;
    uint64_t body_size;
    size_t part;        /* the next byte to send lies in this part */
    size_t part_offset; /* at this place */

    /* What came. */
    struct buf body;
    size_t body_counted; /* of its storage, in the client's body_bytes */
    size_t header_bytes;
    size_t header_lines;
    uint64_t content_length; /* as announced; UINT64_MAX if not */
    size_t discarded;        /* bytes of a redirect's body */
    char *location;          /* as it came */
    int64_t retry_after_ms;
    unsigned redirects;
    bool head_done; /* the head of the final response is complete */
    bool following; /* this response is a redirect that will be followed */
    bool repeated;  /* on a fresh connection, which is done once */
    bool setopt_failed;
    bool no_descriptor; /* there was none for a socket */

    /* How it ended. */
    bool stopped; /* one of our callbacks said stop, for this reason: */
    enum http_result result;
    CURLcode code;
    unsigned round; /* of the client when it ended */
    long status;
    struct err *error; /* allocated when it fails; NULL if that failed too */
    int64_t start_ns;
    int64_t sent_ns;
    int64_t end_ns;
    bool reused;
    char curl_error[CURL_ERROR_SIZE];
};

/* ---- shards ---------------------------------------------------------------------------------- */

struct http_socket;
LIST_HEAD(http_socket_list, http_socket);

struct http_shard {
    struct http_client *client;
    CURLM *multi; /* NULL if it could not be made again; the next request tries */
    struct loop_timer *timer;
    struct http_socket_list sockets;
    struct http_list running;
    struct http_list pending;
    struct http_list doomed;
    size_t n_running;
    bool busy; /* libcurl is on the stack */
};

struct http_client {
    struct loop *loop;
    struct log *log;
    char *name;
    char *user_agent;
    struct http_files *files;
    struct http_tokens *tokens;
    struct http_list ended;
    struct loop_timer *ended_timer; /* for what ends outside of libcurl */
    size_t in_flight;
    size_t body_bytes; /* storage of all bodies that are being read */
    size_t bodies_max_bytes;
    long idle_per_shard;
    bool closing;
    bool driving;   /* whoever is on the stack will call http_client_run_ended() */
    unsigned round; /* counts http_client_run_ended() */
    bool globally_initialised;
    CURL **idle; /* easy handles at rest */
    size_t n_idle;
    size_t idle_cap;
    struct metric_cell *requests[HTTP_RESULTS];
    struct metric_cell *in_flight_gauge;
    struct metric_cell *body_bytes_gauge;
    struct metric_cell *connections_new;
    struct metric_cell *connections_reused;
    struct metric_cell *rebuilds;
    struct metric_cell *file_failures;
    unsigned n_shards;
    struct http_shard shards[];
};

/* ---- http_shard.c ---------------------------------------------------------------------------- */

bool http_shard_init(struct http_shard *s, struct http_client *c, struct err *err);
/* The lists must be empty. */
void http_shard_done(struct http_shard *s);
/* Gives a prepared transfer to libcurl (t->shard), at once or as soon as it is not busy. */
void http_shard_add(struct http_transfer *t);
/* Takes a transfer out of whatever list it is in and from libcurl; the shard must not be busy. */
void http_shard_remove(struct http_transfer *t);
/* For CURLOPT_CLOSESOCKETFUNCTION; shard is a struct http_shard. */
int http_shard_close_socket(void *shard, curl_socket_t fd);
/* After an error of the multi handle its state is undefined: all its transfers fail, it is made
 * anew and the event is counted. */
void http_shard_rebuild(struct http_shard *s, CURLMcode code);

/* ---- http.c ---------------------------------------------------------------------------------- */

void http_list_move(struct http_transfer *t, struct http_list *to);
/* The transfer is out of libcurl: follows a redirect, or puts it among the ended ones. */
void http_transfer_complete(struct http_transfer *t, CURLcode code);
/* Ends a transfer that is out of libcurl (or never was in it) for a reason of our own. */
void http_transfer_fail(struct http_transfer *t, enum http_result result, const struct err *reason);
/* Calls on_done() of what has ended so far. Not from within libcurl. */
void http_client_run_ended(struct http_client *c);
struct http_transfer *http_transfer_free(struct http_transfer *t);

/* ---- http_options.c -------------------------------------------------------------------------- */

/* Sets all options of t->easy. r: as the caller gave it, with the headers that are not kept.
 * HTTP_DONE, or a reason in err. */
enum http_result http_options_apply(struct http_transfer *t, const struct http_request *r,
                                    struct err *err);
/* What changes from hop to hop: URL and remaining time. */
enum http_result http_options_apply_hop(struct http_transfer *t, struct err *err);

/* Adds the Authorization header that was waited for. */
enum http_result http_options_authorize(struct http_transfer *t, const char *value,
                                        struct err *err);

/* ---- http_oauth2.c --------------------------------------------------------------------------- */

struct http_tokens;
struct http_token;
struct http_tokens *http_tokens_new(struct http_client *c);    /* NULL if out of memory */
struct http_tokens *http_tokens_free(struct http_tokens *all); /* nothing may wait */
/* The value of the Authorization header for a transfer with HTTP_AUTH_OAUTH2; NULL and HTTP_DONE if
 * it has to wait for it. */
enum http_result http_tokens_get(struct http_transfer *t, const char **ret_text, struct err *err);
/* Puts the transfer among those that wait; it goes on, or fails, by itself. */
void http_tokens_wait(struct http_transfer *t);
/* A transfer that may be waiting is about to be freed. */
void http_tokens_cancelled(struct http_transfer *t);
/* The server answered 401 to the transfer's token. */
void http_tokens_refused(struct http_transfer *t);
/* All that waits fails. */
void http_tokens_abort(struct http_tokens *all, const struct err *reason);

/* ---- http_transfer.c ------------------------------------------------------------------------- */

/* Sets the callbacks of t->easy. */
void http_transfer_set_callbacks(struct http_transfer *t);
/* Forgets what came, before another hop. */
void http_transfer_reset_response(struct http_transfer *t);
/* Takes the beginning of a response that libcurl has not read because sending failed first. Calls
 * neither on_head() nor on_data(). */
void http_transfer_take_late(struct http_transfer *t, struct sv bytes);

/* ---- http_result.c --------------------------------------------------------------------------- */

/* Sets t->result and, if it is not HTTP_DONE, t->error, from t->code and what came. */
void http_result_classify(struct http_transfer *t);
/* Writes the sentence "METHOD URL: reason" to t->error. */
void http_result_explain(struct http_transfer *t, const char *reason);
/* Value of Retry-After: seconds or an HTTP-date -> milliseconds from now (0 if past), else -1. */
int64_t http_retry_after(struct sv value, int64_t wall_ns);

const char *http_method_name(enum http_method m);

#endif
