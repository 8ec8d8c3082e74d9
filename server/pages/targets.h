/* The page of targets: every scrape by state, with what failed, when it is due, and what the last
 * one took. The same as JSON is /api/v1/targets (server/targets_json.h).
 */
#ifndef PROFPULL_SERVER_PAGES_TARGETS_H
#define PROFPULL_SERVER_PAGES_TARGETS_H

#include "server/exchange.h"

/* job=, service= and health= choose; at most 500 scrapes are shown, those that fail first. */
void page_targets(struct exchange *x);

#endif
