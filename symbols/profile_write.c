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

#define OFFSET_TEXT_MAX 24

/* A table from a pointer to a number, by open addressing. */
struct pointer_map {
    const void **keys;
    uint64_t *values;
    size_t mask;
};

/* Facts about the locations of a mapping: bits in the order of the mapping's fields. */
enum known {
    KNOWN_FUNCTIONS = 1,
    KNOWN_FILES = 2,
    KNOWN_LINES = 4,
    KNOWN_INLINES = 8,
    KNOWN_BY_ALL = KNOWN_FUNCTIONS | KNOWN_FILES | KNOWN_LINES,
};

struct writing {
    const struct symbol_profile *p;
    struct buf *out;
    struct buf added;   /* fields of new functions and strings */
    struct buf message; /* a message under way */
    size_t copied;      /* bytes of the profile that have been copied */
    uint64_t next_string;
    uint64_t next_function;
    struct pointer_map functions;
    struct pointer_map strings; /* by the first byte of the text */
    uint8_t *known;             /* by mapping: a set of enum known */
    bool failed;                /* out of memory */
};

static bool pointer_map_init(struct pointer_map *m, struct scratch *s, size_t max)
{
    size_t size = 16;
    while (size < 2 * max) {
        size *= 2;
    }
    m->mask = size - 1;
    m->keys = scratch_zeroed(s, size, sizeof(*m->keys));
    m->values = scratch_array(s, size, sizeof(*m->values));
    return m->keys != NULL && m->values != NULL;
}

/* Returns the place of a pointer, which is not NULL; *ret_found: it had a value before. */
static uint64_t *pointer_map_at(struct pointer_map *m, const void *key, bool *ret_found)
{
    size_t i = (size_t)(((uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15)) >> 24) & m->mask;
    while (m->keys[i] != NULL && m->keys[i] != key) {
        i = (i + 1) & m->mask;
    }
    *ret_found = m->keys[i] != NULL;
    m->keys[i] = key;
    return &m->values[i];
}

static uint64_t put_string(struct writing *w, struct sv text)
{
    bool found;
    if (text.n == 0) {
        return 0;
    }
    uint64_t *value = pointer_map_at(&w->strings, text.p, &found);
    if (!found) {
        wire_put_bytes(&w->added, PROFILE_STRING, text.p, text.n);
        *value = w->next_string++;
    }
    return *value;
}

/* Appends the fields of a function as one piece, since most have four or five. */
static void put_function_fields(struct writing *w, const uint64_t v[FUNCTION_START_LINE + 1])
{
    unsigned char bytes[(FUNCTION_START_LINE + 1) * WIRE_HEAD_MAX];
    size_t n = 0;
    for (unsigned field = FUNCTION_ID; field <= FUNCTION_START_LINE; field++) {
        if (v[field] != 0) {
            n += wire_encode((uint64_t)field << 3 | WIRE_VARINT, bytes + n);
            n += wire_encode(v[field], bytes + n);
        }
    }
    wire_put_bytes(&w->added, PROFILE_FUNCTION, bytes, n);
}

static uint64_t put_function(struct writing *w, const struct symbol_function *f)
{
    bool found;
    uint64_t *value = pointer_map_at(&w->functions, f, &found);
    if (!found) {
        *value = w->next_function++;
        const uint64_t v[FUNCTION_START_LINE + 1] = {
            [FUNCTION_ID] = *value,
            [FUNCTION_NAME] = put_string(w, f->name),
            [FUNCTION_SYSTEM_NAME] = put_string(w, f->system_name),
            [FUNCTION_FILENAME] = put_string(w, f->file),
            [FUNCTION_START_LINE] = f->start_line,
        };
        put_function_fields(w, v);
    }
    return *value;
}

/* Appends a new function with a name alone. */
static uint64_t put_name(struct writing *w, const char *text, size_t n)
{
    const uint64_t v[FUNCTION_START_LINE + 1] = {
        [FUNCTION_ID] = w->next_function++, [FUNCTION_NAME] = w->next_string++};
    wire_put_bytes(&w->added, PROFILE_STRING, text, n);
    put_function_fields(w, v);
    return v[FUNCTION_ID];
}

