#include "pprof/check.h"

#include <endian.h>
#include <string.h>

#include "pprof/fields.h"

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
 * Nearly all messages consist of short numbers, are written in the same way, and have nothing
 * wrong. quick_message() recognizes these in a fourth of the time that check_message() takes. If
 * it returns false, the message may still be good: check_message() decides, and finds the error if
 * there is one. */

/* The top bits of eight bytes. A bit is set if the number continues in the next byte. */
#define TOP_BITS UINT64_C(0x8080808080808080)

/* Returns true if a packed field consists of whole numbers of at most nine bytes, and, if they are
 * ids, has no byte of 0. Reads eight bytes at a time. */
static bool quick_numbers(struct pass *p, enum field_kind kind, struct sv packed)
{
    uint64_t unusual = 0;
    size_t n = 0;
    for (size_t i = 0; i < packed.n; i += sizeof(uint64_t)) {
        size_t left = packed.n - i;
        uint64_t bytes = UINT64_C(0x0101010101010101);
        memcpy(&bytes, packed.p + i, left < sizeof(bytes) ? left : sizeof(bytes));
        bytes = le64toh(bytes);
        uint64_t more = bytes & TOP_BITS;
        uint64_t zero = (bytes - TOP_BITS / 0x80) & ~bytes & TOP_BITS;
        /* Runs of four bytes that go on, at the end of these eight and in the next, are fine. */
        unusual |= more & more >> 8 & more >> 16 & more >> 24 & more >> 32;
        unusual |= kind == FIELD_IDS ? zero : 0;
        n += 8 - (size_t)__builtin_popcountll(more);
    }
    bool cut = packed.n > 0 && (unsigned char)packed.p[packed.n - 1] >= 0x80;
    p->values += kind == FIELD_NUMBERS ? n - (-packed.n & 7) : 0;
    return unusual == 0 && !cut;
}

static bool quick_message(struct pass *p, const struct field_table *table, struct sv message);

/* Returns true if a field with a length is good for certain. */
static inline bool quick_bytes(struct pass *p, const struct field_table *table, unsigned number,
                               struct sv bytes)
{
    enum field_kind kind = (enum field_kind)table->kind[number];
    return kind == FIELD_MESSAGE
               ? quick_message(p, table->sub[number], bytes)
               : (kind == FIELD_IDS || kind == FIELD_NUMBERS) && quick_numbers(p, kind, bytes);
}

/* Returns true if a field with one number is good for certain. */
static inline bool quick_number(struct pass *p, const struct field_table *table, unsigned number,
                                uint64_t value, const char *at)
{
    switch ((enum field_kind)table->kind[number]) {
    case FIELD_STRING:
        note_string(p, table, value, (size_t)(at - p->plain.p));
        return true;
    case FIELD_NUMBERS:
        p->values++;
        return true;
    case FIELD_NUMBER:
        return true;
    case FIELD_ID:
    case FIELD_IDS:
        return value != 0;
    default:
        return false;
    }
}

/* Returns true if a message is good for certain. */
static bool quick_message(struct pass *p, const struct field_table *table, struct sv message)
{
    const char *at = message.p;
    const char *end = message.p + message.n;
    bool has_id = table->id == 0;
    while (at < end) {
        const char *start = at;
        unsigned tag = (unsigned char)*at;
        struct wire_varint v = wire_varint(at + 1, end);
        if (tag >= PROFILE_FIELDS << 3 || v.next == NULL) {
            return false;
        }
        at = v.next;
        if ((tag & 7) == WIRE_VARINT) {
            if (!quick_number(p, table, tag >> 3, v.value, start)) {
                return false;
            }
            has_id = has_id || tag >> 3 == table->id;
            continue;
        }
        if ((tag & 7) != WIRE_BYTES || v.value > (uint64_t)(end - at) ||
            !quick_bytes(p, table, tag >> 3, (struct sv){.p = at, .n = (size_t)v.value})) {
            return false;
        }
        at += v.value;
    }
    return has_id;
}

/* ---- all messages ---------------------------------------------------------------------------- */

static bool check_message(struct pass *p, const struct field_table *table, struct sv message);

/* Checks a message within another one. */
static bool check_inner(struct pass *p, const struct field_table *table, struct sv message)
{
    size_t values = p->values;
    if (quick_message(p, table, message)) {
        return true;
    }
    p->values = values;
    return check_message(p, table, message);
}

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
        return check_inner(p, table->sub[f->number], f->bytes);
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
