/* Writes what has been merged, in the order and the encoding of google/pprof: entries are numbered
 * from 1 in order of first use by the samples that are left, strings as they are referred to. */
#include "pprof/gzip.h"
#include "pprof/merge_private.h"
#include "pprof/put.h"

/* Repeated numbers are packed if there are more. */
#define UNPACKED_MAX 2

struct writing {
    const struct merge *m;
    struct buf *out;
    struct buf message;              /* the entry being made */
    struct buf part;                 /* a message in it */
    uint32_t *numbers[MERGE_TABLES]; /* of each entry; 0 if it is not used */
    uint32_t *order[MERGE_TABLES];   /* used entries by number - 1 */
    uint32_t used[MERGE_TABLES];
    bool *kept; /* stacks that have a value other than zero */
    size_t n_kept;
};

/* ---- numbers --------------------------------------------------------------------------------- */

/* Returns the number of an entry and marks it as used. *ret_new: true if it was not used before. */
static uint32_t use(struct writing *w, enum merge_table table, uint32_t entry, bool *ret_new)
{
    uint32_t *number = &w->numbers[table][entry];
    *ret_new = *number == 0;
    if (*ret_new) {
        w->order[table][w->used[table]] = entry;
        *number = ++w->used[table];
    }
    return *number;
}

/* Returns the index of a string in the result. */
static uint64_t text_of(struct writing *w, uint32_t entry)
{
    bool is_new;
    return use(w, MERGE_STRINGS, entry, &is_new) - 1;
}

static size_t lines_of(size_t words)
{
    return (words - LOC_LINES) / LN_WORDS;
}

static void use_location(struct writing *w, uint32_t entry)
{
    bool is_new;
    size_t n;
    use(w, MERGE_LOCATIONS, entry, &is_new);
    if (!is_new) {
        return;
    }
    const uint32_t *words = merge_words(w->m, MERGE_LOCATIONS, entry, &n);
    if (words[LOC_MAPPING] != MERGE_NONE) {
        use(w, MERGE_MAPPINGS, words[LOC_MAPPING], &is_new);
    }
    for (size_t i = 0; i < lines_of(n); i++) {
        use(w, MERGE_FUNCTIONS, words[LOC_LINES + i * LN_WORDS + LN_FUNCTION], &is_new);
    }
}

static bool is_zero(const int64_t *row, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (row[i] != 0) {
            return false;
        }
    }
    return true;
}

/* Reads the values of a stack. Gauges of profiles before the last one count as 0. */
static void values_of(const struct merge *m, size_t stack, int64_t ret[SUMMARY_TYPES_MAX])
{
    bool is_old = m->seen[stack] != (uint32_t)m->head.profiles;
    for (size_t i = 0; i < m->head.types; i++) {
        ret[i] = m->head.is_last[i] && is_old ? 0 : m->values[stack * m->head.types + i];
    }
}

/* Numbers all entries but strings. */
static void use_stacks(struct writing *w)
{
    int64_t values[SUMMARY_TYPES_MAX];
    bool is_new;
    size_t n;
    if (w->m->tables[MERGE_MAPPINGS].n > 0) {
        use(w, MERGE_MAPPINGS, 0, &is_new); /* the program itself is the first, used or not */
    }
    for (size_t i = 0; i < w->m->tables[MERGE_STACKS].n; i++) {
        values_of(w->m, i, values);
        if (is_zero(values, w->m->head.types)) {
            continue;
        }
        w->kept[i] = true;
        w->n_kept++;
        const uint32_t *words = merge_words(w->m, MERGE_STACKS, (uint32_t)i, &n);
        for (uint32_t k = 0; k < words[0]; k++) {
            use_location(w, words[1 + k]);
        }
    }
}

/* ---- fields ---------------------------------------------------------------------------------- */

static void put_optional(struct buf *out, uint64_t field, uint64_t value)
{
    if (value != 0) {
        wire_put_number(out, field, value);
    }
}

/* Ends a message: writes it as a field and empties it. */
static void put_message(struct buf *out, uint64_t field, struct buf *message)
{
    if (!buf_ok(message)) {
        out->failed = true;
        return;
    }
    wire_put_bytes(out, field, message->data, message->len);
    buf_clear(message);
}

