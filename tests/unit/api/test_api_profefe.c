/* profefe's API over a store: the answers of the real collector to the same requests for the same
 * profiles. What we do otherwise on purpose is said where it is. */
#include "tests/unit/lib/testing.h"

#include <jansson.h>
#include <stdlib.h>

#include "api/profefe.h"
#include "api/profefe_params.h"
#include "pprof/gzip.h"
#include "tests/unit/api/store_world.h"

/* 2026-11-22T00:30:00Z, the time of p1. */
#define T0 (INT64_C(1795307400) * NS_PER_S)
#define WINDOW "&from=2026-11-22T00%3A29%3A00&to=2026-11-22T02%3A30%3A00"
#define CART "/api/0/profiles?service=cart&type=cpu"
#define PROFILE_MAX ((size_t)1024 * 1024)

/* The ids are those of p1 of pod a, p2 of pod b, p1 as "other" and p1 of esc. */
static void world_begin(struct world *w)
{
    store_world_init(w);
    store_world_put(w, "__name__=process_cpu,env=prod,pod=a,service_name=cart", "p1", T0,
                    w->ids[0]);
    store_world_put(w, "__name__=process_cpu,env=prod,pod=b,service_name=cart", "p2",
                    T0 + 15 * NS_PER_S, w->ids[1]);
    store_world_put(w, "__name__=other,service_name=cart", "p1", T0, w->ids[2]);
    store_world_put(w, "__name__=process_cpu,a=x\x01y,service_name=esc", "p1", T0, w->ids[3]);
}

FIXTURE(world, world_begin, store_world_done)

static struct rig_answer get(const struct world *w, const char *path, const char *headers)
{
    char head[2048];
    (void)snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\n%s", path, headers);
    return rig_ask(&w->options, head, SV(""));
}

/* Replaces "$1" to "$4" by the ids of the profiles. */
static void fill_ids(const struct world *w, const char *text, char *out, size_t size)
{
    size_t n = 0;
    for (const char *p = text; *p != '\0' && n + STORE_ID_LENGTH + 1 < size; p++) {
        if (p[0] == '$' && p[1] >= '1' && p[1] <= '4') {
            memcpy(out + n, w->ids[p[1] - '1'], STORE_ID_LENGTH);
            n += STORE_ID_LENGTH;
            p++;
        } else {
            out[n++] = *p;
        }
    }
    out[n] = '\0';
}

/* ---- recorded answers in JSON ---------------------------------------------------------------- */

#define ITEM_A                                                                                     \
    "{\"id\":\"$1\",\"type\":\"cpu\",\"service\":\"cart\",\"labels\":[{\"key\":\"env\",\"value\":" \
    "\"prod\"},{\"key\":\"pod\",\"value\":\"a\"}],\"created_at\":\"2026-11-22T00:30:00Z\"}"
#define ITEM_B                                                                                     \
    "{\"id\":\"$2\",\"type\":\"cpu\",\"service\":\"cart\",\"labels\":[{\"key\":\"env\",\"value\":" \
    "\"prod\"},{\"key\":\"pod\",\"value\":\"b\"}],\"created_at\":\"2026-11-22T00:30:15Z\"}"
#define ITEM_OTHER                                                                                 \
    "{\"id\":\"$3\",\"type\":\"other\",\"service\":\"cart\",\"created_at\":"                       \
    "\"2026-11-22T00:30:00Z\"}"
#define LIST(items) "{\"code\":200,\"body\":[" items "]}\n"
#define NOTHING "{\"code\":404,\"error\":\"nothing found\"}\n"
#define BAD(text) "{\"code\":400,\"error\":\"bad request: " text "\"}\n"

