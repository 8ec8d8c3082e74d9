/* The hash table, in particular against a plain array under random operations. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"

TEST(puts_gets_and_removes)
{
    int one = 1;
    int two = 2;
    void *old = &one;
    struct map *m = map_new();
    assert_null(map_get(m, SV("a")));
    assert_null(map_remove(m, SV("a")));
    assert_true(map_put(m, SV("a"), &one, &old));
    assert_null(old);
    CHECK_INT(map_count(m), 1, "");
    assert_ptr_equal(map_get(m, SV("a")), &one);
    assert_true(map_put(m, SV("a"), &two, &old));
    assert_ptr_equal(old, &one);
    CHECK_INT(map_count(m), 1, "");
    assert_ptr_equal(map_get(m, SV("a")), &two);
    assert_ptr_equal(map_remove(m, SV("a")), &two);
    assert_null(map_get(m, SV("a")));
    CHECK_INT(map_count(m), 0, "");
    map_free(m, NULL);
    assert_null(map_free(NULL, NULL));
}

TEST(keys_are_bytes)
{
    int values[4];
    struct map *m = map_new();
    char key[] = "key";
    assert_true(map_put(m, sv_from(key), &values[0], NULL));
    key[0] = 'X'; /* the table has its copy */
    assert_true(map_put(m, SV(""), &values[1], NULL));
    assert_true(map_put(m, SV("key\0"), &values[2], NULL));
    assert_true(map_put(m, SV("\0"), &values[3], NULL));
    assert_ptr_equal(map_get(m, SV("key")), &values[0]);
    assert_ptr_equal(map_get(m, (struct sv){.p = NULL, .n = 0}), &values[1]);
    assert_ptr_equal(map_get(m, SV("key\0")), &values[2]);
    assert_ptr_equal(map_get(m, SV("\0")), &values[3]);
    CHECK_INT(map_count(m), 4, "");
    map_free(m, NULL);
}

TEST(frees_values)
{
    struct map *m = map_new();
    for (int i = 0; i < 100; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "%d", i);
        assert_true(map_put(m, sv_from(key), malloc(1), NULL)); /* the leak checker counts */
    }
    free(map_remove(m, SV("50")));
    map_free(m, free);
}

TEST(walks_and_removes_on_the_way)
{
    enum { N = 1000 };
    bool seen[N] = {false};
    size_t numbers[N];
    struct map *m = map_new();
    for (size_t i = 0; i < N; i++) {
        char key[16];
        numbers[i] = i;
        (void)snprintf(key, sizeof(key), "%zu", i);
        assert_true(map_put(m, sv_from(key), &numbers[i], NULL));
    }
    size_t cursor = 0;
    struct sv key;
    void *value;
    while (map_next(m, &cursor, &key, &value)) {
        size_t i = *(size_t *)value;
        assert_false(seen[i]);
        seen[i] = true;
        CHECK_INT(strlen(key.p), key.n, "keys end with a NUL");
        if (i % 3 != 0) {
            map_remove_at(m, cursor);
        }
    }
    assert_false(map_next(m, &cursor, &key, &value));
    size_t left = 0;
    for (cursor = 0; map_next(m, &cursor, NULL, &value); left++) {
        CHECK_INT(*(size_t *)value % 3, 0, "");
    }
    CHECK_INT(left, (N + 2) / 3, "");
    CHECK_INT(map_count(m), left, "");
    for (size_t i = 0; i < N; i++) {
        char text[16];
        (void)snprintf(text, sizeof(text), "%zu", i);
        assert_true(seen[i]);
        assert_ptr_equal(map_get(m, sv_from(text)), i % 3 == 0 ? &numbers[i] : NULL);
    }
    map_free(m, NULL);
    m = map_new();
    cursor = 0;
    assert_false(map_next(m, &cursor, NULL, NULL));
    map_free(m, NULL);
}

TEST(agrees_with_a_model)
{
    enum { KEYS = 300, ROUNDS = 200000 };
    int values[KEYS];
    void *model[KEYS] = {NULL};
    size_t count = 0;
    struct map *m = map_new();
    struct rng rng;
    rng_seed(&rng, 5);
    for (int round = 0; round < ROUNDS; round++) {
        /* Mostly growing and mostly shrinking in turns, so that all sizes occur. */
        bool growing = round / 10000 % 2 == 0;
        size_t k = (size_t)rng_range(&rng, 0, KEYS);
        char key[16];
        (void)snprintf(key, sizeof(key), "key-%zu", k);
        if (rng_range(&rng, 0, 10) < (growing ? 7 : 3)) {
            void *old = &old;
            void *value = &values[rng_range(&rng, 0, KEYS)];
            assert_true(map_put(m, sv_from(key), value, &old));
            assert_ptr_equal(old, model[k]);
            count += model[k] == NULL;
            model[k] = value;
        } else {
            assert_ptr_equal(map_remove(m, sv_from(key)), model[k]);
            count -= model[k] != NULL;
            model[k] = NULL;
        }
        assert_ptr_equal(map_get(m, sv_from(key)), model[k]);
        CHECK_INT(map_count(m), count, "");
    }
    size_t cursor = 0;
    size_t walked = 0;
    while (map_next(m, &cursor, NULL, NULL)) {
        walked++;
    }
    CHECK_INT(walked, count, "");
    map_free(m, NULL);
}
