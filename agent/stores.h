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

struct http_contents;
struct stores;
struct store;
struct store_names;
struct sink;

/* Returns an object without stores; NULL if out of memory. All arguments may be NULL. names must
 * live as long as the stores (store/store.h). */
struct stores *stores_new(struct log *log, struct metrics *metrics,
                          const struct store_names *names);
/* Closes all stores. Call it after the writers that deliver into them and the queries have ended.
 * Accepts NULL, returns NULL. */
struct stores *stores_free(struct stores *s);

/* Opens the store of an endpoint: the callback open_sink of struct writer_options. arg is the
 * struct stores. */
/* Sets the credentials that are not in files, for the buckets of archives. Before the first sink.
 */
void stores_use_contents(struct stores *s, struct http_contents *contents);
struct sink *stores_open_sink(void *arg, const struct config_endpoint *endpoint, struct err *err);

/* Gives the stores of the endpoints of another configuration its times and limits. */
void stores_configure(struct stores *s, const struct config *config);

/* Returns the store of an endpoint, or the first store if endpoint is NULL; NULL if there is none.
 */
struct store *stores_get(struct stores *s, const char *endpoint);

/* Returns false with err if a store has lost its directory and cannot use it again before a
 * restart. Only stores that an endpoint delivers into count. */
bool stores_healthy(struct stores *s, struct err *err);

#endif
