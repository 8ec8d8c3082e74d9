/* Another configuration while the writer works: what has not changed is not touched, what has takes
 * effect at the next attempt, and no profile is lost on the way. */
#include "tests/unit/lib/http_server.h"

#include <dirent.h>
#include <time.h>

#include "config/change.h"
#include "tests/unit/lib/valid_config.h"
#include "write/protocols/table.h"
#include "write/write.h"

/* Only a test that hangs gets there. */
#define PATIENCE_MS INT64_C(60000)
#define TEXT_MAX 4096

/* ---- servers --------------------------------------------------------------------------------- */

/* How a server answers: it takes, refuses for now, or holds each request until that changes. */
struct manner {
    atomic_int status; /* 0: hold */
};

static void answer(struct server_conn *c)
{
    while (server_read_request(c)) {
        const struct manner *m = server_arg(c);
        char text[32];
        char *body = NULL;
        bool ok = server_header(c->head, "Content-Length", text, sizeof(text));
        size_t n = ok ? strtoul(text, NULL, 10) : 0;
        body = malloc(n + 1);
        ok = ok && body != NULL && server_read_body(c, body, n);
        free(body);
        int status = 0;
        while (ok && (status = atomic_load(&m->status)) == 0 && !c->server->stopping) {
            (void)usleep(1000);
        }
        if (!ok ||
            !server_send(c, status == 200 ? "HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\n"
                                            "Content-Length: 0\r\n\r\n"
                                          : "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")) {
            return;
        }
    }
}

/* ---- the writer ------------------------------------------------------------------------------ */

struct rig {
    struct manner manners[2];
    struct server *servers[2];
    char *dir;
    struct testing_log *log;
    struct intern *in;
    struct metrics *metrics;
    struct loop *loop;
    struct loop_thread *thread;
    struct config *first; /* outlives the writer */
    struct config *now;
    struct writer *writer;
};

static struct config *parse(const char *text)
{
    const struct config_options options = {.protocols = write_protocols()};
    return valid_config("f", text, &options);
}

/* The list under `write`; $A and $B are the addresses of the servers, $D is the directory. */
static struct config *config_of(const struct rig *r, const char *write)
{
    char text[TEXT_MAX];
    size_t n = 0;
    char part[2][64];
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(part[i], sizeof(part[i]), "http://127.0.0.1:%u", r->servers[i]->port);
    }
    n += (size_t)snprintf(text, sizeof(text), "scrape_configs: [{job_name: x}]\nwrite:\n");
    for (const char *p = write; *p != '\0'; p++) {
        const char *more = p[0] != '$' ? NULL : p[1] == 'D' ? r->dir : part[p[1] - 'A'];
        if (more == NULL) {
            text[n++] = *p;
        } else {
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", more);
            p++;
        }
        assert_true(n < sizeof(text) - 128);
    }
    text[n] = '\0';
    return parse(text);
}

static int setup(void **state)
{
    struct err err = ERR_INIT;
    struct rig *r = testing_memory(sizeof(*r));
    for (size_t i = 0; i < 2; i++) {
        atomic_init(&r->manners[i].status, 200);
        r->servers[i] = server_new(answer, &r->manners[i]);
    }
    r->dir = testing_mkdtemp();
    r->log = testing_log_new();
    r->in = intern_new();
    r->metrics = metrics_new();
    r->loop = loop_new(&err);
    assert_non_null(r->loop);
    signal(SIGPIPE, SIG_IGN);
    *state = r;
    return 0;
}

static void start(struct rig *r, const char *write)
{
    struct err err = ERR_INIT;
    r->first = config_of(r, write);
    r->now = config_ref(r->first);
    const struct writer_options options = {.config = r->first,
                                           .loop = r->loop,
                                           .intern = r->in,
                                           .log = testing_log(r->log),
                                           .metrics = r->metrics};
    r->writer = writer_new(&options, &err);
    CHECK_STR(err.msg, "", "writer_new");
    r->thread = loop_thread_start(r->loop, "writer", &err);
    assert_non_null(r->thread);
}

