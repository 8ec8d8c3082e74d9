/* The key `query.peers`: who is asked, and how. */
#include "config/config.h"
#include "tests/unit/lib/protocols.h"
#include "tests/unit/lib/valid_config.h"

static const struct config_options options = {.protocols = testing_protocols};

#define STORE "write: [{url: 'store:///d'}]\n"
#define PEERS(keys) STORE "query: {listen: ':4040', peers: {" keys "}}\n"

TEST(one_key_says_who_the_peers_are)
{
    SCOPED(config) *c =
        valid_config("f",
                     PEERS("hosts: ['a:1', '[::1]:2'], scheme: https, timeout: 3s, "
                           "basic_auth: {username: u, password: p}, tls_config: {server_name: n}"),
                     &options);
    const struct config_peers *p = &c->query.peers;
    CHECK_INT(p->hosts.n, 2, "hosts");
    CHECK_STR(p->hosts.at[1], "[::1]:2", "hosts");
    CHECK_INT(p->scheme, PEERS_HTTPS, "scheme");
    CHECK_INT(p->timeout_ms, 3000, "timeout");
    CHECK_INT(p->http.auth, HTTP_AUTH_BASIC, "auth");
    CHECK_STR(p->http.tls.server_name, "n", "tls");
    SCOPED(config) *d = valid_config("f", PEERS("dns: 'profpull:4040'"), &options);
    CHECK_STR(d->query.peers.dns, "profpull:4040", "dns");
    CHECK_INT(d->query.peers.timeout_ms, 10000, "default");
    SCOPED(config) *s = valid_config(
        "f", "sharding: {mode: kubernetes, service: s}\n" PEERS("sharding: true"), &options);
    assert_true(s->query.peers.sharding);
    CHECK_INT(s->query.peers.port, 4040, "the port of queries");
    SCOPED(config) *none = valid_config("f", STORE, &options);
    CHECK_INT(none->query.peers.hosts.n, 0, "none");
}

TEST(mistakes_are_named_with_their_place)
{
    static const struct text_case rows[] = {
        {PEERS(""),
         "f:2:33: query.peers: missing one of the keys \"hosts\", \"dns\" and \"sharding\"\n"},
        {PEERS("hosts: ['a:1'], dns: 'b:1'"), "f:2:55: query.peers.dns: at most one of hosts, dns "
                                              "and sharding, got \"hosts\" as well\n"},
        {PEERS("hosts: []"), "f:2:41: query.peers.hosts: expected at least one host:port\n"},
        {PEERS("hosts: ['http://a:1']"),
         "f:2:42: query.peers.hosts[0]: expected host:port without scheme and path, such as "
         "\"profpull-0.profpull:4040\", got \"http://a:1\"\n"},
        {PEERS("dns: profpull"),
         "f:2:39: query.peers.dns: expected name:port of a headless Service, such as "
         "\"profpull:4040\", got \"profpull\"\n"},
        {PEERS("sharding: true"),
         "f:2:44: query.peers.sharding: needs `sharding: {mode: kubernetes}`, which finds the "
         "replicas: with other modes, give \"hosts\" or \"dns\"\n"},
        {PEERS("host: 'a:1'"), "f:2:34: query.peers.host: unknown key; did you mean \"hosts\"?\n"},
    };
    CHECK_REFUSED(rows, &options);
}
