#include "discovery/counters.h"

#include <stddef.h>

#define VALUES_MAX 8

/* Cells of one family, in the order of registration. */
static const struct cells {
    struct metric_desc desc;
    size_t at; /* offset of the cells in struct discovery_counters */
    const char *values[VALUES_MAX + 1];
    const char *kind; /* the value of the first of two labels */
} all_cells[] = {
#define ROW(member, metric, text, sort, label, ...)                                                \
    {                                                                                              \
        {.name = (metric), .help = (text), .type = (sort), .labels = {label}},                     \
            offsetof(struct discovery_counters, member), {__VA_ARGS__}, NULL                       \
    }
#define REFRESHES(member, kind)                                                                    \
    {                                                                                              \
        {.name = "profpull_discovery_refreshes_total",                                             \
         .help = "Files and URLs with targets that were read",                                     \
         .type = METRIC_COUNTER,                                                                   \
         .labels = {"kind", "result"}},                                                            \
            offsetof(struct discovery_counters, member),                                           \
            {[REFRESH_CHANGED] = "changed",                                                        \
             [REFRESH_UNCHANGED] = "unchanged",                                                    \
             [REFRESH_FAILED] = "failed"},                                                         \
            kind                                                                                   \
    }
    ROW(groups, "profpull_discovery_groups", "Sources (pods, static lists) that have targets now",
        METRIC_GAUGE, "kind", [GROUPS_STATIC] = "static", [GROUPS_FILE] = "file",
        [GROUPS_HTTP] = "http", [GROUPS_KUBERNETES] = "kubernetes"),
    ROW(unread, "profpull_discovery_unread_lists",
        "Lists of a resource in a namespace or the cluster that have not been read since the start",
        METRIC_GAUGE, "reason", [UNREAD_PENDING] = "pending", [UNREAD_REFUSED] = "refused"),
    REFRESHES(file_refreshes, "file"),
    REFRESHES(http_refreshes, "http"),
    ROW(events, "profpull_discovery_events_total", "Watch events, by their effect", METRIC_COUNTER,
        "event", [EVENT_ADDED] = "added", [EVENT_MODIFIED] = "modified",
        [EVENT_DELETED] = "deleted", [EVENT_BOOKMARK] = "bookmark", [EVENT_ERROR] = "error",
        [EVENT_UNKNOWN] = "unknown", [EVENT_UNCHANGED] = "unchanged"),
    ROW(answers, "profpull_discovery_answers_total",
        "Requests to the API server that were accepted, by the encoding of the answer",
        METRIC_COUNTER, "encoding", [ENCODING_PROTOBUF] = "protobuf", [ENCODING_JSON] = "json"),
    ROW(skips, "profpull_discovery_objects_skipped_total",
        "Objects from the API server that could not be used", METRIC_COUNTER, "reason",
        [SKIP_TOO_LARGE] = "too_large", [SKIP_TOO_DEEP] = "too_deep", [SKIP_SYNTAX] = "syntax",
        [SKIP_MEMORY] = "memory", [SKIP_WRONG_KIND] = "wrong_kind", [SKIP_BAD_IP] = "bad_ip",
        [SKIP_TOO_MANY_LABELS] = "too_many_labels", [SKIP_TOO_MANY_OBJECTS] = "too_many_objects"),
    ROW(target_skips, "profpull_discovery_targets_skipped_total",
        "Ports of pods that make no target", METRIC_COUNTER,
        "reason", [TARGET_BAD_PORT] = "bad_port", [TARGET_TOO_MANY] = "too_many",
        [TARGET_TOO_MANY_LABELS] = "too_many_labels"),
    ROW(exec_runs, "profpull_discovery_exec_plugin_runs_total",
        "Runs of exec credential plugins of kubeconfigs", METRIC_COUNTER, "result",
        [EXEC_RUN_OK] = "ok", [EXEC_RUN_FAILED] = "failed", [EXEC_RUN_TIMEOUT] = "timeout"),
    ROW(content_reads, "profpull_discovery_content_reads_total",
        "Reads of Secrets and ConfigMaps that the configuration names", METRIC_COUNTER,
        "result", [CONTENT_READ_OK] = "ok", [CONTENT_READ_FAILED] = "failed"),
#undef ROW
#undef REFRESHES
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
    c->requests = metrics_family(metrics, METRIC_COUNTER, "profpull_discovery_requests_total",
                                 "Requests to the API server that have ended", "verb", "result");
    c->relists = metrics_family(metrics, METRIC_COUNTER, "profpull_discovery_relists_total",
                                "Lists that were made again, by reason", "reason", NULL);
}
