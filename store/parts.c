#include "store/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "pprof/check.h"
#include "pprof/quick.h"

/* A label of a sample, as indexes into the table of strings. */
struct pair {
    uint64_t key;
    uint64_t value;
};

/* A part while samples are read. Its labels are pairs, in order of keys. */
struct raw {
    const struct pair *pairs;
    size_t n;
    uint64_t hash;
    int64_t *sums;
};

enum key_kind { KEY_UNKNOWN, KEY_SPLITS, KEY_IGNORED };

#define RAW_SLOTS ((size_t)4 * STORE_PARTS_MAX)

struct walk {
    struct scratch *scratch;
    struct parts *parts;
    const struct label *own;
    size_t n_own;
    size_t columns;
    struct raw *raw; /* [0]: the samples without labels */
    size_t n_raw;
    size_t raw_cap;
    /* hash table of indexes of raw; 0: a free slot. NULL until a sample has a label */
    uint32_t *slots;
    uint64_t seed;
    struct sv *strings;
    uint8_t *kinds; /* enum key_kind of each string, if it is used as a key */
    /* The members below describe the sample that is being read. */
    int64_t values[SUMMARY_TYPES_MAX];
    size_t n_values;
    struct pair pairs[STORE_SAMPLE_LABELS_MAX];
    size_t n_pairs;
};

static int64_t add(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) {
        return b > 0 ? INT64_MAX : INT64_MIN;
    }
    return sum;
}

/* ---- strings --------------------------------------------------------------------------------- */

/* Reads the table of strings when the first label of a sample is found: most profiles have no such
 * label. */
static bool index_strings(struct walk *w, struct err *err)
{
    size_t n = w->parts->summary.n[PROFILE_STRING];
    w->strings = scratch_array(w->scratch, n, sizeof(w->strings[0]));
    w->kinds = scratch_zeroed(w->scratch, n, 1);
    w->slots = scratch_zeroed(w->scratch, RAW_SLOTS, sizeof(w->slots[0]));
    if (w->strings == NULL || w->kinds == NULL || w->slots == NULL) {
        return err_memory(err);
    }
    struct rng rng;
    rng_seed_random(&rng);
    w->seed = rng_next(&rng);
    return true;
}

static void read_strings(struct walk *w, struct sv plain)
{
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f = {.number = 0};
    size_t i = 0;
    while (wire_next(&r, &f)) {
        if (f.number == PROFILE_STRING) {
            w->strings[i++] = f.bytes;
        }
    }
}

static bool is_own(const struct walk *w, struct sv name)
{
    for (size_t i = 0; i < w->n_own; i++) {
        if (sv_eq(w->own[i].name, name)) {
            return true;
        }
    }
    return false;
}

static bool splits(struct walk *w, uint64_t key)
{
    static const char *const beside[] = {"span_id", "trace_id", "profile_id", ""};
    if (w->kinds[key] == KEY_UNKNOWN) {
        struct sv name = w->strings[key];
        bool ignored = sv_in(name, beside, sizeof(beside) / sizeof(beside[0])) || is_own(w, name);
        w->kinds[key] = ignored ? KEY_IGNORED : KEY_SPLITS;
    }
    return w->kinds[key] == KEY_SPLITS;
}

/* ---- one sample ------------------------------------------------------------------------------ */

static void read_values(struct walk *w, const struct wire_field *f)
{
    struct wire_numbers numbers = wire_numbers_of(f);
    uint64_t v;
    while (wire_numbers_next(&numbers, &v) && w->n_values < w->columns) {
        w->values[w->n_values++] = (int64_t)v;
    }
}

static void note_pair(struct walk *w, uint64_t key, uint64_t text)
{
    if (text == 0) {
        return; /* a numeric label */
    }
    if (w->n_pairs == STORE_SAMPLE_LABELS_MAX) {
        w->parts->unsplit = true;
        return;
    }
    w->pairs[w->n_pairs++] = (struct pair){key, text};
}

static void read_label(struct walk *w, struct sv message)
{
    uint64_t v[LABEL_NUM_UNIT + 1] = {0};
    wire_read_numbers(message, v, LABEL_NUM_UNIT + 1);
    note_pair(w, v[LABEL_KEY], v[LABEL_STR]);
}

