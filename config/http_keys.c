/* The HTTP client keys, the same for jobs, endpoints and API servers. The rules and the error
 * messages are those of Prometheus. */
#include <string.h>

#include "config/dump.h"
#include "config/parts.h"

static const struct text_kind text_credentials = {
    .expected = "a text that is not empty, without line breaks and control characters",
    .ok = check_header_value,
    .min = 1,
    .secret = true};

static bool has(const struct place *at, const char *key)
{
    return yaml_get(at->node, key) != NULL;
}

void check_exclusive(struct reader *r, const struct place *at, const char *group, const char *one,
                     const char *other)
{
    if (has(at, one) && has(at, other)) {
        struct place place = place_of_key(at, other);
        reader_error(r, &place, "at most one of %s%s & %s must be configured", group, one, other);
    }
}

void check_one_of(struct reader *r, const struct place *at, bool clean, const char *group,
                  const char *one, const char *other)
{
    check_exclusive(r, at, group, one, other);
    if (clean && !has(at, one) && !has(at, other)) {
        reader_error(r, at, "missing required key \"%s\" or \"%s\"", one, other);
    }
}

/* ---- credentials ----------------------------------------------------------------------------- */

static bool is_basic(const void *record)
{
    return ((const struct http_settings *)record)->auth == HTTP_AUTH_BASIC;
}

static bool is_header(const void *record)
{
    return ((const struct http_settings *)record)->auth == HTTP_AUTH_HEADER;
}

static bool is_oauth2(const void *record)
{
    return ((const struct http_settings *)record)->auth == HTTP_AUTH_OAUTH2;
}

static void check_basic_auth(struct reader *r, const struct place *at, bool clean, void *out)
{
    struct http_settings *http = out;
    http->auth = HTTP_AUTH_BASIC;
    check_exclusive(r, at, "basic_auth ", "password", "password_file");
    check_one_of(r, at, clean, "basic_auth ", "username", "username_file");
}

static const struct field basic_auth_rows[] = {
    ROW(http_settings, "username", username, &kind_text),
    ROW(http_settings, "username_file", username_file, &kind_text, .arg = &text_content),
    ROW(http_settings, "password", password, &kind_text, .arg = &text_secret),
    ROW(http_settings, "password_file", password_file, &kind_text, .arg = &text_content),
};
static const struct schema basic_auth = SCHEMA(basic_auth_rows, 0, .check = check_basic_auth);

/* Reads authorization.type: the word before the credentials. */
static void read_auth_type(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    const char *type = reader_text(r, at, &text_header_value);
    if (type == NULL) {
        return;
    }
    if (strcasecmp(type, "basic") == 0) {
        reader_error(r, at,
                     "authorization type cannot be set to \"basic\", use \"basic_auth\" "
                     "instead");
    } else if (type[0] == '\0' || strpbrk(type, " \t") != NULL) {
        reader_error(r, at, "expected a word such as \"Bearer\"");
    } else {
        *(const char **)out = type;
    }
}

static void write_auth_type(struct dumper *d, const char *key, const void *arg, const void *value)
{
    const char *type = *(const char *const *)value;
    (void)arg;
    dump_text(d, key, &text_any, type == NULL ? "Bearer" : type);
}

static const struct kind kind_auth_type = {read_auth_type, write_auth_type,
                                           .size = sizeof(const char *)};

static void check_authorization(struct reader *r, const struct place *at, bool clean, void *out)
{
    struct http_settings *http = out;
    http->auth = HTTP_AUTH_HEADER;
    check_one_of(r, at, clean, "authorization ", "credentials", "credentials_file");
}

static const struct field authorization_rows[] = {
    ROW(http_settings, "type", auth_type, &kind_auth_type),
    ROW(http_settings, "credentials", credentials, &kind_text, .arg = &text_credentials),
    ROW(http_settings, "credentials_file", credentials_file, &kind_text, .arg = &text_content),
};
static const struct schema authorization =
    SCHEMA(authorization_rows, 0, .check = check_authorization);

/* Reads bearer_token, the short form of `authorization`; a dump shows the long form. */
static void read_bearer(struct reader *r, const struct place *at, const void *arg, void *out)
{
    struct http_settings *http = out;
    http->auth = HTTP_AUTH_HEADER;
    const struct text_kind *kind = arg;
    kind_text.read(r, at, kind, kind->file_name ? &http->credentials_file : &http->credentials);
}

static const struct kind kind_bearer = {.read = read_bearer};

/* ---- http_headers ---------------------------------------------------------------------------- */

/* Checks the name of a header for a proxy; unlike other headers, it may be Proxy-Authorization. */
static bool check_proxy_header_name(struct sv v, const char **ret_problem)
{
    return sv_eq_str(v, "Proxy-Authorization") || check_header_name(v, ret_problem);
}

