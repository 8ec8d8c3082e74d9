/* The stylesheet and the scripts of the pages, from pages/assets/, as bytes of the program.
 */
#ifndef PROFPULL_PAGES_ASSETS_H
#define PROFPULL_PAGES_ASSETS_H

#include "server/exchange.h"
#include "server/routes.h"

/* Answers GET /assets/NAME. */
void page_asset(struct exchange *x);

#endif
