#include "api/pgo.h"

#include <string.h>

#include "api/ask.h"
#include "api/attime.h"
#include "api/pprof_reply.h"
#include "base/clock.h"
#include "pprof/gzip.h"
#include "pprof/pgo.h"

#define PGO_PATH "/pgo/"
#define PGO_TYPE "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
/* Number of frames of each stack that are kept: those that the compiler reads, and some more. */
#define PGO_LOCATIONS 5
#define STATUS_BAD 400
#define STATUS_UNPROCESSABLE 422

/* ---- answers --------------------------------------------------------------------------------- */

static void fail(struct exchange *x, int status, const char *message)
{
    struct buf text;
    buf_init(&text, (size_t)2 * ERR_MSG_MAX);
    buf_printf(&text, "%s\n", message);
    exchange_text(x, status, "text/plain; charset=utf-8", (struct sv){text.data, text.len});
    buf_puts(&x->headers, "X-Go-Pprof: 1\r\n");
    buf_done(&text);
}

static void fail_ask(struct exchange *x, const struct err *err)
{
    fail(x, err->kind == ERR_INPUT ? STATUS_BAD : query_error_status(err), err->msg);
}

/* Sends the profile as gzip. */
static void send_profile(struct exchange *x, struct scratch *scratch, const struct buf *plain,
                         const char *name)
{
    struct sv packed;
    scratch_reset(scratch);
    if (!gzip_deflate(scratch, (struct sv){plain->data, plain->len}, &packed) ||
        !buf_append(&x->reply, packed.p, packed.n)) {
        fail(x, STATUS_UNAVAILABLE, "out of memory");
        return;
    }
    x->content_type = "application/octet-stream";
    pprof_reply_name(x, sv_from(name));
}

/* ---- questions ------------------------------------------------------------------------------- */

/* Reads the range. from: its default start. */
static bool read_range(const struct request *r, const char *from, struct ask *ask, struct err *err)
{
    int64_t now_ns = clock_wall_ns();
    struct sv text = request_param(r, "from");
    int64_t from_ns = attime_read(text.n == 0 ? sv_from(from) : text, now_ns);
    int64_t until_ns = attime_read(request_param(r, "until"), now_ns);
    return ask_range(ask, from_ns / NS_PER_MS, until_ns / NS_PER_MS, err);
}

/* Appends the merged profile, not compressed; nothing if there is no profile. */
static bool merge(const struct exchange *x, const struct ask *ask, bool pgo, struct buf *out,
                  struct err *err)
{
    struct query q;
    struct query_profile_options o = {
        .go_pgo = pgo,
        .keep_locations = PGO_LOCATIONS,
        .aggregate_callees = pgo,
    };
    atomic_size_t damaged = 0;
    struct arena *arena = arena_new(x->bytes_max / 2);
    bool ok = (arena != NULL || err_memory(err)) &&
              ask_query(x, x->deadline_ms, arena, &damaged, &q, err) &&
              query_profile(&q, &ask->range, &ask->type, &o, out, err);
    ask_count_damaged(x, &damaged);
    arena_free(arena);
    return ok;
}

/* ---- /pprof ---------------------------------------------------------------------------------- */

static bool read_type(const struct request *r, struct ask *ask, struct err *err)
{
    struct sv text = request_param(r, "query");
    struct sv id;
    if (text.n == 0) {
        return err_set(err, ERR_INPUT, "\"query\" is required: " PGO_TYPE "{service_name=\"...\"}");
    }
    ask->selector = selector_parse(text, err);
    ask->range.selector = ask->selector;
    return ask->selector != NULL &&
           (selector_take(ask->selector, LABEL_NAME, &id) ||
            err_set(err, ERR_INPUT, "\"query\" must contain a profile-type selection")) &&
           ask_type(ask, id, err);
}

static void pgo_pprof(struct exchange *x)
{
    struct err err = ERR_INIT;
    struct ask ask = {.selector = NULL};
    struct buf plain;
    struct scratch *scratch = scratch_new();
    buf_init(&plain, x->bytes_max);
    if (scratch == NULL) {
        fail(x, STATUS_UNAVAILABLE, "out of memory");
    } else if (!read_type(x->request, &ask, &err) ||
               !read_range(x->request, "now-1h", &ask, &err) ||
               !merge(x, &ask, false, &plain, &err)) {
        fail_ask(x, &err);
    } else if (plain.len == 0) {
        fail(x, STATUS_NOT_FOUND, "no profile of this type, time and selector");
    } else {
        send_profile(x, scratch, &plain, "merged.pb.gz");
    }
    ask_done(&ask);
    buf_done(&plain);
    scratch_free(scratch);
}

/* ---- /pgo ------------------------------------------------------------------------------------ */

static bool select_service(const struct request *r, struct sv service, struct ask *ask,
                           struct err *err)
{
    struct sv more = request_param(r, "query");
    ask->selector = selector_new(err);
    ask->range.selector = ask->selector;
    return ask->selector != NULL &&
           selector_add(ask->selector, SV(LABEL_SERVICE_NAME), MATCH_EQUAL, service, err) &&
           (more.n == 0 || selector_add_parsed(ask->selector, more, err) ||
            err_wrap(err, "query")) &&
           ask_type(ask, SV(PGO_TYPE), err);
}

static void send_pgo(struct exchange *x, struct scratch *scratch, const struct buf *plain)
{
    struct err err = ERR_INIT;
    if (pgo_check(scratch, (struct sv){plain->data, plain->len}, x->bytes_max, NULL, &err)) {
        send_profile(x, scratch, plain, "default.pgo");
    } else {
        fail(x, err.kind == ERR_INPUT ? STATUS_UNPROCESSABLE : query_error_status(&err), err.msg);
    }
}

static void pgo_service(struct exchange *x)
{
    struct err err = ERR_INIT;
    struct ask ask = {.selector = NULL};
    struct buf plain;
    struct sv service = sv_skip(x->request->path, sizeof(PGO_PATH) - 1);
    struct scratch *scratch = scratch_new();
    buf_init(&plain, x->bytes_max);
    if (scratch == NULL) {
        fail(x, STATUS_UNAVAILABLE, "out of memory");
    } else if (service.n == 0) {
        fail(x, STATUS_BAD, "expected " PGO_PATH "SERVICE");
    } else if (!select_service(x->request, service, &ask, &err) ||
               !read_range(x->request, "now-24h", &ask, &err) ||
               !merge(x, &ask, true, &plain, &err)) {
        fail_ask(x, &err);
    } else if (plain.len == 0) {
        fail(x, STATUS_NOT_FOUND, "no CPU profile of this service in this time");
    } else {
        send_pgo(x, scratch, &plain);
    }
    ask_done(&ask);
    buf_done(&plain);
    scratch_free(scratch);
}

const struct route pgo_routes[] = {
    {.path = "/pprof", .set = ROUTE_QUERY, .work = pgo_pprof},
    {.path = PGO_PATH, .is_prefix = true, .set = ROUTE_QUERY, .work = pgo_service},
    {.path = NULL},
};
