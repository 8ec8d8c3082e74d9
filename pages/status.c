#include "pages/status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/naming/naming.h"
#include "agent/sharing/sharding.h"
#include "api/served.h"
#include "api/targets_json.h"
#include "base/clock.h"
#include "config/config.h"
#include "discovery/sources.h"
#include "pages/destinations.h"
#include "server/routes.h"
#include "store/peering/peering.h"

#define PAGE_SCRAPES 64
/* Limits of the kinds of failures and of the slow scrapes that are shown. */
#define FAILURES_MAX 20
#define SLOWEST_MAX 10
#define TEXT_MAX ((size_t)64 * 1024)

struct tally {
    uint64_t by_health[SCRAPE_HEALTHS];
};

/* Failures of a job with the same reason. */
struct failures {
    uint64_t count;
    struct scrape_status first;
};

struct survey {
    const struct config *config;
    struct tally *jobs; /* in the order of the configuration */
    struct failures failures[FAILURES_MAX];
    size_t n_failures;
    uint64_t more; /* failures of kinds that are not listed */
    struct scrape_status slowest[SLOWEST_MAX];
    size_t n_slowest;
};

/* ---- looking --------------------------------------------------------------------------------- */

static void count_job(struct survey *s, const struct scrape_status *st)
{
    for (size_t i = 0; i < s->config->n_jobs; i++) {
        if (strcmp(s->config->jobs[i].name, st->job) == 0) {
            s->jobs[i].by_health[st->health]++;
        }
    }
}

/* Returns true if the list has taken over the scrape. */
static bool note_failure(struct survey *s, const struct scrape_status *st)
{
    if (st->health != SCRAPE_DOWN && st->health != SCRAPE_ABSENT) {
        return false;
    }
    for (size_t i = 0; i < s->n_failures; i++) {
        const struct scrape_status *first = &s->failures[i].first;
        if (first->reason == st->reason && first->health == st->health &&
            strcmp(first->job, st->job) == 0) {
            s->failures[i].count++;
            return false;
        }
    }
    if (s->n_failures == FAILURES_MAX) {
        s->more++;
        return false;
    }
    s->failures[s->n_failures++] = (struct failures){.count = 1, .first = *st};
    return true;
}

/* Returns how long the last scrape took, not counting the time for which the target sampled. */
static int64_t waited_ms(const struct scrape_status *st)
{
    return st->last_duration_ms - st->sampling_ms;
}

static bool note_slow(struct survey *s, struct scrape_status *st)
{
    size_t at = s->n_slowest;
    while (at > 0 && waited_ms(&s->slowest[at - 1]) < waited_ms(st)) {
        at--;
    }
    if (st->health != SCRAPE_UP || st->follows != NULL || at == SLOWEST_MAX) {
        return false;
    }
    if (s->n_slowest == SLOWEST_MAX) {
        scrape_status_done(&s->slowest[--s->n_slowest]);
    }
    memmove(&s->slowest[at + 1], &s->slowest[at], (s->n_slowest - at) * sizeof(*st));
    s->slowest[at] = *st;
    s->n_slowest++;
    return true;
}

static void look(struct exchange *x, struct survey *s)
{
    struct scrape_status statuses[PAGE_SCRAPES];
    size_t cursor = 0;
    size_t n;
    while (x->options->served->scraper != NULL &&
           (n = scraper_snapshot(x->options->served->scraper, &cursor, statuses, PAGE_SCRAPES)) >
               0) {
        for (size_t i = 0; i < n; i++) {
            count_job(s, &statuses[i]);
            if (!note_failure(s, &statuses[i]) && !note_slow(s, &statuses[i])) {
                scrape_status_done(&statuses[i]);
            }
        }
    }
}

static void forget(struct survey *s)
{
    for (size_t i = 0; i < s->n_failures; i++) {
        scrape_status_done(&s->failures[i].first);
    }
    for (size_t i = 0; i < s->n_slowest; i++) {
        scrape_status_done(&s->slowest[i]);
    }
    free(s->jobs);
}

/* ---- the answer ----------------------------------------------------------------------------- */

static void put_probes(struct exchange *x, struct buf *out)
{
    const struct served *o = x->options->served;
    struct err err = ERR_INIT;
    struct buf text;
    buf_init(&text, TEXT_MAX);
    bool healthy = o->healthy == NULL || o->healthy(o->arg, &err);
    bool ready = o->ready == NULL || o->ready(o->arg, &text);
    buf_printf(out, ",\"healthy\":%s", healthy ? "true" : "false");
    json_member("health", sv_from(err.msg), out);
    buf_printf(out, ",\"ready\":%s", ready ? "true" : "false");
    json_member("readiness", (struct sv){text.data, text.len}, out);
    buf_done(&text);
}

static void put_jobs(const struct survey *s, struct buf *out)
{
    json_key("jobs", out);
    for (size_t i = 0; i < s->config->n_jobs; i++) {
        buf_puts(out, i == 0 ? "[{" : ",{");
        json_member("job", sv_from(s->config->jobs[i].name), out);
        for (size_t k = 0; k < SCRAPE_HEALTHS; k++) {
            buf_printf(out, ",\"%s\":%" PRIu64, scrape_health_name((enum scrape_health)k),
                       s->jobs[i].by_health[k]);
        }
        buf_putc(out, '}');
    }
    buf_puts(out, s->config->n_jobs == 0 ? "[]" : "]");
}

