/* For tests of what goes to a destination: label sets in one table, profiles, and the requests that
 * they become. */
#ifndef PROFPULL_TESTS_REQUESTS_H
#define PROFPULL_TESTS_REQUESTS_H

#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "base/clock.h"
#include "write/protocols/table.h"
#include "write/request.h"

SCOPED_VALUE(series, series_done)

/* 2026-11-21T03:00:00Z */
#define WALL_S INT64_C(1795230000)

static const struct config_pairs no_external = {.at = NULL, .n = 0};
static const struct config_label_limits default_limits = CONFIG_LABEL_LIMITS_DEFAULT;

/* A whole CPU profile of 130 bytes, plain, of 100 Hz, with one sample. */
static const char cpu_hex[] =
    "0a04080110020a0408031004120a0a010112050580e1eb171a0408013801220a080110012204080110072a08080110"
    "05180520063200320773616d706c65733205636f756e743203637075320b6e616e6f7365636f6e647332046d61696e"
    "32076d61696e2e676f488080a8b1e39fe7cb175080c8afa0255a04080310046080ade204";

struct bytes {
    char data[256];
    size_t n;
};

static inline struct bytes from_hex(const char *hex)
{
    struct bytes b = {.n = 0};
    for (; hex[0] != '\0' && hex[1] != '\0'; hex += 2) {
        char digits[3] = {hex[0], hex[1], '\0'};
        assert_true(b.n < sizeof(b.data));
        b.data[b.n++] = (char)strtoul(digits, NULL, 16);
    }
    return b;
}

/* The label sets of a test; teardown() fails it if one was not released. */
static struct intern *table;

static inline int setup(void **state)
{
    (void)state;
    table = intern_new();
    return table == NULL;
}

static inline int teardown(void **state)
{
    (void)state;
    size_t count = 1;
    size_t bytes;
    intern_stats(table, &count, &bytes);
    table = intern_free(table);
    return count != 0;
}

struct pair {
    const char *name;
    const char *value;
};

/* The label set of n pairs in any order, or of those before one without a name. */
static inline struct labels *labels_of(const struct pair *pairs, size_t n)
{
    struct labels_builder *b = labels_builder_new(table);
    assert_non_null(b);
    for (size_t i = 0; i < n && pairs[i].name != NULL; i++) {
        labels_builder_set_str(b, pairs[i].name, pairs[i].value);
    }
    struct labels *l = labels_builder_build(b);
    assert_non_null(l);
    labels_builder_free(b);
    return l;
}

/* A profile of the ten seconds from WALL_S with a copy of the data; takes over the labels. */
static inline struct profile *profile_of(struct labels *l, const char *data, size_t size)
{
    char *copy = testing_memory(size + 1);
    memcpy(copy, data, size);
    struct profile *p = profile_new(l, copy, size);
    assert_non_null(p);
    p->from_ns = WALL_S * NS_PER_S;
    p->until_ns = (WALL_S + 10) * NS_PER_S;
    return p;
}

/* A request and what it was made of. */
struct sent {
    struct series series;
    struct request request;
    struct profile *profile;
    struct boundary boundary;
    enum request_status status;
};

/* Builds the request of a profile, which it takes over. A boundary of NULL is the first random one;
 * if the profile contains it, request_build() takes the second one. */
static inline void send_profile(struct sent *s, const struct config_endpoint *e, struct profile *p,
                                const char *boundary)
{
    struct rng rng;
    rng_seed(&rng, 1);
    boundary_new(&s->boundary, &rng);
    rng_seed(&rng, 1);
    if (boundary != NULL) {
        (void)snprintf(s->boundary.text, sizeof(s->boundary.text), "%s", boundary);
    }
    s->profile = p;
    assert_true(series_build(&s->series, p->labels, &e->external_labels, &default_limits,
                             &protocol_of(e)->labels));
    struct request_input in = {
        .endpoint = e, .series = &s->series, .profile = p, .boundary = &s->boundary, .rng = &rng};
    s->status = request_build(&s->request, &in);
}

static inline void release(struct sent *s)
{
    request_done(&s->request);
    series_done(&s->series);
    s->profile = profile_unref(s->profile);
}

#endif
