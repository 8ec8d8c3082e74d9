#include <string.h>

#include "pprof/otlp/making.h"
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

/* Puts a line of a location, and notes what it has. A line without a function is left out. Returns
 * the place after it; NULL with err. */
static unsigned char *put_line(struct making *m, struct sv message, unsigned char *at,
                               unsigned *facts)
{
    uint64_t v[OTLP_LINE_COLUMN + 1] = {0};
    uint64_t function[OTLP_FUNCTION_FILENAME_STRINDEX + 1] = {0};
    uint32_t number;
    struct sv entry;
    wire_read_numbers(message, v, OTLP_LINE_COLUMN + 1);
    if (v[OTLP_LINE_FUNCTION_INDEX] == 0) {
        return at;
    }
    if (!making_number(m, OTLP_DICTIONARY_FUNCTION_TABLE, v[OTLP_LINE_FUNCTION_INDEX], &number) ||
        !otlp_entry(m->r, OTLP_DICTIONARY_FUNCTION_TABLE, v[OTLP_LINE_FUNCTION_INDEX], &entry,
                    m->err)) {
        return NULL;
    }
    wire_read_numbers(entry, function, OTLP_FUNCTION_FILENAME_STRINDEX + 1);
    *facts |= (*facts & MAPPING_NAMED) != 0 ? MAPPING_INLINED : MAPPING_NAMED;
    *facts |= function[OTLP_FUNCTION_FILENAME_STRINDEX] != 0 ? MAPPING_FILES : 0U;
    *facts |= v[OTLP_LINE_LINE] != 0 ? MAPPING_LINES : 0U;
    unsigned char *line = at + MAKING_HEAD;
    unsigned char *end = making_put(line, LINE_FUNCTION_ID, number);
    end = making_put(end, LINE_LINE, v[OTLP_LINE_LINE]);
    end = making_put(end, LINE_COLUMN, v[OTLP_LINE_COLUMN]);
    return making_close(line, end, LOCATION_LINE);
}

/* Puts the lines of a location. *ret_attributes: it has attributes. NULL with err. */
static unsigned char *put_lines(struct making *m, struct sv location, unsigned char *at,
                                unsigned *facts, bool *ret_attributes)
{
    struct wire_reader in = wire_reader_of(location);
    struct wire_field f = {.number = 0};
    *ret_attributes = false;
    while (at != NULL && wire_next(&in, &f)) {
        *ret_attributes = *ret_attributes || f.number == OTLP_LOCATION_ATTRIBUTE_INDICES;
        if (f.number == OTLP_LOCATION_LINES && f.type == WIRE_BYTES) {
            at = put_line(m, f.bytes, at, facts);
        }
    }
    return otlp_is_whole(m->r, &in, m->err) ? at : NULL;
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

/* Returns true if the functions of several addresses are one in a location. */
static bool is_folded(struct making *m, struct sv location)
{
    const struct otlp_attribute *a =
        find_attribute(m, location, OTLP_LOCATION_ATTRIBUTE_INDICES, "pprof.location.is_folded");
    return a != NULL && a->value.kind == OTLP_VALUE_BOOL && a->value.number != 0;
}

/* The most bytes of the numbers of a location, and of its head. */
#define LOCATION_NUMBERS (5 * WIRE_HEAD_MAX)
/* The most bytes by which a line grows: a line that is put has at least four, and only the number
 * of its function can get longer, by four bytes. */
#define LINE_GROWTH 2

static bool put_location(struct making *m, uint32_t id, struct sv entry)
{
    struct otlp_reader *r = m->r;
    uint64_t v[OTLP_LOCATION_ADDRESS + 1] = {0};
    unsigned facts = 0;
    uint32_t mapping = 0;
    bool attributes;
    wire_read_numbers(entry, v, OTLP_LOCATION_ADDRESS + 1);
    if (v[OTLP_LOCATION_MAPPING_INDEX] != 0 &&
        !making_number(m, OTLP_DICTIONARY_MAPPING_TABLE, v[OTLP_LOCATION_MAPPING_INDEX],
                       &mapping)) {
        return false;
    }
    if (!OTLP_GROW(r, r->sample, r->cap_sample, LOCATION_NUMBERS + LINE_GROWTH * entry.n, m->err)) {
        return false;
    }
    unsigned char *end = making_put(r->sample + MAKING_HEAD, LOCATION_ID, id);
    end = making_put(end, LOCATION_MAPPING_ID, mapping);
    end = making_put(end, LOCATION_ADDRESS, v[OTLP_LOCATION_ADDRESS]);
    end = put_lines(m, entry, end, &facts, &attributes);
    if (end == NULL || !note_mapping(m, mapping, facts)) {
        return false;
    }
    bool folded = attributes && is_folded(m, entry);
    if (m->err->kind != ERR_NONE) {
        return false;
    }
    end = making_put(end, LOCATION_IS_FOLDED, folded);
    return making_append(m, end, PROFILE_LOCATION);
}

static bool put_function(struct making *m, uint32_t id, struct sv entry)
{
    uint64_t v[OTLP_FUNCTION_START_LINE + 1] = {0};
    uint32_t name;
    uint32_t system_name;
    uint32_t file;
    wire_read_numbers(entry, v, OTLP_FUNCTION_START_LINE + 1);
    if (!making_string(m, v[OTLP_FUNCTION_NAME_STRINDEX], &name) ||
        !making_string(m, v[OTLP_FUNCTION_SYSTEM_NAME_STRINDEX], &system_name) ||
        !making_string(m, v[OTLP_FUNCTION_FILENAME_STRINDEX], &file)) {
        return false;
    }
    if (!OTLP_GROW(m->r, m->r->sample, m->r->cap_sample, 6 * WIRE_HEAD_MAX, m->err)) {
        return false;
    }
    unsigned char *at = making_put(m->r->sample + MAKING_HEAD, FUNCTION_ID, id);
    at = making_put(at, FUNCTION_NAME, name);
    at = making_put(at, FUNCTION_SYSTEM_NAME, system_name);
    at = making_put(at, FUNCTION_FILENAME, file);
    at = making_put(at, FUNCTION_START_LINE, v[OTLP_FUNCTION_START_LINE]);
    return making_append(m, at, PROFILE_FUNCTION);
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
            return making_add(m, a->value.text, ret);
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
        at = making_put(at, rows[i].field, is_set);
    }
    return at;
}

