/* Passwords against bcrypt hashes: right, wrong, known, too many. The hashes have the least cost.
 */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "server/passwords.h"

/* The hash of "geheim". */
#define HASH "$2b$04$abcdefghijklmnopqrstuuPWRtT5yx7FBi4dcf6ROhboeNunUrLQ."

struct rig {
    struct loop *loop;
    struct passwords *passwords;
    unsigned n_answers;
    unsigned n_right;
};

static void rig_begin(struct rig *rig)
{
    rig->loop = loop_new(NULL);
    rig->passwords = passwords_new(rig->loop, NULL);
    assert_non_null(rig->passwords);
}

static void rig_end(struct rig *rig)
{
    passwords_stop(rig->passwords);
    loop_free(rig->loop);
    passwords_free(rig->passwords);
}

FIXTURE(rig, rig_begin, rig_end)

static void on_answer(void *arg, bool right)
{
    struct rig *rig = arg;
    rig->n_answers++;
    rig->n_right += right;
}

static bool check(struct rig *rig, const char *hash, struct sv password)
{
    unsigned before = rig->n_right;
    unsigned n = rig->n_answers + 1;
    assert_true(passwords_check(rig->passwords, hash, password, on_answer, rig));
    while (rig->n_answers < n) {
        loop_run_once(rig->loop);
    }
    return rig->n_right > before;
}

TEST_ON(struct rig *rig, right_and_wrong_ones)
{
    SCOPED_MEMORY char *large = calloc(1, PASSWORD_MAX + 2);
    memset(large, 'a', PASSWORD_MAX + 1);
    assert_true(check(rig, HASH, SV("geheim")));
    assert_false(check(rig, HASH, SV("geheim2")));
    assert_false(check(rig, HASH, SV("")));
    assert_false(check(rig, HASH, SV("geheim\0x"))); /* not what C makes of it */
    assert_false(check(rig, HASH, sv_from(large)));
    assert_false(check(rig, NULL, SV("geheim")));
    assert_false(check(rig, "*0", SV("geheim")));
}

TEST_ON(struct rig *rig, right_ones_are_remembered)
{
    assert_false(passwords_know(rig->passwords, HASH, SV("geheim")));
    (void)check(rig, HASH, SV("geheim2"));
    assert_false(passwords_know(rig->passwords, HASH, SV("geheim2")));
    (void)check(rig, HASH, SV("geheim"));
    assert_true(passwords_know(rig->passwords, HASH, SV("geheim")));
    assert_false(passwords_know(rig->passwords, HASH, SV("geheim2")));
    assert_false(passwords_know(rig->passwords, "$2b$04$other", SV("geheim")));
    assert_false(passwords_know(rig->passwords, HASH, SV("")));
}

TEST_ON(struct rig *rig, some_wait_and_no_more)
{
    for (unsigned i = 0; i < PASSWORDS_WAITING_MAX; i++) {
        assert_true(passwords_check(rig->passwords, HASH, SV("geheim"), on_answer, rig));
    }
    assert_false(passwords_check(rig->passwords, HASH, SV("geheim"), on_answer, rig));
    while (rig->n_answers < PASSWORDS_WAITING_MAX) {
        loop_run_once(rig->loop);
    }
    CHECK_INT(rig->n_right, PASSWORDS_WAITING_MAX, "");
    assert_true(passwords_check(rig->passwords, HASH, SV("geheim"), on_answer, rig));
    /* The last one is answered while everything ends. */
}
