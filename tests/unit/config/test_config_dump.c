/* The normalised configuration: golden text, loads again to the same, holds no secret. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "config/config.h"
#include "tests/unit/lib/protocols.h"
#include "tests/unit/lib/valid_config.h"

static const char *env(void *arg, const char *name)
{
    (void)arg;
    return strcmp(name, "TOKEN") == 0 ? "hunter2" : NULL;
}

/* The dump of a text, which the caller frees. */
static char *dump(const char *text)
{
    struct config_options o = {.env = env, .protocols = testing_protocols};
    SCOPED(config) *c = valid_config("f", text, &o);
    struct buf b = testing_buf(1 << 20);
    assert_true(config_dump(c, &b));
    return buf_take(&b, NULL);
}

#define TYPE(name, on, path, rest)                                                                 \
    "    " name ":\n      enabled: " on "\n      path: \"" path "\"\n"                             \
    "      interval: 15s\n      timeout: 10s\n" rest
#define DELTA(how) "      delta: " how "\n"
#define SECONDS "      seconds: 14s\n"

static const char minimal_dump[] = "global:\n"
                                   "  scrape_interval: 15s\n"
                                   "  scrape_timeout: 10s\n"
                                   "  delta_state_max_bytes: 256MiB\n"
                                   "  bodies_max_bytes: 256MiB\n"
                                   "  mask_all_params: false\n"
                                   "  label_limits:\n"
                                   "    max_names: 24\n"
                                   "    max_name_length: 1024\n"
                                   "    max_value_length: 2048\n"
                                   "server:\n"
                                   "  listen: \"127.0.0.1:4041\"\n"
                                   "  max_connections: 64\n"
                                   "  max_connections_per_address: 16\n"
                                   "  max_streams: 256\n"
                                   "  max_streams_per_connection: 100\n"
                                   "  request_timeout: 10s\n"
                                   "  answer_timeout: 1m\n"
                                   "  idle_timeout: 1m\n"
                                   "query:\n"
                                   "  listen: \"\"\n"
                                   "  max_connections: 256\n"
                                   "  max_connections_per_address: 64\n"
                                   "  max_streams: 1024\n"
                                   "  max_streams_per_connection: 100\n"
                                   "  request_timeout: 10s\n"
                                   "  answer_timeout: 1m\n"
                                   "  idle_timeout: 1m\n"
                                   "  max_waiting: 64\n"
                                   "  timeout: 30s\n"
                                   "  max_bytes: 256MiB\n"
                                   "  max_body_size: 4MiB\n"
                                   "  bodies_max_bytes: 64MiB\n"
                                   "  concurrency: 2\n"
                                   "  threads: 4\n"
                                   "log:\n"
                                   "  level: info\n"
                                   "  format: logfmt\n"
                                   "scrape_configs:\n"
                                   "- job_name: \"a\"\n"
                                   "  scrape_interval: 15s\n"
                                   "  scrape_timeout: 10s\n"
                                   "  scheme: http\n"
                                   "  body_size_limit: 16MiB\n"
                                   "  delta_compression: fast\n"
                                   "  target_limit: 20000\n"
                                   "  pod_scrape_limit: 256\n"
                                   "  profiles:\n"
                                   "    path_prefix: \"\"\n"                     /* */
    TYPE("memory", "true", "/debug/pprof/allocs", DELTA("auto"))                 /* */
    TYPE("block", "true", "/debug/pprof/block", DELTA("auto"))                   /* */
    TYPE("goroutine", "true", "/debug/pprof/goroutine", DELTA("off"))            /* */
    TYPE("mutex", "true", "/debug/pprof/mutex", DELTA("auto"))                   /* */
    TYPE("process_cpu", "true", "/debug/pprof/profile", SECONDS DELTA("off"))    /* */
    TYPE("fgprof", "false", "/debug/fgprof", SECONDS DELTA("off"))               /* */
    TYPE("godeltaprof_memory", "false", "/debug/pprof/delta_heap", DELTA("off")) /* */
    TYPE("godeltaprof_mutex", "false", "/debug/pprof/delta_mutex", DELTA("off")) /* */
    TYPE("godeltaprof_block", "false", "/debug/pprof/delta_block", DELTA("off")) /* */
    TYPE("heap", "false", "/debug/pprof/heap", DELTA("auto"))                    /* */
    TYPE("threadcreate", "false", "/debug/pprof/threadcreate", DELTA("off"))     /* */
    "  forward_to: [\"main\"]\n"
    "  allow_foreign_address: false\n"
    "  allow_special_address: false\n"
    "  allow_host_network: true\n"
    "  allow_plain_credentials: false\n"
    "write:\n"
    "- name: \"main\"\n"
    "  url: \"http://x\"\n"
    "  protocol: push\n"
    "  tenant_id: \"\"\n"
    "  remote_timeout: 10s\n"
    "  retry:\n"
    "    min_backoff: 500ms\n"
    "    max_backoff: 5m\n"
    "    max_age: 55m\n"
    "    on_429: true\n"
    "  queue:\n"
    "    max_bytes: 128MiB\n"
    "  concurrency: 16\n"
    "  sample_labels:\n"
    "    max_names: 6\n"
    "    repair: true\n"
    "  label_limits:\n"
    "    max_names: 24\n"
    "    max_name_length: 1024\n"
    "    max_value_length: 2048\n";

