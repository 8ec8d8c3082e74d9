/* Rules and labels as lines, `key=value`:
 *   a action   s source label   S separator   r regex   m modulus   t target_label   p replacement
 *   - ends a rule   l name=value adds a label
 * Rules that are good run on the labels; the result must be a proper label set. */
#include <string.h>

#include "base/arena.h"
#include "relabel/relabel.h"
#include "tests/fuzz/fuzz.h"

#define RULES_MAX 32
#define SOURCES_MAX 8

struct input {
    struct arena *arena;
    struct config_rule rules[RULES_MAX];
    const char *sources[RULES_MAX][SOURCES_MAX];
    size_t n;
    struct labels_builder *b;
};

static void read_line(struct input *in, struct sv line)
{
    struct sv key;
    struct sv value;
    struct config_rule *rule = &in->rules[in->n];
    if (!sv_cut(line, '=', &key, &value) || key.n != 1) {
        in->n += in->n + 1 < RULES_MAX;
        return;
    }
    const char *text = arena_strndup(in->arena, value.p, value.n);
    struct sv name;
    struct sv label;
    uint64_t modulus = 0;
    switch (key.p[0]) {
    case 'a':
        rule->has_action = config_action_parse(value, &rule->action);
        break;
    case 's':
        if (rule->source_labels.n < SOURCES_MAX) {
            in->sources[in->n][rule->source_labels.n++] = text;
            rule->source_labels.at = in->sources[in->n];
        }
        break;
    case 'S':
        rule->separator = text;
        break;
    case 'r':
        rule->regex = text;
        break;
    case 'm':
        rule->has_modulus = parse_u64(value, UINT64_MAX, &modulus);
        rule->modulus = modulus;
        break;
    case 't':
        rule->target_label = text;
        break;
    case 'p':
        rule->replacement = text;
        break;
    case 'l':
        if (sv_cut(value, '=', &name, &label) && name.n > 0) {
            labels_builder_set(in->b, name, label);
        }
        break;
    default:
        break;
    }
}

static void explain(void *arg, size_t rule, const struct labels_builder *b,
                    enum relabel_outcome outcome)
{
    size_t *last = arg;
    REQUIRE(rule == *last + 1);
    REQUIRE(outcome == RELABEL_FAILED || labels_builder_ok(b));
    *last = rule;
}

static void check_labels(struct labels_builder *b)
{
    struct labels *labels = labels_builder_build(b);
    REQUIRE(labels != NULL);
    for (size_t i = 0; i < labels_count(labels); i++) {
        struct label l = labels_at(labels, i);
        REQUIRE(l.name.n > 0 && l.value.n > 0);
        REQUIRE(i == 0 || sv_cmp(labels_at(labels, i - 1).name, l.name) < 0);
    }
    labels_unref(labels);
}

static void run(struct input *in)
{
    struct err err = ERR_INIT;
    struct relabel *r = relabel_new(&(struct config_rules){in->rules, in->n}, &err);
    if (r == NULL) {
        REQUIRE(err.msg[0] != '\0');
        return;
    }
    struct relabel_scratch *s = relabel_scratch_new();
    struct buf text;
    buf_init(&text, 1 << 20);
    for (size_t i = 1; i <= relabel_count(r); i++) {
        relabel_describe(r, i, &text);
    }
    size_t last = 0;
    struct relabel_verdict v = relabel_apply(r, s, in->b, explain, &last);
    REQUIRE(v.outcome == RELABEL_KEPT ? v.rule == 0 : v.rule == last);
    REQUIRE((v.outcome == RELABEL_FAILED) == (v.err.msg[0] != '\0'));
    if (v.outcome == RELABEL_KEPT) {
        check_labels(in->b);
    }
    buf_done(&text);
    relabel_scratch_free(s);
    relabel_free(r);
}

FUZZ(rest)
{
    if (rest.n > 16384) {
        return;
    }
    struct intern *intern = intern_new();
    struct input *in = calloc(1, sizeof(*in));
    REQUIRE(intern != NULL && in != NULL);
    in->arena = arena_new(1 << 20);
    in->b = labels_builder_new(intern);
    struct sv line;
    while (rest.n > 0) {
        struct sv tail = SV("");
        if (!sv_cut(rest, '\n', &line, &tail)) {
            line = rest;
        }
        read_line(in, line);
        rest = tail;
    }
    run(in);
    labels_builder_free(in->b);
    arena_free(in->arena);
    free(in);
    intern_free(intern);
}
