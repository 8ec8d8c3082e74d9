/* Reads the samples of a profile. They are nearly all of its bytes, so that a delta spends most of
 * its time here.
 *
 * One walk decodes a sample, checks it, and makes its key. For a bad sample the walk only returns
 * false; pprof_check_sample() then finds the error message. */
#include <string.h>

#include "pprof/delta_private.h"
#include "pprof/quick.h"

/* The size of a cache of short labels by their bytes. A profile has few different labels, such as
 * sizes of allocations. */
#define LABELS_SEEN 256
struct label_seen {
    uint64_t bytes;
    size_t n; /* 1 to 8; 0 if the place is free */
    uint64_t key;
};

/* The sample that is being read. */
struct reading {
    const struct pprof_index *x;
    const struct delta_columns *columns;
    struct err *err;
    const char *readable; /* the end of the readable bytes */
    uint64_t frames;
    uint64_t labels; /* a sum of hashes, because the order of labels does not matter */
    uint64_t n_frames;
    uint64_t n_labels;
    int64_t *values; /* the row for the values of a new stack */
    size_t n_values;
    bool has_texts; /* so far */
    struct label_seen seen[LABELS_SEEN];
};

/* ---- samples --------------------------------------------------------------------------------- */

/* The functions that read parts of a sample return false if the part is not valid. */

/* Adds frames to the key: the ids of their locations, packed or one number. */
static inline __attribute__((always_inline)) bool read_frames(struct reading *s, struct sv packed)
{
    const struct pprof_ids known = s->x->entries[PROFILE_LOCATION].ids;
    const uint64_t *keys = s->x->location_keys;
    const char *at = packed.p;
    const char *end = packed.p + packed.n;
    uint64_t frames = s->frames;
    uint64_t n = 0;
    if (!wire_packed_is_whole(packed)) {
        return false;
    }
    for (; at < end; n++) {
        struct wire_varint id = wire_varint(at, end);
        size_t place;
        at = id.next;
        if (at == NULL || !pprof_ids_find(&known, id.value, &place)) {
            return false;
        }
        frames = pprof_fold(frames, keys[place], PPROF_ODD_0);
    }
    s->frames = frames;
    s->n_frames += n;
    return true;
}

static inline __attribute__((always_inline)) bool read_values(struct reading *s, struct sv packed)
{
    const char *at = packed.p;
    const char *end = packed.p + packed.n;
    size_t n = s->n_values;
    if (!wire_packed_is_whole(packed)) {
        return false;
    }
    for (; at < end; n++) {
        struct wire_varint value = wire_varint_ahead(at, s->readable);
        at = value.next;
        if (at == NULL || n == s->columns->types) {
            return false;
        }
        s->values[n] = (int64_t)value.value;
    }
    s->n_values = n;
    return true;
}

static uint64_t hash_string(const struct pprof_index *x, uint64_t i)
{
    struct sv text = pprof_string(x, i);
    return hash_bytes(text.p, text.n, x->seed);
}

static bool make_label_key(struct reading *s, struct sv message, uint64_t *ret)
{
    uint64_t strings = s->x->summary.n[PROFILE_STRING];
    uint64_t v[LABEL_NUM_UNIT + 1] = {0};
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number > LABEL_NUM_UNIT) {
            continue;
        }
        if (f.type != WIRE_VARINT || (f.number != LABEL_NUM && f.value >= strings)) {
            return false;
        }
        v[f.number] = f.value;
    }
    const uint64_t parts[] = {
        hash_string(s->x, v[LABEL_KEY]),
        hash_string(s->x, v[LABEL_STR]),
        v[LABEL_NUM],
        hash_string(s->x, v[LABEL_NUM_UNIT]),
    };
    *ret = pprof_hash_of(s->x->seed, parts, 4);
    s->has_texts = s->has_texts || v[LABEL_STR] != 0;
    return r.problem == NULL;
}

/* Returns the place of a label in the cache, or NULL if the label is too long or among the last
 * bytes of the profile. */
static struct label_seen *place_of(struct reading *s, struct sv message, uint64_t *ret_bytes)
{
    if (message.n - 1 >= sizeof(uint64_t) ||
        s->readable - message.p < (ptrdiff_t)sizeof(uint64_t)) {
        return NULL;
    }
    uint64_t bytes = wire_eight(message.p) & UINT64_MAX >> (64 - 8 * message.n);
    *ret_bytes = bytes;
    return &s->seen[pprof_fold(bytes, 0, PPROF_ODD_0) % LABELS_SEEN];
}

static inline bool read_label(struct reading *s, struct sv message)
{
    uint64_t bytes = 0;
    uint64_t key;
    struct label_seen *seen = place_of(s, message, &bytes);
    if (seen != NULL && seen->n == message.n && seen->bytes == bytes) {
        key = seen->key;
    } else if (!make_label_key(s, message, &key)) {
        return false;
    } else if (seen != NULL) {
        *seen = (struct label_seen){.bytes = bytes, .n = message.n, .key = key};
    }
    s->labels += key;
    s->n_labels++;
    return true;
}

