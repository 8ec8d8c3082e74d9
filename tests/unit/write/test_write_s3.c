/* A bucket: the request of a profile, and what the answers of S3 mean. That the signature is right
 * is the matter of the end-to-end tests. */
#include "tests/unit/write/requests.h"

#include <zlib.h>

#include "write/answer.h"
#include "write/protocols/s3.h"

SCOPED_VALUE(sent, release)

static struct config_endpoint endpoint = {.url = "s3://bucket/a=b",
                                          .protocol = &protocol_s3.config,
                                          .s3_url = "https://bucket.s3.r.amazonaws.com/a%3Db"};

/* ---- requests -------------------------------------------------------------------------------- */

static const char *header(const struct sent *s, const char *name)
{
    for (size_t i = 0; i < s->request.n_headers; i++) {
        if (strcmp(s->request.headers[i].name, name) == 0) {
            return s->request.headers[i].value;
        }
    }
    return "";
}

static void send_text(struct sent *s, const struct pair *pairs, size_t n, const char *text)
{
    send_profile(s, &endpoint, profile_of(labels_of(pairs, n), text, strlen(text)), NULL);
    CHECK_INT(s->status, REQUEST_OK, text);
}

static const struct pair some[] = {{"__name__", "memory"},
                                   {"service_name", "default/api"},
                                   {"instance", "10.1.2.3:6060"},
                                   {"note", "a  \xc3\xa9\xf0\x9f\x98\x80\x7f\"\\"}};
#define SOME (sizeof(some) / sizeof(some[0]))
/* A profile that begins with these magic bytes is taken for gzip, and kept. */
#define GZIP "\x1f\x8b\x08"

TEST_WITH(test_object, setup, teardown)
{
    SCOPED(sent) s;
    send_text(&s, some, SOME, GZIP "abc");
    CHECK_STR(s.request.method, "PUT", "");
    CHECK_STR(s.request.url.data,
              "https://bucket.s3.r.amazonaws.com/a%3Db/default_api/memory/"
              "20261121T030010.000Z_10.1.2.3-6060_1dfc6e16.pb.gz",
              "");
    CHECK_STR(header(&s, "Content-Type"), "application/octet-stream", "");
    CHECK_STR(header(&s, "x-amz-content-sha256"),
              "f138a1e6f21ad8b11c83c0cf0abf6b052b00f7cfca45d234593bea1a9cb7c35f", "");
    CHECK_STR(header(&s, "x-amz-meta-profpull"),
              "{\"from\":\"2026-11-21T03:00:00.000Z\",\"until\":\"2026-11-21T03:00:10.000Z\","
              "\"labels\":{\"__name__\":\"memory\",\"instance\":\"10.1.2.3:"
              "6060\",\"note\":\"a\\u0020\\u0020\\u00e9\\ud83d\\ude00\\u007f\\\"\\\\\",\"service_"
              "name\":\"default/api\"}}",
              "in ASCII and without spaces");
    CHECK_INT(s.request.body[0].len + s.request.body[2].len, 0, "nothing around the profile");
    CHECK_INT(s.request.body[1].len, strlen(GZIP "abc"), "byte for byte");
}

/* The same profile has the same name each time; one that differs in content or labels another. */
TEST_WITH(test_name_follows_content_and_labels, setup, teardown)
{
    static const struct pair others[] = {{"__name__", "memory"},
                                         {"service_name", "default/api"},
                                         {"instance", "10.1.2.3:6060"},
                                         {"note", "b"}};
    static const struct {
        const struct pair *pairs;
        const char *text;
        bool same;
    } rows[] = {{some, GZIP "abc", true}, {some, GZIP "abd", false}, {others, GZIP "abc", false}};
    SCOPED(sent) first;
    send_text(&first, some, SOME, GZIP "abc");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(sent) s;
        send_text(&s, rows[i].pairs, SOME, rows[i].text);
        bool same = strcmp(s.request.url.data, first.request.url.data) == 0;
        CHECK_INT(same, rows[i].same, s.request.url.data);
    }
}

