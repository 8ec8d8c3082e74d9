#include "config/change.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "config/dump.h"
#include "config/parts.h"

/* ---- slots ----------------------------------------------------------------------------------- */

/* Casting const away is safe here: the configuration is not shared yet. */
static struct config_job *own_jobs(const struct config *c)
{
    return (struct config_job *)(uintptr_t)c->jobs;
}

static struct config_endpoint *own_endpoints(const struct config *c)
{
    return (struct config_endpoint *)(uintptr_t)c->endpoints;
}

const struct config_job *config_job_at(const struct config *c, size_t slot)
{
    if (slot < c->n_jobs && c->jobs[slot].slot == slot) {
        return &c->jobs[slot];
    }
    for (size_t i = 0; i < c->n_jobs; i++) {
        if (c->jobs[i].slot == slot) {
            return &c->jobs[i];
        }
    }
    return NULL;
}

const struct config_endpoint *config_endpoint_at(const struct config *c, size_t slot)
{
    for (size_t i = 0; i < c->n_endpoints; i++) {
        if (c->endpoints[i].slot == slot) {
            return &c->endpoints[i];
        }
    }
    return NULL;
}

size_t config_job_slots(const struct config *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_jobs; i++) {
        n = c->jobs[i].slot < n ? n : (size_t)c->jobs[i].slot + 1;
    }
    return n;
}

uint64_t config_endpoint_bits(const struct config *c)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < c->n_endpoints; i++) {
        bits |= UINT64_C(1) << c->endpoints[i].slot;
    }
    return bits;
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Returns true if both endpoints keep their queue and their files in the same place. */
static bool is_same_place(const struct config_endpoint *a, const struct config_endpoint *b)
{
    bool local = config_endpoint_is_directory(a) || config_endpoint_is_directory(b);
    bool same = !local || (a->protocol == b->protocol && is_same_text(a->url, b->url));
    return same && is_same_text(a->spool_directory, b->spool_directory);
}

static const struct config_endpoint *find_former(const struct config *now,
                                                 const struct config_endpoint *e)
{
    for (size_t i = 0; i < now->n_endpoints; i++) {
        if (strcmp(now->endpoints[i].name, e->name) == 0) {
            return is_same_place(&now->endpoints[i], e) ? &now->endpoints[i] : NULL;
        }
    }
    return NULL;
}

/* Translates a set of bits by index into one by slot. */
static uint64_t translate(const struct config *c, uint64_t indices)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < c->n_endpoints; i++) {
        if ((indices >> i & 1) != 0) {
            bits |= UINT64_C(1) << c->endpoints[i].slot;
        }
    }
    return bits;
}

static void translate_job(const struct config *c, struct config_job *job)
{
    struct config_way *ways = (struct config_way *)(uintptr_t)job->ways;
    job->forward_to = translate(c, job->forward_to);
    job->recordings_to = translate(c, job->recordings_to);
    for (size_t i = 0; i < job->n_ways; i++) {
        ways[i].endpoint = translate(c, ways[i].endpoint);
    }
}

static bool assign_endpoints(struct config *next, const struct config *now, uint64_t used,
                             struct err *err)
{
    for (size_t i = 0; i < next->n_endpoints; i++) {
        struct config_endpoint *e = &own_endpoints(next)[i];
        const struct config_endpoint *former = find_former(now, e);
        if (former != NULL) {
            e->slot = former->slot;
            continue;
        }
        if (used == UINT64_MAX) {
            return err_set(
                err, ERR_LIMIT,
                "endpoint \"%s\": expected at most %d endpoints, those of the former configuration "
                "included; wait until the former ones have sent their queues, or restart profpull",
                e->name, CONFIG_ENDPOINTS_MAX);
        }
        e->slot = (unsigned)__builtin_ctzll(~used);
        used |= UINT64_C(1) << e->slot;
    }
    return true;
}

/* Fills by_name (name -> struct config_job) and taken[] (the slots in use) from the jobs of
 * `now`. */
static bool note_jobs(const struct config *now, struct map *by_name, bool *taken)
{
    for (size_t i = 0; i < now->n_jobs; i++) {
        struct config_job *job = &own_jobs(now)[i];
        taken[job->slot] = true;
        if (!map_put(by_name, sv_from(job->name), job, NULL)) {
            return false;
        }
    }
    return true;
}

