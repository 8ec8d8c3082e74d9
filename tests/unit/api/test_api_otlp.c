/* OTLP requests: the profiles and labels that they become. Requests are written in JSON, which is
 * converted to protobuf first; the recorded exchanges of test_api_receive.c are protobuf. */
#include <stdlib.h>

#include "api/receive/otlp.h"
#include "api/receive/otlp_http.h"
#include "api/served.h"
#include "pprof/check.h"
#include "pprof/otlp/otlp.h"
#include "pprof/put.h"
#include "tests/unit/api/exchange_rig.h"
#include "tests/unit/lib/receive_rig.h"
#include "tests/unit/lib/recording.h"

#define PATH "/v1development/profiles"
#define ARENA_MAX ((size_t)64 << 20)

static const struct otlp_limits no_limits = {.profile_max = 1 << 20, .total_max = 1 << 24};

/* A request with the tables that the tests use. Strings: 1 cpu, 2 nanoseconds, 3 samples, 4 count,
 * 5 main, 6 work, 7 m.go, 8 thread.name, 9 service.name, 10 off_cpu, 11 thread.id, 12 container.id,
 * 13 wall, 14 alloc_space, 15 bytes, 16 contentions. Stack 1 is main;work, stack 2 is main.
 * Attribute 1 is thread.name=w1 (as a list), 2 service.name=a, 3 service.name=b, 4 thread.id=7, 5
 * container.id=c1. */
#define STRINGS                                                                                    \
    "\"stringTable\":[\"\",\"cpu\",\"nanoseconds\",\"samples\",\"count\",\"main\",\"work\","       \
    "\"m.go\",\"thread.name\",\"service.name\",\"off_cpu\",\"thread.id\",\"container.id\","        \
    "\"wall\",\"alloc_space\",\"bytes\",\"contentions\"]"
#define DICTIONARY                                                                                 \
    "\"dictionary\":{\"mappingTable\":[{},{\"memoryStart\":\"4096\",\"filenameStrindex\":7}],"     \
    "\"locationTable\":[{},{\"mappingIndex\":1,\"address\":\"4097\","                              \
    "\"lines\":[{\"functionIndex\":1,\"line\":3}]},"                                               \
    "{\"mappingIndex\":1,\"lines\":[{\"functionIndex\":2,\"line\":\"9\"}]}],"                      \
    "\"functionTable\":[{},{\"nameStrindex\":5},{\"nameStrindex\":6,\"filenameStrindex\":7}],"     \
    "\"linkTable\":[{},{\"traceId\":\"4BF92F3577b34da6a3ce929d0e0e4736\","                         \
    "\"spanId\":\"00f067aa0ba902b7\"}],"                                                           \
    "\"attributeTable\":[{},{\"keyStrindex\":8,\"value\":{\"arrayValue\":{\"values\":"             \
    "[{\"stringValue\":\"w1\"}]}}},{\"keyStrindex\":9,\"value\":{\"stringValue\":\"a\"}},"         \
    "{\"keyStrindex\":9,\"value\":{\"stringValue\":\"b\"}},"                                       \
    "{\"keyStrindex\":11,\"value\":{\"intValue\":\"7\"}},"                                         \
    "{\"keyStrindex\":12,\"value\":{\"stringValue\":\"c1\"}}],"                                    \
    "\"stackTable\":[{},{\"locationIndices\":[2,1]},{\"locationIndices\":[1]}]," STRINGS "}"
/* resource: attributes; scope: the message; profiles: messages. */
#define REQUEST(resource, scope, profiles)                                                         \
    "{\"resourceProfiles\":[{\"resource\":{\"attributes\":[" resource                              \
    "]},\"scopeProfiles\":[{\"scope\":{" scope "},\"profiles\":[" profiles "]}]}]," DICTIONARY "}"
