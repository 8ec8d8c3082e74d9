#include "cli/import/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/stores.h"
#include "base/clock.h"
#include "base/labels.h"
#include "base/loop.h"
#include "base/worker.h"
#include "cli/cmd.h"
#include "cli/file_walk.h"
#include "cli/import/named.h"
#include "pprof/legacy/legacy.h"
#include "pprof/restamp.h"
#include "write/write.h"

/* Limit of the files that are counted for the progress bar. */
#define COUNT_MAX 1000000

enum read_result { READ_END, READ_BAD, READ_SKIPPED, READ_PROFILE };

/* A file, owned by the worker while it reads, otherwise by the loop. */
struct reading {
    struct work work;
    struct import *import;
    enum read_result result;
    struct err err;
    char *path;
    char *data;
    size_t size;
    struct import_summary summary;
    bool converted; /* from an old format of pprof */
    /* The profiles in a recording, if the endpoint cannot take recordings; n = 0: none. */
    struct jfr_result recording;
    bool unpacked;
    const char *type;
    struct import_window window;
};

/* A profile that was passed to the writer. */
struct pending {
    const struct profile *profile; /* owned by the writer; NULL: a free slot */
    char *path;
    char text[ERR_MSG_MAX]; /* the error of the last attempt; "": no attempt has failed */
};

struct import {
    const struct import_args *args;
    char *const *paths;
    size_t n_paths;
    struct one_endpoint *to;
    struct loop *loop;
    struct intern *intern;
    struct import_names *names; /* NULL: profiles are sent as they are */
    struct worker_pool *workers;
    struct stores *stores;
    struct writer *writer; /* NULL with --dry-run */
    struct labels_builder *builder;
    struct loop_timer *give_up_timer;
    struct file_walk *walk; /* while the worker reads, only the worker uses it */
    struct reading reading;
    bool is_reading; /* the worker owns `reading` */
    bool at_end;
    struct pending pending[IMPORT_PENDING_MAX];
    size_t n_pending;
    uint64_t pending_bytes;
    bool waiting; /* an attempt has failed since the last success */
    bool progress;
    uint64_t examined;
    uint64_t files; /* number of files to examine; 0: unknown */
    struct import_totals *totals;
};

/* ---- messages -------------------------------------------------------------------------------- */

static void clear_line(const struct import *im)
{
    if (im->progress) {
        fputs("\r\033[K", stderr);
    }
}

static void draw(const struct import *im)
{
    static const char bar[] = "==============================";
    char size[32];
    if (!im->progress) {
        return;
    }
    int width = (int)strlen(bar);
    uint64_t done = im->files == 0 ? 0 : im->examined * (uint64_t)width / im->files;
    format_size(im->totals->sent_bytes, size, sizeof(size));
    fprintf(stderr, "\r\033[K[%-*.*s] %llu/%llu files, %llu sent (%s)", width,
            done < (uint64_t)width ? (int)done : width, bar, (unsigned long long)im->examined,
            (unsigned long long)im->files, (unsigned long long)im->totals->sent, size);
    fflush(stderr);
}

/* Prints the name of a file, escaped, because it may contain line breaks. */
static void print_name(FILE *out, const char *path)
{
    struct buf name;
    buf_init(&name, (size_t)64 * 1024);
    json_escape(sv_from(path), &name);
    fputs(buf_ok(&name) ? name.data : "?", out);
    buf_done(&name);
}

static void say(const struct import *im, const char *path, const char *what, const char *text)
{
    clear_line(im);
    fputs("profpull: ", stderr);
    print_name(stderr, path);
    fprintf(stderr, ": %s%s\n", what, text);
    draw(im);
}

/* ---- reading (the worker) -------------------------------------------------------------------- */

static bool plan(struct reading *r, int64_t mtime_ns)
{
    const struct import_args *args = r->import->args;
    r->type = import_type(args, &r->summary, r->path, &r->err);
    if (r->type == NULL) {
        return false;
    }
    r->window = import_choose_window(args, &r->summary, mtime_ns, clock_wall_ns());
    if (!r->window.restamp) {
        return true;
    }
    char *data = NULL;
    size_t size = 0;
    struct sv body = {.p = r->data, .n = r->size};
    if (!pprof_restamp(body, r->window.from_ns, r->window.duration_ns, &data, &size, &r->err)) {
        return false;
    }
    free(r->data);
    r->data = data;
    r->size = size;
    return true;
}

