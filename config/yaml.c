/* Builds the tree from libyaml's events. libyaml neither limits the depth nor expands aliases; this
 * file does both, event by event, so that a hostile text fails early. */
#include <limits.h>
#include <string.h>
#include <yaml.h>

#include "base/map.h"
#include "base/utf8.h"
#include "config/config.h"
#include "config/yaml.h"

/* U+FEFF, the byte order mark. libyaml skips it, but counts it as a column, so the first key would
 * seem to be indented. */
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

struct builder {
    yaml_parser_t parser;
    struct sv text;
    struct arena *arena;
    struct map *anchors; /* name -> finished node */
    size_t nodes;        /* nodes made so far, aliases expanded */
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

/* Returns true if the parser stopped at a tab, by far the most frequent cause of a syntax error. */
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
    /* this error has no mark, because libyaml's reader is ahead of its scanner */
    if (p->error == YAML_READER_ERROR) {
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

/* Appends a pair or an element. The room for them doubles: it is full at 0, 1, 2, 4, 8, ... */
static bool append(struct builder *b, struct yaml_node *n, const struct yaml_node *key,
                   const struct yaml_node *value)
{
    if ((n->n_items & (n->n_items - 1)) == 0) {
        size_t room = n->n_items == 0 ? 1 : 2 * n->n_items;
        struct yaml_item *items = arena_array(b->arena, room, sizeof(*items));
        if (items == NULL) {
            return fail_memory(b);
        }
        for (size_t i = 0; i < n->n_items; i++) {
            items[i] = n->items[i];
        }
        n->items = items;
    }
    n->items[n->n_items++] = (struct yaml_item){.key = key, .value = value};
    n->weight += value->weight + (key == NULL ? 0 : key->weight);
    if (value->height >= n->height) {
        n->height = value->height + 1;
    }
    return true;
}

static bool is_merge_key(const struct yaml_node *key)
{
    return key->kind == YAML_SCALAR && key->plain && sv_eq_str(key->text, "<<");
}

static bool put_seen(struct builder *b, struct map *seen, const struct yaml_node *key)
{
    return map_put(seen, key->text, (void *)(uintptr_t)key, NULL) ? true : fail_memory(b);
}

/* Takes over the pairs of one merged mapping whose keys are not there yet. */
static bool merge_mapping(struct builder *b, struct yaml_node *n, struct map *seen,
                          const struct yaml_node *from)
{
    yaml_mark_t mark = {.line = (size_t)n->line - 1, .column = (size_t)n->column - 1};
    for (size_t i = 0; i < from->n_items; i++) {
        const struct yaml_node *key = from->items[i].key;
        const struct yaml_node *value = from->items[i].value;
        if (key->kind != YAML_SCALAR || map_get(seen, key->text) != NULL) {
            continue;
        }
        if (!account(b, mark, value->weight + 1) || !append(b, n, key, value) ||
            !put_seen(b, seen, key)) {
            return false;
        }
    }
    return true;
}

/* Merges `value`, a mapping or a list of mappings, into n. Anything else is marked as a problem of
 * n. */
static bool merge(struct builder *b, struct yaml_node *n, struct map *seen,
                  const struct yaml_node *value)
{
    if (value->kind == YAML_MAPPING) {
        return merge_mapping(b, n, seen, value);
    }
    bool good = value->kind == YAML_LIST;
    for (size_t i = 0; i < value->n_items; i++) {
        const struct yaml_node *from = value->items[i].value;
        if (from->kind != YAML_MAPPING) {
            good = false;
        } else if (!merge_mapping(b, n, seen, from)) {
            return false;
        }
    }
    if (!good) {
        n->problem = "\"<<\" takes a mapping or a list of mappings";
    }
    return true;
}

/* Finds duplicate keys and resolves merge keys of a mapping. */
static bool finish_mapping(struct builder *b, struct yaml_node *n, const struct yaml_node *merges,
                           struct map *seen)
{
    for (size_t i = 0; i < n->n_items; i++) {
        const struct yaml_node *key = n->items[i].key;
        if (key->kind != YAML_SCALAR) {
            continue;
        }
        n->items[i].duplicate_of = map_get(seen, key->text);
        if (n->items[i].duplicate_of == NULL && !put_seen(b, seen, key)) {
            return false;
        }
    }
    for (size_t i = 0; i < merges->n_items; i++) {
        if (!merge(b, n, seen, merges->items[i].value)) {
            return false;
        }
    }
    return true;
}

/* Builds the next key, value or element. At the end of the list or mapping it returns NULL and sets
 * *ret_end. */
static const struct yaml_node *build_next(struct builder *b, int depth, bool *ret_end)
{
    yaml_event_t event;
    if (!next_event(b, &event)) {
        return NULL;
    }
    *ret_end = event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
    const struct yaml_node *n = *ret_end ? NULL : build(b, &event, depth);
    yaml_event_delete(&event);
    return n;
}

/* Builds the items of n. merges: gets the pairs of a mapping whose keys are merge keys. */
static bool build_items(struct builder *b, struct yaml_node *n, struct yaml_node *merges, int depth)
{
    for (;;) {
        bool end = false;
        const struct yaml_node *key = NULL;
        const struct yaml_node *value = build_next(b, depth, &end);
        if (value != NULL && n->kind == YAML_MAPPING) {
            key = value;
            value = build_next(b, depth, &end);
        }
        if (value == NULL) {
            return end;
        }
        if (!append(b, key != NULL && is_merge_key(key) ? merges : n, key, value)) {
            return false;
        }
    }
}

static bool build_mapping(struct builder *b, struct yaml_node *n, int depth)
{
    struct yaml_node merges = {.kind = YAML_MAPPING};
    struct map *seen = map_new();
    bool ok = seen != NULL ? build_items(b, n, &merges, depth) : fail_memory(b);
    n->weight += merges.weight;
    n->height = merges.height > n->height ? merges.height : n->height;
    ok = ok && finish_mapping(b, n, &merges, seen);
    map_free(seen, NULL);
    return ok;
}

static const struct yaml_node *build_collection(struct builder *b, const yaml_event_t *start,
                                                enum yaml_kind kind, const yaml_char_t *tag,
                                                const yaml_char_t *anchor, int depth)
{
    struct yaml_node *n = new_node(b, start, kind);
    if (n == NULL || !check_depth(b, start->start_mark, depth)) {
        return NULL;
    }
    check_tag(n, tag);
    bool ok =
        kind == YAML_LIST ? build_items(b, n, NULL, depth + 1) : build_mapping(b, n, depth + 1);
    return ok && remember(b, anchor, n) ? n : NULL;
}

/* Builds the node that begins with this event. The depth of the recursion is limited by
 * CONFIG_DEPTH_MAX. */
static const struct yaml_node *build(struct builder *b, const yaml_event_t *event, int depth)
{
    switch ((int)event->type) {
    case YAML_SCALAR_EVENT:
        return build_scalar(b, event);
    case YAML_ALIAS_EVENT:
        return build_alias(b, event, depth);
    case YAML_SEQUENCE_START_EVENT:
        return build_collection(b, event, YAML_LIST, event->data.sequence_start.tag,
                                event->data.sequence_start.anchor, depth);
    case YAML_MAPPING_START_EVENT:
        return build_collection(b, event, YAML_MAPPING, event->data.mapping_start.tag,
                                event->data.mapping_start.anchor, depth);
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

/* Checks that the text is UTF-8. libyaml does so as well, but reports no position. */
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
    /* The byte order mark is removed, because libyaml would count it as a column. */
    text = utf8_without_mark(text);
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
    for (size_t i = 0; i < n->n_items; i++) {
        const struct yaml_node *name = n->items[i].key;
        if (name->kind == YAML_SCALAR && sv_eq_str(name->text, key)) {
            return n->items[i].value;
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
