/* The server for assistants: both generations of the protocol, who may ask, and the tools. */
#include "tests/unit/lib/testing.h"

#include <jansson.h>
#include <stdlib.h>

#include "api/mcp/tools.h"
#include "api/mcp/units.h"
#include "tests/unit/api/store_world.h"
#include "tests/unit/lib/rollout.h"

#define T0_S INT64_C(1795307400)
#define T0 (T0_S * NS_PER_S)
#define RANGE "\"from\":\"1795307400\",\"until\":\"1795308000\""
#define SERVICES 100
#define META(version)                                                                              \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"" version                            \
    "\",\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define MODERN META("2026-07-28")

static void put(struct world *w, const char *labels, const struct pprof_row *rows, size_t n,
                int64_t at_s)
{
    struct pprof_spec spec = {.types = "samples/count cpu/nanoseconds",
                              .time_nanos = (T0_S + at_s) * NS_PER_S};
    SCOPED(buf) made = pprof_make(&spec, rows, n);
    SCOPED(buf) typed = testing_buf(1 << 20);
    buf_append(&typed, made.data, made.len);
    /* period_type cpu/nanoseconds: these are the third and fourth string of pprof_make(). */
    buf_append(&typed, "\x5a\x04\x08\x03\x10\x04", 6);
    CHECK_INT(rig_put_bytes(&w->rig, labels, (T0_S + at_s) * NS_PER_S,
                            (struct sv){typed.data, typed.len}, PROFILE_PPROF, NULL),
              STORE_TAKEN, labels);
}

/* A hundred services, each with a profile in the first and in the second five minutes. In one of
 * them a function takes more CPU in the second, under another version. */
static void world_begin(struct world *w)
{
    store_world_init(w);
    for (int i = 0; i < SERVICES; i++) {
        for (int half = 0; half < 2; half++) {
            char labels[128];
            bool slow = i == 73 && half == 1;
            const struct pprof_row rows[] = {
                {"main.parse main.serve main.main", NULL, {30, INT64_C(300000000) + i}},
                {"main.encode main.serve main.main",
                 NULL,
                 {slow ? 80 : 20, slow ? 800000000 : 200000000}},
                {"main.idle main.main", NULL, {1, 10000000 + half}},
            };
            (void)snprintf(labels, sizeof(labels),
                           "__name__=process_cpu,service_name=svc-%02d,version=%d", i, half + 1);
            put(w, labels, rows, 3, 60 + 300 * half);
        }
    }
}

FIXTURE(world, world_begin, store_world_done)

/* Sends a message with headers, "\r\n" at the end of each. */
static struct rig_answer send_with(const struct world *w, const char *headers, const char *body)
{
    char head[1024];
    (void)snprintf(head, sizeof(head),
                   "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:4041\r\nContent-Type: "
                   "application/json\r\n%s",
                   headers);
    return rig_ask(&w->options, head, sv_from(body));
}

static void check(const struct world *w, const char *headers, const char *body, int status,
                  const char *part)
{
    SCOPED(rig_answer) a = send_with(w, headers, body);
    CHECK_INT(a.status, status, body);
    CHECK_CONTAINS(a.body, part, body);
}

/* Calls a tool as an older client does; returns its text, which the caller frees. */
static char *call(const struct world *w, const char *name, const char *args, bool is_error)
{
    char body[2048];
    (void)snprintf(body, sizeof(body),
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
                   "\"%s\",\"arguments\":{%s}}}",
                   name, args);
    SCOPED(rig_answer) a = send_with(w, "", body);
    CHECK_INT(a.status, 200, body);
    json_t *root = json_loadb(a.body, a.n, 0, NULL);
    const json_t *result = json_object_get(root, "result");
    const char *text = json_string_value(
        json_object_get(json_array_get(json_object_get(result, "content"), 0), "text"));
    if (text == NULL) {
        fail_msg("%s: %s", body, a.body);
    }
    CHECK_INT(json_is_true(json_object_get(result, "isError")), is_error, text);
    char *copy = strdup(text);
    json_decref(root);
    return copy;
}

static void check_tool(const struct world *w, const char *name, const char *args, bool is_error,
                       const char *part)
{
    SCOPED_MEMORY char *text = call(w, name, args, is_error);
    CHECK_CONTAINS(text, part, args);
}

/* ---- the protocol ---------------------------------------------------------------------------- */

