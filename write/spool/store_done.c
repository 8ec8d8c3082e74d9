/* Acknowledgements, removal, making room, and reading segments of earlier processes: see store.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "write/spool/store_private.h"

/* ---- acknowledgements ------------------------------------------------------------------------ */

static bool open_acks(struct spool_store *s, struct spool_segment *g)
{
    char name[SPOOL_NAME_SIZE];
    uint8_t header[SPOOL_ACK_HEADER_SIZE];
    if (s->acking.segment == g) {
        return true;
    }
    spool_store_close_file(s, &s->acking);
    if (s->dir < 0) {
        errno = EIO;
        return false;
    }
    spool_name_format(name, g->id, true);
    int fd = spool_io_open(s->dir, name, SPOOL_OPEN_MAKE, NULL);
    if (fd < 0) {
        return false;
    }
    if (g->ack_size <= SPOOL_ACK_HEADER_SIZE) {
        spool_ack_header_encode(g->id, header);
        if (spool_write_full(fd, header, sizeof(header), "", 0, 0) != 0) {
            int failed = errno;
            close(fd);
            errno = failed;
            return false;
        }
        g->ack_size = sizeof(header);
        s->dir_dirty = true;
    }
    s->acking = (struct spool_file){.fd = fd, .segment = g};
    return true;
}

static bool remove_file(struct spool_store *s, uint64_t id, bool ack, struct err *err)
{
    char name[SPOOL_NAME_SIZE];
    spool_name_format(name, id, ack);
    if (s->dir < 0) {
        errno = EIO;
    } else if (spool_io_remove(s->dir, name) == 0 || errno == ENOENT) {
        return true;
    }
    return spool_store_failed(s, SPOOL_ERR_REMOVE, name, err);
}

/* Removes a segment and its acknowledgements. The segment is removed first: acknowledgements
 * without a segment have no effect, but the profiles of a segment without acknowledgements would be
 * sent again. */
static bool remove_segment(struct spool_store *s, struct spool_segment *g, struct err *err)
{
    g->removal_failed = !remove_file(s, g->id, false, err);
    if (g->removal_failed) {
        return false;
    }
    if (g->ack_size > 0) {
        (void)remove_file(s, g->id, true, NULL);
    }
    spool_store_free_segment(s, g);
    return true;
}

/* Returns true if all records of a segment are done, and no more will be written to it. */
static bool is_over(const struct spool_store *s, const struct spool_segment *g)
{
    return g->live == 0 && g->read && g != s->active.segment;
}

bool spool_store_retire(struct spool_store *s, struct spool_segment *g, struct err *err)
{
    return !is_over(s, g) || remove_segment(s, g, err);
}

/* Acknowledges an entry that is done, and frees it. Its offset always fits: a segment of ours ends
 * with the record that passes its limit. */
static bool acknowledge(struct spool_store *s, struct spool_segment *g, struct spool_entry *e,
                        struct err *err)
{
    uint8_t ack[SPOOL_ACK_SIZE];
    char name[SPOOL_NAME_SIZE];
    spool_ack_encode(g->salt, (uint32_t)e->head.offset, ack);
    if (!open_acks(s, g) ||
        spool_write_full(s->acking.fd, ack, sizeof(ack), "", 0, g->ack_size) != 0) {
        spool_name_format(name, g->id, true);
        return spool_store_failed(s, SPOOL_ERR_ACK, name, err);
    }
    g->ack_size += sizeof(ack);
    s->acking.dirty = true;
    spool_store_free_entry(&g->unacked, e);
    return true;
}

bool spool_store_done(struct spool_store *s, struct spool_entry *e, struct err *err)
{
    struct spool_segment *g = e->segment;
    if (g == NULL) {
        spool_store_free_entry(&s->orphans, e);
        return true;
    }
    TAILQ_REMOVE(&g->entries, e, in_segment);
    TAILQ_INSERT_TAIL(&g->unacked, e, in_segment);
    g->live--;
    s->counts.profiles--;
    /* If all records of a segment are done, its file is removed instead. */
    bool over = is_over(s, g);
    return (over && remove_segment(s, g, err)) || acknowledge(s, g, e, err);
}

