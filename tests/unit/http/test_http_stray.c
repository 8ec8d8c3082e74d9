/* Stray bytes: bytes and responses that no request asked for. Each kind of peer is tried over
 * connections of our own, over libcurl, through a proxy and with TLS. A response never counts for a
 * request that the server has not read, and never for another request. */
#include "tests/unit/lib/http_server.h"

#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "http/private.h"

/* More than the buffers of two sockets hold. */
#define BIG ((size_t)16 * 1024 * 1024)
#define GOOD "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define WRONG "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"
#define CLOSE_400 "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
#define CLOSE_408 "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

/* ---- peers ----------------------------------------------------------------------------------- */

/* The first connection of a peer follows the row. Its further connections behave well: they answer
 * each request with "ok" after its body. */
struct row {
    const char *name;
    const char *greeting; /* sent before the first request */
    const char *early;    /* sent between the head and the body of the first request */
    bool resets;          /* after that; the body is not read */
    const char *answer;   /* to the first request; NULL: "ok" */
    const char *idle;     /* sent after the client has the first response */
    const char *early_second;
    const char *second; /* the answer to a second request on this connection; NULL: "ok" */
    bool big;           /* the bodies of the requests are large */
    enum http_result first_result;
    long first_status;
    enum http_result second_result;
    long second_status;
    enum stray reason; /* of the metric; STRAY_REASONS: none */
};

struct peer {
    const struct row *row;
    SSL_CTX *tls;          /* NULL: none */
    atomic_bool greeted;   /* the greeting was sent */
    atomic_bool answered;  /* the client has the first response */
    atomic_bool disturbed; /* the idle bytes were sent */
    atomic_uint read[3];   /* whole requests, by the digit that ends their path */
};

struct talk {
    struct server_conn *c;
    struct peer *peer;
    SSL *ssl;
};

static void say(struct talk *k, const char *text)
{
    if (text != NULL && k->ssl != NULL) {
        (void)SSL_write(k->ssl, text, (int)strlen(text));
    } else if (text != NULL) {
        server_send(k->c, text);
    }
}

static ssize_t hear(struct talk *k, char *out, size_t size)
{
    return k->ssl != NULL ? SSL_read(k->ssl, out, (int)size) : recv(k->c->fd, out, size, 0);
}

/* Reads a head into c->rest; false at the end of the connection. */
static bool hear_head(struct talk *k, unsigned *ret_number, size_t *ret_length)
{
    struct server_conn *c = k->c;
    char length[32] = "0";
    char *end;
    while ((end = memmem(c->rest, c->rest_len, "\r\n\r\n", 4)) == NULL) {
        ssize_t n = hear(k, c->rest + c->rest_len, sizeof(c->rest) - 1 - c->rest_len);
        if (n <= 0) {
            return false;
        }
        c->rest_len += (size_t)n;
    }
    end[2] = '\0';
    const char *version = strstr(c->rest, " HTTP/1.1");
    *ret_number = version == NULL ? 0 : (unsigned)(version[-1] - '0') % 3;
    (void)server_header(c->rest, "Content-Length", length, sizeof(length));
    *ret_length = strtoul(length, NULL, 10);
    size_t used = (size_t)(end - c->rest) + 4;
    memmove(c->rest, c->rest + used, c->rest_len - used);
    c->rest_len -= used;
    return true;
}

static bool hear_body(struct talk *k, unsigned number, size_t left)
{
    char junk[65536];
    size_t buffered = left < k->c->rest_len ? left : k->c->rest_len;
    memmove(k->c->rest, k->c->rest + buffered, k->c->rest_len - buffered);
    k->c->rest_len -= buffered;
    left -= buffered;
    while (left > 0) {
        ssize_t n = hear(k, junk, left < sizeof(junk) ? left : sizeof(junk));
        if (n <= 0) {
            return false;
        }
        left -= (size_t)n;
    }
    atomic_fetch_add(&k->peer->read[number], 1);
    return true;
}

/* Waits for a state that the test sets, or for the end of the test. */
static void wait_for(struct server_conn *c, atomic_bool *state)
{
    bool stopping = false;
    while (!atomic_load(state) && !stopping) {
        pthread_mutex_lock(&c->server->lock);
        stopping = c->server->stopping;
        pthread_mutex_unlock(&c->server->lock);
        usleep(1000);
    }
}

