/* Passes the profiles of targets on, by the rules of the jobs and to the destinations of the
 * configuration in force. One thread, that of the scraper, except for scraped_prepare() and
 * scraped_post().
 *
 * A recording of Java goes to the destinations that can read it as it is; for all others it is
 * converted on a worker, one recording at a time, and the profiles follow when that is done.
 */
#ifndef PROFPULL_AGENT_SCRAPED_H
#define PROFPULL_AGENT_SCRAPED_H

#include "agent/delivery.h"
#include "agent/held.h"
#include "agent/recordings.h"
#include "base/loop.h"
#include "base/worker.h"

struct scraped;

/* The parts that struct scraped uses. All of them outlive it. */
struct scraped_options {
    struct intern *intern;
    struct log *log;
    struct metrics *metrics;
    struct writer *writer;
    struct record *record; /* recorded metrics; may be NULL */
    /* For recordings: */
    struct recordings *recordings;
    struct worker_pool *workers;
    struct loop *loop;     /* the loop of the scraper */
    struct naming *naming; /* for profiles that wait for names; NULL: none does */
    size_t pending_max;    /* bytes that wait for their conversion; 0: RECORDINGS_PENDING_DEFAULT */
};

struct scraped *scraped_new(const struct scraped_options *options, const struct config *config,
                            struct err *err);
struct scraped *scraped_free(struct scraped *s); /* accepts NULL, returns NULL */
/* Delivers a profile as delivery_put() does. The destinations are those that the job has now. If
 * the job is gone, forward_to has the destinations. */
enum delivery_result scraped_put(struct scraped *s, struct profile *profile, uint64_t forward_to,
                                 int64_t now_ms);

/* Calls done as soon as no recording waits for its conversion any more, perhaps from within this
 * call. */
void scraped_when_idle(struct scraped *s, void (*done)(void *arg), void *arg);

/* Compiles the rules of another configuration. Returns NULL with an error. Any thread, but one at a
 * time. */
struct scraped_change;
struct scraped_change *scraped_prepare(struct scraped *s, const struct config *next,
                                       struct err *err);
/* Posts the rules to the scraper's loop, which uses them from then on and frees c. Any thread. */
void scraped_post(struct scraped *s, struct scraped_change *c, struct loop *loop);
/* Frees c without posting it. Accepts NULL, returns NULL. */
struct scraped_change *scraped_discard(struct scraped_change *c);

#endif