/* Reads the labels of a sample in the usual way of writing. Returns false if they are unusual. */
static inline bool quick_labels(struct walk *w, struct sv plain, struct rest *r)
{
    const uint64_t strings = w->parts->summary.n[PROFILE_STRING];
    while (is_next(r, SAMPLE_LABEL << 3 | WIRE_BYTES)) {
        struct rest label = rest_of(plain, take_bytes(r, SAMPLE_LABEL));
        uint64_t key = take(&label, LABEL_KEY);
        uint64_t text = take(&label, LABEL_STR);
        (void)take(&label, LABEL_NUM);
        uint64_t unit = take(&label, LABEL_NUM_UNIT);
        if (!is_good_end(&label) || key >= strings || text >= strings || unit >= strings) {
            return false;
        }
        note_pair(w, key, text);
    }
    return is_good_end(r);
}

/* Reads a sample that is written in the usual way: locations, values, and labels. Returns true if
 * it is good for certain. */
static inline bool quick_sample(struct walk *w, struct sv plain, struct sv message)
{
    struct rest r = rest_of(plain, message);
    size_t frames = 0;
    bool good = quick_repeated(&r, SAMPLE_LOCATION_ID, true, &frames);
    while (is_next(&r, SAMPLE_VALUE << 3 | WIRE_VARINT) && w->n_values < w->columns) {
        w->values[w->n_values++] = (int64_t)take(&r, SAMPLE_VALUE);
    }
    struct sv values = take_bytes(&r, SAMPLE_VALUE);
    const char *at = values.p;
    const char *end = values.p + values.n;
    for (; at != NULL && at < end && w->n_values < w->columns; w->n_values++) {
        struct wire_varint v = wire_varint_ahead(at, r.readable);
        w->values[w->n_values] = (int64_t)v.value;
        at = v.next;
    }
    return good && at == end && w->n_values == w->columns && quick_labels(w, plain, &r);
}

/* Reads a sample that was checked. */
static void read_any_sample(struct walk *w, struct sv message)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number == SAMPLE_VALUE) {
            read_values(w, &f);
        } else if (f.number == SAMPLE_LABEL) {
            read_label(w, f.bytes);
        }
    }
}

static bool read_sample(struct walk *w, struct sv plain, struct sv message, struct err *err)
{
    bool unsplit = w->parts->unsplit;
    w->n_values = 0;
    w->n_pairs = 0;
    if (quick_sample(w, plain, message)) {
        return true;
    }
    w->parts->unsplit = unsplit;
    w->n_values = 0;
    w->n_pairs = 0;
    if (!pprof_check_sample(plain, &w->parts->summary, message, err)) {
        return false;
    }
    read_any_sample(w, message);
    return true;
}

/* Keeps the pairs that make series, in order of keys, and only the first pair of each key. */
static void sort_pairs(struct walk *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n_pairs; i++) {
        struct pair p = w->pairs[i];
        if (!splits(w, p.key) || w->strings[p.value].n == 0) {
            continue;
        }
        size_t at = n;
        while (at > 0 && w->pairs[at - 1].key > p.key) {
            at--;
        }
        if (at > 0 && w->pairs[at - 1].key == p.key) {
            continue;
        }
        memmove(&w->pairs[at + 1], &w->pairs[at], (n - at) * sizeof(p));
        w->pairs[at] = p;
        n++;
    }
    w->n_pairs = n;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static bool new_raw(struct walk *w, uint64_t hash, struct err *err)
{
    if (w->n_raw == w->raw_cap) {
        size_t cap = w->raw_cap == 0 ? 8 : 2 * w->raw_cap;
        struct raw *raw = scratch_grow(w->scratch, w->raw, w->raw_cap * sizeof(w->raw[0]),
                                       cap * sizeof(w->raw[0]));
        if (raw == NULL) {
            return err_memory(err);
        }
        w->raw = raw;
        w->raw_cap = cap;
    }
    struct pair *pairs = scratch_array(w->scratch, w->n_pairs + 1, sizeof(pairs[0]));
    int64_t *sums = scratch_zeroed(w->scratch, w->columns, sizeof(sums[0]));
    if (pairs == NULL || sums == NULL) {
        return err_memory(err);
    }
    memcpy(pairs, w->pairs, w->n_pairs * sizeof(pairs[0]));
    w->raw[w->n_raw++] = (struct raw){.pairs = pairs, .n = w->n_pairs, .hash = hash, .sums = sums};
    return true;
}

