/* Writes a profile with new samples, without the entries that these samples do not use. Ids and
 * indexes of strings do not change (an unused string becomes empty), so everything else is copied
 * unchanged, one kind after the other. Only strings that are not UTF-8 are repaired, because a
 * server refuses the whole profile for one. */
#include <string.h>

#include "base/utf8.h"
#include "pprof/delta_private.h"
#include "pprof/put.h"

/* Samples and entries are collected, and appended together when they have this many bytes. */
#define COLLECTED ((size_t)2048)
/* The bytes of a fixed-size copy, which replaces a shorter copy of variable size. The bytes after
 * the piece are copied with it and overwritten later. */
#define COPIED ((size_t)64)
/* The most bytes of an entry that is collected; most entries have fewer. */
#define SHORT_MAX ((size_t)127)

struct writer_out {
    struct pprof_index *x;
    struct buf *out;
    struct buf text;          /* the string that is repaired */
    unsigned char *collected; /* room for COLLECTED bytes and what is added last */
    size_t n_collected;       /* bytes of them */
};

/* ---- used entries ---------------------------------------------------------------------------- */

/* Marks strings, of which 0 is always used. */
static inline void use_strings(struct pprof_index *x, uint64_t a, uint64_t b, uint64_t c)
{
    bool *used = x->entries[PROFILE_STRING].used;
    used[a] = used[b] = used[c] = true;
}

static inline void use_function(struct pprof_index *x, uint64_t id)
{
    bool *used = x->entries[PROFILE_FUNCTION].used;
    size_t place;
    if (pprof_ids_find(&x->entries[PROFILE_FUNCTION].ids, id, &place) && !used[place]) {
        const struct pprof_function *f = &x->functions[place];
        used[place] = true;
        use_strings(x, f->name, f->system_name, f->file);
    }
}

static void use_mapping(struct pprof_index *x, uint64_t id)
{
    struct pprof_entries *e = &x->entries[PROFILE_MAPPING];
    uint64_t v[MAPPING_BUILD_ID + 1] = {0};
    size_t place;
    if (pprof_ids_find(&e->ids, id, &place) && !e->used[place]) {
        e->used[place] = true;
        wire_read_numbers(pprof_span_of(x, e->spans[place]), v, MAPPING_BUILD_ID + 1);
        use_strings(x, v[MAPPING_FILENAME], v[MAPPING_BUILD_ID], 0);
    }
}

/* Marks the functions of a location. */
static inline void use_lines(struct pprof_index *x, struct sv message)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number == LOCATION_LINE) {
            uint64_t v[LINE_FUNCTION_ID + 1] = {0};
            wire_read_numbers(f.bytes, v, LINE_FUNCTION_ID + 1);
            use_function(x, v[LINE_FUNCTION_ID]);
        }
    }
}

/* Marks what the marked locations refer to. */
static void use_of_locations(struct pprof_index *x)
{
    const struct pprof_entries *e = &x->entries[PROFILE_LOCATION];
    for (size_t i = 0; i < e->ids.n; i++) {
        if (e->used[i]) {
            use_mapping(x, x->locations[i].mapping);
            use_lines(x, pprof_span_of(x, e->spans[i]));
        }
    }
}

/* Marks the locations of a sample, packed or one number, but not yet the entries that they refer
 * to. The table is copied, since a mark may lie anywhere: after each one, the table itself would be
 * read again. */
static inline void use_locations(struct pprof_index *x, struct sv packed)
{
    const struct pprof_ids ids = x->entries[PROFILE_LOCATION].ids;
    bool *used = x->entries[PROFILE_LOCATION].used;
    const char *at = packed.p;
    const char *end = packed.p + packed.n;
    while (at < end) {
        struct wire_varint id = wire_varint(at, end);
        size_t place;
        if (pprof_ids_find(&ids, id.value, &place)) {
            used[place] = true;
        }
        at = id.next;
    }
}

static inline void use_label(struct pprof_index *x, struct sv message)
{
    uint64_t v[LABEL_NUM_UNIT + 1] = {0};
    wire_read_numbers(message, v, LABEL_NUM_UNIT + 1);
    use_strings(x, v[LABEL_KEY], v[LABEL_STR], v[LABEL_NUM_UNIT]);
}

