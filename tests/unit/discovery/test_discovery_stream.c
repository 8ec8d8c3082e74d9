/* Objects out of a byte stream: the same ones however the bytes are chunked. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "discovery/kubernetes/json_stream.h"

/* Small limits, so that cases stay readable. */
#define OBJECT_MAX ((size_t)200)
#define DEPTH_MAX 8

static const struct schema_row container[] = {{.name = "n"}, SCHEMA_END};
static const struct schema_row spec[] = {{.name = "c", .members = container}, SCHEMA_END};
static const struct schema_row metadata[] = {{.name = "labels"}, {.name = "name"}, SCHEMA_END};
static const struct schema_row few[] = {{.name = "a"}, {.name = "b"}, {.name = "b2"}, SCHEMA_END};
static const struct schema_row none[] = {SCHEMA_END};
static const struct schema_row keep[] = {{.name = "metadata", .members = metadata},
                                         {.name = "spec", .members = spec},
                                         {.name = "m", .members = few},
                                         {.name = "none", .members = none},
                                         SCHEMA_END};

/* Records the output: "O {...}", "M {...}", "S <reason>", one per line. */
struct record {
    struct buf text;
};

static void record_json(struct record *r, const char *mark, const json_t *json)
{
    SCOPED_MEMORY char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    assert_non_null(text);
    buf_printf(&r->text, "%s %s\n", mark, text);
}

static void on_object(void *arg, const json_t *json)
{
    record_json(arg, "O", json);
}

static void on_metadata(void *arg, const json_t *json)
{
    record_json(arg, "M", json);
}

static void on_skip(void *arg, enum discovery_skip why)
{
    static const char *const names[] = {"large", "deep", "syntax", "memory"};
    struct record *r = arg;
    buf_printf(&r->text, "S %s\n", names[why]);
}

static struct json_stream *new_stream(struct record *r, const struct schema_row *members)
{
    buf_init(&r->text, 1 << 20);
    struct json_stream *s = json_stream_new(&(struct json_stream_options){
        .object_max = OBJECT_MAX,
        .depth_max = DEPTH_MAX,
        .members = members,
        .on_object = on_object,
        .on_metadata = on_metadata,
        .on_skip = on_skip,
        .arg = r,
    });
    assert_non_null(s);
    return s;
}

/* Feeds pieces that end at the given places; returns how the stream ended. */
static void feed(struct json_stream *s, struct record *r, enum json_stream_form form, struct sv in,
                 size_t piece, size_t cut)
{
    json_stream_begin(s, form);
    buf_clear(&r->text);
    bool ok = true;
    size_t i = 0;
    while (i < in.n && ok) {
        size_t n = piece;
        if (cut != 0) {
            n = i == 0 ? cut : in.n - cut;
        }
        n = n < in.n - i ? n : in.n - i;
        /* An exact copy, so that a sanitizer sees a read past the piece. */
        SCOPED_MEMORY char *copy = testing_memory(n);
        memcpy(copy, in.p + i, n);
        struct err err = ERR_INIT;
        ok = json_stream_feed(s, copy, n, &err);
        assert_int_equal(ok, err.kind == ERR_NONE);
        i += n;
    }
    buf_puts(&r->text, !ok ? "broken" : json_stream_complete(s) ? "complete" : "unfinished");
}

static void check_members(const char *name, enum json_stream_form form, struct sv in,
                          const struct schema_row *members, const char *want)
{
    struct record r;
    struct json_stream *s = new_stream(&r, members);
    feed(s, &r, form, in, in.n, 0);
    CHECK_STR(r.text.data, want, name);
    for (size_t piece = 1; piece <= 7; piece++) {
        feed(s, &r, form, in, piece, 0);
        CHECK_STR(r.text.data, want, name);
    }
    for (size_t cut = 1; cut < in.n; cut++) {
        feed(s, &r, form, in, 1, cut);
        CHECK_STR(r.text.data, want, name);
    }
    json_stream_free(s);
    buf_done(&r.text);
}

static void check_all_ways(const char *name, enum json_stream_form form, struct sv in,
                           const char *want)
{
    check_members(name, form, in, NULL, want);
}

struct stream_case {
    const char *name;
    const char *in;
    const char *want;
};

