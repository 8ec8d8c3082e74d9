#include "pprof/merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pprof/gzip.h"
#include "pprof/merge_adding.h"
#include "pprof/quick.h"

/* A table gets room for at most so many entries at once: one for each 1 KiB of the budget. */
#define RESERVED_PART 1024

/* ---- the object ------------------------------------------------------------------------------ */

struct merge *merge_new(const struct merge_options *o, struct err *err)
{
    struct merge *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        err_memory(err);
        return NULL;
    }
    m->o = *o;
    m->budget.max = o->bytes_max;
    struct rng rng;
    rng_seed_random(&rng);
    for (size_t i = 0; i < MERGE_TABLES; i++) {
        merge_table_init(&m->tables[i], rng_next(&rng));
    }
    if (o->scratch == NULL) {
        m->own = m->o.scratch = scratch_new();
        if (m->own == NULL) {
            err_memory(err);
            return merge_free(m);
        }
    }
    return m;
}

struct merge *merge_free(struct merge *m)
{
    if (m != NULL) {
        for (size_t i = 0; i < MERGE_TABLES; i++) {
            merge_table_done(&m->tables[i]);
        }
        free(m->values);
        free(m->seen);
        scratch_free(m->own);
        free(m);
    }
    return NULL;
}

size_t merge_bytes(const struct merge *m)
{
    return sizeof(*m) + m->budget.used;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Reads the values of a sample that was checked, one for each type. Returns false if all are zero.
 */
static bool read_values(const struct adding *a, struct sv message, int64_t *values)
{
    const char *readable = a->x.plain.p + a->x.plain.n;
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    size_t n = 0;
    uint64_t any = 0;
    while (wire_next(&r, &f)) {
        const char *at = f.bytes.p;
        while (f.number == SAMPLE_VALUE && at != NULL && at < f.bytes.p + f.bytes.n) {
            struct wire_varint v = wire_varint_ahead(at, readable);
            values[n++] = (int64_t)v.value;
            any |= v.value;
            at = v.next;
        }
    }
    return any != 0;
}

/* Adds the locations of a field of ids, and writes them to words from *n on. */
static bool add_frames(struct adding *a, struct sv sample, struct sv ids, size_t *n)
{
    const struct pprof_ids known = a->x.entries[PROFILE_LOCATION].ids;
    const uint32_t *numbers = a->numbers[PROFILE_LOCATION];
    const char *end = ids.p + ids.n;
    const char *at = ids.p;
    uint32_t *words = a->words + *n;
    while (at != NULL && at < end) {
        struct wire_varint id = wire_varint(at, end);
        size_t place;
        if (!pprof_ids_find(&known, id.value, &place)) {
            return err_set(a->err, ERR_INPUT, "sample at byte %zu: location %llu is not there",
                           (size_t)(sample.p - a->x.plain.p), (unsigned long long)id.value);
        }
        *words = numbers[place] - 1;
        if (numbers[place] == 0 && !merge_add_location(a, place, words)) {
            return false;
        }
        words++;
        at = id.next;
    }
    *n = (size_t)(words - a->words);
    return true;
}

/* Adds a label. A label with neither value nor number nor unit is ignored. */
static bool add_label(struct adding *a, struct sv message, size_t *n)
{
    uint64_t v[LABEL_NUM_UNIT + 1] = {0};
    uint32_t key;
    struct label *l = &a->labels[*n];
    wire_read_numbers(message, v, LABEL_NUM_UNIT + 1);
    bool is_number = v[LABEL_STR] == 0;
    if (is_number && v[LABEL_NUM] == 0 && v[LABEL_NUM_UNIT] == 0) {
        return true;
    }
    *l = (struct label){.key = pprof_string(&a->x, v[LABEL_KEY]), .place = (uint32_t)*n};
    merge_put_u64(l->words + LABEL_NUMBER, is_number ? v[LABEL_NUM] : 0);
    if (!merge_add_string(a, v[LABEL_KEY], &key) ||
        !merge_add_string(a, is_number ? v[LABEL_NUM_UNIT] : v[LABEL_STR], &l->words[LABEL_TEXT])) {
        return false;
    }
    l->words[LABEL_KEY_TEXT] = key * 2 + is_number;
    ++*n;
    return true;
}

/* Compares labels: texts before numbers, then by key. Labels with the same key keep their order. */
static int by_kind_and_key(const void *x, const void *y)
{
    const struct label *a = x;
    const struct label *b = y;
    int kind = (int)(a->words[LABEL_KEY_TEXT] & 1) - (int)(b->words[LABEL_KEY_TEXT] & 1);
    int key = kind != 0 ? kind : sv_cmp(a->key, b->key);
    return key != 0 ? key : (a->place > b->place) - (a->place < b->place);
}

/* Sorts n labels and writes them to words. */
static void put_labels(struct adding *a, size_t n, uint32_t *words)
{
    if (n > 1) {
        qsort(a->labels, n, sizeof(*a->labels), by_kind_and_key);
    }
    for (size_t i = 0; i < n; i++) {
        memcpy(words + i * LABEL_WORDS, a->labels[i].words, sizeof(a->labels[i].words));
    }
}

/* Adds the stack whose frames are in a->words, after the first word, and its labels. */
static bool end_stack(struct adding *a, size_t frames, size_t labels)
{
    size_t n = 1 + frames + labels * LABEL_WORDS;
    a->words[0] = (uint32_t)frames;
    put_labels(a, labels, a->words + 1 + frames);
    return merge_add_words(a, MERGE_STACKS, a->words, n, n, &a->stacks[a->n_stacks++]);
}

static bool add_stack(struct adding *a, struct sv message)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    size_t labels = 0;
    size_t n = 1; /* the number of frames comes first */
    while (wire_next(&r, &f)) {
        bool ok = f.number == SAMPLE_LOCATION_ID ? add_frames(a, message, f.bytes, &n)
                  : f.number == SAMPLE_LABEL     ? add_label(a, f.bytes, &labels)
                                                 : true;
        if (!ok) {
            return false;
        }
    }
    return end_stack(a, n - 1, labels);
}

