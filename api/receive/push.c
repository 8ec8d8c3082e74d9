#include "api/receive/push.h"

#include "api/connect.h"
#include "api/proto/push.pb-c.h"
#include "api/receive/reply.h"
#include "api/served.h"
#include "base/clock.h"

/* Returns how many labels of a series are read: at most one more than allowed, so that the excess
 * is noticed. */
static size_t count_labels(const Api__RawProfileSeries *s)
{
    return s->n_labels > RECEIVE_LABELS_MAX ? RECEIVE_LABELS_MAX + 1 : s->n_labels;
}

/* Makes views of the labels of a series, in the arena of the call. NULL if out of memory. */
static struct label *labels_of(const struct connect_call *call, const Api__RawProfileSeries *s)
{
    size_t n = count_labels(s);
    struct label *labels = arena_array(call->arena, n + 1, sizeof(*labels));
    for (size_t i = 0; labels != NULL && i < n; i++) {
        labels[i] = (struct label){sv_from(s->labels[i]->name), sv_from(s->labels[i]->value)};
    }
    return labels;
}

static enum receive_result take_sample(const struct connect_call *call,
                                       const Api__RawProfileSeries *series,
                                       const Api__RawSample *sample, struct err *err)
{
    struct receive *r = call->exchange->options->served->receiver;
    struct sv data = {(const char *)sample->raw_profile.data, sample->raw_profile.len};
    struct receive_item item;
    struct label *labels = labels_of(call, series);
    enum receive_result result = receive_open(r, RECEIVE_PUSH, PROFILE_PPROF, data, &item, err);
    if (labels == NULL) {
        err_memory(err);
        result = RECEIVE_NO_MEMORY;
    }
    if (result == RECEIVE_ACCEPTED) {
        const struct receive_facts facts = {
            .labels = labels, .n_labels = count_labels(series), .receipt = call->exchange->receipt};
        result = receive_put(r, &item, &facts, err);
    }
    receive_count(r, RECEIVE_PUSH, result, data.n, err);
    receive_close(r, &item);
    return result;
}

/* Keeps the error for the response: the first error after which another try may succeed, else the
 * first error. So the sender repeats the request if any of its profiles found no room. */
static void note(enum receive_result result, const struct err *err, enum receive_result *worst,
                 struct err *ret)
{
    bool refused = result >= RECEIVE_BAD_REQUEST;
    bool first = *worst < RECEIVE_BAD_REQUEST;
    if (refused && (first || (receive_is_transient(result) && !receive_is_transient(*worst)))) {
        *worst = result;
        *ret = *err;
    }
}

static bool is_over(const struct connect_call *call)
{
    const struct exchange *x = call->exchange;
    return (call->deadline_ms != 0 && clock_mono_ms() >= call->deadline_ms) ||
           (x->cancelled != NULL && *x->cancelled);
}

/* Tries every profile and keeps the good ones, as Pyroscope's server does. */
static bool push_call(struct connect_call *call, const void *request, struct err *err)
{
    const Api__PushRequest *push = request;
    enum receive_result worst = RECEIVE_ACCEPTED;
    size_t n = 0;
    for (size_t i = 0; i < push->n_series; i++) {
        const Api__RawProfileSeries *series = push->series[i];
        for (size_t k = 0; k < series->n_samples; k++, n++) {
            struct err one = ERR_INIT;
            if (is_over(call)) {
                return connect_fail(call, CONNECT_DEADLINE_EXCEEDED, err,
                                    "%zu of the profiles were accepted in time", n);
            }
            note(take_sample(call, series, series->samples[k], &one), &one, &worst, err);
        }
    }
    if (n == 0) {
        err_set(err, ERR_INPUT, "no profiles received");
        receive_count(call->exchange->options->served->receiver, RECEIVE_PUSH, RECEIVE_BAD_REQUEST,
                      0, err);
        return connect_fail(call, CONNECT_INVALID_ARGUMENT, err, "no profiles received");
    }
    call->code = receive_is_transient(worst) ? CONNECT_UNAVAILABLE : CONNECT_INVALID_ARGUMENT;
    return worst < RECEIVE_BAD_REQUEST;
}

void push_work(struct exchange *x)
{
    static const struct connect_method methods[] = {
        {RECEIVE_PUSH_PATH, &api__push_request__descriptor, &api__push_response__descriptor,
         push_call},
    };
    receive_serve_call(x, methods);
}
