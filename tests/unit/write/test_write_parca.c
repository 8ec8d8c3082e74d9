/* Parca: the request byte for byte, what is mended in a profile, and what answers of gRPC mean. */
#include "tests/unit/write/requests.h"

#include "base/str.h"
#include "pprof/gzip.h"
#include "pprof/summary.h"
#include "write/answer.h"
#include "write/grpc.h"
#include "write/protocols/parca.h"

SCOPED_POINTER(scratch, scratch_free)
SCOPED_VALUE(grpc_end, grpc_end_done)

static struct config_endpoint endpoint(void)
{
    return (struct config_endpoint){
        .url = "http://parca:7070", .protocol = &protocol_parca.config, .remote_timeout_ms = 10000};
}

static struct profile *cpu_of(const struct pair *pairs, size_t n)
{
    struct bytes b = from_hex(cpu_hex);
    return profile_of(labels_of(pairs, n), b.data, b.n);
}

static struct sv part(const struct sent *s, size_t i)
{
    return (struct sv){.p = s->request.body[i].data, .n = s->request.body[i].len};
}

static void assert_bytes(struct sv got, const char *want, size_t n)
{
    assert_int_equal(got.n, n);
    assert_memory_equal(got.p, want, n);
}

TEST_WITH(test_request, setup, teardown)
{
    static const struct pair pairs[] = {{"__name__", "process_cpu"},
                                        {"service_name", "shop"},
                                        {"__delta__", "false"},
                                        {"a.b-c", "\xc3\xa9"}};
    /* The frame; the series (field 2 of the request) with labels (1), each a name and a value, and
     * a sample (2) with the profile (1). */
    static const char head[] = "\x00\x00\x00\x00\xc9"
                               "\x12\xc6\x01"
                               "\x0a\x3c"
                               "\x0a\x17\x0a\x08__name__\x12\x0bprocess_cpu"
                               "\x0a\x0b\x0a\x05"
                               "a_b_c\x12\x02\xc3\xa9"
                               "\x0a\x14\x0a\x0cservice_name\x12\x04shop"
                               "\x12\x85\x01\x0a\x82\x01";
    struct config_endpoint e = endpoint();
    struct bytes cpu = from_hex(cpu_hex);
    struct sent s;
    send_profile(&s, &e, cpu_of(pairs, 4), NULL);
    assert_int_equal(s.status, REQUEST_OK);
    assert_string_equal(
        s.request.url.data,
        "http://parca:7070/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw");
    assert_bytes(part(&s, 0), head, sizeof(head) - 1);
    assert_bytes(part(&s, 1), cpu.data, cpu.n);
    assert_int_equal(part(&s, 2).n, 0);
    static const struct http_header want[] = {
        {"Content-Type", "application/grpc"}, {"TE", "trailers"}, {"grpc-timeout", "10000m"}};
    assert_int_equal(s.request.n_headers, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(s.request.headers[i].name, want[i].name);
        assert_string_equal(s.request.headers[i].value, want[i].value);
    }
    release(&s);
}

TEST_WITH(test_not_sent, setup, teardown)
{
    static const struct pair nameless[] = {{"service_name", "shop"}};
    static const struct pair named[] = {{"__name__", "mine"}, {"service_name", "shop"}};
    static const char cut[] = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x01";
    struct config_endpoint e = endpoint();
    struct sent s;
    send_profile(&s, &e, cpu_of(nameless, 1), NULL);
    assert_int_equal(s.status, REQUEST_BAD_LABELS);
    release(&s);
    send_profile(&s, &e, profile_of(labels_of(named, 2), cut, sizeof(cut) - 1), NULL);
    assert_int_equal(s.status, REQUEST_DAMAGED);
    release(&s);
    send_profile(&s, &e, profile_of(labels_of(named, 2), "\x0a\x7f", 2), NULL);
    assert_int_equal(s.status, REQUEST_DAMAGED);
    release(&s);
}

/* A timeout that eight digits cannot say is left out. */
TEST(test_timeout)
{
    char text[16];
    grpc_timeout(99999999, text);
    assert_string_equal(text, "99999999m");
    grpc_timeout(100000000, text);
    assert_string_equal(text, "");
    grpc_timeout(0, text);
    assert_string_equal(text, "");
}

