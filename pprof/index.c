#include "pprof/index.h"

#include "pprof/columns.h"
#include "pprof/fields.h"
#include "pprof/quick.h"

/* Hashes of texts have a seed of their own. */
#define SEED_TEXT UINT64_C(0x9ddfea08eb382d69)

/* The two kinds of a location's key. */
enum { BY_ADDRESS = 1, BY_LINES = 2 };

struct sv pprof_span_of(const struct pprof_index *x, struct pprof_span span)
{
    return (struct sv){.p = x->plain.p + span.at, .n = span.n};
}

struct sv pprof_string(const struct pprof_index *x, uint64_t i)
{
    return pprof_span_of(x, x->entries[PROFILE_STRING].spans[i]);
}

struct sv pprof_head_piece(const struct pprof_index *x, size_t i)
{
    if (x->n_heads > PPROF_HEADS_MAX) {
        return i == 0 ? x->plain : (struct sv){NULL, 0};
    }
    return i < x->n_heads ? pprof_span_of(x, x->heads[i]) : (struct sv){NULL, 0};
}

static uint64_t hash_text(const struct pprof_index *x, uint64_t string)
{
    struct sv text = pprof_string(x, string);
    return hash_bytes(text.p, text.n, x->seed ^ SEED_TEXT);
}

/* ---- ids ------------------------------------------------------------------------------------- */

/* Returns the slot of an id: the slot that has its place, or a free one. */
static size_t slot_of(const struct pprof_ids *ids, uint64_t id)
{
    size_t i = (size_t)pprof_hash_of(ids->seed, &id, 1) & ids->mask;
    while (ids->slots[i] != 0 && ids->at[ids->slots[i] - 1] != id) {
        i = (i + 1) & ids->mask;
    }
    return i;
}

bool pprof_ids_find_slot(const struct pprof_ids *ids, uint64_t id, size_t *ret)
{
    uint32_t place = ids->slots[slot_of(ids, id)];
    *ret = (size_t)place - 1;
    return place != 0;
}

static bool in_order(const struct pprof_ids *ids)
{
    for (size_t i = 0; i < ids->n; i++) {
        if (ids->at[i] != i + 1) {
            return false;
        }
    }
    return true;
}

static uint64_t largest(const struct pprof_ids *ids)
{
    uint64_t max = 0;
    for (size_t i = 0; i < ids->n; i++) {
        max = ids->at[i] > max ? ids->at[i] : max;
    }
    return max;
}

/* Makes room for the table of ids: by id if the table is then no larger than a hash table may be,
 * four places for each id. */
static bool make_slots(struct pprof_ids *ids, struct scratch *s)
{
    uint64_t max = largest(ids);
    if (max / 4 < ids->n) {
        ids->limit = (size_t)max;
        ids->slots = scratch_zeroed(s, ids->limit + 1, sizeof(*ids->slots));
    } else {
        ids->slots = scratch_slots(s, ids->n, &ids->mask);
    }
    return ids->slots != NULL;
}

/* Builds the table for pprof_ids_find() once all ids are known. */
static bool finish_ids(struct pprof_ids *ids, struct scratch *s, const char *what, struct err *err)
{
    if (in_order(ids)) {
        return true;
    }
    if (!make_slots(ids, s)) {
        return err_memory(err);
    }
    for (size_t i = 0; i < ids->n; i++) {
        uint64_t id = ids->at[i];
        uint32_t *slot = &ids->slots[ids->limit != 0 ? (size_t)id : slot_of(ids, id)];
        if (*slot != 0) {
            return err_set(err, ERR_INPUT, "two %ss with the id %llu", what,
                           (unsigned long long)id);
        }
        *slot = (uint32_t)i + 1;
    }
    return true;
}

/* ---- the tables ------------------------------------------------------------------------------ */

static bool has_id(size_t field)
{
    return field >= PROFILE_MAPPING && field <= PROFILE_FUNCTION;
}

