#include "write/protocols/parca.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/labels.h"
#include "pprof/gzip.h"
#include "pprof/merge.h"
#include "pprof/put.h"
#include "pprof/sample_labels.h"
#include "write/grpc.h"
#include "write/protocols/table.h"

/* Fields of parca.profilestore.v1alpha1. */
enum { REQUEST_SERIES = 2 };
enum { SERIES_LABELS = 1, SERIES_SAMPLES = 2 };
enum { LABELS_LABEL = 1 };
enum { LABEL_NAME_FIELD = 1, LABEL_VALUE_FIELD = 2 };
enum { SAMPLE_PROFILE = 1 };

/* ---- profiles -------------------------------------------------------------------------------- */

/* A protobuf message that follows another one is merged with it, so these bytes add an empty
 * period_type. Members of a gzip follow each other in the same way. */
#define EMPTY_PERIOD_TYPE "\x5a\x00"
static const char gzip_suffix[] = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" /* head */
                                  "\x01\x02\x00\xfd\xff" EMPTY_PERIOD_TYPE   /* one stored block */
                                  "\x21\xa7\x8d\x01\x02\x00\x00\x00";        /* CRC-32, length */

struct look {
    bool is_in_order; /* ids are 1, 2, 3, ... */
    bool has_period_type;
    bool has_keyless; /* a label of a sample has no key */
};

