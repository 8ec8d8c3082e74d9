/* Queries that ask other processes for what only their disks have. */
#include <netdb.h>

#include "tests/unit/store/peering_rig.h"

#define HOUR 3600
#define ALL (1000 * HOUR)
#define N 3

static const struct pprof_row rows[] = {{"a main", "", {1}}, {"b main", "thread=x", {2}}};

/* Three peers, the store that has all of their profiles, and a process that asks them. */
struct world {
    struct fake bucket;
    struct fake other_bucket;
    struct peer_rig peers[N];
    struct archive_rig all;
    struct archive_rig reader;
    struct asking asking;
    bool held; /* nothing is merged in the background */
};

/* Keeps the threads of the stores from merging at a time of their own, or lets them go on. */
static void hold(struct world *w, bool held)
{
    for (size_t i = 0; i <= N && held != w->held; i++) {
        struct store *s = i < N ? w->peers[i].archive.store.store : w->all.store.store;
        (void)(held ? pthread_mutex_lock(&s->maintain_lock)
                    : pthread_mutex_unlock(&s->maintain_lock));
    }
    w->held = held;
}

static void world_init(struct world *w)
{
    static const char *const names[N] = {"w1", "w2", "w3"};
    uint16_t ports[N];
    fake_init(&w->bucket);
    fake_init(&w->other_bucket);
    for (size_t i = 0; i < N; i++) {
        peer_rig_init(&w->peers[i], &w->bucket, names[i]);
        ports[i] = w->peers[i].server->port;
    }
    archive_rig_init(&w->all, &w->other_bucket, "all");
    archive_rig_reader(&w->reader, &w->bucket);
    archive_rig_round(&w->reader, &w->bucket);
    asking_init(&w->asking);
    asking_hosts(&w->asking, ports, N);
    w->held = false;
    hold(w, true);
}

static void world_done(struct world *w)
{
    hold(w, false);
    asking_done(&w->asking);
    for (size_t i = 0; i < N; i++) {
        peer_rig_done(&w->peers[i]);
    }
    archive_rig_done(&w->all);
    archive_rig_done(&w->reader);
    fake_done(&w->bucket);
    fake_done(&w->other_bucket);
}
SCOPED_VALUE(world, world_done)

static void put(struct world *w, size_t peer, const char *labels, int64_t at, size_t n_rows)
{
    rig_put(&w->peers[peer].archive.store, labels, at, "cpu/ns", rows, n_rows, NULL);
    rig_put(&w->all.store, labels, at, "cpu/ns", rows, n_rows, NULL);
}

/* Puts hours of several services, each of whose pods belongs to one peer. */
static void put_some(struct world *w, int hours)
{
    char labels[128];
    for (int i = 0; i < hours * 12; i++) {
        for (size_t p = 0; p < 6; p++) {
            int64_t at = RIG_T0 + i * 300 * RIG_SECOND + (int64_t)p * RIG_SECOND;
            (void)snprintf(labels, sizeof(labels), "__name__=cpu,pod=p%zu,service_name=%s", p,
                           p < 4 ? "a" : "b");
            put(w, p % N, labels, at, 1 + p % 2);
            put(w, p % N, labels, at + 15 * RIG_SECOND, 2);
        }
    }
}

static void put_hours(struct world *w)
{
    put_some(w, 2);
}

static void check(struct world *w, const char *row)
{
    static const struct {
        const char *selector;
        int64_t from, until;
    } cases[] = {{NULL, 0, ALL},
                 {"{service_name=\"a\"}", 0, ALL},
                 {"{service_name=~\"b|c\",pod!=\"p4\"}", 0, ALL},
                 {"{thread=\"x\"}", 0, ALL},
                 {"{service_name=\"nobody \\\"\\n\"}", 0, ALL},
                 {NULL, 600, 3 * 1200},
                 {"{pod=\"p1\"}", HOUR, HOUR + 299}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct partial partial = {.parts = 0};
        SCOPED_MEMORY char *want = asking_text(w->all.store.store, NULL, cases[i].selector,
                                               cases[i].from, cases[i].until, NULL);
        SCOPED_MEMORY char *got = asking_text(w->reader.store.store, &w->asking, cases[i].selector,
                                              cases[i].from, cases[i].until, &partial);
        CHECK_STR(partial.why, "", row);
        CHECK_LINES(got, want, row);
    }
}

static unsigned slices(const struct world *w)
{
    unsigned n = 0;
    for (size_t i = 0; i < N; i++) {
        n += atomic_load(&w->peers[i].slices);
    }
    return n;
}

