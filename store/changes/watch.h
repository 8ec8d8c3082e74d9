/* Watches rollouts of the services in a store, and shows the last one of each as a metric:
 *
 *     profpull_change_ratio{service,type}   cost of the new version at the same load: 1.05 is 5 %
 *                                           more; only while the change has a verdict
 *
 * A thread lists the rollouts of the last day every two minutes. It compares the versions of a
 * rollout when the new one is five minutes old, then each time that its age has doubled, so that a
 * rollout costs some nine comparisons in all. The functions may be called from any thread; the
 * metrics are read by the thread that renders them.
 */
#ifndef PROFPULL_STORE_CHANGES_WATCH_H
#define PROFPULL_STORE_CHANGES_WATCH_H

#include "base/err.h"
#include "base/log.h"
#include "base/metrics.h"
#include "store/store.h"

/* The most services whose rollouts are compared, those that changed last. */
#define CHANGES_WATCH_MAX 200
#define CHANGES_WATCH_FIRST_MS (INT64_C(5) * 60 * 1000)

struct changes_watch;

/* Starts the thread. The store, log and metrics must outlive the object; the metrics must not be
 * rendered any more after changes_watch_free(). NULL with err. */
struct changes_watch *changes_watch_new(struct store *store, struct log *log,
                                        struct metrics *metrics, struct err *err);
/* Ends the comparison that is running, and the thread. Accepts NULL, returns NULL. */
struct changes_watch *changes_watch_free(struct changes_watch *w);

/* Compares what is due at a time (wall clock), on the caller's thread. For tests: the thread of the
 * object calls it with the time of the system. */
void changes_watch_round(struct changes_watch *w, int64_t now_ms);

#endif
