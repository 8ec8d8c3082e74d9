/* Paths and queries of scrape URLs: joining, cleaning, percent-encoding, sorting.
 *
 * Pure functions over text that pods may have written: nothing that comes out can leave its place
 * in the request line. No thread rules, no state.
 */
#ifndef PROFPULL_SCRAPER_TARGETS_URL_H
#define PROFPULL_SCRAPER_TARGETS_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* Most bytes of a prefix and a path together, and of a path with its query when encoded. */
#define URL_PATH_MAX 1024
#define URL_TARGET_MAX 8192

/* Appends prefix and path as one absolute, clean path, as Go's url.JoinPath makes it: doubled
 * slashes and "." vanish, ".." goes up and never above the root, a slash at the end stays. "?" and
 * "#" are encoded (a query has its own place); %XX stays as it is. Both empty give "/". Control
 * characters and spaces are refused. */
bool url_append_path(struct buf *out, struct sv prefix, struct sv path, struct err *err);

struct url_param {
    struct sv name;
    struct sv value;
    size_t order; /* private: keeps the order of equal names */
};

/* A query in the making; names and values are the caller's. Zeroed is empty. */
struct url_query {
    struct url_param *at;
    size_t n;
    size_t cap;
};
void url_query_done(struct url_query *q);
/* Forgets the content, keeps the storage. */
void url_query_clear(struct url_query *q);
/* Adds one more value. False if out of memory. */
bool url_query_add(struct url_query *q, struct sv name, struct sv value);
/* Replaces the first value of a name, or adds it. False if out of memory. */
bool url_query_set(struct url_query *q, struct sv name, struct sv value);
/* Removes all values of a name. */
void url_query_del(struct url_query *q, struct sv name);
/* Appends "?a=1&b=2", sorted by name, values of one name in the order they came; nothing if empty.
 */
bool url_append_query(struct buf *out, struct url_query *q);

#endif
