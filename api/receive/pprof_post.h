/* `POST /v1/pprof`: a profile as it is, as the OpenTelemetry Collector's pprofreceiver takes it. */
#ifndef PROFPULL_API_RECEIVE_PPROF_POST_H
#define PROFPULL_API_RECEIVE_PPROF_POST_H

#include "server/exchange.h"

void pprof_post_work(struct exchange *x);

#endif
