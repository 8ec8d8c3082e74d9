/* OTLP: what a profile becomes, and what answers mean. That every detail of a profile arrives is
 * the matter of `make otlp-diff`; here are the rules that the published messages do not know. */
#include "tests/unit/lib/pprof_writer.h"
#include "tests/unit/write/requests.h"

#include "pprof/gzip.h"
#include "pprof/proto/otlp.pb-c.h"
#include "write/answer.h"
#include "write/protocols/otlp.h"
#include "write/protocols/otlp_dictionary.h"

SCOPED_POINTER(profile, profile_unref)

static const struct config_pairs no_pairs = {.at = NULL, .n = 0};

/* ---- one request ----------------------------------------------------------------------------- */

struct made {
    struct otlp_encoder *encoder;
    Otlp__ExportRequest *request;
    struct err err;
};

static void begin(struct made *m, const struct otlp_options *o)
{
    *m = (struct made){.err = ERR_INIT};
    m->encoder = otlp_encoder_new(o, &m->err);
    assert_non_null(m->encoder);
}

/* Takes over the profile. */
static bool add(struct made *m, struct profile *p)
{
    struct series s;
    assert_true(series_build(&s, p->labels, &no_external, &default_limits, &protocol_otlp.labels));
    bool ok = otlp_encoder_add(m->encoder, &s, p, &m->err);
    series_done(&s);
    profile_unref(p);
    return ok;
}

static void finish(struct made *m)
{
    SCOPED(buf) out = testing_buf(1 << 26);
    assert_true(otlp_encoder_write(m->encoder, &out, &m->err));
    m->request = otlp__export_request__unpack(NULL, out.len, (const uint8_t *)out.data);
    assert_non_null(m->request);
}

static void done(struct made *m)
{
    if (m->request != NULL) {
        otlp__export_request__free_unpacked(m->request, NULL);
    }
    otlp_encoder_free(m->encoder);
}
SCOPED_VALUE(made, done)

static struct profile *cpu_with(const struct pair *pairs, size_t n)
{
    struct bytes b = from_hex(cpu_hex);
    return profile_of(labels_of(pairs, n), b.data, b.n);
}

static struct profile *cpu(void)
{
    const struct pair pairs[] = {{"service_name", "shop"}, {"__name__", "process_cpu"}};
    return cpu_with(pairs, 2);
}

static const Otlp__Profile *profile_at(const struct made *m, size_t resource, size_t i)
{
    const Otlp__ResourceProfiles *r = m->request->resource_profiles[resource];
    assert_int_equal(r->n_scope_profiles, 1);
    assert_true(i < r->scope_profiles[0]->n_profiles);
    return r->scope_profiles[0]->profiles[i];
}

static struct sv sv_of(ProtobufCBinaryData b)
{
    return (struct sv){.p = (const char *)b.data, .n = b.len};
}

/* "key=value key=value" */
static void check_pairs(Otlp__KeyValue *const *pairs, size_t n, const char *want)
{
    SCOPED(buf) out = testing_buf(4096);
    for (size_t i = 0; i < n; i++) {
        buf_printf(&out, "%s%.*s=%.*s", i > 0 ? " " : "", SV_ARG(sv_of(pairs[i]->key)),
                   SV_ARG(sv_of(pairs[i]->value->string_value)));
    }
    buf_putc(&out, '\0');
    CHECK_STR(out.data, want, "attributes");
}

static const struct otlp_options defaults = {.attributes = &no_pairs, .work_max = 1 << 24};

