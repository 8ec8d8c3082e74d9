/* The key `symbols`, for all profiles and for those of a job. */
#include "tests/unit/lib/testing.h"

#include "config/change.h"
#include "tests/unit/lib/valid_config.h"

#define WRITE "write: [{url: \"http://x\"}]\n"
#define ONE_JOB "scrape_configs: [{job_name: a}]\n" WRITE
#define TWO_JOBS                                                                                   \
    "scrape_configs:\n- job_name: a\n- job_name: b\n  symbols: {target: off, wait: 5s}\n" WRITE
#define CACHE "cache: {directory: /c, max_bytes: 5MiB}"

static void join(const struct symbols_list *list, struct buf *out)
{
    for (size_t i = 0; i < list->n; i++) {
        buf_printf(out, "%s ", list->at[i]);
    }
}

static void check_sources(const struct symbols_sources *s, const char *want, const char *row)
{
    SCOPED(buf) text = testing_buf(10000);
    buf_printf(&text, "%u %lld ", s->target, (long long)s->wait_ms);
    join(&s->debuginfod, &text);
    buf_puts(&text, "| ");
    join(&s->directories, &text);
    CHECK_STR(text.data, want, row);
}

TEST(everything_has_a_default)
{
    SCOPED(config) *c = valid_config("f", ONE_JOB, NULL);
    check_sources(&c->symbols.sources, "0 0 | ", "global");
    check_sources(&c->jobs[0].symbols, "0 0 | ", "job");
    assert_null(c->symbols.cache_directory);
    assert_int_equal(c->symbols.cache_max_bytes, 1 << 30);
    assert_int_equal(c->symbols.names_max_bytes, 64 << 20);
    assert_int_equal(c->symbols.max_file_size, 512 << 20);
    assert_int_equal(c->symbols.max_memory, 1 << 30);
    assert_int_equal(c->symbols.timeout_ms, 60000);
}

TEST(a_job_overrides_what_it_names)
{
    SCOPED(config) *c = valid_config(
        "f",
        TWO_JOBS "symbols: {debuginfod: [\"http://d:1\", \"http://e/x\"], directories: "
                 "[/usr/lib/debug], wait: 1s, " CACHE "}\n",
        NULL);
    check_sources(&c->symbols.sources, "0 1000 http://d:1 http://e/x | /usr/lib/debug ", "global");
    check_sources(&c->jobs[0].symbols, "0 1000 http://d:1 http://e/x | /usr/lib/debug ", "a");
    check_sources(&c->jobs[1].symbols, "1 5000 http://d:1 http://e/x | /usr/lib/debug ", "b");
    check_sources(&c->receive.job.symbols, "0 1000 http://d:1 http://e/x | /usr/lib/debug ",
                  "receive");
}

/* A dump has only what the file sets, and means the same. */
TEST(a_dump_means_the_same)
{
    static const char text[] = TWO_JOBS
        "symbols: {target: off, debuginfod: [\"http://d\"], bearer_token: secret, " CACHE "}\n";
    SCOPED(config) *c = valid_config("f", text, NULL);
    SCOPED(config) *plain = valid_config("f", ONE_JOB, NULL);
    SCOPED(buf) dump = testing_buf(1 << 20);
    assert_true(config_dump(plain, &dump));
    assert_null(strstr(dump.data, "symbols"));
    buf_clear(&dump);
    assert_true(config_dump(c, &dump));
    CHECK_CONTAINS(dump.data, "\n  symbols:\n    target: off\n", "job");
    CHECK_CONTAINS(dump.data, "\nsymbols:\n  target: off\n", "global");
    assert_null(strstr(dump.data, "secret\""));
    SCOPED(config) *again = valid_config("f", dump.data, NULL);
    check_sources(&again->jobs[0].symbols, "1 0 http://d | ", "again");
    check_sources(&again->jobs[1].symbols, "1 5000 http://d | ", "again");
}

/* A job follows a change of the section, so its targets must get the new settings. */
TEST(a_change_of_the_section_changes_its_jobs)
{
    SCOPED(config) *one = valid_config("f", ONE_JOB "symbols: {wait: 1s}\n", NULL);
    SCOPED(config) *other = valid_config("f", ONE_JOB "symbols: {wait: 2s}\n", NULL);
    assert_false(config_same_job(one, &one->jobs[0], other, &other->jobs[0]));
    assert_true(config_same_job(one, &one->jobs[0], one, &one->jobs[0]));
    assert_false(config_same_part(one, other, CONFIG_PART_SYMBOLS));
    assert_false(config_same(one, other));
}

TEST(mistakes_are_reported)
{
    static const struct text_case cases[] = {
        {"symbols: {debuginfod: [\"http://d\"]}\n",
         "f:3:23: symbols.debuginfod: needs the key \"cache.directory\", where the files are "
         "kept\n"},
        {"symbols: {max_file_size: 600MiB, max_memory: 500MiB}\n",
         "f:3:46: symbols.max_memory: expected at least max_file_size: a file is mapped into this "
         "memory\n"},
        {"symbols: {debuginfod: [\"http://me:hunter2@d\"], " CACHE "}\n",
         "f:3:24: symbols.debuginfod[0]: expected a URL such as \"http://host:4040\" without user, "
         "query and fragment\n"},
        {"symbols: {wait: 61s}\n",
         "f:3:17: symbols.wait: expected a duration from 0s to 1m, got \"61s\"\n"},
        {"symbols: {target: on}\n",
         "f:3:19: symbols.target: expected \"auto\" or \"off\", got \"on\"\n"},
        {"symbols: {wait: 1s, " CACHE "}\n", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[1024];
        SCOPED(config_errors) *list = config_errors_new();
        SCOPED(buf) errors = testing_buf(10000);
        snprintf(text, sizeof(text), ONE_JOB "%s", cases[i].text);
        config_unref(config_parse("f", sv_from(text), NULL, list));
        config_errors_format(list, &errors);
        CHECK_STR(errors.data, cases[i].want, cases[i].text);
    }
}

TEST(a_job_with_debuginfod_needs_the_cache)
{
    SCOPED(config_errors) *list = config_errors_new();
    SCOPED(buf) errors = testing_buf(10000);
    config_unref(config_parse("f",
                              SV("scrape_configs:\n- job_name: a\n  symbols: {debuginfod: "
                                 "[\"http://d\"]}\n" WRITE),
                              NULL, list));
    config_errors_format(list, &errors);
    CHECK_STR(errors.data,
              "f:3:12: scrape_configs[0].symbols: debuginfod needs the key \"cache.directory\" of "
              "the section symbols\n",
              "");
}
