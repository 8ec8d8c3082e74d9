/* Valid files: defaults, every key, profile types, the environment, the command line,
 * files. */
#include "tests/unit/lib/testing.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"
#include "tests/unit/lib/protocols.h"
#include "tests/unit/lib/valid_config.h"

static const char *env(void *arg, const char *name)
{
    (void)arg;
    static const char *const set[][2] = {
        {"NODE_NAME", "node-1"}, {"EMPTY", ""},  {"YES", "true"},
        {"PORT", "4041"},        {"TEN", "10s"}, {"QUOTE", "a\"b\n${NODE_NAME}"},
    };
    for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++) {
        if (strcmp(set[i][0], name) == 0) {
            return set[i][1];
        }
    }
    return NULL;
}

static struct config *parse_as(const char *name, const char *text, struct config_options o)
{
    o.env = env;
    o.protocols = testing_protocols;
    return valid_config(name, text, &o);
}

static struct config *parse(const char *text)
{
    return parse_as("dir/f.yaml", text, (struct config_options){0});
}

#define MINIMAL "scrape_configs: [{job_name: a}]\nwrite: [{url: \"http://x\"}]\n"

static const struct config_type *type(const struct config_job *j, const char *key)
{
    for (size_t i = 0; i < j->n_types; i++) {
        if (strcmp(j->types[i].key, key) == 0) {
            return &j->types[i];
        }
    }
    fail_msg("no type %s", key);
    return NULL;
}

TEST(missing_keys_have_defaults)
{
    SCOPED(config) *c = parse(MINIMAL);
    CHECK_STR(c->file, "dir/f.yaml", "");
    CHECK_INT(c->global.scrape_interval_ms, 15000, "");
    CHECK_INT(c->global.scrape_timeout_ms, 10000, "");
    CHECK_INT(c->global.delta_state_max_bytes, 256 * 1024 * 1024, "");
    CHECK_INT(c->global.bodies_max_bytes, 256 * 1024 * 1024, "");
    CHECK_INT(c->global.external_labels.n, 0, "");
    CHECK_STR(c->server.listen, "127.0.0.1:4041", "");
    CHECK_INT(c->log.level, LOG_INFO, "");
    CHECK_INT(c->log.format, LOG_LOGFMT, "");
    CHECK_INT(c->n_jobs, 1, "");
    const struct config_job *j = &c->jobs[0];
    CHECK_STR(j->name, "a", "");
    CHECK_STR(j->pos.file, "dir/f.yaml", "");
    CHECK_INT(j->pos.line, 1, "");
    CHECK_INT(j->pos.column, 18, "");
    CHECK_INT(j->interval_ms, 15000, "");
    CHECK_INT(j->timeout_ms, 10000, "");
    CHECK_STR(j->scheme, "http", "");
    CHECK_INT(j->params.n, 0, "");
    CHECK_INT(j->body_size_limit, 16 << 20, "");
    CHECK_INT(j->target_limit, 20000, "");
    CHECK_INT(j->sample_percent, 100, "");
    CHECK_INT(j->sample_max, 0, "");
    CHECK_STR(j->path_prefix, "", "");
    CHECK_INT(j->n_types, 11, "");
    CHECK_INT(j->n_sources, 0, "");
    CHECK_INT(j->relabel.n, 0, "");
    CHECK_INT(j->forward_to, 1, "");
    assert_false(j->allow_foreign_address);
    CHECK_INT(j->http.auth, HTTP_AUTH_NONE, "");
    assert_true(j->http.follow_redirects);
    assert_false(j->http.enable_http2);
    assert_false(j->http.proxy_from_environment);
    CHECK_INT(c->n_endpoints, 1, "");
    const struct config_endpoint *e = &c->endpoints[0];
    CHECK_STR(e->name, "main", "");
    CHECK_STR(e->url, "http://x", "");
    CHECK_STR(e->protocol->name, "push", "");
    CHECK_STR(e->tenant_id, "", "");
    CHECK_INT(e->remote_timeout_ms, 10000, "");
    CHECK_INT(e->min_backoff_ms, 500, "");
    CHECK_INT(e->max_backoff_ms, 300000, "");
    CHECK_INT(e->max_age_ms, 3300000, "");
    assert_true(e->retry_on_429);
    CHECK_INT(e->queue_max_bytes, 128 << 20, "");
    CHECK_INT(e->concurrency, 16, "");
}

