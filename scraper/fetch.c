/* One scrape: the request, the check of the response, the profile. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/masking.h"
#include "pprof/gzip.h"
#include "pprof/sniff.h"
#include "scraper/engine.h"
#include "scraper/names.h"
#include "scraper/targets/address.h"
#include "scraper/timeout_hint.h"

#define URL_MAX ((size_t)16 * 1024)
/* The receive buffer of a sampling scrape, which waits for nearly all of the interval. */
#define SAMPLING_BUFFER ((size_t)1024)
/* Bytes of an error page that a message shows. */
#define PAGE_EXCERPT 160
/* Bytes of an error page that are searched for secrets. */
#define PAGE_SEARCHED 4096

/* A job that gets the profile. Target and entry are those at the start of the request: a profile
 * has the labels that its target had when it was requested. */
struct part {
    struct target *target; /* a reference */
    size_t entry;
    bool left;  /* the job was removed meanwhile, and gets nothing */
    bool taken; /* the job has accepted the profile */
};

/* A scrape in flight. Its own target and entry are those that made the request. */
struct fetch {
    struct room_guest guest; /* first: its body */
    struct engine *engine;
    struct scrape *scrape;
    struct target *target;
    size_t entry;
    struct http_transfer *transfer; /* NULL once done */
    struct offload *work;           /* a conversion or delta, after the transfer; or NULL */
    int64_t begun_ms;               /* monotonic; when it was handed to the client */
    int64_t start_ns;               /* monotonic times of the transfer */
    int64_t sent_ns;
    int64_t end_ns;
    int64_t waits_ns;  /* monotonic: since when the scrape waits for memory; 0: it does not wait */
    int64_t waited_ns; /* how long it has waited for memory before */
    size_t size;
    struct profile_names names; /* for its first profile */
    bool has_place; /* the body was promised a place among those that wait for a worker */
    size_t n_parts; /* 0: no job follows, and the profile is for `target` alone */
    struct part parts[];
};

static void fetch_on_done(void *arg, const struct http_response *response);
static void finish(struct fetch *f, enum reason reason, struct err *err);
static void convert_body(struct fetch *f, char *data, size_t size);

static struct fetch *fetch_free(struct fetch *f)
{
    room_leave(&f->engine->room, &f->guest);
    for (size_t i = 0; i < f->n_parts; i++) {
        target_unref(f->parts[i].target);
    }
    target_unref(f->target);
    free(f);
    return NULL;
}

/* Returns the fetch of a scrape, with a part for each job that gets the profile. Returns NULL if
 * out of memory. */
static struct fetch *fetch_new(struct engine *e, struct scrape *sc)
{
    size_t n = 0;
    for (const struct claim *c = sc->claims; c != NULL; c = c->next) {
        n += c->follows;
    }
    n += n > 0;
    struct fetch *f = malloc(sizeof(*f) + n * sizeof(f->parts[0]));
    if (f == NULL) {
        return NULL;
    }
    *f = (struct fetch){
        .engine = e, .scrape = sc, .target = target_ref(sc->target), .entry = sc->entry};
    f->guest.job = sc->target->job;
    f->guest.slow = slot_class_of(sc) == SLOT_SLOW;
    f->guest.delta = scrape_type(sc)->delta == DELTA_AUTO && e->io.submit != NULL;
    if (n > 0) {
        f->parts[f->n_parts++] = (struct part){.target = target_ref(f->target), .entry = f->entry};
    }
    for (const struct claim *c = sc->claims; c != NULL; c = c->next) {
        if (c->follows) {
            f->parts[f->n_parts++] =
                (struct part){.target = target_ref(c->target), .entry = c->entry};
        }
    }
    return f;
}

bool fetch_serves(const struct scrape *sc, uint32_t job)
{
    const struct fetch *f = sc->fetch;
    bool serves = f->n_parts == 0 && f->target->job == job;
    for (size_t i = 0; i < f->n_parts; i++) {
        serves = serves || (f->parts[i].target->job == job && !f->parts[i].left);
    }
    return serves;
}

