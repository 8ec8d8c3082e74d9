/* The overview: numbers that can be checked by hand, order, pages, and hostile names. */
#include <jansson.h>
#include <math.h>

#include "tests/unit/pages/pages_rig.h"

/* A quarter of an hour that ends 15 minutes after RIG_T0. */
#define QUARTER "last=15m&at=1795306500"

static json_t *ask(const struct pages_rig *r, const char *path)
{
    SCOPED(rig_answer) a = pages_get(r, path);
    CHECK_INT(a.status, 200, a.body);
    CHECK_STR(a.type, "application/json", path);
    json_t *root = json_loadb(a.body, a.n, 0, NULL);
    if (root == NULL) {
        fail_msg("not JSON: %s", a.body);
    }
    return root;
}

static void check_number(const json_t *object, const char *key, double want)
{
    double got = json_number_value(json_object_get(object, key));
    if (fabs(got - want) > 1e-9 * fabs(want)) {
        fail_msg("%s is %g, expected %g", key, got, want);
    }
}

/* Two pods with half a core and a quarter; one allocates 2 KiB a second, and holds 1000 bytes on
 * average. Halfway, the version changes. */
static void put_cart(struct pages_rig *r)
{
    for (int64_t s = 0; s < 900; s += 15) {
        bool is_new = s >= 450;
        pages_put_cpu(r, "cart", is_new ? "a2" : "a", is_new ? "v2" : "v1", s, 0.5);
        pages_put_cpu(r, "cart", is_new ? "b2" : "b", is_new ? "v2" : "v1", s, 0.25);
        pages_put_heap(r, "cart", "a", s, INT64_C(15) * 2048, s % 30 == 0 ? 900 : 1100);
        pages_put_goroutines(r, "cart", "a", s, 40);
    }
}

SETUP_OF(pages_rig)

TEST_ON(struct pages_rig *r, numbers_are_those_of_the_profiles)
{
    put_cart(r);
    pages_put_goroutines(r, "idle", "x", 600, 7);
    json_auto_t *root = ask(r, "/api/v1/overview?" QUARTER);
    check_number(root, "found", 2);
    check_number(root, "from", (double)PAGES_T0_MS);
    const json_t *services = json_object_get(root, "services");
    const json_t *cart = json_array_get(services, 0);
    assert_string_equal(json_string_value(json_object_get(cart, "service")), "cart");
    check_number(cart, "cpuCores", 0.75);
    check_number(cart, "allocBytesPerSecond", 2048);
    check_number(cart, "liveHeapBytes", 1000);
    check_number(cart, "goroutines", 40);
    assert_string_equal(json_string_value(json_object_get(cart, "version")), "v2");
    assert_string_equal(json_string_value(json_object_get(cart, "versionBefore")), "v1");
    check_number(cart, "versionSinceMs", (double)(PAGES_T0_MS + 450 * MS_PER_S));
    const json_t *idle = json_array_get(services, 1);
    assert_string_equal(json_string_value(json_object_get(idle, "service")), "idle");
    assert_true(json_is_null(json_object_get(idle, "cpuCores")));
    check_number(idle, "goroutines", 7);
}

/* After a rollback the old version runs, although the other one came later. Without profiles in the
 * last ten minutes, nothing runs, and the last one that came is shown. */
TEST_ON(struct pages_rig *r, a_rolled_back_version_is_not_shown)
{
    for (int64_t s = 0; s < 900; s += 15) {
        bool is_new = s >= 100 && s < 200;
        pages_put_cpu(r, "cart", is_new ? "b" : "a", is_new ? "v2" : "v1", s, 0.5);
    }
    json_auto_t *root = ask(r, "/api/v1/overview?" QUARTER);
    const json_t *cart = json_array_get(json_object_get(root, "services"), 0);
    assert_string_equal(json_string_value(json_object_get(cart, "version")), "v1");
    check_number(cart, "versionSinceMs", 0);
    json_decref(root);
    root = ask(r, "/api/v1/overview?last=1h&at=1795308000");
    cart = json_array_get(json_object_get(root, "services"), 0);
    assert_string_equal(json_string_value(json_object_get(cart, "version")), "v2");
    assert_string_equal(json_string_value(json_object_get(cart, "versionBefore")), "v1");
}

TEST_ON(struct pages_rig *r, the_page_shows_them_with_units)
{
    static const char *const wanted[] = {
        "aria-current=\"page\">Overview</a>",
        "<a href=\"profiles?service=cart&amp;type=process_cpu:cpu:nanoseconds:cpu:nanoseconds&amp;"
        "from=1795305600000&amp;until=1795306500000\">cart</a>",
        "<td class=\"rate\" data-name=\"CPU\"><span>0.75 cores</span><svg class=\"spark\"",
        "aria-label=\"CPU, 15 minutes: 0.75 cores to 0.75 cores\"",
        "<span>2 KiB/s</span>",
        "<span>1000 B</span>",
        "<span>40</span>",
        "<a class=\"mono\" href=\"changes?service=cart\">v2</a><div class=\"hint\">since <time "
        "datetime=\"2026-11-22T00:07:30.000Z\">2026-11-22 00:07:30</time>, before: "
        "<span class=\"mono\">v1</span></div>",
        "<b>1</b><span>service</span>",
        "<b>0.75 cores</b><span>CPU</span>",
    };
    put_cart(r);
    SCOPED(rig_answer) a = pages_get(r, "/?" QUARTER);
    CHECK_INT(a.status, 200, a.body);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        CHECK_CONTAINS(a.body, wanted[i], wanted[i]);
    }
    assert_null(strstr(a.body, ">nan"));
}

