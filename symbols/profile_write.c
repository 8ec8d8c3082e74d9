/* Writes a profile with names. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pprof/put.h"
#include "symbols/profile.h"

/* The fields of a mapping that say what is known of its locations. */
enum {
    MAPPING_HAS_FUNCTIONS = 7,
    MAPPING_HAS_FILENAMES = 8,
    MAPPING_HAS_LINE_NUMBERS = 9,
    MAPPING_HAS_INLINE_FRAMES = 10,
};

/* The first slots of a table of pointers; a power of two. */
#define SLOTS_MIN ((size_t)256)
#define OFFSET_TEXT_MAX 24
/* The bytes of a line in nearly all profiles, with its head. */
#define LINE_BYTES ((size_t)9)
/* The bytes of an added function and of the heads of its strings: at most 80, and fewer of nearly
 * all. A buffer with too little room grows. */
#define ADDED_HEADS_MAX ((size_t)32)

struct pointer_slot {
    const void *key; /* NULL: free */
    uint64_t value;
};

/* A table from a pointer to a number, by open addressing. It grows from a few slots, since most
 * lines share their functions, and a small table stays in the cache. */
struct pointer_map {
    struct scratch *scratch;
    struct pointer_slot *slots;
    size_t mask;
    size_t n;
};

/* Facts about the locations of a mapping: bits in the order of the mapping's fields. */
enum known {
    KNOWN_FUNCTIONS = 1,
    KNOWN_FILES = 2,
    KNOWN_LINES = 4,
    KNOWN_INLINES = 8,
    KNOWN_BY_ALL = KNOWN_FUNCTIONS | KNOWN_FILES | KNOWN_LINES,
};

/* A new function of the profile, and the places of its strings. */
struct added_function {
    const struct symbol_function *function;
    uint64_t name;
    uint64_t system_name;
    uint64_t file;
};

struct writing {
    const struct symbol_profile *p;
    struct buf *out;
    struct buf message; /* a message under way */
    size_t copied;      /* bytes of the profile that have been copied */
    uint64_t next_string;
    struct pointer_map functions; /* places in `added` */
    struct pointer_map strings;   /* by the first byte of the text */
    struct added_function *added; /* in the order of their ids */
    size_t n_added;
    uint64_t *ids;  /* the functions of the lines of one location */
    uint8_t *known; /* by mapping: a set of enum known */
    bool failed;    /* out of memory */
};

static bool pointer_map_init(struct pointer_map *m, struct scratch *s, size_t size)
{
    *m = (struct pointer_map){.scratch = s, .mask = size - 1};
    m->slots = scratch_zeroed(s, size, sizeof(*m->slots));
    return m->slots != NULL;
}

/* Returns the slot of a pointer, or the free one where it belongs. */
static inline struct pointer_slot *pointer_slot_of(const struct pointer_map *m, const void *key)
{
    size_t i = (size_t)(((uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15)) >> 24) & m->mask;
    while (m->slots[i].key != NULL && m->slots[i].key != key) {
        i = (i + 1) & m->mask;
    }
    return &m->slots[i];
}

/* Doubles the slots. If out of memory, the map stays as it is, and can be full. */
static void pointer_map_grow(struct pointer_map *m)
{
    struct pointer_map larger;
    if (!pointer_map_init(&larger, m->scratch, 2 * (m->mask + 1))) {
        return;
    }
    for (size_t i = 0; i <= m->mask; i++) {
        if (m->slots[i].key != NULL) {
            *pointer_slot_of(&larger, m->slots[i].key) = m->slots[i];
        }
    }
    larger.n = m->n;
    *m = larger;
}

/* Returns the place of the number of a pointer, which is not NULL; *ret_found: it had one before.
 * Returns NULL if out of memory. */
static inline uint64_t *pointer_map_at(struct pointer_map *m, const void *key, bool *ret_found)
{
    struct pointer_slot *slot = pointer_slot_of(m, key);
    *ret_found = slot->key != NULL;
    if (slot->key == NULL) {
        if (2 * m->n > m->mask) {
            pointer_map_grow(m);
            slot = pointer_slot_of(m, key);
        }
        if (m->n == m->mask) {
            return NULL; /* a free slot must remain */
        }
        slot->key = key;
        m->n++;
    }
    return &slot->value;
}

/* ---- functions and strings ------------------------------------------------------------------- */

