/* `POST /v1/pprof`: accepts a pprof profile as the body, as the OpenTelemetry Collector's
 * pprofreceiver does. */
#ifndef PROFPULL_API_RECEIVE_PPROF_POST_H
#define PROFPULL_API_RECEIVE_PPROF_POST_H

#include "server/exchange.h"

void pprof_post_work(struct exchange *x);

#endif
