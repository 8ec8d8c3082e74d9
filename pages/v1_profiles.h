/* The contents of the pages of profiles as JSON, under /api/v1/. pages/view.h describes the
 * parameters. An error is {"error":"..."}.
 */
#ifndef PROFPULL_PAGES_V1_PROFILES_H
#define PROFPULL_PAGES_V1_PROFILES_H

#include "pages/view.h"
#include "server/exchange.h"

/* {"services":["cart"]} */
void v1_services(struct exchange *x);
/* {"types":[{"id":"...","name":"process_cpu","sampleType":"cpu","sampleUnit":"nanoseconds"}]} */
void v1_types(struct exchange *x);
/* {"labels":["pod"]}, or with name=pod {"values":["cart-1"]} */
void v1_labels(struct exchange *x);
/* Levels of bars, see v1_put_flamegraph(). */
void v1_flamegraph(struct exchange *x);
/* {"unit":"...","total":1,"functions":[{"name":"...","self":1,"total":1}]}; limit=100 */
void v1_top(struct exchange *x);
/* {"from":1,"until":2,"stepMs":15000,"unit":"...","points":[[1,2]]}; in a difference, from and
 * until cover the ranges of both sides */
void v1_timeline(struct exchange *x);
/* The merged profile, for go tool pprof. */
void v1_pprof(struct exchange *x);

/* Appends {"diff":false,"unit":"...","total":1,"maxSelf":1,"left":0,"right":0,"names":["total"],
 * "levels":[[0,1,1,0]]}. A level has four numbers for each bar (the gap to the bar before it,
 * total, self, index of the name), or seven in a difference (the first three for each side, then
 * the name). The text has no "<", so it may be put into an element of HTML. */
void v1_put_flamegraph(const struct view *v, const struct flamegraph *g, struct buf *out);

/* Answers with an error. */
void v1_fail(struct exchange *x, const struct err *err);

#endif
