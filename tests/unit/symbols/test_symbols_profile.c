/* Locations that lack names, and profiles that get them. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "pprof/check.h"
#include "pprof/gzip.h"
#include "pprof/index.h"
#include "symbols/profile.h"
#include "tests/unit/lib/pprof_writer.h"

#define PROFILE_MAX ((size_t)1 << 20)

/* A view of a literal, as an initialiser. */
#define TEXT(literal)                                                                              \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

/* ---- profiles for tests ---------------------------------------------------------------------- */

/* A location: its lines name functions by their place in the table of names, counted from 1; a
 * line of 0 is the end. */
struct loc {
    uint64_t address;
    uint64_t mapping;
    uint64_t functions[3];
};

struct spec {
    const struct loc *locations;
    size_t n_locations;
    const char *const *names; /* of functions */
    size_t n_names;
    uint64_t first_function;
    bool late; /* mappings, functions and strings come after the locations */
};

/* The strings before the names of functions. */
enum { STR_EMPTY, STR_TYPE, STR_UNIT, STR_APP, STR_LIBC, STR_BUILD_ID, STR_NAMES };

static void put_mapping(struct buf *out, struct buf *m, uint64_t id, uint64_t start, uint64_t size,
                        uint64_t offset, uint64_t file, uint64_t build_id)
{
    put_num(m, 1, id);
    put_num(m, 2, start);
    put_num(m, 3, start + size);
    put_num(m, 4, offset);
    put_num(m, 5, file);
    put_num(m, 6, build_id);
    put_sub(out, 3, m);
}

static void put_tables(const struct spec *s, struct buf *out, struct buf *m)
{
    put_mapping(out, m, 1, 0x400000, 0x1000, 0x2000, STR_APP, STR_BUILD_ID);
    put_mapping(out, m, 2, 0x7f0000, 0x9000, 0, STR_LIBC, 0);
    put_mapping(out, m, 3, 0x900000, 0x1000, 0, 0, 0);
    for (size_t i = 0; i < s->n_names; i++) {
        put_num(m, 1, s->first_function + i);
        put_num(m, 2, s->names[i][0] == '\0' ? 0 : STR_NAMES + i);
        put_sub(out, 5, m);
    }
    static const char *const strings[] = {
        "", "cpu", "nanoseconds", "/usr/bin/app", "/lib/libc.so.6", "00ffab"};
    for (size_t i = 0; i < STR_NAMES; i++) {
        put_msg(out, 6, strings[i], strlen(strings[i]));
    }
    for (size_t i = 0; i < s->n_names; i++) {
        put_msg(out, 6, s->names[i], strlen(s->names[i]));
    }
}

static void put_locations(const struct spec *s, struct buf *out, struct buf *m)
{
    SCOPED(buf) line = testing_buf(100);
    for (size_t i = 0; i < s->n_locations; i++) {
        const struct loc *l = &s->locations[i];
        put_num(m, 1, i + 1);
        put_num(m, 2, l->mapping);
        put_num(m, 3, l->address);
        for (size_t k = 0; k < 3 && l->functions[k] != 0; k++) {
            put_num(&line, 1, s->first_function + l->functions[k] - 1);
            put_sub(m, 4, &line);
        }
        put_num(m, 5, 1); /* is_folded, which stays */
        put_sub(out, 4, m);
    }
}

static struct buf make(const struct spec *s)
{
    struct buf out = testing_buf(PROFILE_MAX);
    SCOPED(buf) m = testing_buf(PROFILE_MAX);
    put_num(&m, 1, STR_TYPE);
    put_num(&m, 2, STR_UNIT);
    put_sub(&out, 1, &m);
    for (size_t i = 0; i < s->n_locations; i++) {
        put_num(&m, 1, i + 1);
        put_num(&m, 2, 5);
        put_sub(&out, 2, &m);
    }
    if (s->late) {
        put_locations(s, &out, &m);
        put_tables(s, &out, &m);
    } else {
        put_tables(s, &out, &m);
        put_locations(s, &out, &m);
    }
    assert_true(buf_ok(&out));
    return out;
}

/* ---- profiles as text ------------------------------------------------------------------------ */

