#include "bucket/credentials.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bucket/sources.h"

/* The limits of one request to a source (a service of this machine answers at once, or never), and
 * of its tries. */
#define FETCH_TIMEOUT_MS 5000
#define FETCH_LINK_TIMEOUT_MS 2000
#define FETCH_TRIES 3
#define FETCH_PAUSE_MS 100
/* Credentials are renewed this long before they expire, but not before half of their life: AWS and
 * Google have new ones five minutes before the end. They are not used in their last seconds, which
 * a request may take. */
#define RENEW_NS (240 * NS_PER_S)
#define LAST_NS (10 * NS_PER_S)
/* The pause after a failed fetch, which doubles. */
#define PAUSE_MIN_NS NS_PER_S
#define PAUSE_MAX_NS (60 * NS_PER_S)
/* Credentials that are younger are not replaced because a server refuses them. */
#define REFUSED_MIN_NS (5 * NS_PER_S)

TAILQ_HEAD(use_list, credentials_use);

/* Keys with the texts that their settings refer to. */
struct owned_keys {
    struct credentials_keys keys; /* first: credentials_keys_unref() frees this struct */
    struct http_settings http;
    char *key_id;
    char *key;
    char *session;
    char *bearer;
};

struct credentials {
    const struct bucket_settings *settings;
    struct credentials_world world;
    struct http_client *http;
    struct log *log;
    char *name;
    struct loop_timer *timer; /* before the next try of a step, or the end of a failed wait */
    const struct credentials_method *method; /* NULL: not chosen yet */

    struct credentials_keys *current; /* NULL: none */
    /* Wall clock, as are all times here: credentials expire by it, also while a machine sleeps. */
    int64_t expires_ns;
    int64_t renew_ns;
    int64_t fetched_ns;
    bool refused; /* a server does not accept the current keys */

    struct use_list waiting;
    bool fetching;
    struct credentials_fetch fetch; /* valid while fetching */
    unsigned step;
    unsigned tries; /* of this step */
    struct http_transfer *transfer;
    struct http_settings transport;
    bool flavor_seen;

    struct err why; /* of the last failure */
    bool failed;    /* the last fetch has failed */
    int64_t failed_ns;
    int64_t pause_ns;

    struct metrics *metrics; /* NULL until the name is in use there */
    struct metric *fetches;
    struct metric_cell *expiry;
};

/* ---- keys ------------------------------------------------------------------------------------ */

struct credentials_keys *credentials_keys_unref(struct credentials_keys *keys)
{
    if (keys != NULL && --keys->refs == 0) {
        struct owned_keys *own = (struct owned_keys *)(void *)keys;
        secret_free(own->key_id);
        secret_free(own->key);
        secret_free(own->session);
        secret_free(own->bearer);
        free(own);
    }
    return NULL;
}

static bool take_text(struct buf *from, char **ret)
{
    *ret = from->len > 0 ? strdup(from->data) : NULL;
    return from->len == 0 || *ret != NULL;
}

/* Returns keys of the result of a fetch; NULL if out of memory. */
static struct credentials_keys *make_keys(struct credentials *c)
{
    struct credentials_fetch *f = &c->fetch;
    struct owned_keys *k = calloc(1, sizeof(*k));
    if (k == NULL) {
        return NULL;
    }
    k->keys = (struct credentials_keys){.refs = 1, .http = &k->http};
    k->http = c->settings->http;
    k->http.auth = HTTP_AUTH_S3;
    k->http.region = k->http.region != NULL ? k->http.region : BUCKET_REGION_DEFAULT;
    bool ok = take_text(&f->key_id, &k->key_id) && take_text(&f->key, &k->key) &&
              take_text(&f->session, &k->session) && take_text(&f->bearer, &k->bearer);
    if (!ok) {
        credentials_keys_unref(&k->keys);
        return NULL;
    }
    if (k->bearer != NULL) {
        k->http.auth = HTTP_AUTH_HEADER;
        k->http.auth_type = NULL;
        k->http.credentials = k->bearer;
        k->http.credentials_file = NULL;
    } else if (c->method->source != CREDENTIALS_CONFIGURED) {
        k->http.username = k->key_id;
        k->http.username_file = NULL;
        k->http.password = k->key;
        k->http.password_file = NULL;
        k->http.session_token = k->session;
        k->http.session_token_file = NULL;
    }
    return &k->keys;
}