/* Names, paths and the types that are enabled, as in Grafana Alloy. */
TEST(built_in_types)
{
    static const struct config_type want[] = {
        {.key = "memory",
         .name = "memory",
         .path = "/debug/pprof/allocs",
         .enabled = true,
         .cumulative = true,
         .delta = DELTA_AUTO},
        {.key = "block",
         .name = "block",
         .path = "/debug/pprof/block",
         .enabled = true,
         .cumulative = true,
         .delta = DELTA_AUTO},
        {.key = "goroutine",
         .name = "goroutine",
         .path = "/debug/pprof/goroutine",
         .enabled = true},
        {.key = "mutex",
         .name = "mutex",
         .path = "/debug/pprof/mutex",
         .enabled = true,
         .cumulative = true,
         .delta = DELTA_AUTO},
        {.key = "process_cpu",
         .name = "process_cpu",
         .path = "/debug/pprof/profile",
         .enabled = true,
         .sampling = true,
         .seconds = 14},
        {.key = "fgprof",
         .name = "fgprof",
         .path = "/debug/fgprof",
         .sampling = true,
         .seconds = 14},
        {.key = "godeltaprof_memory",
         .name = "memory",
         .path = "/debug/pprof/delta_heap",
         .is_delta = true},
        {.key = "godeltaprof_mutex",
         .name = "mutex",
         .path = "/debug/pprof/delta_mutex",
         .is_delta = true},
        {.key = "godeltaprof_block",
         .name = "block",
         .path = "/debug/pprof/delta_block",
         .is_delta = true},
        {.key = "heap",
         .name = "memory",
         .path = "/debug/pprof/heap",
         .cumulative = true,
         .delta = DELTA_AUTO},
        {.key = "threadcreate", .name = "threadcreate", .path = "/debug/pprof/threadcreate"},
    };
    SCOPED(config) *c = parse(MINIMAL);
    CHECK_INT(c->jobs[0].n_types, sizeof(want) / sizeof(want[0]), "");
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        const struct config_type *got = &c->jobs[0].types[i];
        CHECK_STR(got->key, want[i].key, "");
        CHECK_STR(got->name, want[i].name, want[i].key);
        CHECK_STR(got->path, want[i].path, want[i].key);
        CHECK_INT(got->enabled, want[i].enabled, want[i].key);
        CHECK_INT(got->sampling, want[i].sampling, want[i].key);
        CHECK_INT(got->cumulative, want[i].cumulative, want[i].key);
        CHECK_INT(got->is_delta, want[i].is_delta, want[i].key);
        CHECK_INT(got->delta, want[i].delta, want[i].key);
        CHECK_INT(got->seconds, want[i].seconds, want[i].key);
        CHECK_INT(got->interval_ms, 15000, want[i].key);
        CHECK_INT(got->timeout_ms, 10000, want[i].key);
        CHECK_INT(got->params.n, 0, want[i].key);
    }
}

/* The seconds given, or one less than the interval has. Alloy differs: it refuses an interval of
 * 10s without a duration (its default stays 14s), cuts durations to whole seconds (we require
 * them), and cannot distinguish 14s from no duration. */
TEST(seconds_are_given_or_follow_the_interval)
{
    static const struct {
        const char *job; /* keys of the job */
        int want;
    } cases[] = {
        {"", 14},
        {"  scrape_interval: 60s\n", 59},
        {"  scrape_interval: 10s\n", 9},
        {"  scrape_interval: 60s\n  profiles: {process_cpu: {seconds: 20s}}\n", 20},
        {"  scrape_interval: 2s\n", 1},
        {"  scrape_interval: 3500ms\n", 2},
        {"  scrape_interval: 3s\n  profiles: {process_cpu: {seconds: 2s}}\n", 2},
        {"  scrape_interval: 60s\n  profiles: {process_cpu: {seconds: 14s}}\n", 14},
        {"  scrape_interval: 1s\n  profiles: {process_cpu: {interval: 1m}}\n", 59},
        {"  scrape_interval: 1s\n  profiles: {process_cpu: {enabled: false}}\n", 0},
        {"  profiles: {process_cpu: {interval: 1m, seconds: 10s}}\n", 10},
        {"  profiles: {process_cpu: {continuous: true}}\n", 15},
        {"  profiles: {process_cpu: {continuous: true, seconds: 15s}}\n", 15},
        {"  profiles: {process_cpu: {continuous: true, interval: 1500ms}}\n", 1},
        {"  profiles: {process_cpu: {continuous: true, interval: 1m, seconds: 10s}}\n", 10},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];
        snprintf(text, sizeof(text),
                 "write: [{url: \"http://x\"}]\nscrape_configs:\n- job_name: a\n%s", cases[i].job);
        SCOPED(config) *c = parse(text);
        CHECK_INT(type(&c->jobs[0], "process_cpu")->seconds, cases[i].want, cases[i].job);
    }
}

TEST(sampling_of_targets)
{
    SCOPED(config) *c = parse("write: [{url: \"http://x\"}]\nscrape_configs:\n"
                              "- {job_name: a, sampling: {percent: 10}}\n"
                              "- {job_name: b, sampling: {max_per_service: 3}}\n"
                              "- {job_name: c, sampling: {percent: 50, max_per_service: 7}}\n"
                              "- {job_name: d, sampling: {}}\n");
    static const unsigned want[4][2] = {{10, 0}, {100, 3}, {50, 7}, {100, 0}};
    for (size_t i = 0; i < 4; i++) {
        CHECK_INT(c->jobs[i].sample_percent, want[i][0], c->jobs[i].name);
        CHECK_INT(c->jobs[i].sample_max, want[i][1], c->jobs[i].name);
    }
}

/* "a=1 b=2" */
static void check_pairs(const struct config_pairs *pairs, const char *want)
{
    SCOPED(buf) b = testing_buf(4096);
    for (size_t i = 0; i < pairs->n; i++) {
        buf_printf(&b, "%s%s=%s", i == 0 ? "" : " ", pairs->at[i].name, pairs->at[i].value);
    }
    CHECK_STR(b.data, want, "");
}

TEST(params_of_types_override_those_of_jobs)
{
    SCOPED(config) *c = parse("write: [{url: \"http://x\"}]\n"
                              "scrape_configs:\n"
                              "- job_name: a\n"
                              "  params: {debug: [1, 2], gc: 1, none: []}\n"
                              "  profiles:\n"
                              "    memory: {params: {debug: 0, x: ''}}\n"
                              "    block: {params: {}}\n");
    const struct config_job *j = &c->jobs[0];
    check_pairs(&j->params, "debug=1 debug=2 gc=1");
    check_pairs(&type(j, "memory")->params, "gc=1 debug=0 x=");
    check_pairs(&type(j, "block")->params, "debug=1 debug=2 gc=1");
    check_pairs(&type(j, "process_cpu")->params, "debug=1 debug=2 gc=1");
}

