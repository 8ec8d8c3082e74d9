#include "config/tree.h"

#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

static struct yaml_node *make(struct tree *t, enum yaml_kind kind, struct config_place place,
                              const char *path)
{
    struct yaml_node *n = arena_alloc(t->arena, sizeof(*n));
    if (n == NULL) {
        t->full = true;
        return NULL;
    }
    n->kind = kind;
    n->line = place.line;
    n->column = place.column;
    n->file = place.file;
    n->path = path;
    n->text = SV("");
    return n;
}

struct yaml_node *tree_mapping(struct tree *t, struct config_place place, const char *path)
{
    return make(t, YAML_MAPPING, place, path);
}

struct yaml_node *tree_list(struct tree *t, struct config_place place, const char *path)
{
    return make(t, YAML_LIST, place, path);
}

/* Reports a text that YAML cannot hold: escapes, files and encodings can result in any bytes. The
 * message does not show the text, which may be a secret. */
static void check_text(const struct tree *t, struct config_place place, const char *path,
                       struct sv text)
{
    bool nul = text.n > 0 && memchr(text.p, '\0', text.n) != NULL;
    if (nul || !utf8_valid(text)) {
        config_errors_add_in(t->errors, place.file, place.line, place.column,
                             path != NULL ? path : "",
                             nul ? "a NUL character is not allowed"
                                 : "expected UTF-8, got a byte that is not part of a character");
    }
}

struct yaml_node *tree_text(struct tree *t, struct config_place place, const char *path,
                            struct sv text, struct sv form)
{
    struct yaml_node *n = make(t, YAML_SCALAR, place, path);
    const char *copy = arena_strndup(t->arena, text.p, text.n);
    if (n == NULL || copy == NULL) {
        t->full = true;
        return NULL;
    }
    check_text(t, place, path, text);
    n->literal = true;
    n->text = (struct sv){copy, text.n};
    n->form = form;
    return n;
}

struct yaml_node *tree_word(struct tree *t, struct config_place place, const char *path,
                            const char *word)
{
    struct yaml_node *n = tree_text(t, place, path, sv_from(word), (struct sv){.p = NULL});
    if (n != NULL) {
        n->plain = true;
    }
    return n;
}

/* Returns the index of the pair with this key; n_items if there is none. */
static size_t find(const struct yaml_node *mapping, struct sv key)
{
    size_t i = 0;
    while (i < mapping->n_items && !sv_eq(mapping->items[i].key->text, key)) {
        i++;
    }
    return i;
}

static void append(struct tree *t, struct yaml_node *n, struct yaml_item item)
{
    /* The capacity is a power of two, at least 4, so the array is full with 4, 8, 16, ... items. */
    if (n->n_items == 0 || (n->n_items >= 4 && (n->n_items & (n->n_items - 1)) == 0)) {
        size_t size = n->n_items == 0 ? 4 : 2 * n->n_items;
        struct yaml_item *items = arena_array(t->arena, size, sizeof(*items));
        if (items == NULL) {
            t->full = true;
            return;
        }
        if (n->n_items > 0) {
            memcpy(items, n->items, n->n_items * sizeof(*items));
        }
        n->items = items;
    }
    n->items[n->n_items++] = item;
}

void tree_put_text(struct tree *t, struct yaml_node *mapping, struct sv key,
                   const struct yaml_node *value)
{
    size_t i = mapping != NULL ? find(mapping, key) : 0;
    if (mapping != NULL && value != NULL && i < mapping->n_items) {
        mapping->items[i].value = value;
    } else {
        tree_put_new(t, mapping, key, value);
    }
}

void tree_put_new(struct tree *t, struct yaml_node *mapping, struct sv key,
                  const struct yaml_node *value)
{
    if (mapping == NULL || value == NULL) {
        return;
    }
    struct config_place place = {value->line, value->column, value->file};
    struct yaml_node *name = tree_text(t, place, NULL, key, (struct sv){.p = NULL});
    if (name != NULL) {
        name->plain = true;
        append(t, mapping, (struct yaml_item){.key = name, .value = value});
    }
}

void tree_put(struct tree *t, struct yaml_node *mapping, const char *key,
              const struct yaml_node *value)
{
    tree_put_text(t, mapping, sv_from(key), value);
}

void tree_put_first(struct tree *t, struct yaml_node *mapping, const char *key,
                    const struct yaml_node *value)
{
    tree_put(t, mapping, key, value);
    if (mapping == NULL || value == NULL || mapping->n_items < 2 || t->full) {
        return;
    }
    struct yaml_item last = mapping->items[mapping->n_items - 1];
    memmove(&mapping->items[1], &mapping->items[0], (mapping->n_items - 1) * sizeof(last));
    mapping->items[0] = last;
}

void tree_append(struct tree *t, struct yaml_node *list, const struct yaml_node *value)
{
    if (list != NULL && value != NULL) {
        append(t, list, (struct yaml_item){.value = value});
    }
}

void tree_remove(struct yaml_node *mapping, const char *key)
{
    if (mapping == NULL) {
        return;
    }
    size_t i = find(mapping, sv_from(key));
    if (i < mapping->n_items) {
        memmove(&mapping->items[i], &mapping->items[i + 1],
                (mapping->n_items - i - 1) * sizeof(mapping->items[0]));
        mapping->n_items--;
    }
}

struct yaml_node *tree_submapping(struct tree *t, struct yaml_node *mapping, const char *key)
{
    if (mapping == NULL) {
        return NULL;
    }
    size_t i = find(mapping, sv_from(key));
    if (i < mapping->n_items) {
        /* Casting const away is safe: this file made the node. */
        return (struct yaml_node *)(uintptr_t)mapping->items[i].value;
    }
    struct config_place place = {mapping->line, mapping->column, mapping->file};
    struct yaml_node *child = tree_mapping(t, place, NULL);
    tree_put(t, mapping, key, child);
    return child;
}
