/* Asks scraped programs for the names of their own addresses, on the loop of naming. */
#include <stdlib.h>
#include <string.h>

#include "agent/naming/private.h"
#include "base/clock.h"
#include "scraper/targets/address.h"
#include "scraper/targets/target_private.h"
#include "symbols/service.h"

#define URL_MAX ((size_t)16 * 1024)
/* The answer to GET is one line; a page of an error may be longer. */
#define FIRST_ANSWER_MAX ((size_t)64 * 1024)
/* The most programs that are remembered; beyond that all are asked again. */
#define SERVICES_MAX 65536
#define LOG_PERIOD_MS 60000
#define LOG_BURST 5

/* A program's service, by its URL. */
struct service {
    bool exists;
    int64_t again_at_ms; /* if it does not: when it is asked again */
};

void naming_log(struct naming *n, const char *what, const char *where, const char *reason)
{
    uint32_t suppressed = 0;
    if (log_limit_allow(&n->limit, clock_mono_ms(), LOG_PERIOD_MS, LOG_BURST, &suppressed)) {
        log_warn(n->options.log, what, LOG_STR("of", where), LOG_STR("reason", reason),
                 LOG_INT("suppressed", suppressed));
    }
}

/* ---- services -------------------------------------------------------------------------------- */

static void forget_services(struct naming *n)
{
    size_t cursor = 0;
    struct sv key;
    void *value;
    while (map_next(n->services, &cursor, &key, &value)) {
        map_remove_at(n->services, cursor);
        free(value);
    }
}

static void note_service(struct naming *n, const char *url, bool exists, int64_t again_ms)
{
    struct service *s = map_get(n->services, sv_from(url));
    if (s == NULL) {
        if (map_count(n->services) >= SERVICES_MAX) {
            forget_services(n);
        }
        s = calloc(1, sizeof(*s));
        if (s == NULL || !map_put(n->services, sv_from(url), s, NULL)) {
            free(s);
            return;
        }
    }
    *s = (struct service){.exists = exists, .again_at_ms = clock_mono_ms() + again_ms};
}

/* ---- the end of a question ------------------------------------------------------------------- */

static void start_next(struct naming *n);

static void land(struct naming *n, struct ask *ask)
{
    TAILQ_REMOVE(&n->flying, ask, flight);
    n->n_flying--;
}

/* Goes on with debug information for what the program has not named. */
static void end_service(struct ask *ask, enum naming_end end)
{
    struct naming *n = ask->naming;
    metric_inc(n->services_cells[end]);
    land(n, ask);
    int64_t again = clock_mono_ms() + (end == END_FAILED ? NAMING_FAILED_MS : NAMING_UNKNOWN_MS);
    for (size_t i = 0; i < ask->n_addresses; i++) {
        struct symbol_table *t = ask->binaries[ask->addresses[i].binary].service;
        if (t != NULL && !ask->addresses[i].done) {
            symbol_table_unknown(t, ask->addresses[i].address, again);
        }
    }
    naming_ask_debug(n, ask);
    start_next(n);
}

/* Returns the kind of end of a response that is no answer. */
static enum naming_end end_of(const struct http_response *r)
{
    bool absent = r->result == HTTP_DONE && r->status >= 400 && r->status < 500;
    return absent ? END_ABSENT : END_FAILED;
}

