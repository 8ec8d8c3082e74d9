/* Recovers from the removal of files, or of the whole directory: see store.h. Profiles in these
 * files are written again, if the queue has them in memory or a descriptor of the file is still
 * open. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "write/spool/store_private.h"

/* Keeps the descriptor of a file that was removed: the file can be read as long as it is open. */
static void keep_open(struct spool_file *f)
{
    if (f->fd >= 0 && f->segment->kept_fd < 0) {
        f->segment->kept_fd = f->fd;
        *f = (struct spool_file){.fd = -1};
    }
}

static bool is_removed(const struct spool_file *f)
{
    return f->fd >= 0 && !spool_io_is_linked(f->fd);
}

/* Counts a removed file of acknowledgements. If acknowledgements are lost, the next process sends
 * their profiles again. */
static void check_acks(struct spool_store *s)
{
    if (is_removed(&s->acking)) {
        s->acking.segment->ack_size = 0;
        s->acking.dirty = false;
        spool_store_close_file(s, &s->acking);
        s->counts.lost_acks++;
    }
}

static void leave_directory(struct spool_store *s)
{
    s->active.dirty = s->acking.dirty = false;
    keep_open(&s->active);
    keep_open(&s->reading);
    spool_store_close_file(s, &s->active);
    spool_store_close_file(s, &s->reading);
    spool_store_close_file(s, &s->acking);
    spool_store_close_directory(s);
}

/* Makes the lock file again after somebody has removed it. Only if the directory is locked as well,
 * no other process can have used it meanwhile. */
static bool lock_again(struct spool_store *s)
{
    close(s->lock);
    s->lock = -1;
    return s->dir_locked && spool_store_lock(s);
}

struct presence {
    struct spool_numbers segments;
    bool out_of_memory;
};

static bool store_on_present(void *arg, const char *name)
{
    struct presence *p = arg;
    uint64_t id = 0;
    if (spool_name_parse(name, &id) == SPOOL_NAME_SEGMENT) {
        p->out_of_memory = !spool_numbers_add(&p->segments, id);
    }
    return !p->out_of_memory;
}

bool spool_store_mark_missing(struct spool_store *s, const struct spool_numbers *present)
{
    struct spool_segment *g = NULL;
    bool any = false;
    TAILQ_FOREACH(g, &s->segments, link)
    {
        g->missing = !spool_numbers_have(present, g->id);
        any = any || g->missing;
    }
    return any;
}

/* Returns false if a segment has no file any more. If that cannot be determined now, the segments
 * are taken to be complete. */
static bool check_segments(struct spool_store *s)
{
    struct presence p = {.out_of_memory = false};
    bool known = spool_io_list(s->dir, store_on_present, &p) == 0 && !p.out_of_memory;
    spool_numbers_sort(&p.segments);
    bool missing = known && spool_store_mark_missing(s, &p.segments);
    free(p.segments.at);
    return !missing;
}

bool spool_store_check(struct spool_store *s, bool segments, struct err *err)
{
    const struct spool_file lock = {.fd = s->lock};
    if (s->dir < 0) {
        return true;
    }
    bool there = spool_io_is_directory(s->directory, s->dir);
    if (!there || is_removed(&lock)) {
        if (!there || !lock_again(s)) {
            leave_directory(s);
        }
        s->counts.errors[SPOOL_ERR_OPEN]++;
        return err_set(err, ERR_SYSTEM, "spool %s: the directory or its lock has been removed",
                       s->directory);
    }
    check_acks(s);
    bool removed = is_removed(&s->active);
    if (removed) {
        s->active.segment->missing = true;
        s->active.dirty = false;
        keep_open(&s->active);
        spool_store_close_file(s, &s->active);
    }
    if (removed || (segments && !check_segments(s))) {
        s->counts.errors[SPOOL_ERR_OPEN]++;
        return err_set(err, ERR_SYSTEM, "spool %s: files have been removed", s->directory);
    }
    return true;
}

/* ---- writing it again ------------------------------------------------------------------------ */

static void give_up(struct spool_store *s, struct spool_segment *g, struct spool_entry *e)
{
    TAILQ_REMOVE(&g->entries, e, in_segment);
    TAILQ_INSERT_TAIL(&s->orphans, e, in_segment);
    e->segment = NULL;
    g->live--;
    s->counts.profiles--;
    s->options->events.lost(s->options->events.arg, e, true);
}

/* Writes a profile again. Returns false if it could not be written; the entry stays in its segment
 * then. */
static bool write_again(struct spool_store *s, struct spool_segment *g, struct spool_entry *e,
                        struct profile *p, int64_t wall_offset_ns, struct err *err)
{
    e->profile = p;
    TAILQ_REMOVE(&g->entries, e, in_segment);
    g->live--;
    s->counts.profiles--;
    e->segment = NULL;
    enum spool_append done = spool_store_append(s, e, wall_offset_ns, err);
    e->profile = NULL;
    profile_unref(p);
    if (done == SPOOL_APPEND_FAILED || done == SPOOL_APPEND_FULL) {
        TAILQ_INSERT_HEAD(&g->entries, e, in_segment);
        e->segment = g;
        g->live++;
        s->counts.profiles++;
        return false;
    }
    return true;
}

static bool rescue_entry(struct spool_store *s, struct spool_segment *g, struct spool_entry *e,
                         int64_t wall_offset_ns, struct err *err)
{
    const struct spool_events *on = &s->options->events;
    struct profile *p = on->profile(on->arg, e);
    if (p == NULL) {
        (void)spool_store_load(s, e, &p, NULL);
    }
    if (p == NULL) {
        give_up(s, g, e);
        return true;
    }
    return write_again(s, g, e, p, wall_offset_ns, err);
}

static bool rescue_segment(struct spool_store *s, struct spool_segment *g, int64_t wall_offset_ns,
                           struct err *err)
{
    struct spool_entry *e;
    while ((e = TAILQ_FIRST(&g->entries)) != NULL) {
        if (!rescue_entry(s, g, e, wall_offset_ns, err)) {
            return false;
        }
    }
    spool_store_free_segment(s, g);
    return true;
}

bool spool_store_recover(struct spool_store *s, int64_t wall_offset_ns, struct err *err)
{
    struct spool_segment *next;
    bool any = false;
    for (struct spool_segment *g = TAILQ_FIRST(&s->segments); g != NULL; g = next) {
        next = TAILQ_NEXT(g, link);
        if (!g->missing) {
            continue;
        }
        any = true;
        if (!rescue_segment(s, g, wall_offset_ns, err)) {
            return false;
        }
    }
    return !any || spool_store_sync(s, err);
}
