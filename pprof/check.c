#include "pprof/check.h"

#include "pprof/fields.h"

/* One pass. Remembers what can only be checked at the end, since the strings may stand there. */
struct pass {
    struct sv plain;
    struct err *err;
    struct pprof_summary *summary;
    uint64_t string_max; /* the largest index that was referred to, where, and by which message */
    size_t string_max_at;
    const char *string_max_in;
    size_t values; /* of the sample at hand */
    size_t values_first;
    size_t values_first_at;
    bool first_string_empty;
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

/* All samples have as many values as the first one. That this is the number of types is checked at
 * the end. */
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

static bool take_top(struct pass *p, const struct wire_field *f, size_t at)
{
    pprof_summary_add(p->summary, f);
    switch (f->number) {
    case PROFILE_SAMPLE:
        return check_values(p, at);
    case PROFILE_STRING:
        p->first_string_empty =
            p->first_string_empty || (p->summary->n[PROFILE_STRING] == 1 && f->bytes.n == 0);
        return true;
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
        size_t at = base + r.field_start;
        if (!check_field(p, table, &f, at) || (table == &profile_table && !take_top(p, &f, at))) {
            return false;
        }
        has_id = has_id || f.number == table->id;
    }
    if (r.problem != NULL) {
        return bad(p, base + r.field_start, table, r.problem);
    }
    return has_id || bad(p, base, table, "id 0");
}

static bool check_end(const struct pass *p)
{
    size_t types = p->summary->n[PROFILE_SAMPLE_TYPE];
    if (types == 0) {
        return err_set(p->err, ERR_INPUT, "no sample type");
    }
    if (p->summary->n[PROFILE_SAMPLE] > 0 && p->values_first != types) {
        return err_set(p->err, ERR_INPUT, "sample at byte %zu: %zu values for %zu sample types",
                       p->values_first_at, p->values_first, types);
    }
    if (!p->first_string_empty) {
        return err_set(p->err, ERR_INPUT, "the first string is not empty, or there is none");
    }
    if (p->string_max >= p->summary->n[PROFILE_STRING]) {
        return err_set(p->err, ERR_INPUT, "%s at byte %zu: string %llu, but there are only %zu",
                       p->string_max_in, p->string_max_at, (unsigned long long)p->string_max,
                       p->summary->n[PROFILE_STRING]);
    }
    return true;
}

bool pprof_check(struct sv plain, struct pprof_summary *ret, struct err *err)
{
    struct pass p = {.plain = plain, .err = err, .summary = ret};
    *ret = (struct pprof_summary){.plain_size = plain.n, .whole = true};
    return check_message(&p, &profile_table, plain) && check_end(&p);
}
