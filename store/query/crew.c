#include "store/query/crew.h"

#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "store/query/bodies.h"
#include "store/query/stacks.h"
#include "store/query/tree_private.h"

/* The most threads that help one query. */
#define HELPERS_MAX 15
/* So many bytes of profiles are read before helpers are taken: less does not pay for a thread. */
#define ALONE_BYTES ((size_t)4 * 1024 * 1024)
/* The most bytes of profiles that wait for a helper. */
#define WAITING_BYTES ((size_t)4 * 1024 * 1024)
/* A helper that waits is woken up when so many bytes wait for it: to wake it for each small profile
 * costs half as much as to read it. */
#define WAKE_BYTES (WAITING_BYTES / 16)
/* The least memory of a helper: for its tree, and the same for what it reads and what waits. */
#define PART_BYTES (2 * WAITING_BYTES)

/* A copy of a profile that waits for a helper. */
struct task {
    struct store_body body; /* its pointers lead into the same allocation */
    size_t bytes;
    struct task *next;
};

/* A thread, or the calling one, with what it adds to. */
struct hand {
    struct crew *crew;
    struct tree *tree;
    struct stacks *stacks;
    /* The members below are those of a helper. */
    pthread_t thread;
    pthread_cond_t wake;
    struct task *first; /* under the lock, as are the next four */
    struct task **end;
    size_t waiting; /* bytes of the tasks that wait or are being added */
    bool ended;     /* no further task comes */
    struct err err; /* of the first profile that could not be added */
};

struct crew {
    const struct query *q;
    const struct query_stacks *which;
    struct query_helpers *helpers;
    pthread_mutex_t lock;
    struct hand own; /* of the calling thread */
    struct hand *at;
    size_t n;
    size_t read; /* bytes of all profiles so far */
    /* The profiles of one set of labels that come after each other. */
    uint64_t run_set;
    struct hand *run_of; /* the hand that adds them; NULL: to be chosen */
    size_t run_bytes;
    bool joined; /* the helpers have ended */
};

/* ---- adding ---------------------------------------------------------------------------------- */

static bool hand_add(struct hand *h, const struct store_body *body, struct err *err)
{
    int64_t sum;
    for (size_t column = 0; query_next_column(body, &column); column++) {
        if (!stacks_add(h->stacks, body, column, &sum, err)) {
            return false;
        }
    }
    return true;
}

static void add_task(struct hand *h, const struct task *t)
{
    struct crew *c = h->crew;
    struct err err = ERR_INIT;
    if (hand_add(h, &t->body, &err)) {
        return;
    }
    if (err.kind == ERR_INPUT) {
        query_count_damaged(c->q);
        return;
    }
    pthread_mutex_lock(&c->lock);
    if (h->err.kind == ERR_NONE) {
        err_set(&h->err, err.kind, "profile %s: %s", t->body.id, err.msg);
    }
    pthread_mutex_unlock(&c->lock);
}

/* Takes the next task. NULL: the end. After an error, the tasks that wait are dropped. */
static struct task *next_task(struct hand *h, size_t done)
{
    struct crew *c = h->crew;
    pthread_mutex_lock(&c->lock);
    h->waiting -= done;
    while (h->first == NULL && !h->ended) {
        pthread_cond_wait(&h->wake, &c->lock);
    }
    struct task *t = h->first;
    if (t != NULL) {
        h->first = t->next;
        h->end = h->first == NULL ? &h->first : h->end;
    }
    pthread_mutex_unlock(&c->lock);
    return t;
}

static void *crew_helper(void *arg)
{
    struct hand *h = arg;
    size_t done = 0;
    for (struct task *t; (t = next_task(h, done)) != NULL; free(t)) {
        if (h->err.kind == ERR_NONE) { /* only this thread sets it */
            add_task(h, t);
        }
        done = t->bytes;
    }
    return NULL;
}

/* ---- the crew -------------------------------------------------------------------------------- */

static void hand_done(struct hand *h)
{
    h->stacks = stacks_free(h->stacks);
    h->tree = tree_free(h->tree);
}

