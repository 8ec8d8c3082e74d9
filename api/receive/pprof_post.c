#include "api/receive/pprof_post.h"

#include <stdio.h>

#include "api/receive/profile_name.h"
#include "api/receive/reply.h"
#include "api/served.h"

#define STATUS_NO_CONTENT 204
#define NAME_BYTES_MAX ((size_t)1024)
#define LABEL_PREFIX SV("label.")

static void finish(struct exchange *x, enum receive_result result, const struct err *err)
{
    receive_count(x->options->served->receiver, RECEIVE_PPROF, result, x->body.n, err);
    if (result < RECEIVE_BAD_REQUEST) {
        x->status = STATUS_NO_CONTENT;
        return;
    }
    char text[ERR_MSG_MAX + 2];
    int n = snprintf(text, sizeof(text), "%s\n", err->msg);
    exchange_text(x,
                  receive_is_transient(result)  ? STATUS_UNAVAILABLE
                  : result == RECEIVE_TOO_LARGE ? STATUS_TOO_LARGE
                                                : STATUS_BAD_REQUEST,
                  "text/plain; charset=utf-8", (struct sv){text, (size_t)n});
}

static void settle(struct exchange *x, enum exchange_wait result)
{
    const char *message;
    if (receive_end_wait(x, result, &message)) {
        exchange_text(x, STATUS_UNAVAILABLE, "text/plain; charset=utf-8", sv_from(message));
        buf_putc(&x->reply, '\n');
    }
}

/* Reads the labels in parameters: `service_name=cart&label.pod=a`. Other parameters are ignored. */
static size_t labels_of(const struct request *r, struct label *out)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_params; i++) {
        const struct request_param *p = &r->params[i];
        if (sv_eq_str(p->name, LABEL_SERVICE_NAME)) {
            out[n] = (struct label){p->name, p->value};
            n++;
        } else if (sv_starts_with(p->name, LABEL_PREFIX) &&
                   !sv_starts_with(sv_skip(p->name, LABEL_PREFIX.n), SV("__"))) {
            out[n] = (struct label){sv_skip(p->name, LABEL_PREFIX.n), p->value};
            n++;
        }
    }
    return n;
}

static enum receive_result take(struct exchange *x, struct sv body, struct err *err)
{
    struct receive *r = x->options->served->receiver;
    struct label labels[REQUEST_PARAMS_MAX + 1];
    struct receive_item item;
    struct buf name;
    buf_init(&name, NAME_BYTES_MAX);
    enum receive_result result = receive_open(r, RECEIVE_PPROF, PROFILE_PPROF, body, &item, err);
    if (result == RECEIVE_ACCEPTED) {
        size_t n = labels_of(x->request, labels);
        (void)profile_name_of(&item.summary, SV(""), request_param(x->request, "service_name"),
                              &name, err);
        labels[n] = (struct label){SV(LABEL_NAME), {name.data, name.len}};
        n++;
        const struct receive_facts facts = {.labels = labels, .n_labels = n, .receipt = x->receipt};
        result = receive_put(r, &item, &facts, err);
    }
    receive_close(r, &item);
    buf_done(&name);
    return result;
}

void pprof_post_work(struct exchange *x)
{
    struct err err = ERR_INIT;
    struct buf inflated;
    struct sv body;
    enum receive_result result;
    buf_init(&inflated, receive_body_max(x));
    if (!receive_begin_wait(x, settle)) {
        err_memory(&err);
        result = RECEIVE_NO_MEMORY;
    } else if (exchange_inflate(x, &inflated, &body, &err)) {
        result = take(x, body, &err);
    } else {
        result = err.kind == ERR_LIMIT    ? RECEIVE_TOO_LARGE
                 : err.kind == ERR_MEMORY ? RECEIVE_NO_MEMORY
                                          : RECEIVE_BAD_REQUEST;
    }
    finish(x, result, &err);
    buf_done(&inflated);
}
