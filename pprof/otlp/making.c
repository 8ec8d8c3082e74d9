#include <string.h>

#include "pprof/otlp/private.h"
#include "pprof/put.h"

/* The bits of a mapping: facts about the locations in it. */
enum {
    MAPPING_NAMED = 1,    /* a location has a function, as have the next ones */
    MAPPING_FILES = 2,    /* with a file */
    MAPPING_LINES = 4,    /* with a line */
    MAPPING_INLINED = 8,  /* a location has several functions */
    MAPPING_UNNAMED = 16, /* a location has none */
};
/* The fields of pprof that pprof/wire.h does not name. */
enum {
    MAPPING_HAS_FUNCTIONS = 7,
    MAPPING_HAS_FILENAMES = 8,
    MAPPING_HAS_LINES = 9,
    MAPPING_HAS_INLINES = 10,
    LOCATION_IS_FOLDED = 5,
};
/* A trace id has 16 bytes, a span id 8. */
#define TRACE_BYTES 16
#define SPAN_BYTES 8

struct making {
    struct otlp_reader *r;
    uint32_t part;
    int64_t factor;     /* of all values */
    uint32_t trace_key; /* numbers of strings; 0: not there yet */
    uint32_t span_key;
    struct err *err;
};

/* ---- numbers of entries ---------------------------------------------------------------------- */

/* Gives an entry the number, and remembers it so that it can be taken back. */
static bool use(struct making *m, struct otlp_table *t, uint32_t index, uint32_t number)
{
    if (!OTLP_GROW(m->r, t->used, t->cap_used, t->n_used + 1, m->err)) {
        return false;
    }
    t->local[index] = number;
    t->used[t->n_used++] = index;
    return true;
}

/* Finds the number of an entry, which gets the next one if it has none. */
static inline bool number_of(struct making *m, unsigned table, uint64_t index, uint32_t *ret)
{
    struct otlp_table *t = &m->r->tables[table];
    struct sv ignored;
    if (index >= t->n) {
        *ret = 0;
        return otlp_entry(m->r, table, index, &ignored, m->err);
    }
    if (t->local[index] == 0 && !use(m, t, (uint32_t)index, (uint32_t)t->n_used + 1)) {
        return false;
    }
    *ret = t->local[index];
    return true;
}

/* Takes back the numbers of all entries. */
static void forget(struct otlp_reader *r)
{
    for (size_t i = 1; i < OTLP_TABLES; i++) {
        struct otlp_table *t = &r->tables[i];
        for (size_t k = 0; k < t->n_used; k++) {
            t->local[t->used[k]] = 0;
        }
        t->n_used = 0;
    }
    r->n_strings = 0;
    buf_clear(&r->out);
}

/* ---- strings --------------------------------------------------------------------------------- */

/* Adds a string; equal ones may be there already. */
static bool add_string(struct making *m, struct sv text, uint32_t *ret)
{
    struct otlp_reader *r = m->r;
    if (!OTLP_GROW(r, r->strings, r->cap_strings, r->n_strings + 1, m->err)) {
        return false;
    }
    *ret = (uint32_t)r->n_strings;
    r->strings[r->n_strings++] = text;
    return true;
}

/* Finds the number of a string of the dictionary; 0 for "". */
static bool string_of(struct making *m, uint64_t index, uint32_t *ret)
{
    struct otlp_table *t = &m->r->tables[OTLP_DICTIONARY_STRING_TABLE];
    struct sv text;
    if (index < t->n && t->local[index] != 0) {
        *ret = t->local[index];
        return true;
    }
    *ret = 0;
    return otlp_entry(m->r, OTLP_DICTIONARY_STRING_TABLE, index, &text, m->err) &&
           (index == 0 || text.n == 0 ||
            (add_string(m, text, ret) && use(m, t, (uint32_t)index, *ret)));
}

/* Adds a string that the arena keeps. */
static bool add_text(struct making *m, const char *text, size_t n, uint32_t *ret)
{
    char *copy = arena_strndup(m->r->texts, text, n);
    return copy != NULL ? add_string(m, (struct sv){copy, n}, ret)
                        : err_set(m->err, ERR_LIMIT, "too many texts of samples");
}

/* ---- labels of samples ----------------------------------------------------------------------- */

/* A label of a sample, as numbers of strings and a number. */
struct label_fields {
    uint32_t key;
    uint32_t text;
    int64_t number;
    uint32_t unit;
};

