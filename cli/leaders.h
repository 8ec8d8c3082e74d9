/* Finds which targets share a scrape, as if the scraper had received the targets in this order
 * (scraper/claims.h). One thread.
 */
#ifndef PROFPULL_CLI_LEADERS_H
#define PROFPULL_CLI_LEADERS_H

#include <stddef.h>

#include "scraper/targets/target.h"

struct leaders;

struct leaders *leaders_new(void);               /* NULL if out of memory */
struct leaders *leaders_free(struct leaders *l); /* accepts NULL, returns NULL */
/* Begins a group: the targets of a source follow, perhaps not for the first time. */
void leaders_group(struct leaders *l);
/* Says which scrape the i-th scrape of a target follows or duplicates. Both members are NULL if the
 * scrape runs on its own, or if memory ran out; they live as long as the leaders. */
struct leaders_verdict {
    const char *follows; /* the job whose scrape is shared */
    /* the source of the other target of the job, which is scraped instead */
    const char *duplicate_of;
};
struct leaders_verdict leaders_of(struct leaders *l, struct target *t, const char *source,
                                  size_t i);

#endif
