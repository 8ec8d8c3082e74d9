/* The log about an endpoint: one line for one cause. */
#include "tests/unit/write/requests.h"

#include "write/destination.h"

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)

struct fixture {
    struct testing_log *log;
    struct metrics *metrics;
    struct report report;
    struct conditions *conditions;
    struct profile *profile;
    int64_t now;
};

/* expected: what the log will have to say. */
static void fixture_init(struct fixture *f, const char *expected)
{
    *f = (struct fixture){.now = 1};
    f->log = testing_log_new();
    f->metrics = metrics_new();
    report_init(&f->report, testing_log(f->log), f->metrics, "main");
    f->report.conditions = f->conditions = conditions_new();
    assert_non_null(f->conditions);
    testing_log_expect(f->log, expected);
    char *data = testing_memory(1);
    f->profile = profile_new(testing_labels(table, "service_name", "s", NULL), data, 1);
    assert_non_null(f->profile);
}

static void fixture_done(struct fixture *f)
{
    profile_unref(f->profile);
    metrics_free(f->metrics);
    conditions_free(f->conditions);
    testing_log_done(f->log);
}
SCOPED_VALUE(fixture, fixture_done)

static void say(struct fixture *f, enum answer_class class, enum answer_scope scope,
                const char *tenant, const char *text)
{
    struct answer answer = {.class = class, .scope = scope};
    struct send_result outcome = {
        .outcome = class == ANSWER_SENT ? WRITE_SENT : WRITE_RETRIED,
        .scope = scope,
        .failures = class != ANSWER_SENT,
        .wait_ms = 500,
        .queued = 7,
    };
    struct report_attempt a = {.profile = f->profile,
                               .answer = &answer,
                               .outcome = &outcome,
                               .result = "x",
                               .hint = class == ANSWER_SENT ? "" : "do this",
                               .attempt = 1,
                               .start_ms = f->now,
                               .now_ms = f->now};
    struct send_queue_status status = {
        .ledger = {.queued = 3},
        .oldest_ms = 77,
        .failures = class != ANSWER_SENT && scope == ANSWER_OF_ENDPOINT,
        .lanes = {.tenants = 1, .failing = class != ANSWER_SENT && scope == ANSWER_OF_TENANT},
    };
    (void)snprintf(answer.text, sizeof(answer.text), "%s", text);
    (void)snprintf(outcome.tenant, sizeof(outcome.tenant), "%s", tenant);
    report_done(&f->report, &a);
    report_state(&f->report, &status, f->now);
}

static size_t lines(struct fixture *f, const char *part)
{
    size_t n = 0;
    for (const char *at = testing_log_text(f->log); (at = strstr(at, part)) != NULL; at++) {
        n++;
    }
    return n;
}

/* A rate limit refuses and takes by turns, for as long as it is reached. */
TEST_WITH(test_a_limit_is_one_line, setup, teardown)
{
    SCOPED(fixture) f;
    fixture_init(&f, "endpoint fails, retrying");
    for (int i = 0; i < 600; i++) {
        f.now += SECOND;
        say(&f, i % 2 == 0 ? ANSWER_RETRY_DOUBTFUL : ANSWER_SENT, ANSWER_OF_TENANT, "team-a",
            "HTTP 429: push rate limit (4.0 MiB) exceeded while adding 1 MiB");
    }
    CHECK_INT(lines(&f, "endpoint fails"), 1, "");
    CHECK_INT(lines(&f, "works again"), 0, "not yet");
    CHECK_CONTAINS(testing_log_text(f.log), "suppressed=0 tenant=team-a", "");
    f.now += MINUTE - SECOND;
    say(&f, ANSWER_SENT, ANSWER_OF_TENANT, "team-a", "");
    CHECK_INT(lines(&f, "works again"), 0, "not quite");
    f.now += SECOND;
    say(&f, ANSWER_SENT, ANSWER_OF_TENANT, "team-b", "");
    CHECK_INT(lines(&f, "works again"), 1, "");
    CHECK_CONTAINS(testing_log_text(f.log), "queued=3 after_s=599 failures=300 tenant=team-a", "");
}

