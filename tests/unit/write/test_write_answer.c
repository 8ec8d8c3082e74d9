/* The meaning of answers: the table of docs/destinations.md, row by row. */
#include "tests/unit/lib/testing.h"

#include "write/answer.h"
#include "write/protocols/table.h"

/* 2026-11-21T03:00:00Z */
#define WALL_NS INT64_C(1795230000000000000)

struct row {
    const char *name;
    const struct protocol *protocol;
    long status;
    const char *content_type;
    const char *body;
    enum answer_class want;
    const char *text; /* part of the text */
};

#define PUSH &protocol_push
#define INGEST &protocol_ingest
#define JSON "application/json"
#define SENT ANSWER_SENT
#define RETRY ANSWER_RETRY
#define DOUBTFUL ANSWER_RETRY_DOUBTFUL
#define REJECTED ANSWER_REJECTED

static const struct row rows[] = {
    /* push: success */
    {"protobuf", PUSH, 200, "application/proto", "", SENT, ""},
    {"protobuf: charset", PUSH, 200, "application/proto; charset=utf-8", "", SENT, ""},
    {"protobuf: case", PUSH, 200, "Application/Proto", "", SENT, ""},
    {"gzip body: gzip of nothing", PUSH, 200, "application/proto", "\x1f\x8b\x08", SENT, ""},
    {"JSON: JSON", PUSH, 200, JSON, "{}", SENT, ""},
    {"gateway: html", PUSH, 200, "text/html; charset=utf-8", "<html>", DOUBTFUL, "text/html"},
    {"no type", PUSH, 200, "", "", DOUBTFUL, "HTTP 200"},
    {"prefix of a type", PUSH, 200, "application/protocol", "", DOUBTFUL, ""},
    {"201", PUSH, 201, "application/proto", "", DOUBTFUL, "HTTP 201"},
    {"204", PUSH, 204, "", "", DOUBTFUL, "HTTP 204"},
    /* push: errors in Connect's JSON */
    {"no profiles: empty", PUSH, 400, JSON,
     "{\"code\":\"invalid_argument\",\"message\":\"no profiles received\"}", REJECTED,
     "HTTP 400: no profiles received"},
    {"no type: 31 labels", PUSH, 400, JSON,
     "{\"code\":\"invalid_argument\",\"message\":\"profile series '{}' has 31 label names\"}",
     REJECTED, "31 label names"},
    {"401", PUSH, 401, JSON, "{\"code\":\"unauthenticated\",\"message\":\"no org id\"}", RETRY,
     "HTTP 401: no org id"},
    {"403", PUSH, 403, "text/plain", "missing scope", RETRY, "missing scope"},
    {"404 DeepFlow has no push", PUSH, 404, "text/plain", "Not Found", RETRY, "Not Found"},
    {"405", PUSH, 405, "", "", REJECTED, "HTTP 405"},
    {"408", PUSH, 408, "", "", RETRY, "HTTP 408"},
    {"409 aborted", PUSH, 409, JSON, "{\"code\":\"aborted\",\"message\":\"m\"}", DOUBTFUL, "m"},
    {"409 exists", PUSH, 409, JSON, "{\"code\":\"already_exists\"}", REJECTED, ""},
    {"413 proxy", PUSH, 413, "text/html", "<h1>413 too large</h1>", REJECTED, "413 too large"},
    {"content type: 415", PUSH, 415, "", "", REJECTED, "HTTP 415"},
    {"422 plain", PUSH, 422, "text/plain", "no", DOUBTFUL, "no"},
    {"425", PUSH, 425, "", "", RETRY, ""},
    {"rate", PUSH, 429, JSON,
     "{\"code\":\"resource_exhausted\",\"message\":\"push rate limit (4.0 MiB) exceeded while "
     "adding 2.3 MiB\"}",
     DOUBTFUL, "push rate limit"},
    {"no profiles: oversized", PUSH, 429, JSON,
     "{\"code\":\"resource_exhausted\",\"message\":\"message size 300000000 is larger than "
     "configured max 268435456\"}",
     REJECTED, "larger than"},
    {"429 other size", PUSH, 429, "text/plain", "message size quota", DOUBTFUL, ""},
    {"429 proxy", PUSH, 429, "text/html", "slow down", DOUBTFUL, "slow down"},
    {"499", PUSH, 499, JSON, "{\"code\":\"canceled\",\"message\":\"m\"}", RETRY, ""},
    {"broken profile: EOF", PUSH, 500, JSON,
     "{\"code\":\"unknown\",\"message\":\"gzip reset: unexpected EOF\"}", REJECTED, "gzip reset"},
    {"broken profile: proto", PUSH, 500, JSON,
     "{\"code\":\"unknown\",\"message\":\"proto: cannot parse invalid wire-format data\"}",
     REJECTED, "wire-format"},
    {"500 other", PUSH, 500, JSON, "{\"code\":\"unknown\",\"message\":\"disk on fire\"}", DOUBTFUL,
     "disk on fire"},
    {"500 internal", PUSH, 500, JSON, "{\"code\":\"internal\",\"message\":\"EOF\"}", DOUBTFUL,
     "EOF"},
    {"500 proxy page that says EOF", PUSH, 500, "text/plain", "unexpected EOF", DOUBTFUL, "EOF"},
    {"501", PUSH, 501, JSON, "{\"code\":\"unimplemented\",\"message\":\"zstd\"}", REJECTED, "zstd"},
    {"502", PUSH, 502, "text/html", "<html>bad gateway</html>", RETRY, "bad gateway"},
    {"503", PUSH, 503, JSON, "{\"code\":\"unavailable\",\"message\":\"service is unavailable\"}",
     RETRY, "HTTP 503: service is unavailable"},
    {"504", PUSH, 504, "", "", RETRY, "HTTP 504"},
    {"529", PUSH, 529, "", "", RETRY, ""},
    {"410", PUSH, 410, "", "", REJECTED, ""},
    /* ingest */
    {"form", INGEST, 200, "", "", SENT, ""},
    {"DeepFlow", INGEST, 200, "text/plain", "", SENT, ""},
    {"204", INGEST, 204, "", "", SENT, ""},
    {"login page", INGEST, 200, "text/html", "<html>", DOUBTFUL, "text/html"},
    {"dash in a key", INGEST, 400, JSON,
     "{\"code\":\"invalid_argument\",\"message\":\"name: invalid label name: my-label: character "
     "is "
     "not allowed: '-'\"}",
     REJECTED, "my-label"},
    {"tenant", INGEST, 401, JSON, "{\"code\":\"unauthenticated\",\"message\":\"no org id\"}", RETRY,
     "no org id"},
    {"base: path", INGEST, 404, "text/plain", "404 page not found\n", RETRY, "404 page not found"},
    {"base: method", INGEST, 405, "", "", REJECTED, ""},
    {"408", INGEST, 408, JSON, "{\"code\":\"unknown\"}", RETRY, ""},
    {"too large: 413", INGEST, 413, JSON,
     "{\"code\":\"invalid_argument\",\"message\":\"request body too large: http: request body too "
     "large\"}",
     REJECTED, "too large"},
    {"415", INGEST, 415, "", "", REJECTED, ""},
    {"unreadable profile", INGEST, 422, JSON,
     "{\"code\":\"unknown\",\"message\":\"parsing IngestInput-pprof failed invalid_argument: x\"}",
     REJECTED, "parsing"},
    {"limit of the write path", INGEST, 422, JSON,
     "{\"code\":\"unknown\",\"message\":\"pushing IngestInput-pprof failed invalid_argument: push "
     "series with index 0 and id  failed: profile is outside of ingestion window\"}",
     REJECTED, "ingestion window"},
    {"rate limit: before 2.2", INGEST, 422, JSON,
     "{\"code\":\"unknown\",\"message\":\"pushing IngestInput-pprof failed resource_exhausted: "
     "push "
     "rate limit\"}",
     DOUBTFUL, "rate limit"},
    {"422 unavailable", INGEST, 422, JSON,
     "{\"code\":\"unknown\",\"message\":\"pushing IngestInput-pprof failed unavailable: x\"}",
     RETRY, ""},
    {"422 deadline", INGEST, 422, JSON,
     "{\"code\":\"unknown\",\"message\":\"failed deadline_exceeded: x\"}", RETRY, ""},
    {"422 canceled", INGEST, 422, JSON, "{\"code\":\"unknown\",\"message\":\"failed canceled: x\"}",
     RETRY, ""},
    {"422 internal", INGEST, 422, JSON, "{\"code\":\"unknown\",\"message\":\"failed internal: x\"}",
     DOUBTFUL, ""},
    {"422 plain", INGEST, 422, "text/plain", "no", DOUBTFUL, ""},
    {"rate limit", INGEST, 429, JSON,
     "{\"code\":\"resource_exhausted\",\"message\":\"push rate limit (4.0 MiB) exceeded\"}",
     DOUBTFUL, ""},
    {"oversized", INGEST, 429, JSON,
     "{\"code\":\"x\",\"message\":\"message size 3 is larger than configured max 2\"}", REJECTED,
     ""},
    {"500", INGEST, 500, "", "", RETRY, ""},
    {"503", INGEST, 503, "text/html", "<html>", RETRY, ""},
};

