/* The head of an HTTP/1 request to a server of ours: path, parameters, headers, and the framing of
 * the body.
 *
 * The head comes from outside and is not trusted. A request whose end is ambiguous (two lengths, a
 * length beside chunks) is refused. Pure; any thread.
 */
#ifndef PROFPULL_SERVER_REQUEST_H
#define PROFPULL_SERVER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/* A longer head is refused. */
#define REQUEST_HEAD_MAX ((size_t)16 * 1024)
/* Further parameters of a query are ignored. */
#define REQUEST_PARAMS_MAX 64

enum request_method {
    REQUEST_GET,
    REQUEST_HEAD,
    REQUEST_POST,
    REQUEST_PUT,
    REQUEST_DELETE,
    REQUEST_OPTIONS,
    REQUEST_OTHER,
    REQUEST_METHODS,
};

struct request_param {
    struct sv name; /* decoded, as is the value */
    struct sv value;
};

struct request {
    enum request_method method;
    bool is_http_10;      /* the client can read neither chunks nor trailers */
    bool keeps_alive;     /* the client may send another request on the same connection */
    bool is_chunked;      /* the body comes in chunks, so its length is not known */
    bool awaits_continue; /* the client sends its body only when it is asked to */
    uint64_t body_length;
    struct sv path;    /* decoded */
    struct sv query;   /* not decoded, without its "?" */
    struct sv headers; /* private: all lines */
    struct request_param params[REQUEST_PARAMS_MAX];
    size_t n_params;
};

/* Returns the length of the head at the front of the data, including the empty line at its end; 0
 * if the head is incomplete. from: bytes that an earlier call has searched, when the head was
 * incomplete. */
size_t request_head_length(struct sv data, size_t from);

/* Parses a complete head. The result points into the head and into `decoded`, which must have room
 * for as many bytes as the head. Returns 0, or the status with which the request is refused: 400,
 * 417 or 501. */
int request_parse(struct sv head, char *decoded, struct request *ret);

/* Returns the name of a method, such as "GET"; "" for REQUEST_OTHER. */
const char *request_method_name(enum request_method method);
/* Returns the first value of a parameter of the query; its p is NULL if there is none. */
struct sv request_param(const struct request *r, const char *name);
/* Returns the i-th value, from 0, of a parameter that may be repeated. */
struct sv request_param_at(const struct request *r, const char *name, size_t i);
/* Returns the value of the first header of this name, trimmed; its p is NULL if there is none. The
 * case of the name does not matter. */
struct sv request_header(const struct request *r, const char *name);
/* Returns true if the comma-separated list in the headers of this name has this word. The case does
 * not matter, and parameters after a ";" are ignored. */
bool request_header_lists(const struct request *r, const char *name, const char *word);
/* Walks through all headers. *rest begins as r->headers. Returns false at the end. */
bool request_next_header(struct sv *rest, struct sv *ret_name, struct sv *ret_value);

#endif
