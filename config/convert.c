/* Converts files of other languages, and the YAML of other programs, to YAML of profpull. */
#include <stdlib.h>
#include <string.h>

#include "config/language.h"
#include "config/migrate.h"
#include "config/parts.h"
#include "config/print.h"

/* YAML of another program, and the buffer for the converted YAML. */
struct foreign_text {
    struct sv text;
    const struct config_messages *messages;
    struct buf *out;
};

/* Prints the tree first: printing needs no environment. */
static void read_foreign_root(struct reader *r, const void *arg, struct config *c, void *out)
{
    const struct foreign_text *f = arg;
    bool *ret_printed = out;
    const struct yaml_node *root = reader_parse(r, f->text);
    if (root == NULL) {
        return;
    }
    size_t before = config_errors_count(r->errors);
    const struct yaml_node *tree = migrate_tree(root, r->scratch, f->messages);
    if (tree != NULL && config_print_tree(tree, f->messages, f->out)) {
        *ret_printed = true;
        config_read_tree(r, tree, c);
    } else if (config_errors_count(r->errors) > before) {
        r->reported++;
    } else {
        r->out_of_memory = true;
    }
}

/* The environment, with a note of variables that are read but not set here. */
struct variables {
    const struct config_options *options;
    bool any_unset;
};

static const char *get_variable(void *arg, const char *name)
{
    struct variables *v = arg;
    const struct config_options *o = v->options;
    const char *value = o->env != NULL ? o->env(o->env_arg, name) : getenv(name);
    v->any_unset = v->any_unset || value == NULL;
    return value;
}

/* Prints the tree of the sources; true if there is no error in them. */
static bool print_language(const struct config_language *language, const struct config_texts *texts,
                           struct variables *variables, struct config_errors *errors,
                           struct arena *arena, struct buf *out)
{
    struct config_options options = *variables->options;
    const struct config_messages messages = {
        .errors = errors, .warnings = options.warnings, .notes = options.notes, .for_text = true};
    options.env = get_variable;
    options.env_arg = variables;
    const struct yaml_node *root = language->read(texts, &options, arena, &messages);
    return root != NULL && !root->incomplete && config_print_tree(root, &messages, out);
}

/* Prints converted YAML of another program. A variable that is not set here may be set where the
 * result will run. */
static bool print_foreign(const struct config_text *source, const struct config_options *options,
                          struct config_errors *errors, struct buf *out)
{
    static const char unset[] = "the environment variable ";
    struct config_errors *found = config_errors_new();
    const struct config_messages messages = {
        .errors = found, .warnings = options->warnings, .notes = options->notes, .for_text = true};
    const struct foreign_text text = {source->text, &messages, out};
    bool ok = false;
    if (found == NULL) {
        config_errors_add(errors, 0, 0, "", "not enough memory for this file");
        return false;
    }
    config_unref(config_read(source->name, options, found, read_foreign_root, &text, &ok));
    for (size_t i = 0; i < config_errors_count(found); i++) {
        const struct config_error *e = config_errors_at(found, i);
        if (strncmp(e->message, unset, strlen(unset)) != 0) {
            config_errors_add(errors, e->pos.line, e->pos.column, e->path, e->message);
            ok = false;
        }
    }
    config_errors_free(found);
    return ok;
}

static bool convert_language(const struct config_language *language,
                             const struct config_texts *texts, const struct config_options *options,
                             struct config_errors *errors, struct arena *arena, struct buf *out)
{
    struct variables variables = {.options = options};
    bool ok = print_language(language, texts, &variables, errors, arena, out);
    if (!variables.any_unset) {
        /* Errors that a run would report are reported here, too. */
        struct config_options quiet = *options;
        quiet.warnings = NULL;
        quiet.notes = NULL;
        struct config *c = config_read_language(language, texts, &quiet, errors);
        ok = ok && c != NULL;
        config_unref(c);
    }
    return ok;
}

bool config_convert(const char *path, const struct config_options *options,
                    struct config_errors *errors, struct buf *out)
{
    struct arena *arena;
    struct config_texts texts;
    const struct config_language *language = config_first_language(options);
    bool ok = false;
    config_name_file(options, errors, path);
    if (config_read_texts(path, options, errors, &arena, &texts)) {
        config_name_file(options, errors, texts.at[0].name);
        bool yaml = language == NULL ||
                    (texts.n == 1 && migrate_is_yaml(texts.at[0].name, texts.at[0].text));
        ok = yaml ? print_foreign(&texts.at[0], options, errors, out)
                  : convert_language(language, &texts, options, errors, arena, out);
    }
    arena_free(arena);
    return ok;
}
