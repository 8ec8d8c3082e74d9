/* Helps processes that share an archive to agree on its objects: a process lists them once a
 * minute, and its peers (store/peering/peering.h) may know newer ones. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "store/archive/private.h"

/* All objects are listed once an hour. */
#define RECENT_MS (2 * ARCHIVE_LIST_ALL_MS)

void archive_own_name(struct archive *a, char ret[64])
{
    pthread_mutex_lock(&a->lock);
    memcpy(ret, a->writer, sizeof(a->writer));
    pthread_mutex_unlock(&a->lock);
}

void archive_each_recent(struct archive *a, int64_t from_ns, int64_t until_ns,
                         void (*visit)(void *arg, const char *name, const char *hash,
                                       int64_t age_ms),
                         void *arg)
{
    int64_t now_ms = clock_mono_ms();
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->n_files; i++) {
        const struct store_file *f = a->files[i];
        const struct archive_object *o = f->object;
        if (strcmp(o->writer, a->writer) == 0 && now_ms - o->added_ms < RECENT_MS &&
            store_file_from_ns(f) <= until_ns && store_file_until_ns(f) >= from_ns) {
            visit(arg, f->text, o->name.hash, now_ms - o->added_ms);
        }
    }
    pthread_mutex_unlock(&a->lock);
}

int64_t archive_unlisted_ms(struct archive *a)
{
    pthread_mutex_lock(&a->lock);
    int64_t ms = a->listed_all_ms == 0 ? clock_mono_ms() - a->opened_ms : -1;
    pthread_mutex_unlock(&a->lock);
    return ms;
}

bool archive_is_object(const struct store_file *f, struct sv writer, struct sv hash)
{
    return f->object != NULL && sv_eq_str(writer, f->object->writer) &&
           sv_eq_str(hash, f->object->name.hash);
}

bool archive_takes_refresh(struct archive *a)
{
    pthread_mutex_lock(&a->lock);
    bool refresh = a->refresh;
    a->refresh = false;
    pthread_mutex_unlock(&a->lock);
    return refresh;
}

/* Asks for a listing and waits for its end, or for the deadline. Under the lock. */
static bool await_listing(struct archive *a, int64_t since_ms, int64_t deadline_ms)
{
    const struct timespec until = clock_timespec(deadline_ms);
    int rc = 0;
    a->refresh = a->hurry = a->listed_all_ms < since_ms;
    pthread_cond_broadcast(&a->changed);
    while (a->listed_all_ms < since_ms && !a->stopping && rc != ETIMEDOUT &&
           (a->refresh || a->list_err.kind == ERR_NONE)) {
        rc = pthread_cond_timedwait(&a->changed, &a->lock, &until);
    }
    return a->listed_all_ms >= since_ms;
}

bool archive_refresh(struct archive *a, int64_t since_ms, int64_t deadline_ms)
{
    pthread_mutex_lock(&a->lock);
    bool done = a->listed_all_ms >= since_ms;
    bool alone = !a->has_thread;
    if (!done && alone) {
        a->refresh = true;
    } else if (!done) {
        done = await_listing(a, since_ms, deadline_ms);
    }
    pthread_mutex_unlock(&a->lock);
    if (!done && alone) {
        archive_round(a, clock_wall_ns());
        pthread_mutex_lock(&a->lock);
        done = a->listed_all_ms >= since_ms;
        pthread_mutex_unlock(&a->lock);
    }
    return done;
}