static void classify_row(const struct row *r, struct answer *a)
{
    struct answer_input in = {.protocol = r->protocol,
                              .retry_on_429 = true,
                              .result = HTTP_DONE,
                              .status = r->status,
                              .error = "",
                              .content_type = r->content_type,
                              .location = "",
                              .retry_after_ms = -1,
                              .body = sv_from(r->body),
                              .wall_ns = WALL_NS};
    answer_classify(&in, a);
}

TEST(test_table)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct answer a;
        classify_row(&rows[i], &a);
        CHECK_INT(a.class, rows[i].want, rows[i].name);
        CHECK_INT(a.answered, true, rows[i].name);
        CHECK_CONTAINS(a.text, rows[i].text, rows[i].name);
        CHECK_INT(a.text[0] == '\0', rows[i].want == SENT, rows[i].name);
        CHECK_INT(a.tries > 0, rows[i].want == DOUBTFUL, rows[i].name);
    }
}

static struct answer_input base_input(long status)
{
    return (struct answer_input){.protocol = PUSH,
                                 .retry_on_429 = true,
                                 .result = HTTP_DONE,
                                 .status = status,
                                 .error = "",
                                 .content_type = "text/plain",
                                 .location = "",
                                 .retry_after_ms = -1,
                                 .body = SV(""),
                                 .wall_ns = WALL_NS};
}

