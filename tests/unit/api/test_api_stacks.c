/* The formats of old agents: tries, trees and speedscope's files. */
#include "api/receive/prefix_trees.h"
#include "api/receive/speedscope.h"
#include "pprof/check.h"
#include "pprof/put.h"
#include "tests/unit/lib/recording.h"
#include "tests/unit/lib/testing.h"

static struct frames_options options_of(const char *app)
{
    struct sv service;
    return (struct frames_options){
        .type = frames_type_of(sv_from(app), &service), .sample_rate = 100, .time_ns = 5};
}

/* Appends "TYPE:UNIT (PERIOD)" and the samples. */
static void print(const struct buf *pprof, struct buf *out)
{
    struct err err = ERR_INIT;
    struct pprof_summary s;
    struct sv plain = {pprof->data, pprof->len};
    assert_true(pprof_check(plain, &s, &err));
    pprof_summary_name_types(plain, &s);
    buf_printf(out, "%.*s:%.*s (%lld)\n", SV_ARG(s.types[0].type_text),
               SV_ARG(s.types[0].unit_text), (long long)s.period);
    folded_print(plain, out);
}

/* ---- tries and trees ------------------------------------------------------------------------- */

/* Appends a node of a binary tree, which its children follow. */
static void node(struct buf *out, const char *name, unsigned value, unsigned children)
{
    unsigned char number[WIRE_NUMBER_MAX];
    buf_append(out, number, wire_encode(strlen(name), number));
    buf_puts(out, name);
    buf_append(out, number, wire_encode(value, number));
    buf_append(out, number, wire_encode(children, number));
}

static void check_tree(bool is_trie, const struct buf *in, const char *app, const char *want)
{
    struct err err = ERR_INIT;
    struct frames_options o = options_of(app);
    size_t samples = 0;
    SCOPED(buf) pprof = testing_buf(1 << 20);
    SCOPED(buf) got = testing_buf(1 << 20);
    struct sv bytes = {in->data, in->len};
    if ((is_trie ? trie_convert : tree_convert)(bytes, &o, &pprof, &samples, &err)) {
        print(&pprof, &got);
    } else {
        buf_puts(&got, err.msg);
    }
    CHECK_STR(got.data, want, app);
}

TEST(pieces_of_a_trie_are_stacks)
{
    SCOPED(buf) in = testing_buf(1024);
    node(&in, "", 0, 1);
    node(&in, "main;", 0, 2);
    node(&in, "wor", 1, 2);
    node(&in, "k", 3, 0);
    node(&in, "d;x", 300, 0);
    node(&in, "idle", 5, 0);
    check_tree(true, &in, "a",
               "cpu:nanoseconds (10000000)\nwor:0;main:0 10000000\nwork:0;main:0 30000000\n"
               "x:0;word:0;main:0 3000000000\nidle:0;main:0 50000000\n");
    check_tree(true, &in, "a.alloc_space",
               "alloc_space:bytes (0)\nwor:0;main:0 1\nwork:0;main:0 3\nx:0;word:0;main:0 300\n"
               "idle:0;main:0 5\n");
    in.len--; /* the number of children of the last node */
    check_tree(true, &in, "a", "byte 34: the tree is cut");
}

TEST(nodes_of_a_tree_are_frames)
{
    SCOPED(buf) in = testing_buf(1024);
    node(&in, "", 7, 2); /* a value of the root belongs to no stack */
    node(&in, "main", 1, 2);
    node(&in, "work", 3, 1);
    node(&in, "a;b", 4, 0);
    node(&in, "idle", 5, 0);
    node(&in, "gc", 6, 0);
    check_tree(false, &in, "a.inuse_objects",
               "inuse_objects:count (0)\nmain:0 1\nwork:0;main:0 3\na;b:0;work:0;main:0 4\n"
               "idle:0;main:0 5\ngc:0 6\n");
    buf_clear(&in);
    buf_append(&in,
               "\x05"
               "a",
               2);
    check_tree(false, &in, "a", "byte 1: the tree is cut");
    buf_clear(&in);
    check_tree(false, &in, "a", "byte 0: the tree is cut");
}

/* The stacks of a small trie may be large together, and its nodes deep in each other. */
TEST(trees_have_limits)
{
    SCOPED(buf) in = testing_buf(8 << 20);
    char piece[1001];
    memset(piece, 'x', 1000);
    piece[1000] = '\0';
    for (size_t i = 0; i < 1000; i++) {
        node(&in, piece, 1, 1);
    }
    node(&in, piece, 1, 1000);
    check_tree(true, &in, "a", "stacks of more than 268435456 bytes");
    buf_clear(&in);
    for (size_t i = 0; i < 1100; i++) {
        node(&in, piece, 0, 1);
    }
    check_tree(true, &in, "a", "a stack of more than 1048576 bytes");
    buf_clear(&in);
    for (size_t i = 0; i <= FRAMES_DEPTH_MAX; i++) {
        node(&in, "", 0, 1);
    }
    check_tree(true, &in, "a", "nodes nested more than 65536 deep");
}

