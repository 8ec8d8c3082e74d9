/* Puts batches of profiles into the files of their stretches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pprof/gzip.h"
#include "store/blob.h"
#include "store/parts.h"
#include "store/rows.h"
#include "store/writing.h"

/* A profile that inflates to more is refused. */
#define INFLATED_MAX ((size_t)32 * 1024 * 1024)
/* Limit of a time, in ms: ids have 47 bits for it. */
#define TIME_MS_MAX (INT64_C(1) << 47)
/* The time inside a profile is ignored if it is further than this before or after the window of the
 * profile: a wrong clock, or a sender that wants a file for each of its profiles, cannot choose the
 * file. Pyroscope accepts profiles within the same bounds around its own clock. */
#define EARLY_NS (3600 * NS_PER_S)
#define LATE_NS (600 * NS_PER_S)
/* The longest window of a profile of CPU time that is believed. */
#define WINDOW_MAX_NS (24 * 3600 * NS_PER_S)

/* A profile while it is put. */
struct putting {
    struct store *store;
    struct store_put *put;
    struct writing *w;
    struct parts parts;
    struct buf blob;
    struct buf written;      /* the facts as the data file has them */
    struct data_facts facts; /* refers to `written` */
    struct rows rows;
    int64_t time_ns; /* the time at which the profile counts */
    int64_t profile; /* its row */
};

static bool put_set(struct putting *p, struct err *err)
{
    const struct pprof_summary *s = &p->parts.summary;
    struct set_type types[SUMMARY_TYPES_MAX];
    struct set set = {.labels = p->put->labels,
                      .n_labels = p->put->n_labels,
                      .types = types,
                      .n_types = s->n[PROFILE_SAMPLE_TYPE],
                      .period = {s->period_type.type_text, s->period_type.unit_text}};
    for (size_t i = 0; i < set.n_types; i++) {
        types[i] = (struct set_type){s->types[i].type_text, s->types[i].unit_text};
    }
    buf_clear(&p->blob);
    return blob_put_set(&set, &p->blob) ||
           err_set(err, ERR_INPUT, "its labels have more than %zu bytes", STORE_BLOB_MAX);
}

/* Returns the end of the window of a profile. A profile of CPU time begins at the time inside it,
 * by the clock of its program, so it ends after its duration: with an end by another clock, the
 * difference would not be the time that it covers. Deltas, however, have the time of their end. */
static int64_t until_of(const struct putting *p)
{
    const struct pprof_summary *s = &p->parts.summary;
    bool measured =
        s->time_ns == p->time_ns && s->duration_ns > 0 && s->duration_ns < WINDOW_MAX_NS;
    if (measured && sv_eq(s->period_type.type_text, SV("cpu"))) {
        return p->time_ns + s->duration_ns;
    }
    return p->put->until_ns > p->time_ns ? p->put->until_ns : p->time_ns;
}

/* Writes the facts as the data file has them; the row is not known yet. */
static bool write_facts(struct putting *p, struct err *err)
{
    const struct store_put *put = p->put;
    size_t n_columns = p->parts.summary.n[PROFILE_SAMPLE_TYPE];
    struct data_facts facts = {
        .time_ns = p->time_ns,
        .until_ns = until_of(p),
        .hash = store_hash(put->data, put->salt),
        .format = put->format,
        /* In a merge, negative values of one profile would reduce the values of another one. */
        .mergeable = put->format == PROFILE_PPROF && !p->parts.negative,
        .n_columns = n_columns,
        .n_parts = p->parts.n,
        .set = {p->blob.data, p->blob.len}};
    buf_clear(&p->written);
    bool ok = data_put_facts(&facts, &p->written);
    for (size_t i = 0; ok && i < p->parts.n; i++) {
        const struct part *part = &p->parts.at[i];
        buf_clear(&p->blob);
        ok = blob_put_labels(part->labels, part->n_labels, &p->blob) &&
             data_put_part((struct sv){p->blob.data, p->blob.len}, part->sums, n_columns,
                           &p->written);
    }
    if (!ok) {
        bool large = buf_too_big(&p->written) || buf_too_big(&p->blob);
        return large
                   ? err_set(err, ERR_LIMIT, "its labels have more than %zu bytes", STORE_BLOB_MAX)
                   : err_memory(err);
    }
    data_set_row(&p->written, 1); /* a row that data_read_facts() accepts */
    ok = data_read_facts((struct sv){p->written.data, p->written.len}, &p->facts);
    p->facts.profile = 0;
    return ok || err_set(err, ERR_INPUT, "it has too many columns");
}

/* Looks for the profile in the other files that cover an instant. */
static bool find_twin_elsewhere(struct putting *p, int64_t time_ns)
{
    struct sv rest = p->facts.parts;
    struct data_part first;
    if (!data_next_part(&p->facts, &rest, &first)) {
        return false;
    }
    const struct store_twin twin = {
        .set = p->facts.set, .labels = first.labels, .time_ns = time_ns, .hash = p->facts.hash};
    return store_find_twin(p->store, &twin, p->w->file, &p->profile);
}

