/* The kinds of values: how a text, a number, a duration, ... is read and written. */
#include <string.h>

#include "base/utf8.h"
#include "config/content.h"
#include "config/dump.h"
#include "config/expand.h"
#include "config/schema.h"

/* Longest text with its environment variables filled in. */
#define TEXT_MAX (1 << 20)

const struct text_kind text_any = {.expected = "a string"};
const struct text_kind text_nonempty = {.expected = "a string that is not empty", .min = 1};
const struct text_kind text_secret = {.expected = "a secret text", .secret = true};
const struct text_kind text_file_name = {.expected = "a file name", .min = 1, .file_name = true};
const struct text_kind text_content = {
    .expected = "a file name", .min = 1, .file_name = true, .content = true};

/* A scalar that is being read. */
struct scalar {
    struct sv text;
    bool plain; /* the scalar has no quotes, so it may be something other than a string */
};

static void wrong(struct reader *r, const struct place *at, const char *expected, bool secret)
{
    reader_error(r, at, "expected %s, got %s", expected,
                 secret ? yaml_what(at->node) : reader_got(r, at->node));
}

/* Reports a wrong text. If variables were expanded, the message shows the result, which differs
 * from the file. */
static void wrong_text(struct reader *r, const struct place *at, const char *expected,
                       const struct scalar *s)
{
    reader_error(r, at, "expected %s, got %s%s", expected, s->plain ? "" : "the string ",
                 reader_quote(r, s->text));
}

static bool fill_in(struct reader *r, const struct place *at, struct scalar *s)
{
    struct buf b;
    struct err err = ERR_INIT;
    buf_init(&b, TEXT_MAX);
    bool ok = expand_env(s->text, r->options, &b, &err);
    if (!ok) {
        reader_error(r, at, "%s", err.msg);
    } else if (!utf8_valid((struct sv){b.data, b.len})) {
        reader_error(r, at, "not valid UTF-8 with its environment variables filled in");
        ok = false;
    } else {
        s->text.p = arena_strndup(r->scratch, b.data, b.len);
        s->text.n = b.len;
        s->plain = true;
        r->out_of_memory |= s->text.p == NULL;
        ok = s->text.p != NULL;
    }
    buf_done(&b);
    return ok;
}

/* Reads the scalar at a place and expands its environment variables; reports an error if there is
 * no scalar. */
static bool get_scalar(struct reader *r, const struct place *at, const struct text_kind *kind,
                       struct scalar *ret)
{
    const struct yaml_node *n = at->node;
    if (n->problem != NULL) {
        reader_error(r, at, "%s", n->problem);
        return false;
    }
    if (n->kind != YAML_SCALAR || yaml_is_null(n)) {
        wrong(r, at, kind->expected, kind->secret);
        return false;
    }
    ret->text = n->text;
    ret->plain = n->plain;
    return kind->raw || n->literal || !expand_needed(n->text) || fill_in(r, at, ret);
}

/* Returns true if messages must not show this text. */
static bool hidden(const struct text_kind *kind, struct sv text)
{
    return kind->secret || (kind->url && (memchr(text.p, '@', text.n) != NULL ||
                                          memchr(text.p, '?', text.n) != NULL));
}

/* Returns the name of a content (content.h), and adds it to the configuration's list unless it is
 * there already. */
static const char *read_content(struct reader *r, const struct place *at, struct sv text)
{
    struct content_name name;
    if (!content_name_parse(text, &name)) {
        reader_error(r, at,
                     "expected a file name, kubernetes:secret/NAMESPACE/NAME/KEY or "
                     "kubernetes:configmap/NAMESPACE/NAME/KEY, got %s",
                     reader_quote(r, text));
        return NULL;
    }
    for (size_t i = 0; i < r->n_contents; i++) {
        if (sv_eq_str(text, r->contents[i])) {
            return r->contents[i];
        }
    }
    if (r->n_contents == CONFIG_CONTENTS_MAX) {
        reader_error(r, at, "a configuration names at most %d values of Secrets and ConfigMaps",
                     CONFIG_CONTENTS_MAX);
        return NULL;
    }
    if (r->contents == NULL) {
        r->contents = reader_alloc(r, CONFIG_CONTENTS_MAX, sizeof(*r->contents));
    }
    const char *copy = r->contents != NULL ? reader_strndup(r, text.p, text.n) : NULL;
    if (copy != NULL) {
        r->contents[r->n_contents++] = copy;
    }
    return copy;
}

