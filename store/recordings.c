/* Recordings of Java's Flight Recorder that an earlier version has stored unchanged.
 *
 * Queries cannot show a recording. Therefore the first start of this version puts the profiles in
 * each recording beside it, so that queries find and show them like all others. The recordings
 * stay, and can be fetched by their ids. A file in the directory records that this was done; since
 * then no recording is stored. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "jfr/jfr.h"
#include "store/blob.h"
#include "store/private.h"

#define DONE_NAME "recordings.converted"
/* Labels that a profile gets in addition to those of its recording. */
#define LABELS_ADDED 3
#define SET_MAX ((size_t)4 * 1024 * 1024)

/* A recording as it was stored; both buffers are from malloc(). */
struct stored {
    int64_t profile;
    int64_t from_ns;
    int64_t until_ns;
    struct sv set;
    struct sv data;
};

static void stored_done(struct stored *r)
{
    free((char *)(uintptr_t)r->set.p);
    free((char *)(uintptr_t)r->data.p);
}

static bool copy(struct sv from, struct sv *ret, struct err *err)
{
    char *p = malloc(from.n + 1);
    if (p == NULL) {
        return err_memory(err);
    }
    memcpy(p, from.p, from.n);
    ret->p = p;
    ret->n = from.n;
    return true;
}

/* Reads the first recording of a file after a profile. Returns 1, 0 at the end, or -1 on failure.
 */
static int next_recording(struct store *s, struct store_file *f, int64_t after, struct stored *ret,
                          struct err *err)
{
    bool skip;
    int row = -1;
    struct reader_conn *c = store_reader_take(s, f, &skip, err);
    *ret = (struct stored){.profile = after};
    if (c == NULL) {
        return skip ? 0 : -1;
    }
    sqlite3_stmt *st = db_statement(&c->db, SQL_NEXT_RECORDING, err);
    if (st != NULL) {
        sqlite3_bind_int64(st, 1, after);
        row = db_step(&c->db, st, err);
        if (row == 1) {
            ret->profile = sqlite3_column_int64(st, 0);
            ret->from_ns = sqlite3_column_int64(st, 1);
            ret->until_ns = sqlite3_column_int64(st, 2);
            const struct db_body body = {ret->profile, sqlite3_column_int64(st, 4),
                                         sqlite3_column_int64(st, 5)};
            struct sv data;
            row = db_body(&c->db, &body, &data, err) && copy(db_blob(st, 3), &ret->set, err) &&
                          copy(data, &ret->data, err)
                      ? 1
                      : -1;
            db_body_done(&c->db);
        }
        sqlite3_reset(st);
    }
    store_reader_give(s, c, err);
    return row;
}

static int by_name(const void *a, const void *b)
{
    const struct label *x = a;
    const struct label *y = b;
    return sv_cmp(x->name, y->name);
}

/* Makes the labels of a profile: those of its recording and the added ones. Returns their number.
 */
static size_t make_labels(const struct set *set, const struct label added[LABELS_ADDED],
                          struct label *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n_labels; i++) {
        bool replaced = false;
        for (size_t k = 0; k < LABELS_ADDED; k++) {
            replaced = replaced || sv_eq(set->labels[i].name, added[k].name);
        }
        if (!replaced) {
            ret[n++] = set->labels[i];
        }
    }
    for (size_t k = 0; k < LABELS_ADDED; k++) {
        if (added[k].value.n > 0) {
            ret[n++] = added[k];
        }
    }
    qsort(ret, n, sizeof(*ret), by_name);
    return n;
}

static bool put_profiles(struct store *s, const struct stored *r, const struct set *set,
                         const struct jfr_result *result, struct err *err)
{
    struct label *labels = calloc(set->n_labels + LABELS_ADDED, sizeof(*labels));
    if (labels == NULL) {
        return err_memory(err);
    }
    bool ok = true;
    for (size_t i = 0; ok && i < result->n; i++) {
        const struct jfr_made *made = &result->made[i];
        const struct label added[LABELS_ADDED] = {{SV(LABEL_NAME), sv_from(made->name)},
                                                  {SV(LABEL_DELTA), SV("false")},
                                                  {SV("jfr_event"), sv_from(result->event)}};
        struct store_put put = {.labels = labels,
                                .n_labels = make_labels(set, added, labels),
                                .data = {made->data, made->size},
                                .from_ns = r->from_ns,
                                .until_ns = r->until_ns};
        ok = store_put_opening(s, &put, 1) || put.taken == STORE_REFUSED ||
             err_set(err, ERR_SYSTEM, "%s", put.problem);
    }
    free(labels);
    return ok;
}

/* Converts a recording. A recording that cannot be read is skipped. False if the store cannot be
 * written. */
static bool convert(struct store *s, const struct stored *r, size_t *made, struct err *err)
{
    struct jfr_result result;
    struct set set;
    struct arena *arena = arena_new(SET_MAX);
    const struct jfr_input in = {
        .body = r->data, .options = {.seed = (uint64_t)clock_mono_ns()}, .scratch = scratch_new()};
    bool ok = true;
    if (arena != NULL && blob_read_set(r->set, arena, &set) && jfr_convert(&in, &result, NULL)) {
        ok = put_profiles(s, r, &set, &result, err);
        *made += result.n;
        jfr_result_done(&result);
    }
    scratch_free(in.scratch);
    arena_free(arena);
    return ok;
}

static bool convert_file(struct store *s, struct store_file *f, size_t *made, struct err *err)
{
    struct stored r = {.profile = 0};
    int row;
    while ((row = next_recording(s, f, r.profile, &r, err)) == 1) {
        bool ok = convert(s, &r, made, err);
        stored_done(&r);
        if (!ok) {
            return false;
        }
    }
    stored_done(&r);
    return row == 0;
}

/* Lists the files that exist now, since puts may create others. */
static struct store_file **list_files(struct store *s, size_t *ret_n)
{
    pthread_mutex_lock(&s->lock);
    size_t n = s->n_files;
    struct store_file **files = calloc(n + 1, sizeof(struct store_file *));
    for (size_t i = 0; files != NULL && i < n; i++) {
        files[i] = store_file_ref(s->files[i]);
    }
    pthread_mutex_unlock(&s->lock);
    *ret_n = files != NULL ? n : 0;
    return files;
}

void store_convert_recordings(struct store *s)
{
    size_t n;
    size_t made = 0;
    struct err err = ERR_INIT;
    if (faccessat(s->directory_fd, DONE_NAME, F_OK, 0) == 0) {
        return;
    }
    struct store_file **files = list_files(s, &n);
    bool ok = files != NULL;
    for (size_t i = 0; files != NULL && i < n; i++) {
        ok = (files[i]->fault != DB_FINE || convert_file(s, files[i], &made, &err)) && ok;
        store_file_unref(files[i]);
    }
    free(files);
    if (made > 0) {
        log_info(s->options.log, "recordings of the store were converted",
                 LOG_STR("endpoint", s->options.name), LOG_INT("profiles", made));
    }
    if (!ok) {
        log_warn(s->options.log, "recordings of the store could not be converted",
                 LOG_STR("endpoint", s->options.name), LOG_ERR(&err));
        /* the next start tries again; profiles that were put are recognised and not put twice */
        return;
    }
    int fd = openat(s->directory_fd, DONE_NAME, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) {
        close(fd);
    }
}
