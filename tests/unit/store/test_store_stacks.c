/* Stacks of profiles in a tree: which frames, which samples, which limits. */
#include "tests/unit/lib/testing.h"

#include "pprof/put.h"
#include "store/query/stacks.h"
#include "tests/unit/lib/pprof_writer.h"
#include "tests/unit/lib/stored.h"
#include "tests/unit/lib/tree_text.h"

#define TEXT_MAX 4096
#define WORK_MAX ((size_t)16 * 1024 * 1024)

static const struct query_stacks all;

struct rig {
    struct tree *tree;
    struct stacks *stacks;
};

static struct rig open_rig(const struct query_stacks *which)
{
    struct err err = ERR_INIT;
    struct rig r = {.tree = tree_new(TREE_TEST_MAX, &err)};
    assert_non_null(r.tree);
    r.stacks = stacks_new(r.tree, which, WORK_MAX, &err);
    assert_non_null(r.stacks);
    return r;
}

static void close_rig(struct rig *r)
{
    stacks_free(r->stacks);
    tree_free(r->tree);
}

static int64_t add(struct rig *r, const struct store_body *body, size_t column)
{
    struct err err = ERR_INIT;
    int64_t sum;
    CHECK(stacks_add(r->stacks, body, column, &sum, &err), "%s", err.msg);
    return sum;
}

static int64_t add_file(struct rig *r, const char *name, size_t column)
{
    struct stored s;
    SCOPED(buf) b = stored_file(name);
    stored_init(&s, (struct sv){b.data, b.len}, column);
    int64_t sum = add(r, &s.body, column);
    return sum;
}

static int64_t add_rows(struct rig *r, const struct pprof_row *rows, size_t n)
{
    const struct pprof_spec spec = {.types = "samples/count cpu/nanoseconds"};
    struct stored s;
    SCOPED(buf) b = pprof_make(&spec, rows, n);
    stored_init(&s, (struct sv){b.data, b.len}, 1);
    int64_t sum = add(r, &s.body, 1);
    return sum;
}

static void expect(struct rig *r, const char *want, const char *row)
{
    char text[TEXT_MAX];
    struct err err = ERR_INIT;
    struct flamegraph fg;
    SCOPED(arena) *arena = arena_new(TREE_TEST_MAX);
    assert_true(tree_flamegraph(r->tree, 0, arena, &fg, &err));
    flamegraph_text(&fg, 4, text, TEXT_MAX);
    CHECK_STR(text, want, row);
}

TEST(test_profiles)
{
    struct rig r = open_rig(&all);
    CHECK_INT(add_file(&r, "p1", 1), 50000000, "p1");
    CHECK_INT(add_file(&r, "p2", 1), 60000000, "p2");
    expect(&r,
           "total main.main main.work runtime.mallocgc main.hash main.idle | [0 110000000 0 0] "
           "[0 110000000 10000000 1] [10000000 40000000 40000000 5, 0 60000000 0 2] "
           "[50000000 50000000 50000000 4, 0 10000000 10000000 3] | total 110000000 self 50000000",
           "p1, p2");
    /* The profile has a location without lines: its address stands for it. */
    CHECK_INT(add_file(&r, "p3", 1), 70000000, "p3");
    expect(&r,
           "total main.main main.work runtime.mallocgc main.hash main.idle 700123 | "
           "[0 180000000 0 0] [0 180000000 10000000 1] "
           "[10000000 50000000 50000000 6, 0 40000000 40000000 5, 0 80000000 0 2] "
           "[100000000 50000000 50000000 4, 0 20000000 20000000 2, 0 10000000 10000000 3] | total "
           "180000000 self 50000000",
           "p1, p2, p3");
    close_rig(&r);
    r = open_rig(&all);
    CHECK_INT(add_file(&r, "p1", 0), 5, "samples of p1");
    close_rig(&r);
}

/* A profile that was merged before it is drawn is drawn in the same way. */
TEST(test_a_merged_profile_is_the_same)
{
    char one[TEXT_MAX];
    struct rig r = open_rig(&all);
    struct err err = ERR_INIT;
    struct flamegraph fg;
    SCOPED(arena) *arena = arena_new(TREE_TEST_MAX);
    CHECK_INT(add_file(&r, "p1", 1) + add_file(&r, "p2", 1) + add_file(&r, "p3", 1), 180000000, "");
    assert_true(tree_flamegraph(r.tree, 0, arena, &fg, &err));
    flamegraph_text(&fg, 4, one, TEXT_MAX);
    close_rig(&r);
    r = open_rig(&all);
    CHECK_INT(add_file(&r, "merged123", 1), 180000000, "");
    expect(&r, one, "");
    close_rig(&r);
}

