/* The label sets that did not become targets, each with the rule that dropped it; and the labels of
 * one of them, or of a target, after each rule. Both exist as JSON, too. Any thread.
 */
#ifndef PROFPULL_PAGES_DROPPED_H
#define PROFPULL_PAGES_DROPPED_H

#include "server/exchange.h"

/* The page of dropped label sets; job= selects those of one job. */
void page_dropped(struct exchange *x);
/* {"dropped":[{"id":1,"job":"a","source":"...","labels":{},"rule":2,"place":"file.yaml:12",
 * "does":"drop ...","why":""}],"more":["a"]}; rule 0: no rule, see why. */
void v1_dropped(struct exchange *x);
/* The page of one label set, rule by rule: id= selects a dropped one; job=, source= and address=
 * select a target. */
void page_trace(struct exchange *x);
/* {"job":"a","source":"...","labels":{},"steps":[{"rule":1,"place":"...","does":"...",
 * "outcome":"kept","labels":{}}],"why":""} */
void v1_trace(struct exchange *x);

#endif
