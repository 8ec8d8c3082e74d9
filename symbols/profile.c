#include "symbols/profile.h"

#include <string.h>

#include "pprof/gzip.h"
#include "pprof/wire.h"

/* The bytes of a profile's beginning that symbol_profile_glance() inflates. */
#define GLANCE_SIZE ((size_t)8 * 1024)
/* The locations that symbol_profile_glance() looks at. */
#define GLANCE_LOCATIONS 64
/* The mark between file and place in the name of an unknown address. */
#define UNKNOWN_MARK "!0x"
#define UNKNOWN_PLACE "[unknown]"

/* ---- sets of ids ----------------------------------------------------------------------------- */

/* Maps ids to places, by open addressing. */
struct id_map {
    uint64_t *ids;
    uint32_t *slots; /* place + 1; 0: free */
    size_t n;
    size_t mask;
};

static bool id_map_init(struct id_map *m, struct scratch *s, size_t max)
{
    m->n = 0;
    m->ids = scratch_array(s, max + 1, sizeof(*m->ids));
    m->slots = scratch_slots(s, max + 1, &m->mask);
    return m->ids != NULL && m->slots != NULL;
}

static uint32_t *id_map_slot(const struct id_map *m, uint64_t id)
{
    size_t i = (size_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & m->mask;
    while (m->slots[i] != 0 && m->ids[m->slots[i] - 1] != id) {
        i = (i + 1) & m->mask;
    }
    return &m->slots[i];
}

static void id_map_add(struct id_map *m, uint64_t id)
{
    uint32_t *slot = id_map_slot(m, id);
    m->ids[m->n++] = id;
    if (*slot == 0) {
        *slot = (uint32_t)m->n;
    }
}

/* Returns the place of an id + 1; 0 if it is not there. */
static uint32_t id_map_find(const struct id_map *m, uint64_t id)
{
    if (m->n == 0) {
        return 0;
    }
    if (id - 1 < m->n && m->ids[id - 1] == id) {
        return (uint32_t)id; /* nearly all writers number their entries 1, 2, 3, ... */
    }
    return *id_map_slot(m, id);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The part of a profile from the first to the last entry of one kind. Writers keep the entries of a
 * kind together, so that reading them does not pass those of another kind. */
struct extent {
    size_t begin;
    size_t end;
};

struct reading {
    struct symbol_profile *p;
    struct sv *strings;
    size_t counts[PROFILE_STRING + 1];
    struct extent extents[PROFILE_STRING + 1];
    struct id_map mappings;
    struct id_map nameless; /* functions without a name, or with that of an unknown address */
    struct id_map marked;   /* functions with the name of an unknown address */
};

/* Counts the entries and finds where those of each kind are. */
static bool count_entries(struct reading *g, struct err *err)
{
    struct wire_reader r = wire_reader_of(g->p->plain);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number <= PROFILE_STRING) {
            if (f.type != WIRE_BYTES) {
                return err_set(err, ERR_INPUT, "field %llu at byte %zu is no message",
                               (unsigned long long)f.number, r.field_start);
            }
            struct extent *x = &g->extents[f.number];
            x->begin = g->counts[f.number] == 0 ? r.field_start : x->begin;
            x->end = r.at;
            g->counts[f.number]++;
        }
    }
    return r.problem == NULL || err_set(err, ERR_INPUT, "%s at byte %zu", r.problem, r.field_start);
}

/* Returns a reader of the part of the profile that has all entries of a kind. */
static struct wire_reader reader_of(const struct reading *g, unsigned kind)
{
    struct sv part = {g->p->plain.p, g->extents[kind].end};
    return (struct wire_reader){.in = part, .at = g->extents[kind].begin};
}

/* Returns true for the name that this file gives to an unknown address. */
static bool is_unknown_name(struct sv name)
{
    if (sv_eq(name, SV(UNKNOWN_PLACE))) {
        return true;
    }
    size_t n = name.n;
    while (n > 0 && ((name.p[n - 1] >= '0' && name.p[n - 1] <= '9') ||
                     (name.p[n - 1] >= 'a' && name.p[n - 1] <= 'f'))) {
        n--;
    }
    return n < name.n && sv_ends_with((struct sv){name.p, n}, SV(UNKNOWN_MARK));
}

static struct sv string_at(const struct reading *g, uint64_t i)
{
    return i < g->counts[PROFILE_STRING] ? g->strings[i] : SV("");
}

static void read_function(struct reading *g, struct sv message)
{
    uint64_t v[FUNCTION_NAME + 1] = {0};
    wire_read_numbers(message, v, FUNCTION_NAME + 1);
    struct symbol_profile *p = g->p;
    p->max_function = v[FUNCTION_ID] > p->max_function ? v[FUNCTION_ID] : p->max_function;
    struct sv name = string_at(g, v[FUNCTION_NAME]);
    bool marked = is_unknown_name(name);
    if (name.n == 0 || marked) {
        id_map_add(&g->nameless, v[FUNCTION_ID]);
    }
    if (marked) {
        id_map_add(&g->marked, v[FUNCTION_ID]);
    }
}

