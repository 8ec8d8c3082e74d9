/* The bytes of a push request, against examples that protoc made and a decoder of our own. */
#include "tests/unit/lib/testing.h"

#include "tests/unit/write/protobuf_reader.h"
#include "tests/unit/write/requests.h"
#include "write/protocols/push.h"

static void put_hex(struct buf *out, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "%02x", p[i]);
    }
}

#define ID "734fd599-6865-419e-9475-932762d8f469"
#define ID_HEX "122437333466643539392d363836352d343139652d393437352d393332373632643866343639"

/* The whole request: prefix, profile, suffix. */
static void encode(struct labels *l, struct sv profile, struct buf *out)
{
    SCOPED(series) s;
    assert_true(series_build(&s, l, &no_external, &default_limits, &protocol_push.labels));
    SCOPED(buf) prefix = testing_buf(1 << 20);
    SCOPED(buf) suffix = testing_buf(1 << 20);
    assert_true(push_encode(&s, profile.n, ID, &prefix, &suffix));
    buf_append(out, prefix.data, prefix.len);
    buf_append(out, profile.p, profile.n);
    buf_append(out, suffix.data, suffix.len);
    assert_true(buf_ok(out));
}

TEST_WITH(test_request_of_two_labels, setup, teardown)
{
    SCOPED(labels) *l =
        testing_labels(table, "__name__", "process_cpu", "service_name", "demo", NULL);
    SCOPED(buf) out = testing_buf(1 << 20);
    SCOPED(buf) hex = testing_buf(1 << 20);
    encode(l, (struct sv){.p = "\x1f\x8b\x08\x00", .n = 4}, &out);
    put_hex(&hex, out.data, out.len);
    CHECK_STR(hex.data,
              "0a5d0a170a085f5f6e616d655f5f120b70726f636573735f6370750a140a0c736572766963655f6e616d"
              "65120464656d6f122c0a041f8b0800" ID_HEX,
              "");
    CHECK_INT(out.len, 95, "");
}

TEST_WITH(test_request_of_four_labels, setup, teardown)
{
    struct bytes cpu = from_hex(cpu_hex);
    CHECK_INT(cpu.n, 130, "");
    SCOPED(labels) *l = testing_labels(table, "__name__", "memory", "service_name", "shop.cart",
                                       "instance", "10.1.2.3:6060", "__delta__", "false", NULL);
    SCOPED(buf) out = testing_buf(1 << 20);
    SCOPED(buf) hex = testing_buf(1 << 20);
    encode(l, (struct sv){.p = cpu.data, .n = cpu.n}, &out);
    put_hex(&hex, out.data, out.len);
    static const char head[] =
        "0a8c020a120a095f5f64656c74615f5f120566616c73650a120a085f5f6e616d655f5f12066d656d6f72790a19"
        "0a08696e7374616e6365120d31302e312e322e333a363036300a190a0c736572766963655f6e616d6512097368"
        "6f702e6361727412ab010a8201";
    CHECK_INT(out.len, 271, "");
    CHECK_INT(strncmp(hex.data, head, strlen(head)), 0, hex.data);
    CHECK_INT(strncmp(hex.data + strlen(head), cpu_hex, strlen(cpu_hex)), 0, hex.data);
    CHECK_STR(hex.data + strlen(head) + strlen(cpu_hex), ID_HEX, "");
}

/* Sizes that need varints of two and three bytes at every level. */
TEST_WITH(test_large_varints, setup, teardown)
{
    static char profile[20000];
    char value[201] = "";
    memset(profile, 'x', sizeof(profile));
    memset(value, 'v', 200);
    SCOPED(labels) *l =
        testing_labels(table, "__name__", "block", "service_name", "s", "a", value, NULL);
    SCOPED(buf) out = testing_buf(1 << 20);
    SCOPED(buf) hex = testing_buf(1 << 20);
    encode(l, (struct sv){.p = profile, .n = sizeof(profile)}, &out);
    CHECK_INT(out.len, 20297, "");
    put_hex(&hex, out.data, 30);
    CHECK_STR(hex.data, "0ac59e010a110a085f5f6e616d655f5f1205626c6f636b0ace010a016112", "");
    buf_clear(&hex);
    put_hex(&hex, out.data + 259 - 27, 27);
    CHECK_STR(hex.data, "0a110a0c736572766963655f6e616d6512017312ca9c010aa09c01", "");
}

/* ---- read back, so that more than three examples are checked --------------------------------- */