static void put_scrapes(const struct survey *s, struct buf *out)
{
    json_key("failures", out);
    buf_putc(out, '[');
    for (size_t i = 0; i < s->n_failures; i++) {
        buf_printf(out, "%s{\"count\":%" PRIu64 ",\"scrape\":", i == 0 ? "" : ",",
                   s->failures[i].count);
        targets_put(&s->failures[i].first, out);
        buf_putc(out, '}');
    }
    buf_printf(out, "],\"moreFailures\":%" PRIu64 ",\"slowest\":[", s->more);
    for (size_t i = 0; i < s->n_slowest; i++) {
        buf_puts(out, i == 0 ? "" : ",");
        targets_put(&s->slowest[i], out);
    }
    buf_putc(out, ']');
}

/* Writes a source, with a comma before each but the first. */
static void status_on_source(void *arg, const struct source_status *v)
{
    struct buf *out = arg;
    char since[32];
    clock_format_rfc3339(v->since_ns, since, sizeof(since));
    buf_puts(out, out->len == 0 ? "{" : ",{");
    json_member("job", sv_from(v->job), out);
    json_member("source", sv_from(v->name), out);
    json_member("state", sv_from(source_state_name(v->state)), out);
    json_member("why", sv_from(v->why), out);
    json_member("since", sv_from(since), out);
    buf_putc(out, '}');
}

static void put_sources(struct exchange *x, struct buf *out)
{
    struct buf list;
    buf_init(&list, out->max);
    if (x->options->served->sources != NULL) {
        sources_each(x->options->served->sources, status_on_source, &list);
    }
    json_key("sources", out);
    buf_printf(out, "[%s]", list.data);
    buf_done(&list);
}

static void put_sharding(struct exchange *x, struct buf *out)
{
    struct sharding_counts n;
    json_key("sharding", out);
    if (x->options->served->sharding == NULL ||
        !x->options->served->sharding(x->options->served->arg, &n)) {
        buf_puts(out, "null");
        return;
    }
    buf_printf(out,
               "{\"members\":%" PRIi64 ",\"index\":%" PRIi64 ",\"own\":%" PRIi64
               ",\"others\":%" PRIi64 "}",
               n.members, n.index, n.own, n.others);
}

static void put_peers(struct exchange *x, struct buf *out)
{
    struct peering *peering = x->options->served->peering;
    struct peering_stats p = {.mode = PEERING_NONE};
    json_key("peers", out);
    if (peering != NULL) {
        peering_stats(peering, &p);
    }
    if (p.mode == PEERING_NONE) {
        buf_puts(out, "null");
        return;
    }
    buf_printf(out, "{\"known\":%zu,\"down\":%zu", p.peers, p.down);
    json_member("lastError", sv_from(p.problem), out);
    buf_putc(out, '}');
}

static void put_names(struct exchange *x, struct buf *out)
{
    struct naming_counts n;
    json_key("symbols", out);
    if (x->options->served->names == NULL) {
        buf_puts(out, "null");
        return;
    }
    x->options->served->names(x->options->served->arg, &n);
    buf_printf(out,
               "{\"named\":%" PRIu64 ",\"partly\":%" PRIu64 ",\"unnamed\":%" PRIu64
               ",\"asks\":%" PRIu64 ",\"failures\":%" PRIu64 "}",
               n.named, n.partly, n.unnamed, n.asks, n.failures);
}

/* Writes the resource that scrapes wait for, if it is memory or CPU. */
static void put_bottleneck(struct exchange *x, struct buf *out)
{
    struct scrape_memory m = {.shortage = SHORTAGE_NONE};
    if (x->options->served->scraper != NULL) {
        m = scraper_memory(x->options->served->scraper);
    }
    json_key("bottleneck", out);
    if (m.shortage == SHORTAGE_NONE) {
        buf_puts(out, "null");
        return;
    }
    buf_putc(out, '{');
    json_member("cause", sv_from(scrape_shortage_name(m.shortage)), out);
    buf_printf(out, ",\"unread\":%u,\"heldBack\":%u,\"bodiesLimitBytes\":%zu", m.unread,
               m.held_back, m.max_bytes);
    json_member("advice", sv_from(scrape_shortage_advice(m.shortage)), out);
    buf_putc(out, '}');
}

static void put_all(struct exchange *x, const struct survey *s)
{
    struct buf *out = &x->reply;
    buf_putc(out, '{');
    json_member("version", sv_from(x->options->served->version), out);
    json_member("configFile", sv_from(x->options->served->config->file), out);
    buf_printf(out, ",\"uptimeSeconds\":%" PRIi64,
               (clock_mono_ms() - x->options->served->started_ms) / MS_PER_S);
    put_probes(x, out);
    put_bottleneck(x, out);
    put_jobs(s, out);
    put_scrapes(s, out);
    put_sources(x, out);
    json_key("destinations", out);
    destinations_put(x);
    put_sharding(x, out);
    put_peers(x, out);
    put_names(x, out);
    buf_puts(out, "}\n");
}

void v1_status(struct exchange *x)
{
    const struct config *config = x->options->served->config;
    struct survey *s = calloc(1, sizeof(*s));
    x->content_type = "application/json";
    if (s == NULL || (s->jobs = calloc(config->n_jobs + 1, sizeof(*s->jobs))) == NULL) {
        x->status = STATUS_INTERNAL;
        buf_puts(&x->reply, "{\"error\":\"out of memory\"}\n");
    } else {
        s->config = config;
        look(x, s);
        put_all(x, s);
        forget(s);
        exchange_deflate(x);
    }
    free(s);
}
