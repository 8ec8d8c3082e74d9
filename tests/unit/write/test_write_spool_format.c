/* The spool's files: every field survives, every single flipped bit is noticed. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "base/clock.h"
#include "write/spool/crc32c.h"
#include "write/spool/format.h"

TEST(crc_vectors)
{
    uint8_t zeros[32] = {0};
    uint8_t ones[32], up[32], down[32];
    for (size_t i = 0; i < 32; i++) {
        ones[i] = 0xff;
        up[i] = (uint8_t)i;
        down[i] = (uint8_t)(31 - i);
    }
    /* From RFC 3720, B.4, and the check value of the algorithm. */
    static const uint8_t read_command[48] = {
        0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00,
        0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18, 0x28, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
    const struct {
        const char *name;
        const void *data;
        size_t n;
        uint32_t crc;
    } cases[] = {
        {"empty", "", 0, 0},
        {"digits", "123456789", 9, 0xe3069283},
        {"zeros", zeros, 32, 0x8a9136aa},
        {"ones", ones, 32, 0x62a8ab43},
        {"up", up, 32, 0x46dd794e},
        {"down", down, 32, 0x113fdb5c},
        {"command", read_command, 48, 0xd9963a56},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_INT(crc32c(0, cases[i].data, cases[i].n), cases[i].crc, cases[i].name);
        CHECK_INT(crc32c_portable(0, cases[i].data, cases[i].n), cases[i].crc, cases[i].name);
    }
}

TEST(crc_in_pieces)
{
    uint8_t bytes[300];
    struct rng rng;
    rng_seed(&rng, 7);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)rng_next(&rng);
    }
    for (size_t at = 0; at < 20; at++) {
        for (size_t n = 0; n + at <= sizeof(bytes); n += 7) {
            uint32_t whole = crc32c_portable(0, bytes + at, n);
            size_t cut = n / 3;
            CHECK_INT(crc32c(0, bytes + at, n), whole, "");
            CHECK_INT(crc32c(crc32c(0, bytes + at, cut), bytes + at + cut, n - cut), whole, "cut");
        }
    }
}

TEST(headers)
{
    struct spool_header h = {.segment = 0x1122334455667788, .salt = 99, .created_ns = -5};
    struct spool_header got;
    uint8_t bytes[SPOOL_HEADER_SIZE];
    memset(h.endpoint, 'e', SPOOL_ENDPOINT_MAX);
    spool_header_encode(&h, bytes);
    CHECK_INT(spool_header_parse(bytes, sizeof(bytes), &got), SPOOL_HEADER_OK, "");
    CHECK_STR(got.endpoint, h.endpoint, "");
    assert_true(got.segment == h.segment && got.salt == 99 && got.created_ns == -5);
    for (size_t bit = 0; bit < sizeof(bytes) * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK_INT(spool_header_parse(bytes, sizeof(bytes), &got), SPOOL_HEADER_BAD, "flipped");
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t n = 0; n < sizeof(bytes); n++) {
        CHECK_INT(spool_header_parse(bytes, n, &got), SPOOL_HEADER_BAD, "cut");
    }
}

/* The first bytes by hand: the format is a promise. */
TEST(header_bytes)
{
    static const uint8_t want[52] = {'P', 'P', 'S', 'P', 'O', 'O', 'L', '\n', 1,   0, 0, 0, 0,
                                     2,   0,   0,   3,   0,   0,   0,   0,    0,   0, 0, 4, 0,
                                     0,   0,   0,   0,   0,   0,   5,   0,    0,   0, 0, 0, 0,
                                     0,   4,   0,   0,   0,   'm', 'a', 'i',  'n', 0, 0, 0, 0};
    struct spool_header h = {.segment = 3, .salt = 4, .created_ns = 5, .endpoint = "main"};
    uint8_t bytes[SPOOL_HEADER_SIZE];
    spool_header_encode(&h, bytes);
    assert_memory_equal(bytes, want, sizeof(want));
}

static void put32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) {
        p[i] = (uint8_t)(v >> (8 * i));
    }
}

