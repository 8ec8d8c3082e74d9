#include <string.h>

#include "pprof/otlp/making.h"
#include "pprof/put.h"

/* A trace id has 16 bytes, a span id 8. */
#define TRACE_BYTES 16
#define SPAN_BYTES 8

/* ---- numbers of entries ---------------------------------------------------------------------- */

/* Gives an entry the number, and remembers it so that it can be taken back. */
static bool use(struct making *m, struct otlp_table *t, uint32_t index, uint32_t number)
{
    if (!OTLP_GROW(m->r, t->used, t->cap_used, t->n_used + 1, m->err)) {
        return false;
    }
    t->local[index] = number;
    t->used[t->n_used++] = index;
    return true;
}

/* Finds the number of an entry, which gets the next one if it has none. */
bool making_number(struct making *m, unsigned table, uint64_t index, uint32_t *ret)
{
    struct otlp_table *t = &m->r->tables[table];
    struct sv ignored;
    if (index >= t->n) {
        *ret = 0;
        return otlp_entry(m->r, table, index, &ignored, m->err);
    }
    if (t->local[index] == 0 && !use(m, t, (uint32_t)index, (uint32_t)t->n_used + 1)) {
        return false;
    }
    *ret = t->local[index];
    return true;
}

/* Takes back the numbers of all entries. */
static void forget(struct otlp_reader *r)
{
    for (size_t i = 1; i < OTLP_TABLES; i++) {
        struct otlp_table *t = &r->tables[i];
        for (size_t k = 0; k < t->n_used; k++) {
            t->local[t->used[k]] = 0;
        }
        t->n_used = 0;
    }
    r->n_strings = 0;
    buf_clear(&r->out);
}

/* ---- strings --------------------------------------------------------------------------------- */

/* Adds a string; equal ones may be there already. */
bool making_add(struct making *m, struct sv text, uint32_t *ret)
{
    struct otlp_reader *r = m->r;
    if (!OTLP_GROW(r, r->strings, r->cap_strings, r->n_strings + 1, m->err)) {
        return false;
    }
    *ret = (uint32_t)r->n_strings;
    r->strings[r->n_strings++] = text;
    return true;
}

/* Finds the number of a string of the dictionary; 0 for "". */
bool making_string(struct making *m, uint64_t index, uint32_t *ret)
{
    struct otlp_table *t = &m->r->tables[OTLP_DICTIONARY_STRING_TABLE];
    struct sv text;
    if (index < t->n && t->local[index] != 0) {
        *ret = t->local[index];
        return true;
    }
    *ret = 0;
    return otlp_entry(m->r, OTLP_DICTIONARY_STRING_TABLE, index, &text, m->err) &&
           (index == 0 || text.n == 0 ||
            (making_add(m, text, ret) && use(m, t, (uint32_t)index, *ret)));
}

/* Adds a string that the arena keeps. */
static bool add_text(struct making *m, const char *text, size_t n, uint32_t *ret)
{
    char *copy = arena_strndup(m->r->texts, text, n);
    return copy != NULL ? making_add(m, (struct sv){copy, n}, ret)
                        : err_set(m->err, ERR_LIMIT, "too many texts of samples");
}

/* ---- labels of samples ----------------------------------------------------------------------- */

/* A label of a sample, as numbers of strings and a number. */
struct label_fields {
    uint32_t key;
    uint32_t text;
    int64_t number;
    uint32_t unit;
};

/* Finds the label of an attribute; *ret_any is false if it has none. */
static bool label_of(struct making *m, uint32_t index, struct label_fields *ret, bool *ret_any)
{
    struct otlp_table *t = &m->r->tables[OTLP_DICTIONARY_ATTRIBUTE_TABLE];
    const struct otlp_attribute *a = &m->r->attributes[index];
    *ret = (struct label_fields){.key = 0};
    *ret_any = false;
    if (a->splits || a->key_text.n == 0) {
        return true;
    }
    if (a->value.kind == OTLP_VALUE_NUMBER) {
        ret->number = a->value.number;
        *ret_any = ret->number != 0 || a->unit != 0;
        return making_string(m, a->key, &ret->key) && making_string(m, a->unit, &ret->unit);
    }
    if (a->value.kind != OTLP_VALUE_TEXT || a->value.text.n == 0) {
        return true;
    }
    *ret_any = true;
    if (t->local[index] == 0) {
        uint32_t number;
        if (!making_add(m, a->value.text, &number) || !use(m, t, index, number)) {
            return false;
        }
    }
    ret->text = t->local[index];
    return making_string(m, a->key, &ret->key);
}