static bool hand_init(struct hand *h, struct crew *c, size_t bytes_max, struct err *err)
{
    *h = (struct hand){.crew = c, .end = &h->first, .tree = tree_new(bytes_max, err)};
    h->stacks = h->tree == NULL ? NULL : stacks_new(h->tree, c->which, bytes_max, err);
    if (h->stacks == NULL) {
        hand_done(h);
        return false;
    }
    return true;
}

struct crew *crew_new(const struct query *q, const struct query_stacks *which,
                      struct query_helpers *helpers, struct err *err)
{
    struct crew *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        err_memory(err);
        return NULL;
    }
    *c = (struct crew){.q = q, .which = which, .helpers = helpers};
    pthread_mutex_init(&c->lock, NULL);
    return hand_init(&c->own, c, q->bytes_max / 2, err) ? c : crew_free(c);
}

/* Takes up to `most` of the idle helpers. Returns their number. */
static size_t take_helpers(struct query_helpers *helpers, unsigned most)
{
    unsigned max = atomic_load(&helpers->max);
    unsigned busy = atomic_load(&helpers->busy);
    unsigned n;
    do {
        n = busy < max ? max - busy : 0;
        n = n < most ? n : most;
    } while (n > 0 && !atomic_compare_exchange_weak(&helpers->busy, &busy, busy + n));
    return n;
}

static void give_back(struct query_helpers *helpers, size_t n)
{
    atomic_fetch_sub(&helpers->busy, (unsigned)n);
}

/* Starts a helper whose tree and work have so many bytes. A failure leaves the crew as it is. */
static bool start_helper(struct crew *c, size_t bytes_max)
{
    struct hand *h = &c->at[c->n];
    struct err ignored = ERR_INIT; /* the calling thread does the work alone then */
    if (!hand_init(h, c, bytes_max, &ignored)) {
        return false;
    }
    stacks_limit(h->stacks, bytes_max - WAITING_BYTES);
    pthread_cond_init(&h->wake, NULL);
    if (!thread_start(&h->thread, "query-helper", crew_helper, h, &ignored)) {
        pthread_cond_destroy(&h->wake);
        hand_done(h);
        return false;
    }
    c->n++;
    return true;
}

/* Starts as many helpers as are idle and as there is memory for. One half of it is for the calling
 * thread, the other half for the helpers. */
static void start_helpers(struct crew *c)
{
    struct query_helpers *helpers = c->helpers;
    size_t bytes = c->q->bytes_max / 4;
    size_t most = bytes / PART_BYTES;
    c->helpers = NULL;
    size_t n = take_helpers(helpers, most < HELPERS_MAX ? (unsigned)most : HELPERS_MAX);
    c->at = n == 0 ? NULL : calloc(n, sizeof(c->at[0]));
    while (c->at != NULL && c->n < n && start_helper(c, bytes / n)) {
    }
    give_back(helpers, n - c->n);
    if (c->n > 0) {
        c->helpers = helpers; /* gets them back */
        if (helpers->helped != NULL) {
            metric_inc(helpers->helped);
        }
        c->own.tree->budget.max = bytes;
        stacks_limit(c->own.stacks, bytes);
    }
}

/* Ends the helpers once they have added all tasks, and joins them. */
static void join_helpers(struct crew *c)
{
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < c->n && !c->joined; i++) {
        c->at[i].ended = true;
        pthread_cond_signal(&c->at[i].wake);
    }
    pthread_mutex_unlock(&c->lock);
    for (size_t i = 0; i < c->n && !c->joined; i++) {
        pthread_join(c->at[i].thread, NULL);
        pthread_cond_destroy(&c->at[i].wake);
    }
    c->joined = true;
}

/* Drops the tasks that wait. */
static void drop_tasks(struct crew *c)
{
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < c->n; i++) {
        struct hand *h = &c->at[i];
        while (h->first != NULL) {
            struct task *t = h->first;
            h->first = t->next;
            free(t);
        }
        h->end = &h->first;
    }
    pthread_mutex_unlock(&c->lock);
}