TEST(deltas_of_types)
{
    SCOPED(config) *c =
        parse("global: {delta_state_max_bytes: 8MiB, bodies_max_bytes: 9MiB}\n"
              "write: [{url: \"http://x\"}]\n"
              "scrape_configs:\n"
              "- job_name: a\n"
              "  profiles:\n"
              "    memory: {delta: off}\n"
              "    block: {delta: auto}\n"
              "    mutex: {delta: server}\n"
              "    goroutine: {delta: off}\n"
              "    custom:\n"
              "    - {name: threads, path: /t, delta: auto}\n"
              "    - {name: locks, path: /l, delta: server, interval: 30s, seconds: 20s}\n");
    const struct config_job *j = &c->jobs[0];
    CHECK_INT(c->global.delta_state_max_bytes, 8 * 1024 * 1024, "");
    CHECK_INT(c->global.bodies_max_bytes, 9 * 1024 * 1024, "");
    CHECK_INT(type(j, "memory")->delta, DELTA_OFF, "");
    CHECK_INT(type(j, "block")->delta, DELTA_AUTO, "");
    CHECK_INT(type(j, "threads")->delta, DELTA_AUTO, "");
    assert_false(type(j, "threads")->is_delta);
    const struct config_type *t = type(j, "mutex");
    CHECK_INT(t->delta, DELTA_SERVER, "");
    CHECK_INT(t->seconds, 14, "");
    assert_true(t->sampling);
    assert_true(t->is_delta);
    CHECK_INT(type(j, "locks")->seconds, 20, "");
}

TEST(custom_types)
{
    SCOPED(config) *c =
        parse("write: [{url: \"http://x\"}]\n"
              "scrape_configs:\n"
              "- job_name: a\n"
              "  scrape_interval: 20s\n"
              "  profiles:\n"
              "    path_prefix: v1/\n"
              "    custom:\n"
              "    - {name: threads, path: /debug/pprof/threadcreate}\n"
              "    - {name: é off, path: /x, sampling: true, enabled: false, timeout: 3s}\n"
              "    - {name: allocs, path: /y, sampling: true, interval: 1m, seconds: 5s}\n");
    const struct config_job *j = &c->jobs[0];
    CHECK_STR(j->path_prefix, "v1/", "");
    CHECK_INT(j->n_types, 14, "");
    const struct config_type *t = type(j, "threads");
    CHECK_STR(t->name, "threads", "");
    CHECK_STR(t->path, "/debug/pprof/threadcreate", "");
    assert_true(t->enabled);
    assert_false(t->sampling);
    assert_false(t->cumulative);
    CHECK_INT(t->seconds, 0, "");
    CHECK_INT(t->interval_ms, 20000, "");
    t = type(j, "é off");
    assert_false(t->enabled);
    CHECK_INT(t->seconds, 19, "");
    CHECK_INT(t->timeout_ms, 3000, "");
    t = type(j, "allocs");
    CHECK_INT(t->seconds, 5, "");
    CHECK_INT(t->interval_ms, 60000, "");
}

TEST(formats_of_types)
{
    SCOPED(config) *c = parse("write: [{url: \"http://x\", name: a},\n"
                              "        {url: \"http://x\", name: b, protocol: ingest}]\n"
                              "scrape_configs:\n"
                              "- job_name: a\n"
                              "  profiles:\n"
                              "    process_cpu: {seconds: 5s}\n"
                              "    custom:\n"
                              "    - {name: jfr, path: /jfr, format: jfr, sampling: true}\n"
                              "    - {name: other, path: /o, format: pprof}\n");
    const struct config_job *j = &c->jobs[0];
    CHECK_INT(type(j, "jfr")->format, FORMAT_JFR, "");
    CHECK_INT(type(j, "jfr")->delta, DELTA_OFF, "");
    CHECK_INT(type(j, "jfr")->seconds, 14, "");
    assert_false(type(j, "jfr")->seconds_given);
    CHECK_INT(type(j, "other")->format, FORMAT_PPROF, "");
    assert_true(type(j, "process_cpu")->seconds_given);
}

/* An endpoint has the global limits except those that it sets itself. */
TEST(label_limits)
{
    SCOPED(config) *c = parse("global: {label_limits: {max_names: 40, max_value_length: 100}}\n"
                              "write: [{url: \"http://x\", name: a},\n"
                              "        {url: \"http://x\", name: b,\n"
                              "         label_limits: {max_names: 5, max_name_length: 65536}}]\n"
                              "scrape_configs: [{job_name: a}]\n");
    CHECK_INT(c->endpoints[0].label_limits.max_names, 40, "");
    CHECK_INT(c->endpoints[0].label_limits.max_name_length, 1024, "");
    CHECK_INT(c->endpoints[0].label_limits.max_value_length, 100, "");
    CHECK_INT(c->endpoints[1].label_limits.max_names, 5, "");
    CHECK_INT(c->endpoints[1].label_limits.max_name_length, 65536, "");
    CHECK_INT(c->endpoints[1].label_limits.max_value_length, 100, "");
}