/* ---- what is mended -------------------------------------------------------------------------- */

/* A sample in a location of id 900, whose function has id 70; no period type. */
static const char odd[] = "\x32\x00\x32\x07samples\x32\x05"
                          "count\x32\x04main"
                          "\x0a\x04\x08\x01\x10\x02"
                          "\x12\x05\x08\x84\x07\x10\x2a"
                          "\x22\x09\x08\x84\x07\x22\x04\x08\x46\x10\x05"
                          "\x2a\x04\x08\x46\x10\x03";

static struct sv inflated(struct scratch *s, struct sv body)
{
    struct err err = ERR_INIT;
    struct sv plain;
    assert_true(gzip_plain(s, body, 1 << 20, 0, &plain, &err));
    return plain;
}

TEST(test_ids_and_period_type)
{
    SCOPED(scratch) *s = scratch_new();
    struct err err = ERR_INIT;
    struct parca_repair r;
    assert_true(parca_repair((struct sv){odd, sizeof(odd) - 1}, &r, &err));
    assert_non_null(r.data);
    struct sv plain = inflated(s, (struct sv){r.data, r.size});
    struct wire_reader reader = wire_reader_of(plain);
    struct wire_field f;
    uint64_t ids[PROFILE_FUNCTION + 1] = {0};
    uint64_t values = 0;
    while (wire_next(&reader, &f)) {
        uint64_t v[3] = {0};
        wire_read_numbers(f.bytes, v, 3);
        if (f.number >= PROFILE_MAPPING && f.number <= PROFILE_FUNCTION) {
            assert_int_equal(v[1], ++ids[f.number]);
        }
        values += f.number == PROFILE_SAMPLE;
    }
    assert_int_equal(ids[PROFILE_LOCATION], 1);
    assert_int_equal(ids[PROFILE_FUNCTION], 1);
    assert_int_equal(values, 1);

    /* The bytes that are sent are read as one profile, with a period type. */
    SCOPED(buf) whole = testing_buf(1 << 16);
    buf_append(&whole, r.data, r.size);
    buf_append(&whole, r.suffix.p, r.suffix.n);
    plain = inflated(s, (struct sv){whole.data, whole.len});
    assert_true(sv_ends_with(plain, (struct sv){"\x5a\x00", 2}));
    free(r.data);
}

/* Two samples of one location: the first has the labels "a"="b" and one without a key that is a
 * text, the second only a number without a key. With `odd_ids`, the location has the id 900. */
static struct buf with_keyless_labels(bool odd_ids)
{
    struct buf b = testing_buf(1 << 10);
    buf_append(&b,
               "\x32\x00\x32\x07samples\x32\x05"
               "count\x32\x01"
               "a\x32\x01"
               "b",
               24);
    buf_append(&b, "\x0a\x04\x08\x01\x10\x02", 6);
    buf_append(&b, odd_ids ? "\x12\x13\x08\x84\x07" : "\x12\x13\x08\x81\x00", 5);
    buf_append(&b, "\x10\x2a\x1a\x04\x08\x03\x10\x04\x1a\x06\x10\x04\x18\x00\x18\x00", 16);
    buf_append(&b, odd_ids ? "\x12\x09\x08\x84\x07" : "\x12\x09\x08\x81\x00", 5);
    buf_append(&b, "\x10\x07\x1a\x02\x18\x05", 6);
    buf_append(&b, odd_ids ? "\x22\x03\x08\x84\x07" : "\x22\x03\x08\x81\x00", 5);
    buf_append(&b, "\x5a\x00", 2);
    return b;
}

static void count_labels(struct sv sample, int *labels, int *keyless)
{
    struct wire_reader r = wire_reader_of(sample);
    struct wire_field f;
    while (wire_next(&r, &f)) {
        uint64_t v[3] = {0};
        if (f.number == SAMPLE_LABEL) {
            wire_read_numbers(f.bytes, v, 3);
            ++*labels;
            *keyless += v[LABEL_KEY] == 0;
        }
    }
}

