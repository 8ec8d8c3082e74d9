/* profefe's API over the store, as the collector of today serves it: lists, merges, profiles by id,
 * services and the version. Collectors of 2019 returned a bare list, which none of the clients
 * reads.
 *
 *     GET /api/0/profiles?service=cart&type=cpu&from=2026-11-22T00:00:00&to=...[&labels=][&limit=]
 *     GET /api/0/profiles/merge?...    pprof
 *     GET /api/0/profiles/ID[+ID...]   pprof
 *     GET /api/0/services
 *     GET /api/0/version
 *
 * Handlers run on the threads for queries.
 */
#ifndef PROFPULL_API_PROFEFE_H
#define PROFPULL_API_PROFEFE_H

#include "server/routes.h"

/* Limit of the profiles in a list. If there are more, only the newest are listed, and the response
 * has the header `X-Profpull-Truncated: true`. */
#define PROFEFE_LIST_MAX 10000

extern const struct route profefe_routes[];

#endif