/* Looks for the same profile, as an earlier attempt to put it may have stored it. Earlier versions
 * stored a profile at the beginning of its window, so this time is searched as well. */
static bool find_twin(struct putting *p, bool *ret_found, struct err *err)
{
    const int64_t times[] = {p->time_ns, p->put->from_ns};
    size_t n = times[0] == times[1] ? 1 : 2;
    *ret_found = false;
    for (size_t i = 0; p->facts.n_parts > 0 && i < n && !*ret_found; i++) {
        if (!rows_find_twin(p->w, &p->facts, &p->rows, times[i], &p->profile, err)) {
            return false;
        }
        *ret_found = p->profile > 0 || find_twin_elsewhere(p, times[i]);
        p->time_ns = *ret_found ? times[i] : p->time_ns;
    }
    return true;
}

/* ---- one profile ----------------------------------------------------------------------------- */

/* Returns the time at which a profile counts: the time inside it, which other destinations are sent
 * as well. If that time is missing or wrong, the beginning of the window replaces it. */
static int64_t time_of(const struct store_put *put, const struct pprof_summary *s)
{
    int64_t end_ns = put->until_ns > put->from_ns ? put->until_ns : put->from_ns;
    bool has_time = put->format == PROFILE_PPROF && s->time_ns > 0;
    bool believed =
        has_time && s->time_ns >= put->from_ns - EARLY_NS && s->time_ns - LATE_NS <= end_ns;
    return believed ? s->time_ns : put->from_ns;
}

/* Gives a profile without samples a part, so that it has a point: a program that did nothing for
 * ten seconds was profiled for ten seconds. */
static bool add_empty_part(struct putting *p, struct err *err)
{
    struct parts *parts = &p->parts;
    size_t columns = parts->summary.n[PROFILE_SAMPLE_TYPE];
    if (columns == 0) {
        return true;
    }
    parts->at = scratch_zeroed(p->store->scratch, 1, sizeof(parts->at[0]));
    int64_t *sums = scratch_zeroed(p->store->scratch, columns + 1, sizeof(sums[0]));
    if (parts->at == NULL || sums == NULL) {
        return err_memory(err);
    }
    parts->at[0].sums = sums;
    parts->n = 1;
    return true;
}

/* Inflates and checks the profile, and reads its sums. An error means that the profile is at fault.
 */
static bool read_profile(struct putting *p, struct err *err)
{
    struct store_put *put = p->put;
    struct sv plain;
    if (put->from_ns < 0 || put->from_ns / NS_PER_MS >= TIME_MS_MAX) {
        return err_set(err, ERR_INPUT, "its time is not between 1970 and 2262");
    }
    if (put->format == PROFILE_PPROF &&
        (!gzip_plain(p->store->scratch, put->data, INFLATED_MAX, 0, &plain, err) ||
         (plain.n > INFLATED_MAX &&
          !err_set(err, ERR_LIMIT, "has more than %zu bytes", INFLATED_MAX)) ||
         !parts_read(p->store->scratch, plain, put->labels, put->n_labels, false, &p->parts,
                     err))) {
        return false;
    }
    if (put->format == PROFILE_PPROF && p->parts.n == 0 && !add_empty_part(p, err)) {
        return false;
    }
    p->time_ns = time_of(put, &p->parts.summary);
    return put_set(p, err) && write_facts(p, err);
}

static bool write_profile(struct putting *p, struct err *err)
{
    struct writing *w = p->w;
    bool twin;
    if (!writing_begin(w, err) || !rows_find(w, &p->facts, &p->rows, err) ||
        !find_twin(p, &twin, err)) {
        return false;
    }
    if (twin) {
        metric_inc(p->store->metrics.duplicates);
        return true;
    }
    int64_t place = writing_place(w, p->written.len);
    if (!rows_add(w, &p->facts, &p->rows, place, p->put->data.n, &p->profile, err)) {
        return false;
    }
    data_set_row(&p->written, p->profile);
    if (!writing_append(w, (struct sv){p->written.data, p->written.len}, p->put->data, err)) {
        return false;
    }
    writing_note(&w->batch, p->time_ns);
    metric_add(p->store->metrics.put_bytes, p->put->data.n);
    return true;
}

static void refuse(struct store_put *put, enum store_taken taken, const char *problem)
{
    put->taken = taken;
    (void)snprintf(put->problem, sizeof(put->problem), "%s", problem);
}

/* Puts one profile. Returns false if it needs a further file, and every file that may be open has a
 * part in the batch: then the batch has to be committed first. */
