#include "store/query/rewrite.h"

#include "base/utf8.h"
#include "pprof/put.h"
#include "store/query/frames.h"

/* A field without a name in the tables of check.h. */
enum { MAPPING_HAS_FUNCTIONS = 7 };

/* The strings that are appended to those of a profile. */
enum head_text { TEXT_TYPE, TEXT_UNIT, TEXT_PERIOD_TYPE, TEXT_PERIOD_UNIT, HEAD_TEXTS };

struct rewriting {
    struct samples *s;
    const struct rewrite_options *o;
    struct buf *out;
    struct buf message; /* the message that is being made */
    struct buf line;
    struct buf room; /* for a name */
    bool *cleared;   /* by place of mapping: its addresses are left out */
    /* by place of location: it is the leaf of a sample, and has a line of its own as such */
    bool *is_leaf;
    uint64_t *locations; /* places of the locations of the current sample */
    size_t cap;
    size_t n;
};

static size_t count_of(const struct rewriting *w, size_t field)
{
    return w->s->x.entries[field].ids.n;
}

static struct sv message_of(const struct rewriting *w, size_t field, size_t place)
{
    return pprof_span_of(&w->s->x, w->s->x.entries[field].spans[place]);
}

/* Copies the fields of a message whose numbers are not in the set of bits. */
static void copy_except(struct sv message, unsigned skipped, struct buf *out)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number >= 32 || (skipped >> f.number & 1) == 0) {
            buf_append(out, message.p + r.field_start, r.at - r.field_start);
        }
    }
}

static void put_message(struct rewriting *w, uint64_t field)
{
    wire_put_bytes(w->out, field, w->message.data, w->message.len);
    buf_clear(&w->message);
}

/* ---- which addresses stay -------------------------------------------------------------------- */

static bool has_lines(struct sv message)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (f.number == LOCATION_LINE) {
            return true;
        }
    }
    return false;
}

static bool mapping_place(const struct rewriting *w, size_t location, size_t *ret)
{
    const struct pprof_index *x = &w->s->x;
    return pprof_ids_find(&x->entries[PROFILE_MAPPING].ids, x->locations[location].mapping, ret);
}

static void find_cleared(struct rewriting *w)
{
    size_t mapping;
    for (size_t i = 0; i < count_of(w, PROFILE_MAPPING); i++) {
        uint64_t v[MAPPING_HAS_FUNCTIONS + 1] = {0};
        wire_read_numbers(message_of(w, PROFILE_MAPPING, i), v, MAPPING_HAS_FUNCTIONS + 1);
        w->cleared[i] = v[MAPPING_HAS_FUNCTIONS] != 0;
    }
    for (size_t i = 0; i < count_of(w, PROFILE_LOCATION); i++) {
        if (mapping_place(w, i, &mapping) && !has_lines(message_of(w, PROFILE_LOCATION, i))) {
            w->cleared[mapping] = false;
        }
    }
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Compares the names of a location, the outermost first, with those of the call site, from *depth
 * on. */
static bool fits_site(struct rewriting *w, size_t location, size_t *depth)
{
    const struct query_stacks *which = &w->o->profile->stacks;
    const struct pprof_index *x = &w->s->x;
    struct sv message = message_of(w, PROFILE_LOCATION, location);
    struct sv lines[64];
    size_t n = 0;
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f) && n < sizeof(lines) / sizeof(lines[0])) {
        if (f.number == LOCATION_LINE) {
            lines[n++] = f.bytes;
        }
    }
    if (n == 0) {
        char room[FRAME_ADDRESS_MAX];
        return sv_eq(frame_address(x->locations[location].address, room),
                     which->call_site[(*depth)++]);
    }
    for (; n > 0 && *depth < which->n_call_site; n--) {
        uint64_t v[LINE_FUNCTION_ID + 1] = {0};
        size_t place = 0;
        wire_read_numbers(lines[n - 1], v, LINE_FUNCTION_ID + 1);
        pprof_ids_find(&x->entries[PROFILE_FUNCTION].ids, v[LINE_FUNCTION_ID], &place);
        struct sv name = frame_name(pprof_string(x, x->functions[place].name), &w->room);
        if (!sv_eq(name, which->call_site[(*depth)++])) {
            return false;
        }
    }
    return true;
}

