/* One scrape: the request, the judgement of what came, the profile. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "scraper/engine.h"

#define URL_MAX ((size_t)16 * 1024)
/* Warnings about failures: as many in each period, the others are counted. */
#define FAILURES_LOGGED 50
#define FAILURES_PERIOD_MS 10000
/* Bytes of an error page that a message shows. */
#define PAGE_EXCERPT 160

/* A scrape in flight. Target and entry are those of the start: a profile carries the labels that
 * were right when it was asked for. */
struct fetch {
    struct engine *engine;
    struct scrape *scrape;
    struct target *target;
    size_t entry;
    struct http_transfer *transfer;
};

static void on_done(void *arg, const struct http_response *response);

static struct fetch *fetch_free(struct fetch *f)
{
    target_unref(f->target);
    free(f);
    return NULL;
}

/* False if out of memory. */
static bool send_request(struct fetch *f, const char *url)
{
    const struct config_job *job = f->target->job_config;
    size_t last = f->scrape->last_size;
    struct http_request r = {
        .url = url,
        .settings = &job->http,
        .timeout_ms = target_timeout_ms(f->target, f->entry),
        .max_body = (size_t)job->body_size_limit,
        .size_hint = last + last / 8, /* profiles of one target are much alike */
        .on_done = on_done,
        .arg = f,
    };
    f->transfer = f->engine->io.start(f->engine->io.arg, &r);
    return f->transfer != NULL;
}

bool fetch_start(struct engine *e, struct scrape *sc)
{
    struct fetch *f = malloc(sizeof(*f));
    if (f == NULL) {
        return false;
    }
    *f = (struct fetch){
        .engine = e, .scrape = sc, .target = target_ref(sc->target), .entry = sc->entry};
    struct buf url;
    buf_init(&url, URL_MAX);
    bool ok = target_scrape_url(f->target, f->entry, &url) && send_request(f, url.data);
    buf_done(&url);
    if (!ok) {
        fetch_free(f);
        return false;
    }
    sc->fetch = f;
    int64_t now = e->io.mono_ns(e->io.arg);
    status_started(e, sc, now + e->io.wall_offset_ns(e->io.arg));
    metric_observe(e->meter.lateness, (double)(now - sc->due_ms * NS_PER_MS) / (double)NS_PER_S);
    return true;
}

void fetch_cancel(struct engine *e, struct scrape *sc)
{
    e->io.cancel(e->io.arg, sc->fetch->transfer);
    sc->fetch = fetch_free(sc->fetch);
}

/* ---- what came ---------------------------------------------------------------------------------
 */

/* "HTTP 404: 404 page not found" */
static void describe_status(const struct http_response *response, struct err *err)
{
    char text[PAGE_EXCERPT + 1] = "";
    size_t n = response->body->len < PAGE_EXCERPT ? response->body->len : PAGE_EXCERPT;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)response->body->data[i];
        text[i] = c >= ' ' && c < 0x7f ? (char)c : ' ';
    }
    while (n > 0 && text[n - 1] == ' ') {
        n--;
    }
    text[n] = '\0';
    if (response->status / 100 == 3) {
        err_set(err, ERR_REFUSED, "HTTP %ld to %.256s, which is not followed", response->status,
                response->location[0] == '\0' ? "nowhere" : response->location);
    } else {
        err_set(err, ERR_REFUSED, "HTTP %ld%s%s", response->status, n == 0 ? "" : ": ", text);
    }
}

/* The reason of a failure with its sentence in err; "" if the body is a profile. */
static const char *judge(const struct http_response *response, struct err *err)
{
    struct sv body = {.p = response->body->data, .n = response->body->len};
    if (response->result == HTTP_OK && response->status / 100 == 2) {
        return check_reason(check_profile(body.p, body.n, err));
    }
    if (response->result == HTTP_OK) {
        describe_status(response, err);
    } else {
        err_set(err, ERR_NETWORK, "%s", response->error);
    }
    return scrape_failure_reason(response->result, response->status, body);
}

/* Between the check and the queue: what must happen to the bytes of a profile. Profiles of
 * cumulative types (type->cumulative) go to the delta engine from here, with sc as the place of
 * their baseline, and get `__delta__`="false"; so far every profile is passed on byte for byte. */
