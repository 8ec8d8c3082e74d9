/* Any two profiles, one after the other: the delta never has a negative counter, passes the
 * checker, its counters add up to what the newer profile has more, and its gauges are those of the
 * newer one. Input: two bytes for the length of the first, then both. */
#include <stdint.h>
#include <stdlib.h>

#include "scraper/delta.h"
#include "scraper/gzip.h"
#include "scraper/pprof_index.h"
#include "scraper/wire.h"

#define TYPES_MAX DELTA_TYPES_MAX

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

struct sums {
    struct pprof_info info;
    uint64_t total[TYPES_MAX]; /* modulo 2^64 */
    bool negative[TYPES_MAX];
    bool zero_sample;
};

static void add_sample(struct sv message, struct sums *s)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    size_t i = 0;
    bool zero = true;
    while (wire_next(&r, &f)) {
        struct wire_numbers numbers = wire_numbers_of(&f);
        uint64_t v;
        while (f.number == SAMPLE_VALUE && wire_numbers_next(&numbers, &v)) {
            s->total[i] += v;
            s->negative[i] = s->negative[i] || (int64_t)v < 0;
            zero = zero && v == 0;
            i++;
        }
    }
    s->zero_sample = s->zero_sample || zero;
}

static struct sums sum_up(struct sv plain)
{
    struct sums s = {.zero_sample = false};
    struct err err = ERR_INIT;
    struct wire_field f = {.number = 0};
    must(pprof_check(plain, &s.info, &err));
    must(s.info.types <= TYPES_MAX);
    struct wire_reader r = wire_reader_of(plain);
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_SAMPLE) {
            add_sample(f.bytes, &s);
        }
    }
    return s;
}

/* The columns that were taken for counters are those whose sum is not that of the newer profile, or
 * may be: so each column must either be as in the newer one, or the difference of both, or zero. */
static void check_output(const struct delta_output *out, enum delta_result result, struct sv before,
                         struct sv after)
{
    struct sums now = sum_up(after);
    struct gzip_out plain = {.data = NULL};
    struct err err = ERR_INIT;
    struct sums got = {.zero_sample = false};
    if (out->data != NULL) {
        struct sv zipped = {out->data, out->size};
        must(gzip_inflate(zipped, (size_t)1 << 26, 0, &plain, &err) == GZIP_OK);
        struct pprof_index x;
        struct sv v = {plain.data, plain.n};
        got = sum_up(v);
        must(pprof_index(&x, v, &got.info, 1, &err));
        pprof_index_done(&x);
        must(got.info.types == now.info.types && !got.zero_sample);
        must(got.info.samples == out->samples_out && got.info.samples <= now.info.samples);
        must(got.info.time_nanos == now.info.time_nanos);
    }
    struct sums old = before.n == 0 ? (struct sums){.zero_sample = false} : sum_up(before);
    for (size_t i = 0; i < now.info.types; i++) {
        bool gauge = got.total[i] == now.total[i];
        bool unknown = result != DELTA_MADE && got.total[i] == 0;
        /* Stacks that are missing now count in old only. */
        bool growth = result == DELTA_MADE && !got.negative[i] &&
                      (int64_t)(got.total[i] - (now.total[i] - old.total[i])) >= 0;
        must(gauge || unknown || growth);
    }
    free(plain.data);
}

static enum delta_result step(struct sv body, struct sv before, const struct delta_state *baseline,
                              struct delta_output *out)
{
    struct err err = ERR_INIT;
    struct delta_input in = {
        .body = body, .baseline = baseline, .any_counter = body.n % 2 == 0, .seed = 3};
    enum delta_result r = delta_make(&in, out, &err);
    must((err.msg[0] != '\0') == (r > DELTA_PASSED));
    must((out->next != NULL) == (r < DELTA_PASSED));
    if (r < DELTA_PASSED && !gzip_is(body)) {
        check_output(out, r, before, body);
    }
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct sv none = {.p = "", .n = 0};
    if (size < 2) {
        return 0;
    }
    size_t n = ((size_t)data[0] << 8 | data[1]) % (size - 1);
    struct sv before = {.p = (const char *)data + 2, .n = n};
    struct sv after = {.p = (const char *)data + 2 + n, .n = size - 2 - n};
    struct delta_output first;
    struct delta_output second;
    enum delta_result r = step(before, none, NULL, &first);
    struct sv known = r < DELTA_PASSED && !gzip_is(before) ? before : none;
    if (known.n > 0 || r >= DELTA_PASSED) {
        step(after, known, first.next, &second);
        delta_output_done(&second);
    }
    delta_output_done(&first);
    return 0;
}
