/* The state of the whole process in one document, which `profpull status` shows.
 *
 * {"version":"...","configFile":"...","uptimeSeconds":1,"healthy":true,"health":"","ready":true,
 *  "readiness":"","jobs":[{"job":"pods","unknown":0,"up":1,"down":0,"absent":0}],
 *  "failures":[{"count":2,"scrape":{}}],"moreFailures":0,"slowest":[{}],"sources":[{}],
 *  "destinations":[{}],"sharding":null}
 *
 * A scrape has the form that it has in /api/v1/targets. `failures` has a row for all failures of a
 * job with the same reason, with the first of them; `slowest` has the ten slowest scrapes, sampling
 * not counted.
 */
#ifndef PROFPULL_PAGES_STATUS_H
#define PROFPULL_PAGES_STATUS_H

#include "server/exchange.h"

void v1_status(struct exchange *x);

#endif
