/* Ownership over time, with simulated time. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "agent/sharing/members.h"
#include "agent/sharing/rendezvous.h"
#include "base/clock.h"

SCOPED_POINTER(members, members_free)

#define HANDOVER 10000
#define ISOLATION 600000
#define NOBODY MEMBERS_NONE

static const struct members_options options = {.handover_ms = HANDOVER, .isolation_ms = ISOLATION};

/* "a b c" */
static enum members_result set(struct members *m, const char *text, const char *self, int64_t now)
{
    struct sv names[16];
    size_t n = 0;
    size_t index = NOBODY;
    struct sv rest = sv_from(text);
    while (rest.n > 0 && n < 16) {
        struct sv tail = {.p = "", .n = 0};
        names[n] = rest;
        sv_cut(rest, ' ', &names[n], &tail);
        index = sv_eq_str(names[n], self) ? n : index;
        rest = tail;
        n++;
    }
    enum members_result result = members_set(m, names, n, index, now);
    members_tick(m, now);
    return result;
}

static uint64_t key_of(unsigned i)
{
    char key[32];
    snprintf(key, sizeof(key), "10.0.%u.%u", i / 200, i % 200);
    return rendezvous_hash(sv_from(key));
}

/* A key of one member that goes to the other without it. */
static uint64_t key_from(struct members *m, const char *owner)
{
    for (unsigned i = 0;; i++) {
        if (strcmp(members_owner(m, key_of(i)), owner) == 0) {
            return key_of(i);
        }
    }
}

static size_t owned(const struct members *m, unsigned of)
{
    size_t n = 0;
    for (unsigned i = 0; i < of; i++) {
        n += members_owns(m, key_of(i)) ? 1 : 0;
    }
    return n;
}

/* We own nothing until the members are known, we are one of them, and the handover time is over. */
TEST(start)
{
    SCOPED(members) *m = members_new(&options);
    members_tick(m, 0);
    CHECK_INT(members_state(m), MEMBERS_UNKNOWN, "");
    CHECK_INT(members_next_at(m), INT64_MAX, "no time-out makes up for not knowing");
    CHECK_INT(owned(m, 100), 0, "");
    CHECK_INT(members_owner(m, key_of(0)) == NULL, true, "");
    CHECK_INT(set(m, "", "a", 1000), MEMBERS_CHANGED, "nobody is ready yet");
    CHECK_INT(members_state(m), MEMBERS_OUTSIDE, "");
    set(m, "b", "a", 2000);
    CHECK_INT(owned(m, 100), 0, "the others have all");
    CHECK_INT(members_next_at(m), INT64_MAX, "");
    set(m, "a b", "a", 3000);
    CHECK_INT(members_state(m), MEMBERS_WAITING, "");
    CHECK_INT(members_next_at(m), 3000 + HANDOVER, "");
    CHECK_INT(members_tick(m, 3000 + HANDOVER - 1), false, "");
    CHECK_INT(owned(m, 100), 0, "");
    CHECK_INT(members_tick(m, 3000 + HANDOVER), true, "");
    CHECK_INT(members_state(m), MEMBERS_ACTIVE, "");
    size_t n = owned(m, 100);
    CHECK_INT(n > 30 && n < 70, true, "half of them");
    CHECK_INT(members_next_at(m), INT64_MAX, "");
    CHECK_INT(set(m, "a b", "a", 99999), MEMBERS_SAME, "");
    CHECK_INT(members_index(m), 0, "");
    CHECK_INT(members_count(m), 2, "");
    CHECK_STR(members_name(m, 1), "b", "");
}

/* A key that another member gets is lost at once; the keys of one that left come after the delay.
 */