static bool read_bytes(struct reading *r, const struct file_found *f, int64_t *ret_mtime_ns)
{
    struct buf data;
    buf_init(&data, (size_t)r->import->args->max_size);
    bool ok = file_walk_read(f, &data, ret_mtime_ns, &r->err);
    if (!ok && buf_too_big(&data)) {
        char size[32];
        format_size(r->import->args->max_size, size, sizeof(size));
        err_set(&r->err, ERR_LIMIT, "larger than %s (--max-size)", size);
    }
    r->data = ok ? buf_take(&data, &r->size) : NULL;
    buf_done(&data);
    return ok && (r->data != NULL || err_memory(&r->err));
}

/* Converts a profile in an old format to pprof. The result has no time of its own. */
static enum import_verdict convert(struct reading *r)
{
    struct legacy_output out;
    struct sv body = {.p = r->data, .n = r->size};
    if (legacy_convert_one(body, 0, 0, &out, &r->err) != LEGACY_MADE) {
        err_wrap(&r->err, "an old format of pprof");
        return IMPORT_DAMAGED;
    }
    free(r->data);
    r->data = out.data;
    r->size = out.size;
    r->converted = true;
    return import_summary_read((struct sv){r->data, r->size}, &r->summary, &r->err);
}

/* Sets the time of the profiles in a recording, if the arguments give one. */
static bool restamp_made(struct reading *r)
{
    const struct import_args *args = r->import->args;
    bool given = args->from_ns != IMPORT_NO_TIME || args->until_ns != IMPORT_NO_TIME;
    for (size_t i = 0; given && i < r->recording.n; i++) {
        struct jfr_made *made = &r->recording.made[i];
        char *data = NULL;
        size_t size = 0;
        if (!pprof_restamp((struct sv){made->data, made->size}, r->window.from_ns,
                           r->window.until_ns - r->window.from_ns, &data, &size, &r->err)) {
            return false;
        }
        free(made->data);
        made->data = data;
        made->size = size;
    }
    return true;
}

/* Converts a recording to profiles, if the endpoint cannot take recordings. */
static bool unpack(struct reading *r)
{
    struct rng rng;
    if (r->summary.format != PROFILE_JFR ||
        config_endpoint_takes_recordings(&r->import->to->endpoint)) {
        return true;
    }
    rng_seed_random(&rng);
    const struct jfr_input in = {
        .body = {r->data, r->size}, .options = {.seed = rng_next(&rng)}, .scratch = scratch_new()};
    bool ok = jfr_convert(&in, &r->recording, &r->err);
    scratch_free(in.scratch);
    if (!ok) {
        return err_wrap(&r->err, "recording");
    }
    if (r->recording.n == 0) {
        return err_set(&r->err, ERR_INPUT, "a recording without samples");
    }
    r->unpacked = true;
    return restamp_made(r);
}

static enum read_result read_profile(struct reading *r, const struct file_found *f)
{
    int64_t mtime_ns = 0;
    if (!read_bytes(r, f, &mtime_ns)) {
        return READ_BAD;
    }
    struct sv body = {.p = r->data, .n = r->size};
    enum import_verdict verdict = import_summary_read(body, &r->summary, &r->err);
    if (verdict == IMPORT_OLD) {
        verdict = convert(r);
    }
    if (verdict == IMPORT_OTHER && !f->named) {
        return READ_SKIPPED;
    }
    if (verdict != IMPORT_PROFILE || !plan(r, mtime_ns) || !unpack(r)) {
        return READ_BAD;
    }
    if (r->summary.format == PROFILE_PPROF) {
        import_names_add(r->import->names, &r->data, &r->size);
    }
    return READ_PROFILE;
}

static enum read_result read_next(struct reading *r)
{
    struct file_found found;
    enum walk_result w = file_walk_next(r->import->walk, &found, &r->err);
    if (w != WALK_FILE) {
        return w == WALK_END ? READ_END : READ_BAD;
    }
    r->path = strdup(found.path);
    if (r->path == NULL) {
        err_set(&r->err, ERR_MEMORY, "%s: out of memory", found.path);
        return READ_BAD;
    }
    return read_profile(r, &found);
}