static bool retry_acks(struct spool_store *s, struct spool_segment *g, struct err *err)
{
    bool ok = true;
    while (ok && !TAILQ_EMPTY(&g->unacked)) {
        /* The analyzer does not see that the entry takes itself off the list. */
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
        ok = acknowledge(s, g, TAILQ_FIRST(&g->unacked), err);
    }
    return ok;
}

bool spool_store_retry(struct spool_store *s, struct err *err)
{
    struct spool_segment *next;
    bool ok = true;
    for (struct spool_segment *g = TAILQ_FIRST(&s->segments); g != NULL && ok; g = next) {
        next = TAILQ_NEXT(g, link);
        bool over = g->removal_failed || is_over(s, g);
        ok = over ? remove_segment(s, g, err) : retry_acks(s, g, err);
    }
    return ok;
}

/* ---- reading segments of earlier processes --------------------------------------------------- */

void spool_store_end_walk(struct spool_store *s)
{
    spool_walk_close(&s->walk);
    free(s->acked.at);
    free(s->unplaced);
    s->acked = (struct spool_numbers){.n = 0};
    s->unplaced = NULL;
    s->walking = NULL;
}

static void mark_as_read(struct spool_store *s, struct spool_segment *g)
{
    if (!g->read) {
        s->counts.unread_bytes -= g->size;
    }
    g->read = true;
}

/* Forgets a segment that cannot be read by this version, without touching its file. */
static void skip_segment(struct spool_store *s, struct spool_segment *g, enum spool_skip why)
{
    s->counts.skipped[why]++;
    s->counts.skipped_segment = g->id;
    spool_store_free_segment(s, g);
}

static void count_damage(struct spool_store *s, uint64_t bytes)
{
    s->counts.damaged++;
    s->counts.damaged_bytes += bytes;
}

/* Begins the walk through a segment. Returns 1 if it has begun, 0 if there is nothing to walk
 * through (g may be gone), -1 if the disk failed. */
static int begin_walk(struct spool_store *s, struct spool_segment *g, struct err *err)
{
    char name[SPOOL_NAME_SIZE];
    size_t bad = 0;
    spool_name_format(name, g->id, false);
    enum spool_walk_open kind = spool_walk_open(&s->walk, s->dir, g->id);
    bool is_file = errno != ENOENT && errno != ENOTSUP && errno != ELOOP;
    if (kind == SPOOL_WALK_FAILED && !is_file) {
        kind = SPOOL_WALK_FOREIGN;
    }
    switch (kind) {
    case SPOOL_WALK_OPEN:
        break;
    case SPOOL_WALK_EMPTY:
        count_damage(s, g->size);
        mark_as_read(s, g);
        (void)spool_store_retire(s, g, NULL);
        return 0;
    case SPOOL_WALK_NEWER:
        skip_segment(s, g, SPOOL_SKIP_NEWER);
        return 0;
    case SPOOL_WALK_FOREIGN:
        skip_segment(s, g, SPOOL_SKIP_FOREIGN);
        return 0;
    case SPOOL_WALK_FAILED:
    default:
        spool_store_failed(s, SPOOL_ERR_READ, name, err);
        return -1;
    }
    if (!spool_acks_read(s->dir, g->id, s->walk.salt, &s->acked, &g->ack_size, &bad)) {
        spool_store_failed(s, SPOOL_ERR_READ, name, err);
        spool_walk_close(&s->walk);
        return -1;
    }
    s->counts.lost_acks += bad;
    g->salt = s->walk.salt;
    s->walking = g;
    if (s->walk.header_damaged) {
        count_damage(s, s->walk.offset);
    }
    return 1;
}

static struct spool_entry *entry_of(struct spool_segment *g, const struct spool_found *found,
                                    int64_t wall_offset_ns)
{
    struct spool_entry *e = calloc(1, sizeof(*e));
    if (e == NULL) {
        return NULL;
    }
    e->segment = g;
    e->offset = (uint32_t)found->offset;
    e->head = found->head;
    /* Rounded to the nearest ms, because the two clocks are never read at the same instant. */
    e->scraped_ms = (found->head.scraped_ns - wall_offset_ns + NS_PER_MS / 2) / NS_PER_MS;
    return e;
}

