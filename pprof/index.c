#include "pprof/index.h"

/* The hashes of texts have a seed of their own. */
#define SEED_TEXT UINT64_C(0x9ddfea08eb382d69)

/* What a location's key is made of. */
enum { BY_ADDRESS = 1, BY_LINES = 2 };

static bool no_memory(struct err *err)
{
    return err_memory(err);
}

struct sv pprof_span_of(const struct pprof_index *x, struct pprof_span span)
{
    return (struct sv){.p = x->plain.p + span.at, .n = span.n};
}

struct sv pprof_string(const struct pprof_index *x, uint64_t i)
{
    return pprof_span_of(x, x->strings[i]);
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
    size_t i = (size_t)pprof_key_of(ids->seed, &id, 1).half[0] & ids->mask;
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

/* Builds what pprof_ids_find() needs, once all ids are there. */
static bool finish_ids(struct pprof_ids *ids, struct scratch *s, const char *what, struct err *err)
{
    if (in_order(ids)) {
        return true;
    }
    size_t slots = 16;
    while (slots < 2 * ids->n) {
        slots *= 2;
    }
    ids->mask = slots - 1;
    ids->slots = scratch_zeroed(s, slots, sizeof(*ids->slots));
    if (ids->slots == NULL) {
        return no_memory(err);
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
    x->strings = scratch_array(s, n[PROFILE_STRING], sizeof(*x->strings));
    x->string_used = scratch_zeroed(s, n[PROFILE_STRING], sizeof(*x->string_used));
    x->locations = scratch_array(s, n[PROFILE_LOCATION], sizeof(*x->locations));
    x->location_keys = scratch_array(s, n[PROFILE_LOCATION], sizeof(*x->location_keys));
    x->functions = scratch_zeroed(s, n[PROFILE_FUNCTION], sizeof(*x->functions));
    x->mappings = scratch_zeroed(s, n[PROFILE_MAPPING], sizeof(*x->mappings));
    x->location_ids.at = scratch_array(s, n[PROFILE_LOCATION], sizeof(uint64_t));
    x->function_ids.at = scratch_array(s, n[PROFILE_FUNCTION], sizeof(uint64_t));
    x->mapping_ids.at = scratch_array(s, n[PROFILE_MAPPING], sizeof(uint64_t));
    x->location_ids.seed = x->function_ids.seed = x->mapping_ids.seed = x->seed;
    return x->strings != NULL && x->string_used != NULL && x->locations != NULL &&
           x->location_keys != NULL && x->functions != NULL && x->mappings != NULL &&
           x->location_ids.at != NULL && x->function_ids.at != NULL && x->mapping_ids.at != NULL;
}

static struct pprof_span span_of(const struct pprof_index *x, struct sv v)
{
    return (struct pprof_span){.at = (uint32_t)(v.p - x->plain.p), .n = (uint32_t)v.n};
}

static uint64_t read_id(struct sv message)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    uint64_t id = 0;
    while (wire_next(&r, &f)) {
        id = f.number == LOCATION_ID ? f.value : id; /* 1, as in functions */
    }
    return id;
}

static void add_location(struct pprof_index *x, struct sv message)
{
    size_t i = x->location_ids.n++;
    x->location_ids.at[i] = read_id(message);
    x->locations[i] = (struct pprof_location){.span = span_of(x, message)};
}

static void add_function(struct pprof_index *x, struct sv message)
{
    size_t i = x->function_ids.n++;
    struct pprof_function *function = &x->functions[i];
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    function->span = span_of(x, message);
    while (wire_next(&r, &f)) {
        switch (f.number) {
        case FUNCTION_ID:
            x->function_ids.at[i] = f.value;
            break;
        case FUNCTION_NAME:
            function->name = (uint32_t)f.value;
            break;
        case FUNCTION_FILENAME:
            function->file = (uint32_t)f.value;
            break;
        default:
            break;
        }
    }
}

/* The strings may come later: the key is made at the end, of this one. */
static void add_mapping(struct pprof_index *x, struct sv message)
{
    size_t i = x->mapping_ids.n++;
    struct pprof_mapping *m = &x->mappings[i];
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    uint64_t build_id = 0;
    uint64_t file = 0;
    m->span = span_of(x, message);
    while (wire_next(&r, &f)) {
        uint64_t *const fields[] = {
            [MAPPING_ID] = &x->mapping_ids.at[i], [MAPPING_START] = &m->start,
            [MAPPING_LIMIT] = &m->limit,          [MAPPING_OFFSET] = &m->offset,
            [MAPPING_FILENAME] = &file,           [MAPPING_BUILD_ID] = &build_id,
        };
        if (f.number <= MAPPING_BUILD_ID) {
            *fields[f.number] = f.value;
        }
    }
    m->key = build_id != 0 ? build_id : file;
}

static void fill_tables(struct pprof_index *x)
{
    struct wire_reader r = wire_reader_of(x->plain);
    struct wire_field f = {.number = 0};
    size_t n_strings = 0;
    while (wire_next(&r, &f)) {
        switch (f.number) {
        case PROFILE_MAPPING:
            add_mapping(x, f.bytes);
            break;
        case PROFILE_LOCATION:
            add_location(x, f.bytes);
            break;
        case PROFILE_FUNCTION:
            add_function(x, f.bytes);
            break;
        case PROFILE_STRING:
            x->strings[n_strings++] = span_of(x, f.bytes);
            break;
        default:
            break;
        }
    }
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void key_mappings(struct pprof_index *x)
{
    for (size_t i = 0; i < x->mapping_ids.n; i++) {
        struct pprof_mapping *m = &x->mappings[i];
        bool named = pprof_string(x, m->key).n > 0;
        m->key = named ? hash_text(x, m->key) | 1 : 0;
    }
}

static struct pprof_key function_key(struct pprof_index *x, size_t i)
{
    struct pprof_function *f = &x->functions[i];
    if (!f->has_key) {
        const uint64_t parts[] = {hash_text(x, f->name), hash_text(x, f->file)};
        f->key = pprof_key_of(x->seed, parts, 2);
        f->has_key = true;
    }
    return f->key;
}

/* Reads one line of a location; goes into its key if it has no address. */
static bool take_line(struct pprof_index *x, struct sv message, struct pprof_key *key,
                      bool by_lines, struct err *err)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    uint64_t function = 0;
    uint64_t line = 0;
    size_t place;
    while (wire_next(&r, &f)) {
        function = f.number == LINE_FUNCTION_ID ? f.value : function;
        line = f.number == LINE_LINE ? f.value : line;
    }
    if (!pprof_ids_find(&x->function_ids, function, &place)) {
        return err_set(err, ERR_INPUT, "line at byte %zu: function %llu is not there",
                       (size_t)(message.p - x->plain.p), (unsigned long long)function);
    }
    if (by_lines) {
        struct pprof_key k = function_key(x, place);
        const uint64_t parts[] = {key->half[0], key->half[1], k.half[0], k.half[1], line};
        *key = pprof_key_of(x->seed, parts, 5);
    }
    return true;
}

/* Where the address is in the file that is mapped there, so that it is the same after a restart
 * that maps the file elsewhere. What has no name is known by the address alone. */
static struct pprof_key address_key(const struct pprof_index *x, const struct pprof_mapping *m,
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
    return pprof_key_of(x->seed, parts, 4);
}

static bool key_location(struct pprof_index *x, size_t i, struct err *err)
{
    const struct pprof_location *l = &x->locations[i];
    struct pprof_key *key = &x->location_keys[i];
    struct sv message = pprof_span_of(x, l->span);
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    uint64_t address = 0;
    uint64_t mapping = 0;
    size_t place;
    while (wire_next(&r, &f)) {
        address = f.number == LOCATION_ADDRESS ? f.value : address;
        mapping = f.number == LOCATION_MAPPING_ID ? f.value : mapping;
    }
    const struct pprof_mapping *m = NULL;
    if (mapping != 0) {
        if (!pprof_ids_find(&x->mapping_ids, mapping, &place)) {
            return err_set(err, ERR_INPUT, "location at byte %u: mapping %llu is not there",
                           (unsigned)l->span.at, (unsigned long long)mapping);
        }
        m = &x->mappings[place];
    }
    const uint64_t start[] = {BY_LINES, address == 0 && m != NULL ? m->key : 0};
    *key = address != 0 ? address_key(x, m, address) : pprof_key_of(x->seed, start, 2);
    r = wire_reader_of(message);
    while (wire_next(&r, &f)) {
        if (f.number == LOCATION_LINE && !take_line(x, f.bytes, key, address == 0, err)) {
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
        return no_memory(err);
    }
    fill_tables(x);
    if (!finish_ids(&x->mapping_ids, s, "mapping", err) ||
        !finish_ids(&x->function_ids, s, "function", err) ||
        !finish_ids(&x->location_ids, s, "location", err)) {
        return false;
    }
    key_mappings(x);
    for (size_t i = 0; i < x->location_ids.n; i++) {
        if (!key_location(x, i, err)) {
            return false;
        }
    }
    return true;
}
