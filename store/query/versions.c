#include "store/query/versions.h"

#include <stdlib.h>

#include "base/clock.h"
#include "store/query/query_private.h"

/* Number of series between two checks of the deadline. */
#define SERIES_A_LOOK 1024

struct finding {
    const struct query *q;
    struct budget budget;
    struct table services;
    struct table versions;
    struct table pairs; /* keys are struct pair */
    int64_t *first_ms;  /* of each pair */
    size_t cap;
    size_t visited;
    bool is_cut;
    struct err err;
};

struct pair {
    uint32_t service;
    uint32_t version;
};

struct sv query_version_label(const struct label *labels, size_t n)
{
    static const char *const names[] = {"version", "service_version", "service_git_ref",
                                        "app_kubernetes_io_version", "pod_template_hash"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (label_value(labels, n, sv_from(names[i])).n > 0) {
            return sv_from(names[i]);
        }
    }
    return SV("");
}

struct sv query_version_in(const struct label *labels, size_t n)
{
    struct sv name = query_version_label(labels, n);
    return name.n > 0 ? label_value(labels, n, name) : SV("");
}

static bool versions_on_start(void *arg, const struct store_series *s, int64_t time_ns)
{
    struct finding *f = arg;
    struct sv version = query_version_in(s->labels, s->n_labels);
    struct sv service = label_value(s->labels, s->n_labels, SV(LABEL_SERVICE_NAME));
    struct pair pair;
    uint32_t i;
    if (f->visited++ % SERIES_A_LOOK == 0 && !query_alive(f->q, &f->err)) {
        return false;
    }
    size_t before = f->pairs.n;
    int64_t *first =
        budget_grow(&f->budget, f->first_ms, &f->cap, before + 1, sizeof(*first), &f->err);
    if (first == NULL) {
        return false;
    }
    f->first_ms = first;
    if (!merge_table_add(&f->services, &f->budget, service.p, service.n, service.n, &pair.service,
                         &f->err) ||
        !merge_table_add(&f->versions, &f->budget, version.p, version.n, version.n, &pair.version,
                         &f->err) ||
        !merge_table_add(&f->pairs, &f->budget, &pair, sizeof(pair), sizeof(pair), &i, &f->err)) {
        return false;
    }
    if (f->pairs.n > QUERY_VERSIONS_MAX) {
        merge_table_truncate(&f->pairs, before);
        f->is_cut = true;
        return true;
    }
    int64_t time_ms = time_ns / NS_PER_MS;
    first[i] = f->pairs.n > before || time_ms < first[i] ? time_ms : first[i];
    return true;
}

static int compare_versions(const void *a, const void *b)
{
    const struct query_version *x = a;
    const struct query_version *y = b;
    int order = sv_cmp(x->service, y->service);
    if (order != 0) {
        return order;
    }
    if (x->first_ms != y->first_ms) {
        return x->first_ms < y->first_ms ? -1 : 1;
    }
    return sv_cmp(x->version, y->version);
}

static bool copy_text(const struct table *t, uint32_t i, struct arena *arena, struct sv *ret)
{
    size_t n;
    const char *p = merge_table_get(t, i, &n);
    *ret = (struct sv){arena_strndup(arena, p, n), n};
    return ret->p != NULL;
}

static bool write_all(const struct finding *f, struct query_versions *ret, struct err *err)
{
    struct arena *arena = f->q->arena;
    *ret = (struct query_versions){.n = f->pairs.n, .is_cut = f->is_cut};
    ret->at = arena_array(arena, ret->n + 1, sizeof(*ret->at));
    if (ret->at == NULL) {
        return query_no_room(err);
    }
    for (uint32_t i = 0; i < ret->n; i++) {
        size_t size;
        const struct pair *pair = merge_table_get(&f->pairs, i, &size);
        ret->at[i].first_ms = f->first_ms[i];
        if (!copy_text(&f->services, pair->service, arena, &ret->at[i].service) ||
            !copy_text(&f->versions, pair->version, arena, &ret->at[i].version)) {
            return query_no_room(err);
        }
    }
    qsort(ret->at, ret->n, sizeof(*ret->at), compare_versions);
    return true;
}

bool query_versions(const struct query *q, const struct query_range *r, struct query_versions *ret,
                    struct err *err)
{
    struct finding f = {.q = q, .budget.max = q->bytes_max / 2};
    struct query_scope scope;
    if (!query_scope_init(q, &scope, r, NULL, err)) {
        return false;
    }
    merge_table_init(&f.services, query_seed());
    merge_table_init(&f.versions, query_seed());
    merge_table_init(&f.pairs, query_seed());
    bool ok = store_each_start(q->store, &scope.range, versions_on_start, &f, err);
    query_scope_done(&scope);
    ok = query_ended(ok, &f.err, err) && write_all(&f, ret, err);
    merge_table_done(&f.services);
    merge_table_done(&f.versions);
    merge_table_done(&f.pairs);
    free(f.first_ms);
    return ok;
}
