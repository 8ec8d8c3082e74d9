#include "http/resolver.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/str.h"

TAILQ_HEAD(use_list, resolver_use);

struct resolver_name {
    struct resolver *all;
    struct use_list waiting;
    bool running; /* a lookup waits for a thread or runs */
    bool suspect;
    bool failed;      /* the last lookup has failed */
    char *addresses;  /* NULL: none */
    int64_t found_ms; /* when they were found */
    /* when the last lookup ended; valid if `failed` or `addresses` is set */
    int64_t checked_ms;
    int64_t used_ms;
    int code; /* error code of getaddrinfo(), if it failed */
    char host[];
};

/* The pause between two searches for names that can be forgotten. */
#define RESOLVER_SWEEP_MS 60000

enum lookup_result { LOOKUP_OK, LOOKUP_NOT_FOUND, LOOKUP_FAILED, LOOKUP_RESULTS };

struct resolver {
    struct lookups *lookups;
    resolver_resume *resume;
    struct map *names; /* host -> struct resolver_name */
    int64_t swept_ms;
    struct metric_cell *results[LOOKUP_RESULTS];
    struct metric_cell *waiting;
    struct metric_cell *hosts;
};

static void resolver_on_lookup(void *arg, int code, char *addresses);

static void name_free(void *arg)
{
    struct resolver_name *name = arg;
    free(name->addresses);
    free(name);
}

static void register_metrics(struct resolver *r, struct metrics *m, const char *client)
{
    static const char *const words[LOOKUP_RESULTS] = {
        [LOOKUP_OK] = "ok",
        [LOOKUP_NOT_FOUND] = "not_found",
        [LOOKUP_FAILED] = "failed",
    };
    struct metric *lookups =
        metrics_family(m, METRIC_COUNTER, "profpull_dns_lookups_total",
                       "Name lookups that ended, by result.", "client", "result");
    for (enum lookup_result i = 0; i < LOOKUP_RESULTS; i++) {
        r->results[i] = metric_cell(lookups, (const char *const[]){client, words[i]});
    }
    r->waiting = metric_cell_of(
        metrics_family(m, METRIC_GAUGE, "profpull_dns_lookups_waiting",
                       "Name lookups that wait for a thread or are in progress.", "client", NULL),
        client);
    r->hosts = metric_cell_of(
        metrics_family(m, METRIC_GAUGE, "profpull_dns_hosts",
                       "Host names in the cache, with their addresses or the failure to find them.",
                       "client", NULL),
        client);
}

struct resolver *resolver_new(const struct resolver_options *options)
{
    struct resolver *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return NULL;
    }
    r->resume = options->resume;
    r->names = map_new();
    r->lookups = lookups_new(options->loop, options->lookup, resolver_on_lookup);
    register_metrics(r, options->metrics, options->client);
    return r->names != NULL && r->lookups != NULL ? r : resolver_free(r);
}

struct resolver *resolver_free(struct resolver *r)
{
    if (r != NULL) {
        lookups_close(r->lookups);
        map_free(r->names, name_free);
        free(r);
    }
    return NULL;
}

/* ---- names ----------------------------------------------------------------------------------- */

static void count_hosts(struct resolver *r)
{
    metric_set(r->hosts, (int64_t)map_count(r->names));
}

static void forget_unused(struct resolver *r, int64_t now_ms)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    if (now_ms - r->swept_ms < RESOLVER_SWEEP_MS) {
        return;
    }
    r->swept_ms = now_ms;
    while (map_next(r->names, &cursor, &key, &value)) {
        struct resolver_name *name = value;
        if (!name->running && now_ms - name->used_ms >= RESOLVER_UNUSED_MS) {
            map_remove_at(r->names, cursor);
            name_free(name);
        }
    }
}

static struct resolver_name *add_name(struct resolver *r, const char *host, int64_t now_ms,
                                      struct err *err)
{
    size_t size = strlen(host) + 1;
    forget_unused(r, now_ms);
    if (map_count(r->names) >= RESOLVER_HOSTS_MAX) {
        err_set(err, ERR_LIMIT, "expected at most %d host names within %d minutes",
                RESOLVER_HOSTS_MAX, RESOLVER_UNUSED_MS / 60000);
        return NULL;
    }
    struct resolver_name *name = calloc(1, sizeof(*name) + size);
    if (name == NULL || !map_put(r->names, sv_from(host), name, NULL)) {
        free(name);
        err_memory(err);
        return NULL;
    }
    memcpy(name->host, host, size);
    name->all = r;
    TAILQ_INIT(&name->waiting);
    count_hosts(r);
    return name;
}

