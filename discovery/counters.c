#include "discovery/counters.h"

#include <stddef.h>

static struct metric_cell *cell(struct metric *m, const char *value)
{
    return metric_cell(m, (const char *const[]){value});
}

static void cells(struct metric_cell **out, struct metric *m, const char *const *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = cell(m, values[i]);
    }
}

static void init_refreshes(struct discovery_counters *c, struct metrics *metrics)
{
    struct metric *m = metrics_register(
        metrics, &(struct metric_desc){.name = "profpull_discovery_refreshes_total",
                                       .help = "Files and URLs with targets that were read",
                                       .type = METRIC_COUNTER,
                                       .labels = {"kind", "result"}});
    static const char *const results[REFRESH_COUNT] = {
        [REFRESH_CHANGED] = "changed",
        [REFRESH_UNCHANGED] = "unchanged",
        [REFRESH_FAILED] = "failed",
    };
    for (size_t i = 0; i < REFRESH_COUNT; i++) {
        c->file_refreshes[i] = metric_cell(m, (const char *const[]){"file", results[i]});
        c->http_refreshes[i] = metric_cell(m, (const char *const[]){"http", results[i]});
    }
}

static void init_exec_runs(struct discovery_counters *c, struct metrics *metrics)
{
    static const char *const results[EXEC_RUN_COUNT] = {
        [EXEC_RUN_OK] = "ok",
        [EXEC_RUN_FAILED] = "failed",
        [EXEC_RUN_TIMEOUT] = "timeout",
    };
    struct metric *m = metrics_register(
        metrics, &(struct metric_desc){.name = "profpull_discovery_exec_plugin_runs_total",
                                       .help = "Runs of exec credential plugins of kubeconfigs",
                                       .type = METRIC_COUNTER,
                                       .labels = {"result"}});
    cells(c->exec_runs, m, results, EXEC_RUN_COUNT);
}

void discovery_counters_init(struct discovery_counters *c, struct metrics *metrics)
{
    static const char *const events[EVENT_COUNT] = {
        [EVENT_ADDED] = "added",         [EVENT_MODIFIED] = "modified", [EVENT_DELETED] = "deleted",
        [EVENT_BOOKMARK] = "bookmark",   [EVENT_ERROR] = "error",       [EVENT_UNKNOWN] = "unknown",
        [EVENT_UNCHANGED] = "unchanged",
    };
    static const char *const skips[SKIP_COUNT] = {
        [SKIP_TOO_LARGE] = "too_large",
        [SKIP_TOO_DEEP] = "too_deep",
        [SKIP_SYNTAX] = "syntax",
        [SKIP_MEMORY] = "memory",
        [SKIP_WRONG_KIND] = "wrong_kind",
        [SKIP_BAD_IP] = "bad_ip",
        [SKIP_TOO_MANY_LABELS] = "too_many_labels",
        [SKIP_TOO_MANY_OBJECTS] = "too_many_objects",
    };
    static const char *const group_kinds[GROUP_COUNT] = {
        [GROUP_STATIC] = "static",
        [GROUP_FILE] = "file",
        [GROUP_HTTP] = "http",
        [GROUP_KUBERNETES] = "kubernetes",
    };
    static const char *const target_skips[TARGET_SKIP_COUNT] = {
        [TARGET_BAD_PORT] = "bad_port",
        [TARGET_TOO_MANY] = "too_many",
    };
    struct metric *groups = metrics_register(
        metrics, &(struct metric_desc){.name = "profpull_discovery_groups",
                                       .help = "Sources (pods, static lists) that have targets now",
                                       .type = METRIC_GAUGE,
                                       .labels = {"kind"}});
    cells(c->groups, groups, group_kinds, GROUP_COUNT);
    init_refreshes(c, metrics);
    struct metric *m =
        metrics_register(metrics, &(struct metric_desc){.name = "profpull_discovery_events_total",
                                                        .help = "Watch events, by what they did",
                                                        .type = METRIC_COUNTER,
                                                        .labels = {"event"}});
    cells(c->events, m, events, EVENT_COUNT);
    m = metrics_register(
        metrics, &(struct metric_desc){.name = "profpull_discovery_objects_skipped_total",
                                       .help = "Objects from the API server that could not be used",
                                       .type = METRIC_COUNTER,
                                       .labels = {"reason"}});
    cells(c->skips, m, skips, SKIP_COUNT);
    m = metrics_register(metrics,
                         &(struct metric_desc){.name = "profpull_discovery_targets_skipped_total",
                                               .help = "Ports of pods that make no target",
                                               .type = METRIC_COUNTER,
                                               .labels = {"reason"}});
    cells(c->target_skips, m, target_skips, TARGET_SKIP_COUNT);
    init_exec_runs(c, metrics);
    c->requests = metrics_register(
        metrics, &(struct metric_desc){.name = "profpull_discovery_requests_total",
                                       .help = "Requests to the API server that have ended",
                                       .type = METRIC_COUNTER,
                                       .labels = {"verb", "result"}});
    c->relists = metrics_register(
        metrics, &(struct metric_desc){.name = "profpull_discovery_relists_total",
                                       .help = "Lists that were made again, by reason",
                                       .type = METRIC_COUNTER,
                                       .labels = {"reason"}});
}
