#include "discovery/static.h"

#include <stdlib.h>

static void set_labels(struct labels_builder *b, const struct config_static *config,
                       const char *address)
{
    labels_builder_reset(b, NULL);
    for (size_t i = 0; i < config->labels.n; i++) {
        labels_builder_set_str(b, config->labels.at[i].name, config->labels.at[i].value);
    }
    labels_builder_set_str(b, LABEL_ADDRESS, address);
}

static bool fill(struct static_group *g, const struct config_static *config,
                 struct labels_builder *b, struct err *err)
{
    for (size_t i = 0; i < config->targets.n; i++) {
        set_labels(b, config, config->targets.at[i]);
        struct labels *labels = labels_builder_build(b);
        if (labels == NULL) {
            return labels_builder_ok(b)
                       ? err_set(err, ERR_MEMORY, "out of memory")
                       : err_set(err, ERR_LIMIT,
                                 "static target \"%s\": expected at most %zu labels of %zu "
                                 "bytes in all",
                                 config->targets.at[i], (size_t)LABELS_MAX,
                                 (size_t)LABELS_BYTES_MAX);
        }
        g->at[g->n++] = labels;
    }
    return true;
}

bool static_group_make(const struct config_static *config, struct intern *intern,
                       struct static_group *ret, struct err *err)
{
    struct static_group g = {0};
    struct labels_builder *b = labels_builder_new(intern);
    g.at = calloc(config->targets.n + 1, sizeof(struct labels *));
    bool ok = b != NULL && g.at != NULL;
    if (!ok) {
        err_set(err, ERR_MEMORY, "out of memory");
    }
    ok = ok && fill(&g, config, b, err);
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