TEST(test_call_site)
{
    const struct sv site[] = {SV("main.main"), SV("main.work")};
    const struct query_stacks which = {.call_site = site, .n_call_site = 2};
    struct rig r = open_rig(&which);
    CHECK_INT(add_file(&r, "p1", 1), 40000000, "p1");
    CHECK_INT(add_file(&r, "p2", 1), 20000000, "p2");
    expect(&r,
           "total main.main main.work runtime.mallocgc main.hash | [0 60000000 0 0] "
           "[0 60000000 0 1] [0 60000000 0 2] [0 50000000 50000000 4, 0 10000000 10000000 3] | "
           "total 60000000 self 50000000",
           "");
    close_rig(&r);
    const struct sv longer[] = {SV("main.main"), SV("main.work"), SV("main.hash"), SV("x")};
    const struct query_stacks none = {.call_site = longer, .n_call_site = 4};
    r = open_rig(&none);
    CHECK_INT(add_file(&r, "p1", 1), 0, "longer than the stack");
    expect(&r, "total | [0 0 0 0] | total 0 self 0", "");
    close_rig(&r);
}

TEST(test_names)
{
    static const struct {
        const char *raw, *name;
    } cases[] = {
        {"sort.Do[go.shape.int]", "sort.Do"},
        {"sort.Do[go.shape.int].func1", "sort.Do.func1"},
        {"m.F[go.shape.[]uint8,go.shape.map[int]int].G[x]", "m.F.G[x]"},
        {"m.F[go.shape.int", "m.F[go.shape.int"},
        {"m.F[...]", "m.F[...]"},
        {"a\xff", "a\xef\xbf\xbd"},
        {"[go.shape.int]", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rig r = open_rig(&all);
        char want[200];
        const struct pprof_row row = {cases[i].raw, NULL, {1, 7}};
        CHECK_INT(add_rows(&r, &row, 1), 7, cases[i].raw);
        (void)snprintf(want, sizeof(want), "total %s | [0 7 0 0] [0 7 7 1] | total 7 self 7",
                       cases[i].name);
        expect(&r, want, cases[i].raw);
        close_rig(&r);
    }
}

/* A location of two lines, the inner function first, with its fields in this order. */
static void put_location(struct buf *out, const char *order)
{
    SCOPED(buf) m = testing_buf(TEXT_MAX);
    uint64_t function = 1;
    for (const char *p = order; *p != '\0'; p++) {
        const unsigned char line[] = {8, (unsigned char)function, 16, 9};
        const unsigned char backwards[] = {16, 9, 8, (unsigned char)function};
        function += *p == 'l' || *p == 'b';
        switch (*p) {
        case 'i':
            wire_put_number(&m, LOCATION_ID, 5);
            break;
        case 'l':
            wire_put_bytes(&m, LOCATION_LINE, line, sizeof(line));
            break;
        case 'b':
            wire_put_bytes(&m, LOCATION_LINE, backwards, sizeof(backwards));
            break;
        default:
            wire_put_number(&m, 5, 1); /* is_folded */
        }
    }
    wire_put_bytes(out, PROFILE_LOCATION, m.data, m.len);
}

/* The order of fields does not matter, and neither does how the ids of a sample are written. */
TEST(test_fields_in_any_order)
{
    static const char *const orders[] = {"ill", "lli", "lil", "ilfl", "illf", "ibb", "ilb", "bil"};
    static const char *const strings[] = {"", "samples", "count", "in", "out"};
    const struct sv samples[] = {SV("\x0a\x01\x05\x10\x07"),
                                 SV("\x08\x05\x10\x07"),
                                 SV("\x10\x07\x08\x05"),
                                 SV("\x12\x01\x07\x0a\x01\x05"),
                                 SV("\x0a\x01\x05\x12\x01\x07"),
                                 SV("\x0a\x01\x05\x10\x07\x1a\x00\x1a\x00"),
                                 SV("\x1a\x00\x0a\x01\x05\x10\x07"),
                                 SV("\x0a\x01\x05\x1a\x00\x10\x07")};
    struct rig r = open_rig(&all);
    for (size_t i = 0; i < 8 * 8; i++) {
        struct stored s;
        SCOPED(buf) b = testing_buf(TEXT_MAX);
        wire_put_bytes(&b, PROFILE_SAMPLE_TYPE, "\x08\x01\x10\x02", 4);
        wire_put_bytes(&b, PROFILE_SAMPLE, samples[i % 8].p, samples[i % 8].n);
        put_location(&b, orders[i / 8]);
        wire_put_bytes(&b, PROFILE_FUNCTION, "\x08\x01\x10\x03", 4);
        wire_put_bytes(&b, PROFILE_FUNCTION, "\x08\x02\x10\x04", 4);
        for (size_t k = 0; k < 5; k++) {
            wire_put_bytes(&b, PROFILE_STRING, strings[k], strlen(strings[k]));
        }
        stored_init(&s, (struct sv){b.data, b.len}, 0);
        CHECK_INT(add(&r, &s.body, 0), 7, orders[i / 8]);
    }
    expect(&r, "total out in | [0 448 0 0] [0 448 0 1] [0 448 448 2] | total 448 self 448", "");
    close_rig(&r);
}

/* Names are found whether they follow each other as in the profile before, or not. */
TEST(test_names_in_any_order)
{
    static const char *const stacks[] = {"a b", "a b", "b a", "b", "c b", "a b"};
    struct rig r = open_rig(&all);
    for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
        const struct pprof_row row = {stacks[i], NULL, {1, 1}};
        CHECK_INT(add_rows(&r, &row, 1), 1, stacks[i]);
    }
    expect(
        &r,
        "total b c a | [0 6 0 0] [0 1 0 3, 0 5 1 1] [0 1 1 1, 1 3 3 3, 0 1 1 2] | total 6 self 3",
        "");
    close_rig(&r);
}

