/* The states of an item of a send queue, and the table of their transitions. The sanitizer builds
 * of all other tests of the queue check that it uses these transitions only. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/lib/testing.h"

#include "write/queue/item.h"

static unsigned reachable_from(enum item_state first)
{
    unsigned found = ITEM_TO(first);
    unsigned before = 0;
    while (found != before) {
        before = found;
        for (unsigned s = 0; s < ITEM_STATES; s++) {
            found |= (found & ITEM_TO(s)) != 0 ? item_transitions[s] : 0;
        }
    }
    return found;
}

/* Every state can be reached, and every item can be finished. */
TEST(each_state_ends)
{
    CHECK_INT(reachable_from(ITEM_NEW), ITEM_TO(ITEM_STATES) - 1, "all states");
    for (unsigned s = 0; s < ITEM_STATES; s++) {
        unsigned to = reachable_from((enum item_state)s);
        assert_true((to & ITEM_TO(ITEM_FINISHED)) != 0);
        CHECK_INT(item_transitions[s] & ITEM_TO(s), 0, "no state leads to itself");
    }
    CHECK_INT(item_transitions[ITEM_FINISHED], 0, "");
}

/* A profile in flight comes back before anything else happens to it, also while its bytes are read.
 */
TEST(flights_land)
{
    const enum item_state in_flight[] = {ITEM_LOADING, ITEM_LOADED, ITEM_IN_FLIGHT};
    unsigned on = ITEM_TO(ITEM_LOADED) | ITEM_TO(ITEM_IN_FLIGHT) | ITEM_TO(ITEM_LANDED);
    for (size_t i = 0; i < sizeof(in_flight) / sizeof(in_flight[0]); i++) {
        CHECK_INT(item_transitions[in_flight[i]] & ~on, 0, "");
    }
}

static void change_state(void)
{
    struct send_item it = {.state = ITEM_QUEUED};
    item_become(&it, ITEM_LOADED);
}

static void lose_bytes(void)
{
    struct profile *p = profile_new(NULL, strdup("bytes"), 5);
    struct send_item it = {.bytes = ITEM_NOWHERE};
    item_add_bytes(&it, p);
    item_evict_bytes(&it);
}

/* The signal that ends a process which calls fn; 0: none does. */
static int signal_of(void (*fn)(void))
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)signal(SIGABRT, SIG_DFL);
        (void)close(STDERR_FILENO);
        fn();
        _exit(0);
    }
    CHECK_INT(waitpid(pid, &status, 0), pid, "");
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* Sanitizer builds abort at a transition that the table does not have, others go on. */
TEST(wrong_transitions)
{
#ifdef INSTRUMENTED
    int want = SIGABRT;
#else
    int want = 0;
#endif
    CHECK_INT(signal_of(change_state), want, "QUEUED to LOADED");
    CHECK_INT(signal_of(lose_bytes), want, "the only bytes are freed");
}

/* An item keeps count of memory and disk, and of the profile that it holds. */
TEST(bytes)
{
    struct send_item it = {.bytes = ITEM_NOWHERE};
    struct profile *p = profile_new(NULL, strdup("bytes"), 5);
    item_add_bytes(&it, profile_ref(p));
    CHECK_INT(it.bytes, ITEM_MEMORY, "");
    item_set_on_disk(&it, true);
    CHECK_INT(it.bytes, ITEM_BOTH, "");
    item_evict_bytes(&it);
    CHECK_INT(it.bytes, ITEM_DISK, "");
    assert_null(it.profile);
    item_add_bytes(&it, p);
    item_set_on_disk(&it, false);
    CHECK_INT(it.bytes, ITEM_MEMORY, "");
    profile_unref(it.profile);
}
