/* The endpoint that answers the questions of other processes (store/peering/peering.h) from the
 * disk of this one: POST /profpull.v1/peer. */
#ifndef PROFPULL_API_PEER_H
#define PROFPULL_API_PEER_H

#include "server/routes.h"

extern const struct route peer_routes[];

#endif
