/* The metrics of discovery, registered once. All may be NULL, as base/metrics.h allows. */
#ifndef PROFPULL_DISCOVERY_COUNTERS_H
#define PROFPULL_DISCOVERY_COUNTERS_H

#include "base/metrics.h"

/* Events of a watch. */
enum discovery_event {
    EVENT_ADDED,
    EVENT_MODIFIED,
    EVENT_DELETED,
    EVENT_BOOKMARK,
    EVENT_ERROR,
    EVENT_UNKNOWN,
    EVENT_UNCHANGED, /* the object of the event changed no target */
    EVENT_COUNT,
    EVENT_LISTED = EVENT_COUNT, /* an object of a list: not counted */
};

/* The reasons why an object could not be used. */
enum discovery_skip {
    SKIP_TOO_LARGE,
    SKIP_TOO_DEEP,
    SKIP_SYNTAX,
    SKIP_MEMORY,
    SKIP_WRONG_KIND,
    SKIP_BAD_IP,
    SKIP_TOO_MANY_LABELS,
    SKIP_TOO_MANY_OBJECTS,
    SKIP_COUNT,
    SKIP_NONE = SKIP_COUNT, /* the object can be used */
};

enum discovery_groups { GROUPS_STATIC, GROUPS_FILE, GROUPS_HTTP, GROUPS_KUBERNETES, GROUPS_COUNT };

/* The reasons why a list has not been read since the start. */
enum discovery_unread { UNREAD_PENDING, UNREAD_REFUSED, UNREAD_COUNT };

enum discovery_refresh { REFRESH_CHANGED, REFRESH_UNCHANGED, REFRESH_FAILED, REFRESH_COUNT };

enum discovery_target_skip {
    TARGET_BAD_PORT,
    TARGET_TOO_MANY,
    TARGET_TOO_MANY_LABELS,
    TARGET_SKIP_COUNT
};

/* The encoding of a response of an API server. */
enum discovery_encoding { ENCODING_PROTOBUF, ENCODING_JSON, ENCODING_COUNT };

/* Reads of Secrets and ConfigMaps. */
enum discovery_content_read { CONTENT_READ_OK, CONTENT_READ_FAILED, CONTENT_READ_COUNT };

enum discovery_exec_run { EXEC_RUN_OK, EXEC_RUN_FAILED, EXEC_RUN_TIMEOUT, EXEC_RUN_COUNT };

struct discovery_counters {
    struct metric_cell *groups[GROUPS_COUNT];
    struct metric_cell *unread[UNREAD_COUNT];
    struct metric_cell *file_refreshes[REFRESH_COUNT];
    struct metric_cell *http_refreshes[REFRESH_COUNT];
    struct metric_cell *events[EVENT_COUNT];
    struct metric_cell *answers[ENCODING_COUNT];
    struct metric_cell *skips[SKIP_COUNT];
    struct metric_cell *target_skips[TARGET_SKIP_COUNT];
    struct metric_cell *exec_runs[EXEC_RUN_COUNT];
    struct metric_cell *content_reads[CONTENT_READ_COUNT];
    struct metric *requests; /* verb, result */
    struct metric *relists;  /* reason */
};

/* Registers the metrics. metrics may be NULL. */
void discovery_counters_init(struct discovery_counters *c, struct metrics *metrics);

#endif