TEST(every_key_of_a_job)
{
    SCOPED(config) *c = parse(
        "global: {scrape_interval: 30s, scrape_timeout: 5s, external_labels: {cluster: prod, n: "
        "1}}\n"
        "server: {listen: \"[::1]:0\"}\n"
        "log: {level: debug, format: json}\n"
        "write:\n"
        "- {url: \"http://x\", name: one}\n"
        "- {url: \"http://y\", name: two}\n"
        "- {url: \"http://z\", name: three}\n"
        "scrape_configs:\n"
        "- job_name: pods\n"
        "  scheme: https\n"
        "  body_size_limit: 1MiB\n"
        "  target_limit: 7\n"
        "  allow_foreign_address: true\n"
        "  forward_to: [three, one]\n"
        "  static_configs:\n"
        "  - {targets: [\"127.0.0.1:6060\", \"[::1]:1\"], labels: {service_name: demo, v: 1.5}}\n"
        "  kubernetes_sd_configs:\n"
        "  - role: pod\n"
        "    namespaces: {own_namespace: false, names: [a, b-1]}\n"
        "    selectors: [{role: pod, label: app=x, field: \"spec.nodeName=${NODE_NAME}\"}]\n"
        "    attach_metadata: {node: false, namespace: false}\n"
        "    api_server: https://10.0.0.1:6443/k8s\n"
        "    bearer_token: t\n"
        "  - {role: pod, kubeconfig_file: kube/config}\n"
        "  relabel_configs:\n"
        "  - {action: HashMod, source_labels: [a, b], separator: \"\", modulus: 8,\n"
        "     target_label: __tmp, regex: \"${1}\", replacement: \"$${x}\"}\n"
        "  - {action: keep, regex: 1}\n"
        "- job_name: other\n");
    CHECK_INT(c->global.scrape_interval_ms, 30000, "");
    CHECK_INT(c->global.scrape_timeout_ms, 5000, "");
    check_pairs(&c->global.external_labels, "cluster=prod n=1");
    check_pairs(&c->endpoints[2].external_labels, "cluster=prod n=1");
    CHECK_STR(c->server.listen, "[::1]:0", "");
    CHECK_INT(c->log.level, LOG_DEBUG, "");
    CHECK_INT(c->log.format, LOG_JSON, "");
    CHECK_INT(c->n_jobs, 2, "");
    CHECK_INT(c->jobs[1].forward_to, 7, "all of them");
    CHECK_INT(c->jobs[1].interval_ms, 30000, "");
    const struct config_job *j = &c->jobs[0];
    CHECK_STR(j->scheme, "https", "");
    CHECK_INT(j->body_size_limit, 1 << 20, "");
    CHECK_INT(j->target_limit, 7, "");
    CHECK_INT(j->forward_to, 5, "");
    assert_true(j->allow_foreign_address);
    CHECK_INT(j->n_sources, 3, "");
    CHECK_INT(j->sources[0].kind, SOURCE_STATIC, "");
    CHECK_INT(j->sources[0].pos.line, 16, "");
    CHECK_INT(j->sources[0].fixed.targets.n, 2, "");
    CHECK_STR(j->sources[0].fixed.targets.at[1], "[::1]:1", "");
    check_pairs(&j->sources[0].fixed.labels, "service_name=demo v=1.5");
    CHECK_INT(j->sources[1].kind, SOURCE_KUBERNETES, "");
    const struct config_kubernetes *k = &j->sources[1].kubernetes;
    CHECK_INT(k->role, ROLE_POD, "");
    assert_false(k->own_namespace);
    CHECK_INT(k->namespaces.n, 2, "");
    CHECK_STR(k->namespaces.at[1], "b-1", "");
    CHECK_INT(k->n_selectors, 1, "");
    CHECK_STR(k->selectors[0].label, "app=x", "");
    CHECK_STR(k->selectors[0].field, "spec.nodeName=node-1", "");
    CHECK_STR(k->api_server, "https://10.0.0.1:6443/k8s", "");
    CHECK_INT(k->http.auth, HTTP_AUTH_HEADER, "");
    CHECK_STR(k->http.credentials, "t", "");
    k = &j->sources[2].kubernetes;
    CHECK_STR(k->kubeconfig_file, "dir/kube/config", "");
    assert_null(k->api_server);
    CHECK_INT(j->relabel.n, 2, "");
    const struct config_rule *r = &j->relabel.at[0];
    assert_true(r->has_action);
    CHECK_INT(r->action, ACTION_HASHMOD, "");
    CHECK_INT(r->source_labels.n, 2, "");
    CHECK_STR(r->separator, "", "given and empty");
    assert_true(r->has_modulus);
    CHECK_INT(r->modulus, 8, "");
    CHECK_STR(r->target_label, "__tmp", "");
    CHECK_STR(r->regex, "${1}", "the dollar is the rule's own");
    CHECK_STR(r->replacement, "$${x}", "");
    CHECK_INT(r->pos.line, 26, "");
    CHECK_INT(r->pos.column, 5, "");
    r = &j->relabel.at[1];
    CHECK_STR(r->regex, "1", "a number is taken as text");
    assert_null(r->separator);
    assert_null(r->target_label);
    assert_null(r->replacement);
    assert_false(r->has_modulus);
}

/* The one rule of a job. */
static struct config *parse_rule(const char *rule)
{
    char text[500];
    snprintf(text, sizeof(text),
             "scrape_configs:\n- job_name: a\n  relabel_configs:\n  - {%s}\n"
             "write: [{url: 'http://h'}]\n",
             rule);
    return parse(text);
}

