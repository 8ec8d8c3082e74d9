#include "pprof/pgo.h"

#include "pprof/gzip.h"
#include "pprof/summary.h"
#include "pprof/wire.h"

static bool is_cpu(const struct pprof_value_type *t)
{
    return (sv_eq_str(t->type_text, "samples") && sv_eq_str(t->unit_text, "count")) ||
           (sv_eq_str(t->type_text, "cpu") && sv_eq_str(t->unit_text, "nanoseconds"));
}

static bool has_cpu(const struct pprof_summary *s)
{
    size_t n = s->n[PROFILE_SAMPLE_TYPE];
    n = n < SUMMARY_TYPES_MAX ? n : SUMMARY_TYPES_MAX;
    for (size_t i = 0; i < n; i++) {
        if (is_cpu(&s->types[i])) {
            return true;
        }
    }
    return false;
}

static bool has_start_line(struct sv plain)
{
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f;
    while (wire_next(&r, &f)) {
        uint64_t numbers[FUNCTION_START_LINE + 1] = {0};
        if (f.number == PROFILE_FUNCTION && f.type == WIRE_BYTES) {
            wire_read_numbers(f.bytes, numbers, FUNCTION_START_LINE + 1);
        }
        if (numbers[FUNCTION_START_LINE] != 0) {
            return true;
        }
    }
    return false;
}

bool pgo_check(struct scratch *s, struct sv body, size_t max, size_t *ret_samples, struct err *err)
{
    struct pprof_summary summary;
    struct sv plain;
    char types[256];
    scratch_reset(s);
    if (!gzip_plain(s, body, max, 0, &plain, err) ||
        !pprof_summary_read(s, plain, max, &summary, err)) {
        return false;
    }
    if (ret_samples != NULL) {
        *ret_samples = summary.n[PROFILE_SAMPLE];
    }
    if (summary.n[PROFILE_SAMPLE] == 0) {
        return err_set(err, ERR_INPUT, "the profile has no samples");
    }
    if (!has_cpu(&summary)) {
        pprof_summary_print_types(&summary, "?", types, sizeof(types));
        return err_set(err, ERR_INPUT,
                       "no CPU profile: expected samples/count or cpu/nanoseconds, got %s", types);
    }
    return has_start_line(plain) ||
           err_set(err, ERR_INPUT,
                   "no function of the profile says at which line it starts (start_line), which "
                   "the compiler needs: Go 1.20 and later write it");
}
