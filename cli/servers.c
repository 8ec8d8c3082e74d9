#include "cli/servers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/recording_rules.h"
#include "api/served.h"
#include "api/settings.h"
#include "api/tables.h"
#include "base/cgroup.h"
#include "base/clock.h"
#include "base/log.h"
#include "pages/pages.h"
#include "store/peering/peering.h"
#include "store/store.h"

static bool servers_on_healthy(void *arg, struct err *err)
{
    const struct servers *s = arg;
    return app_healthy(s->app, err);
}

static bool servers_on_ready(void *arg, struct buf *text)
{
    const struct servers *s = arg;
    return app_ready(s->app, text);
}

static bool servers_on_archive(void *arg, const char *endpoint, struct archive_stats *ret)
{
    const struct servers *s = arg;
    struct store *store = app_store(s->app, endpoint);
    return store != NULL && store_archive_stats(store, ret);
}

static struct write_ledger servers_on_ledger(void *arg, size_t endpoint)
{
    const struct servers *s = arg;
    return app_ledger(s->app, endpoint);
}

static bool servers_on_reload(void *arg, struct buf *text)
{
    const struct servers *s = arg;
    return reload_request(s->reload, text);
}

static void servers_on_names(void *arg, struct naming_counts *ret)
{
    struct servers *s = arg;
    app_names(s->app, ret);
}

static bool servers_on_sharding(void *arg, struct sharding_counts *ret)
{
    const struct servers *s = arg;
    return app_sharding(s->app, ret);
}

/* Returns how many threads may help queries: no more than the process has cores for. */
static unsigned helpers_of(const struct config *config)
{
    unsigned cpus = cgroup_cpus("");
    unsigned threads = config->query.threads;
    return (threads < cpus ? threads : cpus) - 1;
}

static struct server_work work_of(const struct config_server *c)
{
    return (struct server_work){
        .threads = c->concurrency,
        .waiting_max = c->max_waiting,
        .timeout_ms = c->timeout_ms,
        .bytes_max = c->max_bytes,
        .body_max = c->max_body_size,
        .access = &c->access,
    };
}

/* The address of a section, and the sets of routes that are served there. */
struct plan {
    const char *name;
    const struct config_server *at;
    unsigned sets; /* 0: the section has no server of its own */
};

/* Returns the store that queries read: that of the first endpoint with a store. */
static struct store *store_of(struct app *app, const struct config *config)
{
    struct store *found = NULL;
    for (size_t i = 0; i < config->n_endpoints && found == NULL; i++) {
        const struct config_endpoint *e = &config->endpoints[i];
        found = e->protocol != NULL && e->protocol->is_store ? app_store(app, e->name) : NULL;
    }
    return found;
}

/* The first row that fits a request answers it, so the pages precede the plain pages of the
 * process. */
static const struct route *const all_routes[] = {page_routes, API_TABLES, NULL};
static const char *const api_prefixes[] = {API_PREFIXES, NULL};

static void servers_on_release(void *owner)
{
    struct served *served = owner;
    config_unref((struct config *)(uintptr_t)served->config);
    free(served);
}

/* Collects the parts of the process that handlers read, with a reference to config; NULL if out of
 * memory. servers_on_release() frees it. */
static struct served *served_new(struct servers *s, const struct config *config)
{
    struct app *app = s->app;
    struct served *served = malloc(sizeof(*served));
    if (served != NULL) {
        *served = (struct served){
            .config = config_ref(config),
            .version = PROFPULL_VERSION,
            .started_ms = s->started_ms,
            .scraper = app_scraper(app),
            .dropped = app_dropped(app),
            .store = store_of(app, config),
            .helpers = &s->helpers,
            .peering = app_peering(app),
            .settings = s->settings,
            .recording_rules = s->recording_rules,
            .record = app_record(app),
            .receiver = app_receive(app),
            .sources = app_sources(app),
            .conditions = app_conditions(app),
            .healthy = servers_on_healthy,
            .ready = servers_on_ready,
            .reload = servers_on_reload,
            .ledger = servers_on_ledger,
            .archive = servers_on_archive,
            .sharding = servers_on_sharding,
            .names = servers_on_names,
            .arg = s,
        };
    }
    return served;
}

/* Makes the options of a server. `served` is passed on to servers_on_release(). */
static struct server_options options_of(struct servers *s, const struct config *config,
                                        const struct plan *p, struct served *served)
{
    struct app *app = s->app;
    const struct config_server *at = p->at;
    return (struct server_options){
        .name = p->name,
        .listen = at->listen,
        .listen_option = at == &config->server  ? "--listen, or `listen` in the section server"
                         : at == &config->query ? "`listen` in the section query"
                                                : "`listen` in the section receive",
        .sets = p->sets,
        .max_connections = at->max_connections,
        .max_connections_per_address = at->max_connections_per_address,
        .max_streams = at->max_streams,
        .max_streams_per_connection = at->max_streams_per_connection,
        .request_timeout_ms = at->request_timeout_ms,
        .answer_timeout_ms = at->answer_timeout_ms,
        .idle_timeout_ms = at->idle_timeout_ms,
        .bodies_max_bytes =
            (p->sets & ROUTE_RECEIVE) != 0
                ? config->query.bodies_max_bytes + config->receive.server.bodies_max_bytes
                : config->query.bodies_max_bytes,
        .tls = {.cert_file = at->tls.cert_file,
                .key_file = at->tls.key_file,
                .client_ca_file = at->tls.client_ca_file},
        .web_config_file = at->web_config_file,
        .access = &at->access,
        .path_prefix = config->query.path_prefix,
        .query = work_of(&config->query),
        .receive = work_of(&config->receive.server),
        .routes = all_routes,
        .api_prefixes = api_prefixes,
        .log = app_log(app),
        .metrics = app_metrics(app),
        .served = served,
        .release = servers_on_release,
        .owner = served,
    };
}

