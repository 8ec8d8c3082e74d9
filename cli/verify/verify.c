#include "cli/verify/verify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/advice.h"
#include "cli/cmd.h"
#include "cli/verify/private.h"
#include "pprof/gzip.h"

#define PROFILE_NS (INT64_C(10) * NS_PER_MS)
/* The profile is a little old: no server takes it for one of the future. */
#define PROFILE_AGE_NS (INT64_C(1) * NS_PER_S)
/* Before the second question; it grows. */
#define ASK_FIRST_MS 200

/* ---- results --------------------------------------------------------------------------------- */

static void print_trial(const struct trial *t)
{
    const struct config_endpoint *e = &t->to.endpoint;
    printf("%-6s %s (%s, %s): %s\n", t->works ? "ok" : "FAILED", e->name, e->protocol->name, e->url,
           t->text);
    if (t->advice[0] != '\0') {
        printf("       %s\n", t->advice);
    }
    fflush(stdout);
}

void verify_print(struct verify *v)
{
    while (v->printed < v->n_trials && v->trials[v->printed].done) {
        print_trial(&v->trials[v->printed++]);
    }
    if (v->printed == v->n_trials && v->looks == 0) {
        loop_stop(v->loop);
    }
}

void verify_finish(struct trial *t, bool works, const char *advice, const char *fmt, ...)
{
    va_list ap;
    if (t->done) {
        return;
    }
    va_start(ap, fmt);
    vsnprintf(t->text, sizeof(t->text), fmt, ap);
    va_end(ap);
    t->advice = advice;
    t->works = works;
    t->done = true;
    loop_timer_cancel(t->again);
    verify_print(t->verify);
}

static void on_deadline(void *arg)
{
    struct verify *v = arg;
    char limit[32];
    format_duration_ms(v->options->timeout_ms, limit, sizeof(limit));
    for (size_t i = 0; i < v->n_trials; i++) {
        struct trial *t = &v->trials[i];
        if (t->sent_ms == 0) {
            verify_finish(t, false, advice_for(&t->to.endpoint, HTTP_ERR_TIMEOUT, 0),
                          "no answer within %s", limit);
        } else if (t->last[0] != '\0') {
            verify_finish(t, false, "", "accepted, but not read back within %s: %s", limit,
                          t->last);
        } else {
            verify_finish(t, false,
                          "it may take longer (--timeout), go to another tenant than is read "
                          "(tenant_id), or be dropped behind the answer: see the server's log",
                          "accepted, but not found within %s", limit);
        }
    }
}

/* ---- sending --------------------------------------------------------------------------------- */

/* The first attempt tells. */
static void on_attempt(void *arg, const struct write_attempt *a)
{
    struct trial *t = arg;
    if (t->done || t->sent_ms != 0) {
        return;
    }
    if (a->outcome == WRITE_SENT) {
        t->sent_ms = clock_mono_ms();
        verify_ask(t);
    } else {
        verify_finish(t, false, advice_for(&t->to.endpoint, a->result, a->status), "%s", a->text);
    }
}

static void on_again(void *arg)
{
    verify_ask(arg);
}

static struct labels *make_labels(const struct trial *t)
{
    struct labels_builder *b = labels_builder_new(t->verify->intern);
    if (b == NULL) {
        return NULL;
    }
    labels_builder_set_str(b, LABEL_SERVICE_NAME, t->service);
    labels_builder_set_str(b, LABEL_NAME, READBACK_TYPE);
    labels_builder_set_str(b, LABEL_DELTA, "false");
    labels_builder_set_str(b, READBACK_LABEL, t->verify->id);
    struct labels *l = labels_builder_build(b);
    labels_builder_free(b);
    return l;
}

static struct profile *make_profile(const struct trial *t)
{
    const struct verify *v = t->verify;
    struct labels *labels = make_labels(t);
    char *data = labels == NULL ? NULL : malloc(v->size);
    if (data == NULL) {
        labels_unref(labels);
        return NULL;
    }
    memcpy(data, v->data, v->size);
    struct profile *p = profile_new(labels, data, v->size);
    if (p != NULL) {
        p->from_ns = v->time_ns;
        p->until_ns = v->time_ns + PROFILE_NS;
        p->scraped_ms = clock_mono_ms();
    }
    return p;
}

/* A label that the endpoint puts on all profiles wins over ours. */
static const char *external_service(const struct config_endpoint *e)
{
    for (size_t i = 0; i < e->external_labels.n; i++) {
        if (strcmp(e->external_labels.at[i].name, LABEL_SERVICE_NAME) == 0 &&
            e->external_labels.at[i].value[0] != '\0') {
            return e->external_labels.at[i].value;
        }
    }
    return NULL;
}

/* DeepFlow is not asked for a label but for the service, which is one of a kind then. */
static char *make_service(const struct trial *t)
{
    const char *external = external_service(&t->to.endpoint);
    char *name = NULL;
    if (external != NULL) {
        return strdup(external);
    }
    if (t->how == NULL || !t->how->elsewhere) {
        return strdup(READBACK_SERVICE);
    }
    return asprintf(&name, "%s-%s", READBACK_SERVICE, t->verify->id) < 0 ? NULL : name;
}