static int teardown(void **state)
{
    struct rig *r = *state;
    loop_thread_join(r->thread);
    writer_free(r->writer);
    config_unref(r->now);
    config_unref(r->first);
    loop_free(r->loop);
    for (size_t i = 0; i < 2; i++) {
        server_free(r->servers[i]);
    }
    metrics_free(r->metrics);
    size_t count = 1;
    size_t bytes;
    intern_stats(r->in, &count, &bytes);
    intern_free(r->in);
    testing_log_done(r->log);
    testing_directory_leave(&r->dir);
    free(r);
    return count != 0; /* a profile was not released */
}

/* False with the error if it cannot be: then nothing has changed. */
static bool change_until(struct rig *r, const char *write, int64_t deadline_ms, struct err *err)
{
    struct config *next = config_of(r, write);
    bool ok = config_assign_slots(next, r->now, writer_slots(r->writer), err);
    struct writer_change *c = ok ? writer_prepare(r->writer, next, err) : NULL;
    if (c == NULL) {
        config_unref(next);
        return false;
    }
    writer_commit(c);
    writer_retire(c, deadline_ms);
    config_unref(r->now);
    r->now = next;
    return true;
}

static void change(struct rig *r, const char *write)
{
    struct err err = ERR_INIT;
    bool ok = change_until(r, write, clock_mono_ms() + PATIENCE_MS, &err);
    CHECK_STR(err.msg, "", write);
    assert_true(ok);
}

static uint64_t bit_of(const struct rig *r, const char *name)
{
    for (size_t i = 0; i < r->now->n_endpoints; i++) {
        if (strcmp(r->now->endpoints[i].name, name) == 0) {
            return UINT64_C(1) << r->now->endpoints[i].slot;
        }
    }
    fail_msg("no endpoint %s", name);
    return 0;
}

static void put(struct rig *r, int n, uint64_t endpoints)
{
    for (int i = 0; i < n; i++) {
        struct labels *l =
            testing_labels(r->in, "service_name", "cart", "__name__", "memory", NULL);
        char *data = strdup("\x1f\x8b profile");
        assert_non_null(data);
        struct profile *p = profile_new(l, data, strlen(data));
        assert_non_null(p);
        p->scraped_ms = clock_mono_ms();
        (void)writer_put(r->writer, p, endpoints);
    }
}

static struct write_ledger ledger_at(struct rig *r, size_t slot)
{
    struct write_ledger l = writer_ledger(r->writer, slot);
    uint64_t dropped = 0;
    for (size_t i = 0; i < WRITE_DROPS; i++) {
        dropped += l.dropped[i];
    }
    CHECK_INT(l.accepted + l.replayed, l.sent + dropped + l.merged + l.queued + l.in_flight,
              "the ledger balances");
    return l;
}

static struct write_ledger ledger(struct rig *r, const char *name)
{
    return ledger_at(r, (size_t)__builtin_ctzll(bit_of(r, name)));
}

static void nap(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 2 * NS_PER_MS}, NULL);
}

