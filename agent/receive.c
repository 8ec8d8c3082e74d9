#include "agent/receive.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/delivery.h"
#include "agent/held.h"
#include "agent/profile_rules.h"
#include "agent/received_labels.h"
#include "base/clock.h"
#include "pprof/check.h"
#include "pprof/columns.h"
#include "pprof/gzip.h"
#include "pprof/index.h"
#include "pprof/legacy/legacy.h"
#include "pprof/sniff.h"

/* The most memory for the tables of one profile while it is checked, besides its inflated bytes. */
#define TABLES_MAX ((size_t)64 * 1024 * 1024)
/* The most labels of one sample, as at a Pyroscope. */
#define SAMPLE_LABELS_MAX 100
#define YEAR_NS (INT64_C(365) * 24 * 3600 * NS_PER_S)
/* The log has at most LOG_BURST messages about refused profiles in LOG_PERIOD_MS. */
#define LOG_PERIOD_MS 60000
#define LOG_BURST 5

static const char *const protocol_names[RECEIVE_PROTOCOLS] = {
    [RECEIVE_PUSH] = "push",       [RECEIVE_INGEST] = "ingest", [RECEIVE_DEEPFLOW] = "deepflow",
    [RECEIVE_PROFEFE] = "profefe", [RECEIVE_PPROF] = "pprof",   [RECEIVE_OTLP] = "otlp",
};

static const char *const result_names[RECEIVE_RESULTS] = {
    [RECEIVE_ACCEPTED] = "accepted",       [RECEIVE_DROPPED] = "dropped",
    [RECEIVE_IGNORED] = "ignored",         [RECEIVE_BAD_REQUEST] = "bad_request",
    [RECEIVE_BAD_PROFILE] = "bad_profile", [RECEIVE_BAD_LABELS] = "bad_labels",
    [RECEIVE_BAD_TIME] = "bad_time",       [RECEIVE_TOO_LARGE] = "too_large",
    [RECEIVE_RULES_FAILED] = "rules",      [RECEIVE_QUEUE_FULL] = "queue_full",
    [RECEIVE_NO_MEMORY] = "memory",
};

static const char *const extra_names[RECEIVE_EXTRAS] = {
    [RECEIVE_EXTRA_JFR_LABELS] = "jfr_labels",
};

static const char *const samples_names[RECEIVE_SAMPLES] = {
    [RECEIVE_SAMPLES_READ] = "read",
    [RECEIVE_SAMPLES_OLD] = "old_numbers",
    [RECEIVE_SAMPLES_EMPTY] = "without_value",
};

static const char *const wait_names[RECEIVE_WAITS] = {
    [RECEIVE_STORED] = "stored", [RECEIVE_LATE] = "late", [RECEIVE_NOT_STORED] = "not_stored"};

struct receive_setup {
    atomic_uint refs;
    /* A reference: the owner of `config`; NULL: that of the options. */
    const struct config *owner;
    const struct config_receive *config;
    struct delivery delivery; /* used under the lock, of the present setup only */
};

struct receive {
    struct receive_options options;
    struct scratch_pool *scratches;
    pthread_mutex_t lock; /* guards the setup, its rules, the salt and the limit of log lines */
    struct receive_setup *setup; /* the present one: a reference */
    struct log_limit limit;
    uint64_t seed;
    /* Starts at a random number: after a restart, equal profiles may arrive again. */
    uint16_t last_salt;
    struct metric_cell *profiles[RECEIVE_PROTOCOLS][RECEIVE_RESULTS];
    struct metric_cell *bytes[RECEIVE_PROTOCOLS];
    struct metric_cell *extras[RECEIVE_EXTRAS];
    struct metric_cell *waits[RECEIVE_WAITS];
    struct metric_cell *samples[RECEIVE_SAMPLES];
};

const char *receive_result_name(enum receive_result result)
{
    return result_names[result];
}

/* ---- making and freeing ---------------------------------------------------------------------- */