/* Finds or makes the part of the current sample. */
static bool find_raw(struct walk *w, uint32_t *ret, struct err *err)
{
    size_t size = w->n_pairs * sizeof(w->pairs[0]);
    uint64_t hash = hash_bytes(w->pairs, size, w->seed);
    size_t slot = hash & (RAW_SLOTS - 1);
    for (; w->slots[slot] != 0; slot = (slot + 1) & (RAW_SLOTS - 1)) {
        const struct raw *raw = &w->raw[w->slots[slot]];
        if (raw->hash == hash && raw->n == w->n_pairs && memcmp(raw->pairs, w->pairs, size) == 0) {
            *ret = w->slots[slot];
            return true;
        }
    }
    if (w->n_raw > STORE_PARTS_MAX) {
        w->parts->unsplit = true;
        *ret = 0;
        return true;
    }
    *ret = (uint32_t)w->n_raw;
    w->slots[slot] = *ret;
    return new_raw(w, hash, err);
}

static bool is_negative(const struct walk *w)
{
    bool negative = false;
    for (size_t i = 0; i < w->n_values; i++) {
        negative = negative || w->values[i] < 0;
    }
    return negative;
}

/* Adds the current sample to its part. */
static bool add_sample(struct walk *w, struct sv plain, uint32_t *ret_part, struct err *err)
{
    *ret_part = PART_NONE;
    if (is_negative(w)) {
        w->parts->negative = true;
        return true;
    }
    uint32_t part = 0;
    if (w->n_pairs > 0 && !w->parts->unsplit) {
        if (w->slots == NULL) {
            if (!index_strings(w, err)) {
                return false;
            }
            read_strings(w, plain);
        }
        sort_pairs(w);
        if (w->n_pairs > 0 && !find_raw(w, &part, err)) {
            return false;
        }
    }
    int64_t *sums = w->raw[part].sums;
    for (size_t i = 0; i < w->n_values; i++) {
        sums[i] = add(sums[i], w->values[i]);
    }
    *ret_part = part;
    return true;
}

static bool walk_samples(struct walk *w, struct sv plain, struct err *err)
{
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f = {.number = 0};
    uint32_t *of_sample = w->parts->of_sample;
    uint32_t part;
    if (!new_raw(w, 0, err)) {
        return false;
    }
    while (w->parts->n_samples < w->parts->summary.n[PROFILE_SAMPLE] && wire_next(&r, &f)) {
        if (f.number != PROFILE_SAMPLE) {
            continue;
        }
        if (!read_sample(w, plain, f.bytes, err) || !add_sample(w, plain, &part, err)) {
            return false;
        }
        if (of_sample != NULL) {
            of_sample[w->parts->n_samples] = part;
        }
        w->parts->n_samples++;
    }
    return true;
}

/* ---- the result ------------------------------------------------------------------------------ */

static struct sv repaired(struct walk *w, struct sv text)
{
    if (utf8_valid(text)) {
        return text;
    }
    struct buf *b = scratch_buf(w->scratch);
    char *copy = utf8_repair(text, b) ? scratch_array(w->scratch, b->len + 1, 1) : NULL;
    if (copy == NULL) {
        return SV("");
    }
    memcpy(copy, b->data, b->len);
    return (struct sv){copy, b->len};
}

static int by_name(const void *a, const void *b)
{
    return sv_cmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

static bool name_part(struct walk *w, const struct raw *raw, struct part *ret, struct err *err)
{
    struct label *labels = scratch_array(w->scratch, raw->n + 1, sizeof(labels[0]));
    size_t n = 0;
    if (labels == NULL) {
        err_memory(err);
        return false;
    }
    for (size_t i = 0; i < raw->n; i++) {
        labels[i].name = repaired(w, w->strings[raw->pairs[i].key]);
        labels[i].value = repaired(w, w->strings[raw->pairs[i].value]);
    }
    qsort(labels, raw->n, sizeof(labels[0]), by_name);
    /* Different indexes may stand for the same text. */
    for (size_t i = 0; i < raw->n; i++) {
        if (n == 0 || !sv_eq(labels[n - 1].name, labels[i].name)) {
            labels[n++] = labels[i];
        }
    }
    *ret = (struct part){.labels = labels, .n_labels = n, .sums = raw->sums};
    return true;
}

static bool all_zero(const int64_t *sums, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (sums[i] != 0) {
            return false;
        }
    }
    return true;
}

