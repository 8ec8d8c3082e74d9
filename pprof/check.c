#include "pprof/check.h"

#define FIELDS PROFILE_FIELDS

/* What a field holds. */
enum kind {
    UNKNOWN, /* skipped */
    NUMBER,
    NUMBERS, /* repeated, packed or not */
    STRING,  /* the index of a string */
    STRINGS,
    ID, /* of something: not 0, and a message that lacks it is bad */
    IDS,
    TEXT,
    MESSAGE,
};

struct shape {
    const char *name;
    const struct shape *sub[FIELDS]; /* of fields that are messages */
    uint8_t kind[FIELDS];            /* enum kind, by number */
    uint8_t id;                      /* the field that must be there, or 0 */
};

static const struct shape value_type_shape = {
    .name = "sample type", .kind = {[VALUE_TYPE_TYPE] = STRING, [VALUE_TYPE_UNIT] = STRING}};
static const struct shape label_shape = {
    .name = "label",
    .kind = {[LABEL_KEY] = STRING,
             [LABEL_STR] = STRING,
             [LABEL_NUM] = NUMBER,
             [LABEL_NUM_UNIT] = STRING},
};
static const struct shape sample_shape = {
    .name = "sample",
    .kind = {[SAMPLE_LOCATION_ID] = IDS, [SAMPLE_VALUE] = NUMBERS, [SAMPLE_LABEL] = MESSAGE},
    .sub = {[SAMPLE_LABEL] = &label_shape},
};
static const struct shape mapping_shape = {
    .name = "mapping",
    .id = MAPPING_ID,
    .kind = {[MAPPING_ID] = ID,
             [MAPPING_START] = NUMBER,
             [MAPPING_LIMIT] = NUMBER,
             [MAPPING_OFFSET] = NUMBER,
             [MAPPING_FILENAME] = STRING,
             [MAPPING_BUILD_ID] = STRING,
             [7] = NUMBER, /* has_functions and so on */
             [8] = NUMBER,
             [9] = NUMBER,
             [10] = NUMBER},
};
static const struct shape line_shape = {
    .name = "line",
    .id = LINE_FUNCTION_ID,
    .kind = {[LINE_FUNCTION_ID] = ID, [LINE_LINE] = NUMBER, [LINE_COLUMN] = NUMBER},
};
static const struct shape location_shape = {
    .name = "location",
    .id = LOCATION_ID,
    .kind = {[LOCATION_ID] = ID,
             [LOCATION_MAPPING_ID] = NUMBER,
             [LOCATION_ADDRESS] = NUMBER,
             [LOCATION_LINE] = MESSAGE,
             [5] = NUMBER /* is_folded */},
    .sub = {[LOCATION_LINE] = &line_shape},
};
static const struct shape function_shape = {
    .name = "function",
    .id = FUNCTION_ID,
    .kind = {[FUNCTION_ID] = ID,
             [FUNCTION_NAME] = STRING,
             [FUNCTION_SYSTEM_NAME] = STRING,
             [FUNCTION_FILENAME] = STRING,
             [5] = NUMBER /* start_line */},
};
static const struct shape profile_shape = {
    .name = "profile",
    .kind = {[PROFILE_SAMPLE_TYPE] = MESSAGE,
             [PROFILE_SAMPLE] = MESSAGE,
             [PROFILE_MAPPING] = MESSAGE,
             [PROFILE_LOCATION] = MESSAGE,
             [PROFILE_FUNCTION] = MESSAGE,
             [PROFILE_STRING] = TEXT,
             [PROFILE_DROP_FRAMES] = STRING,
             [PROFILE_KEEP_FRAMES] = STRING,
             [PROFILE_TIME_NANOS] = NUMBER,
             [PROFILE_DURATION_NANOS] = NUMBER,
             [PROFILE_PERIOD_TYPE] = MESSAGE,
             [PROFILE_PERIOD] = NUMBER,
             [PROFILE_COMMENT] = STRINGS,
             [PROFILE_DEFAULT_SAMPLE_TYPE] = STRING,
             [PROFILE_DOC_URL] = STRING},
    .sub = {[PROFILE_SAMPLE_TYPE] = &value_type_shape,
            [PROFILE_SAMPLE] = &sample_shape,
            [PROFILE_MAPPING] = &mapping_shape,
            [PROFILE_LOCATION] = &location_shape,
            [PROFILE_FUNCTION] = &function_shape,
            [PROFILE_PERIOD_TYPE] = &value_type_shape},
};

