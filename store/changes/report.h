/* Answers a question about changes as JSON, and in parts for pages. One thread. */
#ifndef PROFPULL_STORE_CHANGES_REPORT_H
#define PROFPULL_STORE_CHANGES_REPORT_H

#include "base/buf.h"
#include "store/changes/changes.h"

/* Path of the page that shows a differential flame graph. */
#define CHANGES_PROFILES_PATH "/profiles"
#define REPORT_TYPE_DEFAULT "cpu"
#define REPORT_LIMIT_DEFAULT 20
#define REPORT_LIMIT_MAX 1000

/* Finds the type that a user means: an id, a sample type or a name, among the types that the
 * service has in the range. ERR_INPUT names the types that exist. The result is in the arena. */
bool changes_type(const struct query *q, struct sv service, int64_t from_ms, int64_t until_ms,
                  struct sv text, struct profile_type *ret, struct err *err);

/* How values are shown: divided by `by`, in a unit such as "cores" or "bytes/s". */
struct changes_unit {
    double by;
    const char *name;
};
struct changes_unit changes_unit(const struct changes *c, const struct profile_type *type);

/* Returns a word for the result: changed, unchanged, no_verdict, no_version, one_version or
 * no_profiles. */
const char *changes_word(const struct changes *c);
/* Appends the query of the page of profiles that shows exactly the two sets as a differential flame
 * graph: "?service=...". */
void changes_link(const struct changes_question *question, const struct changes *c,
                  struct buf *out);

/* Appends the whole result as JSON, with at most `limit` functions. */
void changes_put_json(const struct changes_question *question, const struct changes *c,
                      size_t limit, struct buf *out);
/* Appends the list of rollouts as JSON, with at most `limit` services. */
void changes_put_rollouts(const struct changes_rollouts *all, size_t limit, struct buf *out);

#endif
