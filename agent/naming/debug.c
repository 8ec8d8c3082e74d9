/* Asks files with debug information, one at a time: from directories, from the cache on disk, and
 * from debuginfod servers.
 *
 * A job runs in turn on the loop (requests) and on the thread of files (opening, reading, saving).
 * Names that were found before come first: the table of the build id, saved on disk.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/naming/private.h"
#include "base/clock.h"
#include "base/files.h"
#include "symbols/helper.h"

#define URL_MAX 4096
/* The most build ids that are remembered as absent; beyond that all are forgotten. */
#define ABSENT_MAX 65536

/* The kinds of files that a server has for a build id, in the order in which they are asked for. */
static const char *const kinds[] = {"debuginfo", "executable"};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

enum debug_step { STEP_LOOK, STEP_ASK };

struct debug_job {
    struct work work; /* first */
    TAILQ_ENTRY(debug_job) link;
    struct naming *naming;
    struct ask *ask; /* shared by the jobs of a question; see `last` */
    bool last;       /* the last one frees the question */
    size_t binary;
    enum debug_step step;
    int fd;          /* the file; -1: none */
    bool found_all;  /* the saved table had all names */
    bool downloaded; /* the file comes from a server, just now or before */
    enum naming_end end;
    struct err failure; /* the last one; its kind is ERR_NONE if there was none */
    /* of a download: */
    size_t server;
    size_t kind;
    struct http_transfer *transfer;
    uint64_t received;
    bool too_large;
    bool write_failed;
};

static const struct ask_binary *binary_of(const struct debug_job *j)
{
    return &j->ask->binaries[j->binary];
}

static bool is_asked(const struct debug_job *j, size_t i)
{
    return !j->ask->addresses[i].done && j->ask->addresses[i].binary == j->binary;
}

/* ---- on the thread of files ------------------------------------------------------------------ */

/* Marks the addresses that the table knows. Returns the number of others. */
static size_t mark_known(struct debug_job *j)
{
    size_t missing = 0;
    for (size_t i = 0; i < j->ask->n_addresses; i++) {
        struct ask_address *a = &j->ask->addresses[i];
        struct symbol_location at = {.n_lines = 0};
        struct symbol_question q = {.place = a->place, .location = &at};
        if (is_asked(j, i)) {
            symbol_table_find(binary_of(j)->debug, &q, 1, clock_mono_ms(), NAMING_ASKED_MS);
            a->done = at.n_lines > 0;
            missing += !a->done;
        }
    }
    return missing;
}

/* Loads the saved names, and opens a file of the directories or of the cache. */
static void look(struct debug_job *j)
{
    struct naming *n = j->naming;
    const struct ask_binary *b = binary_of(j);
    const struct symbols_list *directories = &j->ask->sources.directories;
    struct err err = ERR_INIT;
    if (n->depot != NULL) {
        size_t before = mark_known(j);
        if (symbol_depot_load(n->depot, b->build_id, b->debug, &err)) {
            size_t after = mark_known(j);
            metric_add(n->found[ORIGIN_SAVED], before - after);
            j->found_all = after == 0;
        }
    }
    for (size_t i = 0; i < directories->n && j->fd < 0 && !j->found_all; i++) {
        j->fd = symbol_directory_open(directories->at[i], b->build_id);
    }
    if (j->fd < 0 && n->depot != NULL && !j->found_all && j->ask->sources.debuginfod.n > 0) {
        j->fd = symbol_depot_open(n->depot, b->build_id);
        j->downloaded = j->fd >= 0;
    }
}

static bool add_frames(struct symbol_table *t, uint64_t place, const struct symbol_frame *frames,
                       size_t n)
{
    struct symbol_answer_frame answer[64];
    size_t i = 0;
    for (; i < n && i < sizeof(answer) / sizeof(answer[0]); i++) {
        answer[i] = (struct symbol_answer_frame){
            .name = sv_from(frames[i].function),
            .system_name = sv_from(frames[i].system_name),
            .file = sv_from(frames[i].file),
            .start_line = frames[i].start_line > 0 ? (uint64_t)frames[i].start_line : 0,
            .line = frames[i].line > 0 ? (uint64_t)frames[i].line : 0,
        };
    }
    return symbol_table_add(t, place, answer, i);
}

