/* Ownership of the parts of a profile. */
#include "tests/unit/testing.h"

#include <stdlib.h>

#include "model/profile.h"

static void owns_its_parts(void **state)
{
    (void)state;
    size_t strings;
    size_t bytes;
    struct intern *in = intern_new();
    struct labels *labels = testing_labels(in, "__name__", "memory", NULL);
    struct profile *p = profile_new(labels, strdup("12345"), 5);
    assert_non_null(p);
    CHECK_INT(p->size, 5, "");
    CHECK_STR(p->data, "12345", "");
    assert_ptr_equal(p->labels, labels);
    CHECK_INT(p->from_ns, 0, "");
    assert_false(p->is_delta);
    assert_true(profile_cost(p->size) > 5 + sizeof(*p));

    assert_ptr_equal(profile_ref(p), p);
    assert_null(profile_unref(p));
    CHECK_STR(labels_get(p->labels, SV("__name__")).p, "memory", "still there");
    profile_unref(p);
    intern_stats(in, &strings, &bytes);
    CHECK_INT(strings, 0, "the labels went with it");
    assert_null(profile_unref(NULL));
    intern_free(in);
}

static void may_be_empty(void **state)
{
    (void)state;
    struct profile *p = profile_new(NULL, NULL, 0);
    assert_non_null(p);
    assert_true(profile_cost(p->size) > 0);
    profile_unref(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owns_its_parts),
        cmocka_unit_test(may_be_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