/* ---- the end of a lookup --------------------------------------------------------------------- */

static void stop_waiting(struct resolver_use *use)
{
    TAILQ_REMOVE(&use->name->waiting, use, link);
    use->name = NULL;
}

static void resume_all(struct resolver_name *name, const char *addresses, const char *reason)
{
    /* resume() does not add to this list. */
    while (!TAILQ_EMPTY(&name->waiting)) {
        struct resolver_use *use = TAILQ_FIRST(&name->waiting);
        stop_waiting(use);
        name->all->resume(use->transfer, addresses, reason);
    }
}

static void set_addresses(struct resolver_name *name, char *addresses)
{
    free(name->addresses);
    name->addresses = addresses;
}

static enum lookup_result result_of(int code)
{
    if (code == 0) {
        return LOOKUP_OK;
    }
    return code == EAI_NONAME || code == EAI_NODATA ? LOOKUP_NOT_FOUND : LOOKUP_FAILED;
}

static void put_reason(const struct resolver_name *name, struct err *err)
{
    err_set(err, ERR_NETWORK, "Could not resolve host: %.253s (%s)", name->host,
            gai_strerror(name->code));
}

static void resolver_on_lookup(void *arg, int code, char *addresses)
{
    struct resolver_name *name = arg;
    struct err reason = ERR_INIT;
    enum lookup_result result = result_of(code);
    int64_t now_ms = clock_mono_ms();
    metric_inc(name->all->results[result]);
    metric_gauge_add(name->all->waiting, -1);
    name->running = false;
    name->suspect = false;
    name->failed = result != LOOKUP_OK;
    name->checked_ms = now_ms;
    if (result == LOOKUP_OK) {
        set_addresses(name, addresses);
        name->found_ms = now_ms;
    } else if (result == LOOKUP_NOT_FOUND || now_ms - name->found_ms >= RESOLVER_STALE_MS) {
        set_addresses(name, NULL);
    }
    name->code = code;
    put_reason(name, &reason);
    resume_all(name, name->addresses, reason.msg);
}

/* ---- questions ------------------------------------------------------------------------------- */

static bool start(struct resolver_name *name, struct err *err)
{
    if (!lookups_start(name->all->lookups, name->host, name->failed, name, err)) {
        return false;
    }
    name->running = true;
    metric_gauge_add(name->all->waiting, 1);
    return true;
}

/* Returns true if the result of the last lookup is still used. */
static bool is_current(const struct resolver_name *name, int64_t now_ms)
{
    int64_t age_ms = now_ms - name->checked_ms;
    if (name->failed) {
        return age_ms < RESOLVER_FAILED_MS;
    }
    return name->addresses != NULL &&
           age_ms < (name->suspect ? RESOLVER_SURE_MS : RESOLVER_FRESH_MS);
}

static struct resolver_name *find_name(struct resolver *r, const char *host, int64_t now_ms,
                                       struct err *err)
{
    struct resolver_name *name = map_get(r->names, sv_from(host));
    name = name != NULL ? name : add_name(r, host, now_ms, err);
    if (name != NULL) {
        name->used_ms = now_ms;
    }
    return name;
}

enum resolver_answer resolver_get(struct resolver *r, const char *host, int64_t now_ms,
                                  struct resolver_use *use, const char **ret_addresses,
                                  struct err *err)
{
    struct resolver_name *name = find_name(r, host, now_ms, err);
    if (name == NULL) {
        return RESOLVER_FAILED;
    }
    bool current = is_current(name, now_ms);
    if (!current && !name->running && !start(name, err)) {
        return RESOLVER_FAILED;
    }
    if (name->addresses != NULL && (current || !name->suspect)) {
        *ret_addresses = name->addresses;
        return RESOLVER_FOUND;
    }
    if (current) {
        put_reason(name, err);
        return RESOLVER_FAILED;
    }
    TAILQ_INSERT_TAIL(&name->waiting, use, link);
    use->name = name;
    return RESOLVER_WAIT;
}

void resolver_cancel(struct resolver_use *use)
{
    if (use->name != NULL) {
        stop_waiting(use);
    }
}

void resolver_suspect(struct resolver *r, const char *host)
{
    struct resolver_name *name = map_get(r->names, sv_from(host));
    if (name != NULL) {
        name->suspect = true;
    }
}

void resolver_abort(struct resolver *r, const char *reason)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    while (map_next(r->names, &cursor, &key, &value)) {
        resume_all(value, NULL, reason);
    }
}