TEST(test_transport)
{
    static const enum http_result again[] = {
        HTTP_ERR_RESOLVE,  HTTP_ERR_CONNECT, HTTP_ERR_TLS,         HTTP_ERR_TIMEOUT, HTTP_ERR_CUT,
        HTTP_ERR_PROTOCOL, HTTP_ERR_ABORTED, HTTP_ERR_DESCRIPTORS, HTTP_ERR_MEMORY,
    };
    for (size_t i = 0; i < sizeof(again) / sizeof(again[0]); i++) {
        struct answer_input in = base_input(0);
        struct answer a;
        in.result = again[i];
        in.error = "connection refused";
        answer_classify(&in, &a);
        CHECK_INT(a.class, RETRY, http_result_name(again[i]));
        CHECK_INT(a.answered, false, http_result_name(again[i]));
        CHECK_INT(a.delay_ms, 0, http_result_name(again[i]));
        CHECK_STR(a.text, "connection refused", http_result_name(again[i]));
    }
}

TEST(test_config_error_rests)
{
    struct answer_input in = base_input(0);
    struct answer a;
    in.result = HTTP_ERR_CONFIG;
    answer_classify(&in, &a);
    CHECK_INT(a.class, RETRY, "");
    CHECK_INT(a.delay_ms, ANSWER_SLOW_MS, "");
    CHECK_STR(a.text, "config", "no text: the name of the result");
}

/* A server may answer and close while we still send: the status decides. */
TEST(test_status_counts_when_cut)
{
    struct answer_input in = base_input(200);
    struct answer a;
    in.result = HTTP_ERR_CUT;
    in.content_type = "application/proto";
    answer_classify(&in, &a);
    CHECK_INT(a.class, SENT, "200 and reset");
    in.status = 413;
    answer_classify(&in, &a);
    CHECK_INT(a.class, REJECTED, "413 and reset");
    in.status = 503;
    in.result = HTTP_ERR_ABORTED;
    answer_classify(&in, &a);
    CHECK_INT(a.class, RETRY, "503, body left unread");
    CHECK_INT(a.answered, true, "503, body left unread");
}