/* Marks what a field of a sample refers to. */
static inline void use_field(struct pprof_index *x, const struct wire_field *f)
{
    if (f->number == SAMPLE_LOCATION_ID) {
        use_locations(x, f->bytes);
    } else if (f->number == SAMPLE_LABEL) {
        use_label(x, f->bytes);
    }
}

/* ---- samples --------------------------------------------------------------------------------- */

/* The pieces of a sample without its values, which are copied one after the other. */
struct parts {
    struct sv piece[2];
    bool others; /* there are more pieces */
};

/* Copies n bytes, and usually some bytes after them, for which there must be room. */
static inline unsigned char *put_piece(const struct writer_out *w, unsigned char *at,
                                       struct sv piece)
{
    if (piece.n > COPIED || w->x->plain.p + w->x->plain.n - piece.p < (ptrdiff_t)COPIED) {
        return mempcpy(at, piece.p, piece.n);
    }
    memcpy(at, piece.p, COPIED);
    return at + piece.n;
}

/* Divides a sample into parts and marks the entries that it refers to. Most writers write packed
 * values once, after the locations. In any other sample the second piece begins at its first
 * field. */
static struct parts take_apart(struct writer_out *w, struct sv message)
{
    const char *end = message.p + message.n;
    struct parts p = {.piece = {{.p = message.p, .n = 0}, {.p = message.p, .n = message.n}}};
    struct sv ids = wire_short_field(message.p, end, SAMPLE_LOCATION_ID);
    struct sv values = {.p = NULL, .n = 0};
    if (ids.p != NULL) {
        values = wire_short_field(ids.p + ids.n, end, SAMPLE_VALUE);
    }
    if (values.p != NULL) {
        const char *after = values.p + values.n;
        use_locations(w->x, ids);
        p.piece[0].n = (size_t)(ids.p + ids.n - message.p);
        p.piece[1] = (struct sv){.p = after, .n = (size_t)(end - after)};
    }
    struct wire_reader r = wire_reader_of(p.piece[1]);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        use_field(w->x, &f);
        p.others = p.others || f.number == SAMPLE_VALUE;
    }
    return p;
}

/* Copies a message without its values. Returns the end of the copy. */
static unsigned char *put_without_values(unsigned char *at, struct sv message)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number != SAMPLE_VALUE) {
            at = mempcpy(at, r.in.p + r.field_start, r.at - r.field_start);
        }
    }
    return at;
}

static size_t size_without_values(struct sv message)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    size_t n = 0;
    while (wire_next(&r, &f)) {
        n += f.number == SAMPLE_VALUE ? 0 : r.at - r.field_start;
    }
    return n;
}

/* Copies a sample with new values, which are written last. */
static void put_sample(struct writer_out *w, struct pprof_span sample, const int64_t *values)
{
    struct parts p = take_apart(w, pprof_span_of(w->x, sample));
    size_t types = w->x->summary.n[PROFILE_SAMPLE_TYPE];
    unsigned char *at = w->collected + w->n_collected;
    size_t n = 0;
    for (size_t i = 0; i < types; i++) {
        n += wire_number_size((uint64_t)values[i]);
    }
    size_t rest = p.others ? size_without_values(p.piece[1]) : p.piece[1].n;
    at += wire_encode_head(PROFILE_SAMPLE, p.piece[0].n + rest + wire_bytes_size(n), at);
    at = put_piece(w, at, p.piece[0]);
    at = p.others ? put_without_values(at, p.piece[1]) : put_piece(w, at, p.piece[1]);
    at += wire_encode_head(SAMPLE_VALUE, n, at);
    for (size_t i = 0; i < types; i++) {
        at += wire_encode((uint64_t)values[i], at);
    }
    w->n_collected = (size_t)(at - w->collected);
}

static void put_collected(struct writer_out *w)
{
    buf_append(w->out, w->collected, w->n_collected);
    w->n_collected = 0;
}

