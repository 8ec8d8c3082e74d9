#include <inttypes.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pprof/columns.h"
#include "pprof/gzip.h"
#include "pprof/proto/otlp.pb-c.h"
#include "pprof/put.h"
#include "pprof/quick.h"
#include "write/protocols/otlp.h"
#include "write/protocols/otlp_dictionary.h"

/* Comments of a profile that become attributes; further ones are left out. */
#define COMMENTS_MAX 64
/* Attributes of a profile: its comments, the frames to drop and to keep, and the URL of its
 * documentation. */
#define PROFILE_ATTRIBUTES_MAX (COMMENTS_MAX + 3)
#define ID_SIZE 16
/* The most bytes of a sample in a message, without its labels. */
#define SAMPLE_BYTES_MAX 24

/* Numbers of the fields that are encoded here and not by the generated code: samples, of which
 * there are many, and the messages around them. */
struct fields {
    uint64_t resources;
    uint64_t dictionary;
    uint64_t resource;
    uint64_t resource_attributes;
    uint64_t scopes;
    uint64_t scope;
    uint64_t profiles;
    uint64_t samples;
    uint64_t stack;
    uint64_t attributes;
    uint64_t values;
};

struct otlp_encoder {
    struct otlp_options o;
    struct fields fields;
    struct rng rng;
    struct scratch *scratch;
    struct otlp_dictionary dictionary;
    struct buf resources; /* fields of the request */
    struct buf scope;     /* the message of the current profile, as are the others */
    struct buf profile;
    struct buf resource;
    struct buf labels; /* of samples */
    size_t profiles;
};

/* A sample without its values. */
struct sample {
    size_t at; /* the field of its labels in `labels` */
    uint32_t n;
    uint32_t stack;
};

/* A profile that is being added. */
struct adding {
    struct otlp_encoder *e;
    const struct series *series;
    const struct profile *profile;
    struct pprof_index x;
    struct otlp_lookup lookup;
    struct sample *samples;
    size_t n_samples;
    int64_t *values; /* the values of each sample, in the order of the types */
    uint32_t *labels;
    Otlp__Profile head; /* the fields that all messages `Profile` have in common */
    Otlp__ValueType period_type;
    uint32_t attributes[PROFILE_ATTRIBUTES_MAX];
    struct err *err;
};

/* ---- the object ------------------------------------------------------------------------------ */

static void find_fields(struct fields *f)
{
    const ProtobufCMessageDescriptor *sample = &otlp__sample__descriptor;
    *f = (struct fields){
        .resources = otlp_field(&otlp__export_request__descriptor, "resource_profiles"),
        .dictionary = otlp_field(&otlp__export_request__descriptor, "dictionary"),
        .resource = otlp_field(&otlp__resource_profiles__descriptor, "resource"),
        .resource_attributes = otlp_field(&otlp__resource__descriptor, "attributes"),
        .scopes = otlp_field(&otlp__resource_profiles__descriptor, "scope_profiles"),
        .scope = otlp_field(&otlp__scope_profiles__descriptor, "scope"),
        .profiles = otlp_field(&otlp__scope_profiles__descriptor, "profiles"),
        .samples = otlp_field(&otlp__profile__descriptor, "samples"),
        .stack = otlp_field(sample, "stack_index"),
        .attributes = otlp_field(sample, "attribute_indices"),
        .values = otlp_field(sample, "values"),
    };
}

/* Returns false with an error if a buffer could not take everything. */
static bool is_whole(const struct buf *b, struct err *err)
{
    return buf_ok(b) ||
           err_set(err, buf_too_big(b) ? ERR_LIMIT : ERR_MEMORY, "no room in the request");
}

struct otlp_encoder *otlp_encoder_new(const struct otlp_options *o, struct err *err)
{
    struct otlp_encoder *e = calloc(1, sizeof(*e));
    if (e == NULL) {
        err_memory(err);
        return NULL;
    }
    e->o = *o;
    find_fields(&e->fields);
    rng_seed_random(&e->rng);
    struct buf *bufs[] = {&e->resources, &e->scope, &e->profile, &e->resource, &e->labels};
    for (size_t i = 0; i < sizeof(bufs) / sizeof(bufs[0]); i++) {
        buf_init(bufs[i], o->work_max);
    }
    e->scratch = scratch_new();
    bool ok = otlp_dictionary_init(&e->dictionary, o->work_max, err);
    if (ok && e->scratch == NULL) {
        ok = err_memory(err);
    }
    return ok ? e : otlp_encoder_free(e);
}

