#include "pprof/check.h"

#include "pprof/fields.h"
#include "pprof/quick.h"

/* The state of one pass. It remembers the largest index of a string, which can only be checked at
 * the end, because the strings may come last. */
struct pass {
    struct sv plain;
    struct err *err;
    struct pprof_summary *summary;
    /* The largest index of a string that was referred to, its place, and the message. */
    uint64_t string_max;
    size_t string_max_at;
    const char *string_max_in;
    size_t values; /* values of the sample being read */
    size_t values_first;
    size_t values_first_at;
    bool first_string_empty;
    bool no_samples; /* the contents of samples are not checked */
};

static bool bad(const struct pass *p, size_t at, const struct field_table *table, const char *what)
{
    return err_set(p->err, ERR_INPUT, "%s at byte %zu: %s", table->name, at, what);
}

static void note_string(struct pass *p, const struct field_table *table, uint64_t index, size_t at)
{
    if (index > p->string_max) {
        p->string_max = index;
        p->string_max_at = at;
        p->string_max_in = table->name;
    }
}

static bool check_numbers(struct pass *p, const struct field_table *table,
                          const struct wire_field *f, enum field_kind kind, size_t at)
{
    struct wire_numbers numbers = wire_numbers_of(f);
    uint64_t value;
    uint64_t smallest = UINT64_MAX;
    uint64_t largest = 0;
    size_t n = 0;
    for (; wire_numbers_next(&numbers, &value); n++) {
        smallest = value < smallest ? value : smallest;
        largest = value > largest ? value : largest;
    }
    if (numbers.at == NULL) {
        return bad(p, at, table, "a damaged number in a packed field");
    }
    if (kind == FIELD_IDS && smallest == 0) {
        return bad(p, at, table, "id 0");
    }
    if (kind == FIELD_STRINGS) {
        note_string(p, table, largest, at);
    }
    p->values += kind == FIELD_NUMBERS ? n : 0;
    return true;
}

/* ---- messages that are good ------------------------------------------------------------------
 * Nearly all entries are written in the same way, and have nothing wrong. The functions below
 * recognize these in a fifth of the time that check_message() takes. If one returns false, the
 * entry may still be good: check_message() decides, and finds the error if there is one. */

/* Reads the index of a string if it is next. */
static inline void take_string(struct pass *p, struct rest *r, const struct field_table *table,
                               unsigned field)
{
    const char *start = r->next;
    uint64_t index = take(r, field);
    if (index > p->string_max) {
        note_string(p, table, index, (size_t)(start - p->plain.p));
    }
}

static inline bool quick_label(struct pass *p, const struct field_table *table, struct sv message)
{
    struct rest r = rest_of(p->plain, message);
    take_string(p, &r, table, LABEL_KEY);
    take_string(p, &r, table, LABEL_STR);
    take(&r, LABEL_NUM);
    take_string(p, &r, table, LABEL_NUM_UNIT);
    return is_good_end(&r);
}

/* A sample: locations, values, and labels. */
static inline bool quick_sample(struct pass *p, const struct field_table *table, struct sv message)
{
    struct rest r = rest_of(p->plain, message);
    size_t frames = 0;
    bool good = quick_repeated(&r, SAMPLE_LOCATION_ID, true, &frames) &&
                quick_repeated(&r, SAMPLE_VALUE, false, &p->values);
    while (good && is_next(&r, SAMPLE_LABEL << 3 | WIRE_BYTES)) {
        good = quick_label(p, table->sub[SAMPLE_LABEL], take_bytes(&r, SAMPLE_LABEL));
    }
    return good && is_good_end(&r);
}

static inline bool quick_location(struct pass *p, struct sv message)
{
    struct rest r = rest_of(p->plain, message);
    uint64_t id = take(&r, LOCATION_ID);
    take(&r, LOCATION_MAPPING_ID);
    take(&r, LOCATION_ADDRESS);
    for (uint64_t function; take_line(&r, &function);) {
        if (function == 0) {
            return false;
        }
    }
    return is_good_end(&r) && id != 0;
}

