/* /api/v1/status: how the process is, in one document. */
#include <jansson.h>

#include "agent/naming/naming.h"
#include "agent/sharing/sharding.h"
#include "base/clock.h"
#include "discovery/sources.h"
#include "store/peering/peering.h"
#include "tests/unit/api/exchange_rig.h"
#include "tests/unit/lib/protocols.h"
#include "tests/unit/lib/valid_config.h"
#include "write/conditions.h"
#include "write/write.h"

static bool healthy(void *arg, struct err *err)
{
    (void)arg;
    return err_set(err, ERR_SYSTEM, "the network thread has not run");
}

static bool ready(void *arg, struct buf *text)
{
    (void)arg;
    return buf_puts(text, "goes on without \"pods\"");
}

static void names(void *arg, struct naming_counts *ret)
{
    (void)arg;
    *ret = (struct naming_counts){.named = 1, .partly = 2, .unnamed = 3, .asks = 4, .failures = 5};
}

static bool sharding(void *arg, struct sharding_counts *ret)
{
    *ret = (struct sharding_counts){.members = 3, .index = -1, .own = 4, .others = 5};
    return arg == NULL;
}

static struct write_ledger ledger(void *arg, size_t endpoint)
{
    (void)arg;
    struct write_ledger l = {.accepted = 10, .sent = 7 + endpoint, .queued = 3};
    return l;
}

static json_t *ask(const struct rig_process *options)
{
    SCOPED(rig_answer) a = rig_ask(options, "GET /api/v1/status HTTP/1.1\r\n", SV(""));
    CHECK_INT(a.status, 200, a.body);
    CHECK_STR(a.type, "application/json", "");
    json_error_t error;
    json_t *root = json_loadb(a.body, a.n, 0, &error);
    CHECK(root != NULL, "not JSON at %d: %s\n%s", error.position, error.text, a.body);
    return root;
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value == NULL ? "(none)" : value;
}

TEST(the_process)
{
    static const char yaml[] = "scrape_configs: [{job_name: a}, {job_name: b}]\n"
                               "write:\n- {name: main, url: 'http://x:1'}\n"
                               "- {name: other, url: 'http://y:1'}\n";
    SCOPED(config) *config =
        valid_config("p.yaml", yaml, &(struct config_options){.protocols = testing_protocols});
    struct sources *sources = sources_new(NULL);
    struct conditions *conditions = conditions_new();
    sources_set(sources, "a", "http/0", SOURCE_FAILS, "HTTP 500");
    sources_set(sources, "b", "static/0", SOURCE_WORKS, "");
    conditions_set(conditions, "main",
                   &(struct write_condition){.works = false,
                                             .since_ns = 1,
                                             .oldest_ms = clock_mono_ms() - 5000,
                                             .why = "HTTP 401",
                                             .advice = "set a token"});
    struct rig_process options = {
        .sets = ROUTE_ADMIN,
        .served.version = "1.2.3",
        .served.config = config,
        .served.sources = sources,
        .served.conditions = conditions,
        .served.healthy = healthy,
        .served.ready = ready,
        .served.ledger = ledger,
        .served.sharding = sharding,
        .served.names = names,
        .served.started_ms = clock_mono_ms(),
    };
    json_auto_t *root = ask(&options);
    CHECK_STR(text(root, "version"), "1.2.3", "");
    CHECK_STR(text(root, "configFile"), "p.yaml", "");
    assert_true(json_is_false(json_object_get(root, "healthy")));
    CHECK_STR(text(root, "health"), "the network thread has not run", "");
    assert_true(json_is_true(json_object_get(root, "ready")));
    CHECK_STR(text(root, "readiness"), "goes on without \"pods\"", "");
    assert_true(json_is_null(json_object_get(root, "bottleneck")));
    CHECK_INT(json_array_size(json_object_get(root, "jobs")), 2, "jobs");
    CHECK_INT(json_array_size(json_object_get(root, "failures")), 0, "failures");
    const json_t *source = json_array_get(json_object_get(root, "sources"), 0);
    CHECK_STR(text(source, "job"), "a", "");
    CHECK_STR(text(source, "source"), "http/0", "");
    CHECK_STR(text(source, "state"), "down", "");
    CHECK_STR(text(source, "why"), "HTTP 500", "");
    const json_t *d = json_array_get(json_object_get(root, "destinations"), 0);
    assert_true(json_is_false(json_object_get(d, "up")));
    CHECK_STR(text(d, "downSince"), "1970-01-01T00:00:00.000Z", "");
    CHECK_STR(text(d, "lastError"), "HTTP 401", "");
    CHECK_STR(text(d, "advice"), "set a token", "");
    CHECK_STR(text(d, "url"), "http://x:1", "");
    CHECK_INT(json_integer_value(json_object_get(d, "sent")), 7, "sent");
    assert_true(json_real_value(json_object_get(d, "oldestAgeSeconds")) >= 5);
    d = json_array_get(json_object_get(root, "destinations"), 1);
    assert_true(json_is_true(json_object_get(d, "up")));
    assert_true(json_real_value(json_object_get(d, "oldestAgeSeconds")) == 0);
    const json_t *shared = json_object_get(root, "sharding");
    CHECK_INT(json_integer_value(json_object_get(shared, "index")), -1, "sharding");
    assert_true(json_is_null(json_object_get(root, "peers")));
    const json_t *symbols = json_object_get(root, "symbols");
    CHECK_INT(json_integer_value(json_object_get(symbols, "partly")), 2, "symbols");
    CHECK_INT(json_integer_value(json_object_get(symbols, "failures")), 5, "symbols");
    json_decref(root);
    struct err err = ERR_INIT;
    const char *const hosts[] = {"a:1", "b:2"};
    const struct http_settings http = {.auth = HTTP_AUTH_NONE};
    struct peering *peering = peering_new(&(struct peering_options){.log = NULL}, &err);
    assert_true(peering_configure(
        peering,
        &(struct peering_settings){
            .mode = PEERING_HOSTS, .hosts = hosts, .n_hosts = 2, .http = &http, .timeout_ms = 1000},
        &err));
    options.served.names = NULL;
    options.served.peering = peering;
    options.served.arg = &options;
    root = ask(&options);
    assert_true(json_is_null(json_object_get(root, "sharding")));
    const json_t *peers = json_object_get(root, "peers");
    CHECK_INT(json_integer_value(json_object_get(peers, "known")), 2, "peers");
    CHECK_INT(json_integer_value(json_object_get(peers, "down")), 0, "peers");
    CHECK_STR(text(peers, "lastError"), "", "peers");
    peering_free(peering);
    assert_true(json_is_null(json_object_get(root, "symbols")));
    conditions_free(conditions);
    sources_free(sources);
}
