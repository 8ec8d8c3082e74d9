/* Sums and series of the store are those of the samples, whatever labels and
 * values they have. */
#include "tests/unit/lib/store_rig.h"

#define ROUNDS 60
#define ROWS_MAX 40
#define KEYS 4

/* The sum of the samples with one value of "k". */
struct expected {
    int64_t sums[2];
};

static const char *const labels_of[KEYS] = {"", "k=x", "k=y", "k=z"};
static const char *const beside[] = {"", "span_id=s1", "trace_id=t1", "n=7bytes", "pod=other"};

static void make_rows(struct rng *rng, struct pprof_row *rows, size_t n, char texts[ROWS_MAX][64],
                      struct expected want[KEYS])
{
    for (size_t i = 0; i < n; i++) {
        size_t key = (size_t)rng_range(rng, 0, KEYS);
        size_t extra = (size_t)rng_range(rng, 0, 5);
        bool both = labels_of[key][0] != '\0' && beside[extra][0] != '\0';
        (void)snprintf(texts[i], 64, "%s%s%s", labels_of[key], both ? "," : "", beside[extra]);
        rows[i] = (struct pprof_row){.frames = "a main", .labels = texts[i]};
        for (size_t c = 0; c < 2; c++) {
            rows[i].values[c] = rng_range(rng, -1, 1000);
        }
        if (rows[i].values[0] < 0 || rows[i].values[1] < 0) {
            continue;
        }
        for (size_t c = 0; c < 2; c++) {
            want[key].sums[c] += rows[i].values[c];
        }
    }
}

TEST(test_sums_are_those_of_the_samples)
{
    SCOPED(store_rig) r;
    struct rng rng;
    rng_seed(&rng, 20261122);
    store_rig_init(&r);
    for (int64_t round = 0; round < ROUNDS; round++) {
        struct expected want[KEYS] = {0};
        struct pprof_row rows[ROWS_MAX];
        char texts[ROWS_MAX][64];
        size_t n = (size_t)rng_range(&rng, 1, ROWS_MAX);
        make_rows(&rng, rows, n, texts, want);
        rig_put(&r, "__name__=cpu,pod=mine,service_name=s", RIG_T0 + round * RIG_SECOND,
                "x/count y/bytes", rows, n, NULL);
        for (size_t k = 0; k < KEYS; k++) {
            for (size_t c = 0; c < 2; c++) {
                char selector[64];
                char line[64] = "";
                (void)snprintf(selector, sizeof(selector), "{__type__=\"%s\",k=\"%s\"}",
                               c == 0 ? "x" : "y", k == 0 ? "" : labels_of[k] + 2);
                if (want[k].sums[c] != 0) {
                    (void)snprintf(line, sizeof(line), "mine %lld %lld\n", (long long)round,
                                   (long long)want[k].sums[c]);
                }
                rig_check(&r, RIG_POINTS, selector, round, round, "pod", line);
            }
        }
    }
}
