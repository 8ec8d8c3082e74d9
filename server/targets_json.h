/* The answer to GET /api/v1/targets: every scrape, streamed a page at a time.
 *
 * 50,000 scrapes make some 30 MB of JSON; what is in memory at once is one page, and the next is
 * made when the client has taken the last. Query: ?health=up|down|unknown and ?job=NAME filter.
 * On the admin server's thread.
 */
#ifndef PROFPULL_SERVER_TARGETS_JSON_H
#define PROFPULL_SERVER_TARGETS_JSON_H

#include "base/buf.h"
#include "scraper/scraper.h"

struct evhttp_request;

void targets_json_reply(struct evhttp_request *req, struct scraper *scraper);

/* Appends one scrape as a JSON object. */
bool targets_json_status(const struct scrape_status *st, struct buf *out);

#endif
