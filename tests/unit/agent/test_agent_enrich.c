/* Labels of discovered targets for pushed profiles. */
#include "tests/unit/lib/testing.h"

#include <stdarg.h>

#include "agent/enrich.h"
#include "tests/unit/lib/failing_malloc.h"

SCOPED_POINTER(enrich, enrich_free)

static struct intern *table;
static struct metrics *metrics;

static struct labels *make(const char *first, ...)
{
    va_list ap;
    struct labels_builder *b = labels_builder_new(table);
    va_start(ap, first);
    for (const char *name = first; name != NULL; name = va_arg(ap, const char *)) {
        labels_builder_set_str(b, name, va_arg(ap, const char *));
    }
    va_end(ap);
    struct labels *l = labels_builder_build(b);
    labels_builder_free(b);
    assert_non_null(l);
    return l;
}

/* Replaces the targets of a source by these, NULL-terminated, whose references it takes. The rules
 * have not changed their labels. */
static void set_group(struct enrich *e, const struct config_enrich *settings, const char *source,
                      struct labels *first, ...)
{
    struct enrich_target all[8];
    size_t n = 0;
    va_list ap;
    va_start(ap, first);
    for (struct labels *l = first; l != NULL; l = va_arg(ap, struct labels *)) {
        all[n++] = (struct enrich_target){l, l};
    }
    va_end(ap);
    assert_true(enrich_set_group(e, settings, 4, source, all, n));
    for (size_t i = 0; i < n; i++) {
        labels_unref(all[i].labels);
    }
}

/* The labels of a profile after it was enriched: "a=1 b=2". */
static void check(struct enrich *e, const struct config_enrich *settings, struct labels *profile,
                  const char *want, const char *what)
{
    SCOPED(labels_builder) *b = labels_builder_new(table);
    SCOPED(buf) text = testing_buf(1024);
    labels_builder_reset(b, profile);
    labels_unref(profile);
    enrich_apply(e, settings, b);
    SCOPED(labels) *l = labels_builder_build(b);
    for (size_t i = 0; i < labels_count(l); i++) {
        struct label at = labels_at(l, i);
        buf_printf(&text, "%s%.*s=%.*s", i > 0 ? " " : "", SV_ARG(at.name), SV_ARG(at.value));
    }
    CHECK_STR(text.data, want, what);
}

TEST(labels_of_the_target_that_matches)
{
    SCOPED(enrich) *e = enrich_new(metrics);
    const struct config_enrich all = {.target_label = "host", .profile_label = "client"};
    set_group(e, &all, "a", make("host", "h1", "team", "x", "__meta_zone", "z", "empty", "", NULL),
              make("host", "h2", "team", "y", NULL), make("team", "none", NULL), NULL);
    check(e, &all, make("client", "h1", "team", "own", "k", "v", NULL),
          "client=h1 host=h1 k=v team=x", "all labels, those of the target win");
    check(e, &all, make("client", "h3", NULL), "client=h3", "no target matches");
    check(e, &all, make("host", "h1", NULL), "host=h1", "the label is missing");
    check(e, &all, make("client", "", NULL), "", "an empty value");
    const char *names[] = {"__meta_zone", "missing", "empty"};
    const struct config_enrich some = {
        .target_label = "host", .profile_label = "client", .labels = {names, 3}};
    check(e, &some, make("client", "h1", NULL), "__meta_zone=z client=h1", "only these");
    const struct config_enrich none = {.target_label = NULL};
    check(e, &none, make("client", "h1", NULL), "client=h1", "switched off");
}

TEST(groups_come_and_go)
{
    SCOPED(enrich) *e = enrich_new(metrics);
    const struct config_enrich s = {.target_label = "host", .profile_label = "host"};
    set_group(e, &s, "a", make("host", "h", "n", "1", NULL), make("host", "h", "n", "2", NULL),
              NULL);
    check(e, &s, make("host", "h", NULL), "host=h n=2", "the last one counts");
    set_group(e, &s, "b", make("host", "h", "n", "3", NULL), NULL);
    check(e, &s, make("host", "h", NULL), "host=h n=3", "also of another source");
    set_group(e, &s, "b", NULL);
    check(e, &s, make("host", "h", NULL), "host=h n=2", "the others are still there");
    set_group(e, &s, "a", make("host", "g", "n", "4", NULL), NULL);
    check(e, &s, make("host", "h", NULL), "host=h", "it has gone");
    check(e, &s, make("host", "g", NULL), "host=g n=4", "");
    /* At most four. */
    set_group(e, &s, "c", make("host", "1", "n", "1", NULL), make("host", "2", "n", "2", NULL),
              make("host", "3", "n", "3", NULL), make("host", "4", "n", "4", NULL), NULL);
    check(e, &s, make("host", "3", NULL), "host=3 n=3", "");
    check(e, &s, make("host", "4", NULL), "host=4", "too many");
}

