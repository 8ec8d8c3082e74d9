/* An Alloy file, and the YAML that convert makes of it, are the same configuration; and the keys
 * that only such files needed. */
#include "tests/unit/lib/testing.h"

#include <dirent.h>
#include <stdlib.h>

#include "alloy/alloy.h"
#include "config/config.h"
#include "tests/unit/lib/protocols.h"
#include "tests/unit/lib/valid_config.h"

#define DIRECTORY "tests/unit/data/alloy"
#define TEXT_MAX ((size_t)16 * 1024 * 1024)

static const char *env(void *arg, const char *name)
{
    (void)arg;
    return strcmp(name, "HOME") == 0                                    ? "/home/u"
           : strcmp(name, "URL") == 0                                   ? "http://e:4040"
           : strcmp(name, "U") == 0                                     ? "user"
           : strcmp(name, "P") == 0                                     ? "pass"
           : strcmp(name, "NODE") == 0 || strcmp(name, "HOSTNAME") == 0 ? "n7"
                                                                        : NULL;
}

struct lists {
    struct config_errors *errors;
    struct config_errors *warnings;
    struct config_errors *notes;
};

static const struct config_language *const languages[] = {&alloy_language, NULL};

static struct config_options make_options(const struct lists *l)
{
    return (struct config_options){.env = env,
                                   .languages = languages,
                                   .protocols = testing_protocols,
                                   .warnings = l->warnings,
                                   .notes = l->notes};
}

static struct lists new_lists(void)
{
    return (struct lists){config_errors_new(), config_errors_new(), config_errors_new()};
}

static void free_lists(struct lists *l)
{
    config_errors_free(l->errors);
    config_errors_free(l->warnings);
    config_errors_free(l->notes);
}

static void expect_no_errors(const char *what, const struct lists *l)
{
    SCOPED(buf) text = testing_buf(TEXT_MAX);
    config_errors_format(l->errors, &text);
    CHECK(text.len == 0, "%s: %s", what, text.data);
}

/* The dump of a configuration, which is freed. */
static char *dump(struct config *c)
{
    struct buf text = testing_buf(TEXT_MAX);
    assert_true(config_dump(c, &text));
    config_unref(c);
    return buf_take(&text, NULL);
}

static void check_file(const char *path)
{
    struct lists l = new_lists();
    struct config_options options = make_options(&l);
    SCOPED(buf) yaml = testing_buf(TEXT_MAX);
    struct config *direct = config_load(path, &options, l.errors);
    expect_no_errors(path, &l);
    assert_true(config_convert(path, &options, l.errors, &yaml));
    expect_no_errors(path, &l);
    struct config *converted =
        config_parse("converted", (struct sv){yaml.data, yaml.len}, &options, l.errors);
    expect_no_errors(yaml.data, &l);
    SCOPED_MEMORY char *want = dump(direct);
    SCOPED_MEMORY char *got = dump(converted);
    CHECK(strcmp(got, want) == 0, "%s\n--- converted:\n%s\n--- direct:\n%s", path, got, want);
    free_lists(&l);
}

TEST(converted_files_are_the_same_configuration)
{
    DIR *directory = opendir(DIRECTORY);
    const struct dirent *entry;
    size_t n = 0;
    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        char path[512];
        if (sv_ends_with(sv_from(entry->d_name), SV(".alloy"))) {
            snprintf(path, sizeof(path), DIRECTORY "/%s", entry->d_name);
            check_file(path);
            n++;
        }
    }
    closedir(directory);
    assert_true(n >= 18);
    check_file("examples/alloy.alloy");
}

static struct config *parse(struct lists *l, const char *text)
{
    struct config_options options = make_options(l);
    struct config *c = config_parse("x.yaml", sv_from(text), &options, l->errors);
    expect_no_errors(text, l);
    return c;
}

#define JOB "scrape_configs:\n- job_name: a\n  static_configs: [{targets: ['h:1']}]\n"