static void put_line(struct writing *w, uint64_t function, uint64_t line)
{
    unsigned char bytes[2 * WIRE_HEAD_MAX];
    size_t n = wire_encode(LINE_FUNCTION_ID << 3 | WIRE_VARINT, bytes);
    n += wire_encode(function, bytes + n);
    if (line != 0) {
        n += wire_encode(LINE_LINE << 3 | WIRE_VARINT, bytes + n);
        n += wire_encode(line, bytes + n);
    }
    wire_put_bytes(&w->message, LOCATION_LINE, bytes, n);
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

/* Returns the function that stands for an unknown address. */
static uint64_t put_unknown(struct writing *w, const struct symbol_location *l)
{
    static const struct symbol_function unknown = {.name = {"[unknown]", 9}};
    const struct symbol_binary *m =
        l->mapping == SYMBOL_NO_MAPPING ? NULL : &w->p->mappings[l->mapping];
    struct sv file = m == NULL ? SV("") : base_name(m->file);
    if (file.n == 0) {
        return put_function(w, &unknown);
    }
    char offset[OFFSET_TEXT_MAX];
    int n = snprintf(offset, sizeof(offset), "!0x%" PRIx64, symbol_file_offset(m, l->address));
    char *text = scratch_array(w->p->scratch, file.n + OFFSET_TEXT_MAX, 1);
    if (text == NULL) {
        w->failed = true;
        return 1;
    }
    memcpy(text, file.p, file.n);
    memcpy(text + file.n, offset, (size_t)n);
    return put_name(w, text, file.n + (size_t)n);
}

/* ---- locations and mappings ------------------------------------------------------------------ */

/* Copies the profile up to a byte, and continues with another byte after it. */
static void copy_until(struct writing *w, size_t until, size_t next)
{
    buf_append(w->out, w->p->plain.p + w->copied, until - w->copied);
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

static void write_location(struct writing *w, const struct symbol_location *l)
{
    struct sv message = {w->p->plain.p + l->old.at, l->old.n};
    if (l->n_lines == 0 && l->old.is_marked) {
        return; /* it stays as it is */
    }
    copy_until(w, l->old.field_at, l->old.at + l->old.n);
    buf_clear(&w->message);
    if (l->old.has_lines) {
        copy_fields(w, message, LOCATION_LINE, LOCATION_LINE);
    } else {
        buf_append(&w->message, message.p, message.n);
    }
    for (size_t i = 0; i < l->n_lines; i++) {
        put_line(w, put_function(w, l->lines[i].function), l->lines[i].line);
    }
    if (l->n_lines == 0) {
        put_line(w, put_unknown(w, l), 0);
    }
    wire_put_bytes(w->out, PROFILE_LOCATION, w->message.data, w->message.len);
}

static void write_mapping(struct writing *w, size_t field_at, struct sv message, unsigned known)
{
    uint64_t v[MAPPING_LAST + 1] = {0};
    wire_read_numbers(message, v, MAPPING_LAST + 1);
    copy_until(w, field_at, (size_t)(message.p + message.n - w->p->plain.p));
    buf_clear(&w->message);
    copy_fields(w, message, MAPPING_HAS_FUNCTIONS, MAPPING_HAS_INLINE_FRAMES);
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

static void write_all_fields(struct writing *w)
{
    struct wire_reader r = wire_reader_of(w->p->plain);
    struct wire_field f = {.number = 0};
    size_t location = 0;
    size_t mapping = 0;
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_LOCATION && location < w->p->n_locations &&
            w->p->locations[location].old.field_at == r.field_start) {
            write_location(w, &w->p->locations[location]);
            location++;
        } else if (f.number == PROFILE_MAPPING) {
            const struct symbol_binary *m = &w->p->mappings[mapping];
            if (m->unnamed > 0 && (w->known[mapping] & KNOWN_FUNCTIONS) != 0) {
                write_mapping(w, r.field_start, f.bytes, w->known[mapping]);
            }
            mapping++;
        }
    }
    copy_until(w, w->p->plain.n, w->p->plain.n);
    buf_append(w->out, w->added.data, w->added.len);
}

/* Returns false if out of memory. */
static bool make_room(struct writing *w)
{
    size_t lines = 1;
    for (size_t i = 0; i < w->p->n_locations; i++) {
        lines += w->p->locations[i].n_lines;
    }
    w->known = scratch_array(w->p->scratch, w->p->n_mappings + 1, 1);
    return w->known != NULL && pointer_map_init(&w->functions, w->p->scratch, lines) &&
           pointer_map_init(&w->strings, w->p->scratch, 3 * lines);
}

bool symbol_profile_write(const struct symbol_profile *p, struct buf *out, struct err *err)
{
    struct writing w = {
        .p = p,
        .out = out,
        .next_string = p->n_strings > 0 ? p->n_strings : 1,
        .next_function = p->max_function + 1,
    };
    if (p->n_locations == 0) {
        buf_append(out, p->plain.p, p->plain.n);
        return buf_ok(out) || err_memory(err);
    }
    buf_init(&w.added, out->max);
    buf_init(&w.message, out->max);
    bool ok = make_room(&w);
    if (ok) {
        if (p->n_strings == 0) {
            wire_put_bytes(&w.added, PROFILE_STRING, "", 0);
        }
        buf_reserve(out, p->plain.n + p->plain.n / 2);
        note_all(&w);
        write_all_fields(&w);
        ok = !w.failed && buf_ok(out) && buf_ok(&w.added) && buf_ok(&w.message);
    }
    bool full = buf_too_big(out) || buf_too_big(&w.added);
    buf_done(&w.added);
    buf_done(&w.message);
    if (full) {
        return err_set(err, ERR_LIMIT, "more than %zu bytes with names", out->max);
    }
    return ok || err_memory(err);
}
