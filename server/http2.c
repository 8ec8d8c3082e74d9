#include "server/http2.h"

#include <event2/buffer.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>

#include "base/clock.h"
#include "server/http2_budget.h"
#include "server/http2_frames.h"
#include "server/http2_stream.h"

/* Time for the client to read that its connection ends. */
#define GOODBYE_MS 2000

/* A head that unpacks to more than this many bytes ends the connection. Beyond the limit of a head
 * the request is refused, but the rest of the head has to be unpacked, since later heads refer to
 * it; a few bytes can stand for megabytes, and checking these takes the time of a core. */
#define HEAD_UNPACKED_MAX (4 * REQUEST_HEAD_MAX)

struct http2 {
    struct http2_link link;
    struct http2_budget budget;
    struct http2_frames frames;
    size_t content; /* bytes of the present frame that a stream has taken */
    bool asks;      /* the present frame begins or completes a request */
    int64_t now_ms;
    int64_t idle_ms;   /* the time since when no stream is open */
    size_t head_bytes; /* unpacked bytes of the head now arriving */
    int64_t head_ms;   /* the time at which the head now arriving began; 0: none arrives */
    bool ended;        /* GOAWAY is queued or sent */
    bool broken;       /* libnghttp2 has failed: nothing more can be sent */
    bool leaves;       /* the client has sent a GOAWAY that libnghttp2 refuses */
    int64_t ended_ms;
    bool spent;                   /* the budget is used up */
    enum connection_end spent_on; /* by what, in the end */
    enum connection_end why;
};

struct sv http2_preface(void)
{
    return SV(NGHTTP2_CLIENT_MAGIC);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void note_end(struct http2 *h, enum connection_end why)
{
    if (!h->ended) {
        h->ended = true;
        h->ended_ms = h->now_ms;
        h->why = why;
    }
}

static void finish(struct http2 *h, enum connection_end why, uint32_t code)
{
    if (!h->ended) {
        note_end(h, why);
        h->broken = nghttp2_session_terminate_session(h->link.session, code) != 0;
    }
}

static void take(struct http2 *h, int64_t cost, enum connection_end why)
{
    if (!http2_budget_take(&h->budget, cost, h->now_ms) && !h->spent) {
        h->spent = true;
        h->spent_on = why;
    }
}

/* ---- what the client sends ------------------------------------------------------------------- */

/* Charges the frame that has just been read. A frame that libnghttp2 has ignored has neither asked
 * for anything nor brought content to a stream. */
static void charge(struct http2 *h)
{
    uint8_t type = h->frames.type;
    bool content = type == NGHTTP2_DATA && h->content >= HTTP2_DATA_MIN;
    if (content || (type == NGHTTP2_DATA && h->asks)) {
        http2_budget_give(&h->budget, HTTP2_GAIN_RECEIVED);
    } else if (type == NGHTTP2_RST_STREAM) {
        take(h, HTTP2_COST_RESET, CONNECTION_RESETS);
    } else if (!h->asks) {
        int64_t bytes = h->frames.length / HTTP2_BYTES_FOR_COST;
        take(h, (type == NGHTTP2_HEADERS ? HTTP2_COST_HEAD : HTTP2_COST_FRAME) + bytes,
             CONNECTION_FLOOD);
    }
    h->content = 0;
    h->asks = false;
}

static bool has_room(const struct http2 *h)
{
    const struct connection_streams *all = h->link.owner->o->streams;
    return h->link.n < all->max_of_one && all->now < all->max && h->link.unread < HTTP2_UNREAD_MAX;
}

static void note_refused(struct http2 *h)
{
    const struct connection_options *o = h->link.owner->o;
    o->on_stream_end(o->arg, STREAM_REFUSED);
    take(h, HTTP2_COST_RESET, CONNECTION_RESETS);
}

/* libnghttp2 refuses streams beyond the limit itself until the client has acknowledged the limit.
 * Afterwards such a stream is an error of the connection.
 *
 * The last stream in a GOAWAY of grpc-go is 2^31-1, which RFC 9113, 6.8 allows. libnghttp2 takes it
 * for an error, since it is no stream of the server. */
static int http2_on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int error,
                                  void *arg)
{
    struct http2 *h = arg;
    (void)session;
    h->leaves = h->leaves || frame->hd.type == NGHTTP2_GOAWAY;
    if (error == NGHTTP2_ERR_REFUSED_STREAM) {
        h->asks = true;
        note_refused(h);
    }
    return 0;
}

static void refuse_stream(struct http2 *h, int32_t id)
{
    note_refused(h);
    nghttp2_submit_rst_stream(h->link.session, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
}

static int http2_on_head_begins(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct http2 *h = arg;
    int32_t id = frame->hd.stream_id;
    h->head_bytes = 0;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
        return 0;
    }
    h->head_ms = h->now_ms;
    h->asks = true;
    struct http2_stream *s = has_room(h) ? http2_stream_new(&h->link, id) : NULL;
    if (s == NULL) {
        refuse_stream(h, id);
        return 0;
    }
    nghttp2_session_set_stream_user_data(session, id, s);
    return 0;
}

