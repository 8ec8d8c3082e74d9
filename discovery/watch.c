#include "discovery/watch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "discovery/api_status.h"

/* What is read of an answer that is no list and no watch. */
#define BODY_MAX ((size_t)16 * 1024)
#define QUERY_MAX ((size_t)256 * 1024)

/* Which version a list asks for. */
enum list_from { FROM_ANY, FROM_NOT_OLDER, FROM_LATEST };

struct watch {
    struct watch_options options;
    char *selectors;
    struct json_stream *stream;

    /* Where we are: a failed request is repeated from here. */
    bool watching;
    enum list_from from;
    bool unpaged;              /* the pages expired before they were read: ask for all at once */
    unsigned page;             /* pages of this list that have been read */
    struct buf version;        /* the last one seen */
    struct buf list_version;   /* of the list's first page */
    struct buf continue_token; /* "" for the first page */
    bool synced;

    /* When to go on. */
    int64_t next_at;
    int64_t last_failure_ms;
    unsigned step;     /* failures in a row, for the delay */
    unsigned refusals; /* answers to a watch in a row that were no watch */

    /* The request that runs. */
    struct buf query;
    struct buf body; /* of an answer that was not 200 */
    struct buf page_version;
    struct buf page_continue;
    int64_t started_ms;
    size_t events;
    long status;
    struct api_status problem; /* of an ERROR event */
    struct err stream_err;
};

const char *watch_relist_name(enum watch_relist reason)
{
    static const char *const names[] = {
        [WATCH_RELIST_EXPIRED] = "expired",
        [WATCH_RELIST_TOO_LARGE] = "too_large",
        [WATCH_RELIST_PAGE] = "page_expired",
        [WATCH_RELIST_FAILURES] = "failures",
    };
    return names[reason];
}

const char *watch_result_name(enum watch_result result)
{
    static const char *const names[] = {
        [WATCH_DONE] = "ok",
        [WATCH_EXPIRED] = "expired",
        [WATCH_THROTTLED] = "throttled",
        [WATCH_FORBIDDEN] = "forbidden",
        [WATCH_UNAUTHORIZED] = "unauthorized",
        [WATCH_UNREACHABLE] = "unreachable",
        [WATCH_FAILED] = "failed",
    };
    return names[result];
}

/* ---- what comes out of the stream ----------------------------------------------------------- */

/* Reading on would lose an object: the request is ended, and goes on from before it. */
static void out_of_memory(struct watch *w)
{
    err_set(&w->stream_err, ERR_MEMORY, "out of memory");
}

/* Keeps a string from the server, if it is one that is not empty. False if it is too long. */
static bool take_string(struct watch *w, struct buf *b, const json_t *v)
{
    size_t len = json_string_length(v);
    if (len == 0) {
        return true;
    }
    if (len >= b->max) {
        return false;
    }
    buf_clear(b);
    if (!buf_append(b, json_string_value(v), len)) {
        out_of_memory(w);
    }
    return true;
}

static void on_list_metadata(void *arg, const json_t *metadata)
{
    struct watch *w = arg;
    /* Without its continue token a page would be taken for the end of the list. */
    if (!take_string(w, &w->page_version, json_object_get(metadata, "resourceVersion")) ||
        !take_string(w, &w->page_continue, json_object_get(metadata, "continue"))) {
        err_set(&w->stream_err, ERR_LIMIT,
                "the list's resourceVersion or continue token is too long (at most %d and %zu "
                "bytes)",
                WATCH_VERSION_MAX, WATCH_CONTINUE_MAX);
    }
}

static enum watch_event event_of(struct sv type)
{
    static const struct {
        const char *name;
        enum watch_event event;
    } types[] = {
        {"ADDED", WATCH_ADDED},       {"MODIFIED", WATCH_MODIFIED}, {"DELETED", WATCH_DELETED},
        {"BOOKMARK", WATCH_BOOKMARK}, {"ERROR", WATCH_ERROR},
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (sv_eq_str(type, types[i].name)) {
            return types[i].event;
        }
    }
    return WATCH_UNKNOWN;
}

