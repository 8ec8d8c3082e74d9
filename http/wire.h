/* The bytes of a connection as the kernel counts them: framing, records and headers included,
 * whatever the layers above make of them. Any thread.
 */
#ifndef PROFPULL_HTTP_WIRE_H
#define PROFPULL_HTTP_WIRE_H

#include <stdbool.h>
#include <stdint.h>

/* The bytes that have been read from a TCP socket so far; -1 if the kernel does not know, or so
 * much arrives meanwhile that it cannot be said. */
int64_t wire_received(int fd);

/* The state of the input of a socket, without reading from it. */
enum wire_input {
    WIRE_QUIET, /* nothing has come */
    WIRE_BYTES, /* bytes wait to be read */
    WIRE_ENDED, /* the peer has closed the connection, or it broke */
};
enum wire_input wire_peek(int fd);

/* True if bytes that were written to a TCP socket have not been acknowledged by the peer's kernel.
 * The response to a request acknowledges all of it; so a response that is read while this is true
 * was begun without the whole request. */
bool wire_is_unacknowledged(int fd);

/* Milliseconds since the last bytes came on a TCP connection; -1 if the kernel does not know. */
int64_t wire_silent_ms(int fd);

#endif