static void put_samples(struct writer_out *w, const struct delta_stacks *s)
{
    const struct pprof_span *spans = w->x->entries[PROFILE_SAMPLE].spans;
    size_t types = w->x->summary.n[PROFILE_SAMPLE_TYPE];
    for (size_t i = 0; i < s->n_moved; i++) {
        uint32_t row = s->moved[i];
        put_sample(w, spans[s->rows[row].sample], s->values + row * types);
        if (w->n_collected >= COLLECTED) {
            put_collected(w);
        }
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Copies the fields of the profile itself in these bytes of it, except for the duration. */
static void put_heads_of(struct writer_out *w, struct sv bytes)
{
    struct wire_reader r = wire_reader_of(bytes);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        bool is_entry = f.number >= PROFILE_SAMPLE && f.number <= PROFILE_STRING;
        if (!is_entry && f.number != PROFILE_DURATION_NANOS) {
            buf_append(w->out, bytes.p + r.field_start, r.at - r.field_start);
        }
    }
}

static void put_heads(struct writer_out *w)
{
    const struct pprof_index *x = w->x;
    if (x->n_heads > PPROF_HEADS_MAX) {
        put_heads_of(w, x->plain);
        return;
    }
    for (size_t i = 0; i < x->n_heads; i++) {
        put_heads_of(w, pprof_span_of(x, x->heads[i]));
    }
}

/* Writes an entry: collects it if it is short. */
static inline void put_entry(struct writer_out *w, unsigned field, struct sv bytes)
{
    if (bytes.n > SHORT_MAX) {
        put_collected(w);
        wire_put_bytes(w->out, field, bytes.p, bytes.n);
        return;
    }
    unsigned char *at = w->collected + w->n_collected;
    *at++ = (unsigned char)(field << 3 | WIRE_BYTES);
    *at++ = (unsigned char)bytes.n;
    at = put_piece(w, at, bytes);
    w->n_collected = (size_t)(at - w->collected);
    if (w->n_collected >= COLLECTED) {
        put_collected(w);
    }
}

/* Copies the used mappings, locations or functions. */
static void put_entries(struct writer_out *w, unsigned field)
{
    const struct pprof_entries *e = &w->x->entries[field];
    for (size_t i = 0; i < e->ids.n; i++) {
        if (e->used[i]) {
            put_entry(w, field, pprof_span_of(w->x, e->spans[i]));
        }
    }
}

/* Writes the strings, and repairs strings that are not UTF-8. */
static void put_strings(struct writer_out *w)
{
    const struct pprof_entries *e = &w->x->entries[PROFILE_STRING];
    for (size_t i = 0; i < e->ids.n; i++) {
        struct sv text = pprof_span_of(w->x, e->spans[i]);
        text.n = e->used[i] ? text.n : 0;
        if (utf8_valid(text)) {
            put_entry(w, PROFILE_STRING, text);
            continue;
        }
        buf_clear(&w->text);
        utf8_repair(text, &w->text);
        put_collected(w);
        wire_put_bytes(w->out, PROFILE_STRING, w->text.data, w->text.len);
    }
}

/* Returns the most bytes that samples and short entries may take before they are appended. */
static size_t room_of(const struct pprof_index *x, const struct delta_stacks *s)
{
    size_t largest = SHORT_MAX;
    for (size_t i = 0; i < s->n_moved; i++) {
        uint32_t n = x->entries[PROFILE_SAMPLE].spans[s->rows[s->moved[i]].sample].n;
        largest = n > largest ? n : largest;
    }
    return COLLECTED + 2 * WIRE_HEAD_MAX + largest + COPIED + DELTA_TYPES_MAX * WIRE_NUMBER_MAX;
}

bool delta_write(struct pprof_index *x, const struct delta_stacks *s, int64_t duration_nanos,
                 struct scratch *scratch, struct buf *out)
{
    struct writer_out w = {.x = x, .out = out};
    w.collected = scratch_array(scratch, room_of(x, s), 1);
    if (w.collected == NULL) {
        return false;
    }
    buf_init(&w.text, 3 * x->plain.n);
    put_heads(&w);
    put_samples(&w, s);
    use_of_locations(x);
    for (unsigned field = PROFILE_MAPPING; field <= PROFILE_FUNCTION; field++) {
        put_entries(&w, field);
    }
    put_strings(&w);
    put_collected(&w);
    if (duration_nanos != 0) {
        wire_put_number(out, PROFILE_DURATION_NANOS, (uint64_t)duration_nanos);
    }
    bool ok = buf_ok(out) && buf_ok(&w.text);
    buf_done(&w.text);
    return ok;
}
