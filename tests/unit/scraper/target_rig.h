/* For tests of targets: a job with types of the test, and label sets as flat lists. */
#ifndef PROFPULL_TESTS_TARGET_RIG_H
#define PROFPULL_TESTS_TARGET_RIG_H

#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "scraper/targets/target_private.h"

#define TYPES_MAX 16

struct fixture {
    struct intern *intern;
    struct labels_builder *b;
    struct config_type types[TYPES_MAX]; /* the test may change them */
    struct config_job job;
};

static inline int setup_types(void **state, const struct config_type *types, size_t n)
{
    struct fixture *f = testing_memory(sizeof(*f));
    assert_true(n <= TYPES_MAX);
    f->intern = intern_new();
    f->b = labels_builder_new(f->intern);
    memcpy(f->types, types, n * sizeof(*types));
    f->job = (struct config_job){
        .name = "",
        .scheme = "http",
        .path_prefix = "",
        .types = f->types,
        .n_types = n,
        .interval_ms = 15000,
        .timeout_ms = 10000,
    };
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    labels_builder_free(f->b);
    intern_free(f->intern);
    free(f);
    return 0;
}

/* A target of labels in a flat list of names and values, ended by NULL, after the address if it is
 * not NULL. */
static inline struct target *make_at(struct fixture *f, const char *address,
                                     const char *const *labels, const char *pinned, struct err *err)
{
    labels_builder_reset(f->b, NULL);
    if (address != NULL) {
        labels_builder_set_str(f->b, "__address__", address);
    }
    for (size_t i = 0; labels[i] != NULL; i += 2) {
        labels_builder_set_str(f->b, labels[i], labels[i + 1]);
    }
    return target_make(NULL, 0, &f->job, f->b, pinned, err);
}

#define LABELS(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
