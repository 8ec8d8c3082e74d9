/* The key `query.peers`: who is asked, and how. */
#include "tests/unit/lib/testing.h"

#include "config/config.h"
#include "tests/unit/lib/protocols.h"

SCOPED_POINTER(config, config_unref)

SCOPED_POINTER(config_errors, config_errors_free)

static const struct config_options options = {.protocols = testing_protocols};

#define STORE "write: [{url: 'store:///d'}]\n"
#define PEERS(keys) STORE "query: {listen: ':4040', peers: {" keys "}}\n"

TEST(one_key_says_who_the_peers_are)
{
    SCOPED(config_errors) *errors = config_errors_new();
    SCOPED(config) *c = config_parse(
        "f",
        SV(PEERS("hosts: ['a:1', '[::1]:2'], scheme: https, timeout: 3s, "
                 "basic_auth: {username: u, password: p}, tls_config: {server_name: n}")),
        &options, errors);
    CHECK_INT(config_errors_count(errors), 0, "hosts");
    const struct config_peers *p = &c->query.peers;
    CHECK_INT(p->hosts.n, 2, "hosts");
    CHECK_STR(p->hosts.at[1], "[::1]:2", "hosts");
    CHECK_INT(p->scheme, PEERS_HTTPS, "scheme");
    CHECK_INT(p->timeout_ms, 3000, "timeout");
    CHECK_INT(p->http.auth, HTTP_AUTH_BASIC, "auth");
    CHECK_STR(p->http.tls.server_name, "n", "tls");
    SCOPED(config) *d = config_parse("f", SV(PEERS("dns: 'profpull:4040'")), &options, errors);
    CHECK_INT(config_errors_count(errors), 0, "dns");
    CHECK_STR(d->query.peers.dns, "profpull:4040", "dns");
    CHECK_INT(d->query.peers.timeout_ms, 10000, "default");
    SCOPED(config) *s =
        config_parse("f", SV("sharding: {mode: kubernetes, service: s}\n" PEERS("sharding: true")),
                     &options, errors);
    CHECK_INT(config_errors_count(errors), 0, "sharding");
    assert_true(s->query.peers.sharding);
    CHECK_INT(s->query.peers.port, 4040, "the port of queries");
    SCOPED(config) *none = config_parse("f", SV(STORE), &options, errors);
    CHECK_INT(none->query.peers.hosts.n, 0, "none");
}

TEST(mistakes_are_named_with_their_place)
{
    static const struct {
        const char *text;
        const char *want;
    } rows[] = {
        {PEERS(""),
         "f:2:33: query.peers: missing one of the keys \"hosts\", \"dns\" and \"sharding\""},
        {PEERS("hosts: ['a:1'], dns: 'b:1'"),
         "f:2:55: query.peers.dns: at most one of hosts, dns and sharding, got \"hosts\" as well"},
        {PEERS("hosts: []"), "f:2:41: query.peers.hosts: expected at least one host:port"},
        {PEERS("hosts: ['http://a:1']"),
         "f:2:42: query.peers.hosts[0]: expected host:port without scheme and path, such as "
         "\"profpull-0.profpull:4040\", got \"http://a:1\""},
        {PEERS("dns: profpull"),
         "f:2:39: query.peers.dns: expected name:port of a headless Service, such as "
         "\"profpull:4040\", got \"profpull\""},
        {PEERS("sharding: true"),
         "f:2:44: query.peers.sharding: needs `sharding: {mode: kubernetes}`, which finds the "
         "replicas: with other modes, give \"hosts\" or \"dns\""},
        {PEERS("host: 'a:1'"), "f:2:34: query.peers.host: unknown key; did you mean \"hosts\"?"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(config_errors) *errors = config_errors_new();
        SCOPED(config) *c = config_parse("f", sv_from(rows[i].text), &options, errors);
        assert_null(c);
        struct buf out = testing_buf(4096);
        config_errors_format(errors, &out);
        CHECK_CONTAINS(out.data, rows[i].want, rows[i].text);
        buf_done(&out);
    }
}
