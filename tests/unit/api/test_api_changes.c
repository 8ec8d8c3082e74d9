/* GET /api/v1/changes: a service, all services, and mistakes. */
#include "tests/unit/lib/testing.h"

#include <jansson.h>

#include "tests/unit/api/store_world.h"
#include "tests/unit/lib/rollout.h"

#define RANGE "from=1795305600&until=1795312800"

static void world_begin(struct world *w)
{
    store_world_init(w);
    rollout_put(&w->rig, "cart", 40, 60);
    rollout_put(&w->rig, "same", 40, 40);
}

FIXTURE(world, world_begin, store_world_done)

/* Asks, and returns the JSON, which the caller releases. */
static json_t *get(const struct world *w, const char *query, int status)
{
    char head[2048];
    (void)snprintf(head, sizeof(head), "GET /api/v1/changes?%s HTTP/1.1\r\n", query);
    SCOPED(rig_answer) a = rig_ask(&w->options, head, SV(""));
    CHECK_INT(a.status, status, query);
    CHECK_STR(a.type, "application/json", query);
    json_t *root = json_loads(a.body, 0, NULL);
    assert_non_null(root);
    return root;
}

static const char *text(const json_t *o, const char *name)
{
    const char *t = json_string_value(json_object_get(o, name));
    return t == NULL ? "" : t;
}

TEST_WITH(service, setup, teardown)
{
    const struct world *w = *state;
    json_auto_t *root = get(w, "service=cart&limit=3&" RANGE, 200);
    CHECK_STR(text(root, "state"), "changed", "state");
    CHECK_STR(text(json_object_get(root, "base"), "version"), "1.0", "base");
    CHECK_STR(text(json_object_get(root, "new"), "version"), "2.0", "new");
    const json_t *functions = json_object_get(root, "functions");
    assert_int_equal(json_array_size(functions), 3);
    CHECK_STR(text(json_array_get(functions, 0), "name"), "main.slow", "first");
    assert_non_null(strstr(text(root, "flamegraph"), "/profiles?compare=1&service=cart&type="));
    json_decref(root);
    root = get(w, "service=same&" RANGE, 200);
    CHECK_STR(text(root, "state"), "unchanged", "same");
    json_decref(root);
    root = get(w, "service=cart&base=2.0&new=1.0&type=cpu&" RANGE, 200);
    CHECK_STR(text(json_object_get(root, "base"), "version"), "2.0", "base");
    json_decref(root);
    root = get(w,
               "service=cart&from=1795307400&until=1795309200&base_from=1795305600"
               "&base_until=1795307000",
               200);
    CHECK_STR(text(root, "state"), "changed", "ranges");
}

TEST_ON(const struct world *w, services)
{
    json_auto_t *root = get(w, RANGE, 200);
    const json_t *list = json_object_get(root, "services");
    assert_int_equal(json_array_size(list), 2);
    CHECK_STR(text(json_array_get(list, 0), "service"), "cart", "by name, at the same time");
    CHECK_STR(text(json_array_get(list, 0), "time"), "2026-11-22T00:30:00.000Z", "time");
    json_decref(root);
    root = get(w, "limit=1&" RANGE, 200);
    assert_int_equal(json_integer_value(json_object_get(root, "leftOut")), 1);
}

TEST_ON(const struct world *w, mistakes)
{
    static const struct text_case cases[] = {
        {"service=cart&from=1795312800&until=1795305600", "from must be before until"},
        {"service=cart&limit=0&" RANGE, "limit: expected a number from 1 to 1000"},
        {"service=cart&limit=x&" RANGE, "limit: expected a number from 1 to 1000"},
        {"service=cart&labels=%7B&" RANGE, "labels: "},
        {"service=cart&type=heap&" RANGE, "no profiles of \"heap\""},
        {"service=nobody&" RANGE, "the service has no profiles in this time"},
        {"service=cart&base_from=1795305600&" RANGE, "base_from and base_until belong together"},
        {"service=cart&base=1&base_from=1&base_until=2&" RANGE, "give only one of them"},
        {"service=cart&base_from=3000000&base_until=2000000&" RANGE,
         "base_from must be before base_until"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_auto_t *root = get(w, cases[i].text, 400);
        CHECK_CONTAINS(text(root, "error"), cases[i].want, cases[i].text);
    }
}
