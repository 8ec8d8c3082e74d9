/* Pyroscope's query APIs: exchanges that were recorded from the real server, asked of ours with the
 * same profiles. tests/unit/data/query/exchanges.jsonl has one each line; `why` is there where ours
 * answers otherwise on purpose, and says so (docs/querying.md lists them).
 */
#include <jansson.h>

#include "api/settings.h"
#include "tests/unit/api/exchange_rig.h"
#include "tests/unit/api/stored_rig.h"
#include "tests/unit/lib/pprof_writer.h"

#define EXCHANGES 132
#define PT "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define RANGE "\"start\":1795307340000,\"end\":1795307460000"
#define QUERIER "/querier.v1.QuerierService/"

struct fixture {
    struct testing_log *log;
    char *then_dir;
    char *now_dir;
    struct rig_process then; /* the profiles are of the time of the recording */
    struct rig_process now;  /* they are of half an hour ago */
};

static void fixture_begin(struct fixture *f)
{
    f->log = testing_log_new();
    f->then_dir = testing_mkdtemp();
    f->now_dir = testing_mkdtemp();
    f->then = (struct rig_process){
        .sets = ROUTE_QUERY,
        .served.settings = settings_new(NULL, testing_log(f->log)),
        .served.store = stored_store_new(f->then_dir, testing_log(f->log)),
        .served.version = "1.2.3",
    };
    stored_put_three(f->then.served.store, STORED_T0_NS);
    f->now = f->then;
    f->now.served.store = stored_store_new(f->now_dir, testing_log(f->log));
    stored_put_three(f->now.served.store, clock_wall_ns() - 1800 * NS_PER_S);
}

static void fixture_end(struct fixture *f)
{
    store_close(f->then.served.store);
    store_close(f->now.served.store);
    settings_free(f->then.served.settings);
    testing_rmdir(f->then_dir);
    testing_rmdir(f->now_dir);
    free(f->then_dir);
    free(f->now_dir);
    testing_log_done(f->log);
}

FIXTURE(fixture, fixture_begin, fixture_end)

/* ---- comparing ------------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

/* Labels of exemplars have no order, and ids are random. */
static void normalise(json_t *v)
{
    const char *key;
    json_t *child;
    size_t i;
    if (json_object_get(v, "profileId") != NULL) {
        json_t *labels = json_object_get(v, "labels");
        json_t *sorted = json_object();
        json_array_foreach(labels, i, child)
        {
            json_object_set(sorted, text_of(child, "name"), json_object_get(child, "value"));
        }
        json_object_set_new(v, "labels", sorted);
        json_object_del(v, "profileId");
    }
    json_object_foreach(v, key, child)
    {
        normalise(child);
    }
    json_array_foreach(v, i, child)
    {
        normalise(child);
    }
}

/* The element of a list whose id is this, by the member of that name. */
static const json_t *by_id(const json_t *list, const char *id)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        if (strcmp(text_of(item, "id"), id) == 0) {
            return item;
        }
    }
    return NULL;
}

static const char *string_at(const json_t *profile, const char *index)
{
    return json_string_value(
        json_array_get(json_object_get(profile, "stringTable"), (size_t)strtoul(index, NULL, 10)));
}

static void frames_of(const json_t *profile, const char *location_id, struct buf *out)
{
    const json_t *location = by_id(json_object_get(profile, "location"), location_id);
    const json_t *mapping =
        by_id(json_object_get(profile, "mapping"), text_of(location, "mappingId"));
    size_t i;
    json_t *line;
    buf_printf(out, " %s+%s", string_at(profile, text_of(mapping, "filename")),
               text_of(location, "address"));
    json_array_foreach(json_object_get(location, "line"), i, line)
    {
        const json_t *function =
            by_id(json_object_get(profile, "function"), text_of(line, "functionId"));
        buf_printf(out, " %s@%s:%s/%s", string_at(profile, text_of(function, "name")),
                   string_at(profile, text_of(function, "filename")), text_of(line, "line"),
                   text_of(function, "startLine"));
    }
}

/* Lines of stacks with their value, sorted, and what the profile says of itself: the order of
 * samples, ids and strings is free. */
