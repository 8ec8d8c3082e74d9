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

/* Makes a row. The last argument lists the members in which the type differs from a disabled
 * snapshot. */
#define TYPE(key_, name_, path_, annotation_, profefe_, values_, ...)                              \
    {                                                                                              \
        .type = {.key = (key_), .name = (name_), .path = "/debug/" path_, __VA_ARGS__},            \
        .annotation = (annotation_), .profefe = (profefe_), .values = (values_)                    \
    }
#define COUNTER .cumulative = true, .delta = DELTA_AUTO

static const struct config_builtin_type types[CONFIG_BUILTIN_TYPES] = {
    TYPE("memory", "memory", "pprof/allocs", "memory", "heap", heap_values, .enabled = true,
         COUNTER),
    TYPE("block", "block", "pprof/block", "block", "block", contention_values, .enabled = true,
         COUNTER),
    TYPE("goroutine", "goroutine", "pprof/goroutine", "goroutine", "goroutine", goroutine_values,
         .enabled = true),
    TYPE("mutex", "mutex", "pprof/mutex", "mutex", "mutex", contention_values, .enabled = true,
         COUNTER),
    TYPE("process_cpu", "process_cpu", "pprof/profile", "cpu", "cpu", cpu_values, .enabled = true,
         .sampling = true),
    TYPE("fgprof", "fgprof", "fgprof", "fgprof", NULL, fgprof_values, .sampling = true),
    TYPE("godeltaprof_memory", "memory", "pprof/delta_heap", "godeltaprof_memory", "heap",
         heap_values, .is_delta = true),
    TYPE("godeltaprof_mutex", "mutex", "pprof/delta_mutex", "godeltaprof_mutex", "mutex",
         contention_values, .is_delta = true),
    TYPE("godeltaprof_block", "block", "pprof/delta_block", "godeltaprof_block", "block",
         contention_values, .is_delta = true),
    TYPE("heap", "memory", "pprof/heap", "heap", "heap", heap_values, COUNTER),
    /* A snapshot, unlike block and mutex: Go lists the threads that exist now, by the place where
     * they were created. */
    TYPE("threadcreate", "threadcreate", "pprof/threadcreate", "threadcreate", "threadcreate",
         thread_values, .delta = DELTA_OFF),
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

static const struct config_type_name type_names[] = {
    {"cpu", "process_cpu", "process_cpu:cpu:nanoseconds", "cpu"},
    {"process_cpu", "process_cpu", "process_cpu:cpu:nanoseconds", "cpu"},
    {"heap", "heap", "memory:inuse_space:bytes", "inuse_space"},
    {"inuse", "heap", "memory:inuse_space:bytes", "inuse_space"},
    {"memory", "memory", "memory:inuse_space:bytes", "inuse_space"},
    {"alloc", "memory", "memory:alloc_space:bytes", "alloc_space"},
    {"allocs", "memory", "memory:alloc_space:bytes", "alloc_space"},
    {"objects", "heap", "memory:inuse_objects:count", "inuse_objects"},
    {"goroutine", "goroutine", "goroutine:goroutine:count", "goroutines"},
    {"goroutines", "goroutine", "goroutine:goroutine:count", "goroutines"},
    {"mutex", "mutex", "mutex:delay:nanoseconds", "mutex_duration"},
    {"block", "block", "block:delay:nanoseconds", "block_duration"},
    {"fgprof", "fgprof", "fgprof:time:nanoseconds", "fgprof"},
    {"threads", "threadcreate", "threadcreate:threadcreate:count", "threadcreate"},
    {"threadcreate", "threadcreate", "threadcreate:threadcreate:count", "threadcreate"},
};

const struct config_type_name *config_type_name(size_t i)
{
    return i < sizeof(type_names) / sizeof(type_names[0]) ? &type_names[i] : NULL;
}

const struct config_type_name *config_type_name_find(struct sv name)
{
    size_t i = 0;
    while (config_type_name(i) != NULL && !sv_eq_str(name, type_names[i].name)) {
        i++;
    }
    return config_type_name(i);
}

struct sv config_type_name_sample(const struct config_type_name *row)
{
    struct sv name;
    struct sv rest;
    struct sv sample;
    struct sv unit;
    (void)sv_cut(sv_from(row->query), ':', &name, &rest);
    (void)sv_cut(rest, ':', &sample, &unit);
    return sample;
}
