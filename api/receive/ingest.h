/* `POST /ingest`: the API of Pyroscope's SDKs, and that of DeepFlow's agent. */
#ifndef PROFPULL_API_RECEIVE_INGEST_H
#define PROFPULL_API_RECEIVE_INGEST_H

#include "server/exchange.h"

void ingest_work(struct exchange *x);
/* Serves the same API at the path of DeepFlow's agent. There, a name that cannot be parsed is used
 * as the service. */
void deepflow_ingest_work(struct exchange *x);

#endif