/* ---- samples that are written as usual --------------------------------------------------------
 * One walk checks and decodes them. These functions return false if something is unusual. */

/* A sample that was checked. */
struct usual {
    size_t frames;    /* the places of its locations are in adding.words, after the first word */
    struct sv labels; /* all of them, as fields of the sample */
    bool is_zero;     /* all of its values are */
};

static bool find_frames(const struct adding *a, struct sv packed, size_t *ret_n)
{
    const struct pprof_ids known = a->x.entries[PROFILE_LOCATION].ids;
    const char *end = packed.p + packed.n;
    uint32_t *words = a->words + 1;
    size_t n = 0;
    for (const char *at = packed.p; at < end; n++) {
        struct wire_varint id = wire_varint(at, end);
        size_t place;
        at = id.next;
        if (at == NULL || !pprof_ids_find(&known, id.value, &place)) {
            return false;
        }
        words[n] = (uint32_t)place;
    }
    *ret_n = n;
    return true;
}

/* Reads the values, which may be packed or, as Go writes one or two, fields of their own. */
static bool take_values(const struct adding *a, struct rest *r, int64_t *values, bool *ret_zero)
{
    const size_t types = a->head.types;
    uint64_t any = 0;
    size_t n = 0;
    for (; n < types && is_next(r, SAMPLE_VALUE << 3 | WIRE_VARINT); n++) {
        values[n] = (int64_t)take(r, SAMPLE_VALUE);
        any |= (uint64_t)values[n];
    }
    struct sv packed = take_bytes(r, SAMPLE_VALUE);
    const char *end = packed.p + packed.n;
    for (const char *at = packed.p; n < types && at != NULL && at < end; n++) {
        struct wire_varint v = wire_varint(at, end);
        values[n] = (int64_t)v.value;
        any |= v.value;
        packed.p = at = v.next;
    }
    *ret_zero = any == 0;
    return n == types && packed.p == end;
}

static bool check_label(const struct adding *a, struct sv message)
{
    const uint64_t strings = a->x.summary.n[PROFILE_STRING];
    struct rest r = rest_of(a->x.plain, message);
    uint64_t key = take(&r, LABEL_KEY);
    uint64_t text = take(&r, LABEL_STR);
    take(&r, LABEL_NUM);
    uint64_t unit = take(&r, LABEL_NUM_UNIT);
    return is_good_end(&r) && key < strings && text < strings && unit < strings;
}

static bool read_usual(const struct adding *a, struct sv message, int64_t *values,
                       struct usual *ret)
{
    struct rest r = rest_of(a->x.plain, message);
    struct sv packed = take_bytes(&r, SAMPLE_LOCATION_ID);
    if (!take_values(a, &r, values, &ret->is_zero) || r.next == NULL || r.next > r.end) {
        return false;
    }
    ret->labels = (struct sv){.p = r.next, .n = (size_t)(r.end - r.next)};
    while (is_next(&r, SAMPLE_LABEL << 3 | WIRE_BYTES)) {
        if (!check_label(a, take_bytes(&r, SAMPLE_LABEL))) {
            return false;
        }
    }
    return is_good_end(&r) && find_frames(a, packed, &ret->frames);
}

