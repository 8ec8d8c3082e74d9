#include "api/protojson.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"

/* Limit of the text of a number. */
#define NUMBER_MAX 64
/* 2^63 and 2^64. */
#define TWO_63 9223372036854775808.0
#define TWO_64 18446744073709551616.0

/* ---- types ----------------------------------------------------------------------------------- */

static size_t size_of(ProtobufCType type)
{
    static const size_t sizes[] = {
        [PROTOBUF_C_TYPE_INT32] = sizeof(int32_t),
        [PROTOBUF_C_TYPE_SINT32] = sizeof(int32_t),
        [PROTOBUF_C_TYPE_SFIXED32] = sizeof(int32_t),
        [PROTOBUF_C_TYPE_INT64] = sizeof(int64_t),
        [PROTOBUF_C_TYPE_SINT64] = sizeof(int64_t),
        [PROTOBUF_C_TYPE_SFIXED64] = sizeof(int64_t),
        [PROTOBUF_C_TYPE_UINT32] = sizeof(uint32_t),
        [PROTOBUF_C_TYPE_FIXED32] = sizeof(uint32_t),
        [PROTOBUF_C_TYPE_UINT64] = sizeof(uint64_t),
        [PROTOBUF_C_TYPE_FIXED64] = sizeof(uint64_t),
        [PROTOBUF_C_TYPE_FLOAT] = sizeof(float),
        [PROTOBUF_C_TYPE_DOUBLE] = sizeof(double),
        [PROTOBUF_C_TYPE_BOOL] = sizeof(protobuf_c_boolean),
        [PROTOBUF_C_TYPE_ENUM] = sizeof(int),
        [PROTOBUF_C_TYPE_STRING] = sizeof(char *),
        [PROTOBUF_C_TYPE_BYTES] = sizeof(ProtobufCBinaryData),
        [PROTOBUF_C_TYPE_MESSAGE] = sizeof(void *),
    };
    return sizes[type];
}

/* Returns the next character of the JSON name, which is the lowerCamelCase form of *name, the name
 * in the .proto file. */
static char next_of_name(const char **name)
{
    bool upper = false;
    while (**name == '_') {
        upper = true;
        (*name)++;
    }
    char c = **name;
    if (c != '\0') {
        (*name)++;
    }
    return upper ? (char)toupper((unsigned char)c) : c;
}

static bool is_json_name(const char *proto_name, const char *key)
{
    for (;; key++) {
        char c = next_of_name(&proto_name);
        if (c != *key) {
            return false;
        }
        if (c == '\0') {
            return true;
        }
    }
}

static const ProtobufCFieldDescriptor *field_of(const ProtobufCMessageDescriptor *d,
                                                const char *key)
{
    for (unsigned i = 0; i < d->n_fields; i++) {
        const char *name = d->fields[i].name;
        if (strcmp(name, key) == 0 || is_json_name(name, key)) {
            return &d->fields[i];
        }
    }
    return NULL;
}

void *protojson_new(struct arena *arena, const ProtobufCMessageDescriptor *d)
{
    ProtobufCMessage *m = arena_alloc(arena, d->sizeof_message);
    if (m != NULL) {
        protobuf_c_message_init(d, m);
    }
    return m;
}

static bool full(struct err *err)
{
    return err_set(err, ERR_LIMIT, "message too large for the memory limit of a request");
}

/* ---- reading JSON ---------------------------------------------------------------------------- */

struct reader {
    struct arena *arena;
    struct err *err;
    enum protojson_bytes (*bytes_of)(const ProtobufCFieldDescriptor *); /* NULL: base64 */
};

static bool read_message(struct reader *r, const json_t *json, ProtobufCMessage *m);

static bool invalid(struct reader *r, const ProtobufCFieldDescriptor *f, const char *expected)
{
    return err_set(r->err, ERR_INPUT, "invalid value for field %s: expected %s", f->name, expected);
}

/* The value of a number in JSON, or of a string with a number. */
struct number {
    bool is_integer; /* the value is an integer: `integer`, or `natural` if it is above INT64_MAX */
    int64_t integer;
    uint64_t natural;
    double real;
};

