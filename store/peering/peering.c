#include "store/peering/peering.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/peering/private.h"

/* ---- settings and peers ---------------------------------------------------------------------- */

struct peering_setup *peering_setup_ref(struct peering_setup *s)
{
    atomic_fetch_add(&s->refs, 1);
    return s;
}

struct peering_setup *peering_setup_unref(struct peering_setup *s)
{
    if (s != NULL && atomic_fetch_sub(&s->refs, 1) == 1) {
        if (s->settings.release != NULL) {
            s->settings.release(s->settings.owner);
        }
        free(s);
    }
    return NULL;
}

struct peer *peer_ref(struct peer *p)
{
    atomic_fetch_add(&p->refs, 1);
    return p;
}

struct peer *peer_unref(struct peer *p)
{
    if (p != NULL && atomic_fetch_sub(&p->refs, 1) == 1) {
        peering_setup_unref(p->setup);
        free(p->url);
        free(p);
    }
    return NULL;
}

const char *peer_name(const struct peer *p)
{
    return p->url;
}

/* Makes a peer, which takes over the URL. */
static struct peer *peer_new(struct peering_setup *setup, char *url)
{
    struct peer *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        free(url);
        return NULL;
    }
    atomic_init(&p->refs, 1);
    p->setup = peering_setup_ref(setup);
    p->url = url;
    return p;
}

char *peering_url(const struct peering_settings *s, struct sv host, uint16_t port)
{
    char *url = NULL;
    bool bare = memchr(host.p, ':', host.n) != NULL && host.p[0] != '[';
    int n = asprintf(&url, "%s://%s%.*s%s:%u", s->https ? "https" : "http", bare ? "[" : "",
                     SV_ARG(host), bare ? "]" : "", (unsigned)port);
    return n < 0 ? NULL : url;
}

/* Returns the peer with a URL and this setup, with a reference; NULL if there is none. */
static struct peer *find(const struct peering *p, const struct peering_setup *setup,
                         const char *url)
{
    for (size_t i = 0; i < p->n_peers; i++) {
        if (p->peers[i]->setup == setup && strcmp(p->peers[i]->url, url) == 0) {
            return peer_ref(p->peers[i]);
        }
    }
    return NULL;
}

void peering_replace(struct peering *p, struct peering_setup *setup, char **urls, size_t n,
                     bool cut)
{
    struct peer **peers = calloc(n + 1, sizeof(void *));
    size_t made = 0;
    pthread_mutex_lock(&p->lock);
    bool current = setup == p->setup && peers != NULL;
    for (size_t i = 0; i < n; i++) {
        struct peer *peer = current && urls[i] != NULL ? find(p, setup, urls[i]) : NULL;
        if (peer != NULL || !current || urls[i] == NULL) {
            free(urls[i]);
        } else {
            peer = peer_new(setup, urls[i]);
        }
        if (peer != NULL) {
            peers[made++] = peer;
        } else {
            cut = true; /* out of memory: the answers are not complete */
        }
    }
    struct peer **former = peers;
    size_t n_former = 0;
    if (current) {
        former = p->peers;
        n_former = p->n_peers;
        p->peers = peers;
        p->n_peers = made;
        p->known = true;
        p->cut = cut;
        p->lookup_err = (struct err){0};
        pthread_cond_broadcast(&p->changed);
    }
    pthread_mutex_unlock(&p->lock);
    peering_peers_free(former, n_former);
}

void peering_peers_free(struct peer **peers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        peer_unref(peers[i]);
    }
    free((void *)peers);
}

void peering_use_addresses(struct peering *p, struct peering_setup *setup, const char *list,
                           uint16_t port)
{
    struct sv rest = sv_from(list);
    struct sv address;
    size_t n = 0;
    char **urls = calloc(PEERING_PEERS_MAX + 1, sizeof(char *));
    while (urls != NULL && rest.n > 0 && n < PEERING_PEERS_MAX) {
        if (!sv_cut(rest, ',', &address, &rest)) {
            address = rest;
            rest = SV("");
        }
        urls[n++] = peering_url(&setup->settings, address, port);
    }
    if (urls != NULL) {
        peering_replace(p, setup, urls, n, rest.n > 0);
    }
    free((void *)urls);
}

