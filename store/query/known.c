#include "store/query/known.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS_FIRST 64

void known_done(struct known *k)
{
    free(k->keys);
    free(k->leaves);
    *k = (struct known){.n = 0};
}

bool known_grow(struct known *k, struct budget *b, struct err *err)
{
    if (k->n + 1 <= k->n_slots / 3 * 2) {
        return true;
    }
    struct known grown = {.n_slots = k->n_slots == 0 ? SLOTS_FIRST : 2 * k->n_slots};
    size_t keys_cap = 0;
    size_t leaves_cap = 0;
    grown.keys = budget_grow(b, NULL, &keys_cap, grown.n_slots, sizeof(*grown.keys), err);
    if (grown.keys == NULL) {
        return false;
    }
    grown.leaves = budget_grow(b, NULL, &leaves_cap, grown.n_slots, sizeof(*grown.leaves), err);
    if (grown.leaves == NULL) {
        b->used -= keys_cap * sizeof(*grown.keys);
        free(grown.keys);
        return false;
    }
    memset(grown.leaves, 0, grown.n_slots * sizeof(*grown.leaves));
    for (size_t i = 0; i < k->n_slots; i++) {
        if (k->leaves[i] != 0) {
            known_add(&grown, known_slot(&grown, &k->keys[i]), &k->keys[i], k->leaves[i] - 1);
        }
    }
    b->used -= k->n_slots * (sizeof(*k->keys) + sizeof(*k->leaves));
    known_done(k);
    *k = grown;
    return true;
}