static void maintain_all(struct world *w, int64_t seconds)
{
    hold(w, false);
    w->bucket.now_ns = w->other_bucket.now_ns = RIG_T0 + seconds * RIG_SECOND;
    for (size_t i = 0; i < N; i++) {
        store_maintain(w->peers[i].archive.store.store, w->bucket.now_ns);
    }
    store_maintain(w->all.store.store, w->bucket.now_ns);
}

SETUP_OF(world)

TEST_ON(struct world *w, peers_and_archive_answer_as_one_store_does)
{
    put_hours(w);
    check(w, "on disks");
    assert_true(slices(w) > 0);
    maintain_all(w, 10 * HOUR);
    check(w, "merged");
    /* One writer has archived, and the reader does not know it yet. */
    archive_rig_round(&w->peers[0].archive, &w->bucket);
    check(w, "archived and not listed");
    archive_rig_round(&w->reader, &w->bucket);
    unsigned before = atomic_load(&w->peers[0].slices);
    check(w, "archived, listed, and on the disk");
    assert_int_equal(atomic_load(&w->peers[0].slices), before);
    /* Another one has archived, and has lost its disk: the reader lists at once. */
    archive_rig_round(&w->peers[1].archive, &w->bucket);
    archive_rig_wipe(&w->peers[1].archive);
    archive_rig_round(&w->peers[1].archive, &w->bucket);
    check(w, "no longer on the disk, and not listed");
    archive_rig_round(&w->peers[2].archive, &w->bucket);
    archive_rig_round(&w->reader, &w->bucket);
    before = slices(w);
    check(w, "all archived");
    assert_int_equal(slices(w), before);
}

TEST_ON(struct world *w, profiles_that_arrive_late_are_read_beside_archived_ones)
{
    put_hours(w);
    maintain_all(w, 10 * HOUR);
    for (size_t i = 0; i < N; i++) {
        archive_rig_round(&w->peers[i].archive, &w->bucket);
    }
    archive_rig_round(&w->reader, &w->bucket);
    /* Into a further file of the stretch. */
    put(w, 0, "__name__=cpu,pod=late,service_name=a", RIG_T0 + 77 * RIG_SECOND, 2);
    check(w, "late");
}

TEST_ON(struct world *w, large_files_are_read_in_several_slices)
{
    char labels[128];
    for (int i = 0; i < 40; i++) {
        (void)snprintf(labels, sizeof(labels), "__name__=cpu,pod=p%03d,service_name=a", i);
        put(w, 0, labels, RIG_T0 + i * RIG_SECOND, 2);
        rig_put_large(&w->peers[0].archive.store, labels, RIG_T0 + 400 * RIG_SECOND, 30000);
        rig_put_large(&w->all.store, labels, RIG_T0 + 400 * RIG_SECOND, 30000);
    }
    w->asking.use.bytes_max = 1; /* the least that is asked for is 256 KiB */
    struct partial partial = {.parts = 0};
    SCOPED_MEMORY char *want = asking_text(w->all.store.store, NULL, NULL, 0, ALL, NULL);
    char *got = asking_text(w->reader.store.store, &w->asking, NULL, 0, ALL, &partial);
    CHECK_LINES(got, want, "slices");
    CHECK_STR(partial.why, "", "slices");
    free(got);
    /* Five scans of one file, one of which has 1.2 MB of bodies. */
    assert_true(atomic_load(&w->peers[0].slices) >= 9);
}

static void archive_and_wipe(void *arg)
{
    struct world *w = arg;
    archive_rig_round(&w->peers[0].archive, &w->bucket);
    archive_rig_wipe(&w->peers[0].archive);
    archive_rig_round(&w->peers[0].archive, &w->bucket);
}

TEST_ON(struct world *w, a_file_that_moves_to_the_bucket_between_list_and_slice_is_found_there)
{
    put_some(w, 1);
    maintain_all(w, 10 * HOUR);
    uint16_t port = w->peers[0].server->port;
    asking_hosts(&w->asking, &port, 1);
    struct partial partial = {.parts = 0};
    SCOPED_MEMORY char *want =
        asking_text(w->peers[0].archive.store.store, NULL, NULL, 0, ALL, NULL);
    w->peers[0].arg = w;
    w->peers[0].before_slice = archive_and_wipe;
    SCOPED_MEMORY char *got =
        asking_text(w->reader.store.store, &w->asking, NULL, 0, ALL, &partial);
    CHECK_STR(partial.why, "", "moved");
    CHECK_LINES(got, want, "moved");
}