struct crew *crew_free(struct crew *c)
{
    if (c != NULL) {
        drop_tasks(c);
        join_helpers(c);
        for (size_t i = 0; i < c->n; i++) {
            hand_done(&c->at[i]);
        }
        if (c->n > 0) {
            give_back(c->helpers, c->n);
        }
        hand_done(&c->own);
        free(c->at);
        pthread_mutex_destroy(&c->lock);
        free(c);
    }
    return NULL;
}

bool crew_had_helpers(const struct crew *c)
{
    return c->n > 0;
}

/* ---- giving ---------------------------------------------------------------------------------- */

static char *put_text(char *to, struct sv text, struct sv *ret)
{
    memcpy(to, text.p, text.n);
    to[text.n] = '\0';
    *ret = (struct sv){to, text.n};
    return to + text.n + 1;
}

static size_t text_bytes(const struct store_body *body)
{
    size_t n = body->data.n + 1 + strlen(body->id) + 1;
    for (size_t i = 0; i < body->n_labels; i++) {
        n += body->labels[i].name.n + body->labels[i].value.n + 2;
    }
    return n;
}

/* The parts of a task, in this order; its texts follow. */
struct task_parts {
    struct label *labels;
    struct store_series *series;
    const struct store_series **list;
    char *texts;
};

static struct task *task_alloc(const struct store_body *body, struct task_parts *ret)
{
    size_t labels = body->n_labels * sizeof(ret->labels[0]);
    size_t series = body->n_series * sizeof(ret->series[0]);
    size_t list = body->n_series * sizeof(void *);
    size_t bytes = sizeof(struct task) + labels + series + list + text_bytes(body);
    struct task *t = malloc(bytes);
    if (t != NULL) {
        char *at = (char *)(t + 1);
        *t = (struct task){.body = *body, .bytes = bytes};
        ret->labels = (struct label *)(void *)at;
        ret->series = (struct store_series *)(void *)(at + labels);
        ret->list = (const struct store_series **)(void *)(at + labels + series);
        ret->texts = at + labels + series + list;
    }
    return t;
}

/* Copies a profile that is whole: nothing of its series but the columns is read then. */
static struct task *task_new(const struct store_body *body)
{
    struct task_parts p;
    struct task *t = task_alloc(body, &p);
    struct sv id;
    if (t == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < body->n_labels; i++) {
        p.texts = put_text(p.texts, body->labels[i].name, &p.labels[i].name);
        p.texts = put_text(p.texts, body->labels[i].value, &p.labels[i].value);
    }
    for (size_t i = 0; i < body->n_series; i++) {
        p.series[i] = (struct store_series){.column = body->series[i]->column};
        p.list[i] = &p.series[i];
    }
    p.texts = put_text(p.texts, sv_from(body->id), &id);
    put_text(p.texts, body->data, &t->body.data);
    t->body.id = id.p;
    t->body.labels = p.labels;
    t->body.series = p.list;
    return t;
}

/* Gives a profile to a helper. False if it has enough to do, or out of memory. */
static bool give(struct hand *h, const struct store_body *body)
{
    struct crew *c = h->crew;
    pthread_mutex_lock(&c->lock);
    bool room = h->waiting + body->data.n <= WAITING_BYTES;
    pthread_mutex_unlock(&c->lock);
    struct task *t = room ? task_new(body) : NULL;
    if (t == NULL) {
        return false;
    }
    pthread_mutex_lock(&c->lock);
    *h->end = t;
    h->end = &t->next;
    h->waiting += t->bytes;
    if (h->waiting >= WAKE_BYTES) {
        pthread_cond_signal(&h->wake);
    }
    pthread_mutex_unlock(&c->lock);
    return true;
}

/* Returns the helper that has the least to do, or the calling thread if all have enough. Sets err
 * if a helper has failed. */