/* Profiles of one program have one dictionary, in which each entry is there once. */
TEST_WITH(test_dictionary_is_shared, setup, teardown)
{
    struct made one;
    SCOPED(made) two;
    begin(&one, &defaults);
    begin(&two, &defaults);
    assert_true(add(&one, cpu()));
    assert_true(add(&two, cpu()));
    assert_true(add(&two, cpu()));
    CHECK_INT(otlp_encoder_profiles(two.encoder), 4, "messages");
    finish(&one);
    finish(&two);
    const Otlp__Dictionary *a = one.request->dictionary;
    const Otlp__Dictionary *b = two.request->dictionary;
    CHECK_INT(two.request->n_resource_profiles, 2, "resources");
    CHECK_INT(b->n_string_table, a->n_string_table, "strings");
    CHECK_INT(b->n_function_table, a->n_function_table, "functions");
    CHECK_INT(b->n_location_table, a->n_location_table, "locations");
    CHECK_INT(b->n_stack_table, 2, "stacks");
    CHECK_INT(b->stack_table[0]->n_location_indices, 0, "stack 0");
    CHECK_INT(b->n_link_table, 1, "links");
    CHECK_INT(b->string_table[0].len, 0, "string 0");
    done(&one);
}

/* A profile whose only sample has the second of two locations. */
static struct profile *with_two_locations(void)
{
    static const char bytes[] = {
        0x0a, 4, 8,    1,   0x10, 2,            /* sample type */
        0x12, 6, 0x0a, 1,   2,    0x12, 1,   5, /* sample */
        0x22, 4, 8,    1,   0x18, 0x11,         /* locations */
        0x22, 4, 8,    2,   0x18, 0x22,         /* */
        0x32, 0, 0x32, 3,   'c',  'p',  'u',    /* strings */
        0x32, 2, 'n',  's',                     /* */
    };
    const struct pair pairs[] = {{"service_name", "shop"}};
    return profile_of(labels_of(pairs, 1), bytes, sizeof(bytes));
}

/* A profile with so many comments, before and after its samples, and frames to drop. */
static struct profile *with_comments(unsigned n)
{
    static const char samples[] = {
        0x0a, 4, 8,    1,   0x10, 2,        /* sample type */
        0x12, 3, 0x12, 1,   5,              /* sample */
        0x32, 0, 0x32, 3,   'c',  'p', 'u', /* strings */
        0x32, 2, 'n',  's', 0x38, 2,        /* and the frames to drop */
    };
    const struct pair pairs[] = {{"service_name", "shop"}};
    SCOPED(buf) b = testing_buf(4096);
    for (unsigned i = 0; i < n; i++) {
        if (i == n / 2) {
            buf_append(&b, samples, sizeof(samples));
        }
        buf_append(&b, "\x68\x01", 2);
    }
    return profile_of(labels_of(pairs, 1), b.data, b.len);
}

/* The fields of the profile itself are found wherever they are, whether the index notes all of them
 * or not. */
TEST_WITH(test_comments, setup, teardown)
{
    static const unsigned counts[] = {3, 20, 50};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        SCOPED(made) m;
        begin(&m, &defaults);
        assert_true(add(&m, with_comments(counts[i])));
        finish(&m);
        CHECK_INT(profile_at(&m, 0, 0)->n_attribute_indices, counts[i] + 1, "attributes");
    }
}

/* Locations have the order of the profile, not that of its samples. */
TEST_WITH(test_locations_in_order, setup, teardown)
{
    SCOPED(made) m;
    begin(&m, &defaults);
    assert_true(add(&m, with_two_locations()));
    finish(&m);
    const Otlp__Dictionary *d = m.request->dictionary;
    CHECK_INT(d->n_location_table, 3, "locations");
    CHECK_INT(d->location_table[1]->address, 0x11, "the first");
    CHECK_INT(d->location_table[2]->address, 0x22, "the second");
    CHECK_INT(d->n_stack_table, 2, "stacks");
    CHECK_INT(d->stack_table[1]->n_location_indices, 1, "frames");
    CHECK_INT(d->stack_table[1]->location_indices[0], 2, "the second location");
}