static void import_read(struct work *work)
{
    struct reading *r = (struct reading *)(void *)work; /* its first member */
    r->result = read_next(r);
}

/* ---- sending (the loop) ---------------------------------------------------------------------- */

static void advance(struct import *im);

/* Makes the labels of a profile. event: the value of the label jfr_event, or NULL. */
static struct labels *make_labels(struct import *im, const char *type, const char *event)
{
    struct labels_builder *b = im->builder;
    labels_builder_reset(b, NULL);
    for (size_t i = 0; i < im->args->labels.n; i++) {
        const struct flag_pair *l = &im->args->labels.at[i];
        labels_builder_set(b, l->name, sv_from(l->value));
    }
    labels_builder_set_str(b, LABEL_SERVICE_NAME, im->args->name);
    labels_builder_set_str(b, LABEL_NAME, type);
    if (event != NULL) {
        labels_builder_set_str(b, "jfr_event", event);
    }
    /* A file has a complete profile, from which no delta is computed. */
    labels_builder_set_str(b, LABEL_DELTA, "false");
    if (im->args->config.file != NULL && im->args->endpoint.tenant != NULL) {
        labels_builder_set_str(b, LABEL_TENANT, im->args->endpoint.tenant);
    }
    return labels_builder_build(b);
}

/* Makes a profile, which takes over the bytes. */
static struct profile *make_profile(struct import *im, const struct reading *r, const char *type,
                                    enum profile_format format, char *data, size_t size)
{
    struct labels *labels = make_labels(im, type, r->recording.event);
    if (labels == NULL) {
        free(data);
        return NULL;
    }
    struct profile *p = profile_new(labels, data, size);
    if (p != NULL) {
        p->from_ns = r->window.from_ns;
        p->until_ns = r->window.until_ns;
        p->scraped_ms = clock_mono_ms();
        p->format = format;
    }
    return p;
}

static struct pending *pending_of(struct import *im, const struct profile *p)
{
    for (size_t i = 0; i < IMPORT_PENDING_MAX; i++) {
        if (im->pending[i].profile == p) {
            return &im->pending[i];
        }
    }
    return NULL;
}

static void remove_pending(struct import *im, struct pending *p)
{
    im->pending_bytes -= profile_cost(p->profile);
    im->n_pending--;
    free(p->path);
    *p = (struct pending){.profile = NULL};
}

static void refuse(struct import *im, struct pending *p, const char *why)
{
    im->totals->refused++;
    say(im, p->path, "not accepted: ", why);
    remove_pending(im, p);
}

/* Passes a profile to the writer. Takes it over; it is NULL if memory ran out. */
static void send(struct import *im, const struct reading *r, struct profile *p)
{
    char *path = p != NULL ? strdup(r->path) : NULL;
    if (path == NULL) {
        profile_unref(p);
        say(im, r->path, "out of memory", "");
        im->totals->bad++;
        return;
    }
    struct pending *slot = pending_of(im, NULL); /* advance() has checked that a slot is free */
    slot->profile = p;
    slot->path = path;
    im->n_pending++;
    im->pending_bytes += profile_cost(p);
    writer_put(im->writer, p, 1);
}

static void describe(const struct reading *r, const char *type, size_t n)
{
    char from[32];
    char until[32];
    char size[32];
    clock_format_rfc3339(r->window.from_ns, from, sizeof(from));
    clock_format_rfc3339(r->window.until_ns, until, sizeof(until));
    format_size(n, size, sizeof(size));
    print_name(stdout, r->path);
    printf(": %s, from %s until %s, %s%s%s\n", type, from, until, size,
           r->converted  ? ", converted from an old format"
           : r->unpacked ? ", from a recording"
                         : "",
           r->window.restamp ? ", time written into the profile" : "");
}

/* Sends one profile of a file. Takes over the bytes. */
static void deliver_one(struct import *im, const struct reading *r, const char *type,
                        enum profile_format format, char *data, size_t size)
{
    if (im->args->dry_run) {
        clear_line(im);
        describe(r, type, size);
        im->totals->sent++;
        im->totals->sent_bytes += size;
        free(data);
    } else {
        send(im, r, make_profile(im, r, type, format, data, size));
    }
}

