#include "store/query/pieces.h"

#include <stdlib.h>
#include <string.h>

#include "store/query/tree_private.h"

struct waiting_key {
    uint32_t group;
    char id[OBSERVATION_ID_MAX];
};

void pieces_init(struct pieces *p, const struct query_steps *o, struct budget *budget)
{
    const struct projection groups = {o->group_by, o->n_group_by, false};
    const struct projection others = {o->group_by, o->n_group_by, true};
    *p = (struct pieces){.budget = budget, .wants_labels = o->exemplars != QUERY_NO_EXEMPLARS};
    projections_init(&p->groups, &groups, budget);
    projections_init(&p->others, &others, budget);
    merge_table_init(&p->waiting, query_seed());
}

void pieces_done(struct pieces *p)
{
    projections_done(&p->groups);
    projections_done(&p->others);
    merge_table_done(&p->waiting);
    free(p->at);
    p->at = NULL;
}

/* Finds the group of a series, and the projection of its other labels. */
static bool project(struct pieces *p, const struct store_series *series, struct err *err)
{
    if (p->has_last && p->last_series == series->id) {
        return true;
    }
    p->has_last =
        projections_add(&p->groups, series->labels, series->n_labels, &p->last_group, err) &&
        (!p->wants_labels ||
         projections_add(&p->others, series->labels, series->n_labels, &p->last_labels, err));
    p->last_series = series->id;
    return p->has_last;
}

/* Adds a piece to the waiting pieces of the same id and group. */
static bool wait_for_others(struct pieces *p, const struct observation *o, struct err *err)
{
    struct waiting_key key = {.group = o->group};
    size_t before = p->waiting.n;
    uint32_t i;
    memcpy(key.id, o->id, strlen(o->id));
    struct observation *at = budget_grow(p->budget, p->at, &p->cap, before + 1, sizeof(*at), err);
    if (at == NULL) {
        return false;
    }
    p->at = at;
    if (!merge_table_add(&p->waiting, p->budget, &key, sizeof(key), sizeof(key), &i, err)) {
        return false;
    }
    if (i == before) {
        at[i] = *o;
        return true;
    }
    at[i].value = tree_plus(at[i].value, o->value);
    return !p->wants_labels ||
           projections_common(&p->others, at[i].labels, o->labels, &at[i].labels, err);
}

bool pieces_flush(struct pieces *p, const struct observer *observer, struct err *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < p->waiting.n; i++) {
        ok = observer->observe(observer->arg, &p->at[i], err);
    }
    merge_table_truncate(&p->waiting, 0);
    return ok;
}

bool pieces_add(struct pieces *p, const struct piece *piece, const struct observer *observer,
                struct err *err)
{
    if (piece->batch != p->batch && !pieces_flush(p, observer, err)) {
        return false;
    }
    p->batch = piece->batch;
    if (!project(p, piece->series, err)) {
        return false;
    }
    struct observation o = {.group = p->last_group,
                            .labels = p->last_labels,
                            .time_ns = piece->time_ns,
                            .value = piece->value};
    (void)strncpy(o.id, piece->id, OBSERVATION_ID_MAX);
    return piece->shared ? wait_for_others(p, &o, err) : observer->observe(observer->arg, &o, err);
}
