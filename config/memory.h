/* One budget of memory, and the shares of it: a pure function, computed once, so that the parts of
 * the process that keep to a share need no lock in common. Any thread.
 */
#ifndef PROFPULL_CONFIG_MEMORY_H
#define PROFPULL_CONFIG_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

/* The part of the memory of the machine or control group that is used, unless memory_limit says
 * otherwise. The rest is for the program itself, buffers of the kernel and page tables, which are
 * not counted here. */
#define MEMORY_PERCENT 80

/* The largest shares, which unlimited memory gives. */
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

/* The requests of a server of ours. */
struct memory_server {
    bool used;            /* its requests take memory: there is a store, or profiles are received */
    unsigned concurrency; /* requests at the same time */
    uint64_t request;     /* of each: as given, 0 if not; memory_plan() sets the ceiling */
    uint64_t bodies;      /* of all their bodies: the same */
};

struct memory_input {
    uint64_t limit;     /* 0: unlimited */
    uint64_t bodies;    /* as given; 0: not */
    uint64_t baselines; /* as given; 0: not */
    uint64_t queues;    /* the sum of those that are given */
    size_t n_queues;    /* all of them */
    size_t n_given;     /* those that are given */
    struct memory_server query;
    struct memory_server receive;
};

/* Shares the limit out, and completes in->query and in->receive. A ceiling that is given stays as
 * it is, even if it is more than its share: ret->sum is over the limit then. Every other ceiling is
 * its share, and at most its default. */
void memory_plan(struct memory_input *in, struct config_memory *ret);

#endif