#define TEXT(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define CART TEXT("service.name", "cart")
/* type and unit: numbers of strings. */
#define PROFILE(type, unit, period_type, period_unit, period, samples)                             \
    "{\"sampleType\":{\"typeStrindex\":" type ",\"unitStrindex\":" unit "},\"periodType\":"        \
    "{\"typeStrindex\":" period_type ",\"unitStrindex\":" period_unit "},\"period\":\"" period     \
    "\",\"timeUnixNano\":\"1795307400000000000\",\"samples\":[" samples "]}"
#define CPU(samples) PROFILE("1", "2", "1", "2", "1", samples)

/* ---- requests as text ------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
    return sv_cmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

/* Appends "{a=b, ...} TYPE:UNIT ... (PERIOD TYPE:UNIT PERIOD)" and the samples of a profile, which
 * must be a good one. */
static void print_profile(const struct otlp_profile *p, struct buf *out)
{
    struct err err = ERR_INIT;
    struct pprof_summary s;
    assert_true(pprof_check(p->pprof, &s, &err));
    pprof_summary_name_types(p->pprof, &s);
    qsort(p->labels, p->n_labels, sizeof(*p->labels), by_name);
    for (size_t i = 0; i < p->n_labels; i++) {
        buf_printf(out, "%s%.*s=%.*s", i == 0 ? "{" : ", ", SV_ARG(p->labels[i].name),
                   SV_ARG(p->labels[i].value));
    }
    buf_puts(out, "}");
    for (size_t i = 0; i < s.n[PROFILE_SAMPLE_TYPE]; i++) {
        buf_printf(out, " %.*s:%.*s", SV_ARG(s.types[i].type_text), SV_ARG(s.types[i].unit_text));
    }
    buf_printf(out, " (%.*s:%.*s %lld)\n", SV_ARG(s.period_type.type_text),
               SV_ARG(s.period_type.unit_text), (long long)s.period);
    folded_print(p->pprof, out);
}

static void print_all(struct sv message, const struct otlp_limits *limits, struct buf *out)
{
    struct err err = ERR_INIT;
    struct otlp_reader *r = otlp_reader_new(message, limits, &err);
    enum otlp_step step = OTLP_STEP_END;
    if (r == NULL) {
        buf_printf(out, "refused: %s\n", err.msg);
        return;
    }
    do {
        struct otlp_profile p;
        err_clear(&err);
        step = otlp_reader_next(r, &p, &err);
        if (step == OTLP_STEP_PROFILE) {
            print_profile(&p, out);
        } else if (step == OTLP_STEP_BAD) {
            buf_printf(out, "%zu bad: %s\n", p.n_messages, err.msg);
        } else if (step == OTLP_STEP_EMPTY) {
            buf_printf(out, "%zu empty\n", p.n_messages);
        }
    } while (step != OTLP_STEP_END);
    otlp_reader_free(r);
}

static void check_within(const struct otlp_limits *limits, const char *json, const char *want)
{
    struct err err = ERR_INIT;
    SCOPED(arena) *arena = arena_new(ARENA_MAX);
    struct sv message;
    SCOPED(buf) out = testing_buf(1 << 20);
    bool ok = otlp_json_to_message(sv_from(json), arena, &message, &err);
    CHECK_STR(err.msg, "", json);
    assert_true(ok);
    print_all(message, limits, &out);
    CHECK_STR(out.data, want, json);
}

static void check(const char *json, const char *want)
{
    check_within(&no_limits, json, want);
}

/* ---- types ----------------------------------------------------------------------------------- */

#define BASE(name) "{__delta__=false, __name__=" name ", __otel__=true"
#define OF_CART(name) BASE(name) ", service.name=cart, service_name=cart}"
#define ONE "{\"stackIndex\":1,\"values\":[\"3\"]}"

