/* Name lookups: one for all that wait, a bounded number of threads, what is remembered, and what
 * happens when name servers do not answer. */
#include "tests/unit/lib/http_server.h"

#include <dirent.h>
#include <netdb.h>

#include "http/private.h"
#include "http/proxy.h"

#define WAITING "profpull_dns_lookups_waiting{client=\"test\"}"
#define LOOKUPS(result) "profpull_dns_lookups_total{client=\"test\",result=\"" result "\"}"

/* ---- a name server --------------------------------------------------------------------------- */

/* Names that begin with "dead" are not answered while the gate is closed, and then fail; those that
 * begin with "gone" do not exist; all others are this machine. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool open;
    unsigned asked;
    unsigned hanging;
    int code; /* of all names, if it is not 0 */
    char last[300];
} dns = {.lock = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER};

static int ask(const char *host, char **ret_addresses)
{
    pthread_mutex_lock(&dns.lock);
    int code = dns.code;
    dns.asked++;
    (void)snprintf(dns.last, sizeof(dns.last), "%s", host);
    if (strncmp(host, "dead", 4) == 0) {
        dns.hanging++;
        while (!dns.open) {
            pthread_cond_wait(&dns.opened, &dns.lock);
        }
        dns.hanging--;
        code = EAI_AGAIN;
    }
    pthread_mutex_unlock(&dns.lock);
    if (strncmp(host, "gone", 4) == 0) {
        code = EAI_NONAME;
    }
    if (code == 0) {
        *ret_addresses = strdup("[::ffff:127.0.0.9],127.0.0.1");
    }
    return code;
}

static void dns_set(bool open, int code)
{
    pthread_mutex_lock(&dns.lock);
    dns.open = open;
    dns.code = code;
    pthread_cond_broadcast(&dns.opened);
    pthread_mutex_unlock(&dns.lock);
}

static unsigned dns_asked(void)
{
    pthread_mutex_lock(&dns.lock);
    unsigned n = dns.asked;
    pthread_mutex_unlock(&dns.lock);
    return n;
}

static unsigned dns_hanging(void)
{
    pthread_mutex_lock(&dns.lock);
    unsigned n = dns.hanging;
    pthread_mutex_unlock(&dns.lock);
    return n;
}

static unsigned count_entries(const char *directory)
{
    unsigned n = 0;
    DIR *d = opendir(directory);
    assert_non_null(d);
    while (readdir(d) != NULL) {
        n++;
    }
    closedir(d);
    return n;
}

static unsigned count_threads(void)
{
    return count_entries("/proc/self/task");
}

static unsigned threads_at_start;

/* The threads of a client that was freed end by themselves. */
static void wait_for_threads(void)
{
    while (count_threads() > threads_at_start) {
        usleep(1000);
    }
}

/* ---- through the client ---------------------------------------------------------------------- */

/* A client that asks the name server, and a server. */
static struct fixture named_new(void)
{
    dns_set(false, 0);
    dns.asked = 0;
    struct fixture f =
        fixture_new_options(&(struct http_client_options){.shards = 4, .lookup = ask});
    f.server = server_new(server_hello, NULL);
    return f;
}

static const char *name_url(const struct server *s, const char *name, char *out)
{
    (void)snprintf(out, URL_SIZE, "http://%s:%u/x", name, s->port);
    return out;
}

static void get_name(struct fixture *f, const char *name)
{
    fixture_do(f, &f->call, &(struct http_request){.url = name_url(f->server, name, f->url)});
}

TEST(test_one_lookup_for_all)
{
    enum { N = 100 };
    struct call calls[N] = {{0}};
    SCOPED(fixture) f = named_new();
    for (size_t i = 0; i < N; i++) {
        fixture_start(&f, &calls[i],
                      &(struct http_request){.url = name_url(f.server, "a.test", f.url)});
    }
    fixture_wait(&f);
    for (size_t i = 0; i < N; i++) {
        check_result(&calls[i], HTTP_DONE, "");
        call_clear(&calls[i]);
    }
    CHECK_INT(dns_asked(), 1, "");
    CHECK_INT(fixture_metric(&f, LOOKUPS("ok")), 1, "");
    CHECK_INT(fixture_metric(&f, WAITING), 0, "");
    CHECK_INT(fixture_metric(&f, "profpull_dns_hosts{client=\"test\"}"), 1, "");
}

