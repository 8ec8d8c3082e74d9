#include <stdlib.h>
#include <string.h>

#include "discovery/kubernetes/join_private.h"

/* ---- reporting ------------------------------------------------------------------------------- */

static void set_reported(struct join *j, struct primary *p, bool reported)
{
    j->n_reported -= p->reported ? 1 : 0;
    j->n_reported += reported ? 1 : 0;
    p->reported = reported;
}

/* Joins a primary, and reports it if its targets have changed. */
static enum store_result report(struct join *j, struct primary *p)
{
    if (!j->ready[p->list]) {
        return STORE_CHANGED;
    }
    if (join_describe(j, p) != OBJECT_OK) {
        object_targets_clear(&j->scratch);
        return STORE_NO_MEMORY;
    }
    if (j->scratch.too_many_labels > 0 && j->options.on_left_out != NULL) {
        j->options.on_left_out(j->options.arg, p->key, j->left_out, j->scratch.too_many_labels);
    }
    size_t n = j->scratch.n;
    uint64_t hash = object_hash_labels(j->scratch.at, n, n);
    bool changed = n == 0 ? p->reported : !p->reported || p->hash != hash;
    set_reported(j, p, n > 0);
    p->hash = hash;
    if (changed) {
        j->options.on_change(j->options.arg, p->key, n == 0 ? NULL : j->scratch.at, n,
                             n == 0 ? NULL : p->ip, false);
    }
    object_targets_clear(&j->scratch);
    return changed ? STORE_CHANGED : STORE_UNCHANGED;
}

/* ---- primaries ------------------------------------------------------------------------------- */

static void drop_targets(struct primary *p)
{
    for (size_t i = 0; i < p->n; i++) {
        labels_unref(p->targets[i]);
    }
    free(p->targets);
    free(p->ip);
    labels_unref(p->shared);
    p->targets = NULL;
    p->ip = NULL;
    p->shared = NULL;
    p->n = 0;
}

static void primary_free(void *value)
{
    struct primary *p = value;
    struct link *link;
    drop_targets(p);
    while ((link = STAILQ_FIRST(&p->links)) != NULL) {
        STAILQ_REMOVE_HEAD(&p->links, of_primary);
        free(link);
    }
    free(p);
}

/* Reports the end of a primary, which must have been removed from the table, and frees it. */
static void forget(struct join *j, struct primary *p)
{
    join_unlink(j, p);
    if (p->reported) {
        set_reported(j, p, false);
        j->options.on_change(j->options.arg, p->key, NULL, 0, NULL, false);
    }
    primary_free(p);
}

static bool set_targets(struct primary *p, const struct object_targets *t)
{
    struct labels **targets = calloc(t->n + 1, sizeof(struct labels *));
    char *ip = t->ip == NULL ? NULL : strdup(t->ip);
    if (targets == NULL || (t->ip != NULL && ip == NULL)) {
        free(targets);
        free(ip);
        return false;
    }
    for (size_t i = 0; i < t->n; i++) {
        targets[i] = labels_ref(t->at[i]);
    }
    drop_targets(p);
    p->targets = targets;
    p->ip = ip;
    p->n = t->n;
    p->shared = labels_ref(t->shared);
    return true;
}

static struct primary *add_primary(struct join *j, struct sv key)
{
    struct primary *p = calloc(1, sizeof(*p) + key.n + 1);
    if (p == NULL) {
        return NULL;
    }
    STAILQ_INIT(&p->links);
    memcpy(p->key, key.p, key.n);
    if (!map_put(j->primaries, key, p, NULL)) {
        free(p);
        return NULL;
    }
    return p;
}

