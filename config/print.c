#include "config/print.h"

#include <string.h>

#include "base/utf8.h"

#define INDENT 2
/* The longest text of a node, with its escapes. */
#define NODE_TEXT_MAX ((size_t)2 * 1024 * 1024)

struct printer {
    struct buf *out;
    const struct config_messages *messages;
};

/* ---- scalars --------------------------------------------------------------------------------- */

/* Returns true if YAML may contain this character unescaped: it is printable and does not end a
 * line. */
static bool is_printable(uint32_t rune)
{
    static const struct {
        uint32_t low;
        uint32_t high;
    } others[] = {{0, 0x1f}, {0x7f, 0x9f}, {0x2028, 0x2029}, {0xfeff, 0xfeff}, {0xfffe, 0xffff}};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (rune >= others[i].low && rune <= others[i].high) {
            return false;
        }
    }
    return true;
}

/* Appends a text. Characters that are not printable become escapes, or blanks if `escape` is
 * false. */
static void put_printable(struct sv v, bool escape, struct buf *out)
{
    while (v.n > 0) {
        uint32_t rune;
        size_t n = utf8_decode(v, &rune);
        if (n > 0 && is_printable(rune)) {
            buf_append(out, v.p, n);
        } else if (escape) {
            buf_printf(out, "\\u%04x", (unsigned)rune);
        } else {
            buf_putc(out, ' ');
        }
        v = sv_skip(v, n > 0 ? n : 1);
    }
}

/* Appends a text in quotes, so that YAML reads the same text, whatever it looks like. */
static void put_quoted(const struct yaml_node *n, struct buf *out)
{
    struct buf text;
    struct buf quoted;
    buf_init(&text, 2 * NODE_TEXT_MAX);
    buf_init(&quoted, 16 * NODE_TEXT_MAX);
    struct sv v = n->form.p != NULL ? n->form : n->text;
    for (size_t i = 0; i < v.n; i++) {
        bool variable = v.p[i] == '$' && i + 1 < v.n && v.p[i + 1] == '{';
        if (variable && n->form.p == NULL) {
            buf_putc(&text, '$');
        }
        buf_putc(&text, v.p[i]);
    }
    if (buf_ok(&text) && json_quote((struct sv){text.data, text.len}, &quoted)) {
        put_printable((struct sv){quoted.data, quoted.len}, true, out);
    } else {
        buf_append(out, NULL, out->max); /* marks the buffer as failed */
    }
    buf_done(&quoted);
    buf_done(&text);
}

/* Returns true if YAML reads this text unchanged without quotes, as it does for profpull's own
 * keys. */
static bool is_key_word(struct sv v)
{
    static const char *const special[] = {"y",   "n",    "yes",   "no",  "on",
                                          "off", "true", "false", "null"};
    bool word = v.n > 0 && !sv_in(v, special, sizeof(special) / sizeof(special[0]));
    for (size_t i = 0; word && i < v.n; i++) {
        word = (v.p[i] >= 'a' && v.p[i] <= 'z') || v.p[i] == '_' ||
               (i > 0 && v.p[i] >= '0' && v.p[i] <= '9');
    }
    return word;
}

static void put_key(const struct yaml_node *key, struct buf *out)
{
    if (is_key_word(key->text)) {
        buf_append(out, key->text.p, key->text.n);
    } else {
        put_quoted(key, out);
    }
}

/* ---- comments -------------------------------------------------------------------------------- */

/* Returns true if a message is about this element, or about a part of it. */
static bool concerns(const struct config_error *m, const char *path)
{
    size_t n = strlen(path);
    return n > 0 && strncmp(m->path, path, n) == 0 &&
           (m->path[n] == '\0' || m->path[n] == '.' || m->path[n] == ':' || m->path[n] == '[');
}

/* Returns true if a message is about any element of the lists of jobs and endpoints. */
static bool has_element(const struct yaml_node *root, const struct config_error *m)
{
    static const char *const lists[] = {"scrape_configs", "write"};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        const struct yaml_node *list = yaml_get(root, lists[i]);
        for (size_t k = 0; list != NULL && k < list->n_items; k++) {
            const char *path = list->items[k].value->path;
            if (path != NULL && concerns(m, path)) {
                return true;
            }
        }
    }
    return false;
}

static void put_message(const struct config_error *m, const char *kind, int indent, struct buf *out)
{
    struct buf text;
    buf_init(&text, NODE_TEXT_MAX);
    buf_printf(&text, "%s:%d:%d: %s%s%s%s", m->pos.file, m->pos.line, m->pos.column, kind, m->path,
               m->path[0] != '\0' ? ": " : "", m->message);
    buf_printf(out, "%*s# ", indent, "");
    /* The message may hold names and texts of the user, and a line break in them would end the
     * comment. */
    put_printable((struct sv){text.data, text.len}, false, out);
    buf_done(&text);
    buf_putc(out, '\n');
}