struct otlp_encoder *otlp_encoder_free(struct otlp_encoder *e)
{
    if (e != NULL) {
        otlp_dictionary_done(&e->dictionary);
        scratch_free(e->scratch);
        buf_done(&e->resources);
        buf_done(&e->scope);
        buf_done(&e->profile);
        buf_done(&e->resource);
        buf_done(&e->labels);
        free(e);
    }
    return NULL;
}

bool otlp_encoder_reset(struct otlp_encoder *e, const struct otlp_options *o, struct err *err)
{
    e->o = *o;
    e->profiles = 0;
    buf_clear(&e->resources); /* a profile empties the others */
    return otlp_dictionary_reset(&e->dictionary, err);
}

size_t otlp_encoder_bytes(const struct otlp_encoder *e)
{
    return sizeof(*e) + otlp_dictionary_bytes(&e->dictionary) + scratch_bytes(e->scratch) +
           e->resources.cap + e->scope.cap + e->profile.cap + e->resource.cap + e->labels.cap;
}

size_t otlp_encoder_profiles(const struct otlp_encoder *e)
{
    return e->profiles;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Adds a label of a sample. One without a value, a number and a unit is ignored, as in
 * google/pprof. */
static bool add_label(struct adding *a, struct sv message, size_t *n)
{
    uint64_t v[LABEL_NUM_UNIT + 1] = {0};
    wire_read_numbers(message, v, LABEL_NUM_UNIT + 1);
    struct otlp_label label = {.key = pprof_string(&a->x, v[LABEL_KEY]),
                               .is_number = v[LABEL_STR] == 0,
                               .text = pprof_string(&a->x, v[LABEL_STR]),
                               .number = (int64_t)v[LABEL_NUM]};
    if (label.is_number) {
        label.unit = pprof_string(&a->x, v[LABEL_NUM_UNIT]);
    }
    return (label.is_number && v[LABEL_NUM] == 0 && v[LABEL_NUM_UNIT] == 0) ||
           otlp_label_attribute(&a->e->dictionary, &label, &a->labels[(*n)++], a->err);
}

/* Puts the labels of a sample into the field that its messages have in common. */
static bool put_labels(struct adding *a, struct sample *s, size_t n_labels)
{
    unsigned char bytes[WIRE_NUMBER_MAX];
    struct buf *out = &a->e->labels;
    size_t n = 0;
    for (size_t i = 0; i < n_labels; i++) {
        n += wire_encode(a->labels[i], bytes);
    }
    s->at = out->len;
    if (n > 0) {
        wire_put_head(out, a->e->fields.attributes, n);
    }
    for (size_t i = 0; i < n_labels; i++) {
        buf_append(out, bytes, wire_encode(a->labels[i], bytes));
    }
    s->n = (uint32_t)(out->len - s->at);
    return is_whole(out, a->err);
}

/* Reads the values of a sample that has nothing else but its stack, written as nearly all writers
 * do it. Returns false for any other sample. */
static bool quick_values(const struct adding *a, struct sv message, int64_t *values)
{
    struct rest r = rest_of(a->x.plain, message);
    take_bytes(&r, SAMPLE_LOCATION_ID);
    while (is_next(&r, SAMPLE_VALUE << 3 | WIRE_VARINT)) {
        *values++ = (int64_t)take(&r, SAMPLE_VALUE);
    }
    return is_good_end(&r);
}

/* Reads the values of any sample, and adds its labels. */
static bool read_sample(struct adding *a, struct sv message, int64_t *values, size_t *n_labels)
{
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        struct wire_numbers numbers = wire_numbers_of(&f);
        uint64_t v;
        while (f.number == SAMPLE_VALUE && wire_numbers_next(&numbers, &v)) {
            *values++ = (int64_t)v;
        }
        if (f.number == SAMPLE_LABEL && !add_label(a, f.bytes, n_labels)) {
            return false;
        }
    }
    return true;
}