TEST(types_get_the_names_of_scraped_profiles)
{
    check(REQUEST(CART, "", CPU(ONE)),
          OF_CART("process_cpu") " cpu:nanoseconds (cpu:nanoseconds 1)\nwork:9;main:3 3\n");
    /* Samples of an eBPF profiler: counts become nanoseconds. */
    check(REQUEST(CART, "", PROFILE("3", "4", "1", "2", "10000000", ONE)),
          OF_CART("process_cpu") " cpu:nanoseconds (cpu:nanoseconds 10000000)\n"
                                 "work:9;main:3 30000000\n");
    check(REQUEST(CART, "", PROFILE("10", "2", "0", "0", "0", ONE)),
          OF_CART("off_cpu") " off_cpu:nanoseconds (: 0)\nwork:9;main:3 3\n");
    /* No period is needed. */
    check(REQUEST(CART, "", PROFILE("13", "2", "0", "0", "0", ONE)),
          OF_CART("wall") " wall:nanoseconds (: 0)\nwork:9;main:3 3\n");
    check(REQUEST(CART, "", PROFILE("14", "15", "0", "0", "0", ONE)),
          OF_CART("memory") " alloc_space:bytes (: 0)\nwork:9;main:3 3\n");
    check(REQUEST(CART, "", PROFILE("16", "4", "0", "0", "0", ONE)),
          OF_CART("mutex") " contentions:count (: 0)\nwork:9;main:3 3\n");
    check(REQUEST(CART, "\"name\":\"pprof/block\"", PROFILE("16", "4", "0", "0", "0", ONE)),
          OF_CART("block") " contentions:count (: 0)\nwork:9;main:3 3\n");
    /* profpull's own attribute of the scope. */
    check(REQUEST(CART, "\"attributes\":[" TEXT("pprof.profile.name", "godeltaprof_mutex") "]",
                  PROFILE("16", "4", "0", "0", "0", ONE)),
          OF_CART("godeltaprof_mutex") " contentions:count (: 0)\nwork:9;main:3 3\n");
    /* Its counts stay counts: they were counts in the profile that it sent. */
    check(REQUEST(CART, "\"attributes\":[" TEXT("pprof.profile.name", "process_cpu") "]",
                  PROFILE("3", "4", "1", "2", "10", ONE)),
          OF_CART("process_cpu") " samples:count (cpu:nanoseconds 10)\nwork:9;main:3 3\n");
    check(REQUEST(CART, "", PROFILE("0", "0", "0", "0", "0", ONE)),
          "1 bad: the profile has no sample type\n");
}

/* A CPU profile of Go has counts and nanoseconds: its counts must not become nanoseconds, too. */
TEST(messages_of_one_profile_become_one)
{
    check(REQUEST(CART, "",
                  PROFILE("3", "4", "1", "2", "10", ONE) "," PROFILE(
                      "1", "2", "1", "2", "10", "{\"stackIndex\":1,\"values\":[\"30\"]}")),
          OF_CART("process_cpu") " samples:count cpu:nanoseconds (cpu:nanoseconds 10)\n"
                                 "work:9;main:3 3 30\n");
    /* Their samples differ, so that they stay two. */
    check(REQUEST(CART, "",
                  PROFILE("3", "4", "1", "2", "10", ONE) "," PROFILE(
                      "1", "2", "1", "2", "10", "{\"stackIndex\":2,\"values\":[\"30\"]}")),
          OF_CART("process_cpu") " samples:count (cpu:nanoseconds 10)\nwork:9;main:3 3\n" OF_CART(
              "process_cpu") " cpu:nanoseconds (cpu:nanoseconds 10)\nmain:3 30\n");
    /* Another period, the same type once more: three. */
    check(
        REQUEST(CART, "",
                CPU(ONE) "," PROFILE("3", "4", "1", "2", "2", ONE) "," PROFILE("3", "4", "1", "2",
                                                                               "2", ONE)),
        OF_CART("process_cpu") " cpu:nanoseconds (cpu:nanoseconds 1)\nwork:9;main:3 3\n" OF_CART(
            "process_cpu") " samples:count (cpu:nanoseconds 2)\nwork:9;main:3 3\n" OF_CART("process"
                                                                                           "_cpu") " samples:count (cpu:nanoseconds 2)\nwork:9;main:3 3\n");
}

