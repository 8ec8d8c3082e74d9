/* The built-in configuration, used when scrape_configs is missing. */
#include "tests/unit/lib/testing.h"

#include "config/config.h"
#include "tests/unit/lib/protocols.h"

SCOPED_POINTER(config, config_unref)

struct variable {
    const char *name;
    const char *value;
};

static const char *lookup(void *arg, const char *name)
{
    const struct variable *v = arg;
    return v != NULL && strcmp(v->name, name) == 0 ? v->value : NULL;
}

/* NULL for the path of config_load(). want: the errors, "" for none. */
static struct config *load(const char *text, struct variable *variable, const char *write_url,
                           const char *want)
{
    struct config_errors *errors = config_errors_new();
    struct config_options options = {
        .env = lookup, .env_arg = variable, .write_url = write_url, .protocols = testing_protocols};
    SCOPED(buf) got = testing_buf(1 << 20);
    assert_non_null(errors);
    struct config *c = text == NULL ? config_load(NULL, &options, errors)
                                    : config_parse("f", sv_from(text), &options, errors);
    config_errors_format(errors, &got);
    CHECK_STR(got.data == NULL ? "" : got.data, want, text == NULL ? "none" : text);
    config_errors_free(errors);
    return c;
}

static const struct config_kubernetes *source_of(const struct config *c)
{
    assert_int_equal(c->n_jobs, 1);
    assert_int_equal(c->jobs[0].n_sources, 1);
    assert_int_equal(c->jobs[0].sources[0].kind, SOURCE_KUBERNETES);
    return &c->jobs[0].sources[0].kubernetes;
}

/* No file: only the built-in text counts, and --write.url replaces its endpoint. */
TEST(without_a_file_the_built_in_configuration_is_used)
{
    SCOPED(config) *c = load(NULL, NULL, "http://p:1", "");
    assert_non_null(c);
    CHECK_STR(c->file, CONFIG_BUILTIN_NAME, "");
    CHECK_STR(c->jobs[0].name, "annotated-pods", "");
    CHECK_STR(c->jobs[0].relabel.at[0].pos.file, CONFIG_BUILTIN_NAME, "");
    assert_true(c->jobs[0].relabel.at[0].pos.line > 1);
    assert_int_equal(c->n_endpoints, 1);
    CHECK_STR(c->endpoints[0].url, "http://p:1", "");
    const struct config_kubernetes *k = source_of(c);
    CHECK_INT(k->role, ROLE_POD, "");
    CHECK_STR(k->selectors[0].field, "status.phase!=Succeeded,status.phase!=Failed", "");
    assert_false(k->own_namespace);
    /* Only what an annotation asks for is scraped. */
    for (size_t i = 0; i < c->jobs[0].n_types; i++) {
        CHECK_INT(c->jobs[0].types[i].enabled, false, c->jobs[0].types[i].key);
    }
}

/* The types that servers with gperftools or brpc have in addition are custom ones, so that files
 * with custom types of the same names stay valid. */
TEST(the_built_in_configuration_has_types_of_brpc)
{
    SCOPED(config) *c = load(NULL, NULL, "http://p:1", "");
    assert_non_null(c);
    const struct config_job *j = &c->jobs[0];
    assert_int_equal(j->n_types, CONFIG_BUILTIN_TYPES + 2);
    const struct config_type *growth = &j->types[CONFIG_BUILTIN_TYPES];
    CHECK_STR(growth->key, "growth", "");
    CHECK_STR(growth->name, "growth", "");
    CHECK_STR(growth->path, "/pprof/growth", "");
    CHECK_INT(growth->seconds, 0, "");
    CHECK_INT(growth->delta, DELTA_OFF, "");
    const struct config_type *contention = growth + 1;
    CHECK_STR(contention->key, "contention", "");
    CHECK_STR(contention->name, "contention", "");
    CHECK_STR(contention->path, "/pprof/contention", "");
    CHECK_INT(contention->seconds, 14, "brpc refuses a request without seconds");
    /* Their annotations are among those that make a pod a target. */
    for (const struct config_type *t = growth; t <= contention; t++) {
        char label[128];
        bool read = false;
        (void)snprintf(label, sizeof(label),
                       "__meta_kubernetes_pod_annotation_profiles_grafana_com_%s_scrape", t->key);
        for (size_t i = 0; i < j->relabel.n; i++) {
            const struct config_rule *rule = &j->relabel.at[i];
            read = read || (rule->action == ACTION_KEEP &&
                            sv_in(sv_from(label), rule->source_labels.at, rule->source_labels.n));
        }
        CHECK_INT(read, true, t->key);
    }
}

/* A file without scrape_configs has the built-in jobs, with its own globals and endpoints. */
TEST(files_without_jobs_get_the_built_in_ones)
{
    SCOPED(config) *c = load("global: {scrape_interval: 1m}\n"
                             "write: [{name: mine, url: \"http://x\"}]\n",
                             NULL, NULL, "");
    assert_non_null(c);
    CHECK_STR(c->file, "f", "");
    CHECK_STR(c->jobs[0].name, "annotated-pods", "");
    CHECK_STR(c->jobs[0].pos.file, CONFIG_BUILTIN_NAME, "");
    assert_int_equal(c->jobs[0].interval_ms, 60000);
    assert_int_equal(c->n_endpoints, 1);
    CHECK_STR(c->endpoints[0].name, "mine", "");
    assert_int_equal(c->jobs[0].forward_to, 1);
}