/* Puts a number of a repeated field: into the packed bytes if there are many. */
static void put_repeated(struct writing *w, uint64_t field, size_t n, uint64_t value)
{
    unsigned char bytes[WIRE_NUMBER_MAX];
    if (n > UNPACKED_MAX) {
        buf_append(&w->part, bytes, wire_encode(value, bytes));
    } else {
        wire_put_number(&w->message, field, value);
    }
}

static void end_repeated(struct writing *w, uint64_t field, size_t n)
{
    if (n > UNPACKED_MAX) {
        put_message(&w->message, field, &w->part);
    }
}

static void put_value_type(struct writing *w, uint64_t field, uint32_t type, uint32_t unit)
{
    put_optional(&w->message, VALUE_TYPE_TYPE, text_of(w, type));
    put_optional(&w->message, VALUE_TYPE_UNIT, text_of(w, unit));
    put_message(w->out, field, &w->message);
}

/* ---- entries --------------------------------------------------------------------------------- */

static void put_label(struct writing *w, const uint32_t *words)
{
    bool is_number = (words[LABEL_KEY_TEXT] & 1) != 0;
    put_optional(&w->part, LABEL_KEY, text_of(w, words[LABEL_KEY_TEXT] / 2));
    uint64_t text = text_of(w, words[LABEL_TEXT]);
    put_optional(&w->part, LABEL_STR, is_number ? 0 : text);
    put_optional(&w->part, LABEL_NUM, merge_u64(words + LABEL_NUMBER));
    put_optional(&w->part, LABEL_NUM_UNIT, is_number ? text : 0);
    put_message(&w->message, SAMPLE_LABEL, &w->part);
}

/* Returns the room for n packed numbers in `part`, or NULL if there is none: then `part` fails. */
static unsigned char *room_for(struct writing *w, size_t n)
{
    return (unsigned char *)buf_room(&w->part, w->part.len + n * WIRE_NUMBER_MAX);
}

/* Ends packed numbers, which were written from start to at. */
static void end_packed(struct writing *w, uint64_t field, const unsigned char *start,
                       const unsigned char *at)
{
    buf_wrote(&w->part, (size_t)(at - start));
    put_message(&w->message, field, &w->part);
}

/* Puts the frames of a stack, of which there are usually many, without a call for each. */
static void put_frames(struct writing *w, const uint32_t *frames, size_t n)
{
    const uint32_t *numbers = w->numbers[MERGE_LOCATIONS];
    unsigned char *start = n > UNPACKED_MAX ? room_for(w, n) : NULL;
    unsigned char *at = start;
    for (size_t i = 0; i < n && start != NULL; i++) {
        at += wire_encode(numbers[frames[i]], at);
    }
    if (start != NULL) {
        end_packed(w, SAMPLE_LOCATION_ID, start, at);
    }
    for (size_t i = 0; i < n && n <= UNPACKED_MAX; i++) {
        wire_put_number(&w->message, SAMPLE_LOCATION_ID, numbers[frames[i]]);
    }
}

static void put_sample(struct writing *w, uint32_t stack)
{
    int64_t values[SUMMARY_TYPES_MAX];
    size_t n;
    const uint32_t *words = merge_words(w->m, MERGE_STACKS, stack, &n);
    size_t frames = words[0];
    size_t types = w->m->head.types;
    put_frames(w, words + 1, frames);
    values_of(w->m, stack, values);
    for (size_t i = 0; i < types; i++) {
        put_repeated(w, SAMPLE_VALUE, types, (uint64_t)values[i]);
    }
    end_repeated(w, SAMPLE_VALUE, types);
    for (size_t at = 1 + frames; at < n; at += LABEL_WORDS) {
        put_label(w, words + at);
    }
    put_message(w->out, PROFILE_SAMPLE, &w->message);
}

static void put_mapping(struct writing *w, uint32_t number, uint32_t entry)
{
    enum { HAS_FUNCTIONS = 7, FLAGS = 4 }; /* the field, and how many there are from it on */
    size_t n;
    const uint32_t *words = merge_words(w->m, MERGE_MAPPINGS, entry, &n);
    struct buf *b = &w->message;
    wire_put_number(b, MAPPING_ID, number);
    put_optional(b, MAPPING_START, merge_u64(words + MAP_START));
    put_optional(b, MAPPING_LIMIT, merge_u64(words + MAP_LIMIT));
    put_optional(b, MAPPING_OFFSET, merge_u64(words + MAP_OFFSET));
    put_optional(b, MAPPING_FILENAME, text_of(w, words[MAP_FILE]));
    put_optional(b, MAPPING_BUILD_ID, text_of(w, words[MAP_BUILD_ID]));
    for (unsigned i = 0; i < FLAGS; i++) {
        put_optional(b, HAS_FUNCTIONS + i, words[MAP_FLAGS] >> i & 1);
    }
    put_message(w->out, PROFILE_MAPPING, b);
}

