/* Divides the memory limit into shares. The division is computed once, by a pure function, so that
 * parts of the process that keep to a share need no common lock. Any thread. */
#ifndef PROFPULL_CONFIG_MEMORY_H
#define PROFPULL_CONFIG_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

/* The part of the memory of the machine or control group that the shares use, unless memory_limit
 * is set. The rest is for the program itself, buffers of the kernel and page tables, which no share
 * counts. */
#define MEMORY_PERCENT 80

/* The largest value of each share, used when memory is unlimited. */
#define MEMORY_BODIES_DEFAULT (UINT64_C(256) << 20)
#define MEMORY_BASELINES_DEFAULT (UINT64_C(256) << 20)
#define MEMORY_QUEUE_DEFAULT (UINT64_C(128) << 20)
#define MEMORY_PENDING_DEFAULT (UINT64_C(128) << 20)
#define MEMORY_WORK_DEFAULT (UINT64_C(4) << 30)
#define MEMORY_MERGING_DEFAULT (UINT64_C(256) << 20)
#define MEMORY_QUERY_DEFAULT (UINT64_C(256) << 20)
#define MEMORY_QUERY_BODIES_DEFAULT (UINT64_C(64) << 20)
#define MEMORY_RECEIVE_DEFAULT (UINT64_C(128) << 20)
#define MEMORY_RECEIVE_BODIES_DEFAULT (UINT64_C(128) << 20)

/* Memory of the requests of one of our servers. */
struct memory_server {
    /* its requests take memory, because there is a store or profiles are received */
    bool used;
    unsigned concurrency; /* requests at the same time */
    /* bytes of one request as configured, or 0, which memory_plan() replaces by the ceiling */
    uint64_t request;
    uint64_t bodies; /* the same for the bodies of all requests together */
};

struct memory_input {
    uint64_t limit;     /* 0: unlimited */
    uint64_t bodies;    /* as configured; 0: not set */
    uint64_t baselines; /* as configured; 0: not set */
    uint64_t queues;    /* sum of the configured queues */
    size_t n_queues;    /* all of them */
    size_t n_given;     /* number of configured ones */
    struct memory_server query;
    struct memory_server receive;
};

/* Divides the limit, and completes in->query and in->receive. A configured ceiling stays as it is,
 * even if it is more than its share; ret->sum is then above the limit. Every other ceiling is its
 * share, but not more than its maximum. */
void memory_plan(struct memory_input *in, struct config_memory *ret);

#endif