TEST(values_and_times_are_events)
{
    check(REQUEST(CART, "",
                  CPU("{\"stackIndex\":1,\"values\":[\"3\",\"5\",6],\"timestampsUnixNano\":"
                      "[\"1\",\"2\",\"3\"]},"
                      "{\"stackIndex\":2,\"timestampsUnixNano\":[\"1\",\"2\"]},"
                      "{\"stackIndex\":2,\"values\":[\"-4\"]}")),
          OF_CART("process_cpu") " cpu:nanoseconds (cpu:nanoseconds 1)\n"
                                 "work:9;main:3 14\nmain:3 2\nmain:3 -4\n");
    check(REQUEST(CART, "", CPU("")), "1 empty\n");
    check(REQUEST(CART, "", CPU("{\"stackIndex\":1}")),
          "1 bad: no sample has a value: the message is not one of opentelemetry-proto 1.8 or "
          "later\n");
    check(REQUEST(CART, "",
                  CPU("{\"values\":[\"9223372036854775807\",\"1\"]}") "," PROFILE(
                      "3", "4", "1", "2", "9223372036854775807", "{\"values\":[\"2\"]}")),
          "1 bad: sample 0: the sum of its values needs more than 64 bits\n" OF_CART(
              "process_cpu") " samples:count (cpu:nanoseconds 9223372036854775807)\n 2\n");
    check(REQUEST(CART, "",
                  PROFILE("3", "4", "1", "2", "9223372036854775807", "{\"values\":[\"2\"]}")),
          "1 bad: sample 0: a value times the period needs more than 64 bits\n");
}

/* ---- labels ---------------------------------------------------------------------------------- */

TEST(attributes_become_labels)
{
    /* The first one of a name counts; texts and numbers only; none of ours. */
    check(REQUEST(CART "," TEXT(
                      "k8s.pod.name",
                      "p") ","
                           "{\"key\":\"host.cpus\",\"value\":{\"intValue\":\"4\"}},"
                           "{\"key\":\"a.list\",\"value\":{\"arrayValue\":{\"values\":["
                           "{\"stringValue\":\"one\"}]}}},"
                           "{\"key\":\"two\",\"value\":{\"arrayValue\":{\"values\":["
                           "{\"stringValue\":\"one\"},{\"stringValue\":\"two\"}]}}},"
                           "{\"key\":\"flag\",\"value\":{\"boolValue\":true}},"
                           "{\"key\":\"real\",\"value\":{\"doubleValue\":1.5}},"
                           "{\"key\":\"map\",\"value\":{\"kvlistValue\":{\"values\":[" TEXT(
                               "x",
                               "y") "]}}},"
                                    "{\"key\":\"bytes\",\"value\":{\"bytesValue\":\"AAA=\"}}," TEXT(
                                        "__tenant_id__", "t") "," TEXT("empty", ""),
                  "\"attributes\":[" TEXT("k8s.pod.name", "q") "," TEXT("lib", "l") "]", CPU(ONE)),
          BASE("process_cpu") ", a.list=one, host.cpus=4, k8s.pod.name=p, lib=l, "
                              "service.name=cart, service_name=cart} cpu:nanoseconds "
                              "(cpu:nanoseconds 1)\nwork:9;main:3 3\n");
    /* Texts in the dictionary. */
    check(REQUEST("{\"keyStrindex\":9,\"value\":{\"stringValueStrindex\":6}}", "", CPU(ONE)),
          BASE("process_cpu") ", service.name=work, service_name=work} cpu:nanoseconds "
                              "(cpu:nanoseconds 1)\nwork:9;main:3 3\n");
    /* No service. */
    check(REQUEST(TEXT("process.executable.name", "demo"), "", CPU(ONE)),
          BASE("process_cpu") ", process.executable.name=demo, "
                              "service_name=unknown_service:demo} cpu:nanoseconds "
                              "(cpu:nanoseconds 1)\nwork:9;main:3 3\n");
    check(REQUEST("", "", CPU(ONE)),
          BASE("process_cpu") "} cpu:nanoseconds (cpu:nanoseconds 1)\nwork:9;main:3 3\n");
    /* A label of profpull. */
    check(REQUEST(TEXT("service_name", "s"), "", CPU(ONE)),
          BASE("process_cpu") ", service_name=s} cpu:nanoseconds (cpu:nanoseconds 1)\n"
                              "work:9;main:3 3\n");
}