/* One pass. What can only be judged at the end (the strings may stand there) is remembered. */
struct pass {
    struct sv plain;
    struct err *err;
    struct pprof_summary *summary;
    uint64_t string_max; /* the largest index that was named, where, and by what */
    size_t string_max_at;
    const char *string_max_in;
    size_t values; /* of the sample at hand */
    size_t values_first;
    size_t values_first_at;
    bool first_string_empty;
};

static bool bad(const struct pass *p, size_t at, const struct shape *shape, const char *what)
{
    return err_set(p->err, ERR_INPUT, "%s at byte %zu: %s", shape->name, at, what);
}

static void note_string(struct pass *p, const struct shape *shape, uint64_t index, size_t at)
{
    if (index > p->string_max) {
        p->string_max = index;
        p->string_max_at = at;
        p->string_max_in = shape->name;
    }
}

static bool check_numbers(struct pass *p, const struct shape *shape, const struct wire_field *f,
                          enum kind kind, size_t at)
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
        return bad(p, at, shape, "a damaged number in a packed field");
    }
    if (kind == IDS && smallest == 0) {
        return bad(p, at, shape, "id 0");
    }
    if (kind == STRINGS) {
        note_string(p, shape, largest, at);
    }
    p->values += kind == NUMBERS ? n : 0;
    return true;
}

static bool fits(enum kind kind, unsigned type)
{
    switch (kind) {
    case UNKNOWN:
        return true;
    case NUMBER:
    case STRING:
    case ID:
        return type == WIRE_VARINT;
    case NUMBERS:
    case STRINGS:
    case IDS:
        return type == WIRE_VARINT || type == WIRE_BYTES;
    case TEXT:
    case MESSAGE:
        return type == WIRE_BYTES;
    }
    return false;
}

static bool check_message(struct pass *p, const struct shape *shape, struct sv message);

static bool check_field(struct pass *p, const struct shape *shape, const struct wire_field *f,
                        size_t at)
{
    enum kind kind = f->number < FIELDS ? (enum kind)shape->kind[f->number] : UNKNOWN;
    if (!fits(kind, f->type)) {
        return err_set(p->err, ERR_INPUT, "%s at byte %zu: field %u has wire type %u", shape->name,
                       at, (unsigned)f->number, f->type);
    }
    switch (kind) {
    case STRING:
        note_string(p, shape, f->value, at);
        return true;
    case ID:
        return f->value != 0 || bad(p, at, shape, "id 0");
    case NUMBERS:
    case STRINGS:
    case IDS:
        return check_numbers(p, shape, f, kind, at);
    case MESSAGE:
        return check_message(p, shape->sub[f->number], f->bytes);
    case UNKNOWN:
    case NUMBER:
    case TEXT:
        break;
    }
    return true;
}

/* All samples have as many values as the first one; that this is the number of types is checked at
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

/* A message within the profile. */
static bool check_message(struct pass *p, const struct shape *shape, struct sv message)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    size_t base = (size_t)(message.p - p->plain.p);
    bool has_id = shape->id == 0;
    while (wire_next(&r, &f)) {
        if (!check_field(p, shape, &f, base + r.field_start)) {
            return false;
        }
        has_id = has_id || f.number == shape->id;
    }
    if (r.problem != NULL) {
        return bad(p, base + r.field_start, shape, r.problem);
    }
    return has_id || bad(p, base, shape, "id 0");
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
               bad(p, at, &profile_shape, "a second time_nanos: these are several profiles in one");
    default:
        return true;
    }
}

static bool check_top(struct pass *p)
{
    struct wire_reader r = wire_reader_of(p->plain);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        if (!check_field(p, &profile_shape, &f, r.field_start)) {
            return false;
        }
        if (!take_top(p, &f, r.field_start)) {
            return false;
        }
    }
    return r.problem == NULL || bad(p, r.field_start, &profile_shape, r.problem);
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
    return check_top(&p) && check_end(&p);
}
