/* The driver of the tables, places and messages. The readers of single values are in values.c. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "config/schema.h"

/* How much of a value or key a message shows. */
#define SHOWN_MAX 80
#define PATH_MAX_LEN 512
#define MESSAGE_MAX 1024
/* Keys that one mapping may have, and longest key for which a similar one is looked for. */
#define KEYS_MAX 64
#define SUGGEST_MAX 40

struct place place_of_key(const struct place *at, const char *key)
{
    const struct yaml_node *value = yaml_get(at->node, key);
    return (struct place){.parent = at, .key = key, .node = value == NULL ? at->node : value};
}

struct config_pos place_pos(const struct reader *r, const struct place *at)
{
    return (struct config_pos){r->file, at->node->line, at->node->column};
}

/* Appends a piece of the user's text without anything that could spoil a line. */
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
    if (!config_errors_wants(r->errors, at->node->line, at->node->column)) {
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
    config_errors_add(r->errors, at->node->line, at->node->column,
                      buf_ok(&path) ? path.data : "...", message);
    buf_done(&path);
}

void reader_option_error(struct reader *r, const char *option, const char *fmt, ...)
{
    char message[MESSAGE_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    r->reported++;
    config_errors_add(r->errors, 0, 0, option, message);
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

const char *reader_choices(struct reader *r, const char *const *names, size_t n)
{
    struct buf b;
    buf_init(&b, MESSAGE_MAX);
    for (size_t i = 0; i < n; i++) {
        buf_printf(&b, "%s\"%s\"", i == 0 ? "" : i + 1 == n ? " or " : ", ", names[i]);
    }
    const char *text = buf_ok(&b) ? arena_strndup(r->scratch, b.data, b.len) : NULL;
    buf_done(&b);
    return text == NULL ? "another value" : text;
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
    for (const struct yaml_item *i = at->node->items; i != NULL; i = i->next) {
        struct place key = {.parent = at, .key = "?", .node = i->key};
        if (i->key->kind != YAML_SCALAR) {
            reader_error(r, &key, "expected a string as key, got %s", yaml_what(i->key));
            continue;
        }
        key.key = i->key->text.p;
        if (i->key->problem != NULL) {
            reader_error(r, &key, "%s", i->key->problem);
        } else if (i->duplicate_of != NULL) {
            reader_error(r, &key, "duplicate key (first on line %d)", i->duplicate_of->key->line);
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

static bool known_key(const struct section *sections, size_t n, struct sv key)
{
    for (size_t s = 0; s < n; s++) {
        for (size_t f = 0; f < sections[s].n_fields; f++) {
            if (sv_eq_str(key, sections[s].fields[f].key)) {
                return true;
            }
        }
    }
    return false;
}

static void unknown_key(struct reader *r, const struct place *key, const struct section *sections,
                        size_t n)
{
    const char *names[KEYS_MAX];
    size_t n_names = 0;
    for (size_t s = 0; s < n; s++) {
        for (size_t f = 0; f < sections[s].n_fields && n_names < KEYS_MAX; f++) {
            names[n_names++] = sections[s].fields[f].key;
        }
    }
    struct sv text = key->node->text;
    const char *near = text.n > SUGGEST_MAX ? NULL : suggest(text, names, n_names);
    if (near != NULL) {
        reader_error(r, key, "unknown key; did you mean \"%s\"?", near);
    } else {
        reader_error(r, key, "unknown key");
    }
}

static void read_fields(struct reader *r, const struct place *at, const struct section *section)
{
    for (size_t i = 0; i < section->n_fields; i++) {
        const struct field *f = &section->fields[i];
        const struct yaml_node *value = yaml_get(at->node, f->key);
        if (value == NULL) {
            if (f->required) {
                reader_error(r, at, "missing required key \"%s\"", f->key);
            }
            continue;
        }
        struct place child = {.parent = at, .key = f->key, .node = value};
        f->read(r, &child, f->arg, (char *)section->out + f->offset);
    }
}

void read_sections(struct reader *r, const struct place *at, const struct section *sections,
                   size_t n)
{
    if (!reader_enter(r, at, YAML_MAPPING)) {
        return;
    }
    for (const struct yaml_item *i = at->node->items; i != NULL; i = i->next) {
        if (i->key->kind == YAML_SCALAR && i->key->problem == NULL &&
            !known_key(sections, n, i->key->text)) {
            struct place key = {.parent = at, .key = i->key->text.p, .node = i->key};
            unknown_key(r, &key, sections, n);
        }
    }
    for (size_t s = 0; s < n; s++) {
        read_fields(r, at, &sections[s]);
    }
}

void read_list(struct reader *r, const struct place *at, size_t size, read_fn *read_one,
               const void *arg, void **ret_array, size_t *ret_n)
{
    if (!reader_enter(r, at, YAML_LIST)) {
        return;
    }
    char *array = reader_alloc(r, at->node->n_items, size);
    if (array == NULL) {
        return;
    }
    size_t n = 0;
    for (const struct yaml_item *i = at->node->items; i != NULL; i = i->next) {
        struct place element = {.parent = at, .index = n, .node = i->value};
        read_one(r, &element, arg, array + n * size);
        n++;
    }
    *ret_array = array;
    *ret_n = n;
}
