/* The pages for people, and the same data as JSON: a table for server/routes.h. */
#ifndef PROFPULL_PAGES_PAGES_H
#define PROFPULL_PAGES_PAGES_H

#include "server/routes.h"

/* Ends with a row without a path. */
extern const struct route page_routes[];

#endif