static bool read_number_text(const char *text, struct number *ret)
{
    char *end = NULL;
    size_t n = strnlen(text, NUMBER_MAX + 1);
    if (n == 0 || n > NUMBER_MAX || strspn(text, "0123456789+-.eE") != n || text[0] == '+') {
        return false;
    }
    errno = 0;
    ret->real = strtod(text, &end);
    if (*end != '\0') {
        return false;
    }
    if (strpbrk(text, ".eE") != NULL) {
        return true;
    }
    errno = 0;
    ret->integer = strtoll(text, &end, 10);
    ret->natural = ret->integer < 0 ? 0 : (uint64_t)ret->integer;
    ret->is_integer = errno == 0;
    if (!ret->is_integer && text[0] != '-') {
        errno = 0;
        ret->natural = strtoull(text, &end, 10);
        ret->integer = INT64_MAX;
        ret->is_integer = errno == 0;
    }
    return true;
}

static bool read_number(const json_t *json, struct number *ret)
{
    *ret = (struct number){.is_integer = false};
    if (json_is_integer(json)) {
        ret->is_integer = true;
        ret->integer = json_integer_value(json);
        ret->natural = ret->integer < 0 ? 0 : (uint64_t)ret->integer;
        ret->real = (double)ret->integer;
        return true;
    }
    if (json_is_real(json)) {
        ret->real = json_real_value(json);
        return true;
    }
    return json_is_string(json) && read_number_text(json_string_value(json), ret);
}

/* Reads an integer within bounds. A number with a point or an exponent is accepted if it is whole.
 */
static bool read_int(const json_t *json, int64_t min, int64_t max, int64_t *ret)
{
    struct number n;
    if (!read_number(json, &n)) {
        return false;
    }
    if (n.is_integer && n.natural > INT64_MAX) {
        return false;
    }
    if (!n.is_integer) {
        if (!(n.real >= -TWO_63 && n.real < TWO_63) || trunc(n.real) < n.real ||
            trunc(n.real) > n.real) {
            return false;
        }
        n.integer = (int64_t)n.real;
    }
    *ret = n.integer;
    return n.integer >= min && n.integer <= max;
}

static bool read_natural(const json_t *json, uint64_t max, uint64_t *ret)
{
    struct number n;
    if (!read_number(json, &n) || (n.is_integer && n.integer < 0)) {
        return false;
    }
    if (!n.is_integer) {
        if (!(n.real >= 0 && n.real < TWO_64) || trunc(n.real) < n.real) {
            return false;
        }
        n.natural = (uint64_t)n.real;
    }
    *ret = n.natural;
    return n.natural <= max;
}

static bool read_double(const json_t *json, double *ret)
{
    static const struct {
        const char *text;
        double value;
    } names[] = {
        {"NaN", (double)NAN}, {"Infinity", (double)INFINITY}, {"-Infinity", -(double)INFINITY}};
    const char *text = json_string_value(json);
    for (size_t i = 0; text != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i].text) == 0) {
            *ret = names[i].value;
            return true;
        }
    }
    struct number n;
    bool ok = read_number(json, &n);
    *ret = n.real;
    return ok;
}

/* Decodes base64 in the standard alphabet or in that for URLs, with or without padding. */
static bool read_base64(struct reader *r, struct sv text, ProtobufCBinaryData *ret)
{
    while (text.n > 0 && text.p[text.n - 1] == '=') {
        text.n--;
    }
    struct buf standard;
    struct buf bytes;
    buf_init(&standard, text.n + 4);
    buf_init(&bytes, text.n + 4);
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        buf_putc(&standard, c == '-' ? '+' : c == '_' ? '/' : c);
    }
    for (size_t n = text.n; n % 4 != 0; n++) {
        buf_putc(&standard, '=');
    }
    bool ok = buf_ok(&standard) && base64_decode((struct sv){standard.data, standard.len}, &bytes);
    if (ok) {
        ret->data = arena_alloc(r->arena, bytes.len + 1);
        ret->len = bytes.len;
        if (ret->data != NULL && bytes.len > 0) {
            memcpy(ret->data, bytes.data, bytes.len);
        }
    }
    buf_done(&standard);
    buf_done(&bytes);
    return ok;
}

