/* Metrics and log lines about one endpoint. */
#include <stdio.h>
#include <string.h>

#include "base/ascii.h"
#include "base/clock.h"
#include "write/destination.h"

/* The period of the limits of log lines about one endpoint: failures and recoveries, profiles
 * refused or given up for one cause, losses. A tenant has to work for as long before the log says
 * that it works. */
#define LOG_PERIOD_MS INT64_C(60000)
#define FAILURES_LOGGED 5

static const double buckets[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};

static const struct metric_desc duration_desc = {
    .name = "profpull_write_request_duration_seconds",
    .help = "Duration of one attempt.",
    .type = METRIC_HISTOGRAM,
    .labels = {"endpoint"},
    .buckets = buckets,
    .n_buckets = sizeof(buckets) / sizeof(buckets[0]),
};
void report_init(struct report *r, struct log *log, struct metrics *m, const char *endpoint)
{
    *r = (struct report){.log = log, .endpoint = endpoint, .condition = {.advice = ""}};
    r->requests = metrics_family(m, METRIC_COUNTER, "profpull_write_requests_total",
                                 "Attempts to write a profile, by status class or kind of failure.",
                                 "endpoint", "result");
    struct metric *retries =
        metrics_family(m, METRIC_COUNTER, "profpull_write_retries_total",
                       "Attempts after the first one of a profile.", "endpoint", NULL);
    struct metric *sent_bytes =
        metrics_family(m, METRIC_COUNTER, "profpull_write_sent_bytes_total",
                       "Bytes of the profiles that were written.", "endpoint", NULL);
    r->duration = metric_cell_of(metrics_register(m, &duration_desc), endpoint);
    struct metric *changes =
        metrics_family(m, METRIC_COUNTER, "profpull_write_label_changes_total",
                       "Labels that were rewritten, cut or dropped for the protocol or its limits.",
                       "endpoint", "change");
    r->retries = metric_cell_of(retries, endpoint);
    r->sent_bytes = metric_cell_of(sent_bytes, endpoint);
    for (size_t i = 0; i < SERIES_CHANGES; i++) {
        const char *const values[] = {endpoint, series_change_name((enum series_change)i)};
        r->changes[i] = metric_cell(changes, values);
    }
}

void report_changes(struct report *r, const struct series *s, const struct labels *l)
{
    for (size_t i = 0; i < SERIES_CHANGES; i++) {
        if (s->changes[i] == 0) {
            continue;
        }
        metric_add(r->changes[i], s->changes[i]);
        if (s->examples[i].n > 0 && !r->change_said[i]) {
            r->change_said[i] = true;
            log_warn(r->log,
                     "labels are cut to the limits of the endpoint; further ones are counted",
                     LOG_STR("endpoint", r->endpoint),
                     LOG_STR("change", series_change_name((enum series_change)i)),
                     LOG_SV("label", s->examples[i]),
                     LOG_SV("service_name", labels_get(l, SV(LABEL_SERVICE_NAME))),
                     LOG_SV("type", labels_get(l, SV(LABEL_NAME))));
        }
    }
}

/* ---- log ------------------------------------------------------------------------------------- */

/* The character that ends a part of a server's message that repeats text of the request; 0: c
 * begins no such part. */
static char closing(char c)
{
    return c == '{' ? '}' : c == '"' || c == '\'' ? c : '\0';
}

/* Returns a hash of a message, never 0. Servers repeat labels, sizes and times in their messages.
 * Without braces, quotes and digits, the message is the same for all profiles with the same fault.
 */
static uint64_t cause_key(unsigned kind, const char *why)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325) + kind;
    char until = '\0';
    for (const char *c = why; *c; c++) {
        if (until != '\0') {
            until = *c == until ? '\0' : until;
        } else if ((until = closing(*c)) == '\0' && !ascii_is_digit(*c)) {
            h = (h ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
        }
    }
    return h != 0 ? h : 1;
}

