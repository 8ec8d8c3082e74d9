#include "discovery/kubernetes/label_filter.h"

#include <stdlib.h>

#include "base/map.h"

struct label_filter {
    struct label_filter_options options;
    struct map *answers; /* name -> &yes or &no */
    char yes;
    char no;
};

struct label_filter *label_filter_new(const struct label_filter_options *options)
{
    struct label_filter *f = calloc(1, sizeof(*f));
    if (f == NULL) {
        return NULL;
    }
    f->options = *options;
    f->answers = map_new();
    return f->answers == NULL ? label_filter_free(f) : f;
}

struct label_filter *label_filter_free(struct label_filter *f)
{
    if (f != NULL) {
        map_free(f->answers, NULL);
        free(f);
    }
    return NULL;
}

bool label_filter_passes_metadata(struct label_filter *f, struct sv name)
{
    if (f == NULL) {
        return true;
    }
    const char *known = map_get(f->answers, name);
    if (known != NULL) {
        return known == &f->yes;
    }
    bool yes = f->options.wants_label(f->options.arg, name);
    if (map_count(f->answers) < LABEL_FILTER_NAMES_MAX) {
        /* If memory runs out, the answer is not remembered, and the question is repeated later. */
        (void)map_put(f->answers, name, yes ? &f->yes : &f->no, NULL);
    }
    return yes;
}

bool label_filter_passes(struct label_filter *f, struct sv name)
{
    return f == NULL || f->options.metadata_only || label_filter_passes_metadata(f, name);
}