static bool read_enum(const ProtobufCFieldDescriptor *f, const json_t *json, int *ret)
{
    int64_t number = 0;
    const char *name = json_string_value(json);
    if (name != NULL) {
        const ProtobufCEnumValue *value =
            protobuf_c_enum_descriptor_get_value_by_name(f->descriptor, name);
        *ret = value == NULL ? 0 : value->value;
        return true;
    }
    bool ok = read_int(json, INT32_MIN, INT32_MAX, &number);
    *ret = (int)number;
    return ok;
}

static bool read_string(struct reader *r, const ProtobufCFieldDescriptor *f, const json_t *json,
                        char **ret)
{
    if (!json_is_string(json)) {
        return invalid(r, f, "a string");
    }
    *ret = arena_strndup(r->arena, json_string_value(json), json_string_length(json));
    return *ret != NULL || full(r->err);
}

static bool read_nested(struct reader *r, const ProtobufCFieldDescriptor *f, const json_t *json,
                        ProtobufCMessage **ret)
{
    if (!json_is_object(json)) {
        return invalid(r, f, "an object");
    }
    *ret = protojson_new(r->arena, f->descriptor);
    return *ret == NULL ? full(r->err) : read_message(r, json, *ret);
}

static bool read_text(struct reader *r, struct sv text, ProtobufCBinaryData *ret)
{
    ret->data = (uint8_t *)arena_strndup(r->arena, text.p, text.n);
    ret->len = text.n;
    return true;
}

/* Decodes hexadecimal digits in either case. */
static bool read_hex(struct reader *r, struct sv text, ProtobufCBinaryData *ret)
{
    ret->data = arena_alloc(r->arena, text.n / 2 + 1);
    ret->len = text.n / 2;
    for (size_t i = 0; ret->data != NULL && i < text.n; i++) {
        char c = (char)tolower((unsigned char)text.p[i]);
        if (!isxdigit((unsigned char)c)) {
            return false;
        }
        int digit = c <= '9' ? c - '0' : c - 'a' + 10;
        ret->data[i / 2] = (uint8_t)(ret->data[i / 2] << 4 | digit);
    }
    return text.n % 2 == 0;
}

static bool read_bytes(struct reader *r, const ProtobufCFieldDescriptor *f, const json_t *json,
                       ProtobufCBinaryData *ret)
{
    static const struct {
        bool (*read)(struct reader *r, struct sv text, ProtobufCBinaryData *ret);
        const char *expected;
    } forms[] = {
        [PROTOJSON_BASE64] = {read_base64, "base64"},
        [PROTOJSON_TEXT] = {read_text, "a string"},
        [PROTOJSON_HEX] = {read_hex, "hexadecimal digits"},
    };
    enum protojson_bytes form = r->bytes_of != NULL ? r->bytes_of(f) : PROTOJSON_BASE64;
    struct sv text = {json_string_value(json), json_string_length(json)};
    if (!json_is_string(json) || !forms[form].read(r, text, ret)) {
        return invalid(r, f, forms[form].expected);
    }
    return ret->data != NULL || full(r->err);
}

static bool read_32_bits(struct reader *r, const ProtobufCFieldDescriptor *f, const json_t *json,
                         void *at)
{
    int64_t integer = 0;
    uint64_t natural = 0;
    if (f->type == PROTOBUF_C_TYPE_UINT32 || f->type == PROTOBUF_C_TYPE_FIXED32) {
        if (!read_natural(json, UINT32_MAX, &natural)) {
            return invalid(r, f, "an unsigned 32-bit integer");
        }
        *(uint32_t *)at = (uint32_t)natural;
        return true;
    }
    if (!read_int(json, INT32_MIN, INT32_MAX, &integer)) {
        return invalid(r, f, "a 32-bit integer");
    }
    *(int32_t *)at = (int32_t)integer;
    return true;
}

static bool read_real(struct reader *r, const ProtobufCFieldDescriptor *f, const json_t *json,
                      void *at)
{
    double value = 0;
    if (!read_double(json, &value)) {
        return invalid(r, f, "a number");
    }
    if (f->type == PROTOBUF_C_TYPE_FLOAT) {
        *(float *)at = (float)value;
    } else {
        *(double *)at = value;
    }
    return true;
}

