/* A whole request of each protocol: URL, headers, body. */
#include "tests/unit/lib/testing.h"

#include "tests/unit/write/requests.h"

SCOPED_VALUE(sent, release)

static struct profile *make(const char *type, const char *tenant, const char *data, size_t size)
{
    struct labels *l = testing_labels(table, "service_name", "shop.cart", "__name__", type,
                                      "__tenant_id__", tenant, NULL);
    return profile_of(l, data, size);
}

static struct config_endpoint endpoint_of(const struct protocol *protocol, const char *url)
{
    return (struct config_endpoint){
        .name = "main", .url = url, .protocol = &protocol->config, .remote_timeout_ms = 10000};
}

/* "Name: value\n" for each, in order. */
static void check_headers(const struct request *r, const char *want, const char *row)
{
    SCOPED(buf) text = testing_buf(1 << 16);
    for (size_t i = 0; i < r->n_headers; i++) {
        buf_printf(&text, "%s: %s\n", r->headers[i].name, r->headers[i].value);
    }
    CHECK_STR(text.data, want, row);
}

TEST_WITH(test_push, setup, teardown)
{
    struct config_endpoint endpoint = endpoint_of(&protocol_push, "https://kfuse.example/profile/");
    struct profile *p = make("memory", "", "\x1f\x8b!", 3);
    SCOPED(sent) b;
    send_profile(&b, &endpoint, p, NULL);
    CHECK_INT(b.status, REQUEST_OK, "");
    CHECK_STR(b.request.url.data, "https://kfuse.example/profile/push.v1.PusherService/Push", "");
    check_headers(&b.request,
                  "Content-Type: application/proto\n"
                  "Connect-Protocol-Version: 1\n"
                  "Connect-Timeout-Ms: 10000\n",
                  "");
    assert_ptr_equal(b.request.body[1].data, p->data); /* not a copy */
    CHECK_INT(b.request.body[1].len, 3, "");
    CHECK_INT(b.request.body[2].len, 2 + 36, "the ID");
}

TEST_WITH(test_ingest, setup, teardown)
{
    struct config_endpoint endpoint =
        endpoint_of(&protocol_ingest, "http://deepflow-agent.deepflow/api/v1/profile/ingest");
    /* contentions, no unit, one sample */
    static const char data[] = "\x0a\x02\x08\x01\x12\x02\x12\x00\x32\x00\x32\x0b"
                               "contentions";
    struct profile *p = make("mutex", "", data, sizeof(data) - 1);
    SCOPED(sent) b;
    send_profile(&b, &endpoint, p, NULL);
    CHECK_INT(b.status, REQUEST_OK, "");
    CHECK_STR(b.request.url.data,
              "http://deepflow-agent.deepflow/api/v1/profile/ingest?name=shop.cart&from=1795230000"
              "&until=1795230010&spyName=gospy&sampleRate=100&units=samples&aggregationType=sum",
              "");
    char want[200];
    (void)snprintf(want, sizeof(want), "Content-Type: multipart/form-data; boundary=%s\n",
                   b.boundary.text);
    check_headers(&b.request, want, "");
    (void)snprintf(want, sizeof(want), "--%s\r\n", b.boundary.text);
    CHECK_INT(strncmp(b.request.body[0].data, want, strlen(want)), 0, "");
    CHECK_CONTAINS(b.request.body[2].data, "mutex_count", "");
    assert_ptr_equal(b.request.body[1].data, p->data);
}

/* Both Pyroscope and DeepFlow take a recording as a part of its own, when the query says so. */
TEST_WITH(test_jfr, setup, teardown)
{
    struct config_endpoint endpoint = endpoint_of(&protocol_ingest, "http://p");
    struct profile *p = make("jfr", "", "FLR\0\0\2", 6);
    p->format = PROFILE_JFR;
    struct sent b;
    send_profile(&b, &endpoint, profile_ref(p), NULL);
    CHECK_INT(b.status, REQUEST_OK, "");
    CHECK_STR(b.request.url.data,
              "http://p/ingest?name=shop.cart&from=1795230000&until=1795230010&format=jfr"
              "&spyName=javaspy&sampleRate=100",
              "");
    char want[400];
    (void)snprintf(want, sizeof(want),
                   "--%s\r\nContent-Disposition: form-data; name=\"jfr\"; filename=\"jfr\"\r\n"
                   "Content-Type: application/octet-stream\r\n\r\n",
                   b.boundary.text);
    CHECK_STR(b.request.body[0].data, want, "head");
    assert_ptr_equal(b.request.body[1].data, p->data);
    CHECK_INT(b.request.body[1].len, 6, "");
    (void)snprintf(want, sizeof(want), "\r\n--%s--\r\n", b.boundary.text);
    CHECK_STR(b.request.body[2].data, want, "tail");
    release(&b);
    endpoint = endpoint_of(&protocol_push, "http://p");
    send_profile(&b, &endpoint, p, NULL);
    CHECK_INT(b.status, REQUEST_BAD_FORMAT, "push");
    release(&b);
}

