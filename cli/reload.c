#include "cli/reload.h"

#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "config/change.h"

/* Time between an event in a directory and reading the configuration: further events in that time
 * cause no further reading. */
#define SETTLE_MS 200
/* Time between two readings without an event. */
#define POLL_MS (30 * MS_PER_S)
/* Limit of the messages about one configuration. */
#define TEXT_MAX ((size_t)16 * 1024 * 1024)
/* The events that are watched. A file is read again when its writer closes it, not at every write.
 */
#define EVENTS                                                                                     \
    (IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_ATTRIB |            \
     IN_DELETE_SELF | IN_MOVE_SELF)
/* The link that Kubernetes switches when it replaces the content of a ConfigMap. */
#define CONFIGMAP_LINK "..data"

enum source { SOURCE_REQUESTS, SOURCE_EVENTS, SOURCE_TIMER, SOURCES };
enum result { RESULT_SUCCESS, RESULT_FAILURE, RESULTS };

struct reload {
    struct reload_options options;
    int all;          /* epoll descriptor of all others */
    int fds[SOURCES]; /* -1: there is none */
    char *failure;    /* errors of the last reading; NULL: it has succeeded */
    struct metric_cell *counts[RESULTS];
    struct metric_cell *good;
    struct metric_cell *good_at;

    pthread_mutex_t lock; /* guards all members below */
    pthread_cond_t done;
    bool closed;
    uint64_t wanted; /* number of requests so far */
    uint64_t served; /* number of requests that have an answer */
    bool ok;         /* result of the last answer */
    char *answer;
    uint64_t hash; /* hash of the configuration in force */
};

/* ---- files ----------------------------------------------------------------------------------- */

static void watch_directory(const struct reload *r, const char *path)
{
    (void)inotify_add_watch(r->fds[SOURCE_EVENTS], path, EVENTS | IN_ONLYDIR);
}

/* Watches the directory that a file is in; if the path is a directory, watches that one. */
static void watch_around(const struct reload *r, const char *path)
{
    char copy[PATH_MAX];
    struct stat st;
    snprintf(copy, sizeof(copy), "%s", path);
    bool is_directory = stat(copy, &st) == 0 && S_ISDIR(st.st_mode);
    watch_directory(r, is_directory ? copy : dirname(copy));
}

/* Watches the configuration file, and the file that a link leads to. The kernel ignores directories
 * that are watched already. */
static void watch_file(const struct reload *r)
{
    char resolved[PATH_MAX];
    if (r->fds[SOURCE_EVENTS] < 0) {
        return;
    }
    watch_around(r, r->options.flags.file);
    if (realpath(r->options.flags.file, resolved) != NULL) {
        watch_around(r, resolved);
    }
}

static bool ends_path(const char *path, struct sv name)
{
    const char *slash = strrchr(path, '/');
    return sv_eq_str(name, slash == NULL ? path : slash + 1);
}

/* Returns true if a changed name in one of the directories can concern the configuration. */
static bool concerns(const struct reload *r, struct sv name)
{
    char resolved[PATH_MAX];
    const char *file = r->options.flags.file;
    return name.n == 0 || sv_eq_str(name, CONFIGMAP_LINK) || ends_path(file, name) ||
           sv_ends_with(name, SV(".alloy")) ||
           (realpath(file, resolved) != NULL && ends_path(resolved, name));
}

static bool read_events(struct reload *r)
{
    char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    bool any = false;
    for (;;) {
        ssize_t n = read(r->fds[SOURCE_EVENTS], events, sizeof(events));
        if (n <= 0) {
            return any;
        }
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *e = (const struct inotify_event *)(void *)(events + at);
            any = any || concerns(r, sv_from(e->len > 0 ? e->name : ""));
            at += (ssize_t)(sizeof(*e) + e->len);
        }
    }
}

