/* The memory of the process: reports the shares of its limit as metrics and in the log, and makes
 * the allocator return free memory to the system.
 */
#ifndef PROFPULL_AGENT_MEMORY_H
#define PROFPULL_AGENT_MEMORY_H

#include "base/log.h"
#include "base/metrics.h"
#include "config/config.h"

/* Configures the allocator. Call it before the first thread starts. */
void memory_tune_allocator(void);

/* Gives back the pages of the text and constants of the program and its libraries: most are needed
 * only while it starts. Pages that are needed again come from the kernel's cache of the file. Any
 * thread, at any time; a debugger's breakpoints that are set already may be lost. */
void memory_release_text(void);

/* The interval at which memory_release_free() should be called. */
#define MEMORY_CHECK_MS INT64_C(15000)
/* Gives free memory back to the system if there is much of it, as after a peak, or where profiles
 * come and go between blocks that stay: small blocks that are free between used ones stay resident
 * otherwise. Other threads that allocate meanwhile wait, some 0.1 ms for each MiB. Any thread. */
void memory_release_free(void);

/* Registers profpull_memory_limit_bytes and profpull_memory_share_bytes, and logs the shares: a
 * warning if they come to more than the limit. log and metrics may be NULL. */
void memory_report(const struct config_memory *m, struct log *log, struct metrics *metrics);

#endif