static bool add_hex(struct making *m, struct sv id, uint32_t *ret)
{
    static const char digits[] = "0123456789abcdef";
    char text[2 * TRACE_BYTES];
    for (size_t i = 0; i < id.n; i++) {
        unsigned char c = (unsigned char)id.p[i];
        text[2 * i] = digits[c >> 4];
        text[2 * i + 1] = digits[c & 15];
    }
    return add_text(m, text, 2 * id.n, ret);
}

/* Returns true if an id has the right size and is not 0, which means "none". */
static bool is_id(struct sv id, size_t size)
{
    static const char zero[TRACE_BYTES];
    return id.n == size && memcmp(id.p, zero, size) != 0;
}

/* Reads the ids of a link; they are empty if the link does not have both. */
static void read_link(struct sv link, struct sv *ret_trace, struct sv *ret_span)
{
    struct wire_reader at = wire_reader_of(link);
    struct wire_field f = {.number = 0};
    *ret_trace = *ret_span = SV("");
    while (wire_next(&at, &f)) {
        if (f.number == OTLP_LINK_TRACE_ID && f.type == WIRE_BYTES) {
            *ret_trace = f.bytes;
        } else if (f.number == OTLP_LINK_SPAN_ID && f.type == WIRE_BYTES) {
            *ret_span = f.bytes;
        }
    }
    if (!is_id(*ret_trace, TRACE_BYTES) || !is_id(*ret_span, SPAN_BYTES)) {
        *ret_trace = *ret_span = SV("");
    }
}

/* Adds the texts of a link, and the keys of its labels if they are not there yet. The number of the
 * link is that of the first of its two strings. */
static bool add_link(struct making *m, uint32_t index, struct sv trace, struct sv span)
{
    struct otlp_table *t = &m->r->tables[OTLP_DICTIONARY_LINK_TABLE];
    uint32_t first = 0;
    uint32_t second = 0;
    if (m->trace_key == 0 && (!making_add(m, SV("trace_id"), &m->trace_key) ||
                              !making_add(m, SV("span_id"), &m->span_key))) {
        return false;
    }
    return t->local[index] != 0 ||
           (add_hex(m, trace, &first) && add_hex(m, span, &second) && use(m, t, index, first));
}

/* Finds the labels `trace_id` and `span_id` of a link, at most two. */
static bool labels_of_link(struct making *m, uint32_t index, struct label_fields *out,
                           size_t *ret_n)
{
    const struct otlp_table *t = &m->r->tables[OTLP_DICTIONARY_LINK_TABLE];
    struct sv link;
    struct sv trace;
    struct sv span;
    *ret_n = 0;
    if (!otlp_entry(m->r, OTLP_DICTIONARY_LINK_TABLE, index, &link, m->err)) {
        return false;
    }
    read_link(link, &trace, &span);
    if (trace.n == 0) {
        return true;
    }
    if (!add_link(m, index, trace, span)) {
        return false;
    }
    out[0] = (struct label_fields){.key = m->trace_key, .text = t->local[index]};
    out[1] = (struct label_fields){.key = m->span_key, .text = t->local[index] + 1};
    *ret_n = 2;
    return true;
}

unsigned char *making_put(unsigned char *at, uint64_t field, uint64_t value)
{
    if (value == 0) {
        return at;
    }
    at += wire_encode(field << 3 | WIRE_VARINT, at);
    return at + wire_encode(value, at);
}

unsigned char *making_close(unsigned char *content, unsigned char *end, uint64_t field)
{
    size_t size = (size_t)(end - content);
    unsigned char *at = content - MAKING_HEAD;
    unsigned char head[WIRE_HEAD_MAX];
    if (size < 0x80) {
        at[0] = (unsigned char)(field << 3 | WIRE_BYTES);
        at[1] = (unsigned char)size;
        return end;
    }
    size_t n = wire_encode_head(field, size, head);
    memmove(at + n, content, size);
    memcpy(at, head, n);
    return at + n + size;
}

/* The most bytes of a label in a sample. */
#define LABEL_BYTES_MAX (5 * WIRE_HEAD_MAX)