/* A server cannot have taken a request that it has not read; but it can refuse it. */
TEST(test_early_answers)
{
    struct answer_input in = base_input(200);
    struct answer a;
    in.early = true;
    in.content_type = "application/proto";
    for (int i = 0; i < 2; i++) {
        in.result = i == 0 ? HTTP_DONE : HTTP_ERR_PROTOCOL;
        answer_classify(&in, &a);
        CHECK_INT(a.class, DOUBTFUL, "200");
        CHECK_INT(a.scope, ANSWER_OF_PROFILE, "200");
        CHECK_INT(a.tries, ANSWER_TRIES, "200");
        CHECK_STR(a.text, "HTTP 200 before the request was sent", "200");
    }
    in.result = HTTP_DONE;
    in.status = 413;
    answer_classify(&in, &a);
    CHECK_INT(a.class, REJECTED, "413");
    in.status = 503;
    answer_classify(&in, &a);
    CHECK_INT(a.class, RETRY, "503");
}

TEST(test_redirect_names_location)
{
    struct answer_input in = base_input(308);
    struct answer a;
    in.location = "https://login.example/sso?token=hunter2";
    answer_classify(&in, &a);
    CHECK_INT(a.class, REJECTED, "");
    CHECK_STR(a.text, "HTTP 308: redirect to https://login.example/sso is not followed", "");
    in.location = "";
    answer_classify(&in, &a);
    CHECK_CONTAINS(a.text, "nowhere", "");
}

TEST(test_429_switched_off)
{
    struct answer_input in = base_input(429);
    struct answer a;
    in.retry_on_429 = false;
    answer_classify(&in, &a);
    CHECK_INT(a.class, REJECTED, "push");
    in.protocol = INGEST;
    answer_classify(&in, &a);
    CHECK_INT(a.class, REJECTED, "ingest");
}

