#include "agent/peering.h"

#include "store/peering/peering.h"

static void agent_peering_on_release(void *owner)
{
    (void)config_unref(owner);
}

static struct peering_settings settings_of(const struct config *config)
{
    const struct config_peers *p = &config->query.peers;
    struct peering_settings s = {.mode = p->hosts.n > 0   ? PEERING_HOSTS
                                         : p->dns != NULL ? PEERING_DNS
                                         : p->sharding    ? PEERING_MEMBERS
                                                          : PEERING_NONE,
                                 .hosts = p->hosts.at,
                                 .n_hosts = p->hosts.n,
                                 .dns = p->dns,
                                 .port = (uint16_t)p->port,
                                 .https = p->scheme == PEERS_HTTPS,
                                 .http = &p->http,
                                 .timeout_ms = p->timeout_ms,
                                 .release = agent_peering_on_release,
                                 .owner = config_ref(config)};
    return s;
}

struct peering *agent_peering_new(struct log *log, struct metrics *metrics,
                                  struct http_contents *contents, const struct config *config,
                                  struct err *err)
{
    const struct peering_options o = {.log = log, .metrics = metrics, .contents = contents};
    struct peering *p = peering_new(&o, err);
    const struct peering_settings s = settings_of(config);
    if (p == NULL) {
        agent_peering_on_release(s.owner);
        return NULL;
    }
    return peering_configure(p, &s, err) ? p : peering_free(p);
}

void agent_peering_configure(struct peering *p, const struct config *config, struct log *log)
{
    struct err err = ERR_INIT;
    const struct peering_settings s = settings_of(config);
    if (!peering_configure(p, &s, &err)) {
        log_error(log, "the peers of the former configuration stay in use", LOG_ERR(&err));
    }
}