static bool is_at_site(struct rewriting *w, size_t n)
{
    size_t depth = 0;
    size_t wanted = w->o->profile->stacks.n_call_site;
    for (size_t i = n; i > 0 && depth < wanted; i--) {
        if (!fits_site(w, (size_t)w->locations[i - 1], &depth)) {
            return false;
        }
    }
    return depth == wanted;
}

static bool read_locations(struct rewriting *w, struct scratch *scratch,
                           const struct sample *sample, size_t *ret_n)
{
    struct sample_ids ids = sample_ids_of(sample);
    size_t place;
    *ret_n = 0;
    while (sample_ids_next(&ids, w->s, &place)) {
        if (*ret_n == w->cap) {
            size_t cap = w->cap == 0 ? 64 : 2 * w->cap;
            size_t old = w->cap * sizeof(uint64_t);
            uint64_t *grown = scratch_grow(scratch, w->locations, old, cap * sizeof(uint64_t));
            if (grown == NULL) {
                return false;
            }
            w->locations = grown;
            w->cap = cap;
        }
        w->locations[(*ret_n)++] = place;
    }
    return true;
}

static void put_sample(struct rewriting *w, size_t n, int64_t value)
{
    const struct query_profile_options *p = w->o->profile;
    size_t keep =
        p->go_pgo && p->keep_locations > 0 && p->keep_locations < n ? p->keep_locations : n;
    for (size_t i = 0; i < keep; i++) {
        uint64_t id = w->locations[i] + 1;
        if (i == 0 && p->go_pgo && p->aggregate_callees) {
            w->is_leaf[w->locations[0]] = true;
            id += count_of(w, PROFILE_LOCATION);
        }
        wire_put_number(&w->message, SAMPLE_LOCATION_ID, id);
    }
    wire_put_number(&w->message, SAMPLE_VALUE, (uint64_t)value);
    put_message(w, PROFILE_SAMPLE);
    w->n++;
}

static bool put_samples(struct rewriting *w, struct scratch *scratch, struct err *err)
{
    struct sample sample;
    size_t n;
    while (samples_next(w->s, &sample)) {
        if (!read_locations(w, scratch, &sample, &n)) {
            return err_memory(err);
        }
        if (is_at_site(w, n)) {
            put_sample(w, n, sample.value);
        }
    }
    return true;
}

/* ---- entries --------------------------------------------------------------------------------- */

static void put_mappings(struct rewriting *w)
{
    const unsigned place = 1U << MAPPING_START | 1U << MAPPING_LIMIT | 1U << MAPPING_OFFSET;
    for (size_t i = 0; i < count_of(w, PROFILE_MAPPING); i++) {
        copy_except(message_of(w, PROFILE_MAPPING, i), w->cleared[i] ? place : 0, &w->message);
        put_message(w, PROFILE_MAPPING);
    }
}

/* Writes the lines of a leaf. The first one gets no line number, so that a callee is one location,
 * whichever of its lines was running. */
static void put_leaf_lines(struct rewriting *w, struct sv message)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    unsigned skipped = 1U << LINE_LINE | 1U << LINE_COLUMN;
    while (wire_next(&r, &f)) {
        if (f.number == LOCATION_LINE) {
            copy_except(f.bytes, skipped, &w->line);
            wire_put_bytes(&w->message, LOCATION_LINE, w->line.data, w->line.len);
            buf_clear(&w->line);
            skipped = 0;
        }
    }
}

static void put_location(struct rewriting *w, size_t place, bool as_leaf)
{
    struct sv message = message_of(w, PROFILE_LOCATION, place);
    size_t mapping;
    bool cleared = mapping_place(w, place, &mapping) && w->cleared[mapping];
    unsigned skipped = 1U << LOCATION_ID | (cleared ? 1U << LOCATION_ADDRESS : 0U) |
                       (as_leaf ? 1U << LOCATION_LINE : 0U);
    wire_put_number(&w->message, LOCATION_ID,
                    place + 1 + (as_leaf ? count_of(w, PROFILE_LOCATION) : 0));
    copy_except(message, skipped, &w->message);
    if (as_leaf) {
        put_leaf_lines(w, message);
    }
    put_message(w, PROFILE_LOCATION);
}