TEST_ON(const struct world *w, answers_in_json)
{
    static const struct {
        const char *path;
        int status;
        const char *body;
    } cases[] = {
        {CART WINDOW, 200, LIST(ITEM_A "," ITEM_B)},
        /* The collector loses profiles by such a filter; we do not. */
        {CART "&labels=pod%3Db" WINDOW, 200, LIST(ITEM_B)},
        {CART "&labels=pod%3Db%2Cenv%3Dprod" WINDOW, 200, LIST(ITEM_B)},
        {CART "&labels=pod%3Dc" WINDOW, 404, NOTHING},
        {CART "&labels=x" WINDOW, 200, LIST(ITEM_A "," ITEM_B)},
        {CART "&labels=a%3D%25zz" WINDOW, 400,
         BAD("bad \\\"labels\\\" \\\"a=%zz\\\": invalid URL escape \\\"%zz\\\"")},
        {CART "&limit=1" WINDOW, 200, LIST(ITEM_B)},
        {CART "&limit=7" WINDOW, 200, LIST(ITEM_A "," ITEM_B)},
        {CART "&limit=0" WINDOW, 200, LIST(ITEM_A "," ITEM_B)},
        {CART "&limit=-1" WINDOW, 200, LIST(ITEM_A "," ITEM_B)},
        {CART "&limit=x" WINDOW, 400,
         BAD("bad \\\"limit\\\" \\\"x\\\": strconv.Atoi: parsing \\\"x\\\": invalid syntax")},
        {CART "&from=2026-11-22T00%3A29%3A00", 400, BAD("missing \\\"to\\\"")},
        {CART, 400, BAD("missing \\\"from\\\"")},
        {CART "&from=2026-11-22T00%3A29%3A00Z&to=2026-11-22T02%3A30%3A00", 400,
         BAD("bad \\\"from\\\" timestamp \\\"2026-11-22T00:29:00Z\\\": time in unsupported format "
             "\\\"2026-11-22T00:29:00Z\\\"")},
        {CART "&from=2026-11-22T02%3A30%3A00&to=2026-11-22T00%3A29%3A00", 400,
         BAD("CreatedAtMin after CreatedAtMax: 2026-11-22 02:30:00 +0000 UTC, 2026-11-22 00:29:00 "
             "+0000 UTC")},
        {CART "&from=2026-11-22T02%3A30%3A00.5&to=2026-11-22T00%3A29%3A00.25", 400,
         BAD("CreatedAtMin after CreatedAtMax: 2026-11-22 02:30:00.5 +0000 UTC, 2026-11-22 "
             "00:29:00.25 +0000 UTC")},
        /* Both ends are inclusive, in nanoseconds; ":" need not be escaped. */
        {CART "&from=2026-11-22T00:30:00&to=2026-11-22T00:30:15", 200, LIST(ITEM_A "," ITEM_B)},
        {CART "&from=2026-11-22T00:30:00&to=2026-11-22T00:30:14.999", 200, LIST(ITEM_A)},
        {CART "&from=2026-11-22T00:30:00.000000001&to=2026-11-22T00:30:15", 200, LIST(ITEM_B)},
        {CART "&from=2026-11-22T00:30:00.1&to=2026-11-22T00:30:14", 404, NOTHING},
        {"/api/0/profiles?service=nope&type=cpu" WINDOW, 404, NOTHING},
        {"/api/0/profiles?service=cart&type=trace" WINDOW, 404, NOTHING},
        {"/api/0/profiles?service=cart&type=heap" WINDOW, 404, NOTHING},
        {"/api/0/profiles?service=cart&type=other" WINDOW, 200, LIST(ITEM_OTHER)},
        {"/api/0/profiles?type=cpu" WINDOW, 400, BAD("missing \\\"service\\\"")},
        {"/api/0/profiles/", 400, BAD("missing \\\"service\\\"")},
        {"/api/0/services", 200, "{\"code\":200,\"body\":[\"cart\",\"esc\"]}\n"},
        {"/api/0/services/", 404, NOTHING},
        {"/api/0/nope", 404, NOTHING},
        {"/api/0/", 404, NOTHING},
        {"/api/0/version", 200,
         "{\"code\":200,\"body\":{\"version\":\"1.2.3\",\"commit\":\"\",\"build_time\":\"\",\"go_"
         "version\":\"\"}}\n"},
        {"/api/0/profiles?service=esc&type=cpu" WINDOW, 200,
         LIST("{\"id\":\"$4\",\"type\":\"cpu\",\"service\":\"esc\",\"labels\":[{\"key\":\"a\","
              "\"value\":\"x\\u0001y\"}],\"created_at\":\"2026-11-22T00:30:00Z\"}")},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char want[4096];
        fill_ids(w, cases[i].body, want, sizeof(want));
        SCOPED(rig_answer) a = get(w, cases[i].path, "");
        CHECK_INT(a.status, cases[i].status, cases[i].path);
        CHECK_STR(a.body, want, cases[i].path);
        CHECK_STR(a.type, "application/json", cases[i].path);
    }
}