enum store_result join_put(struct join *j, unsigned list, const struct object_id *id,
                           const struct object_targets *t)
{
    char text[OBJECT_KEY_MAX];
    struct sv key = object_key(id, text);
    if (t->n == 0 || t->shared == NULL) {
        struct primary *gone = map_remove(j->primaries, key);
        if (gone == NULL) {
            return STORE_UNCHANGED;
        }
        forget(j, gone);
        return STORE_CHANGED;
    }
    struct primary *p = map_get(j->primaries, key);
    if (p == NULL && map_count(j->primaries) >= j->options.max) {
        return STORE_FULL;
    }
    if (p == NULL && (p = add_primary(j, key)) == NULL) {
        return STORE_NO_MEMORY;
    }
    p->list = list;
    p->mark = j->marks[list];
    p->uid = id->uid;
    uint64_t base = hash_bytes(t->ip, sv_from(t->ip).n, t->n);
    base = object_hash_labels(t->at, t->n, object_hash_labels(&t->shared, 1, base));
    p->content = t->content;
    if (p->targets != NULL && p->base == base) {
        return STORE_UNCHANGED;
    }
    join_unlink(j, p);
    p->base = 0;
    if (!set_targets(p, t) || !join_link(j, p)) {
        return STORE_NO_MEMORY;
    }
    enum store_result result = report(j, p);
    p->base = result == STORE_NO_MEMORY ? 0 : base;
    return result;
}

bool join_has(struct join *j, unsigned list, const struct object_id *id, uint64_t content)
{
    char text[OBJECT_KEY_MAX];
    struct primary *p = map_get(j->primaries, object_key(id, text));
    if (p == NULL || p->base == 0 || p->content != content || content == 0) {
        return false;
    }
    p->list = list;
    p->mark = j->marks[list];
    return true;
}

enum store_result join_remove(struct join *j, const struct object_id *id)
{
    char text[OBJECT_KEY_MAX];
    struct sv key = object_key(id, text);
    struct primary *p = map_get(j->primaries, key);
    if (p == NULL || (id->uid != 0 && p->uid != id->uid)) {
        return STORE_UNCHANGED;
    }
    map_remove(j->primaries, key);
    forget(j, p);
    return STORE_CHANGED;
}

/* ---- facts ----------------------------------------------------------------------------------- */

/* Reports the primaries that need a fact. */
static bool report_linked(struct join *j, const struct fact *f, bool *ret_changed)
{
    bool ok = true;
    for (const struct link *l = TAILQ_FIRST(&f->links); l != NULL; l = TAILQ_NEXT(l, of_fact)) {
        enum store_result result = report(j, l->primary);
        ok = ok && result != STORE_NO_MEMORY;
        *ret_changed = *ret_changed || result == STORE_CHANGED;
    }
    return ok;
}

static bool set_ports(struct fact *f, const struct object_targets *t)
{
    size_t n = t == NULL ? 0 : t->n;
    f->ports = calloc(n + 1, sizeof(*f->ports));
    for (size_t i = 0; f->ports != NULL && i < n; i++) {
        uint64_t number = 0;
        if (parse_u64(labels_get(t->at[i], SV(META "pod_container_port_number")), 65535, &number)) {
            f->ports[f->n_ports++] =
                (struct fact_port){.labels = labels_ref(t->at[i]), .number = (unsigned)number};
        }
    }
    return f->ports != NULL;
}

static uint64_t hash_fact(const struct join_fact *fact)
{
    if (fact->too_many_labels) {
        return 1;
    }
    uint64_t hash = object_hash_labels(&fact->labels, 1, (uint64_t)(unsigned char)fact->family + 1);
    return fact->pods == NULL ? hash : object_hash_labels(fact->pods->at, fact->pods->n, hash);
}

enum store_result join_fact_put(struct join *j, unsigned list, const struct object_id *id,
                                const struct join_fact *fact)
{
    char text[FACT_KEY_MAX];
    struct sv key = join_fact_key(fact->kind, id->namespace, id->name, text);
    struct fact *f = map_get(j->facts, key);
    if ((f == NULL || !f->present) && j->n_present[fact->kind] >= j->options.max) {
        return STORE_FULL;
    }
    if ((f = join_fact_get(j, fact->kind, key)) == NULL) {
        return STORE_NO_MEMORY;
    }
    uint64_t hash = hash_fact(fact);
    f->list = list;
    f->mark = j->marks[list];
    f->uid = id->uid;
    if (f->present && f->hash == hash) {
        f->content = fact->content;
        return STORE_UNCHANGED;
    }
    join_fact_clear(f);
    j->n_present[fact->kind] += f->present ? 0 : 1;
    f->present = true;
    f->hash = 0; /* 0 until the change is completely processed */
    f->family = fact->family;
    f->too_many_labels = fact->too_many_labels;
    f->labels = fact->labels == NULL ? NULL : labels_ref(fact->labels);
    bool changed = false;
    if (!set_ports(f, fact->pods) || !report_linked(j, f, &changed)) {
        return STORE_NO_MEMORY;
    }
    f->hash = hash;
    f->content = fact->content;
    return changed ? STORE_CHANGED : STORE_UNCHANGED;
}

