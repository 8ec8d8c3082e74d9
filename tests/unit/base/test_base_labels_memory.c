/* Label sets, their builder and the string table, with each allocation failing once. */
#include "tests/unit/lib/testing.h"

#include "base/intern.h"
#include "base/labels.h"
#include "tests/unit/lib/failing_malloc.h"

#define SETS ((size_t)16)
#define LABELS ((size_t)70) /* more than a builder starts with */

/* NULL only if an allocation has failed. */
static struct labels *build(struct labels_builder *b, const struct labels *base, size_t which)
{
    char name[32];
    labels_builder_reset(b, base);
    for (size_t i = 0; i < LABELS; i++) {
        (void)snprintf(name, sizeof(name), "name_%zu_%zu", which, i);
        labels_builder_set_str(b, name, "value");
    }
    struct labels *l = labels_builder_build(b);
    assert_true(l != NULL || failing_malloc_failed());
    return l;
}

static void use_labels(bool *ret_complete)
{
    struct labels *sets[SETS] = {NULL};
    size_t made = 0;
    size_t strings = 99;
    SCOPED(intern) *in = intern_new();
    struct labels_builder *b = in == NULL ? NULL : labels_builder_new(in);
    for (size_t i = 0; b != NULL && i < SETS; i++) {
        sets[i] = build(b, NULL, i);
        made += sets[i] != NULL;
        if (sets[i] != NULL) {
            CHECK_INT(labels_count(sets[i]), LABELS, "a set is whole or not at all");
        }
    }
    for (size_t i = 0; b != NULL && i < SETS; i++) {
        struct labels *more = build(b, sets[i], i + 1);
        made += more != NULL;
        labels_unref(more);
        labels_unref(sets[i]);
    }
    labels_builder_free(b);
    if (in != NULL) {
        size_t bytes;
        intern_stats(in, &strings, &bytes);
        CHECK_INT(strings, 0, "failures leak nothing");
    }
    *ret_complete = made == 2 * SETS;
}

TEST(labels_survive)
{
    /* More failures than the sets have strings. */
    assert_in_range(failing_malloc_each(FAIL_OURS, use_labels), SETS * LABELS, 10 * SETS * LABELS);
}
