/* Known traps on the way to profile stores, as far as they concern what is sent and how an answer
 * is read.
 *
 * Profiles are never changed: neither their time, nor the labels of their samples, nor the names of
 * their types. The tests check that the bytes go out as they came, and how a server's refusal of
 * them is handled. There is no option to strip labels of samples.
 */
#include "tests/unit/lib/testing.h"

#include <strings.h>

#include "base/utf8.h"
#include "config/config.h"
#include "http/url.h"
#include "tests/unit/lib/valid_config.h"
#include "tests/unit/write/protobuf_reader.h"
#include "tests/unit/write/requests.h"
#include "write/answer.h"
#include "write/protocols/ingest.h"
#include "write/protocols/push.h"
#include "write/queue/send_queue.h"

SCOPED_VALUE(sent, release)

static struct labels *usual(void)
{
    return testing_labels(table, "service_name", "a", "__name__", "memory", NULL);
}

static const char *header(const struct sent *s, const char *name)
{
    for (size_t i = 0; i < s->request.n_headers; i++) {
        if (strcasecmp(s->request.headers[i].name, name) == 0) {
            return s->request.headers[i].value;
        }
    }
    return NULL;
}

static const struct protocol *const http_protocols[] = {&protocol_push, &protocol_ingest,
                                                        &protocol_profefe};

/* ---- encoding and body ----------------------------------------------------------------------- */

/* A boundary that is random, not too long, in the header, not in the profile, and
 * closed; lines end in CRLF. */
TEST(test_form)
{
    struct config_endpoint e = {.url = "http://p", .protocol = &protocol_ingest.config};
    struct sent plain, clash;
    send_profile(&plain, &e, profile_of(usual(), "x", 1), NULL);
    size_t n = strlen(plain.boundary.text);
    assert_true(n >= 16 && n <= 70);
    CHECK_CONTAINS(header(&plain, "Content-Type"), plain.boundary.text, "");
    send_profile(&clash, &e, profile_of(usual(), plain.boundary.text, n), NULL);
    assert_string_not_equal(clash.boundary.text, plain.boundary.text);
    CHECK_CONTAINS(header(&clash, "Content-Type"), clash.boundary.text, "");
    const struct http_part *tail = &clash.request.body[2];
    char end[80];
    (void)snprintf(end, sizeof(end), "\r\n--%s--\r\n", clash.boundary.text);
    assert_true(tail->len > strlen(end));
    CHECK_STR((const char *)tail->data + tail->len - strlen(end), end, "closed");
    const char *text = clash.request.body[0].data;
    for (size_t i = 0; i < clash.request.body[0].len; i++) {
        assert_true(text[i] != '\n' || (i > 0 && text[i - 1] == '\r'));
    }
    release(&plain);
    release(&clash);
}

/* The bytes as they lie, NUL and all, once, under a type that is set. */
TEST(test_bytes_as_they_are)
{
    for (size_t i = 0; i < 3; i++) {
        struct config_endpoint e = {.url = "http://p", .protocol = &http_protocols[i]->config};
        SCOPED(sent) s;
        send_profile(&s, &e, profile_of(usual(), "\x1f\x8b\0\0\x08\0", 6), NULL);
        assert_ptr_equal(s.request.body[1].data, s.profile->data);
        CHECK_INT(s.request.body[1].len, 6, "");
        assert_null(header(&s, "Content-Encoding"));
        assert_non_null(header(&s, "Content-Type"));
        assert_null(header(&s, "Transfer-Encoding"));
        assert_null(strstr(header(&s, "Content-Type"), "urlencoded"));
    }
}

