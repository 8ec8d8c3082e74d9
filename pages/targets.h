/* The page of targets: every scrape by state, with what failed, when it is due, and what the last
 * one took. The same as JSON is /api/v1/targets (api/targets_json.h).
 */
#ifndef PROFPULL_PAGES_TARGETS_H
#define PROFPULL_PAGES_TARGETS_H

#include "server/exchange.h"

/* job=, service= and health= choose; at most 500 scrapes are shown, those that fail first. */
void page_targets(struct exchange *x);
/* POST: makes the scrapes that job=, type= and url= choose due now: {"scheduled":1}. One of them
 * must be given. A browser gets the page of targets in answer. */
void v1_scrape(struct exchange *x);

#endif
