/* Merges the profiles of a series in closed stretches: one merged profile for each five minutes.
 *
 * Profiles are read and merged without a transaction, in order of time, because the rows of
 * profiles of about the same time share pages. Then one transaction replaces the bytes of many
 * merges, so a crash leaves either the profiles or their merge. The times, sums and ids of the
 * single profiles are kept. After each merge the thread sleeps long enough to stay within its share
 * of a core. When all is merged, the file is sealed (sealing.c).
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "pprof/merge.h"
#include "store/blob.h"
#include "store/merging.h"

/* Memory for one merge, and for its result. */
#define MERGE_BYTES_MAX ((size_t)64 * 1024 * 1024)
#define RESULT_BYTES_MAX ((size_t)32 * 1024 * 1024)
/* Limit of the profiles that one pass over a file reads. */
#define SINGLES_MAX ((size_t)4 * 1000 * 1000)
/* A stretch counts as closed this long after its end, because profiles may arrive late. */
#define GRACE_MS (5 * 60 * MS_PER_S)
#define CPU_PERCENT 25
/* Interval at which a merge that waits for scans of its file checks whether the store closes. */
#define SCANS_MS 100
/* Merges whose results have so many bytes, or so many members, are written in one transaction. */
#define DONE_BYTES ((size_t)8 * 1024 * 1024)
#define DONE_MEMBERS ((size_t)16 * 1024)

/* ---- the share of a core --------------------------------------------------------------------- */

int64_t store_merge_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

int64_t store_merge_pause_ms(int64_t used_ns, unsigned percent, int64_t *paid_ns)
{
    int64_t others = 100 - (int64_t)percent;
    int64_t pause_ms = (used_ns - *paid_ns) * others / percent / NS_PER_MS;
    if (pause_ms > 0) {
        *paid_ns += pause_ms * NS_PER_MS * percent / others;
    }
    return pause_ms;
}

bool store_merge_rest(struct store *s, int64_t *paid_ns)
{
    unsigned percent = s->limits.merge_cpu != 0 ? s->limits.merge_cpu : CPU_PERCENT;
    return store_pause(s, store_merge_pause_ms(store_merge_cpu_ns(), percent, paid_ns));
}

bool merging_rest(struct merging *m)
{
    return store_merge_rest(m->store, &m->paid_ns);
}

/* ---- replacing ------------------------------------------------------------------------------- */

/* Waits until no scan reads the file. Scans that begin later wait. */
static bool exclude_scans(struct merging *m)
{
    for (;;) {
        pthread_mutex_lock(&m->store->lock);
        bool free_now = m->file->scans == 0;
        m->file->merging = free_now;
        pthread_mutex_unlock(&m->store->lock);
        if (free_now || !store_pause(m->store, SCANS_MS)) {
            return free_now;
        }
    }
}

static void admit_scans(struct merging *m)
{
    pthread_mutex_lock(&m->store->lock);
    m->file->merging = false;
    pthread_cond_broadcast(&m->store->changed);
    pthread_mutex_unlock(&m->store->lock);
}

bool merging_transaction(struct merging *m, bool (*write)(struct merging *m, struct err *err),
                         bool (*after)(struct merging *m, struct err *err), struct err *err)
{
    if (!exclude_scans(m)) {
        return false;
    }
    /* The writer of the file must have no transaction of its own. */
    pthread_mutex_lock(&m->store->write_lock);
    store_index_file_locked(m->store, m->file);
    bool ok = db_run(&m->db, SQL_BEGIN, err) && write(m, err) && db_run(&m->db, SQL_COMMIT, err);
    if (!ok && !sqlite3_get_autocommit(m->db.handle)) {
        (void)db_run(&m->db, SQL_ROLLBACK, NULL);
    }
    ok = ok && (after == NULL || after(m, err));
    pthread_mutex_unlock(&m->store->write_lock);
    admit_scans(m);
    if (ok && store_log_is_large(m->store, m->file)) {
        (void)db_copy_log(&m->db, DB_COPY_ONLY, NULL);
    }
    return ok;
}

static bool set_merge(struct merging *m, int64_t profile, int64_t merge, struct err *err)
{
    sqlite3_stmt *st = db_statement(&m->db, SQL_SET_MERGE, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, profile);
    sqlite3_bind_int64(st, 2, merge);
    return db_step(&m->db, st, err) == 0;
}

