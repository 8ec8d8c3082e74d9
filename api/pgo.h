/* Profiles of the store for tools: merged ones for `go tool pprof`, and those that `go build -pgo`
 * takes.
 *
 *     GET /pprof?query=TYPE{SELECTOR}[&from=now-1h][&until=now]
 *     GET /pgo/SERVICE[?query={SELECTOR}][&from=now-24h][&until=now]
 *
 * Times are those of Pyroscope's URLs (attime.h). Handlers run on the threads for queries.
 */
#ifndef PROFPULL_API_PGO_H
#define PROFPULL_API_PGO_H

#include "server/routes.h"

extern const struct route pgo_routes[];

#endif
