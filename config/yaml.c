/* libyaml's events -> tree. libyaml neither limits the depth nor expands aliases; both happen here,
 * event by event, so that a hostile text fails early. */
#include <limits.h>
#include <string.h>
#include <yaml.h>

#include "base/map.h"
#include "base/utf8.h"
#include "config/config.h"
#include "config/yaml.h"

struct builder {
    yaml_parser_t parser;
    struct sv text;
    struct arena *arena;
    struct map *anchors; /* name -> finished node */
    size_t nodes;        /* made so far, aliases expanded */
    struct yaml_place place;
    struct err *err;
};

static int position(size_t zero_based)
{
    return zero_based >= INT_MAX ? INT_MAX : (int)zero_based + 1;
}

/* Notes the place and returns the error to set: `return err_set(at(b, mark), ...)`. */
static struct err *at(struct builder *b, yaml_mark_t mark)
{
    b->place.line = position(mark.line);
    b->place.column = position(mark.column);
    return b->err;
}

static bool fail_memory(struct builder *b)
{
    b->place = (struct yaml_place){0, 0};
    return err_set(b->err, ERR_MEMORY, "not enough memory for this file");
}

/* Did the parser stop at a tab? That is by far the most frequent cause. */
static bool stopped_at_tab(const struct builder *b)
{
    const yaml_parser_t *p = &b->parser;
    return p->buffer.pointer != NULL && p->buffer.pointer < p->buffer.last &&
           *p->buffer.pointer == '\t';
}

/* Notes the place of a byte. */
static void find_offset(struct builder *b, size_t offset)
{
    b->place = (struct yaml_place){1, 1};
    for (size_t i = 0; i < offset && i < b->text.n; i++) {
        if (b->text.p[i] == '\n') {
            b->place.line++;
            b->place.column = 1;
        } else if (((unsigned char)b->text.p[i] & 0xc0) != 0x80) {
            b->place.column++;
        }
    }
}

static bool fail_syntax(struct builder *b)
{
    const yaml_parser_t *p = &b->parser;
    if (p->error == YAML_MEMORY_ERROR) {
        return fail_memory(b);
    }
    const char *problem = p->problem == NULL ? "unreadable" : p->problem;
    if (p->error == YAML_READER_ERROR) { /* without a mark: the reader is ahead of the scanner */
        find_offset(b, p->problem_offset);
        return err_set(b->err, ERR_INPUT, "not valid YAML: %s (U+%04X)", problem,
                       (unsigned)p->problem_value);
    }
    at(b, p->problem_mark);
    if (p->error == YAML_SCANNER_ERROR && stopped_at_tab(b)) {
        return err_set(b->err, ERR_INPUT, "not valid YAML: a tab; indent with spaces");
    }
    return err_set(b->err, ERR_INPUT, "not valid YAML: %s%s%s", problem,
                   p->context == NULL ? "" : " ", p->context == NULL ? "" : p->context);
}

static bool next_event(struct builder *b, yaml_event_t *event)
{
    return yaml_parser_parse(&b->parser, event) ? true : fail_syntax(b);
}

/* Counts nodes against the limit. */
static bool account(struct builder *b, yaml_mark_t mark, size_t nodes)
{
    if (nodes > CONFIG_NODES_MAX - b->nodes) {
        return err_set(at(b, mark), ERR_LIMIT, "more than %d values (aliases expanded)",
                       CONFIG_NODES_MAX);
    }
    b->nodes += nodes;
    return true;
}

static bool check_depth(struct builder *b, yaml_mark_t mark, int depth)
{
    if (depth <= CONFIG_DEPTH_MAX) {
        return true;
    }
    return err_set(at(b, mark), ERR_LIMIT, "nested deeper than %d levels", CONFIG_DEPTH_MAX);
}

static struct yaml_node *new_node(struct builder *b, const yaml_event_t *event, enum yaml_kind kind)
{
    if (!account(b, event->start_mark, 1)) {
        return NULL;
    }
    struct yaml_node *n = arena_alloc(b->arena, sizeof(*n));
    if (n == NULL) {
        fail_memory(b);
        return NULL;
    }
    n->kind = kind;
    n->line = position(event->start_mark.line);
    n->column = position(event->start_mark.column);
    n->weight = 1;
    return n;
}

