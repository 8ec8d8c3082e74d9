/* `/metrics/recorded`: the recorded metrics, for Prometheus (docs/recorded-metrics.md). */
#ifndef PROFPULL_API_RECORDED_H
#define PROFPULL_API_RECORDED_H

#include "server/routes.h"

extern const struct route recorded_routes[];

#endif
