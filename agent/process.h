/* Metrics of the process, named as in Prometheus' client libraries, and its limits. */
#ifndef PROFPULL_AGENT_PROCESS_H
#define PROFPULL_AGENT_PROCESS_H

#include "base/log.h"
#include "base/metrics.h"

/* Registers process_cpu_seconds_total, process_resident_memory_bytes, process_open_fds,
 * process_max_fds, process_start_time_seconds and profpull_build_info. */
bool process_metrics(struct metrics *metrics);

/* Raises the soft limit of open files to the hard limit, and returns it. */
unsigned process_raise_fd_limit(struct log *log);

#endif