/* An unknown type, and none, mean all of them; profiles of one time come in any order. */
TEST_ON(const struct world *w, lists_of_all_types)
{
    static const char *const paths[] = {"/api/0/profiles?service=cart&type=foo" WINDOW,
                                        "/api/0/profiles?service=cart" WINDOW};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        SCOPED(rig_answer) a = get(w, paths[i], "");
        json_auto_t *root = json_loads(a.body, 0, NULL);
        json_t *list = json_object_get(root, "body");
        CHECK_INT(json_array_size(list), 3, paths[i]);
        const char *last = json_string_value(json_object_get(json_array_get(list, 2), "id"));
        CHECK_STR(last, w->ids[1], paths[i]);
    }
}

TEST_ON(const struct world *w, other_methods_are_refused)
{
    static const char *const heads[] = {"DELETE " CART " HTTP/1.1\r\n", "PUT " CART " HTTP/1.1\r\n",
                                        "POST /api/0/services HTTP/1.1\r\n"};
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        SCOPED(rig_answer) a = rig_ask(&w->options, heads[i], SV(""));
        /* The collector answers 200 and does nothing. */
        CHECK_INT(a.status, 405, heads[i]);
    }
}

/* ---- profiles -------------------------------------------------------------------------------- */

static void check_same_profile(const struct rig_answer *a, const char *file, const char *row)
{
    struct err err = ERR_INIT;
    struct sv plain = SV("");
    SCOPED(scratch) *scratch = scratch_new();
    SCOPED(buf) want = stored_file(file);
    assert_true(gzip_plain(scratch, (struct sv){a->body, a->n}, PROFILE_MAX, 0, &plain, &err));
    CHECK_INT(plain.n, want.len, row);
    assert_memory_equal(plain.p, want.data, want.len);
}

TEST_ON(const struct world *w, merged_profiles_are_those_of_pprof)
{
    char path[512];
    fill_ids(w, "/api/0/profiles/$2+$1", path, sizeof(path));
    struct rig_answer a = get(w, path, "");
    CHECK_INT(a.status, 200, path);
    CHECK_STR(a.type, "application/octet-stream", path);
    check_same_profile(&a, "merged21", path);
    char disposition[512];
    fill_ids(w, "Content-Disposition: attachment; filename=\"$2+$1\"\r\n", disposition,
             sizeof(disposition));
    CHECK_STR(a.headers, disposition, path);
    rig_answer_done(&a);
    /* "+" may be escaped. */
    fill_ids(w, "/api/0/profiles/$2%2B$1", path, sizeof(path));
    a = get(w, path, "");
    check_same_profile(&a, "merged21", path);
    rig_answer_done(&a);
}

TEST_ON(const struct world *w, one_profile_comes_as_it_was_put)
{
    char path[512];
    fill_ids(w, "/api/0/profiles/$2", path, sizeof(path));
    struct rig_answer a = get(w, path, "");
    CHECK_INT(a.status, 200, path);
    check_same_profile(&a, "p2", path);
    rig_answer_done(&a);
    a = get(w, "/api/0/profiles/merge?service=cart&type=other" WINDOW, "");
    CHECK_INT(a.status, 200, "merge of one");
    CHECK_STR(a.headers, "Content-Disposition: attachment; filename=\"other\"\r\n", "");
    rig_answer_done(&a);
}