/* Makes peers of the members, if these are known and asked for. */
static void use_members(struct peering *p)
{
    pthread_mutex_lock(&p->lock);
    bool used = p->setup != NULL && p->setup->settings.mode == PEERING_MEMBERS;
    struct peering_setup *setup = used ? peering_setup_ref(p->setup) : NULL;
    char *list = used && p->members != NULL ? strdup(p->members) : NULL;
    pthread_mutex_unlock(&p->lock);
    if (list != NULL) {
        peering_use_addresses(p, setup, list, setup->settings.port);
    }
    free(list);
    peering_setup_unref(setup);
}

void peering_set_members(struct peering *p, const struct sv *addresses, size_t n)
{
    struct buf list;
    buf_init(&list, (size_t)(PEERING_PEERS_MAX + 1) * 64);
    for (size_t i = 0; i < n && i <= PEERING_PEERS_MAX; i++) {
        buf_printf(&list, "%s%.*s", i > 0 ? "," : "", SV_ARG(addresses[i]));
    }
    char *members = n > 0 ? buf_take(&list, NULL) : NULL;
    buf_done(&list);
    if (members != NULL) {
        pthread_mutex_lock(&p->lock);
        char *former = p->members;
        p->members = members;
        pthread_mutex_unlock(&p->lock);
        free(former);
        use_members(p);
    }
}

/* ---- states ---------------------------------------------------------------------------------- */

const char *peering_id(const struct peering *p)
{
    return p->id;
}

bool peering_is_used(struct peering *p)
{
    pthread_mutex_lock(&p->lock);
    bool used = p->setup != NULL && p->setup->settings.mode != PEERING_NONE;
    pthread_mutex_unlock(&p->lock);
    return used;
}

static bool await_known(struct peering *p, int64_t deadline_ms)
{
    struct timespec until = clock_timespec(deadline_ms);
    int rc = 0;
    while (!p->known && !p->stopped && p->lookup_err.kind == ERR_NONE && rc != ETIMEDOUT) {
        rc = pthread_cond_timedwait(&p->changed, &p->lock, &until);
    }
    return p->known;
}

struct peer **peering_peers(struct peering *p, int64_t deadline_ms, size_t *ret_n, bool *ret_cut,
                            struct err *err)
{
    struct peer **peers = NULL;
    *ret_n = 0;
    pthread_mutex_lock(&p->lock);
    bool none = p->setup == NULL || p->setup->settings.mode == PEERING_NONE;
    if (none || await_known(p, deadline_ms)) {
        peers = calloc(p->n_peers + 1, sizeof(void *));
        (void)(peers != NULL || err_memory(err));
    } else {
        err_set(err, ERR_NETWORK, "the peers are not known: %s",
                p->lookup_err.kind != ERR_NONE ? p->lookup_err.msg
                                               : "they have not been looked up yet");
    }
    for (size_t i = 0; peers != NULL && i < p->n_peers; i++) {
        if (!p->peers[i]->is_self) {
            peers[(*ret_n)++] = peer_ref(p->peers[i]);
        }
    }
    *ret_cut = p->cut;
    pthread_mutex_unlock(&p->lock);
    return peers;
}

bool peering_is_other(struct peering *p, struct peer *peer, struct sv instance)
{
    bool self = sv_eq_str(instance, p->id);
    pthread_mutex_lock(&p->lock);
    peer->is_self = self;
    (void)snprintf(peer->instance, sizeof(peer->instance), "%.*s", SV_ARG(instance));
    pthread_mutex_unlock(&p->lock);
    return !self;
}