static struct hand *choose(struct crew *c, struct err *err)
{
    struct hand *best = &c->own;
    size_t least = WAITING_BYTES / 2;
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < c->n; i++) {
        struct hand *h = &c->at[i];
        if (h->err.kind != ERR_NONE) {
            err_set(err, h->err.kind, "%s", h->err.msg);
        }
        if (h->waiting < least) {
            best = h;
            least = h->waiting;
        }
    }
    pthread_mutex_unlock(&c->lock);
    return best;
}

/* Returns the hand that is to add a profile: that of the profiles before it, unless it is of
 * another set. The calling thread looks again after some of them, as a helper may have too little
 * to do. */
static struct hand *hand_for(struct crew *c, const struct store_body *body, struct err *err)
{
    uint64_t set = body->n_series > 0 ? body->series[0]->set : 0;
    if (c->run_of == NULL || c->run_set != set ||
        (c->run_of == &c->own && c->run_bytes > WAITING_BYTES / 2)) {
        c->run_of = choose(c, err);
        c->run_set = set;
        c->run_bytes = 0;
    }
    c->run_bytes += body->data.n;
    return c->run_of;
}

bool crew_on_body(void *arg, const struct store_body *body, struct err *err)
{
    struct crew *c = arg;
    c->read += body->data.n;
    if (c->n == 0 && c->helpers != NULL && c->read > ALONE_BYTES) {
        start_helpers(c);
    }
    if (c->n > 0 && body->whole) {
        struct hand *h = hand_for(c, body, err);
        if (err->kind != ERR_NONE) {
            return false;
        }
        if (h != &c->own && give(h, body)) {
            return true;
        }
        c->run_of = h == &c->own ? h : NULL;
    }
    return hand_add(&c->own, body, err);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Adds the nodes of a tree to another one. */
static bool add_nodes(struct tree *to, const struct tree *from, const uint32_t *names,
                      uint32_t *nodes, struct err *err)
{
    nodes[0] = 0;
    for (uint32_t i = 1; i < tree_size(from); i++) {
        const struct tree_edge *edge = tree_edge_of(from, i); /* the parent was added before */
        if (!tree_child(to, nodes[edge->parent], names[edge->name], &nodes[i], err)) {
            return false;
        }
        tree_add(to, nodes[i], from->self[i]);
    }
    tree_add(to, 0, from->self[0]);
    return true;
}

/* Adds the names of a tree to another one, and notes their numbers there. */
static bool add_names(struct tree *to, const struct tree *from, uint32_t *numbers, struct err *err)
{
    for (uint32_t i = 0; i < from->names.n; i++) {
        if (!tree_name(to, tree_name_of(from, i), &numbers[i], err)) {
            return false;
        }
    }
    return true;
}

/* Adds a tree to another one. */
static bool add_tree(struct tree *to, const struct tree *from, struct err *err)
{
    uint32_t *names = calloc(from->names.n + 1, sizeof(names[0]));
    uint32_t *nodes = calloc(tree_size(from), sizeof(nodes[0]));
    bool ok = names != NULL && nodes != NULL
                  ? add_names(to, from, names, err) && add_nodes(to, from, names, nodes, err)
                  : err_memory(err);
    free(names);
    free(nodes);
    return ok;
}

/* Adds the trees of the helpers to that of the calling thread, and frees them one by one. */
static bool add_trees(struct crew *c, struct err *err)
{
    c->own.stacks = stacks_free(c->own.stacks);
    for (size_t i = 0; i < c->n; i++) {
        c->at[i].stacks = stacks_free(c->at[i].stacks);
    }
    c->own.tree->budget.max = c->q->bytes_max / 2;
    for (size_t i = 0; i < c->n; i++) {
        if (!query_alive(c->q, err) || !add_tree(c->own.tree, c->at[i].tree, err)) {
            return false;
        }
        c->at[i].tree = tree_free(c->at[i].tree);
    }
    return true;
}

struct tree *crew_finish(struct crew *c, struct err *err)
{
    join_helpers(c);
    choose(c, err);
    if (err->kind != ERR_NONE || !add_trees(c, err)) {
        return NULL;
    }
    struct tree *t = c->own.tree;
    c->own.tree = NULL;
    return t;
}
