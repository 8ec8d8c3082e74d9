/* Which jobs share a scrape, as the scraper would have it if it got the targets in this order
 * (scraper/claims.h). One thread.
 */
#ifndef PROFPULL_CLI_LEADERS_H
#define PROFPULL_CLI_LEADERS_H

#include <stddef.h>

#include "scraper/targets/target.h"

struct leaders;

struct leaders *leaders_new(void);               /* NULL if out of memory */
struct leaders *leaders_free(struct leaders *l); /* accepts NULL, returns NULL */
/* The job whose scrape the i-th one of a target shares; NULL if it is one of its own, or if memory
 * ran out. Lives as long as the leaders. */
const char *leaders_of(struct leaders *l, struct target *t, size_t i);

#endif
