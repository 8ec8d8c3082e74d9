#include "write/queue/lanes.h"

#include <stdio.h>
#include <stdlib.h>

bool lanes_init(struct lanes *l)
{
    *l = (struct lanes){.by_tenant = map_new()};
    TAILQ_INIT(&l->all);
    TAILQ_INIT(&l->turn);
    backoff_init(&l->unread.backoff);
    backoff_init(&l->shared.backoff);
    return l->by_tenant != NULL;
}

void lanes_done(struct lanes *l)
{
    map_free(l->by_tenant, free);
}

/* ---- tenants --------------------------------------------------------------------------------- */

/* Makes room for one more tenant by forgetting a tenant with no profiles, preferably one that does
 * not back off. */
static bool forget_one(struct lanes *l)
{
    struct lane *idle = NULL;
    for (struct lane *at = TAILQ_FIRST(&l->all); at != NULL; at = TAILQ_NEXT(at, link)) {
        bool better = idle == NULL || (idle->backoff.failures > 0 && at->backoff.failures == 0);
        if (at->items == 0 && better) {
            idle = at;
        }
    }
    if (idle == NULL) {
        return false;
    }
    TAILQ_REMOVE(&l->all, idle, link);
    free(map_remove(l->by_tenant, sv_from(idle->tenant)));
    return true;
}

static struct lane *make(struct lanes *l, struct sv tenant)
{
    if (map_count(l->by_tenant) >= LANES_MAX && !forget_one(l)) {
        return NULL;
    }
    struct lane *lane = calloc(1, sizeof(*lane));
    if (lane == NULL) {
        return NULL;
    }
    backoff_init(&lane->backoff);
    (void)snprintf(lane->tenant, sizeof(lane->tenant), "%.*s", SV_ARG(tenant));
    if (!map_put(l->by_tenant, tenant, lane, NULL)) {
        free(lane);
        return NULL;
    }
    TAILQ_INSERT_TAIL(&l->all, lane, link);
    return lane;
}

struct lane *lanes_of(struct lanes *l, struct sv tenant)
{
    /* Only the tenant of the endpoint's configuration may be longer. */
    if (tenant.n > SERIES_TENANT_MAX) {
        tenant.n = SERIES_TENANT_MAX;
    }
    struct lane *lane = map_get(l->by_tenant, tenant);
    if (lane == NULL) {
        lane = make(l, tenant);
    }
    return lane != NULL ? lane : &l->shared;
}

/* ---- turns ----------------------------------------------------------------------------------- */

void lanes_add(struct lanes *l, struct lane *lane, struct heap *h, struct heap_node *n)
{
    heap_add(h, n);
    if (lane->ready++ > 0) {
        return;
    }
    if (lane == &l->unread) {
        TAILQ_INSERT_HEAD(&l->turn, lane, turn);
    } else {
        TAILQ_INSERT_TAIL(&l->turn, lane, turn);
    }
}

void lanes_remove(struct lanes *l, struct lane *lane, struct heap *h, struct heap_node *n)
{
    heap_remove(h, n);
    if (--lane->ready == 0) {
        TAILQ_REMOVE(&l->turn, lane, turn);
    }
}

void lanes_pass(struct lanes *l, struct lane *lane)
{
    if (lane->ready > 0 && lane != &l->unread) {
        TAILQ_REMOVE(&l->turn, lane, turn);
        TAILQ_INSERT_TAIL(&l->turn, lane, turn);
    }
}

struct lanes_count lanes_count(const struct lanes *l)
{
    struct lanes_count n = {0};
    for (const struct lane *at = TAILQ_FIRST(&l->all); at != NULL; at = TAILQ_NEXT(at, link)) {
        n.tenants++;
        n.failing += at->backoff.failures > 0;
        n.probing += at->backoff.probing;
    }
    return n;
}