static const struct pairs_kind pairs_headers = {.name = &text_any,
                                                .value = &text_header_value,
                                                .lists = true,
                                                .headers = true,
                                                .check = check_header_name};
static const struct pairs_kind pairs_proxy_headers = {.name = &text_any,
                                                      .value = &text_header_value,
                                                      .lists = true,
                                                      .headers = true,
                                                      .check = check_proxy_header_name};

/* ---- TLS and proxies ------------------------------------------------------------------------- */

static const char *const tls_versions[] = {[HTTP_TLS_1_0] = "TLS10",
                                           [HTTP_TLS_1_1] = "TLS11",
                                           [HTTP_TLS_1_2] = "TLS12",
                                           [HTTP_TLS_1_3] = "TLS13"};
static const struct choices tls_choices = CHOICES(tls_versions);

static void check_tls(struct reader *r, const struct place *at, bool clean, void *out)
{
    const struct http_settings *http = out;
    check_exclusive(r, at, "", "ca", "ca_file");
    check_exclusive(r, at, "", "cert", "cert_file");
    check_exclusive(r, at, "", "key", "key_file");
    bool cert = has(at, "cert") || has(at, "cert_file");
    bool key = has(at, "key") || has(at, "key_file");
    if (cert && !key) {
        reader_error(r, at,
                     "exactly one of key or key_file must be configured when a client "
                     "certificate is configured");
    } else if (key && !cert) {
        reader_error(r, at,
                     "exactly one of cert or cert_file must be configured when a client "
                     "key is configured");
    }
    if (clean && http->tls.max_version != HTTP_TLS_DEFAULT &&
        http->tls.max_version <
            (http->tls.min_version != HTTP_TLS_DEFAULT ? http->tls.min_version : HTTP_TLS_1_2)) {
        struct place place = place_of_key(at, "max_version");
        reader_error(r, &place, "max_version is below min_version (TLS12 by default)");
    }
}

static const struct field tls_rows[] = {
    ROW(http_settings, "ca", tls.ca_pem, &kind_text, .arg = &text_nonempty),
    ROW(http_settings, "ca_file", tls.ca_file, &kind_text, .arg = &text_content),
    ROW(http_settings, "cert", tls.cert_pem, &kind_text, .arg = &text_nonempty),
    ROW(http_settings, "cert_file", tls.cert_file, &kind_text, .arg = &text_content),
    ROW(http_settings, "key", tls.key_pem, &kind_text, .arg = &text_secret),
    ROW(http_settings, "key_file", tls.key_file, &kind_text, .arg = &text_content),
    ROW(http_settings, "server_name", tls.server_name, &kind_text, .arg = &text_nonempty),
    ROW(http_settings, "insecure_skip_verify", tls.insecure_skip_verify, &kind_bool,
        .optional = true),
    ROW(http_settings, "min_version", tls.min_version, &kind_choice, .arg = &tls_choices,
        .optional = true),
    ROW(http_settings, "max_version", tls.max_version, &kind_choice, .arg = &tls_choices,
        .optional = true),
};
static const struct schema tls = SCHEMA(tls_rows, 0, .check = check_tls);

static void check_proxy(struct reader *r, const struct place *at, bool clean, void *out)
{
    (void)clean;
    (void)out;
    bool from_environment = false;
    const struct yaml_node *given = yaml_get(at->node, "proxy_from_environment");
    if (given != NULL && given->kind == YAML_SCALAR) {
        from_environment = sv_eq_str(given->text, "true");
    }
    struct place place = place_of_key(at, "proxy_from_environment");
    if (from_environment && has(at, "proxy_url")) {
        reader_error(r, &place,
                     "if proxy_from_environment is configured, proxy_url must not be configured");
    } else if (from_environment && has(at, "no_proxy")) {
        reader_error(r, &place,
                     "if proxy_from_environment is configured, no_proxy must not be configured");
    } else if (has(at, "no_proxy") && !has(at, "proxy_url")) {
        place = place_of_key(at, "no_proxy");
        reader_error(r, &place, "if no_proxy is configured, proxy_url must also be configured");
    }
}

static const struct field transport_rows[] = {
    PART("tls_config", &kind_mapping, .arg = &tls, .optional = true),
    ROW(http_settings, "proxy_url", proxy_url, &kind_text, .arg = &text_proxy_url),
    ROW(http_settings, "no_proxy", no_proxy, &kind_text, .arg = &text_nonempty),
    ROW(http_settings, "proxy_from_environment", proxy_from_environment, &kind_bool,
        .optional = true),
    ROW(http_settings, "proxy_connect_header", proxy_headers, &kind_pairs,
        .arg = &pairs_proxy_headers),
};
static const struct schema transport = SCHEMA(transport_rows, 0, .check = check_proxy);