static bool on_one(void *arg, const struct store_body *b)
{
    memcpy(arg, b->id, STORE_ID_LENGTH + 1);
    return true;
}

TEST_ON(struct world *w, profiles_of_peers_are_found_by_id)
{
    char id[STORE_ID_LENGTH + 1];
    char got[STORE_ID_LENGTH + 1] = "";
    struct err err = ERR_INIT;
    struct partial partial = {.parts = 0};
    bool found = false;
    put_hours(w);
    rig_put(&w->peers[2].archive.store, "__name__=cpu,service_name=z", RIG_T0 + 5 * RIG_SECOND,
            "cpu/ns", rows, 2, id);
    assert_true(store_get_partial(w->reader.store.store, sv_from(id), &w->asking.use, &partial,
                                  &found, on_one, got, &err));
    assert_true(found);
    CHECK_STR(got, id, "id");
    CHECK_STR(partial.why, "", "id");
    assert_true(store_get_partial(w->reader.store.store, SV("0199a3f1-8000-8abc-8000-000000000001"),
                                  &w->asking.use, &partial, &found, on_one, got, &err));
    assert_false(found);
}

/* ---- the newest profiles --------------------------------------------------------------------- */

#define TIMES_MAX 64

struct times {
    int64_t at[TIMES_MAX];
    size_t n;
};

static bool peering_on_time(void *arg, const struct store_body *b)
{
    struct times *t = arg;
    assert_true(t->n < TIMES_MAX);
    t->at[t->n++] = (b->from_ns - RIG_T0) / RIG_SECOND;
    return true;
}

static int newer_first(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;
    return (*x < *y) - (*x > *y);
}

/* Checks for each limit that a store and the peers list the newest of all these times. */
static void check_newest(struct store *s, const struct asking *a, struct times *all,
                         const char *row)
{
    qsort(all->at, all->n, sizeof(all->at[0]), newer_first);
    const size_t limits[] = {1, 2, 3, all->n / 2, all->n - 1, all->n, all->n + 1};
    for (size_t l = 0; l < sizeof(limits) / sizeof(limits[0]); l++) {
        size_t limit = limits[l];
        for (int with_data = 0; with_data < 2; with_data++) {
            struct err err = ERR_INIT;
            struct partial partial = {.parts = 0};
            struct times got = {.n = 0};
            const struct store_scan scan = {.range = {.from_ns = RIG_T0,
                                                      .until_ns = RIG_T0 + ALL * RIG_SECOND,
                                                      .partial = &partial,
                                                      .peers = a->use},
                                            .with_data = with_data > 0,
                                            .newest_first = true,
                                            .limit = limit};
            assert_true(store_each_body(s, &scan, peering_on_time, &got, &err));
            CHECK_STR(partial.why, "", row);
            CHECK_INT(got.n, limit < all->n ? limit : all->n, row);
            qsort(got.at, got.n, sizeof(got.at[0]), newer_first);
            for (size_t i = 0; i < got.n; i++) {
                CHECK_INT(got.at[i], all->at[i], row);
            }
        }
    }
}

/* Two peers and the own store have profiles of the same hours, in several orders, some of them of
 * the same time. Then a reader asks three peers, one of which has archived its profiles and lost
 * its disk. */
