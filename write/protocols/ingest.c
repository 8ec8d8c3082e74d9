#include "write/protocols/ingest.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/ascii.h"
#include "http/url.h"
#include "pprof/gzip.h"
#include "pprof/language.h"
#include "pprof/summary.h"
#include "write/protocols/push.h"
#include "write/protocols/sample_types.h"
#include "write/protocols/table.h"

/* Ten digits: from 2001-09-09 to 2286-11-20. DeepFlow agents read other lengths as other units. */
#define SECONDS_MIN INT64_C(1000000000)
#define SECONDS_MAX INT64_C(9999999999)

/* ---- the name -------------------------------------------------------------------------------- */

static void put_app(struct sv service, struct buf *out)
{
    size_t start = out->len;
    for (size_t i = 0; i < service.n && out->len - start < INGEST_APP_MAX; i++) {
        char c = service.p[i];
        bool continuation = ((unsigned char)c & 0xc0) == 0x80;
        bool plain = ascii_is_word(c) || c == '.' || c == '-';
        if (!continuation) {
            buf_putc(out, plain ? c : c == '/' ? '.' : '_');
        }
    }
}

static char value_char(char c)
{
    return c == ',' || c == '}' ? '_' : c;
}

/* A label that the server's parser gives back: it trims values, and drops `__*`. */
static bool in_braces(const struct series_label *l)
{
    return !sv_starts_with(l->name, SV("__")) && !sv_eq_str(l->name, LABEL_SERVICE_NAME) &&
           sv_trim(l->value).n > 0;
}

static size_t encoded_size(struct sv v)
{
    size_t n = 0;
    for (size_t i = 0; i < v.n; i++) {
        n += url_is_unreserved(value_char(v.p[i])) ? 1 : 3;
    }
    return n;
}

/* Returns the size of the percent-encoded name; "{", "}", "=" and "," take three bytes each. */
static size_t encoded_name_size(const struct series *s)
{
    size_t n = INGEST_APP_MAX + 3;
    for (size_t i = 0; i < s->n; i++) {
        if (in_braces(&s->at[i])) {
            n += 6 + s->at[i].name.n + encoded_size(sv_trim(s->at[i].value));
        }
    }
    return n;
}

static void put_value(struct series *s, struct sv value, struct buf *out)
{
    bool repaired = false;
    for (size_t i = 0; i < value.n; i++) {
        char c = value_char(value.p[i]);
        repaired = repaired || c != value.p[i];
        buf_putc(out, c);
    }
    if (repaired) {
        s->changes[SERIES_REPAIRED]++;
    }
}

bool ingest_name(struct series *s, struct buf *out)
{
    while (encoded_name_size(s) > INGEST_NAME_MAX && series_drop_least(s)) {
        ;
    }
    put_app(s->service, out);
    char before = '{';
    for (size_t i = 0; i < s->n; i++) {
        const struct series_label *l = &s->at[i];
        if (!in_braces(l)) {
            continue;
        }
        buf_putc(out, before);
        buf_append(out, l->name.p, l->name.n);
        buf_putc(out, '=');
        put_value(s, sv_trim(l->value), out);
        before = ',';
    }
    if (before == ',') {
        buf_putc(out, '}');
    }
    return buf_ok(out);
}

/* ---- the query ------------------------------------------------------------------------------- */

static int64_t ten_digits(int64_t ns)
{
    int64_t s = ns / NS_PER_S;
    return s < SECONDS_MIN ? SECONDS_MIN : s > SECONDS_MAX ? SECONDS_MAX : s;
}

unsigned ingest_sample_rate(int64_t period_ns)
{
    if (period_ns <= 0 || period_ns > NS_PER_S) {
        return INGEST_SAMPLE_RATE;
    }
    int64_t rate = (NS_PER_S + period_ns / 2) / period_ns;
    return rate <= INGEST_SAMPLE_RATE_MAX ? (unsigned)rate : INGEST_SAMPLE_RATE;
}

bool ingest_query(struct series *s, int64_t from_ns, int64_t until_ns,
                  const struct ingest_facts *facts, struct buf *out)
{
    struct buf name;
    buf_init(&name, 2 * INGEST_NAME_MAX);
    bool ok = ingest_name(s, &name);
    buf_puts(out, "name=");
    url_encode((struct sv){.p = name.data, .n = name.len}, out);
    buf_done(&name);

    int64_t until = ten_digits(until_ns);
    int64_t from = from_ns / NS_PER_S < SECONDS_MIN ? until : ten_digits(from_ns);
    bool is_goroutine = sv_eq_str(s->type, "goroutine");
    buf_printf(out, "&from=%" PRId64 "&until=%" PRId64, from, from > until ? from : until);
    buf_puts(out, facts->format == PROFILE_JFR ? "&format=jfr" : "");
    buf_printf(out, "&spyName=%s&sampleRate=%u", facts->spy, facts->sample_rate);
    if (facts->format != PROFILE_JFR) {
        buf_printf(out, "&units=samples&aggregationType=%s", is_goroutine ? "average" : "sum");
    }
    return ok && buf_ok(out);
}