/* Returns the slot of the cause, or else the slot that was logged longest ago. */
static struct report_cause *find_cause(struct report *r, uint64_t key)
{
    struct report_cause *oldest = &r->causes[0];
    for (size_t i = 0; i < REPORT_CAUSES_MAX; i++) {
        struct report_cause *at = &r->causes[i];
        if (at->key == key) {
            return at;
        }
        if (oldest->key != 0 && (at->key == 0 || at->said_ms < oldest->said_ms)) {
            oldest = at;
        }
    }
    return oldest;
}

/* Returns true if a cause is to be logged now: the first time, and then at most once in a period
 * with the number of profiles since. There are at most as many lines in a period as there are
 * slots. */
static bool is_news(struct report *r, uint64_t key, int64_t now_ms, uint64_t *ret_more)
{
    struct report_cause *cause = find_cause(r, key);
    bool known = cause->key == key;
    uint32_t others;
    *ret_more = known ? cause->more : 0;
    if (known && now_ms - cause->said_ms < LOG_PERIOD_MS) {
        cause->more++;
        return false;
    }
    *cause = (struct report_cause){.key = key, .said_ms = now_ms};
    return log_limit_allow(&r->causes_limit, now_ms, LOG_PERIOD_MS, REPORT_CAUSES_MAX, &others);
}

/* Logs a doubtful answer about one profile. */
static void log_refused(struct report *r, const struct report_attempt *a)
{
    uint64_t more = 0;
    const struct labels *l = a->profile->labels;
    if (!is_news(r, cause_key(WRITE_DROPS, a->answer->text), a->now_ms, &more)) {
        return;
    }
    log_warn(r->log, "profile refused, retrying", LOG_STR("endpoint", r->endpoint),
             LOG_STR("err", a->answer->text),
             LOG_FLOAT("retry_in_s", (double)a->outcome->wait_ms / (double)MS_PER_S),
             LOG_SV("service_name", labels_get(l, SV(LABEL_SERVICE_NAME))),
             LOG_SV("type", labels_get(l, SV(LABEL_NAME))),
             LOG_SV("instance", labels_get(l, SV(LABEL_INSTANCE))), LOG_INT("more", more));
}

void report_dropped(struct report *r, const struct labels *l, enum write_drop reason,
                    const char *why, int64_t now_ms)
{
    uint64_t more = 0;
    if (!is_news(r, cause_key(reason, why), now_ms, &more)) {
        return;
    }
    log_warn(r->log, "profile given up", LOG_STR("endpoint", r->endpoint),
             LOG_STR("reason", write_drop_name(reason)), LOG_STR("err", why),
             LOG_SV("service_name", labels_get(l, SV(LABEL_SERVICE_NAME))),
             LOG_SV("type", labels_get(l, SV(LABEL_NAME))),
             LOG_SV("instance", labels_get(l, SV(LABEL_INSTANCE))), LOG_INT("more", more));
}

/* Writes the cause of a failure, such as "HTTP 503" or "connect". A failure is logged again when
 * its cause changes. */
static void cause_of(const struct report_attempt *a, char *out, size_t size)
{
    const char *text = a->answer->text;
    if (strncmp(text, "HTTP ", 5) == 0) {
        (void)snprintf(out, size, "%.8s", text);
    } else {
        (void)snprintf(out, size, "%s", a->result);
    }
}

/* Returns the field with the advice; none if there is no advice. */
static struct log_field hint_field(const struct report_attempt *a)
{
    return a->hint[0] != '\0' ? LOG_STR("hint", a->hint) : LOG_END;
}

static void log_failure(struct report *r, const struct report_attempt *a)
{
    char cause[sizeof(r->cause)];
    cause_of(a, cause, sizeof(cause));
    uint32_t suppressed = 0;
    if (r->failing && strcmp(cause, r->cause) == 0) {
        return;
    }
    if (!log_limit_allow(&r->cause_limit, a->now_ms, LOG_PERIOD_MS, FAILURES_LOGGED, &suppressed)) {
        return;
    }
    if (!r->failing) {
        r->failing_since_ms = a->now_ms;
    }
    r->failing = true;
    memcpy(r->cause, cause, sizeof(cause));
    log_warn(r->log, "endpoint fails, retrying", LOG_STR("endpoint", r->endpoint),
             LOG_STR("err", a->answer->text),
             LOG_FLOAT("retry_in_s", (double)a->outcome->wait_ms / (double)MS_PER_S),
             LOG_INT("queued", a->outcome->queued), LOG_INT("suppressed", suppressed),
             hint_field(a));
}