static int http2_on_header(nghttp2_session *session, const nghttp2_frame *frame,
                           const uint8_t *name, size_t name_n, const uint8_t *value, size_t value_n,
                           uint8_t flags, void *arg)
{
    struct http2 *h = arg;
    struct http2_stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    (void)flags;
    h->head_bytes += name_n + value_n;
    if (h->head_bytes > HEAD_UNPACKED_MAX) {
        h->spent = true;
        h->spent_on = CONNECTION_FLOOD;
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    if (s != NULL && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        http2_stream_header(s, (struct sv){.p = (const char *)name, .n = name_n},
                            (struct sv){.p = (const char *)value, .n = value_n});
    }
    return 0;
}

static int http2_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct http2 *h = arg;
    struct http2_stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        h->head_ms = 0;
        if (s != NULL) {
            s->request_ends = ends;
            if (!http2_stream_request(s)) {
                take(h, HTTP2_COST_HEAD, CONNECTION_FLOOD);
            }
        }
    } else if (s != NULL && ends &&
               (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS)) {
        h->asks = true;
        http2_stream_end(s);
    } else if (s != NULL && frame->hd.type == NGHTTP2_RST_STREAM) {
        s->reset = true;
    }
    return 0;
}

static int http2_on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                         size_t n, void *arg)
{
    struct http2 *h = arg;
    struct http2_stream *s = nghttp2_session_get_stream_user_data(session, id);
    (void)flags;
    if (s != NULL) {
        h->content += n;
        http2_stream_data(s, (struct sv){.p = (const char *)data, .n = n});
    } else {
        nghttp2_session_consume_connection(session, n);
    }
    return 0;
}

static int http2_on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
    struct http2 *h = arg;
    struct http2_stream *s = nghttp2_session_get_stream_user_data(session, id);
    (void)code;
    if (s == NULL) {
        return 0;
    }
    enum connection_stream_end how = s->sent    ? STREAM_DONE
                                     : s->slow  ? STREAM_SLOW_ANSWER
                                     : s->reset ? STREAM_RESET
                                                : STREAM_MALFORMED;
    if (how == STREAM_MALFORMED) {
        take(h, HTTP2_COST_RESET, CONNECTION_FLOOD);
    }
    nghttp2_session_set_stream_user_data(session, id, NULL);
    http2_stream_close(s, how);
    h->idle_ms = h->now_ms;
    return 0;
}

/* ---- what is sent ---------------------------------------------------------------------------- */

/* A response has been sent to its end. If the request has not been read to its end, the client is
 * asked to stop sending it (RFC 9113, 8.1). */
static void note_sent(struct http2 *h, int32_t id)
{
    struct http2_stream *s = nghttp2_session_get_stream_user_data(h->link.session, id);
    if (s == NULL) {
        return;
    }
    s->sent = true;
    http2_budget_give(&h->budget, HTTP2_GAIN_ANSWER);
    if (nghttp2_session_get_stream_remote_close(h->link.session, id) == 0) {
        nghttp2_submit_rst_stream(h->link.session, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR);
    }
}

static int http2_on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct http2 *h = arg;
    bool content = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
    (void)session;
    if (frame->hd.type == NGHTTP2_DATA && frame->hd.length >= HTTP2_SENT_MIN) {
        http2_budget_give(&h->budget, HTTP2_GAIN_SENT);
    }
    if (content && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
        note_sent(h, frame->hd.stream_id);
    }
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR) {
        note_end(h, h->leaves ? CONNECTION_DONE : CONNECTION_PROTOCOL);
    }
    return 0;
}

void http2_write(struct http2 *h, struct evbuffer *out)
{
    const uint8_t *data = NULL;
    ssize_t n = 1;
    bool busy = h->link.busy;
    h->link.busy = true;
    h->now_ms = clock_mono_ms();
    while (!h->broken && n > 0 && evbuffer_get_length(out) < HTTP2_OUTPUT_MAX) {
        n = nghttp2_session_mem_send(h->link.session, &data);
        h->broken = n < 0 || (n > 0 && evbuffer_add(out, data, (size_t)n) != 0);
    }
    h->link.busy = busy;
}

/* Reads frame by frame, so that each is charged before the next. Returns 0 or an error of
 * libnghttp2. */
static ssize_t read_frames(struct http2 *h, struct sv data)
{
    ssize_t n = 0;
    while (n >= 0 && data.n > 0 && !h->spent) {
        bool whole = false;
        size_t used = http2_frames_take(&h->frames, data, &whole);
        n = nghttp2_session_mem_recv(h->link.session, (const uint8_t *)data.p, used);
        if (whole) {
            charge(h);
        }
        data = sv_skip(data, used);
    }
    return n < 0 ? n : 0;
}

void http2_read(struct http2 *h, struct sv data)
{
    if (h->ended) {
        return;
    }
    h->link.busy = true;
    h->now_ms = clock_mono_ms();
    ssize_t error = read_frames(h, data);
    if (h->spent) {
        finish(h, h->spent_on, NGHTTP2_ENHANCE_YOUR_CALM);
    } else if (error == NGHTTP2_ERR_FLOODED) {
        finish(h, CONNECTION_FLOOD, NGHTTP2_ENHANCE_YOUR_CALM);
    } else if (error != 0) {
        finish(h, CONNECTION_PROTOCOL, NGHTTP2_PROTOCOL_ERROR);
    }
    h->link.busy = false;
}