#define RPC(id, method, params)                                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"" method "\",\"params\":{" params "}}"
#define HEADERS(version, method) "MCP-Protocol-Version: " version "\r\nMcp-Method: " method "\r\n"

TEST_WITH(clients_that_begin_with_initialize_are_served, setup, teardown)
{
    check(*state, "", RPC("1", "initialize", "\"protocolVersion\":\"2025-06-18\""), 200,
          "\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{"
          "\"name\":\"profpull\"");
    check(*state, "", RPC("1", "initialize", "\"protocolVersion\":\"1999-01-01\""), 200,
          "\"protocolVersion\":\"2025-11-25\"");
    check(*state, "", RPC("1", "initialize", ""), 200, "\"code\":-32602");
    check(*state, "MCP-Protocol-Version: 2025-06-18\r\n",
          "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", 202, "");
    check(*state, "MCP-Protocol-Version: 2025-06-18\r\n", RPC("\"a\"", "ping", ""), 200,
          "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}}");
    check(*state, "", RPC("2", "tools/list", ""), 200, "\"name\":\"list_services\"");
    check(*state, "", RPC("2", "resources/list", ""), 200, "\"code\":-32601");
    check(*state, "", RPC("2", "tools/call", "\"name\":\"nothing\""), 200, "\"code\":-32602");
    check(*state, "MCP-Protocol-Version: 1999-01-01\r\n", RPC("2", "ping", ""), 400,
          "\"code\":-32022");
}

TEST_WITH(clients_without_a_session_are_served, setup, teardown)
{
    check(*state, HEADERS("2026-07-28", "server/discover"), RPC("1", "server/discover", MODERN),
          200,
          "\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{"
          "\"tools\":{}}");
    check(*state, HEADERS("2026-07-28", "server/discover"), RPC("1", "server/discover", MODERN),
          200, "\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{\"name\":\"profpull\"");
    check(*state, HEADERS("2026-07-28", "tools/list"), RPC("1", "tools/list", MODERN), 200,
          "\"ttlMs\":3600000,\"cacheScope\":\"public\"");
    check(*state, HEADERS("2026-07-28", "tools/call") "Mcp-Name: labels\r\n",
          RPC("1", "tools/call", "\"name\":\"labels\",\"arguments\":{" RANGE "}," MODERN), 200,
          "\"isError\":false");
    check(*state, HEADERS("2026-07-28", "tools/call") "Mcp-Name: targets\r\n",
          RPC("1", "tools/call", "\"name\":\"targets\",\"arguments\":null," MODERN), 200,
          "this process scrapes nothing");
    /* The same name in base64. */
    check(*state, HEADERS("2026-07-28", "tools/call") "Mcp-Name: =?base64?bGFiZWxz?=\r\n",
          RPC("1", "tools/call", "\"name\":\"labels\",\"arguments\":{" RANGE "}," MODERN), 200,
          "\"resultType\":\"complete\"");
}

TEST_WITH(requests_that_differ_from_their_headers_are_refused, setup, teardown)
{
    static const struct {
        const char *headers, *body;
        int status;
        const char *part;
    } rows[] = {
        {HEADERS("2025-06-18", "tools/list"), RPC("1", "tools/list", MODERN), 400, "-32020"},
        {HEADERS("2026-07-28", "ping"), RPC("1", "tools/list", MODERN), 400, "-32020"},
        {"", RPC("1", "tools/list", MODERN), 400, "-32020"},
        {HEADERS("2026-07-28", "tools/call"), RPC("1", "tools/call", "\"name\":\"labels\"," MODERN),
         400, "-32020"},
        {HEADERS("2026-07-28", "tools/call") "Mcp-Name: compare\r\n",
         RPC("1", "tools/call", "\"name\":\"labels\"," MODERN), 400, "-32020"},
        {HEADERS("2026-07-28", "tools/list"), RPC("1", "tools/list", ""), 400, "-32602"},
        {HEADERS("2026-07-28", "tools/list"),
         RPC("1", "tools/list",
             "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}"),
         400, "clientCapabilities"},
        {HEADERS("2099-01-01", "tools/list"), RPC("1", "tools/list", META("2099-01-01")), 400,
         "\"code\":-32022,\"message\":\"the protocol version is not supported"},
        {HEADERS("2099-01-01", "tools/list"), RPC("1", "tools/list", META("2099-01-01")), 400,
         "\"requested\":\"2099-01-01\""},
        {HEADERS("2026-07-28", "nothing"), RPC("1", "nothing", MODERN), 404, "-32601"},
        {HEADERS("2026-07-28", "initialize"), RPC("1", "initialize", MODERN), 404, "-32601"},
        {"", RPC("1", "server/discover", ""), 400, "-32602"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check(*state, rows[i].headers, rows[i].body, rows[i].status, rows[i].part);
    }
}

TEST_WITH(damaged_messages_are_refused, setup, teardown)
{
    static const char *const bodies[] = {
        "",
        "{",
        "[]",
        "1",
        "{}",
        "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}",
        "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}"};
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        check(*state, "", bodies[i], 400, "{\"jsonrpc\":\"2.0\",\"id\":");
    }
    check(*state, "", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}", 200,
          "\"code\":-32602");
    /* A response to nothing. */
    check(*state, "", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", 202, "");
    struct rig_answer a =
        rig_ask(&((struct world *)*state)->options, "GET /mcp HTTP/1.1\r\n", SV(""));
    CHECK_INT(a.status, 405, "");
    rig_answer_done(&a);
}