/* Adds a sample without its stack. */
static bool add_sample(struct adding *a, struct sv message)
{
    struct sample *s = &a->samples[a->n_samples];
    int64_t *values = a->values + a->n_samples * a->x.summary.n[PROFILE_SAMPLE_TYPE];
    size_t n_labels = 0;
    a->n_samples++;
    if (quick_values(a, message, values)) {
        *s = (struct sample){.n = 0};
        return true;
    }
    return read_sample(a, message, values, &n_labels) && put_labels(a, s, n_labels);
}

/* Looks up the stack of the i-th sample. */
static bool find_stack(struct adding *a, size_t i)
{
    return otlp_lookup_stack(&a->lookup, &a->lookup.stacks[i % 2], &a->samples[i].stack);
}

static bool add_samples(struct adding *a)
{
    const size_t *n = a->x.summary.n;
    const struct pprof_span *spans = a->x.entries[PROFILE_SAMPLE].spans;
    struct scratch *s = a->e->scratch;
    a->samples = scratch_array(s, n[PROFILE_SAMPLE], sizeof(*a->samples));
    a->values = scratch_array(s, n[PROFILE_SAMPLE] * n[PROFILE_SAMPLE_TYPE], sizeof(*a->values));
    a->labels = scratch_array(s, a->lookup.longest_sample, sizeof(*a->labels));
    if (a->samples == NULL || a->values == NULL || a->labels == NULL) {
        return err_memory(a->err);
    }
    buf_clear(&a->e->labels);
    for (size_t i = 0; i < n[PROFILE_SAMPLE]; i++) {
        struct sv sample = pprof_span_of(&a->x, spans[i]);
        if (!otlp_make_stack(&a->lookup, sample, &a->lookup.stacks[i % 2]) ||
            (i > 0 && !find_stack(a, i - 1)) || !add_sample(a, sample)) {
            return false;
        }
    }
    return n[PROFILE_SAMPLE] == 0 || find_stack(a, n[PROFILE_SAMPLE] - 1);
}

/* Appends the samples with the values of one type. */
static bool put_samples(const struct adding *a, size_t type, struct buf *out)
{
    const struct fields *fields = &a->e->fields;
    const char *labels = a->e->labels.data;
    size_t types = a->x.summary.n[PROFILE_SAMPLE_TYPE];
    /* Three tags and two lengths, of which the second is one byte, and two numbers, of which the
     * first has 32 bits: 24 bytes at most. */
    size_t most = a->n_samples * SAMPLE_BYTES_MAX + a->e->labels.len;
    unsigned char *start = (unsigned char *)buf_room(out, out->len + most);
    unsigned char *at = start;
    if (start == NULL) {
        return is_whole(out, a->err);
    }
    for (size_t i = 0; i < a->n_samples; i++) {
        const struct sample *s = &a->samples[i];
        uint64_t v = (uint64_t)a->values[i * types + type];
        size_t n_value = wire_number_size(v);
        size_t n_stack = s->stack != 0 ? 1 + wire_number_size(s->stack) : 0;
        at += wire_encode_head(fields->samples, n_stack + s->n + wire_bytes_size(n_value), at);
        if (n_stack > 0) {
            at += wire_encode_number(fields->stack, s->stack, at);
        }
        at = s->n > 0 ? mempcpy(at, labels + s->at, s->n) : at;
        at += wire_encode_head(fields->values, n_value, at);
        at += wire_encode(v, at);
    }
    buf_wrote(out, (size_t)(at - start));
    return true;
}

/* ---- the profile ----------------------------------------------------------------------------- */

/* Adds an attribute of the profile, unless it is empty. */
static bool add_text(struct adding *a, const char *key, uint64_t place)
{
    struct sv text = pprof_string(&a->x, place);
    return text.n == 0 || a->head.n_attribute_indices == PROFILE_ATTRIBUTES_MAX ||
           otlp_text_attribute(&a->e->dictionary, key, text,
                               &a->attributes[a->head.n_attribute_indices++], a->err);
}

/* Adds the comments in a piece of the profile; *n counts all comments. */
static bool add_comments(struct adding *a, struct sv piece, unsigned *n)
{
    struct wire_reader r = wire_reader_of(piece);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        struct wire_numbers numbers = wire_numbers_of(&f);
        uint64_t place;
        while (f.number == PROFILE_COMMENT && wire_numbers_next(&numbers, &place)) {
            char key[64];
            (void)snprintf(key, sizeof(key), "pprof.profile.comment.%u", (*n)++);
            if (!add_text(a, key, place)) {
                return false;
            }
        }
    }
    return true;
}

