/* Ownership of the parts of a profile. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "model/profile.h"

SCOPED_POINTER(profile, profile_unref)

TEST(owns_its_parts)
{
    size_t strings;
    size_t bytes;
    SCOPED(intern) *in = intern_new();
    struct labels *labels = testing_labels(in, "__name__", "memory", NULL);
    struct profile *p = profile_new(labels, strdup("12345"), 5);
    assert_non_null(p);
    CHECK_INT(p->size, 5, "");
    CHECK_STR(p->data, "12345", "");
    assert_ptr_equal(p->labels, labels);
    CHECK_INT(p->from_ns, 0, "");
    assert_false(p->is_delta);
    assert_true(profile_cost(p) > 5 + sizeof(*p));

    assert_ptr_equal(profile_ref(p), p);
    assert_null(profile_unref(p));
    CHECK_STR(labels_get(p->labels, SV("__name__")).p, "memory", "still there");
    profile_unref(p);
    intern_stats(in, &strings, &bytes);
    CHECK_INT(strings, 0, "the labels went with it");
    assert_null(profile_unref(NULL));
}

TEST(may_be_empty)
{
    SCOPED(profile) *p = profile_new(NULL, NULL, 0);
    assert_non_null(p);
    assert_true(profile_cost(p) > 0);
}

/* A queue that is full of profiles with long labels must not hold many times its limit. */
TEST(long_labels_count)
{
    static char text[180 * 1024];
    memset(text, 'x', sizeof(text) - 1);
    SCOPED(intern) *in = intern_new();
    struct labels *few = testing_labels(in, "__name__", "memory", "pod", "a", NULL);
    struct labels *many = testing_labels(in, "__name__", "memory", "pod", text, NULL);
    SCOPED(profile) *p = profile_new(few, calloc(1, 100), 100);
    size_t usual = profile_cost(p);
    CHECK_INT(usual, profile_cost_of(100, 0), "ordinary labels are in the constant");
    profile_set_labels(p, many);
    assert_true(profile_cost(p) > sizeof(text));
    CHECK_INT(profile_cost(p), profile_cost_of(100, labels_bytes(many)), "on disk");
}