static unsigned char *put_label(unsigned char *at, const struct label_fields *l)
{
    unsigned char *label = at + MAKING_HEAD;
    unsigned char *end = making_put(label, LABEL_KEY, l->key);
    end = making_put(end, LABEL_STR, l->text);
    end = making_put(end, LABEL_NUM, (uint64_t)l->number);
    end = making_put(end, LABEL_NUM_UNIT, l->unit);
    return making_close(label, end, SAMPLE_LABEL);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* The numbers of the locations in a stack. */
struct frames {
    const char *p; /* in the message */
    const char *end;
    unsigned char *at; /* in the profile */
    size_t n;          /* frames so far */
};

static bool too_deep(struct making *m)
{
    return err_set(m->err, ERR_LIMIT, "a stack has more than %d frames", OTLP_DEPTH_MAX);
}

/* Puts the next frame, whatever its numbers are. A bad number ends the list. */
static bool put_any_frame(struct making *m, struct frames *f)
{
    struct wire_varint v = wire_varint(f->p, f->end);
    uint32_t number;
    f->p = v.next == NULL ? f->end : v.next;
    if (v.next == NULL) {
        return true;
    }
    if (!making_number(m, OTLP_DICTIONARY_LOCATION_TABLE, v.value, &number)) {
        return false;
    }
    if (++f->n > OTLP_DEPTH_MAX) {
        return too_deep(m);
    }
    /* 0: index 0 of an empty table. */
    f->at += number == 0 ? 0 : wire_encode(number, f->at);
    return true;
}

/* Puts frames as long as their numbers have one byte or two, on both sides, and are known. Most of
 * the time of a request is spent here, and which numbers have one byte cannot be predicted: so no
 * jump depends on it, and two bytes are read and written always. */
static void put_short_frames(const struct otlp_table *t, struct frames *f)
{
    const uint32_t *local = t->local;
    const size_t n_local = t->n;
    const char *p = f->p;
    const char *end = f->end;
    unsigned char *at = f->at;
    size_t n = f->n;
    while (end - p >= 2 && n < OTLP_DEPTH_MAX) {
        uint16_t pair;
        memcpy(&pair, p, sizeof(pair));
        uint32_t bytes = le16toh(pair);
        uint32_t two = bytes >> 7 & 1;
        size_t index = (bytes & 0x7f) | (bytes >> 1 & 0x3f80 & (0 - two));
        uint32_t number = (bytes & 0x8080) != 0x8080 && index < n_local ? local[index] : 0;
        if (number - 1 >= 0x3fff) {
            break;
        }
        uint32_t long_number = number >= 0x80;
        pair = htole16((uint16_t)(number + (number & 0x3f80) + (long_number << 7)));
        memcpy(at, &pair, sizeof(pair));
        at += 1 + long_number;
        p += 1 + two;
        n++;
    }
    *f = (struct frames){.p = p, .end = end, .at = at, .n = n};
}

/* Puts the numbers of the locations in a field of a stack. False with err. */
static bool put_frames(struct making *m, struct frames *f)
{
    while (f->p < f->end) {
        put_short_frames(&m->r->tables[OTLP_DICTIONARY_LOCATION_TABLE], f);
        if (f->p < f->end && !put_any_frame(m, f)) {
            return false;
        }
    }
    return true;
}

/* Puts the locations of a stack, which begin with the leaf in both formats. NULL with err. */
static unsigned char *put_stack(struct making *m, struct sv stack, unsigned char *at)
{
    struct wire_reader in = wire_reader_of(stack);
    struct wire_field f = {.number = 0};
    unsigned char *first = at + MAKING_HEAD;
    struct frames frames = {.at = first};
    while (wire_next(&in, &f)) {
        frames.p = f.bytes.p;
        frames.end = f.bytes.p + f.bytes.n;
        if (f.number == OTLP_STACK_LOCATION_INDICES && !put_frames(m, &frames)) {
            return NULL;
        }
    }
    return frames.at == first ? at : making_close(first, frames.at, SAMPLE_LOCATION_ID);
}

/* Puts the values of a sample. NULL with err if one of them needs more than 64 bits. */
static unsigned char *put_values(struct making *m, size_t i, unsigned char *at)
{
    const struct otlp_samples *s = &m->r->samples;
    unsigned char *values = at + MAKING_HEAD;
    unsigned char *end = values;
    for (size_t k = 0; k < m->r->n_types; k++) {
        int64_t value;
        if (__builtin_mul_overflow(s->values[k][i], m->factor, &value)) {
            err_set(m->err, ERR_INPUT, "a value times the period needs more than 64 bits");
            return NULL;
        }
        end += wire_encode((uint64_t)value, end);
    }
    return making_close(values, end, SAMPLE_VALUE);
}

static unsigned char *put_labels(struct making *m, const struct otlp_sample *s, unsigned char *at)
{
    struct label_fields l[2];
    size_t n;
    bool any;
    if (s->n_attributes > OTLP_SAMPLE_LABELS_MAX) {
        err_set(m->err, ERR_INPUT, "%u attributes, limit %d", s->n_attributes,
                OTLP_SAMPLE_LABELS_MAX);
        return NULL;
    }
    for (uint32_t i = 0; i < s->n_attributes; i++) {
        if (!label_of(m, m->r->samples.attributes[s->attributes + i], l, &any)) {
            return NULL;
        }
        at = any ? put_label(at, l) : at;
    }
    if (!labels_of_link(m, s->link, l, &n)) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        at = put_label(at, &l[i]);
    }
    return at;
}