static void deliver(struct import *im, struct reading *r)
{
    if (r->recording.damaged) {
        say(im, r->path, "only the good part of the recording is sent: ", r->err.msg);
        im->totals->bad++;
    }
    for (size_t i = 0; i < r->recording.n; i++) {
        struct jfr_made *made = &r->recording.made[i];
        deliver_one(im, r, made->name, PROFILE_PPROF, made->data, made->size);
        made->data = NULL;
    }
    if (!r->unpacked) {
        deliver_one(im, r, r->type, r->summary.format, r->data, r->size);
        r->data = NULL;
    }
}

static void import_on_read(struct work *work)
{
    struct reading *r = (struct reading *)(void *)work;
    struct import *im = r->import;
    im->is_reading = false;
    im->examined += r->result != READ_END;
    switch (r->result) {
    case READ_END:
        im->at_end = true;
        break;
    case READ_BAD:
        im->totals->bad++;
        if (r->path == NULL) { /* the error has the name */
            clear_line(im);
            fprintf(stderr, "profpull: %s\n", r->err.msg);
        } else {
            say(im, r->path, "", r->err.msg);
        }
        break;
    case READ_SKIPPED:
        im->totals->skipped++;
        if (im->args->dry_run) {
            say(im, r->path, "skipped: ", r->err.msg);
        }
        break;
    case READ_PROFILE:
        if (!im->totals->gave_up) {
            deliver(im, r);
        }
        break;
    default:
        break;
    }
    jfr_result_done(&r->recording);
    free(r->path);
    free(r->data);
    draw(im);
    advance(im);
}

static void start_reading(struct import *im)
{
    im->reading = (struct reading){
        .work = {.home = im->loop, .run = import_read, .done = import_on_read}, .import = im};
    im->is_reading = true;
    worker_submit(im->workers, &im->reading.work);
}

static void give_up(struct import *im, const char *text, const char *advice)
{
    clear_line(im);
    fprintf(stderr, "profpull: gave up: %s: %s%s%s\n", im->to->endpoint.url, text,
            advice[0] == '\0' ? "" : "; ", advice);
    im->totals->gave_up = true;
}

/* Starts to read the next file if there is room for it. Ends the loop when everything is done. */
static void advance(struct import *im)
{
    if (im->is_reading) {
        return;
    }
    bool room = im->n_pending < IMPORT_IN_FLIGHT && im->pending_bytes < IMPORT_BYTES;
    bool more = !im->at_end && !im->totals->gave_up;
    if (more && room) {
        start_reading(im);
    } else if (!more && (im->n_pending == 0 || im->totals->gave_up)) {
        loop_stop(im->loop);
    }
}

/* ---- results of the writer ------------------------------------------------------------------- */

static void on_retried(struct import *im, struct pending *p, const struct write_attempt *a)
{
    char duration[32];
    snprintf(p->text, sizeof(p->text), "%s", a->text);
    if (a->final) {
        give_up(im, a->text, a->advice);
    } else if (!im->waiting) {
        im->waiting = true;
        format_duration_ms(im->args->retry_ms, duration, sizeof(duration));
        clear_line(im);
        fprintf(stderr, "profpull: %s: %s; trying for %s (--retry-for)\n", im->to->endpoint.url,
                a->text, duration);
        loop_timer_after(im->give_up_timer, im->args->retry_ms);
    }
}

static void import_on_attempt(void *arg, const struct write_attempt *a)
{
    struct import *im = arg;
    struct pending *p = pending_of(im, a->profile);
    if (p == NULL || im->totals->gave_up) {
        return;
    }
    if (a->outcome == WRITE_RETRIED) {
        on_retried(im, p, a);
    } else if (a->outcome == WRITE_SENT) {
        im->totals->sent++;
        im->totals->sent_bytes += a->profile->size;
        im->waiting = false;
        loop_timer_cancel(im->give_up_timer);
        remove_pending(im, p);
    } else {
        refuse(im, p, a->text);
        if (a->status >= 300 && a->status < 400) {
            give_up(im, a->text, a->advice);
        }
    }
    draw(im);
    advance(im);
}