/* Reads one value, which is not null. */
static bool read_value(struct reader *r, const ProtobufCFieldDescriptor *f, const json_t *json,
                       void *at)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_STRING:
        return read_string(r, f, json, at);
    case PROTOBUF_C_TYPE_BYTES:
        return read_bytes(r, f, json, at);
    case PROTOBUF_C_TYPE_MESSAGE:
        return read_nested(r, f, json, at);
    case PROTOBUF_C_TYPE_ENUM:
        return read_enum(f, json, at) || invalid(r, f, "the name of a value");
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)at = json_is_true(json);
        return json_is_boolean(json) || invalid(r, f, "true or false");
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        return read_real(r, f, json, at);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return read_int(json, INT64_MIN, INT64_MAX, at) || invalid(r, f, "a 64-bit integer");
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return read_natural(json, UINT64_MAX, at) || invalid(r, f, "an unsigned 64-bit integer");
    default:
        return read_32_bits(r, f, json, at);
    }
}

static bool read_list(struct reader *r, const ProtobufCFieldDescriptor *f, const json_t *json,
                      ProtobufCMessage *m)
{
    size_t size = size_of(f->type);
    size_t n = json_array_size(json);
    if (!json_is_array(json)) {
        return invalid(r, f, "a list");
    }
    if (n == 0) {
        return true;
    }
    char *items = arena_array(r->arena, n, size);
    if (items == NULL) {
        return full(r->err);
    }
    for (size_t i = 0; i < n; i++) {
        if (!read_value(r, f, json_array_get(json, i), items + i * size)) {
            return false;
        }
    }
    memcpy((char *)m + f->offset, &items, sizeof(items));
    memcpy((char *)m + f->quantifier_offset, &n, sizeof(n));
    return true;
}

