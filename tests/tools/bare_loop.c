/* The least that fetching and posting profiles with libcurl can cost: what `make bench` compares
 * profpull with.
 *
 *   bare-loop SINK INTERVAL_MS < ADDRESSES
 *
 * One thread, one multi handle in a loop of libevent. Each of the five paths of each address (one
 * on each line) is fetched once an interval, at a phase of its own, the CPU profile with seconds=N
 * for all but a second of it (or not at all if the interval has no two seconds), and each body is
 * posted to SINK as it is. Nothing is looked at,
 * checked, limited, retried, queued, labelled or counted by cause, which is what profpull does in
 * addition. Prints "POSTED FAILED SKIPPED" for each SIGUSR1, and ends at SIGTERM.
 */
#include <curl/curl.h>
#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mix.h"
#include "base/str.h"

#define BODY_MAX ((size_t)64 * 1024 * 1024)
#define ADDRESS_MAX 256
#define URL_MAX 512

static const char *const paths[] = {"profile", "allocs", "goroutine", "mutex", "block"};

struct bare {
    struct event_base *base;
    struct event *timer; /* of libcurl */
    CURLM *multi;
    const char *sink;
    uint64_t interval_ms;
    CURL **idle; /* easy handles that are free; as many places as there are scrapes */
    size_t n_idle;
    uint64_t posted;
    uint64_t failed;
    uint64_t skipped;
};

/* One path of one address, for good. */
struct scrape {
    struct bare *bare;
    struct event *due;
    char url[URL_MAX];
    struct buf body;
    bool busy;
    bool posting;
};

static void die(const char *what)
{
    (void)fprintf(stderr, "bare-loop: %s\n", what);
    exit(1);
}

static struct timeval after(uint64_t ms)
{
    return (struct timeval){.tv_sec = (time_t)(ms / 1000),
                            .tv_usec = (suseconds_t)(ms % 1000 * 1000)};
}

/* ---- transfers ------------------------------------------------------------------------------- */

static size_t take(char *data, size_t size, size_t n, void *arg)
{
    struct scrape *s = arg;
    if (!s->posting) {
        buf_append(&s->body, data, size * n);
    }
    return size * n;
}

static void fetch(struct scrape *s)
{
    struct bare *b = s->bare;
    CURL *easy = b->n_idle > 0 ? b->idle[--b->n_idle] : curl_easy_init();
    if (easy == NULL) {
        die("out of memory");
    }
    s->busy = true;
    s->posting = false;
    buf_clear(&s->body);
    curl_easy_setopt(easy, CURLOPT_URL, s->url);
    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, s);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, s);
    curl_multi_add_handle(b->multi, easy);
}

static void post(struct scrape *s, CURL *easy)
{
    s->posting = true;
    curl_easy_setopt(easy, CURLOPT_URL, s->bare->sink);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, s->body.data);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)s->body.len);
    curl_multi_add_handle(s->bare->multi, easy);
}

/* A fetched body is posted with the same handle; a posted one is done. */
static void finish(struct bare *b, CURL *easy, bool ok)
{
    struct scrape *s = NULL;
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &s);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_multi_remove_handle(b->multi, easy);
    ok = ok && status == 200 && buf_ok(&s->body);
    if (ok && !s->posting) {
        post(s, easy);
        return;
    }
    b->posted += ok;
    b->failed += !ok;
    s->busy = false;
    buf_done(&s->body);
    b->idle[b->n_idle++] = easy;
}

static void take_results(struct bare *b)
{
    int left = 0;
    for (CURLMsg *m; (m = curl_multi_info_read(b->multi, &left)) != NULL;) {
        if (m->msg == CURLMSG_DONE) {
            finish(b, m->easy_handle, m->data.result == CURLE_OK);
        }
    }
}

/* ---- libcurl and libevent -------------------------------------------------------------------- */

static void bare_on_io(evutil_socket_t fd, short what, void *arg)
{
    struct bare *b = arg;
    int running = 0;
    int flags = ((what & EV_READ) != 0 ? CURL_CSELECT_IN : 0) |
                ((what & EV_WRITE) != 0 ? CURL_CSELECT_OUT : 0);
    curl_multi_socket_action(b->multi, fd, flags, &running);
    take_results(b);
}