void credentials_apply(const struct credentials_keys *keys, struct http_settings *ret_http)
{
    const struct http_settings *from = keys->http;
    ret_http->auth = from->auth;
    ret_http->username = from->username;
    ret_http->username_file = from->username_file;
    ret_http->password = from->password;
    ret_http->password_file = from->password_file;
    ret_http->session_token = from->session_token;
    ret_http->session_token_file = from->session_token_file;
    ret_http->auth_type = from->auth_type;
    ret_http->credentials = from->credentials;
    ret_http->credentials_file = from->credentials_file;
}

static struct credentials_keys *keys_ref(struct credentials_keys *keys)
{
    keys->refs++;
    return keys;
}

static int64_t wall_now(const struct credentials *c)
{
    return c->world.wall_ns(c->world.arg);
}

/* Returns true while the current keys can be used. */
static bool is_valid(const struct credentials *c)
{
    return c->current != NULL &&
           (c->expires_ns == INT64_MAX || wall_now(c) < c->expires_ns - LAST_NS);
}

/* ---- the end of a fetch ---------------------------------------------------------------------- */

static void count(struct credentials *c, const char *result)
{
    const char *source =
        credentials_source_name(c->method != NULL ? c->method->source : c->settings->credentials);
    metric_inc(metric_cell(c->fetches, (const char *const[]){c->name, source, result}));
}

static void resume(struct credentials *c, struct use_list *waiting, bool valid)
{
    struct credentials_use *use = TAILQ_FIRST(waiting);
    TAILQ_REMOVE(waiting, use, link);
    use->waiting = false;
    use->on_ready(use->arg, valid ? keys_ref(c->current) : NULL, &c->why);
}

/* Gives all waiting requests the current keys, or the reason why there are none. */
static void resume_all(struct credentials *c)
{
    bool valid = is_valid(c);
    struct use_list waiting;
    TAILQ_INIT(&waiting);
    TAILQ_CONCAT(&waiting, &c->waiting, link);
    while (!TAILQ_EMPTY(&waiting)) {
        resume(c, &waiting, valid);
    }
}

static void end_fetch(struct credentials *c)
{
    credentials_fetch_done(&c->fetch);
    c->fetching = false;
    c->transfer = NULL;
}

/* Ends a fetch that has failed for the reason in `why`. */
static void fail_fetch(struct credentials *c)
{
    end_fetch(c);
    c->failed = true;
    c->refused = false;
    c->pause_ns = c->pause_ns == 0 ? PAUSE_MIN_NS : 2 * c->pause_ns;
    c->pause_ns = c->pause_ns < PAUSE_MAX_NS ? c->pause_ns : PAUSE_MAX_NS;
    c->failed_ns = wall_now(c);
    count(c, "failed");
    if (is_valid(c) && c->pause_ns == PAUSE_MIN_NS) {
        log_warn(c->log, "cannot renew the credentials of a bucket; the old ones are still valid",
                 LOG_STR("bucket", c->name), LOG_ERR(&c->why));
    }
}

/* Ends a fetch that has all it needs. Returns false with `why` if the result is of no use. */
static bool take_result(struct credentials *c)
{
    int64_t now = wall_now(c);
    int64_t expires = c->fetch.expires_ns;
    if (expires != INT64_MAX && expires - LAST_NS <= now) {
        return err_set(
            &c->why, ERR_INPUT,
            "the source %s gave credentials that have expired already: check the clock of "
            "this machine",
            credentials_source_name(c->method->source));
    }
    struct credentials_keys *keys = make_keys(c);
    if (keys == NULL) {
        return err_memory(&c->why);
    }
    credentials_keys_unref(c->current);
    c->current = keys;
    c->expires_ns = expires;
    c->renew_ns = INT64_MAX;
    if (expires != INT64_MAX) {
        int64_t half = (expires - now) / 2;
        c->renew_ns = expires - (half < RENEW_NS ? half : RENEW_NS);
        metric_set(c->expiry, expires / NS_PER_S);
    }
    c->fetched_ns = now;
    c->refused = false;
    if (c->failed) {
        log_info(c->log, "the credentials of a bucket are renewed again",
                 LOG_STR("bucket", c->name));
    }
    c->failed = false;
    c->pause_ns = 0;
    if (c->method->steps > 0) {
        count(c, "ok");
    }
    end_fetch(c);
    return true;
}

/* ---- the steps ------------------------------------------------------------------------------- */

static bool send_step(struct credentials *c);