/* Allocates the tables. first: PROFILE_SAMPLE, or PROFILE_MAPPING if the samples need no table. */
static bool make_tables(struct pprof_index *x, struct scratch *s, size_t first)
{
    const size_t *n = x->summary.n;
    bool ok = true;
    x->first = first;
    for (size_t field = first; field <= PROFILE_STRING; field++) {
        struct pprof_entries *e = &x->entries[field];
        size_t ids = has_id(field) ? n[field] : 0;
        e->spans = scratch_array(s, n[field], sizeof(*e->spans));
        e->used = scratch_zeroed(s, field == PROFILE_SAMPLE ? 0 : n[field], sizeof(*e->used));
        e->ids.at = scratch_array(s, ids, sizeof(*e->ids.at));
        e->ids.seed = x->seed;
        ok = ok && e->spans != NULL && e->used != NULL && e->ids.at != NULL;
    }
    x->locations = scratch_array(s, n[PROFILE_LOCATION], sizeof(*x->locations));
    x->functions = scratch_array(s, n[PROFILE_FUNCTION], sizeof(*x->functions));
    x->mappings = scratch_array(s, n[PROFILE_MAPPING], sizeof(*x->mappings));
    return ok && x->locations != NULL && x->functions != NULL && x->mappings != NULL;
}

/* Fills in an entry with an id. The string table may follow it: keys, which need the texts, are
 * made later. */
static inline void fill_entry(struct pprof_index *x, uint64_t field, size_t i,
                              const uint64_t v[MAPPING_BUILD_ID + 1])
{
    x->entries[field].ids.at[i] = v[profile_table.sub[field]->id];
    switch (field) {
    case PROFILE_MAPPING:
        x->mappings[i] = (struct pprof_mapping){
            .build_id = (uint32_t)v[MAPPING_BUILD_ID],
            .file = (uint32_t)v[MAPPING_FILENAME],
            .start = v[MAPPING_START],
            .limit = v[MAPPING_LIMIT],
            .offset = v[MAPPING_OFFSET],
        };
        break;
    case PROFILE_LOCATION:
        x->locations[i] = (struct pprof_location){
            .mapping = v[LOCATION_MAPPING_ID],
            .address = v[LOCATION_ADDRESS],
        };
        break;
    default:
        x->functions[i] = (struct pprof_function){
            .name = (uint32_t)v[FUNCTION_NAME],
            .system_name = (uint32_t)v[FUNCTION_SYSTEM_NAME],
            .file = (uint32_t)v[FUNCTION_FILENAME],
        };
    }
}

/* Skips the short fields with this number that come next: most fields are like the one before.
 * Returns how many there are. */
static inline size_t count_run(struct wire_reader *r, uint64_t number)
{
    const char *end = r->in.p + r->in.n;
    const char *p = r->in.p + r->at;
    struct sv field;
    size_t n = 0;
    while ((field = wire_short_field(p, end, (unsigned)number)).p != NULL) {
        p = field.p + field.n;
        n++;
    }
    r->at = (size_t)(p - r->in.p);
    return n;
}

/* Notes the bytes of the short samples or strings that come next, like count_run(). */
static inline void note_run(struct pprof_index *x, struct wire_reader *r, uint64_t number)
{
    struct pprof_entries *e = &x->entries[number];
    struct pprof_span *span = e->spans + e->ids.n;
    const char *end = r->in.p + r->in.n;
    const char *p = r->in.p + r->at;
    struct sv field;
    while ((field = wire_short_field(p, end, (unsigned)number)).p != NULL) {
        *span++ = (struct pprof_span){(uint32_t)(field.p - r->in.p), (uint32_t)field.n};
        p = field.p + field.n;
    }
    e->ids.n = (size_t)(span - e->spans);
    r->at = (size_t)(p - r->in.p);
}

/* Notes the bytes of the next entry and returns its place. */
static inline size_t next_entry(struct pprof_index *x, const struct wire_field *f)
{
    struct pprof_entries *e = &x->entries[f->number];
    size_t i = e->ids.n++;
    e->spans[i] = (struct pprof_span){
        .at = (uint32_t)(f->bytes.p - x->plain.p),
        .n = (uint32_t)f->bytes.n,
    };
    return i;
}

