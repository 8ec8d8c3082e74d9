/* A stored profile: whatever it is, its stacks go into a tree whose total is what was added, once
 * more the same, and what the tree is drawn as adds up; the profile made of it has the same total.
 */
#include "base/utf8.h"
#include "store/query/rewrite.h"
#include "store/query/stacks.h"
#include "tests/fuzz/fuzz.h"

#define MIB ((size_t)1024 * 1024)

/* Every level nests within the one above it, and names can be sent as text. */
static void check_flamegraph(const struct tree *t, int64_t max_nodes)
{
    struct err err = ERR_INIT;
    struct flamegraph fg;
    struct arena *arena = arena_new(64 * MIB);
    if (arena == NULL || !tree_flamegraph(t, max_nodes, arena, &fg, &err)) {
        REQUIRE(arena == NULL || err.kind != ERR_NONE);
        arena_free(arena);
        return;
    }
    for (size_t i = 0; i < fg.n_names; i++) {
        REQUIRE(utf8_valid(fg.names[i]));
    }
    REQUIRE(fg.total == tree_total(t));
    for (size_t level = 1; level < fg.n_levels && fg.total < INT64_MAX; level++) {
        int64_t end = 0;
        for (size_t i = 0; i < fg.levels[level].n; i += 4) {
            const int64_t *bar = fg.levels[level].at + i;
            REQUIRE(bar[0] >= 0 && bar[1] > 0 && bar[2] >= 0 && bar[2] <= bar[1]);
            REQUIRE(bar[3] >= 0 && (size_t)bar[3] < fg.n_names);
            end += bar[0] + bar[1];
        }
        REQUIRE(end <= fg.total);
    }
    arena_free(arena);
}

/* Makes a profile of the same samples. Returns what they sum up to. */
static int64_t rewritten_total(const struct store_body *body)
{
    static const struct query_profile_options profile;
    struct err err = ERR_INIT;
    struct profile_type type;
    struct samples s;
    struct sample sample;
    struct buf out;
    size_t n = 0;
    uint64_t total = 0;
    struct scratch *scratch = scratch_new();
    REQUIRE(profile_type_parse(SV("a:b:c:d:e"), &type, &err));
    const struct rewrite_options o = {.type = &type, .profile = &profile, .time_ns = 1};
    buf_init(&out, 16 * MIB);
    REQUIRE(samples_open(&s, scratch, body, 0, &profile.stacks, 1, &err));
    REQUIRE(rewrite_profile(&s, scratch, &o, &out, &n, &err));
    const struct store_body again = {
        .data = {out.data, out.len}, .format = PROFILE_PPROF, .whole = true};
    scratch_reset(scratch);
    REQUIRE(samples_open(&s, scratch, &again, 0, &profile.stacks, 1, &err));
    for (; samples_next(&s, &sample); n--) {
        total += (uint64_t)sample.value;
    }
    REQUIRE(n == 0);
    scratch_free(scratch);
    buf_done(&out);
    return (int64_t)total;
}

FUZZ(in)
{
    static const struct query_stacks all;
    struct err err = ERR_INIT;
    int64_t sum = 0;
    int64_t second = 0;
    struct tree *t = tree_new(16 * MIB, &err);
    struct stacks *s = stacks_new(t, &all, 16 * MIB, &err);
    REQUIRE(t != NULL && s != NULL);
    const struct store_body body = {.data = {in.p, in.n}, .format = PROFILE_PPROF, .whole = true};
    if (stacks_add(s, &body, 0, &sum, &err)) {
        REQUIRE(sum >= 0 && tree_total(t) == sum);
        check_flamegraph(t, 0);
        check_flamegraph(t, 3);
        if (sum < INT64_MAX / 2) {
            REQUIRE(stacks_add(s, &body, 0, &second, &err) && second == sum);
            REQUIRE(tree_total(t) == 2 * sum);
            REQUIRE(rewritten_total(&body) == sum);
        }
    } else {
        REQUIRE(err.kind != ERR_NONE);
        REQUIRE(err.kind != ERR_INPUT || tree_total(t) == 0);
    }
    stacks_free(s);
    tree_free(t);
}