TEST(samples_have_labels_and_services)
{
    check(REQUEST(CART, "",
                  CPU("{\"stackIndex\":1,\"values\":[1],\"attributeIndices\":[1,4],"
                      "\"linkIndex\":1}")),
          OF_CART("process_cpu") " cpu:nanoseconds (cpu:nanoseconds 1)\n"
                                 "work:9;main:3 1 thread.name=w1 thread.id= "
                                 "trace_id=4bf92f3577b34da6a3ce929d0e0e4736 "
                                 "span_id=00f067aa0ba902b7\n");
    /* A profile for each service and container. */
    check(
        REQUEST(CART, "",
                CPU("{\"stackIndex\":1,\"values\":[1],\"attributeIndices\":[2,1]},"
                    "{\"stackIndex\":2,\"values\":[2],\"attributeIndices\":[3,5]},"
                    "{\"stackIndex\":2,\"values\":[4]},"
                    "{\"stackIndex\":1,\"values\":[8],\"attributeIndices\":[1,2]}")),
        BASE("process_cpu") ", service.name=a, service_name=a} cpu:nanoseconds "
                            "(cpu:nanoseconds 1)\nwork:9;main:3 1 thread.name=w1\n"
                            "work:9;main:3 8 thread.name=w1\n" BASE(
                                "process_cpu") ", container.id=c1, service.name=b, service_name=b} "
                                               "cpu:nanoseconds (cpu:nanoseconds 1)\nmain:3 "
                                               "2\n" OF_CART("process_cpu") " cpu:nanoseconds "
                                                                            "(cpu:nanoseconds 1)\n"
                                                                            "main:3 4\n");
}

/* ---- damage and limits ----------------------------------------------------------------------- */

TEST(bad_indices_cost_their_message_only)
{
    check(
        REQUEST(
            CART, "",
            CPU("{\"stackIndex\":9,\"values\":[1]}") "," CPU(
                "{\"stackIndex\":1,\"values\":[1],"
                "\"attributeIndices\":[6]}") "," CPU("{\"stackIndex\":1,\"values\":[1],"
                                                     "\"linkIndex\":7}") "," PROFILE("77", "2", "1",
                                                                                     "2", "1",
                                                                                     ONE) "," CPU(ONE)),
        "1 bad: sample 0: stack 9 does not exist: the dictionary has 3\n"
        "1 bad: sample 0: attribute 6 does not exist: the dictionary has 6\n"
        "1 bad: sample 0: link 7 does not exist: the dictionary has 2\n"
        "1 bad: string 77 does not exist: the dictionary has 17\n" OF_CART(
            "process_cpu") " cpu:nanoseconds (cpu:nanoseconds 1)\nwork:9;main:3 3\n");
}

TEST(large_profiles_are_refused)
{
    const struct otlp_limits small = {.profile_max = 100, .total_max = 1 << 20};
    const struct otlp_limits few = {.profile_max = 1 << 20, .total_max = 200};
    check_within(&small, REQUEST(CART, "", CPU(ONE)),
                 "1 bad: the profile would have more than 100 bytes\n");
    check_within(&few, REQUEST(CART, "", CPU(ONE) "," CPU(ONE)),
                 OF_CART("process_cpu") " cpu:nanoseconds (cpu:nanoseconds 1)\nwork:9;main:3 3\n"
                                        "1 bad: the profiles of the request have more than 200 "
                                        "bytes\n");
}

