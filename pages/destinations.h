/* The page of destinations, with the ledger of each, and the page of the effective configuration.
 * Both exist as JSON, too.
 */
#ifndef PROFPULL_PAGES_DESTINATIONS_H
#define PROFPULL_PAGES_DESTINATIONS_H

#include "server/exchange.h"

void page_destinations(struct exchange *x);
/* {"destinations":[{"name":"...","url":"...","protocol":"...","up":true,"downSince":"",
 *  "lastError":"","advice":"","oldestAgeSeconds":0,"queueLimitBytes":1,"accepted":1,...,
 *  "dropped":{}}]} */
void v1_destinations(struct exchange *x);
/* Appends the list of destinations as JSON. */
void destinations_put(struct exchange *x);

void page_config(struct exchange *x);
/* {"yaml":"..."} */
void v1_config(struct exchange *x);

#endif