/* Stores the answer for the addresses whose places in the question are in `which`. */
static void take_answer(struct debug_job *j, const struct symbol_frames *frames,
                        const size_t *which)
{
    for (size_t i = 0; i < frames->n; i++) {
        struct ask_address *a = &j->ask->addresses[which[i]];
        size_t n;
        const struct symbol_frame *at = symbol_frames_of(frames, i, &n);
        if (n > 0 && add_frames(binary_of(j)->debug, a->place, at, n)) {
            a->done = true;
            metric_inc(j->naming->found[ORIGIN_DEBUG]);
        }
    }
}

/* Takes over the counters of the process that reads files. */
static void count_reads(struct naming *n)
{
    struct symbols_counters c;
    symbols_helper_counters(n->options.helper, &c);
    metric_set(n->opened, (int64_t)c.opened);
    metric_set(n->partial, (int64_t)c.partial);
    metric_set(n->readers, (int64_t)c.children);
}

/* Asks for up to max addresses from *from on. Returns false after a failure. */
static bool ask_some(struct debug_job *j, size_t *from, uint64_t *addresses, size_t *which,
                     size_t max)
{
    const struct ask_binary *b = binary_of(j);
    struct symbol_frames frames = {0};
    struct err err = ERR_INIT;
    enum symbols_failure failure = SYMBOLS_OK;
    size_t n = 0;
    for (; *from < j->ask->n_addresses && n < max; ++*from) {
        if (is_asked(j, *from)) {
            which[n] = *from;
            addresses[n++] = j->ask->addresses[*from].address;
        }
    }
    const struct symbols_question q = {
        .fd = j->fd,
        .build_id = b->build_id,
        .mapping = {b->start, b->limit != 0 ? b->limit : UINT64_MAX, b->offset},
        .addresses = addresses,
        .count = n,
    };
    if (n == 0) {
        return true;
    }
    bool ok = symbols_helper_ask(j->naming->options.helper, &q, &frames, &failure, &err);
    count_reads(j->naming);
    if (!ok) {
        err_wrap(&err, "%s", symbols_failure_name(failure));
        metric_inc(j->naming->failures[failure]);
        j->failure = err;
        return false;
    }
    take_answer(j, &frames, which);
    symbol_frames_free(&frames);
    return true;
}

static void ask_file(struct debug_job *j)
{
    enum { PART = 4096 };
    struct naming *n = j->naming;
    uint64_t *addresses = calloc(PART, sizeof(*addresses));
    size_t *which = calloc(PART, sizeof(*which));
    struct err err = ERR_INIT;
    bool ok = addresses != NULL && which != NULL;
    for (size_t from = 0; ok && from < j->ask->n_addresses;) {
        ok = ask_some(j, &from, addresses, which, PART);
    }
    free(addresses);
    free(which);
    close(j->fd);
    j->fd = -1;
    j->end = ok ? END_OK : END_FAILED;
    if (n->depot != NULL && ok) {
        if (!symbol_depot_save(n->depot, binary_of(j)->build_id, binary_of(j)->debug, &err)) {
            j->failure = err;
        }
        metric_set(n->disk_cell, (int64_t)symbol_depot_trim(n->depot));
    }
}

static void debug_run(struct work *work)
{
    struct debug_job *j = (struct debug_job *)work;
    if (j->step == STEP_LOOK) {
        look(j);
    } else {
        ask_file(j);
    }
}

/* ---- the end of a job ------------------------------------------------------------------------ */

static void start_next_job(struct naming *n);

static void job_free(struct debug_job *j)
{
    if (j->fd >= 0) {
        close(j->fd);
    }
    if (j->last) {
        naming_ask_free(j->ask);
    }
    free(j);
}

static void end_job(struct debug_job *j, enum naming_end end)
{
    struct naming *n = j->naming;
    int64_t again = clock_mono_ms() + (end == END_FAILED ? NAMING_FAILED_MS : NAMING_UNKNOWN_MS);
    for (size_t i = 0; i < j->ask->n_addresses; i++) {
        if (is_asked(j, i)) {
            symbol_table_unknown(binary_of(j)->debug, j->ask->addresses[i].place, again);
        }
    }
    metric_inc(n->files_cells[end]);
    if (j->failure.kind != ERR_NONE) {
        naming_log(n, "debug information cannot be used", binary_of(j)->build_id, j->failure.msg);
    }
    symbol_names_trim(n->names);
    metric_set(n->bytes_cell, (int64_t)symbol_names_bytes(n->names));
    job_free(j);
    n->job = NULL;
    start_next_job(n);
}