/* One request on the first connection; false if the connection is over. */
static bool serve_oddly(struct talk *k, const char *early, const char *answer)
{
    const struct row *row = k->peer->row;
    unsigned number;
    size_t length;
    if (!hear_head(k, &number, &length)) {
        return false;
    }
    say(k, early);
    if (early != NULL && row->resets) {
        usleep(20000); /* the client has read the answer, or has it in its buffer */
        server_reset(k->c);
        return false;
    }
    if (!hear_body(k, number, length)) {
        return false;
    }
    say(k, answer != NULL ? answer : GOOD);
    return true;
}

static void serve_first(struct talk *k)
{
    struct peer *peer = k->peer;
    const struct row *row = peer->row;
    say(k, row->greeting);
    atomic_store(&peer->greeted, true);
    if (!serve_oddly(k, row->early, row->answer)) {
        return;
    }
    if (row->idle != NULL) {
        wait_for(k->c, &peer->answered);
        say(k, row->idle);
    }
    atomic_store(&peer->disturbed, true);
    if (serve_oddly(k, row->early_second, row->second)) {
        server_wait_close(k->c);
    }
}

static void serve_well(struct talk *k)
{
    unsigned number;
    size_t length;
    while (hear_head(k, &number, &length) && hear_body(k, number, length)) {
        say(k, GOOD);
    }
}

static void serve(struct server_conn *c)
{
    struct peer *peer = server_arg(c);
    struct talk talk = {.c = c, .peer = peer};
    int one = 1;
    /* The bytes of one call have arrived, even if those of the call before are not acknowledged. */
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (peer->tls != NULL) {
        talk.ssl = SSL_new(peer->tls);
        SSL_set_fd(talk.ssl, c->fd);
    }
    if (talk.ssl == NULL || SSL_accept(talk.ssl) == 1) {
        (c->number == 1 ? serve_first : serve_well)(&talk);
    }
    atomic_store(&peer->greeted, true);
    atomic_store(&peer->disturbed, true);
    SSL_free(talk.ssl);
}

/* ---- ways ------------------------------------------------------------------------------------ */

enum way { WAY_DIRECT, WAY_LIBCURL, WAY_PROXY, WAY_TLS, WAYS };

static const char *const way_names[WAYS] = {"direct", "libcurl", "proxy", "TLS"};

/* A certificate that nobody has signed. */
static SSL_CTX *make_tls(void)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    assert_true(tls != NULL && key != NULL && cert != NULL);
    X509_gmtime_adj(X509_getm_notBefore(cert), 0);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
    assert_int_equal(SSL_CTX_use_certificate(tls, cert), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(tls, key), 1);
    X509_free(cert);
    EVP_PKEY_free(key);
    return tls;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define BOTH_GOOD .first_status = 200, .second_status = 200
#define NO_REASON .reason = STRAY_REASONS

