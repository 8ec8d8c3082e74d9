/* `__name__` of a profile that came by `POST /ingest`, which does not say it: from its sample types
 * and the part `sample_type_config`. Pure; any thread.
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

/* Appends the name: "process_cpu", "memory", ... s: with the texts of its types. config: the part,
 * empty if there is none. app: the name of the application. False with err if the part is no JSON
 * object. */
bool profile_name_of(const struct pprof_summary *s, struct sv config, struct sv app,
                     struct buf *out, struct err *err);

#endif
