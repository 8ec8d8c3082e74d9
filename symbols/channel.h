/* Bytes and descriptors over a Unix stream socket, with a deadline. Private to symbols/.
 *
 * The functions make no system calls but poll, sendmsg and recvmsg, which the agent's sandbox
 * allows. Any thread may call them; a socket has one user at a time.
 */
#ifndef PROFPULL_SYMBOLS_CHANNEL_H
#define PROFPULL_SYMBOLS_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* No deadline. */
#define CHANNEL_FOREVER INT64_MAX

/* Sends all n bytes, and a descriptor with the first one unless it is -1. deadline_ms: on the
 * monotonic clock. Returns false with errno; ETIMEDOUT at the deadline. */
bool channel_send(int socket, const void *data, size_t n, int passed, int64_t deadline_ms);

/* Receives exactly n bytes, and the descriptor that comes with them: the caller closes
 * *ret_passed, which is -1 if there was none; NULL: none is expected, and one that comes is closed.
 * Returns false with errno, and no descriptor: 0 if the peer has closed the socket, ETIMEDOUT at
 * the deadline. */
bool channel_receive(int socket, void *data, size_t n, int *ret_passed, int64_t deadline_ms);

#endif
