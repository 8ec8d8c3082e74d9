/* The ledgers of all endpoints as metrics, each from one consistent snapshot. Any thread. */
#ifndef PROFPULL_WRITE_EXPORT_H
#define PROFPULL_WRITE_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/metrics.h"
#include "write/queue/send_queue.h"
#include "write/spool/spool.h"

struct export_row {
    const char *endpoint;
    uint64_t limit_bytes;
    struct send_queue_status status;
    uint64_t up;      /* 0 or 1 */
    uint64_t breaker; /* 0 closed, 1 half open (a probe is in flight), 2 open */
    uint64_t tenants;
    uint64_t resting; /* those of `tenants` that rest */
    uint64_t age_ms;  /* the age of the oldest queued profile */
    uint64_t hung_ms; /* for how long a disk has not answered; 0: none hangs */
    bool has_spool;   /* only then do the next members count */
    uint64_t spool_up;
    uint64_t spool_needs_restart;
    uint64_t spool_reading;
    uint64_t spool_full;
    struct spool_status spool;
};

void export_ledgers(struct metrics_out *out, const struct export_row *rows, size_t n);

#endif
