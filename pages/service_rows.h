/* The rows of the overview: all that is known of each service.
 *
 * Rates and versions come from the store, the health of targets from the scraper. Everything is in
 * memory of the query's arena. One thread.
 */
#ifndef PROFPULL_PAGES_SERVICE_ROWS_H
#define PROFPULL_PAGES_SERVICE_ROWS_H

#include "scraper/scraper.h"
#include "store/query/rates.h"

/* The most services that are listed; the cheapest ones are left out. */
#define SERVICE_ROWS_MAX 10000

enum service_kind { SERVICE_CPU, SERVICE_ALLOC, SERVICE_HEAP, SERVICE_GOROUTINES, SERVICE_KINDS };

struct service_row {
    struct sv name;
    /* For each kind a value for each step (NAN: none), or NULL; CPU in cores. */
    double *values[SERVICE_KINDS];
    double means[SERVICE_KINDS]; /* NAN: none */
    size_t up;                   /* targets all of whose scrapes are up or wait */
    size_t down;                 /* targets with a scrape that fails */
    /* The version that came last among those that run now, or among all if none runs; "" if there
     * is none. */
    struct sv version;
    struct sv version_before; /* the one before it; "" if it has not changed */
    int64_t version_ms;       /* the time of its first profile; 0 if it has not changed */
};

struct service_rows {
    int64_t start_ms;
    int64_t step_ms;
    size_t n_steps;
    struct service_row *at; /* the most cores first, then the most live heap, then by name */
    size_t n;
    bool is_cut;              /* see query_rates() */
    size_t services_left_out; /* see SERVICE_ROWS_MAX */
    bool has_targets;         /* this process scrapes */
};

/* Times in milliseconds. The versions of the last SERVICE_VERSIONS_MS before until_ms are known. */
#define SERVICE_VERSIONS_MS (INT64_C(24) * 3600 * 1000)
/* Makes the rows. scraper may be NULL. */
bool service_rows_make(const struct query *q, struct scraper *scraper, int64_t from_ms,
                       int64_t until_ms, struct service_rows *ret, struct err *err);
/* Returns the profile type, as text for parameters, in which a kind is shown. Static storage. */
const char *service_kind_type(enum service_kind kind);

#endif