/* Finds the label of an attribute; *ret_any is false if it has none. */
static bool label_of(struct making *m, uint32_t index, struct label_fields *ret, bool *ret_any)
{
    struct otlp_table *t = &m->r->tables[OTLP_DICTIONARY_ATTRIBUTE_TABLE];
    const struct otlp_attribute *a = &m->r->attributes[index];
    *ret = (struct label_fields){.key = 0};
    *ret_any = false;
    if (a->splits || a->key_text.n == 0) {
        return true;
    }
    if (a->value.kind == OTLP_VALUE_NUMBER) {
        ret->number = a->value.number;
        *ret_any = ret->number != 0 || a->unit != 0;
        return string_of(m, a->key, &ret->key) && string_of(m, a->unit, &ret->unit);
    }
    if (a->value.kind != OTLP_VALUE_TEXT || a->value.text.n == 0) {
        return true;
    }
    *ret_any = true;
    if (t->local[index] == 0) {
        uint32_t number;
        if (!add_string(m, a->value.text, &number) || !use(m, t, index, number)) {
            return false;
        }
    }
    ret->text = t->local[index];
    return string_of(m, a->key, &ret->key);
}

static bool add_hex(struct making *m, struct sv id, uint32_t *ret)
{
    static const char digits[] = "0123456789abcdef";
    char text[2 * TRACE_BYTES];
    for (size_t i = 0; i < id.n; i++) {
        unsigned char c = (unsigned char)id.p[i];
        text[2 * i] = digits[c >> 4];
        text[2 * i + 1] = digits[c & 15];
    }
    return add_text(m, text, 2 * id.n, ret);
}

/* Returns true if an id has the right size and is not 0, which means "none". */
static bool is_id(struct sv id, size_t size)
{
    static const char zero[TRACE_BYTES];
    return id.n == size && memcmp(id.p, zero, size) != 0;
}

/* Reads the ids of a link; they are empty if the link does not have both. */
static void read_link(struct sv link, struct sv *ret_trace, struct sv *ret_span)
{
    struct wire_reader at = wire_reader_of(link);
    struct wire_field f = {.number = 0};
    *ret_trace = *ret_span = SV("");
    while (wire_next(&at, &f)) {
        if (f.number == OTLP_LINK_TRACE_ID && f.type == WIRE_BYTES) {
            *ret_trace = f.bytes;
        } else if (f.number == OTLP_LINK_SPAN_ID && f.type == WIRE_BYTES) {
            *ret_span = f.bytes;
        }
    }
    if (!is_id(*ret_trace, TRACE_BYTES) || !is_id(*ret_span, SPAN_BYTES)) {
        *ret_trace = *ret_span = SV("");
    }
}

/* Adds the texts of a link, and the keys of its labels if they are not there yet. The number of the
 * link is that of the first of its two strings. */
static bool add_link(struct making *m, uint32_t index, struct sv trace, struct sv span)
{
    struct otlp_table *t = &m->r->tables[OTLP_DICTIONARY_LINK_TABLE];
    uint32_t first = 0;
    uint32_t second = 0;
    if (m->trace_key == 0 && (!add_string(m, SV("trace_id"), &m->trace_key) ||
                              !add_string(m, SV("span_id"), &m->span_key))) {
        return false;
    }
    return t->local[index] != 0 ||
           (add_hex(m, trace, &first) && add_hex(m, span, &second) && use(m, t, index, first));
}

/* Finds the labels `trace_id` and `span_id` of a link, at most two. */
static bool labels_of_link(struct making *m, uint32_t index, struct label_fields *out,
                           size_t *ret_n)
{
    const struct otlp_table *t = &m->r->tables[OTLP_DICTIONARY_LINK_TABLE];
    struct sv link;
    struct sv trace;
    struct sv span;
    *ret_n = 0;
    if (!otlp_entry(m->r, OTLP_DICTIONARY_LINK_TABLE, index, &link, m->err)) {
        return false;
    }
    read_link(link, &trace, &span);
    if (trace.n == 0) {
        return true;
    }
    if (!add_link(m, index, trace, span)) {
        return false;
    }
    out[0] = (struct label_fields){.key = m->trace_key, .text = t->local[index]};
    out[1] = (struct label_fields){.key = m->span_key, .text = t->local[index] + 1};
    *ret_n = 2;
    return true;
}