TEST(a_minimal_configuration_is_dumped_with_all_defaults)
{
    SCOPED_MEMORY char *got =
        dump("scrape_configs: [{job_name: a}]\nwrite: [{url: \"http://x\"}]\n");
    CHECK_STR(got, minimal_dump, "");
    SCOPED_MEMORY char *again = dump(got);
    CHECK_STR(again, got, "");
}

/* Everything that the minimal one lacks, and texts that are hard to write. */
static const char full[] =
    "global: {scrape_interval: 90s, external_labels: {cluster: prod, q: \"a\\\"b\\\\c\\n\\t\"}}\n"
    "server: {listen: '', max_connections: 100, max_connections_per_address: 7,\n"
    "         request_timeout: 2s, answer_timeout: 90s, bearer_token: hunter2}\n"
    "query: {listen: ':1', path_prefix: /p, idle_timeout: 5s,\n"
    "        basic_auth: {username: u, password: hunter2},\n"
    "        tls: {cert_file: /c, key_file: /k, client_ca_file: /a}}\n"
    "receive: {listen: ':2', allow_unauthenticated: true, concurrency: 7}\n"
    "record:\n"
    "  max_rules: 7\n"
    "  rules:\n"
    "  - {metric_name: profiles_recorded_x, group_by: [a], function: main.main,\n"
    "     external_labels: {b: c}, matchers: ['{__profile_type__=\"a:b:c::\",d=~\"e$\"}']}\n"
    "log: {level: error, format: json}\n"
    "scrape_configs:\n"
    "- job_name: 'it''s $${not} a variable'\n"
    "  scheme: https\n"
    "  params: {debug: [1, 2], gc: 1}\n"
    "  body_size_limit: 1500B\n"
    "  delta_compression: none\n"
    "  sampling: {percent: 10, max_per_service: 3}\n"
    "  profiles:\n"
    "    path_prefix: /x\n"
    "    memory: {params: {debug: 0}}\n"
    "    mutex: {delta: server}\n"
    "    custom: [{name: 'a \u00e9 \\ \U0001f600', path: /c, sampling: true, seconds: 5s, "
    "continuous: true},\n"
    "      {name: locks, path: /l, delta: server}]\n"
    "  static_configs:\n"
    "  - {targets: [a, b], labels: {\"x\\u2028y\": \"\\x7f\\u0085\\ufeff\\uffff\", n: ''}}\n"
    "  - {targets: []}\n"
    "  http_sd_configs:\n"
    "  - {url: 'http://sd/list?token=hunter2', bearer_token: hunter2}\n"
    "  file_sd_configs: [{files: [/t/*.yml, b.json], refresh_interval: 90s}]\n"
    "  kubernetes_sd_configs:\n"
    "  - {role: pod, namespaces: {own_namespace: true}}\n"
    "  - role: pod\n"
    "    namespaces: {names: [a]}\n"
    "    selectors: [{role: pod, label: app=x}]\n"
    "    attach_metadata: {namespace: true}\n"
    "    api_server: https://k:6443\n"
    "    bearer_token: ${TOKEN}\n"
    "    tls_config: {ca_file: /ca, insecure_skip_verify: true, min_version: TLS11}\n"
    "  - {role: pod, kubeconfig_file: kube}\n"
    "  relabel_configs:\n"
    "  - {source_labels: [a, b], separator: '', regex: '(${x}.*)$${y}', target_label: c,\n"
    "     replacement: '${1}'}\n"
    "  - {action: Hashmod, modulus: 18446744073709551615, target_label: h}\n"
    "  - {action: drop, enabled: false}\n"
    "  - {action: labeldrop, regex: on, enabled: true}\n"
    "  profile_relabel_configs:\n"
    "  - {action: labeldrop, regex: 'pod_.*'}\n"
    "  forward_to: [two, one]\n"
    "  allow_foreign_address: true\n"
    "  allow_special_address: false\n"
    "  allow_host_network: true\n"
    "  allow_plain_credentials: false\n"
    "  basic_auth: {username: u, password: hunter2}\n"
    "  enable_http2: true\n"
    "write:\n"
    "- url: http://x\n"
    "  name: one\n"
    "  tenant_id: t\n"
    "  headers: {X-Token: hunter2, X-B: hunter2}\n"
    "  authorization: {type: Token, credentials: hunter2}\n"
    "  proxy_url: http://u:hunter2@p:1\n"
    "  no_proxy: a\n"
    "  http_headers: {A: {values: [hunter2, b], secrets: [hunter2]}, B: hunter2}\n"
    "- url: file:///d\n"
    "  name: two\n"
    "  retry: {min_backoff: 1s, on_429: false}\n"
    "- url: https://y\n"
    "  name: three\n"
    "  protocol: ingest\n"
    "  tls_config: {cert: CERT, key: hunter2, server_name: s}\n"
    "  basic_auth: {username: u, password_file: /p}\n"
    "  proxy_from_environment: true\n"
    "  follow_redirects: false\n"
    "  enable_http2: false\n"
    "- {url: 'http://z', name: four, protocol: otlp, otlp: {max_request_size: 1MiB, compression: "
    "none,"
    "   original_payload: true, resource_attributes: {job: '', team: team.name}}, "
    "sample_labels: {drop: [a], keep: [b, c], rename: {b: d}, max_names: 3, repair: false}}\n"
    "- {url: 's3://bucket/a', name: five, s3: {endpoint: 'https://r2', access_key_id: A, "
    "secret_access_key: hunter2, session_token: hunter2}}\n";

