/* The page of profiles: the axis and the versions of its timeline, and labels to click. */
#include "pages/label_list.h"
#include "tests/unit/pages/pages_rig.h"

#define RANGE "&from=1795305600&until=1795306500"
#define CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define VIEW "service=cart&type=" CPU RANGE

/* v2 comes after five minutes and takes twice the CPU. */
static void put_rollout(struct pages_rig *r)
{
    for (int64_t s = 0; s < 900; s += 15) {
        pages_put_cpu(r, "cart", s < 300 ? "a" : "b", s < 300 ? "v1" : "<v2>", s,
                      s < 300 ? 0.5 : 1);
    }
}

SETUP_OF(pages_rig)

TEST_ON(struct pages_rig *r, the_timeline_has_units_and_versions)
{
    put_rollout(r);
    SCOPED(rig_answer) json = pages_get(r, "/api/v1/timeline?" VIEW);
    CHECK_INT(json.status, 200, json.body);
    CHECK_CONTAINS(json.body, "\"stepMs\":15000,\"unit\":\"nanoseconds\"", "sums stay");
    CHECK_CONTAINS(json.body, "[1795305600000,5000000000]", "sums stay");
    CHECK_CONTAINS(json.body, "\"rateUnit\":\"cores\",\"rates\":[[1795305615000,0.5],", "rates");
    CHECK_CONTAINS(json.body, "[1795305900000,0.5],[1795305915000,1],", "rates");
    CHECK_CONTAINS(json.body, "\"versions\":[{\"timeMs\":1795305900000,\"version\":\"<v2>\"}]}",
                   "versions");
    SCOPED(rig_answer) page = pages_get(r, "/profiles?" VIEW);
    CHECK_CONTAINS(page.body,
                   "<div class=\"y\"><span>1 cores</span><span>0.50 cores</span><span>0</span>",
                   "axis");
    CHECK_CONTAINS(page.body, "<path class=\"mark\" d=\"M333.3 0V100\"/>", "mark");
    CHECK_CONTAINS(page.body, "<b class=\"mono\">&lt;v2&gt;</b> since <time", "version");
}

/* The versions that were there before the range have not changed. */
TEST_ON(struct pages_rig *r, old_versions_are_not_marked)
{
    put_rollout(r);
    SCOPED(rig_answer)
    json =
        pages_get(r, "/api/v1/timeline?service=cart&type=" CPU "&from=1795306200&until=1795306500");
    CHECK_CONTAINS(json.body, "\"versions\":[]}", "versions");
}

TEST_ON(struct pages_rig *r, a_level_is_no_rate)
{
    for (int64_t s = 0; s < 60; s += 15) {
        pages_put_heap(r, "cart", "a", s, 1500, 3000);
        pages_put_heap(r, "cart", "b", s, 1500, 1000);
    }
    SCOPED(rig_answer)
    level = pages_get(
        r, "/api/v1/timeline?service=cart&type=memory:inuse_space:bytes:space:bytes" RANGE);
    CHECK_CONTAINS(level.body, "\"rateUnit\":\"bytes\",\"rates\":[[1795305615000,4000],", "level");
    SCOPED(rig_answer)
    rate = pages_get(
        r, "/api/v1/timeline?service=cart&type=memory:alloc_space:bytes:space:bytes" RANGE);
    CHECK_CONTAINS(rate.body, "\"rateUnit\":\"bytes/s\",\"rates\":[[1795305615000,200],", "rate");
}

/* ---- labels ---------------------------------------------------------------------------------- */

static void check_chip(const struct pages_rig *r, const char *labels, const char *want)
{
    char path[1024];
    (void)snprintf(path, sizeof(path), "/profiles?" VIEW "&labels=%s", labels);
    SCOPED(rig_answer) a = pages_get(r, path);
    CHECK_INT(a.status, 200, a.body);
    CHECK_CONTAINS(a.body, want, labels);
}

#define LINK "href=\"?service=cart&amp;type=process_cpu:cpu:nanoseconds:cpu:nanoseconds&amp;labels="
#define TAIL "from=1795305600&amp;until=1795306500\">"

