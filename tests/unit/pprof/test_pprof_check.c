/* The check of whole profiles, and the index that is built after it. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "pprof/index.h"
#include "pprof/put.h"
#include "tests/unit/lib/pprof_writer.h"
#include "tests/unit/pprof/pprof_frame.h"

#define BYTES(s) s, sizeof(s) - 1
#define TYPE "\x0a\x04\x08\x01\x10\x02"
#define STRINGS "\x32\x00\x32\x01x\x32\x01y"
#define FUNCTION "\x2a\x06\x08\x01\x10\x01\x20\x02"
#define LOCATION "\x22\x08\x08\x01\x22\x04\x08\x01\x10\x07"
#define SAMPLE "\x12\x04\x08\x01\x10\x05"

static const struct {
    const char *name;
    const char *bytes;
    size_t n;
    const char *problem; /* "" if it is good */
} cases[] = {
    {"smallest", BYTES(TYPE STRINGS), ""},
    {"all", BYTES(TYPE SAMPLE LOCATION FUNCTION STRINGS "\x48\x01\x50\x02"), ""},
    {"packed", BYTES(TYPE "\x12\x06\x0a\x01\x01\x12\x01\x05" LOCATION FUNCTION STRINGS), ""},
    {"strings first", BYTES(STRINGS FUNCTION LOCATION SAMPLE TYPE), ""},
    {"unknown fields",
     BYTES(TYPE STRINGS "\xf8\x01\x07\x89\x02\x01\x02\x03\x04\x05\x06\x07\x08\x95\x02\x01\x02\x03"
                        "\x04\x9a\x02\x02zz"),
     ""},
    {"an unknown field in a sample",
     BYTES(TYPE "\x12\x08\x08\x01\x10\x05\xba\x06\x01z" LOCATION FUNCTION STRINGS), ""},
    {"nothing", BYTES(""), "no sample type"},
    {"no type", BYTES(STRINGS), "no sample type"},
    {"no strings", BYTES("\x0a\x00"), "the first string is not empty, or there is none"},
    {"first string", BYTES(TYPE "\x32\x01x\x32\x00\x32\x00"),
     "the first string is not empty, or there is none"},
    {"wire type 6", BYTES(TYPE "\x0e\x00"), "profile at byte 6: a wire type that does not exist"},
    {"wire type of a known field", BYTES(TYPE "\x10\x01"),
     "profile at byte 6: field 2 has wire type 0"},
    {"wire type within a sample", BYTES(TYPE "\x12\x02\x18\x01"),
     "sample at byte 8: field 3 has wire type 0"},
    {"field 0", BYTES(TYPE "\x00\x00"), "profile at byte 6: a field with number 0"},
    {"a length past the end", BYTES(TYPE "\x12\x05\x08"),
     "profile at byte 6: a field that runs past the end"},
    {"a length past the end of a message", BYTES(TYPE "\x12\x02\x0a\x05" STRINGS),
     "sample at byte 8: a field that runs past the end"},
    {"a cut number", BYTES(TYPE "\x48\xff"), "profile at byte 6: a number without end"},
    {"a cut tag", BYTES(TYPE "\xff"), "profile at byte 6: a number without end"},
    {"eleven bytes", BYTES(TYPE "\x48\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
     "profile at byte 6: a number of more than 64 bits"},
    {"65 bits", BYTES(TYPE "\x48\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"),
     "profile at byte 6: a number of more than 64 bits"},
    {"64 bits", BYTES(TYPE STRINGS "\x48\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), ""},
    {"a damaged packed field", BYTES(TYPE "\x12\x03\x0a\x01\xff" STRINGS),
     "sample at byte 8: a damaged number in a packed field"},
    {"a string that is not there", BYTES("\x0a\x04\x08\x01\x10\x03" STRINGS),
     "sample type at byte 4: string 3, but there are only 3"},
    {"a string of a function", BYTES(TYPE "\x2a\x04\x08\x01\x20\x63" STRINGS),
     "function at byte 10: string 99, but there are only 3"},
    {"a string of a label", BYTES(TYPE "\x12\x08\x10\x05\x1a\x04\x08\x01\x10\x09" STRINGS),
     "label at byte 14: string 9, but there are only 3"},
    {"a string of a comment", BYTES(TYPE "\x6a\x02\x01\x08" STRINGS),
     "profile at byte 6: string 8, but there are only 3"},
    {"too many values", BYTES(TYPE "\x12\x06\x08\x01\x10\x05\x10\x05" STRINGS),
     "sample at byte 6: 2 values for 1 sample types"},
    {"no value", BYTES(TYPE "\x12\x00" STRINGS), "sample at byte 6: 0 values for 1 sample types"},
    {"other numbers of values", BYTES(TYPE "\x12\x02\x10\x01\x12\x04\x10\x01\x10\x01" STRINGS),
     "sample at byte 10: 2 values, others have 1"},
    {"location id 0 in a sample", BYTES(TYPE "\x12\x04\x08\x00\x10\x05" STRINGS),
     "sample at byte 8: id 0"},
    {"location id 0", BYTES(TYPE "\x22\x02\x08\x00" STRINGS), "location at byte 8: id 0"},
    {"a location without id", BYTES(TYPE "\x22\x02\x18\x01" STRINGS), "location at byte 8: id 0"},
    {"an empty function", BYTES(TYPE "\x2a\x00" STRINGS), "function at byte 8: id 0"},
    {"a line without function", BYTES(TYPE "\x22\x06\x08\x01\x22\x02\x10\x07" STRINGS),
     "line at byte 12: id 0"},
    {"two profiles", BYTES(TYPE STRINGS "\x48\x01" TYPE STRINGS "\x48\x01"),
     "profile at byte 30: a second time_nanos: these are several profiles in one"},
    /* Errors that only the index sees. */
    {"an unknown location", BYTES(TYPE "\x12\x04\x08\x02\x10\x05" LOCATION FUNCTION STRINGS), ""},
    {"an unknown function", BYTES(TYPE LOCATION STRINGS),
     "line at byte 12: function 1 is not there"},
    {"an unknown mapping", BYTES(TYPE "\x22\x04\x08\x01\x10\x07" STRINGS),
     "location at byte 8: mapping 7 is not there"},
    {"two locations", BYTES(TYPE LOCATION LOCATION FUNCTION STRINGS),
     "two locations with the id 1"},
    {"two functions", BYTES(TYPE FUNCTION FUNCTION STRINGS), "two functions with the id 1"},
    {"two mappings", BYTES(TYPE "\x1a\x02\x08\x09\x1a\x02\x08\x09" STRINGS),
     "two mappings with the id 9"},
};

TEST(good_and_bad_profiles)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sv plain = {.p = cases[i].bytes, .n = cases[i].n};
        struct err err = ERR_INIT;
        struct pprof_summary summary;
        struct pprof_index x;
        struct scratch *scratch = scratch_new();
        assert_non_null(scratch);
        bool ok = pprof_check(plain, &summary, &err) &&
                  pprof_index(&x, scratch, plain, &summary, 1, &err);
        scratch_free(scratch);
        CHECK_INT(ok, cases[i].problem[0] == '\0', cases[i].name);
        CHECK_STR(err.msg, cases[i].problem, cases[i].name);
    }
}

/* ---- check and index in one walk ------------------------------------------------------------- */

#define NUMBERS_19 "\x08\x01\x10\x01\x18\x01\x20\x02\x28\x09"
static const struct {
    const char *name;
    const char *bytes;
    size_t n;
} frames[] = {
    {"a field with number 0 in a line",
     BYTES(TYPE "\x1a\x08\x08\x01\x10\x05\x30\x02\x38\x01"
                "\x22\x12\x08\x01\x10\x01\x18\xa9\x01\x22\x04\x08\x01\x10\x07"
                "\x22\x03\x08\x02\x00\x2a\x0a" NUMBERS_19 STRINGS)},
    {"all kinds, as Go writes them",
     BYTES(TYPE "\x1a\x08\x08\x01\x10\x05\x30\x02\x38\x01"
                "\x22\x11\x08\x01\x10\x01\x18\xa9\x01\x22\x04\x08\x01\x10\x07"
                "\x22\x02\x08\x02\x2a\x0a" NUMBERS_19 "\x2a\x02\x08\x02" STRINGS
                "\x6a\x02\x01\x02\x70\x02\x48\x05\x50\x06"
                "\x5a\x04\x08\x01\x10\x02\x60\x07")},
    {"a function id above the number",
     BYTES(TYPE "\x22\x08\x08\x01\x18\x05\x22\x02\x08\x02" FUNCTION STRINGS)},
    {"functions from the end", BYTES(TYPE "\x22\x08\x08\x01\x18\x05\x22\x02\x08\x01"
                                          "\x2a\x02\x08\x02\x2a\x02\x08\x01" STRINGS)},
    {"functions 2 and 3, line of 1", BYTES(TYPE "\x22\x08\x08\x01\x18\x05\x22\x02\x08\x01"
                                                "\x2a\x02\x08\x02\x2a\x02\x08\x03" STRINGS)},
    {"sparse ids",
     BYTES(TYPE "\x22\x0a\x08\x90\x4e\x18\x05\x22\x03\x08\x90\x4e"
                "\x22\x04\x08\x05\x18\x06\x2a\x03\x08\x90\x4e\x2a\x02\x08\x03" STRINGS)},
    {"two lines in one", BYTES(TYPE "\x22\x0a\x08\x01\x22\x06\x08\x01\x08\x02\x10\x07"
                                    "\x2a\x02\x08\x01\x2a\x02\x08\x02" STRINGS)},
    {"an id twice", BYTES(TYPE "\x22\x04\x08\x05\x08\x01" STRINGS)},
    {"an id twice, first 0", BYTES(TYPE "\x22\x04\x08\x00\x08\x01" STRINGS)},
    {"a line with id 0 and another",
     BYTES(TYPE "\x22\x08\x08\x01\x22\x04\x08\x00\x08\x01" FUNCTION STRINGS)},
    {"an empty line", BYTES(TYPE "\x22\x04\x08\x01\x22\x00" FUNCTION STRINGS)},
    {"a line past the end", BYTES(TYPE "\x22\x06\x08\x01\x22\x03\x08\x01" FUNCTION STRINGS)},
    {"a line that is cut", BYTES(TYPE "\x22\x03\x08\x01\x22" FUNCTION STRINGS)},
    {"a number past the line", BYTES(TYPE "\x22\x06\x08\x01\x22\x02\x08\x81" FUNCTION STRINGS)},
    {"a number past the location", BYTES(TYPE "\x22\x02\x08\x81" FUNCTION STRINGS)},
    {"a number past the function", BYTES(TYPE "\x2a\x02\x08\x81" FUNCTION STRINGS)},
    {"a tag alone", BYTES(TYPE "\x2a\x03\x08\x01\x10" STRINGS)},
    {"a tag alone at the end", BYTES(TYPE STRINGS "\x2a\x03\x08\x01\x10")},
    {"numbers in another order", BYTES(TYPE "\x2a\x06\x10\x01\x08\x01\x20\x02" STRINGS)},
    {"lines first", BYTES(TYPE "\x22\x08\x22\x02\x08\x01\x08\x01\x18\x05" FUNCTION STRINGS)},
    {"an unknown number", BYTES(TYPE "\x2a\x04\x08\x01\x38\x02" STRINGS)},
    {"unknown bytes", BYTES(TYPE "\x2a\x05\x08\x01\x3a\x01z" STRINGS)},
    {"is_folded", BYTES(TYPE "\x22\x08\x08\x01\x22\x02\x08\x01\x28\x01" FUNCTION STRINGS)},
    {"no such name", BYTES(TYPE "\x2a\x04\x08\x01\x10\x03" STRINGS)},
    {"no such name of the system", BYTES(TYPE "\x2a\x04\x08\x01\x18\x03" STRINGS)},
    {"a name of more than 32 bits", BYTES(TYPE "\x2a\x08\x08\x01\x10\x80\x80\x80\x80\x10" STRINGS)},
    {"no such name of a mapping", BYTES(TYPE "\x1a\x04\x08\x01\x28\x03" STRINGS)},
    {"no such build id", BYTES(TYPE "\x1a\x04\x08\x01\x30\x03" STRINGS)},
    {"a text where a number is", BYTES(TYPE "\x2a\x05\x08\x01\x12\x01z" STRINGS)},
    {"strings that are numbers", BYTES(TYPE STRINGS "\x30\x01")},
    {"a fixed sample", BYTES(TYPE STRINGS "\x15\x01\x02\x03\x04")},
    {"an empty string later", BYTES(TYPE "\x32\x01x\x32\x00\x32\x01y")},
    {"64 bits of address",
     BYTES(TYPE "\x22\x0d\x08\x01\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" STRINGS)},
    {"65 bits of address",
     BYTES(TYPE "\x22\x0d\x08\x01\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x03" STRINGS)},
};

/* Each start of a profile too: something is missing in each of them. */
static void same_in_one_walk_(const char *name, const char *bytes, size_t n)
{
    for (size_t i = 0; i <= n; i++) {
        SCOPED_MEMORY char *part = malloc(i > 0 ? i : 1); /* its end is the end of the memory */
        assert_non_null(part);
        memcpy(part, bytes, i);
        const char *difference = frame_difference((struct sv){part, i});
        CHECK_STR(difference == NULL ? "" : difference, "", name);
    }
}

TEST(same_in_one_walk)
{
    for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
        same_in_one_walk_(frames[i].name, frames[i].bytes, frames[i].n);
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        same_in_one_walk_(cases[i].name, cases[i].bytes, cases[i].n);
    }
}