/* Plain pprof is compressed, as in a file; a recording is not. */
TEST_WITH(test_body, setup, teardown)
{
    struct sent s;
    struct bytes b = from_hex(cpu_hex);
    char plain[256];
    send_profile(&s, &endpoint, profile_of(labels_of(some, SOME), b.data, b.n), NULL);
    CHECK_INT(s.status, REQUEST_OK, "");
    z_stream z = {.next_in = (Bytef *)s.request.packed,
                  .avail_in = (uInt)s.request.body[1].len,
                  .next_out = (Bytef *)plain,
                  .avail_out = sizeof(plain)};
    assert_int_equal(inflateInit2(&z, 16 + MAX_WBITS), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    (void)inflateEnd(&z);
    assert_true(s.request.body[1].data == s.request.packed);
    CHECK_INT(z.total_out, b.n, "");
    assert_memory_equal(plain, b.data, b.n);
    release(&s);

    struct profile *p = profile_of(labels_of(some, SOME), "FLR", 3);
    p->format = PROFILE_JFR;
    send_profile(&s, &endpoint, p, NULL);
    CHECK_INT(s.status, REQUEST_OK, "");
    assert_true(s.request.body[1].data == p->data);
    assert_true(sv_ends_with(sv_from(s.request.url.data), SV(".jfr")));
    release(&s);
}

/* The labels that are worth least give way, and are counted. */
TEST_WITH(test_note_is_limited, setup, teardown)
{
    enum { N = 30 };
    char names[N][16];
    char value[101];
    struct pair pairs[N + 1] = {{"service_name", "api"}};
    struct sent s;
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    for (size_t i = 0; i < N; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "label_%02zu", i);
        pairs[i + 1] = (struct pair){names[i], value};
    }
    send_text(&s, pairs, N + 1, GZIP);
    const char *note = header(&s, "x-amz-meta-profpull");
    assert_true(strlen(note) <= S3_NOTE_MAX && strlen(note) > S3_NOTE_MAX - 2 * sizeof(value));
    CHECK_CONTAINS(note, "\"service_name\":\"api\"", "");
    CHECK_CONTAINS(note, "label_00", "");
    assert_null(strstr(note, "label_29"));
    CHECK_INT(s.series.changes[SERIES_SURPLUS] + s.series.n, N + 1, "");
    release(&s);

    /* One that always stays may be too long by itself. */
    SCOPED_MEMORY char *longest = testing_memory(S3_NOTE_MAX + 1);
    memset(longest, 'v', S3_NOTE_MAX);
    longest[S3_NOTE_MAX] = '\0';
    pairs[0].value = longest;
    send_text(&s, pairs, 1, GZIP);
    CHECK_STR(header(&s, "x-amz-meta-profpull"),
              "{\"from\":\"2026-11-21T03:00:00.000Z\",\"until\":\"2026-11-21T03:00:10.000Z\"}", "");
    release(&s);
}

/* ---- answers --------------------------------------------------------------------------------- */

#define XML(code, message, more)                                                                   \
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>" code "</Code><Message>" message    \
    "</Message>" more "<RequestId>1</RequestId></Error>"

static struct answer answer_of(long status, const char *body)
{
    struct answer_input in = {.protocol = &protocol_s3,
                              .retry_on_429 = true,
                              .result = HTTP_DONE,
                              .status = status,
                              .error = "",
                              .content_type = "application/xml",
                              .location = "",
                              .retry_after_ms = -1,
                              .body = sv_from(body)};
    struct answer a;
    answer_classify(&in, &a);
    return a;
}

