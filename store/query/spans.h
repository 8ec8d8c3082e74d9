/* Private to heatmaps: the spans of profiles, as observations.
 *
 * A sample belongs to the span that its label `span_id` (or `profile_id`) names: 16 hexadecimal
 * digits, not all of them 0. Its label `trace_id`, 32 digits, names the trace. The samples of one
 * span in the profiles of one millisecond are added up, for each group of series. One thread.
 */
#ifndef PROFPULL_STORE_QUERY_SPANS_H
#define PROFPULL_STORE_QUERY_SPANS_H

#include "store/query/pieces.h"

/* Reads the profiles of a scope and observes their spans. work_max: memory for reading one profile.
 * Profiles that cannot be read are left out, as by query_each_body(). */
bool spans_each(const struct query *q, const struct query_scope *scope, struct pieces *pieces,
                const struct observer *observer, size_t work_max, struct err *err);

#endif