/* Returns true if the buffer has taken everything so far. */
bool making_has_room(struct making *m)
{
    const struct buf *out = &m->r->out;
    return buf_ok(out) || (buf_too_big(out) ? err_set(m->err, ERR_LIMIT,
                                                      "the profile would have more than %zu bytes",
                                                      m->r->limits.profile_max)
                                            : err_memory(m->err));
}

bool making_append(struct making *m, unsigned char *end, uint64_t field)
{
    struct otlp_reader *r = m->r;
    end = making_close(r->sample + MAKING_HEAD, end, field);
    return buf_append(&r->out, r->sample, (size_t)(end - r->sample)) || making_has_room(m);
}

static bool put_sample(struct making *m, size_t i)
{
    struct otlp_reader *r = m->r;
    const struct otlp_sample *s = &r->samples.at[i];
    struct sv stack;
    if (!otlp_entry(r, OTLP_DICTIONARY_STACK_TABLE, s->stack, &stack, m->err)) {
        return err_wrap(m->err, "sample %zu", i);
    }
    /* A number takes at least one byte. */
    size_t frames = stack.n < OTLP_DEPTH_MAX + 1 ? stack.n : OTLP_DEPTH_MAX + 1;
    size_t most = 4 * WIRE_HEAD_MAX + 5 * frames + WIRE_NUMBER_MAX * OTLP_TYPES_MAX +
                  ((size_t)s->n_attributes + 2) * LABEL_BYTES_MAX;
    if (!OTLP_GROW(r, r->sample, r->cap_sample, most, m->err)) {
        return false;
    }
    unsigned char *at = put_stack(m, stack, r->sample + MAKING_HEAD);
    at = at == NULL ? NULL : put_values(m, i, at);
    at = at == NULL ? NULL : put_labels(m, s, at);
    if (at == NULL) {
        return err_wrap(m->err, "sample %zu", i);
    }
    m->n_samples++;
    return making_append(m, at, PROFILE_SAMPLE);
}

static bool put_samples(struct making *m)
{
    const struct otlp_samples *s = &m->r->samples;
    for (size_t i = 0; i < s->n; i++) {
        if (s->at[i].part == m->part && !put_sample(m, i)) {
            return false;
        }
    }
    return true;
}

/* ---- the profile ----------------------------------------------------------------------------- */

static void put_value_type(struct making *m, uint64_t field, uint32_t type, uint32_t unit)
{
    unsigned char message[2 * WIRE_HEAD_MAX];
    unsigned char *at = making_put(message, VALUE_TYPE_TYPE, type);
    at = making_put(at, VALUE_TYPE_UNIT, unit);
    wire_put_bytes(&m->r->out, field, message, (size_t)(at - message));
}

static bool put_types(struct making *m)
{
    struct otlp_reader *r = m->r;
    bool times = otlp_counts_are_time(r);
    for (size_t i = 0; i < r->n_types; i++) {
        const struct otlp_head *h = &r->heads[i];
        uint32_t type;
        uint32_t unit;
        if (!making_string(m, times ? h->period_type : h->type, &type) ||
            !making_string(m, times ? h->period_unit : h->unit, &unit)) {
            return false;
        }
        put_value_type(m, PROFILE_SAMPLE_TYPE, type, unit);
        m->types[i] = (struct pprof_value_type){.type = type, .unit = unit};
    }
    return true;
}

static void put_if(struct making *m, uint64_t field, uint64_t value)
{
    if (value != 0) {
        wire_put_number(&m->r->out, field, value);
    }
}

static bool put_head(struct making *m)
{
    const struct otlp_head *h = &m->r->heads[0];
    uint32_t type;
    uint32_t unit;
    if (!making_string(m, h->period_type, &type) || !making_string(m, h->period_unit, &unit)) {
        return false;
    }
    if (type != 0 || unit != 0) {
        put_value_type(m, PROFILE_PERIOD_TYPE, type, unit);
    }
    put_if(m, PROFILE_PERIOD, (uint64_t)h->period);
    put_if(m, PROFILE_TIME_NANOS, h->time_ns < INT64_MAX ? h->time_ns : INT64_MAX);
    put_if(m, PROFILE_DURATION_NANOS, h->duration_ns < INT64_MAX ? h->duration_ns : INT64_MAX);
    return true;
}