static void register_samples(struct receive *r, struct metrics *m)
{
    struct metric *samples =
        metrics_family(m, METRIC_COUNTER, "profpull_receive_otlp_samples_total",
                       "Samples of OTLP requests, by how they were read.", "result", NULL);
    for (size_t i = 0; i < RECEIVE_SAMPLES; i++) {
        r->samples[i] = metric_cell_of(samples, samples_names[i]);
    }
}

static void register_metrics(struct receive *r, struct metrics *m)
{
    struct metric *profiles =
        metrics_family(m, METRIC_COUNTER, "profpull_receive_profiles_total",
                       "Profiles that were pushed, by result.", "protocol", "result");
    struct metric *bytes =
        metrics_family(m, METRIC_COUNTER, "profpull_receive_bytes_total",
                       "Bytes of the pushed profiles that were accepted.", "protocol", NULL);
    struct metric *extras = metrics_family(
        m, METRIC_COUNTER, "profpull_receive_extras_total",
        "Parts of requests, besides the profile, that no destination can carry.", "kind", NULL);
    for (size_t i = 0; i < RECEIVE_PROTOCOLS; i++) {
        for (size_t k = 0; k < RECEIVE_RESULTS; k++) {
            const char *values[] = {protocol_names[i], result_names[k]};
            r->profiles[i][k] = metric_cell(profiles, values);
        }
        r->bytes[i] = metric_cell_of(bytes, protocol_names[i]);
    }
    struct metric *waits = metrics_family(
        m, METRIC_COUNTER, "profpull_receive_waits_total",
        "Requests whose sender waited until its profiles were on disk, by result.", "result", NULL);
    for (size_t i = 0; i < RECEIVE_WAITS; i++) {
        r->waits[i] = metric_cell_of(waits, wait_names[i]);
    }
    for (size_t i = 0; i < RECEIVE_EXTRAS; i++) {
        r->extras[i] = metric_cell_of(extras, extra_names[i]);
    }
    register_samples(r, m);
}

struct receive_setup *receive_discard(struct receive_setup *s)
{
    if (s != NULL && atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1) {
        profile_rules_free(s->delivery.rules);
        config_unref(s->owner);
        free(s);
    }
    return NULL;
}

static struct receive_setup *setup_new(const struct receive_options *o, const struct config *owner,
                                       const struct config_receive *config, struct err *err)
{
    struct receive_setup *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        err_memory(err);
        return NULL;
    }
    atomic_init(&s->refs, 1);
    s->owner = owner != NULL ? config_ref(owner) : NULL;
    s->config = config;
    s->delivery = (struct delivery){
        .jobs = &config->job,
        .rules = profile_rules_new(&config->job, 1, o->intern, o->log, o->metrics, err),
        .writer = o->writer,
        .record = o->record,
    };
    return s->delivery.rules != NULL ? s : receive_discard(s);
}

struct receive_setup *receive_prepare(const struct receive *r, const struct config *next,
                                      struct err *err)
{
    struct receive_setup *s = setup_new(&r->options, next, &next->receive, err);
    if (s == NULL) {
        err_wrap(err, "receive");
    }
    return s;
}

void receive_commit(struct receive *r, struct receive_setup *s)
{
    pthread_mutex_lock(&r->lock);
    struct receive_setup *former = r->setup;
    r->setup = s;
    pthread_mutex_unlock(&r->lock);
    receive_discard(former);
}

static struct receive_setup *setup_ref(struct receive *r)
{
    pthread_mutex_lock(&r->lock);
    struct receive_setup *s = r->setup;
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&r->lock);
    return s;
}

struct receive *receive_new(const struct receive_options *options, struct err *err)
{
    struct receive *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        err_memory(err);
        return NULL;
    }
    struct rng rng;
    rng_seed_random(&rng);
    r->options = *options;
    r->seed = rng_next(&rng);
    r->last_salt = (uint16_t)rng_next(&rng);
    pthread_mutex_init(&r->lock, NULL);
    register_metrics(r, options->metrics);
    r->scratches = scratch_pool_new(SCRATCH_POOL_MAX);
    r->setup = setup_new(options, NULL, options->config, err);
    if (r->scratches == NULL) {
        err_memory(err);
    }
    return r->scratches != NULL && r->setup != NULL ? r : receive_free(r);
}