/* Turns the places of a sample's locations into entries. */
static bool add_places(struct adding *a, size_t n)
{
    const uint32_t *numbers = a->numbers[PROFILE_LOCATION];
    uint32_t *words = a->words + 1;
    for (size_t i = 0; i < n; i++) {
        uint32_t place = words[i];
        words[i] = numbers[place] - 1;
        if (numbers[place] == 0 && !merge_add_location(a, place, &words[i])) {
            return false;
        }
    }
    return true;
}

static bool add_usual(struct adding *a, const struct usual *u)
{
    struct rest r = rest_of(a->x.plain, u->labels);
    size_t labels = 0;
    if (!add_places(a, u->frames)) {
        return false;
    }
    while (r.next < r.end) {
        if (!add_label(a, take_bytes(&r, SAMPLE_LABEL), &labels)) {
            return false;
        }
    }
    return end_stack(a, u->frames, labels);
}

static bool add_sample(struct adding *a, struct sv message)
{
    int64_t *values = a->values + a->n_stacks * a->head.types;
    struct usual u = {.frames = 0};
    if (read_usual(a, message, values, &u)) {
        return u.is_zero || add_usual(a, &u);
    }
    return pprof_check_sample(a->x.plain, &a->x.summary, message, a->err) &&
           (!read_values(a, message, values) || add_stack(a, message));
}

static bool add_samples(struct adding *a)
{
    const struct pprof_entries *samples = &a->x.entries[PROFILE_SAMPLE];
    for (size_t i = 0; i < samples->ids.n; i++) {
        if (!add_sample(a, pprof_span_of(&a->x, samples->spans[i]))) {
            return false;
        }
    }
    return true;
}

/* ---- the head -------------------------------------------------------------------------------- */

static struct sv string_of(const struct merge *m, uint32_t i)
{
    struct sv text;
    text.p = merge_table_get(&m->tables[MERGE_STRINGS], i, &text.n);
    return text;
}

/* Compares a sample type, or the period type, with that of the profiles before. */
static bool is_same_type(const struct adding *a, const char *what, const uint32_t want[2],
                         const uint32_t got[2])
{
    const struct merge *m = a->m;
    return (want[0] == got[0] && want[1] == got[1]) ||
           err_set(a->err, ERR_INPUT, "%s %.*s/%.*s, expected %.*s/%.*s", what,
                   SV_ARG(string_of(m, got[0])), SV_ARG(string_of(m, got[1])),
                   SV_ARG(string_of(m, want[0])), SV_ARG(string_of(m, want[1])));
}

static bool merge_types(struct adding *a)
{
    struct merge_head *h = &a->head;
    const struct pprof_summary *s = &a->x.summary;
    size_t n = s->n[PROFILE_SAMPLE_TYPE];
    uint32_t got[2];
    if (h->profiles > 0 && n != h->types) {
        return err_set(a->err, ERR_INPUT, "%zu sample types, expected %zu", n, h->types);
    }
    for (size_t i = 0; i < n; i++) {
        if (!merge_add_string(a, s->types[i].type, &got[0]) ||
            !merge_add_string(a, s->types[i].unit, &got[1])) {
            return false;
        }
        if (h->profiles == 0) {
            h->type[i] = got[0];
            h->unit[i] = got[1];
        } else if (!is_same_type(a, "sample type", (uint32_t[]){h->type[i], h->unit[i]}, got)) {
            return false;
        }
    }
    if (!merge_add_string(a, s->period_type.type, &got[0]) ||
        !merge_add_string(a, s->period_type.unit, &got[1])) {
        return false;
    }
    if (h->profiles == 0) {
        h->types = n;
        h->period_type = got[0];
        h->period_unit = got[1];
    }
    return is_same_type(a, "period type", (uint32_t[]){h->period_type, h->period_unit}, got);
}

static void choose_columns(struct adding *a)
{
    bool is_counter[SUMMARY_TYPES_MAX];
    pprof_counters(&a->x, a->m->o.any_counter, is_counter);
    for (size_t i = 0; i < a->head.types; i++) {
        a->head.is_last[i] = a->m->o.mode == MERGE_WINDOW && !is_counter[i];
    }
}

