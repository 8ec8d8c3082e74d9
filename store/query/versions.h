/* Versions of services: when each was first seen. Computed from the labels of series. One thread.
 */
#ifndef PROFPULL_STORE_QUERY_VERSIONS_H
#define PROFPULL_STORE_QUERY_VERSIONS_H

#include "store/query/query.h"

/* The most pairs of service and version that are remembered. */
#define QUERY_VERSIONS_MAX 20000

/* Returns the version in labels: the value of the first of `version`, `service_version`,
 * `service_git_ref`, `app_kubernetes_io_version` and `pod_template_hash` that there is; "" if there
 * is none. */
struct sv query_version_in(const struct label *labels, size_t n);

/* Returns the name of the label that query_version_in() takes the version from; "" if there is
 * none. */
struct sv query_version_label(const struct label *labels, size_t n);

struct query_version {
    struct sv service;
    struct sv version;
    int64_t first_ms; /* the time of its first profile in the range */
};
struct query_versions {
    struct query_version *at; /* by service, then by first_ms; in memory of the query's arena */
    size_t n;
    bool is_cut; /* there are more than QUERY_VERSIONS_MAX */
};
/* Lists the versions that have profiles in a range, and the version "" of services that have series
 * without one. */
bool query_versions(const struct query *q, const struct query_range *r, struct query_versions *ret,
                    struct err *err);

#endif