struct receive *receive_free(struct receive *r)
{
    if (r != NULL) {
        receive_discard(r->setup);
        scratch_pool_unref(r->scratches);
        pthread_mutex_destroy(&r->lock);
        free(r);
    }
    return NULL;
}

/* ---- counting -------------------------------------------------------------------------------- */

static bool may_log(struct receive *r, uint32_t *ret_suppressed)
{
    pthread_mutex_lock(&r->lock);
    bool allowed =
        log_limit_allow(&r->limit, clock_mono_ms(), LOG_PERIOD_MS, LOG_BURST, ret_suppressed);
    pthread_mutex_unlock(&r->lock);
    return allowed;
}

void receive_count(struct receive *r, enum receive_protocol protocol, enum receive_result result,
                   size_t bytes, const struct err *err)
{
    metric_inc(r->profiles[protocol][result]);
    if (result == RECEIVE_ACCEPTED) {
        metric_add(r->bytes[protocol], bytes);
    }
    if (result < RECEIVE_BAD_REQUEST) {
        return;
    }
    uint32_t suppressed = 0;
    if (may_log(r, &suppressed)) {
        log_warn(r->options.log, "pushed profile refused",
                 LOG_STR("protocol", protocol_names[protocol]),
                 LOG_STR("result", result_names[result]), LOG_ERR(err),
                 LOG_INT("suppressed", suppressed));
    }
}

void receive_count_wait(struct receive *r, enum receive_wait result)
{
    uint32_t suppressed = 0;
    metric_inc(r->waits[result]);
    if (result != RECEIVE_STORED && may_log(r, &suppressed)) {
        log_warn(r->options.log, "pushed profiles are not on disk",
                 LOG_STR("result", wait_names[result]), LOG_INT("suppressed", suppressed));
    }
}

bool receive_waits(struct receive *r)
{
    pthread_mutex_lock(&r->lock);
    bool waits = r->setup->config->acknowledge == ACKNOWLEDGE_STORED;
    pthread_mutex_unlock(&r->lock);
    return waits;
}

void receive_count_extra(struct receive *r, enum receive_extra extra)
{
    metric_inc(r->extras[extra]);
}

void receive_count_samples(struct receive *r, enum receive_samples kind, uint64_t n)
{
    metric_add(r->samples[kind], n);
}

size_t receive_profile_max(struct receive *r)
{
    struct receive_setup *s = setup_ref(r);
    size_t max = (size_t)s->config->max_profile_size;
    receive_discard(s);
    return max;
}

/* ---- opening --------------------------------------------------------------------------------- */

static enum receive_result result_of(const struct err *err)
{
    return err->kind == ERR_MEMORY  ? RECEIVE_NO_MEMORY
           : err->kind == ERR_LIMIT ? RECEIVE_TOO_LARGE
                                    : RECEIVE_BAD_PROFILE;
}

/* Converts a profile in a format before protobuf, as Google's pprof does. */
static bool convert(struct receive *r, struct receive_item *item, struct err *err)
{
    struct legacy_input in = {
        .body = item->data, .seed = r->seed, .scratch = item->scratch, .time_ns = clock_wall_ns()};
    struct legacy_output out;
    enum legacy_result result = legacy_convert(&in, &out, err);
    if (result != LEGACY_MADE) {
        return false;
    }
    item->converted = out.data;
    item->data = (struct sv){out.data, out.size};
    scratch_reset(item->scratch);
    return true;
}

static bool inflate(struct receive_item *item, struct sv *ret_plain, struct err *err)
{
    size_t max = (size_t)item->setup->config->max_profile_size;
    if (item->data.n == 0) {
        return err_set(err, ERR_INPUT, "the profile is empty");
    }
    bool ok = gzip_plain(item->scratch, item->data, max, 0, ret_plain, err);
    if ((ok && ret_plain->n > max) || (!ok && err->kind == ERR_LIMIT)) {
        char size[32];
        format_size(max, size, sizeof(size));
        return err_set(err, ERR_LIMIT, "uncompressed profile payload size exceeds limit of %s",
                       size);
    }
    return ok;
}

