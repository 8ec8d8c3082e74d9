#include "write/protocols/otlp_dictionary.h"

#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "pprof/proto/otlp.pb-c.h"
#include "pprof/put.h"
#include "pprof/quick.h"

/* ---- messages -------------------------------------------------------------------------------- */

/* A buffer to which protobuf-c writes. */
struct into_buf {
    ProtobufCBuffer base;
    struct buf *out;
};

static void into_buf_on_bytes(ProtobufCBuffer *base, size_t n, const uint8_t *data)
{
    struct into_buf *b = (struct into_buf *)base;
    buf_append(b->out, data, n);
}

void otlp_pack(struct buf *out, const ProtobufCMessage *m)
{
    struct into_buf b = {.base = {.append = into_buf_on_bytes}, .out = out};
    protobuf_c_message_pack_to_buffer(m, &b.base);
}

uint64_t otlp_field(const ProtobufCMessageDescriptor *message, const char *field)
{
    return protobuf_c_message_descriptor_get_field_by_name(message, field)->id;
}

static ProtobufCBinaryData bytes_of(struct sv v)
{
    /* The library only reads the bytes. */
    return (ProtobufCBinaryData){.len = v.n, .data = (uint8_t *)(uintptr_t)v.p};
}

/* ---- the dictionary -------------------------------------------------------------------------- */

static bool add(struct otlp_dictionary *d, enum otlp_table table, const struct buf *b,
                uint32_t *ret, struct err *err)
{
    if (!buf_ok(b)) {
        return err_memory(err);
    }
    return merge_table_add(&d->tables[table], &d->budget, b->data, b->len, b->len, ret, err);
}

static void find_fields(struct otlp_fields *f)
{
    const ProtobufCMessageDescriptor *location = &otlp__location__descriptor;
    const ProtobufCMessageDescriptor *line = &otlp__line__descriptor;
    const ProtobufCMessageDescriptor *function = &otlp__function__descriptor;
    *f = (struct otlp_fields){
        .locations = otlp_field(&otlp__stack__descriptor, "location_indices"),
        .mapping = otlp_field(location, "mapping_index"),
        .address = otlp_field(location, "address"),
        .lines = otlp_field(location, "lines"),
        .attributes = otlp_field(location, "attribute_indices"),
        .function = otlp_field(line, "function_index"),
        .line = otlp_field(line, "line"),
        .column = otlp_field(line, "column"),
        .name = otlp_field(function, "name_strindex"),
        .system_name = otlp_field(function, "system_name_strindex"),
        .filename = otlp_field(function, "filename_strindex"),
        .start_line = otlp_field(function, "start_line"),
    };
}

bool otlp_dictionary_init(struct otlp_dictionary *d, size_t bytes_max, struct err *err)
{
    struct rng rng;
    rng_seed_random(&rng);
    *d = (struct otlp_dictionary){.bytes_max = bytes_max};
    find_fields(&d->fields);
    buf_init(&d->message, bytes_max);
    buf_init(&d->part, bytes_max);
    buf_init(&d->text, bytes_max);
    buf_init(&d->value, bytes_max);
    for (size_t i = 0; i < OTLP_TABLES; i++) {
        merge_table_init(&d->tables[i], rng_next(&rng));
    }
    return otlp_dictionary_reset(d, err);
}

bool otlp_dictionary_reset(struct otlp_dictionary *d, struct err *err)
{
    uint32_t zero;
    bool ok = true;
    /* A table may have kept memory that another one needs now. */
    d->budget.max = d->bytes_max + d->budget.used;
    for (size_t i = 0; ok && i < OTLP_TABLES; i++) {
        merge_table_clear(&d->tables[i]);
        ok = merge_table_add(&d->tables[i], &d->budget, "", 0, 0, &zero, err);
    }
    return ok;
}

size_t otlp_dictionary_bytes(const struct otlp_dictionary *d)
{
    return d->budget.used + d->message.cap + d->part.cap + d->text.cap + d->value.cap;
}

void otlp_dictionary_done(struct otlp_dictionary *d)
{
    for (size_t i = 0; i < OTLP_TABLES; i++) {
        merge_table_done(&d->tables[i]);
    }
    buf_done(&d->message);
    buf_done(&d->part);
    buf_done(&d->text);
    buf_done(&d->value);
}

