/* The response to GET /api/v1/targets: every scrape, streamed page by page.
 *
 * 50,000 scrapes make about 30 MB of JSON. Only one page is in memory, and the next is made when
 * the client has read the last. The parameters of the query select scrapes: health
 * (scrape_health_name()), job, service, source and type. A scrape must fit all parameters that are
 * given.
 */
#ifndef PROFPULL_API_TARGETS_JSON_H
#define PROFPULL_API_TARGETS_JSON_H

#include "scraper/scraper.h"
#include "server/routes.h"

/* The parameters of the route, ended by NULL. */
extern const char *const targets_params[];
/* Appends one scrape as a JSON object. False if out is full. */
bool targets_put(const struct scrape_status *st, struct buf *out);
/* The handler of the route. */
void reply_targets(struct connection *c, const struct request *r,
                   const struct server_options *options);

#endif