static inline bool quick_function(struct pass *p, const struct field_table *table,
                                  struct sv message)
{
    struct rest r = rest_of(p->plain, message);
    uint64_t id = take(&r, FUNCTION_ID);
    take_string(p, &r, table, FUNCTION_NAME);
    take_string(p, &r, table, FUNCTION_SYSTEM_NAME);
    take_string(p, &r, table, FUNCTION_FILENAME);
    take(&r, FUNCTION_START_LINE);
    return is_good_end(&r) && id != 0;
}

/* Returns true if an entry of the profile is good for certain. */
static inline bool quick_entry(struct pass *p, const struct wire_field *f)
{
    if (f->type != WIRE_BYTES) {
        return false;
    }
    switch (f->number) {
    case PROFILE_SAMPLE:
        return quick_sample(p, profile_table.sub[PROFILE_SAMPLE], f->bytes);
    case PROFILE_LOCATION:
        return quick_location(p, f->bytes);
    case PROFILE_FUNCTION:
        return quick_function(p, profile_table.sub[PROFILE_FUNCTION], f->bytes);
    default:
        return f->number == PROFILE_STRING;
    }
}

/* ---- all messages ---------------------------------------------------------------------------- */

static bool check_message(struct pass *p, const struct field_table *table, struct sv message);

static bool check_field(struct pass *p, const struct field_table *table, const struct wire_field *f,
                        size_t at)
{
    enum field_kind kind = field_kind_of(table, f);
    if (!field_fits(kind, f->type)) {
        return err_set(p->err, ERR_INPUT, "%s at byte %zu: field %u has wire type %u", table->name,
                       at, (unsigned)f->number, f->type);
    }
    switch (kind) {
    case FIELD_STRING:
        note_string(p, table, f->value, at);
        return true;
    case FIELD_ID:
        return f->value != 0 || bad(p, at, table, "id 0");
    case FIELD_NUMBERS:
    case FIELD_STRINGS:
    case FIELD_IDS:
        return check_numbers(p, table, f, kind, at);
    case FIELD_MESSAGE:
        return check_message(p, table->sub[f->number], f->bytes);
    case FIELD_UNKNOWN:
    case FIELD_NUMBER:
    case FIELD_TEXT:
        break;
    }
    return true;
}

/* Checks that a sample has as many values as the first sample. The end of the pass checks that this
 * is the number of types. */
static bool check_values(struct pass *p, size_t at)
{
    if (p->summary->n[PROFILE_SAMPLE] == 1) {
        p->values_first = p->values;
        p->values_first_at = at;
    }
    if (p->values == p->values_first) {
        p->values = 0;
        return true;
    }
    return err_set(p->err, ERR_INPUT, "sample at byte %zu: %zu values, others have %zu", at,
                   p->values, p->values_first);
}

/* Adds an entry that was checked. */
static inline bool take_entry(struct pass *p, const struct wire_field *f, size_t at)
{
    size_t n = p->summary->n[f->number]++;
    if (f->number == PROFILE_SAMPLE) {
        return check_values(p, at);
    }
    p->first_string_empty =
        p->first_string_empty || (f->number == PROFILE_STRING && n == 0 && f->bytes.n == 0);
    return true;
}

static bool is_entry(const struct wire_field *f)
{
    return f->number >= PROFILE_SAMPLE && f->number <= PROFILE_STRING;
}

/* Adds a field of the profile that was checked. */
static bool take_top(struct pass *p, const struct wire_field *f, size_t at)
{
    if (is_entry(f)) {
        return take_entry(p, f, at);
    }
    pprof_summary_add(p->summary, f);
    switch (f->number) {
    case PROFILE_TIME_NANOS:
        return p->summary->n[PROFILE_TIME_NANOS] == 1 ||
               bad(p, at, &profile_table, "a second time_nanos: these are several profiles in one");
    default:
        return true;
    }
}

