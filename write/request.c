#include "write/request.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/url.h"
#include "write/protocol.h"

/* The most bytes that a protocol puts before the profile, without the labels, and for each label.
 */
#define HEAD_FLAT 512
#define HEAD_LABEL 32
#define TAIL_MAX ((size_t)256 * 1024)
#define VALUES_MAX ((size_t)64 * 1024)
#define TENANT_HEADER "X-Scope-OrgID"

void boundary_new(struct boundary *b, struct rng *rng)
{
    uint64_t high = rng_next(rng);
    uint64_t low = rng_next(rng);
    (void)snprintf(b->text, sizeof(b->text), "profpull%016" PRIx64 "%016" PRIx64, high, low);
}

bool boundary_fits(const struct boundary *b, const void *data, size_t size)
{
    return size == 0 || memmem(data, size, b->text, strlen(b->text)) == NULL;
}

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

struct sv request_tenant(const struct config_endpoint *endpoint, struct sv label)
{
    if (label.n > 0) {
        return label;
    }
    if (endpoint->tenant_id != NULL && endpoint->tenant_id[0] != '\0') {
        return sv_from(endpoint->tenant_id);
    }
    for (size_t i = 0; i < endpoint->headers.n; i++) {
        if (strcasecmp(endpoint->headers.at[i].name, TENANT_HEADER) == 0) {
            return sv_from(endpoint->headers.at[i].value);
        }
    }
    return SV("");
}

static void add_tenant(struct request *r, const struct config_endpoint *endpoint,
                       const struct series *s)
{
    const char *tenant = endpoint->tenant_id != NULL ? endpoint->tenant_id : "";
    if (s->tenant.n > 0) {
        (void)snprintf(r->tenant, sizeof(r->tenant), "%.*s", SV_ARG(s->tenant));
        tenant = r->tenant;
    }
    if (tenant[0] != '\0') {
        add_header(r, TENANT_HEADER, tenant);
    }
}

static bool add_headers(struct request *r, const struct config_endpoint *endpoint,
                        const struct series *s)
{
    r->headers = calloc(2 + r->n_own + endpoint->headers.n, sizeof(r->headers[0]));
    if (r->headers == NULL) {
        return false;
    }
    add_header(r, "Content-Type", r->content_type);
    add_tenant(r, endpoint, s);
    for (size_t i = 0; i < r->n_own; i++) {
        add_header(r, r->own[i].name, r->own[i].value);
    }
    for (size_t i = 0; i < endpoint->headers.n; i++) {
        const struct config_pair *pair = &endpoint->headers.at[i];
        if (!has_header(r, pair->name)) {
            add_header(r, pair->name, pair->value);
        }
    }
    return true;
}

void request_add_own(struct request *r, const char *name, const char *value)
{
    r->own[r->n_own++] = (struct http_header){.name = name, .value = value};
}

bool request_set_url(struct request *r, const struct config_endpoint *e, const struct buf *query)
{
    const char *path = e->protocol->paths[0] != NULL ? e->protocol->paths[0] : "";
    return url_join(sv_from(e->url), sv_from(path), (struct sv){.p = query->data, .n = query->len},
                    &r->url);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Returns the largest size of the head; the labels are within their limits. */
static size_t head_max(const struct series *s)
{
    size_t n = HEAD_FLAT;
    for (size_t i = 0; i < s->n; i++) {
        n += s->at[i].name.n + s->at[i].value.n + HEAD_LABEL;
    }
    return n;
}

static void init(struct request *r, size_t head)
{
    *r = (struct request){.n_headers = 0};
    buf_init(&r->url, REQUEST_URL_MAX);
    buf_init(&r->head, head);
    buf_init(&r->tail, TAIL_MAX);
    buf_init(&r->values, VALUES_MAX);
}

/* Adds the parts that all protocols share. p is the profile of the body, unless the body was
 * packed. */
static enum request_status complete(struct request *r, const struct config_endpoint *endpoint,
                                    const struct series *s, const struct profile *p)
{
    if (!add_headers(r, endpoint, s)) {
        return REQUEST_MEMORY;
    }
    r->body[0] = (struct http_part){.data = r->head.data, .len = r->head.len};
    r->body[1] = r->packed != NULL ? (struct http_part){.data = r->packed, .len = r->packed_size}
                                   : (struct http_part){.data = p->data, .len = p->size};
    r->body[2] = (struct http_part){.data = r->tail.data, .len = r->tail.len};
    return REQUEST_OK;
}

static bool is_carried(const struct protocol *protocol, const struct profile *p)
{
    return p->format == PROFILE_PPROF || protocol->config.takes_jfr;
}

enum request_status request_build(struct request *r, const struct request_input *in)
{
    const struct protocol *protocol = protocol_of(in->endpoint);
    init(r, head_max(in->series));
    enum request_status status =
        is_carried(protocol, in->profile) ? protocol->build(r, in) : REQUEST_BAD_FORMAT;
    return status == REQUEST_OK ? complete(r, in->endpoint, in->series, in->profile) : status;
}

void request_memory_done(struct request_memory *m)
{
    if (m->kept != NULL) {
        m->free(m->kept);
    }
    m->kept = NULL;
}

enum request_status request_build_many(struct request *r, const struct config_endpoint *endpoint,
                                       struct request_part *parts, size_t n,
                                       struct request_memory *memory)
{
    const struct protocol *protocol = protocol_of(endpoint);
    init(r, 0);
    for (size_t i = 0; i < n; i++) {
        parts[i].status = is_carried(protocol, parts[i].profile) ? REQUEST_OK : REQUEST_BAD_FORMAT;
    }
    enum request_status status = protocol->build_many(r, endpoint, parts, n, memory);
    return status == REQUEST_OK ? complete(r, endpoint, parts[0].series, parts[0].profile) : status;
}

void request_done(struct request *r)
{
    buf_done(&r->url);
    buf_done(&r->head);
    buf_done(&r->tail);
    buf_done(&r->values);
    free(r->headers);
    free(r->packed);
    r->packed = NULL;
    r->headers = NULL;
    r->n_headers = 0;
}
