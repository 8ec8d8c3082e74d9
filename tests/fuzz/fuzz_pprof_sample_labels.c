/* A profile whose samples' labels are rewritten: the result passes the checker, each column adds up
 * to the same, and there is nothing left to change. The first byte chooses the rules. */
#include <string.h>

#include "pprof/check.h"
#include "pprof/gzip.h"
#include "pprof/sample_labels.h"
#include "pprof/wire.h"
#include "tests/fuzz/fuzz.h"

#define MAX ((size_t)1 << 20)

/* Names lose everything but letters and dots; what is "drop" then is dropped. */
static enum sample_label_change on_name(void *arg, struct sv name, struct buf *out)
{
    (void)arg;
    for (size_t i = 0; i < name.n; i++) {
        if ((name.p[i] >= 'a' && name.p[i] <= 'z') || name.p[i] == '.') {
            buf_putc(out, name.p[i]);
        }
    }
    if (sv_eq_str((struct sv){.p = out->data, .n = out->len}, "drop")) {
        buf_clear(out);
        return SAMPLE_LABEL_DROPPED;
    }
    return out->len == name.n ? SAMPLE_LABEL_CHANGES : SAMPLE_LABEL_REPAIRED;
}

static uint64_t sum_of(struct sv plain, size_t *ret_samples)
{
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f = {.number = 0};
    uint64_t sum = 0;
    *ret_samples = 0;
    while (wire_next(&r, &f)) {
        struct wire_reader sample = wire_reader_of(f.bytes);
        struct wire_field part = {.number = 0};
        *ret_samples += f.number == PROFILE_SAMPLE;
        while (f.number == PROFILE_SAMPLE && wire_next(&sample, &part)) {
            struct wire_numbers numbers = wire_numbers_of(&part);
            uint64_t v;
            while (part.number == SAMPLE_VALUE && wire_numbers_next(&numbers, &v)) {
                sum = sum * 3 + v;
            }
        }
    }
    return sum;
}

static void compare(struct sv before, struct sv after)
{
    struct scratch *s = scratch_new();
    struct pprof_summary summary;
    struct sv plain = SV("");
    size_t n;
    size_t n_after;
    REQUIRE(s != NULL && gzip_plain(s, after, 2 * MAX, 0, &plain, NULL));
    REQUIRE(pprof_check(plain, &summary, NULL));
    uint64_t sum = sum_of(plain, &n_after);
    scratch_reset(s);
    REQUIRE(gzip_plain(s, before, MAX, 0, &plain, NULL));
    REQUIRE(sum_of(plain, &n) == sum && n == n_after);
    scratch_free(s);
}

FUZZ_BY(choice, body)
{
    const struct sample_label_rules rules = {.name = on_name,
                                             .numbers = choice & 4,
                                             .repair = choice & 1,
                                             .names_max = choice & 2 ? 2 : SIZE_MAX,
                                             .value_max = 4};
    struct scratch *s = scratch_new();
    struct sample_labels_result r;
    struct sample_labels_result again = {.data = NULL};
    REQUIRE(s != NULL);
    if (sample_labels_rewrite(s, body, MAX, &rules, &r, NULL) && r.data != NULL) {
        struct sv after = {.p = r.data, .n = r.size};
        REQUIRE(r.labelled);
        compare(body, after);
        REQUIRE(sample_labels_rewrite(s, after, 2 * MAX, &rules, &again, NULL));
        REQUIRE(again.data == NULL);
    }
    free(r.data);
    free(again.data);
    scratch_free(s);
}