static void print_line(const struct pprof_index *x, struct sv message, struct buf *text)
{
    uint64_t v[3] = {0};
    size_t place;
    wire_read_numbers(message, v, 3);
    assert_true(pprof_ids_find(&x->entries[PROFILE_FUNCTION].ids, v[1], &place));
    const struct pprof_function *f = &x->functions[place];
    uint64_t start[FUNCTION_START_LINE + 1] = {0};
    wire_read_numbers(pprof_span_of(x, x->entries[PROFILE_FUNCTION].spans[place]), start,
                      FUNCTION_START_LINE + 1);
    buf_printf(text, " [%.*s|%.*s|%.*s:%llu>%llu]", SV_ARG(pprof_string(x, f->name)),
               SV_ARG(pprof_string(x, f->system_name)), SV_ARG(pprof_string(x, f->file)),
               (unsigned long long)v[2], (unsigned long long)start[FUNCTION_START_LINE]);
}

/* Checks that a profile is whole, and prints its locations and the flags of its mappings. */
static void print_profile(struct sv plain, struct buf *text)
{
    struct pprof_summary summary;
    struct pprof_index x;
    struct err err = ERR_INIT;
    SCOPED(scratch) *s = scratch_new();
    if (!pprof_check(plain, &summary, &err) || !pprof_index(&x, s, plain, &summary, 1, &err)) {
        fail_msg("%s", err.msg);
    }
    for (size_t i = 0; i < summary.n[PROFILE_LOCATION]; i++) {
        struct wire_reader r =
            wire_reader_of(pprof_span_of(&x, x.entries[PROFILE_LOCATION].spans[i]));
        struct wire_field f = {.number = 0};
        buf_printf(text, "%llx", (unsigned long long)x.locations[i].address);
        while (wire_next(&r, &f)) {
            if (f.number == LOCATION_LINE) {
                print_line(&x, f.bytes, text);
            }
        }
        buf_putc(text, '\n');
    }
    for (size_t i = 0; i < summary.n[PROFILE_MAPPING]; i++) {
        uint64_t v[MAPPING_LAST + 1] = {0};
        wire_read_numbers(pprof_span_of(&x, x.entries[PROFILE_MAPPING].spans[i]), v,
                          MAPPING_LAST + 1);
        buf_printf(text, "mapping %llu%llu%llu%llu\n", (unsigned long long)v[7],
                   (unsigned long long)v[8], (unsigned long long)v[9], (unsigned long long)v[10]);
    }
}

/* ---- naming ---------------------------------------------------------------------------------- */

static const struct symbol_function outer = {.name = TEXT("app::main()"),
                                             .system_name = TEXT("_ZN3app4mainEv"),
                                             .file = TEXT("app.cc"),
                                             .start_line = 10};
static const struct symbol_function inner = {
    .name = TEXT("app::work"), .file = TEXT("work.h"), .start_line = 3};
static const struct symbol_function bare = {.name = TEXT("malloc")};
static const struct symbol_line both[] = {{&inner, 5}, {&outer, 12}};
static const struct symbol_line alone[] = {{&outer, 13}};
static const struct symbol_line no_file[] = {{&bare, 0}};

static void set_lines(struct symbol_profile *p)
{
    for (size_t i = 0; i < p->n_locations; i++) {
        struct symbol_location *l = &p->locations[i];
        if (l->address == 0x400010) {
            l->lines = both;
            l->n_lines = 2;
        } else if (l->address == 0x400020) {
            l->lines = alone;
            l->n_lines = 1;
        } else if (l->address == 0x7f0010) {
            l->lines = no_file;
            l->n_lines = 1;
        }
        l->known = symbol_lines_known(l->lines, l->n_lines);
    }
}

/* Names a profile; the result is text in `text` and, if ret is not NULL, a profile there. */
static void name_profile(struct sv plain, bool known, struct buf *text, struct buf *ret)
{
    struct symbol_profile p;
    struct err err = ERR_INIT;
    struct scratch *s = scratch_new();
    struct buf out = testing_buf(PROFILE_MAX);
    buf_init(text, PROFILE_MAX);
    if (!symbol_profile_read(&p, s, plain, &err)) {
        fail_msg("%s", err.msg);
    }
    if (known) {
        set_lines(&p);
    }
    assert_true(symbol_profile_write(&p, &out, &err));
    print_profile((struct sv){out.data, out.len}, text);
    scratch_free(s);
    if (ret != NULL) {
        *ret = out;
    } else {
        buf_done(&out);
    }
}