static void set_timer(const struct reload *r, int64_t ms)
{
    const struct itimerspec at = {.it_value = clock_timespec(ms)};
    if (r->fds[SOURCE_TIMER] >= 0) {
        (void)timerfd_settime(r->fds[SOURCE_TIMER], 0, &at, NULL);
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The reason why the configuration is read. */
struct occasion {
    const char *trigger;
    bool asked; /* somebody waits for the result, which is logged even if nothing has changed */
};

static void count(struct reload *r, bool ok)
{
    metric_inc(r->counts[ok ? RESULT_SUCCESS : RESULT_FAILURE]);
    if (ok) {
        metric_set(r->good_at, clock_wall_ns() / NS_PER_S);
    }
}

/* Logs each line, in the form that `profpull check` prints. */
static void log_lines(struct log *log, struct sv lines, bool errors)
{
    struct sv line;
    while (sv_cut(lines, '\n', &line, &lines)) {
        if (errors) {
            log_error(log, "error in the configuration", LOG_SV("err", line));
        } else {
            log_warn(log, "warning in the configuration", LOG_SV("warning", line));
        }
    }
}

/* Reports a failure. text has the errors, one a line. Attempts that nobody has asked for report the
 * same failure only once. */
static void fail(struct reload *r, const struct occasion *why, const char *text)
{
    struct log *log = app_log(r->options.app);
    bool known = r->failure != NULL && strcmp(r->failure, text) == 0;
    if (!known || why->asked) {
        log_lines(log, sv_from(text), true);
        log_error(log, "the configuration was not loaded; the former one stays in force",
                  LOG_STR("trigger", why->trigger), LOG_STR("config", r->options.flags.file));
        count(r, false);
    }
    metric_set(r->good, 0);
    if (!known) {
        free(r->failure);
        r->failure = strdup(text);
    }
}

static void succeed(struct reload *r, const struct occasion *why, bool changed)
{
    struct log *log = app_log(r->options.app);
    struct config *config = app_config(r->options.app);
    char hash[32];
    pthread_mutex_lock(&r->lock);
    r->hash = changed ? config_hash(config) : r->hash;
    snprintf(hash, sizeof(hash), "%016" PRIx64, r->hash);
    pthread_mutex_unlock(&r->lock);
    if (changed || why->asked || r->failure != NULL) {
        log_info(log, changed ? "the configuration was loaded" : "the configuration is the same",
                 LOG_STR("trigger", why->trigger), LOG_STR("config", r->options.flags.file),
                 LOG_STR("hash", hash), LOG_INT("jobs", config->n_jobs),
                 LOG_INT("destinations", config->n_endpoints));
        count(r, true);
    }
    metric_set(r->good, 1);
    free(r->failure);
    r->failure = NULL;
    config_unref(config);
}

static void log_warnings(struct log *log, const struct config_errors *warnings)
{
    struct buf lines;
    buf_init(&lines, TEXT_MAX);
    if (config_errors_format(warnings, &lines)) {
        log_lines(log, (struct sv){lines.data, lines.len}, false);
    }
    buf_done(&lines);
}

static bool apply(struct reload *r, struct config *next, const struct occasion *why,
                  const struct config_errors *warnings, struct buf *text)
{
    struct err err = ERR_INIT;
    struct config *now = app_config(r->options.app);
    bool changed = !config_same(now, next);
    config_unref(now);
    if (changed && (!confinement_allows(r->options.confinement, next, &err) ||
                    !app_reload(r->options.app, next, r->options.drain_ms, &err))) {
        buf_printf(text, "%s\n", err.msg);
        fail(r, why, text->data);
        return false;
    }
    succeed(r, why, changed);
    if (changed) {
        log_warnings(app_log(r->options.app), warnings);
    }
    buf_puts(text, changed ? "the configuration was loaded\n" : "the configuration is the same\n");
    return true;
}

/* Reads the configuration and puts it into force. Appends the result to text. */
static bool load(struct reload *r, const struct occasion *why, struct buf *text)
{
    struct config_errors *errors = config_errors_new();
    struct config_errors *warnings = config_errors_new();
    bool ok = false;
    struct config *next = NULL;
    watch_file(r); /* before the file is read, so that no change in between is missed */
    if (errors != NULL && warnings != NULL) {
        next = cmd_reload_config(&r->options.flags, errors, warnings);
    }
    if (next != NULL) {
        ok = apply(r, next, why, warnings, text);
    } else {
        if (errors == NULL || !config_errors_format(errors, text) || text->len == 0) {
            buf_puts(text, "out of memory\n");
        }
        fail(r, why, text->data);
    }
    config_unref(next);
    config_errors_free(errors);
    config_errors_free(warnings);
    set_timer(r, POLL_MS);
    return ok;
}

static bool read_again(struct reload *r, const struct occasion *why, struct buf *text)
{
    if (r->options.flags.file == NULL) {
        buf_puts(text, "there is no file to read the configuration from again\n");
        log_warn(app_log(r->options.app), "there is no file to read the configuration from again",
                 LOG_STR("trigger", why->trigger));
        return false;
    }
    return load(r, why, text);
}

/* ---- occasions ------------------------------------------------------------------------------- */

static void read_for(struct reload *r, const struct occasion *why)
{
    struct buf text;
    buf_init(&text, TEXT_MAX);
    (void)read_again(r, why, &text);
    buf_done(&text);
}

void reload_signal(struct reload *r)
{
    read_for(r, &(struct occasion){.trigger = "SIGHUP", .asked = true});
}

/* Answers all requests. Those that arrived before the configuration was read get the same answer.
 */
static void serve_requests(struct reload *r)
{
    struct buf text;
    buf_init(&text, TEXT_MAX);
    pthread_mutex_lock(&r->lock);
    uint64_t wanted = r->wanted;
    bool any = wanted > r->served;
    pthread_mutex_unlock(&r->lock);
    if (!any) {
        return;
    }
    bool ok = read_again(r, &(struct occasion){.trigger = "request", .asked = true}, &text);
    pthread_mutex_lock(&r->lock);
    r->served = wanted;
    r->ok = ok;
    free(r->answer);
    r->answer = buf_take(&text, NULL);
    pthread_cond_broadcast(&r->done);
    pthread_mutex_unlock(&r->lock);
    buf_done(&text);
}

void reload_run(struct reload *r)
{
    uint64_t n;
    struct epoll_event ready;
    if (epoll_wait(r->all, &ready, 1, 0) == 1) {
        int fd = r->fds[ready.data.u32];
        if (ready.data.u32 == SOURCE_EVENTS) {
            if (read_events(r)) {
                set_timer(r, SETTLE_MS);
            }
        } else if (read(fd, &n, sizeof(n)) != (ssize_t)sizeof(n)) {
            return;
        } else if (ready.data.u32 == SOURCE_REQUESTS) {
            serve_requests(r);
        } else {
            read_for(r, &(struct occasion){.trigger = "file"});
        }
    }
}

bool reload_request(struct reload *r, struct buf *text)
{
    pthread_mutex_lock(&r->lock);
    uint64_t mine = ++r->wanted;
    eventfd_write(r->fds[SOURCE_REQUESTS], 1);
    while (!r->closed && r->served < mine) {
        pthread_cond_wait(&r->done, &r->lock);
    }
    bool ok = r->served >= mine && r->ok;
    buf_puts(text, r->served < mine    ? "the process is about to end\n"
                   : r->answer == NULL ? "out of memory\n"
                                       : r->answer);
    pthread_mutex_unlock(&r->lock);
    return ok;
}

void reload_close(struct reload *r)
{
    pthread_mutex_lock(&r->lock);
    r->closed = true;
    pthread_cond_broadcast(&r->done);
    pthread_mutex_unlock(&r->lock);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void reload_collect(struct metrics_out *o, void *arg)
{
    struct reload *r = arg;
    char hash[32];
    pthread_mutex_lock(&r->lock);
    snprintf(hash, sizeof(hash), "%016" PRIx64, r->hash);
    pthread_mutex_unlock(&r->lock);
    const char *const labels[][2] = {{"hash", hash}};
    metrics_out_family(o, "profpull_config_info",
                       "The configuration in force: a hash of the output of `profpull check "
                       "--dump`, which has no secrets.",
                       METRIC_GAUGE);
    metrics_out_sample(o, labels, 1, 1);
}

static bool add_metrics(struct reload *r, struct metrics *metrics)
{
    struct metric *counts = metrics_family(metrics, METRIC_COUNTER, "profpull_config_reloads_total",
                                           "Times that the configuration was read again; a check "
                                           "of the file that found no change does not count.",
                                           "result", NULL);
    r->counts[RESULT_SUCCESS] = metric_cell_of(counts, "success");
    r->counts[RESULT_FAILURE] = metric_cell_of(counts, "failure");
    r->good = metrics_single(
        metrics, METRIC_GAUGE, "profpull_config_last_reload_successful",
        "1 if the configuration that was read last is in force; 0 after an error in it.");
    r->good_at = metrics_single(metrics, METRIC_GAUGE,
                                "profpull_config_last_reload_success_timestamp_seconds",
                                "When the configuration was last loaded, in seconds since 1970.");
    metric_set(r->good, 1);
    metric_set(r->good_at, clock_wall_ns() / NS_PER_S);
    return metrics_collector(metrics, reload_collect, r);
}

static bool add_source(struct reload *r, enum source source, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = source};
    r->fds[source] = fd;
    return fd >= 0 && epoll_ctl(r->all, EPOLL_CTL_ADD, fd, &event) == 0;
}

static bool open_all(struct reload *r, struct err *err)
{
    r->all = epoll_create1(EPOLL_CLOEXEC);
    if (r->all < 0 || !add_source(r, SOURCE_REQUESTS, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))) {
        return err_sys(err, "reload");
    }
    if (!r->options.watch || r->options.flags.file == NULL) {
        return true;
    }
    if (!add_source(r, SOURCE_TIMER, timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK))) {
        return err_sys(err, "reload");
    }
    if (!add_source(r, SOURCE_EVENTS, inotify_init1(IN_CLOEXEC | IN_NONBLOCK))) {
        struct err why = ERR_INIT;
        err_sys(&why, "inotify");
        log_warn(app_log(r->options.app), "changes of the configuration are seen within 30 s",
                 LOG_ERR(&why));
    }
    watch_file(r);
    set_timer(r, SETTLE_MS); /* the file may have changed since it was read */
    return true;
}

struct reload *reload_new(const struct reload_options *options, struct err *err)
{
    struct reload *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        err_memory(err);
        return NULL;
    }
    *r = (struct reload){.options = *options, .all = -1, .fds = {-1, -1, -1}};
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->done, NULL);
    struct config *config = app_config(options->app);
    r->hash = config_hash(config);
    config_unref(config);
    bool ok = open_all(r, err);
    if (ok && !add_metrics(r, app_metrics(options->app))) {
        ok = err_memory(err);
    }
    return ok ? r : reload_free(r);
}

struct reload *reload_free(struct reload *r)
{
    if (r == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < SOURCES; i++) {
        if (r->fds[i] >= 0) {
            close(r->fds[i]);
        }
    }
    if (r->all >= 0) {
        close(r->all);
    }
    pthread_cond_destroy(&r->done);
    pthread_mutex_destroy(&r->lock);
    free(r->failure);
    free(r->answer);
    free(r);
    return NULL;
}

int reload_fd(const struct reload *r)
{
    return r->all;
}
