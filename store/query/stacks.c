#include "store/query/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pprof/quick.h"
#include "store/query/frames.h"
#include "store/query/known.h"
#include "store/query/repair.h"
#include "store/query/samples.h"
#include "store/query/tree_private.h"

/* Stands for the leaf of a stack that is not selected. No node has this number. */
#define NO_LEAF (UINT32_MAX - 1)
/* The number of samples whose stacks are looked up together, so that the memory of one is loaded
 * while the keys of the others are computed. */
#define BATCH 16

/* A name as profiles have it. */
struct raw_name {
    uint32_t clean; /* the number of the name that is shown */
    uint32_t next;  /* 1 + the number of the raw name that was looked up after it; 0: none */
};

struct stacks {
    struct tree *tree;
    const struct query_stacks *which;
    struct scratch *scratch;
    uint64_t seed;
    struct known known; /* the stacks seen so far */
    uint32_t *site;     /* numbers of the names of the call site */
    struct table raw;   /* names as profiles have them: most of them occur in many profiles */
    struct raw_name *raw_names; /* by raw name */
    size_t raw_names_cap;
    uint32_t last_raw; /* the raw name that was looked up last */
    /* The members below describe the profile that is being read. */
    struct samples samples;
    struct repair repair;
    struct frames *frames; /* the names of each location */
    uint32_t *names;       /* numbers of names; struct frames has places in it */
    size_t n_names;
    size_t names_cap;
    /* by function: 1 + the number of its name; 0 if it was not looked up yet */
    uint32_t *functions;
    uint32_t *path; /* places of the locations of the current stack, the leaf first */
    size_t path_cap;
    struct buf room; /* for a name */
    bool wants_times;
    struct stacks_times times;
    struct err *err;
};

/* The names of a location, the outermost first. */
struct frames {
    struct pprof_key key;
    uint32_t at;
    uint32_t n;
};

/* ---- the object ------------------------------------------------------------------------------ */

/* Finds the numbers of the names of the call site. */
static bool number_site(struct stacks *s, struct err *err)
{
    size_t n = s->which->n_call_site;
    s->site = calloc(n + 1, sizeof(*s->site));
    if (s->site == NULL) {
        return err_memory(err);
    }
    for (size_t i = 0; i < n; i++) {
        if (!tree_name(s->tree, s->which->call_site[i], &s->site[i], err)) {
            return false;
        }
    }
    return true;
}

struct stacks *stacks_new(struct tree *t, const struct query_stacks *which, size_t work_max,
                          struct err *err)
{
    struct stacks *s = calloc(1, sizeof(*s));
    struct rng rng;
    if (s == NULL) {
        err_memory(err);
        return NULL;
    }
    rng_seed_random(&rng);
    s->tree = t;
    s->which = which;
    s->seed = rng_next(&rng);
    merge_table_init(&s->raw, rng_next(&rng));
    buf_init(&s->room, work_max);
    s->scratch = scratch_new();
    if (s->scratch == NULL) {
        err_memory(err);
        return stacks_free(s);
    }
    scratch_limit(s->scratch, work_max);
    if (!number_site(s, err)) {
        return stacks_free(s);
    }
    return s;
}

struct stacks *stacks_free(struct stacks *s)
{
    if (s != NULL) {
        known_done(&s->known);
        merge_table_done(&s->raw);
        free(s->raw_names);
        scratch_free(s->scratch);
        buf_done(&s->room);
        free(s->site);
        free(s);
    }
    return NULL;
}