/* One click shows only a value, the next one excludes it, the third one forgets it. */
TEST_ON(struct pages_rig *r, a_click_narrows_excludes_and_forgets)
{
    put_rollout(r);
    check_chip(r, "", LINK "pod%3D%22a%22&amp;" TAIL "a <small>1</small></a>");
    check_chip(r, "pod%3D%22a%22",
               "<a class=\"chip only\" aria-current=\"true\" title=\"Exclude this value\" "
               "rel=\"nofollow\" " LINK "pod%21%3D%22a%22&amp;" TAIL "= a <small>1</small></a>");
    check_chip(r, "pod!%3D%22a%22",
               "<a class=\"chip not\" title=\"Do not exclude this value\" rel=\"nofollow\" "
               "href=\"?service=cart&amp;type=process_cpu:cpu:nanoseconds:cpu:nanoseconds&amp;" TAIL
               "≠ a <small>1</small></a>");
    /* Another value takes the place of the chosen one; other matchers stay. */
    check_chip(r, "pod%3D%22a%22,version=~%22v.*%22",
               LINK "version%3D%7E%22v.%2A%22%2C%20pod%3D%22b%22&amp;" TAIL "b <small>1</small>");
    /* A value that no series has any more can be removed. */
    check_chip(r, "pod!%3D%22gone%22", "≠ gone <small>0</small></a>");
    /* The selector stays text. */
    check_chip(r, "pod!%3D%22a%22", "value=\"pod!=&quot;a&quot;\"");
}

/* The markup in a value is text, in links and beside them; what it selects is that value. */
TEST_ON(struct pages_rig *r, hostile_values_stay_text)
{
    static char path[4096];
    put_rollout(r);
    pages_put_cpu(r, "cart", "\"><script>alert(1)</script>\\", "v1", 0, 1);
    SCOPED(rig_answer) a = pages_get(r, "/profiles?" VIEW);
    assert_null(strstr(a.body, "<script>alert"));
    CHECK_CONTAINS(a.body, "&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;\\ <small>1</small>",
                   "text");
    const char *link = "pod%3D%22%5C%22%3E%3Cscript%3Ealert%281%29%3C%2Fscript%3E%5C%5C%22";
    CHECK_CONTAINS(a.body, link, "link");
    (void)snprintf(path, sizeof(path), "/profiles?" VIEW "&labels=%s", link);
    SCOPED(rig_answer) chosen = pages_get(r, path);
    CHECK_CONTAINS(chosen.body, "<a class=\"chip only\"", "chosen");
}

TEST_ON(struct pages_rig *r, lists_of_labels_are_bounded)
{
    static char value[10241];
    static char names[LABEL_LIST_NAMES_MAX + 5][16];
    struct label labels[LABEL_LIST_NAMES_MAX + 7];
    const struct pprof_spec spec = {.types = "samples/count cpu/nanoseconds",
                                    .period_type = "cpu/nanoseconds"};
    const struct pprof_row row = {"main", "", {1, 1}};
    for (int i = 0; i < LABEL_LIST_VALUES_MAX + 3; i++) {
        char pod[16];
        (void)snprintf(pod, sizeof(pod), "pod-%02d", i);
        pages_put_cpu(r, "cart", pod, "", 15 * i, 1);
    }
    labels[0] = pages_label("__name__", "process_cpu");
    memset(value, '%', sizeof(value) - 1);
    for (size_t i = 0; i < LABEL_LIST_NAMES_MAX + 5; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "a%02zu", i);
        labels[i + 1] = pages_label(names[i], i == 0 ? value : "x");
    }
    labels[LABEL_LIST_NAMES_MAX + 6] = pages_label("service_name", "cart");
    pages_put(r, labels, LABEL_LIST_NAMES_MAX + 7, 0, &spec, &row);
    SCOPED(rig_answer) a = pages_get(r, "/profiles?" VIEW);
    CHECK_CONTAINS(a.body, "<p class=\"hint\">6 other labels are not listed", "names");
    CHECK_CONTAINS(a.body, "%%%… <small>1</small></span>", "a long value is no link");
    CHECK_CONTAINS(a.body, "Values that are too long for an address are no links.", "its note");
    SCOPED(rig_answer) few = pages_get(r, "/profiles?" VIEW "&labels=a00%3D%22%22");
    assert_true(few.n < LABEL_LIST_BYTES_MAX);
}

TEST_ON(struct pages_rig *r, values_beyond_the_limit_are_counted)
{
    for (int i = 0; i < LABEL_LIST_VALUES_MAX + 3; i++) {
        char pod[16];
        (void)snprintf(pod, sizeof(pod), "pod-%02d", i);
        pages_put_cpu(r, "cart", pod, "", 15 * i, 1);
    }
    SCOPED(rig_answer) a = pages_get(r, "/profiles?" VIEW);
    CHECK_CONTAINS(a.body, "<span class=\"hint\">and 3 other values</span>", "values");
    assert_null(strstr(a.body, ">pod-20 <small>"));
}
