/* A language of configuration files besides our own YAML: a row {suffix, recognises, read} that the
 * caller passes in (struct config_options), so that config/ knows no other language.
 *
 * A language turns texts into the tree of nodes that YAML gives (config/yaml.h, built with
 * config/tree.h); the tables of config/ read and check it.
 */
#ifndef PROFPULL_CONFIG_LANGUAGE_H
#define PROFPULL_CONFIG_LANGUAGE_H

#include "config/config.h"
#include "config/errors.h"
#include "config/texts.h"
#include "config/yaml.h"

/* Where the reader of a language reports. */
struct config_messages {
    struct config_errors *errors;
    struct config_errors *warnings; /* about profiles: left out, or with another meaning; or NULL */
    struct config_errors *notes;    /* about parts that have nothing to do with profiles; or NULL */
    bool for_text; /* to be printed: a URL may be that of a variable that is not set here */
    /* Called for each file or directory that is imported, by its absolute name; may be NULL. */
    void (*on_import)(void *arg, const char *path);
    void *arg;
};

struct config_language {
    const char *name;   /* "Alloy", for messages */
    const char *suffix; /* ".alloy": the files of a directory that are one configuration */
    /* Returns true if these texts are of the language; path is the name that the user gave. */
    bool (*recognises)(const char *path, const struct config_texts *texts);
    /* Returns the tree of all texts together, in the arena, in which the texts must live as well.
     * After errors: a root that is incomplete, in which the tables of config/ can find further
     * errors; or NULL, if there is nothing. Errors are about the first text unless they name
     * another. */
    const struct yaml_node *(*read)(const struct config_texts *texts,
                                    const struct config_options *options, struct arena *arena,
                                    const struct config_messages *messages);
};

#endif