TEST(every_key_is_dumped_and_no_secret)
{
    SCOPED_MEMORY char *got = dump(full);
    assert_null(strstr(got, "hunter2"));
    static const char *const parts[] = {
        "  scrape_interval: 1m30s\n"
        "  scrape_timeout: 10s\n"
        "  external_labels:\n"
        "    \"cluster\": \"prod\"\n"
        "    \"q\": \"a\\\"b\\\\c\\n\\t\"\n",
        "server:\n"
        "  listen: \"\"\n"
        "  max_connections: 100\n"
        "  max_connections_per_address: 7\n"
        "  max_streams: 256\n"
        "  max_streams_per_connection: 100\n"
        "  request_timeout: 2s\n"
        "  answer_timeout: 1m30s\n"
        "  idle_timeout: 1m\n"
        "  authorization:\n"
        "    type: \"Bearer\"\n"
        "    credentials: \"<secret>\"\n"
        "query:\n"
        "  listen: \":1\"\n"
        "  path_prefix: \"/p\"\n",
        "  idle_timeout: 5s\n"
        "  tls:\n"
        "    cert_file: \"/c\"\n"
        "    key_file: \"/k\"\n"
        "    client_ca_file: \"/a\"\n"
        "  basic_auth:\n"
        "    username: \"u\"\n"
        "    password: \"<secret>\"\n"
        "  max_waiting: 64\n",
        "record:\n"
        "  max_rules: 7\n"
        "  max_series: 1000\n"
        "  stale_after: 5m\n"
        "  rules:\n"
        "  - metric_name: \"profiles_recorded_x\"\n"
        "    matchers: [\"{__profile_type__=\\\"a:b:c::\\\",d=~\\\"e$\\\"}\"]\n"
        "    group_by: [\"a\"]\n"
        "    external_labels:\n"
        "      \"b\": \"c\"\n"
        "    function: \"main.main\"\n",
        "receive:\n"
        "  listen: \":2\"\n"
        "  allow_unauthenticated: true\n",
        "  concurrency: 7\n"
        "  acknowledge: queued\n"
        "  max_profile_size: 32MiB\n",
        "log:\n"
        "  level: error\n"
        "  format: json\n",
        "- job_name: \"it's $${not} a variable\"\n",
        "  scheme: https\n"
        "  params:\n"
        "    \"debug\": [\"1\", \"2\"]\n"
        "    \"gc\": [\"1\"]\n"
        "  body_size_limit: 1500B\n"
        "  delta_compression: none\n",
        "      params:\n"
        "        \"gc\": [\"1\"]\n"
        "        \"debug\": [\"0\"]\n"
        "      delta: auto\n"
        "    block:\n",
        "      seconds: 1m29s\n"
        "      params:\n"
        "        \"debug\": [\"1\", \"2\"]\n"
        "        \"gc\": [\"1\"]\n"
        "      delta: server\n"
        "    process_cpu:\n",
        "    custom:\n"
        "    - name: \"a é \\\\ \\U0001F600\"\n"
        "      sampling: true\n"
        "      format: pprof\n"
        "      enabled: true\n"
        "      path: \"/c\"\n"
        "      interval: 1m30s\n"
        "      timeout: 10s\n"
        "      seconds: 5s\n"
        "      continuous: true\n",
        "  sampling:\n"
        "    percent: 10\n"
        "    max_per_service: 3\n",
        "    - name: \"locks\"\n"
        "      sampling: false\n",
        "  delta_state_max_bytes: 256MiB\n"
        "  bodies_max_bytes: 256MiB\n"
        "  mask_all_params: false\n",
        "  - targets: [\"a\", \"b\"]\n"
        "    labels:\n"
        "      ? \"x\\Ly\"\n"
        "      : \"\\x7F\\N\\uFEFF\\uFFFF\"\n"
        "      \"n\": \"\"\n"
        "  - targets: []\n"
        "  file_sd_configs:\n"
        "  - files: [\"/t/*.yml\", \"b.json\"]\n"
        "    refresh_interval: 1m30s\n"
        "  http_sd_configs:\n"
        "  - url: \"http://sd/list?<secret>\"\n"
        "    refresh_interval: 1m\n"
        "    authorization:\n"
        "      type: \"Bearer\"\n"
        "      credentials: \"<secret>\"\n"
        "  kubernetes_sd_configs:\n",
        "  - role: \"pod\"\n"
        "    namespaces:\n"
        "      own_namespace: true\n"
        "      names: []\n",
        "    selectors:\n"
        "    - role: \"pod\"\n"
        "      label: \"app=x\"\n"
        "      field: \"\"\n"
        "    attach_metadata:\n"
        "      node: false\n"
        "      namespace: true\n"
        "    api_server: \"https://k:6443\"\n"
        "    authorization:\n"
        "      type: \"Bearer\"\n"
        "      credentials: \"<secret>\"\n"
        "    tls_config:\n"
        "      ca_file: \"/ca\"\n"
        "      insecure_skip_verify: true\n"
        "      min_version: TLS11\n",
        "    kubeconfig_file: \"kube\"\n",
        "  - action: replace\n"
        "    source_labels: [\"a\", \"b\"]\n"
        "    separator: \"\"\n"
        "    regex: \"(${x}.*)$${y}\"\n"
        "    target_label: \"c\"\n"
        "    replacement: \"${1}\"\n"
        "  - action: hashmod\n"
        "    modulus: 18446744073709551615\n"
        "    target_label: \"h\"\n"
        "  - action: drop\n"
        "    enabled: false\n"
        "  - action: labeldrop\n"
        "    regex: \"on\"\n",
        "  profile_relabel_configs:\n"
        "  - action: labeldrop\n"
        "    regex: \"pod_.*\"\n"
        "  forward_to: [\"one\", \"two\"]\n"
        "  allow_foreign_address: true\n"
        "  allow_special_address: false\n"
        "  allow_host_network: true\n"
        "  allow_plain_credentials: false\n"
        "  basic_auth:\n"
        "    username: \"u\"\n"
        "    password: \"<secret>\"\n",
        "  headers:\n"
        "    \"X-Token\": \"<secret>\"\n"
        "    \"X-B\": \"<secret>\"\n",
        "  authorization:\n"
        "    type: \"Token\"\n"
        "    credentials: \"<secret>\"\n"
        "  proxy_url: \"http://<secret>@p:1\"\n"
        "  no_proxy: \"a\"\n"
        "  http_headers:\n"
        "    \"A\": [\"<secret>\", \"<secret>\", \"<secret>\"]\n"
        "    \"B\": [\"<secret>\"]\n",
        "  url: \"file:///d\"\n"
        "  protocol: file\n",
        "  tls_config:\n"
        "    cert: \"CERT\"\n"
        "    key: \"<secret>\"\n"
        "    server_name: \"s\"\n"
        "  proxy_from_environment: true\n"
        "  follow_redirects: false\n"
        "  enable_http2: false\n",
        "  enable_http2: true\n",
        "  protocol: otlp\n",
        "  otlp:\n"
        "    max_request_size: 1MiB\n"
        "    compression: none\n"
        "    original_payload: true\n"
        "    resource_attributes:\n"
        "      \"job\": \"\"\n"
        "      \"team\": \"team.name\"\n"
        "  concurrency: 128\n"
        "  sample_labels:\n"
        "    drop: [\"a\"]\n"
        "    keep: [\"b\", \"c\"]\n"
        "    rename:\n"
        "      \"b\": \"d\"\n"
        "    max_names: 3\n"
        "    repair: false\n",
        "  protocol: s3\n",
        "  s3:\n"
        "    region: \"us-east-1\"\n"
        "    endpoint: \"https://r2\"\n"
        "    path_style: true\n"
        "    access_key_id: \"A\"\n"
        "    secret_access_key: \"<secret>\"\n"
        "    session_token: \"<secret>\"\n",
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        CHECK_CONTAINS(got, parts[i], "");
    }
    SCOPED_MEMORY char *again = dump(got);
    CHECK_STR(again, got, "the dump of the dump");
}