static bool read_message(struct reader *r, const json_t *json, ProtobufCMessage *m)
{
    const char *key = NULL;
    json_t *value = NULL;
    /* Iterating does not change the object, so removing const is safe. */
    json_object_foreach((json_t *)(uintptr_t)json, key, value)
    {
        const ProtobufCFieldDescriptor *f = field_of(m->descriptor, key);
        if (f == NULL || json_is_null(value)) {
            continue;
        }
        if (f->label == PROTOBUF_C_LABEL_REPEATED
                ? !read_list(r, f, value, m)
                : !read_value(r, f, value, (char *)m + f->offset)) {
            return false;
        }
        if ((f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
            /* The quantifier of a oneof is the number of the field that is set. */
            memcpy((char *)m + f->quantifier_offset, &f->id, sizeof(f->id));
        }
    }
    return true;
}

/* A value is the whole text, or begins after one of [{,: . */
bool protojson_fits(struct sv json)
{
    size_t n = 0;
    bool in_string = false;
    for (size_t i = 0; i < json.n; i++) {
        char c = json.p[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else {
            n += c == '[' || c == '{' || c == ',' || c == ':';
        }
    }
    return n <= PROTOJSON_VALUES_MAX;
}

ProtobufCMessage *protojson_read(struct sv json, const ProtobufCMessageDescriptor *d,
                                 struct arena *arena, struct err *err)
{
    return protojson_read_as(json, d, arena, NULL, err);
}

ProtobufCMessage *
protojson_read_as(struct sv json, const ProtobufCMessageDescriptor *d, struct arena *arena,
                  enum protojson_bytes (*bytes_of)(const ProtobufCFieldDescriptor *),
                  struct err *err)
{
    struct reader r = {arena, err, bytes_of};
    json_error_t problem;
    if (!protojson_fits(json)) {
        err_set(err, ERR_LIMIT, "more than %d values", PROTOJSON_VALUES_MAX);
        return NULL;
    }
    if (json.n == 0) {
        err_set(err, ERR_INPUT, "zero-length payload is not a valid JSON object");
        return NULL;
    }
    json_t *root = json_loadb(json.p, json.n, JSON_REJECT_DUPLICATES, &problem);
    if (root == NULL) {
        if (json_error_code(&problem) == json_error_out_of_memory) {
            full(err);
        } else {
            err_set(err, ERR_INPUT, "%d:%d: %s", problem.line, problem.column, problem.text);
        }
        return NULL;
    }
    ProtobufCMessage *m = NULL;
    if (!json_is_object(root)) {
        err_set(err, ERR_INPUT, "expected an object");
    } else if ((m = protojson_new(arena, d)) == NULL) {
        full(err);
    } else {
        m = read_message(&r, root, m) ? m : NULL;
    }
    json_decref(root);
    return m;
}

/* ---- reading bytes --------------------------------------------------------------------------- */

struct memory {
    struct arena *arena;
    bool failed;
};

static void *alloc_in_arena(void *arg, size_t size)
{
    struct memory *memory = arg;
    void *p = arena_alloc(memory->arena, size);
    memory->failed = memory->failed || p == NULL;
    return p;
}

/* Does nothing, because the arena frees everything at once. */
static void free_in_arena(void *arg, void *p)
{
    (void)arg;
    (void)p;
}

static bool strings_are_valid(const ProtobufCMessage *m, struct err *err);

static bool value_is_valid(const ProtobufCFieldDescriptor *f, const void *at, struct err *err)
{
    if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
        const ProtobufCMessage *m = *(ProtobufCMessage *const *)at;
        return m == NULL || strings_are_valid(m, err);
    }
    return f->type != PROTOBUF_C_TYPE_STRING || utf8_valid(sv_from(*(char *const *)at)) ||
           err_set(err, ERR_INPUT, "string field %s contains invalid UTF-8", f->name);
}

static bool strings_are_valid(const ProtobufCMessage *m, struct err *err)
{
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        const char *at = (const char *)m + f->offset;
        size_t n = 1;
        if (f->label == PROTOBUF_C_LABEL_REPEATED) {
            memcpy(&n, (const char *)m + f->quantifier_offset, sizeof(n));
            memcpy((void *)&at, (const char *)m + f->offset, sizeof(at));
        }
        for (size_t k = 0; k < n; k++) {
            if (!value_is_valid(f, at + k * size_of(f->type), err)) {
                return false;
            }
        }
    }
    return true;
}

ProtobufCMessage *protojson_read_bytes(struct sv bytes, const ProtobufCMessageDescriptor *d,
                                       struct arena *arena, struct err *err)
{
    struct memory memory = {arena, false};
    ProtobufCAllocator allocator = {alloc_in_arena, free_in_arena, &memory};
    ProtobufCMessage *m =
        protobuf_c_message_unpack(d, &allocator, bytes.n, (const uint8_t *)bytes.p);
    if (m == NULL) {
        (void)(memory.failed ? full(err) : err_set(err, ERR_INPUT, "invalid protobuf"));
        return NULL;
    }
    return strings_are_valid(m, err) ? m : NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_message(const ProtobufCMessage *m, struct buf *out);

static void write_real(double value, struct buf *out)
{
    char text[NUM_TEXT_MAX];
    if (isnan(value)) {
        buf_puts(out, "\"NaN\"");
    } else if (isinf(value)) {
        buf_puts(out, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    } else {
        num_format(value, text);
        buf_puts(out, text);
    }
}

static void write_enum(const ProtobufCFieldDescriptor *f, int number, struct buf *out)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(f->descriptor, number);
    if (value == NULL) {
        buf_printf(out, "%d", number);
    } else {
        buf_printf(out, "\"%s\"", value->name);
    }
}

static void write_value(const ProtobufCFieldDescriptor *f, const void *at, struct buf *out)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_STRING:
        json_quote(sv_from(*(char *const *)at), out);
        break;
    case PROTOBUF_C_TYPE_BYTES: {
        const ProtobufCBinaryData *bytes = at;
        buf_putc(out, '"');
        base64_encode((struct sv){(const char *)bytes->data, bytes->len}, out);
        buf_putc(out, '"');
        break;
    }
    case PROTOBUF_C_TYPE_MESSAGE:
        write_message(*(ProtobufCMessage *const *)at, out);
        break;
    case PROTOBUF_C_TYPE_ENUM:
        write_enum(f, *(const int *)at, out);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        buf_puts(out, *(const protobuf_c_boolean *)at ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        write_real((double)*(const float *)at, out);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        write_real(*(const double *)at, out);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        buf_printf(out, "\"%" PRId64 "\"", *(const int64_t *)at);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        buf_printf(out, "\"%" PRIu64 "\"", *(const uint64_t *)at);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        buf_printf(out, "%" PRIu32, *(const uint32_t *)at);
        break;
    default:
        buf_printf(out, "%" PRId32, *(const int32_t *)at);
        break;
    }
}

