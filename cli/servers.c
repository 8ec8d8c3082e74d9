#include "cli/servers.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/api/settings.h"
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

static bool servers_on_sharding(void *arg, struct sharding_counts *ret)
{
    return app_sharding(arg, ret);
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

/* A server at the address of a section, with the pages and APIs of these sets. */
static bool start(struct servers *s, struct app *app, const struct config *config, const char *name,
                  const struct config_server *at, unsigned sets, struct err *err)
{
    struct server_options options = {
        .name = name,
        .listen = at->listen,
        .sets = sets,
        .max_connections = at->max_connections,
        .max_connections_per_address = at->max_connections_per_address,
        .request_timeout_ms = at->request_timeout_ms,
        .answer_timeout_ms = at->answer_timeout_ms,
        .idle_timeout_ms = at->idle_timeout_ms,
        .bodies_max_bytes =
            (sets & ROUTE_RECEIVE) != 0
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
        .log = app_log(app),
        .metrics = app_metrics(app),
        .scraper = app_scraper(app),
        .receiver = app_receive(app),
        .dropped = app_dropped(app),
        .sources = app_sources(app),
        .conditions = app_conditions(app),
        .sharding = servers_on_sharding,
        .started_ms = s->started_ms,
        .settings = s->settings,
        .config = config,
        .store = app_store(app, NULL),
        .version = PROFPULL_VERSION,
        .healthy = servers_on_healthy,
        .ready = servers_on_ready,
        .ledger = servers_on_ledger,
        .reload = servers_on_reload,
        .arg = s,
    };
    if (sets == 0) {
        return true;
    }
    struct server *server = server_start(&options, err);
    if (server == NULL) {
        return false;
    }
    s->at[s->n++] = server;
    char message[64];
    (void)snprintf(message, sizeof(message), "%s server listens", name);
    log_info(app_log(app), message, LOG_STR("address", at->listen),
             LOG_INT("port", server_port(server)));
    return true;
}

bool servers_start(struct servers *s, struct app *app, struct reload *reload,
                   const struct config *config, struct err *err)
{
    s->app = app;
    s->reload = reload;
    const struct config_server *admin = &config->server;
    const struct config_server *query = &config->query;
    const struct config_server *receive = &config->receive.server;
    const struct store *store = app_store(app, NULL);
    s->started_ms = clock_mono_ms();
    s->settings = settings_new(store == NULL ? NULL : store_directory(store), app_log(app));
    unsigned on_admin = admin->listen[0] != '\0' ? ROUTE_ADMIN : 0;
    unsigned on_query = query->listen[0] != '\0' ? ROUTE_QUERY : 0;
    unsigned on_receive = receive->listen[0] != '\0' ? ROUTE_RECEIVE : 0;
    if (on_admin != 0 && (on_query == 0 || config_server_shares(query, admin))) {
        on_admin |= ROUTE_QUERY;
        on_query = 0;
    }
    if (on_admin != 0 && on_receive != 0 && config_server_shares(receive, admin)) {
        on_admin |= ROUTE_RECEIVE;
        on_receive = 0;
    } else if (on_query != 0 && on_receive != 0 && config_server_shares(receive, query)) {
        on_query |= ROUTE_RECEIVE;
        on_receive = 0;
    }
    /* The admin server last: when it answers, the others do. */
    return start(s, app, config, "query", query, on_query, err) &&
           start(s, app, config, "receive", receive, on_receive, err) &&
           start(s, app, config, "admin", admin, on_admin, err);
}

void servers_stop(struct servers *s)
{
    while (s->n > 0) {
        server_stop(s->at[--s->n]);
    }
    s->settings = settings_free(s->settings);
}