/* ---- downloads ------------------------------------------------------------------------------- */

struct absent {
    int64_t again_at_ms;
};

/* Writes the key of a build id at one server. */
static struct sv absent_key(const struct debug_job *j, char key[URL_MAX])
{
    int n = snprintf(key, URL_MAX, "%s %s", binary_of(j)->build_id,
                     j->ask->sources.debuginfod.at[j->server]);
    return (struct sv){key, n > 0 && n < URL_MAX ? (size_t)n : 0};
}

static bool is_absent(const struct debug_job *j)
{
    char key[URL_MAX];
    const struct absent *a = map_get(j->naming->absent, absent_key(j, key));
    return a != NULL && clock_mono_ms() < a->again_at_ms;
}

static void note_absent(const struct debug_job *j, int64_t again_ms)
{
    char key[URL_MAX];
    struct map *m = j->naming->absent;
    struct absent *a = map_get(m, absent_key(j, key));
    if (a == NULL && map_count(m) < ABSENT_MAX) {
        a = calloc(1, sizeof(*a));
        if (a == NULL || !map_put(m, absent_key(j, key), a, NULL)) {
            free(a);
            return;
        }
    }
    if (a != NULL) {
        a->again_at_ms = clock_mono_ms() + again_ms;
    }
}

static void submit(struct debug_job *j, enum debug_step step)
{
    j->step = step;
    worker_submit(j->naming->files, &j->work);
}

static void download_next(struct debug_job *j);

static bool debug_on_data(void *arg, const char *data, size_t len)
{
    struct debug_job *j = arg;
    j->received += len;
    j->too_large = j->received > j->naming->options.config->symbols.max_file_size;
    j->write_failed = !j->too_large && !write_all(j->fd, data, len);
    return !j->too_large && !j->write_failed;
}

static bool debug_on_head(void *arg, long status, const char *content_type)
{
    (void)arg;
    (void)content_type;
    return status == 200; /* bodies of errors are not read */
}

/* Closes the file of a download. Returns true if it is complete and has its name. */
static bool close_download(struct debug_job *j, bool keep)
{
    struct err err = ERR_INIT;
    int fd = j->fd;
    j->fd = -1;
    bool ok = symbol_depot_finish(j->naming->depot, binary_of(j)->build_id, fd, keep, &err);
    if (!ok) {
        j->failure = err;
    }
    return keep && ok;
}

/* Continues with the next kind of file of a server, or with the next server. */
static void try_next(struct debug_job *j, bool next_server)
{
    j->kind++;
    if (next_server || j->kind == KINDS) {
        j->kind = 0;
        j->server++;
    }
    download_next(j);
}

/* Logs and counts a failure of a server. Its URL is not shown beyond what errors of the client
 * show. */
static void download_failed(struct debug_job *j, const struct http_response *r)
{
    const char *reason = j->too_large      ? "larger than symbols.max_file_size"
                         : j->write_failed ? "the cache cannot be written"
                         : r->result == HTTP_DONE || r->status >= 300 ? "the server refuses it"
                                                                      : http_result_name(r->result);
    err_set(&j->failure, ERR_NETWORK, "debuginfod: %s", reason);
    metric_inc(j->naming->downloads[END_FAILED]);
    note_absent(j, j->too_large ? NAMING_ABSENT_MS : NAMING_FAILED_MS);
}

static void debug_on_done(void *arg, const struct http_response *r)
{
    struct debug_job *j = arg;
    j->transfer = NULL;
    bool complete = r->result == HTTP_DONE && r->status == 200;
    bool kept = close_download(j, complete);
    if (kept) {
        metric_inc(j->naming->downloads[END_OK]);
        j->fd = symbol_depot_open(j->naming->depot, binary_of(j)->build_id);
        err_clear(&j->failure);
        j->downloaded = true;
        if (j->fd >= 0) {
            submit(j, STEP_ASK);
            return;
        }
    }
    if (r->status == 404) {
        if (j->kind == KINDS - 1) {
            metric_inc(j->naming->downloads[END_ABSENT]);
            note_absent(j, NAMING_ABSENT_MS);
        }
        try_next(j, false);
        return;
    }
    download_failed(j, r);
    try_next(j, true);
}