static int64_t add_capped(int64_t a, int64_t b)
{
    int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum)) {
        return sum;
    }
    return b > 0 ? INT64_MAX : INT64_MIN;
}

static void merge_times(struct adding *a)
{
    struct merge_head *h = &a->head;
    const struct pprof_summary *s = &a->x.summary;
    bool is_later = a->m->o.mode == MERGE_WINDOW;
    if (h->time_ns == 0 || (s->time_ns != 0 && (is_later || s->time_ns < h->time_ns))) {
        h->time_ns = s->time_ns;
    }
    h->duration_ns = add_capped(h->duration_ns, s->duration_ns);
    if (h->period == 0 || h->period < s->period) {
        h->period = s->period;
    }
}

/* Keeps the text of earlier profiles unless it is empty. */
static bool keep_first(struct adding *a, uint64_t place, uint32_t *text)
{
    return string_of(a->m, *text).n > 0 || merge_add_string(a, place, text);
}

static bool merge_texts(struct adding *a)
{
    struct merge_head *h = &a->head;
    uint64_t v[PROFILE_FIELDS] = {0};
    struct sv piece = pprof_head_piece(&a->x, 0);
    for (size_t i = 1; piece.p != NULL; piece = pprof_head_piece(&a->x, i++)) {
        wire_read_numbers(piece, v, PROFILE_FIELDS);
    }
    if (h->profiles == 0 && (!merge_add_string(a, v[PROFILE_DROP_FRAMES], &h->drop_frames) ||
                             !merge_add_string(a, v[PROFILE_KEEP_FRAMES], &h->keep_frames))) {
        return false;
    }
    return keep_first(a, v[PROFILE_DEFAULT_SAMPLE_TYPE], &h->default_type) &&
           keep_first(a, v[PROFILE_DOC_URL], &h->doc_url);
}

static bool add_comments(struct adding *a, struct sv piece)
{
    struct wire_reader r = wire_reader_of(piece);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        struct wire_numbers numbers = wire_numbers_of(&f);
        uint64_t place;
        uint32_t text;
        while (f.number == PROFILE_COMMENT && wire_numbers_next(&numbers, &place)) {
            if (!merge_add_string(a, place, &text) ||
                !merge_add_words(a, MERGE_COMMENTS, &text, 1, 1, &text)) {
                return false;
            }
        }
    }
    return true;
}

static bool merge_comments(struct adding *a)
{
    struct sv piece = pprof_head_piece(&a->x, 0);
    for (size_t i = 1; piece.p != NULL; piece = pprof_head_piece(&a->x, i++)) {
        if (!add_comments(a, piece)) {
            return false;
        }
    }
    return true;
}

static bool merge_heads(struct adding *a)
{
    uint32_t none;
    /* String 0 is the empty string, as in a profile. */
    if (!merge_add_string(a, 0, &none) || !merge_types(a) || !merge_texts(a) ||
        !merge_comments(a)) {
        return false;
    }
    choose_columns(a);
    merge_times(a);
    a->head.profiles++;
    /* The first mapping of a profile is the program itself, and stays the first. */
    return a->m->tables[MERGE_MAPPINGS].n > 0 || a->x.entries[PROFILE_MAPPING].ids.n == 0 ||
           merge_add_mapping(a, 0, &none);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Returns the most words of a message. No message has more words than bytes, except locations and
 * labels, which have a few more each. */
static size_t words_max(const struct adding *a)
{
    static const unsigned fields[] = {PROFILE_SAMPLE, PROFILE_LOCATION};
    size_t longest = 0;
    for (size_t i = 0; i < 2; i++) {
        const struct pprof_entries *e = &a->x.entries[fields[i]];
        for (size_t k = 0; k < e->ids.n; k++) {
            longest = e->spans[k].n > longest ? e->spans[k].n : longest;
        }
    }
    return longest * 2 + 16;
}

static bool make_room(struct adding *a)
{
    size_t words = words_max(a);
    for (size_t field = PROFILE_MAPPING; field <= PROFILE_STRING; field++) {
        a->numbers[field] = scratch_zeroed(a->scratch, a->x.summary.n[field], sizeof(uint32_t));
        if (a->numbers[field] == NULL) {
            return err_memory(a->err);
        }
    }
    size_t samples = a->x.summary.n[PROFILE_SAMPLE];
    a->stacks = scratch_array(a->scratch, samples, sizeof(*a->stacks));
    a->values = scratch_array(a->scratch, samples,
                              a->x.summary.n[PROFILE_SAMPLE_TYPE] * sizeof(*a->values));
    a->words = scratch_array(a->scratch, words, sizeof(*a->words));
    a->place = scratch_array(a->scratch, words, sizeof(*a->place));
    a->labels = scratch_array(a->scratch, words / 4, sizeof(*a->labels));
    return (a->stacks != NULL && a->values != NULL && a->words != NULL && a->place != NULL &&
            a->labels != NULL) ||
           err_memory(a->err);
}

/* Makes room in the tables for the entries of the first profile; others usually add few. A table of
 * which that may take more than 1/30 of the budget (34 bytes for each entry and its slots) grows
 * step by step instead: many samples or strings may be equal, and would leave nothing for entries
 * that differ. */
static void reserve(struct adding *a)
{
    static const struct {
        enum merge_table table;
        unsigned field;
    } kinds[] = {
        {MERGE_STRINGS, PROFILE_STRING},
        {MERGE_FUNCTIONS, PROFILE_FUNCTION},
        {MERGE_LOCATIONS, PROFILE_LOCATION},
        {MERGE_STACKS, PROFILE_SAMPLE},
    };
    const size_t most = a->m->budget.max / RESERVED_PART;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && a->m->head.profiles == 0; i++) {
        size_t n = a->x.summary.n[kinds[i].field];
        if (n <= most) {
            merge_table_reserve(&a->m->tables[kinds[i].table], &a->m->budget, n);
        }
    }
}