void peering_note_bad(struct peering *p, struct peer *peer, const struct err *err)
{
    pthread_mutex_lock(&p->lock);
    peer->failed = true;
    peer->why = *err;
    pthread_mutex_unlock(&p->lock);
    metric_inc(metric_cell_of(p->requests, "bad_answer"));
}

void peering_stats(struct peering *p, struct peering_stats *ret)
{
    *ret = (struct peering_stats){.mode = PEERING_NONE};
    pthread_mutex_lock(&p->lock);
    ret->mode = p->setup != NULL ? p->setup->settings.mode : PEERING_NONE;
    ret->known = p->known;
    const struct err *why = !p->known && p->lookup_err.kind != ERR_NONE ? &p->lookup_err : NULL;
    for (size_t i = 0; i < p->n_peers; i++) {
        ret->peers += !p->peers[i]->is_self;
        ret->down += p->peers[i]->failed;
        why = why == NULL && p->peers[i]->failed ? &p->peers[i]->why : why;
    }
    (void)snprintf(ret->problem, sizeof(ret->problem), "%s", why != NULL ? why->msg : "");
    pthread_mutex_unlock(&p->lock);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void sample(struct metrics_out *out, const char *name, const char *help, double value)
{
    metrics_out_family(out, name, help, METRIC_GAUGE);
    metrics_out_sample(out, NULL, 0, value);
}

/* Adds the numbers that are read from the peering. A process without peers shows none. */
static void peering_collect(struct metrics_out *out, void *arg)
{
    struct peering_stats stats;
    peering_stats(arg, &stats);
    if (stats.mode != PEERING_NONE) {
        sample(out, "profpull_peers", "Peers that are known, without this process.",
               (double)stats.peers);
        sample(out, "profpull_peers_down", "Peers whose last request has failed.",
               (double)stats.down);
    }
}

/* Registers the metrics of requests, with the first peers. */
static void make_metrics(struct peering *p)
{
    static const double buckets[] = {0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30};
    static const struct metric_desc seconds = {
        .name = "profpull_peer_request_seconds",
        .help = "Time of a request to a peer.",
        .type = METRIC_HISTOGRAM,
        .buckets = buckets,
        .n_buckets = sizeof(buckets) / sizeof(buckets[0]),
    };
    struct metrics *m = p->options.metrics;
    p->requests = metrics_family(m, METRIC_COUNTER, "profpull_peer_requests_total",
                                 "Requests to peers that ended, by result.", "result", NULL);
    p->bytes = metrics_single(m, METRIC_COUNTER, "profpull_peer_received_bytes_total",
                              "Bytes of the answers of peers.");
    p->seconds = metric_only(metrics_register(m, &seconds));
}

static void make_id(char id[PEERING_ID_SIZE])
{
    struct rng rng;
    rng_seed_random(&rng);
    (void)snprintf(id, PEERING_ID_SIZE, "%016llx%016llx", (unsigned long long)rng_next(&rng),
                   (unsigned long long)rng_next(&rng));
}

struct peering *peering_new(const struct peering_options *o, struct err *err)
{
    struct peering *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        err_memory(err);
        return NULL;
    }
    p->options = *o;
    make_id(p->id);
    TAILQ_INIT(&p->exchanges);
    pthread_mutex_init(&p->lock, NULL);
    clock_cond_init(&p->changed);
    if (o->metrics != NULL && !metrics_collector(o->metrics, peering_collect, p)) {
        err_memory(err);
        return peering_free(p);
    }
    return p;
}