static bool note_merged(struct merging *m, size_t n, struct err *err)
{
    sqlite3_stmt *st = db_statement(&m->db, SQL_NOTE_MERGED, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, (int64_t)n);
    return db_step(&m->db, st, err) == 0;
}

static bool add_merge(struct merging *m, struct merged *d, struct err *err)
{
    struct sv data = {m->out.data + d->data_at, d->data_n};
    sqlite3_stmt *st = db_statement(&m->db, SQL_ADD_MERGE, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, d->first.set);
    sqlite3_bind_int64(st, 2, d->first.time_ns);
    sqlite3_bind_int64(st, 3, d->until_ns);
    sqlite3_bind_int64(st, 4, d->first.profile);
    sqlite3_bind_int64(st, 5, (int64_t)blob_hash(data, NULL, 0));
    sqlite3_bind_int64(st, 6, (int64_t)d->n_members);
    db_bind_blob(st, 7, (struct sv){m->blob.data + d->series_at, d->series_n});
    db_bind_blob(st, 8, data);
    int row = db_step(&m->db, st, err);
    (void)sqlite3_clear_bindings(st);
    d->merge = sqlite3_last_insert_rowid(m->db.handle);
    return row == 0;
}

static bool drop_body(struct merging *m, int64_t profile, struct err *err)
{
    sqlite3_stmt *st = db_statement(&m->db, SQL_DROP_BODY, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, profile);
    return db_step(&m->db, st, err) == 0;
}

static int by_profile(const void *a, const void *b)
{
    const struct changed *x = a;
    const struct changed *y = b;
    return x->profile < y->profile ? -1 : x->profile > y->profile;
}

/* The rows of profiles are changed in their order, so that no page is changed twice. */
static bool write_done(struct merging *m, struct err *err)
{
    for (size_t i = 0; i < m->n_done; i++) {
        if (m->done[i].data_n > 0 && !add_merge(m, &m->done[i], err)) {
            return false;
        }
    }
    if (m->n_members > 0) {
        qsort(m->members, m->n_members, sizeof(m->members[0]), by_profile);
    }
    for (size_t i = 0; i < m->n_members; i++) {
        const struct changed *c = &m->members[i];
        int64_t merge = m->done[c->done].merge;
        if (!set_merge(m, c->profile, merge, err) ||
            (merge > 0 && !drop_body(m, c->profile, err))) {
            return false;
        }
    }
    return note_merged(m, m->n_members, err);
}

static void forget_singles(struct merging *m, size_t n)
{
    pthread_mutex_lock(&m->store->lock);
    m->file->singles -= m->file->singles < n ? m->file->singles : n;
    m->left -= m->left < n ? m->left : n;
    pthread_mutex_unlock(&m->store->lock);
}

static void count_done(const struct merging *m)
{
    for (size_t i = 0; i < m->n_done; i++) {
        const struct merged *d = &m->done[i];
        if (d->data_n > 0) {
            metric_add(m->store->metrics.merged, d->n_members);
            metric_add(m->store->metrics.merged_bytes, d->bytes);
            metric_add(m->store->metrics.merges_bytes, d->data_n);
        } else {
            metric_inc(m->store->metrics.unmergeable);
        }
    }
}

/* Writes the merges that were made since the last time. */
static bool flush_done(struct merging *m, struct err *err)
{
    bool ok = m->n_done == 0 || merging_transaction(m, write_done, NULL, err);
    if (ok && m->n_done > 0) {
        forget_singles(m, m->n_members);
        count_done(m);
    }
    m->n_done = m->n_members = 0;
    buf_clear(&m->out);
    buf_clear(&m->blob);
    return ok;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static void group_reset(struct group *g)
{
    g->merge = merge_free(g->merge);
    g->n = 0;
    g->n_series = 0;
    g->bytes = 0;
}

static bool grow(void *p, size_t *cap, size_t n, size_t size, struct err *err)
{
    void **at = p;
    if (n <= *cap) {
        return true;
    }
    size_t more = 2 * n + 64;
    void *bigger = reallocarray(*at, more, size);
    if (bigger == NULL) {
        return err_memory(err);
    }
    *at = bigger;
    *cap = more;
    return true;
}

/* Adds a merge, or a profile that cannot be merged, to those that are to be written. */
static struct merged *add_done(struct merging *m, const struct single *const *of, size_t n,
                               struct err *err)
{
    void *done = m->done;
    void *members = m->members;
    bool ok = grow(&done, &m->done_cap, m->n_done + 1, sizeof(m->done[0]), err);
    m->done = done;
    ok = ok && grow(&members, &m->members_cap, m->n_members + n, sizeof(m->members[0]), err);
    m->members = members;
    if (!ok) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        m->members[m->n_members++] = (struct changed){of[i]->profile, m->n_done};
    }
    struct merged *d = &m->done[m->n_done++];
    *d = (struct merged){.first = *of[0], .merge = -1, .n_members = n};
    return d;
}

