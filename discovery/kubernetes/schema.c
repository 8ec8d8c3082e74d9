#include "discovery/kubernetes/schema.h"

#include <string.h>

#include "base/utf8.h"
#include "pprof/wire.h"

struct reader {
    struct arena *arena;
    enum discovery_skip skip; /* why the object cannot be read; SKIP_NONE: it can */
};

struct arena *schema_arena_new(void)
{
    /* Space for the padding of an allocation that reaches the limit. */
    return arena_new(SCHEMA_BYTES_MAX + 64);
}

/* ---- places ---------------------------------------------------------------------------------- */

static void *take(struct reader *r, size_t size)
{
    bool fits = arena_used(r->arena) + size <= SCHEMA_BYTES_MAX;
    void *p = fits ? arena_alloc(r->arena, size) : NULL;
    if (p == NULL) {
        r->skip = fits ? SKIP_MEMORY : SKIP_TOO_LARGE;
    }
    return p;
}

/* Appends an element to a list. On failure it returns NULL and sets r->skip. */
static void *append(struct reader *r, void *list, size_t size)
{
    struct schema_list *l = list;
    void *element = take(r, size);
    if (element == NULL) {
        return NULL;
    }
    if (l->last == NULL) {
        l->first = element;
    } else {
        *(void **)l->last = element;
    }
    l->last = element;
    return element;
}

static bool append_text(struct reader *r, void *list, struct sv text)
{
    struct schema_text *t = append(r, list, sizeof(*t));
    if (t != NULL) {
        t->text = text;
    }
    return t != NULL;
}

