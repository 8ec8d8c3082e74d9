#include "write/queue/item.h"

#include <assert.h>

/* True in the builds that assert the transitions; see item.h. */
#ifdef INSTRUMENTED
#define CHECKS_STATES true
#else
#define CHECKS_STATES false
#endif

void item_become(struct send_item *it, enum item_state state)
{
    assert(!CHECKS_STATES || (item_transitions[it->state] & ITEM_TO(state)) != 0);
    it->state = state;
}

/* Returns true if the bytes of an item may be there. Memory and disk change one at a time, and the
 * last copy of the bytes is never given up: an item whose profile cannot be kept is finished
 * instead. */
static bool may_have(const struct send_item *it, unsigned bytes)
{
    unsigned changed = it->bytes ^ bytes;
    bool one = changed == 0 || changed == ITEM_MEMORY || changed == ITEM_DISK;
    bool lost = it->bytes == ITEM_MEMORY && bytes == ITEM_NOWHERE;
    return one && !lost && ((bytes & ITEM_MEMORY) != 0) == (it->profile != NULL);
}

static void set_bytes(struct send_item *it, unsigned bytes)
{
    assert(!CHECKS_STATES || may_have(it, bytes));
    it->bytes = (enum item_bytes)bytes;
}

void item_add_bytes(struct send_item *it, struct profile *p)
{
    it->profile = p;
    set_bytes(it, it->bytes | ITEM_MEMORY);
}

void item_evict_bytes(struct send_item *it)
{
    it->profile = profile_unref(it->profile);
    set_bytes(it, it->bytes & ~(unsigned)ITEM_MEMORY);
}

void item_set_on_disk(struct send_item *it, bool on_disk)
{
    set_bytes(it, on_disk ? it->bytes | ITEM_DISK : it->bytes & ~(unsigned)ITEM_DISK);
}

void item_acknowledge(struct send_item *it)
{
    if (it->receipt != NULL) {
        receipt_end(it->receipt, true);
        it->receipt = NULL;
    }
}