static void log_recovery(struct report *r, const struct report_attempt *a)
{
    /* Only if the failure was logged. */
    if (!r->failing) {
        return;
    }
    r->failing = false;
    log_info(r->log, "endpoint works again", LOG_STR("endpoint", r->endpoint),
             LOG_INT("queued", a->outcome->queued),
             LOG_FLOAT("after_s", (double)(a->now_ms - r->failing_since_ms) / (double)MS_PER_S));
}

/* ---- tenants --------------------------------------------------------------------------------- */

/* Returns the field that names the tenant; none if the requests name no tenant. */
static struct log_field tenant_field(const char *tenant)
{
    return tenant[0] != '\0' ? LOG_STR("tenant", tenant) : LOG_END;
}

static struct report_tenant *find_tenant(struct report *r, const char *tenant, const char *cause)
{
    struct report_tenant *unused = NULL;
    for (size_t i = 0; i < REPORT_TENANTS_MAX; i++) {
        struct report_tenant *t = &r->tenants[i];
        if (!t->failing) {
            unused = unused == NULL ? t : unused;
        } else if (strcmp(t->tenant, tenant) == 0 && strcmp(t->cause, cause) == 0) {
            return t;
        }
    }
    return unused;
}

static void log_tenant_failure(struct report *r, const struct report_attempt *a)
{
    const char *tenant = a->outcome->tenant;
    char cause[sizeof(r->tenants[0].cause)];
    cause_of(a, cause, sizeof(cause));
    struct report_tenant *t = find_tenant(r, tenant, cause);
    uint32_t suppressed = 0;
    if (t != NULL && t->failing) {
        t->failures++;
        t->works_since_ms = 0;
        return;
    }
    if (t == NULL || !log_limit_allow(&r->tenants_limit, a->now_ms, LOG_PERIOD_MS,
                                      REPORT_TENANTS_MAX, &suppressed)) {
        return;
    }
    *t = (struct report_tenant){.failing = true, .since_ms = a->now_ms, .failures = 1};
    (void)snprintf(t->tenant, sizeof(t->tenant), "%s", tenant);
    (void)snprintf(t->cause, sizeof(t->cause), "%s", cause);
    log_warn(r->log, "endpoint fails, retrying", LOG_STR("endpoint", r->endpoint),
             LOG_STR("err", a->answer->text),
             LOG_FLOAT("retry_in_s", (double)a->outcome->wait_ms / (double)MS_PER_S),
             LOG_INT("queued", a->outcome->queued), LOG_INT("suppressed", suppressed),
             tenant[0] != '\0' ? tenant_field(tenant) : hint_field(a),
             tenant[0] != '\0' ? hint_field(a) : LOG_END);
}

static void note_tenant_works(struct report *r, const struct report_attempt *a)
{
    for (size_t i = 0; i < REPORT_TENANTS_MAX; i++) {
        struct report_tenant *t = &r->tenants[i];
        if (t->failing && t->works_since_ms == 0 && strcmp(t->tenant, a->outcome->tenant) == 0) {
            t->works_since_ms = a->now_ms;
        }
    }
}

/* Logs the tenants of which nothing has been refused for a period. */
static void log_tenants_that_work(struct report *r, const struct send_queue_status *s,
                                  int64_t now_ms)
{
    for (size_t i = 0; i < REPORT_TENANTS_MAX; i++) {
        struct report_tenant *t = &r->tenants[i];
        if (!t->failing || t->works_since_ms == 0 || now_ms - t->works_since_ms < LOG_PERIOD_MS) {
            continue;
        }
        t->failing = false;
        log_info(r->log, "endpoint works again", LOG_STR("endpoint", r->endpoint),
                 LOG_INT("queued", s->ledger.queued),
                 LOG_FLOAT("after_s", (double)(t->works_since_ms - t->since_ms) / (double)MS_PER_S),
                 LOG_INT("failures", t->failures), tenant_field(t->tenant));
    }
}

