/* What is held, what of it is ours, and that only what moves is told. */
#include "tests/unit/testing.h"

#include <stdlib.h>

#include "agent/sharing/owned_targets.h"

struct world {
    struct intern *intern;
    struct labels_builder *builder;
    struct config *config;
    struct holdings *holdings;
    uint64_t ours;  /* bit k: the key k is ours */
    char told[512]; /* "source=address,address;" for each time that it was told */
    size_t memory;  /* times that telling fails */
};

static bool owns(void *arg, uint64_t key)
{
    const struct world *w = arg;
    return (w->ours >> key & 1) != 0;
}

static bool tell(void *arg, size_t job, const char *source, struct target *const *targets, size_t n)
{
    struct world *w = arg;
    size_t len = strlen(w->told);
    bool ok = w->memory == 0;
    w->memory -= ok ? 0 : 1;
    len += (size_t)snprintf(w->told + len, sizeof(w->told) - len, "%zu/%s=", job, source);
    for (size_t i = 0; i < n; i++) {
        len += (size_t)snprintf(w->told + len, sizeof(w->told) - len, "%s%s", i == 0 ? "" : ",",
                                target_canonical(targets[i]));
        target_unref(targets[i]);
    }
    snprintf(w->told + len, sizeof(w->told) - len, "%s;", ok ? "" : " failed");
    return ok;
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct config_errors *errors = config_errors_new();
    w->intern = intern_new();
    w->builder = labels_builder_new(w->intern);
    w->config = config_parse(
        "f", SV("scrape_configs: [{job_name: a}, {job_name: b}]\nwrite: [{url: \"http://x\"}]\n"),
        &(struct config_options){0}, errors);
    w->holdings = holdings_new(&(struct holdings_options){.owns = owns, .tell = tell, .arg = w});
    CHECK_INT(w->config != NULL && w->holdings != NULL, true, "");
    config_errors_free(errors);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    holdings_free(w->holdings);
    labels_builder_free(w->builder);
    config_unref(w->config);
    intern_free(w->intern);
    free(w);
    return 0;
}

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
    CHECK_INT(holdings_put(w->holdings, job, source, targets, hashes, n), want, source);
}

static void check(struct world *w, const char *told, size_t owned, size_t total, const char *row)
{
    CHECK_STR(w->told, told, row);
    CHECK_INT(holdings_owned(w->holdings), owned, row);
    CHECK_INT(holdings_total(w->holdings), total, row);
    w->told[0] = '\0';
}

static void groups(void **state)
{
    struct world *w = *state;
    w->ours = 1 << 0 | 1 << 2;
    put(w, 0, "pod/a", "0", true);
    check(w, "0/pod/a=h0:1;", 1, 1, "ours");
    put(w, 0, "pod/b", "1", true);
    check(w, "", 1, 2, "another's is not told");
    put(w, 1, "static/0", "0123", true);
    check(w, "1/static/0=h0:1,h2:1;", 3, 6, "a part of a list");
    put(w, 1, "static/0", "13", true);
    check(w, "1/static/0=;", 1, 4, "nothing of it is ours any more");
    put(w, 1, "static/0", "3", true);
    check(w, "", 1, 3, "");
    put(w, 0, "pod/b", "", true);
    check(w, "", 1, 2, "another's has gone");
    put(w, 0, "pod/a", "", true);
    check(w, "0/pod/a=;", 0, 1, "ours has gone");
    put(w, 0, "pod/never", "", true);
    check(w, "", 0, 1, "");
}

static void reviews(void **state)
{
    struct world *w = *state;
    put(w, 0, "a", "0", true);
    put(w, 0, "b", "1", true);
    put(w, 1, "c", "12", true);
    check(w, "", 0, 4, "nothing is ours");
    struct holdings_moves moves = holdings_review(w->holdings);
    CHECK_INT(moves.gained + moves.lost + moves.failed, 0, "");
    check(w, "", 0, 4, "nothing moves");
    w->ours = 1 << 0;
    moves = holdings_review(w->holdings);
    CHECK_INT(moves.gained, 1, "");
    check(w, "0/a=h0:1;", 1, 4, "only the one that moves");
    w->ours = 1 << 0 | 1 << 2;
    moves = holdings_review(w->holdings);
    CHECK_INT(moves.gained, 1, "");
    check(w, "1/c=h2:1;", 2, 4, "");
    w->ours = 1 << 2;
    moves = holdings_review(w->holdings);
    CHECK_INT(moves.lost, 1, "");
    check(w, "0/a=;", 1, 4, "");
    w->ours = 1 << 2;
    put(w, 1, "c", "12", true);
    check(w, "1/c=h2:1;", 1, 4, "an update of what is ours is told");
}

/* What could not be told for want of memory is told with the next review. */
static void memory(void **state)
{
    struct world *w = *state;
    put(w, 0, "a", "0", true);
    put(w, 0, "b", "0", true);
    w->ours = 1;
    w->memory = 2;
    struct holdings_moves moves = holdings_review(w->holdings);
    CHECK_INT(moves.failed, 2, "");
    w->told[0] = '\0';
    put(w, 0, "b", "", true);
    check(w, "0/b=;", 1, 1, "what may still be known of it is taken back");
    moves = holdings_review(w->holdings);
    CHECK_INT(moves.gained + moves.lost + moves.failed, 0, "it has been counted");
    check(w, "0/a=h0:1;", 1, 1, "");
    holdings_review(w->holdings);
    check(w, "", 1, 1, "once");
    w->memory = 1;
    put(w, 0, "c", "0", false);
    w->told[0] = '\0';
    holdings_review(w->holdings);
    check(w, "0/c=h0:1;", 2, 2, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(groups, setup, teardown),
        cmocka_unit_test_setup_teardown(reviews, setup, teardown),
        cmocka_unit_test_setup_teardown(memory, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
