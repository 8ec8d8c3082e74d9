/* The key `s3` of an endpoint: the address of its bucket, and its credentials. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/ascii.h"
#include "config/parts.h"
#include "http/url.h"

bool s3_is_url(struct sv v)
{
    return bucket_url_valid(v, S3_SCHEME);
}

static const char *make_url(struct reader *r, const struct bucket_settings *s)
{
    struct sv prefix = bucket_url_split(sv_from(s->url)).prefix;
    struct buf url;
    buf_init(&url, BUCKET_BASE_MAX);
    bucket_put_root(s, &url);
    if (prefix.n > 0) {
        buf_putc(&url, '/');
        bucket_put_key(prefix, &url);
    }
    const char *copy = buf_ok(&url) ? reader_strndup(r, url.data, url.len) : NULL;
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

/* The sources that go with s3://, by their number. */
static const char *const source_names[] = {
    [CREDENTIALS_CONFIGURED] = "configured",   [CREDENTIALS_AUTO] = "auto",
    [CREDENTIALS_ENVIRONMENT] = "environment", [CREDENTIALS_WEB_IDENTITY] = "web_identity",
    [CREDENTIALS_CONTAINER] = "container",     [CREDENTIALS_INSTANCE] = "instance"};
static const struct choices sources = CHOICES(source_names);

/* Reports keys of an access key beside another source of credentials. */
static void check_no_keys(struct reader *r, const struct place *at, const struct bucket_settings *b)
{
    static const char *const keys[] = {"access_key_id",     "access_key_id_file",
                                       "secret_access_key", "secret_access_key_file",
                                       "session_token",     "session_token_file"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct place place = place_of_key(at, keys[i]);
        if (place.node != at->node) {
            reader_error(r, &place, "has no effect with credentials: %s; remove one of both",
                         choice_name(&sources, b->credentials));
        }
    }
}

static void check_s3(struct reader *r, const struct place *at, bool clean, void *out)
{
    struct bucket_settings *b = out;
    if (b->credentials == CREDENTIALS_CONFIGURED) {
        check_one_of(r, at, clean, "s3 ", "access_key_id", "access_key_id_file");
        check_one_of(r, at, clean, "s3 ", "secret_access_key", "secret_access_key_file");
        check_exclusive(r, at, "s3 ", "session_token", "session_token_file");
    } else {
        check_no_keys(r, at, b);
    }
    if (clean && b->http.region == NULL && b->endpoint == NULL) {
        reader_error(r, at, "missing required key \"region\" (or \"endpoint\")");
    }
    if (b->http.region == NULL) {
        b->http.region = BUCKET_REGION_DEFAULT;
    }
    if (yaml_get(at->node, "path_style") == NULL) {
        b->path_style = b->endpoint != NULL;
    }
}

static const struct field s3_rows[] = {
    ROW(bucket_settings, "region", http.region, &kind_text, .arg = &text_region),
    ROW(bucket_settings, "endpoint", endpoint, &kind_text, .arg = &text_http_url),
    ROW(bucket_settings, "path_style", path_style, &kind_bool),
    ROW(bucket_settings, "credentials", credentials, &kind_choice, .arg = &sources,
        .optional = true),
    ROW(bucket_settings, "access_key_id", http.username, &kind_text, .arg = &text_key_id),
    ROW(bucket_settings, "access_key_id_file", http.username_file, &kind_text,
        .arg = &text_content),
    ROW(bucket_settings, "secret_access_key", http.password, &kind_text, .arg = &text_key),
    ROW(bucket_settings, "secret_access_key_file", http.password_file, &kind_text,
        .arg = &text_content),
    ROW(bucket_settings, "session_token", http.session_token, &kind_text, .arg = &text_key),
    ROW(bucket_settings, "session_token_file", http.session_token_file, &kind_text,
        .arg = &text_content),
};
const struct schema schema_s3 = SCHEMA(s3_rows, sizeof(struct bucket_settings), .check = check_s3);

void bucket_complete(struct bucket_settings *b, const char *url,
                     const struct http_settings *transport)
{
    struct http_settings own = b->http;
    b->url = url;
    b->http = *transport;
    b->http.auth = bucket_url_is_google(sv_from(url)) ? HTTP_AUTH_NONE : HTTP_AUTH_S3;
    b->http.region = own.region;
    b->http.username = own.username;
    b->http.username_file = own.username_file;
    b->http.password = own.password;
    b->http.password_file = own.password_file;
    b->http.session_token = own.session_token;
    b->http.session_token_file = own.session_token_file;
    /* The wildcard certificate of AWS covers one more part of a host name. A bucket name with a dot
     * would add two. */
    struct sv name = bucket_url_split(sv_from(url)).name;
    if (b->endpoint == NULL && memchr(name.p, '.', name.n) != NULL) {
        b->path_style = true;
    }
}

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
        bucket_complete(&e->bucket, e->url, &e->http);
        e->http = e->bucket.http;
        e->s3_url = make_url(r, &e->bucket);
    }
}
