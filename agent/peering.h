/* Makes the peers of queries (store/peering/peering.h) from the configuration. */
#ifndef PROFPULL_AGENT_PEERING_H
#define PROFPULL_AGENT_PEERING_H

#include "base/err.h"
#include "base/log.h"
#include "base/metrics.h"
#include "config/config.h"

struct http_contents;
struct peering;

/* Returns the peering of a process; NULL with err. log, metrics and contents may be NULL. */
struct peering *agent_peering_new(struct log *log, struct metrics *metrics,
                                  struct http_contents *contents, const struct config *config,
                                  struct err *err);
/* Takes over the peers of another configuration. If that fails, logs it and keeps the former ones.
 * One thread at a time. */
void agent_peering_configure(struct peering *p, const struct config *config, struct log *log);

#endif
