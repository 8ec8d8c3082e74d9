/* Finds the `__name__` of a profile that was sent to `POST /ingest`. The request does not have it,
 * so it follows from the sample types and the part `sample_type_config`. Pure; any thread.
 */
#ifndef PROFPULL_API_RECEIVE_PROFILE_NAME_H
#define PROFPULL_API_RECEIVE_PROFILE_NAME_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "pprof/summary.h"

/* A longer part `sample_type_config` is refused. */
#define PROFILE_NAME_CONFIG_MAX ((size_t)64 * 1024)

/* Appends the name, such as "process_cpu" or "memory". s: the summary of the profile, with the
 * texts of its types. config: the content of the part, empty if there is none. app: the name of the
 * application. False with err if the part is not a JSON object. */
bool profile_name_of(const struct pprof_summary *s, struct sv config, struct sv app,
                     struct buf *out, struct err *err);

#endif