/* Marks the strings of a field of the profile itself: a type, a comment, ... */
static void use_strings(struct pprof_index *x, const struct field_table *table,
                        const struct wire_field *f)
{
    bool *used = x->entries[PROFILE_STRING].used;
    enum field_kind kind = field_kind_of(table, f);
    struct wire_numbers numbers = wire_numbers_of(f);
    uint64_t number;
    while ((kind == FIELD_STRING || kind == FIELD_STRINGS) &&
           wire_numbers_next(&numbers, &number)) {
        used[number] = true;
    }
    struct wire_reader r = wire_reader_of(f->bytes);
    struct wire_field inner = {.number = 0};
    while (kind == FIELD_MESSAGE && wire_next(&r, &inner)) {
        use_strings(x, table->sub[f->number], &inner);
    }
}

/* Notes a field of the profile itself, which the reader has just read. */
static void note_head(struct pprof_index *x, const struct wire_reader *r,
                      const struct wire_field *f)
{
    if (x->n_heads < PPROF_HEADS_MAX) {
        x->heads[x->n_heads] = (struct pprof_span){
            .at = (uint32_t)r->field_start,
            .n = (uint32_t)(r->at - r->field_start),
        };
    }
    x->n_heads++;
    use_strings(x, &profile_table, f);
}

/* Fills the tables from a profile that was checked. */
static void fill_tables(struct pprof_index *x)
{
    struct wire_reader r = wire_reader_of(x->plain);
    struct wire_field f = {.number = 0};
    for (size_t field = 0; field <= PROFILE_STRING; field++) {
        x->entries[field].ids.n = 0;
    }
    x->n_heads = 0;
    while (wire_next(&r, &f)) {
        if (f.number < PROFILE_SAMPLE || f.number > PROFILE_STRING) {
            note_head(x, &r, &f);
            continue;
        }
        if (f.number < x->first) {
            continue;
        }
        size_t i = next_entry(x, &f);
        if (has_id(f.number)) {
            uint64_t v[MAPPING_BUILD_ID + 1] = {0};
            wire_read_numbers(f.bytes, v, MAPPING_BUILD_ID + 1);
            fill_entry(x, f.number, i, v);
        }
    }
}

/* ---- profiles that are good ------------------------------------------------------------------
 * Nearly all profiles are written in the same way, and have nothing wrong. Their tables are filled
 * while they are checked. These functions return true if all is good for certain. If they return
 * false, the profile may still be good: pprof_check_frame() decides, and finds the error if there
 * is one. */

/* Counts the entries, and reads all other fields. */
static bool quick_count(struct sv plain, struct pprof_summary *ret)
{
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f = {.number = 0};
    uint64_t string_max = 0;
    bool first_empty = false;
    *ret = (struct pprof_summary){.plain_size = plain.n, .whole = true};
    while (wire_next(&r, &f)) {
        if (f.number < PROFILE_SAMPLE || f.number > PROFILE_STRING) {
            if (!pprof_check_head(&f, ret, &string_max)) {
                return false;
            }
            continue;
        }
        if (f.type != WIRE_BYTES) {
            return false;
        }
        first_empty = first_empty ||
                      (f.number == PROFILE_STRING && f.bytes.n == 0 && ret->n[PROFILE_STRING] == 0);
        ret->n[f.number] += 1 + count_run(&r, f.number);
    }
    return r.problem == NULL && ret->n[PROFILE_SAMPLE_TYPE] > 0 && first_empty &&
           string_max < ret->n[PROFILE_STRING];
}

static bool quick_mapping(struct pprof_index *x, size_t i, struct sv message)
{
    const uint64_t strings = x->summary.n[PROFILE_STRING];
    struct rest r = rest_of(x->plain, message);
    uint64_t v[MAPPING_BUILD_ID + 1] = {0};
    for (unsigned field = MAPPING_ID; field <= MAPPING_BUILD_ID; field++) {
        v[field] = take(&r, field);
    }
    for (unsigned field = MAPPING_BUILD_ID + 1; field <= MAPPING_LAST; field++) {
        take(&r, field);
    }
    fill_entry(x, PROFILE_MAPPING, i, v);
    return is_good_end(&r) && v[MAPPING_ID] != 0 && v[MAPPING_FILENAME] < strings &&
           v[MAPPING_BUILD_ID] < strings;
}