static void read_mapping(struct reading *g, size_t field_at, struct sv message)
{
    uint64_t v[MAPPING_BUILD_ID + 1] = {0};
    wire_read_numbers(message, v, MAPPING_BUILD_ID + 1);
    id_map_add(&g->mappings, v[MAPPING_ID]);
    g->p->mappings[g->p->n_mappings++] = (struct symbol_binary){
        .id = v[MAPPING_ID],
        .start = v[MAPPING_START],
        .limit = v[MAPPING_LIMIT],
        .offset = v[MAPPING_OFFSET],
        .file = string_at(g, v[MAPPING_FILENAME]),
        .build_id = string_at(g, v[MAPPING_BUILD_ID]),
        .old = {(uint32_t)field_at, (uint32_t)(message.p - g->p->plain.p), (uint32_t)message.n},
    };
}

static void read_strings(struct reading *g)
{
    struct wire_reader r = reader_of(g, PROFILE_STRING);
    struct wire_field f = {.number = 0};
    size_t n = 0;
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_STRING) {
            g->strings[n++] = f.bytes;
        }
    }
}

static void read_functions(struct reading *g)
{
    struct wire_reader r = reader_of(g, PROFILE_FUNCTION);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_FUNCTION) {
            read_function(g, f.bytes);
        }
    }
}

static void read_mappings(struct reading *g)
{
    struct wire_reader r = reader_of(g, PROFILE_MAPPING);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_MAPPING) {
            read_mapping(g, r.field_start, f.bytes);
        }
    }
}

/* Returns true if a line is one of a function with a name. */
static bool read_line(const struct reading *g, struct sv message, struct symbol_location *ret)
{
    uint64_t v[LINE_LINE + 1] = {0};
    wire_read_numbers(message, v, LINE_LINE + 1);
    ret->old.is_marked = id_map_find(&g->marked, v[LINE_FUNCTION_ID]) != 0;
    ret->old.has_lines = true;
    return id_map_find(&g->nameless, v[LINE_FUNCTION_ID]) == 0;
}

/* Returns true if an address can be one of code. Go writes the last address there is for a thread
 * whose creator is unknown: 0, minus the 1 that it takes from return addresses. */
static bool is_place(uint64_t address)
{
    return address != 0 && address != UINT64_MAX;
}

/* Reads the next field of a location. Its numbers are read in one step each, as the profile has
 * bytes after nearly all of them. Returns false at the end, or at a problem. */
static inline bool next_in_location(const struct reading *g, struct wire_reader *r,
                                    struct wire_field *f)
{
    const char *p = r->in.p + r->at;
    const char *end = r->in.p + r->in.n;
    unsigned tag = p < end ? (unsigned char)*p : 0;
    if ((tag & 0x87) != WIRE_VARINT || tag < 1 << 3) {
        return wire_next(r, f);
    }
    struct wire_varint v = wire_varint_ahead(p + 1, g->p->plain.p + g->p->plain.n);
    if (v.next == NULL || v.next > end) {
        return wire_fail_number(r, v.next == NULL ? v.value : 1);
    }
    f->number = tag >> 3;
    f->type = WIRE_VARINT;
    f->value = v.value;
    r->at = (size_t)(v.next - r->in.p);
    return true;
}

/* Reads a location. Returns true if it lacks names. */
static bool read_location(const struct reading *g, struct sv message, struct symbol_location *ret,
                          uint64_t *ret_mapping)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    *ret = (struct symbol_location){.mapping = SYMBOL_NO_MAPPING};
    while (next_in_location(g, &r, &f)) {
        if (f.number == LOCATION_LINE && f.type == WIRE_BYTES) {
            if (g->nameless.n == 0 || read_line(g, f.bytes, ret)) {
                return false;
            }
        } else if (f.type == WIRE_VARINT && f.number == LOCATION_ADDRESS) {
            ret->address = f.value;
        } else if (f.type == WIRE_VARINT && f.number == LOCATION_MAPPING_ID) {
            *ret_mapping = f.value;
        }
    }
    return is_place(ret->address) && r.problem == NULL;
}

static bool add_location(struct reading *g, size_t field_at, struct sv message, struct err *err)
{
    struct symbol_profile *p = g->p;
    struct symbol_location l;
    uint64_t mapping = 0;
    if (!read_location(g, message, &l, &mapping)) {
        return true;
    }
    if (p->locations == NULL) {
        p->locations =
            scratch_array(p->scratch, g->counts[PROFILE_LOCATION], sizeof(*p->locations));
        if (p->locations == NULL) {
            return err_memory(err);
        }
    }
    uint32_t place = id_map_find(&g->mappings, mapping);
    if (place != 0) {
        l.mapping = place - 1;
        p->mappings[place - 1].unnamed++;
    }
    l.old.field_at = (uint32_t)field_at;
    l.old.at = (uint32_t)(message.p - p->plain.p);
    l.old.n = (uint32_t)message.n;
    p->locations[p->n_locations++] = l;
    return true;
}