static unsigned char *put_number(unsigned char *at, uint64_t field, uint64_t value)
{
    if (value == 0) {
        return at;
    }
    at += wire_encode(field << 3 | WIRE_VARINT, at);
    return at + wire_encode(value, at);
}

/* The most bytes of a label in a sample. */
#define LABEL_BYTES_MAX (5 * WIRE_HEAD_MAX)

static unsigned char *put_label(unsigned char *at, const struct label_fields *l)
{
    unsigned char label[4 * WIRE_HEAD_MAX];
    unsigned char *end = put_number(label, LABEL_KEY, l->key);
    end = put_number(end, LABEL_STR, l->text);
    end = put_number(end, LABEL_NUM, (uint64_t)l->number);
    end = put_number(end, LABEL_NUM_UNIT, l->unit);
    size_t n = (size_t)(end - label);
    at += wire_encode_head(SAMPLE_LABEL, n, at);
    memcpy(at, label, n);
    return at + n;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Puts the locations of a stack, which begin with the leaf in both formats. NULL with err. */
static unsigned char *put_stack(struct making *m, struct sv stack, unsigned char *at)
{
    struct wire_reader in = wire_reader_of(stack);
    struct wire_field f = {.number = 0};
    size_t n = 0;
    /* The numbers of locations, which most stacks have fewer than 128 of, follow a head of up to
     * WIRE_HEAD_MAX bytes: the head is put in front of them when their size is known. */
    unsigned char *first = at + WIRE_HEAD_MAX;
    unsigned char *end = first;
    while (wire_next(&in, &f)) {
        struct wire_numbers numbers = wire_numbers_of(&f);
        uint64_t index;
        uint32_t number;
        while (f.number == OTLP_STACK_LOCATION_INDICES && wire_numbers_next(&numbers, &index)) {
            if (!number_of(m, OTLP_DICTIONARY_LOCATION_TABLE, index, &number)) {
                return NULL;
            }
            if (++n > OTLP_DEPTH_MAX) {
                err_set(m->err, ERR_LIMIT, "a stack has more than %d frames", OTLP_DEPTH_MAX);
                return NULL;
            }
            end += number == 0 ? 0 : wire_encode(number, end);
        }
    }
    if (end == first) {
        return at;
    }
    size_t size = (size_t)(end - first);
    at += wire_encode_head(SAMPLE_LOCATION_ID, size, at);
    memmove(at, first, size);
    return at + size;
}

/* Puts the values of a sample. NULL with err if one of them needs more than 64 bits. */
static unsigned char *put_values(struct making *m, size_t i, unsigned char *at)
{
    const struct otlp_samples *s = &m->r->samples;
    unsigned char values[OTLP_TYPES_MAX * WIRE_NUMBER_MAX] = {0};
    size_t n = 0;
    for (size_t k = 0; k < m->r->n_types; k++) {
        int64_t value;
        if (__builtin_mul_overflow(s->values[k][i], m->factor, &value)) {
            err_set(m->err, ERR_INPUT, "a value times the period needs more than 64 bits");
            return NULL;
        }
        n += wire_encode((uint64_t)value, values + n);
    }
    at += wire_encode_head(SAMPLE_VALUE, n, at);
    memcpy(at, values, n);
    return at + n;
}

static unsigned char *put_labels(struct making *m, const struct otlp_sample *s, unsigned char *at)
{
    struct label_fields l[2];
    size_t n;
    bool any;
    for (uint32_t i = 0; i < s->n_attributes; i++) {
        if (!label_of(m, m->r->samples.attributes[s->attributes + i], l, &any)) {
            return NULL;
        }
        at = any ? put_label(at, l) : at;
    }
    if (!labels_of_link(m, s->link, l, &n)) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        at = put_label(at, &l[i]);
    }
    return at;
}