static bool put_one(struct putting *p)
{
    struct err err = ERR_INIT;
    bool no_place = false;
    scratch_reset(p->store->scratch);
    p->parts = (struct parts){.n = 0};
    p->put->writing = NULL;
    p->put->taken = STORE_FAILED; /* until it has been put */
    if (!read_profile(p, &err)) {
        refuse(p->put, err.kind == ERR_MEMORY ? STORE_FAILED : STORE_REFUSED, err.msg);
        return true;
    }
    p->w = writing_of(p->store, p->time_ns, &no_place, &err);
    if (no_place) {
        return false;
    }
    if (p->w == NULL || p->w->problem.kind != ERR_NONE) {
        refuse(p->put, STORE_FAILED, p->w != NULL ? p->w->problem.msg : err.msg);
        return true;
    }
    if (!write_profile(p, &err)) {
        writing_give_up(p->store, p->w, &err);
        refuse(p->put, STORE_FAILED, p->w->problem.msg);
        return true;
    }
    if (p->parts.unsplit) {
        metric_inc(p->store->metrics.unsplit);
    }
    p->put->taken = STORE_TAKEN;
    p->put->problem[0] = '\0';
    p->put->writing = p->w;
    store_id_format(p->time_ns, p->facts.hash, p->profile, p->put->id);
    return true;
}

/* ---- a batch --------------------------------------------------------------------------------- */

static void commit(struct store *s, struct writing *w)
{
    struct err err = ERR_INIT;
    if (!writing_commit(s, w, &err)) {
        writing_give_up(s, w, &err);
    }
}

static void commit_all(struct store *s)
{
    int64_t begin_ns = clock_mono_ns();
    for (size_t i = 0; i < STORE_WRITERS_MAX; i++) {
        if (s->writers[i] != NULL && s->writers[i]->open) {
            commit(s, s->writers[i]);
        }
    }
    metric_observe(s->metrics.commit_seconds,
                   (double)(clock_mono_ns() - begin_ns) / (double)NS_PER_S);
}

static void count(const struct store *s, const struct store_put *put)
{
    static const char *const results[] = {
        [STORE_TAKEN] = "taken", [STORE_REFUSED] = "refused", [STORE_FAILED] = "failed"};
    metric_inc(
        metric_cell(s->metrics.puts, (const char *const[]){s->options.name, results[put->taken]}));
}

/* Commits, and sets the results of the profiles since the last commit. */
static bool settle(struct store *s, struct store_put *profiles, size_t n)
{
    bool all = true;
    commit_all(s);
    for (size_t i = 0; i < n; i++) {
        const struct writing *w = profiles[i].writing;
        if (profiles[i].taken == STORE_TAKEN && w->problem.kind != ERR_NONE) {
            refuse(&profiles[i], STORE_FAILED, w->problem.msg);
        }
        profiles[i].writing = NULL;
        all = all && profiles[i].taken == STORE_TAKEN;
        count(s, &profiles[i]);
    }
    s->batch_start = s->uses;
    return all;
}

static bool put_all(struct store *s, struct putting *p, struct store_put *profiles, size_t n)
{
    size_t settled = 0;
    bool all = true;
    for (size_t i = 0; i < n; i++) {
        p->put = &profiles[i];
        if (!put_one(p)) {
            all = settle(s, profiles + settled, i - settled) && all;
            settled = i;
            (void)put_one(p);
        }
    }
    return settle(s, profiles + settled, n - settled) && all;
}

static bool fail_all(const struct store *s, struct store_put *profiles, size_t n,
                     const struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        refuse(&profiles[i], STORE_FAILED, err->msg);
        count(s, &profiles[i]);
    }
    return false;
}

bool store_put_opening(struct store *s, struct store_put *profiles, size_t n)
{
    struct err err = ERR_INIT;
    struct putting p = {.store = s};
    uint64_t bytes = 0;
    buf_init(&p.written, DATA_FACTS_MAX);
    for (size_t i = 0; i < n; i++) {
        bytes += profiles[i].data.n;
    }
    buf_init(&p.blob, STORE_BLOB_MAX);
    pthread_mutex_lock(&s->write_lock);
    writing_begin_batch(s);
    bool ready = store_take_directory(s, &err) && store_has_room(s, bytes, n, &err);
    bool all = ready ? put_all(s, &p, profiles, n) : fail_all(s, profiles, n, &err);
    pthread_mutex_unlock(&s->write_lock);
    buf_done(&p.written);
    buf_done(&p.blob);
    return all;
}

bool store_put(struct store *s, struct store_put *profiles, size_t n)
{
    struct err err = ERR_INIT;
    if (s->options.read_only) {
        err_set(&err, ERR_REFUSED, "the store is only read (read_only)");
        return fail_all(s, profiles, n, &err);
    }
    return store_is_open(s, &err) ? store_put_opening(s, profiles, n)
                                  : fail_all(s, profiles, n, &err);
}
