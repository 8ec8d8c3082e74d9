#include "write/protocols/otlp.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "pprof/gzip.h"
#include "pprof/proto/otlp.pb-c.h"
#include "write/protocols/otlp_dictionary.h"
#include "write/protocols/table.h"

/* The most bytes that are kept for the next request. A request of the default size takes half. */
#define KEPT_MAX ((size_t)32 * 1024 * 1024)

/* ---- requests -------------------------------------------------------------------------------- */

/* Estimates the size of a profile in a request: about its size when it is inflated. */
static size_t otlp_weigh(const struct config_endpoint *endpoint, const struct profile *p)
{
    size_t claim = gzip_claim((struct sv){.p = p->data, .n = p->size});
    size_t most = p->size < SIZE_MAX / GZIP_RATIO_MAX ? p->size * GZIP_RATIO_MAX : SIZE_MAX;
    claim = claim < most ? claim : most;
    return (claim > p->size ? claim : p->size) + (endpoint->otlp_original_payload ? p->size : 0);
}

static size_t otlp_weight_max(const struct config_endpoint *endpoint)
{
    return (size_t)endpoint->otlp_request_bytes;
}

static enum request_status status_of(const struct err *err)
{
    switch (err->kind) {
    case ERR_LIMIT:
        return REQUEST_TOO_LARGE;
    case ERR_MEMORY:
        return REQUEST_MEMORY;
    default:
        return REQUEST_DAMAGED;
    }
}

/* Adds the parts whose status allows it. Returns how many are in the request. */
static size_t add_parts(struct otlp_encoder *e, struct request_part *parts, size_t n)
{
    size_t added = 0;
    for (size_t i = 0; i < n; i++) {
        struct err err = ERR_INIT;
        if (parts[i].status == REQUEST_OK &&
            !otlp_encoder_add(e, parts[i].series, parts[i].profile, &err)) {
            parts[i].status = status_of(&err);
        }
        added += parts[i].status == REQUEST_OK;
    }
    return added;
}

/* The memory in which requests are made. It is kept from one to the next, because its page faults
 * took an eighth of the time of a request. */
struct maker {
    struct otlp_encoder *encoder;
    struct buf body;
    struct scratch *scratch; /* for compressing */
};

static void maker_free(void *arg)
{
    struct maker *m = arg;
    if (m != NULL) {
        otlp_encoder_free(m->encoder);
        buf_done(&m->body);
        scratch_free(m->scratch);
        free(m);
    }
}

static struct maker *maker_new(const struct otlp_options *o)
{
    struct maker *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return NULL;
    }
    buf_init(&m->body, 2 * OTLP_WORK_MAX);
    m->encoder = otlp_encoder_new(o, NULL);
    m->scratch = scratch_new();
    if (m->encoder == NULL || m->scratch == NULL) {
        maker_free(m);
        return NULL;
    }
    return m;
}

/* Takes the maker of the last request, or makes one. Returns NULL if out of memory. */
static struct maker *take_maker(struct request_memory *memory, const struct otlp_options *o)
{
    struct maker *m = memory->kept;
    memory->kept = NULL;
    if (m != NULL && otlp_encoder_reset(m->encoder, o, NULL)) {
        return m;
    }
    maker_free(m);
    return maker_new(o);
}

static void keep_maker(struct request_memory *memory, struct maker *m)
{
    scratch_reset(m->scratch);
    buf_clear(&m->body);
    size_t bytes = otlp_encoder_bytes(m->encoder) + m->body.cap + scratch_bytes(m->scratch);
    if (bytes > KEPT_MAX) {
        maker_free(m);
        return;
    }
    *memory = (struct request_memory){.kept = m, .free = maker_free};
}

/* Makes the body of the request. */
static bool pack(struct request *r, struct maker *m, bool gzip, struct err *err)
{
    struct buf *body = &m->body;
    if (!otlp_encoder_write(m->encoder, body, err)) {
        return false;
    }
    if (gzip) {
        return gzip_pack(m->scratch, (struct sv){.p = body->data, .n = body->len}, &r->packed,
                         &r->packed_size);
    }
    r->packed = buf_take(body, &r->packed_size);
    return r->packed != NULL;
}

static enum request_status build(struct request *r, const struct config_endpoint *endpoint,
                                 struct maker *m)
{
    struct err err = ERR_INIT;
    bool gzip = endpoint->otlp_compression == OTLP_GZIP;
    (void)snprintf(r->content_type, sizeof(r->content_type), "%s", OTLP_CONTENT_TYPE);
    if (gzip) {
        request_add_own(r, "Content-Encoding", "gzip");
    }
    r->n_messages = otlp_encoder_profiles(m->encoder);
    return pack(r, m, gzip, &err) && request_set_url(r, endpoint, &(struct buf){.len = 0})
               ? REQUEST_OK
               : REQUEST_MEMORY;
}