static void on_event(struct watch *w, const json_t *json)
{
    const struct watch_handler *h = &w->options.handler;
    const json_t *type_json = json_object_get(json, "type");
    struct sv type = SV("");
    if (json_is_string(type_json)) {
        type = (struct sv){json_string_value(type_json), json_string_length(type_json)};
    }
    const json_t *object = json_object_get(json, "object");
    enum watch_event event = event_of(type);
    if (event == WATCH_UNKNOWN) {
        h->other(h->arg, event, type);
        return;
    }
    if (!json_is_object(object)) {
        h->skipped(h->arg, JSON_SKIP_SYNTAX);
        return;
    }
    if (event == WATCH_ERROR) {
        api_status_read(object, &w->problem);
        h->other(h->arg, event, type);
        return;
    }
    if (event == WATCH_BOOKMARK) {
        h->other(h->arg, event, type);
    } else if (!h->object(h->arg, event, object)) {
        out_of_memory(w);
        return;
    }
    w->events++;
    /* One that is too long is not taken: the watch would go on from the one before. */
    (void)take_string(w, &w->version,
                      json_object_get(json_object_get(object, "metadata"), "resourceVersion"));
}

static void on_object(void *arg, const json_t *object)
{
    struct watch *w = arg;
    const struct watch_handler *h = &w->options.handler;
    if (w->problem.present || w->stream_err.kind != ERR_NONE) {
        return;
    }
    if (w->watching) {
        on_event(w, object);
    } else if (!h->object(h->arg, WATCH_LISTED, object)) {
        out_of_memory(w);
    }
}

static void on_skip(void *arg, enum json_skip why)
{
    struct watch *w = arg;
    w->options.handler.skipped(w->options.handler.arg, why);
    if (why == JSON_SKIP_MEMORY && w->stream_err.kind == ERR_NONE) {
        out_of_memory(w);
    }
}

/* ---- life ----------------------------------------------------------------------------------- */

struct watch *watch_new(const struct watch_options *options)
{
    struct watch *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        return NULL;
    }
    w->options = *options;
    buf_init(&w->version, WATCH_VERSION_MAX);
    buf_init(&w->list_version, WATCH_VERSION_MAX);
    buf_init(&w->page_version, WATCH_VERSION_MAX);
    buf_init(&w->continue_token, WATCH_CONTINUE_MAX);
    buf_init(&w->page_continue, WATCH_CONTINUE_MAX);
    buf_init(&w->query, QUERY_MAX);
    buf_init(&w->body, BODY_MAX);
    w->selectors = strdup(options->selectors);
    w->stream = json_stream_new(&(struct json_stream_options){
        .object_max = options->object_max,
        .depth_max = options->depth_max,
        .omit = options->omit,
        .n_omit = options->n_omit,
        .on_object = on_object,
        .on_metadata = on_list_metadata,
        .on_skip = on_skip,
        .arg = w,
    });
    if (w->selectors == NULL || w->stream == NULL) {
        return watch_free(w);
    }
    return w;
}

struct watch *watch_free(struct watch *w)
{
    if (w != NULL) {
        json_stream_free(w->stream);
        free(w->selectors);
        buf_done(&w->version);
        buf_done(&w->list_version);
        buf_done(&w->page_version);
        buf_done(&w->continue_token);
        buf_done(&w->page_continue);
        buf_done(&w->query);
        buf_done(&w->body);
        free(w);
    }
    return NULL;
}

int64_t watch_next_at(const struct watch *w)
{
    return w->next_at;
}

bool watch_synced(const struct watch *w)
{
    return w->synced;
}

/* ---- pace ----------------------------------------------------------------------------------- */

static void forget_old_failures(struct watch *w, int64_t now_ms)
{
    if (w->step > 0 && now_ms - w->last_failure_ms >= WATCH_BACKOFF_RESET_MS) {
        w->step = 0;
    }
}

