#include "config/memory.h"

/* Set aside from the limit for threads, libcurl's buffers of each connection, targets with their
 * labels and the state of their scrapes (35 KiB a target with five types), and fragments of the
 * allocator. */
#define OVERHEAD_FIXED (UINT64_C(16) << 20)
#define OVERHEAD_PERCENT 10
/* The parts of the remaining memory, in percent, for the requests of each server that is used. */
#define QUERIES_PERCENT 20
#define RECEIVED_PERCENT 20
/* The percentage of a server's part that is for request bodies. */
#define REQUEST_BODIES_PERCENT 25
/* The part of the limit that the requests of a server without a share may take. Such a server only
 * has pages about the agent itself, which need little. */
#define UNUSED_PART 8
/* The parts of the rest, in percent; together 100. */
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

/* Completes the ceilings of a server from its part of the memory. Returns their sum. */
static uint64_t plan_server(struct memory_server *s, uint64_t part, uint64_t request_most,
                            uint64_t bodies_most)
{
    uint64_t n = s->concurrency == 0 ? 1 : s->concurrency;
    uint64_t each = share(part, 100 - REQUEST_BODIES_PERCENT, UINT64_MAX) / n;
    s->request = given_or(s->request, each < request_most ? each : request_most);
    s->bodies = given_or(s->bodies, share(part, REQUEST_BODIES_PERCENT, bodies_most));
    return s->used ? n * s->request + s->bodies : 0;
}

/* Plans both servers. Returns the memory that is left for everything else. */
static uint64_t plan_servers(struct memory_input *in, uint64_t left, struct config_memory *ret)
{
    uint64_t queries = in->query.used ? percent(left, QUERIES_PERCENT) : left / UNUSED_PART;
    uint64_t received = in->receive.used ? percent(left, RECEIVED_PERCENT) : left / UNUSED_PART;
    ret->queries =
        plan_server(&in->query, queries, MEMORY_QUERY_DEFAULT, MEMORY_QUERY_BODIES_DEFAULT);
    ret->received =
        plan_server(&in->receive, received, MEMORY_RECEIVE_DEFAULT, MEMORY_RECEIVE_BODIES_DEFAULT);
    left -= ret->queries < queries ? ret->queries : queries * in->query.used;
    left -= ret->received < received ? ret->received : received * in->receive.used;
    return left;
}

void memory_plan(struct memory_input *in, struct config_memory *ret)
{
    bool limited = in->limit != 0;
    uint64_t overhead = OVERHEAD_FIXED + percent(in->limit, OVERHEAD_PERCENT);
    /* A limit that is hardly more than the program itself still leaves something to share. */
    overhead = !limited ? 0 : overhead < in->limit / 4 * 3 ? overhead : in->limit / 4 * 3;
    uint64_t left = !limited ? UINT64_MAX : in->limit - overhead;
    size_t n_shared = in->n_queues - in->n_given;
    struct config_memory servers = {.queries = 0};
    left = plan_servers(in, left, &servers);
    uint64_t queues = percent(left, QUEUES_PERCENT);
    *ret = (struct config_memory){
        .limit = in->limit,
        .overhead = overhead,
        .queries = servers.queries,
        .received = servers.received,
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
               ret->merging + ret->queues + ret->queries + ret->received;
}