/* Every start of a good profile is checked without a crash, and only the whole has all its parts.
 */
TEST(every_start_is_checked)
{
    static const char whole[] = TYPE SAMPLE LOCATION FUNCTION STRINGS "\x48\x01\x50\x02";
    for (size_t n = 0; n < sizeof(whole) - 1; n++) {
        SCOPED_MEMORY char *part = malloc(n + 1); /* its end is the end of the memory */
        assert_non_null(part);
        memcpy(part, whole, n);
        struct pprof_summary summary;
        struct err err = ERR_INIT;
        if (pprof_check((struct sv){part, n}, &summary, &err)) {
            assert_true(summary.n[PROFILE_STRING] == 3);
        } else {
            assert_true(err.msg[0] != '\0');
        }
    }
}

/* ---- packed numbers -------------------------------------------------------------------------- */

/* Puts a number with so many bytes that say nothing at its end. */
static void put_long(struct buf *b, uint64_t v, size_t extra)
{
    for (; v >= 0x80 || extra > 0; v >>= 7) {
        extra -= v < 0x80;
        buf_putc(b, (char)(v | 0x80));
    }
    buf_putc(b, (char)v);
}

/* A profile of one sample with these packed ids and values, and so many types. */
static void put_packed(struct buf *b, size_t types, const struct buf *ids, const struct buf *values)
{
    SCOPED(buf) sample = testing_buf(100000);
    for (size_t i = 0; i < types; i++) {
        buf_append(b, BYTES(TYPE));
    }
    put_msg(&sample, SAMPLE_LOCATION_ID, ids->data, ids->len);
    put_msg(&sample, SAMPLE_VALUE, values->data, values->len);
    put_sub(b, PROFILE_SAMPLE, &sample);
    buf_append(b, BYTES(STRINGS));
}