static enum request_status otlp_build(struct request *r, const struct config_endpoint *endpoint,
                                      struct request_part *parts, size_t n,
                                      struct request_memory *memory)
{
    struct otlp_options options = {.attributes = &endpoint->otlp_attributes,
                                   .original_payload = endpoint->otlp_original_payload,
                                   .work_max = OTLP_WORK_MAX};
    struct maker *m = take_maker(memory, &options);
    if (m == NULL) {
        return REQUEST_MEMORY;
    }
    bool any = add_parts(m->encoder, parts, n) > 0;
    enum request_status status = any ? build(r, endpoint, m) : parts[0].status;
    keep_maker(memory, m);
    return status;
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool is_proto(const struct answer_input *in)
{
    return answer_type_is(in->content_type, OTLP_CONTENT_TYPE) ||
           answer_type_is(in->content_type, "application/protobuf");
}

/* An empty answer is the empty message. */
static bool otlp_accepts(const struct answer_input *in, const struct reply *r)
{
    bool json = answer_type_is(in->content_type, "application/json");
    return is_proto(in) || (json && (in->body.n == 0 || r->json != NULL)) ||
           (in->body.n == 0 && in->content_type[0] == '\0');
}

/* Rejects the request: by the specification, only the statuses that all protocols retry are worth
 * another try. */
static void otlp_classify(const struct answer_input *in, const struct reply *r, struct answer *a)
{
    (void)in;
    (void)r;
    a->class = ANSWER_REJECTED;
}

/* Returns the bytes of the last field with this name; empty if there is none. */
static struct sv bytes_of(struct sv message, const ProtobufCMessageDescriptor *d, const char *name)
{
    struct sv bytes = SV("");
    struct wire_reader r = wire_reader_of(message);
    struct wire_field f = {.number = 0};
    uint64_t field = otlp_field(d, name);
    while (wire_next(&r, &f)) {
        if (f.number == field && f.type == WIRE_BYTES) {
            bytes = f.bytes;
        }
    }
    return bytes;
}

/* Reads the text of a google.rpc.Status. */
static void otlp_read_refusal(const struct answer_input *in, struct reply *r)
{
    if (is_proto(in)) {
        r->message = bytes_of(in->body, &otlp__status__descriptor, "message");
    }
}

static int64_t rejected_of(struct sv partial)
{
    enum { FIELDS = 16 };
    uint64_t v[FIELDS] = {0};
    uint64_t field = otlp_field(&otlp__partial_success__descriptor, "rejected_profiles");
    wire_read_numbers(partial, v, FIELDS);
    return field < FIELDS ? (int64_t)v[field] : 0;
}

/* Returns a number, which is a text in JSON. */
static int64_t number_of(const json_t *j)
{
    uint64_t n = 0;
    const char *text = json_string_value(j);
    if (text != NULL && parse_u64(sv_from(text), INT64_MAX, &n)) {
        return (int64_t)n;
    }
    return json_integer_value(j);
}

static void otlp_read_taken(const struct answer_input *in, const struct reply *r, struct answer *a)
{
    struct sv message = SV("");
    int64_t rejected = 0;
    char text[4 * ANSWER_TEXT_MAX + 1];
    if (is_proto(in)) {
        struct sv partial =
            bytes_of(in->body, &otlp__export_response__descriptor, "partial_success");
        rejected = rejected_of(partial);
        message = bytes_of(partial, &otlp__partial_success__descriptor, "error_message");
    } else if (r->json != NULL) {
        const json_t *partial = json_object_get(r->json, "partialSuccess");
        const json_t *j = json_object_get(partial, "errorMessage");
        rejected = number_of(json_object_get(partial, "rejectedProfiles"));
        message = (struct sv){.p = json_string_value(j), .n = json_string_length(j)};
    }
    a->refused = rejected > 0 ? (uint64_t)rejected : 0;
    if (a->refused > 0 || message.n > 0) {
        answer_copy_text(message, text, sizeof(text));
        (void)snprintf(a->text, sizeof(a->text), "HTTP %ld, %" PRIu64 " not accepted%s%s",
                       in->status, a->refused, text[0] != '\0' ? ": " : "", text);
    }
}

/* ---- the row --------------------------------------------------------------------------------- */

const struct protocol protocol_otlp = {
    .config = {.name = "otlp", .paths = {OTLP_PATH}, .concurrency = 128, .is_otlp = true},
    .labels = {.names = SERIES_NAMES_ALL, .unlimited = true},
    .build_many = otlp_build,
    .weigh = otlp_weigh,
    .weight_max = otlp_weight_max,
    .accepts = otlp_accepts,
    .classify = otlp_classify,
    .read_refusal = otlp_read_refusal,
    .read_taken = otlp_read_taken,
    .advice_not_found =
        "nothing takes OTLP profiles at this path: url is the base URL, to which " OTLP_PATH
        " is added; a Collector needs a receiver otlp with HTTP (port "
        "4318) and the feature gate service.profilesSupport",
};