/* Fails the fetch and answers all who wait. */
static void give_up(struct credentials *c)
{
    fail_fetch(c);
    resume_all(c);
}

/* Tries the step once more after a pause, or gives up. */
static void repeat_or_give_up(struct credentials *c)
{
    if (++c->tries < FETCH_TRIES) {
        loop_timer_after(c->timer, FETCH_PAUSE_MS << (2 * (c->tries - 1)));
    } else {
        if (c->method->advice != NULL) {
            err_append(&c->why, ": %s", c->method->advice);
        }
        give_up(c);
    }
}

static void take_answer(struct credentials *c, struct sv body)
{
    if (!c->method->answer(&c->fetch, c->step, body, &c->why)) {
        give_up(c);
        return;
    }
    c->step++;
    c->tries = 0;
    bool ok = c->step < c->method->steps ? send_step(c) : take_result(c);
    if (!ok) {
        give_up(c);
    } else if (!c->fetching) {
        resume_all(c);
    }
}

static void credentials_on_field(void *arg, struct sv name, struct sv value)
{
    struct credentials *c = arg;
    c->flavor_seen |= sv_eq_nocase(name, "Metadata-Flavor") && sv_eq_str(value, "Google");
}

static void credentials_on_done(void *arg, const struct http_response *r)
{
    struct credentials *c = arg;
    struct sv body = {r->body->data, r->body->len};
    c->transfer = NULL;
    err_clear(&c->why);
    if (r->result != HTTP_DONE) {
        err_set(&c->why, ERR_NETWORK, "%s", r->error);
        repeat_or_give_up(c);
    } else if (r->status == 429 || r->status >= 500) {
        credentials_refusal(&c->fetch, r->status, body, &c->why);
        repeat_or_give_up(c);
    } else if (r->status != 200) {
        credentials_refusal(&c->fetch, r->status, body, &c->why);
        give_up(c);
    } else if (c->fetch.flavored && !c->flavor_seen) {
        err_set(&c->why, ERR_INPUT,
                "%s answered without the header Metadata-Flavor: it is no metadata server of "
                "Google",
                c->fetch.url.data);
        give_up(c);
    } else {
        take_answer(c, body);
    }
    buf_wipe(r->body);
}

/* Sends the request of the current step. Returns false with `why`. */
static bool send_step(struct credentials *c)
{
    struct credentials_fetch *f = &c->fetch;
    f->n_headers = 0;
    f->on_link = false;
    f->flavored = false;
    f->plain = false;
    if (!c->method->request(f, c->step, &c->why)) {
        return false;
    }
    c->flavor_seen = false;
    c->transport = (struct http_settings){.auth = HTTP_AUTH_NONE};
    if (!f->on_link) {
        c->transport = c->settings->http;
        c->transport.auth = HTTP_AUTH_NONE;
        c->transport.headers = NULL;
        c->transport.n_headers = 0;
        c->transport.follow_redirects = false;
    }
    struct http_part part = {.data = f->body.data, .len = f->body.len};
    c->transfer =
        http_start(c->http, &(struct http_request){.method = f->method,
                                                   .url = f->url.data,
                                                   .settings = &c->transport,
                                                   .headers = f->headers,
                                                   .n_headers = f->n_headers,
                                                   .body = &part,
                                                   .n_body = strcmp(f->method, "POST") == 0 ? 1 : 0,
                                                   .timeout_ms = f->on_link ? FETCH_LINK_TIMEOUT_MS
                                                                            : FETCH_TIMEOUT_MS,
                                                   .max_body = SOURCE_ANSWER_MAX,
                                                   .on_field = credentials_on_field,
                                                   .on_done = credentials_on_done,
                                                   .arg = c});
    return c->transfer != NULL || err_memory(&c->why);
}

static void credentials_on_timer(void *arg)
{
    struct credentials *c = arg;
    if (!c->fetching) {
        resume_all(c);
    } else if (c->transfer == NULL && !send_step(c)) {
        give_up(c);
    }
}

/* Starts a fetch. It may end at once, with a result or a failure. */
static void start_fetch(struct credentials *c)
{
    credentials_fetch_init(&c->fetch, c->settings, &c->world);
    c->fetching = true;
    c->step = 0;
    c->tries = 0;
    err_clear(&c->why);
    if (c->method == NULL) {
        c->method = credentials_method_of(&c->fetch, &c->why);
    }
    bool ok = c->method != NULL;
    if (ok && c->method->steps == 0) {
        ok = c->method->request(&c->fetch, 0, &c->why) && take_result(c);
    } else if (ok) {
        ok = send_step(c);
    }
    if (!ok) {
        fail_fetch(c);
    }
}

