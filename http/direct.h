/* Requests over TCP without TLS, a proxy or HTTP/2: connections, sending, receiving.
 *
 * libcurl holds five to nine kilobytes for a request in flight and two and a half for a connection.
 * That would be nearly all the memory of a program that waits for thousands of CPU profiles. For a
 * small profile it also takes as much time as everything else together. Most scrapes and
 * destinations inside a cluster need none of its features, so they use direct connections. All
 * other requests go through libcurl (shard.c), as do unusual ones: a name with several addresses, a
 * header about framing, a signature. The limits, errors and results are the same either way.
 *
 * For http/ and its tests only. All calls are made on the loop's thread.
 */
#ifndef PROFPULL_HTTP_DIRECT_H
#define PROFPULL_HTTP_DIRECT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "http/http.h"

/* The longest time that a connection may be idle and still be used again, as in libcurl. After
 * that, a firewall or NAT on the way may have dropped it. */
#define DIRECT_IDLE_MAX_NS (118 * NS_PER_S)

struct http_direct;
struct http_transfer;

/* Returns NULL if out of memory. */
struct http_direct *direct_new(struct http_client *client);
/* Closes all connections and frees the object. No transfer may use it. Accepts NULL, returns
 * NULL. */
struct http_direct *direct_free(struct http_direct *d);

/* Returns true if the request and its settings allow a direct connection. The transfer's URL,
 * method and route must be set. */
bool direct_serves(const struct http_transfer *t, const struct http_request *r);
/* Returns true if a direct connection can be made to the addresses of a host: "192.0.2.1" or
 * "[::1],192.0.2.1", or the host itself if it is an address. */
bool direct_takes(const char *addresses);
/* Sends the request to an address for which direct_takes() is true, on a kept connection or a new
 * one. Ends the transfer if that fails. */
void direct_add(struct http_transfer *t, const char *address);
/* Continues to read the response of a transfer that has waited for memory. */
void direct_resume(struct http_transfer *t);
/* Removes a transfer and closes its connection. */
void direct_remove(struct http_transfer *t);
/* Closes idle connections that are too old at this monotonic instant, or too many. This happens
 * whenever a connection is taken or kept. */
void direct_prune(struct http_direct *d, int64_t now_ns);
/* Ends all transfers with HTTP_ERR_ABORTED. */
void direct_abort(struct http_direct *d, const char *reason);

#endif
