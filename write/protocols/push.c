#include "write/protocols/push.h"

#include <inttypes.h>
#include <jansson.h>
#include <libdeflate.h>
#include <stdio.h>
#include <string.h>

#include "base/ascii.h"
#include "base/clock.h"
#include "pprof/put.h"
#include "write/protocols/table.h"

#define TYPE_ID READBACK_TYPE ":cpu:nanoseconds:cpu:nanoseconds"

/* Fields of push.v1's messages. */
enum { REQUEST_SERIES = 1 };
enum { SERIES_LABEL = 1, SERIES_SAMPLE = 2 };
enum { PAIR_NAME = 1, PAIR_VALUE = 2 };
enum { SAMPLE_PROFILE = 1, SAMPLE_ID = 2 };

/* Two independent halves of an ID; any numbers, but never others. */
#define ID_SEED_HIGH UINT64_C(0x70726f6670756c6c)
#define ID_SEED_LOW UINT64_C(0x7075736820696421)

static size_t pair_size(const struct series_label *l)
{
    return wire_bytes_size(l->name.n) + wire_bytes_size(l->value.n);
}

/* In RFC 9562, version 8 is for UUIDs of a custom scheme. Two checksums and the length are far
 * faster than a hash of all bytes, and differ from profile to profile. */
void push_id(struct sv profile, char out[PUSH_ID_LENGTH + 1])
{
    uint32_t crc = libdeflate_crc32(0, profile.p, profile.n);
    uint32_t adler = libdeflate_adler32(1, profile.p, profile.n);
    char sums[64];
    int n = snprintf(sums, sizeof(sums), "%" PRIx32 " %" PRIx32 " %zx", crc, adler, profile.n);
    uint64_t high = hash_bytes(sums, (size_t)n, ID_SEED_HIGH);
    uint64_t low = hash_bytes(sums, (size_t)n, ID_SEED_LOW);
    (void)snprintf(out, PUSH_ID_LENGTH + 1,
                   "%08" PRIx64 "-%04" PRIx64 "-8%03" PRIx64 "-%04" PRIx64 "-%012" PRIx64,
                   high >> 32, high >> 16 & 0xffff, high & 0xfff, (low >> 48 & 0x3fff) | 0x8000,
                   low & UINT64_C(0xffffffffffff));
}

bool push_encode(const struct series *s, size_t profile_size, const char *id, struct buf *prefix,
                 struct buf *suffix)
{
    if (profile_size > PUSH_PROFILE_MAX) {
        return false;
    }
    size_t sample = wire_bytes_size(profile_size) + wire_bytes_size(strlen(id));
    size_t series = wire_bytes_size(sample);
    for (size_t i = 0; i < s->n; i++) {
        series += wire_bytes_size(pair_size(&s->at[i]));
    }

