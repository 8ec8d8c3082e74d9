/* Settings that are allowed, but most likely not what was meant. */
#include "tests/unit/lib/testing.h"

#include "config/config.h"
#include "tests/unit/lib/protocols.h"
#include "tests/unit/lib/valid_config.h"

/* All warnings about a text without errors, a line each. */
static void check_warnings(const char *text, const char *want)
{
    SCOPED(config_errors) *errors = config_errors_new();
    SCOPED(config_errors) *warnings = config_errors_new();
    SCOPED(config_errors) *notes = config_errors_new();
    const struct config_options options = {
        .protocols = testing_protocols, .warnings = warnings, .notes = notes};
    SCOPED(config) *c = config_parse("f", sv_from(text), &options, errors);
    SCOPED(buf) got = testing_buf(1 << 16);
    config_errors_format(errors, &got);
    CHECK_STR(got.data, "", text);
    config_errors_format(warnings, &got);
    CHECK_STR(got.data, want, text);
}

#define WRITE "write: [{url: \"http://x\"}]\n"
/* The rest of a job with a static target from line 4, or with pods. */
#define JOB(x) "scrape_configs:\n- job_name: a\n  static_configs: [{targets: [\"h:1\"]}]\n" x WRITE
#define PODS(x) "scrape_configs:\n- job_name: a\n  kubernetes_sd_configs: [{role: pod}]\n" x WRITE

TEST(test_nothing_to_say)
{
    check_warnings(JOB(""), "");
    check_warnings(PODS(""), "");
    check_warnings(WRITE, ""); /* the built-in jobs */
    /* A store that nothing is forwarded to can be queried. */
    check_warnings("scrape_configs: []\nwrite: [{url: \"store:///d\"}]\n", "");
}

TEST(test_jobs_that_scrape_nothing)
{
    static const char all_off[] =
        "  profiles: {memory: {enabled: false}, block: {enabled: false}, goroutine: {enabled: "
        "false}, mutex: {enabled: false}, process_cpu: {enabled: false}}\n";
    char text[1024];
    check_warnings("scrape_configs: [{job_name: a}]\n" WRITE,
                   "f:1:18: the job \"a\" scrapes nothing: it has no source of targets\n");
    snprintf(text, sizeof(text), JOB("%s"), all_off);
    check_warnings(text, "f:2:3: the job \"a\" scrapes nothing: no type is enabled\n");
    snprintf(text, sizeof(text),
             JOB("%s  relabel_configs: [{target_label: __profile_memory_enabled__, replacement: "
                 "\"true\"}]\n"),
             all_off);
    check_warnings(text, "");
}

TEST(test_addresses)
{
    check_warnings("scrape_configs:\n- job_name: a\n"
                   "  static_configs: [{targets: [\"h\", \"h:70000\"]}]\n" WRITE,
                   "f:3:20: the target \"h:70000\" of the job \"a\" is refused: expected a port "
                   "within 1-65535, got \"h:70000\"\n");
    /* A rule may make an address of it. */
    check_warnings("scrape_configs:\n- job_name: a\n"
                   "  static_configs: [{targets: [\"h:70000\"]}]\n"
                   "  relabel_configs: [{target_label: __address__, replacement: \"h:1\"}]\n" WRITE,
                   "");
}

TEST(test_types_of_one_series)
{
    check_warnings(JOB("  profiles: {godeltaprof_memory: {enabled: true}}\n"),
                   "f:2:3: the types \"memory\" and \"godeltaprof_memory\" of the job \"a\" write "
                   "the same series, \"memory\"\n");
}

TEST(test_timeouts)
{
    check_warnings(JOB("  scrape_interval: 20s\n  scrape_timeout: 30s\n"
                       "  profiles: {block: {enabled: false}, mutex: {enabled: false}, goroutine: "
                       "{enabled: false}}\n"),
                   "f:2:3: the type \"memory\" of the job \"a\" may take longer than its interval: "
                   "a scrape that is slow skips the next one\n");
    check_warnings(JOB("  scrape_interval: 5s\n"), "");
}

TEST(test_labels_that_nobody_has)
{
#define READS(label) "  relabel_configs: [{source_labels: [" label "], action: keep, regex: x}]\n"
#define NEVER(label)                                                                               \
    "f:4:21: this rule reads " label ", which no source of the job \"a\" has: it is always "       \
    "empty\n"
    check_warnings(PODS(READS("__meta_kubernetes_pod_name")), "");
    check_warnings(PODS(READS("__meta_kubernetes_namespace")), "");
    check_warnings(PODS(READS("__meta_kubernetes_service_name")),
                   NEVER("__meta_kubernetes_service_name"));
    check_warnings(PODS(READS("__meta_kubernetes_node_label_zone")),
                   NEVER("__meta_kubernetes_node_label_zone"));
    check_warnings(PODS(READS("__meta_filepath")), NEVER("__meta_filepath"));
    check_warnings(JOB(READS("__meta_kubernetes_pod_name")), NEVER("__meta_kubernetes_pod_name"));
    check_warnings(JOB(READS("other")), "");
    /* Lists of others may hold any label. */
    check_warnings("scrape_configs:\n- job_name: a\n  file_sd_configs: [{files: [x.yaml]}]\n" READS(
                       "__meta_kubernetes_pod_name") WRITE,
                   "");
    check_warnings("scrape_configs:\n- job_name: a\n"
                   "  kubernetes_sd_configs: [{role: pod, attach_metadata: {node: true}}]\n" READS(
                       "__meta_kubernetes_node_label_zone") WRITE,
                   "");
    check_warnings(PODS("  relabel_configs:\n"
                        "  - {target_label: __meta_own, replacement: x}\n"
                        "  - {source_labels: [__meta_own], action: keep, regex: x}\n"),
                   "");
}

TEST(test_endpoints_that_get_nothing)
{
    check_warnings("scrape_configs:\n- job_name: a\n  static_configs: [{targets: [\"h:1\"]}]\n"
                   "  forward_to: [one]\n"
                   "write: [{name: one, url: \"http://x\"}, {name: two, url: \"http://y\"}]\n",
                   "f:5:39: nothing is forwarded to the endpoint \"two\"\n");
    check_warnings("scrape_configs:\n- job_name: a\n  static_configs: [{targets: [\"h:1\"]}]\n"
                   "  forward_to: [one]\n"
                   "write: [{name: one, url: \"http://x\"}, {name: two, url: \"http://y\"}]\n"
                   "receive: {listen: \"127.0.0.1:4040\", forward_to: [two]}\n",
                   "");
}
