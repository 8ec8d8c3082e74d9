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

/* The lists to which the reader of a language adds its messages. */
struct config_messages {
    struct config_errors *errors;
    /* parts about profiles that are left out or mean something else; or NULL */
    struct config_errors *warnings;
    struct config_errors *notes; /* parts that have no effect on profiles; or NULL */
    bool for_text; /* the result is printed, so a URL may come from a variable that is unset here */
    /* Called for each file or directory that is imported, by its absolute name; may be NULL. */
    void (*on_import)(void *arg, const char *path);
    void *arg;
};

struct config_language {
    const char *name;   /* "Alloy", for messages */
    const char *suffix; /* ".alloy": the files of a directory that are one configuration */
    /* Returns true if these texts are of the language; path is the name that the user gave. */
    bool (*recognises)(const char *path, const struct config_texts *texts);
    /* Returns one tree of all texts, in the arena, in which the texts must live as well. After
     * errors it returns an incomplete root, in which the tables of config/ can find further errors,
     * or NULL if there is none. Errors are about the first text unless they name another. */
    const struct yaml_node *(*read)(const struct config_texts *texts,
                                    const struct config_options *options, struct arena *arena,
                                    const struct config_messages *messages);
};

#endif
