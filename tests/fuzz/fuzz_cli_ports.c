/* The label sets of a pod with arbitrary labels: a second choice of ports changes nothing, nothing
 * is scraped twice, and the sentences about rules, ports and annotations can be written. */
#include "base/str.h"
#include "cli/explain/annotations.h"
#include "cli/explain/words.h"
#include "scraper/targets/ports.h"
#include "tests/fuzz/fuzz.h"

#define SETS_MAX 12

static struct config *load(void)
{
    struct config_errors *errors = config_errors_new();
    struct config_options options = {.write_url = "http://x"};
    struct config *config = config_load(NULL, &options, errors);
    REQUIRE(config != NULL);
    config_errors_free(errors);
    return config;
}

/* Label sets of lines "name=value", with an empty line between two of them. */
static size_t read_sets(struct sv text, struct labels_builder *b, struct labels *sets[SETS_MAX])
{
    size_t n = 0;
    labels_builder_reset(b, NULL);
    while (text.n > 0 && n < SETS_MAX) {
        struct sv line = text;
        struct sv name;
        struct sv value;
        if (!sv_cut(text, '\n', &line, &text)) {
            text = SV("");
        }
        if (sv_cut(line, '=', &name, &value) && name.n > 0) {
            labels_builder_set(b, name, value);
        }
        if (line.n == 0 || text.n == 0) {
            sets[n] = labels_builder_build(b);
            n += sets[n] != NULL ? 1 : 0;
            labels_builder_reset(b, NULL);
        }
    }
    return n;
}

static void check_settled(const struct config_job *job, struct port_candidate *c, size_t n,
                          struct labels_builder *b)
{
    struct labels *before[SETS_MAX];
    for (size_t i = 0; i < n; i++) {
        before[i] = c[i].labels == NULL ? NULL : labels_ref(c[i].labels);
        REQUIRE((c[i].labels == NULL) == c[i].set_aside);
        REQUIRE(c[i].labels == NULL || labels_get(c[i].labels, SV("__profile_port_name__")).n == 0);
    }
    REQUIRE(ports_choose(job, c, n, b));
    for (size_t i = 0; i < n; i++) {
        REQUIRE((before[i] == NULL) == (c[i].labels == NULL));
        REQUIRE(before[i] == NULL || labels_equal(before[i], c[i].labels));
        labels_unref(before[i]);
    }
}

/* Rules that read every other label. */
static bool reads(void *arg, struct sv label)
{
    (void)arg;
    return label.n % 2 == 0;
}

static void write_words(const struct config_job *job, struct labels *const *sets, size_t n)
{
    const struct rule_reader rules = {.reads = reads};
    struct label_set words[SETS_MAX];
    struct buf out;
    buf_init(&out, 16 << 20);
    for (size_t i = 0; i < n; i++) {
        words[i] = (struct label_set){.discovered = sets[i], .v.relabelled = sets[i]};
        annotations_explain(&rules, sets[i], &out);
        for (size_t r = 1; r <= job->relabel.n; r++) {
            words_dropped(job, r, &rules, sets[i], sets[i], &out);
        }
        struct config_selector selector = {.role = ROLE_POD, .label = "", .field = "a"};
        selector.field = labels_get(sets[i], SV("field")).p;
        struct config_kubernetes k = {.role = ROLE_POD, .selectors = &selector, .n_selectors = 1};
        words_left_out(&k, SV("n"), sets[i], &out);
    }
    for (size_t t = 0; n > 0 && t < job->n_types; t++) {
        words_no_port(&job->types[t], &rules, sets[0], words, n, &out);
    }
    buf_done(&out);
}

FUZZ(in)
{
    struct labels *sets[SETS_MAX];
    struct port_candidate candidates[SETS_MAX];
    static struct config *config; /* one for all inputs */
    config = config == NULL ? load() : config;
    struct intern *intern = intern_new();
    struct labels_builder *b = labels_builder_new(intern);
    const struct config_job *job = &config->jobs[0];
    size_t n = read_sets(in, b, sets);
    for (size_t i = 0; i < n; i++) {
        candidates[i] =
            (struct port_candidate){.discovered = sets[i], .labels = labels_ref(sets[i])};
    }
    REQUIRE(ports_choose(job, candidates, n, b));
    check_settled(job, candidates, n, b);
    write_words(job, sets, n);
    for (size_t i = 0; i < n; i++) {
        labels_unref(candidates[i].labels);
        labels_unref(sets[i]);
    }
    labels_builder_free(b);
    intern_free(intern);
}
