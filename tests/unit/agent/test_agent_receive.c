/* Pushed profiles: what is taken, what is refused and in which words, what becomes of labels. */
#include "tests/unit/lib/testing.h"

#include <pthread.h>
#include <stdlib.h>

#include "agent/received_labels.h"
#include "pprof/gzip.h"
#include "tests/unit/lib/receive_rig.h"

#define ONE "[{name: a, url: \"http://127.0.0.1:1\"}]"
#define LABELS_ROOM 16

/* Labels from "a=b c=d". */
static size_t labels_of(const char *text, struct label out[LABELS_ROOM])
{
    struct sv rest = sv_from(text);
    struct sv word;
    size_t n = 0;
    while (pprof_word(&rest, ' ', &word)) {
        assert_true(n < LABELS_ROOM && sv_cut(word, '=', &out[n].name, &out[n].value));
        n++;
    }
    return n;
}

static enum receive_result push_as(struct receive_rig *g, struct sv data,
                                   enum profile_format format, const char *labels, int64_t from_ns,
                                   struct err *err)
{
    struct label at[LABELS_ROOM];
    struct receive_item item;
    const struct receive_facts facts = {
        .labels = at, .n_labels = labels_of(labels, at), .from_ns = from_ns};
    enum receive_result result = receive_open(g->receive, RECEIVE_PUSH, format, data, &item, err);
    if (result == RECEIVE_ACCEPTED) {
        result = receive_put(g->receive, &item, &facts, err);
    }
    receive_count(g->receive, RECEIVE_PUSH, result, data.n, err);
    receive_close(g->receive, &item);
    return result;
}

static enum receive_result push(struct receive_rig *g, const struct buf *profile,
                                const char *labels, struct err *err)
{
    return push_as(g, (struct sv){profile->data, profile->len}, PROFILE_PPROF, labels, 0, err);
}

/* ---- labels ---------------------------------------------------------------------------------- */

TEST(labels_become)
{
    static const struct text_case cases[] = {
        {"__name__=x service_name=s", "{__name__=\"x\", service_name=\"s\"}"},
        {"pod= __name__=x", "{__name__=\"x\", service_name=\"unknown_service\"}"},
        {"__name__=x service_name=s __foo__=bar __type__=t __session_id__=0123456789abcdef "
         "__tenant_id__=t",
         "{__foo__=\"bar\", __name__=\"x\", __type__=\"t\", service_name=\"s\"}"},
        {"__name__=godeltaprof_memory service_name=s",
         "{__delta__=\"false\", __name__=\"memory\", __name_replaced__=\"godeltaprof_memory\", "
         "service_name=\"s\"}"},
        {"__name__=godeltaprof_ service_name=s", "{__name__=\"godeltaprof_\", service_name=\"s\"}"},
        {"__name__=x service_name=s app.kubernetes.io/name=y",
         "{__name__=\"x\", app.kubernetes.io/name=\"y\", service_name=\"s\"}"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(intern) *intern = intern_new();
        SCOPED(labels_builder) *b = labels_builder_new(intern);
        struct label at[LABELS_ROOM];
        size_t n = received_labels_sort(at, labels_of(cases[i].text, at));
        received_labels_put(at, n, b);
        SCOPED(labels) *l = labels_builder_build(b);
        SCOPED(buf) got = testing_buf(4096);
        testing_labels_format(l, &got);
        CHECK_STR(got.data, cases[i].want, cases[i].text);
    }
}

TEST(refuses_labels)
{
    static const struct text_case cases[] = {
        {"pod=b pod=a __name__=process_cpu service_name=e12",
         "profile with labels '{__name__=\"process_cpu\", pod=\"a\", pod=\"b\", "
         "service_name=\"e12\"}' has duplicate label name: 'pod'"},
        {"service_name=e13",
         "invalid labels '{service_name=\"e13\"}' with error: invalid metric name"},
        {"=x __name__=process_cpu service_name=e20",
         "invalid labels '{=\"x\", __name__=\"process_cpu\", service_name=\"e20\"}' with error: "
         "invalid label name ''"},
        {"__name__=x toolongname123456789=1",
         "profile with labels '{__name__=\"x\", toolongname123456789=\"1\"}' has label name too "
         "long: 'toolongname123456789'"},
        {"__name__=x a=toolongvalue123456789",
         "profile with labels '{__name__=\"x\", a=\"toolongvalue123456789\"}' has label value too "
         "long: 'a'"},
        {"__name__=x a=1 b=2 c=3 d=4",
         "profile series '{__name__=\"x\", a=\"1\", b=\"2\", c=\"3\", d=\"4\"}' has 5 label names; "
         "limit 4"},
        {"", "error at least one label pair is required per profile"},
        {"__name__=x a=\xff",
         "invalid labels '{__name__=\"x\", a=\"\xef\xbf\xbd\"}' with error: invalid value of label "
         "'a': no UTF-8"},
        {"__name__=x a\xff=1", "with error: invalid label name ''"},
    };
    SCOPED(receive_rig) g;
    receive_rig_start(
        &g, "{max_label_names: 4, max_label_name_length: 16, max_label_value_length: 16}", ONE);
    testing_log_expect(g.log, "pushed profile refused");
    SCOPED(buf) profile = receive_rig_profile(clock_wall_ns());
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        CHECK_INT(push(&g, &profile, cases[i].text, &err), RECEIVE_BAD_LABELS, cases[i].text);
        CHECK_CONTAINS(err.msg, cases[i].want, cases[i].text);
    }
    CHECK_INT(testing_metric(g.metrics, "profpull_receive_profiles_total{protocol=\"push\",result="
                                        "\"bad_labels\"}"),
              sizeof(cases) / sizeof(cases[0]), "");
    CHECK_INT(writer_ledger(g.writer, 0).accepted, 0, "");
}