/* Lengths are computed from the inside out, and what is too long is refused. */
TEST(test_lengths)
{
    static const size_t sizes[] = {
        0, 1, 127, 128, 16383, 16384, 2097151, 2097152, PUSH_PROFILE_MAX};
    SCOPED(labels) *l = usual();
    SCOPED(series) s;
    assert_true(series_build(&s, l, &no_external, &default_limits, &protocol_push.labels));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        SCOPED(buf) prefix = testing_buf(4096);
        SCOPED(buf) suffix = testing_buf(4096);
        assert_true(push_encode(&s, sizes[i], "id", &prefix, &suffix));
        /* The outermost length is that of all that follows it. */
        struct sv rest = {.p = prefix.data, .n = prefix.len};
        unsigned number;
        size_t length = next_tag(&rest, &number);
        CHECK_INT(length, rest.n + sizes[i] + suffix.len, "");
    }
    SCOPED(buf) b = testing_buf(4096);
    assert_false(push_encode(&s, PUSH_PROFILE_MAX + 1, "id", &b, &b));
}

/* ---- time and meaning ------------------------------------------------------------------------ */

/* Ten digits, and for profefe a time without a zone. */
TEST(test_times)
{
    struct config_endpoint e = {.url = "http://p", .protocol = &protocol_ingest.config};
    struct sent s;
    send_profile(&s, &e, profile_of(usual(), "x", 1), NULL);
    CHECK_CONTAINS(s.request.url.data, "&from=1795230000&until=1795230010&", "");
    release(&s);
    e.protocol = &protocol_profefe.config;
    send_profile(&s, &e, profile_of(usual(), "x", 1), NULL);
    CHECK_CONTAINS(s.request.url.data, "&created_at=2026-11-21T03%3A00%3A00", "");
    CHECK_STR(strstr(s.request.url.data, "&created_at="), "&created_at=2026-11-21T03%3A00%3A00",
              "neither Z nor an offset");
    release(&s);
}

/* The instance and __delta__ stay, other
 * reserved names go, service_name is there once, in order. */
TEST(test_push_labels)
{
    SCOPED(labels) *l =
        testing_labels(table, "__name__", "memory", "__delta__", "false", "__period_type__", "x",
                       "__session_id__", "1", "z", "1", "instance", "i", NULL);
    SCOPED(series) s;
    assert_true(series_build(&s, l, &no_external, &default_limits, &protocol_push.labels));
    static const char *const want[] = {"__delta__", "__name__", "instance", "service_name", "z"};
    CHECK_INT(s.n, 5, "");
    for (size_t i = 0; i < 5; i++) {
        CHECK_INT(sv_eq_str(s.at[i].name, want[i]), true, want[i]);
    }
    CHECK_INT(sv_eq_str(s.service, "unknown_service"), true, "");
}

/* A configuration that says nothing but what it must. */
static struct config *defaults(void)
{
    return valid_config("f.yaml", "scrape_configs: [{job_name: a}]\nwrite: [{url: \"http://x\"}]\n",
                        NULL);
}

/* A server that gives up reading after 30 s never gets so far. A request starts with its
 * whole body in memory, and is over, or another attempt, well before. */
TEST(test_body_does_not_trickle)
{
    struct config *c = defaults();
    assert_true(c->endpoints[0].remote_timeout_ms > 0);
    assert_true(c->endpoints[0].remote_timeout_ms < 30000);
    config_unref(c);
    for (size_t i = 0; i < 3; i++) {
        struct config_endpoint e = {.url = "http://p", .protocol = &http_protocols[i]->config};
        SCOPED(sent) s;
        size_t there = 0;
        send_profile(&s, &e, profile_of(usual(), "\x1f\x8b-the-profile", 14), NULL);
        CHECK_INT(s.status, REQUEST_OK, "");
        for (size_t k = 0; k < 3; k++) {
            assert_true(s.request.body[k].len == 0 || s.request.body[k].data);
            there += s.request.body[k].len;
        }
        assert_true(there >= 14);
    }
}

/* A time of the year 1970, as from one who takes milliseconds for nanoseconds, is passed
 * on as it is; beside it stands the time of the scrape, which a server takes instead. */