static json_t *stacks_of(const json_t *profile)
{
    static const char *const plain[] = {"timeNanos", "durationNanos", "period"};
    json_t *stacks = json_object();
    size_t i;
    size_t k;
    json_t *sample;
    json_t *id;
    SCOPED(buf) line = testing_buf(1 << 16);
    json_array_foreach(json_object_get(profile, "sample"), i, sample)
    {
        buf_clear(&line);
        json_array_foreach(json_object_get(sample, "locationId"), k, id)
        {
            frames_of(profile, json_string_value(id), &line);
        }
        assert_null(json_object_get(stacks, line.data));
        json_object_set(stacks, line.data, json_object_get(sample, "value"));
    }
    for (i = 0; i < 3; i++) {
        json_object_set_new(stacks, plain[i], json_string(text_of(profile, plain[i])));
    }
    json_array_foreach(json_object_get(profile, "sampleType"), i, sample)
    {
        json_object_set_new(stacks, "type",
                            json_string(string_at(profile, text_of(sample, "type"))));
        json_object_set_new(stacks, "unit",
                            json_string(string_at(profile, text_of(sample, "unit"))));
    }
    return stacks;
}

static json_t *profile_in(const json_t *answer)
{
    const json_t *pprof = json_object_get(answer, "pprof");
    return stacks_of(pprof != NULL ? json_object_get(pprof, "profile") : answer);
}

static void drop_descriptions(json_t *answer)
{
    size_t i;
    json_t *flag;
    json_array_foreach(json_object_get(answer, "featureFlags"), i, flag)
    {
        json_object_del(flag, "description");
    }
}

static bool same_json(json_t *got, json_t *want, const char *how)
{
    bool same;
    if (strcmp(how, "profile") == 0) {
        json_t *a = profile_in(got);
        json_t *b = profile_in(want);
        same = json_equal(a, b) != 0;
        json_decref(a);
        json_decref(b);
        return same;
    }
    if (strcmp(how, "no timeline") == 0) {
        json_object_del(got, "timeline");
    } else if (strcmp(how, "flags") == 0) {
        drop_descriptions(got);
    }
    normalise(got);
    normalise(want);
    return json_equal(got, want) != 0;
}

static bool same_hex(const struct rig_answer *a, const char *hex)
{
    size_t n = strlen(hex) / 2;
    bool same = a->n == n;
    for (size_t i = 0; same && i < n; i++) {
        unsigned byte = 0;
        char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        byte = (unsigned)strtoul(digits, NULL, 16);
        same = (unsigned char)a->body[i] == byte;
    }
    return same;
}

/* The message of an error begins with this. */
static bool has_prefix(json_t *got, json_t *want, const char *prefix)
{
    return strcmp(text_of(got, "code"), text_of(want, "code")) == 0 &&
           strncmp(text_of(got, "message"), prefix, strlen(prefix)) == 0;
}

static bool same_body(const struct rig_answer *a, const json_t *exchange)
{
    const char *how = text_of(exchange, "how");
    const char *prefix = text_of(exchange, "prefix");
    json_t *want = json_object_get(exchange, "answer");
    if (json_object_get(exchange, "hex") != NULL) {
        return same_hex(a, text_of(exchange, "hex"));
    }
    if (strcmp(how, "dot") == 0) {
        return strstr(a->body, "digraph") != NULL && strstr(a->body, "main") != NULL;
    }
    if (want == NULL) {
        return strcmp(a->body, text_of(exchange, "text")) == 0;
    }
    json_t *got = json_loadb(a->body, a->n, JSON_DECODE_ANY, NULL);
    json_t *copy = json_deep_copy(want);
    bool same = got != NULL &&
                (prefix[0] != '\0' ? has_prefix(got, copy, prefix) : same_json(got, copy, how));
    json_decref(got);
    json_decref(copy);
    return same;
}