/* Returns the address of a location, by its offset in the mapping that was added first. */
static uint64_t address_of(const struct writing *w, const uint32_t *words)
{
    size_t n;
    uint64_t start = 0;
    if (words[LOC_MAPPING] != MERGE_NONE) {
        start = merge_u64(merge_words(w->m, MERGE_MAPPINGS, words[LOC_MAPPING], &n) + MAP_START);
    }
    return merge_u64(words + LOC_OFFSET) + start;
}

static void put_location(struct writing *w, uint32_t number, uint32_t entry)
{
    enum { IS_FOLDED = 5 }; /* the field */
    size_t n;
    const uint32_t *words = merge_words(w->m, MERGE_LOCATIONS, entry, &n);
    size_t lines = lines_of(n);
    bool mapped = words[LOC_MAPPING] != MERGE_NONE;
    wire_put_number(&w->message, LOCATION_ID, number);
    put_optional(&w->message, LOCATION_MAPPING_ID,
                 mapped ? w->numbers[MERGE_MAPPINGS][words[LOC_MAPPING]] : 0);
    put_optional(&w->message, LOCATION_ADDRESS, address_of(w, words));
    for (size_t i = 0; i < lines; i++) {
        const uint32_t *line = words + LOC_LINES + i * LN_WORDS;
        wire_put_number(&w->part, LINE_FUNCTION_ID, w->numbers[MERGE_FUNCTIONS][line[LN_FUNCTION]]);
        put_optional(&w->part, LINE_LINE, merge_u64(line + LN_NUMBER));
        put_optional(&w->part, LINE_COLUMN, merge_u64(line + LN_COLUMN));
        put_message(&w->message, LOCATION_LINE, &w->part);
    }
    put_optional(&w->message, IS_FOLDED, words[LOC_FOLDED]);
    put_message(w->out, PROFILE_LOCATION, &w->message);
}

static void put_function(struct writing *w, uint32_t number, uint32_t entry)
{
    enum { START_LINE = 5 }; /* the field */
    size_t n;
    const uint32_t *words = merge_words(w->m, MERGE_FUNCTIONS, entry, &n);
    wire_put_number(&w->message, FUNCTION_ID, number);
    put_optional(&w->message, FUNCTION_NAME, text_of(w, words[FN_NAME]));
    put_optional(&w->message, FUNCTION_SYSTEM_NAME, text_of(w, words[FN_SYSTEM_NAME]));
    put_optional(&w->message, FUNCTION_FILENAME, text_of(w, words[FN_FILE]));
    put_optional(&w->message, START_LINE, merge_u64(words + FN_START_LINE));
    put_message(w->out, PROFILE_FUNCTION, &w->message);
}

static void put_entries(struct writing *w)
{
    static const struct {
        enum merge_table table;
        void (*put)(struct writing *w, uint32_t number, uint32_t entry);
    } kinds[] = {
        {MERGE_MAPPINGS, put_mapping},
        {MERGE_LOCATIONS, put_location},
        {MERGE_FUNCTIONS, put_function},
    };
    for (size_t i = 0; i < w->m->tables[MERGE_STACKS].n; i++) {
        if (w->kept[i]) {
            put_sample(w, (uint32_t)i);
        }
    }
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        for (uint32_t i = 0; i < w->used[kinds[k].table]; i++) {
            kinds[k].put(w, i + 1, w->order[kinds[k].table][i]);
        }
    }
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void put_strings(struct writing *w)
{
    for (uint32_t i = 0; i < w->used[MERGE_STRINGS]; i++) {
        size_t n;
        const void *text =
            merge_table_get(&w->m->tables[MERGE_STRINGS], w->order[MERGE_STRINGS][i], &n);
        wire_put_bytes(w->out, PROFILE_STRING, text, n);
    }
}

static uint64_t comment_of(struct writing *w, size_t i)
{
    size_t n;
    return text_of(w, merge_words(w->m, MERGE_COMMENTS, (uint32_t)i, &n)[0]);
}

/* Numbers the strings of the fields that are written after the string table. They come last, in
 * this order. */
