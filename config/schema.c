/* The driver of the tables, places and messages. The kinds of values are in values.c. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "config/foreign.h"
#include "config/schema.h"

/* The most bytes of a value or key in a message. */
#define SHOWN_MAX 80
#define PATH_MAX_LEN 512
#define MESSAGE_MAX 1024
/* The most keys of a schema. */
#define KEYS_MAX 64

struct place place_of_key(const struct place *at, const char *key)
{
    const struct yaml_node *value = yaml_get(at->node, key);
    return (struct place){.parent = at, .key = key, .node = value == NULL ? at->node : value};
}

struct place place_of_element(const struct place *list, size_t index)
{
    return (struct place){.parent = list, .index = index, .node = list->node->items[index].value};
}

struct config_pos place_pos(struct reader *r, const struct place *at)
{
    const char *file = at->node->file;
    if (file != NULL && (r->other_file == NULL || strcmp(file, r->other_file) != 0)) {
        r->other_file = reader_strndup(r, file, strlen(file));
    }
    return (struct config_pos){file != NULL ? r->other_file : r->file, at->node->line,
                               at->node->column};
}

/* Appends a text of the user, escaped and cut. */
static void append_shown(struct buf *out, struct sv v)
{
    struct sv head = {v.p, utf8_prefix(v, SHOWN_MAX)};
    json_escape(head, out);
    if (head.n < v.n) {
        buf_puts(out, "...");
    }
}

static void append_path(struct buf *out, const struct place *at)
{
    if (at->node->path != NULL && (at->parent == NULL || at->node != at->parent->node)) {
        buf_puts(out, at->node->path);
        return;
    }
    if (at->parent == NULL) {
        return;
    }
    append_path(out, at->parent);
    if (at->key == NULL) {
        buf_printf(out, "[%zu]", at->index);
    } else {
        buf_puts(out, out->len == 0 ? "" : ".");
        append_shown(out, sv_from(at->key));
    }
}