/* The values are the same too, not only the text of their dump. */
TEST(a_dump_loads_to_the_same_values)
{
    SCOPED_MEMORY char *first = dump(full);
    SCOPED(config_errors) *errors = config_errors_new();
    struct config_options options = {.env = env, .protocols = testing_protocols};
    SCOPED(config) *a = config_parse("f", sv_from(full), &options, errors);
    options.env = NULL;
    SCOPED(config) *b = config_parse("f", sv_from(first), &options, errors);
    assert_non_null(a);
    assert_non_null(b);
    CHECK_STR(b->jobs[0].name, a->jobs[0].name, "");
    CHECK_STR(a->jobs[0].name, "it's ${not} a variable", "");
    const struct config_pairs *labels = &b->jobs[0].sources[0].fixed.labels;
    CHECK_STR(labels->at[0].name, "x\u2028y", "");
    CHECK_STR(labels->at[0].value, "\x7f\xc2\x85\xef\xbb\xbf\xef\xbf\xbf", "");
    CHECK_STR(b->global.external_labels.at[1].value, "a\"b\\c\n\t", "");
    CHECK_STR(b->jobs[0].relabel.at[0].regex, "(${x}.*)$${y}", "");
}

/* Without the key, the dump would get the built-in jobs where there is a cluster. */
TEST(an_empty_list_of_jobs_is_dumped)
{
    SCOPED_MEMORY char *got = dump("scrape_configs: []\nwrite: [{url: \"store:///d\"}]\n");
    CHECK_CONTAINS(got, "\nscrape_configs: []\n", "");
}