/* Returns the labels of an entry, a new reference; NULL if they cannot be read now. */
static struct labels *read_labels(struct spool_store *s, const struct spool_entry *e)
{
    size_t n = e->head.labels_size;
    uint8_t *bytes = n > 0 ? malloc(n) : NULL;
    struct labels *l = NULL;
    bool memory;
    if (bytes != NULL &&
        spool_read_full(s->walk.fd, bytes, n, e->offset + SPOOL_HEAD_SIZE) == (ssize_t)n) {
        l = spool_labels_parse(bytes, n, s->builder, &memory);
    }
    free(bytes);
    return l;
}

/* Hands an entry to the queue. Returns false if there is no room for it now. */
static bool place(struct spool_store *s, struct spool_entry *e)
{
    struct spool_segment *g = e->segment;
    s->unplaced = NULL;
    TAILQ_INSERT_TAIL(&g->entries, e, in_segment);
    g->live++;
    s->counts.profiles++;
    struct labels *l = (e->head.flags & SPOOL_FLAG_DELTA) != 0 ? read_labels(s, e) : NULL;
    bool found = s->options->events.found(s->options->events.arg, e, l);
    labels_unref(l);
    if (found) {
        return true;
    }
    TAILQ_REMOVE(&g->entries, e, in_segment);
    g->live--;
    s->counts.profiles--;
    s->unplaced = e;
    return false;
}

/* Returns one number for a segment and a place in it: segments have small numbers, and a place has
 * 32 bits. */
static uint64_t place_number(uint64_t segment, uint64_t place)
{
    return segment << 32 | place;
}

/* Returns true if the record that was written to this place is acknowledged, or part of another. */
static bool is_done(const struct spool_store *s, const struct spool_segment *g, uint64_t place)
{
    return spool_numbers_have(&s->acked, place) ||
           spool_numbers_have(&s->scan.replaced, place_number(g->id, place));
}

static enum spool_read take_record(struct spool_store *s, const struct spool_found *found,
                                   int64_t wall_offset_ns)
{
    /* We never write such a record, and it could not be acknowledged. */
    if (found->offset > UINT32_MAX) {
        count_damage(s, found->size);
        return SPOOL_READ_MORE;
    }
    if (is_done(s, s->walking, found->head.offset)) {
        return SPOOL_READ_MORE;
    }
    struct spool_entry *e = entry_of(s->walking, found, wall_offset_ns);
    if (e == NULL) {
        /* The record stays where it is, for the next process. */
        s->walking->live++;
        s->options->events.unread_lost(s->options->events.arg, true);
        return SPOOL_READ_MORE;
    }
    return place(s, e) ? SPOOL_READ_MORE : SPOOL_READ_NO_ROOM;
}

static enum spool_read walk_on(struct spool_store *s, int64_t wall_offset_ns, struct err *err)
{
    struct spool_segment *g = s->walking;
    struct spool_found found;
    if (s->unplaced != NULL) {
        return place(s, s->unplaced) ? SPOOL_READ_MORE : SPOOL_READ_NO_ROOM;
    }
    switch (spool_walk_next(&s->walk, &found)) {
    case SPOOL_STEP_RECORD:
        return take_record(s, &found, wall_offset_ns);
    case SPOOL_STEP_DAMAGE:
        count_damage(s, found.size);
        return SPOOL_READ_MORE;
    case SPOOL_STEP_END:
        spool_store_end_walk(s);
        mark_as_read(s, g);
        (void)spool_store_retire(s, g, NULL);
        return SPOOL_READ_MORE;
    case SPOOL_STEP_FAILED:
    default:
        spool_store_failed(s, SPOOL_ERR_READ, "a segment", err);
        return SPOOL_READ_FAILED;
    }
}

static struct spool_segment *first_unread(const struct spool_store *s)
{
    struct spool_segment *g = TAILQ_FIRST(&s->segments);
    while (g != NULL && g->read) {
        g = TAILQ_NEXT(g, link);
    }
    return g;
}

static void store_on_place(void *arg, const struct spool_place *place)
{
    struct spool_store *s = arg;
    uint64_t number = place_number(place->segment, place->offset);
    s->scan.out_of_memory = s->scan.out_of_memory || !spool_numbers_add(&s->scan.replaced, number);
}