TEST(test_delays)
{
    static const struct {
        const char *name;
        long status;
        int64_t retry_after_ms;
        const char *message;
        int64_t want;
    } cases[] = {
        {"none", 503, -1, "", 0},
        {"zero", 503, 0, "", 0},
        {"30 s", 429, 30000, "", 30000},
        {"capped", 503, 1000000000, "", ANSWER_DELAY_MAX_MS},
        {"just capped", 503, 300001, "", ANSWER_DELAY_MAX_MS},
        {"401 rests", 401, -1, "", ANSWER_SLOW_MS},
        {"401 rests longer", 401, 60000, "", 60000},
        {"403 rests at least", 403, 1000, "", ANSWER_SLOW_MS},
        {"reset", 429, -1, "limit of 1 GB/day reached, next reset at 2026-11-21T03:01:30Z", 90000},
        {"reset far", 429, -1, "next reset at 2026-11-22T00:00:00Z", ANSWER_DELAY_MAX_MS},
        {"reset beyond all times", 429, -1, "next reset at 9999-12-31T23:59:59Z",
         ANSWER_DELAY_MAX_MS},
        {"reset past", 429, -1, "next reset at 2026-11-20T00:00:00Z", 0},
        {"reset nonsense", 429, -1, "next reset at noon", 0},
        {"reset cut", 429, -1, "next reset at 2026-11-2", 0},
        {"rejected has none", 400, 5000, "", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct answer_input in = base_input(cases[i].status);
        struct answer a;
        in.retry_after_ms = cases[i].retry_after_ms;
        in.body = sv_from(cases[i].message);
        answer_classify(&in, &a);
        CHECK_INT(a.delay_ms, cases[i].want, cases[i].name);
    }
}

TEST(test_quota_is_the_endpoints_fault)
{
    struct answer_input in = base_input(429);
    struct answer a;
    in.body = SV("limit of 1 GB/day reached, next reset at 2026-11-21T03:01:30Z");
    answer_classify(&in, &a);
    CHECK_INT(a.class, RETRY, "until max_age");
    in.body = SV("push rate limit exceeded");
    answer_classify(&in, &a);
    CHECK_INT(a.class, DOUBTFUL, "may be over the burst for ever");
    CHECK_INT(a.tries, ANSWER_RATE_TRIES, "");
}

TEST(test_text_is_short_and_clean)
{
    char body[ANSWER_BODY_MAX];
    memset(body, 'x', sizeof(body));
    body[0] = '\r';
    body[10] = '\n';
    body[11] = '\0';
    body[12] = '\x1b';
    body[13] = (char)0xff;
    struct answer_input in = base_input(503);
    struct answer a;
    in.body = (struct sv){.p = body, .n = sizeof(body)};
    answer_classify(&in, &a);
    CHECK_INT(strlen(a.text), strlen("HTTP 503: ") + ANSWER_TEXT_MAX + 2, "U+FFFD is 3 bytes");
    CHECK_CONTAINS(a.text, "HTTP 503: xxxxxxxxx   \xef\xbf\xbdxx", "");

    /* Characters of three bytes */
    for (size_t i = 0; i + 3 <= sizeof(body); i += 3) {
        memcpy(body + i, "\xe4\xb8\xad", 3);
    }
    in.body.n = (size_t)3 * 300;
    answer_classify(&in, &a);
    CHECK_INT(strlen(a.text), strlen("HTTP 503: ") + (size_t)3 * 300, "");
    in.body.n = (size_t)3 * 3000;
    answer_classify(&in, &a);
    size_t cut = strlen(ANSWER_TEXT_CUT);
    CHECK_INT(strlen(a.text), strlen("HTTP 503: ") + 3 * (ANSWER_TEXT_MAX - cut) + cut, "");
}

TEST(test_result_names)
{
    CHECK_STR(answer_result_name(HTTP_DONE, 200), "2xx", "");
    CHECK_STR(answer_result_name(HTTP_DONE, 302), "3xx", "");
    CHECK_STR(answer_result_name(HTTP_DONE, 404), "4xx", "");
    CHECK_STR(answer_result_name(HTTP_DONE, 429), "429", "");
    CHECK_STR(answer_result_name(HTTP_ERR_CUT, 503), "5xx", "");
    CHECK_STR(answer_result_name(HTTP_ERR_TIMEOUT, 0), "timeout", "");
}

/* ---- words ----------------------------------------------------------------------------------- */

static struct answer answer_of(const struct protocol *protocol, long status, const char *body)
{
    struct answer_input in = base_input(status);
    struct answer a;
    in.protocol = protocol;
    in.body = sv_from(body);
    answer_classify(&in, &a);
    return a;
}

/* Every code of gRPC, as gRPC and as Connect print it, in the middle of a text of 422 and 500. */
TEST(test_every_code)
{
    static const struct {
        const char *grpc, *connect;
        enum answer_class at_422;
        enum answer_class at_500; /* of push */
        enum answer_scope scope;
    } codes[] = {
        {"Canceled", "canceled", RETRY, RETRY, ANSWER_OF_ENDPOINT},
        {"Unknown", "unknown", DOUBTFUL, DOUBTFUL, ANSWER_OF_PROFILE},
        {"InvalidArgument", "invalid_argument", REJECTED, REJECTED, ANSWER_OF_PROFILE},
        {"DeadlineExceeded", "deadline_exceeded", RETRY, RETRY, ANSWER_OF_ENDPOINT},
        {"NotFound", "not_found", DOUBTFUL, DOUBTFUL, ANSWER_OF_PROFILE},
        {"AlreadyExists", "already_exists", DOUBTFUL, DOUBTFUL, ANSWER_OF_PROFILE},
        {"PermissionDenied", "permission_denied", DOUBTFUL, DOUBTFUL, ANSWER_OF_PROFILE},
        {"ResourceExhausted", "resource_exhausted", DOUBTFUL, DOUBTFUL, ANSWER_OF_TENANT},
        {"FailedPrecondition", "failed_precondition", DOUBTFUL, DOUBTFUL, ANSWER_OF_PROFILE},
        {"Aborted", "aborted", DOUBTFUL, DOUBTFUL, ANSWER_OF_PROFILE},
        {"OutOfRange", "out_of_range", REJECTED, REJECTED, ANSWER_OF_PROFILE},
        {"Unimplemented", "unimplemented", REJECTED, REJECTED, ANSWER_OF_PROFILE},
        {"Internal", "internal", DOUBTFUL, DOUBTFUL, ANSWER_OF_PROFILE},
        {"Unavailable", "unavailable", RETRY, RETRY, ANSWER_OF_ENDPOINT},
        {"DataLoss", "data_loss", DOUBTFUL, DOUBTFUL, ANSWER_OF_PROFILE},
        {"Unauthenticated", "unauthenticated", DOUBTFUL, DOUBTFUL, ANSWER_OF_PROFILE},
    };
    static const char *const forms[] = {
        "{\"code\":\"unknown\",\"message\":\"pushing failed unknown: rpc error: code = %s desc\"}",
        "rpc error: code = %s desc = rpc error: code = Unknown desc = why",
        "{\"code\":\"unknown\",\"message\":\"failed %s: why\"}",
        "{\"code\":\"%s\",\"message\":\"why\"}",
    };
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        for (size_t f = 0; f < 4; f++) {
            char body[256];
            const char *code = f < 2 ? codes[i].grpc : codes[i].connect;
            size_t at = (size_t)(strstr(forms[f], "%s") - forms[f]);
            (void)snprintf(body, sizeof(body), "%.*s%s%s", (int)at, forms[f], code,
                           forms[f] + at + 2);
            struct answer a = answer_of(INGEST, 422, body);
            CHECK_INT(a.class, codes[i].at_422, body);
            CHECK_INT(a.scope, codes[i].scope, body);
            a = answer_of(PUSH, 500, body);
            CHECK_INT(a.class, codes[i].at_500, body);
            CHECK_INT(a.scope, codes[i].scope, body);
        }
    }
}

