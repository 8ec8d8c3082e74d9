/* The parsers of the receiving APIs: names and forms of /ingest, stacks as text, times, names of
 * profiles. */
#include "tests/unit/lib/testing.h"

#include "api/attime.h"
#include "api/receive/folded.h"
#include "api/receive/ingest_name.h"
#include "api/receive/multipart.h"
#include "api/receive/profile_name.h"
#include "base/clock.h"
#include "pprof/check.h"
#include "tests/unit/lib/pprof_writer.h"

/* ---- names ----------------------------------------------------------------------------------- */

TEST(names)
{
    static const struct {
        const char *text;
        const char *want; /* app|k=v|k=v, or the error */
    } cases[] = {
        {"app", "app"},
        {" app ", "app"},
        {"a-b.c/d_1{env=prod,pod=a}", "a-b.c/d_1|env=prod|pod=a"},
        {"app{ env = prod , pod=a }", "app|env=prod|pod=a"},
        {"app{region=\"cn\"}", "app|region=\"cn\""},
        {"app{a=b=c{d}", "app|a=b=c{d"},
        {"app{otel.scope.name=x}", "app|otel.scope.name=x"},
        {"app{my-label=1,a/b=2}", "app|my-label=1|a/b=2"}, /* more than the server takes */
        {"foo{a=1}b=2}", "foo|a=1|b=2"},
        {"foo{bar=1", "foo"},
        {"foo{bar}", "foo"},
        {"foo{a=1,b=2", "foo|a=1"},
        {"foo{a=1,a=2}", "foo|a=2"},
        {"foo{a=}", "foo|a="},
        {"foo{__name__=other}", "other"},
        {"foo{__session_id__=1,__foo__=2,a=1}", "foo|a=1"},
        {"foo{profile_id=1}", "foo|profile_id=1|ID"},
        {"foo{a=\xc3\xbc}", "foo|a=\xc3\xbc"},
        {"", "name: service name is required"},
        {"{a=1}", "name: service name is required"},
        {"a b", "name: invalid service name: a b: character is not allowed: ' '"},
        {"a\xc3\xbc{x=1}",
         "name: invalid service name: a\xc3\xbc: character is not allowed: '\xc3\xbc'"},
        {"a\xff", "name: invalid service name: no UTF-8"},
        {"a{=1}", "name: label name is required: "},
        {"a{x{=1}", "name: invalid label name: x{: character is not allowed: '{'"},
        {"a{x y=1}", "name: invalid label name: x y: character is not allowed: ' '"},
        {"a{x,y=1}", "name: invalid label name: x,y: character is not allowed: ','"},
        {"a{x\xff=1}", "name: invalid label name: no UTF-8"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        struct ingest_name name;
        SCOPED(buf) got = testing_buf(4096);
        if (ingest_name_read(sv_from(cases[i].text), &name, &err)) {
            buf_append(&got, name.app.p, name.app.n);
            for (size_t k = 0; k < name.n; k++) {
                buf_printf(&got, "|%.*s=%.*s", SV_ARG(name.pairs[k].name),
                           SV_ARG(name.pairs[k].value));
            }
            buf_puts(&got, name.has_profile_id ? "|ID" : "");
        } else {
            buf_puts(&got, err.msg);
        }
        CHECK_STR(got.data, cases[i].want, cases[i].text);
    }
}

TEST(too_many_pairs)
{
    struct err err = ERR_INIT;
    struct ingest_name name;
    SCOPED(buf) text = testing_buf(65536);
    buf_puts(&text, "app{");
    for (int i = 0; i <= INGEST_PAIRS_MAX; i++) {
        buf_printf(&text, "k%d=v,", i);
    }
    assert_false(ingest_name_read((struct sv){text.data, text.len}, &name, &err));
    CHECK_STR(err.msg, "name: more than 256 labels", "");
}

/* ---- forms ----------------------------------------------------------------------------------- */

TEST(boundaries)
{
    static const struct {
        const char *type;
        const char *want; /* NULL: none */
    } cases[] = {
        {"multipart/form-data; boundary=abc", "abc"},
        {"multipart/form-data;boundary=\"a;b\"", "a;b"},
        {"Multipart/Form-Data; charset=utf-8; Boundary=abc ; x=y", "abc"},
        {"multipart/form-data; xboundary=abc", NULL},
        {"multipart/form-data; boundary=", NULL},
        {"multipart/form-data; boundary", NULL},
        {"multipart/form-data", NULL},
        {"multipart/form-data; boundary=\"", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sv boundary;
        bool found = multipart_boundary(sv_from(cases[i].type), &boundary);
        CHECK_INT(multipart_is_type(sv_from(cases[i].type)), true, cases[i].type);
        CHECK_INT(found, cases[i].want != NULL, cases[i].type);
        if (found && cases[i].want != NULL) {
            char text[80];
            (void)snprintf(text, sizeof(text), "%.*s", SV_ARG(boundary));
            CHECK_STR(text, cases[i].want, cases[i].type);
        }
    }
    assert_false(multipart_is_type(SV("application/octet-stream; x=multipart/form-data")));
}

#define PART(name) "Content-Disposition: form-data; name=\"" name "\"; filename=\"f\"\r\n\r\n"

TEST(forms)
{
    static const struct {
        const char *body;
        const char *want; /* name=content for each part, then the error */
    } cases[] = {
        {"--b\r\n" PART("profile") "data\r\n--b--\r\n", "profile=data;"},
        {"preamble\r\n--b\r\n" PART("a") "1\r\n--b\r\n" PART("c") "2\r\n--b--", "a=1;c=2;"},
        {"--b\n"
         "content-disposition: form-data; filename=x; name=a\n\n1\n--b--\n",
         "a=1;"},
        {"--b\r\n" PART("a") "\r\n--b--\r\n", "a=;"},
        {"--b\r\n" PART("a") "--bc\r\n--b--\r\n", "a=--bc;"}, /* a longer boundary is none */
        {"--b\r\n" PART("a") "x--b\r\n--b--\r\n", "a=x--b;"}, /* nor is one within a line */
        {"--b\r\nX: y\r\n\r\n1\r\n--b--\r\n", "=1;"},
        {"--b  \r\n" PART("a") "1\r\n--b\t\r\n" PART("c") "2\r\n--b--", "a=1;c=2;"},
        {"", "the form has no part: its boundary is not in the body"},
        {"no", "the form has no part: its boundary is not in the body"},
        {"--b\r\n" PART("a") "1", "part 1 of the form is cut: no boundary ends it"},
        {"--b\r\n" PART("a") "1\r\n--b\r\n", "a=1;part 2 of the form is cut: no boundary ends it"},
        {"--b\r\nX: y\r\n--b--\r\n", "number 1: part of the form: its head has no end"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        struct multipart m;
        struct multipart_part part;
        SCOPED(buf) got = testing_buf(4096);
        if (multipart_start(&m, sv_from(cases[i].body), SV("b"), &err)) {
            while (multipart_next(&m, &part, &err)) {
                buf_printf(&got, "%.*s=%.*s;", SV_ARG(part.name), SV_ARG(part.content));
            }
        }
        buf_puts(&got, err.msg);
        CHECK_STR(got.data, cases[i].want, cases[i].body);
    }
}

TEST(too_many_parts)
{
    struct err err = ERR_INIT;
    struct multipart m;
    struct multipart_part part;
    size_t n = 0;
    SCOPED(buf) body = testing_buf(1 << 20);
    for (int i = 0; i < MULTIPART_PARTS_MAX + 2; i++) {
        buf_puts(&body, "--b\r\n" PART("a") "1\r\n");
    }
    assert_true(multipart_start(&m, (struct sv){body.data, body.len}, SV("b"), &err));
    while (multipart_next(&m, &part, &err)) {
        n++;
    }
    CHECK_INT(n, MULTIPART_PARTS_MAX, "");
    CHECK_STR(err.msg, "the form has more than 1000 parts", "");
}

/* ---- times ----------------------------------------------------------------------------------- */

TEST(times)
{
    const int64_t now = INT64_C(1795307400) * NS_PER_S;
    static const struct {
        const char *text;
        int64_t want_ns; /* 0: now */
    } cases[] = {
        {"1795307400", INT64_C(1795307400000000000)},
        {"1795307400123", INT64_C(1795307400123000000)},
        {"1795307400123456", INT64_C(1795307400123456000)},
        {"1795307400123456789", INT64_C(1795307400123456789)},
        {"20261122", INT64_C(1795305600000000000)},
        {"20261399", INT64_C(20261399000000000)}, /* no date */
        {"19000101", INT64_C(19000101000000000)},
        {" 1_795,307 400 ", INT64_C(1795307400000000000)},
        {"123456789012", 0}, /* twelve digits of seconds do not fit */
        {"99999999999999999999999999", 0},
        {"now", 0},
        {"now-1h", INT64_C(1795303800000000000)},
        {"now+30m", INT64_C(1795309200000000000)},
        {"now-2min", INT64_C(1795307280000000000)},
        {"now-1d", INT64_C(1795221000000000000)},
        {"now-1M", INT64_C(1792715400000000000)},
        {"now-1x", 0},
        {"now-h", 0},
        {"now-99999999999999y", 0},
        {"yesterday", 0},
        {"-5", 0},
        {"", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t want = cases[i].want_ns == 0 ? now : cases[i].want_ns;
        CHECK_INT(attime_read(sv_from(cases[i].text), now), want, cases[i].text);
    }
}

/* ---- stacks as text -------------------------------------------------------------------------- */

static void put_frames(const struct pprof_summary *s, struct buf *out)
{
    buf_printf(out, "%zu samples, %zu functions, %.*s/%.*s, period %lld %.*s", s->n[PROFILE_SAMPLE],
               s->n[PROFILE_FUNCTION], SV_ARG(s->types[0].type_text), SV_ARG(s->types[0].unit_text),
               (long long)s->period, SV_ARG(s->period_type.type_text));
}

TEST(folded)
{
    static const struct {
        const char *app, *text;
        bool counted;
        unsigned rate;
        const char *want;
    } cases[] = {
        {"a.cpu", "main;work 3\nmain;idle 5\n", true, 100,
         "a process_cpu: 2 samples, 3 functions, cpu/nanoseconds, period 10000000 cpu"},
        {"a", "main 3", true, 100,
         "a process_cpu: 1 samples, 1 functions, cpu/nanoseconds, period 10000000 cpu"},
        {"a.b.wall", "main;work\r\n\r\nmain\n", false, 10,
         "a.b wall: 2 samples, 2 functions, wall/nanoseconds, period 100000000 cpu"},
        {"a.inuse_space", "a;b 1000", true, 100,
         "a memory: 1 samples, 2 functions, inuse_space/bytes, period 0 "},
        {"a.block_duration", "a 1", true, 100,
         "a block: 1 samples, 1 functions, delay/nanoseconds, period 0 "},
        {"a.cpu", "", true, 100,
         "a process_cpu: 0 samples, 0 functions, cpu/nanoseconds, period 10000000 cpu"},
        {"a.cpu", "a;b;c with space 7", true, 100,
         "a process_cpu: 1 samples, 3 functions, cpu/nanoseconds, period 10000000 cpu"},
        {"a.cpu", "main 1\nmain", true, 100,
         "line 2: expected a stack, a space and a count, got \"main\""},
        {"a.cpu", "main x", true, 100,
         "line 1: expected a stack, a space and a count, got \"main x\""},
        {"a.cpu", "main 9223372036854775807", true, 100, "line 1: the count is too large"},
        {"a.strange", "main 1", true, 100, "no type"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        struct sv service;
        struct pprof_summary summary;
        size_t samples = 0;
        SCOPED(buf) out = testing_buf(1 << 20);
        SCOPED(buf) got = testing_buf(4096);
        const struct frames_type *type = frames_type_of(sv_from(cases[i].app), &service);
        const struct folded_input in = {
            .text = sv_from(cases[i].text),
            .counted = cases[i].counted,
            .o = {.type = type, .sample_rate = cases[i].rate, .time_ns = 5}};
        if (type == NULL) {
            buf_puts(&got, "no type");
        } else if (!folded_convert(&in, &out, &samples, &err)) {
            buf_puts(&got, err.msg);
        } else {
            struct sv plain = {out.data, out.len};
            assert_true(pprof_check(plain, &summary, &err));
            pprof_summary_name_types(plain, &summary);
            CHECK_INT(samples, summary.n[PROFILE_SAMPLE], cases[i].text);
            CHECK_INT(summary.time_ns, 5, cases[i].text);
            buf_printf(&got, "%.*s %s: ", SV_ARG(service), type->name);
            put_frames(&summary, &got);
        }
        CHECK_STR(got.data, cases[i].want, cases[i].text);
    }
}

/* The values and the order of frames: the sum of the samples of one leaf, in bytes of the wire. */
TEST(folded_bytes)
{
    struct err err = ERR_INIT;
    struct sv service;
    size_t samples;
    static const unsigned char sample[] = {0x12, 0x09, 0x08, 0x02, 0x08, 0x01,
                                           0x10, 0x80, 0x87, 0xa7, 0x0e};
    SCOPED(buf) out = testing_buf(1 << 20);
    const struct folded_input in = {
        .text = SV("main;work 3\n"),
        .counted = true,
        .o = {.type = frames_type_of(SV("a"), &service), .sample_rate = 100}};
    assert_true(folded_convert(&in, &out, &samples, &err));
    /* Locations work (2) and main (1), 3 samples of 10 ms. */
    assert_memory_equal(out.data, sample, sizeof(sample));
}

TEST(folded_limits)
{
    struct err err = ERR_INIT;
    struct sv service;
    size_t samples;
    SCOPED(buf) out = testing_buf(1000);
    SCOPED(buf) text = testing_buf(16 << 20);
    struct folded_input in = {.counted = false,
                              .o = {.type = frames_type_of(SV("a"), &service), .sample_rate = 100}};
    for (int i = 0; i < FRAMES_DEPTH_MAX; i++) {
        buf_puts(&text, "a;");
    }
    buf_puts(&text, "a");
    in.text = (struct sv){text.data, text.len};
    assert_false(folded_convert(&in, &out, &samples, &err));
    CHECK_STR(err.msg, "line 1: more than 65536 frames", "");
    buf_clear(&text);
    for (int i = 0; i <= FOLDED_LINES_MAX; i++) {
        buf_puts(&text, "\n");
    }
    err_clear(&err);
    in.text = (struct sv){text.data, text.len};
    assert_false(folded_convert(&in, &out, &samples, &err));
    CHECK_STR(err.msg, "more than 500000 lines", "");
    buf_clear(&text);
    for (int i = 0; i <= FRAMES_FUNCTIONS_MAX; i++) {
        buf_printf(&text, i % 1000 == 999 ? "%x\n" : "%x;", (unsigned)i);
    }
    err_clear(&err);
    buf_done(&out);
    buf_init(&out, 64 << 20);
    in.text = (struct sv){text.data, text.len};
    assert_false(folded_convert(&in, &out, &samples, &err));
    CHECK_STR(err.msg, "line 501: more than 500000 different functions", "");
    buf_done(&out);
    buf_init(&out, 100);
    err_clear(&err);
    in.text =
        SV("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa;bbbbbbbbbbbbbbbbbbb");
    assert_false(folded_convert(&in, &out, &samples, &err));
    CHECK_STR(err.msg, "the profile would be too large", "");
}

/* ---- names of profiles ----------------------------------------------------------------------- */

TEST(profile_names)
{
    static const struct {
        const char *types; /* separated by blanks */
        const char *config, *app, *want;
    } cases[] = {
        {"samples cpu", "", "a", "process_cpu"},
        {"cpu samples", "", "a", "process_cpu"},
        {"alloc_objects alloc_space inuse_objects inuse_space", "", "a", "memory"},
        {"inuse_space", "", "a", "memory"},
        {"objects space", "", "a", "memory"},
        {"goroutine", "", "a", "goroutine"},
        {"goroutine", "{\"goroutine\":{\"display-name\":\"goroutines\"}}", "a", "goroutine"},
        {"contentions delay", "", "a", "mutex"},
        {"contentions delay", "", "a.block", "block"},
        {"contentions delay",
         "{\"contentions\":{\"display-name\":\"block_count\"},\"delay\":{\"display-name\":"
         "\"block_duration\"}}",
         "a", "block"},
        {"contentions delay",
         "{\"contentions\":{\"display-name\":\"mutex_count\"},\"delay\":{\"display-name\":"
         "\"mutex_duration\"}}",
         "a.block", "mutex"},
        {"samples time", "", "a", "process_cpu"},
        {"samples time",
         "{\"samples\":{\"display-name\":\"fgprof\"},\"time\":{\"display-name\":\"fgprof\"}}", "a",
         "fgprof"},
        {"samples cpu", "{}", "a", "process_cpu"},
        {"threadcreate", "", "a", "threadcreate"},
        {"sample wall", "", "a", "wall"},
        {"goroutineleak", "{\"goroutineleak\":{\"display-name\":\"goroutine_leak\"}}", "a",
         "goroutine_leak"},
        {"x y", "", "a", "y"},
        {"samples", "[1]", "a", "sample_type_config: expected a JSON object: got another value"},
        {"samples", "{", "a", "sample_type_config: expected a JSON object: "},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        struct pprof_summary s = {.n = {0}};
        struct sv rest = sv_from(cases[i].types);
        bool more = true;
        while (more) {
            struct sv type = rest;
            more = sv_cut(rest, ' ', &type, &rest);
            s.types[s.n[PROFILE_SAMPLE_TYPE]++].type_text = type;
        }
        SCOPED(buf) out = testing_buf(1024);
        bool ok = profile_name_of(&s, sv_from(cases[i].config), sv_from(cases[i].app), &out, &err);
        CHECK_CONTAINS(ok ? out.data : err.msg, cases[i].want, cases[i].types);
        CHECK_INT(ok, strstr(cases[i].want, "expected") == NULL, cases[i].types);
    }
}
