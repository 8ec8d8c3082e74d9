/* Limits on the memory and CPUs of this process: those of its control group and of all groups above
 * it (cgroup v2, v1, and both side by side), its affinity, and the memory of the machine.
 *
 * Each call reads files of /proc and /sys; there is no state. Any thread. `root` is put in front of
 * the paths: "" for the real files, a directory for tests.
 */
#ifndef PROFPULL_BASE_CGROUP_H
#define PROFPULL_BASE_CGROUP_H

#include <stdint.h>

/* In bytes: the smallest of memory.max and memory.high (v2) or memory.limit_in_bytes (v1) of the
 * group and those above it, and of the machine's memory. UINT64_MAX if nothing can be read. */
uint64_t cgroup_memory(const char *root);
/* At least 1: the CPUs that the process may run on (cpuset, affinity), or fewer if a quota
 * (cpu.max, cpu.cfs_quota_us) of the group or one above it leaves it less time than that; rounded
 * up. */
unsigned cgroup_cpus(const char *root);

#endif