static void check_label(struct sv pair, struct series_label want)
{
    struct field name = next_field(&pair);
    struct field value = next_field(&pair);
    CHECK_INT(pair.n, 0, "");
    CHECK_INT(name.number, 1, "");
    CHECK_INT(value.number, 2, "");
    assert_true(sv_eq(name.content, want.name));
    assert_true(sv_eq(value.content, want.value));
}

static void check_request(struct sv request, const struct series *s, struct sv profile)
{
    struct field series = next_field(&request);
    CHECK_INT(series.number, 1, "");
    CHECK_INT(request.n, 0, "one series");
    for (size_t i = 0; i < s->n; i++) {
        struct field f = next_field(&series.content);
        CHECK_INT(f.number, 1, "");
        check_label(f.content, s->at[i]);
    }
    struct field f = next_field(&series.content);
    CHECK_INT(f.number, 2, "");
    CHECK_INT(series.content.n, 0, "one sample");
    struct field raw = next_field(&f.content);
    CHECK_INT(raw.number, 1, "");
    assert_true(sv_eq(raw.content, profile));
    struct field id = next_field(&f.content);
    CHECK_INT(id.number, 2, "");
    assert_true(sv_eq(id.content, SV(ID)));
    CHECK_INT(f.content.n, 0, "nothing else");
}

/* Lengths around every step of the varint, for the value of a label and for the profile. */
TEST_WITH(test_round_trip, setup, teardown)
{
    static const size_t lengths[] = {1,     63,    64,    100,   110,   120,     126,
                                     127,   128,   129,   1000,  2047,  2048,    16100,
                                     16250, 16383, 16384, 16385, 65536, 2097151, 2097152};
    static char bytes[2097152];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)('a' + i % 26);
    }
    size_t n = sizeof(lengths) / sizeof(lengths[0]);
    for (size_t i = 0; i < n * n; i++) {
        struct sv value = {.p = bytes, .n = lengths[i / n] <= 2048 ? lengths[i / n] : 2048};
        struct sv profile = {.p = bytes, .n = lengths[i % n]};
        SCOPED(labels_builder) *b = labels_builder_new(table);
        labels_builder_reset(b, NULL);
        labels_builder_set(b, SV("v"), value);
        labels_builder_set_str(b, "__name__", "memory");
        labels_builder_set_str(b, "service_name", "s");
        SCOPED(labels) *l = labels_builder_build(b);
        SCOPED(buf) out = testing_buf(1 << 23);
        encode(l, profile, &out);
        SCOPED(series) s;
        assert_true(series_build(&s, l, &no_external, &default_limits, &protocol_push.labels));
        check_request((struct sv){.p = out.data, .n = out.len}, &s, profile);
    }
}

TEST_WITH(test_too_large, setup, teardown)
{
    SCOPED(labels) *l = testing_labels(table, "__name__", "memory", NULL);
    struct series s;
    assert_true(series_build(&s, l, &no_external, &default_limits, &protocol_push.labels));
    SCOPED(buf) prefix = testing_buf(1 << 20);
    SCOPED(buf) suffix = testing_buf(1 << 20);
    assert_true(push_encode(&s, PUSH_PROFILE_MAX, ID, &prefix, &suffix));
    assert_false(push_encode(&s, PUSH_PROFILE_MAX + 1, ID, &prefix, &suffix));
    buf_done(&prefix);
    buf_init(&prefix, 10);
    assert_false(push_encode(&s, 1, ID, &prefix, &suffix));
    series_done(&s);
}

/* The ID is a UUID that depends on the profile's bytes alone, the same everywhere and for ever. */
TEST_WITH(test_id, setup, teardown)
{
    static const struct {
        struct sv profile;
        const char *want;
    } rows[] = {
        {{"", 0}, "ad4d87f3-acd1-869e-8a4c-213b64778470"},
        {{"\x1f\x8b\x08\x00", 4}, "8e540c4a-0a89-853d-87e5-5331a73d8e3f"},
        {{"\x1f\x8b\x08\x01", 4}, "17dd75f7-4586-84f4-9338-e740a265ecf8"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char id[PUSH_ID_LENGTH + 1];
        push_id(rows[i].profile, id);
        CHECK_STR(id, rows[i].want, "");
        CHECK_INT(strlen(id), PUSH_ID_LENGTH, id);
        CHECK_INT(id[14], '8', "version");
        CHECK_INT(strchr("89ab", id[19]) != NULL, true, "variant");
    }
}