/* Writes the merge of the group to m->out. */
static bool write_group(struct merging *m, struct err *err)
{
    struct group *g = &m->group;
    size_t data_at = m->out.len;
    size_t series_at = m->blob.len;
    if (!merge_write(g->merge, &m->out, err)) {
        return false;
    }
    if (!blob_put_ids(g->series, g->n_series, &m->blob)) {
        return err_memory(err);
    }
    struct merged *d = add_done(m, g->members, g->n, err);
    if (d == NULL) {
        return false;
    }
    d->until_ns = g->until_ns;
    d->bytes = g->bytes;
    d->data_at = data_at;
    d->data_n = m->out.len - data_at;
    d->series_at = series_at;
    d->series_n = m->blob.len - series_at;
    return true;
}

/* Makes the merge of the group. If the group has a single member, it is not changed. */
static bool finish_group(struct merging *m, struct err *err)
{
    struct group *g = &m->group;
    bool ok = g->n <= 1 || write_group(m, err);
    group_reset(g);
    if (ok &&
        (m->out.len >= DONE_BYTES || m->n_members >= DONE_MEMBERS || m->n_done >= DONE_MEMBERS)) {
        ok = flush_done(m, err);
    }
    return ok && merging_rest(m);
}

/* ---- gathering ------------------------------------------------------------------------------- */

struct member {
    struct sv data;
    int64_t series[STORE_PARTS_MAX];
    size_t n_series;
    bool intact;
};

/* Reads a profile; its bytes are valid until db_body_done(). */
static bool read_member(struct merging *m, int64_t profile, struct member *ret, struct err *err)
{
    sqlite3_stmt *st = db_row_of(&m->db, SQL_PROFILE, profile, "a profile is missing", err);
    if (st == NULL) {
        return false;
    }
    uint64_t hash = (uint64_t)sqlite3_column_int64(st, 3);
    struct db_body body = {profile, sqlite3_column_int64(st, 7), sqlite3_column_int64(st, 8)};
    bool ok = blob_read_ids(db_blob(st, 6), ret->series, &ret->n_series);
    sqlite3_reset(st);
    if (!ok) {
        return db_damaged(&m->db, "the series of a profile", err);
    }
    if (!db_body(&m->db, &body, &ret->data, err)) {
        return false;
    }
    ret->intact = store_hash_fits(ret->data, hash);
    return true;
}

/* Adds the series of a member to those of the group. Returns false if the group would have too
 * many. */
static bool join_series(struct group *g, const struct member *member)
{
    int64_t all[STORE_PARTS_MAX];
    size_t n = g->n_series;
    memcpy(all, g->series, n * sizeof(all[0]));
    for (size_t i = 0; i < member->n_series; i++) {
        size_t k = 0;
        while (k < n && all[k] != member->series[i]) {
            k++;
        }
        if (k == STORE_PARTS_MAX) {
            return false;
        }
        if (k == n) {
            all[n++] = member->series[i];
        }
    }
    memcpy(g->series, all, n * sizeof(all[0]));
    g->n_series = n;
    return true;
}

static bool join(struct merging *m, const struct single *one, const struct member *member,
                 struct err *err)
{
    struct group *g = &m->group;
    if (g->merge == NULL) {
        struct merge_options o = {.bytes_max = MERGE_BYTES_MAX, .mode = MERGE_SUM};
        g->merge = merge_new(&o, err);
        g->first = one;
        g->until_ns = 0;
    }
    size_t n_series = g->n_series;
    if (g->merge == NULL || !join_series(g, member)) {
        return g->merge != NULL && err_set(err, ERR_LIMIT, "too many series");
    }
    if (!merge_add(g->merge, member->data, err)) {
        g->n_series = n_series;
        return false;
    }
    g->members[g->n++] = one;
    g->bytes += member->data.n;
    g->until_ns = one->until_ns > g->until_ns ? one->until_ns : g->until_ns;
    return true;
}

