/* The child, which reads files of strangers. It answers one question after the other, until the
 * agent closes the socket or the launcher ends it. Private to symbols/.
 */
#ifndef PROFPULL_SYMBOLS_CHILD_H
#define PROFPULL_SYMBOLS_CHILD_H

#include <stdint.h>

#include "symbols/protocol.h"

/* Runs in the new process and does not return. The socket is its only descriptor but those for
 * standard input and output. */
void child_main(int socket, const struct order *order) __attribute__((noreturn));

#endif
