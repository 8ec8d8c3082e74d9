/* The key `query.peers`: other processes that queries ask. */
#include <string.h>

#include "base/clock.h"
#include "config/parts.h"

#define DEFAULT_TIMEOUT_MS (10 * MS_PER_S)

static bool check_peer(struct sv v)
{
    struct sv host;
    uint16_t port;
    return check_header_value(v) && memchr(v.p, '/', v.n) == NULL &&
           memchr(v.p, '@', v.n) == NULL && split_host_port(v, &host, &port, NULL) && host.n > 0 &&
           port != 0;
}

static const struct text_kind text_peer = {
    .expected = "host:port without scheme and path, such as \"profpull-0.profpull:4040\"",
    .ok = check_peer,
    .min = 1,
    .max = 300};
static const struct text_kind text_peers_name = {
    .expected = "name:port of a headless Service, such as \"profpull:4040\"",
    .ok = check_peer,
    .min = 1,
    .max = 255};

static const char *const scheme_names[] = {[PEERS_HTTP] = "http", [PEERS_HTTPS] = "https"};
static const struct choices schemes = CHOICES(scheme_names);
static const struct range range_port = {0, 65535};
static const struct range range_timeout = {100, 600000};

/* Exactly one key says who the peers are. */
static void check_sources(struct reader *r, const struct place *at, bool clean, void *out)
{
    static const char *const keys[] = {"hosts", "dns", "sharding"};
    const struct config_peers *p = &((const struct config_server *)out)->peers;
    const char *first = NULL;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        bool given = yaml_get(at->node, keys[i]) != NULL;
        if (given && first != NULL) {
            struct place place = place_of_key(at, keys[i]);
            reader_error(r, &place, "at most one of hosts, dns and sharding, got \"%s\" as well",
                         first);
            return;
        }
        first = given ? keys[i] : first;
    }
    if (first == NULL && clean) {
        reader_error(r, at, "missing one of the keys \"hosts\", \"dns\" and \"sharding\"");
    } else if (clean && strcmp(first, "hosts") == 0 && p->hosts.n == 0) {
        struct place place = place_of_key(at, "hosts");
        reader_error(r, &place, "expected at least one host:port");
    }
}

static const struct field peers_rows[] = {
    ROW(config_server, "hosts", peers.hosts, &kind_strings, .arg = &text_peer, .optional = true),
    ROW(config_server, "dns", peers.dns, &kind_text, .arg = &text_peers_name),
    ROW(config_server, "sharding", peers.sharding, &kind_bool, .optional = true),
    ROW(config_server, "port", peers.port, &kind_unsigned, .arg = &range_port, .optional = true),
    ROW(config_server, "scheme", peers.scheme, &kind_choice, .arg = &schemes),
    ROW(config_server, "timeout", peers.timeout_ms, &kind_duration, .arg = &range_timeout,
        .initial.ms = DEFAULT_TIMEOUT_MS),
    ROW(config_server, NULL, peers.http, &kind_mapping, .arg = &schema_target_http),
};
const struct schema schema_peers = SCHEMA(peers_rows, 0, .check = check_sources);

/* Returns the port of an address to listen at; 0 if it has none. */
static unsigned port_of(const char *listen)
{
    const char *colon = strrchr(listen, ':');
    uint64_t port = 0;
    return colon != NULL && parse_u64(sv_from(colon + 1), 65535, &port) ? (unsigned)port : 0;
}

void check_peers(struct reader *r, const struct place *root, struct config *c)
{
    struct config_peers *p = &c->query.peers;
    struct place query = place_of_key(root, "query");
    struct place peers = place_of_key(&query, "peers");
    if (!p->sharding) {
        return;
    }
    if (c->sharding.mode != SHARDING_KUBERNETES) {
        struct place at = place_of_key(&peers, "sharding");
        reader_error(r, &at,
                     "needs `sharding: {mode: kubernetes}`, which finds the replicas: with other "
                     "modes, give \"hosts\" or \"dns\"");
    }
    const char *listen = c->query.listen[0] != '\0' ? c->query.listen : c->server.listen;
    p->port = p->port == 0 && listen != NULL ? port_of(listen) : p->port;
    if (p->port == 0) {
        reader_error(r, &peers, "missing key \"port\": the port of the queries of the replicas");
    }
}
