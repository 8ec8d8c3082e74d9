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

/* The fewest slots of a table of pointers; a power of two. */
#define SLOTS_MIN ((size_t)256)
#define OFFSET_TEXT_MAX 24
/* The bytes of a line in nearly all profiles, with its head. */
#define LINE_BYTES ((size_t)9)
/* The most bytes of a line, with its head. */
#define LINE_MAX ((size_t)2 + 2 * (1 + WIRE_NUMBER_MAX))
/* The bytes of the head of a message of fewer than 128 bytes. */
#define HEAD_BYTES ((size_t)2)
/* How many functions before their turn their strings are fetched, and the bytes of a cache line. */
#define AHEAD 8
#define CACHE_LINE ((size_t)64)
/* The bytes of an added function and of the heads of its strings: at most 80, and fewer of nearly
 * all. A buffer with too little room grows. */
#define ADDED_HEADS_MAX ((size_t)32)

/* A table that numbers pointers in the order in which they are added, by open addressing. It begins
 * with few slots, since most lines share their functions, and a small table stays in the cache. */
struct pointer_map {
    struct scratch *scratch;
    const void **keys; /* by number; with room for all pointers that may be added */
    uint32_t *slots;   /* number + 1; 0: free */
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

/* The places of the strings of an added function. */
struct texts {
    uint64_t name;
    uint64_t system_name;
    uint64_t file;
};

/* An added function, by its number, and the file and line of its declaration. */
struct ordered {
    uint32_t key;
    uint32_t number;
};

struct writing {
    const struct symbol_profile *p;
    struct buf *out;
    struct buf message;           /* a message under way */
    size_t copied;                /* bytes of the profile that have been copied */
    uint64_t last_string;         /* of the profile before */
    struct pointer_map functions; /* added ones, in the order of their ids */
    struct pointer_map strings;   /* by the first byte of the text */
    struct texts *texts;          /* of added functions, in the same order */
    uint8_t *known;               /* by mapping: a set of enum known */
    bool failed;                  /* out of memory */
};

/* Makes an empty table for at most `max` pointers, with at least `slots` slots. Returns false if
 * out of memory. */
static bool pointer_map_init(struct pointer_map *m, struct scratch *s, size_t max, size_t slots)
{
    size_t size = SLOTS_MIN;
    while (size < slots) {
        size *= 2;
    }
    *m = (struct pointer_map){.scratch = s, .mask = size - 1};
    m->keys = scratch_array(s, max, sizeof(*m->keys));
    m->slots = scratch_zeroed(s, size, sizeof(*m->slots));
    return m->keys != NULL && m->slots != NULL;
}

/* Returns the slot of a pointer, or the free one where it belongs. */
static inline uint32_t *pointer_slot_of(const struct pointer_map *m, const void *key)
{
    size_t i = (size_t)(((uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15)) >> 24) & m->mask;
    while (m->slots[i] != 0 && m->keys[m->slots[i] - 1] != key) {
        i = (i + 1) & m->mask;
    }
    return &m->slots[i];
}

/* Doubles the slots. If out of memory, the map stays as it is, and can be full. */
static void pointer_map_grow(struct pointer_map *m)
{
    struct pointer_map larger = *m;
    larger.mask = 2 * m->mask + 1;
    larger.slots = scratch_zeroed(m->scratch, larger.mask + 1, sizeof(*larger.slots));
    if (larger.slots == NULL) {
        return;
    }
    for (size_t i = 0; i < m->n; i++) {
        *pointer_slot_of(&larger, m->keys[i]) = (uint32_t)i + 1;
    }
    *m = larger;
}

/* Returns the slot with the number of a pointer, which is added if it is new: then its number is
 * the last one. Returns NULL if out of memory. */
static inline const uint32_t *pointer_map_add(struct pointer_map *m, const void *key)
{
    uint32_t *slot = pointer_slot_of(m, key);
    if (*slot == 0) {
        if (2 * m->n > m->mask) {
            pointer_map_grow(m);
            slot = pointer_slot_of(m, key);
        }
        if (m->n >= m->mask) {
            return NULL; /* a free slot must remain */
        }
        m->keys[m->n++] = key;
        *slot = (uint32_t)m->n;
    }
    return slot;
}

/* ---- functions and strings ------------------------------------------------------------------- */

/* Returns the i-th added function. */
static const struct symbol_function *added_function(const struct writing *w, size_t i)
{
    return w->functions.keys[i];
}

/* Adds a function that no other location has. Returns its id. */
static uint64_t add_function(struct writing *w, const struct symbol_function *f)
{
    w->functions.keys[w->functions.n++] = f;
    return w->p->max_function + w->functions.n;
}

/* Returns the id of a function, which is added if it is new. */
static inline uint64_t id_of_function(struct writing *w, const struct symbol_function *f)
{
    size_t before = w->functions.n;
    const uint32_t *number = pointer_map_add(&w->functions, f);
    if (number == NULL) {
        w->failed = true;
        return 0;
    }
    if (*number > before) {
        __builtin_prefetch(f); /* put_files() reads it */
    }
    return w->p->max_function + *number;
}

static uint64_t put_string(struct writing *w, struct sv text)
{
    if (text.n == 0) {
        return 0;
    }
    size_t before = w->strings.n;
    const uint32_t *number = pointer_map_add(&w->strings, text.p);
    if (number == NULL) {
        w->failed = true;
        return 0;
    }
    if (*number > before) {
        wire_put_bytes(w->out, PROFILE_STRING, text.p, text.n);
    }
    return w->last_string + *number;
}

/* Appends the fields of a function as one piece, since most have four or five. */
static void put_function(struct writing *w, size_t i)
{
    const struct texts *t = &w->texts[i];
    const uint64_t v[FUNCTION_START_LINE + 1] = {
        [FUNCTION_ID] = w->p->max_function + 1 + i,
        [FUNCTION_NAME] = t->name,
        [FUNCTION_SYSTEM_NAME] = t->system_name,
        [FUNCTION_FILENAME] = t->file,
        [FUNCTION_START_LINE] = added_function(w, i)->start_line,
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

/* Brings the texts of a function into the cache. Always inline, since GCC removes calls of a
 * function that only prefetches. */
static inline __attribute__((always_inline)) void fetch_texts(const struct symbol_function *f)
{
    for (size_t at = 0; at < f->name.n; at += CACHE_LINE) {
        __builtin_prefetch(f->name.p + at);
    }
    for (size_t at = 0; at < f->system_name.n; at += CACHE_LINE) {
        __builtin_prefetch(f->system_name.p + at);
    }
}

/* Appends the files of the added functions. Returns the bytes that the functions and their other
 * strings take at most. */
static size_t put_files(struct writing *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->functions.n; i++) {
        const struct symbol_function *f = added_function(w, i);
        w->texts[i].file = put_string(w, f->file);
        n += f->name.n + f->system_name.n + ADDED_HEADS_MAX;
    }
    return n;
}

/* Returns the bits of a number, or the largest number of so many bits if it has more. */
static uint32_t at_most_bits(uint64_t value, unsigned bits)
{
    uint64_t most = (UINT64_C(1) << bits) - 1;
    return (uint32_t)(value < most ? value : most);
}

/* Sorts by eight bits of the key, and keeps the order of equal ones. Returns the sorted array, and
 * leaves the other one for the next pass. */
static struct ordered *sort_by_digit(struct ordered *from, struct ordered *to, size_t n,
                                     unsigned shift)
{
    size_t starts[257] = {0};
    for (size_t i = 0; i < n; i++) {
        starts[(from[i].key >> shift & 0xff) + 1]++;
    }
    if (starts[(from[0].key >> shift & 0xff) + 1] == n) {
        return from;
    }
    for (size_t digit = 1; digit < 256; digit++) {
        starts[digit] += starts[digit - 1];
    }
    for (size_t i = 0; i < n; i++) {
        to[starts[from[i].key >> shift & 0xff]++] = from[i];
    }
    return to;
}

/* Sorts the added functions by their files and lines. order: in their order, with room for twice as
 * many. Returns the sorted array. */
static const struct ordered *sort_added(const struct writing *w, struct ordered *order)
{
    size_t n = w->functions.n;
    struct ordered *from = order;
    struct ordered *to = order + n;
    for (size_t i = 0; i < n; i++) {
        uint64_t file = w->texts[i].file == 0 ? 0 : w->texts[i].file - w->last_string;
        from[i].key =
            at_most_bits(file, 16) << 16 | at_most_bits(added_function(w, i)->start_line, 16);
        from[i].number = (uint32_t)i;
    }
    for (unsigned shift = 0; shift < 32; shift += 8) {
        struct ordered *sorted = sort_by_digit(from, to, n, shift);
        to = sorted == to ? from : to;
        from = sorted;
    }
    return from;
}

/* Appends the names of the added functions. */
static void put_names(struct writing *w, const struct ordered *order)
{
    for (size_t i = 0; i < w->functions.n; i++) {
        const struct symbol_function *f = added_function(w, order[i].number);
        struct texts *t = &w->texts[order[i].number];
        if (i + AHEAD < w->functions.n) {
            fetch_texts(added_function(w, order[i + AHEAD].number));
        }
        t->name = put_string(w, f->name);
        t->system_name = put_string(w, f->system_name);
    }
}

/* Appends the strings of the added functions, and then the functions: entries of a kind compress
 * better next to each other. Names are sorted by place, because functions on the same or
 * neighbouring lines are often instances of one template, and their names long and alike. Returns
 * false if out of memory. */
static bool put_added(struct writing *w)
{
    struct scratch *s = w->p->scratch;
    size_t n = w->functions.n;
    if (n == 0) {
        return true;
    }
    w->texts = scratch_array(s, n, sizeof(*w->texts));
    struct ordered *order = scratch_array(s, 2 * n, sizeof(*order));
    if (w->texts == NULL || order == NULL || !pointer_map_init(&w->strings, s, 3 * n, 4 * n)) {
        return false;
    }
    size_t rest = put_files(w);
    buf_reserve(w->out, w->out->len + rest);
    put_names(w, sort_added(w, order));
    for (size_t i = 0; i < n; i++) {
        put_function(w, i);
    }
    return true;
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

/* Encodes a number like wire_encode(), without a branch if it takes one or two bytes: which of the
 * two it takes cannot be predicted. Two bytes are written in any case. */
static inline unsigned char *encode_short(unsigned char *at, uint64_t value)
{
    if (value >= 1 << 14) {
        return at + wire_encode(value, at);
    }
    unsigned more = value >= 1 << 7;
    at[0] = (unsigned char)((value & 0x7f) | more << 7);
    at[1] = (unsigned char)(value >> 7);
    return at + 1 + more;
}

/* Encodes a field with a Line message. Returns the byte after it. */
static inline unsigned char *encode_line(unsigned char *begin, uint64_t function, uint64_t line)
{
    unsigned char *at = begin + HEAD_BYTES;
    *at++ = LINE_FUNCTION_ID << 3 | WIRE_VARINT;
    at = encode_short(at, function);
    if (line != 0) {
        *at++ = LINE_LINE << 3 | WIRE_VARINT;
        at = encode_short(at, line);
    }
    begin[0] = LOCATION_LINE << 3 | WIRE_BYTES;
    begin[1] = (unsigned char)(at - begin - (ptrdiff_t)HEAD_BYTES);
    return at;
}

/* Encodes the lines of a location. Returns the byte after them. */
static unsigned char *encode_lines(struct writing *w, const struct symbol_location *l,
                                   unsigned char *at)
{
    for (size_t i = 0; i < l->n_lines; i++) {
        at = encode_line(at, id_of_function(w, l->lines[i].function), l->lines[i].line);
    }
    return l->n_lines > 0 ? at : encode_line(at, id_of_unknown(w, l), 0);
}

/* Appends a location: the fields that it has, and its lines. */
static void put_location(struct writing *w, const struct symbol_location *l, struct sv fields)
{
    size_t most = WIRE_HEAD_MAX + fields.n + (l->n_lines + (size_t)1) * LINE_MAX;
    unsigned char *begin = (unsigned char *)buf_room(w->out, w->out->len + most);
    if (begin == NULL) {
        return;
    }
    /* Nearly all heads are short. A longer one moves the content. */
    unsigned char *content = begin + HEAD_BYTES;
    unsigned char *end = encode_lines(w, l, mempcpy(content, fields.p, fields.n));
    unsigned char head[WIRE_HEAD_MAX];
    size_t size = (size_t)(end - content);
    size_t n = wire_encode_head(PROFILE_LOCATION, size, head);
    if (n != HEAD_BYTES) {
        memmove(begin + n, content, size);
    }
    memcpy(begin, head, n);
    buf_wrote(w->out, n + size);
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
            unsigned has = l->known;
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
    for (size_t i = 0; i < w->p->n_locations; i++) {
        size_t n = w->p->locations[i].n_lines;
        lines += n > 0 ? n : 1;
    }
    w->known = scratch_array(s, w->p->n_mappings + 1, 1);
    *ret_lines = lines;
    return w->known != NULL && pointer_map_init(&w->functions, s, lines, lines / 2);
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
    return put_added(w) && !w->failed;
}

uint8_t symbol_lines_known(const struct symbol_line *lines, size_t n)
{
    unsigned known = n > 0 ? KNOWN_BY_ALL : 0;
    for (size_t i = 0; i < n; i++) {
        known &= lines[i].function->file.n > 0 ? ~0U : ~(unsigned)KNOWN_FILES;
        known &= lines[i].line != 0 ? ~0U : ~(unsigned)KNOWN_LINES;
    }
    return (uint8_t)(known | (n > 1 ? (unsigned)KNOWN_INLINES : 0));
}

bool symbol_profile_write(const struct symbol_profile *p, struct buf *out, struct err *err)
{
    struct writing w = {
        .p = p,
        .out = out,
        .last_string = p->n_strings > 0 ? p->n_strings - 1 : 0,
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
