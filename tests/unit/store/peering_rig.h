/* Stores that answer as peers over HTTP, and scans that ask them. */
#ifndef PROFPULL_TESTS_PEERING_RIG_H
#define PROFPULL_TESTS_PEERING_RIG_H

#include "tests/unit/store/archive_fake.h"

#include "store/peering/answer.h"
#include "store/peering/peering.h"
#include "tests/unit/lib/http_server.h"

/* A peer: a store and its server. */
struct peer_rig {
    struct archive_rig archive;
    struct server *server;
    const char *instance;
    /* The whole answer to all requests, in place of that of the store; NULL: the store answers. */
    const char *answer;
    /* Called before the first slice is answered; may be NULL. */
    void (*before_slice)(void *arg);
    void *arg;
    atomic_uint lists;
    atomic_uint slices;
};

static inline void peer_rig_reply(struct server_conn *c, const char *status, struct sv body)
{
    char head[256];
    int n =
        snprintf(head, sizeof(head), "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", status, body.n);
    server_send_bytes(c, head, (size_t)n);
    server_send_bytes(c, body.p, body.n);
}

static inline void peer_rig_answer(struct peer_rig *r, struct server_conn *c, struct sv body)
{
    struct peering_question q;
    struct err err = ERR_INIT;
    SCOPED(buf) out = testing_buf((size_t)64 * 1024 * 1024);
    bool read = peering_read_question(body, &q, &err);
    if (read && !q.files && r->before_slice != NULL) {
        r->before_slice(r->arg);
        r->before_slice = NULL;
    }
    atomic_fetch_add(read && q.files ? &r->lists : &r->slices, 1);
    bool ok = read && peering_answer(r->archive.store.store, r->instance, &q, &out, &err);
    peer_rig_reply(c, ok ? "200 OK" : "400 Bad Request",
                   ok ? (struct sv){out.data, out.len} : sv_from(err.msg));
}

static inline void peer_rig_serve(struct server_conn *c)
{
    char body[16 * 1024];
    char value[32] = "0";
    while (server_read_request(c)) {
        struct peer_rig *r = server_arg(c);
        (void)server_header(c->head, "Content-Length", value, sizeof(value));
        size_t n = strtoul(value, NULL, 10);
        if (n > sizeof(body) || !server_read_body(c, body, n)) {
            return;
        }
        if (r->answer != NULL) {
            server_send(c, r->answer);
        } else {
            peer_rig_answer(r, c, (struct sv){body, n});
        }
    }
}

static inline void peer_rig_init(struct peer_rig *r, struct fake *f, const char *writer)
{
    *r = (struct peer_rig){.instance = writer};
    archive_rig_init(&r->archive, f, writer);
    r->server = server_new(peer_rig_serve, r);
}

static inline void peer_rig_done(struct peer_rig *r)
{
    server_free(r->server);
    archive_rig_done(&r->archive);
}
SCOPED_VALUE(peer_rig, peer_rig_done)

/* ---- the asking side ------------------------------------------------------------------------- */

#define ASKING_PEERS_MAX 4

struct asking {
    struct testing_log *log;
    struct metrics *metrics;
    struct peering *peering;
    struct http_settings http;
    char hosts[ASKING_PEERS_MAX][64];
    const char *list[ASKING_PEERS_MAX];
    struct store_peers use;
};

static inline void asking_done(struct asking *a)
{
    peering_free(a->peering);
    metrics_free(a->metrics);
    testing_log_done(a->log);
}
SCOPED_VALUE(asking, asking_done)

static inline void asking_init(struct asking *a)
{
    struct err err = ERR_INIT;
    *a = (struct asking){.log = testing_log_new(), .metrics = metrics_new()};
    const struct peering_options o = {.log = testing_log(a->log), .metrics = a->metrics};
    a->peering = peering_new(&o, &err);
    assert_non_null(a->peering);
    a->use = (struct store_peers){.peering = a->peering, .bytes_max = (uint64_t)64 * 1024 * 1024};
}

/* Asks the servers at these ports from now on. */
static inline void asking_hosts(struct asking *a, const uint16_t *ports, size_t n)
{
    struct err err = ERR_INIT;
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(a->hosts[i], sizeof(a->hosts[i]), "127.0.0.1:%u", ports[i]);
        a->list[i] = a->hosts[i];
    }
    const struct peering_settings s = {.mode = PEERING_HOSTS,
                                       .hosts = a->list,
                                       .n_hosts = n,
                                       .http = &a->http,
                                       .timeout_ms = 20 * MS_PER_S};
    assert_true(peering_configure(a->peering, &s, &err));
}

static inline int asking_by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorts the lines of a text: stores with several writers have no order between them. */
static inline char *asking_sorted(char *text)
{
    size_t n = 0;
    for (const char *c = text; *c != '\0'; c++) {
        n += *c == '\n';
    }
    char **lines = calloc(n + 1, sizeof(char *));
    char *rest = text;
    struct buf out = testing_buf(10000000);
    for (size_t i = 0; i < n; i++) {
        lines[i] = strsep(&rest, "\n");
    }
    qsort((void *)lines, n, sizeof(char *), asking_by_text);
    for (size_t i = 0; i < n; i++) {
        buf_printf(&out, "%s\n", lines[i]);
    }
    free((void *)lines);
    free(text);
    return buf_take(&out, NULL);
}

/* Compares texts, and shows only the first line that differs. */
#define CHECK_LINES(got, want, row)                                                                \
    do {                                                                                           \
        size_t same_ = 0;                                                                          \
        for (size_t i_ = 0; (got)[i_] == (want)[i_] && (got)[i_] != '\0'; i_++) {                  \
            same_ = (got)[i_] == '\n' ? i_ + 1 : same_;                                            \
        }                                                                                          \
        char *got_ = strndup((got) + same_, strcspn((got) + same_, "\n"));                         \
        char *want_ = strndup((want) + same_, strcspn((want) + same_, "\n"));                      \
        CHECK_STR(got_, want_, row);                                                               \
        free(got_);                                                                                \
        free(want_);                                                                               \
    } while (0)

/* All that scans of a store and its peers (NULL: none) visit, sorted, for free(). */
static inline char *asking_text(struct store *s, const struct asking *a, const char *selector,
                                int64_t from, int64_t until, struct partial *partial)
{
    struct err err = ERR_INIT;
    struct rig_text t;
    struct selector *sel = selector != NULL ? selector_parse(sv_from(selector), &err) : NULL;
    struct store_scan scan = {.range = {.from_ns = RIG_T0 + from * RIG_SECOND,
                                        .until_ns = RIG_T0 + until * RIG_SECOND,
                                        .selector = sel,
                                        .partial = partial},
                              .with_data = true};
    if (a != NULL) {
        scan.range.peers = a->use;
    }
    rig_text_init(&t, NULL);
    bool ok = store_each_series(s, &scan.range, rig_on_series, &t, &err) &&
              buf_puts(&t.out, "points\n") &&
              store_each_point(s, &scan.range, rig_on_point, &t, &err) &&
              store_each_body(s, &scan, rig_on_body, &t, &err);
    scan.with_data = false;
    scan.range.with_windows = true;
    ok = ok && store_each_body(s, &scan, rig_on_body, &t, &err) &&
         store_each_point(s, &scan.range, rig_on_point, &t, &err);
    CHECK_STR(err.msg, "", "scan");
    assert_true(ok);
    selector_free(sel);
    return asking_sorted(buf_take(&t.out, NULL));
}

#endif