bool join_fact_has(struct join *j, unsigned list, enum join_kind kind, const struct object_id *id,
                   uint64_t content)
{
    struct fact *f = join_find(j, kind, id->namespace, id->name);
    if (f == NULL || f->content != content || content == 0) {
        return false;
    }
    f->list = list;
    f->mark = j->marks[list];
    return true;
}

bool join_fact_is_refused(const struct join *j, enum join_kind kind, const struct object_id *id)
{
    const struct fact *f = join_find(j, kind, id->namespace, id->name);
    return f != NULL && f->too_many_labels;
}

/* Clears a fact whose object is gone, and reports the primaries that need it. */
static enum store_result fact_gone(struct join *j, struct fact *f)
{
    bool changed = false;
    join_fact_clear(f);
    j->n_present[f->kind]--;
    f->present = false;
    bool ok = report_linked(j, f, &changed);
    return !ok ? STORE_NO_MEMORY : changed ? STORE_CHANGED : STORE_UNCHANGED;
}

enum store_result join_fact_remove(struct join *j, enum join_kind kind, const struct object_id *id)
{
    char text[FACT_KEY_MAX];
    struct sv key = join_fact_key(kind, id->namespace, id->name, text);
    struct fact *f = map_get(j->facts, key);
    if (f == NULL || !f->present || (id->uid != 0 && f->uid != id->uid)) {
        return STORE_UNCHANGED;
    }
    enum store_result result = fact_gone(j, f);
    join_fact_release(j, f);
    return result;
}

/* ---- lists ----------------------------------------------------------------------------------- */

void join_list_begin(struct join *j, unsigned list)
{
    j->marks[list]++;
}

void join_list_end(struct join *j, unsigned list)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    uint32_t now = j->marks[list];
    while (map_next(j->primaries, &cursor, &key, &value)) {
        struct primary *p = value;
        if (p->list == list && p->mark != now) {
            map_remove_at(j->primaries, cursor);
            forget(j, p);
        }
    }
    cursor = 0;
    while (map_next(j->facts, &cursor, &key, &value)) {
        struct fact *f = value;
        if (!f->present || f->list != list || f->mark == now) {
            continue;
        }
        (void)fact_gone(j, f);
        if (TAILQ_EMPTY(&f->links)) {
            map_remove_at(j->facts, cursor);
            join_fact_free(f);
        }
    }
}

bool join_ready(struct join *j, unsigned list)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    bool ok = true;
    j->ready[list] = true;
    while (map_next(j->primaries, &cursor, &key, &value)) {
        struct primary *p = value;
        ok = (p->list != list || report(j, p) != STORE_NO_MEMORY) && ok;
    }
    return ok;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct join *join_new(const struct join_options *options)
{
    struct join *j = calloc(1, sizeof(*j));
    if (j == NULL) {
        return NULL;
    }
    j->options = *options;
    j->scratch.max = JOIN_TARGETS_MAX;
    j->primaries = map_new();
    j->facts = map_new();
    j->builder = labels_builder_new(options->intern);
    j->marks = calloc(options->n_lists, sizeof(*j->marks));
    j->ready = calloc(options->n_lists, sizeof(*j->ready));
    if (j->marks == NULL || j->ready == NULL || j->primaries == NULL || j->facts == NULL ||
        j->builder == NULL) {
        return join_free(j);
    }
    return j;
}

struct join *join_free(struct join *j)
{
    if (j == NULL) {
        return NULL;
    }
    map_free(j->primaries, primary_free);
    map_free(j->facts, join_fact_free);
    labels_builder_free(j->builder);
    object_targets_done(&j->scratch);
    free(j->marks);
    free(j->ready);
    free(j);
    return NULL;
}

size_t join_count(const struct join *j)
{
    return j->n_reported;
}

void join_each(const struct join *j, void (*fn)(void *arg, struct sv key), void *arg)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    while (map_next(j->primaries, &cursor, &key, &value)) {
        const struct primary *p = value;
        if (p->reported) {
            fn(arg, key);
        }
    }
}