TEST(gain_and_loss)
{
    SCOPED(members) *m = members_new(&options);
    set(m, "a", "a", 0);
    members_tick(m, HANDOVER);
    CHECK_INT(owned(m, 100), 100, "alone");
    int64_t now = 50000;
    set(m, "a b", "a", now);
    size_t left = owned(m, 100);
    CHECK_INT(left < 70, true, "lost at once");
    uint64_t key = key_from(m, "b");
    set(m, "a", "a", now + 1000);
    CHECK_INT(members_owns(m, key), false, "not yet");
    CHECK_STR(members_owner(m, key), "a", "though it will be ours");
    CHECK_INT(owned(m, 100), left, "nothing else moves");
    CHECK_INT(members_next_at(m), now + 1000 + HANDOVER, "");
    CHECK_INT(members_tick(m, now + 1000 + HANDOVER - 1), false, "");
    CHECK_INT(members_tick(m, now + 1000 + HANDOVER), true, "");
    CHECK_INT(members_owns(m, key), true, "");
    CHECK_INT(owned(m, 100), 100, "");
}

/* Keys are assigned to us if we own them or are about to, or would own them as a member. */
TEST(assigned)
{
    SCOPED(members) *m = members_new(&options);
    CHECK_INT(members_is_assigned(m, "a", 1), false, "nobody is known");
    set(m, "a b", "a", 0);
    for (unsigned i = 0; i < 100; i++) {
        uint64_t key = key_of(i);
        CHECK_INT(members_owns(m, key), false, "waiting");
        CHECK_INT(members_is_assigned(m, "a", key), strcmp(members_owner(m, key), "a") == 0, "a");
        CHECK_INT(members_is_assigned(m, "a", key), !members_is_assigned(m, "b", key),
                  "one of them");
    }
    size_t outside = 0;
    bool mine[100];
    for (unsigned i = 0; i < 100; i++) {
        mine[i] = members_is_assigned(m, "c", key_of(i));
        outside += mine[i] ? 1 : 0;
    }
    CHECK_INT(outside > 15 && outside < 55, true, "about a third");
    set(m, "a b c", "c", 1000);
    for (unsigned i = 0; i < 100; i++) {
        CHECK_INT(members_is_assigned(m, "c", key_of(i)), mine[i], "inside as outside");
    }
    set(m, "a", "a", 2000);
    members_tick(m, 2000 + HANDOVER - 1);
    CHECK_INT(members_owns(m, key_of(0)), false, "others may still have it");
    CHECK_INT(members_is_assigned(m, "a", key_of(0)), true, "but it is known to come");
}

/* A member that returns in time has never been away; later it is new. */
TEST(comes_back)
{
    SCOPED(members) *m = members_new(&options);
    set(m, "a b c", "a", 0);
    members_tick(m, HANDOVER);
    size_t before = owned(m, 100);
    set(m, "a b", "a", 20000);
    set(m, "a b c", "a", 20000 + HANDOVER - 1);
    members_tick(m, 20000 + HANDOVER);
    CHECK_INT(owned(m, 100), before, "its keys have not moved");
    CHECK_INT(members_next_at(m), INT64_MAX, "");
    set(m, "a b", "a", 60000);
    set(m, "a", "a", 65000);
    members_tick(m, 60000 + HANDOVER);
    size_t third = owned(m, 100);
    CHECK_INT(third > before && third < 100, true, "of two who have gone the first one's");
    CHECK_INT(members_next_at(m), 65000 + HANDOVER, "");
    members_tick(m, 65000 + HANDOVER);
    CHECK_INT(owned(m, 100), 100, "");
}

/* A replica that is no longer a member stops at once, and waits when it is one again. */
TEST(removed)
{
    SCOPED(members) *m = members_new(&options);
    set(m, "a b", "a", 0);
    members_tick(m, HANDOVER);
    CHECK_INT(owned(m, 100) > 0, true, "");
    set(m, "b", "a", 30000);
    CHECK_INT(members_state(m), MEMBERS_OUTSIDE, "");
    CHECK_INT(owned(m, 100), 0, "");
    members_tick(m, 300000);
    CHECK_INT(owned(m, 100), 0, "");
    set(m, "a b", "a", 300000);
    CHECK_INT(owned(m, 100), 0, "");
    members_tick(m, 300000 + HANDOVER);
    CHECK_INT(owned(m, 100) > 0, true, "");
}

