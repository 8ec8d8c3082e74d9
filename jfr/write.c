/* Writes the samples of one row as pprof. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "jfr/samples.h"
#include "pprof/put.h"

/* A profile that is being written. Locations and functions get new numbers, in the order in which
 * the samples use them. */
struct writer {
    struct jfr_samples *s;
    const struct jfr_contexts *contexts;
    struct buf *out;
    struct buf message;   /* the message being made */
    struct buf locations; /* messages that follow the samples */
    struct buf functions;
    struct buf strings;
    struct table texts;     /* texts of labels, each followed by the number of its string */
    uint32_t *location_ids; /* by location; 0: none yet */
    uint32_t *function_ids;
    uint32_t n_locations;
    uint32_t n_functions;
    uint64_t n_strings;
    struct err *err;
};

static uint64_t put_string(struct writer *w, struct sv text)
{
    wire_put_bytes(&w->strings, PROFILE_STRING, text.p, text.n);
    return w->n_strings++;
}

static void put_message(struct writer *w, struct buf *out, uint64_t field)
{
    wire_put_bytes(out, field, w->message.data, w->message.len);
    out->failed = out->failed || !buf_ok(&w->message);
    buf_clear(&w->message);
}

static void put_value_type(struct writer *w, uint64_t field, struct jfr_value_type t)
{
    wire_put_number(&w->message, VALUE_TYPE_TYPE, put_string(w, sv_from(t.type)));
    wire_put_number(&w->message, VALUE_TYPE_UNIT, put_string(w, sv_from(t.unit)));
    put_message(w, w->out, field);
}

/* ---- functions and locations ----------------------------------------------------------------- */

static uint32_t function_id(struct writer *w, uint32_t function)
{
    if (w->function_ids[function] == 0) {
        size_t n;
        const char *name = merge_table_get(&w->s->functions, function, &n);
        w->function_ids[function] = ++w->n_functions;
        uint64_t string = put_string(w, (struct sv){name, n});
        wire_put_number(&w->message, FUNCTION_ID, w->n_functions);
        wire_put_number(&w->message, FUNCTION_NAME, string);
        wire_put_number(&w->message, FUNCTION_SYSTEM_NAME, string);
        put_message(w, &w->functions, PROFILE_FUNCTION);
    }
    return w->function_ids[function];
}

