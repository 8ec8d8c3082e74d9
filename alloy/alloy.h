/* Grafana Alloy's configuration files: text -> the tree that the tables of config/ read.
 *
 * Components on the way from a discovery to a pyroscope.write become jobs and endpoints; the others
 * are named in warnings and notes. All mistakes are reported in one run.
 */
#ifndef PROFPULL_ALLOY_ALLOY_H
#define PROFPULL_ALLOY_ALLOY_H

#include "alloy/source.h"
#include "config/config.h"
#include "config/errors.h"
#include "config/yaml.h"

struct alloy_messages {
    struct config_errors *errors;
    struct config_errors *warnings; /* what concerns profiles; may be NULL */
    struct config_errors *notes;    /* what does not; may be NULL */
    bool for_text; /* to be printed: a URL may be that of a variable that is not set here */
    /* Called for each file or directory that is imported, by its absolute name; may be NULL. */
    void (*on_import)(void *arg, const char *path);
    void *arg;
};

/* Are these Alloy's: a directory of files, a file that ends in ".alloy", or one that begins so? */
bool alloy_are_sources(const char *path, const struct alloy_sources *sources);
/* The tree of all sources together, in the arena, which the sources must live in as well. After
 * errors a root that is incomplete: whatever could be read, for the tables of config/ to find
 * further errors in; or NULL, if there is nothing. The errors are about the first source unless
 * they name another. */
const struct yaml_node *alloy_read(const struct alloy_sources *sources,
                                   const struct config_options *options, struct arena *arena,
                                   const struct alloy_messages *messages);

#endif