void stacks_limit(struct stacks *s, size_t work_max)
{
    scratch_limit(s->scratch, work_max);
    s->room.max = work_max;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Finds the number of the shown name for a raw name that occurs for the first time. */
static bool clean_name(struct stacks *s, struct sv raw, uint32_t *ret)
{
    struct sv name = frame_name(raw, &s->room);
    if (!buf_ok(&s->room)) {
        return err_memory(s->err);
    }
    return tree_name(s->tree, name, ret, s->err);
}

/* Finds the raw name that followed the last one earlier, if it is this one: profiles of a program
 * have their names in nearly the same order, so that most names need no table. */
static bool is_next_raw(const struct stacks *s, struct sv raw, uint32_t *ret)
{
    uint32_t next = s->raw.n == 0 ? 0 : s->raw_names[s->last_raw].next;
    size_t n;
    if (next == 0) {
        return false;
    }
    const char *text = merge_table_get(&s->raw, next - 1, &n);
    *ret = next - 1;
    return n == raw.n && (n == 0 || memcmp(text, raw.p, n) == 0);
}

/* Finds a raw name in the table, or adds it. */
static bool find_raw(struct stacks *s, struct sv raw, uint32_t *ret)
{
    struct budget *budget = &s->tree->budget;
    size_t before = s->raw.n;
    struct raw_name *names =
        budget_grow(budget, s->raw_names, &s->raw_names_cap, before + 1, sizeof(*names), s->err);
    if (names == NULL) {
        return false;
    }
    s->raw_names = names;
    if (!merge_table_add(&s->raw, budget, raw.p, raw.n, raw.n, ret, s->err)) {
        return false;
    }
    if (s->raw.n > before) {
        names[*ret] = (struct raw_name){.next = 0};
        if (!clean_name(s, raw, &names[*ret].clean)) {
            merge_table_truncate(&s->raw, before);
            return false;
        }
    }
    names[s->last_raw].next = *ret + 1;
    return true;
}

static bool number_name(struct stacks *s, struct sv raw, uint32_t *ret)
{
    uint32_t i;
    if (!is_next_raw(s, raw, &i) && !find_raw(s, raw, &i)) {
        return false;
    }
    s->last_raw = i;
    *ret = s->raw_names[i].clean;
    return true;
}

static bool name_of_function(struct stacks *s, size_t place, uint32_t *ret)
{
    const struct pprof_index *x = &s->samples.x;
    uint32_t *number = &s->functions[place];
    if (*number == 0) {
        if (!number_name(s, pprof_string(x, x->functions[place].name), number)) {
            return false;
        }
        ++*number;
    }
    *ret = *number - 1;
    return true;
}

/* ---- locations ------------------------------------------------------------------------------- */

/* Adds a name to those of the location that is being read. */
static bool add_name(struct stacks *s, uint32_t name)
{
    if (s->n_names == s->names_cap) {
        size_t cap = 2 * s->names_cap + 64;
        uint32_t *names =
            scratch_grow(s->scratch, s->names, s->n_names * sizeof(*names), cap * sizeof(*names));
        if (names == NULL) {
            return err_memory(s->err);
        }
        s->names = names;
        s->names_cap = cap;
    }
    s->names[s->n_names++] = name;
    return true;
}

static bool name_address(struct stacks *s, size_t place)
{
    char room[FRAME_ADDRESS_MAX];
    uint32_t name;
    return tree_name(s->tree, frame_address(s->samples.x.locations[place].address, room), &name,
                     s->err) &&
           add_name(s, name);
}

static bool name_line(struct stacks *s, uint64_t function)
{
    size_t place = 0;
    uint32_t name;
    /* The lookup cannot fail: pprof_index_whole() has checked that the function exists. */
    pprof_ids_find(&s->samples.x.entries[PROFILE_FUNCTION].ids, function, &place);
    return name_of_function(s, place, &name) && add_name(s, name);
}

/* Reads the lines of a location that is written as usual. Sets *ret_usual to false if it is not;
 * then some of its names may have been added. */
static bool read_usual_lines(struct stacks *s, struct sv message, bool *ret_usual)
{
    struct rest r = rest_of(s->samples.x.plain, message);
    take(&r, LOCATION_ID);
    take(&r, LOCATION_MAPPING_ID);
    take(&r, LOCATION_ADDRESS);
    for (uint64_t function; take_line(&r, &function);) {
        if (!name_line(s, function)) {
            return false;
        }
    }
    *ret_usual = is_good_end(&r);
    return true;
}

/* Reads the lines of any location. */
static bool read_any_lines(struct stacks *s, struct sv message)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        uint64_t v[LINE_FUNCTION_ID + 1] = {0};
        if (f.number != LOCATION_LINE) {
            continue;
        }
        wire_read_numbers(f.bytes, v, LINE_FUNCTION_ID + 1);
        if (!name_line(s, v[LINE_FUNCTION_ID])) {
            return false;
        }
    }
    return true;
}

/* Reads the lines of a location. Lines begin with the innermost function, so the names are then
 * reversed. */
static bool read_lines(struct stacks *s, struct sv message)
{
    size_t from = s->n_names;
    bool usual;
    if (!read_usual_lines(s, message, &usual)) {
        return false;
    }
    if (!usual) {
        s->n_names = from;
        if (!read_any_lines(s, message)) {
            return false;
        }
    }
    for (size_t i = from, k = s->n_names; i + 1 < k; i++, k--) {
        uint32_t name = s->names[i];
        s->names[i] = s->names[k - 1];
        s->names[k - 1] = name;
    }
    return true;
}

