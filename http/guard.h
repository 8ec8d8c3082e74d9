/* Ends calls of libcurl that do not return.
 *
 * A peer can send bytes that keep libcurl, or the TLS library below it, reading within one call:
 * for example, HTTP/2 frames without content. No timer of the loop runs during a call, so a thread
 * of the guard watches it. If the loop's thread has used GUARD_CPU_MS of CPU time within the call
 * (waiting for a CPU does not count), the connection that has received most in this time is shut
 * down. The bytes that the kernel holds for this connection are discarded, and libcurl sees the end
 * of the connection. Another connection is cut in the same call only if it goes on receiving.
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
/* The pause between two checks of the guard's thread. */
#define GUARD_LOOK_MS 250
/* The most sockets of a call that are watched. */
#define GUARD_SOCKETS_MAX 1024

struct guard;

/* A connection of a shard, and its origin. */
struct guard_socket {
    int fd;
    bool closed;     /* during the call */
    uint64_t origin; /* url_origin_hash() of the request that it was made for */
};

/* Starts the thread. Returns NULL if out of memory, or if the thread cannot be started. */
struct guard *guard_new(struct err *err);
/* Ends the thread. Accepts NULL, returns NULL. */
struct guard *guard_free(struct guard *g);
/* Begins to watch a call that may read from these sockets. Sockets beyond GUARD_SOCKETS_MAX are not
 * watched. Accepts NULL. */
void guard_enter(struct guard *g, const struct guard_socket *sockets, size_t n);
/* Ends watching a call. Returns the socket that was shut down (the last one if there were several),
 * or -1. */
int guard_leave(struct guard *g);
/* Stops watching a socket that is about to be closed, within a call or not. Accepts NULL. */
void guard_forget(struct guard *g, int fd);

#endif