/* Puts an attribute of the profile that pprof has a field for, as a string. */
static bool put_attribute(struct making *m, const struct otlp_attribute *a)
{
    static const struct {
        const char *key;
        bool is_prefix;
        uint64_t field;
    } rows[] = {
        {"pprof.profile.drop_frames", false, PROFILE_DROP_FRAMES},
        {"pprof.profile.keep_frames", false, PROFILE_KEEP_FRAMES},
        {"pprof.profile.doc_url", false, PROFILE_DOC_URL},
        {"pprof.profile.comment.", true, PROFILE_COMMENT},
    };
    bool is_text = a->value.kind == OTLP_VALUE_TEXT && a->value.text.n > 0;
    for (size_t i = 0; is_text && i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t number;
        if (rows[i].is_prefix ? sv_starts_with(a->key_text, sv_from(rows[i].key))
                              : sv_eq_str(a->key_text, rows[i].key)) {
            if (!making_add(m, a->value.text, &number)) {
                return false;
            }
            wire_put_number(&m->r->out, rows[i].field, number);
        }
    }
    return true;
}

static bool put_attributes(struct making *m)
{
    struct wire_reader at = wire_reader_of(m->r->first);
    struct wire_field f = {.number = 0};
    while (wire_next(&at, &f)) {
        struct wire_numbers numbers = wire_numbers_of(&f);
        uint64_t index;
        while (f.number == OTLP_PROFILE_ATTRIBUTE_INDICES && wire_numbers_next(&numbers, &index)) {
            const struct otlp_attribute *a;
            if (!otlp_read_attribute(m->r, index, &a, m->err) || !put_attribute(m, a)) {
                return false;
            }
        }
    }
    return true;
}

static void put_strings(struct making *m)
{
    const struct otlp_reader *r = m->r;
    for (size_t i = 0; i < r->n_strings; i++) {
        wire_put_bytes(&m->r->out, PROFILE_STRING, r->strings[i].p, r->strings[i].n);
    }
}

/* Fills in the summary that pprof_check() would. */
static void summarise(const struct making *m, struct pprof_summary *ret)
{
    static const struct {
        uint64_t field;
        unsigned table;
    } rows[] = {{PROFILE_LOCATION, OTLP_DICTIONARY_LOCATION_TABLE},
                {PROFILE_FUNCTION, OTLP_DICTIONARY_FUNCTION_TABLE},
                {PROFILE_MAPPING, OTLP_DICTIONARY_MAPPING_TABLE}};
    const struct otlp_reader *r = m->r;
    const struct otlp_head *h = &r->heads[0];
    *ret = (struct pprof_summary){
        .time_ns = h->time_ns < INT64_MAX ? (int64_t)h->time_ns : INT64_MAX,
        .duration_ns = h->duration_ns < INT64_MAX ? (int64_t)h->duration_ns : INT64_MAX,
        .period = h->period,
        .plain_size = r->out.len,
        .whole = true,
    };
    ret->n[PROFILE_SAMPLE_TYPE] = r->n_types;
    ret->n[PROFILE_SAMPLE] = m->n_samples;
    ret->n[PROFILE_STRING] = r->n_strings;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ret->n[rows[i].field] = r->tables[rows[i].table].n_used;
    }
    for (size_t i = 0; i < r->n_types; i++) {
        ret->types[i] = m->types[i];
        ret->types[i].type_text = r->strings[m->types[i].type];
        ret->types[i].unit_text = r->strings[m->types[i].unit];
    }
}

bool otlp_make(struct otlp_reader *r, uint32_t part, struct pprof_summary *ret, struct err *err)
{
    struct making m = {.r = r, .part = part, .err = err};
    uint32_t none;
    m.factor = otlp_counts_are_time(r) ? r->heads[0].period : 1;
    forget(r);
    r->n_mappings = 0;
    /* A request with one profile has about the size of this profile. */
    buf_reserve(&r->out, r->message.n);
    if (!making_add(&m, SV(""), &none) || !put_types(&m) || !put_samples(&m) ||
        !making_tables(&m) || !put_head(&m) || !put_attributes(&m)) {
        return false;
    }
    put_strings(&m);
    summarise(&m, ret);
    return making_has_room(&m);
}
