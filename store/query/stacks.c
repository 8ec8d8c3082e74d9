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
 * while the others are computed. */
#define BATCH 16

/* The number of names that are compared before a name is looked up in a table. */
#define AHEAD 4

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
    uint32_t *path; /* places of the locations of a batch of samples, the leaf first */
    size_t path_cap;
    uint32_t *line; /* names of stacks that may be new, the outermost first */
    size_t line_cap;
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

static bool is_raw(const struct stacks *s, uint32_t i, struct sv raw)
{
    size_t n;
    const char *text = merge_table_get(&s->raw, i, &n);
    return n == raw.n && (n == 0 || memcmp(text, raw.p, n) == 0);
}

/* Finds a raw name among the next ones that followed the last one earlier: profiles of a program
 * have their names in nearly the same order, though not each has all of them, so that most names
 * need no table. */
static bool is_next_raw(const struct stacks *s, struct sv raw, uint32_t *ret)
{
    uint32_t next = s->raw.n == 0 ? 0 : s->raw_names[s->last_raw].next;
    for (int i = 0; i < AHEAD && next != 0; i++) {
        *ret = next - 1;
        if (is_raw(s, next - 1, raw)) {
            return true;
        }
        next = s->raw_names[next - 1].next;
    }
    return false;
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
        /* A new name is inserted before the name that has followed the last one so far. */
        names[*ret] = (struct raw_name){.next = before == 0 ? 0 : names[s->last_raw].next};
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

/* Adds the i-th part of a stack to its key. The sums do not wait for each other, as a chain of
 * hashes would: a part and its place are hashed first. Nobody who chooses the parts knows the seed
 * that the keys of names are made with. */
static inline struct pprof_key fold_part(struct pprof_key key, const struct pprof_key *part,
                                         size_t i)
{
    uint64_t place = i * PPROF_ODD_2;
    key.half[0] += pprof_fold(part->half[0], place, PPROF_ODD_0);
    key.half[1] += pprof_fold(part->half[1], place, PPROF_ODD_1);
    return key;
}

static bool read_location(struct stacks *s, size_t place)
{
    size_t from = s->n_names;
    if (!name_location(s, place)) {
        return false;
    }
    struct pprof_key key = {{s->seed, ~s->seed}};
    for (size_t i = from; i < s->n_names; i++) {
        key.half[0] = pprof_fold(key.half[0], s->names[i], PPROF_ODD_0) + PPROF_ODD_2;
        key.half[1] = pprof_fold(key.half[1], s->names[i], PPROF_ODD_1) + PPROF_ODD_2;
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
    s->line = NULL;
    s->line_cap = 0;
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

/* A sample with the key and the path of its stack. */
struct keyed {
    struct sample sample;
    struct pprof_key key;
    size_t at; /* where its locations begin in the path */
    size_t n;  /* locations */
};

/* Adds packed locations to the key of a stack, and their places to the path, which has room for
 * them. Values that do not change are in local variables, so that the loop stays in registers. */
static void fold_packed(const struct stacks *s, struct sv packed, struct keyed *k)
{
    const struct pprof_ids ids = s->samples.x.entries[PROFILE_LOCATION].ids;
    const struct frames *frames = s->frames;
    struct wire_numbers numbers = {packed.p, packed.p + packed.n};
    struct pprof_key key = k->key;
    uint32_t *path = s->path + k->at;
    size_t n = k->n;
    uint64_t id;
    while (wire_numbers_next(&numbers, &id)) {
        size_t place;
        if (pprof_ids_find(&ids, id, &place)) {
            key = fold_part(key, &frames[place].key, n);
            path[n++] = (uint32_t)place;
        }
    }
    k->key = key;
    k->n = n;
}

/* Makes room for n more places after the first `used` ones of the path. */
static bool grow_path(struct stacks *s, size_t used, size_t n)
{
    if (used + n < s->path_cap) {
        return true;
    }
    size_t cap = 2 * (used + n) + 1;
    uint32_t *path =
        scratch_grow(s->scratch, s->path, s->path_cap * sizeof(*path), cap * sizeof(*path));
    if (path == NULL) {
        return err_memory(s->err);
    }
    s->path = path;
    s->path_cap = cap;
    return true;
}

/* Appends the locations of a sample to the path, and computes the key of its stack. */
static bool read_stack(struct stacks *s, struct keyed *k)
{
    struct repair_part part = missing_part(s, &k->sample);
    struct wire_reader r = wire_reader_of(k->sample.message);
    struct wire_field f = {.number = 0};
    /* Each location takes at least one byte. */
    size_t most = k->sample.ids.p != NULL ? k->sample.ids.n : k->sample.message.n;
    k->key = (struct pprof_key){{s->seed, ~s->seed}};
    k->n = 0;
    if (!grow_path(s, k->at, most + part.n)) {
        return false;
    }
    if (k->sample.ids.p != NULL) {
        fold_packed(s, k->sample.ids, k);
    }
    while (k->sample.ids.p == NULL && wire_next(&r, &f)) {
        if (f.number == SAMPLE_LOCATION_ID) {
            fold_packed(s, f.bytes, k);
        }
    }
    for (uint32_t i = 0; i < part.n; i++) {
        k->key = fold_part(k->key, &s->frames[part.at[i]].key, k->n);
        s->path[k->at + k->n++] = part.at[i];
    }
    return true;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* The samples that are read together. The nodes of new stacks are looked up together, too. */
struct batch {
    struct keyed at[BATCH];
    size_t n;
    size_t fresh[BATCH]; /* indexes of samples whose stacks may be new */
    struct tree_path paths[BATCH];
    size_t n_fresh;
};

/* Returns the number of names of a sample's stack. */
static size_t count_names(const struct stacks *s, const struct keyed *k)
{
    size_t n = 0;
    for (size_t i = 0; i < k->n; i++) {
        n += s->frames[s->path[k->at + i]].n;
    }
    return n;
}

/* Writes the names of a stack, the outermost first. Returns their number. */
static size_t list_names(const struct stacks *s, const struct keyed *k, uint32_t *ret)
{
    size_t n = 0;
    for (size_t i = k->n; i > 0; i--) {
        const struct frames *f = &s->frames[s->path[k->at + i - 1]];
        for (size_t j = 0; j < f->n; j++) {
            ret[n++] = s->names[f->at + j];
        }
    }
    return n;
}

/* Makes room for the names of all stacks that may be new. */
static bool grow_line(struct stacks *s, const struct batch *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->n_fresh; i++) {
        n += count_names(s, &b->at[b->fresh[i]]);
    }
    if (n >= s->line_cap) {
        uint32_t *line = scratch_array(s->scratch, 2 * n + 1, sizeof(*line));
        if (line == NULL) {
            return err_memory(s->err);
        }
        s->line = line;
        s->line_cap = 2 * n + 1;
    }
    return true;
}

/* Returns true if a path begins with the call site. */
static bool is_at_site(const struct stacks *s, const struct tree_path *path)
{
    size_t n = s->which->n_call_site;
    return path->n >= n && (n == 0 || memcmp(path->names, s->site, n * sizeof(*s->site)) == 0);
}

/* Follows the paths of all stacks that may be new. */
static bool follow_paths(struct stacks *s, struct batch *b)
{
    if (!grow_line(s, b)) {
        return false;
    }
    uint32_t *at = s->line;
    for (size_t i = 0; i < b->n_fresh; i++) {
        size_t n = list_names(s, &b->at[b->fresh[i]], at);
        b->paths[i] = (struct tree_path){.names = at, .n = (uint32_t)n};
        at += n;
    }
    tree_follow(s->tree, b->paths, b->n_fresh);
    return true;
}

static void add_value(struct stacks *s, uint32_t leaf, const struct keyed *k, int64_t *sum)
{
    if (leaf != NO_LEAF) {
        tree_add(s->tree, leaf, k->sample.value);
        *sum = tree_plus(*sum, k->sample.value);
    }
}

/* Adds the values of stacks that are known, and lists the other ones. */
static void add_known(struct stacks *s, struct batch *b, int64_t *sum)
{
    uint32_t leaf;
    b->n_fresh = 0;
    for (size_t i = 0; i < b->n; i++) {
        const struct keyed *k = &b->at[i];
        if (known_leaf(&s->known, known_slot(&s->known, &k->key), &leaf)) {
            add_value(s, leaf, k, sum);
        } else {
            b->fresh[b->n_fresh++] = i;
        }
    }
}

/* Adds the value of a stack that was not known. A sample before it may have had the same stack. */
static bool add_fresh(struct stacks *s, const struct keyed *k, struct tree_path *path, int64_t *sum)
{
    uint32_t leaf;
    if (!known_grow(&s->known, &s->tree->budget, s->err)) {
        return false;
    }
    size_t slot = known_slot(&s->known, &k->key);
    if (!known_leaf(&s->known, slot, &leaf)) {
        bool at_site = is_at_site(s, path);
        if (at_site && !tree_complete(s->tree, path, s->err)) {
            return false;
        }
        leaf = at_site ? path->node : NO_LEAF;
        known_add(&s->known, slot, &k->key, leaf);
    }
    add_value(s, leaf, k, sum);
    return true;
}

/* Reads the next samples and computes their keys. Their number is 0 at the end. */
static bool read_batch(struct stacks *s, struct batch *b)
{
    size_t used = 0;
    for (b->n = 0; b->n < BATCH && samples_next(&s->samples, &b->at[b->n].sample); b->n++) {
        struct keyed *k = &b->at[b->n];
        k->at = used;
        if (!read_stack(s, k)) {
            return false;
        }
        used += k->n;
        known_prefetch(&s->known, &k->key);
    }
    return true;
}

static bool add_samples(struct stacks *s, int64_t *sum)
{
    struct batch b;
    bool ok = known_grow(&s->known, &s->tree->budget, s->err) && read_batch(s, &b);
    while (ok && b.n > 0) {
        add_known(s, &b, sum);
        ok = b.n_fresh == 0 || follow_paths(s, &b);
        for (size_t i = 0; ok && i < b.n_fresh; i++) {
            ok = add_fresh(s, &b.at[b.fresh[i]], &b.paths[i], sum);
        }
        ok = ok && read_batch(s, &b);
    }
    return ok;
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