static bool put_sample(struct making *m, size_t i)
{
    struct otlp_reader *r = m->r;
    const struct otlp_sample *s = &r->samples.at[i];
    struct sv stack;
    if (!otlp_entry(r, OTLP_DICTIONARY_STACK_TABLE, s->stack, &stack, m->err)) {
        return err_wrap(m->err, "sample %zu", i);
    }
    /* A number takes at least one byte. */
    size_t frames = stack.n < OTLP_DEPTH_MAX + 1 ? stack.n : OTLP_DEPTH_MAX + 1;
    size_t most = 4 * WIRE_HEAD_MAX + 5 * frames + sizeof(int64_t) * 2 * OTLP_TYPES_MAX +
                  ((size_t)s->n_attributes + 2) * LABEL_BYTES_MAX;
    if (!OTLP_GROW(r, r->sample, r->cap_sample, most, m->err)) {
        return false;
    }
    unsigned char *at = put_stack(m, stack, r->sample);
    at = at == NULL ? NULL : put_values(m, i, at);
    at = at == NULL ? NULL : put_labels(m, s, at);
    if (at == NULL) {
        return err_wrap(m->err, "sample %zu", i);
    }
    wire_put_bytes(&r->out, PROFILE_SAMPLE, r->sample, (size_t)(at - r->sample));
    return true;
}

/* Returns true if the buffer has taken everything so far. */
static bool has_room(struct making *m)
{
    const struct buf *out = &m->r->out;
    return buf_ok(out) || (buf_too_big(out) ? err_set(m->err, ERR_LIMIT,
                                                      "the profile would have more than %zu bytes",
                                                      m->r->limits.profile_max)
                                            : err_memory(m->err));
}

static bool put_samples(struct making *m)
{
    const struct otlp_samples *s = &m->r->samples;
    for (size_t i = 0; i < s->n; i++) {
        if (s->at[i].part == m->part && (!put_sample(m, i) || !has_room(m))) {
            return false;
        }
    }
    return true;
}

/* ---- locations, functions, mappings ---------------------------------------------------------- */

/* Reads the numbers of the attributes of a message, and returns the one with this key. NULL if
 * there is none, or with err. */
static const struct otlp_attribute *find_attribute(struct making *m, struct sv message,
                                                   uint64_t field, const char *key)
{
    struct wire_reader at = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    while (wire_next(&at, &f)) {
        struct wire_numbers numbers = wire_numbers_of(&f);
        uint64_t index;
        while (f.number == field && wire_numbers_next(&numbers, &index)) {
            const struct otlp_attribute *a;
            if (!otlp_read_attribute(m->r, index, &a, m->err)) {
                return NULL;
            }
            if (sv_eq_str(a->key_text, key)) {
                return a;
            }
        }
    }
    return NULL;
}

/* Appends a line of a location, and notes what it has. A line without a function is left out. */
static bool put_line(struct making *m, struct sv message, struct buf *out, unsigned *facts)
{
    unsigned char line[4 * WIRE_HEAD_MAX];
    uint64_t v[OTLP_LINE_COLUMN + 1] = {0};
    uint64_t function[OTLP_FUNCTION_FILENAME_STRINDEX + 1] = {0};
    uint32_t number;
    struct sv entry;
    wire_read_numbers(message, v, OTLP_LINE_COLUMN + 1);
    if (v[OTLP_LINE_FUNCTION_INDEX] == 0) {
        return true;
    }
    if (!number_of(m, OTLP_DICTIONARY_FUNCTION_TABLE, v[OTLP_LINE_FUNCTION_INDEX], &number) ||
        !otlp_entry(m->r, OTLP_DICTIONARY_FUNCTION_TABLE, v[OTLP_LINE_FUNCTION_INDEX], &entry,
                    m->err)) {
        return false;
    }
    wire_read_numbers(entry, function, OTLP_FUNCTION_FILENAME_STRINDEX + 1);
    *facts |= (*facts & MAPPING_NAMED) != 0 ? MAPPING_INLINED : MAPPING_NAMED;
    *facts |= function[OTLP_FUNCTION_FILENAME_STRINDEX] != 0 ? MAPPING_FILES : 0U;
    *facts |= v[OTLP_LINE_LINE] != 0 ? MAPPING_LINES : 0U;
    unsigned char *at = put_number(line, LINE_FUNCTION_ID, number);
    at = put_number(at, LINE_LINE, v[OTLP_LINE_LINE]);
    at = put_number(at, LINE_COLUMN, v[OTLP_LINE_COLUMN]);
    wire_put_bytes(out, LOCATION_LINE, line, (size_t)(at - line));
    return true;
}