/* ---- time ------------------------------------------------------------------------------------ */

static void check_streams(struct http2 *h, int64_t now_ms)
{
    struct http2_stream *next;
    h->link.check_ms = INT64_MAX;
    for (struct http2_stream *s = TAILQ_FIRST(&h->link.streams); s != NULL; s = next) {
        next = TAILQ_NEXT(s, next);
        bool was_slow = s->slow;
        int64_t at_ms = http2_stream_check_time(s, now_ms);
        if (was_slow && at_ms <= now_ms) {
            h->broken = true;
            note_end(h, CONNECTION_SLOW_ANSWER);
            return;
        }
        if (at_ms < h->link.check_ms) {
            h->link.check_ms = at_ms;
        }
    }
}

void http2_check_time(struct http2 *h, int64_t now_ms)
{
    const struct connection_options *o = h->link.owner->o;
    h->link.busy = true;
    h->now_ms = now_ms;
    if (h->head_ms != 0 && now_ms >= h->head_ms + o->request_ms) {
        finish(h, CONNECTION_SLOW_REQUEST, NGHTTP2_ENHANCE_YOUR_CALM);
    } else if (h->link.open == 0 && now_ms >= h->idle_ms + o->idle_ms) {
        finish(h, CONNECTION_IDLE, NGHTTP2_NO_ERROR);
    } else if (now_ms >= h->link.check_ms) {
        check_streams(h, now_ms);
    }
    h->link.busy = false;
}

bool http2_is_done(const struct http2 *h)
{
    return h->broken || (nghttp2_session_want_read(h->link.session) == 0 &&
                         nghttp2_session_want_write(h->link.session) == 0);
}

bool http2_is_stuck(const struct http2 *h, int64_t now_ms)
{
    return h->ended && (h->broken || now_ms >= h->ended_ms + GOODBYE_MS);
}

enum connection_end http2_why(const struct http2 *h)
{
    return h->why;
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool make_session(struct http2 *h)
{
    nghttp2_session_callbacks *calls = NULL;
    nghttp2_option *option = NULL;
    bool ok = nghttp2_session_callbacks_new(&calls) == 0 && nghttp2_option_new(&option) == 0;
    if (ok) {
        nghttp2_session_callbacks_set_on_begin_headers_callback(calls, http2_on_head_begins);
        nghttp2_session_callbacks_set_on_header_callback(calls, http2_on_header);
        nghttp2_session_callbacks_set_on_frame_recv_callback(calls, http2_on_frame);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, http2_on_data);
        nghttp2_session_callbacks_set_on_stream_close_callback(calls, http2_on_stream_close);
        nghttp2_session_callbacks_set_on_frame_send_callback(calls, http2_on_frame_sent);
        nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(calls, http2_on_invalid_frame);
        nghttp2_option_set_no_auto_window_update(option, 1);
        nghttp2_option_set_no_closed_streams(option, 1);
        ok = nghttp2_session_server_new2(&h->link.session, calls, h, option) == 0;
    }
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(calls);
    return ok;
}

/* Sends our limits to the client. */
static bool send_settings(struct http2 *h)
{
    const struct connection_options *o = h->link.owner->o;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, o->streams->max_of_one},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP2_STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, REQUEST_HEAD_MAX},
        /* The priorities of RFC 7540 are deprecated, and keeping them costs. */
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    return nghttp2_submit_settings(h->link.session, NGHTTP2_FLAG_NONE, settings,
                                   sizeof(settings) / sizeof(settings[0])) == 0 &&
           nghttp2_session_set_local_window_size(h->link.session, NGHTTP2_FLAG_NONE, 0,
                                                 HTTP2_WINDOW) == 0;
}

struct http2 *http2_new(struct connection *owner, void (*on_output)(void *arg), void *arg)
{
    struct http2 *h = calloc(1, sizeof(*h));
    if (h == NULL) {
        return NULL;
    }
    h->link.owner = owner;
    h->link.on_output = on_output;
    h->link.arg = arg;
    h->link.check_ms = INT64_MAX;
    h->now_ms = clock_mono_ms();
    h->idle_ms = h->now_ms;
    TAILQ_INIT(&h->link.streams);
    http2_budget_init(&h->budget, h->now_ms);
    http2_frames_init(&h->frames, http2_preface().n);
    return make_session(h) && send_settings(h) ? h : http2_free(h);
}

struct http2 *http2_free(struct http2 *h)
{
    if (h == NULL) {
        return NULL;
    }
    h->link.busy = true;
    struct http2_stream *s;
    while ((s = TAILQ_FIRST(&h->link.streams)) != NULL) {
        nghttp2_session_set_stream_user_data(h->link.session, s->id, NULL);
        http2_stream_cut(s);
    }
    nghttp2_session_del(h->link.session);
    free(h);
    return NULL;
}