static bool read_locations(struct reading *g, struct err *err)
{
    struct wire_reader r = reader_of(g, PROFILE_LOCATION);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_LOCATION && !add_location(g, r.field_start, f.bytes, err)) {
            return false;
        }
    }
    return true;
}

static bool make_room(struct reading *g, struct err *err)
{
    struct symbol_profile *p = g->p;
    g->strings = scratch_array(p->scratch, g->counts[PROFILE_STRING] + 1, sizeof(*g->strings));
    p->mappings = scratch_array(p->scratch, g->counts[PROFILE_MAPPING] + 1, sizeof(*p->mappings));
    if (g->strings == NULL || p->mappings == NULL ||
        !id_map_init(&g->mappings, p->scratch, g->counts[PROFILE_MAPPING]) ||
        !id_map_init(&g->nameless, p->scratch, g->counts[PROFILE_FUNCTION]) ||
        !id_map_init(&g->marked, p->scratch, g->counts[PROFILE_FUNCTION])) {
        err_memory(err);
        return false;
    }
    return true;
}

bool symbol_profile_read(struct symbol_profile *p, struct scratch *scratch, struct sv plain,
                         struct err *err)
{
    struct reading g = {.p = p};
    *p = (struct symbol_profile){.plain = plain, .scratch = scratch};
    if (plain.n >= UINT32_MAX) {
        return err_set(err, ERR_LIMIT, "a profile of 4 GiB or more");
    }
    if (!count_entries(&g, err)) {
        return false;
    }
    if (g.counts[PROFILE_LOCATION] == 0) {
        return true;
    }
    if (!make_room(&g, err)) {
        return false;
    }
    p->n_strings = g.counts[PROFILE_STRING];
    read_strings(&g);
    /* Locations refer to mappings and functions, which may stand after them. */
    read_functions(&g);
    read_mappings(&g);
    if (p->max_function == UINT64_MAX) {
        return err_set(err, ERR_INPUT, "no id is left for another function");
    }
    return read_locations(&g, err);
}

bool symbol_profile_changes(const struct symbol_profile *p)
{
    for (size_t i = 0; i < p->n_locations; i++) {
        if (p->locations[i].n_lines > 0 || !p->locations[i].old.is_marked) {
            return true;
        }
    }
    return false;
}

uint64_t symbol_file_offset(const struct symbol_binary *m, uint64_t address)
{
    bool inside = address >= m->start && (m->limit == 0 || address < m->limit);
    return inside ? address - m->start + m->offset : address;
}

/* ---- a glance -------------------------------------------------------------------------------- */

static bool has_line(struct sv location)
{
    struct wire_reader r = wire_reader_of(location);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number == LOCATION_LINE) {
            return true;
        }
    }
    return false;
}

enum symbol_glance symbol_profile_glance(struct sv body)
{
    char room[GLANCE_SIZE];
    struct sv start = {body.p, body.n < GLANCE_SIZE ? body.n : GLANCE_SIZE};
    if (gzip_is(body)) {
        start = gzip_inflate_start(start, room, sizeof(room)).plain;
    }
    struct wire_reader r = wire_reader_of(start);
    struct wire_field f = {.number = 0};
    size_t n = 0;
    while (n < GLANCE_LOCATIONS && wire_next(&r, &f)) {
        if (f.number == PROFILE_LOCATION && f.type == WIRE_BYTES) {
            n++;
            if (!has_line(f.bytes)) {
                return SYMBOL_GLANCE_UNNAMED;
            }
        }
    }
    return n > 0 ? SYMBOL_GLANCE_NAMED : SYMBOL_GLANCE_UNSURE;
}

/* ---- a quick pass ---------------------------------------------------------------------------- */

/* Returns true if a function has no name. */
static bool is_nameless(struct sv function)
{
    struct wire_reader r = wire_reader_of(function);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number == FUNCTION_NAME && f.type == WIRE_VARINT) {
            return f.value == 0;
        }
    }
    return true;
}

bool symbol_profile_may_lack(struct sv plain)
{
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.type == WIRE_BYTES && ((f.number == PROFILE_LOCATION && !has_line(f.bytes)) ||
                                     (f.number == PROFILE_FUNCTION && is_nameless(f.bytes)) ||
                                     (f.number == PROFILE_STRING && is_unknown_name(f.bytes)))) {
            return true;
        }
    }
    return false;
}
