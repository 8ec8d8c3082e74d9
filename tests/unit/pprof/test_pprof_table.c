/* Tables of byte strings: entries are found again, in tables of any size, and after the last ones
 * were removed. */
#include "tests/unit/lib/testing.h"

#include <stdio.h>
#include <string.h>

#include "pprof/table.h"

#define ENTRIES 5000

/* Makes a key of any length from 0 to 39 bytes, which differs from all others. */
static size_t make_key(size_t i, char key[64])
{
    (void)snprintf(key, 64, "%zu-%038zu", i, i * 7);
    size_t n = strcspn(key, "-") + i % 35;
    return i == 0 ? 0 : n;
}

static uint32_t add(struct table *t, struct budget *b, size_t i)
{
    struct err err = ERR_INIT;
    char key[64];
    size_t n = make_key(i, key);
    uint32_t number = UINT32_MAX;
    bool ok = i % 2 == 0 ? merge_table_add(t, b, key, n, n, &number, &err)
                         : merge_table_add_hashed(t, b, key, n, n, merge_table_hash(t, key, n),
                                                  &number, &err);
    assert_true(ok);
    return number;
}

static void check_all(struct table *t, struct budget *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        CHECK_INT(add(t, b, i), i, "found again");
    }
    CHECK_INT(t->n, n, "none was added");
}

TEST(entries_are_numbered_and_found)
{
    struct budget b = {.max = 1 << 20};
    struct table t;
    merge_table_init(&t, 7);
    for (size_t i = 0; i < ENTRIES; i++) {
        CHECK_INT(add(&t, &b, i), i, "new");
    }
    check_all(&t, &b, ENTRIES);
    merge_table_done(&t);
}

/* Removed entries leave no gaps in the runs of slots, wherever they are in these. */
TEST(the_rest_is_found_after_a_truncation)
{
    struct budget b = {.max = 1 << 20};
    struct table t;
    merge_table_init(&t, 7);
    for (size_t keep = 0; keep < ENTRIES; keep += 97) {
        for (size_t i = keep; i < ENTRIES && i < keep + 1500; i++) {
            CHECK_INT(add(&t, &b, i), i, "new");
        }
        merge_table_truncate(&t, keep);
        check_all(&t, &b, keep);
        for (size_t i = keep; i < keep + 97; i++) {
            CHECK_INT(add(&t, &b, i), i, "new again");
        }
    }
    merge_table_done(&t);
}

/* Room that was reserved suffices for so many entries, and is not made beyond the budget. */
TEST(reserved_room)
{
    struct budget b = {.max = 1 << 20};
    struct table t;
    merge_table_init(&t, 7);
    merge_table_reserve(&t, &b, ENTRIES);
    const struct table_entry *entries = t.entries;
    const struct table_slot *slots = t.slots;
    size_t used = b.used;
    assert_true(used > ENTRIES * (sizeof(*entries) + sizeof(*slots)));
    for (size_t i = 0; i < ENTRIES; i++) {
        CHECK_INT(add(&t, &b, i), i, "new");
    }
    assert_ptr_equal(t.entries, entries);
    assert_ptr_equal(t.slots, slots);
    CHECK_INT(b.used, used + t.bytes_cap, "only for bytes");
    merge_table_reserve(&t, &b, 1 << 20);
    CHECK_INT(b.used, used + t.bytes_cap, "beyond the budget");
    check_all(&t, &b, ENTRIES);
    merge_table_done(&t);
}

static uint32_t put(struct table *t, struct budget *b, size_t i)
{
    struct err err = ERR_INIT;
    char key[64];
    size_t n = make_key(i, key);
    uint32_t number = UINT32_MAX;
    assert_true(merge_table_add(t, b, key, n, n, &number, &err));
    return number;
}

enum { SERIES = 7, EACH = 300 };

/* Adds the entries of a series, of which every third one is its own, and all series have the rest.
 * numbers: of the entries that exist. */
static void put_series(struct table *t, struct budget *b, size_t series, uint32_t *numbers)
{
    for (size_t i = 0; i < EACH; i++) {
        size_t key = i % 3 == 0 ? i * SERIES + series : i * SERIES;
        uint32_t expected = numbers[key] == UINT32_MAX ? (uint32_t)t->n : numbers[key];
        numbers[key] = put(t, b, key);
        CHECK_INT(numbers[key], expected, "number");
    }
}

/* The places at which a search begins may be those of entries that were removed. */
TEST(entries_of_series_by_turns_are_found)
{
    struct budget b = {.max = 1 << 20};
    struct table t;
    uint32_t numbers[EACH * SERIES];
    merge_table_init(&t, 7);
    memset(numbers, 0xff, sizeof(numbers));
    for (size_t round = 0; round < 4 * SERIES; round++) {
        size_t n = t.n;
        put_series(&t, &b, round % SERIES, numbers);
        n = round % 3 == 1 ? n : t.n;
        merge_table_truncate(&t, n);
        for (size_t key = 0; key < EACH * SERIES; key++) {
            numbers[key] = numbers[key] < n ? numbers[key] : UINT32_MAX;
        }
    }
    merge_table_done(&t);
}