static bool is_good(const struct buf *b)
{
    struct pprof_summary summary;
    struct err err = ERR_INIT;
    struct sv plain = {b->data, b->len};
    struct sv sample = {.n = 0};
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f = {.number = 0};
    bool good = pprof_check(plain, &summary, &err);
    while (wire_next(&r, &f)) {
        sample = f.number == PROFILE_SAMPLE ? f.bytes : sample;
    }
    /* The two halves of the check agree with the whole. */
    assert_true(pprof_check_frame(plain, &summary, &err));
    assert_int_equal(pprof_check_sample(plain, &summary, sample, &err), good);
    return good;
}

/* Packed ids and values of any length, at any place of the eight bytes that are looked at together,
 * some with an id of 0, some cut: what is good is known from how they were made. */
TEST(packed_numbers_of_any_length)
{
    uint64_t random = 1;
    for (size_t round = 0; round < 20000; round++) {
        SCOPED(buf) ids = testing_buf(100000);
        SCOPED(buf) values = testing_buf(100000);
        SCOPED(buf) b = testing_buf(100000);
        bool good = true;
        size_t types = 1 + round % 20;
        for (size_t i = 0; i < 1 + round % 23; i++) {
            random = pprof_fold(random, round + i, PPROF_ODD_0);
            uint64_t id = random % 50 == 0 ? 0 : (random >> 8) >> (random % 56);
            good = good && id != 0;
            put_long(&ids, id, random % 7 == 0 ? random % 3 : 0);
        }
        for (size_t i = 0; i < types; i++) {
            random = pprof_fold(random, round + i, PPROF_ODD_1);
            put_long(&values, random >> (random % 64), 0);
        }
        bool cut = random % 11 == 0;
        struct buf *victim = random % 2 == 0 ? &ids : &values;
        victim->data[victim->len - 1] |= (char)(cut ? 0x80 : 0);
        put_packed(&b, random % 13 == 0 ? types + 1 : types, &ids, &values);
        assert_int_equal(is_good(&b), good && !cut && random % 13 != 0);
    }
}