/* Reads the number of two digits at the end of a name. */
static int last_digits(struct sv name)
{
    return 10 * (name.p[name.n - 2] - '0') + name.p[name.n - 1] - '0';
}

/* Each of many stacks is found again, whether its profile has it first or last. */
TEST(test_many_stacks)
{
    enum { SIDE = 30, N = SIDE * SIDE };
    static struct pprof_row rows[N];
    static char frames[N][24];
    struct rig r = open_rig(&all);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            int stack = round == 1 ? N - 1 - i : i;
            (void)snprintf(frames[i], sizeof(frames[i]), "%02d out%02d", stack % SIDE,
                           stack / SIDE);
            rows[i] = (struct pprof_row){frames[i], NULL, {1, 1 + stack}};
        }
        CHECK_INT(add_rows(&r, rows, N), N * (N + 1) / 2, "");
    }
    CHECK_INT(tree_size(r.tree), 1 + SIDE + N, "the root, the callers and the leaves");
    for (uint32_t i = 1; i < tree_size(r.tree); i++) {
        struct tree_node node = tree_node(r.tree, i);
        struct tree_node caller = tree_node(r.tree, node.parent);
        int stack =
            node.parent == 0 ? -1 : SIDE * last_digits(caller.name) + last_digits(node.name);
        CHECK_INT(node.self, 3 * (stack + 1), "");
    }
    close_rig(&r);
}

TEST(test_which_samples_count)
{
    const struct pprof_row rows[] = {
        {"a main", NULL, {1, 3}},  {"a main", "k=v,n=7", {1, 4}}, /* the same stack */
        {"b main", NULL, {1, 0}},  {"c main", NULL, {1, -5}},
        {"d main", NULL, {-1, 5}}, /* a negative value in another column */
        {NULL, NULL, {1, 2}},      /* no stack */
    };
    struct rig r = open_rig(&all);
    CHECK_INT(add_rows(&r, rows, 6), 9, "");
    expect(&r, "total main a | [0 9 2 0] [2 7 0 1] [2 7 7 2] | total 9 self 7", "");
    close_rig(&r);
}