static bool start_download(struct debug_job *j)
{
    struct naming *n = j->naming;
    const struct symbols_settings *s = &n->options.config->symbols;
    const char *server = j->ask->sources.debuginfod.at[j->server];
    char url[URL_MAX];
    struct err err = ERR_INIT;
    size_t end = strlen(server);
    while (end > 0 && server[end - 1] == '/') {
        end--;
    }
    int len = snprintf(url, sizeof(url), "%.*s/buildid/%s/%s", (int)end, server,
                       binary_of(j)->build_id, kinds[j->kind]);
    j->received = 0;
    j->too_large = j->write_failed = false;
    j->fd = symbol_depot_create(n->depot, binary_of(j)->build_id, &err);
    if (j->fd < 0 || len < 0 || len >= (int)sizeof(url)) {
        j->failure = err;
        return false;
    }
    const struct http_request r = {
        .url = url,
        .settings = &s->http,
        .timeout_ms = s->timeout_ms,
        .max_body = 4096,
        .on_head = debug_on_head,
        .on_data = debug_on_data,
        .on_done = debug_on_done,
        .arg = j,
    };
    j->transfer = http_start(n->client, &r);
    return j->transfer != NULL;
}

static void download_next(struct debug_job *j)
{
    const struct symbols_list *servers = &j->ask->sources.debuginfod;
    while (j->server < servers->n && is_absent(j)) {
        j->server++;
        j->kind = 0;
    }
    if (j->server == servers->n || j->naming->depot == NULL) {
        end_job(j, j->failure.kind != ERR_NONE ? END_FAILED : END_ABSENT);
    } else if (!start_download(j)) {
        end_job(j, END_FAILED);
    }
}

/* ---- the line -------------------------------------------------------------------------------- */

static void debug_done(struct work *work)
{
    struct debug_job *j = (struct debug_job *)work;
    struct naming *n = j->naming;
    if (n->closing) {
        n->job = NULL;
        job_free(j);
    } else if (j->fd >= 0) {
        submit(j, STEP_ASK);
    } else if (j->step == STEP_LOOK ? j->found_all : j->end != END_FAILED || j->downloaded) {
        end_job(j, j->end);
    } else {
        download_next(j); /* a server may have a better file than the directories */
    }
}

static void start_next_job(struct naming *n)
{
    if (n->job == NULL && !n->closing && (n->job = TAILQ_FIRST(&n->jobs)) != NULL) {
        TAILQ_REMOVE(&n->jobs, n->job, link);
        submit(n->job, STEP_LOOK);
    }
}

/* Returns true if an address of the mapping has no name yet. */
static bool lacks_names(const struct ask *ask, size_t binary)
{
    for (size_t i = 0; i < ask->n_addresses; i++) {
        if (ask->addresses[i].binary == binary && !ask->addresses[i].done) {
            return true;
        }
    }
    return false;
}

static struct debug_job *job_new(struct naming *n, struct ask *ask, size_t binary)
{
    struct debug_job *j = calloc(1, sizeof(*j));
    if (j != NULL) {
        *j = (struct debug_job){
            .work = {.home = n->options.loop, .run = debug_run, .done = debug_done},
            .naming = n,
            .ask = ask,
            .binary = binary,
            .fd = -1,
        };
    }
    return j;
}

void naming_ask_debug(struct naming *n, struct ask *ask)
{
    struct debug_job *last = NULL;
    for (size_t i = 0; i < ask->n_binaries; i++) {
        if (ask->binaries[i].debug == NULL || !lacks_names(ask, i)) {
            continue;
        }
        struct debug_job *j = job_new(n, ask, i);
        if (j != NULL) {
            TAILQ_INSERT_TAIL(&n->jobs, j, link);
            last = j;
        }
    }
    if (last == NULL) {
        naming_ask_free(ask);
        return;
    }
    last->last = true;
    start_next_job(n);
}

void naming_debug_close(struct naming *n)
{
    struct debug_job *j;
    while ((j = TAILQ_FIRST(&n->jobs)) != NULL) {
        TAILQ_REMOVE(&n->jobs, j, link);
        /* A question whose first job is with the thread of files is freed by that job, which is no
         * longer followed by another one. */
        if (j->last && n->job != NULL && n->job->ask == j->ask) {
            n->job->last = true;
            j->last = false;
        }
        job_free(j); /* NOLINT(clang-analyzer-unix.Malloc): it takes the next first */
    }
    if (n->job != NULL && n->job->transfer != NULL) {
        http_cancel(n->job->transfer);
        (void)close_download(n->job, false);
        job_free(n->job);
        n->job = NULL;
    }
}