TEST(newer_versions)
{
    static const struct {
        uint32_t version, size;
        enum spool_header_kind kind;
    } cases[] = {
        {2, 512, SPOOL_HEADER_NEWER},      {2, 20, SPOOL_HEADER_NEWER},
        {9, 4096, SPOOL_HEADER_NEWER},     {2, 19, SPOOL_HEADER_BAD},
        {2, 4097, SPOOL_HEADER_BAD},       {0, 512, SPOOL_HEADER_BAD},
        {1, 511, SPOOL_HEADER_BAD},        {2, 0, SPOOL_HEADER_BAD},
        {2, UINT32_MAX, SPOOL_HEADER_BAD}, {UINT32_MAX, 512, SPOOL_HEADER_NEWER},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t bytes[SPOOL_ANY_HEADER_MAX] = {0};
        struct spool_header h = {.segment = 1};
        spool_header_encode(&h, bytes);
        put32(bytes + 8, cases[i].version);
        put32(bytes + 12, cases[i].size);
        if (cases[i].size >= 4 && cases[i].size <= sizeof(bytes)) {
            put32(bytes + cases[i].size - 4, crc32c(0, bytes, cases[i].size - 4));
        }
        CHECK_INT(spool_header_parse(bytes, sizeof(bytes), &h), cases[i].kind, "");
    }
}