TEST(test_words_of_outages)
{
    static const char *const outages[] = {
        /* and not a broken profile */
        "{\"code\":\"unknown\",\"message\":\"code = Unavailable desc = read: EOF\"}",
        "rpc error: code = Internal desc = rpc error: code = Unavailable desc = closing",
        "push failed: context deadline exceeded",
        "dial tcp 10.0.0.1:9095: connect: connection refused",
        "empty ring",
        "at least 2 live replicas required, could only find 1",
        "it can't be: code = Unavailable, isn't it",
    };
    for (size_t i = 0; i < sizeof(outages) / sizeof(outages[0]); i++) {
        static const struct protocol *const protocols[] = {PUSH, INGEST, &protocol_profefe};
        for (size_t k = 0; k < 3; k++) {
            CHECK_INT(answer_of(protocols[k], 422, outages[i]).class, RETRY, outages[i]);
            CHECK_INT(answer_of(protocols[k], 422, outages[i]).scope, ANSWER_OF_ENDPOINT,
                      outages[i]);
            CHECK_INT(answer_of(protocols[k], 500, outages[i]).class, RETRY, outages[i]);
            CHECK_INT(answer_of(protocols[k], 500, outages[i]).scope, ANSWER_OF_ENDPOINT,
                      outages[i]);
        }
    }
}

/* Words that a pod has written count nothing. */
TEST(test_words_of_pods)
{
    static const char *const texts[] = {
        "invalid_argument: profile with labels '{a=\"code = Unavailable\"}' is bad",
        "invalid_argument: profile with labels {a=\"} code = Unavailable\", b=\"2\"} is bad",
        "invalid_argument: label value too long: 'code = Unavailable, empty ring'",
        "invalid_argument: label value too long: \"unavailable: \"",
        "invalid_argument: no service_unavailable: here, nor code = Unavailables",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        CHECK_INT(answer_of(INGEST, 422, texts[i]).class, REJECTED, texts[i]);
    }
}

TEST(test_too_large_for_grpc)
{
    struct answer a = answer_of(INGEST, 422,
                                "rpc error: code = ResourceExhausted desc = grpc: received message "
                                "larger than max (5000000 vs. 4194304)");
    CHECK_INT(a.class, REJECTED, "");
    CHECK_INT(a.fault, ANSWER_FAULT_TOO_LARGE, "");
}

