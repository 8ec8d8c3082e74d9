/* The response to GET /api/v1/targets: every scrape, streamed page by page.
 *
 * 50,000 scrapes make some 30 MB of JSON; only one page is in memory, and the next is made when the
 * client has taken the last. The parameters of the query choose: health (scrape_health_name()),
 * job, service, source and type; those that are given must all fit.
 */
#ifndef PROFPULL_API_TARGETS_JSON_H
#define PROFPULL_API_TARGETS_JSON_H

#include "scraper/scraper.h"
#include "server/routes.h"

/* NULL after the last one. */
extern const char *const targets_params[];
/* Appends one scrape as an object. False if out is full. */
bool targets_put(const struct scrape_status *st, struct buf *out);
/* The handler of the route. */
void reply_targets(struct connection *c, const struct request *r,
                   const struct server_options *options);

#endif
