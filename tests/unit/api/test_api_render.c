/* Pyroscope's older API beside the recorded exchanges (test_api_querier.c). */
#include <jansson.h>

#include "api/render.h"
#include "tests/unit/api/exchange_rig.h"
#include "tests/unit/api/stored_rig.h"

#define PT "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define RANGE "&from=1795307340&until=1795307460"

struct fixture {
    struct testing_log *log;
    char *directory;
    struct rig_process options;
};

static void fixture_begin(struct fixture *f)
{
    f->log = testing_log_new();
    f->directory = testing_mkdtemp();
    f->options = (struct rig_process){
        .sets = ROUTE_QUERY,
        .served.store = stored_store_new(f->directory, testing_log(f->log)),
    };
    stored_put_three(f->options.served.store, STORED_T0_NS);
}

static void fixture_end(struct fixture *f)
{
    store_close(f->options.served.store);
    testing_directory_leave(&f->directory);
    testing_log_done(f->log);
}

FIXTURE(fixture, fixture_begin, fixture_end)

static void check(const struct fixture *f, const char *target, int status, const char *text)
{
    char head[1024];
    snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\n", target);
    SCOPED(rig_answer) a = rig_ask(&f->options, head, SV(""));
    CHECK_INT(a.status, status, target);
    CHECK_CONTAINS(a.body, text, target);
}

TEST_ON(struct fixture *f, parameters_that_are_refused)
{
    check(f, "/pyroscope/render", 400,
          "{\"code\":\"invalid_argument\",\"message\":\"\\\"query\\\" is required\"}");
    check(f, "/pyroscope/render?query=%7Ba%3D%22b%22%7D" RANGE, 400,
          "\\\"query\\\" must contain a profile-type selection");
    check(f, "/pyroscope/render?query=x%7B%7D" RANGE, 400, "failed to parse \\\"query\\\"");
    check(f, "/pyroscope/render?query=" PT "%7B" RANGE, 400, "failed to parse \\\"query\\\"");
    check(f, "/pyroscope/render?query=" PT "&from=2&until=1", 400,
          "query start time is after end time");
    check(f, "/pyroscope/render?query=" PT RANGE "&max-nodes=2000000", 400,
          "max flamegraph nodes limit 2000000 is greater than allowed 1048576");
    check(f, "/pyroscope/render-diff?leftQuery=" PT, 400, "\\\"rightQuery\\\" is required");
    check(f, "/pyroscope/label-values", 400, "label parameter is required");
    check(f, "/render?query=" PT RANGE, 0, "");
    struct rig_answer a =
        rig_ask(&f->options, "POST /pyroscope/render?query=" PT RANGE " HTTP/1.1\r\n", SV(""));
    CHECK_INT(a.status, 405, "POST");
    rig_answer_done(&a);
}

TEST_ON(struct fixture *f, graphs_and_groups)
{
    check(f, "/pyroscope/render?query=" PT "%7B%7D" RANGE "&format=dot", 200, "digraph \"cpu\"");
    check(f, "/pyroscope/render?query=" PT "%7Bpod%3D%22none%22%7D" RANGE, 200,
          "\"levels\":[[0,0,0,0]],\"numTicks\":0,\"maxSelf\":0}");
    /* A group has a timeline even if it is the only one, and a label that is missing is "*". */
    check(f, "/pyroscope/render?query=" PT "%7Bpod%3D%22a%22%7D" RANGE "&groupBy=nope", 200,
          "\"samples\":[0,0,0,0,50000000,0,0,0],\"durationDelta\":15,\"watermarks\":null},"
          "\"groups\":{\"*\":{\"startTime\":1795307340,\"samples\":[0,0,0,0,50000000,0,0,0],");
    check(f, "/pyroscope/render?query=" PT "%7Bpod%3D%22none%22%7D" RANGE "&groupBy=pod", 200,
          "\"groups\":{},");
    check(f, "/pyroscope/render?query=process_cpu:samples:count:cpu:nanoseconds%7B%7D" RANGE, 200,
          "\"sampleRate\":100,\"units\":\"objects\",\"name\":\"samples\"");
    check(f, "/pyroscope/render?query=" PT RANGE "&max-nodes=all&maxNodes=1", 200, "main.hash");
    check(f, "/pyroscope/render?query=" PT RANGE "&maxNodes=1", 200, "\"other\"");
    check(f,
          "/pyroscope/render-diff?leftQuery=" PT "%7Bpod%3D%22none%22%7D&leftFrom=1795307340&"
          "leftUntil=1795307460&rightQuery=" PT "%7Bpod%3D%22a%22%7D&rightFrom=1795307340000&"
          "rightUntil=1795307460000",
          200, "\"heatmap\":null,\"rightTicks\":50000000}\n");
}