TEST(test_scopes)
{
    static const struct {
        long status;
        const char *body;
        enum answer_scope want;
    } cases[] = {
        {401, "", ANSWER_OF_TENANT},
        {403, "", ANSWER_OF_TENANT},
        {404, "", ANSWER_OF_TENANT},
        {408, "", ANSWER_OF_PROFILE},
        {422, "", ANSWER_OF_PROFILE},
        {425, "", ANSWER_OF_PROFILE},
        {429, "", ANSWER_OF_TENANT},
        {429, "limit exceeded while adding 2.3 MiB", ANSWER_OF_PROFILE},
        {499, "", ANSWER_OF_ENDPOINT},
        {429, "next reset at 2026-11-21T03:01:30Z", ANSWER_OF_TENANT},
        {500, "", ANSWER_OF_PROFILE},
        {502, "", ANSWER_OF_ENDPOINT},
        {503, "", ANSWER_OF_ENDPOINT},
        {504, "", ANSWER_OF_ENDPOINT},
        {507, "", ANSWER_OF_PROFILE},
        {200, "", ANSWER_OF_PROFILE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char row[64];
        (void)snprintf(row, sizeof(row), "%ld %s", cases[i].status, cases[i].body);
        CHECK_INT(answer_of(PUSH, cases[i].status, cases[i].body).scope, cases[i].want, row);
    }
}

/* ---- text ------------------------------------------------------------------------------------ */

/* The labels stand first; what the server has to say comes after them. */
TEST(test_text_shows_the_reason)
{
    SCOPED(buf) body = testing_buf(ANSWER_BODY_MAX);
    buf_puts(&body, "{\"code\":\"unknown\",\"message\":\"pushing IngestInput-pprof failed "
                    "invalid_argument: profile with labels '{__name__=\\\"memory\\\"");
    for (int i = 0; i < 30; i++) {
        buf_printf(&body, ", label_%d=\\\"%0200d\\\"", i, i);
    }
    buf_puts(&body,
             ", odd=\\\"}{\\\"}' is outside of ingestion window (profile timestamp: 2023)\"}");
    buf_append(&body, "", 1);
    struct answer a = answer_of(INGEST, 422, body.data);
    CHECK_STR(a.text,
              "HTTP 422: pushing IngestInput-pprof failed invalid_argument: profile with labels "
              "'{...}' is outside of ingestion window (profile timestamp: 2023)",
              "");
    CHECK_INT(a.fault, ANSWER_FAULT_TOO_OLD, "");
}

TEST(test_text_keeps_head_and_tail)
{
    char body[2001];
    memset(body, 'x', 2000);
    body[2000] = '\0';
    memcpy(body, "head", 4);
    memcpy(body + 1996, "tail", 4);
    struct answer a = answer_of(PUSH, 503, body);
    CHECK_INT(strlen(a.text), strlen("HTTP 503: ") + ANSWER_TEXT_MAX, "");
    CHECK_CONTAINS(a.text, "HTTP 503: headxx", "");
    CHECK_CONTAINS(a.text, "xx ... xx", "");
    CHECK_STR(a.text + strlen(a.text) - 5, "xtail", "");
}

/* A server that shows the request does not bring its credentials into our log. */
TEST(test_text_has_no_credentials)
{
    static const char *const cases[][2] = {
        {"GET / Authorization: Basic dXNlcjpwYXNz Host: x",
         "GET / Authorization: Basic *** Host: x"},
        {"[\"bearer glc_eyJvIjoiMTIzNDU2\"]", "[\"bearer ***\"]"},
        {"Basic dXNlcjpwYXNz", "Basic ***"},
        {"basic information on Basic Authentication, or bearer", NULL},
        {"basic ", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char want[128];
        const char *text = cases[i][1] != NULL ? cases[i][1] : cases[i][0];
        (void)snprintf(want, sizeof(want), "HTTP 403: %.*s",
                       (int)(strlen(text) - (text[strlen(text) - 1] == ' ')), text);
        CHECK_STR(answer_of(PUSH, 403, cases[i][0]).text, want, "");
    }
}

TEST(test_braces_that_are_no_labels)
{
    static const char *const texts[] = {"a {b} c", "a {b", "{}",           "}{",
                                        "{\"",     "{=",   "x '{\"a\":1}'"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char want[64];
        (void)snprintf(want, sizeof(want), "HTTP 503: %s", texts[i]);
        CHECK_STR(answer_of(PUSH, 503, texts[i]).text, want, texts[i]);
    }
    CHECK_STR(answer_of(PUSH, 503, "a {b=\"c} d").text, "HTTP 503: a {...} d", "open string");
}
