#include "cli/verify/readback.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "pprof/put.h"
#include "pprof/sniff.h"
#include "write/protocol.h"

/* Nanoseconds between two samples: 100 samples a second, as in CPU profiles of Go. */
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

/* Returns the base URL of a URL that may include the path of a method. */
static struct sv base_of(const char *url)
{
    struct sv v = strip_slashes(sv_from(url));
    for (const struct config_protocol *const *p = write_protocols(); *p != NULL; p++) {
        if ((*p)->paths[0] != NULL && cut_suffix(&v, sv_from((*p)->paths[0]))) {
            break;
        }
    }
    return strip_slashes(v);
}

const struct readback *readback_of(const struct config_endpoint *endpoint)
{
    const struct protocol *p = protocol_of(endpoint);
    return p->readback_of_url != NULL ? p->readback_of_url(endpoint->url) : p->readback;
}

bool readback_request(const struct readback *how, const struct readback_query *q, struct buf *url,
                      struct buf *body)
{
    struct sv base = base_of(q->base_url);
    buf_append(url, base.p, base.n);
    how->ask(q, url, body);
    return buf_ok(url) && buf_ok(body);
}

bool readback_empty_request(const struct readback *how, const char *base_url, struct buf *url,
                            struct buf *body)
{
    struct sv base = base_of(base_url);
    buf_append(url, base.p, base.n);
    how->ask_empty(url, body);
    return buf_ok(url) && buf_ok(body);
}

/* ---- responses ------------------------------------------------------------------------------- */

static enum readback_verdict impossible(struct err *err, const char *why)
{
    err_set(err, ERR_REFUSED, "%s", why);
    return READBACK_IMPOSSIBLE;
}

static enum readback_verdict check_content(const struct readback *how, struct sv body,
                                           struct err *err)
{
    if (how->may_be_profile && sniff_is_profile(sniff_profile(body, NULL))) {
        return READBACK_FOUND;
    }
    json_t *root = json_loadb(body.p, body.n, 0, NULL);
    enum readback_verdict verdict = !json_is_object(root)
                                        ? impossible(err, "the answer to the query is not JSON")
                                    : how->holds(root) ? READBACK_FOUND
                                                       : READBACK_NOT_YET;
    json_decref(root);
    return verdict;
}

enum readback_verdict readback_check(const struct readback *how, long status, struct sv body,
                                     struct err *err)
{
    if (status == 200) {
        return check_content(how, body, err);
    }
    if (how->no_profile_is_404 && (status == 204 || status == 404)) {
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
    err_set(err, ERR_REFUSED, "reading back: HTTP %ld", status);
    return READBACK_IMPOSSIBLE;
}

bool readback_says_empty(const struct readback *how, long status, struct sv body)
{
    json_t *root = status == 200 ? json_loadb(body.p, body.n, 0, NULL) : NULL;
    bool empty = json_is_object(root) && how->is_empty(root);
    json_decref(root);
    return empty;
}

/* ---- the profile ----------------------------------------------------------------------------- */

/* Appends a message of numbers: number[i] is the value of field i + 1; a 0 is left out. */
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