/* Adds a function. Returns its id. */
static uint64_t add_function(struct writing *w, const struct symbol_function *f)
{
    w->added[w->n_added++] = (struct added_function){.function = f};
    return w->p->max_function + w->n_added;
}

/* Returns the id of a function, which is added if it is new. */
static uint64_t id_of_function(struct writing *w, const struct symbol_function *f)
{
    bool found;
    uint64_t *id = pointer_map_at(&w->functions, f, &found);
    if (id == NULL) {
        w->failed = true;
        return 0;
    }
    if (!found) {
        *id = add_function(w, f);
    }
    return *id;
}

static uint64_t put_string(struct writing *w, struct sv text)
{
    bool found;
    if (text.n == 0) {
        return 0;
    }
    uint64_t *value = pointer_map_at(&w->strings, text.p, &found);
    if (value == NULL) {
        w->failed = true;
        return 0;
    }
    if (!found) {
        wire_put_bytes(w->out, PROFILE_STRING, text.p, text.n);
        *value = w->next_string++;
    }
    return *value;
}

/* Appends the fields of a function as one piece, since most have four or five. */
static void put_function(struct writing *w, const struct added_function *f, uint64_t id)
{
    const uint64_t v[FUNCTION_START_LINE + 1] = {
        [FUNCTION_ID] = id,
        [FUNCTION_NAME] = f->name,
        [FUNCTION_SYSTEM_NAME] = f->system_name,
        [FUNCTION_FILENAME] = f->file,
        [FUNCTION_START_LINE] = f->function->start_line,
    };
    unsigned char bytes[(FUNCTION_START_LINE + 1) * WIRE_HEAD_MAX];
    size_t n = 0;
    for (unsigned field = FUNCTION_ID; field <= FUNCTION_START_LINE; field++) {
        if (v[field] != 0) {
            n += wire_encode_number(field, v[field], bytes + n);
        }
    }
    wire_put_bytes(w->out, PROFILE_FUNCTION, bytes, n);
}

/* Returns the bytes that the added functions and their strings take at most. */
static size_t size_of_added(const struct writing *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n_added; i++) {
        const struct symbol_function *f = w->added[i].function;
        n += f->name.n + f->system_name.n + f->file.n + ADDED_HEADS_MAX;
    }
    return n;
}

/* Appends the strings of the added functions, and then the functions: entries of a kind compress
 * better next to each other. */
static void put_added(struct writing *w)
{
    buf_reserve(w->out, w->out->len + size_of_added(w));
    for (size_t i = 0; i < w->n_added; i++) {
        struct added_function *f = &w->added[i];
        f->name = put_string(w, f->function->name);
        f->system_name = put_string(w, f->function->system_name);
        f->file = put_string(w, f->function->file);
    }
    for (size_t i = 0; i < w->n_added; i++) {
        put_function(w, &w->added[i], w->p->max_function + 1 + i);
    }
}

/* ---- unknown addresses ----------------------------------------------------------------------- */

static struct sv base_name(struct sv path)
{
    size_t n = path.n;
    while (n > 0 && path.p[n - 1] != '/') {
        n--;
    }
    return (struct sv){path.p + n, path.n - n};
}

/* Returns the id of the function that stands for an unknown address. */
static uint64_t id_of_unknown(struct writing *w, const struct symbol_location *l)
{
    static const struct symbol_function unknown = {.name = {"[unknown]", 9}};
    const struct symbol_binary *m =
        l->mapping == SYMBOL_NO_MAPPING ? NULL : &w->p->mappings[l->mapping];
    struct sv file = m == NULL ? SV("") : base_name(m->file);
    if (file.n == 0) {
        return id_of_function(w, &unknown);
    }
    char offset[OFFSET_TEXT_MAX];
    int n = snprintf(offset, sizeof(offset), "!0x%" PRIx64, symbol_file_offset(m, l->address));
    struct symbol_function *f = scratch_array(w->p->scratch, 1, sizeof(*f));
    char *text = scratch_array(w->p->scratch, file.n + OFFSET_TEXT_MAX, 1);
    if (f == NULL || text == NULL) {
        w->failed = true;
        return id_of_function(w, &unknown);
    }
    memcpy(text, file.p, file.n);
    memcpy(text + file.n, offset, (size_t)n);
    *f = (struct symbol_function){.name = {text, file.n + (size_t)n}};
    return add_function(w, f);
}

/* ---- locations and mappings ------------------------------------------------------------------ */