bool otlp_text(struct otlp_dictionary *d, struct sv text, uint32_t *ret, struct err *err)
{
    if (utf8_valid(text)) {
        return merge_table_add(&d->tables[OTLP_STRINGS], &d->budget, text.p, text.n, text.n, ret,
                               err);
    }
    buf_clear(&d->text);
    utf8_repair(text, &d->text);
    return add(d, OTLP_STRINGS, &d->text, ret, err);
}

bool otlp_message(struct otlp_dictionary *d, enum otlp_table table, const ProtobufCMessage *m,
                  uint32_t *ret, struct err *err)
{
    buf_clear(&d->message);
    otlp_pack(&d->message, m);
    return add(d, table, &d->message, ret, err);
}

static bool add_attribute(struct otlp_dictionary *d, struct sv key, Otlp__AnyValue *value,
                          struct sv unit, uint32_t *ret, struct err *err)
{
    Otlp__KeyValueAndUnit a = OTLP__KEY_VALUE_AND_UNIT__INIT;
    a.value = value;
    return otlp_text(d, key, &a.key_strindex, err) && otlp_text(d, unit, &a.unit_strindex, err) &&
           otlp_message(d, OTLP_ATTRIBUTES, &a.base, ret, err);
}

/* The text has to be UTF-8, or repaired into the buffer. */
static bool set_text(struct otlp_dictionary *d, Otlp__AnyValue *v, struct sv text, struct err *err)
{
    if (!utf8_valid(text)) {
        buf_clear(&d->value);
        if (!utf8_repair(text, &d->value)) {
            return err_memory(err);
        }
        text = (struct sv){.p = d->value.data, .n = d->value.len};
    }
    otlp__any_value__init(v);
    v->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
    v->string_value = bytes_of(text);
    return true;
}

bool otlp_text_attribute(struct otlp_dictionary *d, const char *key, struct sv value, uint32_t *ret,
                         struct err *err)
{
    Otlp__AnyValue v;
    return set_text(d, &v, value, err) && add_attribute(d, sv_from(key), &v, SV(""), ret, err);
}

bool otlp_flag_attribute(struct otlp_dictionary *d, const char *key, bool value, uint32_t *ret,
                         struct err *err)
{
    Otlp__AnyValue v;
    otlp__any_value__init(&v);
    v.value_case = OTLP__ANY_VALUE__VALUE_BOOL_VALUE;
    v.bool_value = value;
    return add_attribute(d, sv_from(key), &v, SV(""), ret, err);
}

bool otlp_label_attribute(struct otlp_dictionary *d, const struct otlp_label *label, uint32_t *ret,
                          struct err *err)
{
    Otlp__AnyValue one;
    Otlp__AnyValue *list[] = {&one};
    Otlp__ArrayValue array = OTLP__ARRAY_VALUE__INIT;
    Otlp__AnyValue v;
    otlp__any_value__init(&v);
    otlp__any_value__init(&one);
    if (label->is_number) {
        one.value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
        one.int_value = label->number;
    } else if (!set_text(d, &one, label->text, err)) {
        return false;
    }
    array.n_values = 1;
    array.values = list;
    v.value_case = OTLP__ANY_VALUE__VALUE_ARRAY_VALUE;
    v.array_value = &array;
    return add_attribute(d, label->key, &v, label->unit, ret, err);
}

size_t otlp_dictionary_size(const struct otlp_dictionary *d)
{
    size_t size = 0;
    for (size_t i = 0; i < OTLP_TABLES; i++) {
        for (uint32_t k = 0; k < d->tables[i].n; k++) {
            size_t n;
            (void)merge_table_get(&d->tables[i], k, &n);
            size += wire_bytes_size(n);
        }
    }
    return size;
}

void otlp_dictionary_write(const struct otlp_dictionary *d, struct buf *out)
{
    static const char *const fields[] = {
        [OTLP_MAPPINGS] = "mapping_table",   [OTLP_LOCATIONS] = "location_table",
        [OTLP_FUNCTIONS] = "function_table", [OTLP_LINKS] = "link_table",
        [OTLP_STRINGS] = "string_table",     [OTLP_ATTRIBUTES] = "attribute_table",
        [OTLP_STACKS] = "stack_table",
    };
    for (size_t i = 0; i < OTLP_TABLES; i++) {
        uint64_t field = otlp_field(&otlp__dictionary__descriptor, fields[i]);
        for (uint32_t k = 0; k < d->tables[i].n; k++) {
            size_t n;
            const void *entry = merge_table_get(&d->tables[i], k, &n);
            wire_put_bytes(out, field, entry, n);
        }
    }
}