static bool read_field(struct reading *s, uint64_t number, unsigned type, struct sv bytes)
{
    bool numbers = type == WIRE_BYTES || type == WIRE_VARINT;
    switch (number) {
    case SAMPLE_LOCATION_ID:
        return numbers && read_frames(s, bytes);
    case SAMPLE_VALUE:
        return numbers && read_values(s, bytes);
    case SAMPLE_LABEL:
        return type == WIRE_BYTES && read_label(s, bytes);
    default:
        return true;
    }
}

/* Reads fields of any kind. */
static bool read_any_fields(struct reading *s, struct sv message)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (!read_field(s, f.number, f.type, f.bytes)) {
            return false;
        }
    }
    return r.problem == NULL;
}

/* Reads values that are fields of their own, as Go writes one or two. */
static inline bool read_single_values(struct reading *s, struct rest *r)
{
    for (; is_next(r, SAMPLE_VALUE << 3 | WIRE_VARINT); s->n_values++) {
        if (s->n_values == s->columns->types) {
            return false;
        }
        s->values[s->n_values] = (int64_t)take(r, SAMPLE_VALUE);
    }
    return r->next != NULL && r->next <= r->end;
}

/* Reads the usual fields at the start of a sample; *ret_rest is the rest. Nearly all samples
 * consist of packed locations, values, and labels, all of them short. */
static inline bool read_usual_fields(struct reading *s, struct sv message, struct sv *ret_rest)
{
    const char *end = message.p + message.n;
    struct sv frames = wire_short_field(message.p, end, SAMPLE_LOCATION_ID);
    if (frames.p == NULL) {
        return true;
    }
    struct rest r = {.next = frames.p + frames.n, .end = end, .readable = s->readable};
    struct sv values = wire_short_field(r.next, end, SAMPLE_VALUE);
    bool good = read_frames(s, frames);
    if (values.p != NULL) {
        good = good && read_values(s, values);
        r.next = values.p + values.n;
    } else if (!read_single_values(s, &r)) {
        return false;
    }
    const char *at = r.next;
    struct sv label = wire_short_field(at, end, SAMPLE_LABEL);
    for (; label.p != NULL && good; label = wire_short_field(at, end, SAMPLE_LABEL)) {
        good = read_label(s, label);
        at = label.p + label.n;
    }
    *ret_rest = (struct sv){.p = at, .n = (size_t)(end - at)};
    return good;
}

static inline bool read_fields(struct reading *s, struct sv message)
{
    struct sv rest = message;
    s->frames = s->labels = 0;
    s->n_frames = s->n_labels = s->n_values = 0;
    return read_usual_fields(s, message, &rest) && (rest.n == 0 || read_any_fields(s, rest)) &&
           s->n_values == s->columns->types;
}

/* Sets the error to the first thing that is wrong with a sample. Returns false. */
static bool explain(const struct reading *s, struct sv message)
{
    const struct pprof_index *x = s->x;
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    if (!pprof_check_sample(x->plain, &x->summary, message, s->err)) {
        return false;
    }
    while (wire_next(&r, &f)) {
        struct wire_numbers ids = wire_numbers_of(&f);
        uint64_t id;
        size_t place;
        while (f.number == SAMPLE_LOCATION_ID && wire_numbers_next(&ids, &id)) {
            if (!pprof_ids_find(&x->entries[PROFILE_LOCATION].ids, id, &place)) {
                return err_set(s->err, ERR_INPUT, "sample at byte %zu: location %llu is not there",
                               (size_t)(message.p - x->plain.p), (unsigned long long)id);
            }
        }
    }
    return err_set(s->err, ERR_INPUT, "sample at byte %zu: cannot be read",
                   (size_t)(message.p - x->plain.p));
}