/* The profiles of a range are merged from the newest on: all, or as many as the query says. */
TEST_ON(const struct world *w, merges_of_a_range)
{
    char path[512];
    fill_ids(w, "/api/0/profiles/$2+$1", path, sizeof(path));
    struct rig_answer both = get(w, path, "");
    struct rig_answer a = get(w, "/api/0/profiles/merge?service=cart&type=cpu" WINDOW, "");
    CHECK_INT(a.status, 200, "merge");
    CHECK_STR(a.headers, "Content-Disposition: attachment; filename=\"cpu\"\r\n", "merge");
    check_same_profile(&a, "merged21", "merge");
    assert_int_equal(a.n, both.n);
    assert_memory_equal(a.body, both.body, a.n);
    rig_answer_done(&a);
    a = get(w, "/api/0/profiles/merge?service=cart&type=cpu&limit=2" WINDOW, "");
    assert_int_equal(a.n, both.n);
    assert_memory_equal(a.body, both.body, a.n);
    rig_answer_done(&a);
    rig_answer_done(&both);
    /* One alone, through the same merge. */
    a = get(w, "/api/0/profiles/merge?service=cart&type=cpu&limit=1" WINDOW, "");
    CHECK_INT(a.status, 200, "limit=1");
    both = get(w,
               "/api/0/profiles/merge?service=cart&type=cpu&from=2026-11-22T00:30:15"
               "&to=2026-11-22T00:30:15",
               "");
    CHECK_INT(both.status, 200, "the newest");
    assert_int_equal(a.n, both.n);
    assert_memory_equal(a.body, both.body, a.n);
    rig_answer_done(&a);
    rig_answer_done(&both);
}

/* ---- profiles that came by POST -------------------------------------------------------------- */

/* Stores a profile as POST does; the id is that of its answer. */
static void put_posted(struct world *w, const char *labels, const char *file, int64_t at_ns,
                       uint16_t salt, char id[PROFEFE_ID_LENGTH + 1])
{
    SCOPED(buf) data = stored_file(file);
    struct label l[RIG_LABELS_MAX];
    struct store_put p = {.labels = l,
                          .n_labels = rig_labels(labels, l),
                          .data = {data.data, data.len},
                          .salt = salt,
                          .from_ns = at_ns,
                          .until_ns = at_ns};
    assert_true(store_put(w->rig.store, &p, 1));
    profefe_id_format(at_ns, store_hash(p.data, salt), id);
}

/* The collector listed and merged p1 and p2, and then p1 once more. */
TEST_ON(struct world *w, equal_profiles_are_two)
{
    static const struct {
        const char *path;
        const char *want; /* values of the label "pod" */
    } cases[] = {
        {"/api/0/profiles?service=twice&type=cpu" WINDOW, "aab"},
        {"/api/0/profiles?service=twice&type=cpu&limit=1" WINDOW, "b"},
        {"/api/0/profiles?service=twice&type=cpu&limit=2" WINDOW, "ab"},
    };
    char id[PROFEFE_ID_LENGTH + 1];
    put_posted(w, "__name__=process_cpu,pod=a,service_name=twice", "p1", T0, 65535, id);
    put_posted(w, "__name__=process_cpu,pod=b,service_name=twice", "p2", T0 + 15 * NS_PER_S, 1, id);
    put_posted(w, "__name__=process_cpu,pod=a,service_name=twice", "p1", T0, 2, id);
    /* The same one, tried again. */
    put_posted(w, "__name__=process_cpu,pod=a,service_name=twice", "p1", T0, 2, id);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char pods[16] = "";
        SCOPED(rig_answer) a = get(w, cases[i].path, "");
        json_auto_t *root = json_loads(a.body, 0, NULL);
        json_t *list = json_object_get(root, "body");
        for (size_t j = 0; j < json_array_size(list) && j + 1 < sizeof(pods); j++) {
            json_t *label = json_array_get(json_object_get(json_array_get(list, j), "labels"), 0);
            strncat(pods, json_string_value(json_object_get(label, "value")), 1);
        }
        CHECK_STR(pods, cases[i].want, cases[i].path);
    }
    SCOPED(rig_answer) a = get(w, "/api/0/profiles/merge?service=twice&type=cpu" WINDOW, "");
    check_same_profile(&a, "merged211", "merge");
}