static bool put_lines(struct making *m, struct sv location, struct buf *out, unsigned *facts)
{
    struct wire_reader in = wire_reader_of(location);
    struct wire_field f = {.number = 0};
    while (wire_next(&in, &f)) {
        if (f.number == OTLP_LOCATION_LINES && f.type == WIRE_BYTES &&
            !put_line(m, f.bytes, out, facts)) {
            return false;
        }
    }
    return otlp_is_whole(m->r, &in, m->err);
}

/* Adds the facts of a location to those of its mapping. */
static bool note_mapping(struct making *m, uint32_t mapping, unsigned facts)
{
    struct otlp_reader *r = m->r;
    size_t known = r->n_mappings;
    if (!OTLP_GROW(r, r->mappings, r->cap_mappings, (size_t)mapping + 1, m->err)) {
        return false;
    }
    if (mapping >= known) {
        memset(r->mappings + known, 0, mapping + 1 - known);
        r->n_mappings = (size_t)mapping + 1;
    }
    r->mappings[mapping] |= (uint8_t)(facts == 0 ? MAPPING_UNNAMED : facts);
    return true;
}

static bool put_location(struct making *m, uint32_t id, struct sv entry, struct buf *part)
{
    uint64_t v[OTLP_LOCATION_ADDRESS + 1] = {0};
    unsigned char head[4 * WIRE_HEAD_MAX];
    unsigned facts = 0;
    uint32_t mapping = 0;
    wire_read_numbers(entry, v, OTLP_LOCATION_ADDRESS + 1);
    if (v[OTLP_LOCATION_MAPPING_INDEX] != 0 &&
        !number_of(m, OTLP_DICTIONARY_MAPPING_TABLE, v[OTLP_LOCATION_MAPPING_INDEX], &mapping)) {
        return false;
    }
    const struct otlp_attribute *folded =
        find_attribute(m, entry, OTLP_LOCATION_ATTRIBUTE_INDICES, "pprof.location.is_folded");
    if (m->err->kind != ERR_NONE) {
        return false;
    }
    buf_clear(part);
    if (!put_lines(m, entry, part, &facts) || !note_mapping(m, mapping, facts)) {
        return false;
    }
    unsigned char *at = put_number(head, LOCATION_ID, id);
    at = put_number(at, LOCATION_MAPPING_ID, mapping);
    at = put_number(at, LOCATION_ADDRESS, v[OTLP_LOCATION_ADDRESS]);
    at = put_number(at, LOCATION_IS_FOLDED,
                    folded != NULL && folded->value.kind == OTLP_VALUE_BOOL &&
                        folded->value.number != 0);
    size_t n = (size_t)(at - head);
    wire_put_head(&m->r->out, PROFILE_LOCATION, n + part->len);
    buf_append(&m->r->out, head, n);
    buf_append(&m->r->out, part->data, part->len);
    return buf_ok(part) || err_set(m->err, ERR_LIMIT, "a location is too large");
}

static bool put_function(struct making *m, uint32_t id, struct sv entry, struct buf *part)
{
    uint64_t v[OTLP_FUNCTION_START_LINE + 1] = {0};
    unsigned char message[5 * WIRE_HEAD_MAX];
    uint32_t name;
    uint32_t system_name;
    uint32_t file;
    (void)part;
    wire_read_numbers(entry, v, OTLP_FUNCTION_START_LINE + 1);
    if (!string_of(m, v[OTLP_FUNCTION_NAME_STRINDEX], &name) ||
        !string_of(m, v[OTLP_FUNCTION_SYSTEM_NAME_STRINDEX], &system_name) ||
        !string_of(m, v[OTLP_FUNCTION_FILENAME_STRINDEX], &file)) {
        return false;
    }
    unsigned char *at = put_number(message, FUNCTION_ID, id);
    at = put_number(at, FUNCTION_NAME, name);
    at = put_number(at, FUNCTION_SYSTEM_NAME, system_name);
    at = put_number(at, FUNCTION_FILENAME, file);
    at = put_number(at, FUNCTION_START_LINE, v[OTLP_FUNCTION_START_LINE]);
    wire_put_bytes(&m->r->out, PROFILE_FUNCTION, message, (size_t)(at - message));
    return true;
}

/* Finds the build id of a mapping: GNU's, else Go's, else the hash that the eBPF profiler makes of
 * a file. */