/* Go writes one or two numbers as fields of their own, and more of them packed. */
TEST(numbers_in_fields_of_their_own)
{
    for (size_t round = 0; round < 4 * 4 * 4 * 2; round++) {
        SCOPED(buf) sample = testing_buf(1000);
        SCOPED(buf) b = testing_buf(1000);
        size_t types = round % 4;
        size_t ids = round / 4 % 4;
        size_t values = round / 16 % 4;
        bool zero = round / 64 > 0;
        for (size_t i = 0; i < types; i++) {
            buf_append(&b, BYTES(TYPE));
        }
        for (size_t i = 0; i < ids; i++) {
            wire_put_number(&sample, SAMPLE_LOCATION_ID,
                            zero && i == 1 ? 0 : UINT64_C(1) << 21 * i);
        }
        for (size_t i = 0; i < values; i++) {
            wire_put_number(&sample, SAMPLE_VALUE, UINT64_MAX >> 31 * i);
        }
        put_sub(&b, PROFILE_SAMPLE, &sample);
        buf_append(&b, BYTES(STRINGS));
        bool good = values == types && !(zero && ids > 1);
        if (types > 0) {
            assert_int_equal(is_good(&b), good);
        }
    }
}

TEST(entries_are_counted)
{
    struct pprof_summary summary;
    struct err err = ERR_INIT;
    assert_true(pprof_check(SV(TYPE SAMPLE SAMPLE LOCATION FUNCTION STRINGS "\x1a\x02\x08\x01"
                                                                            "\x48\x07\x50\x09"),
                            &summary, &err));
    CHECK_INT(summary.n[PROFILE_SAMPLE_TYPE], 1, "");
    CHECK_INT(summary.n[PROFILE_SAMPLE], 2, "");
    CHECK_INT(summary.n[PROFILE_LOCATION], 1, "");
    CHECK_INT(summary.n[PROFILE_FUNCTION], 1, "");
    CHECK_INT(summary.n[PROFILE_MAPPING], 1, "");
    CHECK_INT(summary.n[PROFILE_STRING], 3, "");
    CHECK_INT(summary.time_ns, 7, "");
    CHECK_INT(summary.duration_ns, 9, "");
}