TEST_ON(const struct world *w, pages_of_other_sites_may_not_ask)
{
    static const struct {
        const char *host, *origin;
        int status;
    } rows[] = {
        {"127.0.0.1:4041", "http://127.0.0.1:4041", 200},
        {"localhost:4041", "http://localhost:4041", 200},
        {"[::1]:4041", "https://[::1]:4041", 200},
        {"127.0.0.1:4041", "http://evil.example", 403},
        {"127.0.0.1:4041", "http://127.0.0.1:80", 403},
        /* A name that resolves to this server. */
        {"evil.example:4041", "http://evil.example:4041", 403},
        {"127.0.0.1:4041", "null", 403},
        {"127.0.0.1:4041", "", 403},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char head[256];
        (void)snprintf(head, sizeof(head), "POST /mcp HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\n",
                       rows[i].host, rows[i].origin);
        SCOPED(rig_answer) a = rig_ask(&w->options, head, SV(RPC("1", "ping", "")));
        CHECK_INT(a.status, rows[i].status, head);
    }
}

TEST_WITH(descriptions_are_json_and_name_all_arguments, setup, teardown)
{
    const struct tool *t;
    for (size_t i = 0; (t = tool_at(i)) != NULL; i++) {
        SCOPED(buf) out = testing_buf(1 << 20);
        tool_describe(t, &out);
        json_auto_t *root = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES, NULL);
        const json_t *properties =
            json_object_get(json_object_get(root, "inputSchema"), "properties");
        size_t n = 0;
        while (t->names[n] != NULL) {
            if (json_object_get(properties, t->names[n]) == NULL) {
                fail_msg("%s: the schema lacks %s", t->name, t->names[n]);
            }
            n++;
        }
        CHECK_INT(json_object_size(properties), n, t->name);
        assert_true(
            json_is_true(json_object_get(json_object_get(root, "annotations"), "readOnlyHint")));
    }
}

/* ---- tools ----------------------------------------------------------------------------------- */

/* Two calls are enough: the service that has become more expensive, then the function. */
TEST_ON(const struct world *w, a_slow_function_among_a_hundred_services_is_found)
{
    char *text = call(w, "list_services", RANGE ",\"limit\":3", false);
    char *first = strstr(text, "svc-");
    assert_non_null(first);
    CHECK_CONTAINS(text, "100 services with profiles from 2026-11-22T00:30:00Z", text);
    assert_true(strncmp(first, "svc-73: 0.002 -> 0.004 cores; types: cpu samples", 48) == 0);
    CHECK_CONTAINS(text, "(97 more left out: raise limit or max_bytes, or ask for less)", text);
    free(text);
    text = call(w, "compare",
                "\"service\":\"svc-73\",\"from\":\"1795307700\",\"until\":\"1795308000\"", false);
    CHECK_CONTAINS(text,
                   "+2 milliseconds: 666.7 microseconds -> 2.667 milliseconds, share 39.22% "
                   "-> 72.07%: main.encode\n",
                   text);
    /* One nanosecond more in ten million is no difference. */
    CHECK_CONTAINS(text, "1 function differs by more than 0.01%.", text);
    assert_null(strstr(text, "main.idle"));
    assert_null(strstr(text, "main.parse"));
    CHECK_CONTAINS(text, "Page: http://127.0.0.1:4041/?service=svc-73&labels=&type=process_cpu%3A",
                   text);
    free(text);
    check_tool(w, "compare",
               "\"service\":\"svc-73\"," RANGE ",\"version\":\"2\",\"before_version\":\"1\"", false,
               "share 39.22% -> 72.07%: main.encode\n");
}

