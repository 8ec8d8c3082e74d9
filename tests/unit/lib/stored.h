/* Stored profiles without a store: what a scan would hand over, for tests. */
#ifndef PROFPULL_TESTS_STORED_H
#define PROFPULL_TESTS_STORED_H

#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "store/store.h"

/* Reads a file of a directory of tests/unit/data; the caller frees it with buf_done(). */
static inline struct buf stored_file_of(const char *directory, const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "tests/unit/data/%s/%s.pb", directory, name);
    return testing_read_file(path);
}

/* Reads a file of tests/unit/data/merge; the caller frees it with buf_done(). */
static inline struct buf stored_file(const char *name)
{
    return stored_file_of("merge", name);
}

/* A body with one series, whole; change what differs. */
struct stored {
    struct store_series series;
    const struct store_series *list[1];
    struct store_body body;
};

static inline void stored_init(struct stored *s, struct sv data, size_t column)
{
    *s = (struct stored){.series = {.column = column}};
    s->list[0] = &s->series;
    s->body = (struct store_body){
        .id = "00000000-0000-4000-8000-000000000000",
        .data = data,
        .format = PROFILE_PPROF,
        .series = s->list,
        .n_series = 1,
        .whole = true,
    };
}

#endif
