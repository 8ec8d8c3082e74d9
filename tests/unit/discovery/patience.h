/* A loop that a case runs until something has happened, but not for ever. */
#ifndef PROFPULL_TESTS_PATIENCE_H
#define PROFPULL_TESTS_PATIENCE_H

#include "tests/unit/lib/testing.h"

/* A test that takes longer has failed. */
#define PATIENCE_MS 20000

struct patience {
    struct loop *loop;
    struct loop_timer *timer;
    bool late; /* the time was over before the loop was stopped */
};

static inline void patience_on_late(void *arg)
{
    struct patience *p = arg;
    p->late = true;
    loop_stop(p->loop);
}

static inline void patience_init(struct patience *p, struct loop *loop)
{
    *p = (struct patience){.loop = loop};
    p->timer = loop_timer_new(loop, patience_on_late, p);
    assert_non_null(p->timer);
}

static inline void patience_done(struct patience *p)
{
    loop_timer_free(p->timer);
}

/* Runs the loop until it is stopped or the time is over; returns true if it was stopped. The timer
 * continues after that, for a caller that turns the loop itself until "late" is set. */
static inline bool patience_run(struct patience *p, int64_t ms)
{
    p->late = false;
    loop_timer_after(p->timer, ms);
    loop_run(p->loop);
    return !p->late;
}

#endif