/* ---- the entries of one profile -------------------------------------------------------------- */

static size_t longest_sample(const struct pprof_index *x)
{
    const struct pprof_entries *samples = &x->entries[PROFILE_SAMPLE];
    size_t longest = 0;
    for (size_t i = 0; i < samples->ids.n; i++) {
        longest = samples->spans[i].n > longest ? samples->spans[i].n : longest;
    }
    return longest;
}

bool otlp_lookup_init(struct otlp_lookup *l, struct otlp_dictionary *d, const struct pprof_index *x,
                      struct scratch *s, struct err *err)
{
    *l = (struct otlp_lookup){.d = d, .x = x, .err = err};
    for (size_t field = PROFILE_MAPPING; field <= PROFILE_STRING; field++) {
        l->numbers[field] = scratch_zeroed(s, x->summary.n[field], sizeof(uint32_t));
        if (l->numbers[field] == NULL) {
            return err_memory(err);
        }
    }
    l->longest_sample = longest_sample(x);
    const struct pprof_ids *ids = &x->entries[PROFILE_LOCATION].ids;
    l->by_id = ids->slots == NULL || ids->limit != 0;
    l->frames_n = 1 + (ids->limit != 0 ? ids->limit : ids->n);
    l->frames = scratch_zeroed(s, l->frames_n, sizeof(*l->frames));
    bool ok = l->frames != NULL;
    for (size_t i = 0; i < 2; i++) {
        /* Each frame is written as OTLP_FRAME_BYTES, of which some are written again. */
        size_t frames = OTLP_FRAME_BYTES * (l->longest_sample + 1);
        l->stacks[i].room = scratch_array(s, WIRE_HEAD_MAX + frames, 1);
        ok = ok && l->stacks[i].room != NULL;
    }
    return ok || err_memory(err);
}

/* Returns true if a place has a number already; *ret gets the number. */
static bool is_known(const struct otlp_lookup *l, size_t field, size_t place, uint32_t *ret)
{
    *ret = l->numbers[field][place] - 1;
    return l->numbers[field][place] != 0;
}

/* Remembers the number of a place. */
static bool note(struct otlp_lookup *l, size_t field, size_t place, uint32_t number)
{
    l->numbers[field][place] = number + 1;
    return true;
}

static struct sv message_of(const struct otlp_lookup *l, size_t field, size_t place)
{
    return pprof_span_of(l->x, l->x->entries[field].spans[place]);
}

bool otlp_lookup_string(struct otlp_lookup *l, uint64_t place, uint32_t *ret)
{
    return is_known(l, PROFILE_STRING, place, ret) ||
           (otlp_text(l->d, pprof_string(l->x, place), ret, l->err) &&
            note(l, PROFILE_STRING, place, *ret));
}

/* Puts a field that is a number, unless it is 0. Returns the place after it. */
static inline unsigned char *put_number(unsigned char *at, uint64_t field, uint64_t value)
{
    if (value == 0) {
        return at;
    }
    at += wire_encode(field << 3 | WIRE_VARINT, at);
    return at + wire_encode(value, at);
}

static bool add_function(struct otlp_dictionary *d, const uint32_t strings[3], uint64_t start_line,
                         uint32_t *ret, struct err *err)
{
    unsigned char bytes[4 * WIRE_HEAD_MAX];
    unsigned char *at = put_number(bytes, d->fields.name, strings[0]);
    at = put_number(at, d->fields.system_name, strings[1]);
    at = put_number(at, d->fields.filename, strings[2]);
    at = put_number(at, d->fields.start_line, start_line);
    size_t n = (size_t)(at - bytes);
    return merge_table_add(&d->tables[OTLP_FUNCTIONS], &d->budget, bytes, n, n, ret, err);
}