#define KNOWN_10 "400010 [app::work||work.h:5>3] [app::main()|_ZN3app4mainEv|app.cc:12>10]\n"
#define KNOWN_20 "400020 [app::main()|_ZN3app4mainEv|app.cc:13>10]\n"
#define KNOWN_LIBC "7f0010 [malloc||:0>0]\n"

TEST(names_are_added)
{
    static const struct loc all[] = {{0x400010, 1, {0}}, {0x400020, 1, {0}}, {0x7f0010, 2, {0}}};
    static const struct loc some[] = {{0x400020, 1, {0}}, {0x400ff0, 1, {0}}, {0x7f0010, 2, {0}},
                                      {0x7f8000, 2, {0}}, {0x900010, 3, {0}}, {0x77, 0, {0}},
                                      {0x2010, 1, {0}}};
    static const struct loc mixed[] = {{0x400010, 1, {1, 2}}, {0x400020, 1, {0}}, {0, 1, {0}}};
    static const struct loc empty[] = {
        {0x400010, 1, {3}}, {0x400020, 1, {3, 1}}, {0x7f8000, 2, {3}}};
    static const char *const names[] = {"one", "two", ""};
    static const struct {
        const char *name;
        const struct loc *locations;
        size_t n;
        const char *want;
    } cases[] = {
        {"all", all, 3, KNOWN_10 KNOWN_20 KNOWN_LIBC "mapping 1111\nmapping 1000\nmapping 0000\n"},
        {"unknown ones", some, 7,
         KNOWN_20 "400ff0 [app!0x2ff0||:0>0]\n" KNOWN_LIBC
                  "7f8000 [libc.so.6!0x8000||:0>0]\n900010 [[unknown]||:0>0]\n"
                  "77 [[unknown]||:0>0]\n2010 [app!0x2010||:0>0]\n"
                  "mapping 0000\nmapping 0000\nmapping 0000\n"},
        {"named ones stay", mixed, 3,
         "400010 [one||:0>0] [two||:0>0]\n" KNOWN_20
         "0\nmapping 1110\nmapping 0000\nmapping 0000\n"},
        {"functions without a name", empty, 3,
         KNOWN_10 "400020 [||:0>0] [one||:0>0]\n7f8000 [libc.so.6!0x8000||:0>0]\n"
                  "mapping 1111\nmapping 0000\nmapping 0000\n"},
    };
    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        const struct spec s = {.locations = cases[i / 2].locations,
                               .n_locations = cases[i / 2].n,
                               .names = names,
                               .n_names = 3,
                               .first_function = i % 2 == 0 ? 1 : 1000000,
                               .late = i % 2 != 0};
        SCOPED(buf) text;
        SCOPED(buf) profile = make(&s);
        name_profile((struct sv){profile.data, profile.len}, true, &text, NULL);
        CHECK_STR(text.data, cases[i / 2].want, cases[i / 2].name);
    }
}

/* A location of many lines, whose message has a head of more than two bytes, and numbers of each
 * length. */
TEST(locations_may_be_long)
{
    enum { LINES = 64 };
    static const struct loc locations[] = {{0x400020, 1, {0}}, {0x400010, 1, {0}}};
    const struct spec s = {.locations = locations, .n_locations = 2, .first_function = 1};
    struct symbol_function functions[LINES];
    struct symbol_line lines[LINES];
    struct symbol_profile p;
    struct err err = ERR_INIT;
    SCOPED(buf) want = testing_buf(PROFILE_MAX);
    SCOPED(buf) text = testing_buf(PROFILE_MAX);
    SCOPED(buf) out = testing_buf(PROFILE_MAX);
    SCOPED(buf) profile = make(&s);
    SCOPED(scratch) *scratch = scratch_new();
    buf_puts(&want, "400020 [app::main()|_ZN3app4mainEv|app.cc:13>10]\n400010");
    for (size_t i = 0; i < LINES; i++) {
        functions[i] = (struct symbol_function){.name = TEXT("f"), .start_line = i};
        lines[i] = (struct symbol_line){&functions[i], (UINT64_C(1) << i) - i % 2};
        buf_printf(&want, " [f||:%llu>%zu]", (unsigned long long)lines[i].line, i);
    }
    buf_puts(&want, "\nmapping 1011\nmapping 0000\nmapping 0000\n");
    assert_true(symbol_profile_read(&p, scratch, (struct sv){profile.data, profile.len}, &err));
    set_lines(&p);
    p.locations[1].lines = lines;
    p.locations[1].n_lines = LINES;
    p.locations[1].known = symbol_lines_known(lines, LINES);
    assert_true(symbol_profile_write(&p, &out, &err));
    print_profile((struct sv){out.data, out.len}, &text);
    CHECK_STR(text.data, want.data, "");
}