TEST_ON(const struct world *w, functions_and_trees_are_shown)
{
    check_tool(w, "top_functions", RANGE ",\"service\":\"svc-00\"", false,
               "600 milliseconds (58.82%), 600 milliseconds (58.82%), main.parse\n400 "
               "milliseconds (39.22%), 400 milliseconds (39.22%), main.encode\n");
    check_tool(w, "top_functions", RANGE ",\"service\":\"svc-00\",\"by\":\"total\",\"limit\":1",
               false, "0 nanoseconds (0.00%), 1.02 seconds (100.00%), main.main\n");
    check_tool(w, "top_functions", RANGE ",\"service\":\"svc-00\",\"match\":\"enc\"", false,
               "main.encode\nPage: ");
    check_tool(w, "call_tree", RANGE ",\"service\":\"svc-00\"", false,
               "100.00% 1.02 seconds (self 0 nanoseconds) main.main\n"
               "  98.04% 1 seconds (self 0 nanoseconds) main.serve\n"
               "    58.82% 600 milliseconds (self 600 milliseconds) main.parse\n"
               "    39.22% 400 milliseconds (self 400 milliseconds) main.encode\n"
               "  1.96% 20 milliseconds (self 20 milliseconds) main.idle\n");
    check_tool(w, "call_tree",
               RANGE ",\"service\":\"svc-00\",\"function\":\"main.serve\",\"depth\":2", false,
               "98.04% 1 seconds (self 0 nanoseconds) main.serve\n"
               "  58.82% 600 milliseconds (self 600 milliseconds) main.parse\n"
               "  39.22% 400 milliseconds (self 400 milliseconds) main.encode\nPage");
    check_tool(w, "call_tree",
               RANGE ",\"service\":\"svc-00\",\"function\":\"main.encode\",\"direction\":"
                     "\"callers\"",
               false,
               "39.22% 400 milliseconds (self 0 nanoseconds) main.encode\n"
               "  39.22% 400 milliseconds (self 0 nanoseconds) main.serve\n"
               "    39.22% 400 milliseconds (self 400 milliseconds) main.main\n");
    check_tool(w, "labels", RANGE, false, "version: 2 (1, 2)\n");
    check_tool(w, "labels",
               RANGE ",\"name\":\"version\",\"selector\":\"service_name=\\\"svc-01\\\"\"", false,
               "2 values of version:\n1\n2\n");
}

TEST_ON(struct world *w, changes_of_a_rollout_are_named)
{
#define ROLLOUT "\"from\":\"1795305600\",\"until\":\"1795312800\""
    rollout_put(&w->rig, "cart", 40, 60);
    char *text = call(w, "what_changed", ROLLOUT ",\"limit\":1", false);
    CHECK_CONTAINS(text, "101 services changed their version from 2026-11-22T00:00:00Z", text);
    CHECK_CONTAINS(text, "svc-00: 1 -> 2 since 2026-11-22T00:36:00Z\n", text);
    CHECK_CONTAINS(text, "(100 more left out", text);
    free(text);
    text = call(w, "what_changed", ROLLOUT ",\"service\":\"cart\",\"limit\":2", false);
    CHECK_CONTAINS(text, "changed by more than chance explains; at the same load, the new side",
                   text);
    CHECK_CONTAINS(text, "before: version 1.0, 2026-11-22T00:00:00Z to ", text);
    const char *first = strstr(text, "\nCHANGED +");
    assert_non_null(first);
    assert_non_null(strstr(first, "cores: main.slow\n"));
    CHECK_CONTAINS(text, "Page: http://127.0.0.1:4041/changes?service=cart&type=process_cpu%3A",
                   text);
    free(text);
    check_tool(w, "what_changed",
               ROLLOUT ",\"service\":\"cart\",\"version\":\"1.0\",\"before_version\":\"2.0\"",
               false, "CHANGED -");
    check_tool(w, "what_changed", ROLLOUT ",\"service\":\"svc-73\"", false,
               "No verdict: a verdict needs at least 2 instances");
    check_tool(w, "what_changed", ROLLOUT ",\"service\":\"none\"", true,
               "the service has no profiles in this time");
    check_tool(w, "what_changed", ROLLOUT ",\"service\":\"cart\",\"type\":\"x\"", true,
               "no profiles of \"x\"");
    check_tool(w, "what_changed", "\"selector\":\"x\"", true, "there is no argument \"selector\"");
}

