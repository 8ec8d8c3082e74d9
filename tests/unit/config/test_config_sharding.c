/* The key `sharding`: its values and its errors. */
#include "tests/unit/lib/testing.h"

#include "base/clock.h"
#include "config/config.h"
#include "tests/unit/lib/valid_config.h"

static const char *env(void *arg, const char *name)
{
    (void)arg;
    return strcmp(name, "POD_NAME") == 0 ? "profpull-2" : NULL;
}

static const struct config_options options = {.env = env};

#define ROOT "scrape_configs: [{job_name: a}]\nwrite: [{url: \"http://x\"}]\n"

static struct config *load(const char *sharding, struct buf *ret_errors)
{
    char text[1024];
    snprintf(text, sizeof(text), ROOT "%s", sharding);
    struct config_errors *errors = config_errors_new();
    struct config *c = config_parse("f", sv_from(text), &options, errors);
    config_errors_format(errors, ret_errors);
    config_errors_free(errors);
    return c;
}

TEST(mistakes_are_reported)
{
    static const struct text_case cases[] = {
        {"sharding: {mode: none}\n", ""},
        {"sharding: {mode: none, replicas: 3, service: profpull}\n", ""},
        {"sharding: {mode: static, replicas: 3, index: 2}\n", ""},
        {"sharding: {mode: static, replicas: 3, index: \"${POD_NAME}\"}\n", ""},
        {"sharding: {mode: kubernetes, service: profpull}\n", ""},
        {"sharding: {}\n", ""},
        {"sharding: {service: profpull, handover: 5s}\n",
         "f:3:21: sharding.service: has no effect without the key \"mode\" (kubernetes)\n"
         "f:3:41: sharding.handover: has no effect without the key \"mode\" (kubernetes)\n"},
        {"sharding: {replicas: 3, index: 0}\n",
         "f:3:22: sharding.replicas: has no effect without the key \"mode\" (static)\n"
         "f:3:32: sharding.index: has no effect without the key \"mode\" (static)\n"},
        {"sharding: {mode: gossip}\n", "f:3:18: sharding.mode: expected \"none\", \"static\" or "
                                       "\"kubernetes\", got \"gossip\"\n"},
        {"sharding: {mode: static, index: 0}\n",
         "f:3:11: sharding: mode: static needs the key \"replicas\"\n"},
        {"sharding: {mode: static, replicas: 2}\n",
         "f:3:11: sharding: mode: static needs the key \"index\"\n"},
        {"sharding: {mode: static, replicas: 2, index: 2}\n",
         "f:3:46: sharding.index: expected a number below replicas (2), got 2\n"},
        {"sharding: {mode: static, replicas: 2, index: two}\n",
         "f:3:46: sharding.index: expected a number from 0, or a name that ends in one "
         "(\"profpull-2\"), got \"two\"\n"},
        {"sharding: {mode: static, replicas: 2, index: \"-1\"}\n",
         "f:3:46: sharding.index: expected a number from 0, or a name that ends in one "
         "(\"profpull-2\"), got \"-1\"\n"},
        {"sharding: {mode: static, replicas: 2, index: \"profpull-\"}\n",
         "f:3:46: sharding.index: expected a number from 0, or a name that ends in one "
         "(\"profpull-2\"), got \"profpull-\"\n"},
        {"sharding: {mode: static, replicas: 0, index: 0}\n",
         "f:3:36: sharding.replicas: expected a whole number from 1 to 1000, got \"0\"\n"},
        {"sharding: {mode: static, replicas: 2, index: 0, service: a, handover: 5s}\n",
         "f:3:58: sharding.service: has no effect with mode: static\n"
         "f:3:71: sharding.handover: has no effect with mode: static\n"},
        {"sharding: {mode: kubernetes}\n",
         "f:3:11: sharding: mode: kubernetes needs the key \"service\"\n"},
        {"sharding: {mode: kubernetes, service: a, replicas: 3}\n",
         "f:3:52: sharding.replicas: has no effect with mode: kubernetes\n"},
        {"sharding: {mode: kubernetes, service: \"a.b\"}\n",
         "f:3:39: sharding.service: expected the name of a Service, got \"a.b\"\n"},
        {"sharding: {mode: kubernetes, service: a, namespace: \"x/y\"}\n",
         "f:3:53: sharding.namespace: expected the name of a namespace, or \"\" for the own one, "
         "got \"x/y\"\n"},
        {"sharding: {mode: kubernetes, service: a, pod_name: \"A\"}\n",
         "f:3:52: sharding.pod_name: expected the name of a pod, got \"A\"\n"},
        {"sharding: {mode: kubernetes, service: a, handover: 0s}\n",
         "f:3:52: sharding.handover: expected a duration from 1s to 10m, got \"0s\"\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(buf) got = testing_buf(1 << 16);
        SCOPED(config) *c = load(cases[i].text, &got);
        CHECK_STR(got.data == NULL ? "" : got.data, cases[i].want, cases[i].text);
        CHECK_INT(c != NULL, cases[i].want[0] == '\0', cases[i].text);
    }
}

static struct config *must_load(const char *sharding)
{
    SCOPED(buf) errors = testing_buf(1 << 16);
    struct config *c = load(sharding, &errors);
    CHECK_STR(errors.data == NULL ? "" : errors.data, "", sharding);
    return c;
}

TEST(missing_keys_have_defaults)
{
    SCOPED(config) *c = must_load("");
    CHECK_INT(c->sharding.mode, SHARDING_NONE, "");
    config_unref(c);
    c = must_load("sharding: {mode: kubernetes, service: profpull}\n");
    CHECK_INT(c->sharding.mode, SHARDING_KUBERNETES, "");
    CHECK_STR(c->sharding.service, "profpull", "");
    CHECK_STR(c->sharding.namespace, "", "");
    CHECK_STR(c->sharding.pod_name, "", "");
    CHECK_INT(c->sharding.handover_ms, 5 * MS_PER_S, "");
    CHECK_INT(c->sharding.isolation_ms, 600 * MS_PER_S, "");
    CHECK_INT(c->sharding.kubernetes.kubeconfig_file == NULL, true, "");
    config_unref(c);
    c = must_load("sharding: {mode: static, replicas: 3, index: \"${POD_NAME}\"}\n");
    CHECK_INT(c->sharding.index, 2, "the ordinal of a pod of a StatefulSet");
    CHECK_INT(c->sharding.replicas, 3, "");
}

/* A dump loads to the same. */
TEST(dump_shows_the_keys_of_the_mode)
{
    static const struct text_case cases[] = {
        {"sharding: {mode: static, replicas: 3, index: a-1}\n",
         "sharding:\n  mode: static\n  replicas: 3\n  index: 1\n"},
        {"sharding: {mode: kubernetes, service: s, namespace: n, pod_name: p, handover: 20s, "
         "kubeconfig_file: /k, isolation_timeout: 1m}\n",
         "sharding:\n  mode: kubernetes\n  service: \"s\"\n  namespace: \"n\"\n  pod_name: \"p\"\n"
         "  kubeconfig_file: \"/k\"\n  handover: 20s\n  isolation_timeout: 1m\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(config) *c = must_load(cases[i].text);
        SCOPED(buf) out = testing_buf(1 << 20);
        SCOPED(buf) again = testing_buf(1 << 20);
        CHECK_INT(config_dump(c, &out), true, "");
        CHECK_CONTAINS(out.data, cases[i].want, cases[i].text);
        config_unref(c);
        SCOPED(config_errors) *errors = config_errors_new();
        c = config_parse("f", (struct sv){out.data, out.len}, &options, errors);
        CHECK_INT(c != NULL && config_dump(c, &again), true, "");
        CHECK_STR(again.data, out.data, "");
    }
}