/* Many attributes of one name are compared with each other, so that their number has a limit. */
TEST(attributes_have_a_limit)
{
    SCOPED(buf) json = testing_buf(1 << 20);
    buf_puts(&json, "{\"resourceProfiles\":[{\"resource\":{\"attributes\":[" CART);
    for (size_t i = 0; i < OTLP_LABELS_MAX; i++) {
        buf_puts(&json, "," CART);
    }
    buf_puts(&json, "]},\"scopeProfiles\":[{\"profiles\":[" CPU(ONE) "]}]}]," DICTIONARY "}");
    check(json.data, "1 bad: more than 1024 attributes\n");
}

TEST(json_that_is_wrong)
{
    static const struct text_case rows[] = {
        {"{\"dictionary\":{\"linkTable\":[{\"traceId\":\"4bf\"}]}}",
         "invalid value for field trace_id: expected hexadecimal digits"},
        {"{\"dictionary\":{\"linkTable\":[{\"traceId\":\"4x\"}]}}",
         "invalid value for field trace_id: expected hexadecimal digits"},
        {"{\"dictionary\":{\"stringTable\":[1]}}",
         "invalid value for field string_table: expected a string"},
        {"{\"resourceProfiles\":7}", "invalid value for field resource_profiles: expected a list"},
        {"[]", "expected an object"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err err = ERR_INIT;
        struct sv message;
        SCOPED(arena) *arena = arena_new(ARENA_MAX);
        assert_false(otlp_json_to_message(sv_from(rows[i].text), arena, &message, &err));
        CHECK_STR(err.msg, rows[i].want, rows[i].text);
    }
    check("{\"unknown\":{\"a\":[1]},\"resourceProfiles\":null}", "");
}

/* ---- answers --------------------------------------------------------------------------------- */

static struct rig_answer post(const struct receive_rig *g, const char *type, struct sv body)
{
    char head[256];
    const struct rig_process process = {.sets = ROUTE_RECEIVE,
                                        .metrics = g->metrics,
                                        .log = testing_log(g->log),
                                        .served = {.receiver = g->receive, .version = "1"}};
    (void)snprintf(head, sizeof(head), "POST " PATH " HTTP/1.1\r\nContent-Type: %s\r\n", type);
    return rig_ask(&process, head, body);
}

TEST(a_partial_success_counts_the_rest)
{
    SCOPED(receive_rig) g;
    receive_rig_start(&g, "{max_age: 0s}", "[{name: a, url: \"http://127.0.0.1:1\"}]");
    testing_log_expect(g.log, "pushed profile refused");
    const char *json = REQUEST(CART, "", CPU("{\"stackIndex\":9,\"values\":[1]}") "," CPU(ONE));
    struct rig_answer a = post(&g, "application/json; charset=utf-8", sv_from(json));
    CHECK_INT(a.status, 200, json);
    CHECK_STR(a.body,
              "{\"partialSuccess\":{\"rejectedProfiles\":\"1\",\"errorMessage\":\"sample 0: stack "
              "9 does not exist: the dictionary has 3\"}}",
              json);
    rig_answer_done(&a);
    struct err err = ERR_INIT;
    struct arena *arena = arena_new(ARENA_MAX);
    struct sv message;
    assert_true(otlp_json_to_message(sv_from(json), arena, &message, &err));
    a = post(&g, "application/x-protobuf", message);
    CHECK_INT(a.status, 200, json);
    CHECK_STR(a.type, "application/x-protobuf", json);
    static const char want[] = "\x0a\x3a\x08\x01\x12\x36"
                               "sample 0: stack 9 does not exist: the dictionary has 3";
    CHECK_INT(a.n, sizeof(want) - 1, json);
    assert_memory_equal(a.body, want, sizeof(want) - 1);
    rig_answer_done(&a);
    arena_free(arena);
    CHECK_INT(writer_ledger(g.writer, 0).accepted, 2, json);
    CHECK_INT(testing_metric(g.metrics, "profpull_receive_profiles_total{protocol=\"otlp\",result="
                                        "\"bad_profile\"}"),
              2, json);
    CHECK_INT(testing_metric(g.metrics, "profpull_receive_otlp_samples_total{result=\"read\"}"), 4,
              json);
}

/* Nothing was good: an error, after which the sender does not try again. */
TEST(nothing_good_is_400)
{
    SCOPED(receive_rig) g;
    receive_rig_start(&g, "{max_age: 1s}", "[{name: a, url: \"http://127.0.0.1:1\"}]");
    testing_log_expect(g.log, "pushed profile refused");
    const char *json = REQUEST(CART, "", CPU(ONE));
    struct rig_answer a = post(&g, "application/json", sv_from(json));
    CHECK_INT(a.status, 400, json);
    CHECK_CONTAINS(a.body,
                   "{\"code\":3,\"message\":\"profile with labels '{__delta__=\\\"false\\\"", json);
    CHECK_CONTAINS(a.body, "is outside of ingestion window", json);
    rig_answer_done(&a);
    a = post(&g, "application/json", SV("{"));
    CHECK_INT(a.status, 400, "");
    CHECK_CONTAINS(a.body, "{\"code\":3,\"message\":\"Failed to parse JSON request: 1:1: ", "");
    rig_answer_done(&a);
}

/* No room: the sender is asked to try again. */
TEST(a_full_queue_is_503)
{
    SCOPED(receive_rig) g;
    const char *json = REQUEST(CART, "", CPU(ONE));
    receive_rig_start(&g, "{max_age: 0s}",
                      "[{name: a, url: \"http://127.0.0.1:1\", queue: {max_bytes: 64KiB}}]");
    testing_log_expect(g.log, "pushed profile refused");
    struct rig_answer a = {.status = 0};
    for (size_t i = 0; i < 1000 && a.status != 503; i++) {
        rig_answer_done(&a);
        a = post(&g, "application/json", sv_from(json));
    }
    CHECK_INT(a.status, 503, "");
    CHECK_CONTAINS(a.headers, "Retry-After: 1\r\n", "");
    CHECK_CONTAINS(a.body, "{\"code\":14,\"message\":\"the queues of all destinations are full",
                   "");
    rig_answer_done(&a);
}

/* ---- gRPC ------------------------------------------------------------------------------------ */

/* Calls Export with a message of JSON, as protobuf in a frame if the protocol has frames. */
static struct rig_answer export_json(const struct receive_rig *g, const char *type,
                                     const char *json)
{
    char head[256];
    struct err err = ERR_INIT;
    struct sv message;
    SCOPED(buf) body = testing_buf(1 << 20);
    SCOPED(arena) *arena = arena_new(ARENA_MAX);
    const struct rig_process process = {.sets = ROUTE_RECEIVE,
                                        .metrics = g->metrics,
                                        .log = testing_log(g->log),
                                        .served = {.receiver = g->receive, .version = "1"}};
    assert_true(otlp_json_to_message(sv_from(json), arena, &message, &err));
    if (strncmp(type, "application/grpc", 16) == 0) {
        const char frame[] = {0, 0, 0, (char)(message.n >> 8), (char)message.n};
        buf_append(&body, frame, sizeof(frame));
    }
    buf_append(&body, message.p, message.n);
    (void)snprintf(head, sizeof(head),
                   "POST " RECEIVE_OTLP_METHOD " HTTP/1.1\r\nContent-Type: %s\r\n", type);
    struct rig_answer a = rig_ask(&process, head, (struct sv){body.data, body.len});
    return a;
}

TEST(an_export_over_each_protocol)
{
    const char *json = REQUEST(CART, "", CPU(ONE));
    const struct {
        const char *type;
        struct sv reply;
        const char *trailers;
    } rows[] = {
        {"application/grpc", SV("\0\0\0\0\0"), "grpc-status: 0\r\n"},
        {"application/grpc+proto", SV("\0\0\0\0\0"), "grpc-status: 0\r\n"},
        {"application/grpc-web+proto", SV("\0\0\0\0\0\x80\0\0\0\x10grpc-status: 0\r\n"), ""},
        {"application/proto", SV(""), ""},
    };
    SCOPED(receive_rig) g;
    receive_rig_start(&g, "{max_age: 0s}", "[{name: a, url: \"http://127.0.0.1:1\"}]");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(rig_answer) a = export_json(&g, rows[i].type, json);
        CHECK_INT(a.status, 200, rows[i].type);
        CHECK_STR(a.type, rows[i].type, rows[i].type);
        CHECK_STR(a.trailers, rows[i].trailers, rows[i].type);
        CHECK_INT(a.n, rows[i].reply.n, rows[i].type);
        assert_memory_equal(a.body, rows[i].reply.p, rows[i].reply.n);
        CHECK_INT(writer_ledger(g.writer, 0).accepted, i + 1, rows[i].type);
    }
}

