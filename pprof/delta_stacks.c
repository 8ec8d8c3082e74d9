/* Reads the samples of a profile: nearly all of its bytes, so this is where the time of a delta
 * goes.
 *
 * One walk decodes a sample, sees whether it is good, and makes its key. It does not say what is
 * wrong with a bad one: pprof_check_sample() finds that out. */
#include <string.h>

#include "pprof/delta_private.h"

/* Odd multipliers, 3 modulo 4, that keep the order of frames in a key. */
#define ORDER_0 UINT64_C(0x9e3779b97f4a7c17)
#define ORDER_1 UINT64_C(0xc2b2ae3d27d4eb4f)

/* Short labels that were seen, by their bytes: there are few different ones, such as sizes of
 * allocations. */
#define LABELS_SEEN 256
struct label_seen {
    uint64_t bytes;
    size_t n; /* 1 to 8; 0 if the place is free */
    struct pprof_key key;
};

/* The sample that is being read. */
struct reading {
    const struct pprof_index *x;
    const struct delta_columns *columns;
    struct err *err;
    struct pprof_key frames;
    struct pprof_key labels; /* a sum, since their order does not matter */
    uint64_t n_frames;
    uint64_t n_labels;
    int64_t values[DELTA_TYPES_MAX];
    size_t n_values;
    bool has_texts; /* so far */
    struct label_seen seen[LABELS_SEEN];
};

/* ---- samples --------------------------------------------------------------------------------- */

/* The readers of parts return false if something is not as it has to be. */

/* Adds frames to the key: the ids of their locations, packed or one number. */
static bool read_frames(struct reading *s, struct sv packed)
{
    const struct pprof_ids known = s->x->entries[PROFILE_LOCATION].ids;
    const struct pprof_key *keys = s->x->location_keys;
    struct pprof_key frames = s->frames;
    const char *at = packed.p;
    const char *end = packed.p + packed.n;
    uint64_t n = 0;
    if (!wire_packed_is_whole(packed)) {
        return false;
    }
    for (; at < end; n++) {
        size_t place;
        uint64_t id = wire_packed_next(&at, end);
        if (at == NULL || !pprof_ids_find(&known, id, &place)) {
            return false;
        }
        frames.half[0] = frames.half[0] * ORDER_0 + keys[place].half[0];
        frames.half[1] = frames.half[1] * ORDER_1 + keys[place].half[1];
    }
    s->frames = frames;
    s->n_frames += n;
    return true;
}

static bool read_values(struct reading *s, struct sv packed)
{
    const char *at = packed.p;
    const char *end = packed.p + packed.n;
    size_t n = s->n_values;
    if (!wire_packed_is_whole(packed)) {
        return false;
    }
    for (; at < end; n++) {
        uint64_t value = wire_packed_next(&at, end);
        if (at == NULL || n == s->columns->types) {
            return false;
        }
        s->values[n] = (int64_t)value;
    }
    s->n_values = n;
    return true;
}

static uint64_t hash_string(const struct pprof_index *x, uint64_t i)
{
    struct sv text = pprof_string(x, i);
    return hash_bytes(text.p, text.n, x->seed);
}

static bool make_label_key(struct reading *s, struct sv message, struct pprof_key *ret)
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
    *ret = pprof_key_of(s->x->seed, parts, 4);
    s->has_texts = s->has_texts || v[LABEL_STR] != 0;
    return r.problem == NULL;
}

/* The place where a label is remembered, or NULL if it is too long, or among the last bytes. */
static struct label_seen *place_of(struct reading *s, struct sv message, uint64_t *ret_bytes)
{
    const char *readable = s->x->plain.p + s->x->plain.n;
    if (message.n - 1 >= sizeof(uint64_t) || readable - message.p < (ptrdiff_t)sizeof(uint64_t)) {
        return NULL;
    }
    uint64_t bytes = wire_eight(message.p) & UINT64_MAX >> (64 - 8 * message.n);
    *ret_bytes = bytes;
    return &s->seen[pprof_fold(bytes, 0, PPROF_ODD_0) % LABELS_SEEN];
}

static bool read_label(struct reading *s, struct sv message)
{
    uint64_t bytes = 0;
    struct pprof_key key;
    struct label_seen *seen = place_of(s, message, &bytes);
    if (seen != NULL && seen->n == message.n && seen->bytes == bytes) {
        key = seen->key;
    } else if (!make_label_key(s, message, &key)) {
        return false;
    } else if (seen != NULL) {
        *seen = (struct label_seen){.bytes = bytes, .n = message.n, .key = key};
    }
    s->labels.half[0] += key.half[0];
    s->labels.half[1] += key.half[1];
    s->n_labels++;
    return true;
}

static inline bool read_field(struct reading *s, uint64_t number, unsigned type, struct sv bytes)
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

