#include "discovery/kubernetes/label_filter.h"

#include <stdlib.h>

#include "base/map.h"

struct wanted {
    struct wanted_options options;
    struct map *answers; /* name -> &yes or &no */
    char yes;
    char no;
};

struct wanted *wanted_new(const struct wanted_options *options)
{
    struct wanted *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        return NULL;
    }
    w->options = *options;
    w->answers = map_new();
    return w->answers == NULL ? wanted_free(w) : w;
}

struct wanted *wanted_free(struct wanted *w)
{
    if (w != NULL) {
        map_free(w->answers, NULL);
        free(w);
    }
    return NULL;
}

bool wanted_mark(struct wanted *w, struct sv name)
{
    if (w == NULL) {
        return true;
    }
    const char *known = map_get(w->answers, name);
    if (known != NULL) {
        return known == &w->yes;
    }
    bool yes = w->options.asks(w->options.arg, name);
    if (map_count(w->answers) < WANTED_NAMES_MAX) {
        /* Without memory for the answer the question comes again. */
        (void)map_put(w->answers, name, yes ? &w->yes : &w->no, NULL);
    }
    return yes;
}

bool wanted_label(struct wanted *w, struct sv name)
{
    return w == NULL || w->options.marks_only || wanted_mark(w, name);
}