/* Each is within the limits of the configuration, but not all of them together: another try would
 * not help. */
TEST(too_large_labels)
{
    enum { LABELS = 800, SIZE = 2000 };
    static char names[LABELS][8];
    static char value[SIZE];
    static struct label labels[LABELS];
    SCOPED(receive_rig) g;
    struct receive_item item;
    struct err err = ERR_INIT;
    SCOPED(buf) profile = receive_rig_profile(clock_wall_ns());
    const struct receive_facts facts = {.labels = labels, .n_labels = LABELS};
    memset(value, 'v', SIZE);
    for (size_t i = 0; i < LABELS; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "a%zu", i);
        labels[i] = (struct label){sv_from(names[i]), {value, SIZE}};
    }
    labels[0].name = SV("__name__");
    receive_rig_start(&g, "{max_label_names: 1000}", ONE);
    CHECK_INT(receive_open(g.receive, RECEIVE_PUSH, PROFILE_PPROF,
                           (struct sv){profile.data, profile.len}, &item, &err),
              RECEIVE_ACCEPTED, "");
    CHECK_INT(receive_put(g.receive, &item, &facts, &err), RECEIVE_BAD_LABELS, "");
    CHECK_STR(err.msg, "more than 1024 labels or 1048576 bytes of them", "");
    receive_close(g.receive, &item);
}

TEST(too_many_labels)
{
    static struct label labels[RECEIVE_LABELS_MAX + 1];
    SCOPED(receive_rig) g;
    struct receive_item item;
    struct err err = ERR_INIT;
    SCOPED(buf) profile = receive_rig_profile(clock_wall_ns());
    const struct receive_facts facts = {.labels = labels, .n_labels = RECEIVE_LABELS_MAX + 1};
    receive_rig_start(&g, "{}", ONE);
    CHECK_INT(receive_open(g.receive, RECEIVE_PUSH, PROFILE_PPROF,
                           (struct sv){profile.data, profile.len}, &item, &err),
              RECEIVE_ACCEPTED, "");
    CHECK_INT(receive_put(g.receive, &item, &facts, &err), RECEIVE_BAD_LABELS, "");
    CHECK_STR(err.msg, "profile series has more than 1024 labels", "");
    receive_close(g.receive, &item);
}

/* ---- time ------------------------------------------------------------------------------------ */

