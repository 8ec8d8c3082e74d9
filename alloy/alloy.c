#include "alloy/alloy.h"

#include <stdlib.h>
#include <string.h>

#include "alloy/profiles.h"
#include "base/ascii.h"

#define BOM "\xef\xbb\xbf"

/* ---- recognising ----------------------------------------------------------------------------- */

/* Returns the rest after white space and comments. */
static struct sv skip_space(struct sv v)
{
    for (;;) {
        v = sv_trim(v);
        const char *end = NULL;
        size_t closing = 0;
        if (sv_starts_with(v, SV("//"))) {
            end = memchr(v.p, '\n', v.n);
        } else if (sv_starts_with(v, SV("/*"))) {
            end = memmem(v.p + 2, v.n - 2, "*/", 2);
            closing = 2;
        } else {
            return v;
        }
        v = end != NULL ? sv_skip(v, (size_t)(end - v.p) + closing) : SV("");
    }
}

static struct sv skip_name(struct sv v)
{
    size_t n = 0;
    while (n < v.n && (ascii_is_word(v.p[n]) || v.p[n] == '.')) {
        n++;
    }
    return sv_skip(v, n);
}

bool alloy_is_text(struct sv text)
{
    struct sv v = sv_starts_with(text, SV(BOM)) ? sv_skip(text, sizeof(BOM) - 1) : text;
    struct sv name = skip_space(v);
    struct sv rest = skip_name(name);
    if (rest.n == name.n) {
        return name.n == 0 && sv_trim(v).n > 0; /* nothing but comments */
    }
    size_t i = 0;
    while (i < rest.n && (rest.p[i] == ' ' || rest.p[i] == '\t')) {
        i++;
    }
    return i < rest.n && (rest.p[i] == '=' || rest.p[i] == '{' || rest.p[i] == '"');
}

static bool recognises(const char *path, const struct config_texts *texts)
{
    return texts->n != 1 || sv_ends_with(sv_from(path), SV(".alloy")) ||
           sv_ends_with(sv_from(texts->at[0].name), SV(".alloy")) ||
           alloy_is_text(texts->at[0].text);
}

/* ---- reading --------------------------------------------------------------------------------- */

static const char *get_environment(void *arg, const char *name)
{
    (void)arg;
    return getenv(name);
}

/* Parses all files. NULL after syntax errors: evaluating such a file would only give follow-up
 * errors. */
static struct alloy_body *parse_all(const struct config_texts *texts, struct arena *arena,
                                    struct config_errors *errors)
{
    struct alloy_body *bodies = arena_array(arena, texts->n + 1, sizeof(*bodies));
    bool ok = bodies != NULL;
    if (!ok) {
        config_errors_add(errors, 0, 0, "", "not enough memory for this file");
    }
    for (size_t i = 0; bodies != NULL && i < texts->n; i++) {
        ok = alloy_parse(i == 0 ? NULL : texts->at[i].name, texts->at[i].text, arena, errors,
                         &bodies[i]) &&
             ok;
    }
    return ok ? bodies : NULL;
}

static const struct yaml_node *build(struct alloy_load *l, const struct config_texts *texts,
                                     const struct alloy_body *bodies)
{
    struct config_place start = {1, 1, NULL};
    l->root = tree_mapping(&l->tree, start, NULL);
    if (l->root == NULL) {
        alloy_no_memory(l);
        return NULL;
    }
    alloy_graph_run(l, bodies, texts->n, texts->directory);
    if (l->n_modules > 0 && !l->ev.exhausted) {
        alloy_enter(l, l->modules[0]);
        alloy_flatten(l, l->modules[0]);
    }
    const struct yaml_node *root = l->root;
    if (config_errors_count(l->errors) > 0 && !l->ev.exhausted && !l->tree.full) {
        root = alloy_parts(l);
    }
    if (l->tree.full) {
        alloy_no_memory(l);
    }
    alloy_graph_done(l);
    return l->ev.exhausted || l->tree.full ? NULL : root;
}

static const struct alloy_names names = {.find = alloy_component_find,
                                         .known_family = alloy_component_known_family,
                                         .suggest = alloy_component_suggest,
                                         .is_config_block = alloy_is_config_block,
                                         .declare = alloy_collect_declare,
                                         .import = alloy_collect_import,
                                         .instance = alloy_instance};

const struct yaml_node *alloy_read(const struct config_texts *texts,
                                   const struct config_options *options, struct arena *arena,
                                   const struct config_messages *messages)
{
    const struct alloy_body *bodies = parse_all(texts, arena, messages->errors);
    struct alloy_load *l = bodies != NULL ? calloc(1, sizeof(*l)) : NULL;
    if (l == NULL) {
        return NULL;
    }
    l->names = &names;
    l->arena = arena;
    l->tree.arena = arena;
    l->tree.errors = messages->errors;
    l->file = texts->at[0].name;
    l->errors = messages->errors;
    l->warnings = messages->warnings;
    l->notes = messages->notes;
    l->options = options;
    l->for_text = messages->for_text;
    l->on_import = messages->on_import;
    l->import_arg = messages->arg;
    l->ev = (struct alloy_eval){
        .arena = arena,
        .errors = messages->errors,
        .env = options != NULL && options->env != NULL ? options->env : get_environment,
        .env_arg = options != NULL ? options->env_arg : NULL,
    };
    const struct yaml_node *root = build(l, texts, bodies);
    free(l);
    return root;
}

const struct config_language alloy_language = {
    .name = "Alloy", .suffix = ALLOY_SUFFIX, .recognises = recognises, .read = alloy_read};
