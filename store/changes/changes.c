#include "store/changes/changes.h"

#include <math.h>
#include <stdlib.h>

#include "store/changes/observe.h"
#include "store/query/query_private.h"
#include "store/query/versions.h"

/* ---- versions -------------------------------------------------------------------------------- */

/* Finds the versions to compare among those of the service, which are in order of their beginning.
 * Returns false if there are not two. */
static bool choose_versions(const struct query_versions *all, const struct changes_question *q,
                            struct changes *ret)
{
    struct sv base = q->version[SIDE_BASE];
    struct sv now = q->version[SIDE_NEW];
    for (size_t i = all->n; now.n == 0 && i > 0; i--) {
        now = sv_eq(all->at[i - 1].version, base) ? now : all->at[i - 1].version;
    }
    for (size_t i = all->n; base.n == 0 && i > 0; i--) {
        base = sv_eq(all->at[i - 1].version, now) ? base : all->at[i - 1].version;
    }
    /* The base of a version that is given is the one that began before it. */
    for (size_t i = 1; q->version[SIDE_BASE].n == 0 && i < all->n; i++) {
        base = sv_eq(all->at[i].version, now) ? all->at[i - 1].version : base;
    }
    ret->side[SIDE_BASE].version = base;
    ret->side[SIDE_NEW].version = now;
    return base.n > 0 && now.n > 0;
}

/* Removes the version "" of profiles without one. */
static void drop_unversioned(struct query_versions *all)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        if (all->at[i].version.n > 0) {
            all->at[n++] = all->at[i];
        }
    }
    all->n = n;
}

static bool find_versions(const struct query *q, const struct changes_question *question,
                          struct changes *ret, struct err *err)
{
    struct query_versions all = {.n = 0};
    struct selector *selector = selector_new(err);
    const struct query_range range = {question->from_ms, question->until_ms, selector};
    bool ok = selector != NULL &&
              selector_add(selector, SV(LABEL_SERVICE_NAME), MATCH_EQUAL, question->service, err) &&
              query_versions(q, &range, &all, err);
    selector_free(selector);
    drop_unversioned(&all);
    if (ok && !choose_versions(&all, question, ret)) {
        ret->state = all.n == 0 ? CHANGES_NO_VERSION : CHANGES_ONE_VERSION;
    }
    for (int side = 0; side < SIDES; side++) {
        ret->side[side].from_ms = question->from_ms;
        ret->side[side].until_ms = question->until_ms;
    }
    return ok;
}

/* ---- the comparison -------------------------------------------------------------------------- */

bool changes_find(const struct query *q, const struct changes_question *question,
                  struct changes *ret, struct err *err)
{
    struct observations o = {.n_functions = 0};
    *ret = (struct changes){.state = CHANGES_COMPARED};
    if (question->ranges) {
        ret->side[SIDE_BASE].from_ms = question->base_from_ms;
        ret->side[SIDE_BASE].until_ms = question->base_until_ms;
        ret->side[SIDE_NEW].from_ms = question->from_ms;
        ret->side[SIDE_NEW].until_ms = question->until_ms;
    } else if (!find_versions(q, question, ret, err)) {
        return false;
    }
    if (ret->state != CHANGES_COMPARED) {
        return true;
    }
    if (!observe(q, question, ret, &o, err)) {
        return false;
    }
    if (ret->side[SIDE_BASE].profiles == 0 || ret->side[SIDE_NEW].profiles == 0) {
        ret->state = CHANGES_NO_PROFILES;
    }
    return verdicts_make(&o, q->arena, &ret->verdicts, err);
}

const char *changes_sentence(const struct changes *c, struct arena *arena)
{
    const struct verdicts *v = &c->verdicts;
    switch (c->state) {
    case CHANGES_NO_VERSION:
        return "No profile of this service has a label with its version.";
    case CHANGES_ONE_VERSION:
        return "There is only one version in this time: nothing to compare it with.";
    case CHANGES_NO_PROFILES:
        return "One side has no profiles of this type in this time.";
    case CHANGES_COMPARED:
    default:
        break;
    }
    if (!v->can_tell) {
        return arena_printf(arena,
                            "No verdict: a verdict needs at least %d instances on each side, and "
                            "there are %zu and %zu. The functions are ranked by difference.",
                            INSTANCES_MIN, c->side[SIDE_BASE].instances,
                            c->side[SIDE_NEW].instances);
    }
    if (v->n_tested == 0) {
        return "No verdict: too few samples, or no function takes enough.";
    }
    if (v->n_changed == 0) {
        return arena_printf(arena,
                            "No change: no function differs by more than chance explains (%zu "
                            "tests).",
                            v->n_tested);
    }
    return arena_printf(arena,
                        "%zu function%s changed by more than chance explains; at the same "
                        "load, the new side costs %+.1f %%.",
                        v->n_changed, v->n_changed == 1 ? "" : "s", 100 * (v->ratio - 1));
}

/* ---- rollouts -------------------------------------------------------------------------------- */

static int compare_rollouts(const void *a, const void *b)
{
    const struct changes_rollout *x = a;
    const struct changes_rollout *y = b;
    if (x->time_ms != y->time_ms) {
        return x->time_ms > y->time_ms ? -1 : 1;
    }
    return sv_cmp(x->service, y->service);
}

bool changes_rollouts(const struct query *q, int64_t from_ms, int64_t until_ms,
                      struct changes_rollouts *ret, struct err *err)
{
    struct query_versions all = {.n = 0};
    const struct query_range range = {from_ms, until_ms, NULL};
    *ret = (struct changes_rollouts){.n = 0};
    if (!query_versions(q, &range, &all, err)) {
        return false;
    }
    drop_unversioned(&all);
    ret->at = arena_array(q->arena, all.n + 1, sizeof(ret->at[0]));
    if (ret->at == NULL) {
        return query_no_room(err);
    }
    for (size_t i = 1; i < all.n; i++) {
        const struct query_version *v = &all.at[i];
        bool last = i + 1 == all.n || !sv_eq(v[1].service, v->service);
        if (last && sv_eq(v[-1].service, v->service)) {
            ret->at[ret->n++] =
                (struct changes_rollout){v->service, {v[-1].version, v->version}, v->first_ms};
        }
    }
    qsort(ret->at, ret->n, sizeof(ret->at[0]), compare_rollouts);
    return true;
}
