/* The label sets that have not become targets, each with the rule that dropped it, and what each
 * rule makes of one, or of a target; both as JSON too. Any thread.
 */
#ifndef PROFPULL_PAGES_DROPPED_H
#define PROFPULL_PAGES_DROPPED_H

#include "server/exchange.h"

/* job= chooses. */
void page_dropped(struct exchange *x);
/* {"dropped":[{"id":1,"job":"a","source":"...","labels":{},"rule":2,"place":"file.yaml:12",
 * "does":"drop ...","why":""}],"more":["a"]}; rule 0: no rule, see why. */
void v1_dropped(struct exchange *x);
/* id= is that of a dropped label set; job=, source= and address= are those of a target. */
void page_trace(struct exchange *x);
/* {"job":"a","source":"...","labels":{},"steps":[{"rule":1,"place":"...","does":"...",
 * "outcome":"kept","labels":{}}],"why":""} */
void v1_trace(struct exchange *x);

#endif
