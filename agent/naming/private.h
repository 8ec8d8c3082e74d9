/* The inside of naming. */
#ifndef PROFPULL_AGENT_NAMING_PRIVATE_H
#define PROFPULL_AGENT_NAMING_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "agent/naming/naming.h"
#include "base/map.h"
#include "base/worker.h"
#include "http/http.h"
#include "symbols/depot.h"
#include "symbols/failure.h"
#include "symbols/names.h"
#include "symbols/process.h"

/* An address that was asked for may be asked for again after this time, if no answer came. */
#define NAMING_ASKED_MS (60 * MS_PER_S)
/* An address without a name is asked for again after this time. */
#define NAMING_UNKNOWN_MS (10 * 60 * MS_PER_S)
/* A program without a symbol service, and a build id that no server has, are asked again after this
 * time. */
#define NAMING_ABSENT_MS (10 * 60 * MS_PER_S)
/* After a failure, the same is tried again after this time. */
#define NAMING_FAILED_MS (60 * MS_PER_S)
/* The most questions that wait or are under way, and the most addresses in all of them. */
#define NAMING_ASKS_MAX 1024
#define NAMING_ADDRESSES_MAX 1000000
/* The most programs that are asked at the same time. */
#define NAMING_SERVICES_MAX 16

/* Where a name comes from: label of metrics. */
enum naming_origin { ORIGIN_SERVICE, ORIGIN_DEBUG, ORIGIN_SAVED, ORIGINS };
/* Ends of a question: label of metrics. */
enum naming_end { END_OK, END_ABSENT, END_FAILED, ENDS };

/* A mapping of a question. */
struct ask_binary {
    struct symbol_table *service; /* references; NULL: not asked */
    struct symbol_table *debug;
    bool debug_first; /* the service has named nothing so far, and is looked up last */
    char build_id[SYMBOL_BUILD_ID_MAX + 1]; /* "": none */
    uint64_t start;
    uint64_t limit;
    uint64_t offset;
};

struct ask_address {
    uint64_t address;
    uint64_t place; /* in the file */
    uint32_t binary;
    bool done; /* it has a name */
};

/* A question about addresses of one profile. */
struct ask {
    struct loop_task task; /* first */
    TAILQ_ENTRY(ask) link; /* while it waits for its turn */
    struct naming *naming;
    struct target *target;          /* a reference, or NULL */
    const struct config *owner;     /* a reference, or NULL */
    struct symbols_sources sources; /* its strings belong to the configuration of target or owner */
    size_t entry;
    struct ask_binary *binaries;
    size_t n_binaries;
    struct ask_address *addresses; /* sorted by address once a program is asked */
    size_t n_addresses;
    /* of the service: */
    char *url;
    struct buf body;
    struct http_part part;
    size_t asked; /* addresses of the requests so far */
    size_t asking;
    struct http_transfer *transfer; /* NULL: none */
    TAILQ_ENTRY(ask) flight;        /* while a transfer may run */
};
TAILQ_HEAD(ask_line, ask);

/* A question about one file: see debug.c. */
struct debug_job;
TAILQ_HEAD(debug_line, debug_job);

struct naming {
    struct naming_options options;
    uint64_t seed;
    struct symbol_names *names;
    struct symbol_processes *processes;
    struct http_client *client;
    struct scratch_pool *scratches;
    /* By series, how many more profiles are not looked at: see naming_wants(). */
    _Atomic uint32_t *skips;
    atomic_size_t asks; /* that wait or are under way */
    atomic_size_t addresses;
    /* The rest belongs to the loop. */
    struct ask_line waiting;
    struct ask_line flying;
    size_t n_flying;
    struct map *services; /* URL -> struct service */
    struct map *absent;   /* build id and sources -> struct absent */
    struct debug_line jobs;
    struct debug_job *job; /* under way */
    struct worker_pool *files;
    struct symbol_depot *depot; /* NULL: no cache on disk; used by `files` only, and to finish */
    bool closing;
    struct log_limit limit;
    struct metric_cell *profiles[3]; /* named, partly named, not */
    struct metric_cell *stored[3];   /* the same of profiles that queries read */
    struct metric_cell *locations[2];
    struct metric_cell *found[ORIGINS];
    struct metric_cell *services_cells[ENDS];
    struct metric_cell *downloads[ENDS];
    struct metric_cell *files_cells[ENDS];
    struct metric_cell *failures[SYMBOLS_FAILURES]; /* by enum symbols_failure; the first is NULL */
    struct metric_cell *opened;                     /* these three are set by the thread of files */
    struct metric_cell *partial;
    struct metric_cell *readers;
    struct metric_cell *refused;
    struct metric_cell *bytes_cell;
    struct metric_cell *asks_cell;
    struct metric_cell *disk_cell;
};

/* Takes over a question, which the loop answers. Any thread. */
void naming_ask(struct naming *n, struct ask *ask);
/* Frees a question. */
void naming_ask_free(struct ask *ask);
/* Continues with debug information: makes jobs of the addresses that have no name yet, and frees
 * the question. On the loop. */
void naming_ask_debug(struct naming *n, struct ask *ask);
/* Ends the jobs that wait; the running one ends with the thread of files. */
void naming_debug_close(struct naming *n);
void naming_service_close(struct naming *n);
/* Logs a failure, at a limited rate. On the loop. */
void naming_log(struct naming *n, const char *what, const char *where, const char *reason);

#endif
