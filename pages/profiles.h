/* The page of profiles: a form, the totals over time, a flame graph and the table of functions. It
 * is complete without JavaScript. With JavaScript, pages/assets/profiles.js draws the same data,
 * which the page contains.
 */
#ifndef PROFPULL_PAGES_PROFILES_H
#define PROFPULL_PAGES_PROFILES_H

#include "server/exchange.h"

void page_profiles(struct exchange *x);

#endif
