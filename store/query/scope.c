#include "base/clock.h"
#include "store/query/query_private.h"

#define MS_MAX (INT64_MAX / NS_PER_MS)

bool query_alive(const struct query *q, struct err *err)
{
    if (q->cancelled != NULL && atomic_load(q->cancelled)) {
        return err_set(err, ERR_TIMEOUT, "the query was cancelled");
    }
    if (q->deadline_ms != 0 && clock_mono_ms() >= q->deadline_ms) {
        return err_set(err, ERR_TIMEOUT, "the query has taken longer than it may");
    }
    return true;
}

bool query_ended(bool scanned, const struct err *of_callback, struct err *err)
{
    if (of_callback->kind != ERR_NONE) {
        return err_set(err, of_callback->kind, "%s", of_callback->msg);
    }
    return scanned;
}

void query_count_damaged(const struct query *q)
{
    if (q->damaged != NULL) {
        atomic_fetch_add(q->damaged, 1);
    }
}

uint64_t query_seed(void)
{
    struct rng rng;
    rng_seed_random(&rng);
    return rng_next(&rng);
}

static int64_t clamp_ms(int64_t ms)
{
    return ms < 0 ? 0 : (ms > MS_MAX - 1 ? MS_MAX - 1 : ms);
}

bool query_scope_init(const struct query *q, struct query_scope *scope, const struct query_range *r,
                      const struct profile_type *type, struct err *err)
{
    *scope = (struct query_scope){
        .range = {.from_ns = clamp_ms(r->start_ms) * NS_PER_MS,
                  /* The last nanosecond of its millisecond. */
                  .until_ns = (clamp_ms(r->end_ms) + 1) * NS_PER_MS - 1,
                  .partial = q->partial,
                  .peers = q->peers},
    };
    if (r->selector == NULL && type == NULL) {
        return true;
    }
    scope->selector = r->selector != NULL ? selector_copy(r->selector, err) : selector_new(err);
    if (scope->selector == NULL) {
        return false;
    }
    scope->range.selector = scope->selector;
    if (type != NULL &&
        !selector_add(scope->selector, SV(LABEL_PROFILE_TYPE), MATCH_EQUAL, type->id, err)) {
        query_scope_done(scope);
        return false;
    }
    return true;
}

void query_scope_done(struct query_scope *scope)
{
    scope->selector = selector_free(scope->selector);
}
