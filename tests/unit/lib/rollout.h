/* A rollout in a store: two versions of a service, of which the second may have a slower function.
 */
#ifndef PROFPULL_TESTS_ROLLOUT_H
#define PROFPULL_TESTS_ROLLOUT_H

#include "tests/unit/lib/changes_world.h"
#include "tests/unit/lib/store_rig.h"

#define ROLLOUT_FUNCTIONS 7

/* Puts a profile of 10 seconds: seven functions of main, with so many samples of 10 ms each; that
 * of main.slow is given. */
static inline void rollout_put_cpu(struct store_rig *r, const char *labels, int64_t from_ns,
                                   int64_t slow, struct rng *rng)
{
    static const char *const frames[ROLLOUT_FUNCTIONS] = {
        "main.slow main.main",           "main.a main.main", "main.b main.main",
        "main.c main.a main.main",       "main.d main.main", "main.e main.main",
        "main.e main.e main.b main.main"};
    struct pprof_row rows[ROLLOUT_FUNCTIONS];
    struct pprof_spec spec = {.types = "samples/count cpu/nanoseconds",
                              .period_type = "cpu/nanoseconds",
                              .time_nanos = from_ns,
                              .duration_nanos = 10 * NS_PER_S};
    for (size_t i = 0; i < ROLLOUT_FUNCTIONS; i++) {
        double mean = i == 0 ? (double)slow : 20 + 10 * (double)i;
        int64_t n = (int64_t)world_poisson(rng, mean);
        rows[i] = (struct pprof_row){.frames = frames[i], .values = {n, n * 10000000}};
    }
    SCOPED(buf) b = pprof_make(&spec, rows, ROLLOUT_FUNCTIONS);
    put_num(&b, 12, 10000000); /* the period */
    struct store_put put;
    assert_int_equal(
        rig_put_bytes(r, labels, from_ns, (struct sv){b.data, b.len}, PROFILE_PPROF, &put),
        STORE_TAKEN);
}

/* Two versions of the service cart, three pods each, half an hour after each other, with a profile
 * a minute for twenty minutes. */
static inline void rollout_put(struct store_rig *r, const char *service, int64_t before,
                               int64_t after)
{
    struct rng rng;
    rng_seed(&rng, 7);
    for (int version = 0; version < 2; version++) {
        for (int pod = 0; pod < 3; pod++) {
            for (int m = 0; m < 20; m++) {
                char labels[256];
                int64_t at = RIG_T0 + (version * 30 + m) * 60 * RIG_SECOND + pod;
                (void)snprintf(labels, sizeof(labels),
                               "__name__=process_cpu,pod=%s-%d%d,service_name=%s,version=%d.0",
                               service, version, pod, service, version + 1);
                rollout_put_cpu(r, labels, at, version == 0 ? before : after, &rng);
            }
        }
    }
}

#endif
