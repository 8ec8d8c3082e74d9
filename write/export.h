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
    bool has_spool;
    struct spool_status spool;
};

/* now_ms: monotonic, for the age. */
void export_ledgers(struct metrics_out *out, const struct export_row *rows, size_t n,
                    int64_t now_ms);

#endif
