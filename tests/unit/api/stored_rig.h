/* A store with the three profiles of the recorded exchanges: p1 and p2 of the service vecdemo in
 * pods a and b, p3 of vecdemo3 in pod c, 15 seconds after each other.
 */
#ifndef PROFPULL_TESTS_STORED_RIG_H
#define PROFPULL_TESTS_STORED_RIG_H

#include <stdlib.h>

#include "base/clock.h"
#include "store/store.h"
#include "tests/unit/lib/stored.h"
#include "tests/unit/lib/testing.h"

/* 2026-11-22T00:30:00Z, when p1 begins. */
#define STORED_T0_NS INT64_C(1795307400000000000)

static inline struct label stored_label(const char *name, const char *value)
{
    return (struct label){sv_from(name), sv_from(value)};
}

static inline void stored_put(struct store *s, const struct label *labels, size_t n, struct sv data,
                              int64_t from_ns)
{
    struct store_put put = {
        .labels = labels,
        .n_labels = n,
        .data = data,
        .format = PROFILE_PPROF,
        .from_ns = from_ns,
        .until_ns = from_ns + 15 * NS_PER_S,
    };
    CHECK(store_put(s, &put, 1), "store_put: %s", put.problem);
}

static inline struct store *stored_store_new(const char *directory, struct log *log)
{
    struct err err = ERR_INIT;
    struct store_options options = {
        .name = "test", .directory = directory, .stretch_ms = 3600000, .log = log};
    struct store *s = store_open(&options, &err);
    CHECK(s != NULL, "store_open: %s", err.msg);
    return s;
}

/* Puts the three, the first one at from_ns. */
static inline void stored_put_three(struct store *s, int64_t from_ns)
{
    static const char *const rows[3][3] = {
        {"p1", "a", "vecdemo"}, {"p2", "b", "vecdemo"}, {"p3", "c", "vecdemo3"}};
    for (int i = 0; i < 3; i++) {
        SCOPED(buf) data = stored_file(rows[i][0]);
        struct label labels[] = {stored_label("__name__", "process_cpu"),
                                 stored_label("pod", rows[i][1]),
                                 stored_label("service_name", rows[i][2])};
        stored_put(s, labels, 3, (struct sv){data.data, data.len}, from_ns + i * 15 * NS_PER_S);
    }
}

#endif
