/* Up to four profiles, merged: the first byte says how, the rest is cut into parts by two bytes of
 * length each.
 *
 * Whatever the input, the result passes the checker and each column adds up to the sum of the
 * profiles that were taken, a refused profile changes nothing, and merging a result alone is
 * idempotent.
 */
#include <string.h>

#include "pprof/check.h"
#include "pprof/gzip.h"
#include "pprof/merge.h"
#include "pprof/summary.h"
#include "pprof/wire.h"
#include "tests/fuzz/fuzz.h"

#define OUT_MAX ((size_t)1 << 24)

/* Sums of the columns modulo 2^64, and whether a value is so large that sums may stop. */
struct sums {
    uint64_t total[SUMMARY_TYPES_MAX];
    bool large;
};

static void add_sample(struct sv message, struct sums *s)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    size_t i = 0;
    while (wire_next(&r, &f)) {
        struct wire_numbers numbers = wire_numbers_of(&f);
        uint64_t v;
        while (f.number == SAMPLE_VALUE && wire_numbers_next(&numbers, &v)) {
            s->total[i++] += v;
            s->large = s->large || (v + (UINT64_C(1) << 40)) >> 41 != 0;
        }
    }
}

static void sum_up(struct sv plain, struct sums *s)
{
    struct pprof_summary summary;
    struct err err = ERR_INIT;
    struct wire_field f = {.number = 0};
    REQUIRE(pprof_check(plain, &summary, &err));
    REQUIRE(summary.n[PROFILE_SAMPLE_TYPE] <= SUMMARY_TYPES_MAX);
    struct wire_reader r = wire_reader_of(plain);
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_SAMPLE) {
            add_sample(f.bytes, s);
        }
    }
}

/* The result, plain. False if there is none, or it is smaller than gzip's ratio allows. */
static bool result(struct merge *m, struct scratch *s, struct sv *ret)
{
    struct err err = ERR_INIT;
    struct buf out;
    buf_init(&out, OUT_MAX);
    bool ok = merge_write(m, &out, &err);
    ok = ok && gzip_inflate(s, (struct sv){out.data, out.len}, OUT_MAX, 0, ret, &err);
    buf_done(&out);
    return ok;
}

static struct sv next_part(const uint8_t **data, size_t *size)
{
    size_t n = 0;
    if (*size >= 2) {
        n = (size_t)(*data)[0] << 8 | (*data)[1];
        *data += 2;
        *size -= 2;
    }
    n = n < *size ? n : *size;
    struct sv part = {.p = (const char *)*data, .n = n};
    *data += n;
    *size -= n;
    return part;
}

/* Adds a profile. A refused one must leave the result as it was. */
static void add(struct merge *m, struct scratch *s, struct sv body, struct sums *sums)
{
    struct err err = ERR_INIT;
    struct sv before = {.p = "", .n = 0};
    struct sv after = {.p = "", .n = 0};
    struct sv plain;
    bool had = result(m, s, &before);
    if (merge_add(m, body, &err)) {
        REQUIRE(gzip_plain(s, body, OUT_MAX, 0, &plain, &err));
        sum_up(plain, sums);
        return;
    }
    REQUIRE(err.kind == ERR_INPUT || err.kind == ERR_LIMIT);
    REQUIRE(result(m, s, &after) == had);
    REQUIRE(!had || sv_eq(before, after));
}

/* Merges a result alone. */
static bool merge_again(struct sv plain, struct scratch *s, struct sv *ret)
{
    struct err err = ERR_INIT;
    const struct merge_options o = {.bytes_max = 4 * OUT_MAX};
    struct merge *m = merge_new(&o, &err);
    REQUIRE(m != NULL && merge_add(m, plain, &err));
    bool ok = result(m, s, ret);
    merge_free(m);
    return ok;
}

/* The first time, labels with a text of "" can go: they are written like none. */
static void must_be_whole(struct sv plain, struct scratch *s)
{
    struct sv once;
    struct sv twice;
    if (merge_again(plain, s, &once) && merge_again(once, s, &twice)) {
        REQUIRE(sv_eq(once, twice));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    struct sums sums = {.large = false};
    struct sums merged = {.large = false};
    struct sv plain;
    if (size == 0) {
        return 0;
    }
    uint8_t how = *data++;
    size--;
    const struct merge_options o = {
        .bytes_max = (how & 1) != 0 ? 4096 : OUT_MAX,
        .mode = (how & 2) != 0 ? MERGE_WINDOW : MERGE_SUM,
        .any_counter = (how & 4) != 0,
    };
    struct merge *m = merge_new(&o, &err);
    struct scratch *s = scratch_new();
    REQUIRE(m != NULL && s != NULL);
    for (int i = 0; i < 4 && size > 0; i++) {
        add(m, s, next_part(&data, &size), &sums);
    }
    if (result(m, s, &plain)) {
        sum_up(plain, &merged);
        bool exact = o.mode == MERGE_SUM && !sums.large;
        REQUIRE(!exact || memcmp(merged.total, sums.total, sizeof(sums.total)) == 0);
        must_be_whole(plain, s);
    }
    scratch_free(s);
    merge_free(m);
    return 0;
}