/* When no member is left, the last ones stay. */
TEST(nobody)
{
    SCOPED(members) *m = members_new(&options);
    set(m, "a b", "a", 0);
    members_tick(m, HANDOVER);
    size_t before = owned(m, 100);
    CHECK_INT(set(m, "", "a", 30000), MEMBERS_SAME, "");
    members_tick(m, 90000);
    CHECK_INT(owned(m, 100), before, "");
    CHECK_INT(members_count(m), 2, "");
}

/* Without the API server the last members stay, for a limited time. */
TEST(isolation)
{
    SCOPED(members) *m = members_new(&options);
    members_reachable(m, false, 0);
    members_tick(m, 2 * ISOLATION);
    CHECK_INT(members_next_at(m), INT64_MAX, "who knows nothing has nothing to lose");
    members_reachable(m, true, 2 * ISOLATION);
    int64_t now = 2 * ISOLATION;
    set(m, "a b", "a", now);
    now += HANDOVER;
    members_tick(m, now);
    size_t before = owned(m, 100);
    CHECK_INT(before > 0, true, "");
    members_reachable(m, false, now);
    members_reachable(m, false, now + 60000);
    CHECK_INT(members_tick(m, now + 60000), false, "");
    CHECK_INT(members_next_at(m), now + ISOLATION, "from the first failure on");
    CHECK_INT(members_tick(m, now + ISOLATION - 1), false, "");
    CHECK_INT(owned(m, 100), before, "");
    CHECK_INT(members_tick(m, now + ISOLATION), true, "");
    CHECK_INT(members_state(m), MEMBERS_ISOLATED, "");
    CHECK_INT(owned(m, 100), 0, "");
    CHECK_INT(members_next_at(m), INT64_MAX, "");
    now += 3 * ISOLATION;
    members_reachable(m, true, now);
    members_tick(m, now);
    CHECK_INT(members_state(m), MEMBERS_WAITING, "others may have taken over");
    members_tick(m, now + HANDOVER);
    CHECK_INT(owned(m, 100), before, "");
    /* Short outages do not accumulate. */
    members_reachable(m, false, now + ISOLATION);
    members_reachable(m, true, now + ISOLATION + 1000);
    members_reachable(m, false, now + 2 * ISOLATION - 1);
    CHECK_INT(members_tick(m, now + 2 * ISOLATION + 1000), false, "");
    CHECK_INT(owned(m, 100), before, "");
}

/* Fixed shares: active at once, forever. */
TEST(fixed)
{
    struct members *m[3];
    static const char *const names[] = {"replica-0", "replica-1", "replica-2"};
    for (int i = 0; i < 3; i++) {
        m[i] = members_new(&(struct members_options){0});
        set(m[i], "replica-0 replica-1 replica-2", names[i], 0);
        CHECK_INT(members_state(m[i]), MEMBERS_ACTIVE, "");
        CHECK_INT(members_next_at(m[i]), INT64_MAX, "");
    }
    for (unsigned k = 0; k < 300; k++) {
        CHECK_INT((int)members_owns(m[0], key_of(k)) + (int)members_owns(m[1], key_of(k)) +
                      (int)members_owns(m[2], key_of(k)),
                  1, "each key has one owner");
    }
    for (int i = 0; i < 3; i++) {
        members_free(m[i]);
    }
}

/* ---- several replicas, each with its own delay ----------------------------------------------- */

#define REPLICAS 5
#define KEYS 60
#define STEP_MS 250
#define DELAY_MAX 9500
#define LOG_MAX 4096

struct world {
    unsigned history[LOG_MAX]; /* the members, as bits, after each change */
    int64_t at_ms[LOG_MAX];
    size_t n;
    struct members *m[REPLICAS];
    bool alive[REPLICAS];
    size_t seen[REPLICAS]; /* changes that it knows of */
};

