/* The head of an HTTP/1.1 request as it goes over the wire. For http/ and its tests only. */
#ifndef PROFPULL_HTTP_REQUEST_HEAD_H
#define PROFPULL_HTTP_REQUEST_HEAD_H

#include <stdbool.h>

#include "base/buf.h"

struct http_transfer;

/* Appends the head of the transfer's request as libcurl would write it: its headers, which may
 * contain credentials, and Host, User-Agent, Accept and Content-Length unless it has them. Returns
 * false if out is full or out of memory. */
bool request_head_write(const struct http_transfer *t, struct buf *out);

#endif
