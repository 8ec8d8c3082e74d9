/* The head of an HTTP request to the admin server: which page, with which parameters.
 *
 * It comes from outside and is not trusted. Headers are not read: nothing depends on them. Pure;
 * any thread.
 */
#ifndef PROFPULL_SERVER_REQUEST_H
#define PROFPULL_SERVER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* A longer head is refused. */
#define REQUEST_HEAD_MAX ((size_t)16 * 1024)
/* Further parameters of a query are ignored. */
#define REQUEST_PARAMS_MAX 16

enum request_method { REQUEST_GET, REQUEST_HEAD, REQUEST_OTHER };

struct request_param {
    struct sv name; /* decoded, as the value */
    struct sv value;
};

struct request {
    enum request_method method;
    bool is_http_10; /* the client cannot read chunks */
    struct sv path;  /* decoded */
    struct request_param params[REQUEST_PARAMS_MAX];
    size_t n_params;
};

/* The length of the head that the data begins with, including the empty line at its end; 0 if it is
 * not whole yet. from: bytes that were looked at before, when it was not whole. */
size_t request_head_length(struct sv data, size_t from);

/* Reads the first line of a head. The result points into it, and texts are decoded in place. False
 * if it is no HTTP/1 request. */
bool request_parse(char *head, size_t n, struct request *ret);

/* The first value of a parameter of the query; p is NULL if there is none. */
struct sv request_param(const struct request *r, const char *name);

#endif