static inline bool quick_function(struct pprof_index *x, size_t i, struct sv message)
{
    const uint64_t strings = x->summary.n[PROFILE_STRING];
    struct rest r = rest_of(x->plain, message);
    uint64_t id = take(&r, FUNCTION_ID);
    uint64_t name = take(&r, FUNCTION_NAME);
    uint64_t system_name = take(&r, FUNCTION_SYSTEM_NAME);
    uint64_t file = take(&r, FUNCTION_FILENAME);
    take(&r, FUNCTION_START_LINE);
    x->entries[PROFILE_FUNCTION].ids.at[i] = id;
    x->functions[i] = (struct pprof_function){
        .name = (uint32_t)name,
        .system_name = (uint32_t)system_name,
        .file = (uint32_t)file,
    };
    return is_good_end(&r) && id != 0 && name < strings && system_name < strings && file < strings;
}

/* Reads the lines of a location, which come last, and returns the function of the only line in
 * *ret. Notes if a line refers to a function whose id is above the number of functions. */
static inline bool quick_lines(struct pprof_index *x, struct rest *r, uint64_t *ret)
{
    const uint64_t functions = x->summary.n[PROFILE_FUNCTION];
    size_t n = 0;
    for (uint64_t function; take_line(r, &function); n++) {
        if (function == 0) {
            return false;
        }
        x->lines_known = x->lines_known && function <= functions;
        *ret = n == 0 ? function : 0;
    }
    return is_good_end(r);
}

static inline bool quick_location(struct pprof_index *x, size_t i, struct sv message)
{
    struct rest r = rest_of(x->plain, message);
    uint64_t id = take(&r, LOCATION_ID);
    uint64_t mapping = take(&r, LOCATION_MAPPING_ID);
    uint64_t address = take(&r, LOCATION_ADDRESS);
    x->entries[PROFILE_LOCATION].ids.at[i] = id;
    x->locations[i] = (struct pprof_location){.mapping = mapping, .address = address};
    return id != 0 && quick_lines(x, &r, &x->locations[i].function);
}

/* Reads an entry of any kind. */
static inline bool quick_entry(struct pprof_index *x, const struct wire_field *f)
{
    size_t i = next_entry(x, f);
    switch (f->number) {
    case PROFILE_MAPPING:
        return quick_mapping(x, i, f->bytes);
    case PROFILE_LOCATION:
        return quick_location(x, i, f->bytes);
    case PROFILE_FUNCTION:
        return quick_function(x, i, f->bytes);
    default:
        return true;
    }
}