static void check_cases(const struct stream_case *cases, size_t n, enum json_stream_form form)
{
    for (size_t i = 0; i < n; i++) {
        check_all_ways(cases[i].name, form, sv_from(cases[i].in), cases[i].want);
    }
}
#define CHECK_CASES(cases, form) check_cases((cases), sizeof(cases) / sizeof((cases)[0]), (form))

TEST(test_watch)
{
    static const struct stream_case cases[] = {
        {"nothing", "", "complete"},
        {"empty object", "{}", "O {}\ncomplete"},
        {"two events", "{\"a\":1}\n{\"b\":2}\n", "O {\"a\":1}\nO {\"b\":2}\ncomplete"},
        {"no line ends", "{\"a\":1}{\"b\":2}", "O {\"a\":1}\nO {\"b\":2}\ncomplete"},
        {"line ends of DOS, blank lines", "\r\n {\"a\":1}\r\n\t\r\n", "O {\"a\":1}\ncomplete"},
        {"line ends between members", "{\n\"a\":\n[1,\n2]}", "O {\"a\":[1,2]}\ncomplete"},
        {"brackets in strings", "{\"a{\":\"}]{[\"}{}", "O {\"a{\":\"}]{[\"}\nO {}\ncomplete"},
        {"escaped quotes", "{\"a\\\"}\":\"\\\\\"}{\"b\":\"\\\\\\\"{\"}",
         "O {\"a\\\"}\":\"\\\\\"}\nO {\"b\":\"\\\\\\\"{\"}\ncomplete"},
        {"cut in an object", "{\"a\":1}\n{\"b\":", "O {\"a\":1}\nunfinished"},
        {"cut in a string", "{\"a\":\"x", "unfinished"},
        {"not JSON within brackets", "{\"a\":tru}\n{\"b\":2}", "S syntax\nO {\"b\":2}\ncomplete"},
        {"trailing comma", "{\"a\":1,}\n{\"b\":2}", "S syntax\nO {\"b\":2}\ncomplete"},
        {"wrong bracket", "{\"a\":[1}}\n{\"b\":2}", "S syntax\nO {\"b\":2}\ncomplete"},
        {"number too large for a double", "{\"a\":1e400}\n{\"b\":2}",
         "S syntax\nO {\"b\":2}\ncomplete"},
        {"minus zero", "{\"a\":-0}", "O {\"a\":0}\ncomplete"},
        {"the last of two members wins", "{\"a\":1,\"a\":2}", "O {\"a\":2}\ncomplete"},
        {"text instead of an event", "<html>\n{\"b\":2}", "S syntax\nO {\"b\":2}\ncomplete"},
        {"byte order mark", "\xef\xbb\xbf{\"a\":1}\n{\"b\":2}\n",
         "S syntax\nO {\"b\":2}\ncomplete"},
        {"bracket too many", "{\"a\":1}}\n{\"b\":2}",
         "O {\"a\":1}\nS syntax\nO {\"b\":2}\ncomplete"},
        {"a line ends within a string", "{\"a\":\"x\n{\"b\":2}\n",
         "S syntax\nO {\"b\":2}\ncomplete"},
        {"lone surrogate", "{\"a\":\"x\\ud800y\"}", "O {\"a\":\"x\xef\xbf\xbdy\"}\ncomplete"},
        {"lone low surrogate", "{\"a\":\"\\uDC00\\\\ud800\"}",
         "O {\"a\":\"\xef\xbf\xbd\\\\ud800\"}\ncomplete"},
        {"surrogates in the wrong order", "{\"a\":\"\\udc00\\ud800\"}",
         "O {\"a\":\"\xef\xbf\xbd\xef\xbf\xbd\"}\ncomplete"},
        {"surrogate and letter", "{\"a\":\"\\ud800\\u0041\"}",
         "O {\"a\":\"\xef\xbf\xbd"
         "A\"}\ncomplete"},
        {"surrogate pair beside a lone one", "{\"a\":\"\\ud83d\\ude00\\ud83d\"}",
         "O {\"a\":\"\xf0\x9f\x98\x80\xef\xbf\xbd\"}\ncomplete"},
        {"surrogate cut off by the quote", "{\"a\":\"\\ud83\"}", "S syntax\ncomplete"},
        {"invalid UTF-8",
         "{\"a\":\"x\xff"
         "y\"}",
         "O {\"a\":\"x\xef\xbf\xbdy\"}\ncomplete"},
        {"NUL in a string", "{\"a\":\"x\\u0000y\"}", "O {\"a\":\"x\\u0000y\"}\ncomplete"},
        {"NUL in a name", "{\"x\\u0000y\":1}{}", "S syntax\nO {}\ncomplete"},
        {"array instead of an object", "[1]\n{}", "S syntax\nO {}\ncomplete"},
        {"as deep as allowed", "{\"o\":{\"2\":{\"3\":{\"4\":{\"5\":{\"6\":{\"7\":{\"8\":[]}}}}}}}}",
         "O {\"o\":{\"2\":{\"3\":{\"4\":{\"5\":{\"6\":{\"7\":{\"8\":[]}}}}}}}}\ncomplete"},
        {"too deep", "{\"o\":{\"2\":{\"3\":{\"4\":{\"5\":{\"6\":{\"7\":{\"8\":[[]]}}}}}}}}{}",
         "S deep\nO {}\ncomplete"},
    };
    CHECK_CASES(cases, JSON_STREAM_OBJECTS);
}

