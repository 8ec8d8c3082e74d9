/* OTLP over HTTP: `POST /v1development/profiles`, as protobuf or JSON, as the Collector's exporter
 * `otlphttp` sends it. */
#ifndef PROFPULL_API_RECEIVE_OTLP_HTTP_H
#define PROFPULL_API_RECEIVE_OTLP_HTTP_H

#include "server/exchange.h"
#include "server/routes.h"

#define RECEIVE_OTLP_PATH "/v1development/profiles"

void otlp_http_work(struct exchange *x);
/* Writes an error of the server itself as the message Status in JSON. Type: route_error_writer. */
void otlp_route_error(struct route_error *e);
/* Converts a request in OTLP's JSON to the message, in an arena; ids of traces and spans are
 * hexadecimal there. False with err. */
bool otlp_json_to_message(struct sv json, struct arena *arena, struct sv *ret, struct err *err);

#endif