/* ---- the body -------------------------------------------------------------------------------- */

static void put_part_head(const char *boundary, const char *name, const char *filename,
                          struct buf *out)
{
    buf_printf(out,
               "--%s\r\n"
               "Content-Disposition: form-data; name=\"%s\"; filename=\"%s\"\r\n"
               "Content-Type: application/octet-stream\r\n"
               "\r\n",
               boundary, name, filename);
}

bool ingest_body(const char *boundary, enum profile_format format, struct sv config,
                 struct buf *head, struct buf *tail)
{
    bool jfr = format == PROFILE_JFR;
    put_part_head(boundary, jfr ? "jfr" : "profile", jfr ? "jfr" : "profile.pprof", head);
    buf_puts(tail, "\r\n");
    if (config.n > 0 && !jfr) {
        put_part_head(boundary, "sample_type_config", "sample_type_config.json", tail);
        buf_append(tail, config.p, config.n);
        buf_puts(tail, "\r\n");
    }
    buf_printf(tail, "--%s--\r\n", boundary);
    return buf_ok(head) && buf_ok(tail);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Returns true if the URL is that of DeepFlow's agent. */
static bool is_deepflow(const char *url)
{
    struct sv path = {.p = url, .n = strcspn(url, "?#")};
    while (path.n > 0 && path.p[path.n - 1] == '/') {
        path.n--;
    }
    return sv_ends_with(path, SV(INGEST_DEEPFLOW_BASE)) ||
           sv_ends_with(path, SV(INGEST_DEEPFLOW_BASE INGEST_PATH));
}

/* The languages that DeepFlow knows; rows without one cannot be queried there. A Pyroscope makes it
 * the label pyroscope_spy. */
static const char *spy_of(enum pprof_language language)
{
    static const char *const spies[LANGUAGES] = {
        [LANGUAGE_UNKNOWN] = "gospy",    [LANGUAGE_GO] = "gospy",     [LANGUAGE_JAVA] = "javaspy",
        [LANGUAGE_PYTHON] = "pyspy",     [LANGUAGE_RUBY] = "rbspy",   [LANGUAGE_PHP] = "phpspy",
        [LANGUAGE_DOTNET] = "dotnetspy", [LANGUAGE_NODE] = "nodespy",
    };
    return spies[language];
}

/* Predicts whether a server that stores only the types that it knows would keep a profile. */
static enum request_status judge(const struct pprof_summary *s, size_t stored)
{
    if (stored == 0) {
        return REQUEST_BAD_TYPES;
    }
    return s->n[PROFILE_SAMPLE] == 0 ? REQUEST_EMPTY : REQUEST_OK;
}

/* Reads from the profile itself its sample types, rate and language. A profile that
 * cannot be read is described by its `__name__`, as one of Go, but not for DeepFlow: there it would
 * take others with it that its agent has put into the same message. */
static enum request_status describe(struct scratch *scratch, const struct request_input *in,
                                    struct ingest_facts *facts, struct buf *config)
{
    struct err err = ERR_INIT;
    struct pprof_summary s;
    struct sv plain = in->plain;
    struct sv body = {in->profile->data, in->profile->size};
    bool deepflow = is_deepflow(in->endpoint->url);
    /* If a profile claims to be larger than the limit, it is not inflated to check that. For
     * DeepFlow it is, because a damaged profile, which may claim anything, must not pass. */
    bool huge = !deepflow && gzip_claim(body) > INGEST_INFLATED_MAX;
    bool here = plain.n > 0;
    if (huge || (!here && !gzip_plain(scratch, body, INGEST_INFLATED_MAX, 0, &plain, &err)) ||
        !pprof_summary_read(scratch, plain, INGEST_INFLATED_MAX, &s, &err)) {
        sample_types_builtin(in->series->type, config);
        return err.kind == ERR_MEMORY              ? REQUEST_MEMORY
               : deepflow && err.kind == ERR_INPUT ? REQUEST_BAD_TYPES
                                                   : REQUEST_OK;
    }
    size_t n = s.n[PROFILE_SAMPLE_TYPE];
    size_t stored = sample_types_config(in->series->type, s.types,
                                        n < SUMMARY_TYPES_MAX ? n : SUMMARY_TYPES_MAX, config);
    facts->spy = spy_of(pprof_language_of(plain));
    if (sv_eq_str(in->series->type, "process_cpu")) {
        facts->sample_rate = ingest_sample_rate(s.period);
    }
    return deepflow ? judge(&s, stored) : REQUEST_OK;
}

/* A recording for DeepFlow is gzip, and the whole body: within a form DeepFlow would not inflate it
 * (and a Pyroscope takes it only there). */
static enum request_status put_recording(struct request *r, const struct profile *p)
{
    struct sv body = {p->data, p->size};
    (void)snprintf(r->content_type, sizeof(r->content_type), "application/octet-stream");
    if (gzip_is(body)) {
        return REQUEST_OK;
    }
    struct scratch *scratch = scratch_new();
    bool ok = gzip_pack(scratch, body, &r->packed, &r->packed_size);
    scratch_free(scratch);
    return ok ? REQUEST_OK : REQUEST_MEMORY;
}

static enum request_status put_form(struct request *r, const struct request_input *in,
                                    const struct buf *config)
{
    const char *boundary = in->boundary->text;
    (void)snprintf(r->content_type, sizeof(r->content_type), "multipart/form-data; boundary=%s",
                   boundary);
    struct sv json = {.p = config->data, .n = config->len};
    return ingest_body(boundary, in->profile->format, json, &r->head, &r->tail) ? REQUEST_OK
                                                                                : REQUEST_MEMORY;
}

static enum request_status put_url(struct request *r, const struct request_input *in,
                                   const struct ingest_facts *facts)
{
    const struct profile *p = in->profile;
    struct buf query;
    buf_init(&query, REQUEST_URL_MAX);
    bool ok = ingest_query(in->series, p->from_ns, p->until_ns, facts, &query) &&
              request_set_url(r, in->endpoint, &query);
    buf_done(&query);
    return ok ? REQUEST_OK : REQUEST_MEMORY;
}

static enum request_status ingest_build(struct request *r, const struct request_input *in)
{
    const struct profile *p = in->profile;
    bool jfr = p->format == PROFILE_JFR;
    struct ingest_facts facts = {
        .format = p->format, .sample_rate = INGEST_SAMPLE_RATE, .spy = jfr ? "javaspy" : "gospy"};
    struct buf config;
    buf_init(&config, INGEST_CONFIG_MAX);
    while (!boundary_fits(in->boundary, p->data, p->size)) {
        boundary_new(in->boundary, in->rng);
    }
    enum request_status status = REQUEST_OK;
    if (!jfr) {
        struct scratch *scratch = scratch_new();
        status = describe(scratch, in, &facts, &config);
        scratch_free(scratch);
    }
    if (status == REQUEST_OK) {
        status = put_url(r, in, &facts);
    }
    if (status == REQUEST_OK) {
        status =
            jfr && is_deepflow(in->endpoint->url) ? put_recording(r, p) : put_form(r, in, &config);
    }
    buf_done(&config);
    return status;
}

/* ---- reading back ---------------------------------------------------------------------------- */

static void ask_deepflow(const struct readback_query *q, struct buf *url, struct buf *body)
{
    buf_puts(url, "/v1/profile/ProfileTracing");
    buf_puts(body, "{\"app_service\":");
    json_quote(sv_from(q->service), body);
    buf_printf(body,
               ",\"profile_language_type\":\"Golang\",\"profile_event_type\":\"cpu\","
               "\"tag_filter\":\"\",\"time_start\":%" PRId64 ",\"time_end\":%" PRId64 "}",
               q->from_ns / NS_PER_S, q->until_ns / NS_PER_S);
}

/* Returns true if the answer has nodes. Today's answer has functions and node_values, that of older
 * servers is a list of nodes. */
static bool holds_nodes(const json_t *answer)
{
    const char *status = json_string_value(json_object_get(answer, "OPT_STATUS"));
    const json_t *result = json_object_get(answer, "result");
    const json_t *values = json_object_get(json_object_get(result, "node_values"), "values");
    return status != NULL && strcmp(status, "SUCCESS") == 0 &&
           (json_array_size(result) > 0 || json_array_size(values) > 0);
}

/* ProfileTracing of the server; its agents answer no questions. */
const struct readback readback_deepflow = {
    .ask = ask_deepflow, .holds = holds_nodes, .elsewhere = true};

static const struct readback *ingest_readback(const char *url)
{
    return is_deepflow(url) ? &readback_deepflow : &readback_pyroscope;
}

/* ---- the row --------------------------------------------------------------------------------- */

const struct protocol protocol_ingest = {
    .config = {.name = "ingest",
               .paths = {INGEST_PATH, INGEST_DEEPFLOW_BASE},
               .takes_jfr = true,
               .reads_sample_labels = true},
    .labels = {.names = SERIES_NAMES_PLAIN, .in_braces = true},
    .build = ingest_build,
    .readback_of_url = ingest_readback,
};
