#include "write/protocols/profefe.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "config/config.h"
#include "http/url.h"
#include "pprof/summary.h"
#include "write/protocols/table.h"

/* Names of types that only imported profiles have. */
static const struct {
    const char *name;
    const char *type;
} aliases[] = {{"cpu", "cpu"}, {"heap", "heap"}, {"allocs", "heap"}, {"goroutines", "goroutine"}};

const char *profefe_type(struct sv name)
{
    const struct config_builtin_type *t;
    for (size_t i = 0; (t = config_builtin_type(i)) != NULL; i++) {
        if (t->profefe != NULL && sv_eq_str(name, t->type.name)) {
            return t->profefe;
        }
    }
    for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
        if (sv_eq_str(name, aliases[i].name)) {
            return aliases[i].type;
        }
    }
    return "other";
}

static void put_name(const char *type, const char *wanted, const char *name, struct buf *out)
{
    if (type != NULL && (wanted == NULL || strcmp(type, wanted) == 0)) {
        buf_printf(out, "%s%s", out->len > 0 ? "|" : "", name);
    }
}

bool profefe_names(const char *type, struct buf *out)
{
    const struct config_builtin_type *t;
    for (size_t i = 0; (t = config_builtin_type(i)) != NULL; i++) {
        put_name(t->profefe, type, t->type.name, out);
    }
    for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
        put_name(aliases[i].type, type, aliases[i].name, out);
    }
    return buf_ok(out);
}

/* Returns true if a label is sent among the labels: `__*` is internal, and the service has a
 * parameter of its own. */
static bool is_sent(const struct series_label *l)
{
    return !sv_starts_with(l->name, SV("__")) && !sv_eq_str(l->name, LABEL_SERVICE_NAME);
}

static void put_pair(struct sv name, struct sv value, struct buf *out)
{
    if (out->len > 0) {
        buf_putc(out, ',');
    }
    url_encode_pair(name, value, out);
}

/* Writes "k=v,k=v": each key and value is encoded, and then the whole once more. Returns false if
 * that is too long, or if memory runs out. */
static bool put_labels(const struct series *s, bool other, struct buf *once, struct buf *twice)
{
    buf_clear(once);
    buf_clear(twice);
    for (size_t i = 0; i < s->n; i++) {
        if (is_sent(&s->at[i]) && !(other && sv_eq_str(s->at[i].name, PROFEFE_TYPE_LABEL))) {
            put_pair(s->at[i].name, s->at[i].value, once);
        }
    }
    if (other && s->type.n > 0) {
        put_pair(SV(PROFEFE_TYPE_LABEL), s->type, once);
    }
    url_encode((struct sv){.p = once->data, .n = once->len}, twice);
    return buf_ok(once) && buf_ok(twice);
}

static bool append_labels(struct series *s, bool other, struct buf *out)
{
    struct buf once;
    struct buf twice;
    buf_init(&once, PROFEFE_LABELS_MAX);
    buf_init(&twice, PROFEFE_LABELS_MAX);
    bool ok = put_labels(s, other, &once, &twice);
    while (!ok && (buf_too_big(&once) || buf_too_big(&twice)) && series_drop_least(s)) {
        ok = put_labels(s, other, &once, &twice);
    }
    buf_puts(out, "&labels=");
    buf_append(out, twice.data, twice.len);
    buf_done(&once);
    buf_done(&twice);
    return ok;
}

/* Appends a time such as "2026-11-21T03:23:34", which profefe takes as UTC. */
static void put_utc(int64_t ns, struct buf *out)
{
    char text[32];
    clock_format_rfc3339(ns, text, sizeof(text));
    url_encode((struct sv){.p = text, .n = strlen("2026-11-21T03:23:34")}, out);
}

/* Appends the instance, which is never empty. Called before labels are dropped to make room, so
 * that the label `instance` is still there. */