void reader_error(struct reader *r, const struct place *at, const char *fmt, ...)
{
    r->reported++;
    if (at->node->file == NULL &&
        !config_errors_wants(r->errors, at->node->line, at->node->column)) {
        config_errors_add(r->errors, at->node->line, at->node->column, "", "");
        return;
    }
    char message[MESSAGE_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    struct buf path;
    buf_init(&path, PATH_MAX_LEN);
    append_path(&path, at);
    config_errors_add_in(r->errors, at->node->file, at->node->line, at->node->column,
                         buf_ok(&path) && path.len > 0 ? path.data
                         : path.len == 0               ? ""
                                                       : "...",
                         message);
    buf_done(&path);
}

bool text_ok(const struct text_kind *kind, struct sv v)
{
    return v.n >= kind->min && (kind->max == 0 || v.n <= kind->max) &&
           (kind->ok == NULL || kind->ok(v));
}

const char *reader_option(struct reader *r, const char *option, const struct text_kind *kind,
                          const char *value)
{
    char message[MESSAGE_MAX];
    if (text_ok(kind, sv_from(value))) {
        return reader_strndup(r, value, strlen(value));
    }
    snprintf(message, sizeof(message), "expected %s", kind->expected);
    r->reported++;
    config_errors_add(r->errors, 0, 0, option, message);
    return NULL;
}

const struct yaml_node *reader_parse(struct reader *r, struct sv text)
{
    static const struct yaml_node empty = {
        .kind = YAML_SCALAR, .line = 1, .column = 1, .plain = true};
    struct yaml_place place;
    struct err err = ERR_INIT;
    const struct yaml_node *root = NULL;
    if (!yaml_parse(text, r->scratch, &root, &place, &err)) {
        if (err.kind == ERR_MEMORY) {
            r->out_of_memory = true;
        } else {
            config_errors_add(r->errors, place.line, place.column, "", err.msg);
            r->reported++;
        }
        return NULL;
    }
    return root == NULL ? &empty : root;
}

const char *reader_quote(struct reader *r, struct sv v)
{
    struct buf b;
    buf_init(&b, SHOWN_MAX * 6 + 8);
    buf_putc(&b, '"');
    append_shown(&b, v);
    buf_putc(&b, '"');
    const char *text = buf_ok(&b) ? arena_strndup(r->scratch, b.data, b.len) : NULL;
    buf_done(&b);
    return text == NULL ? "\"...\"" : text;
}

const char *reader_got(struct reader *r, const struct yaml_node *n)
{
    if (n->kind != YAML_SCALAR || yaml_is_null(n)) {
        return yaml_what(n);
    }
    return reader_quote(r, n->text);
}

const char *reader_join(struct reader *r, const char *const *names, size_t n, const char *quote,
                        const char *last)
{
    struct buf b;
    buf_init(&b, MESSAGE_MAX);
    for (size_t i = 0; i < n; i++) {
        if (names[i] != NULL) {
            buf_printf(&b, "%s%s%s%s",
                       b.len == 0   ? ""
                       : i + 1 == n ? last
                                    : ", ",
                       quote, names[i], quote);
        }
    }
    const char *text = buf_ok(&b) ? arena_strndup(r->scratch, b.data, b.len) : NULL;
    buf_done(&b);
    return text == NULL ? "another value" : text;
}

const char *reader_hint(struct reader *r, struct sv word, const char *const *names, size_t n)
{
    const char *near = suggest(word, names, n);
    const char *hint =
        near == NULL ? NULL : arena_printf(r->scratch, "; did you mean \"%s\"?", near);
    return hint == NULL ? "" : hint;
}

void *reader_alloc(struct reader *r, size_t count, size_t size)
{
    void *p = arena_array(r->arena, count == 0 ? 1 : count, size);
    if (p == NULL) {
        r->out_of_memory = true;
    }
    return p;
}

const char *reader_strndup(struct reader *r, const char *s, size_t n)
{
    const char *copy = arena_strndup(r->arena, s, n);
    if (copy == NULL) {
        r->out_of_memory = true;
    }
    return copy;
}

static void check_keys(struct reader *r, const struct place *at)
{
    for (size_t n = 0; n < at->node->n_items; n++) {
        const struct yaml_item *i = &at->node->items[n];
        struct place key = {.parent = at, .key = "?", .node = i->key};
        if (i->key->kind != YAML_SCALAR) {
            reader_error(r, &key, "expected a string as key, got %s", yaml_what(i->key));
            continue;
        }
        key.key = i->key->text.p;
        if (i->key->problem != NULL) {
            reader_error(r, &key, "%s", i->key->problem);
        } else if (i->duplicate_of != NULL) {
            reader_error(r, &key, "duplicate key (first on line %d)", i->duplicate_of->line);
        }
    }
}

bool reader_enter(struct reader *r, const struct place *at, enum yaml_kind kind)
{
    const struct yaml_node *n = at->node;
    if (n->problem != NULL) {
        reader_error(r, at, "%s", n->problem);
        return false;
    }
    if (yaml_is_null(n)) {
        return true; /* no items: empty */
    }
    if (n->kind != kind) {
        reader_error(r, at, "expected a %s, got %s", kind == YAML_LIST ? "list" : "mapping",
                     yaml_what(n));
        return false;
    }
    if (kind == YAML_MAPPING) {
        check_keys(r, at);
    }
    return true;
}

/* Appends the keys of a schema to the n keys in the array; returns the new number of keys. */
static size_t list_keys(const struct schema *s, const char *keys[KEYS_MAX], size_t n)
{
    for (size_t i = 0; i < s->n && n < KEYS_MAX; i++) {
        if (s->fields[i].key == NULL) {
            n = list_keys(s->fields[i].arg, keys, n);
        } else {
            keys[n++] = s->fields[i].key;
        }
    }
    return n;
}

bool schema_has_key(const struct schema *s, const struct yaml_node *n)
{
    const char *keys[KEYS_MAX];
    for (size_t i = list_keys(s, keys, 0); i > 0; i--) {
        if (yaml_get(n, keys[i - 1]) != NULL) {
            return true;
        }
    }
    return false;
}

static void refuse_unknown(struct reader *r, const struct place *at, const struct schema *s)
{
    const char *keys[KEYS_MAX];
    size_t n = list_keys(s, keys, 0);
    for (size_t i = 0; i < at->node->n_items; i++) {
        const struct yaml_node *name = at->node->items[i].key;
        if (name->kind == YAML_SCALAR && name->problem == NULL && !sv_in(name->text, keys, n)) {
            struct place key = {.parent = at, .key = name->text.p, .node = name};
            const char *advice = foreign_key(at, name->text);
            reader_error(r, &key, "unknown key%s%s", advice != NULL ? "; " : "",
                         advice != NULL ? advice : reader_hint(r, name->text, keys, n));
        }
    }
}

static void read_rows(struct reader *r, const struct place *at, const struct schema *s,
                      size_t before, void *out)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct field *f = &s->fields[i];
        void *value = (char *)out + f->offset;
        struct place child = {.parent = at, .key = f->key};
        if (f->key == NULL) {
            read_rows(r, at, f->arg, before, value);
        } else if ((child.node = yaml_get(at->node, f->key)) != NULL) {
            f->kind->read(r, &child, f->arg, value);
        } else if (f->required && !at->node->incomplete) {
            reader_error(r, at, "missing required key \"%s\"", f->key);
        }
    }
    if (s->check != NULL && !at->node->incomplete) {
        s->check(r, at, r->reported == before, out);
    }
}