const char *reader_text(struct reader *r, const struct place *at, const struct text_kind *kind)
{
    struct scalar s;
    if (!get_scalar(r, at, kind, &s)) {
        return NULL;
    }
    if (!text_ok(kind, s.text)) {
        if (hidden(kind, s.text)) {
            reader_error(r, at, "expected %s", kind->expected);
        } else {
            reader_error(r, at, "expected %s, got %s", kind->expected, reader_quote(r, s.text));
        }
        return NULL;
    }
    if (kind->content && content_is_named(s.text)) {
        return read_content(r, at, s.text);
    }
    if (!kind->file_name || s.text.p[0] == '/') {
        return reader_strndup(r, s.text.p, s.text.n);
    }
    const char *joined = arena_printf(r->arena, "%s%s", r->directory, s.text.p);
    r->out_of_memory |= joined == NULL;
    return joined;
}

static void read_text(struct reader *r, const struct place *at, const void *arg, void *out)
{
    const char *text = reader_text(r, at, arg == NULL ? &text_any : arg);
    if (text != NULL) {
        *(const char **)out = text;
    }
}

static bool is_yaml_11_bool(struct sv v)
{
    static const char *const words[] = {"yes",  "no",    "on",  "off", "y",  "n",   "true", "false",
                                        "True", "False", "Yes", "No",  "On", "Off", "TRUE", "FALSE",
                                        "YES",  "NO",    "ON",  "OFF", "Y",  "N"};
    return sv_in(v, words, sizeof(words) / sizeof(words[0]));
}

static void read_bool(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    static const struct text_kind kind = {.expected = "true or false"};
    struct scalar s;
    if (!get_scalar(r, at, &kind, &s)) {
        return;
    }
    bool is_true = sv_eq_str(s.text, "true");
    if (s.plain && (is_true || sv_eq_str(s.text, "false"))) {
        *(bool *)out = is_true;
    } else if (s.plain && is_yaml_11_bool(s.text)) {
        reader_error(r, at, "expected true or false, got %s (only these two words are understood)",
                     reader_quote(r, s.text));
    } else {
        wrong_text(r, at, kind.expected, &s);
    }
}

static unsigned digit_of(char c)
{
    if (c >= '0' && c <= '9') {
        return (unsigned)(c - '0');
    }
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? (unsigned)(lower - 'a') + 10 : 99;
}

static bool parse_digits(struct sv v, unsigned base, uint64_t max, uint64_t *ret)
{
    uint64_t value = 0;
    size_t digits = 0;
    for (size_t i = 0; i < v.n; i++) {
        unsigned digit = digit_of(v.p[i]);
        if (v.p[i] == '_') {
            continue;
        }
        if (digit >= base || value > (UINT64_MAX - digit) / base) {
            return false;
        }
        value = value * base + digit;
        digits++;
    }
    *ret = value;
    return digits > 0 && value <= max;
}

/* Parses a whole number as YAML 1.1 writes it and Prometheus reads it: 010 and 0o10 are 8, 0x10 is
 * 16, 0b10 is 2, underscores do not count. 08 is 8, since its digits are not octal. */
static bool parse_integer(struct sv v, uint64_t max, uint64_t *ret)
{
    static const struct {
        const char *prefix;
        unsigned base;
    } rows[] = {{"0x", 16}, {"0X", 16}, {"0b", 2}, {"0o", 8}, {"0", 8}, {"", 10}};
    v = sv_starts_with(v, SV("+")) ? sv_skip(v, 1) : v;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && !sv_starts_with(v, SV("_")); i++) {
        struct sv prefix = sv_from(rows[i].prefix);
        if (sv_starts_with(v, prefix) &&
            parse_digits(sv_skip(v, prefix.n), rows[i].base, max, ret)) {
            return true;
        }
    }
    return false;
}

