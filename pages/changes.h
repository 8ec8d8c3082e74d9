/* The page of changes: services whose version changed, and what changed in one of them. Parameters:
 * those of api/changes.h. */
#ifndef PROFPULL_PAGES_CHANGES_H
#define PROFPULL_PAGES_CHANGES_H

#include "server/exchange.h"

void page_changes(struct exchange *x);

#endif