/* clang-format off */
static const struct row rows[] = {
    {"a polite server", BOTH_GOOD, NO_REASON},
    {"HTTP/1.0", .answer = "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", BOTH_GOOD, NO_REASON},
    {"interim responses",
     .answer = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" GOOD, BOTH_GOOD,
     NO_REASON},

    /* Before the first request. */
    {"a response first", .greeting = WRONG, .first_result = HTTP_ERR_PROTOCOL, .second_status = 200,
     .reason = STRAY_FIRST},
    {"two responses first", .greeting = WRONG WRONG, .first_result = HTTP_ERR_PROTOCOL,
     .second_status = 200, .reason = STRAY_FIRST},
    {"408 first", .greeting = CLOSE_408, .first_result = HTTP_ERR_PROTOCOL, .second_status = 200,
     .reason = STRAY_FIRST},
    {"half a status line first", .greeting = "HTTP/1.1 2", .first_result = HTTP_ERR_PROTOCOL,
     .second_status = 200, .reason = STRAY_FIRST},
    {"another protocol", .greeting = "220 mail.example ESMTP\r\n",
     .first_result = HTTP_ERR_PROTOCOL, .second_status = 200, .reason = STRAY_FIRST},
    {"103 first", .greeting = "HTTP/1.1 103 Early Hints\r\n\r\n", .first_result = HTTP_ERR_PROTOCOL,
     .second_status = 200, .reason = STRAY_FIRST},

    /* Between two requests. */
    {"400 when idle", .idle = CLOSE_400, BOTH_GOOD, .reason = STRAY_IDLE},
    {"400 when idle, without an end", .idle = "HTTP/1.1 400 Bad Request\r\n\r\n", BOTH_GOOD,
     .reason = STRAY_IDLE},
    {"400 when idle, and open", .idle = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
     BOTH_GOOD, .reason = STRAY_IDLE},
    {"408 when idle", .idle = CLOSE_408, BOTH_GOOD, .reason = STRAY_IDLE},
    {"100 when idle", .idle = "HTTP/1.1 100 Continue\r\n\r\n", BOTH_GOOD, .reason = STRAY_IDLE},
    {"103 when idle", .idle = "HTTP/1.1 103 Early Hints\r\n\r\n", BOTH_GOOD, .reason = STRAY_IDLE},
    {"101 when idle", .idle = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", BOTH_GOOD,
     .reason = STRAY_IDLE},
    {"200 when idle", .idle = WRONG, BOTH_GOOD, .reason = STRAY_IDLE},
    {"204 when idle", .idle = "HTTP/1.1 204 No Content\r\n\r\n", BOTH_GOOD, .reason = STRAY_IDLE},
    {"two responses when idle", .idle = WRONG WRONG, BOTH_GOOD, .reason = STRAY_IDLE},
    {"half a status line when idle", .idle = "HTT", BOTH_GOOD, .reason = STRAY_IDLE},
    {"an end of line when idle", .idle = "\r\n", BOTH_GOOD, .reason = STRAY_IDLE},
    {"noise when idle", .idle = "\x01\x02\x7f", BOTH_GOOD, .reason = STRAY_IDLE},

    /* After the end of the first response, together with it. */
    {"two responses in one", .answer = GOOD WRONG, BOTH_GOOD, .reason = STRAY_SURPLUS},
    {"three responses in one", .answer = GOOD WRONG WRONG, BOTH_GOOD, .reason = STRAY_SURPLUS},
    {"a Content-Length that is too short",
     .answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokay, and more", BOTH_GOOD,
     .reason = STRAY_SURPLUS},
    {"noise after chunks",
     .answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nnoise",
     BOTH_GOOD, .reason = STRAY_SURPLUS},
    {"204 with a body", .answer = "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nwrong",
     .first_status = 204, .second_status = 200, .reason = STRAY_SURPLUS},
    {"304 with a body", .answer = "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nwrong",
     .first_status = 304, .second_status = 200, .reason = STRAY_SURPLUS},
    {"a response and 408", .answer = GOOD CLOSE_408, BOTH_GOOD, .reason = STRAY_SURPLUS},
    {"a response and half of another", .answer = GOOD "HTTP/1.1 2", BOTH_GOOD,
     .reason = STRAY_SURPLUS},
    {"101 as the answer", .answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
     .first_result = HTTP_ERR_PROTOCOL, .second_status = 200, NO_REASON},

    /* Before the request was sent. */
    {"accepted early", .big = true, .early = WRONG, .first_result = HTTP_ERR_PROTOCOL,
     .first_status = 200, .second_status = 200, .reason = STRAY_EARLY},
    {"accepted early, and reset", .big = true, .early = WRONG, .resets = true,
     .first_result = HTTP_ERR_PROTOCOL, .first_status = 200, .second_status = 200,
     .reason = STRAY_EARLY},
    {"accepted early, twice", .big = true, .early = WRONG WRONG, .first_result = HTTP_ERR_PROTOCOL,
     .first_status = 200, .second_status = 200, .reason = STRAY_EARLY},
    {"204 early", .big = true, .early = "HTTP/1.1 204 No Content\r\n\r\n",
     .first_result = HTTP_ERR_PROTOCOL, .first_status = 204, .second_status = 200,
     .reason = STRAY_EARLY},
    {"413 early, and reset", .big = true, .resets = true,
     .early = "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n", .first_status = 413,
     .second_status = 200, .reason = STRAY_EARLY},
    {"401 early", .big = true, .early = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
     .first_status = 401, .second_status = 200, .reason = STRAY_EARLY},
    {"100 early", .big = true, .early = "HTTP/1.1 100 Continue\r\n\r\n", BOTH_GOOD, NO_REASON},
    {"103 early", .big = true, .early = "HTTP/1.1 103 Early Hints\r\n\r\n", BOTH_GOOD, NO_REASON},

    /* On a kept connection. */
    {"the second is refused, and the end", .second = CLOSE_400, BOTH_GOOD,
     .reason = STRAY_DOUBTFUL},
    {"the second is refused until the end",
     .second = "HTTP/1.0 400 Bad Request\r\nContent-Length: 0\r\n\r\n", BOTH_GOOD,
     .reason = STRAY_DOUBTFUL},
    {"408 to the second, and the end", .second = CLOSE_408, BOTH_GOOD, .reason = STRAY_DOUBTFUL},
    {"noise to the second", .second = "\x01\x02\r\n\r\n", BOTH_GOOD, .reason = STRAY_DOUBTFUL},
    {"101 to the second", .second = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
     BOTH_GOOD, .reason = STRAY_DOUBTFUL},
    {"the second is refused", .second = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
     .first_status = 200, .second_status = 400, NO_REASON},
    {"413 to the second, early", .big = true,
     .early_second = "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n", BOTH_GOOD,
     .reason = STRAY_EARLY},
    {"the second is accepted early", .big = true, .early_second = WRONG, BOTH_GOOD,
     .reason = STRAY_EARLY},
};
/* clang-format on */