static bool get_number(struct reader *r, const struct place *at, const struct range *range,
                       uint64_t *ret)
{
    struct text_kind kind = {.expected = "a whole number"};
    if (range->max != UINT64_MAX) {
        const char *with_range =
            arena_printf(r->scratch, "a whole number from %llu to %llu",
                         (unsigned long long)range->min, (unsigned long long)range->max);
        kind.expected = with_range == NULL ? kind.expected : with_range;
    }
    struct scalar s;
    if (!get_scalar(r, at, &kind, &s)) {
        return false;
    }
    uint64_t value;
    if (!s.plain || !parse_integer(s.text, range->max, &value) || value < range->min) {
        wrong_text(r, at, kind.expected, &s);
        return false;
    }
    *ret = value;
    return true;
}

static void read_number(struct reader *r, const struct place *at, const void *arg, void *out)
{
    get_number(r, at, arg, out);
}

static void read_unsigned(struct reader *r, const struct place *at, const void *arg, void *out)
{
    uint64_t value;
    if (get_number(r, at, arg, &value)) {
        *(unsigned *)out = (unsigned)value;
    }
}

static void format_quantity(bool is_size, uint64_t value, char *out, size_t size)
{
    if (is_size) {
        format_size(value, out, size);
    } else {
        format_duration_ms((int64_t)value, out, size);
    }
}

/* Reads a size in bytes, or a duration in milliseconds. */
static void read_quantity(struct reader *r, const struct place *at, bool is_size,
                          const struct range *range, uint64_t *ret)
{
    const struct text_kind kind = {.expected = is_size ? "a size such as \"16MiB\""
                                                       : "a duration such as \"15s\""};
    struct scalar s;
    uint64_t value;
    if (!get_scalar(r, at, &kind, &s)) {
        return;
    }
    bool ok = is_size ? parse_size(s.text, &value, NULL)
                      : parse_duration_ms(s.text, (int64_t *)&value, NULL);
    if (!ok) {
        reader_error(r, at, "expected %s, got %s", kind.expected, reader_quote(r, s.text));
    } else if (value < range->min || value > range->max) {
        char min[32];
        char max[32];
        format_quantity(is_size, range->min, min, sizeof(min));
        format_quantity(is_size, range->max, max, sizeof(max));
        reader_error(r, at, "expected a %s from %s to %s, got %s", is_size ? "size" : "duration",
                     min, max, reader_quote(r, s.text));
    } else {
        *ret = value;
    }
}

static void read_duration(struct reader *r, const struct place *at, const void *arg, void *out)
{
    read_quantity(r, at, false, arg, out);
}

static void read_size(struct reader *r, const struct place *at, const void *arg, void *out)
{
    read_quantity(r, at, true, arg, out);
}

const char *choice_name(const struct choices *c, unsigned value)
{
    if (value >= c->n) {
        return "unknown";
    }
    return c->names[value] == NULL ? "" : c->names[value];
}

bool choice_find(const struct choices *c, struct sv name, unsigned *ret_value)
{
    for (size_t i = 0; i < c->n; i++) {
        if (c->names[i] != NULL && sv_eq_str(name, c->names[i])) {
            *ret_value = (unsigned)i;
            return true;
        }
    }
    return false;
}

static void read_choice(struct reader *r, const struct place *at, const void *arg, void *out)
{
    const struct choices *choices = arg;
    struct text_kind kind = {.expected = reader_join(r, choices->names, choices->n, "\"", " or ")};
    struct scalar s;
    unsigned value;
    if (!get_scalar(r, at, &kind, &s)) {
        return;
    }
    if (choice_find(choices, s.text, &value)) {
        memcpy(out, &value, sizeof(value));
    } else {
        reader_error(r, at, "expected %s, got %s", kind.expected, reader_quote(r, s.text));
    }
}

static void read_strings(struct reader *r, const struct place *at, const void *arg, void *out)
{
    read_list(r, at, sizeof(const char *), read_text, arg, out);
}

static void read_mapping(struct reader *r, const struct place *at, const void *arg, void *out)
{
    schema_read(r, at, arg, out);
}

static void read_element(struct reader *r, const struct place *at, const void *arg, void *out)
{
    schema_defaults(arg, out);
    schema_read(r, at, arg, out);
}