/* Makes room for the values of all stacks; those of new ones are zero. */
static bool make_values(struct merge *m, size_t old, size_t types, struct err *err)
{
    size_t n = m->tables[MERGE_STACKS].n;
    int64_t *values =
        budget_grow(&m->budget, m->values, &m->values_cap, n * types + 1, sizeof(*values), err);
    if (values == NULL) {
        return false;
    }
    m->values = values;
    uint32_t *seen = budget_grow(&m->budget, m->seen, &m->seen_cap, n + 1, sizeof(*seen), err);
    if (seen == NULL) {
        return false;
    }
    m->seen = seen;
    memset(values + old * types, 0, (n - old) * types * sizeof(*values));
    memset(seen + old, 0, (n - old) * sizeof(*seen));
    return true;
}

/* Adds the values of a sample to its row. In columns of the last profile (is_last), values of
 * earlier profiles do not count. */
static void add_values(const struct merge_head *h, const int64_t *values, bool is_new, int64_t *row)
{
    for (size_t i = 0; i < h->types; i++) {
        row[i] = h->is_last[i] && is_new ? values[i] : add_capped(row[i], values[i]);
    }
}

/* Completes adding a profile. This part cannot fail. */
static void commit(struct adding *a)
{
    struct merge *m = a->m;
    size_t types = a->head.types;
    m->head = a->head;
    for (size_t i = 0; i < a->n_stacks; i++) {
        uint32_t stack = a->stacks[i];
        bool is_new = m->seen[stack] != (uint32_t)m->head.profiles;
        add_values(&m->head, a->values + i * types, is_new, m->values + stack * types);
        m->seen[stack] = (uint32_t)m->head.profiles;
    }
}

static bool add_plain(struct adding *a, struct sv plain)
{
    size_t stacks = a->m->tables[MERGE_STACKS].n;
    if (plain.n > a->m->budget.max) {
        return err_set(a->err, ERR_LIMIT, "larger than %zu bytes", a->m->budget.max);
    }
    if (!pprof_index_frame(&a->x, a->scratch, plain, "merge", a->m->tables[0].seed, a->err) ||
        !make_room(a)) {
        return false;
    }
    reserve(a);
    if (!merge_heads(a) || !add_samples(a) || !make_values(a->m, stacks, a->head.types, a->err)) {
        return false;
    }
    commit(a);
    return true;
}

bool merge_add(struct merge *m, struct sv body, struct err *err)
{
    struct adding a = {.m = m, .scratch = m->o.scratch, .head = m->head, .err = err};
    size_t before[MERGE_TABLES];
    struct sv plain;
    for (size_t i = 0; i < MERGE_TABLES; i++) {
        before[i] = m->tables[i].n;
    }
    bool ok = gzip_plain(a.scratch, body, m->budget.max, 0, &plain, err) && add_plain(&a, plain);
    for (size_t i = 0; i < MERGE_TABLES && !ok; i++) {
        merge_table_truncate(&m->tables[i], before[i]);
    }
    if (!ok) {
        scratch_explain(a.scratch, err);
    }
    scratch_reset(a.scratch);
    return ok;
}
