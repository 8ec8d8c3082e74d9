#include "api/receive/otlp.h"

#include <string.h>

#include "agent/receive.h"
#include "api/receive/reply.h"
#include "api/served.h"
#include "base/clock.h"
#include "pprof/otlp/otlp.h"
#include "pprof/proto/otlp_fields.h"
#include "pprof/put.h"

/* A request whose profiles are being taken. */
struct taking {
    const struct exchange *x;
    struct receive *receive;
    int64_t deadline_ms;
    struct otlp_reader *reader;
    struct otlp_export *ret;
    enum receive_result worst; /* a transient refusal, else the first one */
    size_t refused_group;      /* the last group of which a profile was refused; 0: none */
};

static enum receive_result result_of(const struct err *err)
{
    return err->kind == ERR_MEMORY  ? RECEIVE_NO_MEMORY
           : err->kind == ERR_LIMIT ? RECEIVE_TOO_LARGE
                                    : RECEIVE_BAD_PROFILE;
}

/* Counts a result and keeps its error for the response: the first after which another try may
 * succeed, else the first one. */
static void note(struct taking *t, const struct otlp_profile *p, enum receive_result result,
                 const struct err *err)
{
    receive_count(t->receive, RECEIVE_OTLP, result, p->pprof.n, err);
    if (result < RECEIVE_BAD_REQUEST) {
        return;
    }
    /* Messages that became several profiles count once. */
    if (p->group != t->refused_group) {
        t->ret->rejected += p->n_messages;
        t->refused_group = p->group;
    }
    if (t->worst < RECEIVE_BAD_REQUEST ||
        (receive_is_transient(result) && !receive_is_transient(t->worst))) {
        t->worst = result;
        t->ret->err = *err;
    }
}

static void take_profile(struct taking *t, const struct otlp_profile *p)
{
    struct err err = ERR_INIT;
    struct receive_item item;
    enum receive_result result =
        receive_open_made(t->receive, RECEIVE_OTLP, p->pprof, &p->summary, &item, &err);
    if (result == RECEIVE_ACCEPTED) {
        const struct receive_facts facts = {
            .labels = p->labels, .n_labels = p->n_labels, .receipt = t->x->receipt};
        result = receive_put(t->receive, &item, &facts, &err);
    }
    note(t, p, result, &err);
    receive_close(t->receive, &item);
}

static bool is_over(const struct taking *t)
{
    return (t->deadline_ms != 0 && clock_mono_ms() >= t->deadline_ms) ||
           (t->x->cancelled != NULL && *t->x->cancelled);
}

/* Takes one profile after another. Returns false if the time is over before the end. */
static bool take_all(struct taking *t)
{
    for (;;) {
        struct otlp_profile p;
        struct err err = ERR_INIT;
        switch (otlp_reader_next(t->reader, &p, &err)) {
        case OTLP_STEP_END:
            return true;
        case OTLP_STEP_BAD:
            note(t, &p, result_of(&err), &err);
            break;
        case OTLP_STEP_EMPTY:
            note(t, &p, RECEIVE_IGNORED, NULL);
            break;
        case OTLP_STEP_PROFILE:
            take_profile(t, &p);
            break;
        }
        if (is_over(t)) {
            return false;
        }
    }
}

static void count_samples(struct taking *t)
{
    const struct otlp_facts *f = otlp_reader_facts(t->reader);
    receive_count_samples(t->receive, f->old_numbers ? RECEIVE_SAMPLES_OLD : RECEIVE_SAMPLES_READ,
                          f->samples - f->samples_without_value);
    receive_count_samples(t->receive, RECEIVE_SAMPLES_EMPTY, f->samples_without_value);
}

/* Refuses a request whose frame cannot be read. */
static bool refuse(struct receive *r, struct sv message, struct otlp_export *ret)
{
    struct err *err = &ret->err;
    bool memory = err->kind == ERR_MEMORY;
    bool large = err->kind == ERR_LIMIT;
    receive_count(r, RECEIVE_OTLP,
                  memory  ? RECEIVE_NO_MEMORY
                  : large ? RECEIVE_TOO_LARGE
                          : RECEIVE_BAD_REQUEST,
                  message.n, err);
    ret->code = memory  ? CONNECT_UNAVAILABLE
                : large ? CONNECT_RESOURCE_EXHAUSTED
                        : CONNECT_INVALID_ARGUMENT;
    return false;
}

bool otlp_export(const struct exchange *x, int64_t deadline_ms, struct sv message,
                 struct otlp_export *ret)
{
    struct taking t = {.x = x,
                       .receive = x->options->served->receiver,
                       .deadline_ms = deadline_ms,
                       .ret = ret,
                       .worst = RECEIVE_ACCEPTED};
    const struct otlp_limits limits = {.profile_max = receive_profile_max(t.receive),
                                       .total_max = OTLP_MADE_MAX,
                                       .work_max = x->bytes_max};
    *ret = (struct otlp_export){.err = ERR_INIT};
    t.reader = otlp_reader_new(message, &limits, &ret->err);
    if (t.reader == NULL) {
        return refuse(t.receive, message, ret);
    }
    bool ok = take_all(&t);
    count_samples(&t);
    if (!ok) {
        ret->code = CONNECT_DEADLINE_EXCEEDED;
        err_set(&ret->err, ERR_TIMEOUT, "not all of the profiles were accepted in time");
    } else if (receive_is_transient(t.worst)) {
        ok = false;
        ret->code = CONNECT_UNAVAILABLE;
    } else if (ret->rejected > 0 && ret->rejected == otlp_reader_facts(t.reader)->messages) {
        ok = false;
        ret->code = CONNECT_INVALID_ARGUMENT;
    }
    otlp_reader_free(t.reader);
    return ok;
}

bool otlp_put_response(const struct otlp_export *e, struct buf *out)
{
    struct buf partial;
    if (e->rejected == 0) {
        return true;
    }
    buf_init(&partial, ERR_MSG_MAX + 2 * WIRE_HEAD_MAX);
    wire_put_number(&partial, OTLP_PARTIAL_SUCCESS_REJECTED_PROFILES, e->rejected);
    wire_put_bytes(&partial, OTLP_PARTIAL_SUCCESS_ERROR_MESSAGE, e->err.msg, strlen(e->err.msg));
    wire_put_bytes(out, OTLP_EXPORT_RESPONSE_PARTIAL_SUCCESS, partial.data, partial.len);
    bool ok = buf_ok(&partial) && buf_ok(out);
    buf_done(&partial);
    return ok;
}

static bool export_call(struct connect_call *call, const void *request, struct err *err)
{
    const struct sv *message = request;
    struct otlp_export e;
    if (!otlp_export(call->exchange, call->deadline_ms, *message, &e)) {
        call->code = e.code;
        *err = e.err;
        return false;
    }
    return otlp_put_response(&e, &call->reply_bytes) || err_memory(err);
}

void otlp_method_work(struct exchange *x)
{
    static const struct connect_method methods[] = {{RECEIVE_OTLP_METHOD, .call = export_call}};
    receive_serve_call(x, methods);
}