TEST(a_job_may_set_another_label)
{
    struct lists l = new_lists();
    SCOPED(config) *c = parse(&l, JOB "  job_label: ''\n"
                                      "- job_name: b\n  static_configs: [{targets: ['h:1']}]\n"
                                      "write: [{url: 'http://h'}]\n");
    assert_string_equal(c->jobs[0].job_label, "");
    assert_null(c->jobs[1].job_label);
    free_lists(&l);
}

TEST(labels_of_an_endpoint_come_before_global_ones)
{
    struct lists l = new_lists();
    SCOPED(config) *c = parse(&l, "global: {external_labels: {a: '1', b: '2'}}\n" JOB
                                  "write:\n- {name: x, url: 'http://h', external_labels: {b: '3', "
                                  "c: '4'}}\n- {name: y, url: 'http://h'}\n");
    const struct config_pairs *x = &c->endpoints[0].external_labels;
    assert_int_equal(x->n, 3);
    assert_string_equal(x->at[0].name, "a");
    assert_string_equal(x->at[1].name, "b");
    assert_string_equal(x->at[1].value, "3");
    assert_string_equal(x->at[2].name, "c");
    assert_int_equal(c->endpoints[1].external_labels.n, 2);
    free_lists(&l);
}

TEST(a_custom_type_may_write_another_series)
{
    struct lists l = new_lists();
    SCOPED(config) *c =
        parse(&l, JOB "  profiles: {custom: [{name: h, series: heap, path: /h}, {name: w, path: "
                      "/w}]}\nwrite: [{url: 'http://h', retry: {max_attempts: 3}}]\n");
    const struct config_type *t = &c->jobs[0].types[c->jobs[0].n_types - 2];
    assert_string_equal(t[0].key, "h");
    assert_string_equal(t[0].name, "heap");
    assert_string_equal(t[1].name, "w");
    assert_int_equal(c->endpoints[0].max_attempts, 3);
    free_lists(&l);
}

static void load_file(struct lists *l, const char *name, const char *service,
                      struct config **ret_config)
{
    char path[512];
    struct config_options options = make_options(l);
    options.sharding_service = service;
    snprintf(path, sizeof(path), DIRECTORY "/%s.alloy", name);
    *ret_config = config_load(path, &options, l->errors);
    expect_no_errors(path, l);
}

/* Every Alloy node scrapes what is not clustered. */
TEST(clustering_is_sharing_where_the_command_line_names_a_service)
{
    struct lists l = new_lists();
    struct config *c;
    load_file(&l, "W1", NULL, &c);
    assert_int_equal(c->sharding.mode, SHARDING_NONE);
    assert_true(c->jobs[0].shared);
    assert_int_equal(config_errors_count(l.notes), 1);
    config_unref(c);
    load_file(&l, "W1", "pp", &c);
    assert_int_equal(c->sharding.mode, SHARDING_KUBERNETES);
    assert_string_equal(c->sharding.service, "pp");
    assert_true(c->jobs[0].shared);
    config_unref(c);
    load_file(&l, "F1", "pp", &c);
    assert_false(c->jobs[0].shared);
    config_unref(c);
    free_lists(&l);
}

#define W "pyroscope.write \"w\" {\n endpoint { url = \"http://h:4040\" }\n}\n"
#define S(name, more)                                                                              \
    "pyroscope.scrape \"" name "\" {\n targets = discovery.relabel.r.output\n"                     \
    " forward_to = [pyroscope.write.w.receiver]\n" more "}\n"
#define R(rule)                                                                                    \
    "discovery.relabel \"r\" {\n targets = [{\"__address__\" = \"h:1\"}]\n rule {\n" rule          \
    "\n }\n}\n"

/* Mistakes that the language and those that only the tables of the configuration know come
 * together; one in a rule of two scrapes comes once; nothing follows from one that was reported. */