TEST(test_list)
{
    static const struct stream_case cases[] = {
        {"empty", "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}",
         "M {\"resourceVersion\":\"7\"}\ncomplete"},
        {"null", "{\"items\":null,\"metadata\":{}}", "M {}\ncomplete"},
        {"items",
         "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"a\":\"]}\"},"
         "\"items\":[{\"a\":1},{\"b\":[{}]}]}\n",
         "M {\"a\":\"]}\"}\nO {\"a\":1}\nO {\"b\":[{}]}\ncomplete"},
        {"metadata after the items", " { \"items\" : [ {\"a\":1} , {} ] , \"metadata\" : { } } ",
         "O {\"a\":1}\nO {}\nM {}\ncomplete"},
        {"other members of all kinds",
         "{\"n\":-1.5e3,\"t\":true,\"x\":{\"items\":[{\"no\":1}],\"metadata\":{}},\"y\":[[]],"
         "\"s\":\"\\\"items\",\"items\":[{}],\"z\":0}",
         "O {}\ncomplete"},
        {"names with escapes and long ones",
         "{\"item\\u0073\":[{}],\"a name that is longer than any\":[],\"items\":[]}", "complete"},
        {"items that are no objects", "{\"items\":[1,null,\"x\",[{}],{\"a\":1}]}",
         "S syntax\nS syntax\nS syntax\nS syntax\nO {\"a\":1}\ncomplete"},
        {"items that are no array", "{\"items\":{\"a\":1}}", "complete"},
        {"no items", "{\"metadata\":{}}", "M {}\nunfinished"},
        {"nothing", "", "unfinished"},
        {"empty object", "{}", "unfinished"},
        {"half", "{\"items\":[{\"a\":1},{\"b\":", "O {\"a\":1}\nunfinished"},
        {"without its end", "{\"items\":[{\"a\":1}]", "O {\"a\":1}\nunfinished"},
        {"a bad item in the middle", "{\"items\":[{\"a\":1},{\"b\":tru},{\"c\":3}]}",
         "O {\"a\":1}\nS syntax\nO {\"c\":3}\ncomplete"},
        {"text", "<html>", "broken"},
        {"array", "[]", "broken"},
        {"comma at the end of items", "{\"items\":[{},]}", "O {}\nbroken"},
        {"comma at the end", "{\"items\":[],}", "broken"},
        {"missing colon", "{\"items\"[]}", "broken"},
        {"missing value", "{\"items\":,\"a\":1}", "broken"},
        {"missing comma", "{\"items\":[{}{}]}", "O {}\nbroken"},
        {"a byte after the end", "{\"items\":[]}x", "broken"},
        {"item too deep",
         "{\"items\":[{\"2\":{\"3\":{\"4\":{\"5\":{\"6\":{\"7\":{\"8\":[[]]}}}}}}},{}]}",
         "S deep\nO {}\ncomplete"},
        {"item as deep as allowed",
         "{\"items\":[{\"2\":{\"3\":{\"4\":{\"5\":{\"6\":{\"7\":{\"8\":[]}}}}}}}]}",
         "O {\"2\":{\"3\":{\"4\":{\"5\":{\"6\":{\"7\":{\"8\":[]}}}}}}}\ncomplete"},
    };
    CHECK_CASES(cases, JSON_STREAM_LIST);
}

