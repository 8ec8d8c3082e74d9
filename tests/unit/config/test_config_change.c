/* Slots of jobs and endpoints from one configuration to the next, and what counts as changed. */
#include "tests/unit/lib/testing.h"

#include "config/change.h"
#include "tests/unit/lib/protocols.h"
#include "tests/unit/lib/valid_config.h"

static const struct config_options options = {.protocols = testing_protocols};

static struct config *parse(const char *text)
{
    return valid_config("f", text, &options);
}

#define ENDPOINT(name) "- {name: " name ", url: \"http://" name ":4040\"}\n"
#define JOB(name, more) "- {job_name: " name ", static_configs: [{targets: [\"h:1\"]}]" more "}\n"

static const char base_text[] =
    "write:\n" ENDPOINT("one") ENDPOINT("two") ENDPOINT("three") "scrape_configs:\n" JOB("a", "")
        JOB("b", ", forward_to: [two]") JOB("c", ", forward_to: [one, three]");

static const struct config_job *job_named(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->n_jobs; i++) {
        if (strcmp(c->jobs[i].name, name) == 0) {
            return &c->jobs[i];
        }
    }
    return NULL;
}

TEST(test_first_slots_are_indices)
{
    SCOPED(config) *c = parse(base_text);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(c->jobs[i].slot, i);
        assert_int_equal(c->endpoints[i].slot, i);
        assert_ptr_equal(config_job_at(c, i), &c->jobs[i]);
        assert_ptr_equal(config_endpoint_at(c, i), &c->endpoints[i]);
    }
    assert_null(config_job_at(c, 3));
    assert_null(config_endpoint_at(c, 3));
    assert_int_equal(config_job_slots(c), 3);
    assert_int_equal(config_endpoint_bits(c), 7);
}

TEST(test_names_keep_their_slots)
{
    struct err err = ERR_INIT;
    SCOPED(config) *now = parse(base_text);
    /* "one" and "a" are gone, "four" and "d" are new, the rest is in another order. */
    SCOPED(config) *next =
        parse("write:\n" ENDPOINT("four") ENDPOINT("three") ENDPOINT("two") "scrape_configs:\n" JOB(
            "d", ", forward_to: [{name: four, profile_relabel_configs: [{regex: x, action: "
                 "labeldrop}]}]") JOB("c", "") JOB("b", ", forward_to: [three]"));
    assert_true(config_assign_slots(next, now, 0, &err));
    assert_int_equal(next->endpoints[0].slot, 3);
    assert_int_equal(next->endpoints[1].slot, 2);
    assert_int_equal(next->endpoints[2].slot, 1);
    assert_int_equal(job_named(next, "d")->slot, 3);
    assert_int_equal(job_named(next, "c")->slot, 2);
    assert_int_equal(job_named(next, "b")->slot, 1);
    assert_int_equal(job_named(next, "d")->forward_to, 1 << 3);
    assert_int_equal(job_named(next, "d")->ways[0].endpoint, 1 << 3);
    assert_int_equal(job_named(next, "c")->forward_to, 14);
    assert_int_equal(job_named(next, "b")->forward_to, 1 << 2);
    assert_ptr_equal(config_job_at(next, 3), job_named(next, "d"));
    assert_null(config_job_at(next, 0));
    assert_int_equal(config_job_slots(next), 4);

    /* Slot 0 is free by now, of endpoints unless its destination is still there. */
    SCOPED(config) *third = parse("write:\n" ENDPOINT("five") ENDPOINT(
        "three") "scrape_configs:\n" JOB("e", "") JOB("c", ""));
    assert_true(config_assign_slots(third, next, 1, &err));
    assert_int_equal(third->endpoints[0].slot, 4);
    assert_int_equal(third->endpoints[1].slot, 2);
    assert_int_equal(job_named(third, "e")->slot, 0);
    assert_int_equal(job_named(third, "c")->slot, 2);
    assert_int_equal(job_named(third, "e")->forward_to, 1 << 4 | 1 << 2);
}

/* Profiles that have been queued or written stay with their endpoint. */
TEST(test_another_place_is_another_endpoint)
{
    static const struct {
        const char *before, *after;
        bool stays;
    } cases[] = {
        {"url: \"http://h:4040\"", "url: \"http://other:4040\"", true},
        {"url: \"http://h:4040\"", "url: \"http://h:4040\", tenant_id: t", true},
        {"url: \"http://h:4040\"", "url: \"http://h:4040\", protocol: ingest", true},
        {"url: \"http://h:4040\"", "url: \"http://h:4040\", queue: {spool_directory: /s}", false},
        {"url: \"http://h:4040\", queue: {spool_directory: /s}",
         "url: \"http://h:4041\", queue: {spool_directory: /s}", true},
        {"url: \"file:///a\"", "url: \"file:///b\"", false},
        {"url: \"file:///a\"", "url: \"file:///a\", retention: {max_age: 1h}", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[2][512];
        const char *settings[] = {cases[i].before, cases[i].after};
        struct err err = ERR_INIT;
        for (size_t k = 0; k < 2; k++) {
            snprintf(text[k], sizeof(text[k]), "write: [{name: e, %s}]\nscrape_configs:\n%s",
                     settings[k], JOB("a", ""));
        }
        SCOPED(config) *now = parse(text[0]);
        SCOPED(config) *next = parse(text[1]);
        assert_true(config_assign_slots(next, now, 0, &err));
        assert_int_equal(next->endpoints[0].slot, cases[i].stays ? 0 : 1);
        assert_int_equal(next->jobs[0].forward_to, cases[i].stays ? 1 : 2);
    }
}

TEST(test_slots_run_out)
{
    struct err err = ERR_INIT;
    SCOPED(config) *now = parse("write:\n" ENDPOINT("one") "scrape_configs:\n" JOB("a", ""));
    SCOPED(config) *next = parse("write:\n" ENDPOINT("two") "scrape_configs:\n" JOB("a", ""));
    assert_false(config_assign_slots(next, now, ~UINT64_C(1), &err));
    assert_string_equal(err.msg,
                        "endpoint \"two\": expected at most 64 endpoints, those of the former "
                        "configuration included; wait until the former ones "
                        "have sent their queues, or restart profpull");
}

/* ---- what has changed ------------------------------------------------------------------------ */

static const char rich_text[] =
    "global: {external_labels: {cluster: c1}}\n"
    "write: [{name: e, url: \"http://h:4040\", basic_auth: {username: u, password: pw1}}]\n"
    "scrape_configs:\n"
    "- {job_name: a, static_configs: [{targets: [\"h:1\"]}], params: {token: [t1]},\n"
    "   authorization: {credentials: c1}, relabel_configs: [{regex: r1, action: labeldrop}]}\n"
    "- {job_name: b, static_configs: [{targets: [\"h:2\"]}]}\n";

/* The text with a word replaced by another one. */
static struct config *parse_with(const char *word, const char *by)
{
    char text[1024];
    const char *at = strstr(rich_text, word);
    assert_non_null(at);
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - rich_text), rich_text, by,
             at + strlen(word));
    return parse(text);
}