/* A server refuses the whole profile for one label without a key: only that label is left out. */
TEST(test_labels_without_key)
{
    for (int odd_ids = 0; odd_ids < 2; odd_ids++) {
        SCOPED(scratch) *s = scratch_new();
        struct err err = ERR_INIT;
        struct parca_repair r;
        SCOPED(buf) body = with_keyless_labels(odd_ids != 0);
        assert_true(buf_ok(&body));
        assert_true(parca_repair((struct sv){body.data, body.len}, &r, &err));
        assert_non_null(r.data);
        assert_int_equal(r.suffix.n, 0);
        struct sv plain = inflated(s, (struct sv){r.data, r.size});
        struct wire_reader reader = wire_reader_of(plain);
        struct wire_field f;
        int samples = 0;
        int labels = 0;
        int keyless = 0;
        while (wire_next(&reader, &f)) {
            uint64_t v[2] = {0};
            if (f.number == PROFILE_SAMPLE) {
                samples++;
                count_labels(f.bytes, &labels, &keyless);
            } else if (f.number == PROFILE_LOCATION) {
                wire_read_numbers(f.bytes, v, 2);
                CHECK_INT(v[1], 1, "id of the location");
            }
        }
        CHECK_INT(samples, 2, "");
        CHECK_INT(labels, 1, "the label with a key stays");
        CHECK_INT(keyless, 0, "");
        free(r.data);
    }
}

TEST(test_period_type_alone)
{
    struct bytes cpu = from_hex(cpu_hex);
    struct err err = ERR_INIT;
    struct parca_repair r;
    assert_true(parca_repair((struct sv){cpu.data, cpu.n}, &r, &err));
    assert_null(r.data);
    assert_int_equal(r.suffix.n, 0);
    /* Its period type and period are the last two fields: 8 bytes before them are the duration. */
    struct sv bare = {cpu.data, cpu.n - 11};
    assert_true(parca_repair(bare, &r, &err));
    assert_null(r.data);
    assert_bytes(r.suffix, "\x5a\x00", 2);
}

/* ---- answers --------------------------------------------------------------------------------- */

struct row {
    const char *status; /* grpc-status */
    const char *message;
    enum answer_class want;
    enum answer_scope scope;
    enum answer_fault fault;
    long as; /* the status of HTTP that it stands for */
    const char *text;
};

#define OF_ENDPOINT ANSWER_OF_ENDPOINT
#define OF_TENANT ANSWER_OF_TENANT
#define OF_PROFILE ANSWER_OF_PROFILE

static const struct row rows[] = {
    {"0", "", ANSWER_SENT, OF_PROFILE, 0, 200, ""},
    {"1", "m", ANSWER_RETRY, OF_ENDPOINT, 0, 499, "gRPC canceled: m"},
    {"2", "m", ANSWER_RETRY_DOUBTFUL, OF_PROFILE, 0, 500, "gRPC unknown: m"},
    {"2", "rpc error: code = Unavailable desc = x", ANSWER_RETRY, OF_ENDPOINT, 0, 500, "x"},
    {"3", "bad%20label%0a%zz%", ANSWER_REJECTED, OF_PROFILE, 0, 400,
     "gRPC invalid_argument: bad label %zz%"},
    {"4", "", ANSWER_RETRY, OF_ENDPOINT, 0, 504, "gRPC deadline_exceeded"},
    {"5", "", ANSWER_RETRY, OF_TENANT, 0, 404, "gRPC not_found"},
    {"6", "", ANSWER_REJECTED, OF_PROFILE, 0, 400, "gRPC already_exists"},
    {"7", "", ANSWER_RETRY, OF_TENANT, 0, 403, "gRPC permission_denied"},
    {"8", "slow down", ANSWER_RETRY_DOUBTFUL, OF_TENANT, 0, 429, "gRPC resource_exhausted"},
    {"8", "grpc: received message larger than max (5 vs. 4)", ANSWER_REJECTED, OF_PROFILE,
     ANSWER_FAULT_TOO_LARGE, 429, "larger than max"},
    {"9", "", ANSWER_RETRY_DOUBTFUL, OF_PROFILE, 0, 409, "gRPC failed_precondition"},
    {"10", "", ANSWER_RETRY_DOUBTFUL, OF_PROFILE, 0, 409, "gRPC aborted"},
    {"11", "", ANSWER_REJECTED, OF_PROFILE, 0, 400, "gRPC out_of_range"},
    {"12", "", ANSWER_RETRY, OF_TENANT, 0, 404, "gRPC unimplemented"},
    {"13", "", ANSWER_RETRY_DOUBTFUL, OF_PROFILE, 0, 500, "gRPC internal"},
    {"14", "", ANSWER_RETRY, OF_ENDPOINT, 0, 503, "gRPC unavailable"},
    {"15", "", ANSWER_RETRY_DOUBTFUL, OF_PROFILE, 0, 500, "gRPC data_loss"},
    {"16", "no token", ANSWER_RETRY, OF_TENANT, 0, 401, "gRPC unauthenticated: no token"},
    {"17", "", ANSWER_RETRY_DOUBTFUL, OF_PROFILE, 0, 500, "gRPC unknown"},
    {"no", "", ANSWER_RETRY_DOUBTFUL, OF_PROFILE, 0, 500, "gRPC unknown"},
};