/* Names of functions that are declared next to each other are next to each other. */
TEST(names_are_sorted_by_place)
{
    static const struct loc locations[] = {{0x400010, 1, {0}}};
    const struct spec s = {.locations = locations, .n_locations = 1, .first_function = 1};
    static const struct symbol_function functions[] = {
        {.name = TEXT("one"), .file = TEXT("b.h"), .start_line = 70000},
        {.name = TEXT("two"), .system_name = TEXT("_two"), .file = TEXT("a.h"), .start_line = 300},
        {.name = TEXT("three"), .file = TEXT("b.h"), .start_line = 299},
        {.name = TEXT("four"), .file = TEXT("a.h"), .start_line = 40},
        {.name = TEXT("five")},
        {.name = TEXT("six"), .file = TEXT("a.h"), .start_line = 300},
        {.name = TEXT("two"), .file = TEXT("a.h"), .start_line = 300},
    };
    enum { N = sizeof(functions) / sizeof(functions[0]) };
    struct symbol_line lines[N];
    struct symbol_profile p;
    struct err err = ERR_INIT;
    SCOPED(buf) text = testing_buf(PROFILE_MAX);
    SCOPED(buf) out = testing_buf(PROFILE_MAX);
    SCOPED(buf) profile = make(&s);
    SCOPED(scratch) *scratch = scratch_new();
    assert_true(symbol_profile_read(&p, scratch, (struct sv){profile.data, profile.len}, &err));
    for (size_t i = 0; i < N; i++) {
        lines[i] = (struct symbol_line){&functions[i], i + 1};
    }
    p.locations[0].lines = lines;
    p.locations[0].n_lines = N;
    p.locations[0].known = symbol_lines_known(lines, N);
    assert_true(symbol_profile_write(&p, &out, &err));
    print_profile((struct sv){out.data, out.len}, &text);
    CHECK_STR(text.data,
              "400010 [one||b.h:1>70000] [two|_two|a.h:2>300] [three||b.h:3>299] [four||a.h:4>40]"
              " [five||:5>0] [six||a.h:6>300] [two||a.h:7>300]\n"
              "mapping 1011\nmapping 0000\nmapping 0000\n",
              "");
    struct wire_reader r = wire_reader_of((struct sv){out.data, out.len});
    struct wire_field f = {.number = 0};
    buf_clear(&text);
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_STRING) {
            buf_printf(&text, "%.*s ", SV_ARG(f.bytes));
        }
    }
    CHECK_STR(text.data,
              " cpu nanoseconds /usr/bin/app /lib/libc.so.6 00ffab b.h a.h five three one four two "
              "_two six ",
              "");
}

/* An unknown address gets its name from a later attempt, and nothing is added without one. */
TEST(unknown_names_are_replaced_later)
{
    static const struct loc locations[] = {{0x400010, 1, {0}}, {0x7f8000, 2, {0}}, {0x77, 0, {0}}};
    const struct spec s = {.locations = locations, .n_locations = 3, .first_function = 1};
    struct buf text;
    SCOPED(buf) first;
    struct buf second;
    SCOPED(buf) profile = make(&s);
    name_profile((struct sv){profile.data, profile.len}, false, &text, &first);
    CHECK_STR(text.data,
              "400010 [app!0x2010||:0>0]\n7f8000 [libc.so.6!0x8000||:0>0]\n77 [[unknown]||:0>0]\n"
              "mapping 0000\nmapping 0000\nmapping 0000\n",
              "first");
    buf_done(&text);
    name_profile((struct sv){first.data, first.len}, false, &text, &second);
    assert_int_equal(second.len, first.len);
    assert_memory_equal(second.data, first.data, first.len);
    buf_done(&text);
    buf_done(&second);
    name_profile((struct sv){first.data, first.len}, true, &text, NULL);
    CHECK_STR(text.data,
              KNOWN_10 "7f8000 [libc.so.6!0x8000||:0>0]\n77 [[unknown]||:0>0]\n"
                       "mapping 1111\nmapping 0000\nmapping 0000\n",
              "later");
    buf_done(&text);
}

