/* The heap of queued profiles, against a plain list. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "base/clock.h"
#include "write/queue/heap.h"

#define N 300

static struct heap_node *least(struct heap_node *nodes, const bool *in)
{
    struct heap_node *found = NULL;
    for (size_t i = 0; i < N; i++) {
        if (in[i] && (found == NULL || nodes[i].key < found->key)) {
            found = &nodes[i];
        }
    }
    return found;
}

TEST(test_random_walk)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct heap h = {.first = NULL};
        struct heap_node nodes[N];
        bool in[N] = {false};
        struct rng rng;
        rng_seed(&rng, seed);
        for (int step = 0; step < 5000; step++) {
            size_t i = (size_t)rng_range(&rng, 0, N);
            if (in[i]) {
                heap_remove(&h, &nodes[i]);
            } else {
                /* Distinct keys, so that the first one is certain. */
                nodes[i] = (struct heap_node){.key = (rng_next(&rng) << 10) + i};
                heap_add(&h, &nodes[i]);
            }
            in[i] = !in[i];
            assert_ptr_equal(h.first, least(nodes, in));
        }
        uint64_t last = 0;
        while (h.first != NULL) {
            assert_true(h.first->key >= last);
            last = h.first->key;
            heap_remove(&h, h.first);
        }
    }
}

/* Many, as they come and go in a queue: each removal visits few of the others on average. */
TEST(test_many_in_order)
{
    size_t n = 200000;
    struct heap h = {.first = NULL};
    SCOPED_MEMORY struct heap_node *nodes = testing_memory(n * sizeof(*nodes));
    for (size_t i = 0; i < n; i++) {
        nodes[i].key = i;
        heap_add(&h, &nodes[i]);
    }
    for (size_t i = 0; i < n; i++) {
        assert_ptr_equal(h.first, &nodes[i]);
        heap_remove(&h, h.first);
    }
    assert_null(h.first);
}