/* Notes the records that a record replaces. A record counts as a replacement only if it is intact.
 */
static void scan_record(struct spool_store *s, const struct spool_found *found)
{
    uint8_t *labels = NULL;
    char *data = NULL;
    if ((found->head.flags & SPOOL_FLAG_REPLACES) != 0 &&
        spool_body_read(s->scan.walk.fd, found->offset, &found->head, &labels, &data) ==
            SPOOL_BODY_OK) {
        spool_places_parse(labels, found->head.labels_size, store_on_place, s);
    }
    free(labels);
    free(data);
}

static struct spool_segment *next_to_scan(const struct spool_store *s)
{
    struct spool_segment *g = TAILQ_FIRST(&s->segments);
    while (g != NULL && (g->read || g->id <= s->scan.id)) {
        g = TAILQ_NEXT(g, link);
    }
    return g;
}

/* Does one step of the walk through all segments for replaced records. Problems are left to the
 * reading that follows. */
static void scan_on(struct spool_store *s)
{
    struct spool_found found;
    if (s->scan.walk.fd < 0) {
        const struct spool_segment *g = next_to_scan(s);
        if (g == NULL) {
            spool_numbers_sort(&s->scan.replaced);
            s->scan.done = true;
            s->scan.id = 0;
            return;
        }
        s->scan.id = g->id;
        if (spool_walk_open(&s->scan.walk, s->dir, g->id) != SPOOL_WALK_OPEN) {
            s->scan.walk.fd = -1;
        }
        return;
    }
    enum spool_step step = spool_walk_next(&s->scan.walk, &found);
    if (step == SPOOL_STEP_RECORD) {
        scan_record(s, &found);
    } else if (step != SPOOL_STEP_DAMAGE) {
        spool_walk_close(&s->scan.walk);
        s->scan.walk.fd = -1;
    }
}

enum spool_read spool_store_read(struct spool_store *s, size_t n, int64_t wall_offset_ns,
                                 struct err *err)
{
    for (; n > 0 && !s->scan.done; n--) {
        scan_on(s);
    }
    for (; n > 0; n--) {
        struct spool_segment *g = s->walking != NULL ? s->walking : first_unread(s);
        if (g == NULL) {
            return SPOOL_READ_ALL;
        }
        int begun = s->walking != NULL ? 1 : begin_walk(s, g, err);
        if (begun < 0) {
            return SPOOL_READ_FAILED;
        }
        enum spool_read r = begun > 0 ? walk_on(s, wall_offset_ns, err) : SPOOL_READ_MORE;
        if (r != SPOOL_READ_MORE) {
            return r;
        }
    }
    return SPOOL_READ_MORE;
}

void spool_store_give_up(struct spool_store *s)
{
    struct spool_segment *g = s->walking != NULL ? s->walking : first_unread(s);
    if (g == NULL) {
        return;
    }
    count_damage(s, g->size - (s->walking != NULL ? s->walk.offset : 0));
    spool_store_end_walk(s);
    mark_as_read(s, g);
    /* This record is never done, so the file stays for the next process, which may be able to read
     * it. */
    g->live++;
}

/* ---- room ------------------------------------------------------------------------------------ */

/* Counts the unread records of a segment that is dropped; its file is still open. */
static void lose_unread(struct spool_store *s)
{
    struct spool_found found;
    enum spool_step step;
    if (s->unplaced != NULL) {
        s->options->events.unread_lost(s->options->events.arg, false);
    }
    free(s->unplaced);
    s->unplaced = NULL;
    while ((step = spool_walk_next(&s->walk, &found)) < SPOOL_STEP_END) {
        if (step == SPOOL_STEP_DAMAGE) {
            count_damage(s, found.size);
        } else if (!is_done(s, s->walking, found.head.offset)) {
            s->options->events.unread_lost(s->options->events.arg, false);
        }
    }
    spool_store_end_walk(s);
}

