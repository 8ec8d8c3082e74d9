#include "pprof/legacy/profile.h"

#include <string.h>

#include "base/utf8.h"
#include "pprof/index.h"
#include "pprof/put.h"

bool legacy_reserve(struct legacy_profile *p, size_t samples, size_t frames, struct err *err)
{
    samples = samples < LEGACY_SAMPLES_MAX ? samples : LEGACY_SAMPLES_MAX;
    frames = frames < LEGACY_FRAMES_MAX ? frames : LEGACY_FRAMES_MAX;
    p->samples = scratch_array(p->scratch, samples + 1, sizeof(*p->samples));
    p->frames = scratch_array(p->scratch, frames + 1, sizeof(*p->frames));
    return (p->samples != NULL && p->frames != NULL) || err_memory(err);
}

/* ---- locations ------------------------------------------------------------------------------- */

/* Turns the address of a frame into the id of its location. slots: the ids by address. */
static bool number_frame(struct legacy_profile *p, uint32_t *slots, size_t mask, uint64_t *frame,
                         struct err *err)
{
    size_t at = (size_t)pprof_hash_of(p->seed, frame, 1) & mask;
    while (slots[at] != 0 && p->locations[slots[at] - 1].address != *frame) {
        at = (at + 1) & mask;
    }
    if (slots[at] == 0) {
        if (p->n_locations == LEGACY_LOCATIONS_MAX) {
            return err_set(err, ERR_LIMIT, "more than %d addresses", LEGACY_LOCATIONS_MAX);
        }
        p->locations[p->n_locations++] = (struct legacy_location){.address = *frame};
        slots[at] = (uint32_t)p->n_locations;
    }
    *frame = slots[at];
    return true;
}

bool legacy_locate(struct legacy_profile *p, struct sv maps, struct err *err)
{
    size_t most = p->n_frames < LEGACY_LOCATIONS_MAX ? p->n_frames : LEGACY_LOCATIONS_MAX;
    size_t mask;
    uint32_t *slots = scratch_slots(p->scratch, most, &mask);
    p->locations = scratch_array(p->scratch, most, sizeof(*p->locations));
    if (slots == NULL || p->locations == NULL) {
        return err_memory(err);
    }
    for (size_t i = 0; i < p->n_samples; i++) {
        const struct legacy_sample *s = &p->samples[i];
        for (size_t j = 0; j < s->depth; j++) {
            if (!number_frame(p, slots, mask, &p->frames[s->first + j], err)) {
                return false;
            }
        }
    }
    if (!legacy_maps_read(p->scratch, maps, &p->maps)) {
        return err_memory(err);
    }
    for (size_t i = 0; i < p->n_locations; i++) {
        p->locations[i].mapping = legacy_maps_place(&p->maps, p->locations[i].address);
    }
    return true;
}

/* ---- writing --------------------------------------------------------------------------------- */

struct writer_out {
    const struct legacy_profile *p;
    struct buf *out;
    struct buf message; /* the message being made */
    struct buf strings; /* the table of strings, written last */
    uint64_t n_strings;
};

/* The most bytes of a message, which holds the ids of a sample or the name of a file. */
#define MESSAGE_MAX ((size_t)64 * 1024 * 1024)

/* Appends a string to the table and returns its number. Duplicates are not removed: the strings are
 * few, and hardly any occurs twice. */
static uint64_t put_string(struct writer_out *w, struct sv text)
{
    if (utf8_valid(text)) {
        wire_put_bytes(&w->strings, PROFILE_STRING, text.p, text.n);
    } else {
        struct buf repaired;
        buf_init(&repaired, MESSAGE_MAX);
        utf8_repair(text, &repaired);
        wire_put_bytes(&w->strings, PROFILE_STRING, repaired.data, repaired.len);
        w->strings.failed = w->strings.failed || !buf_ok(&repaired);
        buf_done(&repaired);
    }
    return w->n_strings++;
}

static void put_message(struct writer_out *w, uint64_t field)
{
    wire_put_bytes(w->out, field, w->message.data, w->message.len);
    w->out->failed = w->out->failed || !buf_ok(&w->message);
    buf_clear(&w->message);
}

static void put_value_type(struct writer_out *w, uint64_t field, struct legacy_value_type t)
{
    wire_put_number(&w->message, VALUE_TYPE_TYPE, put_string(w, sv_from(t.type)));
    wire_put_number(&w->message, VALUE_TYPE_UNIT, put_string(w, sv_from(t.unit)));
    put_message(w, field);
}