TEST_ON(struct world *w, the_id_of_the_answer_is_known)
{
    char ids[3][PROFEFE_ID_LENGTH + 1];
    char path[256];
    /* Within a second, and in different files of the store. */
    put_posted(w, "__name__=process_cpu,service_name=posted", "p1", T0 + NS_PER_S - 1, 7, ids[0]);
    put_posted(w, "__name__=process_cpu,service_name=posted", "p2", T0 + 7200 * NS_PER_S, 8,
               ids[1]);
    put_posted(w, "__name__=process_cpu,service_name=posted", "p1", T0 + NS_PER_S - 1, 9, ids[2]);
    assert_string_not_equal(ids[0], ids[2]);
    static const char *const files[] = {"p1", "p2", "p1"};
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof(path), "/api/0/profiles/%s", ids[i]);
        SCOPED(rig_answer) a = get(w, path, "");
        CHECK_INT(a.status, 200, path);
        check_same_profile(&a, files[i], path);
    }
    (void)snprintf(path, sizeof(path), "/api/0/profiles/%s+%s+%s", ids[1], ids[0], ids[2]);
    struct rig_answer a = get(w, path, "");
    CHECK_INT(a.status, 200, path);
    CHECK_CONTAINS(a.headers, path + strlen("/api/0/profiles/"), "the name of the file");
    rig_answer_done(&a);
    /* One of lists and one of POST. */
    char both[256];
    (void)snprintf(both, sizeof(both), "/api/0/profiles/$2+%s", ids[0]);
    fill_ids(w, both, path, sizeof(path));
    a = get(w, path, "");
    CHECK_INT(a.status, 200, path);
    rig_answer_done(&a);
    /* Another second, and a hash that nothing has. */
    SCOPED(buf) data = stored_file("p1");
    const struct sv bytes = {data.data, data.len};
    char none[2][PROFEFE_ID_LENGTH + 1];
    profefe_id_format(T0 + NS_PER_S, store_hash(bytes, 7), none[0]);
    profefe_id_format(T0, store_hash(bytes, 10), none[1]);
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof(path), "/api/0/profiles/%s+%s", ids[0], none[i]);
        a = get(w, path, "");
        CHECK_INT(a.status, 404, path);
        rig_answer_done(&a);
    }
}

