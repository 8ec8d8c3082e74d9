/* DeepFlow's query of profiles over a store: what is asked, what counts, and both shapes of the
 * answer. */
#include "tests/unit/lib/testing.h"

#include <jansson.h>
#include <stdlib.h>

#include "api/deepflow.h"
#include "tests/unit/api/store_world.h"

#define T0 (INT64_C(1795307400) * NS_PER_S)
#define MINUTE (60 * NS_PER_S)
#define PATH "/v1/profile/ProfileTracing"
/* Two minutes around T0. */
#define WINDOW "\"time_start\":1795307340,\"time_end\":1795307520"
#define ASK(service, event, more)                                                                  \
    "{\"app_service\":\"" service "\",\"profile_event_type\":\"" event                             \
    "\",\"profile_language_type\":\"Golang\"," WINDOW more "}"

static void world_begin(struct world *w)
{
    static const struct pprof_row cpu[] = {{"hash work main", NULL, {5, 50000000}},
                                           {"main", NULL, {1, 10000000}}};
    static const struct pprof_row more[] = {{"idle main", NULL, {4, 40000000}}};
    static const struct pprof_row time[] = {{"[k]read main", NULL, {30000000}},
                                            {"main main", NULL, {20000000}}};
    static const struct pprof_row before[] = {{"alloc main", NULL, {1, 100}},
                                              {"gone main", NULL, {1, 7}}};
    static const struct pprof_row after[] = {{"alloc main", NULL, {2, 300}}};
    struct store_rig *r = &w->rig;
    store_world_init(w);
    rig_put(r, "__name__=process_cpu,app=web,namespace=shop,pod=a,service_name=cart", T0,
            "samples/count cpu/nanoseconds", cpu, 2, w->ids[0]);
    rig_put(r, "__name__=process_cpu,instance=10.1.2.3:6060,pod=b,service_name=cart", T0 + MINUTE,
            "samples/count cpu/nanoseconds", more, 1, NULL);
    rig_put(r, "__name__=process_cpu,pod=c,service_name=native", T0, "cpu/nanoseconds", time, 2,
            NULL);
    rig_put(r, "__name__=memory,pod=a,service_name=cart", T0, "alloc_space/bytes inuse_space/bytes",
            before, 2, NULL);
    rig_put(r, "__name__=memory,pod=a,service_name=cart", T0 + MINUTE,
            "alloc_space/bytes inuse_space/bytes", after, 1, NULL);
    rig_put(r, "__name__=memory,pod=b,service_name=cart", T0, "alloc_space/bytes inuse_space/bytes",
            after, 1, NULL);
    rig_put(r, "__name__=mutex,service_name=cart", T0, "contentions/count delay/nanoseconds", more,
            1, NULL);
    rig_put(r, "__name__=wall,service_name=node", T0, "sample/count wall/nanoseconds", more, 1,
            NULL);
}

FIXTURE(world, world_begin, store_world_done)

static struct rig_answer ask(const struct world *w, const char *query, const char *json)
{
    char head[256];
    (void)snprintf(head, sizeof(head), "POST " PATH "%s HTTP/1.1\r\n", query);
    return rig_ask(&w->options, head, sv_from(json));
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static void print_path(const json_t *functions, const json_t *nodes, size_t node, struct buf *out)
{
    const json_t *row = json_array_get(nodes, node);
    json_int_t parent = json_integer_value(json_array_get(row, 1));
    if (parent >= 0) {
        print_path(functions, nodes, (size_t)parent, out);
        buf_putc(out, ';');
    }
    json_int_t function = json_integer_value(json_array_get(row, 0));
    buf_puts(out, json_string_value(json_array_get(functions, (size_t)function)));
}

static int compare(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;
    return strcmp(*x, *y);
}

/* Each node as "cart;main;work self/total", sorted. */
static void print_nodes(const json_t *result, struct buf *out)
{
    const json_t *functions = json_object_get(result, "functions");
    const json_t *nodes = json_object_get(json_object_get(result, "node_values"), "values");
    char *lines[64];
    size_t n = json_array_size(nodes);
    assert_true(n <= 64);
    for (size_t i = 0; i < n; i++) {
        struct buf line = testing_buf(4096);
        print_path(functions, nodes, i, &line);
        buf_printf(&line, " %lld/%lld|",
                   (long long)json_integer_value(json_array_get(json_array_get(nodes, i), 2)),
                   (long long)json_integer_value(json_array_get(json_array_get(nodes, i), 3)));
        lines[i] = buf_take(&line, NULL);
    }
    qsort(lines, n, sizeof(lines[0]), compare);
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, lines[i]);
        free(lines[i]);
    }
}

