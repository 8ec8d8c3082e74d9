#include "agent/process.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define FDS_MAX 1000000

static double cpu_seconds(void)
{
    struct timespec ts = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Returns the resident memory in bytes: the second field of /proc/self/statm is its number of
 * pages. */
static double resident_bytes(void)
{
    char text[128];
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL) {
        return 0;
    }
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = '\0';
    char *second;
    strtoul(text, &second, 10);
    return (double)strtoul(second, NULL, 10) * (double)sysconf(_SC_PAGESIZE);
}

static double open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    if (dir == NULL) {
        return 0;
    }
    double n = 0;
    while (readdir(dir) != NULL) {
        n++;
    }
    closedir(dir);
    return n - 3; /* ".", ".." and the directory itself */
}

static double max_fds(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (double)limit.rlim_cur : 0;
}

static void put(struct metrics_out *o, const char *name, const char *help, enum metric_type type,
                double value)
{
    metrics_out_family(o, name, help, type);
    metrics_out_sample(o, NULL, 0, value);
}

static void process_collect(struct metrics_out *o, void *arg)
{
    (void)arg;
    put(o, "process_cpu_seconds_total", "CPU time spent, user and system.", METRIC_COUNTER,
        cpu_seconds());
    put(o, "process_resident_memory_bytes", "Resident memory.", METRIC_GAUGE, resident_bytes());
    put(o, "process_open_fds", "Open file descriptors.", METRIC_GAUGE, open_fds());
    put(o, "process_max_fds", "Limit of open file descriptors.", METRIC_GAUGE, max_fds());
    static const char *const version[][2] = {{"version", PROFPULL_VERSION}};
    metrics_out_family(o, "profpull_build_info", "Always 1; the label says which build this is.",
                       METRIC_GAUGE);
    metrics_out_sample(o, version, 1, 1);
}

bool process_metrics(struct metrics *metrics)
{
    metric_set(metrics_single(metrics, METRIC_GAUGE, "process_start_time_seconds",
                              "When the process started, in seconds since 1970."),
               clock_wall_ns() / NS_PER_S);
    return metrics_collector(metrics, process_collect, NULL);
}

unsigned process_raise_fd_limit(struct log *log)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 1024;
    }
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        log_warn(log, "cannot raise the limit of open files, ignoring",
                 LOG_INT("limit", limit.rlim_cur));
        getrlimit(RLIMIT_NOFILE, &limit);
    }
    return limit.rlim_cur > FDS_MAX ? FDS_MAX : (unsigned)limit.rlim_cur;
}
