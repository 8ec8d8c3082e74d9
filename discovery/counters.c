#include "discovery/counters.h"

#include <stddef.h>

#define VALUES_MAX 8
#define CELLS(member) offsetof(struct discovery_counters, member)

/* Cells of one family, in the order of registration. */
static const struct cells {
    struct metric_desc desc;
    size_t at; /* of the cells in struct discovery_counters */
    const char *values[VALUES_MAX + 1];
    const char *kind; /* the value of the first of two labels */
} all_cells[] = {
    {{.name = "profpull_discovery_groups",
      .help = "Sources (pods, static lists) that have targets now",
      .type = METRIC_GAUGE,
      .labels = {"kind"}},
     CELLS(groups),
     {[GROUPS_STATIC] = "static",
      [GROUPS_FILE] = "file",
      [GROUPS_HTTP] = "http",
      [GROUPS_KUBERNETES] = "kubernetes"},
     NULL},
#define REFRESHES(kind)                                                                            \
    {                                                                                              \
        {.name = "profpull_discovery_refreshes_total",                                             \
         .help = "Files and URLs with targets that were read",                                     \
         .type = METRIC_COUNTER,                                                                   \
         .labels = {"kind", "result"}},                                                            \
            CELLS(kind##_refreshes),                                                               \
            {[REFRESH_CHANGED] = "changed",                                                        \
             [REFRESH_UNCHANGED] = "unchanged",                                                    \
             [REFRESH_FAILED] = "failed"},                                                         \
            #kind                                                                                  \
    }
    REFRESHES(file),
    REFRESHES(http),
    {{.name = "profpull_discovery_events_total",
      .help = "Watch events, by what they did",
      .type = METRIC_COUNTER,
      .labels = {"event"}},
     CELLS(events),
     {[EVENT_ADDED] = "added",
      [EVENT_MODIFIED] = "modified",
      [EVENT_DELETED] = "deleted",
      [EVENT_BOOKMARK] = "bookmark",
      [EVENT_ERROR] = "error",
      [EVENT_UNKNOWN] = "unknown",
      [EVENT_UNCHANGED] = "unchanged"},
     NULL},
    {{.name = "profpull_discovery_objects_skipped_total",
      .help = "Objects from the API server that could not be used",
      .type = METRIC_COUNTER,
      .labels = {"reason"}},
     CELLS(skips),
     {[SKIP_TOO_LARGE] = "too_large",
      [SKIP_TOO_DEEP] = "too_deep",
      [SKIP_SYNTAX] = "syntax",
      [SKIP_MEMORY] = "memory",
      [SKIP_WRONG_KIND] = "wrong_kind",
      [SKIP_BAD_IP] = "bad_ip",
      [SKIP_TOO_MANY_LABELS] = "too_many_labels",
      [SKIP_TOO_MANY_OBJECTS] = "too_many_objects"},
     NULL},
    {{.name = "profpull_discovery_targets_skipped_total",
      .help = "Ports of pods that make no target",
      .type = METRIC_COUNTER,
      .labels = {"reason"}},
     CELLS(target_skips),
     {[TARGET_BAD_PORT] = "bad_port", [TARGET_TOO_MANY] = "too_many"},
     NULL},
    {{.name = "profpull_discovery_exec_plugin_runs_total",
      .help = "Runs of exec credential plugins of kubeconfigs",
      .type = METRIC_COUNTER,
      .labels = {"result"}},
     CELLS(exec_runs),
     {[EXEC_RUN_OK] = "ok", [EXEC_RUN_FAILED] = "failed", [EXEC_RUN_TIMEOUT] = "timeout"},
     NULL},
};

void discovery_counters_init(struct discovery_counters *c, struct metrics *metrics)
{
    for (size_t i = 0; i < sizeof(all_cells) / sizeof(all_cells[0]); i++) {
        const struct cells *row = &all_cells[i];
        struct metric *m = metrics_register(metrics, &row->desc);
        struct metric_cell **cells = (struct metric_cell **)(void *)((char *)c + row->at);
        for (size_t k = 0; row->values[k] != NULL; k++) {
            const char *const one[] = {row->values[k]};
            const char *const two[] = {row->kind, row->values[k]};
            cells[k] = metric_cell(m, row->kind == NULL ? one : two);
        }
    }
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