TEST_ON(struct pages_rig *r, what_there_is_not_is_said)
{
    SCOPED(rig_answer) empty = pages_get(r, "/");
    CHECK_INT(empty.status, 200, empty.body);
    CHECK_CONTAINS(empty.body, "<h2>No profile yet</h2>", "empty");
    SCOPED(rig_answer) not_found = pages_get(r, "/?find=%3Cb%3E");
    CHECK_CONTAINS(not_found.body, "has \"&lt;b&gt;\" in its name", "find");
    r->process.served.store = NULL;
    SCOPED(rig_answer) none = pages_get(r, "/");
    CHECK_CONTAINS(none.body, "<h2>Profiles are not kept here</h2>", "no store");
    SCOPED(rig_answer) json = pages_get(r, "/api/v1/overview");
    CHECK_INT(json.status, 404, json.body);
    CHECK_CONTAINS(json.body, "{\"error\":\"no profiles are stored here", "no store");
}

/* Addresses from before the overview still lead to the profiles. */
TEST_ON(struct pages_rig *r, parameters_of_profiles_lead_to_them)
{
    static const char *const paths[] = {"/?service=cart&from=1795305600&until=1795306500",
                                        "/?from=1795305600&until=1795306500",
                                        "/profiles?from=1795305600&until=1795306500"};
    put_cart(r);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        SCOPED(rig_answer) a = pages_get(r, paths[i]);
        CHECK_CONTAINS(a.body, "id=\"workbench\"", paths[i]);
    }
}

TEST_ON(struct pages_rig *r, wrong_parameters_are_named)
{
    static const struct text_case rows[] = {
        {"/?last=2h", "&quot;last&quot;: expected 15m, 1h, 6h or 24h, got &quot;2h&quot;"},
        {"/?page=0", "&quot;page&quot;: expected a number from 1 to 100"},
        {"/?page=101", "&quot;page&quot;: expected a number from 1 to 100"},
        {"/?at=yesterday", "&quot;at&quot;: expected a time such as now-1h"},
        {"/api/v1/overview?last=x", "\"last\\\": expected 15m"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(rig_answer) a = pages_get(r, rows[i].text);
        CHECK_INT(a.status, 400, rows[i].text);
        CHECK_CONTAINS(a.body, rows[i].want, rows[i].text);
    }
}

/* 250 services: a hundred a page, the most CPU first, then the most live heap. */
TEST_ON(struct pages_rig *r, many_services_are_on_pages)
{
    char name[32];
    for (int i = 0; i < 250; i++) {
        (void)snprintf(name, sizeof(name), "service-%03d", i);
        if (i < 200) {
            pages_put_cpu(r, name, "a", "", 600, (i + 1) / 100.0);
        } else {
            pages_put_heap(r, name, "a", 600, 1, i);
        }
    }
    SCOPED(rig_answer) first = pages_get(r, "/?" QUARTER);
    CHECK_INT(pages_count(first.body, "<th scope=\"row\""), 100, "rows");
    CHECK_CONTAINS(first.body, "Services 1 to 100 of 250", "first");
    CHECK_CONTAINS(first.body, "<a rel=\"next\" href=\"?last=15m&amp;at=1795306500&amp;page=2\">",
                   "next");
    assert_true(strstr(first.body, ">service-199<") < strstr(first.body, ">service-198<"));
    assert_null(strstr(first.body, ">service-249<"));
    SCOPED(rig_answer) last = pages_get(r, "/?page=3&" QUARTER);
    CHECK_INT(pages_count(last.body, "<th scope=\"row\""), 50, "rows");
    CHECK_CONTAINS(last.body, "Services 201 to 250 of 250", "last");
    assert_null(strstr(last.body, "rel=\"next\""));
    assert_true(strstr(last.body, ">service-249<") < strstr(last.body, ">service-248<"));
    SCOPED(rig_answer) beyond = pages_get(r, "/?page=4&" QUARTER);
    CHECK_CONTAINS(beyond.body, "Services 250 to 250 of 250", "beyond");
    SCOPED(rig_answer) found = pages_get(r, "/?find=VICE-01&" QUARTER);
    CHECK_INT(pages_count(found.body, "<th scope=\"row\""), 10, "found");
}

TEST_ON(struct pages_rig *r, hostile_names_stay_text_and_pages_stay_small)
{
    static char name[10241];
    pages_put_cpu(r, "</th><script>alert('1')</script>\"&", "a", "<i>", 600, 1);
    for (int i = 0; i < 100; i++) {
        memset(name, '<', sizeof(name) - 1);
        (void)snprintf(name + sizeof(name) - 12, 12, "%d", i);
        pages_put_cpu(r, name, "a", name, 600, 0.5);
    }
    SCOPED(rig_answer) a = pages_get(r, "/?" QUARTER);
    CHECK_INT(a.status, 200, a.body);
    assert_null(strstr(a.body, "<script>"));
    assert_null(strstr(a.body, "<i>"));
    CHECK_CONTAINS(a.body, "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot;&amp;</a></th>",
                   "escaped");
    CHECK_CONTAINS(a.body, "service=%3C%2Fth%3E%3Cscript%3E", "in addresses");
    /* A name of 10 KB is cut, and too long for an address: 100 of them take 400 KB at most. */
    CHECK_CONTAINS(a.body, "&lt;&lt;…</th>", "cut");
    assert_true(a.n < 400000);
}