static bool is_default(const ProtobufCFieldDescriptor *f, const void *at)
{
    static const char zero[sizeof(ProtobufCBinaryData)];
    if (f->type == PROTOBUF_C_TYPE_STRING) {
        const char *text = *(char *const *)at;
        return text == NULL || text[0] == '\0';
    }
    if (f->type == PROTOBUF_C_TYPE_BYTES) {
        return ((const ProtobufCBinaryData *)at)->len == 0;
    }
    return memcmp(at, zero, size_of(f->type)) == 0;
}

static void write_name(const char *proto_name, bool first, struct buf *out)
{
    char c = '\0';
    buf_puts(out, first ? "\"" : ",\"");
    while ((c = next_of_name(&proto_name)) != '\0') {
        buf_putc(out, c);
    }
    buf_puts(out, "\":");
}

static void write_list(const ProtobufCFieldDescriptor *f, const char *items, size_t n,
                       struct buf *out)
{
    buf_putc(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i > 0) {
            buf_putc(out, ',');
        }
        write_value(f, items + i * size_of(f->type), out);
    }
    buf_putc(out, ']');
}

static void write_message(const ProtobufCMessage *m, struct buf *out)
{
    bool first = true;
    buf_putc(out, '{');
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        const char *at = (const char *)m + f->offset;
        size_t n = 0;
        bool is_list = f->label == PROTOBUF_C_LABEL_REPEATED;
        if (is_list) {
            memcpy(&n, (const char *)m + f->quantifier_offset, sizeof(n));
        }
        if (is_list ? n == 0 : is_default(f, at)) {
            continue;
        }
        write_name(f->name, first, out);
        first = false;
        if (is_list) {
            const char *items = NULL;
            memcpy((void *)&items, at, sizeof(items));
            write_list(f, items, n, out);
        } else {
            write_value(f, at, out);
        }
    }
    buf_putc(out, '}');
}

bool protojson_write(const ProtobufCMessage *m, struct buf *out)
{
    write_message(m, out);
    return buf_ok(out);
}

/* Collects the bytes that protobuf-c writes. */
struct sink {
    ProtobufCBuffer base;
    struct buf *out;
};

static void append_to_sink(ProtobufCBuffer *base, size_t n, const uint8_t *data)
{
    buf_append(((struct sink *)base)->out, data, n);
}

bool protojson_write_bytes(const ProtobufCMessage *m, struct buf *out)
{
    struct sink sink = {{append_to_sink}, out};
    protobuf_c_message_pack_to_buffer(m, &sink.base);
    return buf_ok(out);
}

char *protojson_string(struct arena *arena, struct sv v)
{
    if (utf8_valid(v) && (v.n == 0 || memchr(v.p, '\0', v.n) == NULL)) {
        return arena_strndup(arena, v.n == 0 ? "" : v.p, v.n);
    }
    struct buf text;
    buf_init(&text, v.n * sizeof(UTF8_REPLACEMENT));
    for (size_t i = 0; i < v.n;) {
        const char *nul = memchr(v.p + i, '\0', v.n - i);
        size_t n = nul == NULL ? v.n - i : (size_t)(nul - v.p) - i;
        utf8_repair((struct sv){v.p + i, n}, &text);
        i += n;
        if (nul != NULL) {
            buf_puts(&text, UTF8_REPLACEMENT);
            i++;
        }
    }
    char *copy = buf_ok(&text) ? arena_strndup(arena, text.data, text.len) : NULL;
    buf_done(&text);
    return copy;
}