TEST(test_spans)
{
    const struct pprof_row rows[] = {
        {"a", "span_id=a000000000000001", {1, 1}},
        {"b", "profile_id=a000000000000001", {1, 2}},
        {"c", "span_id=a000000000000002,trace_id=b0000000000000000000000000000000", {1, 4}},
        {"d", NULL, {1, 8}},
        {"e", "other=a000000000000001", {1, 16}},
    };
    const struct sv spans[] = {SV("A000000000000001"), SV("a000000000000009")};
    const struct sv traces[] = {SV("b0000000000000000000000000000000")};
    const struct query_stacks by_span = {.span_ids = spans, .n_span_ids = 2};
    const struct query_stacks by_trace = {.trace_ids = traces, .n_trace_ids = 1};
    struct rig r = open_rig(&by_span);
    CHECK_INT(add_rows(&r, rows, 5), 3, "span");
    close_rig(&r);
    r = open_rig(&by_trace);
    CHECK_INT(add_rows(&r, rows, 5), 4, "trace");
    close_rig(&r);
}

TEST(test_samples_of_a_series)
{
    const struct pprof_row rows[] = {
        {"a", "k=v", {1, 1}},
        {"b", "k=w", {1, 2}},
        {"c", "k=v,l=x", {1, 4}},
        {"d", NULL, {1, 8}},
        {"e", "own=x,k=v", {1, 16}}, /* the profile's own label wins */
        {"f", "span_id=a000000000000001", {1, 32}},
        {"g", "k=v", {1, -1}},
    };
    const struct label own[] = {{SV("own"), SV("mine")}};
    const struct label kv[] = {{SV("k"), SV("v")}};
    const struct label kvlx[] = {{SV("k"), SV("v")}, {SV("l"), SV("x")}};
    const struct store_series series[] = {
        {.sample_labels = kv, .n_sample_labels = 1, .column = 1},
        {.sample_labels = kvlx, .n_sample_labels = 2, .column = 1},
        {.sample_labels = NULL, .n_sample_labels = 0, .column = 1},
        {.sample_labels = NULL, .n_sample_labels = 0, .column = 0},
    };
    static const struct {
        size_t first, n;
        int64_t sum;
    } cases[] = {{0, 1, 17}, {0, 2, 21}, {1, 1, 4}, {2, 1, 40}, {3, 1, 0}, {0, 4, 61}};
    const struct pprof_spec spec = {.types = "samples/count cpu/nanoseconds"};
    SCOPED(buf) b = pprof_make(&spec, rows, 7);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct store_series *list[4];
        struct stored s;
        struct rig r = open_rig(&all);
        stored_init(&s, (struct sv){b.data, b.len}, 1);
        for (size_t j = 0; j < cases[i].n; j++) {
            list[j] = &series[cases[i].first + j];
        }
        s.body.series = list;
        s.body.n_series = cases[i].n;
        s.body.whole = false;
        s.body.labels = own;
        s.body.n_labels = 1;
        CHECK_INT(add(&r, &s.body, 1), cases[i].sum, "");
        close_rig(&r);
    }
}

static void refuse(const struct store_body *body, size_t column, enum err_kind kind,
                   const char *text)
{
    struct err err = ERR_INIT;
    int64_t sum;
    struct rig r = open_rig(&all);
    assert_false(stacks_add(r.stacks, body, column, &sum, &err));
    CHECK_CONTAINS(err.msg, text, "");
    CHECK_INT(err.kind, kind, text);
    expect(&r, "total | [0 0 0 0] | total 0 self 0", text);
    close_rig(&r);
}

TEST(test_refused)
{
    struct stored s;
    SCOPED(buf) b = stored_file("p1");
    stored_init(&s, (struct sv){b.data, b.len}, 1);
    refuse(&s.body, 2, ERR_INPUT, "no sample type 2 among 2");
    s.body.data.n--;
    refuse(&s.body, 1, ERR_INPUT, "");
    s.body.data = SV("\x1f\x8b nonsense");
    refuse(&s.body, 1, ERR_INPUT, "");
    s.body.format = PROFILE_JFR;
    refuse(&s.body, 1, ERR_INPUT, "not pprof: its stacks cannot be read");
}