TEST(window)
{
    const int64_t minute = 60 * NS_PER_S;
    const int64_t now = clock_wall_ns();
    /* Far from the bounds, so that the speed of the machine does not matter. */
    const struct {
        const char *receive;
        int64_t time_ns, from_ns;
        enum receive_result want;
    } cases[] = {
        {"{}", now, 0, RECEIVE_ACCEPTED},
        {"{}", 0, 0, RECEIVE_ACCEPTED},
        {"{}", 0, now - 60 * minute, RECEIVE_ACCEPTED},
        {"{}", 0, 1, RECEIVE_BAD_TIME},
        {"{}", now, 1, RECEIVE_ACCEPTED}, /* the profile's own time decides */
        {"{}", 5 * minute, 0, RECEIVE_BAD_TIME},
        {"{}", 5 * minute, now, RECEIVE_ACCEPTED}, /* but not if it is of 1970 */
        {"{}", now - 6 * 24 * 60 * minute, 0, RECEIVE_ACCEPTED},
        {"{}", now - 8 * 24 * 60 * minute, 0, RECEIVE_BAD_TIME},
        {"{max_age: 1h}", now - 120 * minute, 0, RECEIVE_BAD_TIME},
        {"{max_age: 1h}", now - 30 * minute, 0, RECEIVE_ACCEPTED},
        {"{max_age: 0s}", 1, 0, RECEIVE_ACCEPTED},
        {"{}", now + 5 * minute, 0, RECEIVE_ACCEPTED},
        {"{}", now + 20 * minute, 0, RECEIVE_BAD_TIME},
        {"{max_ahead: 1h}", now + 20 * minute, 0, RECEIVE_ACCEPTED},
        {"{}", INT64_MAX, 0, RECEIVE_BAD_TIME},
        {"{}", -5, 0, RECEIVE_ACCEPTED}, /* as no time */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char row[32];
        SCOPED(receive_rig) g;
        struct err err = ERR_INIT;
        SCOPED(buf) profile = receive_rig_profile(cases[i].time_ns);
        (void)snprintf(row, sizeof(row), "row %zu", i);
        receive_rig_start(&g, cases[i].receive, ONE);
        if (cases[i].want != RECEIVE_ACCEPTED) {
            testing_log_expect(g.log, "pushed profile refused");
        }
        enum receive_result got = push_as(&g, (struct sv){profile.data, profile.len}, PROFILE_PPROF,
                                          "__name__=x", cases[i].from_ns, &err);
        CHECK_INT(got, cases[i].want, row);
        if (got == RECEIVE_BAD_TIME) {
            CHECK_CONTAINS(err.msg,
                           "profile with labels '{__name__=\"x\"}' is outside of ingestion window "
                           "(profile timestamp: ",
                           row);
            CHECK_CONTAINS(err.msg, " +0000 UTC, the ingestion window starts at ", row);
        }
    }
}

/* ---- profiles -------------------------------------------------------------------------------- */

TEST(refuses_profiles)
{
    SCOPED(receive_rig) g;
    struct err err = ERR_INIT;
    receive_rig_start(&g, "{max_profile_size: 4KiB}", ONE);
    testing_log_expect(g.log, "pushed profile refused");
    CHECK_INT(push_as(&g, SV(""), PROFILE_PPROF, "__name__=x", 0, &err), RECEIVE_BAD_PROFILE, "");
    CHECK_STR(err.msg, "the profile is empty", "");
    err_clear(&err);
    CHECK_INT(push_as(&g, SV("hello"), PROFILE_PPROF, "__name__=x", 0, &err), RECEIVE_BAD_PROFILE,
              "text");
    err_clear(&err);
    CHECK_INT(push_as(&g, SV("\x1f\x8b\x08"), PROFILE_PPROF, "__name__=x", 0, &err),
              RECEIVE_BAD_PROFILE, "gzip");
    err_clear(&err);
    CHECK_INT(push_as(&g, SV("no recording"), PROFILE_JFR, "__name__=x", 0, &err),
              RECEIVE_BAD_PROFILE, "jfr");

    static const struct pprof_row rows[] = {{"main", "", {1}}};
    SCOPED(buf) dash = pprof_make(&(struct pprof_spec){.types = "a-b/count"}, rows, 1);
    err_clear(&err);
    CHECK_INT(push(&g, &dash, "__name__=x", &err), RECEIVE_BAD_PROFILE, "dash");
    CHECK_STR(err.msg, "sample type contains -", "");

    /* A location that is not there. */
    SCOPED(buf) dangling = testing_buf(1000);
    static const char bytes[] = "\x0a\x04\x08\x01\x10\x01" /* sample type */
                                "\x12\x04\x08\x63\x10\x01" /* sample: location 99 */
                                "\x32\x00\x32\x01x";
    buf_append(&dangling, bytes, sizeof(bytes) - 1);
    err_clear(&err);
    CHECK_INT(push(&g, &dangling, "__name__=x", &err), RECEIVE_BAD_PROFILE, "dangling");

    CHECK_INT(writer_ledger(g.writer, 0).accepted, 0, "");
    CHECK_CONTAINS(testing_log_text(g.log), "protocol=push result=bad_profile", "");
}

