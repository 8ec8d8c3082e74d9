/* The bytes of a push request, against examples that protoc made and a decoder of our own. */
#include "tests/unit/testing.h"

#include <stdlib.h>

#include "write/protocols/push.h"
#include "write/protocols/table.h"

static const struct config_label_limits limits = CONFIG_LABEL_LIMITS_DEFAULT;

static const struct config_pairs no_external = {.at = NULL, .n = 0};

/* A complete pprof of 130 bytes. */
static const char pprof_hex[] =
    "0a04080110020a0408031004120a0a010112050580e1eb171a0408013801220a080110012204080110072a08080110"
    "05"
    "180520063200320773616d706c65733205636f756e743203637075320b6e616e6f7365636f6e647332046d61696e32"
    "076d61696e2e676f488080a8b1e39fe7cb175080c8afa0255a04080310046080ade204";

static size_t unhex(const char *hex, unsigned char *out)
{
    size_t n = 0;
    for (; hex[0] && hex[1]; hex += 2) {
        char digits[3] = {hex[0], hex[1], '\0'};
        out[n++] = (unsigned char)strtoul(digits, NULL, 16);
    }
    return n;
}

static void put_hex(struct buf *out, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "%02x", p[i]);
    }
}

/* The whole request: prefix, profile. */
static void encode(struct labels *l, struct sv profile, struct buf *out)
{
    struct series s;
    assert_true(series_build(&s, l, &no_external, &limits, &protocol_push.labels));
    struct buf prefix;
    buf_init(&prefix, 1 << 20);
    assert_true(push_encode(&s, profile.n, &prefix));
    buf_append(out, prefix.data, prefix.len);
    buf_append(out, profile.p, profile.n);
    assert_true(buf_ok(out));
    buf_done(&prefix);
    series_done(&s);
}

static void test_request_of_two_labels(void **state)
{
    (void)state;
    struct intern *in = intern_new();
    struct labels *l = testing_labels(in, "__name__", "process_cpu", "service_name", "demo", NULL);
    struct buf out;
    struct buf hex;
    buf_init(&out, 1 << 20);
    buf_init(&hex, 1 << 20);
    encode(l, (struct sv){.p = "\x1f\x8b\x08\x00", .n = 4}, &out);
    put_hex(&hex, out.data, out.len);
    CHECK_STR(hex.data,
              "0a370a170a085f5f6e616d655f5f120b70726f636573735f6370750a140a0c736572766963655f6e616d"
              "65120464656d6f12060a041f8b0800",
              "");
    CHECK_INT(out.len, 57, "");
    buf_done(&out);
    buf_done(&hex);
    labels_unref(l);
    intern_free(in);
}

static void test_request_of_four_labels(void **state)
{
    (void)state;
    unsigned char pprof[sizeof(pprof_hex) / 2];
    size_t n = unhex(pprof_hex, pprof);
    CHECK_INT(n, 130, "");
    struct intern *in = intern_new();
    struct labels *l = testing_labels(in, "__name__", "memory", "service_name", "shop.cart",
                                      "instance", "10.1.2.3:6060", "__delta__", "false", NULL);
    struct buf out;
    struct buf hex;
    buf_init(&out, 1 << 20);
    buf_init(&hex, 1 << 20);
    encode(l, (struct sv){.p = (char *)pprof, .n = n}, &out);
    put_hex(&hex, out.data, out.len);
    static const char head[] =
        "0ae6010a120a095f5f64656c74615f5f120566616c73650a120a085f5f6e616d655f5f12066d656d6f72790a19"
        "0a08696e7374616e6365120d31302e312e322e333a363036300a190a0c736572766963655f6e616d6512097368"
        "6f702e636172741285010a8201";
    CHECK_INT(out.len, 233, "");
    CHECK_INT(strncmp(hex.data, head, strlen(head)), 0, hex.data);
    CHECK_STR(hex.data + strlen(head), pprof_hex, "");
    buf_done(&out);
    buf_done(&hex);
    labels_unref(l);
    intern_free(in);
}

/* Sizes that need varints of two and three bytes at every level. */
static void test_large_varints(void **state)
{
    (void)state;
    static char profile[20000];
    char value[201] = "";
    memset(profile, 'x', sizeof(profile));
    memset(value, 'v', 200);
    struct intern *in = intern_new();
    struct labels *l =
        testing_labels(in, "__name__", "block", "service_name", "s", "a", value, NULL);
    struct buf out;
    struct buf hex;
    buf_init(&out, 1 << 20);
    buf_init(&hex, 1 << 20);
    encode(l, (struct sv){.p = profile, .n = sizeof(profile)}, &out);
    CHECK_INT(out.len, 20259, "");
    put_hex(&hex, out.data, 30);
    CHECK_STR(hex.data, "0a9f9e010a110a085f5f6e616d655f5f1205626c6f636b0ace010a016112", "");
    buf_clear(&hex);
    put_hex(&hex, out.data + 259 - 27, 27);
    CHECK_STR(hex.data, "0a110a0c736572766963655f6e616d6512017312a49c010aa09c01", "");
    buf_done(&out);
    buf_done(&hex);
    labels_unref(l);
    intern_free(in);
}