static bool quick_tables(struct pprof_index *x)
{
    struct wire_reader r = wire_reader_of(x->plain);
    struct wire_field f = {.number = 0};
    x->lines_known = true;
    while (wire_next(&r, &f)) {
        if (f.number < PROFILE_SAMPLE || f.number > PROFILE_STRING) {
            note_head(x, &r, &f);
        } else if (!quick_entry(x, &f)) {
            return false;
        } else if (!has_id(f.number)) {
            note_run(x, &r, f.number);
        }
    }
    return true;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void key_mappings(struct pprof_index *x)
{
    for (size_t i = 0; i < x->entries[PROFILE_MAPPING].ids.n; i++) {
        struct pprof_mapping *m = &x->mappings[i];
        /* A string whose index is not 0 may be empty too. */
        uint32_t name = pprof_string(x, m->build_id).n > 0 ? m->build_id : m->file;
        m->key = pprof_string(x, name).n > 0 ? hash_text(x, name) | 1 : 0;
    }
}

static uint64_t function_key(struct pprof_index *x, size_t i)
{
    struct pprof_function *f = &x->functions[i];
    if (!f->has_key) {
        uint64_t v[FUNCTION_START_LINE + 1] = {0};
        struct sv message = pprof_span_of(x, x->entries[PROFILE_FUNCTION].spans[i]);
        wire_read_numbers(message, v, FUNCTION_START_LINE + 1);
        const uint64_t parts[] = {hash_text(x, f->name), hash_text(x, f->system_name),
                                  hash_text(x, f->file), v[FUNCTION_START_LINE]};
        f->key = pprof_hash_of(x->seed, parts, 4);
        f->has_key = true;
    }
    return f->key;
}

/* Adds one line of a location to its key. */
static void add_line(struct pprof_index *x, struct sv message, uint64_t *key)
{
    uint64_t v[LINE_COLUMN + 1] = {0};
    size_t place = 0;
    wire_read_numbers(message, v, LINE_COLUMN + 1);
    pprof_ids_find(&x->entries[PROFILE_FUNCTION].ids, v[LINE_FUNCTION_ID], &place);
    const uint64_t parts[] = {*key, function_key(x, place), v[LINE_LINE], v[LINE_COLUMN]};
    *key = pprof_hash_of(x->seed, parts, 4);
}

/* Returns the key of an address: its offset in the mapped file, so that the key survives a restart
 * that maps the file elsewhere. If the mapping has no name, the address alone is the key. */
static uint64_t address_key(const struct pprof_index *x, const struct pprof_mapping *m,
                            uint64_t address)
{
    bool inside =
        m != NULL && m->key != 0 && address >= m->start && (m->limit == 0 || address < m->limit);
    const uint64_t parts[] = {
        BY_ADDRESS,
        m == NULL ? 0 : m->key,
        inside ? address - m->start + m->offset : address,
        inside,
    };
    return pprof_hash_of(x->seed, parts, 4);
}

/* Returns the mapping of a location, or NULL if it has none. */
static const struct pprof_mapping *mapping_of(const struct pprof_index *x, size_t i)
{
    size_t place;
    bool found = pprof_ids_find(&x->entries[PROFILE_MAPPING].ids, x->locations[i].mapping, &place);
    return found ? &x->mappings[place] : NULL;
}

static void key_location(struct pprof_index *x, size_t i)
{
    uint64_t address = x->locations[i].address;
    uint64_t *key = &x->location_keys[i];
    const struct pprof_mapping *m = mapping_of(x, i);
    if (address != 0) {
        *key = address_key(x, m, address);
        return;
    }
    const uint64_t start[] = {BY_LINES, m != NULL ? m->key : 0};
    struct wire_reader r = wire_reader_of(pprof_span_of(x, x->entries[PROFILE_LOCATION].spans[i]));
    struct wire_field f = {.number = 0};
    *key = pprof_hash_of(x->seed, start, 2);
    while (wire_next(&r, &f)) {
        if (f.number == LOCATION_LINE) {
            add_line(x, f.bytes, key);
        }
    }
}

bool pprof_index_keys(struct pprof_index *x, struct scratch *s)
{
    size_t n = x->entries[PROFILE_LOCATION].ids.n;
    x->location_keys = scratch_array(s, n, sizeof(*x->location_keys));
    if (x->location_keys == NULL) {
        return false;
    }
    key_mappings(x);
    for (size_t i = 0; i < n; i++) {
        key_location(x, i);
    }
    return true;
}

/* ---- references ------------------------------------------------------------------------------ */

/* Returns true if the functions of all lines of a location exist for certain. */
static inline bool quick_lines_exist(const struct pprof_index *x, struct sv message)
{
    const struct pprof_ids *functions = &x->entries[PROFILE_FUNCTION].ids;
    struct rest r = rest_of(x->plain, message);
    size_t place;
    take(&r, LOCATION_ID);
    take(&r, LOCATION_MAPPING_ID);
    take(&r, LOCATION_ADDRESS);
    for (uint64_t function; take_line(&r, &function);) {
        if (!pprof_ids_find(functions, function, &place)) {
            return false;
        }
    }
    return is_good_end(&r);
}

static bool check_lines(const struct pprof_index *x, struct sv message, struct err *err)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        uint64_t v[LINE_FUNCTION_ID + 1] = {0};
        size_t place;
        if (f.number != LOCATION_LINE) {
            continue;
        }
        wire_read_numbers(f.bytes, v, LINE_FUNCTION_ID + 1);
        if (!pprof_ids_find(&x->entries[PROFILE_FUNCTION].ids, v[LINE_FUNCTION_ID], &place)) {
            return err_set(err, ERR_INPUT, "line at byte %zu: function %llu is not there",
                           (size_t)(f.bytes.p - x->plain.p),
                           (unsigned long long)v[LINE_FUNCTION_ID]);
        }
    }
    return true;
}