/* Copies the profile up to a byte, and continues with another byte after it. */
static void copy_until(struct writing *w, size_t until, size_t next)
{
    if (until > w->copied) {
        buf_append(w->out, w->p->plain.p + w->copied, until - w->copied);
    }
    w->copied = next;
}

/* Returns what the lines of a location have: a set of enum known. */
static unsigned known_of(const struct symbol_location *l)
{
    unsigned known = l->n_lines > 0 ? KNOWN_BY_ALL : 0;
    for (size_t i = 0; i < l->n_lines; i++) {
        known &= l->lines[i].function->file.n > 0 ? ~0U : ~(unsigned)KNOWN_FILES;
        known &= l->lines[i].line != 0 ? ~0U : ~(unsigned)KNOWN_LINES;
    }
    return known | (l->n_lines > 1 ? (unsigned)KNOWN_INLINES : 0);
}

/* Copies the fields of a message to w->message, except those with these numbers. */
static void copy_fields(struct writing *w, struct sv message, unsigned but_from, unsigned but_to)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number < but_from || f.number > but_to) {
            buf_append(&w->message, message.p + r.field_start, r.at - r.field_start);
        }
    }
}

/* Sets w->ids to the functions of the lines of a location. Returns the number of its lines. */
static size_t find_functions(struct writing *w, const struct symbol_location *l)
{
    for (size_t i = 0; i < l->n_lines; i++) {
        w->ids[i] = id_of_function(w, l->lines[i].function);
    }
    if (l->n_lines == 0) {
        w->ids[0] = id_of_unknown(w, l);
    }
    return l->n_lines > 0 ? l->n_lines : 1;
}

/* Returns the line of the i-th frame of a location; 0: unknown. */
static uint64_t line_of(const struct symbol_location *l, size_t i)
{
    return i < l->n_lines ? l->lines[i].line : 0;
}

/* Returns the size of a Line message. */
static size_t line_size(uint64_t function, uint64_t line)
{
    return 1 + wire_number_size(function) + (line != 0 ? 1 + wire_number_size(line) : 0);
}

/* Encodes a field with a Line message. Returns the byte after it. */
static unsigned char *encode_line(unsigned char *at, uint64_t function, uint64_t line)
{
    at += wire_encode_head(LOCATION_LINE, line_size(function, line), at);
    *at++ = LINE_FUNCTION_ID << 3 | WIRE_VARINT;
    at += wire_encode(function, at);
    if (line != 0) {
        *at++ = LINE_LINE << 3 | WIRE_VARINT;
        at += wire_encode(line, at);
    }
    return at;
}

/* Appends a location: the fields that it has, and its lines. */
static void put_location(struct writing *w, const struct symbol_location *l, struct sv fields)
{
    size_t n = find_functions(w, l);
    size_t size = fields.n;
    for (size_t i = 0; i < n; i++) {
        size += wire_bytes_size(line_size(w->ids[i], line_of(l, i)));
    }
    unsigned char *begin = (unsigned char *)buf_room(w->out, w->out->len + WIRE_HEAD_MAX + size);
    if (begin == NULL) {
        return;
    }
    unsigned char *at = begin + wire_encode_head(PROFILE_LOCATION, size, begin);
    at = mempcpy(at, fields.p, fields.n);
    for (size_t i = 0; i < n; i++) {
        at = encode_line(at, w->ids[i], line_of(l, i));
    }
    buf_wrote(w->out, (size_t)(at - begin));
}

static void write_location(struct writing *w, const struct symbol_location *l)
{
    struct sv fields = {w->p->plain.p + l->old.at, l->old.n};
    if (l->n_lines == 0 && l->old.is_marked) {
        return; /* it stays as it is */
    }
    copy_until(w, l->old.field_at, l->old.at + l->old.n);
    if (l->old.has_lines) {
        buf_clear(&w->message);
        copy_fields(w, fields, LOCATION_LINE, LOCATION_LINE);
        w->failed = w->failed || !buf_ok(&w->message);
        fields = (struct sv){w->message.data, w->message.len};
    }
    put_location(w, l, fields);
}