/* Prometheus reads null in a rule as the empty text, not as the default. */
TEST(nulls_in_a_rule)
{
    static const struct {
        const char *rule, *separator, *regex, *target, *replacement;
    } rows[] = {
        {"target_label: x, regex: null", NULL, "", "x", NULL},
        {"target_label: x, regex: ~, replacement: Null", NULL, "", "x", ""},
        {"target_label: x, source_labels: [a, b], separator: null", "", NULL, "x", NULL},
        {"action: labeldrop, regex: a, target_label: null, source_labels: null, modulus: null",
         NULL, "a", "", NULL},
        {"action: labeldrop, regex: null", NULL, "", NULL, NULL},
        {"action: keepequal, target_label: x, source_labels: [a], modulus: null", NULL, NULL, "x",
         NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(config) *c = parse_rule(rows[i].rule);
        const struct config_rule *r = &c->jobs[0].relabel.at[0];
        assert_true(str_same(r->separator, rows[i].separator));
        assert_true(str_same(r->regex, rows[i].regex));
        assert_true(str_same(r->target_label, rows[i].target));
        assert_true(str_same(r->replacement, rows[i].replacement));
        assert_false(r->has_modulus);
        CHECK_INT(r->has_source_labels, r->source_labels.n > 0, rows[i].rule);
    }
    SCOPED(config) *c = parse_rule("action: labeldrop, regex: a, source_labels: []");
    assert_true(c->jobs[0].relabel.at[0].has_source_labels); /* the check refuses it */
}

/* The values are those of yaml.v2, with which Prometheus reads its configuration. */
TEST(spellings_of_whole_numbers)
{
    static const struct {
        const char *text;
        uint64_t value;
    } rows[] = {
        {"8", 8},
        {"010", 8},
        {"08", 8},
        {"089", 89},
        {"0o17", 15},
        {"0x10", 16},
        {"0X1f", 31},
        {"0b11", 3},
        {"1_000", 1000},
        {"0_10", 8},
        {"+8", 8},
        {"18446744073709551615", UINT64_MAX},
        {"01777777777777777777777", UINT64_MAX},
        {"0xffffffffffffffff", UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char rule[200];
        snprintf(rule, sizeof(rule), "action: hashmod, target_label: x, modulus: %s", rows[i].text);
        SCOPED(config) *c = parse_rule(rule);
        CHECK_INT(c->jobs[0].relabel.at[0].modulus, rows[i].value, rows[i].text);
    }
}

TEST(every_key_of_an_endpoint)
{
    SCOPED(config) *c = parse("scrape_configs: [{job_name: a}]\n"
                              "write:\n"
                              "- url: https://x/base\n"
                              "  protocol: ingest\n"
                              "  tenant_id: team-a\n"
                              "  headers: {X-One: 1, X-Two: two}\n"
                              "  remote_timeout: 3s\n"
                              "  retry: {min_backoff: 1s, max_backoff: 1m, max_age: 1h, on_429: "
                              "false}\n"
                              "  queue: {max_bytes: 1GiB}\n"
                              "  concurrency: 256\n"
                              "  basic_auth: {username: u, password_file: secret/p}\n"
                              "  tls_config: {ca: CA, cert_file: /c, key_file: k, server_name: s,\n"
                              "    insecure_skip_verify: true, min_version: TLS13}\n"
                              "  proxy_url: http://u:p@proxy:3128\n"
                              "  no_proxy: a,b\n"
                              "  follow_redirects: false\n"
                              "  enable_http2: false\n"
                              "  http_headers:\n"
                              "    A: plain\n"
                              "    B: {values: [b1, b2], secrets: [b3]}\n"
                              "    C: [c1]\n");
    const struct config_endpoint *e = &c->endpoints[0];
    CHECK_STR(e->url, "https://x/base", "");
    CHECK_STR(e->protocol->name, "ingest", "");
    CHECK_STR(e->tenant_id, "team-a", "");
    check_pairs(&e->headers, "X-One=1 X-Two=two");
    CHECK_INT(e->remote_timeout_ms, 3000, "");
    CHECK_INT(e->min_backoff_ms, 1000, "");
    CHECK_INT(e->max_backoff_ms, 60000, "");
    CHECK_INT(e->max_age_ms, 3600000, "");
    assert_false(e->retry_on_429);
    CHECK_INT(e->queue_max_bytes, 1 << 30, "");
    CHECK_INT(e->concurrency, 256, "");
    const struct http_settings *h = &e->http;
    CHECK_INT(h->auth, HTTP_AUTH_BASIC, "");
    CHECK_STR(h->username, "u", "");
    assert_null(h->password);
    CHECK_STR(h->password_file, "dir/secret/p", "");
    CHECK_STR(h->tls.ca_pem, "CA", "");
    CHECK_STR(h->tls.cert_file, "/c", "");
    CHECK_STR(h->tls.key_file, "dir/k", "");
    CHECK_STR(h->tls.server_name, "s", "");
    assert_true(h->tls.insecure_skip_verify);
    CHECK_INT(h->tls.min_version, HTTP_TLS_1_3, "");
    CHECK_STR(h->proxy_url, "http://u:p@proxy:3128", "");
    CHECK_STR(h->no_proxy, "a,b", "");
    assert_false(h->follow_redirects);
    assert_false(h->enable_http2);
    static const char *const headers[][2] = {
        {"A", "plain"}, {"B", "b1"}, {"B", "b2"}, {"B", "b3"}, {"C", "c1"}};
    CHECK_INT(h->n_headers, 5, "");
    for (size_t i = 0; i < 5; i++) {
        CHECK_STR(h->headers[i].name, headers[i][0], "");
        CHECK_STR(h->headers[i].value, headers[i][1], "");
    }
}

TEST(ways_to_authorize)
{
    static const struct {
        const char *keys, *type, *credentials, *file;
    } cases[] = {
        {"authorization: {credentials: c}", NULL, "c", NULL},
        {"authorization: {type: Token, credentials_file: c}", "Token", NULL, "dir/c"},
        {"bearer_token: c", NULL, "c", NULL},
        {"bearer_token_file: /c", NULL, NULL, "/c"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text),
                 "write: [{url: \"http://x\"}]\nscrape_configs:\n- job_name: a\n  %s\n",
                 cases[i].keys);
        SCOPED(config) *c = parse(text);
        const struct http_settings *h = &c->jobs[0].http;
        CHECK_INT(h->auth, HTTP_AUTH_HEADER, cases[i].keys);
        CHECK_STR(h->auth_type, cases[i].type, cases[i].keys);
        CHECK_STR(h->credentials, cases[i].credentials, cases[i].keys);
        CHECK_STR(h->credentials_file, cases[i].file, cases[i].keys);
    }
}

TEST(environment_variables_are_filled_in)
{
    static const struct text_case cases[] = {
        {"${NODE_NAME}", "node-1"},
        {"a${NODE_NAME}b${NODE_NAME}", "anode-1bnode-1"},
        {"'${NODE_NAME}'", "node-1"},
        {"x${EMPTY}", "x"},
        {"${EMPTY:-default}", "default"},
        {"${NOPE:-de:-fault}", "de:-fault"},
        {"${NOPE:-}", ""},
        {"$NODE_NAME", "$NODE_NAME"},
        {"$${NODE_NAME}", "${NODE_NAME}"},
        {"$$${NODE_NAME}", "$${NODE_NAME}"},
        {"a$", "a$"},
        {"$$", "$$"},
        {"${QUOTE}", "a\"b\n${NODE_NAME}"}, /* values are not expanded again */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256];
        snprintf(text, sizeof(text), "%sglobal:\n  external_labels:\n    a: %s\n", MINIMAL,
                 cases[i].text);
        SCOPED(config) *c = parse(text);
        CHECK_STR(c->global.external_labels.at[0].value, cases[i].want, cases[i].text);
    }
    SCOPED(config) *c = parse("scrape_configs:\n- job_name: a\n  scrape_timeout: ${TEN}\n"
                              "  allow_foreign_address: \"${YES}\"\n  target_limit: '${PORT}'\n"
                              "write: [{url: \"http://x\"}]\n"
                              "server: {listen: \":${PORT}\"}\n");
    CHECK_INT(c->jobs[0].timeout_ms, 10000, "");
    CHECK_INT(c->jobs[0].target_limit, 4041, "filled in, quotes do not make it a string");
    assert_true(c->jobs[0].allow_foreign_address);
    CHECK_STR(c->server.listen, ":4041", "");
}