/* Profiles with the ids of OpenTelemetry find what was discovered, even if rules have dropped it.
 */
TEST(ids_that_were_discovered)
{
    SCOPED(enrich) *e = enrich_new(metrics);
    const struct config_enrich s = {.job = {.n_sources = 1}};
    const struct enrich_target targets[] = {
        {make("__meta_kubernetes_namespace", "shop", "__meta_kubernetes_pod_uid", "u1",
              "__meta_kubernetes_node_name", "n1", "__meta_kubernetes_pod_container_id",
              "containerd://c1", NULL),
         make("pod", "cart", "container", "main", NULL)},
        {make("__meta_kubernetes_namespace", "shop", "__meta_kubernetes_pod_uid", "u1",
              "__meta_kubernetes_node_name", "n1", "__meta_kubernetes_pod_container_id", "c2",
              NULL),
         make("pod", "cart", "container", "side", NULL)},
        {make("__meta_kubernetes_node_name", "n1", NULL), make("zone", "z", "pod", "none", NULL)},
    };
    assert_true(enrich_set_group(e, &s, 9, "a", targets, 3));
    check(e, &s, make("container.id", "c1", "k8s.pod.uid", "u1", NULL),
          "container=main container.id=c1 k8s.pod.uid=u1 pod=cart", "the container");
    check(e, &s, make("container.id", "c2", NULL), "container=side container.id=c2 pod=cart",
          "an id without a runtime");
    check(e, &s, make("container.id", "c9", "k8s.pod.uid", "u1", NULL),
          "container=side container.id=c9 k8s.pod.uid=u1 pod=cart", "the pod, by its last target");
    check(e, &s, make("host.name", "n1", NULL), "host.name=n1 pod=none zone=z",
          "the node, not one of its pods");
    check(e, &s, make("host.name", "n1", "k8s.pod.uid", "u1", NULL),
          "container=side host.name=n1 k8s.pod.uid=u1 pod=cart zone=z", "the pod, then the node");
    check(e, &s, make("k8s.pod.uid", "u2", NULL), "k8s.pod.uid=u2", "an unknown pod");
    CHECK_INT(testing_metric(metrics, "profpull_receive_enrich_targets"), 3, "");
    assert_true(enrich_set_group(e, &s, 9, "a", NULL, 0));
    CHECK_INT(testing_metric(metrics, "profpull_receive_enrich_targets"), 0, "");
    for (size_t i = 0; i < 3; i++) {
        labels_unref(targets[i].discovered);
        labels_unref(targets[i].labels);
    }
}

TEST(labels_that_are_needed)
{
    static const char *const ids[] = {"__meta_kubernetes_pod_uid",
                                      "__meta_kubernetes_pod_container_id",
                                      "__meta_kubernetes_node_name", "__meta_kubernetes_namespace"};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        assert_true(enrich_wants(&(struct config_enrich){.target_label = NULL}, sv_from(ids[i])));
    }
    const char *names[] = {"__meta_a"};
    const struct config_enrich s = {
        .target_label = "__meta_ip", .profile_label = "ip", .labels = {names, 1}};
    assert_true(enrich_wants(&s, SV("__meta_ip")));
    assert_true(enrich_wants(&s, SV("__meta_a")));
    assert_false(enrich_wants(&s, SV("__meta_b")));
}

/* If memory runs out, the source has no targets, and the next list of it is complete. */
static void set_a_group(bool *ret_complete)
{
    static const struct config_enrich s = {.target_label = "host", .profile_label = "host"};
    bool armed = failing_malloc_pause();
    struct enrich *e = enrich_new(metrics);
    struct enrich_target targets[3];
    for (size_t i = 0; i < 3; i++) {
        static const char *const numbers[] = {"1", "2", "3"};
        targets[i].labels = make("host", i < 2 ? "a" : "b", "n", numbers[i],
                                 "__meta_kubernetes_pod_uid", "u", NULL);
        targets[i].discovered = targets[i].labels;
    }
    failing_malloc_resume(armed);
    *ret_complete = enrich_set_group(e, &s, 9, "x", targets, 3);
    armed = failing_malloc_pause();
    check(e, &s, make("host", "a", NULL), *ret_complete ? "host=a n=2" : "host=a", "at first");
    assert_true(enrich_set_group(e, &s, 9, "x", targets, 3));
    check(e, &s, make("host", "b", NULL), "host=b n=3", "again");
    for (size_t i = 0; i < 3; i++) {
        labels_unref(targets[i].labels);
    }
    enrich_free(e);
    failing_malloc_resume(armed);
}

TEST(memory_runs_out)
{
    assert_true(failing_malloc_each(FAIL_OURS, set_a_group) > 3);
}

int main(void)
{
    table = intern_new();
    metrics = metrics_new();
    int failed = testing_run("tests", NULL, NULL);
    metrics_free(metrics);
    intern_free(table);
    return failed;
}
