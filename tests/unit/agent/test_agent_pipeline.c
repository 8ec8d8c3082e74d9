/* From groups of discovered label sets to targets: what is refused, and under which name. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "agent/pipeline.h"
#include "tests/unit/lib/valid_config.h"

#define SETS_MAX 1024

struct fixture {
    struct intern *intern;
    struct metrics *metrics;
    struct testing_log *log;
    struct labels_builder *b;
    struct config *config;
    struct pipeline *pipeline;
    struct labels *sets[SETS_MAX];
    size_t n_sets;
    size_t n_targets, n_scrapes;
    char error[1024]; /* of the last label set that was refused */
};

static void on_verdict(void *arg, const struct pipeline_verdict *v)
{
    struct fixture *f = arg;
    if (v->target != NULL) {
        f->n_targets++;
        f->n_scrapes += target_scrape_count(v->target);
    }
    if (v->err != NULL) {
        snprintf(f->error, sizeof(f->error), "%s", v->err->msg);
    }
}

/* A job with these further keys. */
static void load(struct fixture *f, const char *job)
{
    struct config_options options = {.write_url = "http://x:1"};
    struct err err = ERR_INIT;
    SCOPED(buf) text = testing_buf(64 * 1024);
    buf_printf(&text, "scrape_configs:\n- job_name: a\n%s", job);
    f->config = valid_config("f", text.data, &options);
    const struct pipeline_options pipeline = {
        .config = f->config,
        .intern = f->intern,
        .log = testing_log(f->log),
        .metrics = f->metrics,
        .on_verdict = on_verdict,
        .arg = f,
    };
    f->pipeline = pipeline_new(&pipeline, &err);
    CHECK_STR(err.msg, "", "pipeline");
}

static void fixture_begin(struct fixture *f)
{
    f->intern = intern_new();
    f->metrics = metrics_new();
    f->log = testing_log_new();
    f->b = labels_builder_new(f->intern);
}

static void forget(struct fixture *f)
{
    for (size_t i = 0; i < f->n_sets; i++) {
        labels_unref(f->sets[i]);
    }
    f->n_sets = 0;
    f->n_targets = 0;
    f->n_scrapes = 0;
    f->error[0] = '\0';
}

static void fixture_end(struct fixture *f)
{
    forget(f);
    pipeline_free(f->pipeline);
    config_unref(f->config);
    labels_builder_free(f->b);
    metrics_free(f->metrics);
    intern_free(f->intern);
    testing_log_done(f->log);
}

FIXTURE(fixture, fixture_begin, fixture_end)

/* One more label set: pairs of names and values, ended by NULL. */
static void add(struct fixture *f, const char *const *pairs)
{
    assert_true(f->n_sets < SETS_MAX);
    labels_builder_reset(f->b, NULL);
    for (size_t i = 0; pairs[i] != NULL; i += 2) {
        labels_builder_set_str(f->b, pairs[i], pairs[i + 1]);
    }
    f->sets[f->n_sets] = labels_builder_build(f->b);
    assert_non_null(f->sets[f->n_sets++]);
}
#define ADD(f, ...) add((f), (const char *const[]){__VA_ARGS__, NULL})

static void run(struct fixture *f, enum target_group_kind kind, const char *source,
                const char *host)
{
    const struct target_group group = {.source = source,
                                       .kind = kind,
                                       .targets = f->sets,
                                       .n_targets = f->n_sets,
                                       .pinned_host = host};
    pipeline_group(f->pipeline, &group);
}

static void add_ports(struct fixture *f, const char *host, int n)
{
    for (int i = 0; i < n; i++) {
        char address[64];
        snprintf(address, sizeof(address), "%s:%d", host, i + 1);
        ADD(f, "__address__", address);
    }
}

/* A pod with 512 ports gets as many scrapes as the limit allows, and one line in the log. */
TEST_ON(struct fixture *f, pod_scrape_limit)
{
    load(f, "  pod_scrape_limit: 12\n");
    testing_log_expect(f->log, "target refused");
    add_ports(f, "10.1.2.3", 512);
    run(f, GROUP_POD, "pod/shop/greedy", "10.1.2.3");
    CHECK_INT(f->n_scrapes, 10, "two targets with five types each");
    CHECK_STR(f->error,
              "with its 5 scrapes at 10.1.2.3:512 the pod would have 15, more than the "
              "pod_scrape_limit of 12",
              "error");
    const char *text = testing_log_text(f->log);
    CHECK_CONTAINS(text, "source=pod/shop/greedy", "the pod");
    CHECK_CONTAINS(text, "pod_scrape_limit of 12", "the limit");
    assert_null(strstr(strstr(text, "target refused") + 1, "target refused"));
    CHECK_INT(testing_metric(f->metrics,
                             "profpull_relabel_targets_total{job=\"a\",outcome=\"pod_limit\"}"),
              510, "counted");

    /* The next pod, and the same one again, begin with nothing. */
    forget(f);
    add_ports(f, "10.1.2.4", 2);
    run(f, GROUP_POD, "pod/shop/modest", "10.1.2.4");
    CHECK_INT(f->n_scrapes, 10, "another pod");
}