/* The admin server is the last one: when it answers, the others answer as well. */
static void make_plans(const struct config *config, struct plan plans[SERVERS_MAX])
{
    const struct config_server *admin = &config->server;
    const struct config_server *query = &config->query;
    const struct config_server *receive = &config->receive.server;
    unsigned on_admin = admin->listen[0] != '\0' ? ROUTE_ADMIN : 0;
    unsigned on_query = query->listen[0] != '\0' ? ROUTE_QUERY : 0;
    unsigned on_receive = receive->listen[0] != '\0' ? ROUTE_RECEIVE : 0;
    if (on_admin != 0 && (on_query == 0 || config_server_shares(query, admin))) {
        on_admin |= ROUTE_QUERY;
        on_query = 0;
    }
    on_query |= on_query != 0 ? ROUTE_PEERS : 0;
    on_admin |= (on_admin & ROUTE_QUERY) != 0 ? ROUTE_PEERS : 0;
    if (on_admin != 0 && on_receive != 0 && config_server_shares(receive, admin)) {
        on_admin |= ROUTE_RECEIVE;
        on_receive = 0;
    } else if (on_query != 0 && on_receive != 0 && config_server_shares(receive, query)) {
        on_query |= ROUTE_RECEIVE;
        on_receive = 0;
    }
    plans[0] = (struct plan){"query", query, on_query};
    plans[1] = (struct plan){"receive", receive, on_receive};
    plans[2] = (struct plan){"admin", admin, on_admin};
}

static bool start(struct servers *s, const struct config *config, const struct plan *p,
                  struct err *err)
{
    if (p->sets == 0) {
        return true;
    }
    struct served *served = served_new(s, config);
    if (served == NULL) {
        return err_memory(err);
    }
    struct server_options options = options_of(s, config, p, served);
    struct server *server = server_start(&options, err);
    if (server == NULL) {
        return false;
    }
    s->names[s->n] = p->name;
    s->at[s->n++] = server;
    char message[64];
    (void)snprintf(message, sizeof(message), "%s server listens", p->name);
    log_info(app_log(s->app), message, LOG_STR("address", p->at->listen),
             LOG_INT("port", server_port(server)));
    return true;
}

/* ---- another configuration ------------------------------------------------------------------- */

static struct server *find(const struct servers *s, const char *name, size_t *ret_i)
{
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->names[i], name) == 0) {
            *ret_i = i;
            return s->at[i];
        }
    }
    return NULL;
}

static void servers_on_discard(void *arg)
{
    struct servers *s = arg;
    for (size_t i = 0; i < s->n; i++) {
        server_discard(s->next[i]);
        s->next[i] = NULL;
    }
}

static bool prepare(struct servers *s, const struct config *next, const struct plan *p,
                    struct err *err)
{
    size_t i = 0;
    struct server *server = find(s, p->name, &i);
    if ((server != NULL) != (p->sets != 0)) {
        return err_set(err, ERR_INPUT,
                       "%s server: listen: cannot change while the program runs: restart it",
                       p->name);
    }
    if (server == NULL) {
        return true;
    }
    struct served *served = served_new(s, next);
    if (served == NULL) {
        return err_memory(err);
    }
    struct server_options options = options_of(s, next, p, served);
    s->next[i] = server_prepare(server, &options, err);
    return s->next[i] != NULL;
}

static bool servers_on_prepare(void *arg, const struct config *next, struct err *err)
{
    struct servers *s = arg;
    struct plan plans[SERVERS_MAX];
    make_plans(next, plans);
    s->next_helpers = helpers_of(next);
    for (size_t i = 0; i < SERVERS_MAX; i++) {
        if (!prepare(s, next, &plans[i], err)) {
            servers_on_discard(s);
            return false;
        }
    }
    return true;
}

static void servers_on_commit(void *arg)
{
    struct servers *s = arg;
    atomic_store(&s->helpers.max, s->next_helpers);
    for (size_t i = 0; i < s->n; i++) {
        server_commit(s->at[i], s->next[i]);
        s->next[i] = NULL;
    }
}

bool servers_start(struct servers *s, struct app *app, struct reload *reload,
                   const struct config *config, struct err *err)
{
    const struct app_servers on_change = {.prepare = servers_on_prepare,
                                          .commit = servers_on_commit,
                                          .discard = servers_on_discard,
                                          .arg = s};
    struct plan plans[SERVERS_MAX];
    s->app = app;
    s->reload = reload;
    s->started_ms = clock_mono_ms();
    atomic_store(&s->helpers.max, helpers_of(config));
    s->helpers.helped =
        metrics_single(app_metrics(app), METRIC_COUNTER, "profpull_query_helped_total",
                       "Queries whose profiles several threads have read.");
    const struct store *store = store_of(app, config);
    const char *directory =
        store == NULL || store_is_read_only(store) ? NULL : store_directory(store);
    s->settings = settings_new(directory, app_log(app));
    s->recording_rules = recording_rules_new(directory, app_record(app), app_log(app), err);
    if (s->recording_rules == NULL) {
        return false;
    }
    make_plans(config, plans);
    for (size_t i = 0; i < SERVERS_MAX; i++) {
        if (!start(s, config, &plans[i], err)) {
            return false;
        }
    }
    app_set_servers(app, &on_change);
    return true;
}

void servers_stop(struct servers *s)
{
    if (s->app != NULL) {
        peering_stop(app_peering(s->app)); /* queries may wait for peers */
    }
    while (s->n > 0) {
        server_stop(s->at[--s->n]);
    }
    s->settings = settings_free(s->settings);
    s->recording_rules = recording_rules_free(s->recording_rules);
}