/* The job that discovers targets for receive.enrich is shown there, and is no other job. */
TEST(the_job_of_enrich_is_a_part_of_receive)
{
    SCOPED_MEMORY char *got =
        dump("receive:\n  listen: '127.0.0.1:1'\n  enrich: {target_match_label: a, "
             "static_configs: [{targets: [h]}]}\n"
             "scrape_configs: [{job_name: j}]\nwrite: [{url: \"http://x\"}]\n");
    CHECK_CONTAINS(got,
                   "  enrich:\n    target_match_label: \"a\"\n"
                   "    profiles_match_label: \"a\"\n",
                   "");
    assert_null(strstr(got, "receive.enrich"));
    SCOPED_MEMORY char *again = dump(got);
    CHECK_STR(again, got, "the dump of the dump");
}

TEST(a_full_buffer_fails_the_dump)
{
    SCOPED(config_errors) *errors = config_errors_new();
    struct config_options options = {.protocols = testing_protocols};
    SCOPED(config) *c =
        config_parse("f", SV("scrape_configs: [{job_name: a}]\nwrite: [{url: \"http://u\"}]\n"),
                     &options, errors);
    assert_non_null(c);
    for (size_t max = 0; max < sizeof(minimal_dump) - 1; max += 7) {
        SCOPED(buf) b = testing_buf(max);
        assert_false(config_dump(c, &b));
    }
}