static void check_tag(struct yaml_node *n, const yaml_char_t *tag)
{
    if (tag != NULL) {
        n->problem = "tags (such as !!binary) are not supported";
    }
}

static bool remember(struct builder *b, const yaml_char_t *anchor, struct yaml_node *n)
{
    if (anchor == NULL) {
        return true;
    }
    return map_put(b->anchors, sv_from((const char *)anchor), n, NULL) ? true : fail_memory(b);
}

static const struct yaml_node *build(struct builder *b, const yaml_event_t *event, int depth);

static const struct yaml_node *build_scalar(struct builder *b, const yaml_event_t *event)
{
    struct yaml_node *n = new_node(b, event, YAML_SCALAR);
    if (n == NULL) {
        return NULL;
    }
    size_t len = event->data.scalar.length;
    n->text.p = arena_strndup(b->arena, (const char *)event->data.scalar.value, len);
    if (n->text.p == NULL) {
        fail_memory(b);
        return NULL;
    }
    n->text.n = len;
    n->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (memchr(event->data.scalar.value, '\0', len) != NULL) {
        n->problem = "a NUL character is not allowed";
        n->text.n = strlen(n->text.p);
    }
    check_tag(n, event->data.scalar.tag);
    return remember(b, event->data.scalar.anchor, n) ? n : NULL;
}

static const struct yaml_node *build_alias(struct builder *b, const yaml_event_t *event, int depth)
{
    const char *name = (const char *)event->data.alias.anchor;
    const struct yaml_node *n = map_get(b->anchors, sv_from(name));
    if (n == NULL) {
        err_set(at(b, event->start_mark), ERR_INPUT,
                "alias *%.64s: no anchor &%.64s is complete before it", name, name);
        return NULL;
    }
    if (!account(b, event->start_mark, n->weight) ||
        !check_depth(b, event->start_mark, depth + n->height)) {
        return NULL;
    }
    return n;
}

/* A list or mapping that is growing. */
struct chain {
    struct yaml_node *n;
    struct yaml_item *last;
};

/* Appends a pair or an element; NULL if out of memory. */
static struct yaml_item *append(struct builder *b, struct chain *c, const struct yaml_node *key,
                                const struct yaml_node *value)
{
    struct yaml_item *item = arena_alloc(b->arena, sizeof(*item));
    if (item == NULL) {
        fail_memory(b);
        return NULL;
    }
    item->key = key;
    item->value = value;
    *(c->last == NULL ? &c->n->items : &c->last->next) = item;
    c->last = item;
    c->n->n_items++;
    c->n->weight += value->weight + (key == NULL ? 0 : key->weight);
    if (value->height >= c->n->height) {
        c->n->height = value->height + 1;
    }
    return item;
}

static const struct yaml_node *build_list(struct builder *b, const yaml_event_t *start, int depth)
{
    struct yaml_node *n = new_node(b, start, YAML_LIST);
    if (n == NULL || !check_depth(b, start->start_mark, depth)) {
        return NULL;
    }
    check_tag(n, start->data.sequence_start.tag);
    struct chain c = {.n = n};
    for (;;) {
        yaml_event_t event;
        if (!next_event(b, &event)) {
            return NULL;
        }
        if (event.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&event);
            break;
        }
        const struct yaml_node *value = build(b, &event, depth + 1);
        yaml_event_delete(&event);
        if (value == NULL || append(b, &c, NULL, value) == NULL) {
            return NULL;
        }
    }
    return remember(b, start->data.sequence_start.anchor, n) ? n : NULL;
}

static bool is_merge_key(const struct yaml_node *key)
{
    return key->kind == YAML_SCALAR && key->plain && sv_eq_str(key->text, "<<");
}