/* Without an env function the environment of the process is used. */
TEST(real_environment)
{
    setenv("PROFPULL_TEST_CONFIG", "from-env", 1);
    struct config_errors *errors = config_errors_new();
    struct config *c = config_parse("f",
                                    sv_from(MINIMAL "global: {external_labels: {a: \""
                                                    "${PROFPULL_TEST_CONFIG}\"}}\n"),
                                    NULL, errors);
    assert_non_null(c);
    CHECK_STR(c->global.external_labels.at[0].value, "from-env", "");
    config_unref(c);
    config_errors_free(errors);
    unsetenv("PROFPULL_TEST_CONFIG");
}

TEST(anchors_and_merge_keys)
{
    SCOPED(config) *c = parse("write: [{url: \"http://x\"}]\n"
                              "scrape_configs:\n"
                              "- &base\n"
                              "  job_name: a\n"
                              "  scrape_interval: 60s\n"
                              "  relabel_configs: &rules\n"
                              "  - {action: keep, source_labels: [x]}\n"
                              "- <<: *base\n"
                              "  job_name: b\n"
                              "  scrape_timeout: 1s\n"
                              "- {job_name: c, relabel_configs: *rules}\n");
    CHECK_INT(c->n_jobs, 3, "");
    CHECK_STR(c->jobs[1].name, "b", "");
    CHECK_INT(c->jobs[1].interval_ms, 60000, "");
    CHECK_INT(c->jobs[1].timeout_ms, 1000, "");
    CHECK_INT(c->jobs[1].relabel.n, 1, "");
    CHECK_INT(c->jobs[2].interval_ms, 15000, "");
    CHECK_INT(c->jobs[2].relabel.n, 1, "");
}

TEST(command_line)
{
    static const struct {
        const char *text, *url;
        const char *want; /* name=url(protocol) ... */
    } cases[] = {
        {"", "http://n", "main=http://n(push)"},
        {"", "file:///d", "main=file:///d(file)"},
        {"write: [{url: \"http://o\", protocol: ingest}]\n", "http://n", "main=http://n(push)"},
        {"write: [{tenant_id: t}]\n", "http://n", "main=http://n(push)"},
        {"write: [{url: \"http://o\", name: other}]\n", "http://n",
         "other=http://o(push) main=http://n(push)"},
        {"write: [{url: \"http://o\", name: other}, {url: \"http://p\", name: main}]\n", "http://n",
         "other=http://o(push) main=http://n(push)"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];
        snprintf(text, sizeof(text), "scrape_configs: [{job_name: a}]\n%s", cases[i].text);
        SCOPED(config) *c = parse_as(
            "f", text, (struct config_options){.write_url = cases[i].url, .listen = "1.2.3.4:5"});
        CHECK_STR(c->server.listen, "1.2.3.4:5", "");
        SCOPED(buf) b = testing_buf(4096);
        for (size_t e = 0; e < c->n_endpoints; e++) {
            buf_printf(&b, "%s%s=%s(%s)", e == 0 ? "" : " ", c->endpoints[e].name,
                       c->endpoints[e].url, c->endpoints[e].protocol->name);
        }
        CHECK_STR(b.data, cases[i].want, cases[i].text);
        CHECK_INT(c->jobs[0].forward_to, c->n_endpoints == 1 ? 1 : 3, cases[i].text);
    }
}