static void orphan_entries(struct spool_store *s, struct spool_segment *g)
{
    struct spool_entry *e;
    while ((e = TAILQ_FIRST(&g->entries)) != NULL) {
        TAILQ_REMOVE(&g->entries, e, in_segment);
        TAILQ_INSERT_TAIL(&s->orphans, e, in_segment);
        e->segment = NULL;
        s->counts.profiles--;
        s->options->events.lost(s->options->events.arg, e, false);
    }
    g->live = 0;
}

/* Returns true if a sender relies on a record that the walk through a segment has not reached. */
static bool rest_is_needed(const struct spool_store *s)
{
    struct spool_walk walk = s->walk; /* a copy of the walk, which reads at offsets of its own */
    struct spool_found found;
    enum spool_step step;
    if (s->unplaced != NULL && (s->unplaced->head.flags & SPOOL_FLAG_PUSHED) != 0) {
        return true;
    }
    while ((step = spool_walk_next(&walk, &found)) < SPOOL_STEP_END) {
        if (step == SPOOL_STEP_RECORD && (found.head.flags & SPOOL_FLAG_PUSHED) != 0 &&
            !is_done(s, s->walking, found.offset)) {
            return true;
        }
    }
    return false;
}

static bool is_in_memory(const struct spool_store *s, struct spool_entry *e)
{
    const struct spool_events *on = &s->options->events;
    struct profile *p = on->profile(on->arg, e);
    bool found = p != NULL;
    profile_unref(p);
    return found;
}

/* Returns true if a segment may be dropped, because every pushed profile in it is in memory as
 * well. From then on, these profiles count as being only in memory. */
static bool give_up_segment(struct spool_store *s, struct spool_segment *g)
{
    const struct spool_events *on = &s->options->events;
    struct spool_entry *e = NULL;
    TAILQ_FOREACH(e, &g->entries, in_segment)
    {
        if ((e->head.flags & SPOOL_FLAG_PUSHED) != 0 && !is_in_memory(s, e)) {
            return false;
        }
    }
    if (s->walking == g && rest_is_needed(s)) {
        return false;
    }
    TAILQ_FOREACH(e, &g->entries, in_segment)
    {
        /* Its bytes in memory may have been evicted meanwhile. */
        if ((e->head.flags & SPOOL_FLAG_PUSHED) != 0 && !on->give_up(on->arg, e)) {
            return false;
        }
    }
    return true;
}

/* Drops a segment. Profiles are reported as lost only after the file has been removed. */
static bool drop_segment(struct spool_store *s, struct spool_segment *g, struct err *err)
{
    if (!remove_file(s, g->id, false, err)) {
        return false;
    }
    if (s->walking == g) {
        lose_unread(s);
    }
    mark_as_read(s, g);
    orphan_entries(s, g);
    if (g->ack_size > 0) {
        (void)remove_file(s, g->id, true, NULL);
    }
    spool_store_free_segment(s, g);
    s->counts.dropped_segments++;
    return true;
}

static enum spool_room made_room(bool ok)
{
    return ok ? SPOOL_ROOM_MADE : SPOOL_ROOM_FAILED;
}

/* Drops the oldest segment that may be dropped. The search ends at the first segment that is not
 * completely read: later ones cannot be judged, because only one walk at a time is possible. */
static enum spool_room drop_oldest(struct spool_store *s, struct err *err)
{
    struct spool_segment *g = NULL;
    TAILQ_FOREACH(g, &s->segments, link)
    {
        bool unread = !g->read;
        int begun = unread && s->walking != g ? begin_walk(s, g, err) : 1;
        if (begun <= 0) {
            return made_room(begun == 0);
        }
        if (give_up_segment(s, g)) {
            return made_room(drop_segment(s, g, err));
        }
        if (unread) {
            break;
        }
    }
    err_set(err, ERR_LIMIT, "spool %s: full of profiles that senders rely on", s->directory);
    return SPOOL_ROOM_NONE;
}

enum spool_room spool_store_make_room(struct spool_store *s, uint64_t n, struct err *err)
{
    enum spool_room room = SPOOL_ROOM_MADE;
    while (s->counts.bytes + n > s->options->config->spool_max_bytes &&
           !TAILQ_EMPTY(&s->segments) && room == SPOOL_ROOM_MADE) {
        room = drop_oldest(s, err);
    }
    return room;
}