/* go tool pprof shows the text of an error only with a header; others may want JSON. */
TEST_ON(const struct world *w, errors_that_pprof_shows)
{
    static const struct {
        const char *path;
        int status;
        const char *body, *name;
    } cases[] = {
        {"/api/0/profiles/merge?service=nope&type=cpu" WINDOW, 404, NOTHING, "cpu"},
        {"/api/0/profiles/merge?service=cart&type=foo" WINDOW, 405,
         "{\"code\":405,\"error\":\"can't merge profiles of unknown type\"}\n", NULL},
        {"/api/0/profiles/merge?service=cart" WINDOW, 405,
         "{\"code\":405,\"error\":\"can't merge profiles of unknown type\"}\n", NULL},
        {"/api/0/profiles/merge?service=cart&type=trace" WINDOW, 405,
         "{\"code\":405,\"error\":\"can't merge profiles of trace type\"}\n", NULL},
        {"/api/0/profiles/merge?service=cart&type=cpu", 400, BAD("missing \\\"from\\\""), NULL},
        {"/api/0/profiles/bpc00mript33iv4net00", 404, NOTHING, "bpc00mript33iv4net00"},
        {"/api/0/profiles/00000000-0000-0000-0000-000000000000", 404, NOTHING,
         "00000000-0000-0000-0000-000000000000"},
        {"/api/0/profiles/bpc00mript33iv4net00+bpc00mript33iv4net01", 404, NOTHING,
         "bpc00mript33iv4net00+bpc00mript33iv4net01"},
        /* The collector answers 500. */
        {"/api/0/profiles/zzz", 400,
         "{\"code\":400,\"error\":\"failed to get profile by id \\\"zzz\\\"\"}\n", NULL},
        {"/api/0/profiles/bpc00mript33iv4net00+", 400,
         "{\"code\":400,\"error\":\"failed to get profile by id "
         "\\\"bpc00mript33iv4net00+\\\"\"}\n",
         NULL},
        {"/api/0/profiles/x%0d%0aSet-Cookie:1", 400,
         "{\"code\":400,\"error\":\"failed to get profile by id "
         "\\\"x\\r\\nSet-Cookie:1\\\"\"}\n",
         NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char headers[256] = "";
        struct rig_answer a = get(w, cases[i].path, "");
        if (cases[i].name != NULL) {
            (void)snprintf(headers, sizeof(headers),
                           "Content-Disposition: attachment; filename=\"%s\"\r\n", cases[i].name);
        }
        strncat(headers, "X-Go-Pprof: 1\r\n", sizeof(headers) - strlen(headers) - 1);
        CHECK_INT(a.status, cases[i].status, cases[i].path);
        CHECK_STR(a.body, cases[i].body, cases[i].path);
        CHECK_STR(a.type, "text/plain; charset=utf-8", cases[i].path);
        CHECK_STR(a.headers, headers, cases[i].path);
        rig_answer_done(&a);
        a = get(w, cases[i].path, "Accept: application/json\r\n");
        CHECK_STR(a.type, "application/json", cases[i].path);
        CHECK_STR(a.body, cases[i].body, cases[i].path);
        rig_answer_done(&a);
    }
}

TEST_ON(struct world *w, profiles_of_other_types_do_not_merge)
{
    char id[STORE_ID_LENGTH + 1];
    const struct pprof_row row = {"main", NULL, {5}};
    rig_put(&w->rig, "__name__=process_cpu,service_name=mixed", T0, "cpu/nanoseconds", &row, 1, id);
    rig_put(&w->rig, "__name__=process_cpu,service_name=mixed", T0 + NS_PER_S, "wall/nanoseconds",
            &row, 1, id);
    struct rig_answer a = get(w, "/api/0/profiles/merge?service=mixed&type=cpu" WINDOW, "");
    CHECK_INT(a.status, 500, "mixed");
    CHECK_CONTAINS(a.body, "{\"code\":500,\"error\":\"", "mixed");
    rig_answer_done(&a);
    a = get(w, "/api/0/profiles/merge?service=mixed&type=cpu&limit=2" WINDOW, "");
    CHECK_INT(a.status, 500, "mixed");
    rig_answer_done(&a);
}

/* ---- limits ---------------------------------------------------------------------------------- */

TEST_ON(struct world *w, long_lists_are_cut)
{
    const size_t n = PROFEFE_LIST_MAX + 2;
    const struct pprof_spec without_time = {.types = "samples/count cpu/nanoseconds"};
    const struct pprof_row row = {"main", "", {1, 1}};
    SCOPED(buf) data = pprof_make(&without_time, &row, 1);
    SCOPED_MEMORY struct store_put *puts = calloc(n, sizeof(*puts));
    struct label labels[RIG_LABELS_MAX];
    size_t n_labels = rig_labels("__name__=process_cpu,service_name=many", labels);
    for (size_t i = 0; i < n; i++) {
        puts[i] = (struct store_put){.labels = labels,
                                     .n_labels = n_labels,
                                     .data = {data.data, data.len},
                                     .format = PROFILE_PPROF,
                                     .from_ns = T0 + (int64_t)i * NS_PER_MS,
                                     .until_ns = T0 + (int64_t)i * NS_PER_MS};
    }
    assert_true(store_put(w->rig.store, puts, n));
    struct rig_answer a = get(w, "/api/0/profiles?service=many&type=cpu" WINDOW, "");
    json_t *root = json_loads(a.body, 0, NULL);
    json_t *list = json_object_get(root, "body");
    CHECK_INT(json_array_size(list), PROFEFE_LIST_MAX, "");
    /* The oldest are left out. */
    CHECK_STR(json_string_value(json_object_get(json_array_get(list, 0), "id")), puts[2].id, "");
    CHECK_CONTAINS(a.headers, "X-Profpull-Truncated: true\r\n", "");
    CHECK_INT(testing_metric(w->rig.metrics, "profpull_query_lists_truncated_total"), 1, "");
    json_decref(root);
    rig_answer_done(&a);
    a = get(w, "/api/0/profiles?service=many&type=cpu&limit=10000" WINDOW, "");
    assert_null(strstr(a.headers, "Truncated"));
    rig_answer_done(&a);
}

TEST_ON(const struct world *w, queries_end_at_their_limits)
{
    static const char *const paths[] = {
        CART WINDOW, "/api/0/profiles/merge?service=cart&type=cpu" WINDOW,
        "/api/0/profiles/merge?service=cart&type=cpu&limit=1" WINDOW};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        char head[512];
        (void)snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\n", paths[i]);
        struct rig_answer a = rig_ask_within(&w->options, head, SV(""), 64, false);
        assert_true(a.status == 429 || a.status == 503);
        rig_answer_done(&a);
        a = rig_ask_within(&w->options, head, SV(""), RIG_BYTES_MAX, true);
        CHECK_INT(a.status, 504, paths[i]);
        rig_answer_done(&a);
    }
}

