#include "pprof/index.h"

#include "pprof/fields.h"

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

static uint64_t hash_text(const struct pprof_index *x, uint64_t string)
{
    struct sv text = pprof_string(x, string);
    return hash_bytes(text.p, text.n, x->seed ^ SEED_TEXT);
}

/* ---- ids ------------------------------------------------------------------------------------- */

/* The slot of an id: with its place, or free. */
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

/* Builds the table for pprof_ids_find() once all ids are known. */
static bool finish_ids(struct pprof_ids *ids, struct scratch *s, const char *what, struct err *err)
{
    if (in_order(ids)) {
        return true;
    }
    ids->slots = scratch_slots(s, ids->n, &ids->mask);
    if (ids->slots == NULL) {
        return err_memory(err);
    }
    for (size_t i = 0; i < ids->n; i++) {
        size_t slot = slot_of(ids, ids->at[i]);
        if (ids->slots[slot] != 0) {
            return err_set(err, ERR_INPUT, "two %ss with the id %llu", what,
                           (unsigned long long)ids->at[i]);
        }
        ids->slots[slot] = (uint32_t)i + 1;
    }
    return true;
}

/* ---- the tables ------------------------------------------------------------------------------ */

static bool make_tables(struct pprof_index *x, struct scratch *s)
{
    const size_t *n = x->summary.n;
    bool ok = true;
    for (size_t field = PROFILE_MAPPING; field <= PROFILE_STRING; field++) {
        struct pprof_entries *e = &x->entries[field];
        size_t ids = field == PROFILE_STRING ? 0 : n[field];
        e->spans = scratch_array(s, n[field], sizeof(*e->spans));
        e->used = scratch_zeroed(s, n[field], sizeof(*e->used));
        e->ids.at = scratch_array(s, ids, sizeof(*e->ids.at));
        e->ids.seed = x->seed;
        ok = ok && e->spans != NULL && e->used != NULL && e->ids.at != NULL;
    }
    x->locations = scratch_array(s, n[PROFILE_LOCATION], sizeof(*x->locations));
    x->location_keys = scratch_array(s, n[PROFILE_LOCATION], sizeof(*x->location_keys));
    x->functions = scratch_array(s, n[PROFILE_FUNCTION], sizeof(*x->functions));
    x->mappings = scratch_array(s, n[PROFILE_MAPPING], sizeof(*x->mappings));
    return ok && x->locations != NULL && x->location_keys != NULL && x->functions != NULL &&
           x->mappings != NULL;
}

/* Fills in an entry with an id. The strings may come later: what depends on them has only their
 * numbers so far, in place of the key of a mapping too. */
static void fill_entry(struct pprof_index *x, uint64_t field, size_t i, struct sv message)
{
    uint64_t v[MAPPING_BUILD_ID + 1] = {0};
    wire_read_numbers(message, v, MAPPING_BUILD_ID + 1);
    x->entries[field].ids.at[i] = v[profile_table.sub[field]->id];
    switch (field) {
    case PROFILE_MAPPING:
        x->mappings[i] = (struct pprof_mapping){
            .key = v[MAPPING_BUILD_ID] != 0 ? v[MAPPING_BUILD_ID] : v[MAPPING_FILENAME],
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

static void fill_tables(struct pprof_index *x)
{
    struct wire_reader r = wire_reader_of(x->plain);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number < PROFILE_MAPPING || f.number > PROFILE_STRING) {
            continue;
        }
        struct pprof_entries *e = &x->entries[f.number];
        size_t i = e->ids.n++;
        e->spans[i] = (struct pprof_span){
            .at = (uint32_t)(f.bytes.p - x->plain.p),
            .n = (uint32_t)f.bytes.n,
        };
        if (f.number != PROFILE_STRING) {
            fill_entry(x, f.number, i, f.bytes);
        }
    }
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void key_mappings(struct pprof_index *x)
{
    for (size_t i = 0; i < x->entries[PROFILE_MAPPING].ids.n; i++) {
        struct pprof_mapping *m = &x->mappings[i];
        bool named = pprof_string(x, m->key).n > 0;
        m->key = named ? hash_text(x, m->key) | 1 : 0;
    }
}

static uint64_t function_key(struct pprof_index *x, size_t i)
{
    struct pprof_function *f = &x->functions[i];
    if (!f->has_key) {
        const uint64_t parts[] = {hash_text(x, f->name), hash_text(x, f->file)};
        f->key = pprof_hash_of(x->seed, parts, 2);
        f->has_key = true;
    }
    return f->key;
}

/* Adds one line of a location to its key, if that has no address. */
static bool add_line(struct pprof_index *x, struct sv message, uint64_t *key, bool by_lines,
                     struct err *err)
{
    uint64_t v[LINE_LINE + 1] = {0};
    size_t place;
    wire_read_numbers(message, v, LINE_LINE + 1);
    if (!pprof_ids_find(&x->entries[PROFILE_FUNCTION].ids, v[LINE_FUNCTION_ID], &place)) {
        return err_set(err, ERR_INPUT, "line at byte %zu: function %llu is not there",
                       (size_t)(message.p - x->plain.p), (unsigned long long)v[LINE_FUNCTION_ID]);
    }
    if (by_lines) {
        const uint64_t parts[] = {*key, function_key(x, place), v[LINE_LINE]};
        *key = pprof_hash_of(x->seed, parts, 3);
    }
    return true;
}

/* Where the address is in the file that is mapped there, so that the key survives a restart
 * that maps the file elsewhere. Without a name, the address alone is the key. */
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

static bool key_location(struct pprof_index *x, size_t i, struct err *err)
{
    const struct pprof_location *l = &x->locations[i];
    struct pprof_span span = x->entries[PROFILE_LOCATION].spans[i];
    uint64_t *key = &x->location_keys[i];
    const struct pprof_mapping *m = NULL;
    size_t place;
    if (l->mapping != 0) {
        if (!pprof_ids_find(&x->entries[PROFILE_MAPPING].ids, l->mapping, &place)) {
            return err_set(err, ERR_INPUT, "location at byte %u: mapping %llu is not there",
                           (unsigned)span.at, (unsigned long long)l->mapping);
        }
        m = &x->mappings[place];
    }
    const uint64_t start[] = {BY_LINES, l->address == 0 && m != NULL ? m->key : 0};
    *key = l->address != 0 ? address_key(x, m, l->address) : pprof_hash_of(x->seed, start, 2);
    struct wire_reader r = wire_reader_of(pprof_span_of(x, span));
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number == LOCATION_LINE && !add_line(x, f.bytes, key, l->address == 0, err)) {
            return false;
        }
    }
    return true;
}

bool pprof_index(struct pprof_index *x, struct scratch *s, struct sv plain,
                 const struct pprof_summary *summary, uint64_t seed, struct err *err)
{
    *x = (struct pprof_index){.plain = plain, .summary = *summary, .seed = seed};
    if (!make_tables(x, s)) {
        return err_memory(err);
    }
    fill_tables(x);
    for (size_t field = PROFILE_MAPPING; field <= PROFILE_FUNCTION; field++) {
        if (!finish_ids(&x->entries[field].ids, s, profile_table.sub[field]->name, err)) {
            return false;
        }
    }
    key_mappings(x);
    for (size_t i = 0; i < x->entries[PROFILE_LOCATION].ids.n; i++) {
        if (!key_location(x, i, err)) {
            return false;
        }
    }
    return true;
}