static bool add_all_comments(struct adding *a)
{
    struct sv piece;
    unsigned n = 0;
    for (size_t i = 0; (piece = pprof_head_piece(&a->x, i)).p != NULL; i++) {
        if (!add_comments(a, piece, &n)) {
            return false;
        }
    }
    return true;
}

/* Sets the window. For a delta it is the window that the agent knows; other profiles have the times
 * that the program has written, as far as there are any. */
static void set_times(struct adding *a)
{
    const struct pprof_summary *s = &a->x.summary;
    const struct profile *p = a->profile;
    bool own = !p->is_delta && s->time_ns > 0;
    int64_t duration = p->is_delta ? p->until_ns - p->from_ns : s->duration_ns;
    a->head.time_unix_nano = (uint64_t)(own ? s->time_ns : p->from_ns);
    a->head.duration_nano = duration > 0 ? (uint64_t)duration : 0;
}

static bool make_head(struct adding *a)
{
    const struct pprof_summary *s = &a->x.summary;
    uint64_t v[PROFILE_FIELDS] = {0};
    struct sv piece;
    otlp__profile__init(&a->head);
    otlp__value_type__init(&a->period_type);
    for (size_t i = 0; (piece = pprof_head_piece(&a->x, i)).p != NULL; i++) {
        wire_read_numbers(piece, v, PROFILE_FIELDS);
    }
    a->head.attribute_indices = a->attributes;
    a->head.period = s->period;
    set_times(a);
    if (s->period_type.type != 0 || s->period_type.unit != 0) {
        a->head.period_type = &a->period_type;
    }
    return otlp_lookup_string(&a->lookup, s->period_type.type, &a->period_type.type_strindex) &&
           otlp_lookup_string(&a->lookup, s->period_type.unit, &a->period_type.unit_strindex) &&
           add_text(a, "pprof.profile.drop_frames", v[PROFILE_DROP_FRAMES]) &&
           add_text(a, "pprof.profile.keep_frames", v[PROFILE_KEEP_FRAMES]) &&
           add_text(a, "pprof.profile.doc_url", v[PROFILE_DOC_URL]) && add_all_comments(a);
}

/* Makes an id from the series, the window and the bytes, so that a repeated request has the same
 * ids. The id is never 0, which would mean "no id". */
static void make_id(const struct adding *a, size_t type, uint8_t out[ID_SIZE])
{
    const struct profile *p = a->profile;
    uint64_t seed = 0;
    char text[160];
    for (size_t i = 0; i < a->series->n; i++) {
        const struct series_label *l = &a->series->at[i];
        seed = hash_bytes(l->value.p, l->value.n, hash_bytes(l->name.p, l->name.n, seed));
    }
    int n =
        snprintf(text, sizeof(text), "%" PRIx32 " %" PRIx32 " %zx %" PRIx64 " %" PRIx64 " %u %zu",
                 libdeflate_crc32(0, p->data, p->size), libdeflate_adler32(1, p->data, p->size),
                 p->size, (uint64_t)p->from_ns, (uint64_t)p->until_ns, p->salt, type);
    uint64_t half[2] = {hash_bytes(text, (size_t)n, seed) | 1, hash_bytes(text, (size_t)n, ~seed)};
    memcpy(out, half, ID_SIZE);
}

