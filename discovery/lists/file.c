#include "discovery/lists/file.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/map.h"
#include "config/target_file.h"

#define LABEL_FILEPATH "__meta_filepath"
/* A file is read when its writer closes it, not at every write. */
#define EVENTS                                                                                     \
    (IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_ATTRIB |            \
     IN_DELETE_SELF | IN_MOVE_SELF)

struct file {
    struct listing listing;
    char *source; /* the name of the group: that of the options, and the path */
    size_t pattern;
    uint32_t scan; /* number of the last scan that found the file */
};

/* One entry of `files`. */
struct pattern {
    const char *text;
    char *directory;
    bool wild;
    bool lost; /* the directory could not be read, which was logged */
    int watch; /* watch descriptor of inotify; -1 if none */
};

static const struct listing_messages messages = {
    .key = "file",
    .broken = "file_sd: the file cannot be used; its last good targets stay as they are",
    .good = "file_sd: the file is good again",
};

struct file_sd {
    const struct config_file_sd *config;
    struct list_options options;
    struct pattern *patterns;
    struct map *files; /* path -> struct file */
    struct loop_timer *timer;
    struct event *event;
    struct buf text;
    struct err why; /* the first failure of this scan: a file or pattern that could not be read */
    int notify;     /* inotify's descriptor; -1 if the system gives none */
    int64_t next_at;
    uint32_t scan;
    bool warned_full;
};

static void free_file(void *p)
{
    struct file *file = p;
    if (file != NULL) {
        listing_done(&file->listing);
        free(file->source);
        free(file);
    }
}

/* Remembers what is wrong with a file or a pattern. */
static void note(struct file_sd *f, const char *name, const struct err *err)
{
    if (f->why.kind == ERR_NONE) {
        f->why = *err;
        (void)err_wrap(&f->why, "%s", name);
    }
}

/* ---- one file -------------------------------------------------------------------------------- */

static struct file *new_file(struct file_sd *f, const char *path)
{
    struct file *file = calloc(1, sizeof(*file));
    size_t prefix = strlen(f->options.source);
    if (file == NULL) {
        return NULL;
    }
    if (asprintf(&file->source, "%s%s", f->options.source, path) < 0) {
        file->source = NULL;
        free_file(file);
        return NULL;
    }
    file->listing = (struct listing){.messages = &messages,
                                     .source = file->source,
                                     .shown = file->source + prefix,
                                     .groups = f->options.counters->groups[GROUPS_FILE],
                                     .refreshes = f->options.counters->file_refreshes,
                                     .mark = {LABEL_FILEPATH, file->source + prefix}};
    if (!map_put(f->files, sv_from(path), file, NULL)) {
        free_file(file);
        return NULL;
    }
    return file;
}

static struct file *find_file(struct file_sd *f, const char *path)
{
    struct file *file = map_get(f->files, sv_from(path));
    if (file != NULL) {
        return file;
    }
    if (map_count(f->files) < FILE_SD_FILES_MAX) {
        file = new_file(f, path);
    } else if (!f->warned_full) {
        f->warned_full = true;
        log_warn(f->options.log, "file_sd: too many files, ignoring the rest",
                 LOG_STR("file", path), LOG_INT("limit", FILE_SD_FILES_MAX));
    }
    if (file == NULL) {
        metric_inc(f->options.counters->file_refreshes[REFRESH_FAILED]);
    }
    return file;
}

static void read_file(struct file_sd *f, const char *path, size_t pattern)
{
    struct file *file = find_file(f, path);
    if (file == NULL || file->scan == f->scan) {
        return; /* another pattern named the same file */
    }
    file->scan = f->scan;
    file->pattern = pattern;
    struct err err = ERR_INIT;
    bool ok = target_file_read(path, &f->text, &err);
    const struct sv text = {f->text.data, f->text.len};
    listing_update(&file->listing, &f->options, ok ? &text : NULL, &err);
    if (file->listing.broken) {
        note(f, path, &err);
    }
}

/* ---- all files ------------------------------------------------------------------------------- */

/* Returns true if the directory can be read; if it cannot, that is logged once. */
static bool check_directory(struct file_sd *f, struct pattern *p)
{
    struct err err = ERR_INIT;
    int fd = open(p->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool lost = fd < 0;
    if (lost) {
        err_sys(&err, "cannot open the directory");
        note(f, p->text, &err);
        metric_inc(f->options.counters->file_refreshes[REFRESH_FAILED]);
    } else {
        close(fd);
    }
    if (lost && !p->lost) {
        log_warn(f->options.log, "file_sd: targets of this pattern stay as they are",
                 LOG_STR("pattern", p->text), LOG_ERR(&err));
    }
    p->lost = lost;
    return !lost;
}

/* Watches a directory. This happens before its files are read, so that no change is missed. */
static void watch_directory(struct file_sd *f, struct pattern *p)
{
    if (f->notify < 0) {
        return;
    }
    /* inotify returns the same descriptor as long as the name refers to the same directory. */
    int watch = inotify_add_watch(f->notify, p->directory, EVENTS | IN_ONLYDIR);
    if (p->watch >= 0 && p->watch != watch) {
        bool shared = false;
        for (size_t i = 0; i < f->config->files.n; i++) {
            shared = shared || (&f->patterns[i] != p && f->patterns[i].watch == p->watch);
        }
        if (!shared) {
            inotify_rm_watch(f->notify, p->watch);
        }
    }
    p->watch = watch;
}

static void read_matches(struct file_sd *f, size_t index)
{
    glob_t found;
    memset(&found, 0, sizeof(found));
    int result = glob(f->patterns[index].text, GLOB_ERR, NULL, &found);
    for (size_t i = 0; result == 0 && i < found.gl_pathc; i++) {
        read_file(f, found.gl_pathv[i], index);
    }
    if (result != 0 && result != GLOB_NOMATCH) {
        struct err err = ERR_INIT;
        err_sys(&err, "cannot read the directory");
        note(f, f->patterns[index].text, &err);
        f->patterns[index].lost = true; /* the targets of its files are kept */
        metric_inc(f->options.counters->file_refreshes[REFRESH_FAILED]);
    }
    globfree(&found);
}

static void remove_vanished(struct file_sd *f)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    while (map_next(f->files, &cursor, &key, &value)) {
        struct file *file = value;
        const struct pattern *p = &f->patterns[file->pattern];
        if (file->scan == f->scan || !p->wild || p->lost) {
            continue;
        }
        map_remove_at(f->files, cursor);
        log_info(f->options.log, "file_sd: the file is gone, and its targets with it",
                 LOG_STR("file", file->listing.shown), LOG_INT("targets", file->listing.n));
        f->options.on_change(f->options.arg, file->source, NULL, 0);
        free_file(file);
    }
}