static bool check_types(const struct pprof_summary *s, struct err *err)
{
    for (size_t i = 0; i < s->n[PROFILE_SAMPLE_TYPE] && i < SUMMARY_TYPES_MAX; i++) {
        struct sv type = s->types[i].type_text;
        if (type.n > 0 && memchr(type.p, '-', type.n) != NULL) {
            return err_set(err, ERR_INPUT, "sample type contains -");
        }
    }
    return true;
}

/* Checks that the locations of a sample exist, and that it has at most SAMPLE_LABELS_MAX labels. */
static bool check_sample(const struct pprof_index *x, struct sv sample, struct err *err)
{
    struct wire_reader r = wire_reader_of(sample);
    struct wire_field f = {.number = 0};
    size_t n_labels = 0;
    while (wire_next(&r, &f)) {
        struct wire_numbers ids = wire_numbers_of(&f);
        uint64_t id;
        size_t place;
        n_labels += f.number == SAMPLE_LABEL;
        while (f.number == SAMPLE_LOCATION_ID && wire_numbers_next(&ids, &id)) {
            if (!pprof_ids_find(&x->entries[PROFILE_LOCATION].ids, id, &place)) {
                return err_set(err, ERR_INPUT, "sample at byte %zu: location %llu is not there",
                               (size_t)(sample.p - x->plain.p), (unsigned long long)id);
            }
        }
    }
    return n_labels <= SAMPLE_LABELS_MAX ||
           err_set(err, ERR_INPUT, "sample at byte %zu: %zu labels, limit %d",
                   (size_t)(sample.p - x->plain.p), n_labels, SAMPLE_LABELS_MAX);
}

static bool check_samples(const struct pprof_index *x, struct err *err)
{
    const struct pprof_entries *samples = &x->entries[PROFILE_SAMPLE];
    bool good = true;
    for (size_t i = 0; good && i < samples->ids.n; i++) {
        good = check_sample(x, pprof_span_of(x, samples->spans[i]), err);
    }
    return good;
}

/* Checks everything that a reader of the profile relies on: fields, strings, ids. */
static bool check_profile(struct receive *r, struct receive_item *item, struct sv plain,
                          struct err *err)
{
    struct pprof_index index;
    if (!pprof_index_whole(&index, item->scratch, plain, "profile", r->seed, err)) {
        return false;
    }
    item->summary = index.summary;
    pprof_summary_name_types(plain, &item->summary);
    return check_types(&item->summary, err) && check_samples(&index, err);
}

static bool open_pprof(struct receive *r, struct receive_item *item, struct err *err)
{
    struct sv plain = {"", 0};
    if (item->data.n > 0 && sniff_profile(item->data, NULL) == SNIFF_LEGACY &&
        !convert(r, item, err)) {
        return false;
    }
    return inflate(item, &plain, err) && check_profile(r, item, plain, err);
}

static bool open_jfr(struct receive *r, struct receive_item *item, struct err *err)
{
    struct sv plain = {"", 0};
    (void)r;
    if (!inflate(item, &plain, err)) {
        return false;
    }
    if (sniff_jfr(plain, err) != SNIFF_JFR) {
        return false;
    }
    jfr_summary_read(plain, &item->summary);
    return true;
}

enum receive_result receive_open(struct receive *r, enum receive_protocol protocol,
                                 enum profile_format format, struct sv data,
                                 struct receive_item *ret, struct err *err)
{
    struct receive_setup *setup = setup_ref(r);
    size_t max = (size_t)setup->config->max_profile_size;
    *ret = (struct receive_item){
        .setup = setup,
        .protocol = protocol,
        .format = format,
        .data = data,
        .scratch = scratch_pool_take(r->scratches, max + TABLES_MAX),
    };
    bool ok = ret->scratch != NULL ? (format == PROFILE_JFR ? open_jfr : open_pprof)(r, ret, err)
                                   : err_memory(err);
    return ok ? RECEIVE_ACCEPTED : result_of(err);
}