static bool open_trial(struct verify *v, struct trial *t, struct err *err)
{
    struct writer_options options = {.config = &t->to.config,
                                     .loop = v->loop,
                                     .workers = v->workers,
                                     .intern = v->intern,
                                     .user_agent = USER_AGENT,
                                     .on_attempt = on_attempt,
                                     .attempt_arg = t};
    t->service = make_service(t);
    t->again = loop_timer_new(v->loop, on_again, t);
    if (t->service == NULL || t->again == NULL) {
        return err_memory(err);
    }
    t->writer = writer_new(&options, err);
    return t->writer != NULL;
}

static void start_trial(struct verify *v, struct trial *t)
{
    struct err err = ERR_INIT;
    if (!open_trial(v, t, &err)) {
        verify_finish(t, false, "", "%s", err.msg);
        return;
    }
    struct profile *p = make_profile(t);
    if (p == NULL) {
        verify_finish(t, false, "", "out of memory");
        return;
    }
    writer_put(t->writer, p, 1);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool make_data(struct verify *v, struct err *err)
{
    struct scratch *scratch = scratch_new();
    struct buf plain;
    buf_init(&plain, (size_t)64 * 1024);
    bool ok = scratch != NULL && readback_profile(v->time_ns, PROFILE_NS, &plain) &&
              gzip_pack(scratch, (struct sv){.p = plain.data, .n = plain.len}, &v->data, &v->size);
    buf_done(&plain);
    scratch_free(scratch);
    return ok || err_memory(err);
}

static bool add_trial(struct verify *v, const char *name, struct err *err)
{
    struct trial *t = &v->trials[v->n_trials];
    t->verify = v;
    t->advice = "";
    t->wait_ms = ASK_FIRST_MS;
    buf_init(&t->url, (size_t)64 * 1024);
    buf_init(&t->body, (size_t)64 * 1024);
    if (!one_endpoint_from_config(&t->to, config_ref(v->options->config), name, err)) {
        return false;
    }
    t->how = readback_of(&t->to.endpoint);
    if (t->to.endpoint.remote_timeout_ms > v->options->timeout_ms) {
        t->to.endpoint.remote_timeout_ms = v->options->timeout_ms;
    }
    v->n_trials++;
    return true;
}

static bool add_trials(struct verify *v, struct err *err)
{
    const struct config *c = v->options->config;
    v->trials = calloc(c->n_endpoints + 1, sizeof(v->trials[0]));
    if (v->trials == NULL) {
        return err_memory(err);
    }
    if (v->options->only != NULL) {
        return add_trial(v, v->options->only, err);
    }
    for (size_t i = 0; i < c->n_endpoints; i++) {
        if (!add_trial(v, c->endpoints[i].name, err)) {
            return false;
        }
    }
    return true;
}

static bool init(struct verify *v, struct err *err)
{
    struct rng rng;
    rng_seed_random(&rng);
    snprintf(v->id, sizeof(v->id), "%016" PRIx64, rng_next(&rng));
    v->time_ns = clock_wall_ns() - PROFILE_AGE_NS;
    v->loop = loop_new(err);
    v->workers = v->loop == NULL ? NULL : worker_pool_new(2, err);
    if (v->workers == NULL) {
        return false;
    }
    struct http_client_options options = {
        .loop = v->loop, .name = "verify", .user_agent = USER_AGENT};
    v->http = http_client_new(&options, err);
    if (v->http == NULL) {
        return false;
    }
    v->intern = intern_new();
    v->deadline = loop_timer_new(v->loop, on_deadline, v);
    if (v->intern == NULL || v->deadline == NULL) {
        return err_memory(err);
    }
    return make_data(v, err) && add_trials(v, err);
}

static void trial_done(struct trial *t)
{
    writer_free(t->writer);
    loop_timer_free(t->again);
    buf_done(&t->url);
    buf_done(&t->body);
    free(t->service);
    one_endpoint_done(&t->to);
}

static void done(struct verify *v)
{
    /* Calls on_answer() for each question that is open: the trials must be there. */
    http_client_free(v->http);
    for (size_t i = 0; i < v->n_trials; i++) {
        trial_done(&v->trials[i]);
    }
    worker_pool_free(v->workers);
    if (v->loop != NULL) {
        /* What the workers have sent home. */
        loop_run_once(v->loop);
    }
    loop_timer_free(v->deadline);
    free(v->trials);
    free(v->data);
    intern_free(v->intern);
    loop_free(v->loop);
}

bool verify_run(const struct verify_options *options, bool *ret_all_work, struct err *err)
{
    struct verify v = {.options = options};
    bool ok = init(&v, err);
    *ret_all_work = true;
    if (ok) {
        loop_timer_after(v.deadline, options->timeout_ms);
        for (size_t i = 0; i < v.n_trials; i++) {
            start_trial(&v, &v.trials[i]);
        }
        loop_run(v.loop);
    }
    for (size_t i = 0; i < v.n_trials; i++) {
        *ret_all_work = *ret_all_work && v.trials[i].works;
    }
    done(&v);
    return ok;
}