/* ---- for the API ------------------------------------------------------------------------------
 */

/* Keeps the last failure until a profile is sent. */
static void note_outcome(struct report *r, const struct report_attempt *a)
{
    bool sent = a->outcome->outcome == WRITE_SENT;
    r->condition.advice = sent ? "" : a->hint;
    (void)snprintf(r->condition.why, sizeof(r->condition.why), "%.*s", CONDITION_WHY_MAX - 1,
                   sent ? "" : a->answer->text);
}

static void publish(struct report *r, const struct send_queue_status *s)
{
    struct write_condition *c = &r->condition;
    bool tenants_fail = s->lanes.failing > 0 && s->lanes.failing == s->lanes.tenants;
    c->works = s->failures == 0 && !tenants_fail;
    c->oldest_ms = s->oldest_ms;
    if (c->works) {
        c->since_ns = 0;
    } else if (c->since_ns == 0) {
        c->since_ns = clock_wall_ns();
    }
    conditions_set(r->conditions, r->endpoint, c);
}

/* ---- both ------------------------------------------------------------------------------------ */

static void log_retry(struct report *r, const struct report_attempt *a)
{
    /* An attempt that was started before the last recovery says nothing about the present. */
    if (a->outcome->failures == 0) {
        return;
    }
    switch (a->outcome->scope) {
    case ANSWER_OF_ENDPOINT:
        log_failure(r, a);
        break;
    case ANSWER_OF_TENANT:
        log_tenant_failure(r, a);
        break;
    case ANSWER_OF_PROFILE:
        log_refused(r, a);
        break;
    }
}

static void count_request(struct report *r, const char *result, int64_t took_ms)
{
    const char *const values[] = {r->endpoint, result};
    metric_inc(metric_cell(r->requests, values));
    metric_observe(r->duration, (double)took_ms / (double)MS_PER_S);
}

void report_repeated(struct report *r, const char *result, int64_t took_ms)
{
    count_request(r, result, took_ms);
    metric_inc(r->retries);
}

void report_done(struct report *r, const struct report_attempt *a)
{
    count_request(r, a->result, a->now_ms - a->start_ms);
    if (a->attempt > 1) {
        metric_inc(r->retries);
    }
    note_outcome(r, a);
    if (a->outcome->recovered) {
        log_recovery(r, a);
    }
    switch (a->outcome->outcome) {
    case WRITE_SENT:
        metric_add(r->sent_bytes, a->profile->size);
        note_tenant_works(r, a);
        break;
    case WRITE_DROPPED:
        report_dropped(r, a->profile->labels, a->outcome->reason, a->answer->text, a->now_ms);
        break;
    case WRITE_RETRIED:
        log_retry(r, a);
        break;
    }
}

static void log_losses(struct report *r, const struct send_queue_status *s, int64_t now_ms)
{
    const uint64_t *dropped = s->ledger.dropped;
    uint64_t lost = dropped[DROP_QUEUE_FULL] + dropped[DROP_THINNED] + dropped[DROP_EXPIRED] +
                    dropped[DROP_MEMORY] + dropped[DROP_SPOOL_FULL] + dropped[DROP_DAMAGED];
    uint32_t suppressed;
    if (lost == r->lost ||
        !log_limit_allow(&r->lost_limit, now_ms, LOG_PERIOD_MS, 1, &suppressed)) {
        return;
    }
    log_warn(r->log, "profiles lost in the queue", LOG_STR("endpoint", r->endpoint),
             LOG_INT("profiles", lost - r->lost), LOG_INT("queue_full", dropped[DROP_QUEUE_FULL]),
             LOG_INT("thinned", dropped[DROP_THINNED]), LOG_INT("expired", dropped[DROP_EXPIRED]),
             LOG_INT("spool_full", dropped[DROP_SPOOL_FULL]),
             LOG_INT("damaged", dropped[DROP_DAMAGED]), LOG_INT("queued", s->ledger.queued));
    r->lost = lost;
}

void report_state(struct report *r, const struct send_queue_status *s, int64_t now_ms)
{
    log_losses(r, s, now_ms);
    log_tenants_that_work(r, s, now_ms);
    publish(r, s);
}
