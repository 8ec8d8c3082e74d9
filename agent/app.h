/* The running program: creates, wires and starts every stage, and stops them in order.
 *
 *   discovery thread:  discovery -> pipeline (relabel, targets) -> scraper_set_group()
 *   network thread:    scraper -> writer_put()
 *   writer thread:     writer
 *   workers:           files, compression
 *   main thread:       signals
 */
#ifndef PROFPULL_AGENT_APP_H
#define PROFPULL_AGENT_APP_H

#include "agent/receive.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/metrics.h"
#include "config/config.h"
#include "scraper/scraper.h"
#include "write/write.h"

struct app;
struct conditions;
struct dropped;
struct record;
struct naming_counts;
struct peering;
struct sharding_counts;
struct sources;
struct store;
struct symbols_helper;

/* Takes a reference of config. helper: reads debug information, and outlives the app; NULL: none is
 * read. Nothing is sent before app_start(). */
struct app *app_new(const struct config *config, struct symbols_helper *helper, struct err *err);
bool app_start(struct app *app, struct err *err);
/* Puts another configuration in force, which has no slots yet (config/change.h): all of it, or
 * nothing of it with an error. Jobs and destinations that have not changed stay untouched. Settings
 * that need a restart keep their values, and the log says so. Endpoints that are gone have drain_ms
 * to send their queues. Blocks until the change is complete. Main thread, between app_start() and
 * app_drain().
 */
bool app_reload(struct app *app, struct config *next, int64_t drain_ms, struct err *err);
/* The part of the HTTP servers in app_reload(); the app itself does not know them. prepare() does
 * everything that can fail, before anything has changed; commit() or discard() follows. All are
 * called on the thread of app_reload().
 */
struct app_servers {
    bool (*prepare)(void *arg, const struct config *next, struct err *err);
    void (*commit)(void *arg);
    void (*discard)(void *arg);
    void *arg;
};
/* Sets the servers. Call it before app_reload(). */
void app_set_servers(struct app *app, const struct app_servers *servers);
/* Returns a new reference to the configuration in force. Any thread. */
struct config *app_config(struct app *app);
struct log *app_log(struct app *app);
/* Parts of the app, for the servers. All of them live as long as the app. */
struct metrics *app_metrics(struct app *app);
struct scraper *app_scraper(struct app *app);
struct receive *app_receive(struct app *app);
struct dropped *app_dropped(struct app *app);
struct sources *app_sources(struct app *app);
struct conditions *app_conditions(struct app *app);
struct record *app_record(struct app *app);
struct peering *app_peering(struct app *app);
/* Returns the store of an endpoint, or the first store if endpoint is NULL; NULL if there is none.
 */
struct store *app_store(struct app *app, const char *endpoint);

/* Returns true if every loop has run recently. The error names the thread whose loop has not, or
 * says for how long a worker has been running one job. A disk that hangs is named there as well,
 * but is no reason to restart the process. Any thread. */
bool app_healthy(const struct app *app, struct err *err);
/* Returns true if discovery has read every source that it may read. Appends to text the sources
 * that it has not read, without a line break. Any thread. */
bool app_ready(struct app *app, struct buf *text);

/* Stops discovery, lets the scrapes in flight end that can in time, then lets the writer drain. An
 * eventfd (app_drained_fd) becomes readable when every queue is empty or the deadline, in ms from
 * now, has passed. */
void app_drain(struct app *app, int64_t timeout_ms);
int app_drained_fd(const struct app *app);

/* Ends at once: stops every thread, and drops the queued profiles. After this call the summary is
 * final. */
void app_halt(struct app *app);
/* Returns the ledger of an endpoint of the configuration. Any thread. */
struct write_ledger app_ledger(struct app *app, size_t endpoint);
/* Copies the counts of sharing; returns false if the targets are not shared. Any thread. */
bool app_sharding(const struct app *app, struct sharding_counts *ret);
/* Counts the profiles that got names. Any thread. */
void app_names(const struct app *app, struct naming_counts *ret);
/* Logs one line for each endpoint with the number of profiles accepted, sent and dropped. */
void app_summary(struct app *app);
/* Frees the app, also one that is only half built. Accepts NULL, returns NULL. */
struct app *app_free(struct app *app);

#endif