TEST(test_addresses_are_not_looked_up)
{
    SCOPED(fixture) f = named_new();
    get_name(&f, "127.0.0.1");
    check_result(&f.call, HTTP_DONE, "");
    get_name(&f, "0x7f000001");
    check_result(&f.call, HTTP_DONE, "libcurl's forms of it");
    fixture_do(&f, &f.call, &(struct http_request){.url = "http://[::1]:1/"});
    check_result(&f.call, HTTP_ERR_CONNECT, "");
    CHECK_INT(dns_asked(), 0, "");
    get_name(&f, "A.test.");
    check_result(&f.call, HTTP_DONE, "with a dot at the end");
    CHECK_STR(dns.last, "a.test.", "");
}

TEST(test_names_that_fail)
{
    SCOPED(fixture) f = named_new();
    get_name(&f, "gone.test");
    check_result(&f.call, HTTP_ERR_RESOLVE, "");
    CHECK_CONTAINS(f.call.error, "Could not resolve host: gone.test (Name or service not known)",
                   "");
    get_name(&f, "gone.test");
    check_result(&f.call, HTTP_ERR_RESOLVE, "remembered");
    CHECK_INT(dns_asked(), 1, "");
    dns_set(true, 0);
    get_name(&f, "dead.test");
    check_result(&f.call, HTTP_ERR_RESOLVE, "");
    CHECK_INT(fixture_metric(&f, LOOKUPS("not_found")), 1, "");
    CHECK_INT(fixture_metric(&f, LOOKUPS("failed")), 1, "");
}

/* More than a thousand hosts whose name server does not answer: each request ends at its deadline,
 * a few threads and no descriptors are held, and requests to addresses go on. */
TEST(test_dead_name_server)
{
    enum { N = 1200 };
    SCOPED_MEMORY struct call *calls = testing_memory(N * sizeof(*calls));
    wait_for_threads();
    unsigned threads = count_threads();
    struct fixture f = named_new();
    unsigned descriptors = count_entries("/proc/self/fd");
    for (size_t i = 0; i < N; i++) {
        char url[URL_SIZE];
        (void)snprintf(url, sizeof(url), "http://dead-%zu.test:1/", i);
        fixture_start(&f, &calls[i],
                      &(struct http_request){
                          .url = url, .timeout_ms = i % 2 ? 200 : 0, .connect_timeout_ms = 200});
    }
    while (dns_hanging() < LOOKUP_THREADS) {
        usleep(1000);
    }
    loop_run_once(f.loop);
    CHECK_INT(count_threads() - threads, LOOKUP_THREADS + 1, "with that of the server");
    CHECK_INT(count_entries("/proc/self/fd") - descriptors, 0, "");
    fixture_wait(&f);
    for (size_t i = 0; i < N; i++) {
        check_result(&calls[i], i % 2 ? HTTP_ERR_TIMEOUT : HTTP_ERR_CONNECT, "");
        CHECK_CONTAINS(calls[i].error, "no address of dead-", "");
        CHECK_CONTAINS(calls[i].error, ".test within 200ms", "");
        call_clear(&calls[i]);
    }
    fixture_get(&f, &f.call, f.server, NULL);
    check_result(&f.call, HTTP_DONE, "an address");
    CHECK_INT(fixture_metric(&f, WAITING), N, "");
    CHECK_INT(fixture_metric(&f, "profpull_http_in_flight{client=\"test\"}"), 0, "");
    /* Does not wait for the lookups. */
    fixture_done(&f);
    CHECK_INT(dns_hanging(), LOOKUP_THREADS, "");
    dns_set(true, 0);
    wait_for_threads();
}

TEST(test_cancel_while_waiting)
{
    SCOPED(call) call = {0};
    struct fixture f = named_new();
    fixture_start(&f, &call, &(struct http_request){.url = "http://dead.test/"});
    http_cancel(call.transfer);
    CHECK_INT(fixture_metric(&f, "profpull_http_in_flight{client=\"test\"}"), 0, "");
    fixture_start(&f, &call, &(struct http_request){.url = "http://dead.test/"});
    fixture_done(&f);
    check_result(&call, HTTP_ERR_ABORTED, "the client is freed");
    dns_set(true, 0);
    wait_for_threads();
}

/* The name of the proxy is looked up, and not that of the host that it is asked for. */
TEST(test_proxies)
{
    char proxy[URL_SIZE];
    SCOPED(fixture) f = named_new();
    struct http_settings settings = {.proxy_url = proxy, .no_proxy = "direct.test, 10.0.0.0/8"};
    (void)snprintf(proxy, sizeof(proxy), "http://u:p@Proxy.test:%u", f.server->port);
    fixture_do(&f, &f.call,
               &(struct http_request){.url = "http://far.test/", .settings = &settings});
    check_result(&f.call, HTTP_DONE, "");
    CHECK_STR(dns.last, "proxy.test", "");
    CHECK_INT(dns_asked(), 1, "");
    fixture_do(&f, &f.call,
               &(struct http_request){.url = name_url(f.server, "x.direct.test", f.url),
                                      .settings = &settings});
    check_result(&f.call, HTTP_DONE, "");
    CHECK_STR(dns.last, "x.direct.test", "");
    CHECK_INT(dns_asked(), 2, "");
}