static bool put_mapping(struct making *m, uint32_t id, struct sv entry)
{
    uint64_t v[OTLP_MAPPING_FILENAME_STRINDEX + 1] = {0};
    uint32_t file;
    uint32_t build_id;
    wire_read_numbers(entry, v, OTLP_MAPPING_FILENAME_STRINDEX + 1);
    if (!making_string(m, v[OTLP_MAPPING_FILENAME_STRINDEX], &file) ||
        !build_id_of(m, entry, &build_id)) {
        return false;
    }
    if (!OTLP_GROW(m->r, m->r->sample, m->r->cap_sample, 11 * WIRE_HEAD_MAX, m->err)) {
        return false;
    }
    unsigned char *at = making_put(m->r->sample + MAKING_HEAD, MAPPING_ID, id);
    at = making_put(at, MAPPING_START, v[OTLP_MAPPING_MEMORY_START]);
    at = making_put(at, MAPPING_LIMIT, v[OTLP_MAPPING_MEMORY_LIMIT]);
    at = making_put(at, MAPPING_OFFSET, v[OTLP_MAPPING_FILE_OFFSET]);
    at = making_put(at, MAPPING_FILENAME, file);
    at = making_put(at, MAPPING_BUILD_ID, build_id);
    at = put_flags(m, entry, m->r->mappings[id], at);
    return m->err->kind == ERR_NONE && making_append(m, at, PROFILE_MAPPING);
}

/* Puts the entries of a table that have numbers. Entries of the tables after it may get theirs
 * meanwhile. */
static bool put_entries(struct making *m, unsigned table,
                        bool (*put)(struct making *m, uint32_t id, struct sv entry))
{
    const struct otlp_table *t = &m->r->tables[table];
    bool ok = true;
    for (size_t i = 0; ok && i < t->n_used; i++) {
        struct sv entry;
        ok = otlp_entry(m->r, table, t->used[i], &entry, m->err) && put(m, (uint32_t)i + 1, entry);
    }
    return ok;
}

bool making_tables(struct making *m)
{
    return put_entries(m, OTLP_DICTIONARY_LOCATION_TABLE, put_location) &&
           put_entries(m, OTLP_DICTIONARY_FUNCTION_TABLE, put_function) &&
           put_entries(m, OTLP_DICTIONARY_MAPPING_TABLE, put_mapping);
}