/* Goes on after the delay that is due, not before at_least_ms from now. */
static void back_off(struct watch *w, int64_t now_ms, int64_t at_least_ms)
{
    forget_old_failures(w, now_ms);
    int64_t delay = WATCH_BACKOFF_MIN_MS;
    for (unsigned i = 0; i < w->step && delay < WATCH_BACKOFF_MAX_MS; i++) {
        delay *= 2;
    }
    if (delay >= WATCH_BACKOFF_MAX_MS) {
        delay = WATCH_BACKOFF_MAX_MS;
    } else {
        w->step++;
    }
    delay = rng_range(w->options.rng, delay, 2 * delay);
    w->last_failure_ms = now_ms;
    w->next_at = now_ms + (delay > at_least_ms ? delay : at_least_ms);
}

/* Goes on at once the first time, and like any failure when it comes again soon. */
static void go_on_soon(struct watch *w, int64_t now_ms)
{
    forget_old_failures(w, now_ms);
    bool first = w->step == 0;
    back_off(w, now_ms, 0);
    if (first) {
        w->next_at = now_ms;
    }
}

static void begin_relist(struct watch *w, enum list_from from, enum watch_relist reason)
{
    w->watching = false;
    w->page = 0;
    w->refusals = 0;
    w->from = from == FROM_NOT_OLDER && w->version.len == 0 ? FROM_LATEST : from;
    w->options.handler.relist(w->options.handler.arg, reason);
}

/* ---- requests ------------------------------------------------------------------------------- */

static void add_encoded(struct buf *query, const char *name, const struct buf *value)
{
    buf_printf(query, "&%s=", name);
    percent_encode((struct sv){value->data, value->len}, query);
}

static void add_list_query(struct watch *w, struct buf *query)
{
    if (w->page > 0) {
        buf_printf(query, "&limit=%d", WATCH_PAGE_LIMIT);
        add_encoded(query, "continue", &w->continue_token);
        return;
    }
    switch (w->from) {
    case FROM_ANY:
        buf_printf(query, "&limit=%d&resourceVersion=0", WATCH_PAGE_LIMIT);
        break;
    case FROM_NOT_OLDER:
        /* Without a limit: the server's cache answers, and with one the version would have to match
         * exactly. */
        add_encoded(query, "resourceVersion", &w->version);
        buf_puts(query, "&resourceVersionMatch=NotOlderThan");
        break;
    case FROM_LATEST:
        if (!w->unpaged) {
            buf_printf(query, "&limit=%d", WATCH_PAGE_LIMIT);
        }
        break;
    }
}

static int64_t add_watch_query(struct watch *w, struct buf *query)
{
    int64_t seconds = rng_range(w->options.rng, WATCH_TIMEOUT_MIN_S, WATCH_TIMEOUT_MAX_S + 1);
    buf_printf(query, "&watch=1&allowWatchBookmarks=true&timeoutSeconds=%" PRId64, seconds);
    add_encoded(query, "resourceVersion", &w->version);
    return seconds * MS_PER_S + WATCH_TIMEOUT_SLACK_MS;
}

bool watch_begin(struct watch *w, int64_t now_ms, struct watch_request *ret)
{
    int64_t timeout_ms = WATCH_LIST_TIMEOUT_MS;
    if (w->watching && w->version.len == 0) {
        /* Lost when memory ran out. A watch from "" would not tell what is gone. */
        begin_relist(w, FROM_LATEST, WATCH_RELIST_FAILURES);
    }
    buf_clear(&w->query);
    /* Each parameter brings its "&"; the first one's is cut off below. */
    buf_printf(&w->query, "%s%s", w->selectors[0] == '\0' ? "" : "&", w->selectors);
    if (w->watching) {
        timeout_ms = add_watch_query(w, &w->query);
    } else {
        add_list_query(w, &w->query);
    }
    if (!buf_ok(&w->query)) {
        back_off(w, now_ms, 0);
        return false;
    }
    buf_clear(&w->body);
    buf_clear(&w->page_version);
    buf_clear(&w->page_continue);
    w->started_ms = now_ms;
    w->events = 0;
    w->status = 0;
    api_status_clear(&w->problem);
    err_clear(&w->stream_err);
    json_stream_begin(w->stream, w->watching ? JSON_STREAM_OBJECTS : JSON_STREAM_LIST);
    if (!w->watching && w->page == 0) {
        w->options.handler.list_begin(w->options.handler.arg);
    }
    bool empty = w->query.len == 0;
    *ret = (struct watch_request){
        .is_watch = w->watching,
        .query = empty ? "" : w->query.data + 1,
        .timeout_ms = timeout_ms,
    };
    return true;
}