TEST(test_exceptions_of_proxies)
{
    static const struct {
        const char *list, *host;
        bool excepted;
    } rows[] = {
        {"", "a.test", false},
        {"*", "a.test", true},
        {"*", "192.0.2.1", true},
        {"a.test", "a.test", true},
        {"b.test,A.TEST", "a.test", true},
        {"b.test a.test", "x.a.test", true},
        {"a.test", "ba.test", false},
        {".a.test", "x.a.test", true},
        {".a.test", "a.test", true},
        {"a.test.", "a.test", true},
        {"a.test", "a.test.", true},
        {"x.a.test", "a.test", false},
        {"*.test", "a.test", false},
        {"192.0.2.1", "192.0.2.1", true},
        {"192.0.2.1", "192.0.2.10", false},
        {"192.0.2.0/24", "192.0.2.10", true},
        {"192.0.2.0/25", "192.0.2.200", false},
        {"0.0.0.0/0", "192.0.2.200", true},
        {"192.0.2.0/33", "192.0.2.10", false},
        {"2001:db8::/32", "2001:db8::1", true},
        {"2001:db8::/32", "2001:db9::1", false},
        {"::1", "::1", true},
        {"192.0.2.1", "::1", false},
        {", ,a.test", "a.test", true},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_INT(proxy_is_excepted(rows[i].list, sv_from(rows[i].host)), rows[i].excepted,
                  rows[i].list);
    }
}

/* ---- what is remembered ---------------------------------------------------------------------- */

struct rig {
    struct loop *loop;
    struct resolver *resolver;
    unsigned resumed;
    char addresses[128]; /* of the last one; "" if there were none */
};

static void rig_on_resume(void *transfer, const char *addresses, const char *reason)
{
    struct rig *r = transfer;
    assert_true(addresses != NULL || reason[0] != '\0');
    r->resumed++;
    (void)snprintf(r->addresses, sizeof(r->addresses), "%s", addresses != NULL ? addresses : "");
    loop_stop(r->loop);
}

static void rig_init(struct rig *r)
{
    struct err err = ERR_INIT;
    dns_set(true, 0);
    dns.asked = 0;
    r->loop = loop_new(&err);
    r->resolver = resolver_new(&(struct resolver_options){
        .loop = r->loop, .client = "test", .lookup = ask, .resume = rig_on_resume});
    assert_non_null(r->resolver);
}

static void rig_done(struct rig *r)
{
    resolver_free(r->resolver);
    loop_free(r->loop);
}
SCOPED_VALUE(rig, rig_done)

SETUP_OF(rig)

/* Asks so many milliseconds from now; waits for the lookup if it has to. */
static enum resolver_answer ask_in(struct rig *r, const char *host, int64_t ms)
{
    struct resolver_use use = {.transfer = r};
    const char *addresses = NULL;
    struct err err = ERR_INIT;
    enum resolver_answer answer =
        resolver_get(r->resolver, host, clock_mono_ms() + ms, &use, &addresses, &err);
    if (answer == RESOLVER_WAIT) {
        loop_run(r->loop);
        assert_null(use.name);
    }
    return answer;
}

/* Until a lookup that nobody waits for has been asked and answered. */
static void settle(struct rig *r, unsigned asked)
{
    while (dns_asked() < asked) {
        usleep(1000);
    }
    while (ask_in(r, "after", 0) == RESOLVER_WAIT) {
        ;
    }
    loop_run_once(r->loop);
}

TEST_ON(struct rig *r, test_addresses_are_kept_while_they_are_renewed)
{
    CHECK_INT(ask_in(r, "a", 0), RESOLVER_WAIT, "");
    CHECK_STR(r->addresses, "[::ffff:127.0.0.9],127.0.0.1", "");
    CHECK_INT(ask_in(r, "a", RESOLVER_FRESH_MS - 5000), RESOLVER_FOUND, "");
    CHECK_INT(dns_asked(), 1, "");
    CHECK_INT(ask_in(r, "a", RESOLVER_FRESH_MS), RESOLVER_FOUND, "at once");
    settle(r, 2);
    CHECK_INT(dns_asked(), 3, "looked up again, and what settle() asks");
}