TEST(heads)
{
    struct spool_head h = {.format = 1,
                           .flags = SPOOL_FLAG_DELTA,
                           .salt = 0xfedcba9876543210,
                           .offset = 512,
                           .labels_size = 7,
                           .data_size = 9,
                           .from_ns = -1,
                           .until_ns = INT64_MAX,
                           .scraped_ns = 3,
                           .body_crc = 0xdeadbeef};
    struct spool_head got;
    uint8_t bytes[SPOOL_HEAD_SIZE];
    spool_head_encode(&h, bytes);
    assert_true(spool_head_parse(bytes, &got));
    CHECK_INT(got.format, h.format, "");
    CHECK_INT(got.flags, h.flags, "");
    CHECK_INT(got.salt == h.salt, true, "");
    CHECK_INT(got.offset, h.offset, "");
    CHECK_INT(got.labels_size, h.labels_size, "");
    CHECK_INT(got.data_size, h.data_size, "");
    CHECK_INT(got.from_ns, h.from_ns, "");
    CHECK_INT(got.until_ns, h.until_ns, "");
    CHECK_INT(got.scraped_ns, h.scraped_ns, "");
    CHECK_INT(got.body_crc, h.body_crc, "");
    CHECK_INT(spool_record_size(&got), 80, "");
    for (size_t bit = 0; bit < sizeof(bytes) * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(spool_head_parse(bytes, &got));
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    /* Sizes that no record has, with a check sum that is right. */
    h.data_size = UINT32_MAX;
    spool_head_encode(&h, bytes);
    assert_false(spool_head_parse(bytes, &got));
    h.data_size = 0;
    h.labels_size = SPOOL_LABELS_MAX + 1;
    spool_head_encode(&h, bytes);
    assert_false(spool_head_parse(bytes, &got));
}

TEST(searching)
{
    uint8_t bytes[200];
    const uint64_t five = 5;
    const uint64_t six = 6;
    struct spool_head h = {.salt = 5, .offset = 100};
    memset(bytes, 'P', sizeof(bytes));
    CHECK_INT(spool_head_search(bytes, sizeof(bytes), &five), sizeof(bytes), "none");
    CHECK_INT(spool_head_search(bytes, 0, &five), 0, "nothing");
    spool_head_encode(&h, bytes + 100);
    CHECK_INT(spool_head_search(bytes, sizeof(bytes), &five), 100, "");
    CHECK_INT(spool_head_search(bytes, sizeof(bytes), &six), sizeof(bytes), "another salt");
    CHECK_INT(spool_head_search(bytes, sizeof(bytes), NULL), 100, "any salt");
    CHECK_INT(spool_head_search(bytes, 115, &five), 115, "cut within the beginning");
    CHECK_INT(spool_head_search(bytes, 116, &five), 100, "only the beginning");
    spool_head_encode(&h, bytes + 20);
    CHECK_INT(spool_head_search(bytes, sizeof(bytes), &five), 20, "the first of two");
}

TEST(label_sets)
{
    SCOPED(intern) *in = intern_new();
    SCOPED(labels_builder) *b = labels_builder_new(in);
    SCOPED(labels) *l =
        testing_labels(in, "__name__", "memory", "a", "\xff\n\"", "service_name", "x/y", NULL);
    bool memory;
    SCOPED(buf) out = testing_buf(1 << 16);
    assert_true(spool_labels_encode(l, &out));
    struct labels *got = spool_labels_parse((uint8_t *)out.data, out.len, b, &memory);
    assert_non_null(got);
    assert_true(labels_equal(got, l));
    labels_unref(got);
    struct labels *more = testing_labels(in, "__name__", "memory", "__param_token", "s3cret", "a",
                                         "\xff\n\"", "service_name", "x/y", NULL);
    buf_clear(&out);
    assert_true(spool_labels_encode(more, &out));
    assert_null(memmem(out.data, out.len, "s3cret", 6));
    got = spool_labels_parse((uint8_t *)out.data, out.len, b, &memory);
    assert_true(labels_equal(got, l));
    labels_unref(got);
    labels_unref(more);
    /* Cut anywhere but between two labels it is refused, and nothing is read beyond the end. */
    size_t whole = 0;
    for (size_t n = 0; n < out.len; n++) {
        SCOPED_MEMORY uint8_t *copy = malloc(n + 1);
        memcpy(copy, out.data, n);
        got = spool_labels_parse(copy, n, b, &memory);
        whole += got != NULL;
        assert_true(got || !memory);
        labels_unref(got);
    }
    CHECK_INT(whole, 3, "prefixes that are label sets");
}

TEST(acknowledgements)
{
    uint8_t bytes[SPOOL_ACK_SIZE];
    uint8_t header[SPOOL_ACK_HEADER_SIZE];
    uint32_t offset;
    uint64_t segment;
    spool_ack_encode(77, 512, bytes);
    assert_true(spool_ack_parse(bytes, 77, &offset));
    CHECK_INT(offset, 512, "");
    assert_false(spool_ack_parse(bytes, 78, &offset));
    for (size_t bit = 0; bit < sizeof(bytes) * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(spool_ack_parse(bytes, 77, &offset));
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    uint8_t zeros[SPOOL_ACK_SIZE] = {0};
    assert_false(spool_ack_parse(zeros, 77, &offset));
    spool_ack_header_encode(12, header);
    assert_true(spool_ack_header_parse(header, &segment));
    CHECK_INT(segment, 12, "");
    for (size_t bit = 0; bit < sizeof(header) * 8; bit++) {
        header[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(spool_ack_header_parse(header, &segment));
        header[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

TEST(names)
{
    static const struct {
        const char *name;
        enum spool_name kind;
        uint64_t id;
    } cases[] = {
        {"0000000000000001.seg", SPOOL_NAME_SEGMENT, 1},
        {"ffffffffffffffff.seg", SPOOL_NAME_SEGMENT, UINT64_MAX},
        {"00000000000000ab.ack", SPOOL_NAME_ACK, 0xab},
        {"lock", SPOOL_NAME_LOCK, 0},
        {"00000000000000AB.seg", SPOOL_NAME_OTHER, 0},
        {"000000000000001.seg", SPOOL_NAME_OTHER, 0},
        {"0000000000000001.seg~", SPOOL_NAME_OTHER, 0},
        {"0000000000000001.tmp", SPOOL_NAME_OTHER, 0},
        {".seg", SPOOL_NAME_OTHER, 0},
        {"lost+found", SPOOL_NAME_OTHER, 0},
        {"", SPOOL_NAME_OTHER, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t id = 0;
        CHECK_INT(spool_name_parse(cases[i].name, &id), cases[i].kind, cases[i].name);
        if (cases[i].kind == SPOOL_NAME_SEGMENT || cases[i].kind == SPOOL_NAME_ACK) {
            char text[SPOOL_NAME_SIZE];
            assert_true(id == cases[i].id);
            spool_name_format(text, id, cases[i].kind == SPOOL_NAME_ACK);
            CHECK_STR(text, cases[i].name, "");
        }
    }
}

TEST(directories)
{
    static const char *const cases[][2] = {
        {"main", "main"},         {"a b/c", "a%20b%2Fc"}, {"..", "%2E."},
        {".hidden", "%2Ehidden"}, {"a.b-c_9", "a.b-c_9"}, {"\xc3\xbc%", "%C3%BC%25"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(buf) out = testing_buf(256);
        assert_true(spool_directory_name(cases[i][0], &out));
        CHECK_STR(out.data, cases[i][1], cases[i][0]);
    }
}
