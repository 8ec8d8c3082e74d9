/* An example of each request that a destination reads, and of each answer that it gives. The parts
 * of a request are compared byte for byte. Reading back is tested in test_cli_readback.c.
 */
#include "tests/unit/lib/testing.h"

#include "pprof/gzip.h"
#include "tests/unit/write/requests.h"
#include "write/answer.h"
#include "write/protocols/ingest.h"
#include "write/protocols/profefe.h"
#include "write/protocols/push.h"

#define BOUNDARY "pprofpull7f3a9c"

/* ---- requests -------------------------------------------------------------------------------- */

/* A call of request_build() and its result. */
struct example {
    struct config_endpoint endpoint;
    struct labels *labels;
    const char *data;
    size_t size;
    enum profile_format format;
    struct sent sent;
};

static void build(struct example *e)
{
    struct profile *p = profile_of(e->labels, e->data, e->size);
    p->format = e->format;
    send_profile(&e->sent, &e->endpoint, p, BOUNDARY);
}

/* Never NULL, which the analyser cannot know. */
static const char *url_of(const struct example *e)
{
    return e->sent.request.url.data != NULL ? e->sent.request.url.data : "";
}

/* The request as text: "POST url\nname: value\n...\n\n", then the body with the profile as "<P>".
 */
static void render(const struct example *e, struct buf *out)
{
    const struct request *r = &e->sent.request;
    buf_init(out, 1 << 16);
    buf_printf(out, "POST %s\n", r->url.data);
    for (size_t i = 0; i < r->n_headers; i++) {
        buf_printf(out, "%s: %s\n", r->headers[i].name, r->headers[i].value);
    }
    buf_putc(out, '\n');
    buf_append(out, r->body[0].data, r->body[0].len);
    assert_ptr_equal(r->body[1].data, e->sent.profile->data); /* from where it lies, unchanged */
    CHECK_INT(r->body[1].len, e->size, "");
    buf_puts(out, "<P>");
    buf_append(out, r->body[2].data, r->body[2].len);
}

static void check_request(struct example *e, const char *id, const char *want)
{
    SCOPED(buf) got;
    build(e);
    CHECK_INT(e->sent.status, REQUEST_OK, id);
    render(e, &got);
    CHECK_STR(got.data, want, id);
}

static size_t body_size(const struct example *e)
{
    const struct http_part *part = e->sent.request.body;
    return part[0].len + part[1].len + part[2].len;
}

static struct example ingest_of(const char *type, const char *url)
{
    return (struct example){
        .endpoint = {.name = "main",
                     .url = url,
                     .protocol = &protocol_ingest.config,
                     .remote_timeout_ms = 10000},
        .labels = testing_labels(table, "service_name", "shop.cart", "__name__", type, NULL),
        .data = "\x1f\x8b\x08",
        .size = 3};
}

#define PART_HEAD                                                                                  \
    "--" BOUNDARY "\r\n"                                                                           \
    "Content-Disposition: form-data; name=\"profile\"; filename=\"profile.pprof\"\r\n"             \
    "Content-Type: application/octet-stream\r\n\r\n"
#define CONFIG_HEAD                                                                                \
    "\r\n--" BOUNDARY "\r\n"                                                                       \
    "Content-Disposition: form-data; name=\"sample_type_config\"; "                                \
    "filename=\"sample_type_config.json\"\r\n"                                                     \
    "Content-Type: application/octet-stream\r\n\r\n"
#define PART_TAIL "\r\n--" BOUNDARY "--\r\n"
#define FORM_HEADER "Content-Type: multipart/form-data; boundary=" BOUNDARY "\n\n"
#define INGEST_QUERY(aggregation)                                                                  \
    "&from=1795230000&until=1795230010&spyName=gospy&sampleRate=100&units=samples"                 \
    "&aggregationType=" aggregation "\n"

/* The one shape that Pyroscope and DeepFlow both take; never raw with format=pprof. */
TEST(test_cpu_form)
{
    struct bytes cpu = from_hex(cpu_hex);
    CHECK_INT(cpu.n, 130, "form");
    struct example e = ingest_of("process_cpu", "http://pyroscope:4040");
    labels_unref(e.labels);
    e.labels = testing_labels(table, "service_name", "shop.cart", "__name__", "process_cpu", "env",
                              "prod", "instance", "10.1.2.3:6060", "pod", "cart-7f", NULL);
    e.data = cpu.data;
    e.size = cpu.n;
    check_request(&e, "form",
                  "POST http://pyroscope:4040/ingest?name=shop.cart%7Benv%3Dprod%2Cinstance%3D10.1."
                  "2.3%3A6060%2Cpod%3Dcart-7f%7D" INGEST_QUERY("sum") FORM_HEADER PART_HEAD
                  "<P>" PART_TAIL);
    CHECK_INT(body_size(&e), 288, "form");
    assert_null(strstr(url_of(&e), "format="));
    release(&e.sent);
}