static void check_nodes(const struct world *w, const char *json, const char *want)
{
    SCOPED(buf) text = testing_buf(16384);
    SCOPED(rig_answer) a = ask(w, "", json);
    json_auto_t *root = json_loads(a.body, 0, NULL);
    CHECK_INT(a.status, 200, json);
    CHECK_STR(json_string_value(json_object_get(root, "OPT_STATUS")), "SUCCESS", json);
    print_nodes(json_object_get(root, "result"), &text);
    CHECK_STR(text.data, want, json);
}

TEST_WITH(what_counts_for_an_event, setup, teardown)
{
    static const struct {
        const char *json, *nodes;
    } cases[] = {
        /* CPU in samples, summed up over processes and time. */
        {ASK("cart", "cpu", ""),
         "cart 0/10|cart;main 1/10|cart;main;idle 4/4|cart;main;work 0/5|cart;main;work;hash 5/5|"},
        /* Without samples, CPU time stands for them, a hundred in a second. */
        {ASK("native", "cpu", ""),
         "native 0/5|native;main 0/5|native;main;[k]read 3/3|native;main;main 2/2|"},
        {ASK("cart", "alloc_space", ""),
         "cart 0/6|cart;main 0/6|cart;main;alloc 5/5|cart;main;gone 1/1|"},
        /* A state counts as it was last, in each process. */
        {ASK("cart", "inuse_space", ""), "cart 0/600|cart;main 0/600|cart;main;alloc 600/600|"},
        {ASK("cart", "inuse_space", ",\"tag_filter\":\"pod='a'\""),
         "cart 0/300|cart;main 0/300|cart;main;alloc 300/300|"},
        {ASK("cart", "mutex_count", ""), "cart 0/4|cart;main 0/4|cart;main;idle 4/4|"},
        {ASK("cart", "mutex_duration", ""),
         "cart 0/40000000|cart;main 0/40000000|cart;main;idle 40000000/40000000|"},
        {ASK("cart", "block_count", ""), ""},
        {ASK("node", "wall", ""),
         "node 0/40000000|node;main 0/40000000|node;main;idle 40000000/40000000|"},
        {ASK("node", "wall_samples", ""), "node 0/4|node;main 0/4|node;main;idle 4/4|"},
        {ASK("nobody", "cpu", ""), ""},
        {ASK("cart", "on-cpu", ""), ""},
        {"{\"app_service\":\"cart\",\"profile_event_type\":\"cpu\",\"profile_language_type\":\"x\","
         "\"time_start\":1795307460,\"time_end\":1795307460}",
         "cart 0/4|cart;main 0/4|cart;main;idle 4/4|"},
        {"{\"app_service\":\"cart\",\"profile_event_type\":\"cpu\",\"profile_language_type\":\"x\","
         "\"time_start\":1795307461,\"time_end\":1795307462}",
         ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_nodes(*state, cases[i].json, cases[i].nodes);
    }
}

TEST_ON(const struct world *w, filters_by_tags)
{
    static const char only_a[] =
        "cart 0/6|cart;main 1/6|cart;main;work 0/5|cart;main;work;hash 5/5|";
    static const char only_b[] = "cart 0/4|cart;main 0/4|cart;main;idle 4/4|";
    static const struct {
        const char *json, *nodes;
    } cases[] = {
        {ASK("cart", "cpu", ",\"tag_filter\":\"pod='a'\""), only_a},
        {ASK("cart", "cpu", ",\"tag_filter\":\"pod_ns='shop'\""), only_a},
        {ASK("cart", "cpu", ",\"tag_filter\":\"pod_ns!='shop'\""), only_b},
        {ASK("cart", "cpu", ",\"tag_filter\":\"`k8s.label.app` = 'web' AND app='web'\""), only_a},
        {ASK("cart", "cpu", ",\"tag_filter\":\"app_instance LIKE '10.*'\""), only_b},
        {ASK("cart", "cpu", ",\"tag_filter\":\"ip='10.1.2.3'\""), only_b},
        {ASK("cart", "cpu", ",\"tag_filter\":\"region='' AND NOT pod='b'\""), only_a},
        {ASK("cart", "cpu",
             ",\"tag_filter\":\"profile_event_type='cpu' AND "
             "profile_language_type='Golang' AND pod REGEXP '^b'\""),
         only_b},
        {ASK("cart", "cpu", ",\"tag_filter\":\"app_service='cart' and pod in ('b','c')\""), only_b},
        {ASK("cart", "cpu", ",\"tag_filter\":\"pod='c'\""), ""},
        /* Without a service the filter decides; the root has the names of all. */
        {ASK("", "cpu", ",\"tag_filter\":\"pod='a'\""), only_a},
        {ASK("", "cpu", ",\"tag_filter\":\"pod IN ('b','c')\""), only_b},
        {ASK("", "cpu", ",\"tag_filter\":\"pod='c'\""),
         "native 0/5|native;main 0/5|native;main;[k]read 3/3|native;main;main 2/2|"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_nodes(w, cases[i].json, cases[i].nodes);
    }
    char json[512];
    (void)snprintf(json, sizeof(json), ASK("cart", "cpu", ",\"tag_filter\":\"profile_id='%s'\""),
                   w->ids[0]);
    check_nodes(w, json, only_a);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static void check_body(const struct world *w, const char *query, const char *json, int status,
                       const char *want)
{
    SCOPED(rig_answer) a = ask(w, query, json);
    json_auto_t *got = json_loads(a.body, 0, NULL);
    json_auto_t *expected = json_loads(want, 0, NULL);
    assert_non_null(expected);
    CHECK_INT(a.status, status, json);
    if (!json_equal(got, expected)) {
        CHECK_STR(a.body, want, json);
    }
    CHECK_STR(a.type, "application/json; charset=utf-8", json);
}

#define SUCCESS(result) "{\"OPT_STATUS\":\"SUCCESS\",\"DESCRIPTION\":\"\",\"result\":" result
#define NO_DEBUG ",\"debug\":null}"

TEST_ON(const struct world *w, columns_and_lists)
{
    check_body(w, "", ASK("native", "cpu", ""), 200,
               SUCCESS("{\"functions\":[\"native\",\"main\",\"[k]"
                       "read\"],\"function_types\":[\"P\",\"A\",\"K\"],\"function_values\":{"
                       "\"columns\":[\"self_value\",\"total_value\"],\"values\":[[0,5],[2,7],[3,3]]"
                       "},\"node_values\":{\"columns\":[\"function_id\",\"parent_node_id\",\"self_"
                       "value\",\"total_value\"],\"values\":[[0,-1,0,5],[1,0,0,5],[2,1,3,3],[1,1,2,"
                       "2]]}}") NO_DEBUG);
    check_body(w, "", ASK("nobody", "cpu", ""), 200,
               SUCCESS("{\"functions\":null,\"function_types\":null,\"function_values\":{"
                       "\"columns\":null,\"values\":null},\"node_values\":{\"columns\":null,"
                       "\"values\":null}}") NO_DEBUG);
    check_body(w, "?format=list", ASK("native", "cpu", ""), 200,
               SUCCESS("[{\"profile_location_str\":\"native\",\"node_id\":\"\",\"parent_node_id\":"
                       "\"-1\",\"self_value\":0,\"total_value\":5},"
                       "{\"profile_location_str\":\"main\",\"node_id\":\"1\",\"parent_node_id\":"
                       "\"\",\"self_value\":0,\"total_value\":5},"
                       "{\"profile_location_str\":\"[k]read\",\"node_id\":\"2\",\"parent_node_id\""
                       ":\"1\",\"self_value\":3,\"total_value\":3},"
                       "{\"profile_location_str\":\"main\",\"node_id\":\"3\",\"parent_node_id\":"
                       "\"1\",\"self_value\":2,\"total_value\":2}]") NO_DEBUG);
    check_body(w, "?format=list", ASK("nobody", "cpu", ",\"debug\":true"), 200,
               SUCCESS("[]") ",\"debug\":{\"querier_debug\":[],\"format_time\":\"\"}}");
}

/* ---- mistakes -------------------------------------------------------------------------------- */

TEST_ON(const struct world *w, mistakes)
{
    static const struct {
        const char *json;
        int status;
        const char *name, *text;
    } cases[] = {
        {"", 400, "INVALID_POST_DATA", "line 1"},
        {"[]", 400, "INVALID_POST_DATA", "expected an object"},
        /* The example of DeepFlow's documentation, where a quote is missing. */
        {"{\"app_service\":\"cart\",\"tag_filter: \"\",}", 400, "INVALID_POST_DATA", "line 1"},
        {"{}", 400, "INVALID_POST_DATA", "profile_event_type is required"},
        {"{\"profile_event_type\":\"cpu\"," WINDOW "}", 400, "INVALID_POST_DATA",
         "profile_language_type is required"},
        {"{\"profile_event_type\":5," WINDOW "}", 400, "INVALID_POST_DATA",
         "profile_event_type: expected a string"},
        {"{\"profile_event_type\":\"cpu\",\"profile_language_type\":\"Golang\",\"time_start\":0,"
         "\"time_end\":5}",
         400, "INVALID_POST_DATA", "time_start is required"},
        {"{\"profile_event_type\":\"cpu\",\"profile_language_type\":\"Golang\",\"time_start\":5}",
         400, "INVALID_POST_DATA", "time_end is required"},
        {"{\"profile_event_type\":\"cpu\",\"profile_language_type\":\"Golang\",\"time_start\":1.5,"
         "\"time_end\":5}",
         400, "INVALID_POST_DATA", "time_start: expected an integer"},
        {"{\"profile_event_type\":\"cpu\",\"profile_language_type\":\"Golang\",\"time_start\":-1,"
         "\"time_end\":5}",
         400, "INVALID_POST_DATA", "time_start: expected seconds since 1970, got -1"},
        {"{\"profile_event_type\":\"cpu\",\"profile_language_type\":\"Golang\","
         "\"time_start\":1,\"time_end\":9223372036854775807}",
         400, "INVALID_POST_DATA", "time_end: expected seconds since 1970"},
        {ASK("cart", "cpu", ",\"debug\":1"), 400, "INVALID_POST_DATA",
         "debug: expected true or false"},
        {ASK("cart", "cpu", ",\"max_kernel_stack_depth\":\"1\""), 400, "INVALID_POST_DATA",
         "max_kernel_stack_depth: expected an integer"},
        {ASK("cart", "cpu", ",\"tag_filter\":\"pod\""), 500, "FAIL", "tag_filter: column 4"},
        {ASK("", "cpu", ",\"tag_filter\":\"pod='x'\""), 500, "FAIL",
         "app_service count 0 is invalid"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(rig_answer) a = ask(w, "", cases[i].json);
        json_auto_t *root = json_loads(a.body, 0, NULL);
        CHECK_INT(a.status, cases[i].status, cases[i].json);
        CHECK_STR(json_string_value(json_object_get(root, "OPT_STATUS")), cases[i].name,
                  cases[i].json);
        CHECK_CONTAINS(json_string_value(json_object_get(root, "DESCRIPTION")), cases[i].text,
                       cases[i].json);
        assert_true(json_is_null(json_object_get(root, "result")));
    }
}

TEST_ON(struct world *w, services_are_counted)
{
    static const struct pprof_row row = {"main", NULL, {1}};
    for (int i = 0; i < DEEPFLOW_SERVICES_MAX + 1; i++) {
        char labels[128];
        (void)snprintf(labels, sizeof(labels), "__name__=process_cpu,pod=z,service_name=s%02d", i);
        rig_put(&w->rig, labels, T0, "samples/count", &row, 1, NULL);
        if (i == DEEPFLOW_SERVICES_MAX - 1) {
            check_nodes(w, ASK("", "cpu", ",\"tag_filter\":\"pod='z'\""),
                        "s00, s01, s02, s03, s04, s05, s06, s07, s08, s09 0/10|"
                        "s00, s01, s02, s03, s04, s05, s06, s07, s08, s09;main 10/10|");
        }
    }
    check_body(w, "", ASK("", "cpu", ",\"tag_filter\":\"pod='z'\""), 500,
               "{\"OPT_STATUS\":\"FAIL\",\"DESCRIPTION\":\"app_service count 11 is invalid\","
               "\"result\":null,\"debug\":null}");
}

TEST_ON(const struct world *w, queries_end_at_their_limits)
{
    static const char *const asks[] = {ASK("cart", "cpu", ""), ASK("cart", "inuse_space", "")};
    for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
        struct rig_answer a = rig_ask_within(&w->options, "POST " PATH " HTTP/1.1\r\n",
                                             sv_from(asks[i]), RIG_BYTES_MAX, true);
        CHECK_INT(a.status, 504, asks[i]);
        rig_answer_done(&a);
        a = rig_ask_within(&w->options, "POST " PATH " HTTP/1.1\r\n", sv_from(asks[i]), 2000,
                           false);
        assert_true(a.status == 429 || a.status == 503);
        rig_answer_done(&a);
    }
    struct rig_answer a = rig_ask(&w->options, "GET " PATH " HTTP/1.1\r\n", SV(""));
    CHECK_INT(a.status, 405, "GET");
    rig_answer_done(&a);
}
