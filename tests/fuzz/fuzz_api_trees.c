/* Tries and trees of old agents: the first byte chooses one. A tree that is converted is a good
 * profile. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/receive/prefix_trees.h"
#include "pprof/check.h"
#include "pprof/index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static void check_profile(const struct buf *out, size_t samples)
{
    struct err err = ERR_INIT;
    struct pprof_summary summary;
    struct pprof_index index;
    struct sv plain = {out->data, out->len};
    struct scratch *scratch = scratch_new();
    REQUIRE(pprof_check(plain, &summary, &err));
    REQUIRE(summary.n[PROFILE_SAMPLE] == samples);
    REQUIRE(pprof_index(&index, scratch, plain, &summary, 1, &err));
    scratch_free(scratch);
}

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
        check_profile(&out, samples);
    }
    buf_done(&out);
    return 0;
}