/* A timeline begins and ends at multiples of its step. */
TEST_ON(struct fixture *f, timelines_are_aligned)
{
    check(f,
          "/pyroscope/render?query=" PT "%7Bservice_name%3D%22vecdemo%22%7D&from=1795307397"
          "&until=1795307421",
          200,
          "\"timeline\":{\"startTime\":1795307385,\"samples\":[0,50000000],\"durationDelta\":15");
}

/* The first slot reaches back one step from the start, not from the multiple of the step before it:
 * p2, 22 s before the start, is not in a slot of 20 s, but p3, 7 s before it, is. */
TEST_ON(struct fixture *f, a_timeline_reaches_back_one_step)
{
    check(f, "/pyroscope/render?query=" PT "%7B%7D&from=1795307437&until=1795334437", 200,
          "\"timeline\":{\"startTime\":1795307420,\"samples\":[70000000,0,0,");
    check(f, "/pyroscope/render?query=" PT "%7B%7D&from=1795307434&until=1795334434", 200,
          "\"timeline\":{\"startTime\":1795307420,\"samples\":[130000000,0,0,");
}

TEST_ON(struct fixture *f, cut_stacks_are_repaired)
{
    SCOPED(buf) b = stored_file_of("cut_stacks", "heap-shapes");
    const struct label labels[] = {stored_label("__name__", "memory"),
                                   stored_label("service_name", "cut")};
    stored_put(f->options.served.store, labels, 2, (struct sv){b.data, b.len}, STORED_T0_NS);
    check(f, "/pyroscope/render?query=memory:inuse_space:count::%7B%7D" RANGE, 200, ",1640,");
    check(f, "/pyroscope/render?query=memory:inuse_space:count::%7B%7D&repair=false" RANGE, 200,
          ",1115,");
    check(f,
          "/pyroscope/render-diff?leftQuery=memory:inuse_space:count::%7B%7D&leftFrom=1795307340&"
          "leftUntil=1795307460&rightQuery=memory:inuse_space:count::%7B%7D&rightFrom=1795307340&"
          "rightUntil=1795307460&repair=false",
          200, ",1115,");
}

TEST(steps_of_timelines)
{
    static const struct {
        int64_t length_s, step_s;
    } rows[] = {
        {0, 15},
        {120, 15},
        {1500 * 17, 15},
        {1500 * 18, 20},
        {1500 * 26, 30},
        {1500 * 46, 60},
        {1500 * 100, 120},
        {1500 * 220, 300},
        {1500 * 460, 600},
        {1500 * 800, 900},
        {1500 * 1100, 1200},
        {1500 * 1600, 1800},
        {1500 * 2800, 3600},
        {1500 * 5500, 7200},
        {1500 * 9100, 10800},
        {1500 * 17000, 21600},
        {INT64_C(1500) * 33000, 43200},
        {INT64_C(1500) * 90000, 86400},
        {INT64_C(253402300799), 86400},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char row[64];
        snprintf(row, sizeof(row), "%lld s", (long long)rows[i].length_s);
        CHECK_INT(render_step_s(rows[i].length_s * 1000), rows[i].step_s, row);
    }
}
