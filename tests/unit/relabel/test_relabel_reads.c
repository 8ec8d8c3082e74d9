/* The labels that rules read: a label that they do not read must be of no consequence. */
#include <stdlib.h>

#include "base/clock.h"
#include "relabel/relabel.h"
#include "tests/unit/lib/testing.h"

SCOPED_POINTER(relabel, relabel_free)
SCOPED_POINTER(relabel_scratch, relabel_scratch_free)

#define NAMES(...)                                                                                 \
    {                                                                                              \
        .at = (const char *const[]){__VA_ARGS__},                                                  \
        .n = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)                           \
    }

struct reads_case {
    const char *name;
    struct config_rule rule;
    const char *label;
    bool reads;
};

static const struct reads_case cases[] = {
    {"a source", {.source_labels = NAMES("x", "a"), .target_label = "t"}, "a", true},
    {"no source", {.source_labels = NAMES("x", "a"), .target_label = "t"}, "b", false},
    {"a rule that is switched off reads nothing",
     {.source_labels = NAMES("x", "a"), .target_label = "t", .disabled = true},
     "a",
     false},
    {"a name is no regex", {.source_labels = NAMES("a."), .target_label = "t"}, "ab", false},
    {"a target is written", {.source_labels = NAMES("x"), .target_label = "a"}, "a", false},
    {"keep", {.action = ACTION_KEEP, .source_labels = NAMES("a")}, "a", true},
    {"drop", {.action = ACTION_DROP, .source_labels = NAMES("a")}, "a", true},
    {"keepequal, source",
     {.action = ACTION_KEEPEQUAL, .source_labels = NAMES("a"), .target_label = "t"},
     "a",
     true},
    {"keepequal compares with its target",
     {.action = ACTION_KEEPEQUAL, .source_labels = NAMES("a"), .target_label = "t"},
     "t",
     true},
    {"dropequal compares with its target",
     {.action = ACTION_DROPEQUAL, .source_labels = NAMES("a"), .target_label = "t"},
     "t",
     true},
    {"hashmod",
     {.action = ACTION_HASHMOD, .source_labels = NAMES("a"), .target_label = "t", .modulus = 7},
     "a",
     true},
    {"hashmod's target",
     {.action = ACTION_HASHMOD, .source_labels = NAMES("a"), .target_label = "t", .modulus = 7},
     "t",
     false},
    {"lowercase",
     {.action = ACTION_LOWERCASE, .source_labels = NAMES("a"), .target_label = "t"},
     "a",
     true},
    {"labelmap by default maps all", {.action = ACTION_LABELMAP}, "a", true},
    {"labelmap", {.action = ACTION_LABELMAP, .regex = "a_(.+)"}, "a_b", true},
    {"labelmap is anchored", {.action = ACTION_LABELMAP, .regex = "a_(.+)"}, "xa_b", false},
    {"labeldrop reads nothing", {.action = ACTION_LABELDROP, .regex = "a"}, "a", false},
    {"labelkeep reads nothing", {.action = ACTION_LABELKEEP, .regex = "b"}, "a", false},
    {"labeldrop that makes PCRE2 give up",
     {.action = ACTION_LABELDROP, .regex = "(x|xx)+"},
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx!",
     false},
};

TEST(test_reads)
{
    SCOPED(relabel_scratch) *s = relabel_scratch_new();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err err = ERR_INIT;
        /* The last of two, so that all are looked at. */
        const struct config_rule list[] = {
            {.source_labels = NAMES("other"), .target_label = "other2"}, cases[i].rule};
        SCOPED(relabel) *r = relabel_new(&(struct config_rules){.at = list, .n = 2}, &err);
        CHECK_STR(err.msg, "", cases[i].name);
        CHECK_INT(relabel_reads(r, s, sv_from(cases[i].label)), cases[i].reads, cases[i].name);
    }
}

TEST(test_no_rules)
{
    struct err err = ERR_INIT;
    SCOPED(relabel_scratch) *s = relabel_scratch_new();
    SCOPED(relabel) *r = relabel_new(&(struct config_rules){0}, &err);
    assert_false(relabel_reads(r, s, SV("a")));
}

/* ---- rules by chance ------------------------------------------------------------------------- */

#define RULES 6
#define ROUNDS 20000

static const char *const names[] = {"__meta_a", "__meta_b",   "__meta_ab", "__meta_label_x",
                                    "a",        "__meta_b_y", "b",         "__tmp"};
