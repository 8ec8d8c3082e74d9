/* The head of an HTTP/1 request to a server of ours: which page, with which parameters and headers,
 * and how its body comes.
 *
 * It comes from outside and is not trusted. What makes the end of a request ambiguous (two lengths,
 * a length beside chunks) is refused. Pure; any thread.
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
    struct sv name; /* decoded, as the value */
    struct sv value;
};

struct request {
    enum request_method method;
    bool is_http_10;      /* the client cannot read chunks */
    bool keeps_alive;     /* the client may send another request on the same connection */
    bool is_chunked;      /* the body; then its length is not known */
    bool awaits_continue; /* the client sends its body only when it is asked to */
    uint64_t body_length;
    struct sv path;    /* decoded */
    struct sv query;   /* as it came, without its "?" */
    struct sv headers; /* private: all lines */
    struct request_param params[REQUEST_PARAMS_MAX];
    size_t n_params;
};

/* The length of the head that the data begins with, including the empty line at its end; 0 if it is
 * not whole yet. from: bytes that were looked at before, when it was not whole. */
size_t request_head_length(struct sv data, size_t from);

/* Reads a whole head. The result points into it and into `decoded`, room for as many bytes as the
 * head has. Returns 0, or the status that refuses the request: 400, 417 or 501. */
int request_parse(struct sv head, char *decoded, struct request *ret);

/* "GET"; "" for REQUEST_OTHER. */
const char *request_method_name(enum request_method method);
/* The first value of a parameter of the query; p is NULL if there is none. */
struct sv request_param(const struct request *r, const char *name);
/* The i-th value, from 0, of one that may be repeated. */
struct sv request_param_at(const struct request *r, const char *name, size_t i);
/* The value of the first header of this name, trimmed; p is NULL if there is none. The case of the
 * name does not matter. */
struct sv request_header(const struct request *r, const char *name);
/* Is this word in the comma-separated list of the headers of this name? The case does not matter,
 * and parameters after a ";" are not looked at. */
bool request_header_lists(const struct request *r, const char *name, const char *word);
/* Walks all headers: *rest begins as r->headers; false at the end. */
bool request_next_header(struct sv *rest, struct sv *ret_name, struct sv *ret_value);

#endif