static void number_last_strings(struct writing *w)
{
    const struct merge_head *h = &w->m->head;
    text_of(w, h->drop_frames);
    text_of(w, h->keep_frames);
    text_of(w, h->period_type);
    text_of(w, h->period_unit);
    for (size_t i = 0; i < w->m->tables[MERGE_COMMENTS].n; i++) {
        comment_of(w, i);
    }
    text_of(w, h->default_type);
    text_of(w, h->doc_url);
}

static void put_comments(struct writing *w)
{
    size_t n = w->m->tables[MERGE_COMMENTS].n;
    for (size_t i = 0; i < n; i++) {
        put_repeated(w, PROFILE_COMMENT, n, comment_of(w, i));
    }
    end_repeated(w, PROFILE_COMMENT, n);
    buf_append(w->out, w->message.data, w->message.len);
    buf_clear(&w->message);
}

static void put_profile(struct writing *w)
{
    const struct merge_head *h = &w->m->head;
    text_of(w, 0);
    for (size_t i = 0; i < h->types; i++) {
        put_value_type(w, PROFILE_SAMPLE_TYPE, h->type[i], h->unit[i]);
    }
    put_entries(w);
    number_last_strings(w);
    put_strings(w);
    put_optional(w->out, PROFILE_DROP_FRAMES, text_of(w, h->drop_frames));
    put_optional(w->out, PROFILE_KEEP_FRAMES, text_of(w, h->keep_frames));
    put_optional(w->out, PROFILE_TIME_NANOS, (uint64_t)h->time_ns);
    put_optional(w->out, PROFILE_DURATION_NANOS, (uint64_t)h->duration_ns);
    if (text_of(w, h->period_type) != 0 || text_of(w, h->period_unit) != 0) {
        put_value_type(w, PROFILE_PERIOD_TYPE, h->period_type, h->period_unit);
    }
    put_optional(w->out, PROFILE_PERIOD, (uint64_t)h->period);
    put_comments(w);
    wire_put_number(w->out, PROFILE_DEFAULT_SAMPLE_TYPE, text_of(w, h->default_type));
    put_optional(w->out, PROFILE_DOC_URL, text_of(w, h->doc_url));
}

static bool make_tables(struct writing *w)
{
    struct scratch *s = w->m->o.scratch;
    bool ok = true;
    for (size_t i = 0; i < MERGE_STACKS; i++) {
        w->numbers[i] = scratch_zeroed(s, w->m->tables[i].n, sizeof(uint32_t));
        w->order[i] = scratch_array(s, w->m->tables[i].n, sizeof(uint32_t));
        ok = ok && w->numbers[i] != NULL && w->order[i] != NULL;
    }
    w->kept = scratch_zeroed(s, w->m->tables[MERGE_STACKS].n, sizeof(*w->kept));
    return ok && w->kept != NULL;
}

static bool write_all(struct writing *w, struct buf *out, struct err *err)
{
    struct sv packed;
    if (!make_tables(w)) {
        return err_memory(err);
    }
    use_stacks(w);
    if (w->n_kept == 0 && w->m->o.mode == MERGE_WINDOW) {
        return true;
    }
    w->out = scratch_buf(w->m->o.scratch); /* with the room that the tables have left */
    put_profile(w);
    if (buf_too_big(w->out)) {
        return err_set(err, ERR_LIMIT, "larger than %zu bytes", w->out->max);
    }
    if (!buf_ok(w->out) || !buf_ok(&w->message) || !buf_ok(&w->part) ||
        !gzip_deflate(w->m->o.scratch, (struct sv){w->out->data, w->out->len}, &packed)) {
        return err_memory(err);
    }
    if (buf_append(out, packed.p, packed.n)) {
        return true;
    }
    return buf_too_big(out) ? err_set(err, ERR_LIMIT, "larger than %zu bytes", out->max)
                            : err_memory(err);
}

bool merge_write(struct merge *m, struct buf *out, struct err *err)
{
    if (m->head.profiles == 0) {
        return err_set(err, ERR_INPUT, "no profile to merge");
    }
    struct writing w = {.m = m};
    buf_init(&w.message, SCRATCH_BUF_MAX);
    buf_init(&w.part, SCRATCH_BUF_MAX);
    bool ok = write_all(&w, out, err);
    buf_done(&w.message);
    buf_done(&w.part);
    if (!ok) {
        scratch_explain(m->o.scratch, err);
    }
    scratch_reset(m->o.scratch);
    return ok;
}
