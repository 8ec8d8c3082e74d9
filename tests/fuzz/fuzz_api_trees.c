/* Tries and trees of old agents: the first byte chooses one. A tree that is converted is a good
 * profile. */
#include "api/receive/prefix_trees.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/good_profile.h"

FUZZ_BY(choice, in)
{
    struct sv service;
    struct err err = ERR_INIT;
    struct buf out;
    size_t samples = 0;
    const struct frames_options o = {.type = frames_type_of(SV("a"), &service), .sample_rate = 100};
    buf_init(&out, (size_t)1 << 20);
    bool ok = (choice == 't' ? trie_convert : tree_convert)(in, &o, &out, &samples, &err);
    REQUIRE(ok == (err.kind == ERR_NONE));
    if (ok) {
        require_good_profile(&out, samples);
    }
    buf_done(&out);
}