/* A profile over the limit, plain and compressed, and a bomb. */
TEST(limits_size)
{
    static const size_t sizes[] = {5000, 50000, 20 << 20};
    SCOPED(receive_rig) g;
    receive_rig_start(&g, "{max_profile_size: 4KiB}", ONE);
    testing_log_expect(g.log, "pushed profile refused");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        SCOPED(scratch) *scratch = scratch_new();
        struct err err = ERR_INIT;
        struct sv packed;
        SCOPED_MEMORY char *plain = testing_memory(sizes[i]);
        assert_true(gzip_deflate(scratch, (struct sv){plain, sizes[i]}, &packed));
        CHECK_INT(push_as(&g, packed, PROFILE_PPROF, "__name__=x", 0, &err), RECEIVE_TOO_LARGE, "");
        CHECK_STR(err.msg, "uncompressed profile payload size exceeds limit of 4KiB", "");
    }
    struct err err = ERR_INIT;
    SCOPED(buf) large = receive_rig_profile(clock_wall_ns());
    SCOPED(buf) name = testing_buf(5000);
    while (name.len < 4500) {
        buf_putc(&name, 'x');
    }
    put_msg(&large, 6, name.data, name.len);
    CHECK_INT(push(&g, &large, "__name__=x", &err), RECEIVE_TOO_LARGE, "plain");
}

TEST(keeps_bytes)
{
    SCOPED(receive_rig) g;
    struct err err = ERR_INIT;
    SCOPED(buf) profile = receive_rig_profile(clock_wall_ns());
    receive_rig_start(&g, "{}", ONE);
    CHECK_INT(push(&g, &profile, "__name__=x", &err), RECEIVE_ACCEPTED, "");
    CHECK_STR(err.msg, "", "");
    struct write_ledger ledger = writer_ledger(g.writer, 0);
    CHECK_INT(ledger.accepted, 1, "");
    CHECK_INT(ledger.queued, 1, "");
    CHECK_INT(testing_metric(g.metrics, "profpull_receive_profiles_total{protocol=\"push\",result="
                                        "\"accepted\"}"),
              1, "");
    CHECK_INT(testing_metric(g.metrics, "profpull_receive_bytes_total{protocol=\"push\"}"),
              profile.len, "");
}

/* ---- equal profiles -------------------------------------------------------------------------- */

/* Only those that ask for it are kept apart, each from all others. */
TEST(equal_profiles_are_kept_on_request)
{
    SCOPED(receive_rig) g;
    SCOPED(buf) profile = receive_rig_profile(clock_wall_ns());
    struct err err = ERR_INIT;
    uint16_t salts[3];
    receive_rig_start(&g, "{}", ONE);
    for (size_t i = 0; i < 3; i++) {
        struct label at[LABELS_ROOM];
        struct receive_item item;
        const struct receive_facts facts = {.labels = at,
                                            .n_labels = labels_of("__name__=x service_name=s", at),
                                            .keep_equal = i > 0};
        struct sv data = {profile.data, profile.len};
        assert_int_equal(receive_open(g.receive, RECEIVE_PROFEFE, PROFILE_PPROF, data, &item, &err),
                         RECEIVE_ACCEPTED);
        CHECK_INT(receive_put(g.receive, &item, &facts, &err), RECEIVE_ACCEPTED, err.msg);
        salts[i] = item.salt;
        assert_true(item.from_ns > 0);
        receive_close(g.receive, &item);
    }
    assert_int_equal(salts[0], 0);
    assert_true(salts[1] != 0 && salts[2] != 0 && salts[1] != salts[2]);
}

/* ---- rules and queues ------------------------------------------------------------------------ */

TEST(rules_apply)
{
    SCOPED(receive_rig) g;
    struct err err = ERR_INIT;
    SCOPED(buf) profile = receive_rig_profile(clock_wall_ns());
    receive_rig_start(&g,
                      "{profile_relabel_configs: [{source_labels: [pod], regex: b, action: drop}, "
                      "{source_labels: [pod], regex: c, target_label: __name__, replacement: \"\"}"
                      "], forward_to: [b]}",
                      "[{name: a, url: \"http://127.0.0.1:1\"}, "
                      "{name: b, url: \"http://127.0.0.1:1\"}]");
    testing_log_expect(g.log, "pushed profile refused");
    testing_log_expect(g.log, "profile dropped after profile_relabel_configs");
    CHECK_INT(push(&g, &profile, "__name__=x pod=a", &err), RECEIVE_ACCEPTED, "a");
    CHECK_INT(push(&g, &profile, "__name__=x pod=b", &err), RECEIVE_DROPPED, "b");
    CHECK_STR(err.msg, "", "");
    CHECK_INT(push(&g, &profile, "__name__=x pod=c", &err), RECEIVE_RULES_FAILED, "c");
    CHECK_CONTAINS(err.msg, "receive.profile_relabel_configs", "");
    CHECK_INT(writer_ledger(g.writer, 0).accepted, 0, "a");
    CHECK_INT(writer_ledger(g.writer, 1).accepted, 1, "b");
    CHECK_INT(testing_metric(g.metrics, "profpull_profile_relabel_total{job=\"receive\",outcome="
                                        "\"dropped\"}"),
              1, "");
}

