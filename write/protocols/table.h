/* The list of all protocols, in the order of messages; the first is the default. A new destination
 * adds its row here and defines protocol_NAME in a file of its own.
 */
#ifndef PROFPULL_WRITE_PROTOCOLS_TABLE_H
#define PROFPULL_WRITE_PROTOCOLS_TABLE_H

#include "write/protocol.h"

#define PROTOCOLS(ROW)                                                                             \
    ROW(push)                                                                                      \
    ROW(ingest)                                                                                    \
    ROW(file)                                                                                      \
    ROW(store)                                                                                     \
    ROW(profefe)                                                                                   \
    ROW(otlp)                                                                                      \
    ROW(s3)                                                                                        \
    ROW(parca)

#define PROTOCOL_DECLARE(name) extern const struct protocol protocol_##name;
PROTOCOLS(PROTOCOL_DECLARE)

#endif
