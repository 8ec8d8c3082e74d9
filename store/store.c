#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/archive/archive.h"
#include "store/private.h"
#include "store/sums.h"

/* ---- metrics --------------------------------------------------------------------------------- */

static struct metric_cell *cell_of(struct store *s, enum metric_type type, const char *name,
                                   const char *help)
{
    return metric_cell_of(metrics_family(s->options.metrics, type, name, help, "endpoint", NULL),
                          s->options.name);
}

static void make_metrics(struct store *s)
{
    static const double buckets[] = {0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10};
    static const struct metric_desc commit = {
        .name = "profpull_store_commit_seconds",
        .help = "Time to commit a batch of profiles to the store.",
        .type = METRIC_HISTOGRAM,
        .labels = {"endpoint"},
        .buckets = buckets,
        .n_buckets = sizeof(buckets) / sizeof(buckets[0])};
    struct store_metrics *m = &s->metrics;
    struct metrics *all = s->options.metrics;
    m->puts = metrics_family(all, METRIC_COUNTER, "profpull_store_puts_total",
                             "Profiles put into the store, by result: taken, refused, failed.",
                             "endpoint", "result");
    m->faults = metrics_family(all, METRIC_COUNTER, "profpull_store_file_faults_total",
                               "Files of the store that were left alone from then on, by reason: "
                               "damaged, foreign, newer, unreadable, unwritable, misplaced, copy, "
                               "missing.",
                               "endpoint", "reason");
    m->commits = cell_of(s, METRIC_COUNTER, "profpull_store_commits_total",
                         "Transactions that put profiles into a file of the store.");
    m->commit_seconds = metric_cell_of(metrics_register(all, &commit), s->options.name);
    m->put_bytes = cell_of(s, METRIC_COUNTER, "profpull_store_put_bytes_total",
                           "Bytes of the profiles that were taken, as they came.");
    m->duplicates = cell_of(s, METRIC_COUNTER, "profpull_store_duplicates_total",
                            "Profiles that the store had already, and that were not kept twice.");
    m->unsplit = cell_of(s, METRIC_COUNTER, "profpull_store_unsplit_total",
                         "Profiles whose samples have too many different labels to make series.");
    m->removed = metrics_family(all, METRIC_COUNTER, "profpull_store_files_removed_total",
                                "Files of the store that retention has removed, by reason: age, "
                                "bytes.",
                                "endpoint", "reason");
    m->merged = cell_of(s, METRIC_COUNTER, "profpull_store_merged_total",
                        "Profiles of the store that became part of a merged one.");
    m->merged_bytes = cell_of(s, METRIC_COUNTER, "profpull_store_merged_bytes_total",
                              "Bytes of the profiles that became part of a merged one.");
    m->merges_bytes = cell_of(s, METRIC_COUNTER, "profpull_store_merges_bytes_total",
                              "Bytes of the merged profiles that replaced them.");
    m->unmergeable = cell_of(s, METRIC_COUNTER, "profpull_store_unmergeable_total",
                             "Profiles of the store that cannot be merged, and stay as they are.");
    m->merge_failures = cell_of(s, METRIC_COUNTER, "profpull_store_merge_failures_total",
                                "Passes over a file of the store that ended before all of its "
                                "profiles were merged.");
    m->sums = cell_of(s, METRIC_COUNTER, "profpull_store_sums_total",
                      "Sums of days of the store that were made.");
    m->sum_failures = cell_of(s, METRIC_COUNTER, "profpull_store_sum_failures_total",
                              "Sums of days of the store that could not be made, or not be read.");
    m->sum_reads = cell_of(s, METRIC_COUNTER, "profpull_store_sum_reads_total",
                           "Sums of days that queries have read in place of the files.");
    m->opened = cell_of(s, METRIC_COUNTER, "profpull_store_readers_opened_total",
                        "Files of the store, and objects of its archive, that queries have opened "
                        "because they were not open any more.");
    m->bad_rows = cell_of(s, METRIC_COUNTER, "profpull_store_damaged_profiles_total",
                          "Profiles that were read and whose bytes have changed on the disk.");
    m->lost = cell_of(s, METRIC_COUNTER, "profpull_store_lost_profiles_total",
                      "Profiles that were committed to the store and are not there any more, "
                      "because a log or a file was damaged or removed.");
}

/* Adds the gauges, which are read from the list of files. */
static void store_collect(struct metrics_out *out, void *arg)
{
    struct store *s = arg;
    struct store_stats stats;
    store_stats(s, &stats);
    const char *const labels[][2] = {{"endpoint", s->options.name}};
    metrics_out_family(out, "profpull_store_files", "Files of the store.", METRIC_GAUGE);
    metrics_out_sample(out, labels, 1, (double)stats.files);
    metrics_out_family(out, "profpull_store_profiles", "Profiles in the store.", METRIC_GAUGE);
    metrics_out_sample(out, labels, 1, (double)stats.profiles);
    metrics_out_family(out, "profpull_store_singles", "Profiles in the store that are not merged.",
                       METRIC_GAUGE);
    metrics_out_sample(out, labels, 1, (double)stats.singles);
    metrics_out_family(out, "profpull_store_bytes", "Bytes of the files of the store.",
                       METRIC_GAUGE);
    metrics_out_sample(out, labels, 1, (double)stats.bytes);
    metrics_out_family(out, "profpull_store_series_bytes",
                       "Memory for the series of files that do not change.", METRIC_GAUGE);
    metrics_out_sample(out, labels, 1, (double)series_lists_bytes(s->series));
    metrics_out_family(out, "profpull_store_readers_bytes",
                       "Bytes of memory of the files that stay open for queries.", METRIC_GAUGE);
    metrics_out_sample(out, labels, 1, (double)store_readers_bytes(s));
    metrics_out_family(out, "profpull_store_up",
                       "Whether the store is open and its directory can be used.", METRIC_GAUGE);
    metrics_out_sample(out, labels, 1, stats.open && !s->cut_off ? 1 : 0);
}