/* ---- the test -------------------------------------------------------------------------------- */

struct trial {
    struct fixture f;
    struct peer peer;
    enum way way;
    char *body;
};

/* Called before a request is sent: the greeting is in the client's buffer when it returns. */
static struct peer *peer_to_await;

static const char *await_greeting(const char *ip)
{
    (void)ip;
    while (!atomic_load(&peer_to_await->greeted)) {
        usleep(1000);
    }
    return NULL;
}

static void post(struct trial *t, unsigned number)
{
    char *url = t->f.url, proxy[URL_SIZE];
    const struct row *row = t->peer.row;
    struct http_settings settings = {.tls.insecure_skip_verify = true};
    struct http_part part = {t->body, row->big ? BIG : 3};
    (void)snprintf(url, URL_SIZE, "%s://127.0.0.1:%u/%u", t->way == WAY_TLS ? "https" : "http",
                   t->f.server->port, number);
    if (t->way == WAY_PROXY) {
        settings.proxy_url = server_url(t->f.server, "", proxy);
        (void)snprintf(url, URL_SIZE, "http://192.0.2.1/%u", number);
    }
    fixture_do(
        &t->f, &t->f.call,
        &(struct http_request){.method = "POST",
                               .url = url,
                               .settings = &settings,
                               .body = &part,
                               .n_body = 1,
                               .refuses_address = row->greeting != NULL ? await_greeting : NULL});
}

static void check_call(const struct trial *t, unsigned number, enum http_result result, long status)
{
    const struct call *call = &t->f.call;
    char name[128];
    (void)snprintf(name, sizeof(name), "%s, %s, request %u", way_names[t->way], t->peer.row->name,
                   number);
    check_result(call, result, name);
    CHECK_INT(call->status, status, name);
    if (call->result == HTTP_DONE && call->status == 200) {
        CHECK_STR(call->body, "ok", name);
        CHECK_INT(atomic_load(&t->peer.read[number]) > 0, true, name);
    }
}

static void try_row(const struct row *row, enum way way, SSL_CTX *tls, char *body)
{
    struct trial t = {
        .peer = {.row = row, .tls = way == WAY_TLS ? tls : NULL}, .way = way, .body = body};
    char metric[128];
    peer_to_await = &t.peer;
    t.f = (way == WAY_DIRECT ? fixture_new : fixture_new_libcurl)(1);
    t.f.server = server_new(serve, &t.peer);
    post(&t, 1);
    check_call(&t, 1, row->first_result, row->first_status);
    atomic_store(&t.peer.answered, true);
    while (row->idle != NULL && !atomic_load(&t.peer.disturbed)) {
        usleep(1000);
    }
    post(&t, 2);
    check_call(&t, 2, row->second_result, row->second_status);
    if (row->reason != STRAY_REASONS && way == WAY_DIRECT) {
        (void)snprintf(metric, sizeof(metric),
                       "profpull_http_stray_total{client=\"test\",reason=\"%s\"}",
                       stray_name(row->reason));
        CHECK_INT(fixture_metric(&t.f, metric) > 0, true, row->name);
    }
    fixture_done(&t.f);
}

static void try_all(enum way way)
{
    SSL_CTX *tls = make_tls();
    SCOPED_MEMORY char *body = testing_memory(BIG);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        /* With TLS nothing can be said before the handshake, and a reset may overtake a response.
         */
        if (way != WAY_TLS || (rows[i].greeting == NULL && !rows[i].resets)) {
            try_row(&rows[i], way, tls, body);
        }
    }
    SSL_CTX_free(tls);
}

TEST(test_direct)
{
    try_all(WAY_DIRECT);
}

TEST(test_libcurl)
{
    try_all(WAY_LIBCURL);
}

TEST(test_proxy)
{
    try_all(WAY_PROXY);
}

TEST(test_tls)
{
    try_all(WAY_TLS);
}

MAIN_THAT_MAY_HANG(testing_run("tests", ignore_sigpipe, NULL))