static void read_elements(struct reader *r, const struct place *at, const void *arg, void *out)
{
    const struct schema *s = arg;
    read_list(r, at, s->size, read_element, s, out);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* The arrays of config_pair and of http_header are both read and written as strings: names and
 * values in turn. */
_Static_assert(sizeof(struct config_pair) == 2 * sizeof(const char *), "a name and a value");
_Static_assert(sizeof(struct http_header) == sizeof(struct config_pair), "a name and a value");

/* Pairs that are being read, and the name of the next ones. */
struct pair_list {
    const struct pairs_kind *kind;
    const char *name;
    const char **at; /* name, value, name, value, ... */
    size_t n;
};

static void read_value(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    struct pair_list *list = out;
    const char *value = reader_text(r, at, list->kind->value);
    if (value != NULL && list->name != NULL) {
        list->at[2 * list->n] = list->name;
        list->at[2 * list->n + 1] = value;
        list->n++;
    }
}

static void read_values(struct reader *r, const struct place *at, const void *arg, void *out)
{
    if (!reader_enter(r, at, YAML_LIST)) {
        return;
    }
    for (size_t i = 0; i < at->node->n_items; i++) {
        struct place element = place_of_element(at, i);
        read_value(r, &element, arg, out);
    }
}

static const struct kind kind_values = {.read = read_values};

/* Prometheus' long form of a header. */
static const struct field header_rows[] = {
    PART("values", &kind_values),
    PART("secrets", &kind_values),
    PART("files", &kind_later),
};
static const struct schema schema_header = SCHEMA(header_rows, 0);

/* Returns an upper bound for the number of pairs: each element of a list counts as one. */
static size_t count_pairs(const struct yaml_node *n)
{
    size_t total = 0;
    for (size_t i = 0; i < n->n_items; i++) {
        const struct yaml_node *value = n->items[i].value;
        total += value->kind == YAML_SCALAR ? 1 : value->weight;
    }
    return total;
}

static const char *pair_name(struct reader *r, const struct place *at, const struct yaml_node *key,
                             const struct pairs_kind *kind)
{
    struct place place = {.parent = at->parent, .key = at->key, .node = key};
    const char *problem;
    if (kind->check != NULL && !kind->check(key->text, &problem)) {
        reader_error(r, &place, "%s", problem);
        return NULL;
    }
    if (!text_ok(kind->name, key->text)) {
        reader_error(r, &place, "expected %s, got %s", kind->name->expected,
                     reader_quote(r, key->text));
        return NULL;
    }
    return reader_strndup(r, key->text.p, key->text.n);
}

static void read_pairs(struct reader *r, const struct place *at, const void *arg, void *out)
{
    const struct pairs_kind *kind = arg;
    struct pair_list list = {.kind = kind};
    if (!reader_enter(r, at, YAML_MAPPING)) {
        return;
    }
    list.at = reader_alloc(r, count_pairs(at->node), sizeof(struct config_pair));
    if (list.at == NULL) {
        return;
    }
    for (size_t n = 0; n < at->node->n_items; n++) {
        const struct yaml_item *i = &at->node->items[n];
        struct place child = {.parent = at, .key = i->key->text.p, .node = i->value};
        if (i->key->kind != YAML_SCALAR) {
            continue; /* reported already */
        }
        list.name = pair_name(r, &child, i->key, kind);
        if (kind->lists && i->value->kind == YAML_LIST) {
            read_values(r, &child, NULL, &list);
        } else if (kind->headers && i->value->kind == YAML_MAPPING) {
            schema_read(r, &child, &schema_header, &list);
        } else {
            read_value(r, &child, NULL, &list);
        }
    }
    memcpy(out, &(struct array){list.at, list.n}, sizeof(struct array));
}

/* Writes pairs. All values of one name are adjacent in the array. */
static void write_pairs(struct dumper *d, const char *key, const void *arg, const void *value)
{
    const struct pairs_kind *kind = arg;
    struct array array;
    memcpy(&array, value, sizeof(array));
    const char *const *at = array.at;
    if (array.n == 0) {
        return;
    }
    dump_begin_mapping(d, key);
    for (size_t i = 0; i < array.n; i++) {
        const char *name = at[2 * i];
        if (i == 0 || !kind->lists || strcmp(name, at[2 * i - 2]) != 0) {
            dump_name(d, name);
            if (kind->lists) {
                dump_begin_list(d, NULL, true);
            }
        }
        bool hidden = kind->is_hidden != NULL &&
                      kind->is_hidden(sv_from(name), dump_config(d)->global.mask_all_params);
        dump_text(d, NULL, hidden ? &text_secret : kind->value, at[2 * i + 1]);
        if (kind->lists && (i + 1 == array.n || strcmp(name, at[2 * i + 2]) != 0)) {
            dump_end_list(d);
        }
    }
    dump_end_mapping(d);
}

static void read_later(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    (void)out;
    reader_error(r, at, "%s is not supported yet", at->key);
}

void read_nothing(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)r;
    (void)at;
    (void)arg;
    (void)out;
}

