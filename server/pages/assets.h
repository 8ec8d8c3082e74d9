/* The stylesheet and the scripts of the pages, from server/pages/assets/, as bytes of the program.
 */
#ifndef PROFPULL_SERVER_PAGES_ASSETS_H
#define PROFPULL_SERVER_PAGES_ASSETS_H

#include "server/exchange.h"
#include "server/routes.h"

/* Answers /assets/NAME. */
void page_asset(struct exchange *x);

#endif