/* Nearly all samples consist of fields with a length and a small number. */
static bool read_fields(struct reading *s, struct sv message)
{
    const char *at = message.p;
    const char *end = message.p + message.n;
    s->frames = s->labels = (struct pprof_key){{0, 0}};
    s->n_frames = s->n_labels = s->n_values = 0;
    while (at < end) {
        unsigned tag = (unsigned char)*at;
        struct wire_varint n = wire_varint(at + 1, end);
        /* No field has the number 0, whose tag is WIRE_BYTES alone. */
        if ((tag & 0x87) != WIRE_BYTES || tag == WIRE_BYTES || n.next == NULL ||
            n.value > (uint64_t)(end - n.next)) {
            return read_any_fields(s, (struct sv){.p = at, .n = (size_t)(end - at)}) &&
                   s->n_values == s->columns->types;
        }
        if (!read_field(s, tag >> 3, WIRE_BYTES, (struct sv){.p = n.next, .n = (size_t)n.value})) {
            return false;
        }
        at = n.next + n.value;
    }
    return s->n_values == s->columns->types;
}

/* What is wrong with a sample. Always false. */
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

static bool read_sample(struct reading *s, struct sv message)
{
    if (!read_fields(s, message)) {
        return explain(s, message);
    }
    for (size_t i = 0; i < s->columns->n; i++) {
        int64_t counter = s->values[s->columns->at[i]];
        if (counter < 0) {
            return err_set(s->err, ERR_INPUT, "sample at byte %zu: a counter of %lld",
                           (size_t)(message.p - s->x->plain.p), (long long)counter);
        }
    }
    return true;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* Frames and labels are hashes with a secret seed already, so that one more step for each half is
 * enough. */
static struct pprof_key key_of(const struct reading *s)
{
    return (struct pprof_key){{
        pprof_fold(s->frames.half[0] + s->n_frames, s->labels.half[0] + s->n_labels, PPROF_ODD_0),
        pprof_fold(s->frames.half[1] + s->n_frames, s->labels.half[1] + s->n_labels, PPROF_ODD_1),
    }};
}

/* Adds the values of a sample to a stack that is there. */
static bool add_values(struct delta_stacks *s, const struct reading *r, size_t i, struct sv sample)
{
    size_t types = r->columns->types;
    int64_t *row = s->values + i * types;
    for (size_t j = 0; j < types; j++) {
        if (__builtin_add_overflow(row[j], r->values[j], &row[j])) {
            return err_set(r->err, ERR_INPUT,
                           "sample at byte %zu: the values of its stack are too large",
                           (size_t)(sample.p - r->x->plain.p));
        }
    }
    return true;
}

/* Adds the sample that was read to its stack, new or not. */
static bool add_sample(struct delta_stacks *s, const struct reading *r, struct sv sample)
{
    struct pprof_key key = key_of(r);
    size_t types = r->columns->types;
    size_t i = (size_t)key.half[0] & s->mask;
    for (; s->slots[i] != 0; i = (i + 1) & s->mask) {
        size_t row = s->slots[i] - 1;
        if (pprof_keys_equal(s->rows[row].key, key)) {
            return add_values(s, r, row, sample);
        }
    }
    s->rows[s->n] = (struct delta_stack){
        .key = key,
        .sample = {.at = (uint32_t)(sample.p - r->x->plain.p), .n = (uint32_t)sample.n},
    };
    for (size_t j = 0; j < types; j++) {
        s->values[s->n * types + j] = r->values[j];
    }
    s->slots[i] = (uint32_t)++s->n;
    return true;
}

bool delta_stacks_read(struct delta_stacks *s, struct pprof_index *x,
                       const struct delta_columns *columns, struct scratch *scratch,
                       struct err *err)
{
    size_t n = x->summary.n[PROFILE_SAMPLE];
    *s = (struct delta_stacks){.n = 0};
    s->slots = scratch_slots(scratch, n, &s->mask);
    s->rows = scratch_array(scratch, n, sizeof(*s->rows));
    s->values = scratch_array(scratch, n, columns->types * sizeof(*s->values));
    s->moved = scratch_array(scratch, n + 1, sizeof(*s->moved));
    if (s->slots == NULL || s->rows == NULL || s->values == NULL || s->moved == NULL) {
        return err_memory(err);
    }
    struct reading reading = {.x = x, .columns = columns, .err = err};
    struct wire_reader r = wire_reader_of(x->plain);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number < PROFILE_SAMPLE || f.number > PROFILE_STRING) {
            delta_use_head(x, &f);
        } else if (f.number == PROFILE_SAMPLE &&
                   !(read_sample(&reading, f.bytes) && add_sample(s, &reading, f.bytes))) {
            return false;
        }
    }
    s->has_texts = reading.has_texts;
    return true;
}