TEST_ON(struct world *w, without_a_store_nothing_is_there)
{
    struct rig_process options = w->options;
    options.served.store = NULL;
    SCOPED(rig_answer) a = rig_ask(&options, "GET /api/0/services HTTP/1.1\r\n", SV(""));
    CHECK_INT(a.status, 404, "");
    CHECK_CONTAINS(a.body, "no profiles are stored here", "");
}

/* ---- parameters ------------------------------------------------------------------------------ */

TEST(times_without_zone)
{
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {
        {"2026-11-22T00:30:00", T0},
        {"2026-11-22T00:30:00.5", T0 + NS_PER_S / 2},
        {"2026-11-22T00:30:00.000000001", T0 + 1},
        {"2026-11-22T00:30:00.0000000019", T0 + 1},
        {"", -1},
        {"2026-11-22T00:30:00Z", -1},
        {"2026-11-22T00:30:00+01:00", -1},
        {"2026-11-22 00:30:00", -1},
        {"2026-11-22t00:30:00", -1},
        {"2026-11-22", -1},
        {"1795307400", -1},
        {"2026-13-22T00:30:00", -1},
        {"2026-11-22T00:30:00.", -1},
        {"2026-11-22T00:30:00 ", -1},
        {"2026-11-22T00:30:00.00000000000000000000000000000000000000000000000000000", -1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        int64_t ns = -1;
        bool ok = profefe_time(sv_from(cases[i].text), &ns, &err);
        CHECK_INT(ok, cases[i].ns >= 0, cases[i].text);
        CHECK_INT(ok ? ns : -1, cases[i].ns, cases[i].text);
        CHECK_CONTAINS(err.msg, ok ? "" : "time in unsupported format \"", cases[i].text);
    }
}

TEST(labels_are_decoded_again)
{
    static const struct text_case cases[] = {
        {"", ""},
        {"env=prod,pod=a", "env=prod;pod=a;"},
        {"pod=a,env=prod", "env=prod;pod=a;"},
        {"a=x%2Cy%3Dz, b = 1 ,=q,c", "a=x,y=z;b=1;c=;"},
        {"b=2,a=1,b=1", "a=1;b=2;b=1;"},
        {"a=b=c", "a=b=c;"},
        {"a=x+y%2B", "a=x y+;"},
        {",,", ""},
        {"%61=%62", "a=b;"},
        {"a=%zz", "invalid URL escape \"%zz\""},
        {"a=1,b=%4", "invalid URL escape \"%4\""},
        {"%=1", "invalid URL escape \"%\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        struct label *labels;
        size_t n;
        SCOPED(arena) *arena = arena_new(PROFILE_MAX);
        SCOPED(buf) text = testing_buf(4096);
        if (profefe_labels(sv_from(cases[i].text), arena, &labels, &n, &err)) {
            for (size_t j = 0; j < n; j++) {
                buf_printf(&text, "%s=%s;", labels[j].name.p, labels[j].value.p);
            }
        }
        CHECK_STR(err.kind == ERR_NONE ? text.data : err.msg, cases[i].want, cases[i].text);
    }
}

TEST(ids_are_xids)
{
    static const struct {
        const char *text;
        int64_t second;
        uint64_t hash;
    } cases[] = {
        {"dc13r2j8di1bgu3afk20", 1795308938, 0x686c82b8786a7d04},
        {"00000000000000000000", 0, 0},
        {"vvvvvvvvvvvvvvvvvvvg", UINT32_MAX, UINT64_MAX},
        {"dc13r2j8di1bgu3afk2", -1, 0},
        {"dc13r2j8di1bgu3afk200", -1, 0},
        {"dc13r2j8di1bgu3afk2w", -1, 0},
        {"DC13r2j8di1bgu3afk20", -1, 0},
        {"", -1, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t second;
        uint64_t hash;
        char text[PROFEFE_ID_LENGTH + 1];
        bool ok = profefe_id_parse(sv_from(cases[i].text), &second, &hash);
        CHECK_INT(ok, cases[i].second >= 0, cases[i].text);
        if (ok) {
            CHECK_INT(second, cases[i].second, cases[i].text);
            assert_true(hash == cases[i].hash);
            profefe_id_format(cases[i].second * NS_PER_S + 5, hash, text);
            CHECK_STR(text, cases[i].text, "written again");
        }
    }
}
