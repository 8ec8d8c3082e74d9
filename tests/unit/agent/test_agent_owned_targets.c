/* Which targets of a source are ours, and that only sources whose targets move are handed over. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "agent/sharing/owned_targets.h"
#include "tests/unit/lib/valid_config.h"

struct world {
    struct intern *intern;
    struct labels_builder *builder;
    struct config *config;
    struct owned_targets *owned;
    uint64_t ours;   /* bit k: the key k is ours */
    char calls[512]; /* of hand_over(): "job/source=address,address;" for each */
    size_t memory;   /* calls that fail */
};

static bool owns(void *arg, uint64_t key)
{
    const struct world *w = arg;
    return (w->ours >> key & 1) != 0;
}

static bool hand_over(void *arg, size_t job, const char *source, struct target *const *targets,
                      size_t n)
{
    struct world *w = arg;
    size_t len = strlen(w->calls);
    bool ok = w->memory == 0;
    w->memory -= ok ? 0 : 1;
    len += (size_t)snprintf(w->calls + len, sizeof(w->calls) - len, "%zu/%s=", job, source);
    for (size_t i = 0; i < n; i++) {
        len += (size_t)snprintf(w->calls + len, sizeof(w->calls) - len, "%s%s", i == 0 ? "" : ",",
                                target_canonical(targets[i]));
        target_unref(targets[i]);
    }
    snprintf(w->calls + len, sizeof(w->calls) - len, "%s;", ok ? "" : " failed");
    return ok;
}

static void world_begin(struct world *w)
{
    w->intern = intern_new();
    w->builder = labels_builder_new(w->intern);
    w->config = valid_config(
        "f", "scrape_configs: [{job_name: a}, {job_name: b}]\nwrite: [{url: \"http://x\"}]\n",
        NULL);
    w->owned = owned_targets_new(
        &(struct owned_targets_options){.owns = owns, .hand_over = hand_over, .arg = w});
    assert_non_null(w->owned);
}

static void world_end(struct world *w)
{
    owned_targets_free(w->owned);
    labels_builder_free(w->builder);
    config_unref(w->config);
    intern_free(w->intern);
}

FIXTURE(world, world_begin, world_end)

/* Targets with the keys given ("013"): key k has the address h<k>:1. */
static void put(struct world *w, size_t job, const char *source, const char *keys, bool want)
{
    struct target *targets[8];
    uint64_t hashes[8];
    size_t n = 0;
    for (; keys[n] != '\0'; n++) {
        char address[16];
        struct err err = ERR_INIT;
        snprintf(address, sizeof(address), "h%c:1", keys[n]);
        labels_builder_reset(w->builder, NULL);
        labels_builder_set_str(w->builder, LABEL_ADDRESS, address);
        targets[n] = target_new(w->config, job, w->builder, NULL, &err);
        CHECK_STR(err.msg, "", address);
        hashes[n] = (uint64_t)(keys[n] - '0');
    }
    CHECK_INT(owned_targets_put(w->owned, job, source, targets, hashes, n), want, source);
}

static void check(struct world *w, const char *calls, size_t owned, size_t total, const char *row)
{
    CHECK_STR(w->calls, calls, row);
    CHECK_INT(owned_targets_count(w->owned), owned, row);
    CHECK_INT(owned_targets_total(w->owned), total, row);
    w->calls[0] = '\0';
}

TEST_ON(struct world *w, groups)
{
    w->ours = 1 << 0 | 1 << 2;
    put(w, 0, "pod/a", "0", true);
    check(w, "0/pod/a=h0:1;", 1, 1, "ours");
    put(w, 0, "pod/b", "1", true);
    check(w, "", 1, 2, "another's is not handed over");
    put(w, 1, "static/0", "0123", true);
    check(w, "1/static/0=h0:1,h2:1;", 3, 6, "a part of a list");
    put(w, 1, "static/0", "13", true);
    check(w, "1/static/0=;", 1, 4, "none of it is ours any more");
    put(w, 1, "static/0", "3", true);
    check(w, "", 1, 3, "");
    put(w, 0, "pod/b", "", true);
    check(w, "", 1, 2, "another's is removed");
    put(w, 0, "pod/a", "", true);
    check(w, "0/pod/a=;", 0, 1, "ours is removed");
    put(w, 0, "pod/never", "", true);
    check(w, "", 0, 1, "");
}

TEST_ON(struct world *w, reviews)
{
    put(w, 0, "a", "0", true);
    put(w, 0, "b", "1", true);
    put(w, 1, "c", "12", true);
    check(w, "", 0, 4, "nothing is ours");
    struct owned_moves moves = owned_targets_review(w->owned);
    CHECK_INT(moves.gained + moves.lost + moves.failed, 0, "");
    check(w, "", 0, 4, "nothing moves");
    w->ours = 1 << 0;
    moves = owned_targets_review(w->owned);
    CHECK_INT(moves.gained, 1, "");
    check(w, "0/a=h0:1;", 1, 4, "only the one that moves");
    w->ours = 1 << 0 | 1 << 2;
    moves = owned_targets_review(w->owned);
    CHECK_INT(moves.gained, 1, "");
    check(w, "1/c=h2:1;", 2, 4, "");
    w->ours = 1 << 2;
    moves = owned_targets_review(w->owned);
    CHECK_INT(moves.lost, 1, "");
    check(w, "0/a=;", 1, 4, "");
    w->ours = 1 << 2;
    put(w, 1, "c", "12", true);
    check(w, "1/c=h2:1;", 1, 4, "an update of an owned target is handed over");
}

/* A hand-over that failed for lack of memory is repeated by the next review. */
TEST_ON(struct world *w, memory)
{
    put(w, 0, "a", "0", true);
    put(w, 0, "b", "0", true);
    w->ours = 1;
    w->memory = 2;
    struct owned_moves moves = owned_targets_review(w->owned);
    CHECK_INT(moves.failed, 2, "");
    w->calls[0] = '\0';
    put(w, 0, "b", "", true);
    check(w, "0/b=;", 1, 1, "a stale source is handed over when it is removed");
    moves = owned_targets_review(w->owned);
    CHECK_INT(moves.gained + moves.lost + moves.failed, 0, "the moves were counted before");
    check(w, "0/a=h0:1;", 1, 1, "");
    owned_targets_review(w->owned);
    check(w, "", 1, 1, "once");
    w->memory = 1;
    put(w, 0, "c", "0", false);
    w->calls[0] = '\0';
    owned_targets_review(w->owned);
    check(w, "0/c=h0:1;", 2, 2, "");
}