#define WAIT_FOR(condition)                                                                        \
    do {                                                                                           \
        int64_t until_ = clock_mono_ms() + PATIENCE_MS;                                            \
        while (!(condition) && clock_mono_ms() < until_) {                                         \
            nap();                                                                                 \
        }                                                                                          \
        if (!(condition)) {                                                                        \
            fail_msg("never: %s", #condition);                                                     \
        }                                                                                          \
    } while (0)

static unsigned requests(struct rig *r, size_t server)
{
    return atomic_load(&r->servers[server]->requests);
}

/* ---- unchanged ------------------------------------------------------------------------------- */

#define ONE "- {name: one, url: $A, concurrency: 1}\n"
#define TWO "- {name: two, url: $B}\n"

TEST_ON(struct rig *r, test_unchanged_is_not_touched)
{
    atomic_store(&r->manners[0].status, 0);
    start(r, ONE TWO);
    put(r, 3, bit_of(r, "one"));
    WAIT_FOR(requests(r, 0) == 1);
    for (int i = 0; i < 5; i++) {
        change(r, ONE TWO);
        change(r, TWO ONE "- {name: three, url: $B}\n");
    }
    CHECK_INT(ledger(r, "one").in_flight, 1, "");
    CHECK_INT(ledger(r, "one").queued, 2, "");
    atomic_store(&r->manners[0].status, 200);
    WAIT_FOR(ledger(r, "one").sent == 3);
    CHECK_INT(atomic_load(&r->servers[0]->accepted), 1, "the connection was kept");
    CHECK_INT(requests(r, 0), 3, "");
}

/* ---- changed --------------------------------------------------------------------------------- */

#define RESTS "retry: {min_backoff: 1h, max_backoff: 1h, max_age: 24h}, concurrency: 1"

/* Fills an endpoint that rests for an hour, by the former configuration. */
static void fill_resting(struct rig *r, int n)
{
    testing_log_expect(r->log, "fail");
    atomic_store(&r->manners[0].status, 503);
    put(r, n, bit_of(r, "one"));
    WAIT_FOR(requests(r, 0) >= 1 && ledger(r, "one").in_flight == 0);
    CHECK_INT(ledger(r, "one").queued, n, "");
}

TEST_ON(struct rig *r, test_changed_url_is_used_at_once)
{
    start(r, "- {name: one, url: $A, " RESTS "}\n");
    fill_resting(r, 3);
    change(r, "- {name: one, url: $B, tenant_id: blue, protocol: ingest, " RESTS "}\n");
    WAIT_FOR(ledger(r, "one").sent == 3);
    CHECK_INT(requests(r, 1), 3, "");
    char tenant[64];
    CHECK_STR(server_saw(r->servers[1], "X-Scope-OrgID", tenant, sizeof(tenant)), "blue", "");
    assert_true(server_saw_text(r->servers[1], "POST /ingest"));
    CHECK_INT(ledger(r, "one").accepted, 3, "");
}

/* The server of the former configuration refuses after the change: that begins no rest. */
TEST_ON(struct rig *r, test_former_failure_does_not_delay_the_new)
{
    atomic_store(&r->manners[0].status, 0);
    start(r, "- {name: one, url: $A, " RESTS "}\n");
    put(r, 3, bit_of(r, "one"));
    WAIT_FOR(requests(r, 0) == 1);
    change(r, "- {name: one, url: $B, " RESTS "}\n");
    atomic_store(&r->manners[0].status, 503);
    WAIT_FOR(ledger(r, "one").sent == 3);
    CHECK_INT(requests(r, 0), 1, "the former server was not asked again");
}

TEST_ON(struct rig *r, test_attempt_in_flight_ends_by_the_former)
{
    atomic_store(&r->manners[0].status, 0);
    start(r, "- {name: one, url: $A, " RESTS "}\n");
    put(r, 2, bit_of(r, "one"));
    WAIT_FOR(requests(r, 0) == 1);
    change(r, "- {name: one, url: $B, headers: {X-New: \"1\"}, " RESTS "}\n");
    CHECK_INT(ledger(r, "one").in_flight, 1, "");
    atomic_store(&r->manners[0].status, 200);
    WAIT_FOR(ledger(r, "one").sent == 2);
    CHECK_INT(requests(r, 0), 1, "");
    CHECK_INT(requests(r, 1), 1, "");
}

static int files_under(const char *path)
{
    char child[1024];
    DIR *d = opendir(path);
    int n = 0;
    for (struct dirent *e = d == NULL ? NULL : readdir(d); e != NULL; e = readdir(d)) {
        if (e->d_name[0] != '.') {
            (void)snprintf(child, sizeof(child), "%s/%s", path, e->d_name);
            n += e->d_type == DT_DIR ? files_under(child) : 1;
        }
    }
    if (d != NULL) {
        closedir(d);
    }
    return n;
}

/* The directory keeps its place; only what it keeps changes. */
TEST_ON(struct rig *r, test_changed_directory)
{
    start(r, "- {name: one, url: \"file://$D/out\"}\n");
    put(r, 2, 1);
    WAIT_FOR(ledger(r, "one").sent == 2);
    change(r, "- {name: one, url: \"file://$D/out\", retention: {max_bytes: 1MiB}}\n");
    put(r, 2, 1);
    WAIT_FOR(ledger(r, "one").sent == 4);
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s/out/cart", r->dir);
    CHECK_INT(files_under(path), 4, "");
}

/* ---- added and removed ----------------------------------------------------------------------- */

TEST_ON(struct rig *r, test_added)
{
    start(r, ONE);
    change(r, ONE TWO);
    put(r, 2, bit_of(r, "two") | bit_of(r, "one"));
    WAIT_FOR(ledger(r, "two").sent == 2 && ledger(r, "one").sent == 2);
}

TEST_ON(struct rig *r, test_removed_sends_what_it_has)
{
    atomic_store(&r->manners[0].status, 0);
    start(r, ONE TWO);
    put(r, 3, 1);
    WAIT_FOR(requests(r, 0) == 1);
    change(r, TWO);
    put(r, 1, 1);
    struct write_ledger l = ledger_at(r, 0);
    CHECK_INT(l.queued + l.in_flight, 3, "");
    CHECK_INT(l.dropped[DROP_REMOVED], 1, "nobody should have put it");
    CHECK_INT(writer_slots(r->writer), 3, "");
    atomic_store(&r->manners[0].status, 200);
    WAIT_FOR(writer_slots(r->writer) == 2);
    CHECK_INT(requests(r, 0), 3, "");
    CHECK_CONTAINS(testing_log_text(r->log), "endpoint=one accepted=4 sent=3 dropped_removed=1",
                   "");
    SCOPED(buf) out = testing_buf(1 << 20);
    metrics_render(r->metrics, &out);
    assert_null(strstr(out.data, "profpull_write_sent_profiles_total{endpoint=\"one\"}"));
    /* Nobody has that slot now. */
    struct labels *labels = testing_labels(r->in, "__name__", "memory", NULL);
    assert_false(writer_put(r->writer, profile_new(labels, strdup("x"), 1), 1));
}

/* Profiles that cannot be sent until the deadline are dropped; an endpoint that has the name
 * meanwhile, with another protocol, counts them. */
TEST_ON(struct rig *r, test_removed_until_the_deadline)
{
    struct err err = ERR_INIT;
    start(r, "- {name: one, url: $A, " RESTS "}\n");
    fill_resting(r, 3);
    assert_true(change_until(r, "- {name: one, url: \"file://$D/out\"}\n", clock_mono_ms(), &err));
    WAIT_FOR(writer_slots(r->writer) == 2);
    struct write_ledger l = ledger(r, "one");
    CHECK_INT(l.accepted, 3, "");
    CHECK_INT(l.dropped[DROP_REMOVED], 3, "");
    put(r, 1, 2);
    WAIT_FOR(ledger(r, "one").sent == 1);
    CHECK_INT(
        testing_metric(r->metrics, "profpull_write_accepted_profiles_total{endpoint=\"one\"}"), 4,
        "");
}

TEST_ON(struct rig *r, test_an_error_changes_nothing)
{
    struct err err = ERR_INIT;
    start(r, ONE);
    testing_write_file(r->dir, "no", "a file");
    assert_false(change_until(r,
                              "- {name: new, url: $B}\n"
                              "- {name: bad, url: \"file://$D/no/where\"}\n",
                              0, &err));
    CHECK_CONTAINS(err.msg, "endpoint \"bad\": ", "");
    CHECK_INT(writer_slots(r->writer), 1, "");
    put(r, 2, 1);
    WAIT_FOR(ledger(r, "one").sent == 2);
}

/* ---- with a spool ---------------------------------------------------------------------------- */

#define SPOOLED(more)                                                                              \
    "- {name: one, url: $A, retry: {min_backoff: 1h, max_backoff: 1h, max_age: 24h}, "             \
    "concurrency: 1, queue: {spool_directory: \"$D/spool\"" more "}}\n"

TEST_ON(struct rig *r, test_spool_of_a_removed_endpoint_is_kept)
{
    struct err err = ERR_INIT;
    start(r, SPOOLED("") TWO);
    fill_resting(r, 3);
    assert_true(change_until(r, TWO, clock_mono_ms(), &err));
    WAIT_FOR(writer_slots(r->writer) == 2);
    CHECK_CONTAINS(testing_log_text(r->log), "left_on_disk=3", "");
    atomic_store(&r->manners[0].status, 200);
    change(r, SPOOLED("") TWO);
    WAIT_FOR(ledger(r, "one").sent == 3);
    CHECK_INT(ledger(r, "one").replayed, 3, "");
}

/* The endpoint comes back while it is being removed: it gets its spool at once. */
TEST_ON(struct rig *r, test_spool_of_an_endpoint_that_comes_back)
{
    start(r, SPOOLED("") TWO);
    fill_resting(r, 3);
    change(r, TWO);
    atomic_store(&r->manners[0].status, 200);
    change(r, SPOOLED("") TWO);
    WAIT_FOR(ledger(r, "one").queued == 0 && ledger(r, "one").sent == 3);
}

TEST_ON(struct rig *r, test_spool_limits_change)
{
    static const char limit[] = "profpull_write_spool_limit_bytes{endpoint=\"one\"}";
    start(r, SPOOLED(", spool_max_bytes: 8MiB"));
    CHECK_INT(testing_metric(r->metrics, limit), 8 << 20, "");
    change(r, SPOOLED(", spool_max_bytes: 16MiB, fsync: never"));
    WAIT_FOR(testing_metric(r->metrics, limit) == 16 << 20);
}

TEST_ON(struct rig *r, test_spool_stays_with_its_endpoint)
{
    struct err err = ERR_INIT;
    start(r, SPOOLED(""));
    assert_false(change_until(
        r, "- {name: one, url: \"file://$D/out\", queue: {spool_directory: \"$D/spool\"}}\n", 0,
        &err));
    CHECK_CONTAINS(
        err.msg, "endpoint \"one\": its spool, or its store, belongs to an endpoint of the former",
        "");
    put(r, 1, 1);
    WAIT_FOR(ledger(r, "one").sent == 1);
}

/* ---- many ------------------------------------------------------------------------------------ */

#define CHANGES 300

struct putter {
    struct rig *rig;
    atomic_bool stop;
    uint64_t puts;
};

static void *put_until_stopped(void *arg)
{
    struct putter *p = arg;
    while (!atomic_load(&p->stop)) {
        put(p->rig, 1, 1);
        p->puts++;
        nap();
    }
    return NULL;
}

/* Good and bad configurations by turns, while profiles come: none is lost, and the books of each
 * endpoint balance all the time. */
TEST_ON(struct rig *r, test_many_changes)
{
    static const char *const texts[] = {
        "- {name: one, url: $A}\n",
        "- {name: bad, url: \"file://$D/no/where\"}\n- {name: one, url: $B}\n",
        "- {name: one, url: $B, tenant_id: blue}\n- {name: two, url: $A}\n",
        "- {name: three, url: \"file://$D/out\"}\n- {name: one, url: $B, concurrency: 2}\n",
    };
    struct putter p = {.rig = r};
    pthread_t thread;
    unsigned bad = 0;
    testing_write_file(r->dir, "no", "a file");
    start(r, texts[0]);
    assert_int_equal(pthread_create(&thread, NULL, put_until_stopped, &p), 0);
    for (unsigned i = 0; i < CHANGES; i++) {
        struct err err = ERR_INIT;
        /* Faster than a busy machine ends those that have left. */
        WAIT_FOR(__builtin_popcountll(writer_slots(r->writer)) < 32);
        bool ok = change_until(r, texts[i % 4], clock_mono_ms() + PATIENCE_MS, &err);
        CHECK_STR(ok || i % 4 == 1 ? "" : err.msg, "", texts[i % 4]);
        bad += !ok;
        (void)ledger(r, "one");
        (void)testing_metric(r->metrics, "profpull_write_up{endpoint=\"one\"}");
    }
    atomic_store(&p.stop, true);
    pthread_join(thread, NULL);
    CHECK_INT(bad, CHANGES / 4, "");
    WAIT_FOR(ledger(r, "one").sent == p.puts);
    CHECK_INT(ledger(r, "one").accepted, p.puts, "");
    CHECK_INT(requests(r, 0) + requests(r, 1), p.puts, "none was sent twice");
}