static bool build_id_of(struct making *m, struct sv entry, uint32_t *ret)
{
    static const char *const keys[] = {"process.executable.build_id.gnu",
                                       "process.executable.build_id.go",
                                       "process.executable.build_id.htlhash"};
    *ret = 0;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const struct otlp_attribute *a =
            find_attribute(m, entry, OTLP_MAPPING_ATTRIBUTE_INDICES, keys[i]);
        if (a != NULL && a->value.kind == OTLP_VALUE_TEXT && a->value.text.n > 0) {
            return add_string(m, a->value.text, ret);
        }
    }
    return m->err->kind == ERR_NONE;
}

/* Puts what pprof knows about the symbols of a mapping: as the sender says, as profpull and the
 * Collector do, else by the locations. If one of them has no function, the mapping counts as not
 * symbolised, because servers drop the addresses of one that is. */
static unsigned char *put_flags(struct making *m, struct sv entry, unsigned facts,
                                unsigned char *at)
{
    static const struct {
        uint64_t field;
        unsigned fact;
        const char *key;
    } rows[] = {
        {MAPPING_HAS_FUNCTIONS, MAPPING_NAMED, "pprof.mapping.has_functions"},
        {MAPPING_HAS_FILENAMES, MAPPING_FILES, "pprof.mapping.has_filenames"},
        {MAPPING_HAS_LINES, MAPPING_LINES, "pprof.mapping.has_line_numbers"},
        {MAPPING_HAS_INLINES, MAPPING_INLINED, "pprof.mapping.has_inline_frames"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct otlp_attribute *a =
            find_attribute(m, entry, OTLP_MAPPING_ATTRIBUTE_INDICES, rows[i].key);
        bool is_set = (facts & MAPPING_UNNAMED) == 0 && (facts & rows[i].fact) != 0;
        if (a != NULL && a->value.kind == OTLP_VALUE_BOOL) {
            is_set = a->value.number != 0;
        }
        at = put_number(at, rows[i].field, is_set);
    }
    return at;
}

static bool put_mapping(struct making *m, uint32_t id, struct sv entry, struct buf *part)
{
    uint64_t v[OTLP_MAPPING_FILENAME_STRINDEX + 1] = {0};
    unsigned char message[10 * WIRE_HEAD_MAX];
    uint32_t file;
    uint32_t build_id;
    (void)part;
    wire_read_numbers(entry, v, OTLP_MAPPING_FILENAME_STRINDEX + 1);
    if (!string_of(m, v[OTLP_MAPPING_FILENAME_STRINDEX], &file) ||
        !build_id_of(m, entry, &build_id)) {
        return false;
    }
    unsigned char *at = put_number(message, MAPPING_ID, id);
    at = put_number(at, MAPPING_START, v[OTLP_MAPPING_MEMORY_START]);
    at = put_number(at, MAPPING_LIMIT, v[OTLP_MAPPING_MEMORY_LIMIT]);
    at = put_number(at, MAPPING_OFFSET, v[OTLP_MAPPING_FILE_OFFSET]);
    at = put_number(at, MAPPING_FILENAME, file);
    at = put_number(at, MAPPING_BUILD_ID, build_id);
    at = put_flags(m, entry, m->r->mappings[id], at);
    wire_put_bytes(&m->r->out, PROFILE_MAPPING, message, (size_t)(at - message));
    return m->err->kind == ERR_NONE;
}

/* Puts the entries of a table that have numbers. Entries of the tables after it may get theirs
 * meanwhile. */
static bool put_entries(struct making *m, unsigned table,
                        bool (*put)(struct making *m, uint32_t id, struct sv entry,
                                    struct buf *part))
{
    const struct otlp_table *t = &m->r->tables[table];
    struct buf part;
    bool ok = true;
    buf_init(&part, m->r->limits.profile_max);
    for (size_t i = 0; ok && i < t->n_used; i++) {
        struct sv entry;
        ok = otlp_entry(m->r, table, t->used[i], &entry, m->err) &&
             put(m, (uint32_t)i + 1, entry, &part) && has_room(m);
    }
    buf_done(&part);
    return ok;
}

/* ---- the profile ----------------------------------------------------------------------------- */

static void put_value_type(struct making *m, uint64_t field, uint32_t type, uint32_t unit)
{
    unsigned char message[2 * WIRE_HEAD_MAX];
    unsigned char *at = put_number(message, VALUE_TYPE_TYPE, type);
    at = put_number(at, VALUE_TYPE_UNIT, unit);
    wire_put_bytes(&m->r->out, field, message, (size_t)(at - message));
}

static bool put_types(struct making *m)
{
    struct otlp_reader *r = m->r;
    bool times = otlp_counts_are_time(r);
    for (size_t i = 0; i < r->n_types; i++) {
        const struct otlp_head *h = &r->heads[i];
        uint32_t type;
        uint32_t unit;
        if (!string_of(m, times ? h->period_type : h->type, &type) ||
            !string_of(m, times ? h->period_unit : h->unit, &unit)) {
            return false;
        }
        put_value_type(m, PROFILE_SAMPLE_TYPE, type, unit);
    }
    return true;
}

static void put_if(struct making *m, uint64_t field, uint64_t value)
{
    if (value != 0) {
        wire_put_number(&m->r->out, field, value);
    }
}

static bool put_head(struct making *m)
{
    const struct otlp_head *h = &m->r->heads[0];
    uint32_t type;
    uint32_t unit;
    if (!string_of(m, h->period_type, &type) || !string_of(m, h->period_unit, &unit)) {
        return false;
    }
    if (type != 0 || unit != 0) {
        put_value_type(m, PROFILE_PERIOD_TYPE, type, unit);
    }
    put_if(m, PROFILE_PERIOD, (uint64_t)h->period);
    put_if(m, PROFILE_TIME_NANOS, h->time_ns < INT64_MAX ? h->time_ns : INT64_MAX);
    put_if(m, PROFILE_DURATION_NANOS, h->duration_ns < INT64_MAX ? h->duration_ns : INT64_MAX);
    return true;
}

/* Puts an attribute of the profile that pprof has a field for, as a string. */
static bool put_attribute(struct making *m, const struct otlp_attribute *a)
{
    static const struct {
        const char *key;
        bool is_prefix;
        uint64_t field;
    } rows[] = {
        {"pprof.profile.drop_frames", false, PROFILE_DROP_FRAMES},
        {"pprof.profile.keep_frames", false, PROFILE_KEEP_FRAMES},
        {"pprof.profile.doc_url", false, PROFILE_DOC_URL},
        {"pprof.profile.comment.", true, PROFILE_COMMENT},
    };
    bool is_text = a->value.kind == OTLP_VALUE_TEXT && a->value.text.n > 0;
    for (size_t i = 0; is_text && i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t number;
        if (rows[i].is_prefix ? sv_starts_with(a->key_text, sv_from(rows[i].key))
                              : sv_eq_str(a->key_text, rows[i].key)) {
            if (!add_string(m, a->value.text, &number)) {
                return false;
            }
            wire_put_number(&m->r->out, rows[i].field, number);
        }
    }
    return true;
}

static bool put_attributes(struct making *m)
{
    struct wire_reader at = wire_reader_of(m->r->first);
    struct wire_field f = {.number = 0};
    while (wire_next(&at, &f)) {
        struct wire_numbers numbers = wire_numbers_of(&f);
        uint64_t index;
        while (f.number == OTLP_PROFILE_ATTRIBUTE_INDICES && wire_numbers_next(&numbers, &index)) {
            const struct otlp_attribute *a;
            if (!otlp_read_attribute(m->r, index, &a, m->err) || !put_attribute(m, a)) {
                return false;
            }
        }
    }
    return true;
}

static void put_strings(struct making *m)
{
    const struct otlp_reader *r = m->r;
    for (size_t i = 0; i < r->n_strings; i++) {
        wire_put_bytes(&m->r->out, PROFILE_STRING, r->strings[i].p, r->strings[i].n);
    }
}

bool otlp_make(struct otlp_reader *r, uint32_t part, struct err *err)
{
    struct making m = {.r = r, .part = part, .err = err};
    uint32_t none;
    m.factor = otlp_counts_are_time(r) ? r->heads[0].period : 1;
    forget(r);
    r->n_mappings = 0;
    if (!add_string(&m, SV(""), &none) || !put_types(&m) || !put_samples(&m) ||
        !put_entries(&m, OTLP_DICTIONARY_LOCATION_TABLE, put_location) ||
        !put_entries(&m, OTLP_DICTIONARY_FUNCTION_TABLE, put_function) ||
        !put_entries(&m, OTLP_DICTIONARY_MAPPING_TABLE, put_mapping) || !put_head(&m) ||
        !put_attributes(&m)) {
        return false;
    }
    put_strings(&m);
    return has_room(&m);
}