/* ---- opening and closing --------------------------------------------------------------------- */

static bool start(struct store *s, const struct store_options *o, struct err *err)
{
    s->options.name = strdup(o->name);
    s->options.directory = strdup(o->directory);
    s->scratch = scratch_new();
    s->series = series_lists_new(SERIES_LISTS_BYTES_MAX);
    if (s->options.name == NULL || s->options.directory == NULL || s->scratch == NULL ||
        s->series == NULL) {
        return err_memory(err);
    }
    make_metrics(s);
    if (o->archive != NULL) {
        s->archive = archive_open(s, o->archive, err);
        if (s->archive == NULL) {
            return err_wrap(err, "archive");
        }
    }
    if (o->read_only) {
        s->state = STORE_OPEN;
    } else if (!store_background_start(s, err) || !store_await_open(s, STORE_OPEN_MS, err)) {
        return false;
    }
    if (o->archive != NULL && !o->archive->without_thread && !archive_start(s->archive, err)) {
        return false;
    }
    return o->metrics == NULL || metrics_collector(o->metrics, store_collect, s) || err_memory(err);
}

bool store_healthy(const struct store *s, struct err *err)
{
    return !s->cut_off ||
           err_set(
               err, ERR_SYSTEM,
               "endpoint \"%s\": the directory %s was removed, or its disk hung at the start, and "
               "may not be used any more: restart",
               s->options.name, s->options.directory);
}

const char *store_directory(const struct store *s)
{
    return s->options.directory;
}

void store_configure(struct store *s, const struct store_options *options)
{
    atomic_store(&s->limits.stretch_ms, options->stretch_ms);
    atomic_store(&s->limits.max_age_ms, options->max_age_ms);
    atomic_store(&s->limits.max_bytes, options->max_bytes);
    atomic_store(&s->limits.merge_ms, options->merge_ms);
    atomic_store(&s->limits.merge_cpu, options->merge_cpu);
    atomic_store(&s->limits.sync, options->sync);
    if (s->archive != NULL && options->archive != NULL) {
        archive_configure(s->archive, options->archive);
    }
}

bool store_archive_stats(struct store *s, struct archive_stats *ret)
{
    if (s->archive != NULL) {
        archive_stats(s->archive, ret);
    }
    return s->archive != NULL;
}

bool store_is_read_only(const struct store *s)
{
    return s->options.read_only;
}

struct store *store_open(const struct store_options *options, struct err *err)
{
    struct store *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        err_memory(err);
        return NULL;
    }
    s->options = *options;
    s->options.name = s->options.directory = NULL;
    store_configure(s, options);
    s->directory_fd = s->lock_fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->write_lock, NULL);
    pthread_mutex_init(&s->maintain_lock, NULL);
    clock_cond_init(&s->changed);
    return start(s, options, err) ? s : store_close(s);
}

struct store *store_close(struct store *s)
{
    if (s == NULL) {
        return NULL;
    }
    store_background_stop(s);
    archive_stop(s->archive);
    store_writers_close(s, NULL);
    store_readers_close(s, NULL);
    store_bad_forget(s, NULL);
    free(s->bad);
    store_files_free(s->files, s->n_files);
    store_sums_done(s);
    archive_free(s->archive);
    series_lists_free(s->series);
    scratch_free(s->scratch);
    store_leave_directory(s);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->maintain_lock);
    pthread_mutex_destroy(&s->write_lock);
    pthread_mutex_destroy(&s->lock);
    free((char *)(uintptr_t)s->options.name);
    free((char *)(uintptr_t)s->options.directory);
    free(s);
    return NULL;
}

void store_stats(struct store *s, struct store_stats *ret)
{
    *ret = (struct store_stats){.oldest_ns = INT64_MAX};
    pthread_mutex_lock(&s->lock);
    ret->open = s->state == STORE_OPEN;
    for (size_t i = 0; i < s->n_files; i++) {
        const struct store_file *f = s->files[i];
        ret->files++;
        ret->bytes += f->data_bytes + f->log_bytes;
        if (f->profiles > 0) {
            ret->profiles += f->profiles;
            ret->singles += f->singles;
            ret->oldest_ns = f->oldest_ns < ret->oldest_ns ? f->oldest_ns : ret->oldest_ns;
            ret->newest_ns = f->newest_ns > ret->newest_ns ? f->newest_ns : ret->newest_ns;
        }
    }
    ret->bytes += store_sums_bytes(s);
    pthread_mutex_unlock(&s->lock);
    ret->oldest_ns = ret->profiles > 0 ? ret->oldest_ns : 0;
}