static const char *const regexes[] = {"(.*)", "__meta_(.+)", "__meta_label_(.+)",  "__meta_b.*",
                                      "1|2",  ".*b.*",       "a|b|__tmp|__meta_a", "x(.)"};
static const char *const replacements[] = {"$1", "__meta_$1", "x$1", "a", "__meta_b"};
static const char *const values[] = {"", "1", "2", "12", "x1", "B"};
#define PICK(rng, array) (array)[(size_t)rng_range((rng), 0, sizeof(array) / sizeof((array)[0]))]

/* NULL stands for the default, where the rule may not have the key. */
static struct config_rule random_rule(struct rng *rng, const char **sources)
{
    struct config_rule r = {.action = (enum config_action)rng_range(rng, 0, ACTION_UPPERCASE + 1)};
    bool selects = r.action == ACTION_LABELDROP || r.action == ACTION_LABELKEEP;
    bool compares = r.action == ACTION_KEEPEQUAL || r.action == ACTION_DROPEQUAL;
    bool maps = r.action == ACTION_LABELMAP;
    sources[0] = PICK(rng, names);
    sources[1] = PICK(rng, names);
    if (!selects) {
        r.source_labels = (struct config_strings){.at = sources, .n = (size_t)rng_range(rng, 1, 3)};
        r.target_label = PICK(rng, names);
    }
    if (!compares && r.action != ACTION_LOWERCASE && r.action != ACTION_UPPERCASE) {
        r.regex = PICK(rng, regexes);
        r.replacement = selects ? NULL : PICK(rng, replacements);
    }
    if (maps) {
        r.source_labels.n = 0;
        r.target_label = NULL;
    }
    r.modulus = r.action == ACTION_HASHMOD ? 3 : 0;
    return r;
}

static bool is_meta(struct sv name)
{
    return sv_starts_with(name, SV("__meta_"));
}

/* The verdict, and what is left of a target's labels when discovery's are gone. */
static void describe(const struct relabel *r, struct relabel_scratch *s, struct labels_builder *b,
                     struct buf *out)
{
    struct relabel_verdict v = relabel_apply(r, s, b, NULL, NULL);
    buf_clear(out);
    buf_printf(out, "%d %zu", (int)v.outcome, v.rule);
    for (size_t i = 0; v.outcome == RELABEL_KEPT && i < labels_builder_count(b); i++) {
        struct label l = labels_builder_at(b, i);
        if (!is_meta(l.name)) {
            buf_printf(out, " %.*s=%.*s", SV_ARG(l.name), SV_ARG(l.value));
        }
    }
}

/* Whatever the rules: without the labels of discovery that they do not read the outcome is the
 * same. */
TEST(test_unread_labels_do_not_matter)
{
    struct rng rng;
    rng_seed(&rng, 7);
    SCOPED(intern) *in = intern_new();
    SCOPED(labels_builder) *b = labels_builder_new(in);
    SCOPED(relabel_scratch) *s = relabel_scratch_new();
    SCOPED(buf) whole = testing_buf(1 << 16);
    SCOPED(buf) part = testing_buf(1 << 16);
    size_t left_out = 0;
    for (size_t round = 0; round < ROUNDS; round++) {
        const char *sources[RULES][2];
        struct config_rule list[RULES];
        size_t n = (size_t)rng_range(&rng, 1, RULES + 1);
        for (size_t i = 0; i < n; i++) {
            list[i] = random_rule(&rng, sources[i]);
        }
        struct err err = ERR_INIT;
        SCOPED(relabel) *r = relabel_new(&(struct config_rules){.at = list, .n = n}, &err);
        CHECK_STR(err.msg, "", "");
        const char *chosen[sizeof(names) / sizeof(names[0])];
        labels_builder_reset(b, NULL);
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            chosen[i] = PICK(&rng, values);
            labels_builder_set_str(b, names[i], chosen[i]);
        }
        describe(r, s, b, &whole);
        labels_builder_reset(b, NULL);
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            struct sv name = sv_from(names[i]);
            if (!is_meta(name) || relabel_reads(r, s, name)) {
                labels_builder_set(b, name, sv_from(chosen[i]));
            } else {
                left_out++;
            }
        }
        describe(r, s, b, &part);
        CHECK_STR(part.data, whole.data, "");
    }
    assert_true(left_out > ROUNDS);
}