TEST(mistakes_of_both_stages_come_together)
{
    static const struct text_case cases[] = {
        {R("target_label = \"x\"") W S(
             "s", "scrape_interval = \"1d\"\nscheme = \"ftp\"\nprofiling_config {\n profile.cpu "
                  "{}\n}\n"),
         "x.alloy:13:19: pyroscope.scrape.s.scrape_interval: expected a duration in h, m, s and "
         "ms, got \"1d\"; did you mean \"24h\"?\n"
         "x.alloy:14:10: pyroscope.scrape.s.scheme: expected \"http\" or \"https\", got \"ftp\"\n"
         "x.alloy:16:2: pyroscope.scrape.s.profiling_config.profile.cpu: unknown block; did you "
         "mean \"profile.process_cpu\"?\n"},
        {R("action = \"kep\"") W S("s", "") S("t", ""),
         "x.alloy:4:10: discovery.relabel.r.rule[0].action: expected \"replace\", \"keep\", "
         "\"drop\", \"keepequal\", \"dropequal\", \"hashmod\", \"labelmap\", \"labeldrop\", "
         "\"labelkeep\", \"lowercase\" or \"uppercase\", got \"kep\"; did you mean \"keep\"?\n"},
        {R("target_label = \"x\"") "pyroscope.write \"w\" {\n endpoint {\n url = 5 + \"a\"\n "
                                   "remote_timeout = \"0s\"\n oauth2 {\n client_id = nosuch\n "
                                   "}\n }\n}\n" S("s", ""),
         "x.alloy:9:12: pyroscope.write.w.endpoint[0].url: expected a number, got a string\n"
         "x.alloy:10:19: pyroscope.write.w.endpoint[0].remote_timeout: expected a duration from "
         "1ms to 1d, got \"0s\"\n"
         "x.alloy:12:14: pyroscope.write.w.endpoint[0].oauth2.client_id: no component, function or "
         "variable \"nosuch\"\n"},
        {"discovery.kubernetes \"k\" {\n role = \"pid\"\n}\ndiscovery.http \"k\" {\n url = "
         "\"ftp://x\"\n}\n" W,
         "x.alloy:1:1: nothing in this file is scraped: there is no pyroscope.scrape that sends "
         "anywhere\n"
         "x.alloy:2:9: discovery.kubernetes.k.role: unknown Kubernetes SD role \"pid\"; did you "
         "mean \"pod\"?\n"
         "x.alloy:5:8: discovery.http.k.url: expected a URL such as \"http://host/targets\" "
         "without user "
         "and fragment, got \"ftp://x\"\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lists l = new_lists();
        struct config_options options = make_options(&l);
        char *directory = testing_mkdtemp();
        char path[512];
        testing_write_file(directory, "x.alloy", cases[i].text);
        snprintf(path, sizeof(path), "%s/x.alloy", directory);
        assert_null(config_load(path, &options, l.errors));
        SCOPED(buf) text = testing_buf(TEXT_MAX);
        SCOPED(buf) want = testing_buf(TEXT_MAX);
        config_errors_format(l.errors, &text);
        for (const char *line = cases[i].want; *line != '\0'; line = strchr(line, '\n') + 1) {
            buf_printf(&want, "%s/%.*s\n", directory, (int)strcspn(line, "\n"), line);
        }
        CHECK_STR(text.data, want.data, cases[i].text);
        testing_directory_leave(&directory);
        free_lists(&l);
    }
}

TEST(an_empty_directory)
{
    struct lists l = new_lists();
    struct config_options options = make_options(&l);
    SCOPED_DIRECTORY char *directory = testing_mkdtemp();
    SCOPED(buf) text = testing_buf(TEXT_MAX);
    testing_write_file(directory, "x.yaml", "");
    assert_null(config_load(directory, &options, l.errors));
    config_errors_format(l.errors, &text);
    CHECK_CONTAINS(text.data,
                   ": expected a file, or a directory with 1 to 256 files that end in "
                   ".alloy, got a directory with 0\n",
                   "");
    free_lists(&l);
}
