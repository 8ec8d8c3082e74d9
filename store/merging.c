/* Merges the profiles of a series in closed stretches: one merged profile for each five minutes.
 *
 * Profiles are read and merged without a transaction. Then one transaction replaces their bytes, so
 * a crash leaves either the profiles or their merge. The times, sums and ids of the single profiles
 * are kept. After each merge the thread sleeps long enough to stay within its share of a core.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "pprof/merge.h"
#include "store/blob.h"
#include "store/private.h"

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

struct single {
    int64_t set;
    int64_t cell; /* the time of the profile divided by the time that a merge covers */
    int64_t time_ns;
    int64_t until_ns;
    int64_t profile;
};

/* The merge of a cell, or of as many profiles of the cell as fit into memory. */
struct group {
    struct merge *merge; /* NULL: none yet */
    const struct single *first;
    const struct single **members;
    size_t n;
    int64_t until_ns;
    uint64_t bytes;
    int64_t series[STORE_PARTS_MAX];
    size_t n_series;
};

struct merging {
    struct store *store;
    struct store_file *file;
    struct db db; /* the connection for reading and writing */
    struct single *at;
    size_t n;
    struct group group;
    struct buf out;
    struct buf blob;
    int64_t paid_ns;  /* see store_merge_pause_ms() */
    uint64_t left;    /* profiles of the file that are not merged, as this pass counts them */
    int64_t merge_ms; /* the setting at the start of the pass; above 0 */
};

/* ---- the share of a core --------------------------------------------------------------------- */

static int64_t cpu_ns(void)
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