/* ---- requests for keys ----------------------------------------------------------------------- */

static bool is_pausing(const struct credentials *c)
{
    int64_t since = wall_now(c) - c->failed_ns;
    return c->failed && since >= 0 && since < c->pause_ns;
}

struct credentials_keys *credentials_get(struct credentials *c, struct credentials_use *use)
{
    bool usable = is_valid(c) && !c->refused;
    bool due = !usable || wall_now(c) >= c->renew_ns;
    if (due && !c->fetching && !is_pausing(c)) {
        start_fetch(c);
    }
    if (is_valid(c) && !(c->refused && c->fetching)) {
        return keys_ref(c->current);
    }
    use->of = c;
    use->waiting = true;
    TAILQ_INSERT_TAIL(&c->waiting, use, link);
    if (!c->fetching) {
        loop_timer_after(c->timer, 0);
    }
    return NULL;
}

void credentials_cancel(struct credentials_use *use)
{
    if (use->waiting) {
        TAILQ_REMOVE(&use->of->waiting, use, link);
        use->waiting = false;
    }
}

bool credentials_refused(struct credentials *c, const struct credentials_keys *keys)
{
    bool renewable = c->method != NULL && c->method->steps > 0;
    int64_t age = wall_now(c) - c->fetched_ns;
    if (renewable && keys == c->current && (age < 0 || age >= REFUSED_MIN_NS)) {
        c->refused = true;
    }
    return renewable && (c->refused || keys != c->current);
}

void credentials_configure(struct credentials *c, const struct bucket_settings *settings)
{
    if (c->transfer != NULL) {
        http_cancel(c->transfer);
    }
    if (c->fetching) {
        end_fetch(c);
    }
    c->settings = settings;
    c->method = NULL;
    c->current = credentials_keys_unref(c->current);
    c->refused = false;
    c->failed = false;
    c->pause_ns = 0;
    if (!TAILQ_EMPTY(&c->waiting)) {
        start_fetch(c);
        loop_timer_after(c->timer, 0);
    }
}

/* ---- the object ------------------------------------------------------------------------------ */

static const char *world_env(void *arg, const char *name)
{
    (void)arg;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment */
    return getenv(name);
}

static int64_t world_wall_ns(void *arg)
{
    (void)arg;
    return clock_wall_ns();
}

static void register_metrics(struct credentials *c, struct metrics *m)
{
    static const struct metric_desc fetches = {
        .name = "profpull_credentials_fetches_total",
        .help = "Fetches of temporary credentials for buckets that ended.",
        .type = METRIC_COUNTER,
        .labels = {"bucket", "source", "result"}};
    c->fetches = metrics_register(m, &fetches);
    if (c->settings->credentials != CREDENTIALS_CONFIGURED) {
        c->expiry = metric_cell_of(
            metrics_family(m, METRIC_GAUGE, "profpull_credentials_expiry_timestamp_seconds",
                           "Time at which the credentials of a bucket expire; 0: never, or none "
                           "fetched yet.",
                           "bucket", NULL),
            c->name);
    }
}

struct credentials *credentials_new(const struct credentials_options *o, struct err *err)
{
    struct credentials *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        err_memory(err);
        return NULL;
    }
    TAILQ_INIT(&c->waiting);
    c->settings = o->settings;
    c->http = o->http;
    c->log = o->log;
    c->world = o->world != NULL
                   ? *o->world
                   : (struct credentials_world){.env = world_env, .wall_ns = world_wall_ns};
    c->name = strdup(o->name);
    c->timer = loop_timer_new(o->loop, credentials_on_timer, c);
    if (c->name == NULL || c->timer == NULL) {
        err_memory(err);
        return credentials_free(c);
    }
    register_metrics(c, o->metrics);
    c->metrics = o->metrics;
    metrics_use(c->metrics, "bucket", c->name);
    return c;
}

struct credentials *credentials_free(struct credentials *c)
{
    if (c == NULL) {
        return NULL;
    }
    if (c->transfer != NULL) {
        http_cancel(c->transfer);
    }
    if (c->fetching) {
        credentials_fetch_done(&c->fetch);
    }
    loop_timer_free(c->timer);
    credentials_keys_unref(c->current);
    metrics_release(c->metrics, "bucket", c->name);
    free(c->name);
    free(c);
    return NULL;
}