static bool assign_jobs(struct config *next, const struct config *now, struct err *err)
{
    struct map *by_name = map_new();
    bool *taken = calloc(config_job_slots(now) + next->n_jobs + 1, sizeof(*taken));
    bool ok = by_name != NULL && taken != NULL && note_jobs(now, by_name, taken);
    unsigned lowest = 0;
    for (size_t i = 0; ok && i < next->n_jobs; i++) {
        struct config_job *job = &own_jobs(next)[i];
        const struct config_job *former = map_get(by_name, sv_from(job->name));
        while (former == NULL && taken[lowest]) {
            lowest++;
        }
        job->slot = former != NULL ? former->slot : lowest;
        taken[job->slot] = true;
    }
    map_free(by_name, NULL);
    free(taken);
    return ok || err_memory(err);
}

bool config_assign_slots(struct config *next, const struct config *now, uint64_t busy,
                         struct err *err)
{
    if (!assign_endpoints(next, now, busy | config_endpoint_bits(now), err) ||
        !assign_jobs(next, now, err)) {
        return false;
    }
    for (size_t i = 0; i < next->n_jobs; i++) {
        translate_job(next, &own_jobs(next)[i]);
    }
    translate_job(next, &next->receive.job);
    return true;
}

/* ---- what has changed ------------------------------------------------------------------------ */

static bool same_record(const struct config *a, const void *x, const struct config *b,
                        const void *y, const struct schema *schema)
{
    uint64_t hash;
    uint64_t other;
    return dump_hash(a, schema, x, schema_write, &hash) &&
           dump_hash(b, schema, y, schema_write, &other) && hash == other;
}

/* A dump does not show whether a number is the default or was given. */
static bool same_names_given(const struct config *a, const struct config *b)
{
    bool same = a->n_endpoints == b->n_endpoints;
    for (size_t i = 0; same && i < a->n_endpoints; i++) {
        same = a->endpoints[i].sample_names_given == b->endpoints[i].sample_names_given;
    }
    return same;
}

bool config_same(const struct config *a, const struct config *b)
{
    struct config one = *a;
    struct config other = *b;
    one.n_jobs = config_scrape_jobs(a);
    other.n_jobs = config_scrape_jobs(b);
    return same_names_given(a, b) && same_record(a, &one, b, &other, &schema_root);
}

bool config_same_job(const struct config *a, const struct config_job *x, const struct config *b,
                     const struct config_job *y)
{
    if (x->enriches || y->enriches) {
        /* The labels to copy decide which labels of targets are built, so they must be the same as
         * well. */
        return x->enriches && y->enriches &&
               same_record(a, &a->receive.enrich, b, &b->receive.enrich, &schema_enrich);
    }
    return a->global.mask_all_params == b->global.mask_all_params &&
           same_record(a, &x->symbols, b, &y->symbols, &schema_symbols_sources) &&
           same_record(a, x, b, y, &schema_job);
}

bool config_same_source(const struct config *a, const struct config_source *x,
                        const struct config *b, const struct config_source *y)
{
    const struct config_job one = {.sources = x, .n_sources = 1};
    const struct config_job other = {.sources = y, .n_sources = 1};
    return x->kind == y->kind && same_record(a, &one, b, &other, &schema_sources);
}

bool config_same_endpoint(const struct config *a, const struct config_endpoint *x,
                          const struct config *b, const struct config_endpoint *y)
{
    static const struct field rows[] = {
        PART(NULL, &kind_mapping, .arg = &schema_endpoint),
        ROW(config_endpoint, "all_labels", external_labels, &kind_pairs, .arg = &pairs_external),
    };
    static const struct schema complete = SCHEMA(rows, sizeof(struct config_endpoint));
    return x->sample_names_given == y->sample_names_given && same_record(a, x, b, y, &complete);
}

static const char *const part_names[CONFIG_PARTS] = {
    [CONFIG_PART_GLOBAL] = "global",   [CONFIG_PART_SERVER] = "server",
    [CONFIG_PART_QUERY] = "query",     [CONFIG_PART_RECEIVE] = "receive",
    [CONFIG_PART_LOG] = "log",         [CONFIG_PART_SHARDING] = "sharding",
    [CONFIG_PART_SYMBOLS] = "symbols",
};

const char *config_part_name(enum config_part part)
{
    return part_names[part];
}

bool config_same_part(const struct config *a, const struct config *b, enum config_part part)
{
    for (size_t i = 0; i < schema_root.n; i++) {
        const struct field *f = &schema_root.fields[i];
        if (strcmp(f->key, part_names[part]) == 0) {
            const struct schema one = {.fields = f, .n = 1};
            return same_record(a, a, b, b, &one);
        }
    }
    return false;
}

uint64_t config_hash(const struct config *c)
{
    struct buf text;
    buf_init(&text, CONFIG_FILE_MAX * (size_t)16);
    uint64_t hash = config_dump(c, &text) ? hash_bytes(text.data, text.len, 0) : 0;
    buf_done(&text);
    return hash;
}