static bool has_keyless_label(struct sv sample)
{
    struct wire_reader r = wire_reader_of(sample);
    struct wire_field f = {.number = 0};
    while (wire_next(&r, &f)) {
        uint64_t v[LABEL_KEY + 1] = {0};
        if (f.number == SAMPLE_LABEL) {
            wire_read_numbers(f.bytes, v, LABEL_KEY + 1);
            if (v[LABEL_KEY] == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Looks for the three defects that make the server refuse a profile, or fail. The profile was
 * checked when it was scraped. */
static bool look_at(struct sv plain, struct look *ret, struct err *err)
{
    uint64_t last[PROFILE_FUNCTION + 1] = {0};
    struct wire_reader r = wire_reader_of(plain);
    struct wire_field f = {.number = 0};
    *ret = (struct look){.is_in_order = true};
    while (wire_next(&r, &f)) {
        if (f.number >= PROFILE_MAPPING && f.number <= PROFILE_FUNCTION) {
            uint64_t v[2] = {0};
            wire_read_numbers(f.bytes, v, 2);
            ret->is_in_order = ret->is_in_order && v[1] == ++last[f.number];
        }
        ret->has_keyless =
            ret->has_keyless || (f.number == PROFILE_SAMPLE && has_keyless_label(f.bytes));
        ret->has_period_type = ret->has_period_type || f.number == PROFILE_PERIOD_TYPE;
    }
    return r.problem == NULL || err_set(err, ERR_INPUT, "%s", r.problem);
}

/* Replaces the bytes that are sent. */
static void replace(struct parca_repair *r, char *data, size_t size)
{
    free(r->data);
    r->data = data;
    r->size = size;
}

/* Keeps all names but the empty one. */
static enum sample_label_change parca_on_name(void *arg, struct sv name, struct buf *out)
{
    (void)arg;
    buf_append(out, name.p, name.n);
    return name.n > 0 ? SAMPLE_LABEL_CHANGES : SAMPLE_LABEL_DROPPED;
}

/* Drops labels without a key. A profile that is too large for that is sent as it is. */
static bool drop_keyless(struct scratch *s, struct sv body, struct parca_repair *ret,
                         struct err *err)
{
    const struct sample_label_rules rules = {
        .name = parca_on_name, .numbers = true, .names_max = SIZE_MAX, .value_max = SIZE_MAX};
    struct sample_labels_result r = {.data = NULL};
    if (!sample_labels_rewrite(s, body, PARCA_INFLATED_MAX, &rules, &r, err)) {
        return err->kind == ERR_LIMIT;
    }
    if (r.data != NULL) {
        replace(ret, r.data, r.size);
    }
    return true;
}

/* Merges the profile alone, which gives it ids from 1 on and changes no value. A profile that is
 * too large for that is sent as it is. */
static bool renumber(struct sv body, struct parca_repair *ret, struct err *err)
{
    struct merge_options o = {.bytes_max = PARCA_WORK_MAX, .mode = MERGE_SUM};
    struct buf out;
    buf_init(&out, PARCA_WORK_MAX);
    struct merge *m = merge_new(&o, err);
    bool ok = m != NULL && merge_add(m, body, err) && merge_write(m, &out, err);
    merge_free(m);
    if (ok) {
        size_t size = 0;
        char *data = buf_take(&out, &size);
        ok = data != NULL || err_memory(err);
        if (ok) {
            replace(ret, data, size);
        }
    }
    buf_done(&out);
    return ok || err->kind == ERR_LIMIT;
}

static struct sv repaired(const struct parca_repair *r, struct sv body)
{
    return r->data != NULL ? (struct sv){.p = r->data, .n = r->size} : body;
}

bool parca_repair(struct sv body, struct parca_repair *ret, struct err *err)
{
    struct scratch *s = scratch_new();
    struct look look = {.is_in_order = true};
    struct sv plain;
    *ret = (struct parca_repair){.suffix = SV("")};
    bool ok = gzip_plain(s, body, PARCA_INFLATED_MAX, gzip_claim(body), &plain, err);
    ok = ok ? look_at(plain, &look, err) : err->kind == ERR_LIMIT;
    if (ok && look.has_keyless) {
        ok = drop_keyless(s, body, ret, err);
    }
    scratch_free(s);
    if (ok && !look.is_in_order) {
        ok = renumber(repaired(ret, body), ret, err);
    }
    if (!ok) {
        replace(ret, NULL, 0);
    }
    if (ok && !look.has_period_type) {
        bool gzip = ret->data != NULL || gzip_is(body);
        ret->suffix =
            gzip ? (struct sv){gzip_suffix, sizeof(gzip_suffix) - 1} : SV(EMPTY_PERIOD_TYPE);
    }
    return ok;
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool is_sent(const struct series_label *l)
{
    return !sv_starts_with(l->name, SV("__")) || sv_eq_str(l->name, LABEL_NAME);
}

static size_t label_size(const struct series_label *l)
{
    return wire_bytes_size(l->name.n) + wire_bytes_size(l->value.n);
}

bool parca_encode(const struct series *s, size_t profile_size, struct sv suffix, struct buf *head,
                  struct buf *tail)
{
    size_t labels = 0;
    for (size_t i = 0; i < s->n; i++) {
        labels += is_sent(&s->at[i]) ? wire_bytes_size(label_size(&s->at[i])) : 0;
    }
    size_t profile = profile_size + suffix.n;
    size_t sample = wire_bytes_size(profile);
    size_t series = wire_bytes_size(labels) + wire_bytes_size(sample);
    grpc_put_frame(head, (uint32_t)wire_bytes_size(series));
    wire_put_head(head, REQUEST_SERIES, series);
    wire_put_head(head, SERIES_LABELS, labels);
    for (size_t i = 0; i < s->n; i++) {
        const struct series_label *l = &s->at[i];
        if (is_sent(l)) {
            wire_put_head(head, LABELS_LABEL, label_size(l));
            wire_put_bytes(head, LABEL_NAME_FIELD, l->name.p, l->name.n);
            wire_put_bytes(head, LABEL_VALUE_FIELD, l->value.p, l->value.n);
        }
    }
    wire_put_head(head, SERIES_SAMPLES, sample);
    wire_put_head(head, SAMPLE_PROFILE, profile);
    buf_append(tail, suffix.p, suffix.n);
    return buf_ok(head) && buf_ok(tail);
}

static void add_headers(struct request *r, const struct config_endpoint *endpoint)
{
    (void)snprintf(r->content_type, sizeof(r->content_type), "%s", GRPC_CONTENT_TYPE);
    request_add_own(r, "TE", "trailers");
    grpc_timeout(endpoint->remote_timeout_ms, r->timeout);
    if (r->timeout[0] != '\0') {
        request_add_own(r, "grpc-timeout", r->timeout);
    }
}

static enum request_status parca_build(struct request *r, const struct request_input *in)
{
    const struct profile *p = in->profile;
    struct err err = ERR_INIT;
    struct parca_repair repair;
    if (in->series->type.n == 0) {
        return REQUEST_BAD_LABELS;
    }
    if (p->size > PARCA_PROFILE_MAX) {
        return REQUEST_TOO_LARGE;
    }
    if (!parca_repair((struct sv){.p = p->data, .n = p->size}, &repair, &err)) {
        return err.kind == ERR_MEMORY ? REQUEST_MEMORY : REQUEST_DAMAGED;
    }
    r->packed = repair.data;
    r->packed_size = repair.size;
    add_headers(r, in->endpoint);
    size_t size = repair.data != NULL ? repair.size : p->size;
    bool ok = parca_encode(in->series, size, repair.suffix, &r->head, &r->tail) &&
              request_set_url(r, in->endpoint, &(struct buf){.len = 0});
    return ok ? REQUEST_OK : REQUEST_MEMORY;
}

/* ---- the row --------------------------------------------------------------------------------- */

const struct protocol protocol_parca = {
    .config = {.name = "parca", .paths = {PARCA_PATH}, .needs_http2 = true},
    .labels = {.names = SERIES_NAMES_PLAIN, .unlimited = true},
    .build = parca_build,
    .translate = grpc_translate,
    .accepts = grpc_accepts,
    .classify = grpc_classify,
    .read_refusal = grpc_read_refusal,
    .advice_not_found =
        "nothing takes Parca's WriteRaw here: url is the address of the gRPC server alone, such as "
        "http://parca:7070; a proxy in front of it has to pass HTTP/2 on, with trailers",
};