/* The built-in jobs need a cluster. Outside of one, a file without scrape_configs that receives
 * profiles, or has a store to be queried, has no jobs; in a pod it has the built-in ones. */
TEST(outside_of_a_cluster_other_work_needs_no_jobs)
{
    struct variable pod = {"KUBERNETES_SERVICE_HOST", "10.0.0.1"};
    struct variable empty = {"KUBERNETES_SERVICE_HOST", ""};
    static const struct {
        const char *text;
        bool works_alone;
    } cases[] = {
        {"receive: {listen: '127.0.0.1:1'}\nwrite: [{url: \"http://x\"}]\n", true},
        {"write: [{url: \"store:///d\"}]\n", true},
        {"query: {listen: ':1'}\nwrite: [{name: a, url: \"http://x\"}, {name: b, url: "
         "\"store:///d\"}]\n",
         true},
        {"query: {listen: ':1'}\nwrite: [{url: \"http://x\"}]\n", false},
        {"receive: {max_age: 1h}\nwrite: [{url: \"http://x\"}]\n", false},
        {"write: [{url: \"file:///d\"}]\n", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(config) *outside = load(cases[i].text, NULL, NULL, "");
        SCOPED(config) *unset = load(cases[i].text, &empty, NULL, "");
        SCOPED(config) *inside = load(cases[i].text, &pod, NULL, "");
        CHECK_INT(outside->n_jobs, cases[i].works_alone ? 0 : 1, cases[i].text);
        CHECK_INT(outside->lacks_cluster, cases[i].works_alone, cases[i].text);
        CHECK_INT(unset->n_jobs, outside->n_jobs, cases[i].text);
        CHECK_INT(inside->n_jobs, 1, cases[i].text);
        CHECK_INT(inside->lacks_cluster, false, cases[i].text);
    }
}

/* A file with scrape_configs has no other jobs. */
TEST(jobs_in_the_file_replace_the_built_in_ones)
{
    SCOPED(config) *c =
        load("scrape_configs: [{job_name: a}]\nwrite: [{url: \"http://x\"}]\n", NULL, NULL, "");
    assert_non_null(c);
    assert_int_equal(c->n_jobs, 1);
    CHECK_STR(c->jobs[0].name, "a", "");
}

TEST(variables_of_the_built_in_configuration)
{
    struct variable node = {"PROFPULL_POD_FIELDS", "spec.nodeName=n1,status.phase!=Failed"};
    SCOPED(config) *c = load(NULL, &node, NULL, "");
    assert_non_null(c);
    CHECK_STR(source_of(c)->selectors[0].field, "spec.nodeName=n1,status.phase!=Failed", "");
    CHECK_STR(c->endpoints[0].url, "http://pyroscope:4040", "");
    config_unref(c);
    struct variable own = {"PROFPULL_OWN_NAMESPACE", "true"};
    c = load(NULL, &own, NULL, "");
    assert_non_null(c);
    assert_true(source_of(c)->own_namespace);
    config_unref(c);
    struct variable url = {"PYROSCOPE_URL", "http://other:1"};
    c = load(NULL, &url, NULL, "");
    assert_non_null(c);
    CHECK_STR(c->endpoints[0].url, "http://other:1", "");
}

/* A mistake in a variable is reported with its place in the built-in text; next to mistakes of the
 * file itself only these are. */
TEST(errors_name_the_built_in_configuration)
{
    struct variable own = {"PROFPULL_OWN_NAMESPACE", "yes"};
    struct config_errors *errors = config_errors_new();
    struct config_options options = {.env = lookup, .env_arg = &own};
    const char *text = "write: [{url: \"http://x\"}]\n";
    assert_null(config_parse("f", sv_from(text), &options, errors));
    assert_int_equal(config_errors_count(errors), 1);
    CHECK_STR(config_errors_at(errors, 0)->pos.file, CONFIG_BUILTIN_NAME, "");
    CHECK_CONTAINS(config_errors_at(errors, 0)->message, "expected true or false, got \"yes\"", "");
    config_errors_free(errors);
    assert_null(load("write: []\n", &own, NULL, "f:1:8: write: at least one endpoint is needed\n"));
}

/* Users can copy the text: loaded as a file it gives the same. */
TEST(the_text_is_a_file)
{
    SCOPED(config) *built_in = load(NULL, NULL, NULL, "");
    SCOPED(buf) text = testing_buf(1 << 20);
    SCOPED(buf) first = testing_buf(1 << 20);
    SCOPED(buf) second = testing_buf(1 << 20);
    struct sv v = config_builtin();
    buf_append(&text, v.p, v.n);
    SCOPED(config) *copy = load(text.data, NULL, NULL, "");
    assert_non_null(built_in);
    assert_non_null(copy);
    assert_true(config_dump(built_in, &first) && config_dump(copy, &second));
    CHECK_STR(first.data, second.data, "");
}
