#include "pprof/columns.h"

static bool is_known_counter(struct sv type, struct sv unit)
{
    static const struct {
        const char *type;
        const char *unit;
    } known[] = {
        {"alloc_objects", "count"},
        {"alloc_space", "bytes"},
        {"contentions", "count"},
        {"delay", "nanoseconds"},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (sv_eq_str(type, known[i].type) && sv_eq_str(unit, known[i].unit)) {
            return true;
        }
    }
    return false;
}

size_t pprof_counters(const struct pprof_index *x, bool any_counter,
                      bool ret_is_counter[SUMMARY_TYPES_MAX])
{
    const struct pprof_value_type *types = x->summary.types;
    size_t n = x->summary.n[PROFILE_SAMPLE_TYPE];
    size_t counters = 0;
    for (size_t i = 0; i < n; i++) {
        ret_is_counter[i] =
            is_known_counter(pprof_string(x, types[i].type), pprof_string(x, types[i].unit));
        counters += ret_is_counter[i];
    }
    if (counters > 0 || !any_counter) {
        return counters;
    }
    for (size_t i = 0; i < n; i++) {
        ret_is_counter[i] = !sv_starts_with(pprof_string(x, types[i].type), SV("inuse_"));
        counters += ret_is_counter[i];
    }
    return counters;
}

bool pprof_small_enough(const size_t *n, const char *what, struct err *err)
{
    const struct {
        const char *what;
        size_t n;
        size_t max;
    } limits[] = {
        {"sample types", n[PROFILE_SAMPLE_TYPE], SUMMARY_TYPES_MAX},
        {"samples", n[PROFILE_SAMPLE], PPROF_ENTRIES_MAX},
        {"values", n[PROFILE_SAMPLE] * n[PROFILE_SAMPLE_TYPE], PPROF_VALUES_MAX},
        {"locations", n[PROFILE_LOCATION], PPROF_ENTRIES_MAX},
        {"functions", n[PROFILE_FUNCTION], PPROF_ENTRIES_MAX},
        {"mappings", n[PROFILE_MAPPING], PPROF_ENTRIES_MAX},
        {"strings", n[PROFILE_STRING], PPROF_VALUES_MAX},
    };
    for (size_t k = 0; k < sizeof(limits) / sizeof(limits[0]); k++) {
        if (limits[k].n > limits[k].max) {
            return err_set(err, ERR_LIMIT, "%zu %s: more than a %s may have (%zu)", limits[k].n,
                           limits[k].what, what, limits[k].max);
        }
    }
    return true;
}