/* Writes the flags of a mapping if the names of its locations change them. */
static void write_mapping(struct writing *w, const struct symbol_binary *m, unsigned known)
{
    struct sv message = {w->p->plain.p + m->old.at, m->old.n};
    uint64_t v[MAPPING_LAST + 1] = {0};
    if (m->unnamed == 0 || (known & KNOWN_FUNCTIONS) == 0) {
        return; /* it stays as it is */
    }
    wire_read_numbers(message, v, MAPPING_LAST + 1);
    copy_until(w, m->old.field_at, m->old.at + m->old.n);
    buf_clear(&w->message);
    copy_fields(w, message, MAPPING_HAS_FUNCTIONS, MAPPING_HAS_INLINE_FRAMES);
    w->failed = w->failed || !buf_ok(&w->message);
    for (unsigned i = 0; i <= MAPPING_LAST - MAPPING_HAS_FUNCTIONS; i++) {
        if (v[MAPPING_HAS_FUNCTIONS + i] != 0 || (known & 1U << i) != 0) {
            wire_put_number(&w->message, MAPPING_HAS_FUNCTIONS + i, 1);
        }
    }
    wire_put_bytes(w->out, PROFILE_MAPPING, w->message.data, w->message.len);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Mappings often stand before the locations, so what their locations have is computed first. */
static void note_all(struct writing *w)
{
    memset(w->known, KNOWN_BY_ALL, w->p->n_mappings + 1);
    for (size_t i = 0; i < w->p->n_locations; i++) {
        const struct symbol_location *l = &w->p->locations[i];
        if (l->mapping != SYMBOL_NO_MAPPING) {
            unsigned has = known_of(l);
            unsigned before = w->known[l->mapping];
            w->known[l->mapping] =
                (uint8_t)((before & has & KNOWN_BY_ALL) | ((before | has) & KNOWN_INLINES));
        }
    }
}

/* Writes the mappings from *at on that begin before a byte of the profile. */
static void write_mappings(struct writing *w, size_t *at, size_t before)
{
    for (; *at < w->p->n_mappings && w->p->mappings[*at].old.field_at < before; (*at)++) {
        write_mapping(w, &w->p->mappings[*at], w->known[*at]);
    }
}

/* Copies the profile; mappings and locations that change are written in their places. */
static void write_all_fields(struct writing *w)
{
    size_t mapping = 0;
    for (size_t i = 0; i < w->p->n_locations; i++) {
        write_mappings(w, &mapping, w->p->locations[i].old.field_at);
        write_location(w, &w->p->locations[i]);
    }
    write_mappings(w, &mapping, w->p->plain.n);
    copy_until(w, w->p->plain.n, w->p->plain.n);
}

/* Makes the tables for the lines, whose number is *ret_lines. Returns false if out of memory. */
static bool make_room(struct writing *w, size_t *ret_lines)
{
    struct scratch *s = w->p->scratch;
    size_t lines = 0;
    size_t most = 1;
    for (size_t i = 0; i < w->p->n_locations; i++) {
        size_t n = w->p->locations[i].n_lines;
        lines += n > 0 ? n : 1;
        most = n > most ? n : most;
    }
    w->known = scratch_array(s, w->p->n_mappings + 1, 1);
    w->ids = scratch_array(s, most, sizeof(*w->ids));
    w->added = scratch_array(s, lines, sizeof(*w->added));
    *ret_lines = lines;
    return w->known != NULL && w->ids != NULL && w->added != NULL &&
           pointer_map_init(&w->functions, s, SLOTS_MIN);
}

static bool write_all(struct writing *w)
{
    size_t lines;
    if (!make_room(w, &lines)) {
        return false;
    }
    buf_reserve(w->out, w->out->len + w->p->plain.n + LINE_BYTES * lines);
    note_all(w);
    write_all_fields(w);
    if (w->p->n_strings == 0) {
        wire_put_bytes(w->out, PROFILE_STRING, "", 0);
    }
    if (!pointer_map_init(&w->strings, w->p->scratch, SLOTS_MIN)) {
        return false;
    }
    put_added(w);
    return !w->failed;
}

bool symbol_profile_write(const struct symbol_profile *p, struct buf *out, struct err *err)
{
    struct writing w = {
        .p = p,
        .out = out,
        .next_string = p->n_strings > 0 ? p->n_strings : 1,
    };
    if (p->n_locations == 0) {
        buf_append(out, p->plain.p, p->plain.n);
        return buf_ok(out) || err_memory(err);
    }
    buf_init(&w.message, out->max);
    bool ok = write_all(&w) && buf_ok(out) && buf_ok(&w.message);
    buf_done(&w.message);
    if (buf_too_big(out)) {
        return err_set(err, ERR_LIMIT, "more than %zu bytes with names", out->max);
    }
    return ok || err_memory(err);
}