/* Sleeps as long as the thread's share of a core requires. Returns false if the store closes. */
static bool rest(struct merging *m)
{
    unsigned percent = m->store->limits.merge_cpu != 0 ? m->store->limits.merge_cpu : CPU_PERCENT;
    return store_pause(m->store, store_merge_pause_ms(cpu_ns(), percent, &m->paid_ns));
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

static bool add_merge(struct merging *m, int64_t *ret_merge, struct err *err)
{
    const struct group *g = &m->group;
    struct sv data = {m->out.data, m->out.len};
    sqlite3_stmt *st = db_statement(&m->db, SQL_ADD_MERGE, err);
    buf_clear(&m->blob);
    if (st == NULL || !blob_put_ids(g->series, g->n_series, &m->blob)) {
        return st != NULL && err_memory(err);
    }
    sqlite3_bind_int64(st, 1, g->first->set);
    sqlite3_bind_int64(st, 2, g->first->time_ns);
    sqlite3_bind_int64(st, 3, g->until_ns);
    sqlite3_bind_int64(st, 4, g->first->profile);
    sqlite3_bind_int64(st, 5, (int64_t)blob_hash(data, NULL, 0));
    sqlite3_bind_int64(st, 6, (int64_t)g->n);
    db_bind_blob(st, 7, (struct sv){m->blob.data, m->blob.len});
    db_bind_blob(st, 8, data);
    int row = db_step(&m->db, st, err);
    (void)sqlite3_clear_bindings(st);
    *ret_merge = sqlite3_last_insert_rowid(m->db.handle);
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

static bool write_rows(struct merging *m, struct err *err)
{
    const struct group *g = &m->group;
    int64_t merge = 0;
    if (!add_merge(m, &merge, err)) {
        return false;
    }
    for (size_t i = 0; i < g->n; i++) {
        if (!set_merge(m, g->members[i]->profile, merge, err) ||
            !drop_body(m, g->members[i]->profile, err)) {
            return false;
        }
    }
    return note_merged(m, g->n, err);
}

static bool in_transaction(struct merging *m, bool (*write)(struct merging *m, struct err *err),
                           struct err *err)
{
    bool ok = db_run(&m->db, SQL_BEGIN, err) && write(m, err) && db_run(&m->db, SQL_COMMIT, err);
    if (!ok && !sqlite3_get_autocommit(m->db.handle)) {
        (void)db_run(&m->db, SQL_ROLLBACK, NULL);
    }
    return ok;
}

static void forget_singles(struct merging *m, size_t n)
{
    pthread_mutex_lock(&m->store->lock);
    m->file->singles -= m->file->singles < n ? m->file->singles : n;
    m->left -= m->left < n ? m->left : n;
    pthread_mutex_unlock(&m->store->lock);
}

static void group_reset(struct group *g)
{
    g->merge = merge_free(g->merge);
    g->n = 0;
    g->n_series = 0;
    g->bytes = 0;
}

/* Replaces the members of the group by their merge. If the group has a single member, it is not
 * changed. */
static bool finish_group(struct merging *m, struct err *err)
{
    struct group *g = &m->group;
    bool ok = true;
    if (g->n > 1) {
        buf_clear(&m->out);
        ok = merge_write(g->merge, &m->out, err) && exclude_scans(m);
        if (ok) {
            ok = in_transaction(m, write_rows, err);
            admit_scans(m);
        }
        if (ok) {
            forget_singles(m, g->n);
            metric_add(m->store->metrics.merged, g->n);
            metric_add(m->store->metrics.merged_bytes, g->bytes);
            metric_add(m->store->metrics.merges_bytes, m->out.len);
        }
    }
    group_reset(g);
    return ok && rest(m);
}

/* ---- gathering ------------------------------------------------------------------------------- */

struct member {
    struct sv data;
    int64_t series[STORE_PARTS_MAX];
    size_t n_series;
    bool intact;
};

/* Reads a profile; its bytes are valid until SQL_BODY is reset. */
static bool read_member(struct merging *m, int64_t profile, struct member *ret, struct err *err)
{
    sqlite3_stmt *st = db_row_of(&m->db, SQL_PROFILE, profile, "a profile is missing", err);
    if (st == NULL) {
        return false;
    }
    uint64_t hash = (uint64_t)sqlite3_column_int64(st, 3);
    bool ok = blob_read_ids(db_blob(st, 6), ret->series, &ret->n_series);
    sqlite3_reset(st);
    if (!ok) {
        return db_damaged(&m->db, "the series of a profile", err);
    }
    st = db_row_of(&m->db, SQL_BODY, profile, "the bytes of a profile are missing", err);
    if (st == NULL) {
        return false;
    }
    ret->data = db_blob(st, 0);
    ret->intact = blob_hash(ret->data, NULL, 0) == hash;
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
    metric_inc(m->store->metrics.unmergeable);
    forget_singles(m, 1);
    return set_merge(m, one->profile, -1, err) && note_merged(m, 1, err);
}

/* Notes a profile whose bytes have changed, so that nothing counts it any more. */
static void note_bad(struct merging *m, const struct single *one)
{
    metric_inc(m->store->metrics.bad_rows);
    log_warn(m->store->options.log, "a profile of the store has changed on the disk",
             LOG_STR("endpoint", m->store->options.name), LOG_STR("file", m->file->path));
    store_bad_note(m->store, m->file, &m->db, one->profile, 0);
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
        note_bad(m, one);
    }
    sqlite3_reset(m->db.statements[SQL_BODY]);
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
    if (x->set != y->set) {
        return x->set < y->set ? -1 : 1;
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
    m->at[m->n++] = (struct single){.profile = sqlite3_column_int64(st, 0),
                                    .set = sqlite3_column_int64(st, 1),
                                    .cell = time_ns / NS_PER_MS / m->merge_ms,
                                    .time_ns = time_ns,
                                    .until_ns = sqlite3_column_int64(st, 3)};
    return true;
}

static bool list_singles(struct merging *m, struct err *err)
{
    sqlite3_stmt *st = db_statement(&m->db, SQL_SINGLES, err);
    size_t cap = 0;
    int row = st == NULL ? -1 : 0;
    while (st != NULL && m->n < SINGLES_MAX && (row = db_step(&m->db, st, err)) == 1) {
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
    return a->set == b->set && a->cell == b->cell;
}

static bool merge_all(struct merging *m, struct err *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < m->n; i++) {
        const struct single *one = &m->at[i];
        bool alone =
            (i == 0 || !same_cell(one, one - 1)) && (i + 1 == m->n || !same_cell(one, one + 1));
        bool last = i + 1 == m->n || !same_cell(one, one + 1);
        ok = (alone || take(m, one, err)) && (!last || m->group.n == 0 || finish_group(m, err));
    }
    return ok;
}

/* Gives the pages that the merged profiles have freed back to the file system. */
static bool shrink(struct merging *m, struct err *err)
{
    int64_t left = 1;
    while (left > 0) {
        sqlite3_stmt *st = db_statement(&m->db, SQL_SHRINK, err);
        int row = st == NULL ? -1 : 1;
        while (row == 1) {
            row = db_step(&m->db, st, err);
        }
        st = row == 0 ? db_statement(&m->db, SQL_FREE_PAGES, err) : NULL;
        if (st == NULL || db_step(&m->db, st, err) != 1) {
            return false;
        }
        left = sqlite3_column_int64(st, 0);
        sqlite3_reset(st);
        if (!rest(m)) {
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
        pthread_mutex_lock(&m->store->lock);
        m->file->data_bytes = bytes;
        pthread_mutex_unlock(&m->store->lock);
    }
    store_log_note(m->store, m->file);
}

static void merge_file(struct store *s, struct store_file *f, int64_t merge_ms)
{
    struct err err = ERR_INIT;
    bool empty;
    struct merging m = {.store = s, .file = f, .paid_ns = cpu_ns(), .merge_ms = merge_ms};
    buf_init(&m.out, RESULT_BYTES_MAX);
    buf_init(&m.blob, STORE_BLOB_MAX);
    pthread_mutex_lock(&s->lock);
    m.left = f->singles;
    pthread_mutex_unlock(&s->lock);
    bool opened = db_open(&m.db, f->path, false, &empty, &err);
    if (opened) {
        store_log_limit(s, &m.db);
    }
    bool ok =
        opened && (empty || (list_singles(&m, &err) && merge_all(&m, &err) && shrink(&m, &err)));
    if (!ok && err.kind != ERR_NONE) {
        metric_inc(s->metrics.merge_failures);
        if (m.db.fault == DB_FINE || m.db.fault == DB_UNREADABLE) {
            log_warn(s->options.log, "profiles of the store cannot be merged",
                     LOG_STR("endpoint", s->options.name), LOG_STR("file", f->path), LOG_ERR(&err));
        } else {
            store_file_fault(s, f, m.db.fault, err.msg);
        }
    }
    note_bytes(&m);
    group_reset(&m.group);
    free((void *)m.group.members);
    free(m.at);
    buf_done(&m.out);
    buf_done(&m.blob);
    db_close(&m.db);
    pthread_mutex_lock(&s->lock);
    /* The unmerged profiles that remain after a complete pass cannot be merged. The next pass runs
     * when their number differs, because profiles were added or this pass has failed. */
    f->left = ok ? m.left : 0;
    pthread_mutex_unlock(&s->lock);
}

static bool is_due(struct store *s, const struct store_file *f, int64_t now_ns)
{
    pthread_mutex_lock(&s->lock);
    bool due = !s->stopping && !f->gone && !f->frozen && f->fault == DB_FINE && f->singles > 1 &&
               f->singles != f->left;
    pthread_mutex_unlock(&s->lock);
    return due && store_file_until_ns(f) < now_ns - GRACE_MS * NS_PER_MS;
}

/* Notes whether a file is complete: its stretch is over, nothing in it can be merged any more, and
 * all of it is in the database. */
static void note_sealed(struct store *s, struct store_file *f, int64_t now_ns)
{
    char name[4096];
    struct stat st;
    if (store_file_until_ns(f) >= now_ns - GRACE_MS * NS_PER_MS) {
        return;
    }
    store_writers_close(s, f);
    store_readers_close(s, f);
    (void)snprintf(name, sizeof(name), "%s-wal", f->path);
    bool has_log = stat(name, &st) == 0 && st.st_size > 0;
    pthread_mutex_lock(&s->lock);
    f->sealed = !has_log && (f->singles <= 1 || f->singles == f->left);
    pthread_mutex_unlock(&s->lock);
}

void store_merge_files(struct store *s, int64_t now_ns)
{
    struct store_file **files;
    size_t n;
    int64_t merge_ms = s->limits.merge_ms;
    if (merge_ms <= 0 || !store_files_in(s, INT64_MIN, INT64_MAX, &files, &n, NULL)) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (is_due(s, files[i], now_ns)) {
            merge_file(s, files[i], merge_ms);
        }
        if (s->archive != NULL) {
            note_sealed(s, files[i], now_ns);
        }
    }
    store_files_free(files, n);
}