/* Ids of any kind are found, and no others: with small gaps, which have a table by id, and with
 * large ones, which have a hash table. */
TEST(ids_of_any_kind_are_found)
{
    for (uint64_t step = 1; step < 1000000000; step = step < 5 ? step + 1 : step * 7 + 1) {
        SCOPED(buf) b = testing_buf(100000);
        SCOPED(buf) m = testing_buf(100000);
        buf_append(&b, BYTES(TYPE STRINGS));
        for (uint64_t i = 1; i <= 100; i++) {
            put_num(&m, FUNCTION_ID, i * step);
            put_sub(&b, 5, &m);
        }
        struct pprof_summary summary;
        struct pprof_index x;
        struct err err = ERR_INIT;
        struct sv plain = {b.data, b.len};
        assert_true(pprof_check(plain, &summary, &err));
        SCOPED(scratch) *scratch = scratch_new();
        assert_non_null(scratch);
        assert_true(pprof_index(&x, scratch, plain, &summary, 99, &err));
        size_t place;
        for (uint64_t i = 1; i <= 100; i++) {
            assert_true(pprof_ids_find(&x.entries[PROFILE_FUNCTION].ids, i * step, &place));
            CHECK_INT(place, i - 1, "");
        }
        assert_false(pprof_ids_find(&x.entries[PROFILE_FUNCTION].ids, 0, &place));
        assert_false(pprof_ids_find(&x.entries[PROFILE_FUNCTION].ids, 101 * step, &place));
        assert_false(pprof_ids_find(&x.entries[PROFILE_FUNCTION].ids, UINT64_MAX, &place));
    }
}