TEST(the_newest_of_peers_and_the_own_store_are_listed)
{
    static const struct {
        const char *row;
        int64_t at[N][8]; /* seconds, by store; 0 ends them */
    } cases[] = {
        {"in turns", {{10, 40, 70, 100}, {20, 50, 80, 110}, {30, 60, 90, 120}}},
        {"the own ones are the newest", {{500, 510, 520}, {10, 20, 30}, {40, 50, 60}}},
        {"the last peer has the newest", {{10, 20, 30}, {40, 50, 60}, {500, 510, 520}}},
        {"one has the newest and the oldest", {{1, 2, 900, 901}, {30, 40}, {50, 60}}},
        {"all of one time", {{77, 77, 77}, {77, 77, 77}, {77, 77, 77}}},
        {"many old ones of one time", {{10, 10, 10, 10, 10}, {10, 11}, {10, 10, 12}}},
        {"the same times everywhere", {{10, 20, 30, 30}, {10, 20, 30, 30}, {10, 20, 30, 30}}},
        {"several hours",
         {{10, HOUR + 10, 3 * HOUR}, {HOUR + 10, 2 * HOUR, 2 * HOUR + 5}, {HOUR + 11, 3 * HOUR}}},
        {"one has none", {{0}, {10, 20, 20}, {20, 20, 30}}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(world) w;
        SCOPED(store_rig) own;
        struct times all = {.n = 0};
        char labels[128];
        world_init(&w);
        store_rig_init(&own);
        uint16_t ports[N];
        for (size_t p = 0; p < N; p++) {
            ports[p] = w.peers[p].server->port;
            for (size_t k = 0; k < 8 && cases[i].at[p][k] != 0; k++) {
                int64_t at = RIG_T0 + cases[i].at[p][k] * RIG_SECOND;
                (void)snprintf(labels, sizeof(labels), "__name__=cpu,pod=%zu-%zu,service_name=s", p,
                               k);
                put(&w, p, labels, at, 2);
                if (p == 0) {
                    rig_put(&own, labels, at, "cpu/ns", rows, 2, NULL);
                }
                all.at[all.n++] = cases[i].at[p][k];
            }
        }
        asking_hosts(&w.asking, ports + 1, N - 1);
        check_newest(own.store, &w.asking, &all, cases[i].row);
        maintain_all(&w, 10 * HOUR);
        archive_rig_round(&w.peers[1].archive, &w.bucket);
        archive_rig_wipe(&w.peers[1].archive);
        archive_rig_round(&w.peers[1].archive, &w.bucket);
        archive_rig_round(&w.peers[0].archive, &w.bucket);
        asking_hosts(&w.asking, ports, N);
        check_newest(w.reader.store.store, &w.asking, &all, cases[i].row);
    }
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* Scans with one peer, and checks why the answer is partial. */
static void check_partial(struct world *w, const char *want, const char *row)
{
    uint16_t port = w->peers[0].server->port;
    struct partial partial = {.parts = 0};
    asking_hosts(&w->asking, &port, 1);
    free(asking_text(w->reader.store.store, &w->asking, NULL, 0, ALL, &partial));
    assert_true(partial.parts > 0);
    if (strstr(partial.why, want) == NULL) {
        CHECK_STR(partial.why, want, row);
    }
    assert_non_null(strstr(partial.why, "127.0.0.1"));
}

TEST_ON(struct world *w, wrong_answers_make_the_answer_partial_and_name_the_peer)
{
    static const struct text_case cases[] = {
        {"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
         "it answered HTTP 401: set the credentials of its section `query` under query.peers"},
        {"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nnone\n",
         "it answered HTTP 404: none: expected the port of its section `query`"},
        {"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n", "it is busy"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "expected an answer of version 1"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\nprofpull peer answer 2\n",
         "expected an answer of version 1"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 33\r\n\r\nprofpull peer answer 1\ninstance x\n",
         "it is cut off"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\nprofpull", ""},
        {"no HTTP at all\r\n\r\n", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        w->peers[0].answer = cases[i].text;
        check_partial(w, cases[i].want, cases[i].text);
    }
}

TEST(slices_that_are_no_databases_make_the_answer_partial)
{
    static const char *const bodies[] = {
        "slice 4\nnope", "slice 9\nnope", "more 0\nslice 4\nnope", "end\n", "gone\nend\n",
    };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        SCOPED(world) w;
        char list[512];
        char answer[1024];
        world_init(&w);
        /* The same answer to the list and to slices. */
        (void)snprintf(list, sizeof(list),
                       "profpull peer answer 1\ninstance x\nfile 20261122T000000Z-1h.db -\n%s",
                       bodies[i]);
        (void)snprintf(answer, sizeof(answer), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
                       strlen(list), list);
        w.peers[0].answer = answer;
        check_partial(&w, "", bodies[i]);
    }
}

TEST_ON(struct world *w, a_peer_that_is_down_is_not_asked_again_at_once)
{
    put_hours(w);
    uint16_t ports[2] = {w->peers[0].server->port, 1};
    struct partial partial = {.parts = 0};
    asking_hosts(&w->asking, ports, 2);
    SCOPED_MEMORY char *want =
        asking_text(w->peers[0].archive.store.store, NULL, NULL, 0, ALL, NULL);
    SCOPED_MEMORY char *got =
        asking_text(w->reader.store.store, &w->asking, NULL, 0, ALL, &partial);
    CHECK_LINES(got, want, "one is down");
    assert_non_null(strstr(partial.why, "peer http://127.0.0.1:1: "));
    assert_int_equal(
        testing_metric(w->asking.metrics, "profpull_peer_requests_total{result=\"connect\"}"), 1);
    assert_int_equal(testing_metric(w->asking.metrics, "profpull_peers_down"), 1);
    assert_int_equal(testing_metric(w->asking.metrics, "profpull_peers"), 2);
}

TEST_ON(struct world *w, a_process_does_not_ask_itself)
{
    put_hours(w);
    uint16_t port = w->peers[0].server->port;
    asking_hosts(&w->asking, &port, 1);
    w->peers[0].instance = peering_id(w->asking.peering);
    struct partial partial = {.parts = 0};
    struct store *own = w->peers[0].archive.store.store;
    archive_rig_round(&w->peers[0].archive, &w->bucket);
    SCOPED_MEMORY char *want = asking_text(own, NULL, NULL, 0, ALL, &partial);
    SCOPED_MEMORY char *got = asking_text(own, &w->asking, NULL, 0, ALL, &partial);
    CHECK_LINES(got, want, "itself");
    CHECK_STR(partial.why, "", "itself");
    assert_int_equal(atomic_load(&w->peers[0].slices), 0);
    assert_int_equal(atomic_load(&w->peers[0].lists), 1);
}

TEST_ON(struct world *w, two_addresses_of_one_peer_count_once)
{
    put_hours(w);
    uint16_t ports[2] = {w->peers[0].server->port, w->peers[0].server->port};
    asking_hosts(&w->asking, ports, 2);
    struct partial partial = {.parts = 0};
    SCOPED_MEMORY char *want =
        asking_text(w->peers[0].archive.store.store, NULL, NULL, 0, ALL, NULL);
    SCOPED_MEMORY char *got =
        asking_text(w->reader.store.store, &w->asking, NULL, 0, ALL, &partial);
    CHECK_LINES(got, want, "twice");
    CHECK_STR(partial.why, "", "twice");
}

/* ---- names and members ------------------------------------------------------------------------
 */

static int fake_lookup(const char *host, char **ret)
{
    *ret = strcmp(host, "peers") == 0 ? strdup("127.0.0.1,127.0.0.2,::1") : NULL;
    return *ret != NULL ? 0 : EAI_NONAME;
}

static void check_peers(struct peering *p, const char *const *want, size_t n)
{
    struct err err = ERR_INIT;
    bool cut;
    size_t got;
    struct peer **peers = peering_peers(p, clock_mono_ms() + 60000, &got, &cut, &err);
    CHECK_STR(err.msg, "", "peers");
    assert_int_equal(got, n);
    assert_false(cut);
    for (size_t i = 0; i < n; i++) {
        CHECK_STR(peer_name(peers[i]), want[i], "peer");
    }
    peering_peers_free(peers, got);
}

TEST(a_name_stands_for_all_its_addresses)
{
    struct err err = ERR_INIT;
    const struct http_settings http = {.auth = HTTP_AUTH_NONE};
    const struct peering_options o = {.lookup = fake_lookup};
    struct peering *p = peering_new(&o, &err);
    struct peering_settings s = {
        .mode = PEERING_DNS, .dns = "peers:4040", .http = &http, .timeout_ms = 1000};
    assert_true(peering_configure(p, &s, &err));
    check_peers(p,
                (const char *const[]){"http://127.0.0.1:4040", "http://127.0.0.2:4040",
                                      "http://[::1]:4040"},
                3);
    s.dns = "nobody:4040";
    assert_true(peering_configure(p, &s, &err));
    bool cut;
    size_t n;
    assert_null(peering_peers(p, clock_mono_ms() + 60000, &n, &cut, &err));
    assert_non_null(strstr(err.msg, "query.peers.dns: nobody:4040 cannot be resolved: "));
    peering_free(p);
}

TEST(members_are_asked_at_their_addresses)
{
    struct err err = ERR_INIT;
    const struct http_settings http = {.auth = HTTP_AUTH_NONE};
    const struct peering_options o = {.lookup = NULL};
    struct peering *p = peering_new(&o, &err);
    struct peering_settings s = {
        .mode = PEERING_MEMBERS, .port = 4040, .https = true, .http = &http, .timeout_ms = 1000};
    const struct sv members[] = {SV("10.0.0.1"), SV("fd00::1")};
    const char *const want[] = {"https://10.0.0.1:4040", "https://[fd00::1]:4040"};
    peering_set_members(p, members, 2);
    assert_true(peering_configure(p, &s, &err));
    check_peers(p, want, 2);
    /* A reload keeps them. */
    assert_true(peering_configure(p, &s, &err));
    check_peers(p, want, 2);
    peering_set_members(p, members, 0);
    check_peers(p, want, 2);
    peering_set_members(p, members, 1);
    check_peers(p, want, 1);
    peering_free(p);
}