/* The rest is kept, and the sender learns how much was refused, as over HTTP. */
TEST(an_export_that_succeeds_in_part)
{
    static const char want[] = "\0\0\0\0\x3c\x0a\x3a\x08\x01\x12\x36"
                               "sample 0: stack 9 does not exist: the dictionary has 3";
    const char *json = REQUEST(CART, "", CPU("{\"stackIndex\":9,\"values\":[1]}") "," CPU(ONE));
    SCOPED(receive_rig) g;
    receive_rig_start(&g, "{max_age: 0s}", "[{name: a, url: \"http://127.0.0.1:1\"}]");
    testing_log_expect(g.log, "pushed profile refused");
    SCOPED(rig_answer) a = export_json(&g, "application/grpc", json);
    CHECK_STR(a.trailers, "grpc-status: 0\r\n", json);
    CHECK_INT(a.n, sizeof(want) - 1, json);
    assert_memory_equal(a.body, want, sizeof(want) - 1);
    CHECK_INT(writer_ledger(g.writer, 0).accepted, 1, json);
}

/* Exporters try again after 14 (unavailable), and drop the request after 3 (invalid_argument). */
TEST(exports_that_fail)
{
    const char *json = REQUEST(CART, "", CPU(ONE));
    SCOPED(receive_rig) g;
    receive_rig_start(&g, "{max_age: 0s}",
                      "[{name: a, url: \"http://127.0.0.1:1\", queue: {max_bytes: 64KiB}}]");
    testing_log_expect(g.log, "pushed profile refused");
    struct rig_answer a = export_json(&g, "application/grpc",
                                      REQUEST(CART, "", CPU("{\"stackIndex\":9,\"values\":[1]}")));
    CHECK_CONTAINS(a.headers, "grpc-status: 3\r\ngrpc-message: sample 0: stack 9 does not exist",
                   "");
    CHECK_INT(a.n, 0, "no message");
    CHECK_INT(writer_ledger(g.writer, 0).accepted, 0, "");
    rig_answer_done(&a);
    /* The messages of gRPC are read as protobuf only. */
    a = export_json(&g, "application/grpc+json", json);
    CHECK_CONTAINS(a.headers, "grpc-status: 12\r\n", "");
    CHECK_INT(writer_ledger(g.writer, 0).accepted, 0, "");
    for (size_t i = 0; i < 1000 && strstr(a.headers, "grpc-status: 14\r\n") == NULL; i++) {
        rig_answer_done(&a);
        a = export_json(&g, "application/grpc", json);
        CHECK_INT(a.status, 200, "");
    }
    CHECK_CONTAINS(a.headers,
                   "grpc-status: 14\r\ngrpc-message: the queues of all destinations are full", "");
    rig_answer_done(&a);
}
