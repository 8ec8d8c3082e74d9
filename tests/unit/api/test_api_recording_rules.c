/* settings.v1.RecordingRulesService: rules are created, changed and deleted, count at once, and
 * outlive the process. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "api/recording_rules.h"
#include "record/record.h"
#include "tests/unit/api/exchange_rig.h"
#include "tests/unit/lib/valid_config.h"

#define GET "/settings.v1.RecordingRulesService/GetRecordingRule"
#define LIST "/settings.v1.RecordingRulesService/ListRecordingRules"
#define UPSERT "/settings.v1.RecordingRulesService/UpsertRecordingRule"
#define DELETE "/settings.v1.RecordingRulesService/DeleteRecordingRule"
#define CPU "{__profile_type__=\\\"process_cpu:cpu:nanoseconds:cpu:nanoseconds\\\"}"

struct fixture {
    struct testing_log *log;
    struct config *config;
    char *directory;
    struct rig_process process;
};

static void open_rules(struct fixture *f)
{
    struct err err = ERR_INIT;
    const struct record_options o = {.log = testing_log(f->log), .metrics = f->process.metrics};
    struct record *record = record_new(&o);
    assert_non_null(record);
    struct record_change *c = record_prepare(record, &f->config->record, &err);
    assert_non_null(c);
    record_commit(record, c);
    f->process.served.record = record;
    f->process.served.recording_rules =
        recording_rules_new(f->directory, record, testing_log(f->log), &err);
    assert_non_null(f->process.served.recording_rules);
}

static void close_rules(struct fixture *f)
{
    recording_rules_free(f->process.served.recording_rules);
    record_free(f->process.served.record);
}

static void fixture_begin(struct fixture *f)
{
    const struct config_options o = {.env = NULL};
    f->log = testing_log_new();
    f->config = valid_config(
        "f",
        "write: [{url: \"http://x\"}]\nscrape_configs: [{job_name: a}]\n"
        "record: {max_rules: 3, rules: [{metric_name: profiles_recorded_given, group_by: [pod], "
        "external_labels: {team: shop}, function: main.main, matchers: "
        "['{__profile_type__=\"process_cpu:cpu:nanoseconds:cpu:nanoseconds\"}']}]}\n",
        &o);
    f->directory = testing_mkdtemp();
    f->process = (struct rig_process){.sets = ROUTE_QUERY | ROUTE_ADMIN,
                                      .metrics = metrics_new(),
                                      .log = testing_log(f->log),
                                      .served = {.config = f->config}};
    open_rules(f);
}

static void fixture_end(struct fixture *f)
{
    close_rules(f);
    metrics_free(f->process.metrics);
    config_unref(f->config);
    testing_directory_leave(&f->directory);
    testing_log_done(f->log);
}

FIXTURE(fixture, fixture_begin, fixture_end)

/* Calls a method and compares the status and a part of the answer. */
static void check(struct fixture *f, const char *path, const char *json, int status,
                  const char *part)
{
    SCOPED(rig_answer) a = rig_call(&f->process, path, json);
    CHECK_INT(a.status, status, a.body);
    CHECK_CONTAINS(a.body, part, json);
}

static uint64_t rules_in_force(struct fixture *f)
{
    return testing_metric(f->process.metrics, "profpull_record_rules");
}

#define RULE(more)                                                                                 \
    "{\"metricName\":\"profiles_recorded_x\",\"matchers\":[\"" CPU                                 \
    "\"],\"groupBy\":[\"pod\"]" more "}"

TEST_ON(struct fixture *f, rules_are_created_changed_and_deleted)
{
    check(f, UPSERT,
          RULE(",\"id\":\"abc\",\"externalLabels\":[{\"name\":\"a\",\"value\":\"b\"}],"
               "\"stacktraceFilter\":{\"functionName\":{\"functionName\":\"main.f\"}}"),
          200,
          "{\"rule\":{\"id\":\"abc\",\"metricName\":\"profiles_recorded_x\",\"profileType\":"
          "\"process_cpu:cpu:nanoseconds:cpu:nanoseconds\",\"matchers\":[\"" CPU
          "\"],\"groupBy\":[\"pod\"],\"externalLabels\":[{\"name\":\"a\",\"value\":\"b\"}],"
          "\"generation\":\"1\",\"stacktraceFilter\":{\"functionName\":{\"functionName\":"
          "\"main.f\"}}}}");
    CHECK_INT(rules_in_force(f), 2, "");
    check(f, GET, "{\"id\":\"abc\"}", 200, "\"generation\":\"1\"");
    check(f, UPSERT, RULE(",\"id\":\"abc\",\"generation\":1"), 200, "\"generation\":\"2\"");
    check(f, UPSERT, RULE(",\"id\":\"abc\",\"generation\":1"), 400,
          "{\"code\":\"failed_precondition\",\"message\":\"conflicting update, please try again");
    check(f, LIST, "{}", 200, "\"id\":\"abc\"");
    check(f, DELETE, "{\"id\":\"abc\"}", 200, "{}");
    CHECK_INT(rules_in_force(f), 1, "");
    check(f, GET, "{\"id\":\"abc\"}", 404, "{\"code\":\"not_found\"");
    check(f, DELETE, "{\"id\":\"abc\"}", 404, "{\"code\":\"not_found\"");
}