/* Marks a profile so that no later pass tries to merge it. */
static bool leave_alone(struct merging *m, const struct single *one, struct err *err)
{
    return add_done(m, &one, 1, err) != NULL;
}

/* Adds a profile to the group. If it does not fit, the group is finished, and the profile begins
 * the next one. If it does not fit into an empty group either, it is marked and never merged. */
static bool take(struct merging *m, const struct single *one, struct err *err)
{
    struct member *member = calloc(1, sizeof(*member));
    struct err why = ERR_INIT;
    if (member == NULL) {
        return err_memory(err);
    }
    bool ok = read_member(m, one->profile, member, err);
    bool joined = ok && member->intact && join(m, one, member, &why);
    bool again = ok && !joined && m->group.n > 0 && why.kind == ERR_LIMIT;
    if (ok && !member->intact) {
        store_bad_found(m->store, m->file, &m->db, one->profile, 0, NULL);
    }
    db_body_done(&m->db);
    free(member);
    if (!ok || joined) {
        return ok;
    }
    if (again) {
        return finish_group(m, err) && take(m, one, err);
    }
    if (why.kind == ERR_MEMORY) {
        return err_set(err, ERR_MEMORY, "%s", why.msg);
    }
    if (m->group.n == 0) {
        group_reset(&m->group);
    }
    return leave_alone(m, one, err);
}

/* ---- one file -------------------------------------------------------------------------------- */

static int by_cell(const void *a, const void *b)
{
    const struct single *x = a;
    const struct single *y = b;
    if (x->cell != y->cell) {
        return x->cell < y->cell ? -1 : 1;
    }
    if (x->set != y->set) {
        return x->set < y->set ? -1 : 1;
    }
    if (x->unsplit != y->unsplit) {
        return x->unsplit ? 1 : -1;
    }
    if (x->time_ns != y->time_ns) {
        return x->time_ns < y->time_ns ? -1 : 1;
    }
    return x->profile < y->profile ? -1 : x->profile > y->profile;
}

static bool add_single(struct merging *m, size_t *cap, sqlite3_stmt *st, struct err *err)
{
    if (m->n == *cap) {
        *cap = *cap == 0 ? 1024 : 2 * *cap;
        struct single *at = reallocarray(m->at, *cap, sizeof(at[0]));
        if (at == NULL) {
            return err_memory(err);
        }
        m->at = at;
    }
    int64_t time_ns = sqlite3_column_int64(st, 2);
    int64_t series[STORE_PARTS_MAX];
    size_t n_series = 0;
    bool one = blob_read_ids(db_blob(st, 4), series, &n_series) && n_series == 1;
    m->at[m->n++] = (struct single){.profile = sqlite3_column_int64(st, 0),
                                    .set = sqlite3_column_int64(st, 1),
                                    .cell = time_ns / NS_PER_MS / m->merge_ms,
                                    .time_ns = time_ns,
                                    .until_ns = sqlite3_column_int64(st, 3),
                                    .only = one ? series[0] : 0};
    return true;
}

/* Lists the profiles that may be merged: none if nothing is to be merged. */
static bool list_singles(struct merging *m, struct err *err)
{
    sqlite3_stmt *st = db_statement(&m->db, SQL_SINGLES, err);
    size_t cap = 0;
    int row = st == NULL ? -1 : 0;
    while (st != NULL && m->merge_ms > 0 && m->n < SINGLES_MAX &&
           (row = db_step(&m->db, st, err)) == 1) {
        if (!add_single(m, &cap, st, err)) {
            row = -1;
            break;
        }
    }
    sqlite3_reset(st);
    if (m->n > 0) {
        qsort(m->at, m->n, sizeof(m->at[0]), by_cell);
    }
    m->group.members = calloc(m->n + 1, sizeof(void *));
    return row >= 0 && (m->group.members != NULL || err_memory(err));
}

static bool same_cell(const struct single *a, const struct single *b)
{
    return a->set == b->set && a->cell == b->cell && a->unsplit == b->unsplit;
}