enum receive_result receive_open_made(struct receive *r, enum receive_protocol protocol,
                                      struct sv data, const struct pprof_summary *summary,
                                      struct receive_item *ret, struct err *err)
{
    *ret = (struct receive_item){.setup = setup_ref(r),
                                 .protocol = protocol,
                                 .format = PROFILE_PPROF,
                                 .data = data,
                                 .summary = *summary};
    return pprof_small_enough(summary->n, "profile", err) && check_types(summary, err)
               ? RECEIVE_ACCEPTED
               : result_of(err);
}

void receive_close(struct receive *r, struct receive_item *item)
{
    if (item->scratch != NULL) {
        scratch_reset(item->scratch);
    }
    scratch_pool_give(r->scratches, item->scratch);
    free(item->converted);
    receive_discard(item->setup);
    *item = (struct receive_item){.data = {"", 0}};
}

/* ---- the time -------------------------------------------------------------------------------- */

struct window {
    int64_t from_ns;
    int64_t until_ns;
};

static int64_t add_ns(int64_t ns, int64_t more)
{
    return more > INT64_MAX - ns ? INT64_MAX : ns + more;
}

/* Returns the window of a profile: by its own time, else that of the request, else now. */
static struct window window_of(const struct pprof_summary *s, const struct receive_facts *facts,
                               int64_t now_ns)
{
    struct window w = {.from_ns = s->time_ns, .until_ns = facts->until_ns};
    if (w.from_ns <= 0) {
        w.from_ns = facts->from_ns > 0 ? facts->from_ns : now_ns;
    } else if (w.from_ns < YEAR_NS && facts->from_ns > 0) {
        w.from_ns = facts->from_ns; /* the program had no clock when it started */
    }
    if (s->duration_ns > 0) {
        w.until_ns = add_ns(w.from_ns, s->duration_ns);
    }
    w.until_ns = w.until_ns < w.from_ns ? w.from_ns : w.until_ns;
    return w;
}

/* Prints a time as "2026-11-22 01:35:27.736 +0000 UTC", without zeros at the end of the fraction.
 */
static void print_time(int64_t ns, char *out, size_t size)
{
    char text[32];
    clock_format_rfc3339(ns, text, sizeof(text));
    size_t n = strcspn(text, "Z");
    while (n > 0 && text[n - 1] == '0') {
        n--;
    }
    n = n > 0 && text[n - 1] == '.' ? n - 1 : n;
    text[strcspn(text, "T")] = ' ';
    (void)snprintf(out, size, "%.*s +0000 UTC", (int)(n < 19 ? 19 : n), text);
}

static bool check_time(const struct config_receive *c, int64_t time_ns, int64_t now_ns,
                       const struct label *labels, size_t n_labels, struct err *err)
{
    bool any_age = c->max_age_ms == 0;
    int64_t oldest = any_age ? 0 : now_ns - c->max_age_ms * NS_PER_MS;
    int64_t newest = add_ns(now_ns, c->max_ahead_ms * NS_PER_MS);
    if (time_ns >= oldest && time_ns <= newest) {
        return true;
    }
    char time[64];
    char start[64];
    char end[64];
    struct buf text;
    buf_init(&text, ERR_MSG_MAX / 2);
    received_labels_print(labels, n_labels, &text);
    print_time(time_ns, time, sizeof(time));
    print_time(oldest, start, sizeof(start));
    print_time(newest, end, sizeof(end));
    err_set(err, ERR_INPUT,
            "profile with labels '%s' is outside of ingestion window (profile timestamp: %s, the "
            "ingestion window starts at %s and ends at %s)",
            buf_ok(&text) ? text.data : "{...}", time, start, end);
    buf_done(&text);
    return false;
}

/* ---- putting --------------------------------------------------------------------------------- */

static struct labels *build_labels(struct receive *r, const struct receive_item *item,
                                   const struct label *labels, size_t n, struct err *err)
{
    struct labels_builder *b = labels_builder_new(r->options.intern);
    if (b == NULL) {
        err_memory(err);
        return NULL;
    }
    received_labels_put(labels, n, b);
    if (r->options.enrich != NULL) {
        enrich_apply(r->options.enrich, &item->setup->config->enrich, b);
    }
    struct labels *built = labels_builder_build(b);
    if (built == NULL) {
        labels_builder_explain(b, err);
    }
    labels_builder_free(b);
    return built;
}