/* Each host of an object with many hosts counts for itself; lists of the operator have no limit. */
TEST_ON(struct fixture *f, limit_of_other_objects)
{
    load(f, "  pod_scrape_limit: 12\n");
    testing_log_expect(f->log, "target refused");
    add_ports(f, "10.1.2.3", 3);
    add_ports(f, "10.1.2.4", 3);
    run(f, GROUP_OBJECT, "endpointslice/shop/web-1", NULL);
    CHECK_INT(f->n_scrapes, 20, "two targets of each host");
    forget(f);
    add_ports(f, "10.1.2.3", 300);
    run(f, GROUP_LISTED, "static/0", NULL);
    CHECK_INT(f->n_scrapes, 1500, "a list");
}

/* By default an ordinary pod is far below the limit, and one with 512 ports is not. */
TEST_ON(struct fixture *f, default_limit)
{
    load(f, "");
    testing_log_expect(f->log, "target refused");
    add_ports(f, "10.1.2.3", 51);
    run(f, GROUP_POD, "pod/shop/large", "10.1.2.3");
    CHECK_INT(f->n_scrapes, 255, "large");
    forget(f);
    add_ports(f, "10.1.2.3", 512);
    run(f, GROUP_POD, "pod/shop/huge", "10.1.2.3");
    CHECK_INT(f->n_scrapes, 255, "huge");
}

/* A pod with the address of its node is scraped unless the job says otherwise. */
TEST_ON(struct fixture *f, host_network)
{
    static const struct {
        const char *row, *job, *host_ip, *error;
        enum target_group_kind kind;
    } rows[] = {
        {"by default", "", "10.1.2.3", "", GROUP_POD},
        {"not allowed", "  allow_host_network: false\n", "10.1.2.3",
         "the pod has the address of its node (10.1.2.3), which the job does not allow "
         "(allow_host_network)",
         GROUP_POD},
        {"of an EndpointSlice", "  allow_host_network: false\n", "10.1.2.3",
         "the pod has the address of its node (10.1.2.3), which the job does not allow "
         "(allow_host_network)",
         GROUP_OBJECT},
        {"another address", "  allow_host_network: false\n", "10.1.2.4", "", GROUP_POD},
        {"the operator's", "  allow_host_network: false\n", "10.1.2.3", "", GROUP_LISTED},
    };
    testing_log_expect(f->log, "target refused");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        load(f, rows[i].job);
        ADD(f, "__address__", "10.1.2.3:6060", "__meta_kubernetes_pod_host_ip", rows[i].host_ip);
        run(f, rows[i].kind, "pod/shop/web", rows[i].kind == GROUP_POD ? "10.1.2.3" : NULL);
        CHECK_STR(f->error, rows[i].error, rows[i].row);
        CHECK_INT(f->n_targets, rows[i].error[0] == '\0' ? 1 : 0, rows[i].row);
        CHECK_INT(pipeline_wants(f->pipeline, 0, SV("__meta_kubernetes_pod_host_ip")),
                  rows[i].job[0] != '\0', "the label is asked for");
        forget(f);
        f->pipeline = pipeline_free(f->pipeline);
        f->config = config_unref(f->config);
    }
    CHECK_INT(
        testing_metric(f->metrics, "profpull_relabel_targets_total{job=\"a\",outcome=\"refused\"}"),
        2, "counted");
}

/* A rule that takes the address from an annotation does not reach the metadata service. */
TEST_ON(struct fixture *f, address_of_an_annotation)
{
    load(f, "  allow_foreign_address: true\n"
            "  relabel_configs:\n"
            "  - {source_labels: [__meta_kubernetes_pod_annotation_at], target_label: "
            "__address__}\n");
    testing_log_expect(f->log, "target refused");
    ADD(f, "__address__", "10.1.2.3:6060", "__meta_kubernetes_pod_annotation_at",
        "169.254.169.254:80");
    run(f, GROUP_POD, "pod/shop/evil", "10.1.2.3");
    CHECK_STR(f->error,
              "address \"169.254.169.254:80\" is the metadata service of a cloud, which the job "
              "does not allow (allow_special_address)",
              "error");
    CHECK_CONTAINS(testing_log_text(f->log), "source=pod/shop/evil", "the pod");
    CHECK_INT(
        testing_metric(f->metrics, "profpull_relabel_targets_total{job=\"a\",outcome=\"refused\"}"),
        1, "counted");
}