    wire_put_head(prefix, REQUEST_SERIES, series);
    for (size_t i = 0; i < s->n; i++) {
        const struct series_label *l = &s->at[i];
        wire_put_head(prefix, SERIES_LABEL, pair_size(l));
        wire_put_bytes(prefix, PAIR_NAME, l->name.p, l->name.n);
        wire_put_bytes(prefix, PAIR_VALUE, l->value.p, l->value.n);
    }
    wire_put_head(prefix, SERIES_SAMPLE, sample);
    wire_put_head(prefix, SAMPLE_PROFILE, profile_size);
    wire_put_bytes(suffix, SAMPLE_ID, id, strlen(id));
    return buf_ok(prefix) && buf_ok(suffix);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void push_headers(struct request *r, const struct config_endpoint *endpoint)
{
    (void)snprintf(r->content_type, sizeof(r->content_type), "%s", PUSH_CONTENT_TYPE);
    (void)snprintf(r->timeout, sizeof(r->timeout), "%" PRId64, endpoint->remote_timeout_ms);
    request_add_own(r, "Connect-Protocol-Version", "1");
    /* At most ten digits; a server takes it as its deadline. */
    if (endpoint->remote_timeout_ms > 0 && strlen(r->timeout) <= 10) {
        request_add_own(r, "Connect-Timeout-Ms", r->timeout);
    }
}

static enum request_status push_build(struct request *r, const struct request_input *in)
{
    /* The server refuses a series without `__name__`. */
    if (in->series->type.n == 0) {
        return REQUEST_BAD_LABELS;
    }
    if (in->profile->size > PUSH_PROFILE_MAX) {
        return REQUEST_TOO_LARGE;
    }
    char id[PUSH_ID_LENGTH + 1];
    push_id((struct sv){in->profile->data, in->profile->size}, id);
    push_headers(r, in->endpoint);
    bool ok = push_encode(in->series, in->profile->size, id, &r->head, &r->tail) &&
              request_set_url(r, in->endpoint, &(struct buf){.len = 0});
    return ok ? REQUEST_OK : REQUEST_MEMORY;
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool push_accepts(const struct answer_input *in, const struct reply *r)
{
    (void)r;
    return in->status == 200 && (answer_type_is(in->content_type, "application/proto") ||
                                 answer_type_is(in->content_type, "application/json"));
}

/* Returns true if the server could not read the profile inside the request, and never will. */
static bool is_broken_profile(const struct reply *r)
{
    return strcmp(r->code, "unknown") == 0 &&
           (answer_mentions(r->message, "gzip") || answer_mentions(r->message, "unmarshal") ||
            answer_mentions(r->message, "EOF") || answer_mentions(r->message, "proto"));
}

static void push_classify(const struct answer_input *in, const struct reply *r, struct answer *a)
{
    switch (in->status) {
    case 499: /* canceled: our deadline or a server going down */
        a->class = ANSWER_RETRY;
        a->scope = ANSWER_OF_ENDPOINT;
        break;
    case 409:
        if (strcmp(r->code, "aborted") == 0) {
            answer_set_doubtful(a, ANSWER_TRIES);
        } else {
            a->class = ANSWER_REJECTED;
        }
        break;
    case 500:
        if (is_broken_profile(r)) {
            a->class = ANSWER_REJECTED;
        } else {
            answer_set_doubtful(a, ANSWER_TRIES);
        }
        break;
    case 501:
        a->class = ANSWER_REJECTED;
        break;
    default:
        a->class = in->status >= 500 ? ANSWER_RETRY : ANSWER_REJECTED;
        break;
    }
}

/* ---- reading back ---------------------------------------------------------------------------- */

/* Returns true for a service name that can be in a selector unchanged, with every protocol and
 * server. */
static bool is_plain(const char *service)
{
    size_t n = 0;
    while (ascii_is_alnum(service[n]) || service[n] == '-' || service[n] == '_') {
        n++;
    }
    return n > 0 && service[n] == '\0';
}

/* Appends the query. Until its first compaction, version 2 finds a profile only by its service. */
static void ask_pyroscope(const struct readback_query *q, struct buf *url, struct buf *body)
{
    buf_puts(url, "/querier.v1.QuerierService/SelectMergeStacktraces");
    buf_printf(body,
               "{\"profileTypeID\":\"" TYPE_ID "\",\"labelSelector\":\"{" READBACK_LABEL
               "=\\\"%s\\\"",
               q->id);
    if (is_plain(q->service)) {
        buf_printf(body, "," LABEL_SERVICE_NAME "=\\\"%s\\\"", q->service);
    }
    buf_printf(body, "}\",\"start\":%" PRId64 ",\"end\":%" PRId64 "}", q->from_ns / NS_PER_MS,
               q->until_ns / NS_PER_MS);
}

static void ask_pyroscope_empty(struct buf *url, struct buf *body)
{
    buf_puts(url, "/querier.v1.QuerierService/GetProfileStats");
    buf_puts(body, "{}");
}

/* Returns true if no data was ingested; servers leave `dataIngested` out if it is false. */
static bool has_no_data(const json_t *answer)
{
    return !json_is_true(json_object_get(answer, "dataIngested"));
}

static bool holds_flamegraph(const json_t *answer)
{
    const json_t *names = json_object_get(json_object_get(answer, "flamegraph"), "names");
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        if (name != NULL && strcmp(name, READBACK_FUNCTION) == 0) {
            return true;
        }
    }
    return false;
}

const struct readback readback_pyroscope = {.ask = ask_pyroscope,
                                            .holds = holds_flamegraph,
                                            .ask_empty = ask_pyroscope_empty,
                                            .is_empty = has_no_data};

/* ---- the row --------------------------------------------------------------------------------- */

const struct protocol protocol_push = {
    .config = {.name = "push",
               .paths = {PUSH_PATH},
               .reads_sample_labels = true,
               .tells_refusals = true},
    .labels = {.names = SERIES_NAMES_DOTTED},
    .build = push_build,
    .accepts = push_accepts,
    .classify = push_classify,
    .readback = &readback_pyroscope,
    .advice_not_found =
        "nothing takes profiles at this path: url is the base URL, to which "
        "/push.v1.PusherService/Push is added; behind a gateway it often has a path "
        "(https://HOST/profile); for a server that only knows /ingest set protocol: "
        "ingest",
};
