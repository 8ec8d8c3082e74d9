/* The page of changes: services, one service, hostile names, and nothing to show. */
#include "tests/unit/lib/rollout.h"
#include "tests/unit/pages/pages_rig.h"

#define RANGE "from=1795305600&until=1795312800"

static void check_page(const struct pages_rig *r, const char *path, int status,
                       const char *const *wanted)
{
    SCOPED(rig_answer) a = pages_get(r, path);
    CHECK_INT(a.status, status, path);
    for (size_t i = 0; wanted[i] != NULL; i++) {
        CHECK_CONTAINS(a.body, wanted[i], path);
    }
    assert_null(strstr(a.body, "<script>"));
    assert_null(strstr(a.body, "style="));
}

SETUP_OF(pages_rig)

TEST_ON(struct pages_rig *r, one_service)
{
    static const char *const changed[] = {
        "aria-current=\"page\">Changes</a>",
        "<h1>What changed in cart</h1>",
        "data-state=\"changed\">",
        "<b>2.0</b><span>New: 3 instances, 60 profiles<br>",
        "<a class=\"button\" id=\"flame\" href=\"profiles?compare=1&amp;service=cart&amp;type=",
        "&amp;labels=version%3D%222.0%22&amp;from=17953074",
        "&amp;base_labels=version%3D%221.0%22&amp;base_from=17953056",
        "<tbody>\n<tr><th scope=\"row\" class=\"service\">main.slow",
        "class=\"more\">costs more</td>",
        "<path class=\"interval\" d=\"M",
        NULL,
    };
    static const char *const same[] = {"data-state=\"unchanged\">No change: ", NULL};
    static const char *const reverse[] = {"class=\"less\">costs less</td>", NULL};
    static const char *const ranges[] = {"<b>all versions</b><span>New: 3 instances",
                                         "<input type=\"hidden\" name=\"base_from\" value=\"1795305"
                                         "600\">",
                                         NULL};
    rollout_put(&r->store, "cart", 40, 60);
    rollout_put(&r->store, "same", 40, 40);
    check_page(r, "/changes?service=cart&" RANGE, 200, changed);
    check_page(r, "/changes?service=same&" RANGE, 200, same);
    check_page(r, "/changes?service=cart&base=2.0&new=1.0&" RANGE, 200, reverse);
    check_page(r,
               "/changes?service=cart&from=1795307400&until=1795309200&base_from=1795305600"
               "&base_until=1795307000",
               200, ranges);
}

TEST_ON(struct pages_rig *r, nothing_to_show)
{
    static const char *const empty[] = {"<h1>What changed</h1>", "<h2>No new version</h2>", NULL};
    static const char *const nobody[] = {"id=\"error\">the service has no profiles in this time",
                                         NULL};
    static const char *const limit[] = {"id=\"error\">limit: expected a number", NULL};
    static const char *const plain[] = {"data-state=\"no_version\">", NULL};
    static const char *const none[] = {"id=\"error\">", NULL};
    check_page(r, "/changes?" RANGE, 200, empty);
    check_page(r, "/changes?service=x&" RANGE, 400, nobody);
    check_page(r, "/changes?limit=0&" RANGE, 400, limit);
    pages_put_cpu(r, "plain", "a", "", 0, 0.5);
    check_page(r, "/changes?service=plain&" RANGE, 200, plain);
    r->process.served.store = NULL;
    check_page(r, "/changes", 404, none);
}

TEST_ON(struct pages_rig *r, many_services)
{
    static const char *const all[] = {
        "<a href=\"changes?service=s-299&amp;from=1795305600\">s-299</a>",
        "<a href=\"changes?service=s-0&amp;from=1795305600\">s-0</a>", NULL};
    static const char *const few[] = {"298 more services changed their version", NULL};
    for (int i = 0; i < 300; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "s-%d", i);
        pages_put_cpu(r, name, "a", "v1", 0, 0.5);
        pages_put_cpu(r, name, "b", "v2", 60 + i, 0.5);
    }
    check_page(r, "/changes?" RANGE, 200, all);
    check_page(r, "/changes?limit=2&" RANGE, 200, few);
}

/* Names of services, versions and functions come from outside. */
TEST_ON(struct pages_rig *r, hostile_names)
{
    static const char *const list[] = {"&lt;script&gt;alert(1)&lt;/script&gt;", NULL};
    SCOPED_MEMORY char *name = testing_memory(10001);
    memset(name, 'n', 10000);
    name[10000] = '\0';
    pages_put_cpu(r, "<script>alert(1)</script>", "a", "<b>1", 0, 0.5);
    pages_put_cpu(r, "<script>alert(1)</script>", "b", "<b>2", 60, 0.5);
    pages_put_cpu(r, name, "a", name, 0, 0.5);
    pages_put_cpu(r, name, "b", "v2", 60, 0.5);
    check_page(r, "/changes?" RANGE, 200, list);
    SCOPED(rig_answer) a = pages_get(r, "/changes?" RANGE);
    assert_in_range(a.n, 1, 40000); /* the long names are cut */
    for (int version = 1; version <= 2; version++) {
        const struct pprof_spec spec = {.types = "samples/count cpu/nanoseconds",
                                        .period_type = "cpu/nanoseconds",
                                        .duration_nanos = 10 * RIG_SECOND};
        const struct pprof_row row = {"<img&src=x>", "", {100, 1000000000}};
        char text[16];
        (void)snprintf(text, sizeof(text), "%d", version);
        const struct label labels[] = {
            pages_label("__name__", "process_cpu"), pages_label("pod", text),
            pages_label("service_name", "evil"), pages_label("version", text)};
        pages_put(r, labels, 4, version * 60, &spec, &row);
    }
    static const char *const evil[] = {"&lt;img&amp;src=x&gt;", "data-state=\"no_verdict\">", NULL};
    check_page(r, "/changes?service=evil&" RANGE, 200, evil);
    check_page(r, "/changes?service=%3Cscript%3Ealert(1)%3C%2Fscript%3E&" RANGE, 200, list);
}