TEST(test_changes_are_seen)
{
    static const struct {
        const char *word, *by;
        bool job; /* changes job "a"; never "b" */
        bool source, endpoint, global;
    } cases[] = {
        {.word = "write:", .by = "# a comment\nwrite:"},
        {.word = "pw1", .by = "pw2", .endpoint = true},
        {.word = "pw1", .by = "\"\\xe9\"", .endpoint = true},
        /* The default, but given. */
        {.word = "{name: e", .by = "{sample_labels: {max_names: 6}, name: e", .endpoint = true},
        {.word = "token: [t1]", .by = "token: [t2]", .job = true},
        {.word = "credentials: c1", .by = "credentials: c2", .job = true},
        {.word = "r1", .by = "r2", .job = true},
        {.word = "h:1", .by = "h:3", .job = true, .source = true},
        {.word = "cluster: c1", .by = "cluster: c2", .endpoint = true, .global = true},
    };
    SCOPED(config) *now = parse(rich_text);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(config) *next = parse_with(cases[i].word, cases[i].by);
        const struct config_job *a = &now->jobs[0];
        const struct config_job *b = &next->jobs[0];
        bool any = cases[i].job || cases[i].endpoint || cases[i].global;
        assert_int_equal(config_same(now, next), !any);
        assert_int_equal(config_same_job(now, a, next, b), !cases[i].job);
        assert_true(config_same_job(now, &now->jobs[1], next, &next->jobs[1]));
        assert_int_equal(config_same_source(now, a->sources, next, b->sources), !cases[i].source);
        assert_int_equal(config_same_endpoint(now, now->endpoints, next, next->endpoints),
                         !cases[i].endpoint);
        for (unsigned part = 0; part < CONFIG_PARTS; part++) {
            assert_int_equal(config_same_part(now, next, (enum config_part)part),
                             part != CONFIG_PART_GLOBAL || !cases[i].global);
        }
    }
}

TEST(test_parts)
{
    static const struct {
        enum config_part part;
        const char *text;
    } cases[] = {
        {CONFIG_PART_SERVER, "server: {listen: \"127.0.0.1:1\"}\n"},
        {CONFIG_PART_QUERY, "query: {concurrency: 7}\n"},
        {CONFIG_PART_RECEIVE, "receive: {listen: \"127.0.0.1:1\"}\n"},
        {CONFIG_PART_LOG, "log: {level: debug}\n"},
        {CONFIG_PART_SHARDING, "sharding: {mode: static, replicas: 2, index: 1}\n"},
    };
    SCOPED(config) *now = parse(base_text);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[2048];
        snprintf(text, sizeof(text), "%s%s", cases[i].text, base_text);
        SCOPED(config) *next = parse(text);
        assert_false(config_same(now, next));
        for (unsigned part = 0; part < CONFIG_PARTS; part++) {
            assert_int_equal(config_same_part(now, next, (enum config_part)part),
                             part != cases[i].part);
        }
    }
}

/* The order of jobs and endpoints in the file, and the slots that follow from it, are no change. */
TEST(test_slots_are_no_change)
{
    struct err err = ERR_INIT;
    SCOPED(config) *now = parse(base_text);
    SCOPED(config) *next =
        parse("write:\n" ENDPOINT("two") ENDPOINT("one") ENDPOINT("three") "scrape_configs:\n" JOB(
            "b", ", forward_to: [two]") JOB("c", ", forward_to: [three, one]"));
    assert_true(config_assign_slots(next, now, 0, &err));
    for (size_t i = 0; i < next->n_jobs; i++) {
        const struct config_job *job = &next->jobs[i];
        assert_true(config_same_job(now, config_job_at(now, job->slot), next, job));
    }
}

TEST(test_hash)
{
    SCOPED(config) *now = parse(rich_text);
    SCOPED(config) *same = parse_with("write:", "# a comment\nwrite:");
    SCOPED(config) *secret = parse_with("pw1", "pw2");
    SCOPED(config) *other = parse_with("r1", "r2");
    assert_int_not_equal(config_hash(now), 0);
    assert_int_equal(config_hash(now), config_hash(same));
    assert_int_equal(config_hash(now), config_hash(secret));
    assert_int_not_equal(config_hash(now), config_hash(other));
}