/* Without tenants, no line speaks of any. */
TEST_WITH(test_no_tenant, setup, teardown)
{
    SCOPED(fixture) f;
    fixture_init(&f, "endpoint fails, retrying");
    say(&f, ANSWER_RETRY, ANSWER_OF_TENANT, "", "HTTP 401: no");
    CHECK_INT(lines(&f, "endpoint fails"), 1, "");
    CHECK_INT(lines(&f, "tenant"), 0, "");
    /* Another cause is another line. */
    say(&f, ANSWER_RETRY, ANSWER_OF_TENANT, "", "HTTP 404: no");
    CHECK_INT(lines(&f, "endpoint fails"), 2, "");
}

/* However many tenants are refused, the log stays short. */
TEST_WITH(test_many_tenants, setup, teardown)
{
    SCOPED(fixture) f;
    fixture_init(&f, "endpoint fails, retrying");
    for (int i = 0; i < 1000; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "t%d", i % 100);
        say(&f, ANSWER_RETRY, ANSWER_OF_TENANT, name, "HTTP 429: no");
    }
    CHECK_INT(lines(&f, "endpoint fails"), REPORT_TENANTS_MAX, "");
}

TEST_WITH(test_refused_profiles, setup, teardown)
{
    SCOPED(fixture) f;
    fixture_init(&f, "profile refused, retrying");
    for (int i = 0; i < 600; i++) {
        char text[64];
        f.now += SECOND / 5;
        (void)snprintf(text, sizeof(text), "HTTP 500: part %d of {a=\"%d\"} is broken", i, i);
        say(&f, ANSWER_RETRY_DOUBTFUL, ANSWER_OF_PROFILE, "team-a", text);
        say(&f, ANSWER_SENT, ANSWER_OF_PROFILE, "team-a", "");
    }
    CHECK_INT(lines(&f, "profile refused"), 2, "in two minutes");
    CHECK_CONTAINS(testing_log_text(f.log), "service_name=s", "");
    CHECK_CONTAINS(testing_log_text(f.log), "more=299", "");
    CHECK_INT(lines(&f, "endpoint"), 2, "it does not fail");
}

/* The API shows of an endpoint whether it works, and the last failure with its remedy. */
TEST_WITH(test_conditions, setup, teardown)
{
    static const enum answer_scope scopes[] = {ANSWER_OF_ENDPOINT, ANSWER_OF_TENANT,
                                               ANSWER_OF_PROFILE};
    for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
        SCOPED(fixture) f;
        struct write_condition c;
        bool works = scopes[i] == ANSWER_OF_PROFILE;
        fixture_init(&f, works ? "profile refused" : "endpoint fails");
        assert_false(conditions_get(f.conditions, "main", &c));
        say(&f, ANSWER_RETRY, scopes[i], "", "HTTP 503: away");
        assert_true(conditions_get(f.conditions, "main", &c));
        assert_false(conditions_get(f.conditions, "other", &c));
        CHECK_INT(c.works, works, "after a failure");
        CHECK_INT(c.since_ns > 0, !works, "since");
        CHECK_INT(c.oldest_ms, 77, "the oldest one");
        CHECK_STR(c.why, "HTTP 503: away", "why");
        CHECK_STR(c.advice, "do this", "advice");
        CHECK_INT(strstr(testing_log_text(f.log), "hint=\"do this\"") != NULL, !works, "the log");
        say(&f, ANSWER_SENT, scopes[i], "", "");
        assert_true(conditions_get(f.conditions, "main", &c));
        assert_true(c.works && c.since_ns == 0);
        CHECK_STR(c.why, "", "after a success");
        CHECK_STR(c.advice, "", "after a success");
    }
    assert_false(conditions_get(NULL, "main", &(struct write_condition){.works = false}));
    conditions_set(NULL, "main", &(struct write_condition){.works = false});
}