TEST_WITH(test_samples_of_each_type, setup, teardown)
{
    SCOPED(made) m;
    begin(&m, &defaults);
    assert_true(add(&m, cpu()));
    finish(&m);
    const Otlp__Dictionary *d = m.request->dictionary;
    static const char *const types[] = {"samples", "cpu"};
    static const int64_t values[] = {5, 50000000};
    for (size_t i = 0; i < 2; i++) {
        const Otlp__Profile *p = profile_at(&m, 0, i);
        assert_true(sv_eq_str(sv_of(d->string_table[p->sample_type->type_strindex]), types[i]));
        CHECK_INT(p->n_samples, 1, types[i]);
        CHECK_INT(p->samples[0]->n_values, 1, types[i]);
        CHECK_INT(p->samples[0]->values[0], values[i], types[i]);
        CHECK_INT(p->samples[0]->stack_index, 1, types[i]);
        CHECK_INT(p->profile_id.len, 16, types[i]);
        CHECK_INT(p->original_payload.len, 0, types[i]);
    }
    assert_memory_not_equal(profile_at(&m, 0, 0)->profile_id.data,
                            profile_at(&m, 0, 1)->profile_id.data, 16);
}

/* A request that is repeated has the same ids; another series, or another time, has others. */
TEST_WITH(test_ids, setup, teardown)
{
    SCOPED(made) m;
    const struct pair other[] = {{"service_name", "cart"}, {"__name__", "process_cpu"}};
    struct profile *later = cpu();
    later->from_ns++;
    begin(&m, &defaults);
    assert_true(add(&m, cpu()) && add(&m, cpu()) && add(&m, cpu_with(other, 2)) && add(&m, later));
    finish(&m);
    const uint8_t *first = profile_at(&m, 0, 0)->profile_id.data;
    assert_memory_equal(profile_at(&m, 1, 0)->profile_id.data, first, 16);
    assert_memory_not_equal(profile_at(&m, 2, 0)->profile_id.data, first, 16);
    assert_memory_not_equal(profile_at(&m, 3, 0)->profile_id.data, first, 16);
}

/* ---- resource and scope ---------------------------------------------------------------------- */

TEST_WITH(test_resource, setup, teardown)
{
    static const struct config_pair own[] = {
        {"team", "team.name"}, {"job", ""}, {"pod", "pod"}, {"host", "host.name"}};
    const struct config_pairs table_of = {own, 4};
    const struct otlp_options o = {.attributes = &table_of, .work_max = 1 << 24};
    const struct pair pairs[] = {{"service_name", "shop"},
                                 {"__name__", "memory"},
                                 {"__delta__", "false"},
                                 {"namespace", "prod"},
                                 {"pod", "shop-1"},
                                 {"job", "pods"},
                                 {"team", "blue"},
                                 {"zone", "eu"},
                                 /* One name of each of these pairs is taken. */
                                 {"k8s.namespace.name", "x"},
                                 {"host", "a"},
                                 {"hostname", "b"}};
    SCOPED(made) m;
    begin(&m, &o);
    assert_true(add(&m, cpu_with(pairs, sizeof(pairs) / sizeof(pairs[0]))));
    finish(&m);
    const Otlp__ResourceProfiles *r = m.request->resource_profiles[0];
    check_pairs(r->resource->attributes, r->resource->n_attributes,
                "host.name=a k8s.namespace.name=prod pod=shop-1 service.name=shop team.name=blue "
                "zone=eu");
    const Otlp__Scope *scope = r->scope_profiles[0]->scope;
    assert_true(sv_eq_str(sv_of(scope->name), "profpull"));
    assert_true(sv_eq_str(sv_of(scope->version), PROFPULL_VERSION));
    check_pairs(scope->attributes, scope->n_attributes, "pprof.profile.name=memory");
}

/* ---- times ----------------------------------------------------------------------------------- */