static inline bool read_sample(struct reading *s, struct sv message)
{
    if (!read_fields(s, message)) {
        return explain(s, message);
    }
    for (size_t i = 0; i < s->columns->n; i++) {
        int64_t counter = s->values[s->columns->at[i]];
        if (counter < 0) {
            return err_set(s->err, ERR_INPUT,
                           "sample at byte %zu: expected a counter of 0 or more, got %lld",
                           (size_t)(message.p - s->x->plain.p), (long long)counter);
        }
    }
    return true;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* Returns the key of a stack. The hashes of frames and labels have a secret seed already, so one
 * more step is enough. */
static uint64_t key_of(const struct reading *s)
{
    return pprof_fold(s->frames + s->n_frames, s->labels + s->n_labels, PPROF_ODD_1);
}

/* Adds the values of a sample to the row of an existing stack. */
static bool add_values(struct delta_stacks *s, const struct reading *r, size_t i, size_t sample)
{
    size_t types = r->columns->types;
    int64_t *row = s->values + i * types;
    for (size_t j = 0; j < types; j++) {
        if (__builtin_add_overflow(row[j], r->values[j], &row[j])) {
            return err_set(r->err, ERR_INPUT,
                           "sample at byte %zu: the values of its stack are too large",
                           (size_t)r->x->entries[PROFILE_SAMPLE].spans[sample].at);
        }
    }
    return true;
}

/* Adds a stack whose values are in their row already. old: its number in the baseline, + 1, or 0.
 */
static void add_row(struct delta_stacks *s, uint64_t key, size_t old, size_t sample)
{
    s->rows[s->n++] = (struct delta_stack){
        .key = key,
        .sample = (uint32_t)sample,
        .old = (uint32_t)old,
    };
    if (old > 0) {
        s->row_of[old - 1] = (uint32_t)s->n;
        s->n_found++;
    }
}

static uint64_t key_of_number(const struct delta_stacks *s, size_t number)
{
    return number < s->n_old ? s->old_keys[number] : s->rows[number - s->n_old].key;
}

/* Returns the slot of a key: the slot that has its number, or a free one. */
static size_t slot_of(const struct delta_stacks *s, uint64_t key)
{
    size_t i = (size_t)key & s->mask;
    while (s->slots[i] != 0 && key_of_number(s, s->slots[i] - 1) != key) {
        i = (i + 1) & s->mask;
    }
    return i;
}

/* Makes the table of the stacks of the baseline. So far the profile has no others. */
static bool make_table(struct delta_stacks *s, const struct reading *r)
{
    size_t samples = r->x->summary.n[PROFILE_SAMPLE];
    s->slots = scratch_slots(s->scratch, s->n_old + samples, &s->mask);
    for (size_t i = 0; i < s->n_old && s->slots != NULL; i++) {
        s->slots[slot_of(s, s->old_keys[i])] = (uint32_t)i + 1;
    }
    return s->slots != NULL || err_memory(r->err);
}

/* Adds a sample like add_sample(), if its stack is not the next one of the baseline. */
static bool add_other(struct delta_stacks *s, const struct reading *r, uint64_t key, size_t sample)
{
    if (s->slots == NULL && !make_table(s, r)) {
        return false;
    }
    uint32_t *slot = &s->slots[slot_of(s, key)];
    if (*slot == 0) {
        *slot = (uint32_t)(s->n_old + s->n) + 1;
        add_row(s, key, 0, sample);
        return true;
    }
    size_t number = *slot - 1;
    if (number >= s->n_old) {
        return add_values(s, r, number - s->n_old, sample);
    }
    if (s->row_of[number] != 0) {
        return add_values(s, r, s->row_of[number] - 1, sample);
    }
    s->next = number + 1;
    add_row(s, key, number + 1, sample);
    return true;
}

/* Adds the sample that was read to its stack, which is made if it is new. */
static inline bool add_sample(struct delta_stacks *s, const struct reading *r, size_t sample)
{
    uint64_t key = key_of(r);
    size_t next = s->next;
    if (next < s->n_old && s->old_keys[next] == key && s->row_of[next] == 0) {
        s->next++;
        add_row(s, key, next + 1, sample);
        return true;
    }
    return add_other(s, r, key, sample);
}

static bool make_rows(struct delta_stacks *s, size_t n, size_t types)
{
    s->rows = scratch_array(s->scratch, n, sizeof(*s->rows));
    s->values = scratch_array(s->scratch, n, types * sizeof(*s->values));
    s->moved = scratch_array(s->scratch, n + 1, sizeof(*s->moved));
    s->row_of = scratch_zeroed(s->scratch, s->n_old, sizeof(*s->row_of));
    return s->rows != NULL && s->values != NULL && s->moved != NULL && s->row_of != NULL;
}

bool delta_stacks_read(struct delta_stacks *s, struct pprof_index *x,
                       const struct delta_columns *columns, const struct delta_state *old,
                       struct scratch *scratch, struct err *err)
{
    *s = (struct delta_stacks){.scratch = scratch};
    if (old != NULL) {
        s->n_old = old->n;
        s->old_keys = old->keys;
    }
    if (!make_rows(s, x->summary.n[PROFILE_SAMPLE], columns->types)) {
        return err_memory(err);
    }
    struct reading reading = {
        .x = x, .columns = columns, .err = err, .readable = x->plain.p + x->plain.n};
    const struct pprof_entries *samples = &x->entries[PROFILE_SAMPLE];
    for (size_t i = 0; i < samples->ids.n; i++) {
        reading.values = s->values + s->n * columns->types;
        if (!read_sample(&reading, pprof_span_of(x, samples->spans[i])) ||
            !add_sample(s, &reading, i)) {
            return false;
        }
    }
    s->has_texts = reading.has_texts;
    return true;
}