TEST(test_time_in_the_profile)
{
    /* A sample, and time_nanos = 1795230000000. */
    static const char data[] = "\x12\x02\x10\x01\x48\x80\xc7\xaf\xe0\x9f\x34";
    for (size_t i = 0; i < 3; i++) {
        struct config_endpoint e = {.url = "http://p", .protocol = &http_protocols[i]->config};
        SCOPED(sent) s;
        send_profile(&s, &e, profile_of(usual(), data, sizeof(data) - 1), NULL);
        CHECK_INT(s.status, REQUEST_OK, "");
        CHECK_INT(s.request.body[1].len, sizeof(data) - 1, "");
        assert_memory_equal(s.request.body[1].data, data, sizeof(data) - 1);
        if (e.protocol == &protocol_ingest.config) {
            CHECK_CONTAINS(s.request.url.data, "&from=1795230000&until=1795230010&", "");
        }
        if (e.protocol == &protocol_profefe.config) {
            CHECK_CONTAINS(s.request.url.data, "&created_at=2026-11-21T03%3A00%3A00", "");
        }
    }
}

/* The endpoints of godeltaprof give each difference once, to the first reader: they are
 * scraped only if configured, and never subtracted again. */
TEST(test_godeltaprof)
{
    SCOPED(config) *c = defaults();
    size_t found = 0;
    for (size_t i = 0; i < c->jobs[0].n_types; i++) {
        const struct config_type *t = &c->jobs[0].types[i];
        bool is_delta = strncmp(t->key, "godeltaprof_", 12) == 0;
        CHECK_INT(t->is_delta, is_delta, t->key);
        if (!is_delta) {
            continue;
        }
        found++;
        CHECK_INT(t->enabled, false, t->key);
        CHECK_INT(t->cumulative, false, t->key);
    }
    CHECK_INT(found, 3, "memory, mutex, block");
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* No quotes, keys in the narrow set, no pair twice, "%20" for a
 * space. */
TEST(test_ingest_name)
{
    struct config_endpoint e = {.url = "http://p", .protocol = &protocol_ingest.config};
    struct labels *l =
        testing_labels(table, "service_name", "a", "__name__", "mutex", "app.kubernetes.io/name",
                       "x,y}z", "app_kubernetes_io_name", "own", "p", "a b+\"c\"", NULL);
    struct sent s;
    send_profile(&s, &e, profile_of(l, "x", 1), NULL);
    CHECK_CONTAINS(s.request.url.data,
                   "?name=a%7Bapp_kubernetes_io_name%3Down%2Cp%3Da%20b%2B%22c%22%7D&", "");
    CHECK_INT(s.series.changes[SERIES_COLLISION], 1, "");
    release(&s);
    l = testing_labels(table, "service_name", "a", "__name__", "mutex", "k", "x,y}z", NULL);
    send_profile(&s, &e, profile_of(l, "x", 1), NULL);
    CHECK_CONTAINS(s.request.url.data, "k%3Dx_y_z%7D", "");
    release(&s);
}

/* DeepFlow's own tags say where we are, not where the profile is from: that must stand in
 * labels, and the service in the name. */
TEST(test_ingest_says_where_from)
{
    struct config_endpoint e = {.url = "http://d/api/v1/profile",
                                .protocol = &protocol_ingest.config};
    SCOPED(sent) s;
    struct labels *l =
        testing_labels(table, "service_name", "shop.cart", "__name__", "memory", "namespace",
                       "shop", "pod", "cart-7f", "instance", "10.1.2.3:6060", "node", "n1", NULL);
    struct bytes cpu = from_hex(cpu_hex);
    send_profile(&s, &e, profile_of(l, cpu.data, cpu.n), NULL);
    CHECK_CONTAINS(s.request.url.data,
                   "/ingest?name=shop.cart%7Binstance%3D10.1.2.3%3A6060%2Cnamespace%3Dshop%2Cnode"
                   "%3Dn1%2Cpod%3Dcart-7f%7D&",
                   "");
}

/* Six of the server's 30 names are left to samples; 20 of our own for ingest, since the server adds
 * four; 24 for push. */
TEST(test_label_budget)
{
    char names[40][8];
    struct config_pair pairs[40];
    for (size_t i = 0; i < 40; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "n%02zu", i);
        pairs[i] = (struct config_pair){.name = names[i], .value = "v"};
    }
    struct config_pairs many = {.at = pairs, .n = 40};
    SCOPED(labels) *l = usual();
    struct series s;
    assert_true(series_build(&s, l, &many, &default_limits, &protocol_push.labels));
    CHECK_INT(s.n, 24, "push");
    series_done(&s);
    assert_true(series_build(&s, l, &many, &default_limits, &protocol_ingest.labels));
    size_t in_braces = 0;
    for (size_t i = 0; i < s.n; i++) {
        in_braces += sv_starts_with(s.at[i].name, SV("n"));
    }
    CHECK_INT(in_braces, 20, "ingest");
    series_done(&s);
}

