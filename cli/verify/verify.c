#include "cli/verify/verify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/stores.h"
#include "base/clock.h"
#include "cli/cmd.h"
#include "cli/exit_guard.h"
#include "cli/verify/private.h"
#include "pprof/gzip.h"
#include "write/advice.h"

#define PROFILE_NS (INT64_C(10) * NS_PER_MS)
/* Age of the profile: it is a little old, so that no server rejects it as one from the future. */
#define PROFILE_AGE_NS (INT64_C(1) * NS_PER_S)
/* Delay before the second query; later delays are longer. */
#define RETRY_FIRST_MS 200

/* Number of further timeouts for which a tenant that was empty before is queried. */
#define EMPTY_FACTOR 3

/* Time that joining all threads at the end may take; a thread may hang in a system call of a disk.
 */
#define FREE_MS (INT64_C(5) * MS_PER_S)

/* ---- the deadline -----------------------------------------------------------------------------
 */

/* Reports that the profile was not found in time. A new server may not be able to read a tenant
 * yet, so this does not count as a failure of the endpoint if the tenant was empty. */
static void finish_late(struct probe *probe, const char *limit)
{
    if (probe->sent_ms == 0) {
        verify_finish(probe, false, advice_for(&probe->to.endpoint, HTTP_ERR_TIMEOUT, 0),
                      "no answer within %s", limit);
    } else if (probe->last[0] != '\0') {
        verify_finish(probe, false, "", "accepted, but not read back within %s: %s", limit,
                      probe->last);
    } else if (probe->empty) {
        verify_finish(probe, true,
                      "a new Pyroscope may show nothing of a tenant before its first compaction: "
                      "ask again in a few minutes",
                      "accepted; not read back within %s: the tenant was empty", limit);
    } else {
        verify_finish(probe, false,
                      "wait longer (--timeout), compare the tenant that is written to with the one "
                      "that is read (tenant_id), and search the server's log for a profile that "
                      "was dropped after it had been accepted",
                      "accepted, but not found within %s", limit);
    }
}