/* Reads a function. */
static void read_function(const struct otlp_lookup *l, struct sv message,
                          uint64_t v[FUNCTION_START_LINE + 1])
{
    struct rest r = rest_of(l->x->plain, message);
    for (unsigned field = FUNCTION_ID; field <= FUNCTION_START_LINE; field++) {
        v[field] = take(&r, field);
    }
    if (!is_good_end(&r)) {
        memset(v, 0, (FUNCTION_START_LINE + 1) * sizeof(*v));
        wire_read_numbers(message, v, FUNCTION_START_LINE + 1);
    }
}

static bool lookup_function(struct otlp_lookup *l, size_t place, uint32_t *ret)
{
    uint64_t v[FUNCTION_START_LINE + 1];
    uint32_t strings[3];
    if (is_known(l, PROFILE_FUNCTION, place, ret)) {
        return true;
    }
    read_function(l, message_of(l, PROFILE_FUNCTION, place), v);
    return otlp_lookup_string(l, v[FUNCTION_NAME], &strings[0]) &&
           otlp_lookup_string(l, v[FUNCTION_SYSTEM_NAME], &strings[1]) &&
           otlp_lookup_string(l, v[FUNCTION_FILENAME], &strings[2]) &&
           add_function(l->d, strings, v[FUNCTION_START_LINE], ret, l->err) &&
           note(l, PROFILE_FUNCTION, place, *ret);
}

bool otlp_lookup_mapping(struct otlp_lookup *l, size_t place, uint32_t *ret)
{
    enum { HAS_FIRST = 7, FLAGS = 4 }; /* the fields has_functions to has_inline_frames */
    static const char *const flags[FLAGS] = {
        "pprof.mapping.has_functions", "pprof.mapping.has_filenames",
        "pprof.mapping.has_line_numbers", "pprof.mapping.has_inline_frames"};
    uint64_t v[HAS_FIRST + FLAGS] = {0};
    uint32_t attributes[FLAGS + 1];
    Otlp__Mapping m = OTLP__MAPPING__INIT;
    if (is_known(l, PROFILE_MAPPING, place, ret)) {
        return true;
    }
    wire_read_numbers(message_of(l, PROFILE_MAPPING, place), v, HAS_FIRST + FLAGS);
    m.memory_start = v[MAPPING_START];
    m.memory_limit = v[MAPPING_LIMIT];
    m.file_offset = v[MAPPING_OFFSET];
    m.attribute_indices = attributes;
    struct sv build_id = pprof_string(l->x, v[MAPPING_BUILD_ID]);
    if (build_id.n > 0 && !otlp_text_attribute(l->d, "process.executable.build_id.gnu", build_id,
                                               &attributes[m.n_attribute_indices++], l->err)) {
        return false;
    }
    for (size_t i = 0; i < FLAGS; i++) {
        if (!otlp_flag_attribute(l->d, flags[i], v[HAS_FIRST + i] != 0,
                                 &attributes[m.n_attribute_indices++], l->err)) {
            return false;
        }
    }
    return otlp_lookup_string(l, v[MAPPING_FILENAME], &m.filename_strindex) &&
           otlp_message(l->d, OTLP_MAPPINGS, &m.base, ret, l->err) &&
           note(l, PROFILE_MAPPING, place, *ret);
}

/* Appends a line, given the numbers of its fields. */
static bool put_line(struct otlp_lookup *l, const uint64_t v[LINE_COLUMN + 1], struct buf *out)
{
    const struct otlp_fields *fields = &l->d->fields;
    unsigned char bytes[3 * WIRE_HEAD_MAX];
    size_t place = 0;
    uint32_t function;
    /* pprof_index_whole() has checked that the function exists. */
    pprof_ids_find(&l->x->entries[PROFILE_FUNCTION].ids, v[LINE_FUNCTION_ID], &place);
    if (!lookup_function(l, place, &function)) {
        return false;
    }
    unsigned char *at = put_number(bytes, fields->function, function);
    at = put_number(at, fields->line, v[LINE_LINE]);
    at = put_number(at, fields->column, v[LINE_COLUMN]);
    wire_put_bytes(out, fields->lines, bytes, (size_t)(at - bytes));
    return true;
}

/* Reads the line of a location that has one line and is written as nearly all writers do it.
 * Returns false for any other location. */
