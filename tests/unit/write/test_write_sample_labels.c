/* When an endpoint looks at the labels within samples, and when it lets a profile go as it is. */
#include "tests/unit/lib/testing.h"

#include "tests/unit/lib/pprof_writer.h"
#include "tests/unit/write/requests.h"
#include "write/sample_labels.h"
#include "write/series_marks.h"

SCOPED_POINTER(profile, profile_unref)
SCOPED_POINTER(sample_labels, sample_labels_free)

static struct profile *make(const char *series, const char *label, bool no_sample_texts)
{
    const struct pprof_spec spec = {.types = "cpu/nanoseconds"};
    const struct pprof_row row = {"f", label, {7}};
    struct buf plain = pprof_make(&spec, &row, 1);
    size_t size;
    char *data = buf_take(&plain, &size);
    const struct pair name = {"__name__", series};
    struct profile *p = profile_new(labels_of(&name, 1), data, size);
    assert_non_null(p);
    p->no_sample_texts = no_sample_texts;
    return p;
}

/* A profile that is known to have no texts is not looked at, unless numbers may have to go too. The
 * label of the first is a text all the same, which shows that nobody looks. */
TEST_WITH(who_looks, setup, teardown)
{
    static const char *const drop[] = {"bad name"};
    static const struct {
        const char *label;
        bool no_sample_texts, repair, drops, changes;
    } cases[] = {
        {"bad name=v", false, true, false, true},   {"bad name=v", true, true, false, false},
        {"bad name=v", false, false, false, false}, {"bad name=v", true, false, true, true},
        {"bad name=7", false, true, false, false},  {"bad name=7", true, true, true, true},
        {"bad name=7", false, false, true, true},   {"good=v", false, true, true, false},
    };
    SCOPED(metrics) *m = metrics_new();
    SCOPED(sample_labels) *labels = sample_labels_new(m, "main");
    assert_non_null(labels);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char row[32];
        snprintf(row, sizeof(row), "case %zu", i);
        struct config_endpoint e = {.protocol = &protocol_push.config,
                                    .sample_repair = cases[i].repair,
                                    .label_limits = default_limits};
        e.sample_drop = (struct config_strings){.at = drop, .n = cases[i].drops};
        SCOPED(profile) *p = make(row, cases[i].label, cases[i].no_sample_texts);
        struct sample_labels_look look;
        struct sample_labels_wish wish = {.counts = true};
        SCOPED(profile) *out = sample_labels_apply(labels, &e, p, wish, &look);
        CHECK_INT(out != p, cases[i].changes, row);
    }
}

/* The record of a series decides whether its next profile is checked. */
TEST_WITH(who_passes, setup, teardown)
{
    static const struct {
        const char *series, *label;
        bool must_look, skipped, clean, labelled, changes;
    } cases[] = {
        /* The first is looked at, then none is, until a refusal. */
        {"a", "", false, false, true, false, false},
        {"a", "", false, true, false, false, false},
        {"a", "bad name=v", false, true, false, false, false},
        {"a", "bad name=v", true, false, false, true, true},
        /* From then on each one is, with labels or without. */
        {"a", "bad name=v", false, false, false, true, true},
        {"a", "", false, false, true, false, false},
        {"a", "bad name=v", false, false, false, true, true},
        /* Labels that nothing is wrong with may be wrong in the next one; numbers do not count. */
        {"b", "good=v", false, false, true, true, false},
        {"b", "bad name=v", false, false, false, true, true},
        {"c", "bytes=7", false, false, true, false, false},
        {"c", "bytes=7", false, true, false, false, false},
    };
    SCOPED(metrics) *m = metrics_new();
    SCOPED(sample_labels) *labels = sample_labels_new(m, "main");
    assert_non_null(labels);
    const struct config_endpoint e = {
        .protocol = &protocol_push.config, .sample_repair = true, .label_limits = default_limits};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char row[32];
        snprintf(row, sizeof(row), "case %zu", i);
        SCOPED(profile) *p = make(cases[i].series, cases[i].label, false);
        struct sample_labels_look look;
        struct sample_labels_wish wish = {.must_look = cases[i].must_look, .counts = true};
        SCOPED(profile) *out = sample_labels_apply(labels, &e, p, wish, &look);
        CHECK_INT(look.skipped, cases[i].skipped, row);
        CHECK_INT(look.clean, cases[i].clean, row);
        CHECK_INT(look.labelled, cases[i].labelled, row);
        CHECK_INT(out != p, cases[i].changes, row);
    }
}

/* The operator's rules hold for each profile, even for servers that take everything. */
TEST_WITH(who_never_passes, setup, teardown)
{
    static const char *const drop[] = {"x"};
    const struct config_endpoint endpoints[] = {
        {.protocol = &protocol_push.config, .sample_drop = {.at = drop, .n = 1}},
        {.protocol = &protocol_push.config, .sample_keep = {.at = drop, .n = 1}},
        {.protocol = &protocol_push.config, .sample_names_max = 6, .sample_names_given = true},
        {.protocol = &protocol_ingest.config, .sample_names_max = 6},
    };
    SCOPED(metrics) *m = metrics_new();
    for (size_t i = 0; i < sizeof(endpoints) / sizeof(endpoints[0]); i++) {
        char row[32];
        snprintf(row, sizeof(row), "case %zu", i);
        SCOPED(sample_labels) *labels = sample_labels_new(m, row);
        struct config_endpoint e = endpoints[i];
        e.sample_repair = true;
        e.label_limits = default_limits;
        for (size_t k = 0; k < 3; k++) {
            struct profile *p = make("a", "", false);
            struct sample_labels_look look;
            struct sample_labels_wish wish = {.counts = true};
            profile_unref(sample_labels_apply(labels, &e, p, wish, &look));
            profile_unref(p);
            CHECK_INT(look.skipped, false, row);
            CHECK_INT(look.clean, true, row);
        }
    }
}

/* A series that is seen now and then is remembered whatever comes by; others are forgotten. */
TEST_WITH(marks, setup, teardown)
{
    struct series_marks *m = series_marks_new();
    assert_non_null(m);
    CHECK_INT(series_marks_get(m, 1), SERIES_UNKNOWN, "");
    series_marks_set(m, 1, SERIES_CLEAN);
    series_marks_set(m, 2, SERIES_CLEAN);
    series_marks_set(m, 2, SERIES_LABELLED);
    series_marks_set(m, 2, SERIES_CLEAN);
    series_marks_set(m, 3, SERIES_CLEAN);
    CHECK_INT(series_marks_get(m, 1 + (uint64_t)SERIES_MARKS), SERIES_CLEAN, "the same slot");
    for (uint64_t i = 0; i < SERIES_MARKS; i++) {
        series_marks_set(m, (uint64_t)10 + i * 7919 % (SERIES_MARKS - 20), SERIES_LABELLED);
        CHECK_INT(series_marks_get(m, 1), SERIES_CLEAN, "clean");
        CHECK_INT(series_marks_get(m, 2), SERIES_LABELLED, "labelled");
    }
    CHECK_INT(series_marks_get(m, 3), SERIES_UNKNOWN, "not seen for long");
    series_marks_free(m);
}