static void fail(struct ask *ask, const struct http_response *r)
{
    struct naming *n = ask->naming;
    enum naming_end end = end_of(r);
    note_service(n, ask->url, false, end == END_ABSENT ? NAMING_ABSENT_MS : NAMING_FAILED_MS);
    if (end == END_FAILED) {
        naming_log(n, "symbol service does not answer", target_address(ask->target, ask->entry),
                   r->result == HTTP_DONE ? "status" : http_result_name(r->result));
    }
    end_service(ask, end);
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool send_request(struct ask *ask, const char *method, size_t max_body,
                         void (*on_done)(void *arg, const struct http_response *r))
{
    const struct target *t = ask->target;
    struct http_request r = {
        .method = method,
        .url = ask->url,
        .settings = &t->job_config->http,
        .body = ask->body.len > 0 ? &ask->part : NULL,
        .n_body = ask->body.len > 0,
        .timeout_ms = t->job_config->timeout_ms,
        .max_body = max_body,
        .refuses_address = target_checks_address(t) ? address_special_host : NULL,
        .on_done = on_done,
        .arg = ask,
    };
    ask->transfer = http_start(ask->naming->client, &r);
    return ask->transfer != NULL;
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = ((const struct ask_address *)a)->address;
    uint64_t y = ((const struct ask_address *)b)->address;
    return (x > y) - (x < y);
}

static void take_name(struct ask *ask, uint64_t address, struct sv name)
{
    const struct ask_address key = {.address = address};
    const struct symbol_answer_frame frame = {.name = name, .system_name = name};
    struct ask_address *at =
        bsearch(&key, ask->addresses, ask->n_addresses, sizeof(*ask->addresses), by_address);
    struct symbol_table *t = at != NULL ? ask->binaries[at->binary].service : NULL;
    if (t != NULL && !at->done && symbol_table_add(t, address, &frame, 1)) {
        at->done = true;
        metric_inc(ask->naming->found[ORIGIN_SERVICE]);
    }
}

static void ask_names(struct ask *ask);

static void naming_on_names(void *arg, const struct http_response *r)
{
    struct ask *ask = arg;
    ask->transfer = NULL;
    if (r->result != HTTP_DONE || r->status != 200) {
        fail(ask, r);
        return;
    }
    struct sv rest = {r->body->data, r->body->len};
    struct sv name;
    uint64_t address;
    size_t n = 0;
    while (symbol_service_next(&rest, &address, &name)) {
        take_name(ask, address, name);
        n++;
    }
    if (n == 0 && r->body->len > 0) {
        naming_log(ask->naming, "symbol service knows no address of its program",
                   target_address(ask->target, ask->entry),
                   "if it is brpc, link the program with -no-pie");
    }
    symbol_names_trim(ask->naming->names);
    metric_set(ask->naming->bytes_cell, (int64_t)symbol_names_bytes(ask->naming->names));
    ask->asked += ask->asking;
    if (ask->asked < ask->n_addresses) {
        ask_names(ask);
    } else {
        end_service(ask, END_OK);
    }
}

/* Asks for the next part of the addresses. */
static void ask_names(struct ask *ask)
{
    uint64_t addresses[SYMBOL_SERVICE_ADDRESSES_MAX / 10];
    buf_clear(&ask->body);
    ask->asking = 0;
    while (ask->asking < SYMBOL_SERVICE_ADDRESSES_MAX &&
           ask->asked + ask->asking < ask->n_addresses) {
        size_t n = 0;
        size_t from = ask->asked + ask->asking;
        for (; n < sizeof(addresses) / sizeof(addresses[0]) && from + n < ask->n_addresses; n++) {
            addresses[n] = ask->addresses[from + n].address;
        }
        if (ask->asking > 0) {
            buf_putc(&ask->body, '+');
        }
        (void)symbol_service_put_addresses(addresses, n, &ask->body);
        ask->asking += n;
    }
    ask->part = (struct http_part){ask->body.data, ask->body.len};
    if (!buf_ok(&ask->body) ||
        !send_request(ask, "POST", SYMBOL_SERVICE_ANSWER_MAX, naming_on_names)) {
        end_service(ask, END_FAILED);
    }
}

static void naming_on_count(void *arg, const struct http_response *r)
{
    struct ask *ask = arg;
    ask->transfer = NULL;
    bool answered = r->result == HTTP_DONE && r->status == 200;
    if (!answered) {
        fail(ask, r);
        return;
    }
    bool exists = symbol_service_has_names((struct sv){r->body->data, r->body->len});
    note_service(ask->naming, ask->url, exists, NAMING_ABSENT_MS);
    if (exists) {
        ask_names(ask);
    } else {
        end_service(ask, END_ABSENT);
    }
}

/* ---- the line -------------------------------------------------------------------------------- */

/* Writes the URL of the service. Returns false if there is none to ask. */
static bool find_url(struct ask *ask)
{
    struct buf url;
    struct buf service;
    buf_init(&url, URL_MAX);
    buf_init(&service, URL_MAX);
    bool ok = target_scrape_url(ask->target, ask->entry, &url) &&
              symbol_service_url((struct sv){url.data, url.len}, &service);
    if (ok) {
        ask->url = buf_take(&service, NULL);
    }
    buf_done(&url);
    buf_done(&service);
    return ask->url != NULL;
}

static void start(struct naming *n, struct ask *ask)
{
    qsort(ask->addresses, ask->n_addresses, sizeof(*ask->addresses), by_address);
    const struct service *s = map_get(n->services, sv_from(ask->url));
    TAILQ_INSERT_TAIL(&n->flying, ask, flight);
    n->n_flying++;
    if (s != NULL && s->exists) {
        ask_names(ask);
    } else if (!send_request(ask, "GET", FIRST_ANSWER_MAX, naming_on_count)) {
        end_service(ask, END_FAILED);
    }
}

static void start_next(struct naming *n)
{
    struct ask *ask;
    while (n->n_flying < NAMING_SERVICES_MAX && (ask = TAILQ_FIRST(&n->waiting)) != NULL) {
        TAILQ_REMOVE(&n->waiting, ask, link);
        start(n, ask);
    }
}

/* Returns true if the program may have a service. */
static bool may_have_service(const struct naming *n, const struct ask *ask)
{
    const struct service *s = map_get(n->services, sv_from(ask->url));
    return s == NULL || s->exists || clock_mono_ms() >= s->again_at_ms;
}

static void naming_run_ask(struct loop_task *task)
{
    struct ask *ask = (struct ask *)task;
    struct naming *n = ask->naming;
    if (n->closing) {
        naming_ask_free(ask);
    } else if (ask->target != NULL && ask->sources.target == SYMBOLS_TARGET_AUTO && find_url(ask) &&
               may_have_service(n, ask)) {
        TAILQ_INSERT_TAIL(&n->waiting, ask, link);
        start_next(n);
    } else {
        naming_ask_debug(n, ask);
    }
}

void naming_ask(struct naming *n, struct ask *ask)
{
    ask->task.run = naming_run_ask;
    loop_post(n->options.loop, &ask->task);
}

void naming_service_close(struct naming *n)
{
    struct ask *ask;
    while ((ask = TAILQ_FIRST(&n->waiting)) != NULL) {
        TAILQ_REMOVE(&n->waiting, ask, link);
        naming_ask_free(ask); /* NOLINT(clang-analyzer-unix.Malloc): it takes the next first */
    }
    while ((ask = TAILQ_FIRST(&n->flying)) != NULL) {
        if (ask->transfer != NULL) {
            http_cancel(ask->transfer);
        }
        land(n, ask);
        naming_ask_free(ask); /* NOLINT(clang-analyzer-unix.Malloc): as above */
    }
}
