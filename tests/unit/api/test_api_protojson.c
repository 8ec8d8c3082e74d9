/* Messages as JSON and as bytes: what other implementations of protojson write is read, and what is
 * written reads back as the same message. */
#include <math.h>
#include <string.h>

#include "api/proto/push.pb-c.h"
#include "api/proto/querier.pb-c.h"
#include "api/proto/services.pb-c.h"
#include "api/protojson.h"
#include "tests/unit/lib/testing.h"

#define ARENA_MAX ((size_t)1024 * 1024)

static int setup(void **state)
{
    *state = arena_new(ARENA_MAX);
    return *state == NULL;
}

static int teardown(void **state)
{
    *state = arena_free(*state);
    return 0;
}

static Api__SelectSeriesRequest *read_series(void **state, const char *json)
{
    struct err err = ERR_INIT;
    void *m = protojson_read(sv_from(json), &api__select_series_request__descriptor, *state, &err);
    CHECK(m != NULL, "%s: %s", json, err.msg);
    return m;
}

TEST_WITH(names_are_those_of_json_or_of_the_proto_file, setup, teardown)
{
    static const char *const texts[] = {
        "{\"profileTypeID\":\"t\",\"labelSelector\":\"{}\",\"groupBy\":[\"pod\"],\"step\":15}",
        "{\"profile_typeID\":\"t\",\"label_selector\":\"{}\",\"group_by\":[\"pod\"],\"step\":"
        "\"15\"}",
        "{\"profileTypeID\":\"t\",\"labelSelector\":\"{}\",\"groupBy\":[\"pod\"],\"step\":1.5e1,"
        "\"limit\":null,\"unknown\":{\"a\":[1,null]}}",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        Api__SelectSeriesRequest *m = read_series(state, texts[i]);
        assert_string_equal(m->profile_typeid, "t");
        assert_string_equal(m->label_selector, "{}");
        assert_int_equal(m->n_group_by, 1);
        assert_string_equal(m->group_by[0], "pod");
        assert_true(m->step > 14.9 && m->step < 15.1);
        assert_int_equal(m->limit, 0);
    }
}

