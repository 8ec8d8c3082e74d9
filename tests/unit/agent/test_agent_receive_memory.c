/* Pushed profiles while every allocation in turn fails: the answer says so, so that senders try
 * again, nothing leaks, and the same profile is taken afterwards.
 */
#include "tests/unit/lib/testing.h"

#include <string.h>

#include "pprof/gzip.h"
#include "tests/unit/lib/failing_malloc.h"
#include "tests/unit/lib/receive_rig.h"

#define DROPPED "profile dropped after profile_relabel_configs"
#define ONE "[{name: a, url: \"http://127.0.0.1:1\"}]"

/* The surroundings of the scenarios, which have no parameter. */
static struct {
    struct receive_rig rig;
    const char *receive;
    struct sv data;
    enum profile_format format;
    enum receive_result wanted; /* if no allocation fails */
    uint64_t n;                 /* of the runs: no two profiles are alike */
} place;

/* The caller may fail an allocation of receive_open() and receive_put(). */
static enum receive_result take(struct err *err)
{
    char run[32];
    struct label labels[] = {{SV("__name__"), SV("process_cpu")},
                             {SV("service_name"), SV("cart")},
                             {SV("run"), {run, 0}}};
    const struct receive_facts facts = {.labels = labels, .n_labels = 3};
    struct receive_item item;
    labels[2].value.n = (size_t)snprintf(run, sizeof(run), "run-%llu", (unsigned long long)place.n);
    place.n++;
    enum receive_result result =
        receive_open(place.rig.receive, RECEIVE_PUSH, place.format, place.data, &item, err);
    if (result == RECEIVE_ACCEPTED) {
        result = receive_put(place.rig.receive, &item, &facts, err);
    }
    bool armed = failing_malloc_pause();
    if (result >= RECEIVE_BAD_REQUEST) {
        testing_log_expect(place.rig.log, "pushed profile refused");
    }
    failing_malloc_resume(armed);
    receive_count(place.rig.receive, RECEIVE_PUSH, result, place.data.n, err);
    receive_close(place.rig.receive, &item);
    return result;
}

static void scenario(bool *ret_complete)
{
    struct err err = ERR_INIT;
    bool armed = failing_malloc_pause();
    receive_rig_start(&place.rig, place.receive, ONE); /* with nothing kept of the run before */
    testing_log_expect(place.rig.log, DROPPED);
    failing_malloc_resume(armed);
    enum receive_result result = take(&err);
    armed = failing_malloc_pause();
    bool failed = failing_malloc_failed();
    if (strstr(testing_log_text(place.rig.log), DROPPED) == NULL) {
        log_warn(testing_log(place.rig.log), DROPPED); /* it was announced: rules may fail */
    }
    if (result != place.wanted) {
        /* A queue without memory for the profile has no room for it. */
        assert_true(failed && err.msg[0] != '\0');
        if (result != RECEIVE_QUEUE_FULL) {
            CHECK_STR(receive_result_name(result), "memory", testing_log_text(place.rig.log));
        }
    }
    /* Whatever failed, the next one is taken. */
    struct err after = ERR_INIT;
    CHECK_STR(receive_result_name(take(&after)), receive_result_name(place.wanted), after.msg);
    *ret_complete = result == place.wanted && !failed;
    receive_rig_done(&place.rig);
    failing_malloc_resume(armed);
}

static void each(const char *receive, struct sv data, enum profile_format format,
                 enum receive_result wanted)
{
    place.receive = receive;
    place.data = data;
    place.format = format;
    place.wanted = wanted;
    assert_true(failing_malloc_each(FAIL_OURS, scenario) > 0);
    assert_true(failing_malloc_each(FAIL_ALL, scenario) > 0);
}

TEST(plain_and_gzip)
{
    SCOPED(buf) b = receive_rig_profile(clock_wall_ns());
    SCOPED(scratch) *scratch = scratch_new();
    struct sv packed;
    assert_true(gzip_deflate(scratch, (struct sv){b.data, b.len}, &packed));
    each("{listen: \"127.0.0.1:0\"}", (struct sv){b.data, b.len}, PROFILE_PPROF, RECEIVE_ACCEPTED);
    each("{listen: \"127.0.0.1:0\"}", packed, PROFILE_PPROF, RECEIVE_ACCEPTED);
}

TEST(rules)
{
    SCOPED(buf) b = receive_rig_profile(clock_wall_ns());
    each("{listen: \"127.0.0.1:0\", profile_relabel_configs: "
         "[{source_labels: [run], regex: \"run-(.*)\", target_label: n}]}",
         (struct sv){b.data, b.len}, PROFILE_PPROF, RECEIVE_ACCEPTED);
}

/* A profile that is none stays a bad one: senders would try for ever. */
TEST(bad_profile)
{
    each("{listen: \"127.0.0.1:0\"}", SV("no profile"), PROFILE_PPROF, RECEIVE_BAD_PROFILE);
}

static void making(bool *ret_complete)
{
    struct err err = ERR_INIT;
    const struct receive_options options = {.config = &place.rig.config->receive,
                                            .intern = place.rig.intern,
                                            .writer = place.rig.writer,
                                            .log = testing_log(place.rig.log),
                                            .metrics = place.rig.metrics};
    struct receive *r = receive_new(&options, &err);
    *ret_complete = r != NULL;
    if (r == NULL) {
        assert_true(err.kind != ERR_NONE); /* the library of expressions has words of its own */
    }
    receive_free(r);
}

TEST(is_made_or_not)
{
    receive_rig_start(&place.rig,
                      "{listen: \"127.0.0.1:0\", profile_relabel_configs: "
                      "[{source_labels: [run], regex: \"run-(.*)\", target_label: n}]}",
                      ONE);
    assert_true(failing_malloc_each(FAIL_OURS, making) > 0);
    receive_rig_done(&place.rig);
}