/* Returns the id of a location, which is appended with its line when it is first used. */
static uint32_t location_id(struct writer *w, uint64_t location)
{
    if (w->location_ids[location] == 0) {
        struct jfr_location l;
        size_t n;
        memcpy(&l, merge_table_get(&w->s->locations, (uint32_t)location, &n), sizeof(l));
        uint64_t function = function_id(w, l.function);
        size_t size = 1 + wire_number_size(function) + 1 + wire_number_size(l.line);
        w->location_ids[location] = ++w->n_locations;
        wire_put_number(&w->message, LOCATION_ID, w->n_locations);
        wire_put_head(&w->message, LOCATION_LINE, size);
        wire_put_number(&w->message, LINE_FUNCTION_ID, function);
        wire_put_number(&w->message, LINE_LINE, l.line);
        put_message(w, &w->locations, PROFILE_LOCATION);
    }
    return w->location_ids[location];
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Appends the ids of the frames of a stack, packed. A first pass over the stack makes the ids,
 * because their messages use the same buffer. */
static void put_stack(struct writer *w, uint32_t stack)
{
    size_t n;
    const char *p = merge_table_get(&w->s->stacks, stack, &n);
    const char *end = p + n;
    size_t size = 0;
    struct wire_numbers first = {.at = p, .end = end};
    struct wire_numbers second = first;
    uint64_t location;
    while (wire_numbers_next(&first, &location)) {
        size += wire_number_size(location_id(w, location));
    }
    if (size == 0) {
        return;
    }
    wire_put_head(&w->message, SAMPLE_LOCATION_ID, size);
    while (wire_numbers_next(&second, &location)) {
        unsigned char bytes[WIRE_NUMBER_MAX];
        buf_append(&w->message, bytes, wire_encode(w->location_ids[location], bytes));
    }
}

/* Returns the string number of a text of labels. Such texts occur often, so a table finds them. */
static uint64_t text_number(struct writer *w, struct sv text)
{
    struct buf valid;
    uint32_t i = 0;
    size_t known = w->texts.n;
    buf_init(&valid, SIZE_MAX / 2);
    if (!utf8_valid(text)) {
        utf8_repair(text, &valid);
        text = (struct sv){valid.data, valid.len};
        w->out->failed = w->out->failed || !buf_ok(&valid);
    }
    struct buf entry; /* the text, then its number */
    buf_init(&entry, SIZE_MAX / 2);
    buf_append(&entry, text.p, text.n);
    buf_append(&entry, &w->n_strings, sizeof(w->n_strings));
    uint64_t number = w->n_strings;
    if (!buf_ok(&entry) ||
        !merge_table_add(&w->texts, w->s->budget, entry.data, text.n, entry.len, &i, w->err)) {
        w->out->failed = true;
    } else if (i < known) {
        size_t n;
        const char *p = merge_table_get(&w->texts, i, &n);
        memcpy(&number, p + n - sizeof(number), sizeof(number));
    } else {
        put_string(w, text);
    }
    buf_done(&entry);
    buf_done(&valid);
    return number;
}

static void put_label(struct writer *w, struct sv name, struct sv value)
{
    uint64_t key = text_number(w, name);
    uint64_t text = text_number(w, value);
    wire_put_head(&w->message, SAMPLE_LABEL,
                  1 + wire_number_size(key) + 1 + wire_number_size(text));
    wire_put_number(&w->message, LABEL_KEY, key);
    wire_put_number(&w->message, LABEL_STR, text);
}

static void put_labels(struct writer *w, uint32_t correlation)
{
    struct jfr_correlation c;
    size_t n;
    size_t at = 0;
    struct sv name;
    struct sv value;
    memcpy(&c, merge_table_get(&w->s->correlations, correlation, &n), sizeof(c));
    while (jfr_contexts_next(w->contexts, (int64_t)c.context, &at, &name, &value)) {
        put_label(w, name, value);
    }
    if (c.span != 0) {
        char text[sizeof("0123456789abcdef")];
        snprintf(text, sizeof(text), "%016llx", (unsigned long long)c.span);
        put_label(w, SV("profile_id"), sv_from(text));
    }
    if (c.span_name != 0) {
        put_label(w, SV("span_name"), jfr_contexts_string(w->contexts, (int64_t)c.span_name));
    }
}

static void put_sample(struct writer *w, const struct jfr_sample *x, size_t n_columns)
{
    size_t size = 0;
    put_stack(w, x->stack);
    for (size_t i = 0; i < n_columns; i++) {
        size += wire_number_size((uint64_t)x->values[i]);
    }
    wire_put_head(&w->message, SAMPLE_VALUE, size);
    for (size_t i = 0; i < n_columns; i++) {
        unsigned char bytes[WIRE_NUMBER_MAX];
        buf_append(&w->message, bytes, wire_encode((uint64_t)x->values[i], bytes));
    }
    put_labels(w, x->correlation);
    put_message(w, w->out, PROFILE_SAMPLE);
}

/* ---- the profile ----------------------------------------------------------------------------- */

static void put_profile(struct writer *w, enum jfr_row row)
{
    struct jfr_profile p;
    jfr_samples_profile(w->s, row, &p);
    put_string(w, SV(""));
    for (size_t i = 0; i < p.n_columns; i++) {
        put_value_type(w, PROFILE_SAMPLE_TYPE, p.columns[i]);
    }
    for (size_t i = 0; i < w->s->n && buf_ok(w->out); i++) {
        if (w->s->samples[i].row == (uint8_t)row) {
            put_sample(w, &w->s->samples[i], p.n_columns);
        }
    }
    if (p.period_type.type[0] != '\0') {
        put_value_type(w, PROFILE_PERIOD_TYPE, p.period_type);
    }
    if (p.period != 0) {
        wire_put_number(w->out, PROFILE_PERIOD, (uint64_t)p.period);
    }
}

static void append(struct buf *out, const struct buf *part)
{
    buf_append(out, part->data, part->len);
    out->failed = out->failed || !buf_ok(part);
}

bool jfr_samples_write(struct jfr_samples *s, enum jfr_row row, const struct jfr_contexts *contexts,
                       int64_t start_ns, int64_t duration_ns, struct buf *out, struct err *err)
{
    struct writer w = {.s = s, .contexts = contexts, .out = out, .err = err};
    buf_init(&w.message, JFR_PROFILE_MAX);
    buf_init(&w.locations, JFR_PROFILE_MAX);
    buf_init(&w.functions, JFR_PROFILE_MAX);
    buf_init(&w.strings, JFR_PROFILE_MAX);
    merge_table_init(&w.texts, s->seed);
    w.location_ids = calloc(s->locations.n + 1, sizeof(*w.location_ids));
    w.function_ids = calloc(s->functions.n + 1, sizeof(*w.function_ids));
    size_t used = s->budget->used;
    bool memory = w.location_ids != NULL && w.function_ids != NULL;
    if (memory) {
        put_profile(&w, row);
        append(out, &w.locations);
        append(out, &w.functions);
        append(out, &w.strings);
        wire_put_number(out, PROFILE_TIME_NANOS, (uint64_t)start_ns);
        wire_put_number(out, PROFILE_DURATION_NANOS, (uint64_t)duration_ns);
    }
    bool full = buf_too_big(out) || buf_too_big(&w.message) || buf_too_big(&w.locations) ||
                buf_too_big(&w.functions) || buf_too_big(&w.strings);
    free(w.location_ids);
    free(w.function_ids);
    merge_table_done(&w.texts);
    s->budget->used = used;
    buf_done(&w.message);
    buf_done(&w.locations);
    buf_done(&w.functions);
    buf_done(&w.strings);
    if (memory && buf_ok(out)) {
        return true;
    }
    return full ? err_set(err, ERR_LIMIT, "a profile of more than %zu bytes", JFR_PROFILE_MAX)
                : err_memory(err);
}