static void check_window(bool is_delta, int64_t time_nanos, uint64_t from, uint64_t duration)
{
    static const struct pprof_row rows[] = {{"main", NULL, {1}}};
    const struct pprof_spec spec = {
        .types = "alloc_space/bytes", .time_nanos = time_nanos, .duration_nanos = 7};
    const struct pair pairs[] = {{"service_name", "shop"}, {"__name__", "memory"}};
    SCOPED(made) m;
    SCOPED(buf) body = pprof_make(&spec, rows, 1);
    struct profile *p = profile_of(labels_of(pairs, 2), body.data, body.len);
    p->is_delta = is_delta;
    begin(&m, &defaults);
    assert_true(add(&m, p));
    finish(&m);
    CHECK_INT(profile_at(&m, 0, 0)->time_unix_nano, from, "time");
    CHECK_INT(profile_at(&m, 0, 0)->duration_nano, duration, "duration");
}

/* A delta's window is the agent's; others have their own times, as far as they do. */
TEST_WITH(test_window, setup, teardown)
{
    check_window(false, 1234, 1234, 7);
    check_window(false, 0, WALL_S * NS_PER_S, 7);
    check_window(true, 1234, WALL_S * NS_PER_S, 10 * NS_PER_S);
}

/* ---- what is odd ----------------------------------------------------------------------------- */

/* Texts that are not UTF-8 would make a server refuse the whole request. */
TEST_WITH(test_repair, setup, teardown)
{
    struct bytes b = from_hex(cpu_hex);
    char *name = memmem(b.data, b.n, "main.go", 7);
    name[0] = '\xff';
    name[1] = '\0';
    const struct pair pairs[] = {{"service_name", "shop"}, {"__name__", "process_cpu"}};
    SCOPED(made) m;
    begin(&m, &defaults);
    assert_true(add(&m, profile_of(labels_of(pairs, 2), b.data, b.n)));
    finish(&m);
    const Otlp__Dictionary *d = m.request->dictionary;
    struct sv file = sv_of(d->string_table[d->function_table[1]->filename_strindex]);
    assert_true(sv_eq(file, SV("\xef\xbf\xbd\0in.go")));
}

/* One that is damaged leaves the request as it was. */
TEST_WITH(test_damaged, setup, teardown)
{
    static const char nowhere[] =
        "\x0a\x02\x08\x01\x12\x06\x0a\x01\x09\x12\x01\x07\x32\x00\x32\x01x";
    struct bytes b = from_hex(cpu_hex);
    SCOPED(made) m;
    const struct pair pairs[] = {{"service_name", "shop"}};
    begin(&m, &defaults);
    assert_true(add(&m, cpu()));
    assert_false(add(&m, profile_of(labels_of(pairs, 1), b.data, b.n - 1)));
    CHECK_INT(m.err.kind, ERR_INPUT, "kind");
    m.err = (struct err)ERR_INIT;
    assert_false(add(&m, profile_of(labels_of(pairs, 1), nowhere, sizeof(nowhere) - 1)));
    CHECK_INT(m.err.kind, ERR_INPUT, "kind");
    CHECK_CONTAINS(m.err.msg, "location 9 is not there", "");
    CHECK_INT(otlp_encoder_profiles(m.encoder), 2, "messages");
    finish(&m);
    CHECK_INT(m.request->n_resource_profiles, 1, "resources");
    CHECK_INT(m.request->dictionary->n_stack_table, 2, "stacks");
}

/* A request does not grow beyond what it may be made in. */
TEST_WITH(test_limit, setup, teardown)
{
    const struct otlp_options o = {.attributes = &no_pairs, .work_max = 4096};
    SCOPED(made) m;
    size_t n = 0;
    begin(&m, &o);
    while (n < 100 && add(&m, cpu())) {
        n++;
    }
    assert_in_range(n, 1, 99);
    CHECK_INT(m.err.kind, ERR_LIMIT, m.err.msg);
    finish(&m);
    CHECK_INT(m.request->n_resource_profiles, n, "resources");
}