TEST_WITH(test_boundary_in_the_profile, setup, teardown)
{
    struct config_endpoint endpoint = endpoint_of(&protocol_ingest, "http://p");
    struct rng rng;
    struct boundary first;
    rng_seed(&rng, 1);
    boundary_new(&first, &rng);
    struct profile *p = make("process_cpu", "", first.text, strlen(first.text));
    SCOPED(sent) b;
    send_profile(&b, &endpoint, p, NULL);
    assert_int_not_equal(strcmp(b.boundary.text, first.text), 0);
    CHECK_CONTAINS(b.request.content_type, b.boundary.text, "");
    CHECK_CONTAINS(b.request.body[2].data, b.boundary.text, "");
}

TEST_WITH(test_tenant, setup, teardown)
{
    static const struct config_pair headers[] = {{"x-scope-orgid", "from-header"}};
    static const struct {
        const char *name, *label, *endpoint;
        size_t n_headers;
        const char *want;
    } cases[] = {
        {"none", "", "", 0, NULL},
        {"endpoint", "", "team-e", 0, "X-Scope-OrgID: team-e\n"},
        {"label wins", "team-l", "team-e", 1, "X-Scope-OrgID: team-l\n"},
        {"bad label", "team l", "team-e", 1, "X-Scope-OrgID: team-e\n"},
        {"header", "", "", 1, "x-scope-orgid: from-header\n"},
        {"label before header", "team-l", "", 1, "X-Scope-OrgID: team-l\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct config_endpoint endpoint = endpoint_of(&protocol_ingest, "http://p");
        endpoint.tenant_id = cases[i].endpoint;
        endpoint.headers = (struct config_pairs){.at = headers, .n = cases[i].n_headers};
        struct profile *p = make("process_cpu", cases[i].label, "x", 1);
        SCOPED(sent) b;
        char want[300];
        send_profile(&b, &endpoint, p, NULL);
        (void)snprintf(want, sizeof(want), "Content-Type: multipart/form-data; boundary=%s\n%s",
                       b.boundary.text, cases[i].want != NULL ? cases[i].want : "");
        check_headers(&b.request, want, cases[i].name);
    }
}

/* Headers that the protocol depends on cannot be overridden, all others are passed on. */
TEST_WITH(test_configured_headers, setup, teardown)
{
    static const struct config_pair headers[] = {
        {"X-Test", "a"}, {"content-type", "text/plain"}, {"Authorization", "Bearer x"}};
    struct config_endpoint endpoint = endpoint_of(&protocol_push, "http://p");
    endpoint.headers = (struct config_pairs){.at = headers, .n = 3};
    endpoint.remote_timeout_ms = 0;
    struct profile *p = make("process_cpu", "", "x", 1);
    SCOPED(sent) b;
    send_profile(&b, &endpoint, p, NULL);
    check_headers(&b.request,
                  "Content-Type: application/proto\n"
                  "Connect-Protocol-Version: 1\n"
                  "X-Test: a\n"
                  "Authorization: Bearer x\n",
                  "no deadline without a timeout");
}

TEST_WITH(test_labels_that_push_cannot_carry, setup, teardown)
{
    struct config_endpoint endpoint = endpoint_of(&protocol_push, "http://p");
    struct profile *p = make("", "", "x", 1);
    struct sent b;
    send_profile(&b, &endpoint, profile_ref(p), NULL);
    CHECK_INT(b.status, REQUEST_BAD_LABELS, "no __name__");
    release(&b);
    endpoint.protocol = &protocol_ingest.config;
    send_profile(&b, &endpoint, p, NULL);
    CHECK_INT(b.status, REQUEST_OK, "needs none");
    release(&b);
}

TEST_WITH(test_external_labels, setup, teardown)
{
    static const struct config_pair external[] = {{"cluster", "prod"}};
    struct config_endpoint endpoint = endpoint_of(&protocol_ingest, "http://p");
    endpoint.external_labels = (struct config_pairs){.at = external, .n = 1};
    struct profile *p = make("process_cpu", "", "x", 1);
    SCOPED(sent) b;
    send_profile(&b, &endpoint, p, NULL);
    CHECK_CONTAINS(b.request.url.data, "name=shop.cart%7Bcluster%3Dprod%7D&", "");
}
