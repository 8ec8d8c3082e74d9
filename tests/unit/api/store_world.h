/* The query APIs over a store in a temporary directory. */
#ifndef PROFPULL_TESTS_STORE_WORLD_H
#define PROFPULL_TESTS_STORE_WORLD_H

#include "tests/unit/api/exchange_rig.h"
#include "tests/unit/lib/store_rig.h"
#include "tests/unit/lib/stored.h"

struct world {
    struct store_rig rig;
    struct rig_process options;
    char ids[4][STORE_ID_LENGTH + 1]; /* for tests that ask for profiles by their ids */
};

static inline void store_world_init(struct world *w)
{
    store_rig_init(&w->rig);
    w->options = (struct rig_process){.sets = ROUTE_QUERY,
                                      .metrics = w->rig.metrics,
                                      .served = {.store = w->rig.store, .version = "1.2.3"}};
}

static inline void store_world_done(struct world *w)
{
    store_rig_done(&w->rig);
}

/* Puts a stored profile. id: NULL if nobody asks for it. */
static inline void store_world_put(struct world *w, const char *labels, const char *file,
                                   int64_t at_ns, char id[STORE_ID_LENGTH + 1])
{
    struct store_put done;
    SCOPED(buf) data = stored_file(file);
    enum store_taken taken = rig_put_bytes(&w->rig, labels, at_ns, (struct sv){data.data, data.len},
                                           PROFILE_PPROF, &done);
    CHECK_STR(done.problem, "", labels);
    assert_int_equal(taken, STORE_TAKEN);
    if (id != NULL) {
        memcpy(id, done.id, sizeof(done.id));
    }
}

#endif