/* Numbers of one to ten bytes, with few and many bytes after them: eight are read at a time where
 * there are so many. A number that is cut, or too large, is none. */
TEST(numbers_of_every_length)
{
    enum { ROOM = 2 * WIRE_NUMBER_MAX + 1 };
    for (unsigned bits = 0; bits <= 64; bits++) {
        for (size_t after = 0; after <= WIRE_NUMBER_MAX; after++) {
            unsigned char bytes[ROOM];
            uint64_t value = bits == 0 ? 0 : UINT64_C(0xa5c3a5c3a5c3a5c3) >> (64 - bits) | 1;
            memset(bytes, after % 2 == 0 ? 0xff : 0x01, sizeof(bytes));
            size_t n = wire_encode(value, bytes);
            const char *p = (const char *)bytes;
            struct wire_varint v = wire_varint(p, p + n + after);
            assert_true(v.next == p + n && v.value == value);
            v = wire_varint_ahead(p, p + n + after);
            assert_true(v.next == p + n && v.value == value);
            assert_null(wire_varint_ahead(p, p + n - 1).next);
            assert_null(wire_varint(p, p + n - 1).next);
            uint64_t read[2] = {7, 7};
            char field[1 + ROOM] = "\x08";
            memcpy(field + 1, bytes, n);
            wire_read_numbers((struct sv){field, 1 + n}, read, 2);
            assert_true(read[0] == 7 && read[1] == value);
        }
    }
    const char *long_ones[] = {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
                               "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"};
    for (size_t i = 0; i < 2; i++) {
        struct wire_varint v = wire_varint(long_ones[i], long_ones[i] + 10 + i);
        assert_null(v.next);
        CHECK_INT(v.value, false, "too large, not cut");
        assert_null(wire_varint_ahead(long_ones[i], long_ones[i] + 10 + i).next);
    }
}
