/* The built-in profile types. Keys, names, paths and defaults are those of Grafana Alloy's
 * pyroscope.scrape; heap and threadcreate are ours. */
#include "config/config.h"

static const struct config_value_type heap_values[] = {{"alloc_objects", "count"},
                                                       {"alloc_space", "bytes"},
                                                       {"inuse_objects", "count"},
                                                       {"inuse_space", "bytes"},
                                                       {NULL, NULL}};
static const struct config_value_type contention_values[] = {
    {"contentions", "count"}, {"delay", "nanoseconds"}, {NULL, NULL}};
static const struct config_value_type cpu_values[] = {
    {"samples", "count"}, {"cpu", "nanoseconds"}, {NULL, NULL}};
static const struct config_value_type fgprof_values[] = {
    {"samples", "count"}, {"time", "nanoseconds"}, {NULL, NULL}};
static const struct config_value_type goroutine_values[] = {{"goroutine", "count"}, {NULL, NULL}};
static const struct config_value_type thread_values[] = {{"threadcreate", "count"}, {NULL, NULL}};

static const struct config_builtin_type types[CONFIG_BUILTIN_TYPES] = {
    {.type = {.key = "memory",
              .name = "memory",
              .path = "/debug/pprof/allocs",
              .enabled = true,
              .cumulative = true,
              .delta = DELTA_AUTO},
     .annotation = "memory",
     .profefe = "heap",
     .values = heap_values},
    {.type = {.key = "block",
              .name = "block",
              .path = "/debug/pprof/block",
              .enabled = true,
              .cumulative = true,
              .delta = DELTA_AUTO},
     .annotation = "block",
     .profefe = "block",
     .values = contention_values},
    {.type = {.key = "goroutine",
              .name = "goroutine",
              .path = "/debug/pprof/goroutine",
              .enabled = true},
     .annotation = "goroutine",
     .profefe = "goroutine",
     .values = goroutine_values},
    {.type = {.key = "mutex",
              .name = "mutex",
              .path = "/debug/pprof/mutex",
              .enabled = true,
              .cumulative = true,
              .delta = DELTA_AUTO},
     .annotation = "mutex",
     .profefe = "mutex",
     .values = contention_values},
    {.type = {.key = "process_cpu",
              .name = "process_cpu",
              .path = "/debug/pprof/profile",
              .enabled = true,
              .sampling = true},
     .annotation = "cpu",
     .profefe = "cpu",
     .values = cpu_values},
    {.type = {.key = "fgprof", .name = "fgprof", .path = "/debug/fgprof", .sampling = true},
     .annotation = "fgprof",
     .values = fgprof_values},
    {.type = {.key = "godeltaprof_memory",
              .name = "memory",
              .path = "/debug/pprof/delta_heap",
              .is_delta = true},
     .annotation = "godeltaprof_memory",
     .profefe = "heap",
     .values = heap_values},
    {.type = {.key = "godeltaprof_mutex",
              .name = "mutex",
              .path = "/debug/pprof/delta_mutex",
              .is_delta = true},
     .annotation = "godeltaprof_mutex",
     .profefe = "mutex",
     .values = contention_values},
    {.type = {.key = "godeltaprof_block",
              .name = "block",
              .path = "/debug/pprof/delta_block",
              .is_delta = true},
     .annotation = "godeltaprof_block",
     .profefe = "block",
     .values = contention_values},
    {.type = {.key = "heap",
              .name = "memory",
              .path = "/debug/pprof/heap",
              .cumulative = true,
              .delta = DELTA_AUTO},
     .annotation = "heap",
     .profefe = "heap",
     .values = heap_values},
    /* A snapshot despite its path: Go lists the threads that exist, by where they were created, and
     * removes those that end. */
    {.type = {.key = "threadcreate", .name = "threadcreate", .path = "/debug/pprof/threadcreate"},
     .annotation = "threadcreate",
     .profefe = "threadcreate",
     .values = thread_values},
};

const struct config_builtin_type *config_builtin_type(size_t i)
{
    return i < CONFIG_BUILTIN_TYPES ? &types[i] : NULL;
}

const struct config_builtin_type *config_builtin_type_find(struct sv key)
{
    for (size_t i = 0; i < CONFIG_BUILTIN_TYPES; i++) {
        if (sv_eq_str(key, types[i].type.key)) {
            return &types[i];
        }
    }
    return NULL;
}