/* Memory that is kept from one request does not reduce that of the next. */
TEST(test_kept_memory)
{
    enum { LENGTH = 30000, MAX = 48 * 1024 };
    struct otlp_dictionary d;
    struct err err = ERR_INIT;
    uint32_t number;
    SCOPED_MEMORY char *bytes = testing_memory(LENGTH);
    const struct sv text = {memset(bytes, 'x', LENGTH), LENGTH};
    assert_true(otlp_dictionary_init(&d, MAX, &err));
    assert_true(otlp_text(&d, text, &number, &err));
    assert_true(otlp_dictionary_reset(&d, &err));
    bool ok = otlp_text_attribute(&d, "name", text, &number, &err);
    CHECK_STR(err.msg, "", "second request");
    assert_true(ok);
    otlp_dictionary_done(&d);
}

/* ---- whole requests -------------------------------------------------------------------------- */

static struct config_endpoint endpoint_of(unsigned compression)
{
    return (struct config_endpoint){.url = "http://collector:4318/",
                                    .protocol = &protocol_otlp.config,
                                    .tenant_id = "team-a",
                                    .otlp_compression = compression,
                                    .otlp_original_payload = true};
}

static bool has_header(const struct request *r, const char *name, const char *value)
{
    for (size_t i = 0; i < r->n_headers; i++) {
        if (strcmp(r->headers[i].name, name) == 0 && strcmp(r->headers[i].value, value) == 0) {
            return true;
        }
    }
    return false;
}

static void check_request(unsigned compression, struct request_memory *memory)
{
    const struct config_endpoint e = endpoint_of(compression);
    struct series s;
    struct request r;
    SCOPED(profile) *p = cpu();
    assert_true(series_build(&s, p->labels, &no_external, &default_limits, &protocol_otlp.labels));
    struct request_part part = {.series = &s, .profile = p};
    assert_int_equal(request_build_many(&r, &e, &part, 1, memory), REQUEST_OK);
    CHECK_STR(r.url.data, "http://collector:4318/v1development/profiles", "URL");
    assert_true(has_header(&r, "Content-Type", "application/x-protobuf"));
    assert_true(has_header(&r, "X-Scope-OrgID", "team-a"));
    assert_int_equal(has_header(&r, "Content-Encoding", "gzip"), compression == OTLP_GZIP);
    CHECK_INT(r.n_messages, 2, "messages");
    SCOPED(scratch) *scratch = scratch_new();
    struct sv plain;
    assert_true(
        gzip_plain(scratch, (struct sv){r.body[1].data, r.body[1].len}, 1 << 20, 0, &plain, NULL));
    Otlp__ExportRequest *m = otlp__export_request__unpack(NULL, plain.n, (const uint8_t *)plain.p);
    assert_non_null(m);
    Otlp__Profile *const *profiles = m->resource_profiles[0]->scope_profiles[0]->profiles;
    assert_true(sv_eq_str(sv_of(profiles[0]->original_payload_format), "pprof"));
    assert_true(sv_eq(sv_of(profiles[0]->original_payload), (struct sv){p->data, p->size}));
    CHECK_INT(profiles[1]->original_payload.len, 0, "the others do not have it");
    otlp__export_request__free_unpacked(m, NULL);
    request_done(&r);
    series_done(&s);
}

TEST_WITH(test_request, setup, teardown)
{
    struct request_memory memory = {.kept = NULL};
    for (size_t i = 0; i < 2; i++) { /* the second time in the memory of the first */
        check_request(OTLP_GZIP, &memory);
        check_request(OTLP_PLAIN, &memory);
        assert_non_null(memory.kept);
    }
    request_memory_done(&memory);
    assert_null(memory.kept);
}

TEST_WITH(test_weight, setup, teardown)
{
    struct config_endpoint e = endpoint_of(OTLP_PLAIN);
    SCOPED(profile) *p = cpu();
    e.otlp_original_payload = false;
    CHECK_INT(protocol_otlp.weigh(&e, p), p->size, "plain");
    e.otlp_original_payload = true;
    CHECK_INT(protocol_otlp.weigh(&e, p), 2 * p->size, "with the original");
}

/* ---- answers --------------------------------------------------------------------------------- */