bool fetch_leave(struct scrape *sc, uint32_t job)
{
    struct fetch *f = sc->fetch;
    bool any = f->n_parts == 0 && f->target->job != job;
    for (size_t i = 0; i < f->n_parts; i++) {
        f->parts[i].left = f->parts[i].left || f->parts[i].target->job == job;
        any = any || !f->parts[i].left;
    }
    return any;
}

/* ---- memory for the body --------------------------------------------------------------------- */

size_t fetch_expected_size(const struct engine *e, const struct scrape *sc)
{
    size_t last = sc->last_size;
    size_t most = room_most(&e->room);
    size_t n = last + last / 8 + 1; /* profiles of one target differ little */
    if (last == 0) {
        n = sc->metrics->expected != 0 ? sc->metrics->expected : e->room.max / ROOM_UNKNOWN_PART;
    }
    most = most < sc->target->job_config->body_size_limit
               ? most
               : (size_t)sc->target->job_config->body_size_limit;
    return n < most ? n : most;
}

/* Returns how many bytes to ask for so that the body may have len bytes. If a body outgrows the
 * expected size, it asks for twice as much as it has. */
static size_t size_to_ask(const struct fetch *f, size_t len, uint64_t announced)
{
    size_t most = room_most(&f->engine->room);
    if (announced != UINT64_MAX) {
        return len;
    }
    size_t n = f->guest.held == 0 ? fetch_expected_size(f->engine, f->scrape) : 2 * f->guest.held;
    n = n < most ? n : most;
    return n < len ? len : n;
}

static void begin_waiting(struct fetch *f)
{
    if (f->waits_ns == 0) {
        f->waits_ns = f->engine->io.mono_ns(f->engine->io.arg);
    }
}

static void end_waiting(struct fetch *f)
{
    if (f->waits_ns != 0) {
        f->waited_ns += f->engine->io.mono_ns(f->engine->io.arg) - f->waits_ns;
        f->waits_ns = 0;
    }
}

static size_t fetch_on_room(void *arg, size_t len, uint64_t announced)
{
    struct fetch *f = arg;
    struct engine *e = f->engine;
    bool reads = f->guest.state == ROOM_READS;
    switch (room_ask(&e->room, &f->guest, size_to_ask(f, len, announced), f->scrape->turn)) {
    case ROOM_GRANTED:
        f->scrape->turn = ++e->turns;
        break;
    case ROOM_LATER:
        begin_waiting(f);
        engine_show_waiting(e);
        if (reads) {
            engine_admit_soon(e); /* perhaps no body can end any more */
        }
        break;
    case ROOM_NEVER:
    case ROOM_NO_MEMORY:
        return HTTP_ROOM_NEVER;
    }
    return f->guest.held;
}

void fetch_grant(struct engine *e, struct room_guest *guest)
{
    struct fetch *f = (struct fetch *)guest;
    f->scrape->turn = ++e->turns;
    end_waiting(f);
    e->io.grant(e->io.arg, f->transfer, guest->held);
}

void fetch_give_up(struct engine *e, struct room_guest *guest)
{
    struct fetch *f = (struct fetch *)guest;
    struct err err = ERR_INIT;
    scrape_metrics_learn(f->scrape->metrics, 2 * guest->held);
    e->io.cancel(e->io.arg, f->transfer);
    f->transfer = NULL;
    f->sent_ns = f->start_ns = f->begun_ms * NS_PER_MS;
    f->end_ns = e->io.mono_ns(e->io.arg);
    err_set(&err, ERR_LIMIT,
            "no memory for the rest of a body that is larger than the one before: all bodies that "
            "are being received may take %zu bytes",
            e->room.max);
    finish(f, REASON_NO_ROOM, &err);
}

/* ---- the request ----------------------------------------------------------------------------- */