/* Prints the messages about the element with this path; if path is NULL, those about no element. */
static void put_messages(const struct printer *p, const struct yaml_node *root, const char *path,
                         int indent)
{
    const struct {
        const struct config_errors *list;
        const char *kind;
    } lists[] = {{p->messages->warnings, "warning: "}, {p->messages->notes, "note: "}};
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; lists[i].list != NULL && k < config_errors_count(lists[i].list); k++) {
            const struct config_error *m = config_errors_at(lists[i].list, k);
            if (path != NULL ? concerns(m, path) : !has_element(root, m)) {
                put_message(m, lists[i].kind, indent, p->out);
            }
        }
    }
}

/* ---- trees ----------------------------------------------------------------------------------- */

static bool is_short(const struct yaml_node *n)
{
    bool is = n->kind != YAML_SCALAR && n->n_items <= 4;
    for (size_t i = 0; is && i < n->n_items; i++) {
        const struct yaml_node *value = n->items[i].value;
        is = value->kind == YAML_SCALAR && value->text.n <= 40;
    }
    return is;
}

static void put_scalar(const struct yaml_node *n, struct buf *out)
{
    if (n->plain) {
        buf_append(out, n->text.p, n->text.n);
    } else {
        put_quoted(n, out);
    }
}

/* Prints a node on one line: {a: 1, b: 2} or [1, 2]. */
static void put_flow(const struct yaml_node *n, struct buf *out)
{
    bool mapping = n->kind == YAML_MAPPING;
    buf_putc(out, mapping ? '{' : '[');
    for (size_t i = 0; i < n->n_items; i++) {
        buf_puts(out, i > 0 ? ", " : "");
        if (mapping) {
            put_key(n->items[i].key, out);
            buf_puts(out, ": ");
        }
        put_scalar(n->items[i].value, out);
    }
    buf_putc(out, mapping ? '}' : ']');
}

static void put_node(const struct printer *p, const struct yaml_node *n, int indent);

/* Prints a value after its key or its dash. */
static void put_value(const struct printer *p, const struct yaml_node *n, int indent)
{
    if (n->kind == YAML_SCALAR || is_short(n)) {
        buf_putc(p->out, ' ');
        if (n->kind == YAML_SCALAR) {
            put_scalar(n, p->out);
        } else {
            put_flow(n, p->out);
        }
        buf_putc(p->out, '\n');
    } else {
        buf_putc(p->out, '\n');
        put_node(p, n, indent + INDENT);
    }
}

static void put_mapping(const struct printer *p, const struct yaml_node *n, int indent,
                        bool first_is_placed)
{
    for (size_t i = 0; i < n->n_items; i++) {
        if (i > 0 || !first_is_placed) {
            buf_printf(p->out, "%*s", indent, "");
        }
        put_key(n->items[i].key, p->out);
        buf_putc(p->out, ':');
        put_value(p, n->items[i].value, indent);
    }
}

static void put_element(const struct printer *p, const struct yaml_node *n, int indent)
{
    buf_printf(p->out, "%*s-", indent, "");
    if (n->kind == YAML_MAPPING && n->n_items > 0 && !is_short(n)) {
        buf_putc(p->out, ' ');
        put_mapping(p, n, indent + INDENT, true);
    } else {
        put_value(p, n, indent);
    }
}

static void put_node(const struct printer *p, const struct yaml_node *n, int indent)
{
    if (n->kind == YAML_MAPPING) {
        put_mapping(p, n, indent, false);
        return;
    }
    for (size_t i = 0; i < n->n_items; i++) {
        put_element(p, n->items[i].value, indent);
    }
}

/* Prints the jobs or the endpoints, each with its messages. */
static void put_elements(const struct printer *p, const struct yaml_node *root, const char *key)
{
    const struct yaml_node *list = yaml_get(root, key);
    const char *last = NULL;
    if (list == NULL) {
        return;
    }
    buf_printf(p->out, "%s%s:\n", p->out->len > 0 ? "\n" : "", key);
    for (size_t i = 0; i < list->n_items; i++) {
        const struct yaml_node *n = list->items[i].value;
        /* Several jobs can come from one component, whose messages are printed once. */
        if (n->path != NULL && (last == NULL || strcmp(last, n->path) != 0)) {
            put_messages(p, root, n->path, INDENT);
        }
        last = n->path;
        put_element(p, n, INDENT);
    }
}

bool config_print_tree(const struct yaml_node *root, const struct config_messages *messages,
                       struct buf *out)
{
    struct printer p = {.out = out, .messages = messages};
    put_messages(&p, root, NULL, 0);
    for (size_t i = 0; i < root->n_items; i++) {
        struct sv key = root->items[i].key->text;
        if (!sv_eq_str(key, "scrape_configs") && !sv_eq_str(key, "write")) {
            put_key(root->items[i].key, out);
            buf_putc(out, ':');
            put_value(&p, root->items[i].value, 0);
        }
    }
    put_elements(&p, root, "scrape_configs");
    put_elements(&p, root, "write");
    return buf_ok(out);
}
