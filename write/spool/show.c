#include "write/spool/show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    bool is_bad;
    bool is_skipped;
} findings[] = {
    [SPOOL_FINDING_RECORD] = {.name = "record"},
    [SPOOL_FINDING_DAMAGE] = {.name = "damaged", .is_bad = true},
    [SPOOL_FINDING_BODY] = {.name = "damaged", .is_bad = true},
    [SPOOL_FINDING_HEADER] = {.name = "damaged header", .is_bad = true},
    [SPOOL_FINDING_EMPTY] = {.name = "empty", .is_bad = true},
    [SPOOL_FINDING_NEWER] = {.name = "newer version", .is_skipped = true},
    [SPOOL_FINDING_SEGMENT] = {.name = "foreign", .is_skipped = true},
    [SPOOL_FINDING_FOREIGN] = {.name = "foreign"},
    [SPOOL_FINDING_ACKS] = {.name = "damaged acknowledgements", .is_bad = true},
    [SPOOL_FINDING_FAILED] = {.name = "unreadable", .is_bad = true},
};

const char *spool_finding_name(enum spool_finding what)
{
    return findings[what].name;
}

bool spool_finding_is_bad(enum spool_finding what)
{
    return findings[what].is_bad;
}

bool spool_finding_is_skipped(enum spool_finding what)
{
    return findings[what].is_skipped;
}

struct look {
    const struct spool_show *show;
    struct spool_shown *shown;
    int dir;
    struct labels_builder *builder;
    struct spool_numbers segments; /* in order */
    bool out_of_memory;
    bool is_spool;
};

static void see(struct look *l, const struct spool_seen *seen)
{
    l->shown->bad += spool_finding_is_bad(seen->what);
    l->shown->skipped_segments += spool_finding_is_skipped(seen->what);
    l->shown->skipped +=
        seen->what == SPOOL_FINDING_FOREIGN || spool_finding_is_skipped(seen->what);
    if (l->show->on_seen != NULL) {
        l->show->on_seen(l->show->arg, seen);
    }
}

static void see_failure(struct look *l, const char *name)
{
    struct err err = ERR_INIT;
    err_sys(&err, "cannot be read");
    see(l, &(struct spool_seen){.what = SPOOL_FINDING_FAILED, .name = name, .error = err.msg});
}

/* ---- one segment ----------------------------------------------------------------------------- */

static void see_body(struct look *l, const struct spool_walk *w, struct spool_seen *seen)
{
    uint8_t *labels = NULL;
    char *data = NULL;
    struct labels *parsed = NULL;
    bool memory;
    switch (spool_body_read(w->fd, seen->offset, seen->head, &labels, &data)) {
    case SPOOL_BODY_OK:
        parsed = spool_labels_parse(labels, seen->head->labels_size, l->builder, &memory);
        seen->labels = parsed;
        if (parsed == NULL) {
            seen->what = memory ? SPOOL_FINDING_FAILED : SPOOL_FINDING_BODY;
        }
        seen->error = "out of memory";
        free(labels);
        free(data);
        break;
    case SPOOL_BODY_DAMAGED:
        seen->what = SPOOL_FINDING_BODY;
        break;
    case SPOOL_BODY_FAILED:
        see_failure(l, seen->name);
        return;
    case SPOOL_BODY_MEMORY:
    default:
        seen->what = SPOOL_FINDING_FAILED;
        seen->error = "out of memory";
        break;
    }
    see(l, seen);
    labels_unref(parsed);
}

static void see_record(struct look *l, const struct spool_walk *w, const struct spool_numbers *acks,
                       const char *name, const struct spool_found *found)
{
    struct spool_seen seen = {.what = SPOOL_FINDING_RECORD,
                              .name = name,
                              .offset = found->offset,
                              .size = found->size,
                              .head = &found->head};
    seen.done = spool_numbers_have(acks, found->head.offset);
    l->shown->records++;
    l->shown->done += seen.done;
    l->shown->waiting_bytes += seen.done ? 0 : found->head.data_size;
    /* Damage in a record that is done does not matter. */
    if (l->show->bodies && !seen.done) {
        see_body(l, w, &seen);
    } else {
        see(l, &seen);
    }
}

static void walk(struct look *l, struct spool_walk *w, const struct spool_numbers *acks,
                 const char *name, bool newest)
{
    struct spool_found found;
    for (;;) {
        switch (spool_walk_next(w, &found)) {
        case SPOOL_STEP_RECORD:
            see_record(l, w, acks, name, &found);
            break;
        case SPOOL_STEP_DAMAGE:
            /* While a process writes, the last record may be incomplete. */
            if (!(newest && l->shown->live && w->offset >= w->size)) {
                see(l, &(struct spool_seen){.what = SPOOL_FINDING_DAMAGE,
                                            .name = name,
                                            .offset = found.offset,
                                            .size = found.size});
            }
            break;
        case SPOOL_STEP_FAILED:
            see_failure(l, name);
            return;
        case SPOOL_STEP_END:
        default:
            return;
        }
    }
}