static void process_body(const struct scrape *sc, char **data, size_t *size)
{
    (void)sc;
    (void)data;
    (void)size;
}

/* from: the request went out; until: the last byte came. Both by one offset of the wall clock, so
 * that the window is as long as it was, even if the clock was set meanwhile. */
static struct profile *make_profile(struct fetch *f, const struct http_response *response)
{
    struct engine *e = f->engine;
    int64_t offset = e->io.wall_offset_ns(e->io.arg);
    struct labels *labels = target_series(f->target, f->entry, e->builder);
    size_t size;
    char *data = buf_take(response->body, &size);
    if (labels == NULL || data == NULL) {
        labels_unref(labels);
        free(data);
        return NULL;
    }
    process_body(f->scrape, &data, &size);
    struct profile *p = profile_new(labels, data, size);
    if (p == NULL) {
        return NULL;
    }
    p->from_ns = (response->sent_ns != 0 ? response->sent_ns : response->start_ns) + offset;
    p->until_ns = response->end_ns + offset;
    p->scraped_ms = response->end_ns / NS_PER_MS;
    p->is_delta = target_scrape_type(f->target, f->entry)->is_delta;
    return p;
}

static void log_scrape(struct engine *e, struct scrape *sc, enum log_level level, const char *msg,
                       const char *reason, const char *sentence)
{
    uint32_t suppressed = 0;
    if (!log_enabled(e->log, level) ||
        !log_limit_allow(&e->failures_limit, engine_now_ms(e), FAILURES_PERIOD_MS, FAILURES_LOGGED,
                         &suppressed)) {
        return;
    }
    struct buf url;
    buf_init(&url, URL_MAX);
    target_scrape_url(sc->target, sc->entry, &url);
    const struct log_field fields[] = {
        LOG_STR("job", sc->target->job_config->name),
        LOG_STR("type", scrape_type(sc)->name),
        LOG_STR("url", buf_ok(&url) ? url.data : ""),
        LOG_STR("reason", reason),
        LOG_STR("err", sentence),
        LOG_INT("suppressed", suppressed),
        LOG_END,
    };
    log_write(e->log, level, msg, fields);
    buf_done(&url);
}

/* Says once that a scrape fails for a reason it did not fail for before, not at every tick. */
static void report_failure(struct engine *e, struct scrape *sc, int64_t duration_ns,
                           const char *reason, const struct err *err)
{
    bool news = sc->reason == NULL || strcmp(sc->reason, reason) != 0;
    metric_inc(sc->meter->failed);
    meter_failure(&e->meter, reason);
    status_failed(e, sc, duration_ns, reason, err->msg);
    if (news) {
        log_scrape(e, sc, LOG_WARN, "scrape failed", reason, err->msg);
    }
}

void fetch_failed(struct engine *e, struct scrape *sc, const char *reason, const struct err *err)
{
    report_failure(e, sc, -1, reason, err);
}

static void report_success(struct engine *e, struct scrape *sc, int64_t duration_ns, size_t size)
{
    bool news = sc->health == SCRAPE_DOWN;
    metric_inc(sc->meter->ok);
    metric_observe(sc->meter->duration, (double)duration_ns / (double)NS_PER_S);
    metric_observe(sc->meter->size, (double)size);
    status_succeeded(e, sc, duration_ns, size);
    if (news) {
        log_scrape(e, sc, LOG_INFO, "scrape works again", "", "");
    }
}

static void on_done(void *arg, const struct http_response *response)
{
    struct fetch *f = arg;
    struct engine *e = f->engine;
    struct scrape *sc = f->scrape;
    struct err err = ERR_INIT;
    int64_t duration = response->end_ns - response->start_ns;
    size_t size = response->body->len;
    const char *reason = judge(response, &err);
    struct profile *profile = NULL;
    if (reason[0] == '\0' && (profile = make_profile(f, response)) == NULL) {
        err_set(&err, ERR_MEMORY, "out of memory");
        reason = "memory";
    }
    uint64_t forward_to = f->target->job_config->forward_to;
    sc->fetch = fetch_free(f);
    if (profile == NULL) {
        report_failure(e, sc, duration, reason, &err);
    } else {
        report_success(e, sc, duration, size);
        e->io.on_profile(e->io.arg, profile, forward_to);
    }
    engine_landed(e, sc);
}
