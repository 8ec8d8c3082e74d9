/* Targets from labels that a pod may have influenced: whatever their values, the URL stays one URL
 * and the pinned host stays the host. The input is lines "name=value". */
#include <string.h>

#include "scraper/targets/target_private.h"
#include "tests/fuzz/fuzz.h"

#define PINNED "10.1.2.3"

static const struct config_type TYPES[] = {
    {.key = "memory",
     .name = "memory",
     .path = "/debug/pprof/allocs",
     .enabled = true,
     .interval_ms = 15000,
     .timeout_ms = 10000},
    {.key = "process_cpu",
     .name = "process_cpu",
     .path = "/debug/pprof/profile",
     .enabled = true,
     .sampling = true,
     .seconds = 14,
     .interval_ms = 15000,
     .timeout_ms = 10000},
};

static void check_url(const char *url)
{
    static const char http[] = "http://" PINNED ":";
    static const char https[] = "https://" PINNED ":";
    /* Another spelling of the same IPv6 address is allowed: check_target() compares the addresses.
     */
    REQUIRE(strncmp(url, http, sizeof(http) - 1) == 0 ||
            strncmp(url, https, sizeof(https) - 1) == 0 || strstr(url, "://[") != NULL);
    REQUIRE(strchr(url, '#') == NULL && strchr(strstr(url, "://") + 3, '/') != NULL);
    const char *query = strchr(url, '?');
    REQUIRE(query == NULL || strchr(query + 1, '?') == NULL);
    for (const char *c = url; *c != '\0'; c++) {
        REQUIRE(*c > ' ' && *c < 0x7f);
    }
}

static void check_seconds(const struct target *t, size_t i, const char *url)
{
    size_t n = 0;
    for (const char *at = strchr(url, '?'); at != NULL; at = strpbrk(at + 1, "&")) {
        n += strncmp(at + 1, "seconds=", 8) == 0;
    }
    REQUIRE(n == (target_scrape_type(t, i)->sampling ? 1 : 0));
}

/* Whatever the labels say, the schedule gets valid numbers. */
static void check_times(const struct target *t, size_t i)
{
    int64_t interval = target_interval_ms(t, i);
    int64_t seconds = t->entries[i].seconds;
    REQUIRE(interval >= 1000 && interval <= INT64_C(24) * 60 * 60 * 1000);
    REQUIRE(seconds * 1000 <= interval);
    REQUIRE(target_timeout_ms(t, i) > 0 && target_timeout_ms(t, i) <= interval + seconds * 1000);
}

static void check_problems(const struct target *t)
{
    for (size_t i = 0; i < target_problem_count(t); i++) {
        const char *type = NULL;
        REQUIRE(strlen(target_problem(t, i, &type)) > 0 && strlen(type) > 0);
    }
}

static void check_target(const struct target *t, struct labels_builder *b)
{
    for (size_t i = 0; i < target_scrape_count(t); i++) {
        struct buf url;
        buf_init(&url, (size_t)64 * 1024);
        REQUIRE(target_scrape_url(t, i, &url));
        REQUIRE(strlen(url.data) == url.len);
        check_url(url.data);
        check_seconds(t, i, url.data);
        check_times(t, i);
        REQUIRE(strncmp(target_canonical(t), PINNED ":", sizeof(PINNED ":") - 1) == 0);
        REQUIRE(strncmp(target_process(t, i), PINNED ":", sizeof(PINNED ":") - 1) == 0);
        buf_done(&url);
        for (size_t k = 0; k < i; k++) {
            REQUIRE(!target_same_scrape(t, i, t, k));
        }
        struct labels *series = target_series(t, i, b);
        REQUIRE(series != NULL && labels_get(series, SV("__name__")).n > 0);
        REQUIRE(labels_get(series, SV("__profile_memory_port__")).n == 0);
        labels_unref(series);
    }
    check_problems(t);
}

FUZZ(rest)
{
    struct config_job job = {.name = "job",
                             .scheme = "http",
                             .path_prefix = "",
                             .types = TYPES,
                             .n_types = 2,
                             .interval_ms = 15000};
    struct intern *in = intern_new();
    struct labels_builder *b = labels_builder_new(in);
    struct sv line;
    struct sv name;
    struct sv value;
    while (sv_cut(rest, '\n', &line, &rest)) {
        if (sv_cut(line, '=', &name, &value)) {
            labels_builder_set(b, name, value);
        }
    }
    struct err err = ERR_INIT;
    struct target *t = target_make(NULL, 0, &job, b, PINNED, &err);
    REQUIRE((t == NULL) == (err.kind != ERR_NONE));
    if (t != NULL) {
        check_target(t, b);
    }
    target_unref(t);
    labels_builder_free(b);
    intern_free(in);
}