/* Makes the thread and its parts, with the first peers. */
static bool start(struct peering *p, struct err *err)
{
    if (p->thread != NULL) {
        return true;
    }
    make_metrics(p);
    p->loop = p->loop != NULL ? p->loop : loop_new(err);
    if (p->loop == NULL) {
        return false;
    }
    if (p->http == NULL) {
        p->http = http_client_new(&(struct http_client_options){.loop = p->loop,
                                                                .log = p->options.log,
                                                                .metrics = p->options.metrics,
                                                                .name = "peers",
                                                                .contents = p->options.contents},
                                  err);
    }
    if (p->http == NULL) {
        return false;
    }
    lookup_fn *fn = p->options.lookup != NULL ? p->options.lookup : peering_getaddrinfo;
    p->lookups = p->lookups != NULL ? p->lookups : lookups_new(p->loop, fn, peering_lookup_on_done);
    p->timer = p->timer != NULL ? p->timer : loop_timer_new(p->loop, peering_lookup_on_timer, p);
    if (p->lookups == NULL || p->timer == NULL) {
        return err_memory(err);
    }
    p->thread = loop_thread_start(p->loop, "peers", err);
    return p->thread != NULL;
}

/* Gives the peering its setup. Peers that are not known yet are looked up on the thread. */
static void put_in_force(struct peering *p, struct peering_setup *setup)
{
    const struct peering_settings *s = &setup->settings;
    pthread_mutex_lock(&p->lock);
    struct peering_setup *former = p->setup;
    struct peer **peers = p->peers;
    size_t n = p->n_peers;
    p->setup = peering_setup_ref(setup);
    p->peers = NULL;
    p->n_peers = 0;
    p->known = false;
    p->lookup_err = (struct err){0};
    bool post = s->mode == PEERING_DNS && !p->begin_posted;
    p->begin_posted = p->begin_posted || post;
    pthread_mutex_unlock(&p->lock);
    if (post) {
        p->begin_task = (struct loop_task){.run = peering_lookup_begin};
        loop_post(p->loop, &p->begin_task);
    }
    peering_peers_free(peers, n);
    peering_setup_unref(former);
}

static bool put_hosts(struct peering *p, struct peering_setup *setup, struct err *err)
{
    const struct peering_settings *s = &setup->settings;
    char **urls = calloc(s->n_hosts + 1, sizeof(char *));
    if (urls == NULL) {
        return err_memory(err);
    }
    for (size_t i = 0; i < s->n_hosts; i++) {
        struct sv host;
        uint16_t port;
        if (split_host_port(sv_from(s->hosts[i]), &host, &port, NULL)) {
            urls[i] = peering_url(s, host, port);
        }
    }
    peering_replace(p, setup, urls, s->n_hosts, false);
    free((void *)urls);
    return true;
}

bool peering_configure(struct peering *p, const struct peering_settings *s, struct err *err)
{
    struct peering_setup *setup = calloc(1, sizeof(*setup));
    if (setup == NULL) {
        if (s->release != NULL) {
            s->release(s->owner);
        }
        return err_memory(err);
    }
    atomic_init(&setup->refs, 1);
    setup->settings = *s;
    bool ok = s->mode == PEERING_NONE || start(p, err);
    if (ok) {
        put_in_force(p, setup);
        ok = s->mode != PEERING_HOSTS || put_hosts(p, setup, err);
        use_members(p);
    }
    peering_setup_unref(setup);
    return ok;
}

void peering_stop(struct peering *p)
{
    if (p == NULL) {
        return;
    }
    pthread_mutex_lock(&p->lock);
    bool first = !p->stopped;
    p->stopped = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    if (first && p->thread != NULL) {
        p->stop_task = (struct loop_task){.run = peering_exchange_stop};
        loop_post(p->loop, &p->stop_task);
    }
}

struct peering *peering_free(struct peering *p)
{
    if (p == NULL) {
        return NULL;
    }
    peering_stop(p);
    loop_thread_join(p->thread);
    lookups_close(p->lookups);
    loop_timer_free(p->timer);
    http_client_free(p->http);
    loop_free(p->loop);
    peering_peers_free(p->peers, p->n_peers);
    peering_setup_unref(p->setup);
    free(p->members);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
    return NULL;
}
