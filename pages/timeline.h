/* The timeline of a view: how many cores, bytes or objects over time, and where the version of the
 * service changed. One thread. */
#ifndef PROFPULL_PAGES_TIMELINE_H
#define PROFPULL_PAGES_TIMELINE_H

#include "pages/rate.h"
#include "pages/view.h"
#include "store/query/versions.h"

/* The most changes of version that are marked: the newest ones. */
#define TIMELINE_VERSIONS_MAX 20

struct timeline {
    int64_t from_ms;
    int64_t until_ms;
    int64_t step_ms;
    enum rate_unit unit;
    double *values; /* of each step, in the unit; NAN: no profile */
    size_t n;
    double end; /* of the axis */
    /* Versions whose first profile is in the range, after a profile of another version. */
    const struct query_version *versions;
    size_t n_versions;
    size_t more_versions; /* that are not marked */
};

/* Computes the timeline of both sides of a view, in memory of the view's arena. */
bool timeline_make(const struct view *v, struct timeline *ret, struct err *err);
/* Appends the timeline as HTML. */
void timeline_put(const struct timeline *t, struct buf *out);
/* Appends the list of changes of version; nothing if there is none. */
void timeline_put_versions(const struct timeline *t, struct buf *out);
/* Appends the members "rateUnit", "rates" and "versions" of a JSON object. */
void timeline_put_json(const struct timeline *t, struct buf *out);

/* Returns the length of a step for a range. */
int64_t timeline_step_ms(int64_t from_ms, int64_t until_ms);

#endif