/* Takes over the pairs of one merged mapping whose keys are not there yet. */
static bool merge_mapping(struct builder *b, struct chain *c, struct map *seen,
                          const struct yaml_node *from)
{
    yaml_mark_t mark = {.line = (size_t)c->n->line - 1, .column = (size_t)c->n->column - 1};
    for (const struct yaml_item *i = from->items; i != NULL; i = i->next) {
        if (i->key->kind != YAML_SCALAR || map_get(seen, i->key->text) != NULL) {
            continue;
        }
        struct yaml_item *added = NULL;
        if (account(b, mark, i->value->weight + 1)) {
            added = append(b, c, i->key, i->value);
        }
        if (added == NULL) {
            return false;
        }
        if (!map_put(seen, i->key->text, added, NULL)) {
            return fail_memory(b);
        }
    }
    return true;
}

/* value: a mapping or a list of mappings. Anything else is marked as a problem of the mapping. */
static bool merge(struct builder *b, struct chain *c, struct map *seen,
                  const struct yaml_node *value)
{
    if (value->kind == YAML_MAPPING) {
        return merge_mapping(b, c, seen, value);
    }
    bool good = value->kind == YAML_LIST;
    for (const struct yaml_item *i = value->items; i != NULL; i = i->next) {
        if (i->value->kind != YAML_MAPPING) {
            good = false;
        } else if (!merge_mapping(b, c, seen, i->value)) {
            return false;
        }
    }
    if (!good) {
        c->n->problem = "\"<<\" takes a mapping or a list of mappings";
    }
    return true;
}

/* Takes the merge keys out of the list of pairs; they come back as a list of their own. */
static struct yaml_item *take_merges(struct chain *c)
{
    struct yaml_item *merges = NULL;
    struct yaml_item **merges_tail = &merges;
    struct yaml_item **link = &c->n->items;
    c->last = NULL;
    while (*link != NULL) {
        struct yaml_item *item = *link;
        if (is_merge_key(item->key)) {
            *link = item->next;
            item->next = NULL;
            *merges_tail = item;
            merges_tail = &item->next;
            c->n->n_items--;
        } else {
            c->last = item;
            link = &item->next;
        }
    }
    return merges;
}

/* Finds duplicates and resolves merge keys. */
static bool finish_mapping(struct builder *b, struct chain *c, struct map *seen)
{
    const struct yaml_item *merges = take_merges(c);
    for (struct yaml_item *i = c->n->items; i != NULL; i = i->next) {
        if (i->key->kind != YAML_SCALAR) {
            continue;
        }
        i->duplicate_of = map_get(seen, i->key->text);
        if (i->duplicate_of == NULL && !map_put(seen, i->key->text, i, NULL)) {
            return fail_memory(b);
        }
    }
    for (const struct yaml_item *i = merges; i != NULL; i = i->next) {
        if (!merge(b, c, seen, i->value)) {
            return false;
        }
    }
    return true;
}

/* One key and its value; *ret_end at the end of the mapping. */
static bool build_pair(struct builder *b, struct chain *c, int depth, bool *ret_end)
{
    yaml_event_t event;
    if (!next_event(b, &event)) {
        return false;
    }
    *ret_end = event.type == YAML_MAPPING_END_EVENT;
    const struct yaml_node *key = *ret_end ? NULL : build(b, &event, depth + 1);
    yaml_event_delete(&event);
    if (key == NULL) {
        return *ret_end;
    }
    if (!next_event(b, &event)) {
        return false;
    }
    const struct yaml_node *value = build(b, &event, depth + 1);
    yaml_event_delete(&event);
    return value != NULL && append(b, c, key, value) != NULL;
}

static const struct yaml_node *build_mapping(struct builder *b, const yaml_event_t *start,
                                             int depth)
{
    struct yaml_node *n = new_node(b, start, YAML_MAPPING);
    if (n == NULL || !check_depth(b, start->start_mark, depth)) {
        return NULL;
    }
    check_tag(n, start->data.mapping_start.tag);
    struct chain c = {.n = n};
    for (bool end = false; !end;) {
        if (!build_pair(b, &c, depth, &end)) {
            return NULL;
        }
    }
    struct map *seen = map_new();
    if (seen == NULL) {
        fail_memory(b);
        return NULL;
    }
    bool ok = finish_mapping(b, &c, seen);
    map_free(seen, NULL);
    return ok && remember(b, start->data.mapping_start.anchor, n) ? n : NULL;
}