/* Finds the series without labels of a set; 0: there is none. */
static bool find_unlabelled(struct merging *m, int64_t set, int64_t *ret, struct err *err)
{
    const struct buf *labels = &m->unsplit.no_labels;
    sqlite3_stmt *st = db_statement(&m->db, SQL_FIND_SERIES, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, set);
    db_bind_blob(st, 2, (struct sv){labels->data, labels->len});
    int row = db_step(&m->db, st, err);
    *ret = row == 1 ? sqlite3_column_int64(st, 0) : 0;
    sqlite3_reset(st);
    return row >= 0;
}

static bool take_set(struct merging *m, int64_t set, struct err *err)
{
    sqlite3_stmt *st = db_statement(&m->db, SQL_SET, err);
    if (st == NULL) {
        return false;
    }
    sqlite3_bind_int64(st, 1, set);
    int row = db_step(&m->db, st, err);
    unsplit_take_set(&m->unsplit, row == 1 ? db_blob(st, 0) : SV(""));
    sqlite3_reset(st);
    return row >= 0;
}

/* Reads whether a profile is unsplit. One that has changed on the disk counts as split. */
static bool read_unsplit(struct merging *m, struct single *one, struct err *err)
{
    struct member member;
    bool ok = read_member(m, one->profile, &member, err) &&
              (!member.intact || unsplit_read(&m->unsplit, member.data, &one->unsplit, err));
    db_body_done(&m->db);
    return ok;
}

/* Sorts the unsplit profiles of a cell after its other ones. Only profiles whose only series is the
 * one without labels can be unsplit, and they are read only if the cell has others as well. */
static bool part_cell(struct merging *m, struct single *at, size_t n, struct err *err)
{
    int64_t unlabelled = 0;
    size_t same = 0;
    size_t alone = 0;
    for (size_t i = 0; i < n; i++) {
        same += at[i].only == at[0].only;
        alone += at[i].only != 0;
    }
    if (alone == 0 || same == n) {
        return true;
    }
    bool ok = find_unlabelled(m, at[0].set, &unlabelled, err) &&
              (unlabelled == 0 || take_set(m, at[0].set, err));
    for (size_t i = 0; ok && unlabelled != 0 && i < n; i++) {
        ok = at[i].only != unlabelled || read_unsplit(m, &at[i], err);
    }
    qsort(at, n, sizeof(at[0]), by_cell);
    return ok;
}

/* Parts the cell that begins with a profile. */
static bool part_cell_from(struct merging *m, size_t i, struct err *err)
{
    size_t n = 1;
    if (i > 0 && m->at[i].set == m->at[i - 1].set && m->at[i].cell == m->at[i - 1].cell) {
        return true; /* it begins none */
    }
    while (i + n < m->n && same_cell(&m->at[i], &m->at[i + n])) {
        n++;
    }
    return part_cell(m, &m->at[i], n, err);
}

static bool merge_all(struct merging *m, struct err *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < m->n; i++) {
        if (!part_cell_from(m, i, err)) {
            return false;
        }
        const struct single *one = &m->at[i];
        bool alone =
            (i == 0 || !same_cell(one, one - 1)) && (i + 1 == m->n || !same_cell(one, one + 1));
        bool last = i + 1 == m->n || !same_cell(one, one + 1);
        ok = (alone || take(m, one, err)) && (!last || m->group.n == 0 || finish_group(m, err));
    }
    return ok && flush_done(m, err);
}

/* Gives the pages that the merged profiles have freed back to the file system. */
static bool shrink(struct merging *m, struct err *err)
{
    int64_t left = 1;
    while (left > 0) {
        /* The writer of the file must have no transaction of its own. */
        pthread_mutex_lock(&m->store->write_lock);
        store_index_file_locked(m->store, m->file);
        sqlite3_stmt *st = db_statement(&m->db, SQL_SHRINK, err);
        int row = st == NULL ? -1 : 1;
        while (row == 1) {
            row = db_step(&m->db, st, err);
        }
        pthread_mutex_unlock(&m->store->write_lock);
        st = row == 0 ? db_statement(&m->db, SQL_FREE_PAGES, err) : NULL;
        if (st == NULL || db_step(&m->db, st, err) != 1) {
            return false;
        }
        left = sqlite3_column_int64(st, 0);
        sqlite3_reset(st);
        if (!merging_rest(m)) {
            return true;
        }
    }
    return db_copy_log(&m->db, DB_COPY_AND_WAIT, err);
}