TEST(test_limits)
{
    struct err err = ERR_INIT;
    struct stored s;
    int64_t sum;
    SCOPED(buf) b = stored_file("p1");
    stored_init(&s, (struct sv){b.data, b.len}, 1);
    SCOPED(tree) *t = tree_new(TREE_TEST_MAX, &err);
    struct stacks *small = stacks_new(t, &all, 100, &err);
    assert_non_null(small);
    assert_false(stacks_add(small, &s.body, 1, &sum, &err));
    CHECK_INT(err.kind, ERR_LIMIT, "the profile at hand");
    stacks_free(small);
    tree_free(t);
    /* The stacks that are known count for the tree. */
    t = tree_new(2000, &err);
    struct stacks *stacks = stacks_new(t, &all, WORK_MAX, &err);
    bool ok = true;
    for (int i = 0; ok && i < 1000; i++) {
        char frames[50];
        (void)snprintf(frames, sizeof(frames), "f%d main", i);
        const struct pprof_row row = {frames, NULL, {1, 1}};
        const struct pprof_spec spec = {.types = "samples/count cpu/nanoseconds"};
        SCOPED(buf) one = pprof_make(&spec, &row, 1);
        s.body.data = (struct sv){one.data, one.len};
        err_clear(&err);
        ok = stacks_add(stacks, &s.body, 1, &sum, &err);
    }
    assert_false(ok);
    CHECK_STR(err.msg, "needs more than 2000 bytes of working memory", "");
    CHECK_INT(err.kind, ERR_LIMIT, "");
    stacks_free(stacks);
}

/* ---- stacks that Go's runtime cut off -------------------------------------------------------- */

/* Frames of a stack, the leaf first, from one depth up to another: "f9 f8 f7". */
static void put_frames(struct buf *out, int from, int to)
{
    for (int i = to - 1; i >= from; i--) {
        buf_printf(out, "%sf%d", out->len > 0 ? " " : "", i);
    }
}

/* The nodes under the root, with their totals, in order of names; and the number of all nodes. */
static void put_roots(struct rig *r, struct buf *out)
{
    struct err err = ERR_INIT;
    struct flamegraph fg;
    SCOPED(arena) *arena = arena_new(TREE_TEST_MAX);
    assert_true(tree_flamegraph(r->tree, 0, arena, &fg, &err));
    buf_printf(out, "%zu:", tree_size(r->tree) - 1);
    for (size_t i = 0; fg.n_levels > 1 && i < fg.levels[1].n; i += 4) {
        struct sv name = fg.names[fg.levels[1].at[i + 3]];
        buf_printf(out, " %.*s %lld", SV_ARG(name), (long long)fg.levels[1].at[i + 1]);
    }
}

static void check_roots(const struct query_stacks *which, struct sv data, const struct label *label,
                        const char *want, const char *row)
{
    struct stored s;
    struct rig r = open_rig(which);
    SCOPED(buf) out = testing_buf(TEXT_MAX);
    stored_init(&s, data, 1);
    s.body.labels = label;
    s.body.n_labels = label != NULL;
    add(&r, &s.body, 1);
    put_roots(&r, &out);
    CHECK_STR(out.data, want, row);
    close_rig(&r);
}

static const struct query_stacks as_recorded = {.as_recorded = true};

/* A stack of the frames 0 to 32, and two that were cut at 32 frames: one lacks the first 4 frames,
 * the other one those and 5 more. */
