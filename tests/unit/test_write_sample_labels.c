/* When an endpoint looks at the labels within samples, and when it lets a profile go as it is. */
#include "tests/unit/testing.h"

#include "tests/unit/pprof_writer.h"
#include "tests/unit/requests.h"
#include "write/sample_labels.h"

static struct profile *profile_with_label(const char *label, bool no_sample_texts)
{
    const struct pprof_spec spec = {.types = "cpu/nanoseconds"};
    const struct pprof_row row = {"f", label, {7}};
    struct buf plain = pprof_make(&spec, &row, 1);
    size_t size;
    char *data = buf_take(&plain, &size);
    struct profile *p = profile_new(labels_of(NULL, 0), data, size);
    assert_non_null(p);
    p->no_sample_texts = no_sample_texts;
    return p;
}

/* A profile that is known to have no texts is not looked at, unless numbers may have to go too. The
 * label of the first is a text all the same, which shows that nobody looks. */
static void who_looks(void **state)
{
    (void)state;
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
    struct metrics *m = metrics_new();
    struct sample_labels *labels = sample_labels_new(m, "main");
    assert_non_null(labels);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char row[32];
        snprintf(row, sizeof(row), "case %zu", i);
        struct config_endpoint e = {.protocol = &protocol_push.config,
                                    .sample_repair = cases[i].repair,
                                    .label_limits = default_limits};
        e.sample_drop = (struct config_strings){.at = drop, .n = cases[i].drops};
        struct profile *p = profile_with_label(cases[i].label, cases[i].no_sample_texts);
        struct sample_labels_look look;
        struct profile *out = sample_labels_apply(labels, &e, p, true, &look);
        CHECK_INT(out != p, cases[i].changes, row);
        profile_unref(out);
        profile_unref(p);
    }
    sample_labels_free(labels);
    metrics_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(who_looks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
