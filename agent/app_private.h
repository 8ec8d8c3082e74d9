/* The inside of the app, which app.c and app_reload.c share. */
#ifndef PROFPULL_AGENT_APP_PRIVATE_H
#define PROFPULL_AGENT_APP_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "agent/app.h"
#include "agent/dropped.h"
#include "agent/pipeline.h"
#include "agent/scraped.h"
#include "agent/sharing/sharding.h"
#include "agent/stores.h"
#include "agent/thread.h"
#include "discovery/discovery.h"
#include "http/contents.h"

enum { THREAD_DISCOVERY, THREAD_NETWORK, THREAD_WRITER, THREADS };

struct app {
    struct config *first;  /* the configuration of the start, for what never changes: a reference */
    struct config *config; /* the one in force: a reference */
    pthread_mutex_t config_lock; /* of that pointer */
    struct log *log;
    struct intern *intern;
    struct metrics *metrics;
    struct http_contents *contents; /* of the clients of all stages */
    struct worker_pool *workers;
    unsigned n_workers;
    struct agent_thread threads[THREADS];
    struct stores *stores;
    struct writer *writer;
    struct conditions *conditions; /* of its destinations */
    struct recordings *recordings; /* makes profiles of recordings of Java */
    struct scraped *scraped;       /* where profiles of targets go; the network thread's */
    struct enrich *enrich;         /* labels of targets for the next */
    struct receive *receive;
    struct scraper *scraper;
    struct sharding *sharding; /* NULL unless targets are shared */
    struct dropped *dropped;
    struct pipeline *pipeline;
    struct discovery *discovery;
    struct sources *sources; /* what can be read of it */
    atomic_bool synced;
    int64_t drain_deadline_ms; /* set before scraper_drain() is called */
    int drained_fd;
    struct loop_timer *memory_timer; /* of the discovery thread */
    struct app_servers servers;
};

/* These count the configurations, in force or soon to be, that have a job. The metrics of the job
 * are shown while there is one. */
void app_use_jobs(struct app *app, const struct config *config);
void app_release_jobs(struct app *app, const struct config *config);

#endif
