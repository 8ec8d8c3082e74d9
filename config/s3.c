/* The key `s3` of an endpoint: the address of its bucket, and the access key. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/ascii.h"
#include "config/parts.h"
#include "http/url.h"

#define PREFIX_MAX 512
#define S3_URL_MAX 4096
#define REGION_DEFAULT "us-east-1"

/* ---- the URL --------------------------------------------------------------------------------- */

struct bucket {
    struct sv name;
    struct sv prefix;
};

static struct sv without_slashes(struct sv v)
{
    while (v.n > 0 && v.p[v.n - 1] == '/') {
        v.n--;
    }
    return v;
}

/* Splits "s3://bucket/prefix"; both parts are empty for any other text. */
static struct bucket bucket_of(struct sv url)
{
    struct bucket b = {.name = SV(""), .prefix = SV("")};
    if (sv_starts_with(url, SV(S3_SCHEME "://"))) {
        struct sv rest = without_slashes(sv_skip(url, strlen(S3_SCHEME "://")));
        if (!sv_cut(rest, '/', &b.name, &b.prefix)) {
            b.name = rest;
        }
    }
    return b;
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

bool s3_is_url(struct sv v)
{
    struct bucket b = bucket_of(v);
    struct sv rest = b.prefix;
    struct sv segment;
    if (!is_bucket(b.name) || rest.n > PREFIX_MAX) {
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
static void put_server(const struct config_endpoint *e, struct buf *out)
{
    if (e->s3_endpoint != NULL) {
        buf_puts(out, e->s3_endpoint);
        return;
    }
    bool china = strncmp(e->http.region, "cn-", 3) == 0;
    buf_printf(out, "https://s3.%s.amazonaws.com%s", e->http.region, china ? ".cn" : "");
}

/* Appends the prefix, each segment after a slash. As in the signature, all but the unreserved
 * characters are percent-encoded. */
static void put_prefix(struct sv prefix, struct buf *out)
{
    for (size_t i = 0; i < prefix.n; i++) {
        if (i == 0) {
            buf_putc(out, '/');
        }
        if (prefix.p[i] == '/') {
            buf_putc(out, '/');
        } else {
            url_encode((struct sv){&prefix.p[i], 1}, out);
        }
    }
}

/* Appends the server and the bucket, which is a part of the host or the first part of the path. */
static void put_bucket(const struct config_endpoint *e, struct sv server, struct sv bucket,
                       struct buf *out)
{
    struct sv scheme;
    struct sv host;
    if (e->s3_path_style || !sv_cut(server, ':', &scheme, &host)) {
        buf_printf(out, "%.*s/%.*s", SV_ARG(server), SV_ARG(bucket));
        return;
    }
    host = sv_skip(host, strlen("//"));
    buf_printf(out, "%.*s://%.*s.%.*s", SV_ARG(scheme), SV_ARG(bucket), SV_ARG(host));
}

static const char *make_url(struct reader *r, const struct config_endpoint *e, struct bucket b)
{
    struct buf server;
    struct buf url;
    buf_init(&server, S3_URL_MAX);
    buf_init(&url, S3_URL_MAX);
    put_server(e, &server);
    put_bucket(e, without_slashes((struct sv){server.data, server.len}), b.name, &url);
    put_prefix(b.prefix, &url);
    const char *copy = buf_ok(&url) ? reader_strndup(r, url.data, url.len) : NULL;
    buf_done(&server);
    buf_done(&url);
    return copy;
}

/* ---- the keys -------------------------------------------------------------------------------- */

static bool check_region(struct sv v)
{
    for (size_t i = 0; i < v.n; i++) {
        if (!ascii_is_alnum(v.p[i]) && v.p[i] != '-' && v.p[i] != '_') {
            return false;
        }
    }
    return true;
}

static const struct text_kind text_region = {.expected =
                                                 "the name of a region, such as \"eu-central-1\"",
                                             .ok = check_region,
                                             .min = 1,
                                             .max = 64};

/* Checks the id of an access key: in the header, "/" would end it. */
static bool check_key_id(struct sv v)
{
    for (size_t i = 0; i < v.n; i++) {
        if (v.p[i] <= ' ' || v.p[i] > '~' || v.p[i] == '/' || v.p[i] == ',') {
            return false;
        }
    }
    return true;
}

static const struct text_kind text_key_id = {
    .expected = "the id of an access key, such as \"AKIAIOSFODNN7EXAMPLE\"",
    .ok = check_key_id,
    .min = 1};
static const struct text_kind text_key = {
    .expected = "a text that is not empty, without line breaks and control characters",
    .ok = check_header_value,
    .min = 1,
    .secret = true};

static void check_s3(struct reader *r, const struct place *at, bool clean, void *out)
{
    struct config_endpoint *e = out;
    check_one_of(r, at, clean, "s3 ", "access_key_id", "access_key_id_file");
    check_one_of(r, at, clean, "s3 ", "secret_access_key", "secret_access_key_file");
    check_exclusive(r, at, "s3 ", "session_token", "session_token_file");
    if (clean && e->http.region == NULL && e->s3_endpoint == NULL) {
        reader_error(r, at, "missing required key \"region\" (or \"endpoint\")");
    }
    if (e->http.region == NULL) {
        e->http.region = REGION_DEFAULT;
    }
    if (yaml_get(at->node, "path_style") == NULL) {
        e->s3_path_style = e->s3_endpoint != NULL;
    }
}

static const struct field s3_rows[] = {
    ROW(config_endpoint, "region", http.region, &kind_text, .arg = &text_region),
    ROW(config_endpoint, "endpoint", s3_endpoint, &kind_text, .arg = &text_http_url),
    ROW(config_endpoint, "path_style", s3_path_style, &kind_bool),
    ROW(config_endpoint, "access_key_id", http.username, &kind_text, .arg = &text_key_id),
    ROW(config_endpoint, "access_key_id_file", http.username_file, &kind_text,
        .arg = &text_content),
    ROW(config_endpoint, "secret_access_key", http.password, &kind_text, .arg = &text_key),
    ROW(config_endpoint, "secret_access_key_file", http.password_file, &kind_text,
        .arg = &text_content),
    ROW(config_endpoint, "session_token", http.session_token, &kind_text, .arg = &text_key),
    ROW(config_endpoint, "session_token_file", http.session_token_file, &kind_text,
        .arg = &text_content),
};
const struct schema schema_s3 = SCHEMA(s3_rows, 0, .check = check_s3);

/* ---- the endpoint ---------------------------------------------------------------------------- */

/* Checks one of the signed headers. Its name may be shown, its value may be secret. */
static void check_header(struct reader *r, const struct place *at, const char *name,
                         const char *value, const struct config_pairs *others)
{
    static const char *const own[] = {"date", "x-amz-date"};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        if (strcasecmp(name, own[i]) == 0) {
            reader_error(r, at, "%s is a part of the signature", name);
        }
    }
    if (*value == '\0') {
        reader_error(r, at, "%s: an empty header cannot be signed", name);
    }
    for (size_t i = 0; i < others->n; i++) {
        if (strncasecmp(others->at[i].name, name, n) == 0 && others->at[i].name[n] == '-') {
            reader_error(r, at, "%s and %s cannot be signed together", name, others->at[i].name);
        }
    }
}

static bool takes_headers(struct reader *r, const struct place *at, const struct config_endpoint *e)
{
    size_t before = r->reported;
    struct place headers = place_of_key(at, "headers");
    for (size_t i = 0; i < e->headers.n; i++) {
        check_header(r, &headers, e->headers.at[i].name, e->headers.at[i].value, &e->headers);
    }
    if (e->http.n_headers > 0) {
        struct place more = place_of_key(at, "http_headers");
        reader_error(r, &more, "a bucket takes headers of the key \"headers\" only");
    }
    return r->reported == before;
}

void s3_complete(struct reader *r, const struct place *at, struct config_endpoint *e)
{
    struct place url = place_of_key(at, "url");
    if (yaml_get(at->node, "s3") == NULL) {
        reader_error(r, at, "missing required key \"s3\": a bucket needs an access key");
    } else if (e->http.auth != HTTP_AUTH_NONE) {
        reader_error(r, &url, "a bucket takes the access key of s3, and no other credentials");
    } else if (takes_headers(r, at, e)) {
        struct bucket b = bucket_of(sv_from(e->url));
        /* The wildcard certificate of AWS covers one more part of a host name. A bucket name with a
         * dot would add two. */
        if (e->s3_endpoint == NULL && memchr(b.name.p, '.', b.name.n) != NULL) {
            e->s3_path_style = true;
        }
        e->http.auth = HTTP_AUTH_S3;
        e->s3_url = make_url(r, e, b);
    }
}
