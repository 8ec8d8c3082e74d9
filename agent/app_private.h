/* The inside of the app, which app.c and app_reload.c share. */
#ifndef PROFPULL_AGENT_APP_PRIVATE_H
#define PROFPULL_AGENT_APP_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "agent/app.h"
#include "agent/dropped.h"
#include "agent/naming/naming.h"
#include "agent/peering.h"
#include "agent/pipeline.h"
#include "agent/scraped.h"
#include "agent/sharing/sharding.h"
#include "agent/stores.h"
#include "agent/thread.h"
#include "discovery/discovery.h"
#include "http/contents.h"
#include "store/peering/peering.h"
#include "store/store.h"

enum { THREAD_DISCOVERY, THREAD_NETWORK, THREAD_WRITER, THREAD_SYMBOLS, THREADS };

struct app {
    /* A reference: the configuration of the start, for settings that never change. */
    struct config *first;
    struct config *config;       /* a reference: the configuration in force */
    pthread_mutex_t config_lock; /* guards `config` */
    struct log *log;
    struct intern *intern;
    struct metrics *metrics;
    struct http_contents *contents; /* shared by the HTTP clients of all stages */
    struct worker_pool *workers;
    unsigned n_workers;
    struct agent_thread threads[THREADS];
    struct stores *stores;
    struct peering *peering;        /* other processes, which queries ask */
    struct store_names store_names; /* adds names to profiles that queries read */
    struct writer *writer;
    struct conditions *conditions; /* the conditions of the writer's destinations */
    struct symbols_helper *helper; /* of the caller; NULL: no debug information is read */
    struct naming *naming;         /* adds names to addresses */
    struct record *record;         /* recorded metrics */
    struct recordings *recordings; /* turns recordings of Java into profiles */
    struct scraped *scraped; /* passes the profiles of targets on; belongs to the network thread */
    struct enrich *enrich;   /* adds labels of targets to pushed profiles, for `receive` */
    struct receive *receive;
    struct scraper *scraper;
    struct sharding *sharding; /* NULL unless targets are shared */
    struct dropped *dropped;
    struct pipeline *pipeline;
    struct discovery *discovery;
    struct sources *sources; /* the state of discovery's sources that other threads may read */
    atomic_bool synced;
    int64_t drain_deadline_ms; /* set before scraper_drain() is called */
    int drained_fd;
    struct loop_timer *memory_timer; /* runs on the discovery thread */
    struct app_servers servers;
};

/* For each job, these count the configurations that have it, in force or soon to be. The metrics of
 * a job are shown while there is such a configuration. */
void app_use_jobs(struct app *app, const struct config *config);
void app_release_jobs(struct app *app, const struct config *config);

#endif
