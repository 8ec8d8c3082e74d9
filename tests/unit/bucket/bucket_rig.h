/* A bucket client beside the fake of fake_bucket.h. */
#ifndef PROFPULL_TESTS_BUCKET_RIG_H
#define PROFPULL_TESTS_BUCKET_RIG_H

#include "tests/unit/lib/fake_bucket.h"

#include "bucket/bucket.h"

#define SECRET "hunter2/secret+key"

struct rig {
    struct fake_bucket *fake;
    struct metrics *metrics;
    char endpoint[URL_SIZE];
    struct bucket_settings settings;
    struct bucket *bucket;
    struct err err;
};

/* Short pauses, so that tests need not wait. */
static inline struct bucket_options rig_options(struct rig *r)
{
    return (struct bucket_options){.settings = &r->settings,
                                   .name = "test",
                                   .metrics = r->metrics,
                                   .pause_min_ms = 1,
                                   .pause_max_ms = 2,
                                   .part_bytes = 1000,
                                   .tries = 3};
}

static inline void rig_init_with(struct rig *r, const char *url,
                                 void (*change)(struct bucket_options *o))
{
    *r = (struct rig){.fake = fake_bucket_new(), .metrics = metrics_new()};
    r->settings = (struct bucket_settings){
        .url = url,
        .endpoint = fake_bucket_url(r->fake, r->endpoint),
        .path_style = true,
        .http = {.region = "eu-test-1", .username = "AKIDEXAMPLE", .password = SECRET}};
    struct bucket_options o = rig_options(r);
    if (change != NULL) {
        change(&o);
    }
    r->bucket = bucket_new(&o, &r->err);
    CHECK_STR(r->err.msg, "", "bucket_new");
    assert_non_null(r->bucket);
}

static inline void rig_init(struct rig *r)
{
    rig_init_with(r, "s3://bbb/pre", NULL);
}

static inline void rig_done(struct rig *r)
{
    assert_null(strstr(r->err.msg, "hunter2"));
    bucket_free(r->bucket);
    metrics_free(r->metrics);
    fake_bucket_free(r->fake);
}
SCOPED_VALUE(rig, rig_done)

#endif