void watch_head(struct watch *w, long status)
{
    w->status = status;
}

bool watch_data(struct watch *w, const char *data, size_t len)
{
    if (w->status != 200) {
        size_t room = BODY_MAX - w->body.len;
        buf_append(&w->body, data, len < room ? len : room);
        return len < room;
    }
    json_stream_feed(w->stream, data, len, &w->stream_err);
    return w->stream_err.kind == ERR_NONE && !w->problem.present;
}

/* ---- what an end means ---------------------------------------------------------------------- */

static enum watch_result result_of_code(long code)
{
    switch (code) {
    case 401:
        return WATCH_UNAUTHORIZED;
    case 403:
        return WATCH_FORBIDDEN;
    case 429:
        return WATCH_THROTTLED;
    default:
        return WATCH_FAILED;
    }
}

static enum watch_result result_of_status(const struct api_status *s, long code)
{
    return s->expired || s->too_large_version || code == 410 ? WATCH_EXPIRED : result_of_code(code);
}

/* An answer other than 200, or an ERROR event (which stands in w->problem already). */
static enum watch_result refused(struct watch *w, long status, struct err *err)
{
    const char *what = "the server answered";
    if (w->problem.present) {
        what = "the watch ended with the error";
        status = w->problem.code;
    } else {
        api_status_parse(w->body.data, w->body.len, &w->problem);
    }
    err_set(err, ERR_REFUSED, "%s %ld%s%s", what, status, w->problem.message[0] == '\0' ? "" : ": ",
            w->problem.message);
    return result_of_status(&w->problem, status);
}

static enum watch_result judge_list(struct watch *w, const struct watch_outcome *o, struct err *err)
{
    if (w->stream_err.kind != ERR_NONE) {
        err_set(err, w->stream_err.kind, "%s", w->stream_err.msg);
        return WATCH_FAILED;
    }
    if (o->result != HTTP_OK) {
        err_set(err, ERR_NETWORK, "the list broke off: %s", o->error);
        return WATCH_FAILED;
    }
    if (!json_stream_complete(w->stream) || w->page_version.len == 0) {
        err_set(err, ERR_INPUT,
                "the answer is not a complete list: expected \"items\" and a resourceVersion");
        return WATCH_FAILED;
    }
    return WATCH_DONE;
}

static enum watch_result judge_watch(struct watch *w, int64_t now_ms, struct err *err)
{
    int64_t lasted_ms = now_ms - w->started_ms;
    if (w->stream_err.kind != ERR_NONE) {
        err_set(err, w->stream_err.kind, "%s", w->stream_err.msg);
        return WATCH_FAILED;
    }
    if (w->events == 0 && lasted_ms < WATCH_SHORT_MS) {
        err_set(err, ERR_NETWORK, "the watch ended after %" PRId64 " ms without an event",
                lasted_ms);
        return WATCH_FAILED;
    }
    return WATCH_DONE;
}

static enum watch_result judge(struct watch *w, const struct watch_outcome *o, int64_t now_ms,
                               struct err *err)
{
    if (w->problem.present || (o->status != 200 && o->status != 0)) {
        return refused(w, o->status, err);
    }
    if (o->status == 0) {
        err_set(err, ERR_NETWORK, "%s", o->error);
        return WATCH_UNREACHABLE;
    }
    return w->watching ? judge_watch(w, now_ms, err) : judge_list(w, o, err);
}

/* ---- where to go on ------------------------------------------------------------------------- */

static bool copy_text(struct buf *to, const struct buf *from)
{
    buf_clear(to);
    return buf_append(to, from->data, from->len);
}