TEST_ON(struct rig *r, test_a_failure_keeps_old_addresses)
{
    CHECK_INT(ask_in(r, "a", 0), RESOLVER_WAIT, "");
    dns_set(true, EAI_AGAIN);
    /* Nobody could connect, so this one waits; there is nothing better. */
    resolver_suspect(r->resolver, "a");
    CHECK_INT(ask_in(r, "a", 0), RESOLVER_FOUND, "looked up just now");
    CHECK_INT(ask_in(r, "a", RESOLVER_SURE_MS), RESOLVER_WAIT, "");
    CHECK_STR(r->addresses, "[::ffff:127.0.0.9],127.0.0.1", "");
    CHECK_INT(ask_in(r, "a", 0), RESOLVER_FOUND, "");
    /* A name that is gone has none. */
    dns_set(true, EAI_NONAME);
    resolver_suspect(r->resolver, "a");
    CHECK_INT(ask_in(r, "a", RESOLVER_FAILED_MS), RESOLVER_WAIT, "");
    CHECK_STR(r->addresses, "", "");
    CHECK_INT(ask_in(r, "a", 0), RESOLVER_FAILED, "");
    dns_set(true, 0);
    CHECK_INT(ask_in(r, "a", RESOLVER_FAILED_MS), RESOLVER_WAIT, "");
    CHECK_STR(r->addresses, "[::ffff:127.0.0.9],127.0.0.1", "");
}

/* Names whose last lookup failed never hold all threads. */
TEST(test_dead_names_leave_threads_to_others)
{
    enum { N = 3 * LOOKUP_THREADS };
    struct rig r = {0};
    struct resolver_use uses[N] = {{.transfer = NULL}};
    const char *addresses;
    struct err err = ERR_INIT;
    rig_init(&r);
    for (size_t i = 0; i < N; i++) {
        char host[32];
        (void)snprintf(host, sizeof(host), "dead-%zu", i);
        CHECK_INT(ask_in(&r, host, 0), RESOLVER_WAIT, host);
    }
    dns_set(false, 0);
    for (size_t i = 0; i < N; i++) {
        char host[32];
        (void)snprintf(host, sizeof(host), "dead-%zu", i);
        uses[i].transfer = &r;
        CHECK_INT(resolver_get(r.resolver, host, clock_mono_ms() + RESOLVER_FAILED_MS, &uses[i],
                               &addresses, &err),
                  RESOLVER_WAIT, host);
    }
    CHECK_INT(ask_in(&r, "alive", 0), RESOLVER_WAIT, "answered while the others hang");
    CHECK_STR(r.addresses, "[::ffff:127.0.0.9],127.0.0.1", "");
    CHECK_INT(dns_hanging() <= LOOKUP_THREADS / 2, true, "");
    for (size_t i = 0; i < N; i++) {
        resolver_cancel(&uses[i]);
    }
    rig_done(&r);
    dns_set(true, 0);
    wait_for_threads();
}

TEST_ON(struct rig *r, test_unused_names_are_forgotten)
{
    CHECK_INT(ask_in(r, "a", 0), RESOLVER_WAIT, "");
    CHECK_INT(ask_in(r, "b", RESOLVER_UNUSED_MS), RESOLVER_WAIT, "");
    CHECK_INT(ask_in(r, "a", 0), RESOLVER_WAIT, "looked up again");
    CHECK_INT(dns_asked(), 3, "");
}

TEST(test_getaddrinfo)
{
    char *addresses = NULL;
    struct addrinfo *found = NULL;
    /* A machine without /etc/hosts may not know it. */
    if (getaddrinfo("localhost", NULL, NULL, &found) == 0) {
        freeaddrinfo(found);
        CHECK_INT(lookup_getaddrinfo("localhost", &addresses), 0, "");
        assert_non_null(addresses);
        assert_true(strstr(addresses, "127.0.0.1") != NULL || strstr(addresses, "[::1]") != NULL);
        free(addresses);
        addresses = NULL;
    }
    CHECK_INT(lookup_getaddrinfo("127.0.0.7", &addresses), 0, "");
    assert_non_null(strstr(addresses, "127.0.0.7"));
    free(addresses);
    addresses = NULL;
    /* With two dots in a row, no name server is asked. */
    assert_true(lookup_getaddrinfo("no..host", &addresses) != 0);
    assert_null(addresses);
}

static void *do_nothing(void *arg)
{
    return arg;
}

int main(void)
{
    hang_watch();
    /* ThreadSanitizer adds a thread of its own to the first one. */
    pthread_t first;
    if (pthread_create(&first, NULL, do_nothing, NULL) != 0 || pthread_join(first, NULL) != 0) {
        return 1;
    }
    threads_at_start = count_threads();
    return testing_run("tests", NULL, NULL);
}