static void verify_on_deadline(void *arg)
{
    struct verify *v = arg;
    char limit[32];
    int64_t waited_ms = v->options->timeout_ms * (v->extended ? 1 + EMPTY_FACTOR : 1);
    bool more = false;
    format_duration_ms(waited_ms, limit, sizeof(limit));
    for (size_t i = 0; i < v->n_probes; i++) {
        struct probe *probe = &v->probes[i];
        if (probe->empty && !probe->done && !v->extended) {
            more = true;
        } else {
            finish_late(probe, limit);
        }
    }
    if (more) {
        v->extended = true;
        loop_timer_after(v->deadline, EMPTY_FACTOR * v->options->timeout_ms);
    }
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Takes the result of the first attempt; later attempts do not count. */
static void verify_on_attempt(void *arg, const struct write_attempt *a)
{
    struct probe *probe = arg;
    if (probe->done || probe->sent_ms != 0) {
        return;
    }
    if (a->outcome == WRITE_SENT) {
        probe->sent_ms = clock_mono_ms();
        verify_ask(probe);
    } else {
        verify_finish(probe, false, a->advice, "%s", a->text);
    }
}

static struct labels *make_labels(const struct probe *probe)
{
    struct labels_builder *b = labels_builder_new(probe->verify->intern);
    if (b == NULL) {
        return NULL;
    }
    labels_builder_set_str(b, LABEL_SERVICE_NAME, probe->service);
    labels_builder_set_str(b, LABEL_NAME, READBACK_TYPE);
    labels_builder_set_str(b, LABEL_DELTA, "false");
    labels_builder_set_str(b, READBACK_LABEL, probe->verify->id);
    struct labels *l = labels_builder_build(b);
    labels_builder_free(b);
    return l;
}

static struct profile *make_profile(const struct probe *probe)
{
    const struct verify *v = probe->verify;
    struct labels *labels = make_labels(probe);
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

/* Makes the service of the profile. An external label of the endpoint overrides it. DeepFlow is
 * queried by service and not by label, so there the service is unique. */
static char *make_service(const struct probe *probe)
{
    const struct config_endpoint *e = &probe->to.endpoint;
    char *name = NULL;
    for (size_t i = 0; i < e->external_labels.n; i++) {
        const char *value = e->external_labels.at[i].value;
        if (strcmp(e->external_labels.at[i].name, LABEL_SERVICE_NAME) == 0 && value[0] != '\0') {
            return strdup(value);
        }
    }
    if (probe->how == NULL || !probe->how->elsewhere) {
        return strdup(READBACK_SERVICE);
    }
    return asprintf(&name, "%s-%s", READBACK_SERVICE, probe->verify->id) < 0 ? NULL : name;
}

static bool open_probe(struct verify *v, struct probe *probe, struct err *err)
{
    struct writer_options options = {.config = &probe->to.config,
                                     .loop = v->loop,
                                     .intern = v->intern,
                                     .on_attempt = verify_on_attempt,
                                     .attempt_arg = probe,
                                     .open_sink = stores_open_sink,
                                     .open_arg = v->stores};
    probe->service = make_service(probe);
    probe->retry_timer = loop_timer_new(v->loop, verify_ask, probe);
    if (probe->service == NULL || probe->retry_timer == NULL) {
        return err_memory(err);
    }
    probe->writer = writer_new(&options, err);
    return probe->writer != NULL;
}

static void start_probe(struct verify *v, struct probe *probe)
{
    struct err err = ERR_INIT;
    if (!open_probe(v, probe, &err)) {
        verify_finish(probe, false, "", "%s", err.msg);
        return;
    }
    struct profile *p = make_profile(probe);
    if (p == NULL) {
        verify_finish(probe, false, "", "out of memory");
        return;
    }
    writer_put(probe->writer, p, 1);
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool make_data(struct verify *v, struct err *err)
{
    struct scratch *scratch = scratch_new();
    struct buf plain;
    buf_init(&plain, (size_t)64 * 1024);
    bool ok = readback_profile(v->time_ns, PROFILE_NS, &plain) &&
              gzip_pack(scratch, (struct sv){.p = plain.data, .n = plain.len}, &v->data, &v->size);
    buf_done(&plain);
    scratch_free(scratch);
    return ok || err_memory(err);
}

static bool add_probe(struct verify *v, const char *name, struct err *err)
{
    struct probe *probe = &v->probes[v->n_probes];
    probe->verify = v;
    probe->advice = "";
    probe->wait_ms = RETRY_FIRST_MS;
    buf_init(&probe->url, (size_t)64 * 1024);
    buf_init(&probe->body, (size_t)64 * 1024);
    if (!one_endpoint_from_config(&probe->to, config_ref(v->options->config), name, err)) {
        return false;
    }
    probe->how = readback_of(&probe->to.endpoint);
    if (probe->to.endpoint.remote_timeout_ms > v->options->timeout_ms) {
        probe->to.endpoint.remote_timeout_ms = v->options->timeout_ms;
    }
    v->n_probes++;
    return true;
}

static bool add_probes(struct verify *v, struct err *err)
{
    const struct config *c = v->options->config;
    v->probes = calloc(c->n_endpoints + 1, sizeof(v->probes[0]));
    if (v->probes == NULL) {
        return err_memory(err);
    }
    if (v->options->only != NULL) {
        return add_probe(v, v->options->only, err);
    }
    for (size_t i = 0; i < c->n_endpoints; i++) {
        if (!add_probe(v, c->endpoints[i].name, err)) {
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
    v->workers = v->loop == NULL ? NULL : worker_pool_new(1, err);
    if (v->workers == NULL) {
        return false;
    }
    struct http_client_options options = {.loop = v->loop, .name = "verify"};
    v->http = http_client_new(&options, err);
    if (v->http == NULL) {
        return false;
    }
    v->intern = intern_new();
    v->deadline = loop_timer_new(v->loop, verify_on_deadline, v);
    v->stores = stores_new(NULL, NULL, NULL);
    if (v->intern == NULL || v->deadline == NULL || v->stores == NULL) {
        return err_memory(err);
    }
    return make_data(v, err) && add_probes(v, err);
}

static void probe_done(struct probe *probe)
{
    writer_free(probe->writer);
    loop_timer_free(probe->retry_timer);
    buf_done(&probe->url);
    buf_done(&probe->body);
    free(probe->service);
    one_endpoint_done(&probe->to);
}

static void done(struct verify *v)
{
    /* Calls verify_on_response() for each query in flight, so the probes must still exist. */
    http_client_free(v->http);
    for (size_t i = 0; i < v->n_probes; i++) {
        probe_done(&v->probes[i]);
    }
    stores_free(v->stores);
    worker_pool_free(v->workers);
    if (v->loop != NULL) {
        /* Runs the completed work of the workers. */
        loop_run_once(v->loop);
    }
    loop_timer_free(v->deadline);
    free(v->probes);
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
        for (size_t i = 0; i < v.n_probes; i++) {
            start_probe(&v, &v.probes[i]);
        }
        loop_run(v.loop);
    }
    for (size_t i = 0; i < v.n_probes; i++) {
        *ret_all_work = *ret_all_work && v.probes[i].works;
    }
    exit_guard_start(FREE_MS, *ret_all_work ? EXIT_DONE : EXIT_PEER);
    done(&v);
    return ok;
}