/* Starts the transfer. Returns false if out of memory. */
static bool send_request(struct fetch *f, const char *url)
{
    const struct config_job *job = f->target->job_config;
    struct http_request r = {
        .url = url,
        .settings = &job->http,
        .timeout_ms = target_timeout_ms(f->target, f->entry),
        .max_body = (size_t)job->body_size_limit,
        .receive_buffer = scrape_type(f->scrape)->sampling ? SAMPLING_BUFFER : 0,
        .refuses_address = target_checks_address(f->target) ? address_special_host : NULL,
        .on_room = fetch_on_room,
        .on_done = fetch_on_done,
        .arg = f,
    };
    f->transfer = f->engine->io.start(f->engine->io.arg, &r);
    return f->transfer != NULL;
}

bool fetch_start(struct engine *e, struct scrape *sc)
{
    struct fetch *f = fetch_new(e, sc);
    if (f == NULL) {
        return false;
    }
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
    f->begun_ms = now / NS_PER_MS;
    if (slots_body(sc) != SLOT_BODY_ANY) {
        room_invite(&e->room, &f->guest, fetch_expected_size(e, sc), f->begun_ms);
    }
    status_started(e, sc, now + e->io.wall_offset_ns(e->io.arg));
    metric_observe(e->metrics.lateness, (double)(now - sc->due_ms * NS_PER_MS) / (double)NS_PER_S);
    return true;
}

int64_t fetch_sampled_ms(const struct scrape *sc)
{
    const struct fetch *f = sc->fetch;
    return f->begun_ms + (int64_t)f->target->entries[f->entry].seconds * MS_PER_S;
}

void fetch_cancel(struct engine *e, struct scrape *sc)
{
    if (sc->fetch->work != NULL) {
        offload_cancel(sc->fetch->work);
    } else {
        e->io.cancel(e->io.arg, sc->fetch->transfer);
    }
    sc->fetch = fetch_free(sc->fetch);
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Copies the start of an error page, without the secrets of the request that the page may repeat.
 * PAGE_SEARCHED bytes are searched for secrets before the text is cut to PAGE_EXCERPT. */
static size_t excerpt(const struct fetch *f, const struct buf *body, char text[PAGE_EXCERPT + 1])
{
    char page[PAGE_SEARCHED];
    size_t n = body->len < sizeof(page) ? body->len : sizeof(page);
    if (n > 0) {
        memcpy(page, body->data, n);
    }
    mask_echo(sv_from(target_path(f->target, f->entry)), target_masks_all(f->target), page, n);
    n = n < PAGE_EXCERPT ? n : PAGE_EXCERPT;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)page[i];
        text[i] = c >= ' ' && c < 0x7f ? (char)c : ' ';
    }
    return n;
}

