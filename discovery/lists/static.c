#include "discovery/lists/static.h"

#include <stdlib.h>

static void set_labels(struct labels_builder *b, const struct config_static *config,
                       const struct config_pair *extra, const char *address)
{
    labels_builder_reset(b, NULL);
    for (size_t i = 0; i < config->labels.n; i++) {
        labels_builder_set_str(b, config->labels.at[i].name, config->labels.at[i].value);
    }
    if (extra != NULL) {
        labels_builder_set_str(b, extra->name, extra->value);
    }
    labels_builder_set_str(b, LABEL_ADDRESS, address);
}

static bool fill(struct static_group *g, const struct config_static *config,
                 const struct config_pair *extra, struct labels_builder *b, struct err *err)
{
    for (size_t i = 0; i < config->targets.n; i++) {
        set_labels(b, config, extra, config->targets.at[i]);
        struct labels *labels = labels_builder_build(b);
        if (labels == NULL) {
            labels_builder_explain(b, err);
            return err_wrap(err, "target \"%s\"", config->targets.at[i]);
        }
        g->at[g->n++] = labels;
    }
    return true;
}

bool static_group_make(const struct config_static *groups, size_t n,
                       const struct config_pair *extra, struct intern *intern,
                       struct static_group *ret, struct err *err)
{
    struct static_group g = {0};
    struct labels_builder *b = labels_builder_new(intern);
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        total += groups[i].targets.n;
    }
    g.at = calloc(total + 1, sizeof(struct labels *));
    bool ok = b != NULL && g.at != NULL;
    if (!ok) {
        err_memory(err);
    }
    for (size_t i = 0; i < n && ok; i++) {
        ok = fill(&g, &groups[i], extra, b, err);
    }
    labels_builder_free(b);
    if (!ok) {
        static_group_done(&g);
    }
    *ret = g;
    return ok;
}

void static_group_done(struct static_group *g)
{
    for (size_t i = 0; i < g->n; i++) {
        labels_unref(g->at[i]);
    }
    free(g->at);
    *g = (struct static_group){0};
}