/* Each answer says what is wrong and how to mend it. */
TEST_WITH(wrong_arguments_get_advice, setup, teardown)
{
    static const struct {
        const char *tool, *args, *part;
    } rows[] = {
        {"top_functions", "\"servce\":\"x\"",
         "did you mean \"service\"?; the arguments are service"},
        {"top_functions", "\"limit\":0", "limit must be a whole number from 1 to 500"},
        {"top_functions", "\"limit\":\"5\"", "limit must be a whole number from 1 to 500"},
        {"top_functions", "\"max_bytes\":10",
         "max_bytes must be a whole number from 1024 to 65536"},
        {"top_functions", "\"service\":7", "service must be a string"},
        {"top_functions", "\"from\":\"yesterday\"",
         "from: expected a time such as now-1h, 2026-01-31T12:00:00Z or 1795307400, got "
         "\"yesterday\""},
        {"top_functions", "\"from\":\"now\",\"until\":\"now-1h\"", "from must be before until"},
        {"top_functions", RANGE ",\"selector\":\"{a\"",
         "selector: expected labels such as {namespace=\"shop\"}"},
        {"top_functions", RANGE ",\"service\":\"none\"",
         "no profile matches between 2026-11-22T00:30:00Z and 2026-11-22T00:40:00Z: check service "
         "and selector with list_services"},
        {"top_functions", RANGE ",\"type\":\"inuse_space\"",
         "type: no profiles of \"inuse_space\"; there are "
         "process_cpu:cpu:nanoseconds:cpu:nanoseconds"},
        {"top_functions", RANGE ",\"type\":\"process_cpu\"", "may mean several; give one of"},
        {"top_functions", RANGE ",\"by\":\"name\"", "by must be \"self\" or \"total\""},
        {"top_functions", RANGE ",\"match\":\"zzz\"", "match: no function has \"zzz\" in its name"},
        {"call_tree", RANGE ",\"function\":\"x.parse\"",
         "no stack has the function \"x.parse\"; similar: main.parse"},
        {"compare", RANGE ",\"service\":\"svc-01\",\"before_version\":\"9\"",
         "the profiles to compare with: no samples of"},
        {"list_services", RANGE ",\"match\":\"zzz\"", "no service with this in its name: zzz"},
        {"labels", RANGE ",\"name\":\"zzz\"", "labels without name lists those that exist"},
        {"targets", "", "this process scrapes nothing"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_tool(*state, rows[i].tool, rows[i].args, true, rows[i].part);
    }
}

TEST_ON(const struct world *w, answers_are_bounded)
{
    SCOPED_MEMORY char *text = call(w, "list_services", RANGE ",\"limit\":500", false);
    assert_true(strlen(text) <= TOOL_BYTES_DEFAULT);
    free(text);
    text = call(w, "list_services", RANGE ",\"limit\":500,\"max_bytes\":1024", false);
    assert_true(strlen(text) <= 1024);
    CHECK_CONTAINS(text, " more left out: raise limit or max_bytes", text);
}

/* Names of functions come from the profiled programs. */
TEST_ON(struct world *w, names_are_escaped)
{
    const struct pprof_row row = {"evil\n{\"isError\"}\x01\x1b[31m", NULL, {1, 5}};
    put(w, "__name__=process_cpu,service_name=evil\nservice", &row, 1, 100);
    check_tool(w, "top_functions", RANGE ",\"service\":\"evil\\nservice\"", false,
               "evil\\n{\\\"isError\\\"}\\u0001\\u001b[31m\n");
    check_tool(w, "list_services", RANGE ",\"match\":\"evil\"", false, "evil\\nservice: ");
}

TEST(units_are_spelled_out)
{
    static const struct {
        double value;
        const char *unit, *want;
    } rows[] = {
        {1500000000, "nanoseconds", "1.5 seconds"},
        {7, "nanoseconds", "7 nanoseconds"},
        {-90e9, "nanoseconds", "-1.5 minutes"},
        {1536, "bytes", "1.5 KiB"},
        {0, "bytes", "0 bytes"},
        {12, "count", "12"},
        {3, "pages", "3 pages"},
    };
    char text[UNITS_TEXT_MAX];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        units_format(rows[i].value, sv_from(rows[i].unit), text);
        CHECK_STR(text, rows[i].want, rows[i].unit);
    }
}