void schema_read(struct reader *r, const struct place *at, const struct schema *s, void *out)
{
    size_t before = r->reported;
    if (reader_enter(r, at, YAML_MAPPING)) {
        refuse_unknown(r, at, s);
        read_rows(r, at, s, before, out);
    }
}

void schema_defaults(const struct schema *s, void *out)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct field *f = &s->fields[i];
        char *value = (char *)out + f->offset;
        if (f->kind->is_mapping) {
            schema_defaults(f->arg, value);
        } else if (f->kind->size > 0) {
            memcpy(value, &f->initial, f->kind->size);
        }
    }
}

static bool is_default(const struct field *f, const char *value)
{
    struct array array;
    if (f->kind->is_mapping) {
        return schema_is_default(f->arg, value);
    }
    if (f->kind->is_array) {
        memcpy(&array, value, sizeof(array));
        return array.n == 0;
    }
    return memcmp(value, &f->initial, f->kind->size) == 0;
}

bool schema_is_default(const struct schema *s, const void *record)
{
    for (size_t i = 0; i < s->n; i++) {
        if (!is_default(&s->fields[i], (const char *)record + s->fields[i].offset)) {
            return false;
        }
    }
    return true;
}

void schema_write(struct dumper *d, const struct schema *s, const void *record)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct field *f = &s->fields[i];
        const char *value = (const char *)record + f->offset;
        bool left_out = f->kind->write == NULL || (f->when != NULL && !f->when(record)) ||
                        (f->optional && is_default(f, value));
        if (!left_out && f->key == NULL) {
            schema_write(d, f->arg, value);
        } else if (!left_out) {
            f->kind->write(d, f->key, f->arg, value);
        }
    }
}

void read_list(struct reader *r, const struct place *at, size_t size, read_fn *read_one,
               const void *arg, void *ret_array)
{
    if (!reader_enter(r, at, YAML_LIST)) {
        return;
    }
    char *elements = reader_alloc(r, at->node->n_items, size);
    if (elements == NULL) {
        return;
    }
    for (size_t i = 0; i < at->node->n_items; i++) {
        struct place element = place_of_element(at, i);
        read_one(r, &element, arg, elements + i * size);
    }
    memcpy(ret_array, &(struct array){elements, at->node->n_items}, sizeof(struct array));
}
