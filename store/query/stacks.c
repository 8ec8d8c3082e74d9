#include "store/query/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/query/frames.h"
#include "store/query/repair.h"
#include "store/query/samples.h"
#include "store/query/tree_private.h"

/* Stands for the leaf of a stack that is not selected. */
#define NO_LEAF UINT32_MAX

struct stacks {
    struct tree *tree;
    const struct query_stacks *which;
    struct scratch *scratch;
    uint64_t seed;
    struct table known; /* the stacks seen so far; its keys are struct pprof_key */
    uint32_t *leaf;     /* by stack: the node of its leaf */
    size_t leaf_cap;
    uint32_t *site;   /* numbers of the names of the call site */
    struct table raw; /* names as profiles have them: most of them occur in many profiles */
    uint32_t *clean;  /* by raw name: the number of the name that is shown */
    size_t clean_cap;
    /* The members below describe the profile that is being read. */
    struct samples samples;
    struct repair repair;
    struct frames *frames; /* the names of each location */
    uint32_t *names;       /* numbers of names; struct frames has places in it */
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
    merge_table_init(&s->known, rng_next(&rng));
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
        merge_table_done(&s->known);
        merge_table_done(&s->raw);
        free(s->clean);
        scratch_free(s->scratch);
        buf_done(&s->room);
        free(s->leaf);
        free(s->site);
        free(s);
    }
    return NULL;
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

static bool number_name(struct stacks *s, struct sv raw, uint32_t *ret)
{
    struct budget *budget = &s->tree->budget;
    size_t before = s->raw.n;
    uint32_t i;
    uint32_t *clean =
        budget_grow(budget, s->clean, &s->clean_cap, before + 1, sizeof(*clean), s->err);
    if (clean == NULL) {
        return false;
    }
    s->clean = clean;
    if (!merge_table_add(&s->raw, budget, raw.p, raw.n, raw.n, &i, s->err)) {
        return false;
    }
    if (s->raw.n > before && !clean_name(s, raw, &clean[i])) {
        merge_table_truncate(&s->raw, before);
        return false;
    }
    *ret = clean[i];
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

static bool name_address(struct stacks *s, size_t place, struct frames *ret, uint32_t *names)
{
    char room[FRAME_ADDRESS_MAX];
    ret->n = 1;
    return tree_name(s->tree, frame_address(s->samples.x.locations[place].address, room), &names[0],
                     s->err);
}

/* Reads the lines of a location. Lines begin with the innermost function, so the names are written
 * backwards. */
static bool read_lines(struct stacks *s, struct sv message, struct frames *ret, uint32_t *names,
                       size_t n)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        uint64_t v[LINE_FUNCTION_ID + 1] = {0};
        size_t place = 0;
        if (f.number != LOCATION_LINE) {
            continue;
        }
        wire_read_numbers(f.bytes, v, LINE_FUNCTION_ID + 1);
        /* The lookup cannot fail: pprof_index() has checked that the function exists. */
        pprof_ids_find(&s->samples.x.entries[PROFILE_FUNCTION].ids, v[LINE_FUNCTION_ID], &place);
        if (!name_of_function(s, place, &names[n - ++ret->n])) {
            return false;
        }
    }
    return true;
}

static size_t count_lines(struct sv message)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    size_t n = 0;
    while (wire_next(&r, &f)) {
        n += f.number == LOCATION_LINE;
    }
    return n;
}

static bool read_location(struct stacks *s, size_t place, size_t *at)
{
    struct sv message =
        pprof_span_of(&s->samples.x, s->samples.x.entries[PROFILE_LOCATION].spans[place]);
    struct frames *frames = &s->frames[place];
    uint32_t *names = s->names + *at;
    size_t n = count_lines(message);
    *frames = (struct frames){.at = (uint32_t)*at};
    if (n == 0 ? !name_address(s, place, frames, names)
               : !read_lines(s, message, frames, names, n)) {
        return false;
    }
    frames->key = (struct pprof_key){{s->seed, ~s->seed}};
    for (size_t i = 0; i < frames->n; i++) {
        const uint64_t parts[] = {frames->key.half[0], frames->key.half[1], names[i]};
        frames->key = pprof_key_of(s->seed, parts, 3);
    }
    *at += frames->n;
    return true;
}

/* Finds the names of each location. */
static bool read_locations(struct stacks *s)
{
    const struct pprof_entries *entries = s->samples.x.entries;
    size_t n = entries[PROFILE_LOCATION].ids.n;
    size_t names = 0;
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        size_t lines =
            count_lines(pprof_span_of(&s->samples.x, entries[PROFILE_LOCATION].spans[i]));
        names += lines == 0 ? 1 : lines;
    }
    s->frames = scratch_array(s->scratch, n, sizeof(*s->frames));
    s->names = scratch_array(s->scratch, names, sizeof(*s->names));
    s->functions = scratch_zeroed(s->scratch, entries[PROFILE_FUNCTION].ids.n, sizeof(uint32_t));
    s->path = NULL;
    s->path_cap = 0;
    if (s->frames == NULL || s->names == NULL || s->functions == NULL) {
        return err_memory(s->err);
    }
    for (size_t i = 0; i < n; i++) {
        if (!read_location(s, i, &at)) {
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

static void fold_location(const struct stacks *s, size_t place, struct pprof_key *key)
{
    const struct pprof_key *k = &s->frames[place].key;
    key->half[0] = pprof_fold(key->half[0], k->half[0], PPROF_ODD_0) + PPROF_ODD_2;
    key->half[1] = pprof_fold(key->half[1], k->half[1], PPROF_ODD_1) + PPROF_ODD_2;
}

/* Returns the key of a sample's stack, and sets the number of its locations. */
static struct pprof_key key_stack(const struct stacks *s, const struct sample *sample,
                                  size_t *ret_n)
{
    struct sample_ids ids = sample_ids_of(sample);
    struct repair_part part = missing_part(s, sample);
    struct pprof_key key = {{s->seed, ~s->seed}};
    size_t place;
    *ret_n = part.n;
    while (sample_ids_next(&ids, &s->samples, &place)) {
        fold_location(s, place, &key);
        ++*ret_n;
    }
    for (uint32_t i = 0; i < part.n; i++) {
        fold_location(s, part.at[i], &key);
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

static bool add_sample(struct stacks *s, const struct sample *sample, int64_t *sum)
{
    size_t n;
    struct pprof_key key = key_stack(s, sample, &n);
    size_t before = s->known.n;
    struct budget *budget = &s->tree->budget;
    uint32_t i;
    uint32_t *leaf = budget_grow(budget, s->leaf, &s->leaf_cap, before + 1, sizeof(*leaf), s->err);
    if (leaf == NULL) {
        return false;
    }
    s->leaf = leaf;
    if (!merge_table_add(&s->known, budget, &key, sizeof(key), sizeof(key), &i, s->err)) {
        return false;
    }
    if (s->known.n > before && !find_leaf(s, sample, n, &leaf[i])) {
        merge_table_truncate(&s->known, before);
        return false;
    }
    if (leaf[i] != NO_LEAF) {
        tree_add(s->tree, leaf[i], sample->value);
        *sum = tree_plus(*sum, sample->value);
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
    struct sample sample;
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
    while (ok && samples_next(&s->samples, &sample)) {
        ok = add_sample(s, &sample, ret_sum);
    }
    if (!ok) {
        scratch_explain(s->scratch, err);
    }
    scratch_reset(s->scratch);
    return ok;
}
