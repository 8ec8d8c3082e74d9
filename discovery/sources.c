#include "discovery/sources.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"

struct source {
    TAILQ_ENTRY(source) link;
    char *job;
    char *name;
    char *why;
    enum source_state state;
    int64_t since_ns;
};

struct sources {
    pthread_mutex_t lock;
    TAILQ_HEAD(source_list, source) list;
};

const char *source_state_name(enum source_state state)
{
    static const char *const names[] = {
        [SOURCE_WAITS] = "pending", [SOURCE_WORKS] = "up", [SOURCE_FAILS] = "down"};
    return names[state];
}

static void sources_on_metrics(struct metrics_out *out, void *arg)
{
    struct sources *s = arg;
    metrics_out_family(out, "profpull_discovery_up",
                       "1 if a source of targets can be read, by job and by number within the job.",
                       METRIC_GAUGE);
    pthread_mutex_lock(&s->lock);
    struct source *v = NULL;
    TAILQ_FOREACH(v, &s->list, link)
    {
        const char *const labels[][2] = {{"job", v->job}, {"source", v->name}};
        metrics_out_sample(out, labels, 2, v->state == SOURCE_WORKS);
    }
    pthread_mutex_unlock(&s->lock);
}

struct sources *sources_new(struct metrics *metrics)
{
    struct sources *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    pthread_mutex_init(&s->lock, NULL);
    TAILQ_INIT(&s->list);
    if (metrics != NULL && !metrics_collector(metrics, sources_on_metrics, s)) {
        return sources_free(s);
    }
    return s;
}

static void free_source(struct source *v)
{
    if (v != NULL) {
        free(v->job);
        free(v->name);
        free(v->why);
        free(v);
    }
}

struct sources *sources_free(struct sources *s)
{
    while (s != NULL && !TAILQ_EMPTY(&s->list)) {
        struct source *v = TAILQ_FIRST(&s->list);
        TAILQ_REMOVE(&s->list, v, link);
        free_source(v);
    }
    if (s != NULL) {
        pthread_mutex_destroy(&s->lock);
        free(s);
    }
    return NULL;
}

/* ---- changes --------------------------------------------------------------------------------- */

static struct source *find(const struct sources *s, const char *job, const char *name)
{
    struct source *v = NULL;
    TAILQ_FOREACH(v, &s->list, link)
    {
        if (strcmp(v->job, job) == 0 && strcmp(v->name, name) == 0) {
            return v;
        }
    }
    return NULL;
}

static struct source *add(struct sources *s, const char *job, const char *name)
{
    struct source *v = calloc(1, sizeof(*v));
    if (v != NULL) {
        v->job = strdup(job);
        v->name = strdup(name);
        v->why = strdup("");
        v->since_ns = clock_wall_ns();
        if (v->job == NULL || v->name == NULL || v->why == NULL) {
            free_source(v);
            return NULL;
        }
        TAILQ_INSERT_TAIL(&s->list, v, link);
    }
    return v;
}

void sources_set(struct sources *s, const char *job, const char *name, enum source_state state,
                 const char *why)
{
    char *text = strdup(why);
    pthread_mutex_lock(&s->lock);
    struct source *v = find(s, job, name);
    v = v == NULL ? add(s, job, name) : v;
    if (v != NULL && text != NULL) {
        free(v->why);
        v->why = text;
        text = NULL;
        v->since_ns = v->state == state ? v->since_ns : clock_wall_ns();
        v->state = state;
    }
    pthread_mutex_unlock(&s->lock);
    free(text);
}

void sources_forget(struct sources *s, const char *job, const char *name)
{
    pthread_mutex_lock(&s->lock);
    struct source *v = find(s, job, name);
    if (v != NULL) {
        TAILQ_REMOVE(&s->list, v, link);
    }
    pthread_mutex_unlock(&s->lock);
    free_source(v);
}

/* ---- readers --------------------------------------------------------------------------------- */

size_t sources_count(struct sources *s, enum source_state state)
{
    size_t n = 0;
    struct source *v = NULL;
    pthread_mutex_lock(&s->lock);
    TAILQ_FOREACH(v, &s->list, link)
    {
        n += v->state == state;
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}

void sources_each(struct sources *s, void (*fn)(void *arg, const struct source_status *status),
                  void *arg)
{
    struct source *v = NULL;
    pthread_mutex_lock(&s->lock);
    TAILQ_FOREACH(v, &s->list, link)
    {
        fn(arg, &(struct source_status){.job = v->job,
                                        .name = v->name,
                                        .state = v->state,
                                        .why = v->why,
                                        .since_ns = v->since_ns});
    }
    pthread_mutex_unlock(&s->lock);
}

/* Returns the first source that cannot be read for the same reason. */
static const struct source *first_like(const struct sources *s, const struct source *v)
{
    const struct source *other = NULL;
    TAILQ_FOREACH(other, &s->list, link)
    {
        if (other == v || (other->state != SOURCE_WORKS && strcmp(other->why, v->why) == 0)) {
            break;
        }
    }
    return other;
}

/* Appends `job "pods": ` or `jobs "pods", "nodes": `; nothing for a source without a job. */
static void put_jobs(const struct sources *s, const struct source *v, struct buf *text)
{
    size_t n = 0;
    const struct source *last = NULL;
    struct buf names;
    const struct source *other = NULL;
    buf_init(&names, text->max);
    TAILQ_FOREACH(other, &s->list, link)
    {
        bool is_same = other->job[0] != '\0' && first_like(s, other) == v &&
                       (last == NULL || strcmp(last->job, other->job) != 0);
        if (is_same) {
            buf_printf(&names, "%s\"%s\"", n++ == 0 ? "" : ", ", other->job);
            last = other;
        }
    }
    if (n > 0) {
        buf_printf(text, "job%s %s: ", n == 1 ? "" : "s", names.data);
    }
    buf_done(&names);
}

void sources_missing(struct sources *s, struct buf *text)
{
    size_t n = 0;
    const struct source *v = NULL;
    pthread_mutex_lock(&s->lock);
    TAILQ_FOREACH(v, &s->list, link)
    {
        if (v->state != SOURCE_WORKS && first_like(s, v) == v && n++ < SOURCES_SHOWN) {
            buf_puts(text, n == 1 ? "" : "; ");
            put_jobs(s, v, text);
            buf_puts(text, v->why);
        }
    }
    if (n > SOURCES_SHOWN) {
        buf_printf(text, "; and %zu more", n - SOURCES_SHOWN);
    }
    pthread_mutex_unlock(&s->lock);
}