/* Records the present size of the file. */
static void note_bytes(struct merging *m)
{
    uint64_t bytes;
    if (m->db.handle != NULL && db_data_bytes(&m->db, &bytes, NULL)) {
        bytes += store_file_data_size(m->file);
        pthread_mutex_lock(&m->store->lock);
        m->file->data_bytes = bytes;
        pthread_mutex_unlock(&m->store->lock);
    }
    store_log_note(m->store, m->file);
}

static void report(struct merging *m, const struct err *err)
{
    struct store *s = m->store;
    metric_inc(s->metrics.merge_failures);
    if (m->db.fault == DB_FINE || m->db.fault == DB_UNREADABLE) {
        log_warn(s->options.log, "profiles of the store cannot be merged",
                 LOG_STR("endpoint", s->options.name), LOG_STR("file", m->file->path),
                 LOG_ERR(err));
    } else {
        store_file_fault(s, m->file, m->db.fault, err->msg);
    }
}

static void merging_done(struct merging *m)
{
    group_reset(&m->group);
    free((void *)m->group.members);
    free(m->at);
    free(m->done);
    free(m->members);
    buf_done(&m->out);
    buf_done(&m->blob);
    unsplit_done(&m->unsplit);
    db_close(&m->db);
}

static void merge_file(struct store *s, struct store_file *f, int64_t merge_ms)
{
    struct err err = ERR_INIT;
    bool empty;
    struct merging m = {
        .store = s, .file = f, .paid_ns = store_merge_cpu_ns(), .merge_ms = merge_ms};
    buf_init(&m.out, RESULT_BYTES_MAX + DONE_BYTES);
    buf_init(&m.blob, DONE_MEMBERS * 16 + DONE_BYTES);
    store_index_file(s, f);
    pthread_mutex_lock(&s->lock);
    m.left = f->singles;
    pthread_mutex_unlock(&s->lock);
    bool opened = db_open(&m.db, f->path, false, &empty, &err);
    if (opened) {
        store_log_limit(s, &m.db);
    }
    bool ok = opened && unsplit_init(&m.unsplit, &err) &&
              (empty || (list_singles(&m, &err) && merge_all(&m, &err) && shrink(&m, &err) &&
                         sealing_seal(&m, &err)));
    if (!ok && err.kind != ERR_NONE) {
        report(&m, &err);
    }
    note_bytes(&m);
    merging_done(&m);
    pthread_mutex_lock(&s->lock);
    /* The unmerged profiles that remain after a complete pass cannot be merged. The next pass runs
     * when their number differs, because profiles were added or this pass has failed. */
    f->left = ok ? m.left : 0;
    f->sealed = f->sealed || (ok && f->log_bytes == 0 && f->version == 1);
    pthread_mutex_unlock(&s->lock);
}

static bool is_closed(const struct store_file *f, int64_t now_ns)
{
    return store_file_until_ns(f) < now_ns - GRACE_MS * NS_PER_MS;
}

static bool is_due(struct store *s, const struct store_file *f)
{
    pthread_mutex_lock(&s->lock);
    bool usable = !s->stopping && !f->gone && !f->frozen && !f->unindexed && f->fault == DB_FINE;
    bool merge = usable && f->singles > 1 && f->singles != f->left;
    bool seal = usable && !f->sealed && !f->unwritable && f->profiles > 0;
    pthread_mutex_unlock(&s->lock);
    return merge || (seal && !store_is_writing(s, f));
}

void store_merge_files(struct store *s, int64_t now_ns)
{
    struct store_file **files;
    size_t n;
    int64_t merge_ms = s->limits.merge_ms;
    if ((merge_ms <= 0 && s->archive == NULL) ||
        !store_files_in(s, INT64_MIN, INT64_MAX, &files, &n, NULL)) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_closed(files[i], now_ns)) {
            continue;
        }
        if (s->archive != NULL) {
            /* The archive waits for sealed files, and none is sealed while it is open. */
            store_writers_close(s, files[i]);
        }
        if (is_due(s, files[i])) {
            merge_file(s, files[i], merge_ms);
        }
    }
    store_files_free(files, n);
}
