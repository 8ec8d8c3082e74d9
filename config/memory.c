#include "config/memory.h"

#include <stdbool.h>

/* The part of the limit that has no ceiling of its own: threads, libcurl's buffers for each
 * connection, targets with their labels and the state of their scrapes (35 KiB a target with five
 * types), fragments of the allocator. */
#define OVERHEAD_FIXED (UINT64_C(16) << 20)
#define OVERHEAD_PERCENT 10
/* Shares of the rest; together 100. */
#define BODIES_PERCENT 14
#define PENDING_PERCENT 12
#define WORK_PERCENT 19
#define BASELINES_PERCENT 33
#define MERGING_PERCENT 6
#define QUEUES_PERCENT 16

static uint64_t percent(uint64_t n, unsigned p)
{
    return n / 100 * p;
}

static uint64_t share(uint64_t left, unsigned p, uint64_t most)
{
    uint64_t n = percent(left, p);
    return n < most ? n : most;
}

static uint64_t given_or(uint64_t given, uint64_t otherwise)
{
    return given != 0 ? given : otherwise;
}

void memory_plan(const struct memory_input *in, struct config_memory *ret)
{
    bool limited = in->limit != 0;
    uint64_t overhead = OVERHEAD_FIXED + percent(in->limit, OVERHEAD_PERCENT);
    /* A limit that is hardly more than the program itself still leaves something to share. */
    overhead = !limited ? 0 : overhead < in->limit / 4 * 3 ? overhead : in->limit / 4 * 3;
    uint64_t left = !limited ? UINT64_MAX : in->limit - overhead;
    size_t n_shared = in->n_queues - in->n_given;
    uint64_t queues = percent(left, QUEUES_PERCENT);
    *ret = (struct config_memory){
        .limit = in->limit,
        .overhead = overhead,
        .bodies = given_or(in->bodies, share(left, BODIES_PERCENT, MEMORY_BODIES_DEFAULT)),
        .baselines =
            given_or(in->baselines, share(left, BASELINES_PERCENT, MEMORY_BASELINES_DEFAULT)),
        .pending = share(left, PENDING_PERCENT, MEMORY_PENDING_DEFAULT),
        .merging = share(left, MERGING_PERCENT, MEMORY_MERGING_DEFAULT),
        .work = share(left, WORK_PERCENT, MEMORY_WORK_DEFAULT),
        .queue = share(queues / (in->n_queues == 0 ? 1 : in->n_queues), 100, MEMORY_QUEUE_DEFAULT),
    };
    ret->queues = in->queues + n_shared * ret->queue;
    ret->sum = ret->overhead + ret->bodies + ret->pending + ret->work + ret->baselines +
               ret->merging + ret->queues;
}