/* Checks that the mapping and the functions of a location exist. */
static bool check_location(const struct pprof_index *x, size_t i, struct err *err)
{
    struct pprof_span span = x->entries[PROFILE_LOCATION].spans[i];
    uint64_t mapping = x->locations[i].mapping;
    if (mapping != 0 && mapping_of(x, i) == NULL) {
        return err_set(err, ERR_INPUT, "location at byte %u: mapping %llu is not there",
                       (unsigned)span.at, (unsigned long long)mapping);
    }
    struct sv message = pprof_span_of(x, span);
    size_t place;
    return x->lines_known ||
           pprof_ids_find(&x->entries[PROFILE_FUNCTION].ids, x->locations[i].function, &place) ||
           quick_lines_exist(x, message) || check_lines(x, message, err);
}

/* Finds places by id, and checks that entries exist, once the tables are filled. */
static bool finish(struct pprof_index *x, struct scratch *s, struct err *err)
{
    for (size_t field = PROFILE_MAPPING; field <= PROFILE_FUNCTION; field++) {
        if (!finish_ids(&x->entries[field].ids, s, profile_table.sub[field]->name, err)) {
            return false;
        }
    }
    /* Only ids 1, 2, 3, ... are known from their number. */
    x->lines_known = x->lines_known && x->entries[PROFILE_FUNCTION].ids.slots == NULL;
    for (size_t i = 0; i < x->entries[PROFILE_LOCATION].ids.n; i++) {
        if (!check_location(x, i, err)) {
            return false;
        }
    }
    return true;
}

bool pprof_index(struct pprof_index *x, struct scratch *s, struct sv plain,
                 const struct pprof_summary *summary, uint64_t seed, struct err *err)
{
    *x = (struct pprof_index){.plain = plain, .summary = *summary, .seed = seed};
    if (!make_tables(x, s, PROFILE_MAPPING)) {
        return err_memory(err);
    }
    fill_tables(x);
    return finish(x, s, err);
}

bool pprof_index_frame(struct pprof_index *x, struct scratch *s, struct sv plain, const char *what,
                       uint64_t seed, struct err *err)
{
    struct err ignored = ERR_INIT;
    *x = (struct pprof_index){.plain = plain, .seed = seed};
    bool made = quick_count(plain, &x->summary) &&
                pprof_small_enough(x->summary.n, what, &ignored) &&
                make_tables(x, s, PROFILE_SAMPLE);
    if (made && quick_tables(x)) {
        return finish(x, s, err);
    }
    if (!pprof_check_frame(plain, &x->summary, err) ||
        !pprof_small_enough(x->summary.n, what, err)) {
        return false;
    }
    if (!made && !make_tables(x, s, PROFILE_SAMPLE)) {
        return err_memory(err);
    }
    x->lines_known = false;
    fill_tables(x);
    return finish(x, s, err);
}

bool pprof_index_whole(struct pprof_index *x, struct scratch *s, struct sv plain, const char *what,
                       uint64_t seed, struct err *err)
{
    const struct pprof_entries *samples = &x->entries[PROFILE_SAMPLE];
    bool good = pprof_index_frame(x, s, plain, what, seed, err);
    for (size_t i = 0; good && i < samples->ids.n; i++) {
        struct sv sample = pprof_span_of(x, samples->spans[i]);
        good = pprof_check_sample(plain, &x->summary, sample, err);
    }
    return good;
}
