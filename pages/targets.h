/* The page of targets: every scrape by state, with its error, the time at which it is due, and the
 * duration of the last one. api/targets_json.h has the same as JSON.
 */
#ifndef PROFPULL_PAGES_TARGETS_H
#define PROFPULL_PAGES_TARGETS_H

#include "server/exchange.h"

/* The page of targets. job=, service= and health= select scrapes; at most 500 are shown, failing
 * ones first. */
void page_targets(struct exchange *x);
/* POST: makes the scrapes that job=, type= and url= select due at once: {"scheduled":1}. At least
 * one of these parameters is required. A browser gets the page of targets as response. */
void v1_scrape(struct exchange *x);

#endif
