#include "cli/verify/readback.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "base/clock.h"
#include "http/url.h"
#include "pprof/put.h"

#define TYPE_ID READBACK_TYPE ":cpu:nanoseconds:cpu:nanoseconds"
/* 100 samples a second, as Go's. */
#define PERIOD_NS 10000000

/* ---- asking ---------------------------------------------------------------------------------- */

static bool cut_suffix(struct sv *v, struct sv suffix)
{
    if (!sv_ends_with(*v, suffix)) {
        return false;
    }
    v->n -= suffix.n;
    return true;
}

static struct sv strip_slashes(struct sv v)
{
    while (cut_suffix(&v, SV("/"))) {
    }
    return v;
}

/* People may have given the whole path of a method. */
static struct sv base_of(const char *url)
{
    struct sv v = strip_slashes(sv_from(url));
    (void)(cut_suffix(&v, SV("/push.v1.PusherService/Push")) ||
           cut_suffix(&v, SV("/api/0/profiles")) || cut_suffix(&v, SV("/ingest")));
    return strip_slashes(v);
}

enum readback_kind readback_kind_of(const struct config_endpoint *endpoint)
{
    if (endpoint->protocol == PROTOCOL_FILE) {
        return READBACK_FILE;
    }
    if (strcmp(config_protocol_name(endpoint->protocol), "profefe") == 0) {
        return READBACK_PROFEFE;
    }
    bool deepflow = endpoint->protocol == PROTOCOL_INGEST &&
                    sv_ends_with(base_of(endpoint->url), SV("/api/v1/profile"));
    return deepflow ? READBACK_DEEPFLOW : READBACK_PYROSCOPE;
}

static void put_string(struct buf *out, const char *text)
{
    buf_putc(out, '"');
    json_escape(sv_from(text), out);
    buf_putc(out, '"');
}

/* "2026-11-21T03:23:34", which profefe takes as UTC. */
static void put_time(struct buf *out, int64_t ns)
{
    char text[32];
    clock_format_rfc3339(ns, text, sizeof(text));
    url_encode((struct sv){.p = text, .n = strlen("2026-11-21T03:23:34")}, out);
}

static void ask_pyroscope(const struct readback_query *q, struct buf *url, struct buf *body)
{
    buf_puts(url, "/querier.v1.QuerierService/SelectMergeStacktraces");
    buf_printf(body,
               "{\"profileTypeID\":\"" TYPE_ID "\",\"labelSelector\":\"{" READBACK_LABEL
               "=\\\"%s\\\"}\",\"start\":%" PRId64 ",\"end\":%" PRId64 "}",
               q->id, q->from_ns / NS_PER_MS, q->until_ns / NS_PER_MS);
}

static void ask_deepflow(const struct readback_query *q, struct buf *url, struct buf *body)
{
    buf_puts(url, "/v1/profile/ProfileTracing");
    buf_puts(body, "{\"app_service\":");
    put_string(body, q->service);
    buf_printf(body,
               ",\"profile_language_type\":\"Golang\",\"profile_event_type\":\"cpu\","
               "\"tag_filter\":\"\",\"time_start\":%" PRId64 ",\"time_end\":%" PRId64 "}",
               q->from_ns / NS_PER_S, q->until_ns / NS_PER_S);
}

static void ask_profefe(const struct readback_query *q, struct buf *url)
{
    buf_puts(url, "/api/0/profiles?service=");
    url_encode(sv_from(q->service), url);
    buf_puts(url, "&type=cpu&from=");
    put_time(url, q->from_ns);
    buf_puts(url, "&to=");
    put_time(url, q->until_ns);
    buf_printf(url, "&labels=" READBACK_LABEL "%%3D%s", q->id);
}

bool readback_request(const struct readback_query *q, struct buf *url, struct buf *body)
{
    struct sv base = base_of(q->base_url);
    buf_append(url, base.p, base.n);
    switch (q->kind) {
    case READBACK_PYROSCOPE:
        ask_pyroscope(q, url, body);
        break;
    case READBACK_DEEPFLOW:
        ask_deepflow(q, url, body);
        break;
    case READBACK_PROFEFE:
        ask_profefe(q, url);
        break;
    case READBACK_FILE:
    default:
        break;
    }
    return buf_ok(url) && buf_ok(body);
}

/* ---- judging --------------------------------------------------------------------------------- */

static bool holds_function(const json_t *names)
{
    size_t i;
    json_t *name;
    json_array_foreach(names, i, name)
    {
        if (json_is_string(name) && strcmp(json_string_value(name), READBACK_FUNCTION) == 0) {
            return true;
        }
    }
    return false;
}

/* Today's answer has functions and node_values, that of older servers is a list of nodes. */
static bool holds_nodes(const json_t *root)
{
    const char *status = json_string_value(json_object_get(root, "OPT_STATUS"));
    const json_t *result = json_object_get(root, "result");
    const json_t *values = json_object_get(json_object_get(result, "node_values"), "values");
    return status != NULL && strcmp(status, "SUCCESS") == 0 &&
           (json_array_size(result) > 0 || json_array_size(values) > 0);
}