/* A page has been read. */
static void page_done(struct watch *w, int64_t now_ms)
{
    bool ok = w->page > 0 || copy_text(&w->list_version, &w->page_version);
    if (ok && w->page_continue.len > 0) {
        ok = copy_text(&w->continue_token, &w->page_continue);
        w->page++;
        w->next_at = now_ms;
    } else if (ok) {
        /* Pages of one list have one version; should they not, the first one's loses nothing. */
        ok = copy_text(&w->version, &w->list_version);
        w->watching = true;
        w->synced = true;
        w->page = 0;
        w->from = FROM_NOT_OLDER;
        w->unpaged = false;
        w->next_at = now_ms;
        w->options.handler.list_end(w->options.handler.arg);
    }
    if (!ok) {
        /* Out of memory: what has been read stays, the list starts over. */
        w->watching = false;
        w->page = 0;
        w->from = FROM_LATEST;
        back_off(w, now_ms, 0);
    }
}

static void list_expired(struct watch *w, int64_t now_ms)
{
    if (w->page > 0) {
        w->unpaged = true;
        begin_relist(w, FROM_LATEST, WATCH_RELIST_PAGE);
        go_on_soon(w, now_ms);
    } else if (w->from != FROM_LATEST) {
        begin_relist(w, FROM_LATEST,
                     w->problem.too_large_version ? WATCH_RELIST_TOO_LARGE : WATCH_RELIST_EXPIRED);
        w->next_at = now_ms;
    } else {
        back_off(w, now_ms, 0);
    }
}

/* A list, or a page of it, is asked for again, but for a page that the server will never give: its
 * continue token was not accepted. */
static void list_failed(struct watch *w, long status, int64_t now_ms, int64_t at_least_ms)
{
    if (w->page > 0 && (status == 400 || status == 404)) {
        begin_relist(w, FROM_LATEST, WATCH_RELIST_PAGE);
    }
    back_off(w, now_ms, at_least_ms);
}

static int64_t retry_after_ms(const struct watch *w, const struct watch_outcome *o)
{
    int64_t ms = o->retry_after_ms;
    if (w->problem.retry_after_ms > ms) {
        ms = w->problem.retry_after_ms;
    }
    return ms < WATCH_RETRY_AFTER_MAX_MS ? ms : WATCH_RETRY_AFTER_MAX_MS;
}

static void watch_failed(struct watch *w, enum watch_result result, int64_t now_ms,
                         int64_t at_least_ms)
{
    /* An expired version that is too new is another server lagging behind: it will come. */
    if (result == WATCH_EXPIRED && !w->problem.too_large_version) {
        begin_relist(w, FROM_NOT_OLDER, WATCH_RELIST_EXPIRED);
        go_on_soon(w, now_ms);
        return;
    }
    bool answered = result == WATCH_FAILED || result == WATCH_FORBIDDEN || result == WATCH_EXPIRED;
    if (answered && ++w->refusals >= WATCH_FAILURES_MAX) {
        begin_relist(w, FROM_NOT_OLDER, WATCH_RELIST_FAILURES);
    }
    back_off(w, now_ms, at_least_ms);
}

static void watch_done(struct watch *w, int64_t now_ms)
{
    int64_t soonest = w->started_ms + WATCH_SHORT_MS;
    w->refusals = 0;
    w->next_at = now_ms > soonest ? now_ms : soonest;
}

enum watch_result watch_end(struct watch *w, const struct watch_outcome *outcome, int64_t now_ms,
                            struct err *err)
{
    enum watch_result result = judge(w, outcome, now_ms, err);
    int64_t at_least_ms = retry_after_ms(w, outcome);
    if (w->watching) {
        if (result == WATCH_DONE) {
            watch_done(w, now_ms);
        } else {
            watch_failed(w, result, now_ms, at_least_ms);
        }
    } else if (result == WATCH_DONE) {
        page_done(w, now_ms);
    } else if (result == WATCH_EXPIRED) {
        list_expired(w, now_ms);
    } else {
        list_failed(w, outcome->status, now_ms, at_least_ms);
    }
    return result;
}
