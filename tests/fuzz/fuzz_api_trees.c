/* Tries and trees of old agents: the first byte chooses one. A tree that is converted is a good
 * profile. */
#include "api/receive/prefix_trees.h"
#include "tests/fuzz/good_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv service;
    struct err err = ERR_INIT;
    struct buf out;
    size_t samples = 0;
    const struct frames_options o = {.type = frames_type_of(SV("a"), &service), .sample_rate = 100};
    if (size == 0) {
        return 0;
    }
    struct sv in = {(const char *)data + 1, size - 1};
    buf_init(&out, (size_t)1 << 20);
    bool ok = (data[0] == 't' ? trie_convert : tree_convert)(in, &o, &out, &samples, &err);
    REQUIRE(ok == (err.kind == ERR_NONE));
    if (ok) {
        require_good_profile(&out, samples);
    }
    buf_done(&out);
    return 0;
}
