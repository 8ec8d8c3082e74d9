#include "write/request.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/url.h"
#include "pprof/gzip.h"
#include "pprof/summary.h"
#include "write/protocols/profefe.h"
#include "write/protocols/push.h"

/* The protocol's bytes before the profile, besides the labels; and with each of them. */
#define HEAD_FLAT 512
#define HEAD_LABEL 32
#define TAIL_MAX 4096

/* ---- headers --------------------------------------------------------------------------------- */

static void add_header(struct request *r, const char *name, const char *value)
{
    r->headers[r->n_headers++] = (struct http_header){.name = name, .value = value};
}

static bool has_header(const struct request *r, const char *name)
{
    for (size_t i = 0; i < r->n_headers; i++) {
        if (strcasecmp(r->headers[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* The label wins over the endpoint's tenant, which wins over a header that somebody wrote. */
static void add_tenant(struct request *r, const struct config_endpoint *endpoint,
                       const struct series *s)
{
    const char *tenant = endpoint->tenant_id != NULL ? endpoint->tenant_id : "";
    if (s->tenant.n > 0) {
        (void)snprintf(r->tenant, sizeof(r->tenant), "%.*s", SV_ARG(s->tenant));
        tenant = r->tenant;
    }
    if (tenant[0] != '\0') {
        add_header(r, "X-Scope-OrgID", tenant);
    }
}

static bool add_headers(struct request *r, const struct config_endpoint *endpoint,
                        const struct series *s)
{
    r->headers = calloc(REQUEST_HEADERS_MAX + endpoint->headers.n, sizeof(r->headers[0]));
    if (r->headers == NULL) {
        return false;
    }
    add_header(r, "Content-Type", r->content_type);
    add_tenant(r, endpoint, s);
    if (endpoint->protocol == PROTOCOL_PUSH) {
        (void)snprintf(r->timeout, sizeof(r->timeout), "%" PRId64, endpoint->remote_timeout_ms);
        add_header(r, "Connect-Protocol-Version", "1");
        /* At most ten digits; a server takes it as its deadline. */
        if (endpoint->remote_timeout_ms > 0 && strlen(r->timeout) <= 10) {
            add_header(r, "Connect-Timeout-Ms", r->timeout);
        }
    }
    for (size_t i = 0; i < endpoint->headers.n; i++) {
        const struct config_pair *pair = &endpoint->headers.at[i];
        if (!has_header(r, pair->name)) {
            add_header(r, pair->name, pair->value);
        }
    }
    return true;
}

/* ---- protocols ------------------------------------------------------------------------------- */

static enum request_status build_push(struct request *r, const struct config_endpoint *endpoint,
                                      const struct series *s, const struct profile *p)
{
    if (p->format != PROFILE_PPROF) {
        return REQUEST_BAD_FORMAT;
    }
    /* The server refuses a series without `__name__`. */
    if (s->type.n == 0) {
        return REQUEST_BAD_LABELS;
    }
    if (p->size > PUSH_PROFILE_MAX) {
        return REQUEST_TOO_LARGE;
    }
    (void)snprintf(r->content_type, sizeof(r->content_type), "%s", PUSH_CONTENT_TYPE);
    bool ok = push_encode(s, p->size, SV(""), &r->head, &r->tail) &&
              url_join(sv_from(endpoint->url), SV(PUSH_PATH), SV(""), &r->url);
    return ok ? REQUEST_OK : REQUEST_MEMORY;
}

/* DeepFlow shows CPU as samples over this rate; a Pyroscope does not look at it. */
static unsigned sample_rate_of(const struct series *s, const struct profile *p)
{
    struct pprof_summary summary;
    if (p->format != PROFILE_PPROF || !sv_eq_str(s->type, "process_cpu")) {
        return INGEST_SAMPLE_RATE;
    }
    pprof_summary_peek((struct sv){p->data, p->size}, PROFILE_PERIOD, &summary);
    return ingest_sample_rate(summary.period);
}

static struct sv without_query(const char *url)
{
    return (struct sv){.p = url, .n = strcspn(url, "?#")};
}

/* Where the URL is that of DeepFlow's agent. */
static bool is_deepflow(const char *url)
{
    struct sv path = without_query(url);
    while (path.n > 0 && path.p[path.n - 1] == '/') {
        path.n--;
    }
    return sv_ends_with(path, SV(INGEST_DEEPFLOW_BASE)) ||
           sv_ends_with(path, SV(INGEST_DEEPFLOW_BASE INGEST_PATH));
}

/* A recording in gzip: within a form DeepFlow would not inflate it, as a body it does (and a
 * Pyroscope the other way round). */
static bool is_raw_jfr(const struct config_endpoint *endpoint, const struct profile *p)
{
    return p->format == PROFILE_JFR && gzip_is((struct sv){p->data, p->size}) &&
           is_deepflow(endpoint->url);
}

static bool put_ingest_body(struct request *r, const struct config_endpoint *endpoint,
                            const struct series *s, const struct profile *p,
                            const struct ingest_boundary *boundary)
{
    if (is_raw_jfr(endpoint, p)) {
        (void)snprintf(r->content_type, sizeof(r->content_type), "application/octet-stream");
        return true;
    }
    (void)snprintf(r->content_type, sizeof(r->content_type), "multipart/form-data; boundary=%s",
                   boundary->text);
    return ingest_body(boundary->text, p->format, ingest_sample_type_config(s->type), &r->head,
                       &r->tail);
}

static enum request_status build_ingest(struct request *r, const struct config_endpoint *endpoint,
                                        struct series *s, const struct profile *p,
                                        const struct ingest_boundary *boundary)
{
    struct buf query;
    buf_init(&query, REQUEST_URL_MAX);
    bool ok = ingest_query(s, p->from_ns, p->until_ns, p->format, sample_rate_of(s, p), &query) &&
              url_join(sv_from(endpoint->url), SV(INGEST_PATH),
                       (struct sv){.p = query.data, .n = query.len}, &r->url) &&
              put_ingest_body(r, endpoint, s, p, boundary);
    buf_done(&query);
    return ok ? REQUEST_OK : REQUEST_MEMORY;
}

static enum request_status build_profefe(struct request *r, const struct config_endpoint *endpoint,
                                         struct series *s, const struct profile *p)
{
    struct pprof_summary summary;
    if (p->format != PROFILE_PPROF) {
        return REQUEST_BAD_FORMAT;
    }
    pprof_summary_peek((struct sv){p->data, p->size}, PROFILE_SAMPLE, &summary);
    if (p->size == 0 || (summary.whole && summary.n[PROFILE_SAMPLE] == 0)) {
        return REQUEST_EMPTY;
    }
    struct buf query;
    buf_init(&query, REQUEST_URL_MAX);
    (void)snprintf(r->content_type, sizeof(r->content_type), "application/octet-stream");
    bool ok = profefe_query(s, p->from_ns, &query) &&
              url_join(sv_from(endpoint->url), SV(PROFEFE_PATH),
                       (struct sv){.p = query.data, .n = query.len}, &r->url);
    buf_done(&query);
    return ok ? REQUEST_OK : REQUEST_MEMORY;
}

/* Most bytes that the labels can make of the head: they are within their limits. */
static size_t head_max(const struct series *s)
{
    size_t n = HEAD_FLAT;
    for (size_t i = 0; i < s->n; i++) {
        n += s->at[i].name.n + s->at[i].value.n + HEAD_LABEL;
    }
    return n;
}

enum request_status request_build(struct request *r, const struct config_endpoint *endpoint,
                                  struct series *s, const struct profile *p,
                                  struct ingest_boundary *boundary, struct rng *rng)
{
    *r = (struct request){.n_headers = 0};
    buf_init(&r->url, REQUEST_URL_MAX);
    buf_init(&r->head, head_max(s));
    buf_init(&r->tail, TAIL_MAX);
    enum request_status status;
    if (endpoint->protocol == PROTOCOL_PUSH) {
        status = build_push(r, endpoint, s, p);
    } else if (endpoint->protocol == PROTOCOL_PROFEFE) {
        status = build_profefe(r, endpoint, s, p);
    } else {
        while (!ingest_boundary_fits(boundary, p->data, p->size)) {
            ingest_boundary_new(boundary, rng);
        }
        status = build_ingest(r, endpoint, s, p, boundary);
    }
    if (status == REQUEST_OK && !add_headers(r, endpoint, s)) {
        status = REQUEST_MEMORY;
    }
    r->body[0] = (struct http_part){.data = r->head.data, .len = r->head.len};
    r->body[1] = (struct http_part){.data = p->data, .len = p->size};
    r->body[2] = (struct http_part){.data = r->tail.data, .len = r->tail.len};
    return status;
}

void request_done(struct request *r)
{
    buf_done(&r->url);
    buf_done(&r->head);
    buf_done(&r->tail);
    free(r->headers);
    r->headers = NULL;
    r->n_headers = 0;
}
