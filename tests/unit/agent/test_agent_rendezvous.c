/* Rendezvous hashing: stable results, even shares, and no needless moves. */
#include "tests/unit/lib/testing.h"

#include "agent/sharing/rendezvous.h"

#define MEMBERS 12

static uint64_t member_hash(unsigned i)
{
    char name[32];
    snprintf(name, sizeof(name), "profpull-%u", i);
    return rendezvous_hash(sv_from(name));
}

/* Addresses of pods as networks assign them: a /24 for each node, nearly in order. */
static uint64_t key_hash(unsigned i)
{
    char key[32];
    snprintf(key, sizeof(key), "10.%u.%u.%u", i / 25000 % 250, i / 100 % 250, i % 100 + 2);
    return rendezvous_hash(sv_from(key));
}

/* Which of the members with a bit in `present` owns a key. */
static unsigned owner(uint64_t key, unsigned present)
{
    unsigned best = MEMBERS;
    uint64_t best_weight = 0;
    for (unsigned i = 0; i < MEMBERS; i++) {
        uint64_t weight = rendezvous_weight(member_hash(i), key);
        if ((present >> i & 1) != 0 && (best == MEMBERS || weight > best_weight)) {
            best = i;
            best_weight = weight;
        }
    }
    return best;
}

/* Other versions of the program must agree: these values must never change. */
TEST(golden)
{
    static const struct {
        const char *text;
        uint64_t hash;
    } hashes[] = {
        {"", UINT64_C(0xf52a15e9a9b5e89b)},
        {"profpull-0", UINT64_C(0x019b73fb4ab644e7)},
        {"profpull-1", UINT64_C(0x964614435dd9682a)},
        {"10.0.0.1", UINT64_C(0x7fb1b600f0f5c6d3)},
        {"10.1.2.3:6060", UINT64_C(0x238e2b92a35dfeb8)},
        {"2001:db8::1", UINT64_C(0x63782f16c6a86a00)},
    };
    for (size_t i = 0; i < sizeof(hashes) / sizeof(hashes[0]); i++) {
        char got[32];
        char want[32];
        snprintf(got, sizeof(got), "%016llx",
                 (unsigned long long)rendezvous_hash(sv_from(hashes[i].text)));
        snprintf(want, sizeof(want), "%016llx", (unsigned long long)hashes[i].hash);
        CHECK_STR(got, want, hashes[i].text);
    }
    static const char *const keys[] = {"10.0.0.1", "10.0.0.2",      "10.0.0.3",  "10.0.0.4",
                                       "10.0.0.5", "10.1.2.3:6060", "host:6060", "2001:db8::1"};
    char owners[sizeof(keys) / sizeof(keys[0]) + 1] = "";
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        owners[i] = (char)('0' + owner(rendezvous_hash(sv_from(keys[i])), 7));
    }
    CHECK_STR(owners, "22100211", "owners of keys among three");
    char weight[32];
    snprintf(weight, sizeof(weight), "%016llx",
             (unsigned long long)rendezvous_weight(member_hash(0), key_hash(0)));
    CHECK_STR(weight, "040c5eab0cd40b93", "weight");
}

/* 1,000 keys for each member: within 10 % of even, whichever members there are. */
TEST(balance)
{
    for (unsigned n = 2; n <= MEMBERS; n++) {
        unsigned counts[MEMBERS + 1] = {0};
        for (unsigned i = 0; i < n * 1000; i++) {
            counts[owner(key_hash(i), (1U << n) - 1)]++;
        }
        for (unsigned i = 0; i < n; i++) {
            char row[64];
            snprintf(row, sizeof(row), "member %u of %u has %u", i, n, counts[i]);
            CHECK_INT(counts[i] >= 900 && counts[i] <= 1100, true, row);
        }
    }
}

/* Without a member only its keys move, evenly to the others; with a new member keys move only to
 * it. */
TEST(movement)
{
    const unsigned all = 0x1f; /* five */
    for (unsigned gone = 0; gone < 5; gone++) {
        unsigned to[MEMBERS + 1] = {0};
        unsigned moved = 0;
        for (unsigned i = 0; i < 10000; i++) {
            unsigned before = owner(key_hash(i), all);
            unsigned after = owner(key_hash(i), all & ~(1U << gone));
            if (before != gone) {
                CHECK_INT(after, before, "a key of one who stays");
                continue;
            }
            moved++;
            to[after]++;
        }
        CHECK_INT(moved > 1800 && moved < 2200, true, "a fifth");
        for (unsigned i = 0; i < 5; i++) {
            CHECK_INT(i == gone ? to[i] == 0 : to[i] > 400 && to[i] < 600, true, "evenly");
        }
    }
}

TEST(keys)
{
    static const struct {
        const char *process, *pinned;
        bool foreign;
        const char *want;
    } cases[] = {
        {"10.1.2.3:6060", "10.1.2.3", false, "10.1.2.3"},
        {"10.1.2.3:7070", "10.1.2.3", false, "10.1.2.3"}, /* both ports of a pod belong together */
        {"10.1.2.3:6060", NULL, false, "10.1.2.3:6060"},
        {"10.1.2.3:7070", NULL, false, "10.1.2.3:7070"},
        {"[2001:db8::1]:6060", "2001:db8::1", false, "2001:db8::1"},
        {"[2001:db8::1]:6060", "2001:0db8::1", false, "2001:db8::1"}, /* one spelling for all */
        {"gateway:80", "10.1.2.3", true, "gateway:80"},               /* two pods, one process */
        {"10.1.2.3:6060", "10.1.2.3", true, "10.1.2.3"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sv key =
            rendezvous_key(sv_from(cases[i].process), cases[i].pinned, cases[i].foreign);
        char text[64];
        snprintf(text, sizeof(text), "%.*s", SV_ARG(key));
        CHECK_STR(text, cases[i].want, cases[i].process);
    }
}
