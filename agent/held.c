#include "agent/held.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "base/clock.h"

/* The time between two looks at the questions. */
#define LOOK_MS 100

/* A profile that waits, and then is with a worker. */
struct waiting {
    struct work work; /* first */
    TAILQ_ENTRY(waiting) link;
    struct held *held; /* NULL: it is gone */
    struct naming *naming;
    struct profile *profile; /* a reference */
    uint64_t endpoints;
    struct symbols_sources sources; /* its strings belong to `owner` */
    const struct config *owner;     /* a reference */
    int64_t until_ms;
    bool running;
    char *data; /* the body with names, or NULL */
    size_t size;
};
TAILQ_HEAD(waiting_list, waiting);

struct held {
    struct held_options options;
    struct waiting_list list;
    size_t bytes;
    struct loop_timer *timer;
    bool released;
};

static void waiting_free(struct waiting *w)
{
    profile_unref(w->profile);
    config_unref(w->owner);
    free(w->data);
    free(w);
}

static void leave(struct held *h, struct waiting *w)
{
    TAILQ_REMOVE(&h->list, w, link);
    h->bytes -= w->profile->size;
    w->held = NULL;
}

static void held_run(struct work *work)
{
    struct waiting *w = (struct waiting *)work;
    const struct profile *p = w->profile;
    const struct naming_source source = {
        .process = p->names.awaits, .job = p->job, .sources = &w->sources, .owner = w->owner};
    struct profile_names names = p->names;
    struct profile_names more;
    (void)naming_body(w->naming, &source, NULL, (struct sv){p->data, p->size}, &w->data, &w->size,
                      &more);
    /* Only addresses that still lacked names were looked up again. */
    names.named += w->data != NULL ? more.named : 0;
    naming_note(w->naming, &names);
}

static void held_done(struct work *work)
{
    struct waiting *w = (struct waiting *)work;
    struct held *h = w->held;
    if (h != NULL) {
        struct profile *p = w->data != NULL ? profile_with(w->profile, w->data, w->size) : NULL;
        w->data = NULL;
        p = p != NULL ? p : profile_ref(w->profile);
        leave(h, w);
        h->options.deliver(h->options.arg, p, w->endpoints);
    }
    waiting_free(w);
}

static void start(struct held *h, struct waiting *w)
{
    w->running = true;
    worker_submit(h->options.workers, &w->work);
}

/* Sends the profiles that are due to the workers. */
static void look(struct held *h)
{
    bool all = h->released || !naming_is_asking(h->options.naming);
    int64_t now = clock_mono_ms();
    bool waits = false;
    for (struct waiting *w = TAILQ_FIRST(&h->list); w != NULL; w = TAILQ_NEXT(w, link)) {
        if (!w->running && (all || now >= w->until_ms)) {
            start(h, w);
        }
        waits = waits || !w->running;
    }
    if (waits) {
        loop_timer_after(h->timer, LOOK_MS);
    }
}

static void held_on_timer(void *arg)
{
    look(arg);
}

struct held *held_new(const struct held_options *options, struct err *err)
{
    struct held *h = calloc(1, sizeof(*h));
    if (h == NULL) {
        err_memory(err);
        return NULL;
    }
    h->options = *options;
    TAILQ_INIT(&h->list);
    h->timer = loop_timer_new(options->loop, held_on_timer, h);
    if (h->timer == NULL) {
        err_memory(err);
        return held_free(h);
    }
    return h;
}

struct held *held_free(struct held *h)
{
    struct waiting *w;
    if (h == NULL) {
        return NULL;
    }
    while ((w = TAILQ_FIRST(&h->list)) != NULL) {
        leave(h, w); /* NOLINT(clang-analyzer-unix.Malloc): it takes the next first from the list */
        if (!w->running) {
            waiting_free(w);
        }
    }
    loop_timer_free(h->timer);
    free(h);
    return NULL;
}

bool held_put(struct held *h, struct profile *profile, uint64_t endpoints,
              const struct symbols_sources *sources, const struct config *owner)
{
    bool room = !h->released && profile->size <= h->options.bytes_max &&
                h->bytes <= h->options.bytes_max - profile->size;
    struct waiting *w = room ? calloc(1, sizeof(*w)) : NULL;
    if (w == NULL) {
        return false;
    }
    *w = (struct waiting){
        .work = {.home = h->options.loop, .run = held_run, .done = held_done},
        .held = h,
        .naming = h->options.naming,
        .profile = profile,
        .endpoints = endpoints,
        .sources = *sources,
        .owner = config_ref(owner),
        .until_ms = clock_mono_ms() + sources->wait_ms,
    };
    TAILQ_INSERT_TAIL(&h->list, w, link);
    h->bytes += profile->size;
    loop_timer_after(h->timer, LOOK_MS);
    return true;
}

bool held_is_empty(const struct held *h)
{
    return TAILQ_EMPTY(&h->list);
}

void held_release(struct held *h)
{
    h->released = true;
    look(h);
}

bool held_name(struct naming *n, const struct naming_source *source, struct sv body, char **ret,
               size_t *ret_size)
{
    int64_t until_ms = clock_mono_ms() + source->sources->wait_ms;
    struct profile_names names;
    bool named = naming_body(n, source, NULL, body, ret, ret_size, &names);
    if (names.awaits == 0 || source->sources->wait_ms == 0) {
        naming_note(n, &names);
        return named;
    }
    while (naming_is_asking(n) && clock_mono_ms() < until_ms) {
        clock_sleep_until_ns(clock_mono_ns() + LOOK_MS / 10 * NS_PER_MS);
    }
    if (named) {
        free(*ret);
    }
    named = naming_body(n, source, NULL, body, ret, ret_size, &names);
    naming_note(n, &names);
    return named;
}
