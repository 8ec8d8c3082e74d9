/* `POST /ingest`: the API of Pyroscope's SDKs, and that of DeepFlow's agent. */
#ifndef PROFPULL_API_RECEIVE_INGEST_H
#define PROFPULL_API_RECEIVE_INGEST_H

#include "server/exchange.h"

void ingest_work(struct exchange *x);
/* The same where DeepFlow's agent has it: a name that is none is the service as it is. */
void deepflow_ingest_work(struct exchange *x);

#endif