static bool append_pair(struct reader *r, void *list, struct sv name, struct sv value)
{
    struct schema_pair *p = append(r, list, sizeof(*p));
    if (p != NULL) {
        p->name = name;
        p->value = value;
    }
    return p != NULL;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static bool read_json(struct reader *r, const struct schema_row *rows, const json_t *object,
                      char *at);

static struct sv text_of(const json_t *string)
{
    return json_is_string(string)
               ? (struct sv){json_string_value(string), json_string_length(string)}
               : SV("");
}

static bool read_json_texts(struct reader *r, const json_t *array, void *list)
{
    bool ok = true;
    for (size_t i = 0; i < json_array_size(array) && ok; i++) {
        ok = append_text(r, list, text_of(json_array_get(array, i)));
    }
    return ok;
}

static bool read_json_pairs(struct reader *r, const json_t *object, void *list)
{
    bool ok = true;
    /* jansson's iteration needs a mutable object, which it does not change */
    json_t *map = (json_t *)(uintptr_t)object;
    for (void *it = json_object_iter(map); it != NULL && ok; it = json_object_iter_next(map, it)) {
        const json_t *value = json_object_iter_value(it);
        struct sv name = {json_object_iter_key(it), json_object_iter_key_len(it)};
        ok = !json_is_string(value) || append_pair(r, list, name, text_of(value));
    }
    return ok;
}

static bool read_json_list(struct reader *r, const struct schema_row *row, const json_t *array,
                           void *list)
{
    bool ok = true;
    for (size_t i = 0; i < json_array_size(array) && ok; i++) {
        char *element = append(r, list, row->size);
        ok = element != NULL && read_json(r, row->members, json_array_get(array, i), element);
    }
    return ok;
}

/* Reads a value into its place. */
static bool read_json_value(struct reader *r, const struct schema_row *row, const json_t *value,
                            char *at)
{
    void *place = at + row->offset;
    switch (row->kind) {
    case SCHEMA_TEXT:
    case SCHEMA_MARK:
        *(struct sv *)place = text_of(value);
        return true;
    case SCHEMA_NUMBER:
        *(struct schema_number *)place =
            (struct schema_number){!json_is_null(value), json_integer_value(value)};
        return true;
    case SCHEMA_FLAG:
        *(enum schema_flag *)place = json_is_true(value)    ? FLAG_TRUE
                                     : json_is_false(value) ? FLAG_FALSE
                                                            : FLAG_UNSET;
        return true;
    case SCHEMA_NOTED:
        *(bool *)place = json_is_object(value);
        return read_json(r, row->members, value, at);
    case SCHEMA_PART:
        return read_json(r, row->members, value, at);
    case SCHEMA_TEXTS:
        return read_json_texts(r, value, place);
    case SCHEMA_PAIRS:
        return read_json_pairs(r, value, place);
    case SCHEMA_LIST:
        return read_json_list(r, row, value, place);
    case SCHEMA_KEPT:
        break;
    }
    return true;
}

static bool read_json(struct reader *r, const struct schema_row *rows, const json_t *object,
                      char *at)
{
    bool ok = true;
    for (const struct schema_row *row = rows; row->name != NULL && ok; row++) {
        const json_t *value = json_object_get(object, row->name);
        ok = value == NULL || row->name[0] == '\0' || read_json_value(r, row, value, at);
    }
    return ok;
}

enum discovery_skip schema_read_json(const struct schema_row *rows, const json_t *object,
                                     struct arena *arena, void *ret)
{
    struct reader r = {.arena = arena, .skip = SKIP_NONE};
    (void)read_json(&r, rows, object, ret);
    return r.skip;
}

/* ---- protobuf -------------------------------------------------------------------------------- */

static bool read_wire(struct reader *r, const struct schema_row *rows, struct sv message, char *at);

static bool refuse(struct reader *r)
{
    r->skip = SKIP_SYNTAX;
    return false;
}

static bool read_text(struct reader *r, struct sv text, struct sv *ret)
{
    *ret = text;
    if (utf8_valid(text)) {
        return true;
    }
    struct buf repaired;
    buf_init(&repaired, 3 * text.n); /* a byte becomes at most three */
    char *copy = utf8_repair(text, &repaired) ? take(r, repaired.len) : NULL;
    if (copy != NULL) {
        memcpy(copy, repaired.data, repaired.len);
        *ret = (struct sv){copy, repaired.len};
    } else if (r->skip == SKIP_NONE) {
        r->skip = SKIP_MEMORY;
    }
    buf_done(&repaired);
    return copy != NULL;
}

/* Reads an entry of a map: a message with the name and the value. */
static bool read_pair(struct reader *r, struct sv entry, void *list)
{
    static const struct schema_row rows[] = {
        SCHEMA_MEMBER("", 1, TEXT, struct schema_pair, name),
        SCHEMA_MEMBER("", 2, TEXT, struct schema_pair, value),
        SCHEMA_END,
    };
    struct schema_pair pair = {.name = SV(""), .value = SV("")};
    return read_wire(r, rows, entry, (char *)&pair) && append_pair(r, list, pair.name, pair.value);
}

static bool read_wire_value(struct reader *r, const struct schema_row *row,
                            const struct wire_field *f, char *at)
{
    void *place = at + row->offset;
    struct sv text;
    void *element;
    switch (row->kind) {
    case SCHEMA_TEXT:
    case SCHEMA_MARK:
        return read_text(r, f->bytes, place);
    case SCHEMA_NUMBER:
        *(struct schema_number *)place = (struct schema_number){true, (int64_t)f->value};
        return true;
    case SCHEMA_FLAG:
        *(enum schema_flag *)place = f->value != 0 ? FLAG_TRUE : FLAG_FALSE;
        return true;
    case SCHEMA_NOTED:
        *(bool *)place = true;
        return read_wire(r, row->members, f->bytes, at);
    case SCHEMA_PART:
        return read_wire(r, row->members, f->bytes, at);
    case SCHEMA_TEXTS:
        return read_text(r, f->bytes, &text) && append_text(r, place, text);
    case SCHEMA_PAIRS:
        return read_pair(r, f->bytes, place);
    case SCHEMA_LIST:
        element = append(r, place, row->size);
        return element != NULL && read_wire(r, row->members, f->bytes, element);
    case SCHEMA_KEPT:
        break;
    }
    return true;
}

/* Returns the row of a field; NULL if the field is not read. */
static const struct schema_row *find(const struct schema_row *rows, uint64_t number)
{
    for (const struct schema_row *row = rows; row->name != NULL; row++) {
        if (row->number == number) {
            return row;
        }
    }
    return NULL;
}

static bool read_wire(struct reader *r, const struct schema_row *rows, struct sv message, char *at)
{
    struct wire_reader in = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    while (wire_next(&in, &f)) {
        const struct schema_row *row = find(rows, f.number);
        if (row == NULL) {
            continue;
        }
        bool is_varint = row->kind == SCHEMA_NUMBER || row->kind == SCHEMA_FLAG;
        if (f.type != (is_varint ? WIRE_VARINT : WIRE_BYTES)) {
            return refuse(r);
        }
        if (!read_wire_value(r, row, &f, at)) {
            return false;
        }
    }
    return in.problem == NULL || refuse(r);
}

enum discovery_skip schema_read_wire(const struct schema_row *rows, struct sv message,
                                     struct arena *arena, void *ret)
{
    struct reader r = {.arena = arena, .skip = SKIP_NONE};
    (void)read_wire(&r, rows, message, ret);
    return r.skip;
}

/* ---- content --------------------------------------------------------------------------------- */

static uint64_t hash_rows(const struct schema_row *rows, const char *at, uint64_t hash);

static uint64_t hash_number(uint64_t number, uint64_t hash)
{
    return hash_bytes(&number, sizeof(number), hash);
}

static uint64_t hash_list(const struct schema_row *row, const struct schema_list *list,
                          uint64_t hash)
{
    static const struct schema_row text[] = {
        SCHEMA_MEMBER("", 0, TEXT, struct schema_text, text),
        SCHEMA_END,
    };
    static const struct schema_row pair[] = {
        SCHEMA_MEMBER("", 0, TEXT, struct schema_pair, name),
        SCHEMA_MEMBER("", 0, TEXT, struct schema_pair, value),
        SCHEMA_END,
    };
    const struct schema_row *rows = row->kind == SCHEMA_TEXTS   ? text
                                    : row->kind == SCHEMA_PAIRS ? pair
                                                                : row->members;
    uint64_t n = 0;
    for (const char *element = list->first; element != NULL;
         element = *(void *const *)(const void *)element) {
        hash = hash_rows(rows, element, hash);
        n++;
    }
    return hash_number(n, hash);
}

static uint64_t hash_row(const struct schema_row *row, const char *at, uint64_t hash)
{
    const void *place = at + row->offset;
    const struct sv *text = place;
    const struct schema_number *number = place;
    switch (row->kind) {
    case SCHEMA_TEXT:
        return hash_bytes(text->p, text->n, hash);
    case SCHEMA_NUMBER:
        return hash_number((uint64_t)number->value, hash + (number->given ? 1 : 0));
    case SCHEMA_FLAG:
        return hash_number(*(const enum schema_flag *)place, hash);
    case SCHEMA_NOTED:
        return hash_rows(row->members, at, hash + (*(const bool *)place ? 1 : 0));
    case SCHEMA_PART:
        return hash_rows(row->members, at, hash);
    case SCHEMA_TEXTS:
    case SCHEMA_PAIRS:
    case SCHEMA_LIST:
        return hash_list(row, place, hash);
    case SCHEMA_MARK:
    case SCHEMA_KEPT:
        break;
    }
    return hash;
}

static uint64_t hash_rows(const struct schema_row *rows, const char *at, uint64_t hash)
{
    for (const struct schema_row *row = rows; row->name != NULL; row++) {
        hash = hash_row(row, at, hash);
    }
    return hash;
}

uint64_t schema_hash(const struct schema_row *rows, const void *object)
{
    uint64_t hash = hash_rows(rows, object, 0);
    return hash == 0 ? 1 : hash;
}
