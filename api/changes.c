#include "api/changes.h"

#include "api/attime.h"
#include "api/pprof_reply.h"
#include "base/clock.h"
#include "store/changes/report.h"

#define STATUS_BAD 400

const char *const changes_params[] = {"service",   "type",       "from",   "until", "base", "new",
                                      "base_from", "base_until", "labels", "limit", NULL};

/* ---- parameters ------------------------------------------------------------------------------ */

static int64_t time_of(const struct request *r, const char *name, const char *otherwise)
{
    struct sv text = request_param(r, name);
    return attime_read(text.n == 0 ? sv_from(otherwise) : text, clock_wall_ns()) / NS_PER_MS;
}

static bool read_limit(const struct request *r, size_t *ret, struct err *err)
{
    struct sv text = request_param(r, "limit");
    uint64_t n = REPORT_LIMIT_DEFAULT;
    if (text.n > 0 && (!parse_u64(text, REPORT_LIMIT_MAX, &n) || n == 0)) {
        return err_set(err, ERR_INPUT, "limit: expected a number from 1 to %d", REPORT_LIMIT_MAX);
    }
    *ret = (size_t)n;
    return true;
}

static bool read_times(struct changes_question *q, const struct request *r, struct err *err)
{
    q->ranges = request_param(r, "base_from").n > 0 || request_param(r, "base_until").n > 0;
    q->from_ms = time_of(r, "from", CHANGES_RANGE_DEFAULT);
    q->until_ms = time_of(r, "until", "now");
    if (q->from_ms >= q->until_ms) {
        return err_set(err, ERR_INPUT, "from must be before until");
    }
    if (!q->ranges) {
        return true;
    }
    if (request_param(r, "base_from").n == 0 || request_param(r, "base_until").n == 0) {
        return err_set(err, ERR_INPUT,
                       "base_from and base_until belong together: give both to compare two ranges");
    }
    if (request_param(r, "base").n > 0 || request_param(r, "new").n > 0) {
        return err_set(err, ERR_INPUT,
                       "base and new compare versions, base_from and base_until compare ranges: "
                       "give only one of them");
    }
    q->base_from_ms = time_of(r, "base_from", "now");
    q->base_until_ms = time_of(r, "base_until", "now");
    return q->base_from_ms < q->base_until_ms ||
           err_set(err, ERR_INPUT, "base_from must be before base_until");
}

bool changes_asked_read(struct changes_asked *a, const struct request *r, const struct query *q,
                        struct err *err)
{
    struct changes_question *question = &a->question;
    struct sv labels = request_param(r, "labels");
    struct sv type = request_param(r, "type");
    *a = (struct changes_asked){.question = {.service = request_param(r, "service")}};
    question->version[SIDE_BASE] = request_param(r, "base");
    question->version[SIDE_NEW] = request_param(r, "new");
    if (!read_times(question, r, err) || !read_limit(r, &a->limit, err)) {
        return false;
    }
    if (labels.n > 0) {
        a->selector = selector_parse(labels, err);
        question->selector = a->selector;
        if (a->selector == NULL) {
            return err_wrap(err, "labels");
        }
    }
    if (question->service.n == 0) {
        return true;
    }
    int64_t from_ms = question->ranges && question->base_from_ms < question->from_ms
                          ? question->base_from_ms
                          : question->from_ms;
    return changes_type(q, question->service, from_ms, question->until_ms,
                        type.n > 0 ? type : SV(REPORT_TYPE_DEFAULT), &question->type, err);
}

void changes_asked_done(struct changes_asked *a)
{
    a->selector = selector_free(a->selector);
}

/* ---- the response ---------------------------------------------------------------------------- */

static void fail(struct exchange *x, const struct err *err)
{
    buf_clear(&x->reply);
    x->status = err->kind == ERR_INPUT ? STATUS_BAD : query_error_status(err);
    buf_puts(&x->reply, "{");
    json_member("error", sv_from(err->msg), &x->reply);
    buf_puts(&x->reply, "}\n");
}

static bool answer(struct exchange *x, const struct query *q, const struct changes_asked *a,
                   struct err *err)
{
    const struct changes_question *question = &a->question;
    if (question->service.n == 0) {
        struct changes_rollouts all;
        if (!changes_rollouts(q, question->from_ms, question->until_ms, &all, err)) {
            return false;
        }
        changes_put_rollouts(&all, a->limit, &x->reply);
    } else {
        struct changes c;
        if (!changes_find(q, question, &c, err)) {
            return false;
        }
        changes_put_json(question, &c, a->limit, &x->reply);
    }
    exchange_add_partial(x);
    return buf_ok(&x->reply) || err_memory(err);
}

static void changes_get(struct exchange *x)
{
    struct err err = ERR_INIT;
    struct changes_asked asked = {.selector = NULL};
    struct query q;
    atomic_size_t damaged = 0;
    struct arena *arena = arena_new(x->bytes_max / 2);
    x->content_type = "application/json";
    buf_puts(&x->headers, "Cache-Control: no-store\r\n");
    bool ok = (arena != NULL || err_memory(&err)) &&
              ask_query(x, x->deadline_ms, arena, &damaged, &q, &err) &&
              changes_asked_read(&asked, x->request, &q, &err) && answer(x, &q, &asked, &err);
    if (!ok) {
        fail(x, &err);
    }
    ask_count_damaged(x, &damaged);
    changes_asked_done(&asked);
    arena_free(arena);
    exchange_deflate(x);
}

const struct route changes_routes[] = {
    {.path = "/api/v1/changes",
     .set = ROUTE_QUERY,
     .work = changes_get,
     .params = changes_params,
     .about = "what changed from one version of a service to the next"},
    {.path = NULL},
};