TEST(profiles_with_names_need_nothing)
{
    static const struct loc locations[] = {{0x400010, 1, {1}}, {0, 1, {2}}, {UINT64_MAX, 0, {3}}};
    static const char *const names[] = {"one", "two!0xZ", ""};
    const struct spec s = {.locations = locations,
                           .n_locations = 3,
                           .names = names,
                           .n_names = 3,
                           .first_function = 1};
    struct symbol_profile p;
    struct err err = ERR_INIT;
    SCOPED(scratch) *scratch = scratch_new();
    SCOPED(buf) profile = make(&s);
    assert_true(symbol_profile_read(&p, scratch, (struct sv){profile.data, profile.len}, &err));
    assert_int_equal(p.n_locations, 0);
    assert_false(symbol_profile_changes(&p));
    assert_int_equal(symbol_profile_glance((struct sv){profile.data, profile.len}),
                     SYMBOL_GLANCE_NAMED);
}

TEST(the_quick_pass_finds_what_may_lack_names)
{
    static const struct loc named[] = {{0x400010, 1, {1}}, {0x400020, 1, {1}}};
    static const struct loc no_line[] = {{0x400010, 1, {1}}, {0x400020, 1, {0}}};
    static const struct loc second[] = {{0x400010, 1, {1}}, {0x400020, 1, {2}}};
    static const struct {
        const char *name;
        const struct loc *locations;
        const char *names[2];
        bool lacks;
    } cases[] = {
        {"all named", named, {"one", "two!0xZ"}, false},
        {"no line", no_line, {"one", "two"}, true},
        {"no name", second, {"one", ""}, true},
        {"marked", second, {"one", "app!0x2010"}, true},
        {"without a file", second, {"one", "[unknown]"}, true},
        {"a part of a name", second, {"one", "app!0x2010::f"}, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct spec s = {.locations = cases[i].locations,
                               .n_locations = 2,
                               .names = cases[i].names,
                               .n_names = 2,
                               .first_function = 1};
        SCOPED(buf) profile = make(&s);
        CHECK_INT(symbol_profile_may_lack((struct sv){profile.data, profile.len}), cases[i].lacks,
                  cases[i].name);
    }
    assert_false(symbol_profile_may_lack(SV("")));
    assert_false(symbol_profile_may_lack(SV("\xff\xff")));
}

TEST(a_glance_reads_the_beginning)
{
    static const struct loc locations[] = {{0x400010, 1, {0}}};
    const struct spec s = {.locations = locations, .n_locations = 1, .first_function = 1};
    SCOPED(scratch) *scratch = scratch_new();
    SCOPED(buf) profile = make(&s);
    struct sv plain = {profile.data, profile.len};
    struct sv packed = {"", 0};
    SCOPED_MEMORY char *data;
    assert_true(gzip_pack(scratch, plain, &data, &packed.n));
    packed.p = data;
    assert_int_equal(symbol_profile_glance(plain), SYMBOL_GLANCE_UNNAMED);
    assert_int_equal(symbol_profile_glance(packed), SYMBOL_GLANCE_UNNAMED);
    assert_int_equal(symbol_profile_glance((struct sv){plain.p, 8}), SYMBOL_GLANCE_UNSURE);
    assert_int_equal(symbol_profile_glance(SV("")), SYMBOL_GLANCE_UNSURE);
}

/* Appends the fields of a profile with its kinds mixed: the first of each kind, the second, ... */
static void mix(struct sv plain, struct buf *out)
{
    struct wire_reader readers[PROFILE_STRING + 1];
    struct wire_field f = {.number = 0};
    for (unsigned k = 0; k <= PROFILE_STRING; k++) {
        readers[k] = wire_reader_of(plain);
    }
    for (size_t left = plain.n; out->len < plain.n && left > 0; left--) {
        for (unsigned k = PROFILE_SAMPLE_TYPE; k <= PROFILE_STRING; k++) {
            while (wire_next(&readers[k], &f) && f.number != k) {
            }
            if (f.number == k && readers[k].at > readers[k].field_start) {
                put_msg(out, k, f.bytes.p, f.bytes.n);
            }
        }
    }
}

/* Each kind is read from its first entry to its last; entries of other kinds may be between. */
TEST(kinds_of_entries_may_be_mixed)
{
    static const struct loc locations[] = {{0x400010, 1, {0}},
                                           {0x400020, 1, {1}},
                                           {0x7f0010, 2, {2}},
                                           {0x7f8000, 2, {0}},
                                           {0x400020, 1, {0}}};
    static const char *const names[] = {"one", "app!0x2010"};
    const struct spec s = {.locations = locations,
                           .n_locations = 5,
                           .names = names,
                           .n_names = 2,
                           .first_function = 7};
    SCOPED(buf) text;
    SCOPED(buf) profile = make(&s);
    SCOPED(buf) mixed = testing_buf(PROFILE_MAX);
    mix((struct sv){profile.data, profile.len}, &mixed);
    assert_int_equal(mixed.len, profile.len);
    assert_memory_not_equal(mixed.data, profile.data, profile.len);
    name_profile((struct sv){mixed.data, mixed.len}, true, &text, NULL);
    CHECK_STR(text.data,
              KNOWN_10 "400020 [one||:0>0]\n" KNOWN_LIBC
                       "7f8000 [libc.so.6!0x8000||:0>0]\n" KNOWN_20
                       "mapping 1111\nmapping 0000\nmapping 0000\n",
              "mixed");
}

/* A number of a location that runs past its end is no address, whatever bytes follow. */
TEST(addresses_end_with_their_location)
{
    static const struct {
        const char *name;
        struct sv plain;
        size_t lacking;
        uint64_t address;
    } cases[] = {
        {"short", TEXT("\x22\x03\x18\x90\x01\x32\x00"), 1, 0x90},
        {"of a kernel", TEXT("\x22\x0b\x18\x90\x80\x80\x88\xf8\xff\xff\xff\xff\x01\x32\x00"), 1,
         UINT64_C(0xffffffff81000010)},
        {"at the end", TEXT("\x22\x08\x18\x90\x80\xd4\xaa\xd5\xaa\x15"), 1,
         UINT64_C(0x555555550010)},
        {"cut by its location", TEXT("\x22\x02\x18\x90\x32\x00"), 0, 0},
        {"cut by the profile", TEXT("\x22\x03\x18\x90\x90"), 0, 0},
        {"too large", TEXT("\x22\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02\x32\x00"), 0, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct symbol_profile p;
        struct err err = ERR_INIT;
        SCOPED(scratch) *scratch = scratch_new();
        assert_true(symbol_profile_read(&p, scratch, cases[i].plain, &err));
        CHECK_INT(p.n_locations, cases[i].lacking, cases[i].name);
        if (p.n_locations > 0) {
            CHECK_INT(p.locations[0].address, cases[i].address, cases[i].name);
        }
    }
}

TEST(damaged_profiles_are_refused)
{
    static const struct loc locations[] = {{0x400010, 1, {0}}};
    static const char *const names[] = {"one"};
    const struct spec full = {.locations = locations,
                              .n_locations = 1,
                              .names = names,
                              .n_names = 1,
                              .first_function = UINT64_MAX};
    struct symbol_profile p;
    struct err err = ERR_INIT;
    SCOPED(scratch) *scratch = scratch_new();
    SCOPED(buf) profile = make(&full);
    assert_false(symbol_profile_read(&p, scratch, (struct sv){profile.data, profile.len}, &err));
    CHECK_STR(err.msg, "no id is left for another function", "");
    err_clear(&err);
    assert_false(symbol_profile_read(&p, scratch, SV("\x22\x05\x08"), &err));
    CHECK_STR(err.msg, "a field that runs past the end at byte 0", "");
    err_clear(&err);
    assert_false(symbol_profile_read(&p, scratch, SV("\x20\x05"), &err));
    CHECK_STR(err.msg, "field 4 at byte 0 is no message", "");
}

TEST(memory_and_buffers_have_limits)
{
    static const struct loc locations[] = {{0x400010, 1, {0}}, {0x7f8000, 2, {0}}};
    const struct spec s = {.locations = locations, .n_locations = 2, .first_function = 1};
    struct symbol_profile p;
    struct err err = ERR_INIT;
    SCOPED(scratch) *scratch = scratch_new();
    SCOPED(buf) profile = make(&s);
    struct sv plain = {profile.data, profile.len};
    assert_true(symbol_profile_read(&p, scratch, plain, &err));
    SCOPED(buf) out = testing_buf(plain.n + 4);
    assert_false(symbol_profile_write(&p, &out, &err));
    assert_int_equal(err.kind, ERR_LIMIT);
    err_clear(&err);
    scratch_reset(scratch);
    assert_false(symbol_profile_read(&p, NULL, plain, &err));
    assert_int_equal(err.kind, ERR_MEMORY);
}