static void put_entries(struct rewriting *w)
{
    put_mappings(w);
    for (size_t i = 0; i < count_of(w, PROFILE_LOCATION); i++) {
        put_location(w, i, false);
        if (w->is_leaf[i]) {
            put_location(w, i, true);
        }
    }
    for (size_t i = 0; i < count_of(w, PROFILE_FUNCTION); i++) {
        struct sv message = message_of(w, PROFILE_FUNCTION, i);
        wire_put_bytes(w->out, PROFILE_FUNCTION, message.p, message.n);
    }
}

/* ---- the head -------------------------------------------------------------------------------- */

static void put_type(struct rewriting *w, uint64_t field, uint64_t type)
{
    wire_put_number(&w->message, VALUE_TYPE_TYPE, type);
    wire_put_number(&w->message, VALUE_TYPE_UNIT, type + 1);
    put_message(w, field);
}

static void put_text(struct rewriting *w, struct sv text)
{
    if (utf8_valid(text)) {
        wire_put_bytes(w->out, PROFILE_STRING, text.p, text.n);
        return;
    }
    utf8_repair(text, &w->message);
    put_message(w, PROFILE_STRING);
}

/* Returns the period that Pyroscope writes. It derives the period from the name alone, too. */
static uint64_t period_of(struct sv name)
{
    static const struct {
        const char *name;
        uint64_t period;
    } periods[] = {{"process_cpu", 1000000000}, {"memory", 524288}};
    for (size_t i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
        if (sv_eq_str(name, periods[i].name)) {
            return periods[i].period;
        }
    }
    return 1;
}

static void put_texts(struct rewriting *w)
{
    const struct profile_type *t = w->o->type;
    const struct sv texts[HEAD_TEXTS] = {
        [TEXT_TYPE] = t->sample_type,
        [TEXT_UNIT] = t->sample_unit,
        [TEXT_PERIOD_TYPE] = t->period_type,
        [TEXT_PERIOD_UNIT] = t->period_unit,
    };
    for (size_t i = 0; i < w->s->x.summary.n[PROFILE_STRING]; i++) {
        put_text(w, pprof_string(&w->s->x, i));
    }
    for (size_t i = 0; i < HEAD_TEXTS; i++) {
        put_text(w, texts[i]);
    }
}

static void put_head(struct rewriting *w)
{
    const struct profile_type *t = w->o->type;
    uint64_t first = w->s->x.summary.n[PROFILE_STRING];
    put_texts(w);
    wire_put_number(w->out, PROFILE_TIME_NANOS, (uint64_t)w->o->time_ns);
    if (t->period_type.n > 0 || t->period_unit.n > 0) {
        put_type(w, PROFILE_PERIOD_TYPE, first + TEXT_PERIOD_TYPE);
    }
    wire_put_number(w->out, PROFILE_PERIOD, period_of(t->name));
    wire_put_number(w->out, PROFILE_DEFAULT_SAMPLE_TYPE, first + TEXT_TYPE);
}

bool rewrite_profile(struct samples *s, struct scratch *scratch, const struct rewrite_options *o,
                     struct buf *out, size_t *ret_n, struct err *err)
{
    struct rewriting w = {.s = s, .o = o, .out = out};
    w.cleared = scratch_zeroed(scratch, count_of(&w, PROFILE_MAPPING) + 1, sizeof(bool));
    w.is_leaf = scratch_zeroed(scratch, count_of(&w, PROFILE_LOCATION) + 1, sizeof(bool));
    if (w.cleared == NULL || w.is_leaf == NULL) {
        return err_memory(err);
    }
    buf_init(&w.message, out->max);
    buf_init(&w.line, out->max);
    buf_init(&w.room, out->max);
    find_cleared(&w);
    put_type(&w, PROFILE_SAMPLE_TYPE, s->x.summary.n[PROFILE_STRING] + TEXT_TYPE);
    bool ok = put_samples(&w, scratch, err);
    if (ok) {
        put_entries(&w);
        put_head(&w);
        ok = buf_ok(out) && buf_ok(&w.message) && buf_ok(&w.line) && buf_ok(&w.room);
        if (!ok) {
            err_set(err, ERR_LIMIT, "a profile of more than %zu bytes", out->max);
        }
    }
    buf_done(&w.message);
    buf_done(&w.line);
    buf_done(&w.room);
    *ret_n = w.n;
    return ok;
}
