/* One budget of memory, and the shares of it: a pure function, computed once, so that no lock is
 * shared between those who keep to a share. Any thread.
 */
#ifndef PROFPULL_CONFIG_MEMORY_H
#define PROFPULL_CONFIG_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

/* Percent of the available memory that is the limit, unless the file sets memory_limit. The rest is
 * for memory that is not counted here: the program itself, buffers of the kernel, page tables. */
#define MEMORY_PERCENT 80

/* A share of unlimited memory. */
#define MEMORY_BODIES_DEFAULT (UINT64_C(256) << 20)
#define MEMORY_BASELINES_DEFAULT (UINT64_C(256) << 20)
#define MEMORY_QUEUE_DEFAULT (UINT64_C(128) << 20)
#define MEMORY_PENDING_DEFAULT (UINT64_C(128) << 20)
#define MEMORY_WORK_DEFAULT (UINT64_C(4) << 30)
#define MEMORY_MERGING_DEFAULT (UINT64_C(256) << 20)

struct memory_input {
    uint64_t limit;     /* 0: unlimited */
    uint64_t bodies;    /* as given; 0: not */
    uint64_t baselines; /* as given; 0: not */
    uint64_t queues;    /* the sum of those that are given */
    size_t n_queues;    /* all of them */
    size_t n_given;     /* those that are given */
};

/* Computes all ceilings. A ceiling that the file sets stays as it is, even above its share (the sum
 * is above the limit then). Every other ceiling is its share, and at most its default. */
void memory_plan(const struct memory_input *in, struct config_memory *ret);

#endif
