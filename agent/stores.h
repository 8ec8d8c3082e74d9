/* The stores of a process: one for each endpoint of the protocol "store".
 *
 * The writer opens them, as it opens all its destinations, and delivers into them; queries read
 * them. A store that no endpoint delivers into any more stays open until the end of the process:
 * queries may read it, and the endpoint may come back. Any thread.
 */
#ifndef PROFPULL_AGENT_STORES_H
#define PROFPULL_AGENT_STORES_H

#include "base/err.h"
#include "base/log.h"
#include "base/metrics.h"
#include "config/config.h"

struct stores;
struct store;
struct sink;

/* log and metrics may be NULL. NULL if out of memory. */
struct stores *stores_new(struct log *log, struct metrics *metrics);
/* After the writers that deliver into them, and the queries, have ended. Accepts NULL, returns
 * NULL. */
struct stores *stores_free(struct stores *s);

/* For struct writer_options; arg is the struct stores. */
struct sink *stores_open_sink(void *arg, const struct config_endpoint *endpoint, struct err *err);

/* Gives the stores of the endpoints of another configuration its times and limits. */
void stores_configure(struct stores *s, const struct config *config);

/* Returns the store of an endpoint, or the first one (NULL); NULL if there is none. */
struct store *stores_get(struct stores *s, const char *endpoint);

/* Returns false with err if a store that an endpoint delivers into has lost its directory until a
 * restart. */
bool stores_healthy(struct stores *s, struct err *err);

#endif