static bool holds_profile(enum readback_kind kind, const json_t *root)
{
    switch (kind) {
    case READBACK_PYROSCOPE:
        return holds_function(json_object_get(json_object_get(root, "flamegraph"), "names"));
    case READBACK_DEEPFLOW:
        return holds_nodes(root);
    case READBACK_PROFEFE:
        return json_array_size(json_object_get(root, "body")) > 0;
    case READBACK_FILE:
    default:
        return false;
    }
}

static enum readback_verdict impossible(struct err *err, const char *why)
{
    err_set(err, ERR_REFUSED, "%s", why);
    return READBACK_IMPOSSIBLE;
}

static enum readback_verdict judge_content(enum readback_kind kind, struct sv body, struct err *err)
{
    json_t *root = json_loadb(body.p, body.n, 0, NULL);
    bool found = json_is_object(root) && holds_profile(kind, root);
    bool readable = json_is_object(root);
    json_decref(root);
    if (!readable) {
        return impossible(err, "what answers the question is no JSON");
    }
    return found ? READBACK_FOUND : READBACK_NOT_YET;
}

enum readback_verdict readback_judge(enum readback_kind kind, long status, struct sv body,
                                     struct err *err)
{
    if (status == 200) {
        return judge_content(kind, body, err);
    }
    /* profefe: none, or nothing found */
    if (kind == READBACK_PROFEFE && (status == 204 || status == 404)) {
        return READBACK_NOT_YET;
    }
    if (status == 401 || status == 403) {
        return impossible(err, "these credentials may write but not read");
    }
    if (status == 404 || status == 405 || status == 415 || status == 501) {
        return impossible(err, "nothing answers queries at this URL");
    }
    if (status == 429 || status >= 500) {
        return READBACK_NOT_YET;
    }
    err_set(err, ERR_REFUSED, "the question was answered with HTTP %ld", status);
    return READBACK_IMPOSSIBLE;
}

/* ---- the profile ----------------------------------------------------------------------------- */

/* A message of two or more small numbers: number[i] is field i + 1; 0 is left out. */
static void put_message(struct buf *b, unsigned field, const uint64_t *numbers, size_t n)
{
    struct buf inner;
    buf_init(&inner, 1024);
    for (size_t i = 0; i < n; i++) {
        if (numbers[i] != 0) {
            wire_put_number(&inner, i + 1, numbers[i]);
        }
    }
    wire_put_bytes(b, field, inner.data, inner.len);
    buf_done(&inner);
}

static void put_stack(struct buf *out, uint64_t samples)
{
    struct buf inner;

    buf_init(&inner, 1024);

    wire_put_number(&inner, SAMPLE_LOCATION_ID, 1);
    wire_put_number(&inner, SAMPLE_VALUE, samples);
    wire_put_number(&inner, SAMPLE_VALUE, samples * PERIOD_NS);
    wire_put_bytes(out, PROFILE_SAMPLE, inner.data, inner.len);
    buf_clear(&inner);

    put_message(out, PROFILE_MAPPING, (const uint64_t[]){1, 0, 0, 0, 0, 0, 1}, 7);
    wire_put_number(&inner, LOCATION_ID, 1);
    wire_put_number(&inner, LOCATION_MAPPING_ID, 1);
    put_message(&inner, LOCATION_LINE, (const uint64_t[]){1, 1}, 2);
    wire_put_bytes(out, PROFILE_LOCATION, inner.data, inner.len);
    put_message(out, PROFILE_FUNCTION, (const uint64_t[]){1, 5, 5, 6}, 4);
    buf_done(&inner);
}

bool readback_profile(int64_t time_ns, int64_t duration_ns, struct buf *out)
{
    static const char *const strings[] = {
        "", "samples", "count", "cpu", "nanoseconds", READBACK_FUNCTION, "verify.c",
    };
    put_message(out, PROFILE_SAMPLE_TYPE, (const uint64_t[]){1, 2}, 2);
    put_message(out, PROFILE_SAMPLE_TYPE, (const uint64_t[]){3, 4}, 2);
    put_stack(out, (uint64_t)duration_ns / PERIOD_NS + 1);
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
        wire_put_bytes(out, PROFILE_STRING, strings[i], strlen(strings[i]));
    }
    wire_put_number(out, PROFILE_TIME_NANOS, (uint64_t)time_ns);
    wire_put_number(out, PROFILE_DURATION_NANOS, (uint64_t)duration_ns);
    put_message(out, PROFILE_PERIOD_TYPE, (const uint64_t[]){3, 4}, 2);
    wire_put_number(out, PROFILE_PERIOD, PERIOD_NS);
    return buf_ok(out);
}
