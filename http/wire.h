/* The bytes of a connection as the kernel counts them, including framing, TLS records and headers.
 * Any thread may call these functions.
 */
#ifndef PROFPULL_HTTP_WIRE_H
#define PROFPULL_HTTP_WIRE_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the bytes that have been read from a TCP socket so far. Returns -1 if the kernel does not
 * say, or if bytes arrive too fast to count them. */
int64_t wire_received(int fd);

/* The state of the input of a socket. wire_peek() finds it without reading. */
enum wire_input {
    WIRE_QUIET, /* nothing has arrived */
    WIRE_BYTES, /* bytes wait to be read */
    WIRE_ENDED, /* the peer has closed the connection, or it broke */
};
enum wire_input wire_peek(int fd);

/* Returns true if the peer's kernel has not acknowledged all bytes that were written to a TCP
 * socket. A response to the request would acknowledge all of it, so a response that is read while
 * this is true was begun without the whole request. */
bool wire_is_unacknowledged(int fd);

/* Returns the milliseconds since the last bytes arrived on a TCP connection, or -1 if the kernel
 * does not say. */
int64_t wire_silent_ms(int fd);

#endif