/* ---- a decoder, so that more than three examples are checked --------------------------------- */

struct field {
    unsigned number;
    struct sv content;
};

static bool next_varint(struct sv *in, size_t *ret)
{
    size_t v = 0;
    for (unsigned shift = 0; in->n > 0 && shift < 63; shift += 7) {
        unsigned char c = (unsigned char)in->p[0];
        in->p++;
        in->n--;
        v |= (size_t)(c & 0x7f) << shift;
        if (!(c & 0x80)) {
            *ret = v;
            return shift == 0 || c != 0; /* the shortest form */
        }
    }
    return false;
}

/* The next length-delimited field; fails the test on anything else. */
static bool next_field(struct sv *in, struct field *f)
{
    if (in->n == 0) {
        return false;
    }
    size_t tag = 0;
    size_t size = 0;
    assert_true(next_varint(in, &tag));
    CHECK_INT(tag & 7, 2, "wire type");
    assert_true(next_varint(in, &size));
    assert_true(size <= in->n);
    *f = (struct field){.number = (unsigned)(tag >> 3), .content = {.p = in->p, .n = size}};
    in->p += size;
    in->n -= size;
    return true;
}

static void check_label(struct sv pair, struct series_label want)
{
    struct field name = {.content = SV("")};
    struct field value = {.content = SV("")};
    assert_true(next_field(&pair, &name));
    assert_true(next_field(&pair, &value));
    CHECK_INT(pair.n, 0, "");
    CHECK_INT(name.number, 1, "");
    CHECK_INT(value.number, 2, "");
    assert_true(sv_eq(name.content, want.name));
    assert_true(sv_eq(value.content, want.value));
}

static void check_request(struct sv request, const struct series *s, struct sv profile)
{
    struct field series = {.content = SV("")};
    assert_true(next_field(&request, &series));
    CHECK_INT(series.number, 1, "");
    CHECK_INT(request.n, 0, "one series");
    struct field f = {.content = SV("")};
    for (size_t i = 0; i < s->n; i++) {
        assert_true(next_field(&series.content, &f));
        CHECK_INT(f.number, 1, "");
        check_label(f.content, s->at[i]);
    }
    assert_true(next_field(&series.content, &f));
    CHECK_INT(f.number, 2, "");
    CHECK_INT(series.content.n, 0, "one sample");
    struct field raw = {.content = SV("")};
    assert_true(next_field(&f.content, &raw));
    CHECK_INT(raw.number, 1, "");
    CHECK_INT(f.content.n, 0, "no id");
    assert_true(sv_eq(raw.content, profile));
}

/* Lengths around every step of the varint, for the value of a label and for the profile. */
static void test_round_trip(void **state)
{
    (void)state;
    static const size_t lengths[] = {1,     63,    64,    100,   110,   120,     126,
                                     127,   128,   129,   1000,  2047,  2048,    16100,
                                     16250, 16383, 16384, 16385, 65536, 2097151, 2097152};
    static char bytes[2097152];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)('a' + i % 26);
    }
    struct intern *in = intern_new();
    size_t n = sizeof(lengths) / sizeof(lengths[0]);
    for (size_t i = 0; i < n * n; i++) {
        struct sv value = {.p = bytes, .n = lengths[i / n] <= 2048 ? lengths[i / n] : 2048};
        struct sv profile = {.p = bytes, .n = lengths[i % n]};
        struct labels_builder *b = labels_builder_new(in);
        labels_builder_reset(b, NULL);
        labels_builder_set(b, SV("v"), value);
        labels_builder_set_str(b, "__name__", "memory");
        labels_builder_set_str(b, "service_name", "s");
        struct labels *l = labels_builder_build(b);
        struct buf out;
        buf_init(&out, 1 << 23);
        encode(l, profile, &out);
        struct series s;
        assert_true(series_build(&s, l, &no_external, &limits, &protocol_push.labels));
        check_request((struct sv){.p = out.data, .n = out.len}, &s, profile);
        series_done(&s);
        buf_done(&out);
        labels_unref(l);
        labels_builder_free(b);
    }
    intern_free(in);
}

static void test_too_large(void **state)
{
    (void)state;
    struct intern *in = intern_new();
    struct labels *l = testing_labels(in, "__name__", "memory", NULL);
    struct series s;
    assert_true(series_build(&s, l, &no_external, &limits, &protocol_push.labels));
    struct buf prefix;
    buf_init(&prefix, 1 << 20);
    assert_true(push_encode(&s, PUSH_PROFILE_MAX, &prefix));
    assert_false(push_encode(&s, PUSH_PROFILE_MAX + 1, &prefix));
    buf_done(&prefix);
    buf_init(&prefix, 10);
    assert_false(push_encode(&s, 1, &prefix));
    series_done(&s);
    buf_done(&prefix);
    labels_unref(l);
    intern_free(in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_of_two_labels),
        cmocka_unit_test(test_request_of_four_labels),
        cmocka_unit_test(test_large_varints),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