static void bare_on_timeout(evutil_socket_t fd, short what, void *arg)
{
    struct bare *b = arg;
    int running = 0;
    (void)fd;
    (void)what;
    curl_multi_socket_action(b->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    take_results(b);
}

static int bare_on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
    struct bare *b = arg;
    struct event *e = socket_arg;
    (void)easy;
    if (e != NULL) {
        event_free(e);
        e = NULL;
    }
    if (what != CURL_POLL_REMOVE) {
        short events = (short)(((what & CURL_POLL_IN) != 0 ? EV_READ : 0) |
                               ((what & CURL_POLL_OUT) != 0 ? EV_WRITE : 0) | EV_PERSIST);
        e = event_new(b->base, fd, events, bare_on_io, b);
        if (e == NULL || event_add(e, NULL) != 0) {
            die("no event");
        }
    }
    curl_multi_assign(b->multi, fd, e);
    return 0;
}

static int bare_on_timer(CURLM *multi, long ms, void *arg)
{
    struct bare *b = arg;
    (void)multi;
    if (ms < 0) {
        event_del(b->timer);
    } else {
        struct timeval t = after((uint64_t)ms);
        event_add(b->timer, &t);
    }
    return 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void bare_on_due(evutil_socket_t fd, short what, void *arg)
{
    struct scrape *s = arg;
    struct timeval t = after(s->bare->interval_ms);
    (void)fd;
    (void)what;
    event_add(s->due, &t);
    if (s->busy) {
        s->bare->skipped++;
    } else {
        fetch(s);
    }
}

static void bare_on_report(evutil_socket_t fd, short what, void *arg)
{
    const struct bare *b = arg;
    (void)fd;
    (void)what;
    (void)printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", b->posted, b->failed, b->skipped);
    (void)fflush(stdout);
}

static void bare_on_end(evutil_socket_t fd, short what, void *arg)
{
    struct bare *b = arg;
    (void)fd;
    (void)what;
    event_base_loopbreak(b->base);
}

static void add_scrapes(struct bare *b, const char *address, size_t *n)
{
    for (size_t i = b->interval_ms < 2000; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct scrape *s = calloc(1, sizeof(*s));
        if (s == NULL) {
            die("out of memory");
        }
        s->bare = b;
        buf_init(&s->body, BODY_MAX);
        (void)snprintf(s->url, sizeof(s->url), "http://%s/debug/pprof/%s", address, paths[i]);
        if (i == 0) {
            (void)snprintf(s->url, sizeof(s->url), "http://%s/debug/pprof/profile?seconds=%" PRIu64,
                           address, b->interval_ms / 1000 - 1);
        }
        struct timeval phase = after(mix64(++*n) % b->interval_ms);
        s->due = evtimer_new(b->base, bare_on_due, s);
        event_add(s->due, &phase);
    }
}

static void read_addresses(struct bare *b)
{
    char line[ADDRESS_MAX];
    size_t n = 0;
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        add_scrapes(b, line, &n);
    }
    b->idle = calloc(n + 1, sizeof(void *));
    if (b->idle == NULL) {
        die("out of memory");
    }
}

int main(int argc, char **argv)
{
    struct bare b = {.base = event_base_new(), .multi = curl_multi_init()};
    if (argc != 3 || !parse_u64(sv_from(argv[2]), 3600000, &b.interval_ms) || b.interval_ms == 0 ||
        b.base == NULL || b.multi == NULL) {
        die("usage: bare-loop SINK INTERVAL_MS < ADDRESSES");
    }
    b.sink = argv[1];
    b.timer = evtimer_new(b.base, bare_on_timeout, &b);
    curl_multi_setopt(b.multi, CURLMOPT_SOCKETFUNCTION, bare_on_socket);
    curl_multi_setopt(b.multi, CURLMOPT_SOCKETDATA, &b);
    curl_multi_setopt(b.multi, CURLMOPT_TIMERFUNCTION, bare_on_timer);
    curl_multi_setopt(b.multi, CURLMOPT_TIMERDATA, &b);
    read_addresses(&b);
    event_add(evsignal_new(b.base, SIGUSR1, bare_on_report, &b), NULL);
    event_add(evsignal_new(b.base, SIGTERM, bare_on_end, &b), NULL);
    event_base_dispatch(b.base);
    return 0;
}