static bool quick_line(const struct otlp_lookup *l, struct sv message, uint64_t v[LINE_COLUMN + 1])
{
    struct rest r = rest_of(l->x->plain, message);
    take(&r, LOCATION_ID);
    take(&r, LOCATION_MAPPING_ID);
    take(&r, LOCATION_ADDRESS);
    struct rest line = rest_of(l->x->plain, take_bytes(&r, LOCATION_LINE));
    for (unsigned field = LINE_FUNCTION_ID; field <= LINE_COLUMN; field++) {
        v[field] = take(&line, field);
    }
    return is_good_end(&r) && is_good_end(&line) && v[LINE_FUNCTION_ID] != 0;
}

/* Appends the lines of a location; *ret_folded: the functions of several addresses are one there.
 */
static bool put_lines(struct otlp_lookup *l, struct sv message, struct buf *out, bool *ret_folded)
{
    enum { IS_FOLDED = 5 }; /* the field */
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    uint64_t only[LINE_COLUMN + 1];
    *ret_folded = false;
    if (quick_line(l, message, only)) {
        return put_line(l, only, out);
    }
    while (wire_next(&r, &f)) {
        if (f.number == IS_FOLDED) {
            *ret_folded = f.value != 0;
        }
        if (f.number == LOCATION_LINE) {
            uint64_t v[LINE_COLUMN + 1] = {0};
            wire_read_numbers(f.bytes, v, LINE_COLUMN + 1);
            if (!put_line(l, v, out)) {
                return false;
            }
        }
    }
    return true;
}

/* Adds the location whose lines are in the buffer `part`. */
static bool add_location(struct otlp_lookup *l, uint64_t address, uint32_t mapping, bool folded,
                         uint32_t *ret)
{
    struct otlp_dictionary *d = l->d;
    unsigned char bytes[2 * WIRE_HEAD_MAX];
    unsigned char *at = put_number(bytes, d->fields.mapping, mapping);
    at = put_number(at, d->fields.address, address);
    buf_append(&d->part, bytes, (size_t)(at - bytes));
    if (folded) {
        uint32_t attribute = 0;
        if (!otlp_flag_attribute(d, "pprof.location.is_folded", true, &attribute, l->err)) {
            return false;
        }
        wire_put_bytes(&d->part, d->fields.attributes, bytes, wire_encode(attribute, bytes));
    }
    return add(d, OTLP_LOCATIONS, &d->part, ret, l->err);
}

static bool lookup_location(struct otlp_lookup *l, size_t place, uint32_t *ret)
{
    const struct pprof_location *from = &l->x->locations[place];
    uint32_t number = 0;
    size_t mapping;
    bool folded;
    if (pprof_ids_find(&l->x->entries[PROFILE_MAPPING].ids, from->mapping, &mapping) &&
        !otlp_lookup_mapping(l, mapping, &number)) {
        return false;
    }
    buf_clear(&l->d->part);
    return put_lines(l, message_of(l, PROFILE_LOCATION, place), &l->d->part, &folded) &&
           add_location(l, from->address, number, folded, ret);
}

/* Finds the frame of an id, and adds its location if that has no number yet. Returns NULL if the
 * profile does not define it. */
static const struct otlp_frame *find_frame(struct otlp_lookup *l, struct sv sample, uint64_t id)
{
    size_t place;
    uint32_t number = 0;
    if (!pprof_ids_find(&l->x->entries[PROFILE_LOCATION].ids, id, &place)) {
        err_set(l->err, ERR_INPUT, "sample at byte %zu: location %llu is not there",
                (size_t)(sample.p - l->x->plain.p), (unsigned long long)id);
        return NULL;
    }
    struct otlp_frame *frame = &l->frames[l->by_id ? (size_t)id : place];
    if (frame->n == 0) {
        unsigned char bytes[WIRE_NUMBER_MAX];
        if (!lookup_location(l, place, &number)) {
            return NULL;
        }
        frame->n = (uint32_t)wire_encode(number, bytes);
        memcpy(&frame->bytes, bytes, OTLP_FRAME_BYTES);
    }
    return frame;
}

bool otlp_lookup_locations(struct otlp_lookup *l)
{
    const struct pprof_ids *ids = &l->x->entries[PROFILE_LOCATION].ids;
    for (size_t i = 0; i < ids->n; i++) {
        if (find_frame(l, SV(""), ids->at[i]) == NULL) {
            return false;
        }
    }
    return true;
}