TEST_WITH(integers_are_numbers_strings_or_whole_exponents, setup, teardown)
{
    static const struct {
        const char *json;
        int64_t start;
    } cases[] = {
        {"{\"start\":1795307340000}", INT64_C(1795307340000)},
        {"{\"start\":\"1795307340000\"}", INT64_C(1795307340000)},
        {"{\"start\":1.795307340e12}", INT64_C(1795307340000)},
        {"{\"start\":\"1.795307340e12\"}", INT64_C(1795307340000)},
        {"{\"start\":-5}", -5},
        {"{\"start\":\"9223372036854775807\"}", INT64_MAX},
        {"{\"start\":\"-9223372036854775808\"}", INT64_MIN},
        {"{\"start\":5.0}", 5},
        {"{\"start\":null}", 0},
        {"{}", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(read_series(state, cases[i].json)->start, cases[i].start);
    }
}

TEST_WITH(enums_are_names_or_numbers, setup, teardown)
{
    assert_int_equal(
        read_series(state, "{\"exemplarType\":\"EXEMPLAR_TYPE_INDIVIDUAL\"}")->exemplar_type, 2);
    assert_int_equal(read_series(state, "{\"exemplarType\":2}")->exemplar_type, 2);
    assert_int_equal(read_series(state, "{\"exemplarType\":\"NOPE\"}")->exemplar_type, 0);
    assert_int_equal(read_series(state, "{\"exemplarType\":77}")->exemplar_type, 77);
}

TEST_WITH(doubles_have_names_for_what_is_no_number, setup, teardown)
{
    assert_true(isnan(read_series(state, "{\"step\":\"NaN\"}")->step));
    assert_true(isinf(read_series(state, "{\"step\":\"-Infinity\"}")->step));
}

TEST_WITH(wrong_values_name_their_field, setup, teardown)
{
    static const struct text_case cases[] = {
        {"", "zero-length payload is not a valid JSON object"},
        {"{\"start\":", "1:9: "},
        {"[]", "expected an object"},
        {"{\"start\":1795307340000.5}", "field start: expected a 64-bit integer"},
        {"{\"start\":\"\"}", "field start"},
        {"{\"start\":\" 5\"}", "field start"},
        {"{\"start\":\"0x10\"}", "field start"},
        {"{\"start\":\"9223372036854775808\"}", "field start"},
        {"{\"start\":1e19}", "field start"},
        {"{\"start\":true}", "field start"},
        {"{\"step\":\"fast\"}", "field step: expected a number"},
        {"{\"groupBy\":\"pod\"}", "field group_by: expected a list"},
        {"{\"groupBy\":[5]}", "field group_by: expected a string"},
        {"{\"groupBy\":[null]}", "field group_by: expected a string"},
        {"{\"labelSelector\":5}", "field label_selector: expected a string"},
        {"{\"stackTraceSelector\":[]}", "field stack_trace_selector: expected an object"},
        {"{\"stackTraceSelector\":{\"goPgo\":{\"keepLocations\":-1}}}",
         "field keep_locations: expected an unsigned 32-bit integer"},
        {"{\"stackTraceSelector\":{\"goPgo\":{\"aggregateCallees\":1}}}", "expected true or false"},
        {"{\"exemplarType\":1.5}", "expected the name of a value"},
        {"{\"start\":1,\"start\":2}", "duplicate"},
        {"{\"labelSelector\":\"\\u0000\"}", "\\u0000"},
        {"{\"labelSelector\":\"\xff\"}", "byte 0xff"},
        {"{} {}", "1:"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        assert_null(protojson_read(sv_from(cases[i].text), &api__select_series_request__descriptor,
                                   *state, &err));
        assert_int_equal(err.kind, ERR_INPUT);
        CHECK(strstr(err.msg, cases[i].want) != NULL, "%s: %s, expected %s", cases[i].text, err.msg,
              cases[i].want);
    }
}

TEST_WITH(base64_is_of_either_alphabet_and_needs_no_padding, setup, teardown)
{
    static const char *const texts[] = {"+/8=", "-_8=", "+/8", "-_8"};
    for (size_t i = 0; i < 4; i++) {
        char json[64];
        struct err err = ERR_INIT;
        snprintf(json, sizeof(json), "{\"rawProfile\":\"%s\",\"ID\":\"x\"}", texts[i]);
        Api__RawSample *m = (Api__RawSample *)protojson_read(
            sv_from(json), &api__raw_sample__descriptor, *state, &err);
        assert_non_null(m);
        assert_int_equal(m->raw_profile.len, 2);
        assert_memory_equal(m->raw_profile.data, "\xfb\xff", 2);
    }
    struct err err = ERR_INIT;
    assert_null(protojson_read(SV("{\"rawProfile\":\"+/8*\"}"), &api__raw_sample__descriptor,
                               *state, &err));
    assert_non_null(strstr(err.msg, "expected base64"));
}

/* Recorded: the bytes and the JSON of the same messages. */
TEST_WITH(answers_are_written_as_they_were_recorded, setup, teardown)
{
    Api__LabelPair pair;
    Api__LabelPair *pairs[] = {&pair};
    Api__Point point;
    Api__Point *points[] = {&point};
    Api__Series series;
    Api__Series *list[] = {&series};
    Api__SelectSeriesResponse answer;
    static char name[] = "pod";
    static char value[] = "b";
    api__label_pair__init(&pair);
    api__point__init(&point);
    api__series__init(&series);
    api__select_series_response__init(&answer);
    pair.name = name;
    pair.value = value;
    point.value = 60000000;
    point.timestamp = INT64_C(1795307415000);
    series.n_labels = 1;
    series.labels = pairs;
    series.n_points = 1;
    series.points = points;
    answer.n_series = 1;
    answer.series = list;
    SCOPED(buf) out = testing_buf(ARENA_MAX);
    assert_true(protojson_write(&answer.base, &out));
    assert_string_equal(out.data,
                        "{\"series\":[{\"labels\":[{\"name\":\"pod\",\"value\":\"b\"}],"
                        "\"points\":[{\"value\":60000000,\"timestamp\":\"1795307415000\"}]}]}");
    buf_clear(&out);
    assert_true(protojson_write_bytes(&answer.base, &out));
    static const unsigned char bytes[] = {
        0x0a, 0x1c, 0x0a, 0x08, 0x0a, 0x03, 0x70, 0x6f, 0x64, 0x12, 0x01, 0x62, 0x12, 0x10, 0x09,
        0x00, 0x00, 0x00, 0x00, 0x38, 0x9c, 0x8c, 0x41, 0x10, 0xd8, 0xcb, 0xa4, 0x85, 0xa0, 0x34};
    assert_int_equal(out.len, sizeof(bytes));
    assert_memory_equal(out.data, bytes, sizeof(bytes));
}

TEST_WITH(defaults_are_left_out_but_in_lists, setup, teardown)
{
    int64_t values[] = {0, 50000000, 0, 0};
    Api__Level level;
    Api__Level *levels[] = {&level};
    Api__FlameGraph graph;
    Api__SelectMergeStacktracesResponse answer;
    api__level__init(&level);
    api__flame_graph__init(&graph);
    api__select_merge_stacktraces_response__init(&answer);
    SCOPED(buf) out = testing_buf(ARENA_MAX);
    assert_true(protojson_write(&answer.base, &out));
    assert_string_equal(out.data, "{}");
    buf_clear(&out);
    level.values = values;
    level.n_values = 4;
    graph.levels = levels;
    graph.n_levels = 1;
    graph.max_self = 7;
    answer.flamegraph = &graph;
    assert_true(protojson_write(&answer.base, &out));
    assert_string_equal(out.data, "{\"flamegraph\":{\"levels\":[{\"values\":[\"0\",\"50000000\","
                                  "\"0\",\"0\"]}],\"maxSelf\":\"7\"}}");
}

TEST_WITH(names_of_json_follow_those_of_the_proto_file, setup, teardown)
{
    static char x[] = "x";
    Api__FeatureFlag flag;
    Api__VersionResponse version;
    Api__ProfileType type;
    SCOPED(buf) out = testing_buf(ARENA_MAX);
    api__feature_flag__init(&flag);
    api__version_response__init(&version);
    api__profile_type__init(&type);
    flag.documentation_url = x;
    flag.enabled = 1;
    protojson_write(&flag.base, &out);
    version.querierapi = 1;
    protojson_write(&version.base, &out);
    type.id = x;
    type.sample_type = x;
    protojson_write(&type.base, &out);
    assert_string_equal(out.data, "{\"enabled\":true,\"documentationUrl\":\"x\"}"
                                  "{\"QuerierAPI\":\"1\"}{\"ID\":\"x\",\"sampleType\":\"x\"}");
}

TEST_WITH(bytes_are_read_packed_or_not_and_with_unknown_fields, setup, teardown)
{
    static const struct {
        const char *bytes;
        size_t n;
    } cases[] = {
        {"\x0a\x02\x05\x06", 4},                           /* packed */
        {"\x08\x05\x08\x06", 4},                           /* one by one */
        {"\x92\x03\x01x\x0a\x02\x05\x06\x98\x03\x07", 11}, /* fields 50 and 51 */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        Api__Level *m = (Api__Level *)protojson_read_bytes((struct sv){cases[i].bytes, cases[i].n},
                                                           &api__level__descriptor, *state, &err);
        assert_non_null(m);
        assert_int_equal(m->n_values, 2);
        assert_int_equal(m->values[0], 5);
        assert_int_equal(m->values[1], 6);
    }
}

TEST_WITH(damaged_bytes_are_refused, setup, teardown)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *message;
    } cases[] = {
        {"\x08\xff", 2, "invalid protobuf"},
        {"\x0a\x05x", 3, "invalid protobuf"},
        {"\x0a\x01\xff", 3, "invalid UTF-8"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        assert_null(protojson_read_bytes((struct sv){cases[i].bytes, cases[i].n},
                                         &api__label_values_request__descriptor, *state, &err));
        assert_int_equal(err.kind, ERR_INPUT);
        assert_non_null(strstr(err.msg, cases[i].message));
    }
}

TEST_WITH(messages_are_bounded_by_the_arena, setup, teardown)
{
    struct err err = ERR_INIT;
    SCOPED(arena) *arena = arena_new((size_t)4 * 1024);
    SCOPED(buf) json = testing_buf(ARENA_MAX);
    buf_puts(&json, "{\"matchers\":[");
    for (int i = 0; i < 1000; i++) {
        buf_puts(&json, i == 0 ? "\"xyz\"" : ",\"xyz\"");
    }
    buf_puts(&json, "]}");
    assert_null(protojson_read((struct sv){json.data, json.len},
                               &api__label_values_request__descriptor, arena, &err));
    assert_int_equal(err.kind, ERR_LIMIT);
    buf_clear(&json);
    for (int i = 0; i < 1000; i++) {
        buf_append(&json, "\x12\x03xyz", 5);
    }
    err_clear(&err);
    assert_null(protojson_read_bytes((struct sv){json.data, json.len},
                                     &api__label_values_request__descriptor, arena, &err));
    assert_int_equal(err.kind, ERR_LIMIT);
}

TEST_WITH(strings_of_messages_are_made_valid, setup, teardown)
{
    assert_string_equal(protojson_string(*state, SV("plain")), "plain");
    assert_string_equal(protojson_string(*state, (struct sv){NULL, 0}), "");
    assert_string_equal(protojson_string(*state, SV("a\xff"
                                                    "b")),
                        "a\xef\xbf\xbd"
                        "b");
    assert_string_equal(protojson_string(*state, SV("a\0b")), "a\xef\xbf\xbd"
                                                              "b");
}