/* Another configuration: the limits of a profile that is open stay, but it goes where profiles go
 * now. */
TEST(another_configuration)
{
    static const char write[] = "[{name: a, url: \"http://127.0.0.1:1\"}, "
                                "{name: b, url: \"http://127.0.0.1:1\"}]";
    SCOPED(receive_rig) g;
    struct err err = ERR_INIT;
    SCOPED(buf) profile = receive_rig_profile(clock_wall_ns());
    struct label at[LABELS_ROOM];
    struct receive_item item;
    struct receive_facts facts = {.labels = at, .n_labels = labels_of("__name__=x pod=a", at)};
    receive_rig_start(&g, "{forward_to: [a]}", write);
    testing_log_expect(g.log, "pushed profile refused");
    CHECK_INT(receive_open(g.receive, RECEIVE_PUSH, PROFILE_PPROF,
                           (struct sv){profile.data, profile.len}, &item, &err),
              RECEIVE_ACCEPTED, "");
    struct config *next = receive_rig_config(
        "{forward_to: [b], max_label_names: 2, profile_relabel_configs: [{source_labels: "
        "[__name__], regex: z, action: drop}]}",
        write);
    receive_discard(receive_prepare(g.receive, next, &err));
    struct receive_setup *setup = receive_prepare(g.receive, next, &err);
    CHECK_STR(err.msg, "", "");
    assert_non_null(setup);
    receive_commit(g.receive, setup);
    config_unref(next);
    CHECK_INT(receive_put(g.receive, &item, &facts, &err), RECEIVE_ACCEPTED, "as it was opened");
    receive_close(g.receive, &item);
    CHECK_INT(writer_ledger(g.writer, 0).accepted, 0, "a");
    CHECK_INT(writer_ledger(g.writer, 1).accepted, 1, "b");
    CHECK_INT(push(&g, &profile, "__name__=x service_name=s pod=a", &err), RECEIVE_BAD_LABELS, "");
    CHECK_INT(push(&g, &profile, "__name__=z", &err), RECEIVE_DROPPED, "");
}

/* The sender is asked to try again: the profile is refused, not dropped. */
TEST(full_queue)
{
    SCOPED(receive_rig) g;
    SCOPED(buf) profile = receive_rig_profile(clock_wall_ns());
    receive_rig_start(&g, "{}",
                      "[{name: a, url: \"http://127.0.0.1:1\", queue: {max_bytes: 8KiB}}]");
    testing_log_expect(g.log, "pushed profile refused");
    enum receive_result result = RECEIVE_ACCEPTED;
    struct err err = ERR_INIT;
    size_t n = 0;
    while (result == RECEIVE_ACCEPTED && n < 100) {
        result = push(&g, &profile, "__name__=memory __delta__=false", &err);
        n++;
    }
    CHECK_INT(result, RECEIVE_QUEUE_FULL, "");
    CHECK_STR(err.msg, "the queues of all destinations are full; try again later", "");
    struct write_ledger ledger = writer_ledger(g.writer, 0);
    CHECK_INT(ledger.refused, 1, "");
    CHECK_INT(ledger.dropped[DROP_QUEUE_FULL], 0, "");
}

/* ---- threads --------------------------------------------------------------------------------- */

#define THREADS 4
#define EACH 50

static void *push_many(void *arg)
{
    struct receive_rig *g = arg;
    for (int i = 0; i < EACH; i++) {
        struct err err = ERR_INIT;
        SCOPED(buf) profile = receive_rig_profile(clock_wall_ns());
        char labels[64];
        (void)snprintf(labels, sizeof(labels), "__name__=x pod=p%d", i % 7);
        (void)push(g, &profile, labels, &err);
    }
    return NULL;
}

TEST(from_many_threads)
{
    SCOPED(receive_rig) g;
    pthread_t threads[THREADS];
    receive_rig_start(&g,
                      "{profile_relabel_configs: [{source_labels: [pod], regex: \"p(.)\", "
                      "target_label: n, replacement: \"$1\"}]}",
                      ONE);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, push_many, &g), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_INT(writer_ledger(g.writer, 0).accepted, THREADS * EACH, "");
}