TEST(test_cut_stacks_get_their_roots)
{
    static const struct {
        const char *row, *types, *file, *spy;
        int deepest;
        const char *want;
    } cases[] = {
        {"heap", "alloc_objects/count alloc_space/bytes", "a.go", NULL, 32, "41: f0 7"},
        {"not Go", "alloc_objects/count alloc_space/bytes", "a.py", NULL, 32, "96: f0 1 f4 2 f9 4"},
        {"unknown language", "alloc_objects/count alloc_space/bytes", "a.c", NULL, 32,
         "96: f0 1 f4 2 f9 4"},
        {"Go by its label", "alloc_objects/count alloc_space/bytes", "a.c", "gospy", 32,
         "41: f0 7"},
        {"not Go by its label", "alloc_objects/count alloc_space/bytes", "a.go", "pyspy", 32,
         "96: f0 1 f4 2 f9 4"},
        {"a label that says nothing", "inuse_objects/count inuse_space/bytes", "a.go", "alloy", 32,
         "41: f0 7"},
        {"another type", "contentions/count delay/nanoseconds", "a.go", NULL, 32,
         "96: f0 1 f4 2 f9 4"},
        {"not deep enough for CPU time", "samples/count cpu/nanoseconds", "a.go", NULL, 32,
         "96: f0 1 f4 2 f9 4"},
        {"deep enough for CPU time", "samples/count cpu/nanoseconds", "a.go", NULL, 60, "60: f0 7"},
        {"a runtime that does not cut", "alloc_objects/count alloc_space/bytes", "a.go", NULL, 33,
         "97: f0 1 f4 2 f9 4"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf frames[3];
        for (size_t k = 0; k < 3; k++) {
            buf_init(&frames[k], TEXT_MAX);
        }
        put_frames(&frames[0], 0, cases[i].deepest);
        put_frames(&frames[1], 4, 36);
        put_frames(&frames[2], 9, 41);
        const struct pprof_row rows[] = {{frames[0].data, "", {1, 1}},
                                         {frames[1].data, "", {1, 2}},
                                         {frames[2].data, "", {1, 4}}};
        const struct pprof_spec spec = {.types = cases[i].types, .file = cases[i].file};
        const struct label spy = {SV("pyroscope_spy"),
                                  cases[i].spy != NULL ? sv_from(cases[i].spy) : SV("")};
        SCOPED(buf) b = pprof_make(&spec, rows, 3);
        struct sv data = {b.data, b.len};
        check_roots(&all, data, cases[i].spy != NULL ? &spy : NULL, cases[i].want, cases[i].row);
        for (size_t k = 0; k < 3; k++) {
            buf_done(&frames[k]);
        }
    }
}

/* Profiles of random stacks, cut at the depth of their kind, and what Pyroscope's own code makes of
 * them: pkg/pprof.FixGoProfile at commit 3fe6a457a. */
TEST(test_cut_stacks_are_those_of_pyroscope)
{
    static const struct {
        const char *file, *repaired, *recorded;
    } cases[] = {
        {"heap", "365: f0 1166 f1 5019 f2 123 f3 4461 f4 1252",
         "469: f0 1166 f1 5022 f2 814 f3 2978 f4 2041"},
        {"heap-shapes", "85: f13 483 f6 1640", "129: f13 483 f14 404 f6 1115 f7 121"},
        {"cpu", "318: f10 2574 f11 3249", "377: f10 2574 f11 2610 g1 639"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(buf) b = stored_file_of("cut_stacks", cases[i].file);
        struct sv data = {b.data, b.len};
        check_roots(&all, data, NULL, cases[i].repaired, cases[i].file);
        check_roots(&as_recorded, data, NULL, cases[i].recorded, cases[i].file);
    }
}

/* Stacks that depend on each other end the repair, and a small limit ends it with an error. */
TEST(test_cut_stacks_that_repeat)
{
    struct err err = ERR_INIT;
    struct stored s;
    struct buf frames[2];
    for (size_t k = 0; k < 2; k++) {
        buf_init(&frames[k], TEXT_MAX);
        for (int i = 0; i < 32; i++) {
            buf_printf(&frames[k], "%sr%d", i > 0 ? " " : "", (i + (int)k * 8) % 16);
        }
    }
    const struct pprof_row rows[] = {{frames[0].data, "", {1, 1}}, {frames[1].data, "", {1, 2}}};
    const struct pprof_spec spec = {.types = "alloc_objects/count alloc_space/bytes",
                                    .file = "a.go"};
    SCOPED(buf) b = pprof_make(&spec, rows, 2);
    struct sv data = {b.data, b.len};
    check_roots(&all, data, NULL, "64: r15 1 r7 2", "two that depend on each other");
    stored_init(&s, data, 1);
    size_t refused = 0;
    for (size_t max = 1024; max < WORK_MAX; max *= 2) {
        SCOPED(tree) *t = tree_new(TREE_TEST_MAX, &err);
        struct stacks *stacks = stacks_new(t, &all, max, &err);
        int64_t sum;
        if (stacks != NULL && !stacks_add(stacks, &s.body, 1, &sum, &err)) {
            CHECK_INT(err.kind, ERR_LIMIT, err.msg);
            refused++;
        }
        err_clear(&err);
        stacks_free(stacks);
    }
    assert_true(refused > 0);
    for (size_t k = 0; k < 2; k++) {
        buf_done(&frames[k]);
    }
}
