/* Limits on the memory and CPUs of this process: the limits of its control group and of all groups
 * above it (cgroup v2, v1, and both side by side), its affinity, and the memory of the machine.
 *
 * Each call reads files of /proc and /sys, and keeps no state. Any thread may call these functions.
 * `root` is put in front of the paths: "" for the real files, a directory for tests.
 */
#ifndef PROFPULL_BASE_CGROUP_H
#define PROFPULL_BASE_CGROUP_H

#include <stdint.h>

/* Returns the memory limit in bytes: the smallest value of memory.max and memory.high (v2) or
 * memory.limit_in_bytes (v1) of the group and the groups above it, and of the machine's memory.
 * Returns UINT64_MAX if none of them can be read. */
uint64_t cgroup_memory(const char *root);
/* Returns the number of CPUs, at least 1: those that the process may run on (cpuset, affinity), or
 * fewer if a quota (cpu.max, cpu.cfs_quota_us) of the group or of a group above it allows less CPU
 * time. A fraction is rounded up. */
unsigned cgroup_cpus(const char *root);

#endif