/* Adds the names of a location, the outermost first. */
static bool name_location(struct stacks *s, size_t place)
{
    const struct pprof_index *x = &s->samples.x;
    size_t from = s->n_names;
    if (x->locations[place].function != 0) {
        return name_line(s, x->locations[place].function);
    }
    return read_lines(s, pprof_span_of(x, x->entries[PROFILE_LOCATION].spans[place])) &&
           (s->n_names > from || name_address(s, place));
}

static bool read_location(struct stacks *s, size_t place)
{
    size_t from = s->n_names;
    if (!name_location(s, place)) {
        return false;
    }
    struct pprof_key key = {{s->seed, ~s->seed}};
    for (size_t i = from; i < s->n_names; i++) {
        const uint64_t parts[] = {key.half[0], key.half[1], s->names[i]};
        key = pprof_key_of(s->seed, parts, 3);
    }
    s->frames[place] =
        (struct frames){.key = key, .at = (uint32_t)from, .n = (uint32_t)(s->n_names - from)};
    return true;
}

/* Finds the names of each location. */
static bool read_locations(struct stacks *s)
{
    const struct pprof_entries *entries = s->samples.x.entries;
    size_t n = entries[PROFILE_LOCATION].ids.n;
    s->frames = scratch_array(s->scratch, n, sizeof(*s->frames));
    s->names = scratch_array(s->scratch, n, sizeof(*s->names));
    s->functions = scratch_zeroed(s->scratch, entries[PROFILE_FUNCTION].ids.n, sizeof(uint32_t));
    s->n_names = 0;
    s->names_cap = n;
    s->path = NULL;
    s->path_cap = 0;
    if (s->frames == NULL || s->names == NULL || s->functions == NULL) {
        return err_memory(s->err);
    }
    for (size_t i = 0; i < n; i++) {
        if (!read_location(s, i)) {
            return false;
        }
    }
    return true;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* Returns the locations that are missing at the root of a sample's stack. */
static struct repair_part missing_part(const struct stacks *s, const struct sample *sample)
{
    return s->repair.parts != NULL ? s->repair.parts[sample->index] : (struct repair_part){.n = 0};
}

static inline struct pprof_key fold_location(struct pprof_key key, const struct pprof_key *location)
{
    key.half[0] = pprof_fold(key.half[0], location->half[0], PPROF_ODD_0) + PPROF_ODD_2;
    key.half[1] = pprof_fold(key.half[1], location->half[1], PPROF_ODD_1) + PPROF_ODD_2;
    return key;
}

/* Adds packed locations to the key of a stack, and their number to *n. Values that do not change
 * are in local variables, so that the loop stays in registers. */
static struct pprof_key fold_packed(const struct stacks *s, struct sv packed, struct pprof_key key,
                                    size_t *n)
{
    const struct pprof_ids ids = s->samples.x.entries[PROFILE_LOCATION].ids;
    const struct frames *frames = s->frames;
    struct wire_numbers numbers = {packed.p, packed.p + packed.n};
    size_t found = 0;
    uint64_t id;
    while (wire_numbers_next(&numbers, &id)) {
        size_t place;
        if (pprof_ids_find(&ids, id, &place)) {
            key = fold_location(key, &frames[place].key);
            found++;
        }
    }
    *n += found;
    return key;
}

/* Returns the key of a sample's stack, and sets the number of its locations. */
static struct pprof_key key_stack(const struct stacks *s, const struct sample *sample,
                                  size_t *ret_n)
{
    struct wire_reader r = wire_reader_of(sample->message);
    struct wire_field f = {.number = 0};
    struct repair_part part = missing_part(s, sample);
    struct pprof_key key = {{s->seed, ~s->seed}};
    *ret_n = part.n;
    if (sample->ids.p != NULL) {
        key = fold_packed(s, sample->ids, key, ret_n);
    }
    while (sample->ids.p == NULL && wire_next(&r, &f)) {
        if (f.number == SAMPLE_LOCATION_ID) {
            key = fold_packed(s, f.bytes, key, ret_n);
        }
    }
    for (uint32_t i = 0; i < part.n; i++) {
        key = fold_location(key, &s->frames[part.at[i]].key);
    }
    return key;
}

static bool read_path(struct stacks *s, const struct sample *sample, size_t n)
{
    struct sample_ids ids = sample_ids_of(sample);
    struct repair_part part = missing_part(s, sample);
    size_t place;
    size_t at = 0;
    if (n > s->path_cap) {
        uint32_t *path =
            scratch_grow(s->scratch, s->path, s->path_cap * sizeof(*path), 2 * n * sizeof(*path));
        if (path == NULL) {
            return err_memory(s->err);
        }
        s->path = path;
        s->path_cap = 2 * n;
    }
    while (at < n && sample_ids_next(&ids, &s->samples, &place)) {
        s->path[at++] = (uint32_t)place;
    }
    if (part.n > 0) {
        memcpy(s->path + at, part.at, part.n * sizeof(*s->path));
    }
    return true;
}

/* Returns true if the stack begins with the call site. */
static bool is_at_site(const struct stacks *s, size_t n)
{
    size_t depth = 0;
    for (size_t i = n; i > 0 && depth < s->which->n_call_site; i--) {
        const struct frames *f = &s->frames[s->path[i - 1]];
        for (size_t j = 0; j < f->n && depth < s->which->n_call_site; j++) {
            if (s->names[f->at + j] != s->site[depth++]) {
                return false;
            }
        }
    }
    return depth == s->which->n_call_site;
}

/* Finds the node of a stack that occurs for the first time. */
static bool find_leaf(struct stacks *s, const struct sample *sample, size_t n, uint32_t *ret)
{
    uint32_t node = 0;
    if (!read_path(s, sample, n)) {
        return false;
    }
    if (!is_at_site(s, n)) {
        *ret = NO_LEAF;
        return true;
    }
    for (size_t i = n; i > 0; i--) {
        const struct frames *f = &s->frames[s->path[i - 1]];
        for (size_t j = 0; j < f->n; j++) {
            if (!tree_child(s->tree, node, s->names[f->at + j], &node, s->err)) {
                return false;
            }
        }
    }
    *ret = node;
    return true;
}

/* A sample with the key of its stack. */
struct keyed {
    struct sample sample;
    struct pprof_key key;
    size_t n; /* locations */
};

static bool add_sample(struct stacks *s, const struct keyed *k, int64_t *sum)
{
    uint32_t leaf;
    if (!known_grow(&s->known, &s->tree->budget, s->err)) {
        return false;
    }
    size_t slot = known_slot(&s->known, &k->key);
    if (!known_leaf(&s->known, slot, &leaf)) {
        if (!find_leaf(s, &k->sample, k->n, &leaf)) {
            return false;
        }
        known_add(&s->known, slot, &k->key, leaf);
    }
    if (leaf != NO_LEAF) {
        tree_add(s->tree, leaf, k->sample.value);
        *sum = tree_plus(*sum, k->sample.value);
    }
    return true;
}

/* Reads the next samples and computes their keys. Returns their number, 0 at the end. */
static size_t read_batch(struct stacks *s, struct keyed at[BATCH])
{
    size_t n = 0;
    for (; n < BATCH && samples_next(&s->samples, &at[n].sample); n++) {
        at[n].key = key_stack(s, &at[n].sample, &at[n].n);
        known_prefetch(&s->known, &at[n].key);
    }
    return n;
}

static bool add_samples(struct stacks *s, int64_t *sum)
{
    struct keyed batch[BATCH];
    size_t n;
    while ((n = read_batch(s, batch)) > 0) {
        for (size_t i = 0; i < n; i++) {
            if (!add_sample(s, &batch[i], sum)) {
                return false;
            }
        }
    }
    return true;
}

void stacks_want_times(struct stacks *s)
{
    s->wants_times = true;
}

struct stacks_times stacks_times(const struct stacks *s)
{
    return s->times;
}

static void read_times(struct stacks *s)
{
    uint64_t v[PROFILE_PERIOD + 1] = {0};
    wire_read_numbers(s->samples.x.plain, v, PROFILE_PERIOD + 1);
    s->times =
        (struct stacks_times){(int64_t)v[PROFILE_DURATION_NANOS], (int64_t)v[PROFILE_PERIOD]};
}

bool stacks_add(struct stacks *s, const struct store_body *body, size_t column, int64_t *ret_sum,
                struct err *err)
{
    s->err = err;
    *ret_sum = 0;
    s->repair.parts = NULL;
    bool ok = samples_open(&s->samples, s->scratch, body, column, s->which, s->seed, err) &&
              read_locations(s) &&
              (s->which->as_recorded ||
               repair_find(&s->repair, &s->samples, body->labels, body->n_labels, s->scratch, err));
    if (ok && s->wants_times) {
        read_times(s);
    }
    ok = ok && add_samples(s, ret_sum);
    if (!ok) {
        scratch_explain(s->scratch, err);
    }
    scratch_reset(s->scratch);
    return ok;
}