/* Where all interfaces are the process's own, others may look at it. */
TEST(the_admin_server_listens_where_it_should)
{
    static const struct {
        const char *text;
        struct config_options options;
        const char *want;
    } cases[] = {
        {MINIMAL, {.in_container = false}, "127.0.0.1:4041"},
        {MINIMAL, {.in_container = true}, "0.0.0.0:4041"},
        {MINIMAL "server: {max_connections: 2}\n", {.in_container = true}, "0.0.0.0:4041"},
        {MINIMAL "server: {listen: \"h:1\"}\n", {.in_container = true}, "h:1"},
        {MINIMAL, {.in_container = true, .listen = "h:2"}, "h:2"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(config) *c = parse_as("f", cases[i].text, cases[i].options);
        CHECK_STR(c->server.listen, cases[i].want, cases[i].text);
    }
}

/* At most 64 endpoints; the 65th is refused, even if the command line adds it. */
TEST(endpoint_limit)
{
    SCOPED(buf) b = testing_buf(1 << 16);
    buf_puts(&b, "scrape_configs: [{job_name: a}]\nwrite:\n");
    for (int i = 0; i < CONFIG_ENDPOINTS_MAX; i++) {
        buf_printf(&b, "- {name: e%d, url: \"http://x\"}\n", i);
    }
    struct config *c = parse(b.data);
    CHECK_INT(c->n_endpoints, 64, "");
    assert_true(c->jobs[0].forward_to == UINT64_MAX);
    config_unref(c);
    SCOPED(config_errors) *errors = config_errors_new();
    struct config_options o = {.write_url = "http://x"};
    assert_null(config_parse("f", (struct sv){b.data, b.len}, &o, errors));
    CHECK_STR(config_errors_at(errors, 0)->message,
              "at most 64 endpoints are possible, with that of the command line", "");
    errors = config_errors_free(errors);
    errors = config_errors_new();
    buf_puts(&b, "- {name: one-more, url: \"http://x\"}\n");
    assert_null(config_parse("f", (struct sv){b.data, b.len}, NULL, errors));
    CHECK_INT(config_errors_count(errors), 1, "");
    CHECK_STR(config_errors_at(errors, 0)->message, "at most 64 endpoints are possible", "");
}

TEST(listen_addresses)
{
    static const struct {
        const char *listen;
        bool good;
    } cases[] = {
        {"", true},
        {":4041", true},
        {"0.0.0.0:0", true},
        {"[::]:1", true},
        {"host:65535", true},
        {"4041", false},
        {"host", false},
        {"host:65536", false},
        {"host:x", false},
        {"::1:4041", false},
        {"a b:1", false},
        {"[::1:1", false},
        {"http://x:1", false},
        {"x:-1", false},
        {"[::1]", false},
        {"x:", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(config_errors) *errors = config_errors_new();
        struct config_options o = {.listen = cases[i].listen};
        SCOPED(config) *c = config_parse("f", sv_from(MINIMAL), &o, errors);
        CHECK_INT(c != NULL, cases[i].good, cases[i].listen);
    }
}

TEST(actions_ignore_case)
{
    static const char *const names[] = {"replace",   "keep",      "drop",     "keepequal",
                                        "dropequal", "hashmod",   "labelmap", "labeldrop",
                                        "labelkeep", "lowercase", "uppercase"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        enum config_action a = ACTION_REPLACE;
        assert_true(config_action_parse(sv_from(names[i]), &a));
        CHECK_INT(a, i, names[i]);
        CHECK_STR(config_action_name(a), names[i], "");
    }
    enum config_action a = ACTION_DROP;
    assert_true(config_action_parse(SV("LabelMap"), &a));
    CHECK_INT(a, ACTION_LABELMAP, "");
    assert_false(config_action_parse(SV("kee"), &a));
    assert_false(config_action_parse(SV(""), &a));
    assert_false(config_action_parse(SV("keep "), &a));
}

static void *unref_on_thread(void *arg)
{
    for (int i = 0; i < 1000; i++) {
        config_unref(config_ref(arg));
    }
    config_unref(arg);
    return NULL;
}

TEST(references_are_counted)
{
    struct config *c = parse(MINIMAL);
    pthread_t thread;
    assert_ptr_equal(config_ref(c), c);
    assert_int_equal(pthread_create(&thread, NULL, unref_on_thread, c), 0);
    for (int i = 0; i < 1000; i++) {
        config_unref(config_ref(c));
    }
    pthread_join(thread, NULL);
    CHECK_STR(c->jobs[0].name, "a", "still there");
    assert_null(config_unref(c));
    assert_null(config_unref(NULL));
}

/* ---- files
 * --------------------------------------------------------------------------------------- */

static void check_load_error(const char *path, const char *want)
{
    SCOPED(config_errors) *errors = config_errors_new();
    assert_null(config_load(path, NULL, errors));
    SCOPED(buf) b = testing_buf(4096);
    config_errors_format(errors, &b);
    SCOPED(buf) w = testing_buf(4096);
    buf_printf(&w, "%s: %s\n", path, want);
    CHECK_STR(b.data, w.data, "");
}

TEST(files_are_loaded_by_name)
{
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    char path[512];
    testing_write_file(dir, "good.yaml", MINIMAL "log: {level: warn}\n");
    snprintf(path, sizeof(path), "%s/good.yaml", dir);
    struct config_errors *errors = config_errors_new();
    struct config *c = config_load(path, NULL, errors);
    assert_non_null(c);
    CHECK_INT(c->log.level, LOG_WARN, "");
    CHECK_STR(c->file, path, "");
    config_unref(c);
    config_errors_free(errors);

    snprintf(path, sizeof(path), "%s/missing.yaml", dir);
    check_load_error(path, "cannot open the file: No such file or directory");
    check_load_error(dir, "is a directory");
    snprintf(path, sizeof(path), "%s/big.yaml", dir);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(ftruncate(fileno(f), CONFIG_FILE_MAX + 1), 0);
    fclose(f);
    check_load_error(path, "larger than 4194304 bytes");
    testing_write_file(dir, "locked.yaml", MINIMAL);
    snprintf(path, sizeof(path), "%s/locked.yaml", dir);
    assert_int_equal(chmod(path, 0), 0);
    uid_t uid = geteuid();
    if (uid == 0) { /* root may read everything */
        assert_int_equal(seteuid(65534), 0);
    }
    check_load_error(path, "cannot open the file: Permission denied");
    assert_int_equal(seteuid(uid), 0);
}

TEST(rule_files)
{
    static const struct {
        const char *text;
        int n; /* -1: an error */
        const char *error;
    } cases[] = {
        {"- {action: keep, source_labels: [a]}\n- {action: drop}\n", 2, NULL},
        {"relabel_configs:\n- {action: keep, source_labels: [a]}\n", 1, NULL},
        {"relabel_configs: []\n", 0, NULL},
        {"[]\n", 0, NULL},
        {"rules: []\n", -1, "rules: unknown key"},
        {"rules: []\n", -1, "missing required key \"relabel_configs\""},
        {"a\n", -1,
         "expected a list of rules or a mapping with the key relabel_configs, got a "
         "value"},
        {"", -1, "expected a list of rules or a mapping with the key relabel_configs, got null"},
        {"- {action: kepe}\n", -1, "[0].action: expected \"replace\""},
    };
    SCOPED_DIRECTORY char *dir = testing_mkdtemp();
    char path[512];
    snprintf(path, sizeof(path), "%s/rules.yaml", dir);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        testing_write_file(dir, "rules.yaml", cases[i].text);
        SCOPED(config_errors) *errors = config_errors_new();
        struct config_rules rules = {.n = 99};
        SCOPED(config) *c = config_load_rules(path, NULL, errors, &rules);
        CHECK_INT(c == NULL, cases[i].n < 0, cases[i].text);
        CHECK_INT(rules.n, cases[i].n < 0 ? 99 : cases[i].n, cases[i].text);
        if (c == NULL) {
            SCOPED(buf) b = testing_buf(8192);
            config_errors_format(errors, &b);
            CHECK_CONTAINS(b.data, cases[i].error, cases[i].text);
        }
    }
}

TEST(rule_limit)
{
    SCOPED(buf) b = testing_buf(1 << 16);
    buf_puts(&b, "write: [{url: \"http://x\"}]\nscrape_configs:\n- job_name: a\n"
                 "  relabel_configs:\n");
    for (int i = 0; i < 1000; i++) {
        buf_puts(&b, "  - {action: keep}\n");
    }
    struct config *c = parse(b.data);
    CHECK_INT(c->jobs[0].relabel.n, 1000, "");
    config_unref(c);
    buf_puts(&b, "  - {action: keep}\n");
    SCOPED(config_errors) *errors = config_errors_new();
    assert_null(config_parse("f", (struct sv){b.data, b.len}, NULL, errors));
    CHECK_STR(config_errors_at(errors, 0)->message, "at most 1000 rules are possible, got 1001",
              "");
}

/* Each name of a type is a built-in type, and a value of that type. */
TEST(names_of_types)
{
    const struct config_type_name *row;
    size_t n = 0;
    for (; (row = config_type_name(n)) != NULL; n++) {
        const struct config_builtin_type *t = config_builtin_type_find(sv_from(row->key));
        struct sv sample = config_type_name_sample(row);
        char query[128];
        bool found = false;
        assert_non_null(t);
        for (const struct config_value_type *v = t->values; v->type != NULL; v++) {
            (void)snprintf(query, sizeof(query), "%s:%s:%s", t->type.name, v->type, v->unit);
            found = found || (strcmp(query, row->query) == 0 && sv_eq_str(sample, v->type));
        }
        CHECK_INT(found, true, row->name);
        assert_true(config_type_name_find(sv_from(row->name)) == row);
    }
    assert_true(n > 0);
    assert_null(config_type_name_find(SV("nope")));
}

TEST(pyroscope_means_push)
{
    SCOPED(config) *c = parse("write: [{url: \"http://x\", protocol: pyroscope}]\n"
                              "scrape_configs: [{job_name: a}]\n");
    CHECK_STR(c->endpoints[0].protocol->name, "push", "");
}