static bool check_message(struct pass *p, const struct field_table *table, struct sv message)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    size_t base = (size_t)(message.p - p->plain.p);
    bool has_id = table->id == 0;
    while (wire_next(&r, &f)) {
        if (!check_field(p, table, &f, base + r.field_start)) {
            return false;
        }
        has_id = has_id || f.number == table->id;
    }
    if (r.problem != NULL) {
        return bad(p, base + r.field_start, table, r.problem);
    }
    return has_id || bad(p, base, table, "id 0");
}

static bool check_number_of_values(const struct pass *p, size_t n, size_t at)
{
    size_t types = p->summary->n[PROFILE_SAMPLE_TYPE];
    return n == types ||
           err_set(p->err, ERR_INPUT, "sample at byte %zu: %zu values for %zu sample types", at, n,
                   types);
}

static bool check_strings(const struct pass *p)
{
    return p->string_max < p->summary->n[PROFILE_STRING] ||
           err_set(p->err, ERR_INPUT, "%s at byte %zu: string %llu, but there are only %zu",
                   p->string_max_in, p->string_max_at, (unsigned long long)p->string_max,
                   p->summary->n[PROFILE_STRING]);
}

static bool check_end(const struct pass *p)
{
    if (p->summary->n[PROFILE_SAMPLE_TYPE] == 0) {
        return err_set(p->err, ERR_INPUT, "no sample type");
    }
    if (p->summary->n[PROFILE_SAMPLE] > 0 && !p->no_samples &&
        !check_number_of_values(p, p->values_first, p->values_first_at)) {
        return false;
    }
    if (!p->first_string_empty) {
        return err_set(p->err, ERR_INPUT, "the first string is not empty, or there is none");
    }
    return check_strings(p);
}

static bool check_profile(struct pass *p)
{
    struct wire_reader r = wire_reader_of(p->plain);
    struct wire_field f = {.number = 0};
    *p->summary = (struct pprof_summary){.plain_size = p->plain.n, .whole = true};
    while (wire_next(&r, &f)) {
        if (p->no_samples && f.number == PROFILE_SAMPLE && f.type == WIRE_BYTES) {
            p->summary->n[PROFILE_SAMPLE]++;
            continue;
        }
        if (quick_entry(p, &f)) {
            if (!take_entry(p, &f, r.field_start)) {
                return false;
            }
            continue;
        }
        p->values = 0; /* a quick check may have counted some */
        if (!check_field(p, &profile_table, &f, r.field_start) || !take_top(p, &f, r.field_start)) {
            return false;
        }
    }
    return (r.problem == NULL || bad(p, r.field_start, &profile_table, r.problem)) && check_end(p);
}

bool pprof_check(struct sv plain, struct pprof_summary *ret, struct err *err)
{
    struct pass p = {.plain = plain, .err = err, .summary = ret};
    return check_profile(&p);
}

bool pprof_check_frame(struct sv plain, struct pprof_summary *ret, struct err *err)
{
    struct pass p = {.plain = plain, .err = err, .summary = ret, .no_samples = true};
    return check_profile(&p);
}

bool pprof_check_sample(struct sv plain, const struct pprof_summary *s, struct sv sample,
                        struct err *err)
{
    struct pass quick = {.plain = plain};
    if (quick_sample(&quick, profile_table.sub[PROFILE_SAMPLE], sample) &&
        quick.values == s->n[PROFILE_SAMPLE_TYPE] && quick.string_max < s->n[PROFILE_STRING]) {
        return true;
    }
    struct pprof_summary summary = *s;
    struct pass p = {.plain = plain, .err = err, .summary = &summary};
    return check_message(&p, profile_table.sub[PROFILE_SAMPLE], sample) &&
           check_number_of_values(&p, p.values, (size_t)(sample.p - plain.p)) && check_strings(&p);
}

bool pprof_check_head(const struct wire_field *f, struct pprof_summary *s, uint64_t *string_max)
{
    struct err ignored = ERR_INIT;
    struct pass p = {.plain = f->bytes, .err = &ignored, .summary = s, .string_max = *string_max};
    if (!check_field(&p, &profile_table, f, 0) || !take_top(&p, f, 0)) {
        return false;
    }
    *string_max = p.string_max;
    return true;
}