/* ---- status ---------------------------------------------------------------------------------- */

static struct answer classify(const struct protocol *protocol, long status, const char *type,
                              const char *body, int64_t retry_after_ms)
{
    struct answer a;
    struct answer_input in = {.protocol = protocol,
                              .retry_on_429 = true,
                              .status = status,
                              .error = "",
                              .content_type = type,
                              .location = "",
                              .retry_after_ms = retry_after_ms,
                              .body = sv_from(body),
                              .wall_ns = WALL_S * NS_PER_S};
    answer_classify(&in, &a);
    return a;
}

/* The status alone does not decide. */
TEST(test_status_is_not_all)
{
    static const char rate[] = "{\"code\":\"unknown\",\"message\":\"x resource_exhausted: y\"}";
    static const char broken[] = "{\"code\":\"unknown\",\"message\":\"gzip reset: EOF\"}";
    static const char large[] =
        "{\"code\":\"resource_exhausted\",\"message\":\"message size 3 is larger than configured "
        "max 2\"}";
    static const char json[] = "application/json";
    CHECK_INT(classify(&protocol_ingest, 422, json, rate, -1).class, ANSWER_RETRY_DOUBTFUL, "422");
    CHECK_INT(classify(&protocol_push, 500, json, broken, -1).class, ANSWER_REJECTED, "500");
    CHECK_INT(classify(&protocol_push, 429, json, large, -1).class, ANSWER_REJECTED, "429");
    for (size_t i = 0; i < 3; i++) {
        CHECK_INT(classify(http_protocols[i], 200, "text/html", "<html>login</html>", -1).class,
                  ANSWER_RETRY_DOUBTFUL, "SSO");
    }
    CHECK_INT(classify(&protocol_push, 200, "application/proto", "\x1f\x8b", -1).class, ANSWER_SENT,
              "gzip of nothing");
    CHECK_INT(classify(&protocol_push, 200, "application/octet-stream", "", -1).class,
              ANSWER_RETRY_DOUBTFUL, "a gateway that rewrites types");
}

/* A fault that the server finds within the profile will not get better. The profile is refused
 * once, in the server's words, and a time out of the window is distinguished. */
TEST(test_refused_for_what_is_within)
{
    static const struct {
        const char *name, *message;
        long status;
        const struct protocol *protocol;
        enum answer_fault fault;
    } rows[] = {
        {"old, push",
         "profile with labels '{a=\\\"b\\\"}' is outside of ingestion window (profile timestamp: "
         "x)",
         400, &protocol_push, ANSWER_FAULT_TOO_OLD},
        {"old, ingest",
         "pushing IngestInput-pprof failed invalid_argument: push series with index 0: profile "
         "with "
         "labels '{}' is outside of ingestion window (profile timestamp: x)",
         422, &protocol_ingest, ANSWER_FAULT_TOO_OLD},
        {"labels of samples",
         "profile series '{__name__=\\\"memory\\\"}' has 31 label names; limit 30", 400,
         &protocol_push, ANSWER_FAULT_OTHER},
        {"name of a label", "invalid label name 'a-b'", 400, &protocol_push, ANSWER_FAULT_OTHER},
        {"name of a type", "invalid sample type 'inuse-space'", 400, &protocol_push,
         ANSWER_FAULT_OTHER},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char body[300];
        (void)snprintf(body, sizeof(body), "{\"code\":\"invalid_argument\",\"message\":\"%s\"}",
                       rows[i].message);
        struct answer a =
            classify(rows[i].protocol, rows[i].status, "application/json", body, 30000);
        CHECK_INT(a.class, ANSWER_REJECTED, rows[i].name);
        CHECK_INT(a.fault, rows[i].fault, rows[i].name);
        CHECK_INT(a.delay_ms, 0, rows[i].name);
        CHECK_CONTAINS(a.text,
                       i < 2 ? "outside of ingestion window" : strrchr(rows[i].message, ' '),
                       rows[i].name);
    }
    /* And none waits so long that a window of an hour is over. */
    SCOPED(config) *c = defaults();
    assert_true(c->endpoints[0].max_age_ms > 0);
    assert_true(c->endpoints[0].max_age_ms < 3600 * MS_PER_S);
}