static size_t packed_size(const uint64_t *numbers, size_t n)
{
    size_t size = 0;
    for (size_t i = 0; i < n; i++) {
        size += wire_number_size(numbers[i]);
    }
    return size;
}

/* Encodes a field of packed numbers, which take size bytes. Returns the byte after it. */
static unsigned char *encode_packed(unsigned char *at, uint64_t field, const uint64_t *numbers,
                                    size_t n, size_t size)
{
    at += wire_encode_head(field, size, at);
    for (size_t i = 0; i < n; i++) {
        at += wire_encode(numbers[i], at);
    }
    return at;
}

static void put_sample(struct writer_out *w, const struct legacy_sample *s)
{
    uint64_t values[LEGACY_COLUMNS_MAX] = {0};
    for (size_t i = 0; i < w->p->kind->n_columns; i++) {
        values[i] = (uint64_t)s->values[i];
    }
    const uint64_t *frames = w->p->frames + s->first;
    size_t frames_size = packed_size(frames, s->depth);
    size_t values_size = packed_size(values, w->p->kind->n_columns);
    size_t size = wire_bytes_size(frames_size) + wire_bytes_size(values_size);
    unsigned char *begin = (unsigned char *)buf_room(w->out, w->out->len + WIRE_HEAD_MAX + size);
    if (begin == NULL) {
        return;
    }
    unsigned char *at = begin + wire_encode_head(PROFILE_SAMPLE, size, begin);
    at = encode_packed(at, SAMPLE_LOCATION_ID, frames, s->depth, frames_size);
    at = encode_packed(at, SAMPLE_VALUE, values, w->p->kind->n_columns, values_size);
    buf_wrote(w->out, (size_t)(at - begin));
}

static void put_mapping(struct writer_out *w, const struct legacy_mapping *m, uint64_t id)
{
    wire_put_number(&w->message, MAPPING_ID, id);
    wire_put_number(&w->message, MAPPING_START, m->start);
    wire_put_number(&w->message, MAPPING_LIMIT, m->limit);
    wire_put_number(&w->message, MAPPING_OFFSET, m->offset);
    if (m->file.n > 0) {
        wire_put_number(&w->message, MAPPING_FILENAME, put_string(w, m->file));
    }
    put_message(w, PROFILE_MAPPING);
}

static void put_location(struct writer_out *w, const struct legacy_location *l, uint64_t id)
{
    unsigned char bytes[3 * WIRE_HEAD_MAX];
    size_t n = wire_encode_number(LOCATION_ID, id, bytes);
    if (l->mapping != 0) {
        n += wire_encode_number(LOCATION_MAPPING_ID, l->mapping, bytes + n);
    }
    n += wire_encode_number(LOCATION_ADDRESS, l->address, bytes + n);
    wire_put_bytes(w->out, PROFILE_LOCATION, bytes, n);
}

static void put_all(struct writer_out *w)
{
    const struct legacy_profile *p = w->p;
    put_string(w, SV(""));
    for (size_t i = 0; i < p->kind->n_columns; i++) {
        put_value_type(w, PROFILE_SAMPLE_TYPE, p->kind->columns[i]);
    }
    for (size_t i = 0; i < p->n_samples; i++) {
        put_sample(w, &p->samples[i]);
    }
    for (size_t i = 0; i < p->maps.n; i++) {
        put_mapping(w, &p->maps.at[i], i + 1);
    }
    for (size_t i = 0; i < p->n_locations; i++) {
        put_location(w, &p->locations[i], i + 1);
    }
    put_value_type(w, PROFILE_PERIOD_TYPE, p->kind->period);
    wire_put_number(w->out, PROFILE_PERIOD, (uint64_t)p->period);
}

void legacy_write(const struct legacy_profile *p, int64_t time_ns, int64_t duration_ns,
                  struct buf *out)
{
    struct writer_out w = {.p = p, .out = out};
    buf_init(&w.message, MESSAGE_MAX);
    buf_init(&w.strings, MESSAGE_MAX);
    put_all(&w);
    buf_append(out, w.strings.data, w.strings.len);
    out->failed = out->failed || !buf_ok(&w.strings);
    if (time_ns != 0) {
        wire_put_number(out, PROFILE_TIME_NANOS, (uint64_t)time_ns);
    }
    if (p->kind->samples_time && duration_ns != 0) {
        wire_put_number(out, PROFILE_DURATION_NANOS, (uint64_t)duration_ns);
    }
    buf_done(&w.message);
    buf_done(&w.strings);
}