/* ---- speedscope ------------------------------------------------------------------------------ */

#define FILE_OF(profiles)                                                                          \
    "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"shared\":{"             \
    "\"frames\":[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"c\"}]},\"profiles\":[" profiles     \
    "]}"
#define SAMPLED(name, unit, samples, weights)                                                      \
    "{\"type\":\"sampled\",\"name\":\"" name "\",\"unit\":\"" unit                                 \
    "\",\"startValue\":0,\"endValue\":9,\"samples\":[" samples "],\"weights\":[" weights "]}"
#define EV(type, frame, at) "{\"type\":\"" type "\",\"frame\":" frame ",\"at\":" at "}"
#define EVENTED(unit, events)                                                                      \
    "{\"type\":\"evented\",\"name\":\"e\",\"unit\":\"" unit                                        \
    "\",\"startValue\":1,\"endValue\":9,\"events\":[" events "]}"

static void check_file(const char *json, const char *app, const char *want)
{
    struct err err = ERR_INIT;
    struct speedscope_profile p;
    struct frames_options o = options_of(app);
    struct speedscope *s = speedscope_new(sv_from(json), &err);
    SCOPED(buf) got = testing_buf(1 << 20);
    while (s != NULL && err.kind == ERR_NONE && speedscope_next(s, &p)) {
        SCOPED(buf) pprof = testing_buf(1 << 20);
        if (speedscope_convert(s, &o, &pprof, &p, &err)) {
            buf_printf(&got, "%.*s %s ", SV_ARG(p.name), p.suffix == NULL ? "-" : p.suffix);
            print(&pprof, &got);
        }
    }
    buf_puts(&got, err.msg);
    CHECK_STR(got.data, want, json);
    speedscope_free(s);
}

TEST(samples_have_weights)
{
    check_file(FILE_OF(SAMPLED("one", "milliseconds", "[0,1],[0,1,2],[0]", "1,2.5,0")), "x",
               "one milliseconds cpu:nanoseconds (1)\nb:0;a:0 1000000\nc:0;b:0;a:0 2500000\n");
    check_file(FILE_OF(SAMPLED("n", "none", "[2]", "3")), "x",
               "n - cpu:nanoseconds (10000000)\nc:0 30000000\n");
    check_file(FILE_OF(SAMPLED("n", "bytes", "[2]", "3")), "x.alloc_space",
               "n bytes alloc_space:bytes (0)\nc:0 3\n");
    /* Profiles with the same name and unit become one. */
    check_file(FILE_OF(SAMPLED("n", "seconds", "[0]", "1") "," SAMPLED(
                   "m", "seconds", "[1]", "2") "," SAMPLED("n", "seconds", "[2]", "3")),
               "x.wall",
               "n seconds wall:nanoseconds (1)\na:0 1000000000\nc:0 3000000000\n"
               "m seconds wall:nanoseconds (1)\nb:0 2000000000\n");
}

TEST(events_open_and_close_frames)
{
    check_file(FILE_OF(EVENTED("microseconds",
                               EV("O", "0", "1") "," EV("O", "1", "3") "," EV("C", "1", "7") "," EV(
                                   "O", "2", "7") "," EV("C", "2", "7.5") "," EV("C", "0", "9"))),
               "x",
               "e microseconds cpu:nanoseconds (1)\na:0 2000\nb:0;a:0 4000\nc:0;a:0 500\n"
               "a:0 1500\n");
}

TEST(files_that_are_wrong)
{
    check_file("{", "x", "1:1: string or '}' expected near end of file");
    check_file("{\"$schema\":\"x\"}", "x", "Unknown schema: x");
    check_file(FILE_OF(""), "x", "");
    check_file(FILE_OF(SAMPLED("n", "feet", "[0]", "1")), "x", "profile 0: unknown unit \"feet\"");
    check_file(FILE_OF(SAMPLED("n", "none", "[3]", "1")), "x",
               "profile 0: sample 0: Invalid frame 3");
    check_file(FILE_OF(SAMPLED("n", "none", "[0]", "-1")), "x",
               "profile 0: sample 0: a weight below 0 or of more than 63 bits");
    check_file(FILE_OF(SAMPLED("n", "none", "[0]", "1,2")), "x",
               "profile 0: Unequal lengths of samples and weights: 1 != 2");
    check_file(FILE_OF("{\"type\":\"t\",\"unit\":\"none\"}"), "x",
               "profile 0: Profile type t not supported");
    check_file(FILE_OF(EVENTED("none", EV("C", "0", "1"))), "x",
               "profile 0: event 0: frame 0 is closed, but not open");
    check_file(FILE_OF(EVENTED("none", EV("O", "0", "2") "," EV("C", "0", "1"))), "x",
               "profile 0: event 1: Events out of order");
}