static void change(struct world *w, unsigned members, int64_t now)
{
    w->history[w->n] = members;
    w->at_ms[w->n++] = now;
}

static void inform(struct world *w, unsigned i, unsigned members, int64_t now)
{
    static const char *const names[REPLICAS] = {"p-0", "p-1", "p-2", "p-3", "p-4"};
    struct sv list[REPLICAS];
    size_t n = 0;
    size_t self = NOBODY;
    for (unsigned k = 0; k < REPLICAS; k++) {
        if ((members >> k & 1) != 0) {
            self = k == i ? n : self;
            list[n++] = sv_from(names[k]);
        }
    }
    members_set(w->m[i], list, n, self, now);
}

/* Every replica learns of every change in order, with a varying delay. */
static void deliver(struct world *w, struct rng *rng, int64_t now)
{
    for (unsigned i = 0; i < REPLICAS; i++) {
        while (w->alive[i] && w->seen[i] < w->n) {
            int64_t age = now - w->at_ms[w->seen[i]];
            if (age < DELAY_MAX && rng_range(rng, 0, 8) != 0) {
                break;
            }
            inform(w, i, w->history[w->seen[i]++], now);
        }
        members_tick(w->m[i], now);
    }
}

/* A replica is killed, is removed, or a new one joins. */
static void disturb(struct world *w, struct rng *rng, int64_t now)
{
    unsigned i = (unsigned)rng_range(rng, 0, REPLICAS);
    unsigned members = w->history[w->n - 1];
    if (w->alive[i] && rng_range(rng, 0, 2) == 0) {
        w->alive[i] = false; /* killed: its state is lost */
        w->m[i] = members_free(w->m[i]);
        w->m[i] = members_new(&options);
        change(w, members & ~(1U << i), now);
    } else if (w->alive[i]) {
        change(w, members ^ (1U << i), now); /* its probe fails, or succeeds again */
    } else {
        w->alive[i] = true;
        w->seen[i] = w->n;
        inform(w, i, members, now);
        change(w, members | 1U << i, now);
    }
}

static void check_owners(struct world *w)
{
    for (unsigned k = 0; k < KEYS; k++) {
        int n = 0;
        for (unsigned i = 0; i < REPLICAS; i++) {
            n += w->alive[i] && members_owns(w->m[i], key_of(k)) ? 1 : 0;
        }
        CHECK_INT(n <= 1, true, "two own one key");
    }
}

/* Whatever happens, and however late each replica learns of it (within the delay): no key ever has
 * two owners, and once it is quiet each soon has one. */
TEST(never_two)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        SCOPED_MEMORY struct world *w = calloc(1, sizeof(*w));
        struct rng rng;
        rng_seed(&rng, seed);
        int64_t now = 0;
        change(w, 0x1f, 0);
        for (unsigned i = 0; i < REPLICAS; i++) {
            w->m[i] = members_new(&options);
            w->alive[i] = true;
        }
        for (int round = 0; round < 40; round++) {
            disturb(w, &rng, now);
            int64_t until = now + rng_range(&rng, 0, 30000);
            for (; now < until; now += STEP_MS) {
                deliver(w, &rng, now);
                check_owners(w);
            }
        }
        change(w, 1, now);
        for (unsigned i = 0; i < REPLICAS; i++) {
            w->alive[i] = i == 0;
        }
        for (int64_t end = now + 2 * HANDOVER + DELAY_MAX; now <= end; now += STEP_MS) {
            deliver(w, &rng, now);
            check_owners(w);
        }
        for (unsigned k = 0; k < KEYS; k++) {
            CHECK_INT(members_owns(w->m[0], key_of(k)), true, "the last one has all");
        }
        for (unsigned i = 0; i < REPLICAS; i++) {
            members_free(w->m[i]);
        }
    }
}
