/* Ends calls of libcurl that do not come back.
 *
 * A peer can send what keeps libcurl, or the TLS library under it, reading within one call: frames
 * of HTTP/2 without content, for example. No timer of the loop runs meanwhile, so a thread of the
 * guard's own looks at the call: if the loop's thread has used GUARD_CPU_MS of CPU within it
 * (waiting for a CPU does not count), the connection that has received most meanwhile is shut down,
 * what the kernel holds of it is discarded, and libcurl sees its end. Another one is cut in the
 * same call only if it goes on receiving.
 *
 * guard_enter(), guard_leave() and guard_forget() belong to the loop's thread.
 */
#ifndef PROFPULL_HTTP_GUARD_H
#define PROFPULL_HTTP_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define GUARD_CPU_MS 1000
/* The pause between two looks. */
#define GUARD_LOOK_MS 250
/* Sockets that a call may be about. */
#define GUARD_SOCKETS_MAX 1024

struct guard;

/* A connection of a shard, and whose it is. */
struct guard_socket {
    int fd;
    bool closed;     /* during the call */
    uint64_t origin; /* url_origin_hash() of the request that it was made for */
};

/* Starts the thread. NULL if out of memory, or if there is no thread to be had. */
struct guard *guard_new(struct err *err);
/* Accepts NULL, returns NULL. */
struct guard *guard_free(struct guard *g);
/* A call begins that may read from these sockets; those beyond GUARD_SOCKETS_MAX are not looked at.
 * Accepts NULL. */
void guard_enter(struct guard *g, const struct guard_socket *sockets, size_t n);
/* The call is over. The socket that was shut down, last if there were several, or -1. */
int guard_leave(struct guard *g);
/* A socket is about to be closed, within the call or not. Accepts NULL. */
void guard_forget(struct guard *g, int fd);

#endif