/* Returns true for a delta of a cumulative type, by its labels: a full queue merges such deltas. */
static bool is_delta(const struct labels *l)
{
    struct sv name = labels_get(l, SV(LABEL_NAME));
    const struct config_builtin_type *t;
    if (!sv_eq_str(labels_get(l, SV(LABEL_DELTA)), "false")) {
        return false;
    }
    for (size_t i = 0; (t = config_builtin_type(i)) != NULL; i++) {
        if (t->type.cumulative && sv_eq_str(name, t->type.name)) {
            return true;
        }
    }
    return false;
}

/* Returns a copy of the bytes of a profile, with names for its addresses if it lacks some. */
static char *copy_named(struct receive *r, const struct receive_item *item, size_t *ret_size)
{
    char *data;
    const struct naming_source source = {.sources = &item->setup->config->job.symbols,
                                         .owner = item->setup->owner};
    if (r->options.naming != NULL && item->format == PROFILE_PPROF &&
        held_name(r->options.naming, &source, item->data, &data, ret_size)) {
        return data;
    }
    data = malloc(item->data.n > 0 ? item->data.n : 1);
    if (data != NULL) {
        memcpy(data, item->data.p, item->data.n);
        *ret_size = item->data.n;
    }
    return data;
}

/* Makes the profile to deliver. Returns NULL with ERR_LIMIT if the labels together are too large,
 * or with ERR_MEMORY. */
static struct profile *make_profile(struct receive *r, const struct receive_item *item,
                                    const struct label *labels, size_t n_labels, struct window w,
                                    struct err *err)
{
    struct labels *built = build_labels(r, item, labels, n_labels, err);
    if (built == NULL) {
        return NULL;
    }
    size_t size = 0;
    char *data = copy_named(r, item, &size);
    if (data == NULL) {
        err_memory(err);
        labels_unref(built);
        return NULL;
    }
    struct profile *p = profile_new(built, data, size);
    if (p != NULL) {
        p->from_ns = w.from_ns;
        p->until_ns = w.until_ns;
        p->scraped_ms = clock_mono_ms();
        p->format = item->format;
        p->salt = item->salt;
        p->is_delta = item->format == PROFILE_PPROF && is_delta(built);
        p->is_pushed = true;
        p->refusable = true; /* the sender keeps it */
    } else {
        err_memory(err);
    }
    return p;
}

/* Hands a profile to those of these destinations that are in force. */
static enum receive_result deliver(struct receive *r, struct profile *p, uint64_t endpoints,
                                   struct err *err)
{
    static const enum receive_result results[] = {
        [DELIVERY_TAKEN] = RECEIVE_ACCEPTED,      [DELIVERY_FULL] = RECEIVE_QUEUE_FULL,
        [DELIVERY_NO_MEMORY] = RECEIVE_NO_MEMORY, [DELIVERY_FAILED] = RECEIVE_RULES_FAILED,
        [DELIVERY_DROPPED] = RECEIVE_DROPPED,
    };
    enum delivery_result result = DELIVERY_DROPPED;
    pthread_mutex_lock(&r->lock);
    endpoints &= r->setup->config->job.forward_to;
    if (endpoints != 0) {
        result = delivery_put(&r->setup->delivery, p, endpoints, p->scraped_ms);
    } else {
        profile_unref(p); /* another configuration was put in force meanwhile */
    }
    pthread_mutex_unlock(&r->lock);
    if (result == DELIVERY_FULL) {
        err_set(err, ERR_LIMIT, "the queues of all destinations are full; try again later");
    } else if (result == DELIVERY_NO_MEMORY) {
        err_memory(err);
    } else if (result == DELIVERY_FAILED) {
        err_set(err, ERR_INPUT,
                "a rule of receive.profile_relabel_configs failed, or left no " LABEL_NAME);
    }
    return results[result];
}