/* Describes a status, such as "HTTP 404: 404 page not found". */
static void describe_status(const struct fetch *f, const struct http_response *response,
                            struct err *err)
{
    char text[PAGE_EXCERPT + 1] = "";
    size_t n = excerpt(f, response->body, text);
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

/* Returns the reason for a response that was not read before the deadline of its scrape. */
static enum reason waited_in_vain(const struct fetch *f, struct err *err)
{
    const struct room *r = &f->engine->room;
    if (room_lacks_workers(r, &f->guest)) {
        err_set(err, ERR_LIMIT,
                "the response was not read: too many profiles wait for their delta");
        return REASON_BUSY;
    }
    err_set(err, ERR_LIMIT,
            "the response waited for memory until its deadline: all bodies that are being received "
            "may take %zu bytes",
            r->max);
    return REASON_NO_ROOM;
}

static bool makes_deltas(const struct fetch *f)
{
    return target_scrape_type(f->target, f->entry)->delta == DELTA_AUTO &&
           f->engine->io.submit != NULL;
}

/* Returns true if the kind of a body is not recognised here. The worker that makes the delta
 * inflates and checks all of a gzip; fail_delta() recognises the kind if that fails. */
static bool worker_checks(const struct fetch *f, struct sv body)
{
    return makes_deltas(f) && gzip_is(body);
}

/* Returns the reason for a failure, with its sentence in err; REASON_NONE if the body is a profile,
 * perhaps in an older format, or if a worker checks it. */
static enum reason check_response(const struct fetch *f, const struct http_response *response,
                                  bool *ret_legacy, struct err *err)
{
    bool jfr = target_scrape_type(f->target, f->entry)->format == FORMAT_JFR;
    struct sv body = {.p = response->body->data, .n = response->body->len};
    if (response->result == HTTP_DONE && response->status / 100 == 2) {
        if (worker_checks(f, body)) {
            return REASON_NONE;
        }
        enum sniff_result r = jfr ? sniff_jfr(body, err) : sniff_profile(body, err);
        *ret_legacy = r == SNIFF_LEGACY;
        return reason_of_sniff(r);
    }
    if (response->result == HTTP_DONE) {
        describe_status(f, response, err);
    } else if (response->result == HTTP_ERR_TIMEOUT && f->waits_ns != 0) {
        return waited_in_vain(f, err);
    } else if (response->result == HTTP_ERR_NO_ROOM && response->status < 300) {
        err_set(err, ERR_LIMIT,
                "a body of more than %zu bytes is never received: three quarters of "
                "all bodies together (global.bodies_max_bytes)",
                room_most(&f->engine->room));
    } else {
        err_set(err, ERR_NETWORK, "%s", response->error);
    }
    return reason_of_response(response->result, response->status, body);
}

/* Returns the place where the labels of a target's profiles are kept; NULL if the target was
 * replaced while the request was in flight. */
static struct labels **find_series(struct scrape *sc, const struct target *t, size_t entry)
{
    if (t == sc->target && entry == sc->entry) {
        return &sc->series;
    }
    for (struct claim *c = sc->claims; c != NULL; c = c->next) {
        if (c->follows && t == c->target && entry == c->entry) {
            return &c->series;
        }
    }
    return NULL;
}

/* Returns a reference to the labels of the profile for a target, which are built once. Returns NULL
 * if out of memory. */
static struct labels *series_of(const struct fetch *f, struct target *t, size_t entry)
{
    struct labels **kept = find_series(f->scrape, t, entry);
    if (kept == NULL) {
        return target_series(t, entry, f->engine->builder);
    }
    if (*kept == NULL) {
        *kept = target_series(t, entry, f->engine->builder);
    }
    return *kept == NULL ? NULL : labels_ref(*kept);
}

/* Makes the profile. Takes over the bytes. The profile covers the time from the request to the last
 * byte. One offset of the wall clock serves for both ends, so the length is right even if the clock
 * was set in between. Returns NULL if out of memory. */
static struct profile *make_profile(const struct fetch *f, char *data, size_t size)
{
    struct engine *e = f->engine;
    int64_t offset = e->io.wall_offset_ns(e->io.arg);
    struct labels *labels = series_of(f, f->target, f->entry);
    if (labels == NULL) {
        free(data);
        return NULL;
    }
    struct profile *p = profile_new(labels, data, size);
    if (p == NULL) {
        return NULL;
    }
    p->from_ns = f->sent_ns + offset;
    p->until_ns = f->end_ns + offset;
    p->scraped_ms = f->end_ns / NS_PER_MS;
    const struct config_type *type = target_scrape_type(f->target, f->entry);
    p->is_delta = type->is_delta;
    p->format = type->format == FORMAT_JFR ? PROFILE_JFR : PROFILE_PPROF;
    p->job = f->target->job;
    p->names = f->names;
    return p;
}

/* Offers a copy of a profile to one of several jobs. Returns false if no destination accepted it.
 */
static bool offer(const struct fetch *f, const struct part *part, struct profile *base,
                  bool refusable)
{
    const struct scraper_options *o = &f->engine->options;
    struct labels *labels = series_of(f, part->target, part->entry);
    struct profile *p = labels == NULL ? NULL : profile_copy(base);
    if (p == NULL) {
        labels_unref(labels);
        scrape_metrics_failed(&f->engine->metrics, part->target->job_config->name, REASON_MEMORY);
        return false;
    }
    profile_set_labels(p, labels);
    base->names.all = 0; /* the names of all copies are counted once */
    p->job = part->target->job;
    p->refusable = refusable;
    return o->on_profile(o->arg, p, part->target->job_config->forward_to);
}

/* Offers a profile to all jobs. If any job accepts a delta, the baseline moves, and the jobs that
 * have refused the delta would lose it. So they are asked once more, and cannot refuse then. */
static bool offer_all(struct fetch *f, struct profile *base)
{
    size_t taken = 0;
    for (size_t i = 0; i < f->n_parts; i++) {
        struct part *part = &f->parts[i];
        part->taken = !part->left && offer(f, part, base, base->refusable);
        taken += part->taken;
    }
    for (size_t i = 0; i < f->n_parts && taken > 0 && base->refusable; i++) {
        if (!f->parts[i].left && !f->parts[i].taken) {
            (void)offer(f, &f->parts[i], base, false);
        }
    }
    return taken > 0;
}

/* Passes a profile on. Returns false if no destination accepted it. */
static bool hand_on(struct fetch *f, struct profile *p)
{
    const struct scraper_options *o = &f->engine->options;
    if (f->n_parts == 0) {
        return o->on_profile(o->arg, p, f->target->job_config->forward_to);
    }
    bool taken = offer_all(f, p);
    profile_unref(p);
    return taken;
}

/* Ends a scrape. err is for failures. */
static void finish(struct fetch *f, enum reason reason, struct err *err)
{
    struct engine *e = f->engine;
    struct scrape *sc = f->scrape;
    const struct scrape_time time = {f->end_ns - f->start_ns, f->waited_ns};
    size_t size = f->size;
    if (time.waited_ns > 0) {
        metric_observe(e->metrics.memory_waits, (double)time.waited_ns / (double)NS_PER_S);
    }
    if (reason == REASON_NO_ROOM || reason == REASON_BUSY) {
        engine_note_shortage(e, reason == REASON_BUSY ? SHORTAGE_WORKERS : SHORTAGE_MEMORY);
    }
    engine_plan(e, sc, reason, f->start_ns / NS_PER_MS);
    sc->fetch = fetch_free(f);
    if (reason_kind(reason) == REASON_KIND_CONFLICT) {
        /* The other client is unknown; only the number of collisions is. */
        err_append(err, "; somebody else profiles this process (so in %u of the last %u attempts)",
                   scrape_history_conflicts(&sc->history), (unsigned)sc->history.attempts);
    }
    if (reason == REASON_NONE) {
        outcome_succeeded(e, sc, time, size);
    } else {
        outcome_failed(e, sc, time, reason, err);
    }
    engine_landed(e, sc);
    engine_rearm(e);
}

static void finish_no_memory(struct fetch *f)
{
    struct err err = ERR_INIT;
    err_memory(&err);
    finish(f, REASON_MEMORY, &err);
}

/* ---- deltas ---------------------------------------------------------------------------------- */

/* Returns the profile of a delta; a body without counters passes through unchanged. Returns NULL
 * with *ok if there is nothing to pass on. */
static struct profile *profile_of_delta(const struct fetch *f, struct delta_work *w, bool *ok)
{
    bool passed = w->result == DELTA_PASSED;
    bool named = passed && w->named != NULL;
    char **from = named ? &w->named : passed ? &w->offload.body : &w->out.data;
    char *data = *from;
    size_t size = named ? w->named_size : passed ? w->offload.size : w->out.size;
    *from = NULL;
    *ok = true;
    if (data == NULL) {
        return NULL;
    }
    struct profile *p = make_profile(f, data, size);
    *ok = p != NULL;
    if (p != NULL && !passed) {
        p->is_delta = true;
        p->no_sample_texts = !w->out.has_texts;
        p->refusable = w->result == DELTA_MADE;
        if (w->result == DELTA_MADE && w->baseline->until_ns < p->until_ns) {
            p->from_ns = w->baseline->until_ns;
        }
    }
    return p;
}

/* Passes the profile of a delta on, and moves the baseline. If no destination has accepted the
 * profile, the baseline stays, so that the growth becomes part of the next delta. A profile with
 * gauges only has no growth to lose. Returns the result for the metric. */
static const char *settle_delta(struct fetch *f, struct delta_work *w, struct profile *p)
{
    struct engine *e = f->engine;
    const char *result = delta_result_name(w->result);
    bool taken = p == NULL || hand_on(f, p);
    if (!taken && w->result == DELTA_MADE) {
        return "not_taken";
    }
    if (w->out.next != NULL) {
        w->out.next->until_ns = f->end_ns + e->io.wall_offset_ns(e->io.arg);
        result = deltas_commit(e, f->scrape, w->out.next) ? result : "no_room";
        w->out.next = NULL;
    }
    return result;
}

/* Ends a scrape of whose body no delta could be made, or converts the body if it has an older
 * format. */
static void fail_delta(struct fetch *f, struct delta_work *w)
{
    struct offload *o = &w->offload;
    struct err err = ERR_INIT;
    enum sniff_result r = sniff_profile((struct sv){o->body, o->size}, &err);
    if (r == SNIFF_LEGACY) {
        char *data = o->body;
        o->body = NULL;
        convert_body(f, data, o->size);
    } else if (!sniff_is_profile(r)) {
        finish(f, reason_of_sniff(r), &err);
    } else {
        deltas_count(&f->engine->deltas, "failed");
        finish(f, reason_of_delta(w->result), &o->err);
    }
}

static void fetch_on_delta(void *arg, struct offload *o)
{
    struct fetch *f = arg;
    struct delta_work *w = (struct delta_work *)o;
    struct engine *e = f->engine;
    bool ok;
    f->names = names_result(w->names);
    if (w->result > DELTA_PASSED) {
        fail_delta(f, w);
        return;
    }
    struct profile *p = profile_of_delta(f, w, &ok);
    if (!ok) {
        deltas_count(&e->deltas, "failed");
        finish_no_memory(f);
        return;
    }
    deltas_count(&e->deltas, settle_delta(f, w, p));
    finish(f, REASON_NONE, NULL);
}

/* ---- good bodies ----------------------------------------------------------------------------- */

/* Returns the names for a body; NULL if it needs none. */
static struct names_of *names_of_fetch(const struct fetch *f, struct sv body)
{
    bool jfr = target_scrape_type(f->target, f->entry)->format == FORMAT_JFR;
    return jfr ? NULL : names_of_body(f->engine, f->target, f->entry, body);
}

/* Makes the profile of a body that needs nothing more. Takes over the body. */
static void take_profile(struct fetch *f, char *data, size_t size)
{
    struct profile *p = make_profile(f, data, size);
    if (p == NULL) {
        finish_no_memory(f);
        return;
    }
    (void)hand_on(f, p);
    finish(f, REASON_NONE, NULL);
}

static void fetch_on_names(void *arg, struct offload *o)
{
    struct fetch *f = arg;
    struct names_work *w = (struct names_work *)o;
    bool named = w->data != NULL;
    char **from = named ? &w->data : &o->body;
    char *data = *from;
    *from = NULL;
    f->work = NULL;
    f->names = names_result(w->names);
    take_profile(f, data, named ? w->size : o->size);
}

static void start_delta(struct fetch *f, char *data, size_t size)
{
    struct engine *e = f->engine;
    enum reason reason;
    struct err err = ERR_INIT;
    struct names_of *names = names_of_fetch(f, (struct sv){data, size});
    f->work = deltas_start(e, f->scrape, names, data, size, f->has_place, fetch_on_delta, f,
                           &reason, &err);
    if (f->work == NULL) {
        deltas_count(&e->deltas, "failed");
        names_of_free(names);
        free(data);
        finish(f, reason, &err);
    }
}

/* Makes the profile of a body, by way of a delta if its type needs one, and with names. Takes over
 * the body. Without room for the work on names, the profile passes as it is. */
static void take_body(struct fetch *f, char *data, size_t size)
{
    enum reason reason;
    struct err err = ERR_INIT;
    if (makes_deltas(f)) {
        start_delta(f, data, size);
        return;
    }
    struct names_of *names = names_of_fetch(f, (struct sv){data, size});
    if (names != NULL) {
        f->work = names_start(f->engine, names, data, size, f->has_place, fetch_on_names, f,
                              &reason, &err);
    }
    if (f->work == NULL) {
        names_of_free(names);
        take_profile(f, data, size);
    }
}

/* ---- older formats --------------------------------------------------------------------------- */

static void fetch_on_converted(void *arg, struct offload *o)
{
    struct fetch *f = arg;
    struct conversion *c = (struct conversion *)o;
    f->work = NULL;
    if (c->result != LEGACY_MADE) {
        finish(f, reason_of_legacy(c->result), &o->err);
        return;
    }
    char *data = c->out.data;
    c->out.data = NULL;
    f->names = names_result(c->names);
    if (makes_deltas(f)) {
        start_delta(f, data, c->out.size);
    } else {
        take_profile(f, data, c->out.size); /* the conversion has added names */
    }
}

/* Converts a body in an older format. Takes over the body. Older formats have no time: the profile
 * gets that of the scrape. */
static void convert_body(struct fetch *f, char *data, size_t size)
{
    struct engine *e = f->engine;
    enum reason reason;
    struct err err = ERR_INIT;
    if (e->io.submit == NULL) {
        err_set(&err, ERR_LIMIT, "an old format of pprof, and there is no worker to convert it");
        free(data);
        finish(f, REASON_BAD_LEGACY, &err);
        return;
    }
    struct names_of *names = makes_deltas(f) ? NULL : names_of_fetch(f, (struct sv){data, size});
    f->work = conversions_start(e, names, data, size, f->sent_ns + e->io.wall_offset_ns(e->io.arg),
                                f->end_ns - f->sent_ns, fetch_on_converted, f, &reason, &err);
    if (f->work == NULL) {
        names_of_free(names);
        free(data);
        finish(f, reason, &err);
    }
}

/* ---- the end of the transfer ----------------------------------------------------------------- */

static enum reason find_timeout_hint(const struct fetch *f, const struct http_response *response,
                                     enum reason reason, struct err *err)
{
    const struct scrape *sc = f->scrape;
    bool was_cut = sc->reason == REASON_CUT || sc->reason == REASON_DURATION_TOO_LONG;
    const struct timeout_hint_input in = {
        .reason = reason,
        .status = response->status,
        .type = target_scrape_type(f->target, f->entry)->key,
        .seconds = f->target->entries[f->entry].seconds,
        .lasted_ms = (f->end_ns - f->sent_ns) / NS_PER_MS,
        .last_cut_ms = was_cut ? (int64_t)sc->last_duration_ms : -1,
    };
    return timeout_hint_find(&in, err);
}

static void fetch_on_done(void *arg, const struct http_response *response)
{
    struct fetch *f = arg;
    struct err err = ERR_INIT;
    f->transfer = NULL;
    f->start_ns = response->start_ns;
    f->sent_ns = response->sent_ns != 0 ? response->sent_ns : response->start_ns;
    f->end_ns = response->end_ns;
    f->size = response->body->len;
    bool legacy = false;
    enum reason reason = check_response(f, response, &legacy, &err);
    end_waiting(f);
    f->has_place = f->guest.promised >= f->size && f->size > 0;
    room_leave(&f->engine->room, &f->guest);
    if (reason != REASON_NONE) {
        finish(f, find_timeout_hint(f, response, reason, &err), &err);
        return;
    }
    char *data = buf_take(response->body, NULL);
    struct engine *e = f->engine;
    if (data == NULL) {
        finish_no_memory(f);
    } else {
        (legacy ? convert_body : take_body)(f, data, f->size);
    }
    engine_pump(e);
}
