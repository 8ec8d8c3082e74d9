/* Takes the profiles of an OTLP request (ExportProfilesServiceRequest). It does not know over which
 * transport the request came: see api/receive/otlp_http.h.
 *
 * Good profiles are kept even if others of the request are refused. Any thread.
 */
#ifndef PROFPULL_API_RECEIVE_OTLP_H
#define PROFPULL_API_RECEIVE_OTLP_H

#include <stddef.h>
#include <stdint.h>

#include "api/connect.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "server/exchange.h"

/* The most bytes of pprof that are made of one request. Profiles of a request share their tables,
 * so that these bytes may be many times those of the request. */
#define OTLP_MADE_MAX ((size_t)512 * 1024 * 1024)

struct otlp_export {
    /* Set if it failed as a whole. CONNECT_UNAVAILABLE: the sender may try again;
     * CONNECT_INVALID_ARGUMENT, CONNECT_RESOURCE_EXHAUSTED: another try would fail as well. */
    enum connect_code code;
    size_t rejected; /* messages Profile that were refused; those of the rest are kept */
    struct err err;  /* the first refusal, or why it failed */
};

/* Takes the profiles of a message in protobuf. deadline_ms: monotonic, 0: none. Returns false if
 * the response is an error: nothing in the request is good, or the sender has to try again.
 * x->receipt gets the profiles. */
bool otlp_export(const struct exchange *x, int64_t deadline_ms, struct sv message,
                 struct otlp_export *ret);
/* Appends the response of a success, ExportProfilesServiceResponse. False if out of memory. */
bool otlp_put_response(const struct otlp_export *e, struct buf *out);

#define RECEIVE_OTLP_METHOD                                                                        \
    "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"

/* Serves the method ProfilesService/Export: over gRPC, which exporters speak by default, gRPC-web
 * and Connect, in protobuf only. */
void otlp_method_work(struct exchange *x);

#endif