/* ---- recordings ------------------------------------------------------------------------------ */

/* Returns the better result of two profiles of one request: if one of them was taken, the sender
 * must not send the request again. */
static enum receive_result better(enum receive_result a, enum receive_result b)
{
    return a < b ? a : b;
}

/* Hands the profiles of a recording to destinations. Once one is taken, the sender will not send
 * the recording again, so the others must not be refused lightly. */
static enum receive_result deliver_made(struct receive *r, const struct recording_profiles *made,
                                        uint64_t endpoints, struct err *err)
{
    enum receive_result result = made->n > 0 ? RECEIVE_RESULTS : RECEIVE_IGNORED;
    for (size_t i = 0; i < made->n; i++) {
        made->at[i]->refusable = result != RECEIVE_ACCEPTED;
        result = better(result, deliver(r, made->at[i], endpoints, err));
    }
    return result;
}

/* Takes over the reference. */
static enum receive_result put_recording(struct receive *r, const struct receive_item *item,
                                         const struct receive_facts *facts, struct profile *p,
                                         struct err *err)
{
    const struct config_job *job = &item->setup->config->job;
    uint64_t others = job->forward_to & ~job->recordings_to;
    const struct recording_hints hints = {.sample_rate = facts->sample_rate,
                                          .labels = facts->jfr_labels};
    struct recording_profiles made = {.n = 0};
    enum receive_result result = RECEIVE_RESULTS;
    if (job->recordings_to != 0 && facts->jfr_labels.n > 0) {
        receive_count_extra(r, RECEIVE_EXTRA_JFR_LABELS);
    }
    if (others != 0) {
        if (recordings_convert(r->options.recordings, p, item->data, &hints, &made, err)) {
            /* The error of a damaged end is dropped: a part of the recording is good. */
            err_clear(err);
            result = deliver_made(r, &made, others, err);
        } else if (job->recordings_to == 0) {
            profile_unref(p);
            return result_of(err);
        } else {
            err_clear(err); /* destinations that read recordings themselves may accept it */
        }
    }
    if (job->recordings_to == 0) {
        profile_unref(p);
        return result;
    }
    p->refusable = result != RECEIVE_ACCEPTED;
    return better(result, deliver(r, p, job->recordings_to, err));
}

/* Returns a number other than 0 that none of the last 65,534 profiles has got. */
static uint16_t next_salt(struct receive *r)
{
    pthread_mutex_lock(&r->lock);
    r->last_salt = r->last_salt == UINT16_MAX ? 1 : (uint16_t)(r->last_salt + 1);
    uint16_t salt = r->last_salt;
    pthread_mutex_unlock(&r->lock);
    return salt;
}

enum receive_result receive_put(struct receive *r, struct receive_item *item,
                                const struct receive_facts *facts, struct err *err)
{
    int64_t now_ns = clock_wall_ns();
    struct window w = window_of(&item->summary, facts, now_ns);
    item->from_ns = w.from_ns;
    item->salt = facts->keep_equal ? next_salt(r) : 0;
    if (facts->n_labels > RECEIVE_LABELS_MAX) {
        err_set(err, ERR_INPUT, "profile series has more than %d labels", RECEIVE_LABELS_MAX);
        return RECEIVE_BAD_LABELS;
    }
    size_t n = received_labels_sort(facts->labels, facts->n_labels);
    if (!check_time(item->setup->config, w.from_ns, now_ns, facts->labels, n, err)) {
        return RECEIVE_BAD_TIME;
    }
    if (!received_labels_check(facts->labels, n, item->setup->config, err)) {
        return RECEIVE_BAD_LABELS;
    }
    struct profile *p = make_profile(r, item, facts->labels, n, w, err);
    if (p == NULL) {
        return err->kind == ERR_LIMIT ? RECEIVE_BAD_LABELS : RECEIVE_NO_MEMORY;
    }
    p->receipt = facts->receipt != NULL ? receipt_ref(facts->receipt) : NULL;
    return item->format == PROFILE_JFR ? put_recording(r, item, facts, p, err)
                                       : deliver(r, p, UINT64_MAX, err);
}