/* The recursion ends at CONFIG_DEPTH_MAX. */
static const struct yaml_node *build(struct builder *b, const yaml_event_t *event, int depth)
{
    switch ((int)event->type) {
    case YAML_SCALAR_EVENT:
        return build_scalar(b, event);
    case YAML_ALIAS_EVENT:
        return build_alias(b, event, depth);
    case YAML_SEQUENCE_START_EVENT:
        return build_list(b, event, depth);
    case YAML_MAPPING_START_EVENT:
        return build_mapping(b, event, depth);
    default:
        err_set(at(b, event->start_mark), ERR_INPUT, "not valid YAML");
        return NULL;
    }
}

static bool build_document(struct builder *b, const struct yaml_node **ret_root)
{
    bool have_document = false;
    for (;;) {
        yaml_event_t event;
        if (!next_event(b, &event)) {
            return false;
        }
        int type = (int)event.type;
        bool ok = true;
        if (type == YAML_DOCUMENT_START_EVENT && have_document) {
            ok = err_set(at(b, event.start_mark), ERR_INPUT,
                         "a second document begins: only one is allowed");
        } else if (type == YAML_DOCUMENT_START_EVENT) {
            have_document = true;
        } else if (type != YAML_STREAM_START_EVENT && type != YAML_DOCUMENT_END_EVENT &&
                   type != YAML_STREAM_END_EVENT) {
            *ret_root = build(b, &event, 1);
            ok = *ret_root != NULL;
        }
        yaml_event_delete(&event);
        if (!ok || type == YAML_STREAM_END_EVENT) {
            return ok;
        }
    }
}

/* libyaml would find this too, but without a place. */
static bool check_utf8(struct sv text, struct yaml_place *reterr_place, struct err *err)
{
    if (utf8_valid(text)) {
        return true;
    }
    struct yaml_place at = {1, 1};
    size_t line_start = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '\n') {
            if (!utf8_valid((struct sv){text.p + line_start, i - line_start})) {
                break;
            }
            line_start = i + 1;
            at.line++;
        }
    }
    *reterr_place = at;
    return err_set(err, ERR_INPUT, "this line is not valid UTF-8");
}

bool yaml_parse(struct sv text, struct arena *arena, const struct yaml_node **ret_root,
                struct yaml_place *reterr_place, struct err *err)
{
    *reterr_place = (struct yaml_place){0, 0};
    if (text.n > CONFIG_FILE_MAX) {
        return err_set(err, ERR_LIMIT, "larger than %d bytes", CONFIG_FILE_MAX);
    }
    if (!check_utf8(text, reterr_place, err)) {
        return false;
    }
    struct builder b = {.text = text, .arena = arena, .err = err, .anchors = map_new()};
    const struct yaml_node *root = NULL;
    bool ok = false;
    if (b.anchors == NULL || !yaml_parser_initialize(&b.parser)) {
        fail_memory(&b);
    } else {
        yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&b.parser, (const unsigned char *)text.p, text.n);
        ok = build_document(&b, &root);
        yaml_parser_delete(&b.parser);
    }
    map_free(b.anchors, NULL);
    if (ok) {
        *ret_root = root;
    } else {
        *reterr_place = b.place;
    }
    return ok;
}

bool yaml_is_null(const struct yaml_node *n)
{
    return n->kind == YAML_SCALAR && n->plain &&
           (n->text.n == 0 || sv_eq_str(n->text, "~") || sv_eq_str(n->text, "null") ||
            sv_eq_str(n->text, "Null") || sv_eq_str(n->text, "NULL"));
}

const struct yaml_node *yaml_get(const struct yaml_node *n, const char *key)
{
    if (n == NULL || n->kind != YAML_MAPPING) {
        return NULL;
    }
    for (const struct yaml_item *i = n->items; i != NULL; i = i->next) {
        if (i->key->kind == YAML_SCALAR && sv_eq_str(i->key->text, key)) {
            return i->value;
        }
    }
    return NULL;
}

const char *yaml_what(const struct yaml_node *n)
{
    switch (n->kind) {
    case YAML_LIST:
        return "a list";
    case YAML_MAPPING:
        return "a mapping";
    case YAML_SCALAR:
        break;
    }
    if (yaml_is_null(n)) {
        return "null";
    }
    return n->plain ? "a value" : "a string";
}