/* An error beside a dropped member remains an error. */
TEST(test_keep_keeps_mistakes)
{
    static const struct stream_case cases[] = {
        {"comma at the end", "{\"a\":1,}", "S syntax\nO {}\ncomplete"},
        {"comma after a dropped member", "{\"a\":1,\"x\":1,}", "S syntax\nO {}\ncomplete"},
        {"two commas", "{\"a\":1,,\"b\":2}", "S syntax\nO {}\ncomplete"},
        {"comma at the start", "{,\"a\":1}", "S syntax\nO {}\ncomplete"},
        {"no name", "{\"a\":1,{\"b\":2}}", "S syntax\nO {}\ncomplete"},
        {"no comma", "{\"a\":1 \"b\":2}", "S syntax\nO {}\ncomplete"},
        {"a number for a name", "{\"a\":1,2}", "S syntax\nO {}\ncomplete"},
        {"wrong bracket", "{\"a\":[1}}", "S syntax\nO {}\ncomplete"},
        {"left out: too deep", "{\"x\":[[[[[[[]]]]]]]}", "S deep\nO {}\ncomplete"},
        {"left out: as deep as allowed", "{\"x\":[[[[[[]]]]]]}",
         "O {\"object\":{\"m\":{}}}\nO {}\ncomplete"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char in[200];
        snprintf(in, sizeof(in), "{\"object\":{\"m\":%s}}{}", cases[i].in);
        check_members(cases[i].name, JSON_STREAM_OBJECTS, sv_from(in), keep, cases[i].want);
    }
}

TEST(test_keep)
{
    static const struct stream_case cases[] = {
        {"what is not listed is left out",
         "{\"metadata\":{\"managedFields\":[{\"a\":\"}]\\\"\"},1],\"name\":\"x\"},"
         "\"spec\":{\"c\":[{\"env\":[{\"name\":\"A\"}],\"n\":1},{\"n\":2,\"env\":null}]}}",
         "O {\"metadata\":{\"name\":\"x\"},"
         "\"spec\":{\"c\":[{\"n\":1},{\"n\":2}]}}\n"},
        {"names count where they are listed",
         "{\"name\":1,\"n\":2,\"metadata\":{\"c\":1,\"n\":1,\"metadata\":{}},\"c\":[{\"n\":1}]}",
         "O {\"metadata\":{}}\n"},
        {"without a list all is kept",
         "{\"metadata\":{\"labels\":{\"env\":\"prod\",\"x\":{\"y\":[{\"z\":1}]}}},"
         "\"m\":{\"a\":{\"z\":[{\"y\":1}]}}}",
         "O {\"m\":{\"a\":{\"z\":[{\"y\":1}]}},"
         "\"metadata\":{\"labels\":{\"env\":\"prod\",\"x\":{\"y\":[{\"z\":1}]}}}}\n"},
        {"arrays in arrays, and other values for objects",
         "{\"spec\":{\"c\":[[{\"n\":1,\"x\":1}],7,\"n\",{\"x\":{\"n\":1}}]},\"m\":\"x\"}",
         "O {\"m\":\"x\",\"spec\":{\"c\":[[{\"n\":1}],7,\"n\",{}]}}\n"},
        {"a member after one that was no object", "{\"m\":1,\"none\":{\"a\":1},\"spec\":{\"a\":1}}",
         "O {\"m\":1,\"none\":{},\"spec\":{}}\n"},
        {"a value is no name", "{\"m\":{\"a\":\"x\",\"x\":\"a\"}}", "O {\"m\":{\"a\":\"x\"}}\n"},
        {"in the middle", "{\"m\":{\"a\":1,\"x\":{\"x\":[1,{\"y\":2,\"z\":3}]},\"b\":2}}",
         "O {\"m\":{\"a\":1,\"b\":2}}\n"},
        {"first and last",
         "{\"x\":0,\"m\":{\"x\":[{},1],\"a\":1,\"y\":[[2],3]},\"spec\":{ \"x\" : {\"a\":[]} }}",
         "O {\"m\":{\"a\":1},\"spec\":{}}\n"},
        {"several in a row",
         "{\"m\":{\"x\":1,\"x\":[],\"a\":1,\"x\":{},\"y\":\"x\",\"b\":2,\"z\":null}}",
         "O {\"m\":{\"a\":1,\"b\":2}}\n"},
        {"names like it, and ones with escapes",
         "{\"m\":{\"\":3,\"bb\":4,\"a \":5,\"b2\":6,\"b\\\\\":7,\"\\u0061\":8}}",
         "O {\"m\":{\"a\":8,\"b2\":6,\"b\\\\\":7}}\n"},
        {"a name that is longer than any that is listed is kept",
         "{\"m\":{\"a name that is longer than what can be left out\":6}}",
         "O {\"m\":{\"a name that is longer than what can be left out\":6}}\n"},
        {"word and string", "{\"m\":{\"x\":true,\"b\":2},\"none\":{\"b\":\"x\"}}",
         "O {\"m\":{\"b\":2},\"none\":{}}\n"},
        {"quotes and brackets in what is left out",
         "{\"x\":{\"}\\\"\":\"\\\\\",\"{\":[\"]\",\"\\\"]\",{\"\\\\\\\"\":\"}\"}]},\"m\":{\"a\":1}"
         "}",
         "O {\"m\":{\"a\":1}}\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char in[600];
        char want[600];
        snprintf(in, sizeof(in), "{\"metadata\":{\"x\":1},\"items\":[%s]}", cases[i].in);
        snprintf(want, sizeof(want), "M {\"x\":1}\n%scomplete", cases[i].want);
        check_members(cases[i].name, JSON_STREAM_LIST, sv_from(in), keep, want);
        snprintf(in, sizeof(in), "{\"type\":\"T\",\"x\":1,\"object\":%s}\n", cases[i].in);
        size_t n = strlen(cases[i].want);
        snprintf(want, sizeof(want), "O {\"object\":%.*s,\"type\":\"T\"}\ncomplete", (int)(n - 3),
                 cases[i].want + 2);
        check_members(cases[i].name, JSON_STREAM_OBJECTS, sv_from(in), keep, want);
    }
}

/* An object of exactly n bytes. */
static void add_object(struct buf *b, size_t n)
{
    size_t frame = strlen("{\"a\":\"\"}");
    buf_puts(b, "{\"a\":\"");
    for (size_t i = frame; i < n; i++) {
        buf_putc(b, 'x');
    }
    buf_puts(b, "\"}");
}

TEST(test_too_large)
{
    static const struct {
        const char *name;
        size_t size;
        const char *want;
    } cases[] = {
        {"one byte too many", OBJECT_MAX + 1, "S large\nO {}\ncomplete"},
        {"far too many", JSON_STREAM_RUNAWAY * OBJECT_MAX, "S large\nO {}\ncomplete"},
        {"no end in sight", JSON_STREAM_RUNAWAY * (OBJECT_MAX + 1), "broken"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(buf) in = testing_buf(1 << 16);
        add_object(&in, cases[i].size);
        buf_puts(&in, "\n{}");
        check_all_ways(cases[i].name, JSON_STREAM_OBJECTS, (struct sv){in.data, in.len},
                       cases[i].want);
    }
}

/* The limit counts the received bytes, not the kept ones. */
TEST(test_exact_size)
{
    SCOPED(buf) in = testing_buf(1 << 16);
    SCOPED(buf) want = testing_buf(1 << 16);
    add_object(&in, OBJECT_MAX);
    buf_printf(&want, "O %s\ncomplete", in.data);
    check_all_ways("exactly the limit", JSON_STREAM_OBJECTS, (struct sv){in.data, in.len},
                   want.data);
    buf_clear(&in);
    buf_puts(&in, "{\"items\":[{\"m\":{\"managedFields\":");
    add_object(&in, OBJECT_MAX);
    buf_puts(&in, "}},{}]}");
    check_all_ways("left out and too large", JSON_STREAM_LIST, (struct sv){in.data, in.len},
                   "S large\nO {}\ncomplete");
}

TEST(test_very_deep)
{
    struct record r;
    struct json_stream *s = new_stream(&r, NULL);
    SCOPED(buf) in = testing_buf(1 << 16);
    buf_puts(&in, "{\"items\":[{\"a\":");
    /* More than the bitmap of objects holds, less than the limit of bytes. */
    for (int i = 0; i < 80; i++) {
        buf_putc(&in, '[');
    }
    for (int i = 0; i < 80; i++) {
        buf_putc(&in, ']');
    }
    buf_puts(&in, "},{\"b\":1}]}");
    feed(s, &r, JSON_STREAM_LIST, (struct sv){in.data, in.len}, 3, 0);
    CHECK_STR(r.text.data, "S deep\nO {\"b\":1}\ncomplete", "");
    json_stream_free(s);
    buf_done(&r.text);
}

/* A hundred thousand levels cost neither stack nor memory. */
TEST(test_bottomless)
{
    struct record r;
    buf_init(&r.text, 1 << 20);
    struct json_stream *s = json_stream_new(&(struct json_stream_options){
        .object_max = 2000000,
        .depth_max = 64,
        .on_object = on_object,
        .on_metadata = on_metadata,
        .on_skip = on_skip,
        .arg = &r,
    });
    assert_non_null(s);
    json_stream_begin(s, JSON_STREAM_OBJECTS);
    static char many[100000];
    memset(many, '[', sizeof(many));
    struct err err = ERR_INIT;
    assert_true(json_stream_feed(s, "{\"a\":", 5, &err));
    assert_true(json_stream_feed(s, many, sizeof(many), &err));
    memset(many, ']', sizeof(many));
    assert_true(json_stream_feed(s, many, sizeof(many), &err));
    assert_true(json_stream_feed(s, "}{\"b\":1}", 8, &err));
    CHECK_STR(r.text.data, "S deep\nO {\"b\":1}\n", "");
    json_stream_free(s);
    buf_done(&r.text);
}

/* Nothing of an incomplete stream reaches the next one. */
TEST(test_begin_again)
{
    struct record r;
    struct json_stream *s = new_stream(&r, NULL);
    feed(s, &r, JSON_STREAM_LIST, SV("{\"items\":[{\"a\":\"x"), 100, 0);
    CHECK_STR(r.text.data, "unfinished", "");
    feed(s, &r, JSON_STREAM_OBJECTS, SV("{\"b\":2}"), 100, 0);
    CHECK_STR(r.text.data, "O {\"b\":2}\ncomplete", "");
    feed(s, &r, JSON_STREAM_LIST, SV("{\"metadata\":{}}"), 100, 0);
    CHECK_STR(r.text.data, "M {}\nunfinished", "items of the stream before do not count");
    json_stream_free(s);
    buf_done(&r.text);
}

/* Allocations that the parser may still make. */
static long allowance;

static void *scarce_malloc(size_t size)
{
    return allowance-- > 0 ? malloc(size) : NULL;
}

static void on_whole_object(void *arg, const json_t *json)
{
    /* Not rendered as text here: that would allocate. */
    struct record *r = arg;
    buf_printf(&r->text, "O%zu\n", json_object_size(json));
}

/* Whichever allocation fails, the object is reported as skipped, and the next one is complete. */
TEST(test_no_memory)
{
    static const char object[] = "{\"a\":[1,\"a string\",{\"b\":1.5}]}";
    struct record r;
    json_stream_free(new_stream(&r, NULL));
    struct json_stream *s = json_stream_new(&(struct json_stream_options){
        .object_max = OBJECT_MAX,
        .depth_max = DEPTH_MAX,
        .on_object = on_whole_object,
        .on_metadata = on_metadata,
        .on_skip = on_skip,
        .arg = &r,
    });
    assert_non_null(s);
    long n = 0;
    long called_memory = 0;
    do {
        json_stream_begin(s, JSON_STREAM_OBJECTS);
        buf_clear(&r.text);
        json_set_alloc_funcs(scarce_malloc, free);
        struct err err = ERR_INIT;
        allowance = n++;
        assert_true(json_stream_feed(s, object, strlen(object), &err));
        json_set_alloc_funcs(malloc, free);
        assert_true(json_stream_feed(s, "{}", 2, &err));
        CHECK_CONTAINS(r.text.data, "\nO0\n", "the next one");
        CHECK_INT(r.text.data[0] == 'S' || strcmp(r.text.data, "O1\nO0\n") == 0, true, r.text.data);
        called_memory += strcmp(r.text.data, "S memory\nO0\n") == 0 ? 1 : 0;
    } while (r.text.data[0] == 'S');
    /* The parser cannot always distinguish these: see parse(). */
    assert_in_range(called_memory, n / 2, n - 1);
    json_stream_free(s);
    buf_done(&r.text);
}