TEST_ON(struct fixture *f, a_rule_without_an_id_gets_one)
{
    SCOPED(rig_answer) a = rig_call(&f->process, UPSERT, RULE(""));
    char id[RECORD_ID_LENGTH + 1] = "";
    char request[64];
    CHECK_INT(a.status, 200, a.body);
    const char *at = strstr(a.body, "\"id\":\"");
    assert_non_null(at);
    memcpy(id, at + 6, RECORD_ID_LENGTH);
    (void)snprintf(request, sizeof(request), "{\"id\":\"%s\"}", id);
    check(f, GET, request, 200, "profiles_recorded_x");
}

TEST_ON(struct fixture *f, provisioned_rules_cannot_be_changed)
{
    const char *id = f->config->record.rules[0].rule.id;
    char request[512];
    check(f, LIST, "{}", 200,
          "\"metricName\":\"profiles_recorded_given\",\"profileType\":"
          "\"process_cpu:cpu:nanoseconds:cpu:nanoseconds\"");
    check(f, LIST, "{}", 200, "\"functionName\":\"main.main\"}},\"provisioned\":true}]}");
    (void)snprintf(request, sizeof(request), "{\"id\":\"%s\"}", id);
    check(f, GET, request, 200, "\"provisioned\":true");
    check(f, DELETE, request, 400, "{\"code\":\"failed_precondition\"");
    (void)snprintf(request, sizeof(request), RULE(",\"id\":\"%s\",\"generation\":1"), id);
    check(f, UPSERT, request, 400, "{\"code\":\"failed_precondition\"");
}

TEST_ON(struct fixture *f, wrong_rules_are_refused)
{
    static const struct text_case cases[] = {
        {"{\"metricName\":\"x\",\"matchers\":[\"" CPU "\"]}", "metric_name: expected a name"},
        {"{\"metricName\":\"profiles_recorded_x\"}", "matchers: expected one"},
        {"{\"metricName\":\"profiles_recorded_x\",\"matchers\":[\"{\"]}", "matchers: 1:2: parse"},
        {"{\"metricName\":\"profiles_recorded_x\",\"matchers\":[\"" CPU
         "\"],\"groupBy\":[\"a.b\"]}",
         "group_by: expected a label name"},
        {"{\"metricName\":\"profiles_recorded_x\",\"matchers\":[\"" CPU
         "\"],\"externalLabels\":[{\"name\":\"\"}]}",
         "external_labels: expected a label name"},
        {RULE(",\"id\":\"a1\""), "id: expected at most 64 letters"},
        {RULE(",\"generation\":-1"), "generation must be positive"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check(f, UPSERT, cases[i].text, 400, "{\"code\":\"invalid_argument\"");
        check(f, UPSERT, cases[i].text, 400, cases[i].want);
    }
    check(f, GET, "{}", 400, "id is required");
    check(f, DELETE, "{}", 400, "id is required");
    CHECK_INT(rules_in_force(f), 1, "");
}

TEST_ON(struct fixture *f, rules_are_limited)
{
    check(f, UPSERT, RULE(",\"id\":\"a\""), 200, "");
    check(f, UPSERT, RULE(",\"id\":\"b\""), 200, "");
    check(f, UPSERT, RULE(",\"id\":\"c\""), 429, "max_rules is 3");
    check(f, GET, "{\"id\":\"c\"}", 404, "");
    CHECK_INT(rules_in_force(f), 3, "");
}

TEST_ON(struct fixture *f, rules_outlive_the_process)
{
    check(f, UPSERT, RULE(",\"id\":\"abc\""), 200, "");
    close_rules(f);
    open_rules(f);
    /* The call waits for the thread that reads the file. */
    check(f, UPSERT, RULE(",\"id\":\"abc\",\"generation\":1"), 200, "\"generation\":\"2\"");
    CHECK_INT(rules_in_force(f), 2, "");
    close_rules(f);
    testing_write_file(f->directory, RECORDING_RULES_FILE, "{\"rules\":3}");
    testing_log_expect(f->log, "recording rules are not read, and the next change replaces them");
    open_rules(f);
}

TEST_ON(struct fixture *f, a_file_that_cannot_be_written_changes_nothing)
{
    check(f, UPSERT, RULE(",\"id\":\"abc\""), 200, "");
    testing_rmdir(f->directory);
    check(f, DELETE, "{\"id\":\"abc\"}", 500, "{\"code\":\"internal\"");
    check(f, GET, "{\"id\":\"abc\"}", 200, "");
    CHECK_INT(rules_in_force(f), 2, "");
    assert_int_equal(mkdir(f->directory, 0700), 0);
}