static struct answer answer_to(long status, const char *type, const char *body, size_t n)
{
    const struct answer_input in = {.protocol = &protocol_otlp,
                                    .retry_on_429 = true,
                                    .status = status,
                                    .error = "",
                                    .content_type = type,
                                    .location = "",
                                    .retry_after_ms = -1,
                                    .body = {.p = body, .n = n}};
    struct answer a;
    answer_classify(&in, &a);
    return a;
}

TEST_WITH(test_answers, setup, teardown)
{
#define PROTO "application/x-protobuf"
#define STATUS "\x08\x03\x12\x07no good"
#define PARTIAL "\x0a\x09\x08\x02\x12\x05stale"
#define JSON_PARTIAL "{\"partialSuccess\":{\"rejectedProfiles\":\"2\",\"errorMessage\":\"stale\"}}"
    static const struct {
        long status;
        const char *type, *body;
        enum answer_class class;
        uint64_t refused;
        const char *text;
    } cases[] = {
        {200, PROTO, "", ANSWER_SENT, 0, ""},
        {200, "application/x-protobuf; charset=utf-8", "", ANSWER_SENT, 0, ""},
        {200, "application/json", "{}", ANSWER_SENT, 0, ""},
        {202, "", "", ANSWER_SENT, 0, ""},
        {200, PROTO, PARTIAL, ANSWER_SENT, 2, "HTTP 200, 2 not accepted: stale"},
        {200, "application/json", JSON_PARTIAL, ANSWER_SENT, 2, "HTTP 200, 2 not accepted: stale"},
        {200, PROTO, "\x0a\x07\x12\x05hello", ANSWER_SENT, 0, "HTTP 200, 0 not accepted: hello"},
        {200, PROTO, "\x0a\xff", ANSWER_SENT, 0, ""},
        {200, "text/html", "<html>sign in", ANSWER_RETRY_DOUBTFUL, 0,
         "HTTP 200 with content type \"text/html\": not the answer of a profile store"},
        {200, "text/plain", "ok", ANSWER_RETRY_DOUBTFUL, 0,
         "HTTP 200 with content type \"text/plain\": not the answer of a profile store"},
        {400, PROTO, STATUS, ANSWER_REJECTED, 0, "HTTP 400: no good"},
        {400, "application/json", "{\"code\":3,\"message\":\"no good\"}", ANSWER_REJECTED, 0,
         "HTTP 400: no good"},
        {400, "text/plain", "no good", ANSWER_REJECTED, 0, "HTTP 400: no good"},
        {413, PROTO, "", ANSWER_REJECTED, 0, "HTTP 413"},
        {415, PROTO, "", ANSWER_REJECTED, 0, "HTTP 415"},
        {500, PROTO, STATUS, ANSWER_REJECTED, 0, "HTTP 500: no good"},
        {501, PROTO, "", ANSWER_REJECTED, 0, "HTTP 501"},
        {429, PROTO, "", ANSWER_RETRY_DOUBTFUL, 0, "HTTP 429"},
        {502, PROTO, "", ANSWER_RETRY, 0, "HTTP 502"},
        {503, PROTO, STATUS, ANSWER_RETRY, 0, "HTTP 503: no good"},
        {504, PROTO, "", ANSWER_RETRY, 0, "HTTP 504"},
        {401, PROTO, "", ANSWER_RETRY, 0, "HTTP 401"},
        {404, "text/plain", "404 page not found", ANSWER_RETRY, 0, "HTTP 404: 404 page not found"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct answer a =
            answer_to(cases[i].status, cases[i].type, cases[i].body, strlen(cases[i].body));
        CHECK_INT(a.class, cases[i].class, cases[i].text);
        CHECK_INT(a.refused, cases[i].refused, cases[i].text);
        CHECK_STR(a.text, cases[i].text, "text");
    }
    CHECK_INT(answer_to(413, PROTO, "", 0).fault, ANSWER_FAULT_TOO_LARGE, "413");
}