static struct answer_input input(const struct grpc_end *e)
{
    return (struct answer_input){.protocol = &protocol_parca,
                                 .retry_on_429 = true,
                                 .result = HTTP_DONE,
                                 .status = 200,
                                 .error = "",
                                 .content_type = "application/grpc",
                                 .location = "",
                                 .retry_after_ms = -1,
                                 .grpc_status = sv_from(e->status),
                                 .grpc_message = {e->message.data, e->message.len},
                                 .wall_ns = WALL_S * NS_PER_S};
}

TEST(test_codes)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *r = &rows[i];
        SCOPED(grpc_end) e;
        struct answer a;
        grpc_end_init(&e);
        grpc_end_take(&e, SV("Grpc-Status"), sv_from(r->status));
        grpc_end_take(&e, SV("grpc-message"), sv_from(r->message));
        grpc_end_take(&e, SV("grpc-status-details-bin"), SV("1"));
        struct answer_input in = input(&e);
        answer_classify(&in, &a);
        CHECK_INT(a.class, r->want, r->status);
        CHECK_INT(a.scope, r->scope, r->status);
        CHECK_INT(a.fault, r->fault, r->status);
        CHECK_INT(a.status, r->as, r->status);
        assert_non_null(strstr(a.text, r->text));
    }
}

/* A proxy speaks HTTP; an answer that broke off is none. */
TEST(test_without_status)
{
    SCOPED(grpc_end) e;
    struct answer a;
    grpc_end_init(&e);
    struct answer_input in = input(&e);
    answer_classify(&in, &a); /* a 200 of something else */
    assert_int_equal(a.class, ANSWER_RETRY_DOUBTFUL);
    assert_non_null(strstr(a.text, "not the answer of a profile store"));
    in.result = HTTP_ERR_CUT;
    in.error = "the connection broke";
    answer_classify(&in, &a);
    assert_int_equal(a.class, ANSWER_RETRY);
    assert_int_equal(a.scope, ANSWER_OF_ENDPOINT);
    assert_false(a.answered);
    in.result = HTTP_ERR_PROTOCOL;
    in.stream_ended = true;
    in.status = 0;
    answer_classify(&in, &a);
    assert_int_equal(a.class, ANSWER_RETRY_DOUBTFUL);
    assert_int_equal(a.scope, ANSWER_OF_PROFILE);
    assert_string_equal(a.text, "the server has ended the request: the connection broke");
    /* The head was lost, the trailers were not. */
    grpc_end_take(&e, SV("grpc-status"), SV("3"));
    in.grpc_status = sv_from(e.status);
    answer_classify(&in, &a);
    assert_int_equal(a.class, ANSWER_REJECTED);
    in = input(&e);
    in.grpc_status = SV("");
    in.status = 503;
    in.body = SV("no upstream");
    answer_classify(&in, &a);
    assert_int_equal(a.class, ANSWER_RETRY);
    assert_string_equal(a.text, "HTTP 503: no upstream");
}
