/* The pages that people look at, and the same data as JSON: rows for server/routes.c. */
#ifndef PROFPULL_PAGES_PAGES_H
#define PROFPULL_PAGES_PAGES_H

#include "server/routes.h"

/* Ended by a row without a path. */
extern const struct route page_routes[];

#endif
