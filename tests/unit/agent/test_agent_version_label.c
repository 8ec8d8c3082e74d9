/* The label `version` that the rules of the built-in configuration make. */
#include "tests/unit/lib/testing.h"

#include "config/config.h"
#include "relabel/relabel.h"
#include "tests/unit/lib/protocols.h"

SCOPED_POINTER(relabel, relabel_free)

static const char *lookup(void *arg, const char *name)
{
    return strcmp(name, "PROFPULL_VERSION_LABEL") == 0 ? arg : NULL;
}

/* Returns the rules of the built-in configuration; value: PROFPULL_VERSION_LABEL, or NULL. */
static struct relabel *builtin_rules(const char *value)
{
    char copy[16] = "";
    struct err err = ERR_INIT;
    struct config_errors *errors = config_errors_new();
    assert_non_null(errors);
    (void)snprintf(copy, sizeof(copy), "%s", value != NULL ? value : "");
    struct config_options options = {.env = lookup,
                                     .env_arg = value != NULL ? copy : NULL,
                                     .write_url = "http://p:1",
                                     .protocols = testing_protocols};
    struct config *c = config_load(NULL, &options, errors);
    assert_non_null(c);
    struct relabel *rules = relabel_new(&c->jobs[0].relabel, &err);
    CHECK_STR(err.msg, "", "rules");
    assert_non_null(rules);
    config_unref(c);
    config_errors_free(errors);
    return rules;
}

struct pod {
    const char *image;
    const char *own;      /* the label `version`, or "" */
    const char *standard; /* the label `app.kubernetes.io/version`, or "" */
    const char *hash;     /* the label `pod-template-hash`, or "" */
    const char *want;
};

static void check_pod(const struct relabel *rules, const struct pod *pod, const char *want)
{
    SCOPED(intern) *in = intern_new();
    struct relabel_scratch *scratch = relabel_scratch_new();
    SCOPED(labels_builder) *b = labels_builder_new(in);
    assert_non_null(in);
    assert_non_null(scratch);
    assert_non_null(b);
    const char *const labels[][2] = {
        {"__address__", "10.1.2.3:6060"},
        {"__meta_kubernetes_pod_phase", "Running"},
        {"__meta_kubernetes_pod_annotation_pyroscope_io_scrape", "true"},
        {"__meta_kubernetes_pod_container_image", pod->image},
        {"__meta_kubernetes_pod_label_version", pod->own},
        {"__meta_kubernetes_pod_label_app_kubernetes_io_version", pod->standard},
        {"__meta_kubernetes_pod_label_pod_template_hash", pod->hash},
    };
    labels_builder_reset(b, NULL);
    for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
        labels_builder_set_str(b, labels[i][0], labels[i][1]);
    }
    struct relabel_verdict v = relabel_apply(rules, scratch, b, NULL, NULL);
    CHECK_INT(v.outcome, RELABEL_KEPT, pod->image);
    CHECK_STR(labels_builder_get(b, SV("version")).p, want, pod->image);
    relabel_scratch_free(scratch);
}

static const struct pod pods[] = {
    {"cart:1.4.2", "", "", "6d4c", "1.4.2"},
    {"registry:5000/shop/cart:1.4.2", "", "", "", "1.4.2"},
    {"cart:1.4.2@sha256:9f2c", "", "", "6d4c", "1.4.2"},
    /* The standard label counts before the tag, and the pod's own one before that. */
    {"cart:1.4.2", "", "2.0", "6d4c", "2.0"},
    {"cart:1.4.2", "v7", "2.0", "6d4c", "v7"},
    /* Images whose tag does not distinguish builds. */
    {"cart", "", "", "6d4c", "6d4c"},
    {"cart:latest", "", "", "6d4c", "6d4c"},
    {"cart@sha256:9f2c", "", "", "6d4c", "6d4c"},
    {"registry:5000/cart", "", "", "6d4c", "6d4c"},
    {"registry:5000/cart@sha256:9f2c", "", "", "6d4c", "6d4c"},
    {"registry:5000/cart", "", "", "", ""},
    {"", "", "", "", ""},
};

TEST(version_is_the_first_source_that_exists)
{
    SCOPED(relabel) *rules = builtin_rules(NULL);
    for (size_t i = 0; i < sizeof(pods) / sizeof(pods[0]); i++) {
        check_pod(rules, &pods[i], pods[i].want);
    }
}

TEST(version_can_be_switched_off)
{
    SCOPED(relabel) *rules = builtin_rules("false");
    for (size_t i = 0; i < sizeof(pods) / sizeof(pods[0]); i++) {
        check_pod(rules, &pods[i], pods[i].own);
    }
}
