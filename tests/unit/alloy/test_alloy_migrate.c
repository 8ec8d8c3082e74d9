/* The YAML of Parca, the Pyroscope agent and Prometheus as ours: what convert prints, which loads.
 */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>
#include <unistd.h>

#include "alloy/alloy.h"
#include "config/config.h"
#include "config/file.h"
#include "config/migrate.h"
#include "tests/unit/lib/protocols.h"
#include "tests/unit/lib/valid_config.h"

#define DIRECTORY "tests/unit/data/migrate/"
#define TEXT_MAX ((size_t)1024 * 1024)

static const char *env(void *arg, const char *name)
{
    (void)arg;
    return strcmp(name, "WHO") == 0 ? "me" : NULL;
}

static const char *no_env(void *arg, const char *name)
{
    (void)arg;
    (void)name;
    return NULL;
}

/* The YAML, and then the errors. */
static bool convert(const char *path, const char *(*get)(void *, const char *), struct buf *out)
{
    struct config_errors *errors = config_errors_new();
    struct config_errors *warnings = config_errors_new();
    SCOPED(config_errors) *notes = config_errors_new();
    static const struct config_language *const languages[] = {&alloy_language, NULL};
    const struct config_options options = {.env = get,
                                           .languages = languages,
                                           .protocols = testing_protocols,
                                           .warnings = warnings,
                                           .notes = notes};
    bool ok = config_convert(path, &options, errors, out);
    config_errors_format(errors, out);
    config_errors_free(errors);
    config_errors_free(warnings);
    return ok;
}

static struct config *load(struct sv text)
{
    SCOPED(config_errors) *errors = config_errors_new();
    const struct config_options options = {.env = env, .protocols = testing_protocols};
    struct config *c = config_parse("converted", text, &options, errors);
    SCOPED(buf) got = testing_buf(TEXT_MAX);
    config_errors_format(errors, &got);
    CHECK_STR(got.data, "", text.p);
    return c;
}

TEST(files_are_converted_to_what_loads)
{
    static const char *const names[] = {"parca", "agent", "prometheus"};
    for (size_t i = 0; i < 3; i++) {
        char from[128];
        char to[128];
        struct err err = ERR_INIT;
        snprintf(from, sizeof(from), DIRECTORY "%s.yaml", names[i]);
        snprintf(to, sizeof(to), DIRECTORY "%s.converted.yaml", names[i]);
        SCOPED(buf) got = testing_buf(TEXT_MAX);
        SCOPED(buf) want = testing_buf(TEXT_MAX);
        assert_true(file_read(to, TEXT_MAX, &want, &err));
        assert_true(convert(from, env, &got));
        CHECK_STR(got.data, want.data, names[i]);
        buf_clear(&got);
        assert_true(convert(from, no_env, &got)); /* variables of another machine */
        CHECK_STR(got.data, want.data, names[i]);
        config_unref(load((struct sv){got.data, got.len}));
    }
}

static const struct config_type *find_type(const struct config_job *job, const char *key)
{
    for (size_t i = 0; i < job->n_types; i++) {
        if (strcmp(job->types[i].key, key) == 0) {
            return &job->types[i];
        }
    }
    fail_msg("no type %s", key);
    return NULL;
}

TEST(types_of_parca_become_types_of_a_job)
{
    SCOPED(buf) text = testing_buf(TEXT_MAX);
    assert_true(convert(DIRECTORY "parca.yaml", env, &text));
    SCOPED(config) *c = load((struct sv){text.data, text.len});
    const struct config_job *job = &c->jobs[0];
    assert_string_equal(job->path_prefix, "/x");
    assert_int_equal(job->timeout_ms, 5000);
    assert_int_equal(find_type(job, "block")->delta, DELTA_SERVER);
    assert_int_equal(find_type(job, "memory")->delta, DELTA_AUTO);
    assert_false(find_type(job, "goroutine")->enabled);
    assert_string_equal(find_type(job, "process_cpu")->path, "/debug/pprof/profile");
    assert_true(find_type(job, "wall")->sampling);
    assert_false(find_type(job, "trace")->enabled);
    assert_string_equal(job->relabel.at[0].replacement, "${1}");
    assert_int_equal(c->jobs[1].interval_ms, 10000);
    assert_string_equal(c->endpoints[0].url, "http://pyroscope:4040");
}

TEST(what_cannot_be_converted_is_an_error)
{
    static const struct text_case cases[] = {
        {"scrape-configs:\n  - job-name: x\n", "docs/migrating.md says what its keys"},
        {"a: b\n", "missing required key \"scrape_configs\""},
        {"---\n- a\n", "expected a mapping with the key scrape_configs"},
        {"scrape_configs: {}\n", ":1:17: expected a list of jobs"},
        {"scrape_configs: [\n", "not valid YAML"},
        {"scrape_configs: []\n", "at least one job is needed"},
        {"scrape_configs:\n- job_name: a\n  scheme: ftp\n",
         ":3:11: scrape_configs[0].scheme: expected \"http\" or \"https\", got \"ftp\""},
        {"scrape_configs:\n- job_name: a\n  profiling_config: {pprof_config: {memory: {path: "
         "[a]}}}\n",
         "memory.path: expected a path without"},
        {"scrape_configs: [{job_name: a}]\nclient: {tenant_id: t}\n",
         "missing required key \"url\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char path[] = "/tmp/migrateXXXXXX";
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, cases[i].text, strlen(cases[i].text)), strlen(cases[i].text));
        close(fd);
        SCOPED(buf) text = testing_buf(TEXT_MAX);
        assert_false(convert(path, env, &text));
        CHECK_CONTAINS(text.data, cases[i].want, cases[i].text);
        unlink(path);
    }
}

TEST(the_name_or_the_first_line_says_the_kind)
{
    static const struct {
        const char *name, *text;
        bool yaml;
    } cases[] = {
        {"a.yaml", "", true},
        {"a.yml", "logging {}", true},
        {"a.json", "", true},
        {"a.alloy", "a: b", false},
        {"a", "a: b", true},
        {"a", "# x", true},
        {"a", "---\na: b", true},
        {"a", "{\"a\": 1}", true},
        {"a", "\n\n  scrape-configs:\n", true},
        {"a", "// a: b\nlogging {\n", false},
        {"a", "pyroscope.write \"a\" {\n", false},
        {"a", "", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_INT(migrate_is_yaml(cases[i].name, sv_from(cases[i].text)), cases[i].yaml,
                  cases[i].text);
    }
}