/* A segment that could not be opened. */
static void see_unopened(struct look *l, const char *name, enum spool_walk_open kind, bool newest)
{
    static const enum spool_finding kinds[] = {
        [SPOOL_WALK_EMPTY] = SPOOL_FINDING_EMPTY,
        [SPOOL_WALK_NEWER] = SPOOL_FINDING_NEWER,
        [SPOOL_WALK_FOREIGN] = SPOOL_FINDING_SEGMENT,
        [SPOOL_WALK_FAILED] = SPOOL_FINDING_SEGMENT,
    };
    bool live = l->shown->live;
    if (kind == SPOOL_WALK_EMPTY && newest && live) {
        return;
    }
    if (kind != SPOOL_WALK_FAILED || errno == ENOTSUP || errno == ELOOP) {
        see(l, &(struct spool_seen){.what = kinds[kind], .name = name});
    } else if (errno != ENOENT || !live) { /* it may have been sent and removed meanwhile */
        see_failure(l, name);
    }
}

static void see_segment(struct look *l, uint64_t id, bool newest)
{
    char name[SPOOL_NAME_SIZE];
    struct spool_walk w;
    struct spool_numbers acks;
    uint64_t ack_size;
    size_t bad;
    spool_name_format(name, id, false);
    enum spool_walk_open kind = spool_walk_open(&w, l->dir, id);
    if (kind != SPOOL_WALK_OPEN) {
        see_unopened(l, name, kind, newest);
        return;
    }
    l->shown->segments++;
    l->shown->bytes += w.size;
    if (w.header_damaged) {
        see(l, &(struct spool_seen){.what = SPOOL_FINDING_HEADER, .name = name});
    }
    if (!spool_acks_read(l->dir, id, w.salt, &acks, &ack_size, &bad)) {
        see_failure(l, name);
    } else if (bad > 0) {
        see(l, &(struct spool_seen){.what = SPOOL_FINDING_ACKS, .name = name, .size = bad});
    }
    walk(l, &w, &acks, name, newest);
    free(acks.at);
    spool_walk_close(&w);
}

/* ---- the directory --------------------------------------------------------------------------- */

static bool show_on_name(void *arg, const char *name)
{
    struct look *l = arg;
    uint64_t id;
    enum spool_name kind = spool_name_parse(name, &id);
    l->is_spool = l->is_spool || kind != SPOOL_NAME_OTHER;
    l->out_of_memory = kind == SPOOL_NAME_SEGMENT && !spool_numbers_add(&l->segments, id);
    return !l->out_of_memory;
}

static bool show_on_foreign(void *arg, const char *name)
{
    uint64_t id;
    if (spool_name_parse(name, &id) == SPOOL_NAME_OTHER) {
        see(arg, &(struct spool_seen){.what = SPOOL_FINDING_FOREIGN, .name = name});
    }
    return true;
}

static bool is_live(int dir)
{
    int fd = spool_io_open(dir, SPOOL_LOCK_NAME, SPOOL_OPEN_READ, NULL);
    bool live = fd >= 0 && spool_io_is_locked(fd);
    if (fd >= 0) {
        close(fd);
    }
    return live;
}

static bool look(struct look *l, const char *directory, struct err *err)
{
    if (spool_io_list(l->dir, show_on_name, l) != 0) {
        return err_sys(err, "cannot read the directory %s", directory);
    }
    if (l->out_of_memory) {
        return err_memory(err);
    }
    if (!l->is_spool) {
        return true;
    }
    l->shown->live = is_live(l->dir);
    spool_numbers_sort(&l->segments);
    for (size_t i = 0; i < l->segments.n; i++) {
        see_segment(l, l->segments.at[i], i + 1 == l->segments.n);
    }
    (void)spool_io_list(l->dir, show_on_foreign, l);
    return true;
}

bool spool_show(const char *directory, const struct spool_show *show, struct spool_shown *ret,
                bool *ret_is_spool, struct err *err)
{
    struct look l = {.show = show, .shown = ret};
    *ret = (struct spool_shown){.live = false};
    *ret_is_spool = false;
    l.dir = spool_io_open_directory(directory);
    if (l.dir < 0) {
        return err_sys(err, "cannot open the directory %s", directory);
    }
    l.builder = labels_builder_new(show->intern);
    bool ok = l.builder != NULL ? look(&l, directory, err) : err_memory(err);
    *ret_is_spool = l.is_spool;
    labels_builder_free(l.builder);
    free(l.segments.at);
    close(l.dir);
    return ok;
}