static void import_on_give_up(void *arg)
{
    struct import *im = arg;
    for (size_t i = 0; i < IMPORT_PENDING_MAX; i++) {
        if (im->pending[i].text[0] != '\0') {
            give_up(im, im->pending[i].text, "");
            advance(im);
            return;
        }
    }
}

/* Counts the profiles that were in flight when the import gave up. */
static void count_abandoned(struct import *im)
{
    for (size_t i = 0; i < IMPORT_PENDING_MAX; i++) {
        struct pending *p = &im->pending[i];
        if (p->profile != NULL) {
            refuse(im, p, p->text[0] == '\0' ? "given up" : p->text);
        }
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Counts the files to examine, for the progress. */
static uint64_t count_files(const struct import *im)
{
    struct file_walk *w = file_walk_new(im->paths, im->n_paths);
    struct file_found found;
    uint64_t n = 0;
    while (w != NULL && n < COUNT_MAX && file_walk_next(w, &found, NULL) != WALK_END) {
        n++;
    }
    file_walk_free(w);
    return n;
}

static bool make_writer(struct import *im, struct err *err)
{
    struct config_endpoint *e = &im->to->endpoint;
    e->remote_timeout_ms = im->args->timeout_ms;
    e->concurrency = IMPORT_IN_FLIGHT;
    /* This loop limits the profiles in flight, and the queue must not drop any of them. */
    e->queue_max_bytes = UINT64_C(1) << 40;
    e->max_age_ms = 0;
    e->retry_on_429 = true;
    im->stores = stores_new(NULL, NULL, NULL);
    if (im->stores == NULL) {
        return err_memory(err);
    }
    struct writer_options options = {.config = &im->to->config,
                                     .loop = im->loop,
                                     .intern = im->intern,
                                     .on_attempt = import_on_attempt,
                                     .attempt_arg = im,
                                     .open_sink = stores_open_sink,
                                     .open_arg = im->stores};
    im->writer = writer_new(&options, err);
    return im->writer != NULL;
}

static bool import_init(struct import *im, struct err *err)
{
    struct err no_names = ERR_INIT;
    if (!im->args->dry_run) {
        im->names = import_names_new(im->to->owner, &no_names);
    }
    if (no_names.kind != ERR_NONE) {
        fprintf(stderr, "profpull: no names are added: %s\n", no_names.msg);
    }
    im->loop = loop_new(err);
    im->workers = im->loop == NULL ? NULL : worker_pool_new(1, err);
    if (im->workers == NULL || !import_names_open(im->names, im->loop, err)) {
        return false;
    }
    im->intern = intern_new();
    im->builder = im->intern == NULL ? NULL : labels_builder_new(im->intern);
    im->give_up_timer = loop_timer_new(im->loop, import_on_give_up, im);
    im->walk = file_walk_new(im->paths, im->n_paths);
    if (im->builder == NULL || im->give_up_timer == NULL || im->walk == NULL) {
        return err_memory(err);
    }
    return im->args->dry_run || make_writer(im, err);
}

static void import_done(struct import *im)
{
    for (size_t i = 0; i < IMPORT_PENDING_MAX; i++) {
        free(im->pending[i].path);
    }
    writer_free(im->writer);
    stores_free(im->stores);
    worker_pool_free(im->workers);
    if (im->loop != NULL) {
        /* Runs the completed work of the workers. */
        loop_run_once(im->loop);
    }
    import_names_free(im->names);
    loop_timer_free(im->give_up_timer);
    file_walk_free(im->walk);
    labels_builder_free(im->builder);
    intern_free(im->intern);
    loop_free(im->loop);
}

bool import_run(const struct import_args *args, char *const *paths, size_t n_paths,
                struct one_endpoint *to, bool progress, struct import_totals *ret, struct err *err)
{
    *ret = (struct import_totals){.sent = 0};
    struct import im = {.args = args,
                        .paths = paths,
                        .n_paths = n_paths,
                        .to = to,
                        .progress = progress,
                        .totals = ret};
    bool ok = import_init(&im, err);
    if (ok) {
        im.files = progress ? count_files(&im) : 0;
        advance(&im);
        loop_run(im.loop);
        count_abandoned(&im);
        clear_line(&im);
        im.progress = false;
    }
    import_done(&im);
    return ok;
}
