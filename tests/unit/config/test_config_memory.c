/* Every allocation fails once: the result is an error, never a crash and never an incomplete
 * configuration. libyaml's allocations fail too. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "config/config.h"
#include "config/kubeconfig.h"
#include "tests/unit/lib/failing_malloc.h"
#include "tests/unit/lib/valid_config.h"

static const char text[] =
    "global: {external_labels: {a: \"${HOME:-x}\"}}\n"
    "scrape_configs:\n"
    "- job_name: a\n"
    "  params: {a: [b, c]}\n"
    "  profiles: {memory: {params: {d: e}}, custom: [{name: x, path: /x}, {name: y, path: /y}]}\n"
    "  static_configs: &s [{targets: [\"a:1\"], labels: {x: y}}]\n"
    "  kubernetes_sd_configs: [{role: pod, selectors: [{role: pod, field: f}], namespaces: {names: "
    "[n]}}]\n"
    "  relabel_configs: [{action: keep, source_labels: [a], regex: x}]\n"
    "- {job_name: b, static_configs: *s, bearer_token_file: t}\n"
    "write:\n"
    "- {url: \"http://x\", name: m, headers: {a: b}, http_headers: {c: {values: [d]}}}\n"
    "- {url: \"http://y\", name: n, basic_auth: {username: u, password: p}}\n";

static const char broken[] = "a: 1\nb: 2\nscrape_configs: [{job_name: [], scheme: x}]\nwrite: []\n";

/* Loads with the nth allocation failing. True if there were fewer than n. What loads must give the
 * dump `whole`; NULL: nothing may load. */
static bool load_failing(const char *what, size_t n, const char *whole)
{
    failing_malloc(FAIL_ALL, n);
    struct config_errors *errors = config_errors_new();
    if (errors == NULL) {
        failing_malloc_stop();
        return false;
    }
    struct config *c = config_parse("dir/f", sv_from(what), NULL, errors);
    bool done = !failing_malloc_stop();
    size_t count = config_errors_count(errors);
    CHECK_INT(c == NULL, count > 0, "an error if and only if there is no configuration");
    if (done) {
        CHECK_INT(c != NULL, whole != NULL, what);
    }
    for (size_t i = 0; i < count; i++) {
        assert_true(strlen(config_errors_at(errors, i)->message) > 0);
        assert_non_null(config_errors_at(errors, i)->path);
        assert_non_null(config_errors_at(errors, i)->pos.file);
    }
    if (c != NULL) { /* nothing is missing in it */
        SCOPED(buf) b = testing_buf(1 << 20);
        assert_true(config_dump(c, &b));
        CHECK_STR(b.data, whole, "");
    }
    config_unref(c);
    config_errors_free(errors);
    return done;
}

TEST(configuration_without_memory)
{
    struct config_errors *errors = config_errors_new();
    struct config *c = config_parse("dir/f", sv_from(text), NULL, errors);
    SCOPED(buf) whole = testing_buf(1 << 20);
    assert_non_null(c);
    assert_true(config_dump(c, &whole));
    config_unref(c);
    config_errors_free(errors);
    size_t n = 0;
    while (!load_failing(text, n, whole.data)) {
        n++;
    }
    assert_true(n > 20); /* the failures hit many places */
    n = 0;
    while (!load_failing(broken, n, NULL)) {
        n++;
    }
    assert_true(n > 20);
}

TEST(dump_without_memory)
{
    SCOPED(config_errors) *errors = config_errors_new();
    SCOPED(config) *c = config_parse("f", sv_from(text), NULL, errors);
    assert_non_null(c);
    size_t n = 0;
    for (bool done = false; !done; n++) {
        SCOPED(buf) b = testing_buf(1 << 20);
        failing_malloc(FAIL_ALL, n);
        bool ok = config_dump(c, &b);
        done = !failing_malloc_stop();
        CHECK_INT(ok, done, "");
    }
    assert_true(n > 3);
}

TEST(kubeconfig_without_memory)
{
    static const char k_text[] =
        "current-context: a\n"
        "contexts: [{name: a, context: {cluster: b, user: c}}]\n"
        "clusters: [{name: b, cluster: {server: \"https://h\", certificate-authority-data: "
        "Q0E=}}]\n"
        "users: [{name: c, user: {tokenFile: t}}]\n";
    size_t n = 0;
    for (bool done = false; !done; n++) {
        struct kubeconfig k;
        struct err err = ERR_INIT;
        SCOPED(arena) *a = arena_new(1 << 20);
        failing_malloc(FAIL_ALL, n);
        bool ok = kubeconfig_parse("dir/k", sv_from(k_text), NULL, a, &k, &err);
        done = !failing_malloc_stop();
        CHECK_INT(ok, done, "");
        CHECK_INT(err.msg[0] != '\0', !ok, "");
    }
    assert_true(n > 10);
}
