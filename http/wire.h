/* The bytes that were read from a connection, as the kernel counts them: framing, records and
 * headers included, whatever the layers above make of them. Any thread.
 */
#ifndef PROFPULL_HTTP_WIRE_H
#define PROFPULL_HTTP_WIRE_H

#include <stdint.h>

/* The bytes that have been read from a TCP socket so far; -1 if the kernel does not know, or so
 * much arrives meanwhile that it cannot be said. */
int64_t wire_received(int fd);

#endif