/* Reads any id, skips it, and finds its frame. */
static __attribute__((noinline)) const struct otlp_frame *
read_frame(struct otlp_lookup *l, struct sv sample, const char **at, const char *end)
{
    struct wire_varint id = wire_varint(*at, end);
    if (id.next == NULL) {
        err_set(l->err, ERR_INPUT, "a sample is damaged");
        return NULL;
    }
    *at = id.next;
    return find_frame(l, sample, id.value);
}

/* Puts the numbers of the locations of a field of ids at *at. Nearly all ids have one or two bytes,
 * in no order that a processor could foresee, and frames that are known: these are read without a
 * branch. Values that do not change are in local variables, because the compiler cannot know that
 * the bytes that are written do not change them. */
static bool put_frames(struct otlp_lookup *l, struct sv sample, struct sv ids, unsigned char **at)
{
    const struct otlp_frame *frames = l->frames;
    const size_t frames_n = l->by_id ? l->frames_n : 0;
    const char *end = ids.p + ids.n;
    const char *p = ids.p;
    unsigned char *out = *at;
    while (p < end) {
        uint32_t first = (unsigned char)p[0];
        uint32_t second = end - p > 1 ? (unsigned char)p[1] : 0x80;
        uint32_t more = first >> 7;
        uint32_t id = (first & 0x7f) | (second << 7 & (0U - more));
        bool quick = (first & second & 0x80) == 0 && id < frames_n && frames[id].n != 0;
        const struct otlp_frame *frame;
        if (quick) {
            frame = &frames[id];
            p += 1 + more;
        } else {
            const char *next = p;
            frame = read_frame(l, sample, &next, end);
            p = next;
        }
        if (frame == NULL) {
            return false;
        }
        memcpy(out, &frame->bytes, OTLP_FRAME_BYTES);
        out += frame->n;
    }
    *at = out;
    return true;
}

/* Returns the ids of the locations of a sample that has them in one field, and is written as nearly
 * all writers do it. The result is empty for other samples. */
static struct sv quick_ids(const struct otlp_lookup *l, struct sv sample)
{
    struct rest r = rest_of(l->x->plain, sample);
    struct sv ids = take_bytes(&r, SAMPLE_LOCATION_ID);
    while (is_next(&r, SAMPLE_VALUE << 3 | WIRE_VARINT)) {
        take(&r, SAMPLE_VALUE);
    }
    take_bytes(&r, SAMPLE_VALUE);
    while (is_next(&r, SAMPLE_LABEL << 3 | WIRE_BYTES)) {
        take_bytes(&r, SAMPLE_LABEL);
    }
    return is_good_end(&r) ? ids : SV("");
}

static bool put_all_frames(struct otlp_lookup *l, struct sv sample, unsigned char **at)
{
    struct wire_reader r = wire_reader_of(sample);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number == SAMPLE_LOCATION_ID && !put_frames(l, sample, f.bytes, at)) {
            return false;
        }
    }
    return true;
}

bool otlp_make_stack(struct otlp_lookup *l, struct sv sample, struct otlp_stack *s)
{
    unsigned char *frames = s->room + WIRE_HEAD_MAX;
    unsigned char *at = frames;
    struct sv ids = quick_ids(l, sample);
    if (ids.n > 0 ? !put_frames(l, sample, ids, &at) : !put_all_frames(l, sample, &at)) {
        return false;
    }
    unsigned char head[WIRE_HEAD_MAX];
    size_t n = (size_t)(at - frames);
    size_t n_head = n > 0 ? wire_encode_head(l->d->fields.locations, n, head) : 0;
    s->message = memcpy(frames - n_head, head, n_head);
    s->n = n_head + n;
    s->hash = merge_table_hash(&l->d->tables[OTLP_STACKS], s->message, s->n);
    return true;
}

bool otlp_lookup_stack(struct otlp_lookup *l, const struct otlp_stack *s, uint32_t *ret)
{
    return merge_table_add_hashed(&l->d->tables[OTLP_STACKS], &l->d->budget, s->message, s->n, s->n,
                                  s->hash, ret, l->err);
}
