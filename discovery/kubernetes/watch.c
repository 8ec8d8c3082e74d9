#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "discovery/kubernetes/watch_private.h"
#include "http/url.h"

const char *watch_relist_name(enum watch_relist reason)
{
    static const char *const names[] = {
        [WATCH_RELIST_EXPIRED] = "expired",   [WATCH_RELIST_TOO_LARGE] = "too_large",
        [WATCH_RELIST_PAGE] = "page_expired", [WATCH_RELIST_FAILURES] = "failures",
        [WATCH_RELIST_GAINED] = "gained",
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
        [WATCH_NOT_FOUND] = "not_found",
        [WATCH_UNAUTHORIZED] = "unauthorized",
        [WATCH_UNREACHABLE] = "unreachable",
        [WATCH_UNSUPPORTED] = "unsupported",
        [WATCH_NO_PROTOBUF] = "no_protobuf",
        [WATCH_FAILED] = "failed",
    };
    return names[result];
}

/* ---- life ------------------------------------------------------------------------------------ */

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
    return watch_make_streams(w) ? w : watch_free(w);
}

struct watch *watch_free(struct watch *w)
{
    if (w != NULL) {
        json_stream_free(w->json);
        proto_stream_free(w->proto);
        arena_free(w->arena);
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

/* ---- pace ------------------------------------------------------------------------------------ */

static void forget_old_failures(struct watch *w, int64_t now_ms)
{
    if (w->step > 0 && now_ms - w->last_failure_ms >= WATCH_BACKOFF_RESET_MS) {
        w->step = 0;
    }
}

/* Schedules the next request after the next delay, at least at_least_ms from now. */
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

/* Schedules the next request at once the first time; if this happens again soon, after a delay like
 * any failure. */
static void retry_soon(struct watch *w, int64_t now_ms)
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

bool watch_relist(struct watch *w)
{
    if (!w->watching) {
        return false;
    }
    begin_relist(w, FROM_NOT_OLDER, WATCH_RELIST_GAINED);
    return true;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void add_encoded(struct buf *query, const char *name, const struct buf *value)
{
    buf_printf(query, "&%s=", name);
    url_encode((struct sv){value->data, value->len}, query);
}

/* Appends the parameters of a list. A version from the server's cache, which ignores the limit, is
 * requested unless w->pages says otherwise. The latest version comes from etcd, in pages. */
static void add_list_query(struct watch *w, struct buf *query)
{
    enum list_from from = w->pages == PAGES_LATEST ? FROM_LATEST : w->from;
    bool limited = from == FROM_ANY || w->pages != PAGES_ANY;
    if (w->page > 0 || limited || (from == FROM_LATEST && !w->unpaged)) {
        buf_printf(query, "&limit=%d", WATCH_PAGE_LIMIT);
    }
    if (w->page > 0) {
        add_encoded(query, "continue", &w->continue_token);
    } else if (from == FROM_ANY) {
        buf_puts(query, "&resourceVersion=0");
    } else if (from == FROM_NOT_OLDER) {
        add_encoded(query, "resourceVersion", &w->version);
    }
    /* resourceVersionMatch is needed: with a limit alone, the version would have to match
     * exactly. */
    if (w->page == 0 && (from == FROM_NOT_OLDER || (from == FROM_ANY && w->pages != PAGES_ANY))) {
        buf_puts(query, "&resourceVersionMatch=NotOlderThan");
    }
}

/* Appends the parameters of a streamed list: all objects arrive as events, and the watch continues
 * after them. */
static void add_stream_query(struct watch *w, struct buf *query)
{
    buf_puts(query, "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    if (w->from == FROM_ANY) {
        buf_puts(query, "&resourceVersion=0");
    } else if (w->from == FROM_NOT_OLDER) {
        add_encoded(query, "resourceVersion", &w->version);
    }
}

static int64_t progress_limit_ms(const struct watch *w, int64_t usual_ms)
{
    return w->options.progress_ms > 0 ? w->options.progress_ms : usual_ms;
}

static int64_t add_watch_query(struct watch *w, struct buf *query)
{
    int64_t seconds = rng_range(w->options.rng, WATCH_TIMEOUT_MIN_S, WATCH_TIMEOUT_MAX_S + 1);
    buf_printf(query, "&watch=1&allowWatchBookmarks=true&timeoutSeconds=%" PRId64, seconds);
    if (w->streaming) {
        add_stream_query(w, query);
    } else {
        add_encoded(query, "resourceVersion", &w->version);
    }
    return seconds * MS_PER_S + WATCH_TIMEOUT_SLACK_MS;
}

/* Forgets the response to the last request. */
static void forget_answer(struct watch *w, int64_t now_ms)
{
    buf_clear(&w->body);
    buf_clear(&w->page_version);
    buf_clear(&w->page_continue);
    w->started_ms = now_ms;
    w->progress_ms = now_ms;
    w->received = 0;
    w->events = 0;
    w->changes = 0;
    w->slow = false;
    w->stalled = false;
    w->status = 0;
    w->json_only = now_ms < w->json_until_ms;
    w->any_data = false;
    w->is_protobuf = false;
    w->is_json = false;
    w->unreadable = false;
    api_status_clear(&w->problem);
    err_clear(&w->stream_err);
}

/* Chooses the form of the next request: a streamed list, a list or a watch. Without a version, a
 * list is requested. */
static void choose_form(struct watch *w)
{
    if (w->watching && w->version.len == 0) {
        /* The version was lost when memory ran out. A watch from "" would not report deleted
         * objects. */
        begin_relist(w, FROM_LATEST, WATCH_RELIST_FAILURES);
    }
    if (w->from == FROM_NOT_OLDER && w->version.len == 0) {
        w->from = FROM_LATEST;
    }
    w->streaming = !w->watching && w->page == 0 && !w->no_streams && !w->list_paged;
}

/* Returns the header Accept: a server sends the first encoding that it has. */
static const char *accept_of(const struct watch *w)
{
#define AS(kind) ";as=" kind ";g=meta.k8s.io;v=v1"
#define IN_JSON "application/json"
#define EITHER(as) PROTO_MEDIA_TYPE as ", " IN_JSON as
    static const char *const accepted[2][2][2] = {
        /* by metadata_only, is_list, json_only */
        {{EITHER(""), IN_JSON}, {EITHER(""), IN_JSON}},
        {{EITHER(AS("PartialObjectMetadata")) ", " IN_JSON,
          IN_JSON AS("PartialObjectMetadata") ", " IN_JSON},
         {EITHER(AS("PartialObjectMetadataList")) ", " IN_JSON,
          IN_JSON AS("PartialObjectMetadataList") ", " IN_JSON}},
    };
    return accepted[w->options.metadata_only][w->is_list][w->json_only];
}

bool watch_begin(struct watch *w, int64_t now_ms, struct watch_request *ret)
{
    int64_t timeout_ms = WATCH_LIST_TIMEOUT_MS;
    choose_form(w);
    buf_clear(&w->query);
    /* Each parameter begins with "&"; the first "&" is cut off below. */
    const char *selectors = w->options.selectors;
    buf_printf(&w->query, "%s%s", selectors[0] == '\0' ? "" : "&", selectors);
    if (w->watching || w->streaming) {
        timeout_ms = add_watch_query(w, &w->query);
    } else {
        add_list_query(w, &w->query);
    }
    if (!buf_ok(&w->query)) {
        back_off(w, now_ms, 0);
        return false;
    }
    forget_answer(w, now_ms);
    bool is_watch = w->watching || w->streaming;
    w->is_list = !is_watch;
    if (!w->watching && w->page == 0) {
        w->options.handler.list_begin(w->options.handler.arg);
    }
    bool empty = w->query.len == 0;
    *ret = (struct watch_request){
        .is_watch = is_watch,
        .query = empty ? "" : w->query.data + 1,
        .accept = accept_of(w),
        .timeout_ms = timeout_ms,
        .progress_timeout_ms = is_watch ? 0 : progress_limit_ms(w, WATCH_LIST_PROGRESS_MS),
    };
    return true;
}

void watch_head(struct watch *w, long status, const char *content_type)
{
    size_t len = strlen(PROTO_MEDIA_TYPE);
    w->status = status;
    w->is_protobuf = content_type != NULL && strncasecmp(content_type, PROTO_MEDIA_TYPE, len) == 0;
}

/* Returns true if a body begins as protobuf: a list with "k8s", a watch with the length of an
 * event, whose first byte is 0 because events are below 16 MiB. */
static bool begins_protobuf(const char *data)
{
    return data[0] == 'k' || data[0] == '\0';
}

static bool begins_json(const char *data)
{
    return data[0] != '\0' && strchr("{[ \t\r\n", data[0]) != NULL;
}

/* Determines the encoding from the first bytes of the body, because proxies lose or change
 * Content-Type. */
static void note_form(struct watch *w, const char *data)
{
    w->any_data = true;
    w->is_json = begins_json(data);
    w->is_protobuf = begins_protobuf(data) || (w->is_protobuf && !w->is_json);
    watch_begin_stream(w);
}

bool watch_is_protobuf(const struct watch *w)
{
    return w->is_protobuf;
}

/* Checks the size of a list, which could go on for ever: only its objects have limits of their
 * own. */
static bool check_size(struct watch *w, size_t len)
{
    uint64_t max = w->options.list_bytes_max;
    max = max == 0 ? WATCH_LIST_BYTES_MAX : max;
    w->received += w->watching ? 0 : len;
    return w->received <= max ||
           err_set(&w->stream_err, ERR_LIMIT, "the list has no end after %" PRIu64 " bytes", max);
}

bool watch_data(struct watch *w, int64_t now_ms, const char *data, size_t len)
{
    if (w->status != 200) {
        size_t room = BODY_MAX - w->body.len;
        buf_append(&w->body, data, len < room ? len : room);
        return len < room;
    }
    size_t before = w->changes;
    if (!w->any_data && len > 0) {
        note_form(w, data);
    }
    if (len > 0 && check_size(w, len)) {
        watch_feed_stream(w, data, len);
    }
    w->progress_ms = w->changes == before ? now_ms : w->progress_ms;
    return w->stream_err.kind == ERR_NONE && !w->problem.present;
}

int64_t watch_tick_at(const struct watch *w)
{
    if (!w->streaming || w->stalled) {
        return INT64_MAX;
    }
    int64_t over = w->progress_ms + progress_limit_ms(w, WATCH_STREAM_PROGRESS_MS);
    int64_t slow = w->started_ms + WATCH_STREAM_SLOW_MS;
    return w->slow || over < slow ? over : slow;
}

bool watch_tick(struct watch *w, int64_t now_ms)
{
    if (now_ms < watch_tick_at(w)) {
        return true;
    }
    bool over = now_ms >= w->progress_ms + progress_limit_ms(w, WATCH_STREAM_PROGRESS_MS);
    if (!w->slow) {
        w->slow = true;
        w->options.handler.slow(w->options.handler.arg);
    }
    w->stalled = over;
    return !over;
}

/* ---- the result of a request ----------------------------------------------------------------- */

static enum watch_result result_of_status(const struct api_status *s, long code)
{
    if (s->expired || s->too_large_version || code == 410) {
        return WATCH_EXPIRED;
    }
    return code == 401   ? WATCH_UNAUTHORIZED
           : code == 403 ? WATCH_FORBIDDEN
           : code == 404 ? WATCH_NOT_FOUND
           : code == 429 ? WATCH_THROTTLED
                         : WATCH_FAILED;
}

/* Interprets a response with another status than 200, or an ERROR event (already in w->problem). */
static enum watch_result refused(struct watch *w, long status, struct err *err)
{
    const char *what = "the server answered";
    if (w->problem.present) {
        what = "the watch ended with the error";
        status = w->problem.code;
    } else {
        bool is_protobuf = w->body.len > 0 && begins_protobuf(w->body.data);
        api_status_parse((struct sv){w->body.data, w->body.len}, is_protobuf, &w->problem);
    }
    err_set(err, ERR_REFUSED, "%s %ld%s%s", what, status, w->problem.message[0] == '\0' ? "" : ": ",
            w->problem.message);
    /* The server refuses to stream. The next list shows whether listing is permitted. */
    if (w->streaming && (status == 400 || status == 403 || status == 422)) {
        return WATCH_UNSUPPORTED;
    }
    if (!w->json_only && (status == 406 || status == 415)) {
        return WATCH_NO_PROTOBUF;
    }
    return result_of_status(&w->problem, status);
}

static enum watch_result check_list(struct watch *w, const struct watch_outcome *o, struct err *err)
{
    if (o->result != HTTP_DONE) {
        err_set(err, ERR_NETWORK, "the list broke off: %s", o->error);
        return WATCH_FAILED;
    }
    if (!w->any_data || !watch_stream_complete(w) || w->page_version.len == 0) {
        err_set(err, ERR_INPUT,
                "the answer is not a complete list: expected \"items\" and a resourceVersion");
        return WATCH_FAILED;
    }
    return WATCH_DONE;
}

static enum watch_result check_watch(struct watch *w, int64_t now_ms, struct err *err)
{
    int64_t lasted_ms = now_ms - w->started_ms;
    if (w->events == 0 && lasted_ms < WATCH_SHORT_MS) {
        err_set(err, ERR_NETWORK, "the watch ended after %" PRId64 " ms without an event",
                lasted_ms);
        return WATCH_FAILED;
    }
    return WATCH_DONE;
}

static enum watch_result check_end(struct watch *w, const struct watch_outcome *o, int64_t now_ms,
                                   struct err *err)
{
    /* If nothing has arrived, a proxy may have buffered the response, which does not end. */
    if (w->stalled) {
        char limit[32];
        format_duration_ms(progress_limit_ms(w, WATCH_STREAM_PROGRESS_MS), limit, sizeof(limit));
        err_set(err, ERR_NETWORK,
                "the streamed list has made no progress for %s and is not complete", limit);
        return WATCH_UNSUPPORTED;
    }
    if (w->problem.present || (o->status != 200 && o->status != 0)) {
        return refused(w, o->status, err);
    }
    if (o->status == 0) {
        err_set(err, ERR_NETWORK, "%s", o->error);
        return WATCH_UNREACHABLE;
    }
    if (w->stream_err.kind != ERR_NONE) {
        err_set(err, w->stream_err.kind, "%s", w->stream_err.msg);
        return w->unreadable && !w->json_only ? WATCH_NO_PROTOBUF : WATCH_FAILED;
    }
    if (w->streaming) {
        err_set(err, ERR_NETWORK, "the streamed list broke off before its end");
        return WATCH_FAILED;
    }
    return w->watching ? check_watch(w, now_ms, err) : check_list(w, o, err);
}

/* ---- the next request ------------------------------------------------------------------------ */

static bool copy_text(struct buf *to, const struct buf *from)
{
    buf_clear(to);
    return buf_append(to, from->data, from->len);
}

void watch_listed(struct watch *w)
{
    w->watching = true;
    w->page = 0;
    w->from = FROM_NOT_OLDER;
    w->unpaged = false;
    w->pages = PAGES_ANY;
    w->list_paged = false;
    w->no_streams = w->no_streams || w->forbidden; /* listing is permitted, streaming is not */
    w->forbidden = false;
    w->refusals = 0;
    w->options.handler.list_end(w->options.handler.arg);
}

/* Continues after a page has been read. */
static void end_page(struct watch *w, int64_t now_ms)
{
    bool ok = w->page > 0 || copy_text(&w->list_version, &w->page_version);
    if (ok && w->page_continue.len > 0) {
        ok = copy_text(&w->continue_token, &w->page_continue);
        w->page++;
        w->next_at = now_ms;
    } else if (ok) {
        /* All pages of a list should have the same version. If they differ, watching from that of
         * the first page loses no change. */
        ok = copy_text(&w->version, &w->list_version);
        w->next_at = now_ms;
        if (ok) {
            watch_listed(w);
        }
    }
    if (!ok) {
        /* If memory ran out, the objects read so far stay, and the list starts over. */
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
        retry_soon(w, now_ms);
    } else if (w->from != FROM_LATEST) {
        begin_relist(w, FROM_LATEST,
                     w->problem.too_large_version ? WATCH_RELIST_TOO_LARGE : WATCH_RELIST_EXPIRED);
        w->next_at = now_ms;
    } else {
        /* Not even the latest version could be streamed, but pages may work. */
        w->list_paged = w->list_paged || w->streaming;
        back_off(w, now_ms, 0);
    }
}

/* Returns true if the list might come in smaller pieces: it broke off, made no progress, or was
 * refused as too much work; or the server does not understand the limit together with a version. */
static bool was_too_much(const struct watch *w, const struct watch_outcome *o)
{
    bool refused = w->pages == PAGES_NOT_OLDER && (o->status == 400 || o->status == 422);
    return w->page == 0 && (o->status == 200 || o->status == 413 || o->status == 504 || refused ||
                            o->result == HTTP_ERR_TIMEOUT);
}

/* Schedules a failed list, or page, again. If the server does not accept the continue token, the
 * list starts over. */
static void list_failed(struct watch *w, const struct watch_outcome *o, int64_t now_ms,
                        int64_t at_least_ms)
{
    long status = o->status;
    if (w->forbidden && status == 403) {
        /* The missing permission was the reason, not missing support for streams. */
        w->forbidden = false;
        w->list_paged = false;
        back_off(w, now_ms, at_least_ms);
        return;
    }
    if (!w->streaming && was_too_much(w, o)) {
        w->pages = w->pages == PAGES_ANY ? PAGES_NOT_OLDER : PAGES_LATEST;
        w->unpaged = false;
    }
    /* If there was a response at all, pages may work. */
    w->list_paged = w->list_paged || (w->streaming && status != 0);
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
    /* A version that is too new for this server does not expire: the server lags and will catch
     * up. */
    if (result == WATCH_EXPIRED && !w->problem.too_large_version) {
        begin_relist(w, FROM_NOT_OLDER, WATCH_RELIST_EXPIRED);
        retry_soon(w, now_ms);
        return;
    }
    bool answered = result == WATCH_FAILED || result == WATCH_FORBIDDEN ||
                    result == WATCH_NOT_FOUND || result == WATCH_EXPIRED;
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

/* Sets the time until which requests ask for JSON alone. */
static void avoid_protobuf(struct watch *w, int64_t now_ms)
{
    int64_t ms = WATCH_JSON_MIN_MS;
    for (unsigned i = 0; i < w->json_step && ms < WATCH_JSON_MAX_MS; i++) {
        ms *= 2;
    }
    ms = ms < WATCH_JSON_MAX_MS ? ms : WATCH_JSON_MAX_MS;
    w->json_step += ms < WATCH_JSON_MAX_MS;
    w->json_until_ms = now_ms + ms;
}

enum watch_result watch_end(struct watch *w, const struct watch_outcome *outcome, int64_t now_ms,
                            struct err *err)
{
    enum watch_result result = check_end(w, outcome, now_ms, err);
    int64_t at_least_ms = retry_after_ms(w, outcome);
    if (w->is_protobuf && !w->json_only && result == WATCH_DONE) {
        w->json_step = 0;
    }
    if (result == WATCH_NO_PROTOBUF) {
        avoid_protobuf(w, now_ms);
        w->next_at = now_ms;
    } else if (w->watching) {
        if (result == WATCH_DONE) {
            watch_done(w, now_ms);
        } else {
            watch_failed(w, result, now_ms, at_least_ms);
        }
    } else if (result == WATCH_UNSUPPORTED) {
        w->forbidden = outcome->status == 403;
        w->no_streams = !w->forbidden;
        w->list_paged = true;
        w->next_at = now_ms;
    } else if (result == WATCH_DONE) {
        end_page(w, now_ms);
    } else if (result == WATCH_EXPIRED) {
        list_expired(w, now_ms);
    } else {
        list_failed(w, outcome, now_ms, at_least_ms);
    }
    return result;
}