static bool same_labels(const struct part *a, const struct part *b)
{
    bool same = a->n_labels == b->n_labels;
    for (size_t i = 0; same && i < a->n_labels; i++) {
        same = sv_eq(a->labels[i].name, b->labels[i].name) &&
               sv_eq(a->labels[i].value, b->labels[i].value);
    }
    return same;
}

/* Adds a part with its texts to the result; if the result has an equal part, only adds the sums to
 * that. Returns its index. */
static uint32_t place_part(struct walk *w, const struct part *part)
{
    struct parts *parts = w->parts;
    size_t i = 0;
    while (i < parts->n && !same_labels(&parts->at[i], part)) {
        i++;
    }
    if (i == parts->n) {
        parts->at[parts->n++] = *part;
        return (uint32_t)i;
    }
    for (size_t c = 0; c < w->columns; c++) {
        parts->at[i].sums[c] = add(parts->at[i].sums[c], part->sums[c]);
    }
    return (uint32_t)i;
}

/* Makes a single part, without labels, that has all sums. */
static void unite(struct walk *w)
{
    for (size_t i = 1; i < w->n_raw; i++) {
        for (size_t c = 0; c < w->columns; c++) {
            w->raw[0].sums[c] = add(w->raw[0].sums[c], w->raw[i].sums[c]);
        }
    }
    w->n_raw = 1;
}

static bool name_parts(struct walk *w, struct err *err)
{
    struct parts *parts = w->parts;
    uint32_t *places = scratch_array(w->scratch, w->n_raw, sizeof(places[0]));
    size_t n_raw = w->n_raw;
    parts->at = scratch_zeroed(w->scratch, n_raw, sizeof(parts->at[0]));
    if (places == NULL || parts->at == NULL) {
        return err_memory(err);
    }
    memset(places, 0, n_raw * sizeof(places[0]));
    if (parts->unsplit) {
        unite(w);
    }
    for (size_t i = 0; i < w->n_raw; i++) {
        struct part part;
        if (!name_part(w, &w->raw[i], &part, err)) {
            return false;
        }
        places[i] = all_zero(part.sums, w->columns) ? PART_NONE : place_part(w, &part);
    }
    for (size_t i = 0; parts->of_sample != NULL && i < parts->n_samples; i++) {
        uint32_t raw = parts->of_sample[i];
        parts->of_sample[i] = raw == PART_NONE || raw >= n_raw ? PART_NONE : places[raw];
    }
    return true;
}

static void repair_types(struct walk *w)
{
    struct pprof_summary *s = &w->parts->summary;
    for (size_t i = 0; i < w->columns; i++) {
        s->types[i].type_text = repaired(w, s->types[i].type_text);
        s->types[i].unit_text = repaired(w, s->types[i].unit_text);
    }
    s->period_type.type_text = repaired(w, s->period_type.type_text);
    s->period_type.unit_text = repaired(w, s->period_type.unit_text);
}

bool parts_read(struct scratch *scratch, struct sv plain, const struct label *own, size_t n_own,
                bool want_samples, struct parts *ret, struct err *err)
{
    struct walk w = {.scratch = scratch, .parts = ret, .own = own, .n_own = n_own};
    *ret = (struct parts){.n = 0};
    if (!pprof_check_frame(plain, &ret->summary, err)) {
        return false;
    }
    w.columns = ret->summary.n[PROFILE_SAMPLE_TYPE];
    if (w.columns > SUMMARY_TYPES_MAX) {
        return err_set(err, ERR_INPUT, "expected at most %d sample types, got %zu",
                       SUMMARY_TYPES_MAX, w.columns);
    }
    if (want_samples) {
        size_t n = ret->summary.n[PROFILE_SAMPLE];
        ret->of_sample = scratch_array(scratch, n + 1, sizeof(ret->of_sample[0]));
        if (ret->of_sample == NULL) {
            return err_memory(err);
        }
    }
    pprof_summary_name_types(plain, &ret->summary);
    repair_types(&w);
    return walk_samples(&w, plain, err) && name_parts(&w, err);
}