/* ---- writing --------------------------------------------------------------------------------- */

void write_text(struct dumper *d, const char *key, const void *arg, const void *value)
{
    const char *text = *(const char *const *)value;
    if (text != NULL) {
        dump_text(d, key, arg == NULL ? &text_any : arg, text);
    }
}

static void write_bool(struct dumper *d, const char *key, const void *arg, const void *value)
{
    (void)arg;
    dump_word(d, key, *(const bool *)value ? "true" : "false");
}

static void write_number(struct dumper *d, const char *key, const void *arg, const void *value)
{
    (void)arg;
    dump_number(d, key, *(const uint64_t *)value);
}

void write_unsigned(struct dumper *d, const char *key, const void *arg, const void *value)
{
    (void)arg;
    dump_number(d, key, *(const unsigned *)value);
}

static void write_duration(struct dumper *d, const char *key, const void *arg, const void *value)
{
    (void)arg;
    dump_duration(d, key, *(const int64_t *)value);
}

static void write_size(struct dumper *d, const char *key, const void *arg, const void *value)
{
    (void)arg;
    char text[32];
    format_size(*(const uint64_t *)value, text, sizeof(text));
    dump_word(d, key, text);
}

static void write_choice(struct dumper *d, const char *key, const void *arg, const void *value)
{
    dump_word(d, key, choice_name(arg, *(const unsigned *)value));
}

static void write_strings(struct dumper *d, const char *key, const void *arg, const void *value)
{
    struct config_strings strings;
    memcpy(&strings, value, sizeof(strings));
    dump_begin_list(d, key, true);
    for (size_t i = 0; i < strings.n; i++) {
        dump_text(d, NULL, arg == NULL ? &text_any : arg, strings.at[i]);
    }
    dump_end_list(d);
}

static void write_mapping(struct dumper *d, const char *key, const void *arg, const void *value)
{
    dump_begin_mapping(d, key);
    schema_write(d, arg, value);
    dump_end_mapping(d);
}

/* Writes a list; an empty one is left out. */
void write_elements(struct dumper *d, const char *key, const void *arg, const void *value)
{
    const struct schema *s = arg;
    struct array array;
    memcpy(&array, value, sizeof(array));
    if (array.n > 0) {
        dump_begin_list(d, key, false);
        for (size_t i = 0; i < array.n; i++) {
            write_mapping(d, NULL, s, (const char *)array.at + i * s->size);
        }
        dump_end_list(d);
    }
}

/* Writes a list, even an empty one: a list whose key is missing may have a default. */
static void write_deferred(struct dumper *d, const char *key, const void *arg, const void *value)
{
    struct array array;
    memcpy(&array, value, sizeof(array));
    if (array.n == 0) {
        dump_begin_list(d, key, true);
        dump_end_list(d);
    } else {
        write_elements(d, key, arg, value);
    }
}

const struct kind kind_text = {read_text, write_text, .size = sizeof(const char *)};
const struct kind kind_bool = {read_bool, write_bool, .size = sizeof(bool)};
const struct kind kind_number = {read_number, write_number, .size = sizeof(uint64_t)};
const struct kind kind_unsigned = {read_unsigned, write_unsigned, .size = sizeof(unsigned)};
const struct kind kind_duration = {read_duration, write_duration, .size = sizeof(int64_t)};
const struct kind kind_size = {read_size, write_size, .size = sizeof(uint64_t)};
const struct kind kind_choice = {read_choice, write_choice, .size = sizeof(unsigned)};
const struct kind kind_strings = {read_strings, write_strings, .is_array = true};
const struct kind kind_pairs = {read_pairs, write_pairs, .is_array = true};
const struct kind kind_mapping = {read_mapping, write_mapping, .nests = true, .is_mapping = true};
const struct kind kind_list = {read_elements, write_elements, .is_array = true, .nests = true};
const struct kind kind_deferred = {read_nothing, write_deferred, .is_array = true, .nests = true};
const struct kind kind_later = {.read = read_later};
const struct kind kind_ignored = {.read = read_nothing};