/* No redirect turns a POST into a GET. */
TEST(test_redirects)
{
    static const long all[] = {301, 302, 303, 307, 308};
    for (size_t i = 0; i < 5; i++) {
        for (size_t p = 0; p < 3; p++) {
            CHECK_INT(classify(http_protocols[p], all[i], "", "", -1).class, ANSWER_REJECTED, "");
        }
    }
}

/* Retry-After counts, up to a cap; nonsense (-1) does not; never for a refusal. */
TEST(test_retry_after)
{
    for (size_t p = 0; p < 3; p++) {
        const struct protocol *protocol = http_protocols[p];
        CHECK_INT(classify(protocol, 503, "", "", 30000).delay_ms, 30000, "seconds");
        CHECK_INT(classify(protocol, 429, "", "", 30000).delay_ms, 30000, "429");
        CHECK_INT(classify(protocol, 503, "", "", -1).delay_ms, 0, "nonsense");
        CHECK_INT(classify(protocol, 503, "", "", INT64_C(1000000000000)).delay_ms,
                  ANSWER_DELAY_MAX_MS, "1e9 s");
        CHECK_INT(classify(protocol, 400, "", "", 30000).delay_ms, 0, "refused");
    }
}

/* The reason in the server's words, for "no org id" looks like a password problem. */
TEST(test_no_org_id)
{
    struct answer a = classify(&protocol_push, 401, "application/json",
                               "{\"code\":\"unauthenticated\",\"message\":\"no org id\"}", -1);
    CHECK_STR(a.text, "HTTP 401: no org id", "");
    CHECK_INT(a.class, ANSWER_RETRY, "the queue is kept");
    CHECK_INT(a.delay_ms, ANSWER_SLOW_MS, "");
}

/* Short, one line, whatever the server says. */
TEST(test_error_text)
{
    char page[ANSWER_BODY_MAX + 1];
    memset(page, 'x', ANSWER_BODY_MAX);
    memcpy(page, "a\r\nlevel=error msg=\x1b[31m\xff", 26);
    page[ANSWER_BODY_MAX] = '\0';
    struct answer a = classify(&protocol_ingest, 400, "text/plain", page, -1);
    assert_true(strlen(a.text) < 300);
    for (const char *c = a.text; *c; c++) {
        assert_true((unsigned char)*c >= 0x20);
    }
    assert_true(utf8_valid(sv_from(a.text)));
}

/* ---- URLs ------------------------------------------------------------------------------------ */

/* The only protocol that a pasted URL can mean. */
TEST(test_protocol_of_url)
{
    static const struct {
        const char *url;
        const struct protocol *want; /* NULL: any */
    } rows[] = {
        {"http://p:4040", NULL},
        {"http://p:4040/", NULL},
        {"https://h/profile", NULL},
        {"http://h/digest", NULL},
        {"http://p/ingest", &protocol_ingest},
        {"http://p/ingest//", &protocol_ingest},
        {"http://d/api/v1/profile", &protocol_ingest},
        {"http://d/api/v1/profile/ingest", &protocol_ingest},
        {"http://f/api/0/profiles", &protocol_profefe},
        {"http://p/push.v1.PusherService/Push", &protocol_push},
        {"file:///x", &protocol_file},
        {"file:///x/ingest", &protocol_file},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct config_protocol *got = config_protocol_of_url(write_protocols(), rows[i].url);
        const struct config_protocol *want = rows[i].want == NULL ? NULL : &rows[i].want->config;
        CHECK_INT(got == want, true, rows[i].url);
    }
}

int main(void)
{
    return testing_run("tests", setup, teardown);
}