/* Appends the message Profile of one sample type to those of the scope. */
static bool put_profile(struct adding *a, size_t type)
{
    struct otlp_encoder *e = a->e;
    const struct pprof_value_type *names = &a->x.summary.types[type];
    uint8_t id[ID_SIZE];
    Otlp__Profile p = a->head;
    Otlp__ValueType value = OTLP__VALUE_TYPE__INIT;
    if (!otlp_lookup_string(&a->lookup, names->type, &value.type_strindex) ||
        !otlp_lookup_string(&a->lookup, names->unit, &value.unit_strindex)) {
        return false;
    }
    make_id(a, type, id);
    p.sample_type = &value;
    p.profile_id = (ProtobufCBinaryData){.len = ID_SIZE, .data = id};
    if (e->o.original_payload && type == 0) {
        static uint8_t format[] = {'p', 'p', 'r', 'o', 'f'};
        p.original_payload_format = (ProtobufCBinaryData){.len = sizeof(format), .data = format};
        p.original_payload =
            (ProtobufCBinaryData){.len = a->profile->size, .data = (uint8_t *)a->profile->data};
    }
    buf_clear(&e->profile);
    otlp_pack(&e->profile, &p.base);
    if (!put_samples(a, type, &e->profile)) {
        return false;
    }
    wire_put_bytes(&e->scope, e->fields.profiles, e->profile.data, e->profile.len);
    return is_whole(&e->profile, a->err) && is_whole(&e->scope, a->err);
}

/* ---- resource and scope ---------------------------------------------------------------------- */

struct sv otlp_attribute(const struct config_pairs *own, struct sv label)
{
    static const struct config_pair defaults[] = {
        {LABEL_SERVICE_NAME, "service.name"},
        {LABEL_INSTANCE, "service.instance.id"},
        {"service_namespace", "service.namespace"},
        {"service_version", "service.version"},
        {"cluster", "k8s.cluster.name"},
        {"namespace", "k8s.namespace.name"},
        {"pod", "k8s.pod.name"},
        {"container", "k8s.container.name"},
        {"node", "k8s.node.name"},
        {"hostname", "host.name"},
    };
    for (size_t i = 0; i < own->n; i++) {
        if (sv_eq_str(label, own->at[i].name)) {
            return sv_from(own->at[i].value);
        }
    }
    for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++) {
        if (sv_eq_str(label, defaults[i].name)) {
            return sv_from(defaults[i].value);
        }
    }
    return label;
}

static void init_pair(Otlp__KeyValue *pair, Otlp__AnyValue *any, struct sv key, struct sv value)
{
    otlp__key_value__init(pair);
    otlp__any_value__init(any);
    any->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
    any->string_value =
        (ProtobufCBinaryData){.len = value.n, .data = (uint8_t *)(uintptr_t)value.p};
    pair->key = (ProtobufCBinaryData){.len = key.n, .data = (uint8_t *)(uintptr_t)key.p};
    pair->value = any;
}

/* Returns the attribute of a label, "" if it becomes none. Keys must not repeat: an attribute from
 * the table takes precedence over a label of that name, and after that the first in the order of
 * the labels. */
static struct sv attribute_of(const struct adding *a, size_t i)
{
    const struct config_pairs *own = a->e->o.attributes;
    const struct series *s = a->series;
    struct sv key = otlp_attribute(own, s->at[i].name);
    if (key.n == 0 || sv_starts_with(s->at[i].name, SV("__"))) {
        return SV("");
    }
    bool mapped = !sv_eq(key, s->at[i].name);
    for (size_t k = 0; k < s->n; k++) {
        bool wins = k < i ? mapped == !sv_eq(key, s->at[k].name) : false;
        wins = wins || (!mapped && !sv_eq(key, s->at[k].name));
        if (k != i && wins && sv_eq(otlp_attribute(own, s->at[k].name), key)) {
            return SV("");
        }
    }
    return key;
}

static bool put_resource(struct adding *a)
{
    struct otlp_encoder *e = a->e;
    struct buf *out = &e->resource;
    bool ok = true;
    buf_clear(out);
    for (size_t i = 0; ok && i < a->series->n; i++) {
        Otlp__KeyValue pair;
        Otlp__AnyValue any;
        struct sv key = attribute_of(a, i);
        if (key.n > 0) {
            init_pair(&pair, &any, key, a->series->at[i].value);
            buf_clear(&e->profile);
            otlp_pack(&e->profile, &pair.base);
            wire_put_bytes(out, e->fields.resource_attributes, e->profile.data, e->profile.len);
            ok = is_whole(&e->profile, a->err);
        }
    }
    return ok && is_whole(out, a->err);
}

