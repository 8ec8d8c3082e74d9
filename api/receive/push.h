/* `POST /push.v1.PusherService/Push`: the API to which Alloy, profpull and newer SDKs push. */
#ifndef PROFPULL_API_RECEIVE_PUSH_H
#define PROFPULL_API_RECEIVE_PUSH_H

#include "server/exchange.h"

#define RECEIVE_PUSH_PATH "/push.v1.PusherService/Push"

void push_work(struct exchange *x);

#endif