/* The part that says what the sample types mean; test_write_sample_types.c has more. */
TEST(test_sample_type_configs)
{
    static const struct {
        const char *id, *type, *aggregation, *config;
    } rows[] = {
        {"memory", "memory", "sum",
         "{\"alloc_objects\":{\"units\":\"objects\"},\"alloc_space\":{\"units\":\"bytes\"},"
         "\"inuse_objects\":{\"units\":\"objects\",\"aggregation\":\"average\"},"
         "\"inuse_space\":{\"units\":\"bytes\",\"aggregation\":\"average\"}}"},
        {"block", "block", "sum",
         "{\"contentions\":{\"display-name\":\"block_count\",\"units\":\"lock_samples\"},"
         "\"delay\":{\"display-name\":\"block_duration\",\"units\":\"lock_nanoseconds\"}}"},
        {"mutex", "mutex", "sum",
         "{\"contentions\":{\"display-name\":\"mutex_count\",\"units\":\"lock_samples\"},"
         "\"delay\":{\"display-name\":\"mutex_duration\",\"units\":\"lock_nanoseconds\"}}"},
        {"goroutine", "goroutine", "average",
         "{\"goroutine\":{\"display-name\":\"goroutines\",\"units\":\"goroutines\","
         "\"aggregation\":\"average\"}}"},
        {"fgprof", "fgprof", "sum",
         "{\"samples\":{\"display-name\":\"fgprof_samples\"},\"time\":{\"display-name\":"
         "\"fgprof\"}}"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct example e = ingest_of(rows[i].type, "http://p");
        SCOPED(buf) want = testing_buf(1 << 16);
        buf_printf(
            &want,
            "POST http://p/ingest?name=shop.cart&from=1795230000&until=1795230010"
            "&spyName=gospy&sampleRate=100&units=samples&aggregationType=%s\n" FORM_HEADER PART_HEAD
            "<P>" CONFIG_HEAD "%s" PART_TAIL,
            rows[i].aggregation, rows[i].config);
        check_request(&e, rows[i].id, want.data);
        if (i == 0) {
            /* around a profile of 130 bytes: 631 */
            CHECK_INT(body_size(&e) - e.size, 631 - 130, "memory");
        }
        release(&e.sent);
    }
}

/* Names that the server's parser takes: no quotes, no dash in a key, always a closed
 * brace, never without an application. */
TEST(test_names)
{
    static const struct {
        const char *id, *service, *name, *value;
        const char *want; /* decoded */
    } rows[] = {
        {"dash in the name", "application-demo", "region", "cn",
         "name=application-demo%7Bregion%3Dcn%7D&"},
        {"dash in a key", "app", "my-label", "1", "name=app%7Bmy_label%3D1%7D&"},
        {"no service name", "a b", "x", "1", "name=a_b%7Bx%3D1%7D&"},
        {"no service name: none", "", "x", "1", "name=unknown_service%7Bx%3D1%7D&"},
        {"DeepFlow path: slash", "ns/app", "pod", "x", "name=ns.app%7Bpod%3Dx%7D&"},
        {"DeepFlow path: dot", "app", "otel.scope.name", "x", "name=app%7Botel_scope_name%3Dx%7D&"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct example e = ingest_of("process_cpu", "http://p");
        labels_unref(e.labels);
        e.labels = testing_labels(table, "service_name", rows[i].service, "__name__", "process_cpu",
                                  rows[i].name, rows[i].value, NULL);
        build(&e);
        CHECK_CONTAINS(url_of(&e), rows[i].want, rows[i].id);
        release(&e.sent);
    }
}

/* Every part has a file name, and nothing says format=pprof beside a form. */
TEST(test_parts_have_file_names)
{
    struct example e = ingest_of("memory", "http://p");
    build(&e);
    size_t parts = 0, names = 0;
    for (size_t b = 0; b < 3; b += 2) {
        const char *at = e.sent.request.body[b].data != NULL ? e.sent.request.body[b].data : "";
        while ((at = strstr(at, "Content-Disposition:")) != NULL) {
            const char *end = strstr(at, "\r\n");
            names += strstr(at, "filename=\"") != NULL && strstr(at, "filename=\"") < end;
            parts++;
            at = end;
        }
    }
    CHECK_INT(parts, 2, "parts with file names");
    CHECK_INT(names, 2, "parts with file names");
    assert_null(strstr(url_of(&e), "format"));
    release(&e.sent);
}

/* The tenant is a header; one that no server would take never becomes one. */
TEST(test_tenant_header)
{
    static const struct {
        const char *id, *label, *configured, *want;
    } rows[] = {
        {"tenant", "", "team-a", "X-Scope-OrgID: team-a\n"},
        {"tenant: label wins", "team-b", "team-a", "X-Scope-OrgID: team-b\n"},
        {"tenant: a|b", "a|b", "", ""},
        {"tenant: space", "team a", "", ""},
        {"tenant: bad label leaves the endpoint's", "a|b", "team-a", "X-Scope-OrgID: team-a\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct example e = ingest_of("process_cpu", "http://p");
        labels_unref(e.labels);
        e.labels = testing_labels(table, "service_name", "a", "__name__", "process_cpu",
                                  "__tenant_id__", rows[i].label, NULL);
        e.endpoint.tenant_id = rows[i].configured;
        build(&e);
        struct buf got;
        render(&e, &got);
        const char *at = strstr(got.data, "X-Scope-OrgID");
        struct sv line = at != NULL ? (struct sv){at, strcspn(at, "\n") + 1} : SV("");
        CHECK_INT(sv_eq_str(line, rows[i].want), true, rows[i].id);
        buf_done(&got);
        release(&e.sent);
    }
}

/* Where each base leads. */
TEST(test_urls_from_bases)
{
    static const struct {
        const char *id;
        const struct protocol *protocol;
        const char *url;
        const char *want; /* up to the query */
    } rows[] = {
        {"base", &protocol_ingest, "http://p:4040/", "http://p:4040/ingest"},
        {"base: //", &protocol_ingest, "http://p:4040//", "http://p:4040/ingest"},
        {"base: full", &protocol_ingest, "http://p:4040/ingest/", "http://p:4040/ingest"},
        {"base: prefix", &protocol_ingest, "http://p/pyroscope", "http://p/pyroscope/ingest"},
        {"cloud", &protocol_push, "https://profiles-prod-001.grafana.net",
         "https://profiles-prod-001.grafana.net/push.v1.PusherService/Push"},
        {"gateway", &protocol_push, "https://kfuse.example/profile",
         "https://kfuse.example/profile/push.v1.PusherService/Push"},
        {"gateway: slash", &protocol_push, "https://kfuse.example/profile/",
         "https://kfuse.example/profile/push.v1.PusherService/Push"},
        {"gateway: SDK", &protocol_ingest, "https://kfuse.example/profile",
         "https://kfuse.example/profile/ingest"},
        {"DeepFlow: base", &protocol_ingest, "http://deepflow-agent.deepflow/api/v1/profile",
         "http://deepflow-agent.deepflow/api/v1/profile/ingest"},
        {"DeepFlow: full", &protocol_ingest, "http://a:38086/api/v1/profile/ingest",
         "http://a:38086/api/v1/profile/ingest"},
        {"profefe: base", &protocol_profefe, "http://f:10100/", "http://f:10100/api/0/profiles"},
        {"profefe: full", &protocol_profefe, "http://f:10100/api/0/profiles",
         "http://f:10100/api/0/profiles"},
    };
    struct bytes cpu = from_hex(cpu_hex);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct example e = ingest_of("process_cpu", rows[i].url);
        e.data = cpu.data;
        e.size = cpu.n;
        e.endpoint.protocol = &rows[i].protocol->config;
        build(&e);
        struct sv url = {url_of(&e), strcspn(url_of(&e), "?")};
        CHECK_INT(sv_eq_str(url, rows[i].want), true, rows[i].id);
        release(&e.sent);
    }
}

/* A recording is a part of a form, but gzip and the whole body for DeepFlow. Folded text is never
 * sent. */
TEST(test_jfr_form_and_raw)
{
    static const char form[] =
        "POST http://p/ingest?name=shop.cart&from=1795230000&until=1795230010&format=jfr"
        "&spyName=javaspy&sampleRate=100\n" FORM_HEADER "--" BOUNDARY "\r\n"
        "Content-Disposition: form-data; name=\"jfr\"; filename=\"jfr\"\r\n"
        "Content-Type: application/octet-stream\r\n\r\n<P>" PART_TAIL;
    struct example e = ingest_of("jfr", "http://p");
    e.format = PROFILE_JFR;
    check_request(&e, "JFR: gzip", form);
    release(&e.sent);
    e = ingest_of("jfr", "http://p");
    e.format = PROFILE_JFR;
    e.data = "FLR";
    check_request(&e, "JFR: plain", form);
    release(&e.sent);
    char room[64];
    static const char *const bases[] = {"http://d/api/v1/profile", "http://d/api/v1/profile/",
                                        "http://d/api/v1/profile/ingest"};
    for (size_t i = 0; i < 3; i++) {
        e = ingest_of("jfr", bases[i]);
        e.format = PROFILE_JFR;
        check_request(&e, "DeepFlow JFR",
                      "POST http://d/api/v1/profile/ingest?name=shop.cart&from=1795230000"
                      "&until=1795230010&format=jfr&spyName=javaspy&sampleRate=100\n"
                      "Content-Type: application/octet-stream\n\n<P>");
        release(&e.sent);
        e = ingest_of("jfr", bases[i]);
        e.format = PROFILE_JFR;
        e.data = "FLR";
        build(&e);
        CHECK_STR(e.sent.request.content_type, "application/octet-stream", "plain, for DeepFlow");
        CHECK_INT(e.sent.request.body[0].len + e.sent.request.body[2].len, 0, bases[i]);
        struct gzip_start packed =
            gzip_inflate_start((struct sv){e.sent.request.body[1].data, e.sent.request.body[1].len},
                               room, sizeof(room));
        CHECK_INT(packed.end && packed.plain.n == 3, true, "gzip, for DeepFlow");
        assert_memory_equal(room, "FLR", 3);
        release(&e.sent);
    }
}

/* One series, plain protobuf, never compressed again, never JSON. */
TEST(test_push_is_plain_protobuf)
{
    struct bytes cpu = from_hex(cpu_hex);
    struct bytes head =
        from_hex("0a8c020a120a095f5f64656c74615f5f120566616c73650a120a085f5f6e616d65"
                 "5f5f12066d656d6f72790a190a08696e7374616e6365120d31302e312e322e333a"
                 "363036300a190a0c736572766963655f6e616d651209"
                 "73686f702e6361727412ab010a8201");
    struct example e = {.endpoint = {.url = "http://pyroscope:4040",
                                     .protocol = &protocol_push.config,
                                     .remote_timeout_ms = 10000},
                        .labels =
                            testing_labels(table, "service_name", "shop.cart", "__name__", "memory",
                                           "__delta__", "false", "instance", "10.1.2.3:6060", NULL),
                        .data = cpu.data,
                        .size = cpu.n};
    build(&e);
    CHECK_INT(e.sent.status, REQUEST_OK, "protobuf");
    CHECK_INT(body_size(&e), 271, "protobuf");
    CHECK_INT(e.sent.request.body[0].len, head.n, "protobuf");
    assert_memory_equal(e.sent.request.body[0].data, head.data, head.n);
    char id[PUSH_ID_LENGTH + 1];
    push_id((struct sv){cpu.data, cpu.n}, id);
    CHECK_INT(e.sent.request.body[2].len, 2 + PUSH_ID_LENGTH, "protobuf: ID");
    assert_memory_equal((const char *)e.sent.request.body[2].data + 2, id, PUSH_ID_LENGTH);
    CHECK_STR(url_of(&e), "http://pyroscope:4040/push.v1.PusherService/Push", "protobuf");
    static const struct http_header want[] = {{"Content-Type", "application/proto"},
                                              {"Connect-Protocol-Version", "1"},
                                              {"Connect-Timeout-Ms", "10000"}};
    CHECK_INT(e.sent.request.n_headers, 3, "gzip body: no Content-Encoding");
    for (size_t i = 0; e.sent.request.headers != NULL && i < 3; i++) {
        CHECK_STR(e.sent.request.headers[i].name, want[i].name, "protobuf");
        CHECK_STR(e.sent.request.headers[i].value, want[i].value, "protobuf");
    }
    release(&e.sent);
}

/* A profile that would be refused for its form is not sent. */
TEST(test_unsendable)
{
    struct example e = {.endpoint = {.url = "http://p", .protocol = &protocol_push.config},
                        .labels = testing_labels(table, "service_name", "a", NULL),
                        .data = "x",
                        .size = 1};
    build(&e);
    CHECK_INT(e.sent.status, REQUEST_BAD_LABELS, "no type: no __name__");
    release(&e.sent);
    e = ingest_of("jfr", "http://p");
    e.endpoint.protocol = &protocol_push.config;
    e.format = PROFILE_JFR;
    build(&e);
    CHECK_INT(e.sent.status, REQUEST_BAD_FORMAT, "broken profile: a recording in a raw_profile");
    release(&e.sent);
}

/* DeepFlow reads `from` as seconds, `units` and not `unit`, a language it knows, and CPU
 * by an honest sampleRate. */
TEST(test_deepflow_query)
{
    static const struct {
        const char *id;
        const char *period; /* field 12 */
        const char *rate;
    } rows[] = {
        {"DeepFlow: 100 Hz", "6080ade204", "&sampleRate=100&"},
        {"DeepFlow: 99 Hz", "6092c2e804", "&sampleRate=99&"},
        {"DeepFlow: 1 kHz", "60c0843d", "&sampleRate=1000&"},
        {"DeepFlow: none", "", "&sampleRate=100&"},
        {"DeepFlow: nonsense", "6001", "&sampleRate=100&"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        /* A CPU profile up to its period. */
        struct bytes cpu = from_hex(cpu_hex);
        struct bytes period = from_hex(rows[i].period);
        cpu.n -= strlen("6080ade204") / 2;
        memcpy(cpu.data + cpu.n, period.data, period.n);
        struct example e = ingest_of("process_cpu", "http://d/api/v1/profile");
        e.data = cpu.data;
        e.size = cpu.n + period.n;
        build(&e);
        CHECK_CONTAINS(url_of(&e), rows[i].rate, rows[i].id);
        CHECK_CONTAINS(url_of(&e), "&from=1795230000&until=1795230010&", rows[i].id);
        CHECK_CONTAINS(url_of(&e), "&units=samples&", rows[i].id);
        CHECK_CONTAINS(url_of(&e), "&spyName=gospy&", rows[i].id);
        release(&e.sent);
    }
    CHECK_INT(ingest_sample_rate(10101010), 99, "99 Hz");
    CHECK_INT(ingest_sample_rate(-1), 100, "");
    CHECK_INT(ingest_sample_rate(2 * NS_PER_S), 100, "");
}

/* The body of a form is never compressed as a whole. */
TEST(test_no_content_encoding)
{
    static const struct protocol *const all[] = {&protocol_push, &protocol_ingest,
                                                 &protocol_profefe};
    for (size_t i = 0; i < 3; i++) {
        struct example e = ingest_of("process_cpu", "http://p");
        e.endpoint.protocol = &all[i]->config;
        build(&e);
        for (size_t h = 0; h < e.sent.request.n_headers; h++) {
            assert_string_not_equal(e.sent.request.headers[h].name, "Content-Encoding");
        }
        release(&e.sent);
    }
}

/* ---- profefe --------------------------------------------------------------------------------- */

static struct example profefe_of(struct labels *l, const struct bytes *data)
{
    return (struct example){.endpoint = {.url = "http://profefe:10100",
                                         .protocol = &protocol_profefe.config,
                                         .remote_timeout_ms = 10000},
                            .labels = l,
                            .data = data->data,
                            .size = data->n};
}

/* Service, type, labels and time are in the query, the profile alone in the body. */
TEST(test_profefe_query)
{
    struct bytes cpu = from_hex(cpu_hex);
    struct example e =
        profefe_of(testing_labels(table, "service_name", "cart", "__name__", "process_cpu",
                                  "__delta__", "false", "env", "prod", "pod", "cart-7f", NULL),
                   &cpu);
    check_request(&e, "profefe",
                  "POST http://profefe:10100/api/0/profiles?service=cart&instance_id=cart&type=cpu"
                  "&labels=env%3Dprod%2Cpod%3Dcart-7f&created_at=2026-11-21T03%3A00%3A00\n"
                  "Content-Type: application/octet-stream\n\n<P>");
    release(&e.sent);
}

/* The types that profefe knows; the rest is "other", and a label keeps its name. */
TEST(test_profefe_types)
{
    static const struct text_case rows[] = {
        {"process_cpu", "&type=cpu&labels=&"},
        {"memory", "&type=heap&labels=&"},
        {"allocs", "&type=heap&labels=&"},
        {"block", "&type=block&labels=&"},
        {"mutex", "&type=mutex&labels=&"},
        {"goroutine", "&type=goroutine&labels=&"},
        {"threadcreate", "&type=threadcreate&labels=&"},
        {"fgprof", "&type=other&labels=profile_type%3Dfgprof&"},
        {"wall", "&type=other&labels=profile_type%3Dwall&"},
        {"", "&type=other&labels=&"},
    };
    struct bytes cpu = from_hex(cpu_hex);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct example e = profefe_of(
            testing_labels(table, "service_name", "s", "__name__", rows[i].text, NULL), &cpu);
        build(&e);
        CHECK_CONTAINS(url_of(&e), rows[i].want, rows[i].text);
        release(&e.sent);
    }
}

/* Labels are decoded twice. */
TEST(test_profefe_labels_encoded_twice)
{
    struct bytes cpu = from_hex(cpu_hex);
    struct example e = profefe_of(testing_labels(table, "service_name", "ns/a b", "__name__",
                                                 "mutex", "k", "a,b=c%", "a.b/c", " +", NULL),
                                  &cpu);
    build(&e);
    CHECK_CONTAINS(
        url_of(&e),
        "?service=ns%2Fa%20b&instance_id=ns%2Fa%20b&type=mutex&labels=a.b%252Fc%3D%2520%252B%2C"
        "k%3Da%252Cb%253Dc%2525&created_at=",
        "profefe labels");
    release(&e.sent);
}

/* Collectors of 2019 refuse a profile without instance_id. */
TEST(test_profefe_instance)
{
    char name[2 * PROFEFE_INSTANCE_MAX + 1];
    memset(name, 'i', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    const struct {
        const char *instance, *want;
        size_t len; /* 0: as wanted */
    } rows[] = {
        {"10.1.2.3:6060", "&instance_id=10.1.2.3%3A6060&type=", 0},
        {"", "&instance_id=s%2F1&type=", 0},
        {name, "&instance_id=iii", PROFEFE_INSTANCE_MAX},
    };
    struct bytes cpu = from_hex(cpu_hex);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct example e = profefe_of(testing_labels(table, "service_name", "s/1", "__name__",
                                                     "mutex", "instance", rows[i].instance, NULL),
                                      &cpu);
        build(&e);
        CHECK_CONTAINS(url_of(&e), rows[i].want, rows[i].instance);
        const char *at = strstr(url_of(&e), "instance_id=");
        size_t len = strcspn(at + strlen("instance_id="), "&");
        CHECK_INT(rows[i].len == 0 || len == rows[i].len, true, rows[i].instance);
        release(&e.sent);
    }
}

/* Labels that do not fit the request line go, those that are worth least first. */
TEST(test_profefe_labels_fit)
{
    char value[2001];
    memset(value, ',', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    struct bytes cpu = from_hex(cpu_hex);
    struct example e = profefe_of(testing_labels(table, "service_name", value, "__name__", "mutex",
                                                 "pod", "p", "zone", value, NULL),
                                  &cpu);
    build(&e);
    CHECK_INT(e.sent.status, REQUEST_OK, "");
    CHECK_CONTAINS(url_of(&e), "&labels=pod%3Dp&", "");
    CHECK_INT(e.sent.series.changes[SERIES_SURPLUS], 1, "");
    assert_true(e.sent.request.url.len < 6000);
    release(&e.sent);
}

/* A profile without samples, which profefe refuses, is not sent. */
TEST(test_profefe_takes_no_empty_profile)
{
    static const struct {
        const char *id, *hex;
        enum request_status want;
    } rows[] = {
        {"profefe without samples: none", "0a04080110023200", REQUEST_EMPTY},
        {"profefe without samples: gzip of that",
         "1f8b0800000000000203e362e160146032620000ef9b736f08000000", REQUEST_EMPTY},
        {"one", "0a0408011002120a0a010112050580e1eb17", REQUEST_OK},
        {"no bytes", "", REQUEST_EMPTY},
        {"text of old", "68656170", REQUEST_OK}, /* "heap": not ours to judge */
        {"gzip, cut", "1f8b0800000000000003", REQUEST_OK},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bytes data = from_hex(rows[i].hex);
        struct example e = profefe_of(
            testing_labels(table, "service_name", "s", "__name__", "mutex", NULL), &data);
        build(&e);
        CHECK_INT(e.sent.status, rows[i].want, rows[i].id);
        release(&e.sent);
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

#define PUSH &protocol_push
#define INGEST &protocol_ingest
#define PROFEFE &protocol_profefe
#define SENT ANSWER_SENT
#define RETRY ANSWER_RETRY
#define DOUBT ANSWER_RETRY_DOUBTFUL
#define NEVER ANSWER_REJECTED
#define TEXT "text/plain"
#define JSON "application/json"
#define CONNECT(code, message) "{\"code\":\"" code "\",\"message\":\"" message "\"}"
#define GOOD_ID                                                                                    \
    "{\"code\":200,\"body\":{\"id\":\"bpc00mript33iv4net00\",\"type\":\"cpu\",\"service\":\"c\"}}"

static const struct {
    const char *id;
    const struct protocol *protocol;
    long status;
    const char *type;
    const char *body;
    enum answer_class want;
    enum answer_fault fault;
} answers[] = {
    {"form", INGEST, 200, "", "", SENT, 0},
    {"form: boundary", INGEST, 422, JSON,
     CONNECT("unknown", "parsing IngestInput-pprof failed failed to parse pprof /ingest multipart "
                        "form multipart: NextPart: EOF"),
     NEVER, 0},
    {"raw: gzip twice", INGEST, 422, JSON,
     CONNECT("unknown", "parsing IngestInput-pprof failed invalid_argument: proto: x"), NEVER, 0},
    {"memory: config", INGEST, 422, JSON,
     CONNECT("unknown", "parsing IngestInput-pprof failed invalid character 'u' looking for "
                        "beginning of object key string"),
     NEVER, 0},
    {"dash in a key", INGEST, 400, JSON,
     CONNECT("invalid_argument",
             "name: invalid label name: my-label: character is not allowed: '-'"),
     NEVER, 0},
    {"no service name", INGEST, 400, JSON,
     CONNECT("invalid_argument", "name: service name is required"), NEVER, 0},
    {"unreadable profile", INGEST, 422, JSON,
     CONNECT("unknown", "parsing IngestInput-pprof failed x"), NEVER, 0},
    {"limit of the write path", INGEST, 422, JSON,
     CONNECT("unknown", "pushing IngestInput-pprof failed invalid_argument: push series with index "
                        "0 and id  failed: profile with labels '{}' is outside of ingestion window "
                        "(profile timestamp: 2023-11-14"),
     NEVER, ANSWER_FAULT_TOO_OLD},
    {"limit of the write path: other order", INGEST, 422, JSON,
     CONNECT("unknown", "invalid_argument: x is outside of ingestion window"), NEVER,
     ANSWER_FAULT_TOO_OLD},
    {"tenant", INGEST, 401, JSON, CONNECT("unauthenticated", "no org id"), RETRY, 0},
    {"tenant: 422", INGEST, 422, JSON,
     CONNECT("unknown", "tenant ID 'a b' contains unsupported character ' '"), NEVER, 0},
    {"rate limit", INGEST, 429, JSON,
     CONNECT("resource_exhausted", "push rate limit (4.0 MiB) exceeded while adding 2.3 MiB"),
     DOUBT, ANSWER_FAULT_BURST},
    {"rate limit: small", INGEST, 429, JSON,
     CONNECT("resource_exhausted", "push rate limit (4.0 MiB) exceeded while adding 1.9 MiB"),
     DOUBT, 0},
    {"rate limit: KiB", PUSH, 429, JSON,
     CONNECT("resource_exhausted", "push rate limit (4.0 MiB) exceeded while adding 900 KiB"),
     DOUBT, 0},
    {"rate limit: 2.0", PUSH, 429, JSON,
     CONNECT("resource_exhausted", "push rate limit (4.0 MiB) exceeded while adding 2.0 MiB"),
     DOUBT, 0},
    {"rate limit: old", INGEST, 422, JSON,
     CONNECT("unknown", "pushing IngestInput-pprof failed resource_exhausted: push rate limit "
                        "(4.0 MiB) exceeded while adding 3 MiB"),
     DOUBT, ANSWER_FAULT_BURST},
    {"too large", INGEST, 413, JSON,
     CONNECT("invalid_argument", "request body too large: http: request body too large"), NEVER,
     ANSWER_FAULT_TOO_LARGE},
    {"too large: inflated", INGEST, 422, JSON,
     CONNECT("unknown", "parsing IngestInput-pprof failed invalid_argument: decompressed size "
                        "exceeds maximum allowed size of 4194304 bytes"),
     NEVER, ANSWER_FAULT_TOO_LARGE},
    {"base: method", INGEST, 405, "", "", NEVER, 0},
    {"base: path", INGEST, 404, TEXT, "404 page not found", RETRY, 0},
    {"base: //", INGEST, 301, TEXT, "", NEVER, 0},
    {"JFR", INGEST, 200, "", "", SENT, 0},
    {"JFR: gzip, no form", INGEST, 422, JSON,
     CONNECT("unknown", "parsing IngestInput-jfr failed x"), NEVER, 0},
    {"JFR without a form", INGEST, 400, JSON,
     CONNECT("invalid_argument", "pyroscopeIngesterAdapter failed to convert metadata: x"), NEVER,
     0},
    {"protobuf", PUSH, 200, "application/proto", "", SENT, 0},
    {"gzip body", PUSH, 200, "application/proto", "\x1f\x8b\x08", SENT, 0},
    {"gzip body: plain", PUSH, 400, JSON, CONNECT("invalid_argument", "gzip: invalid header"),
     NEVER, 0},
    {"gzip body: zstd", PUSH, 501, JSON, CONNECT("unimplemented", "unknown compression"), NEVER, 0},
    {"JSON", PUSH, 200, JSON, "{}", SENT, 0},
    {"content type", PUSH, 415, "", "", NEVER, 0},
    {"content type: GET", PUSH, 405, "", "", NEVER, 0},
    {"broken profile: broken", PUSH, 500, JSON, CONNECT("unknown", "gzip reset: unexpected EOF"),
     NEVER, 0},
    {"broken profile: empty", PUSH, 500, JSON, CONNECT("unknown", "gzip reset: EOF"), NEVER, 0},
    {"broken profile: HTML", PUSH, 500, JSON, CONNECT("unknown", "proto: cannot parse"), NEVER, 0},
    {"no type", PUSH, 400, JSON, CONNECT("invalid_argument", "invalid metric name"), NEVER, 0},
    {"no profiles", PUSH, 400, JSON, CONNECT("invalid_argument", "no profiles received"), NEVER, 0},
    {"no profiles: large", PUSH, 429, JSON,
     CONNECT("resource_exhausted",
             "message size 300000000 is larger than configured max 268435456"),
     NEVER, ANSWER_FAULT_TOO_LARGE},
    {"no profiles: inflated", PUSH, 400, JSON,
     CONNECT("invalid_argument", "uncompressed profile payload size exceeds limit of 4.2 MB"),
     NEVER, ANSWER_FAULT_TOO_LARGE},
    {"ingestion window", PUSH, 400, JSON,
     CONNECT("invalid_argument", "profile is outside of ingestion window"), NEVER,
     ANSWER_FAULT_TOO_OLD},
    {"cloud: password", PUSH, 401, "text/html", "<html>", RETRY, 0},
    {"cloud: scope", PUSH, 403, TEXT, "", RETRY, 0},
    {"gateway", PUSH, 200, "text/html", "<html>", DOUBT, 0},
    {"gateway: 404", PUSH, 404, "text/html", "<html>", RETRY, 0},
    {"DeepFlow", INGEST, 200, "", "", SENT, 0},
    {"DeepFlow path", INGEST, 404, TEXT, "Not Found", RETRY, 0},
    {"DeepFlow JFR", INGEST, 200, "", "", SENT, 0},
    {"profefe", PROFEFE, 200, TEXT, GOOD_ID, SENT, 0},
    {"profefe of 2019", PROFEFE, 200, TEXT, "{\"code\":200}", SENT, 0},
    {"profefe of 2019: instance", PROFEFE, 400, TEXT,
     "{\"code\":400,\"error\":\"bad request: bad instance id \\\"\\\"\"}", NEVER, 0},
    {"profefe: no service", PROFEFE, 400, TEXT,
     "{\"code\":400,\"error\":\"bad request: missing \\\"service\\\"\"}", NEVER, 0},
    {"profefe type", PROFEFE, 400, TEXT,
     "{\"code\":400,\"error\":\"bad request: unknown profile type\"}", NEVER, 0},
    {"profefe labels", PROFEFE, 400, TEXT, "{\"code\":400,\"error\":\"bad request: bad labels\"}",
     NEVER, 0},
    {"profefe without samples", PROFEFE, 400, TEXT,
     "{\"code\":400,\"error\":\"malformed profile (could not parse pprof profile: profile is "
     "empty: "
     "no samples)\"}",
     NEVER, 0},
    {"profefe without samples: storage", PROFEFE, 500, TEXT,
     "{\"code\":500,\"error\":\"failed to collect profile\"}", RETRY, 0},
    {"profefe without an answer", PROFEFE, 200, "", "", DOUBT, 0},
    {"profefe without an answer: HTML", PROFEFE, 200, "text/html", "<html>", DOUBT, 0},
    {"profefe without an answer: no id", PROFEFE, 200, TEXT, "{\"code\":200,\"body\":{}}", DOUBT,
     0},
    {"profefe without an answer: empty id", PROFEFE, 200, TEXT,
     "{\"code\":200,\"body\":{\"id\":\"\"}}", DOUBT, 0},
    {"profefe without an answer: code", PROFEFE, 200, TEXT,
     "{\"code\":500,\"body\":{\"id\":\"x\"}}", DOUBT, 0},
    {"profefe without an answer: Connect", PROFEFE, 200, "application/proto", "", DOUBT, 0},
    {"profefe without an answer: an error", PROFEFE, 200, TEXT, "{\"code\":200,\"error\":\"x\"}",
     DOUBT, 0},
    {"profefe without an answer: a list", PROFEFE, 200, TEXT, "[200]", DOUBT, 0},
    {"profefe: 204", PROFEFE, 204, "", "", DOUBT, 0},
};

static struct answer_input input_of(const struct protocol *protocol, long status, const char *body)
{
    return (struct answer_input){.protocol = protocol,
                                 .retry_on_429 = true,
                                 .status = status,
                                 .error = "",
                                 .content_type = "",
                                 .location = "",
                                 .retry_after_ms = -1,
                                 .body = sv_from(body),
                                 .wall_ns = WALL_S * NS_PER_S};
}

TEST(test_answers)
{
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct answer_input in = input_of(answers[i].protocol, answers[i].status, answers[i].body);
        struct answer a;
        in.content_type = answers[i].type;
        answer_classify(&in, &a);
        CHECK_INT(a.class, answers[i].want, answers[i].id);
        CHECK_INT(a.fault, answers[i].fault, answers[i].id);
        CHECK_INT(a.tries > 0, answers[i].want == DOUBT, answers[i].id);
    }
}

/* A profile over the burst is given up after two tries, others have more. */
TEST(test_tries_of_a_rate_limit)
{
    struct answer_input in =
        input_of(PUSH, 429, CONNECT("resource_exhausted", "limit exceeded while adding 2.3 MiB"));
    struct answer a;
    answer_classify(&in, &a);
    CHECK_INT(a.tries, ANSWER_FEW_TRIES, "over");
    in = input_of(PUSH, 429, CONNECT("resource_exhausted", "limit exceeded while adding 1 MiB"));
    answer_classify(&in, &a);
    CHECK_INT(a.tries, ANSWER_RATE_TRIES, "under");
}

/* A long list of labels is cut before the end of the JSON; the id stands in front. */
TEST(test_profefe_long_answer)
{
    static const char head[] = "{\"code\":200,\"body\":{\"id\":\"bpc00\",\"labels\":[";
    char body[ANSWER_BODY_MAX + 1];
    memset(body, ' ', sizeof(body));
    body[ANSWER_BODY_MAX] = '\0';
    memcpy(body, head, sizeof(head) - 1);
    struct answer_input in = input_of(PROFEFE, 200, body);
    struct answer a;
    answer_classify(&in, &a);
    CHECK_INT(a.class, SENT, "cut");
    in.body.n = sizeof(head) - 1;
    answer_classify(&in, &a);
    CHECK_INT(a.class, DOUBT, "short and broken");
}

/* Profefe's words reach the log. */
TEST(test_profefe_text)
{
    struct answer_input in = input_of(PROFEFE, 400, "{\"code\":400,\"error\":\"bad request\"}");
    struct answer a;
    answer_classify(&in, &a);
    CHECK_STR(a.text, "HTTP 400: bad request", "");
}

int main(void)
{
    return testing_run("tests", setup, teardown);
}