static bool same_answer(const struct rig_answer *a, const json_t *exchange)
{
    const char *how = text_of(exchange, "how");
    int status = (int)json_integer_value(json_object_get(exchange, "status"));
    if (a->status == 0 || (status == STATUS_METHOD && a->type == NULL)) {
        return status == STATUS_NOT_FOUND || status == a->status; /* the server's own answer */
    }
    if (strcmp(how, "status 504 or 200") == 0 && a->status == STATUS_OK) {
        return true;
    }
    if (strcmp(how, "status 504 or 200") == 0) {
        return a->status == status;
    }
    return a->status == status && strcmp(a->type, text_of(exchange, "type")) == 0 &&
           same_body(a, exchange);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static struct rig_answer ask(const struct rig_process *options, const json_t *exchange)
{
    char head[4096] = "";
    size_t i;
    json_t *line;
    json_array_foreach(json_object_get(exchange, "request"), i, line)
    {
        size_t n = strlen(head);
        snprintf(head + n, sizeof(head) - n, "%s%s\r\n", json_string_value(line),
                 i == 0 ? " HTTP/1.1" : "");
    }
    SCOPED(buf) body = testing_buf(1 << 20);
    buf_puts(&body, text_of(exchange, "body"));
    const char *hex = text_of(exchange, "hex_body");
    for (i = 0; i + 1 < strlen(hex); i += 2) {
        char digits[3] = {hex[i], hex[i + 1], '\0'};
        buf_putc(&body, (char)strtoul(digits, NULL, 16));
    }
    struct rig_answer a = rig_ask(options, head, (struct sv){body.data, body.len});
    return a;
}

/* Recorded when two settings had been made. */
static void prepare(const struct fixture *f, const char *name)
{
    if (strcmp(name, "v-settings-get2") == 0) {
        SCOPED(rig_answer)
        a = rig_call(&f->then, "/settings.v1.SettingsService/Set",
                     "{\"setting\":{\"name\":\"x\",\"value\":\"y\","
                     "\"modifiedAt\":\"1795307400000\"}}");
        CHECK_INT(a.status, 200, a.body);
    }
}

TEST_ON(struct fixture *f, recorded_exchanges)
{
    int asked = 0;
    int on_purpose = 0;
    int differ = 0;
    SCOPED(buf) lines = testing_read_file("tests/unit/data/query/exchanges.jsonl");
    struct sv rest = {lines.data, lines.len};
    struct sv line;
    while (sv_cut(rest, '\n', &line, &rest)) {
        json_auto_t *exchange = json_loadb(line.p, line.n, 0, NULL);
        assert_non_null(exchange);
        const char *name = text_of(exchange, "name");
        prepare(f, name);
        struct rig_answer a =
            ask(json_is_true(json_object_get(exchange, "now")) ? &f->now : &f->then, exchange);
        asked++;
        on_purpose += json_object_get(exchange, "why") != NULL;
        if (!same_answer(&a, exchange)) {
            json_t *want = json_object_get(exchange, "answer");
            SCOPED_MEMORY char *text = want == NULL ? NULL : json_dumps(want, JSON_ENCODE_ANY);
            differ++;
            print_error("%s: got %d %s, wanted %lld %s%s%s\n", name, a.status, a.body,
                        json_integer_value(json_object_get(exchange, "status")),
                        text == NULL ? "" : text, text_of(exchange, "text"),
                        text_of(exchange, "hex"));
        }
        rig_answer_done(&a);
    }
    print_message("%d exchanges, %d of them otherwise on purpose\n", asked, on_purpose);
    assert_int_equal(asked, EXCHANGES);
    assert_int_equal(differ, 0);
}

/* ---- beside the recorded ones ---------------------------------------------------------------- */

static void check(const struct rig_process *options, const char *method, const char *json,
                  int status, const char *text)
{
    char path[128];
    snprintf(path, sizeof(path), QUERIER "%s", method);
    SCOPED(rig_answer) a = rig_call(options, path, json);
    CHECK(a.status == status && strstr(a.body, text) != NULL, "%s %s: %d %s, wanted %d %s", method,
          json, a.status, a.body, status, text);
}

/* Time range, type, nodes or step, selector: the first mistake is the one that is named. */
TEST_ON(struct fixture *f, checks_have_an_order)
{
    static const struct {
        const char *method, *json, *text;
    } rows[] = {
        {"SelectMergeStacktraces", "{\"maxNodes\":-1,\"labelSelector\":\"{\"}", "missing time"},
        {"SelectMergeStacktraces", "{" RANGE ",\"maxNodes\":-1,\"labelSelector\":\"{\"}",
         "got(1): \\\"\\\""},
        {"SelectMergeStacktraces",
         "{" RANGE ",\"profileTypeID\":\"" PT "\",\"maxNodes\":-1,\"labelSelector\":\"{\"}",
         "max flamegraph nodes limit must be set (max allowed 1048576)"},
        {"SelectMergeStacktraces",
         "{" RANGE ",\"profileTypeID\":\"" PT "\",\"labelSelector\":\"{\"}",
         "parsing label selector \\\"{\\\": 1:"},
        {"SelectSeries", "{" RANGE ",\"profileTypeID\":\"" PT "\",\"labelSelector\":\"{\"}",
         "step must be >= 1ms"},
        {"SelectSeries",
         "{" RANGE ",\"profileTypeID\":\"" PT "\",\"labelSelector\":\"{\",\"step\":\"NaN\"}",
         "step must be >= 1ms"},
        {"SelectSeries",
         "{" RANGE ",\"profileTypeID\":\"" PT "\",\"labelSelector\":\"{\",\"step\":0.0005}",
         "step must be >= 1ms"},
        {"SelectHeatmap",
         "{" RANGE ",\"profileTypeID\":\"" PT "\",\"labelSelector\":\"{}\",\"step\":15,"
         "\"queryType\":1,\"limit\":-1}",
         "limit must be >= 0"},
        {"SelectHeatmap",
         "{\"start\":5,\"end\":5,\"profileTypeID\":\"" PT
         "\",\"labelSelector\":\"{}\",\"step\":15,\"queryType\":1}",
         "start must be before end"},
        {"SelectHeatmap",
         "{" RANGE ",\"profileTypeID\":\"" PT "\",\"labelSelector\":\"{}\",\"step\":15,"
         "\"queryType\":2,\"exemplarType\":2}",
         "individual exemplars only available for individual query type"},
        {"SelectHeatmap",
         "{" RANGE ",\"profileTypeID\":\"" PT "\",\"labelSelector\":\"{}\",\"step\":15,"
         "\"queryType\":1,\"exemplarType\":3}",
         "span exemplars only available for span query type"},
        {"LabelValues", "{" RANGE "}", "name is required"},
        {"LabelValues", "{\"start\":1,\"name\":\"x\"}", "missing time range"},
        {"LabelNames", "{\"start\":2,\"end\":1}", "query start time is after end time"},
        {"LabelNames", "{" RANGE ",\"matchers\":[\"\"]}",
         "failed to parse label selector \\\"\\\""},
        {"ProfileTypes", "{\"start\":5}", "missing time range"},
        {"Diff", "{\"left\":{" RANGE ",\"profileTypeID\":\"" PT "\",\"labelSelector\":\"{}\"}}",
         "got(1): \\\"\\\""},
        {"Diff", "{\"left\":{\"maxNodes\":-1}}", "got(1): \\\"\\\""},
        {"SelectMergeStacktraces",
         "{" RANGE ",\"profileTypeID\":\"" PT "\",\"labelSelector\":\"{}\",\"traceIdSelector\":"
         "[\"7c9e\"]}",
         "invalid trace id length: \\\"7c9e\\\""},
        {"SelectMergeStacktraces",
         "{" RANGE ",\"profileTypeID\":\"" PT "\",\"labelSelector\":\"{}\",\"spanSelector\":"
         "[\"xxxxxxxxxxxxxxxx\"]}",
         "invalid span id: "},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check(&f->then, rows[i].method, rows[i].json, 400, rows[i].text);
    }
}

/* Grafana asks for 1970 first: a range without profiles is no error. */
TEST_ON(struct fixture *f, a_range_without_profiles_is_empty)
{
    check(&f->then, "ProfileTypes", "{\"start\":1000,\"end\":4000}", 200, "{}");
    check(&f->then, "LabelNames", "{\"start\":1000,\"end\":4000}", 200, "{}");
    check(&f->then, "Series", "{\"start\":1000,\"end\":4000}", 200, "{}");
    check(&f->then, "SelectMergeProfile",
          "{\"start\":1000,\"end\":4000,\"profileTypeID\":\"" PT "\",\"labelSelector\":\"{}\"}",
          200, "{}");
    check(&f->then, "SelectSeries",
          "{\"start\":1000,\"end\":4000,\"profileTypeID\":\"" PT
          "\",\"labelSelector\":\"{}\",\"step\":15}",
          200, "{}");
    check(&f->then, "SelectMergeStacktraces",
          "{\"start\":1000,\"end\":4000,\"profileTypeID\":\"" PT
          "\",\"labelSelector\":\"{}\",\"format\":2}",
          200, "{}");
    check(&f->then, "SelectMergeStacktraces",
          "{\"start\":1000,\"end\":4000,\"profileTypeID\":\"" PT
          "\",\"labelSelector\":\"{}\",\"format\":\"PROFILE_FORMAT_DOT\"}",
          200, "{}");
    check(&f->then, "SelectMergeStacktraces",
          "{\"start\":1000,\"end\":4000,\"profileTypeID\":\"" PT
          "\",\"labelSelector\":\"{}\",\"format\":\"PROFILE_FORMAT_PPROF\"}",
          200, "{\"pprof\":{\"profile\":{}}}");
}

TEST_ON(struct fixture *f, without_a_store_queries_are_unavailable)
{
    struct rig_process none = f->then;
    none.served.store = NULL;
    check(&none, "GetProfileStats", "{}", 503, "{\"code\":\"unavailable\"");
    check(&none, "LabelNames", "{" RANGE "}", 503, "no profiles are stored here");
}

/* Names that some clients cannot show are kept from those. */
TEST_ON(struct fixture *f, names_of_other_characters_are_for_those_who_ask)
{
    SCOPED(buf) data = stored_file("p1");
    struct label labels[] = {stored_label("__name__", "process_cpu"), stored_label("k8s.pod", "x"),
                             stored_label("service_name", "dots")};
    struct label more[] = {stored_label("__name__", "process_cpu"), stored_label("k8s.pod", "y"),
                           stored_label("service_name", "dots")};
    stored_put(f->then.served.store, labels, 3, (struct sv){data.data, data.len}, STORED_T0_NS);
    stored_put(f->then.served.store, more, 3, (struct sv){data.data, data.len}, STORED_T0_NS);
    static const struct {
        const char *path, *json;
        bool capable;
        const char *answer;
    } rows[] = {
        {"LabelNames",
         "{" RANGE ",\"matchers\":[\"{service_name=\\\"dots\\\",__type__=\\\"cpu\\\"}\"]}", false,
         "{\"names\":[\"__name__\",\"__period_type__\",\"__period_unit__\",\"__profile_type__\","
         "\"__service_name__\",\"__type__\",\"__unit__\",\"service_name\"]}"},
        {"LabelNames", "{" RANGE ",\"matchers\":[\"{service_name=\\\"dots\\\"}\"]}", true,
         "{\"names\":[\"__name__\",\"__period_type__\",\"__period_unit__\",\"__profile_type__\","
         "\"__service_name__\",\"__type__\",\"__unit__\",\"k8s.pod\",\"service_name\"]}"},
        {"Series",
         "{" RANGE ",\"matchers\":[\"{service_name=\\\"dots\\\"}\"],\"labelNames\":[\"k8s.pod\","
         "\"service_name\"]}",
         true,
         "{\"labelsSet\":[{\"labels\":[{\"name\":\"k8s.pod\",\"value\":\"x\"},{\"name\":"
         "\"service_name\",\"value\":\"dots\"}]},{\"labels\":[{\"name\":\"k8s.pod\",\"value\":"
         "\"y\"},{\"name\":\"service_name\",\"value\":\"dots\"}]}]}"},
        {"Series",
         "{" RANGE ",\"matchers\":[\"{service_name=\\\"dots\\\"}\"],\"labelNames\":[\"k8s.pod\","
         "\"service_name\"]}",
         false, "{\"labelsSet\":[{\"labels\":[{\"name\":\"service_name\",\"value\":\"dots\"}]}]}"},
        {"Series", "{" RANGE ",\"labelNames\":[\"k8s.pod\"]}", false, "{}"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char head[512];
        snprintf(head, sizeof(head),
                 "POST " QUERIER "%s HTTP/1.1\r\nContent-Type: application/json\r\n%s",
                 rows[i].path, rows[i].capable ? "Accept: */*;allow-utf8-labelnames=true\r\n" : "");
        SCOPED(rig_answer) a = rig_ask(&f->then, head, sv_from(rows[i].json));
        CHECK_STR(a.body, rows[i].answer, rows[i].json);
    }
}

/* An exemplar's id leads to its profile alone. */
TEST_ON(struct fixture *f, an_exemplar_can_be_opened)
{
    char query[1024];
    struct rig_answer a =
        rig_call(&f->then, QUERIER "SelectSeries",
                 "{" RANGE ",\"profileTypeID\":\"" PT "\",\"labelSelector\":\"{service_name="
                 "\\\"vecdemo\\\"}\",\"step\":60,\"groupBy\":[\"pod\"],\"exemplarType\":2}");
    json_auto_t *json = json_loads(a.body, 0, NULL);
    const json_t *series = json_array_get(json_object_get(json, "series"), 0);
    const json_t *point = json_array_get(json_object_get(series, "points"), 0);
    const json_t *exemplar = json_array_get(json_object_get(point, "exemplars"), 0);
    CHECK_INT(strlen(text_of(exemplar, "profileId")), STORE_ID_LENGTH, a.body);
    snprintf(query, sizeof(query),
             "{" RANGE ",\"profileTypeID\":\"" PT
             "\",\"labelSelector\":\"{}\",\"profileIdSelector\":[\"%s\"]}",
             text_of(exemplar, "profileId"));
    check(&f->then, "SelectMergeStacktraces", query, 200, "\"total\":\"60000000\"");
    rig_answer_done(&a);
}

/* The exemplar of a heatmap of spans names a span and its trace. */
TEST_ON(struct fixture *f, a_span_of_a_heatmap_can_be_opened)
{
    const struct pprof_spec spec = {.types = "cpu/nanoseconds", .time_nanos = STORED_T0_NS};
    const struct pprof_row rows[] = {
        {"a main", "span_id=abad1deaabad1dea,trace_id=ace0ace0ace0ace0ace0ace0ace0ace0", {7}},
        {"b main", "", {8}},
    };
    SCOPED(buf) b = pprof_make(&spec, rows, 2);
    const struct label labels[] = {stored_label("__name__", "spans"),
                                   stored_label("service_name", "spans")};
    stored_put(f->then.served.store, labels, 2, (struct sv){b.data, b.len}, STORED_T0_NS);
    check(&f->then, "SelectHeatmap",
          "{" RANGE ",\"profileTypeID\":\"spans:cpu:nanoseconds::\",\"labelSelector\":\"{}\","
          "\"step\":15,\"queryType\":2,\"exemplarType\":3}",
          200,
          "\"exemplars\":[{\"timestamp\":\"1795307400000\",\"spanId\":\"abad1deaabad1dea\","
          "\"value\":\"7\",");
    check(&f->then, "SelectHeatmap",
          "{" RANGE ",\"profileTypeID\":\"spans:cpu:nanoseconds::\",\"labelSelector\":\"{}\","
          "\"step\":15,\"queryType\":2,\"exemplarType\":3}",
          200, "\"traceId\":\"ace0ace0ace0ace0ace0ace0ace0ace0\"");
    check(&f->then, "SelectMergeSpanProfile",
          "{" RANGE ",\"profileTypeID\":\"spans:cpu:nanoseconds::\",\"labelSelector\":\"{}\","
          "\"spanSelector\":[\"abad1deaabad1dea\"]}",
          200, "\"total\":\"7\"");
}

/* Trees have the roots that Go's runtime cut off, unless the URL says otherwise; profiles never. */
TEST_ON(struct fixture *f, cut_stacks_are_repaired)
{
    static const struct {
        const char *method, *more, *text;
    } rows[] = {
        {"SelectMergeStacktraces", "", "\"1640\""},
        {"SelectMergeStacktraces?repair=true", "", "\"1640\""},
        {"SelectMergeStacktraces?repair=false", "", "\"1115\""},
        {"SelectMergeStacktraces?repair=false", ",\"format\":4", "\"sampleType\""},
        {"SelectMergeSpanProfile", "", "\"1640\""},
        {"SelectMergeSpanProfile?repair=false", "", "\"1115\""},
    };
    SCOPED(buf) b = stored_file_of("cut_stacks", "heap-shapes");
    const struct label labels[] = {stored_label("__name__", "memory"),
                                   stored_label("service_name", "cut")};
    stored_put(f->then.served.store, labels, 2, (struct sv){b.data, b.len}, STORED_T0_NS);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char json[512];
        (void)snprintf(json, sizeof(json),
                       "{" RANGE ",\"profileTypeID\":\"memory:inuse_space:count::\","
                       "\"labelSelector\":\"{}\"%s}",
                       rows[i].more);
        check(&f->then, rows[i].method, json, 200, rows[i].text);
    }
}

TEST_ON(struct fixture *f, a_cancelled_or_small_query_ends)
{
    const char *head =
        "POST " QUERIER "SelectMergeStacktraces HTTP/1.1\r\nContent-Type: application/json\r\n";
    struct sv body = SV("{" RANGE ",\"profileTypeID\":\"" PT "\",\"labelSelector\":\"{}\"}");
    struct rig_answer a = rig_ask_within(&f->then, head, body, RIG_BYTES_MAX, true);
    CHECK_INT(a.status, 504, a.body);
    rig_answer_done(&a);
    for (size_t bytes = 1024; bytes < 64 * 1024; bytes *= 2) {
        a = rig_ask_within(&f->then, head, body, bytes, false);
        if (a.status != 200) {
            CHECK_INT(a.status, 429, a.body);
            CHECK_CONTAINS(a.body, "resource_exhausted", "memory");
        }
        rig_answer_done(&a);
    }
}