static void set_timer(struct file_sd *f, int64_t at)
{
    f->next_at = at;
    loop_timer_at(f->timer, at);
}

static void file_sd_scan(void *arg)
{
    struct file_sd *f = arg;
    const struct config_strings *files = &f->config->files;
    f->scan++;
    err_clear(&f->why);
    for (size_t i = 0; i < files->n; i++) {
        struct pattern *p = &f->patterns[i];
        watch_directory(f, p);
        if (!p->wild) {
            read_file(f, p->text, i);
        } else if (check_directory(f, p)) {
            read_matches(f, i);
        }
    }
    remove_vanished(f);
    buf_done(&f->text);
    bool fails = f->why.kind != ERR_NONE;
    f->options.on_state(f->options.arg, fails ? SOURCE_FAILS : SOURCE_WORKS, f->why.msg);
    set_timer(f, clock_mono_ms() + f->config->refresh_ms);
}

/* Reads all files, not only the changed one: an unchanged text has no effect. */
static void file_sd_on_event(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    struct file_sd *f = arg;
    char events[4096];
    while (read(fd, events, sizeof(events)) > 0) {
    }
    int64_t at = clock_mono_ms() + FILE_SD_SETTLE_MS;
    if (at < f->next_at) {
        set_timer(f, at);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool init_patterns(struct file_sd *f)
{
    const struct config_strings *files = &f->config->files;
    f->patterns = calloc(files->n + 1, sizeof(*f->patterns));
    for (size_t i = 0; f->patterns != NULL && i < files->n; i++) {
        const char *text = files->at[i];
        const char *slash = strrchr(text, '/');
        size_t n = slash == NULL ? 0 : (size_t)(slash - text) + 1;
        f->patterns[i] = (struct pattern){
            .text = text,
            .directory = n == 0 ? strdup("./") : strndup(text, n),
            .wild = strpbrk(text, "*?[") != NULL,
            .watch = -1,
        };
        if (f->patterns[i].directory == NULL) {
            return false;
        }
    }
    return f->patterns != NULL;
}

static void init_notify(struct file_sd *f)
{
    f->notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (f->notify >= 0) {
        f->event = event_new(loop_event_base(f->options.loop), f->notify, EV_READ | EV_PERSIST,
                             file_sd_on_event, f);
    }
    if (f->event == NULL || event_add(f->event, NULL) != 0) {
        struct err err = ERR_INIT;
        err_sys(&err, "inotify");
        log_warn(f->options.log, "file_sd: changes are only seen after the refresh interval",
                 LOG_ERR(&err));
    }
}

struct file_sd *file_sd_new(const struct config_file_sd *config, const struct list_options *options)
{
    struct file_sd *f = calloc(1, sizeof(*f));
    if (f == NULL) {
        return NULL;
    }
    f->config = config;
    f->options = *options;
    f->notify = -1;
    buf_init(&f->text, CONFIG_FILE_MAX + 1);
    f->files = map_new();
    f->timer = loop_timer_new(options->loop, file_sd_scan, f);
    if (f->files == NULL || f->timer == NULL || !init_patterns(f)) {
        return file_sd_free(f);
    }
    return f;
}

void file_sd_start(struct file_sd *f)
{
    init_notify(f);
    file_sd_scan(f);
}

void file_sd_each(const struct file_sd *f, void (*fn)(void *arg, const char *source), void *arg)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    while (map_next(f->files, &cursor, &key, &value)) {
        fn(arg, ((const struct file *)value)->source);
    }
}

struct file_sd *file_sd_free(struct file_sd *f)
{
    if (f == NULL) {
        return NULL;
    }
    if (f->event != NULL) {
        event_free(f->event);
    }
    if (f->notify >= 0) {
        close(f->notify);
    }
    for (size_t i = 0; f->patterns != NULL && i < f->config->files.n; i++) {
        free(f->patterns[i].directory);
    }
    free(f->patterns);
    map_free(f->files, free_file);
    loop_timer_free(f->timer);
    buf_done(&f->text);
    free(f);
    return NULL;
}