TEST(test_answers)
{
    static const struct {
        long status;
        const char *body;
        enum answer_class class;
        enum answer_scope scope;
        const char *text;
        const char *advice; /* a part of it; NULL: none */
    } rows[] = {
        {200, "", ANSWER_SENT, ANSWER_OF_PROFILE, "", NULL},
        {200, "<html>", ANSWER_RETRY_DOUBTFUL, ANSWER_OF_PROFILE, "not the answer", NULL},
        {301, XML("PermanentRedirect", "Use it.", "<Endpoint>b.s3-x.amazonaws.com</Endpoint>"),
         ANSWER_RETRY, ANSWER_OF_ENDPOINT,
         "HTTP 301: PermanentRedirect: Use it. (b.s3-x.amazonaws.com)", "s3.region"},
        {307, XML("TemporaryRedirect", "m", ""), ANSWER_RETRY, ANSWER_OF_ENDPOINT,
         "HTTP 307: TemporaryRedirect: m", "s3.region"},
        {302, "", ANSWER_RETRY, ANSWER_OF_ENDPOINT, "HTTP 302: redirect to nowhere", "s3.endpoint"},
        {400,
         XML("AuthorizationHeaderMalformed",
             "the region &apos;a&apos; is wrong; expecting &#39;b&#39; &amp;lt; &lt;&gt;&quot;&x;",
             "<Region>b</Region>"),
         ANSWER_RETRY, ANSWER_OF_ENDPOINT,
         "HTTP 400: AuthorizationHeaderMalformed: the region 'a' is wrong; expecting 'b' &lt; "
         "<>\"&x; (b)",
         "s3.region"},
        {400, XML("ExpiredToken", "over", ""), ANSWER_RETRY, ANSWER_OF_ENDPOINT, "over",
         "session_token"},
        {400, XML("RequestTimeout", "slow", ""), ANSWER_RETRY, ANSWER_OF_PROFILE, "slow", NULL},
        {400, XML("IncompleteBody", "cut", ""), ANSWER_RETRY, ANSWER_OF_PROFILE, "cut", NULL},
        {400, XML("XAmzContentSHA256Mismatch", "m", ""), ANSWER_RETRY_DOUBTFUL, ANSWER_OF_PROFILE,
         "m", NULL},
        {400, XML("KeyTooLongError", "Your key is too long", ""), ANSWER_REJECTED,
         ANSWER_OF_PROFILE, "KeyTooLongError: Your key", NULL},
        {403, XML("SignatureDoesNotMatch", "m", "<CanonicalRequest>hunter2</CanonicalRequest>"),
         ANSWER_RETRY, ANSWER_OF_ENDPOINT, "HTTP 403: SignatureDoesNotMatch: m",
         "s3.secret_access_key"},
        {403, XML("InvalidAccessKeyId", "m", ""), ANSWER_RETRY, ANSWER_OF_ENDPOINT, "m",
         "s3.access_key_id"},
        {403, XML("AccessDenied", "Access Denied", ""), ANSWER_RETRY, ANSWER_OF_ENDPOINT, "Denied",
         "s3:PutObject"},
        {403, XML("RequestTimeTooSkewed", "m", ""), ANSWER_RETRY, ANSWER_OF_ENDPOINT, "m",
         "clocks"},
        {403, "plain", ANSWER_RETRY, ANSWER_OF_TENANT, "HTTP 403: plain", NULL},
        {404, XML("NoSuchBucket", "m", ""), ANSWER_RETRY, ANSWER_OF_ENDPOINT, "NoSuchBucket",
         "no such bucket"},
        {404, XML("XAdminUserNotFound", "m", ""), ANSWER_RETRY, ANSWER_OF_ENDPOINT, "m",
         "s3.access_key_id"},
        {404, "not here", ANSWER_RETRY, ANSWER_OF_TENANT, "HTTP 404: not here", NULL},
        {405, XML("MethodNotAllowed", "m", ""), ANSWER_REJECTED, ANSWER_OF_PROFILE, "m", NULL},
        {409, XML("OperationAborted", "m", ""), ANSWER_RETRY, ANSWER_OF_PROFILE, "m", NULL},
        {500, XML("InternalError", "We encountered an internal error. Please try again.", ""),
         ANSWER_RETRY, ANSWER_OF_PROFILE, "internal error", NULL},
        {503, XML("SlowDown", "Reduce your request rate.", ""), ANSWER_RETRY, ANSWER_OF_ENDPOINT,
         "HTTP 503: SlowDown: Reduce", NULL},
        {503, "<Error><Code></Code>", ANSWER_RETRY, ANSWER_OF_ENDPOINT, "HTTP 503: <Error>", NULL},
        {507, XML("XMinioStorageFull", "m", ""), ANSWER_RETRY, ANSWER_OF_ENDPOINT, "m", "full"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct answer a = answer_of(rows[i].status, rows[i].body);
        CHECK_INT(a.class, rows[i].class, rows[i].body);
        CHECK_INT(a.scope, rows[i].scope, rows[i].body);
        CHECK_CONTAINS(a.text, rows[i].text, rows[i].body);
        assert_null(strstr(a.text, "hunter2"));
        CHECK_INT(a.advice == NULL, rows[i].advice == NULL, rows[i].body);
        if (a.advice != NULL && rows[i].advice != NULL) {
            CHECK_CONTAINS(a.advice, rows[i].advice, rows[i].body);
            CHECK_INT(a.delay_ms, ANSWER_SLOW_MS, "what somebody has to change is tried seldom");
        }
    }
}