/* ---- oauth2 ---------------------------------------------------------------------------------- */

static const struct pairs_kind pairs_form = {.name = &text_nonempty, .value = &text_secret};

static void check_oauth2(struct reader *r, const struct place *at, bool clean, void *out)
{
    (void)out;
    check_one_of(r, at, clean, "oauth2 ", "client_secret", "client_secret_file");
}

static const struct field oauth2_rows[] = {
    ROW(http_oauth2, "client_id", client_id, &kind_text, .arg = &text_nonempty, .required = true),
    ROW(http_oauth2, "client_secret", client_secret, &kind_text, .arg = &text_secret),
    ROW(http_oauth2, "client_secret_file", client_secret_file, &kind_text, .arg = &text_content),
    ROW(http_oauth2, "token_url", token_url, &kind_text, .arg = &text_http_url, .required = true),
    ROW(http_oauth2, "scopes", scopes, &kind_strings, .arg = &text_nonempty, .optional = true),
    ROW(http_oauth2, "endpoint_params", params, &kind_pairs, .arg = &pairs_form),
    ROW(http_oauth2, NULL, transport, &kind_mapping, .arg = &transport),
};
static const struct schema oauth2 =
    SCHEMA(oauth2_rows, sizeof(struct http_oauth2), .check = check_oauth2);

static void read_oauth2(struct reader *r, const struct place *at, const void *arg, void *out)
{
    struct http_settings *http = out;
    struct http_oauth2 *o = reader_alloc(r, 1, sizeof(*o));
    if (o != NULL) {
        *o = (struct http_oauth2){.n_scopes = 0};
        schema_defaults(&schema_http, &o->transport);
        http->auth = HTTP_AUTH_OAUTH2;
        http->oauth2 = o;
        schema_read(r, at, arg, o);
    }
}

static void write_oauth2(struct dumper *d, const char *key, const void *arg, const void *value)
{
    kind_mapping.write(d, key, arg, ((const struct http_settings *)value)->oauth2);
}

static const struct kind kind_oauth2 = {.read = read_oauth2, .write = write_oauth2, .nests = true};

/* ---- all of them ----------------------------------------------------------------------------- */

static void check_auth(struct reader *r, const struct place *at, bool clean, void *out)
{
    (void)clean;
    (void)out;
    static const char *const keys[] = {"basic_auth", "authorization", "oauth2", "bearer_token",
                                       "bearer_token_file"};
    size_t seen = 0;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        seen += has(at, keys[i]);
        if (seen == 2) {
            struct place place = place_of_key(at, keys[i]);
            reader_error(r, &place,
                         "at most one of basic_auth, authorization, oauth2, "
                         "bearer_token & bearer_token_file must be configured");
            return;
        }
    }
}

#define CREDENTIAL_ROWS                                                                            \
    PART("basic_auth", &kind_mapping, .arg = &basic_auth, .when = is_basic),                       \
        PART("authorization", &kind_mapping, .arg = &authorization, .when = is_header),            \
        PART("bearer_token", &kind_bearer, .arg = &text_credentials),                              \
        PART("bearer_token_file", &kind_bearer, .arg = &text_content)

static const struct field credential_rows[] = {CREDENTIAL_ROWS};
const struct schema schema_credentials =
    SCHEMA(credential_rows, sizeof(struct http_settings), .check = check_auth);

#define HTTP_ROWS(http2)                                                                           \
    CREDENTIAL_ROWS, PART("oauth2", &kind_oauth2, .arg = &oauth2, .when = is_oauth2),              \
        PART(NULL, &kind_mapping, .arg = &transport),                                              \
        ROW(http_settings, "follow_redirects", follow_redirects, &kind_bool, .initial.on = true,   \
            .optional = true),                                                                     \
        ROW(http_settings, "enable_http2", enable_http2, &kind_bool, .initial.on = (http2),        \
            .optional = true),                                                                     \
        ROW(http_settings, "http_headers", headers, &kind_pairs, .arg = &pairs_headers)

static const struct field http_rows[] = {HTTP_ROWS(true)};
const struct schema schema_http =
    SCHEMA(http_rows, sizeof(struct http_settings), .check = check_auth);

/* HTTP/2 is off by default for targets: it brings no gain, and a hostile target could keep libcurl
 * busy with frames without content. */
static const struct field target_http_rows[] = {HTTP_ROWS(false)};
const struct schema schema_target_http =
    SCHEMA(target_http_rows, sizeof(struct http_settings), .check = check_auth);