static void put_instance(const struct series *s, struct buf *out)
{
    struct sv instance = series_get(s, LABEL_INSTANCE);
    if (instance.n == 0) {
        instance = s->service;
    }
    buf_puts(out, "&instance_id=");
    url_encode((struct sv){instance.p, utf8_prefix(instance, PROFEFE_INSTANCE_MAX)}, out);
}

bool profefe_query(struct series *s, int64_t from_ns, struct buf *out)
{
    const char *type = profefe_type(s->type);
    buf_puts(out, "service=");
    /* The name is cut between characters if it is too long. */
    struct sv service = {s->service.p, utf8_prefix(s->service, PROFEFE_SERVICE_MAX / 3)};
    url_encode(service, out);
    put_instance(s, out);
    buf_printf(out, "&type=%s", type);
    bool ok = append_labels(s, strcmp(type, "other") == 0, out);
    if (from_ns >= NS_PER_S) {
        buf_puts(out, "&created_at=");
        put_utc(from_ns, out);
    }
    return ok && buf_ok(out);
}

/* ---- requests -------------------------------------------------------------------------------- */

static enum request_status profefe_build(struct request *r, const struct request_input *in)
{
    const struct profile *p = in->profile;
    struct pprof_summary summary;
    pprof_summary_peek((struct sv){p->data, p->size}, PROFILE_SAMPLE, &summary);
    if (p->size == 0 || (summary.whole && summary.n[PROFILE_SAMPLE] == 0)) {
        return REQUEST_EMPTY;
    }
    struct buf query;
    buf_init(&query, REQUEST_URL_MAX);
    (void)snprintf(r->content_type, sizeof(r->content_type), "application/octet-stream");
    bool ok =
        profefe_query(in->series, p->from_ns, &query) && request_set_url(r, in->endpoint, &query);
    buf_done(&query);
    return ok ? REQUEST_OK : REQUEST_MEMORY;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* {"code":200,"body":{"id":"..."}}: other methods, and other servers, say 200 as well. A long list
 * of labels in it may be cut. Collectors of 2019 say {"code":200} and nothing else. */
static bool profefe_accepts(const struct answer_input *in, const struct reply *r)
{
    static const char head[] = "{\"code\":200,\"body\":{\"id\":\"";
    if (in->status != 200) {
        return false;
    }
    if (r->json == NULL && in->body.n >= ANSWER_BODY_MAX) {
        return sv_starts_with(in->body, sv_from(head)) && in->body.p[sizeof(head) - 1] != '"';
    }
    const json_t *id = json_object_get(json_object_get(r->json, "body"), "id");
    return json_integer_value(json_object_get(r->json, "code")) == 200 &&
           (json_string_length(id) > 0 || json_object_size(r->json) == 1);
}

/* ---- reading back ---------------------------------------------------------------------------- */

static void ask_profefe(const struct readback_query *q, struct buf *url, struct buf *body)
{
    (void)body;
    buf_puts(url, PROFEFE_PATH "?service=");
    url_encode(sv_from(q->service), url);
    buf_puts(url, "&type=cpu&from=");
    put_utc(q->from_ns, url);
    buf_puts(url, "&to=");
    put_utc(q->until_ns, url);
    buf_printf(url, "&labels=" READBACK_LABEL "%%3D%s", q->id);
}

static bool holds_ids(const json_t *answer)
{
    return json_array_size(json_object_get(answer, "body")) > 0;
}

const struct readback readback_profefe = {
    .ask = ask_profefe, .holds = holds_ids, .no_profile_is_404 = true, .may_be_profile = true};

/* ---- the row --------------------------------------------------------------------------------- */

const struct protocol protocol_profefe = {
    .config = {.name = "profefe", .paths = {PROFEFE_PATH}},
    .labels = {.names = SERIES_NAMES_ALL},
    .build = profefe_build,
    .accepts = profefe_accepts,
    .readback = &readback_profefe,
};
