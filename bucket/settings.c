#include "bucket/settings.h"

#include <string.h>

#include "base/ascii.h"
#include "http/url.h"

static struct sv without_slashes(struct sv v)
{
    while (v.n > 0 && v.p[v.n - 1] == '/') {
        v.n--;
    }
    return v;
}

/* Cuts the scheme off. Returns false for any text but a bucket's. */
static bool cut_scheme(struct sv url, struct sv *ret_rest)
{
    static const char *const starts[] = {BUCKET_SCHEME_S3 "://", BUCKET_SCHEME_GS "://"};
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        if (sv_starts_with(url, sv_from(starts[i]))) {
            *ret_rest = sv_skip(url, strlen(starts[i]));
            return true;
        }
    }
    return false;
}

struct bucket_url bucket_url_split(struct sv url)
{
    struct bucket_url b = {.name = SV(""), .prefix = SV("")};
    struct sv rest;
    if (cut_scheme(url, &rest)) {
        rest = without_slashes(rest);
        if (!sv_cut(rest, '/', &b.name, &b.prefix)) {
            b.name = rest;
        }
    }
    return b;
}

bool bucket_url_is_google(struct sv url)
{
    return sv_starts_with(url, SV(BUCKET_SCHEME_GS "://"));
}

/* Returns true for a name that some server accepts: AWS no longer allows capitals and "_". */
static bool is_bucket(struct sv v)
{
    for (size_t i = 0; i < v.n; i++) {
        bool inner = i > 0 && i + 1 < v.n;
        if (!ascii_is_alnum(v.p[i]) && !(inner && strchr("._-", v.p[i]) != NULL)) {
            return false;
        }
    }
    return v.n >= 3 && v.n <= 63;
}

static bool is_segment(struct sv v)
{
    for (size_t i = 0; i < v.n; i++) {
        if (!url_is_unreserved(v.p[i]) &&
            (v.p[i] == '\0' || strchr("!$&'()*+,;=:", v.p[i]) == NULL)) {
            return false;
        }
    }
    return v.n > 0 && !sv_eq_str(v, ".") && !sv_eq_str(v, "..");
}

bool bucket_url_valid(struct sv url, const char *scheme)
{
    struct bucket_url b = bucket_url_split(url);
    struct sv rest = b.prefix;
    struct sv segment;
    if (!sv_starts_with(url, sv_from(scheme)) || !is_bucket(b.name) || rest.n > BUCKET_PREFIX_MAX) {
        return false;
    }
    while (sv_cut(rest, '/', &segment, &rest)) {
        if (!is_segment(segment)) {
            return false;
        }
    }
    return rest.n == 0 || is_segment(rest);
}

/* "https://s3.eu-central-1.amazonaws.com" */
static void put_server(const struct bucket_settings *s, struct buf *out)
{
    const char *region = s->http.region != NULL ? s->http.region : BUCKET_REGION_DEFAULT;
    if (s->endpoint != NULL) {
        struct sv endpoint = without_slashes(sv_from(s->endpoint));
        buf_append(out, endpoint.p, endpoint.n);
    } else if (bucket_url_is_google(sv_from(s->url))) {
        buf_puts(out, "https://storage.googleapis.com");
    } else {
        bool china = strncmp(region, "cn-", 3) == 0;
        buf_printf(out, "https://s3.%s.amazonaws.com%s", region, china ? ".cn" : "");
    }
}

bool bucket_put_root(const struct bucket_settings *s, struct buf *out)
{
    struct sv url = sv_from(s->url);
    struct sv name = bucket_url_split(url).name;
    struct sv scheme;
    struct sv host;
    struct buf server;
    buf_init(&server, BUCKET_BASE_MAX);
    put_server(s, &server);
    bool ok = buf_ok(&server);
    struct sv text = {server.data, server.len};
    /* The bucket is a part of the host, or the first part of the path. */
    if (s->path_style || bucket_url_is_google(url) || !sv_cut(text, ':', &scheme, &host)) {
        buf_printf(out, "%.*s/%.*s", SV_ARG(text), SV_ARG(name));
    } else {
        host = sv_skip(host, strlen("//"));
        buf_printf(out, "%.*s://%.*s.%.*s", SV_ARG(scheme), SV_ARG(name), SV_ARG(host));
    }
    buf_done(&server);
    return ok && buf_ok(out);
}

bool bucket_put_key(struct sv key, struct buf *out)
{
    struct sv segment;
    while (sv_cut(key, '/', &segment, &key)) {
        url_encode(segment, out);
        buf_putc(out, '/');
    }
    return url_encode(key, out);
}