/* Begins the message ScopeProfiles. */
static bool put_scope(struct adding *a)
{
    static uint8_t name[] = OTLP_SCOPE;
    static uint8_t version[] = PROFPULL_VERSION;
    struct otlp_encoder *e = a->e;
    Otlp__Scope scope = OTLP__SCOPE__INIT;
    Otlp__KeyValue pair;
    Otlp__KeyValue *pairs[] = {&pair};
    Otlp__AnyValue any;
    scope.name = (ProtobufCBinaryData){.len = sizeof(name) - 1, .data = name};
    scope.version = (ProtobufCBinaryData){.len = sizeof(version) - 1, .data = version};
    init_pair(&pair, &any, SV(OTLP_TYPE_ATTRIBUTE), a->series->type);
    scope.attributes = pairs;
    scope.n_attributes = a->series->type.n > 0;
    buf_clear(&e->profile);
    otlp_pack(&e->profile, &scope.base);
    buf_clear(&e->scope);
    wire_put_bytes(&e->scope, e->fields.scope, e->profile.data, e->profile.len);
    return is_whole(&e->profile, a->err) && is_whole(&e->scope, a->err);
}

/* Appends the message ResourceProfiles to those of the request; the last step. */
static bool put_resource_profiles(struct adding *a)
{
    struct otlp_encoder *e = a->e;
    struct buf *out = &e->resources;
    if (!put_resource(a)) {
        return false;
    }
    size_t n = wire_bytes_size(e->resource.len) + wire_bytes_size(e->scope.len);
    if (wire_bytes_size(n) > e->o.work_max - out->len) {
        return err_set(a->err, ERR_LIMIT, "the request is full");
    }
    wire_put_head(out, e->fields.resources, n);
    wire_put_bytes(out, e->fields.resource, e->resource.data, e->resource.len);
    wire_put_bytes(out, e->fields.scopes, e->scope.data, e->scope.len);
    return buf_ok(out) || err_memory(a->err);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool add_plain(struct adding *a, struct sv plain)
{
    const size_t *n = a->x.summary.n;
    struct otlp_encoder *e = a->e;
    uint32_t mapping;
    if (!pprof_index_whole(&a->x, e->scratch, plain, "request", rng_next(&e->rng), a->err) ||
        !otlp_lookup_init(&a->lookup, &e->dictionary, &a->x, e->scratch, a->err)) {
        return false;
    }
    for (size_t i = 0; i < n[PROFILE_MAPPING]; i++) {
        if (!otlp_lookup_mapping(&a->lookup, i, &mapping)) {
            return false;
        }
    }
    if (!otlp_lookup_locations(&a->lookup) || !make_head(a) || !add_samples(a)) {
        return false;
    }
    if (!put_scope(a)) {
        return false;
    }
    for (size_t i = 0; i < n[PROFILE_SAMPLE_TYPE]; i++) {
        if (!put_profile(a, i)) {
            return false;
        }
    }
    return put_resource_profiles(a);
}

bool otlp_encoder_add(struct otlp_encoder *e, const struct series *s, const struct profile *p,
                      struct err *err)
{
    struct adding a = {.e = e, .series = s, .profile = p, .err = err};
    struct sv body = {.p = p->data, .n = p->size};
    struct sv plain;
    size_t n[OTLP_TABLES];
    for (size_t i = 0; i < OTLP_TABLES; i++) {
        n[i] = e->dictionary.tables[i].n;
    }
    scratch_reset(e->scratch);
    bool ok = gzip_plain(e->scratch, body, OTLP_PROFILE_MAX, gzip_claim(body), &plain, err);
    if (ok && plain.n > OTLP_PROFILE_MAX) {
        ok = err_set(err, ERR_LIMIT, "larger than %zu bytes", OTLP_PROFILE_MAX);
    }
    ok = ok && add_plain(&a, plain);
    for (size_t i = 0; !ok && i < OTLP_TABLES; i++) {
        merge_table_truncate(&e->dictionary.tables[i], n[i]);
    }
    e->profiles += ok ? a.x.summary.n[PROFILE_SAMPLE_TYPE] : 0;
    return ok;
}

bool otlp_encoder_write(const struct otlp_encoder *e, struct buf *out, struct err *err)
{
    size_t n = otlp_dictionary_size(&e->dictionary);
    buf_reserve(out, e->resources.len + wire_bytes_size(n));
    buf_append(out, e->resources.data, e->resources.len);
    wire_put_head(out, e->fields.dictionary, n);
    otlp_dictionary_write(&e->dictionary, out);
    return is_whole(out, err);
}
