/* The HTTP client keys, the same for jobs, endpoints and API servers. The rules and the words of
 * the errors are Prometheus'. */
#include <string.h>

#include "config/parts.h"

#define FIELD(key_, read_, member, arg_)                                                           \
    {                                                                                              \
        .key = (key_), .read = (read_), .offset = offsetof(struct http_settings, member),          \
        .arg = (arg_)                                                                              \
    }

static bool check_credentials(struct sv v)
{
    return v.n > 0 && check_header_value(v);
}

static const struct text_kind text_credentials = {
    .expected = "a text that is not empty, without line breaks and control characters",
    .ok = check_credentials,
    .secret = true};

static bool has(const struct place *at, const char *key)
{
    return yaml_get(at->node, key) != NULL;
}

/* Of two keys only one may be given. */
static void exclusive(struct reader *r, const struct place *at, const char *group, const char *one,
                      const char *other)
{
    if (has(at, one) && has(at, other)) {
        struct place place = place_of_key(at, other);
        reader_error(r, &place, "at most one of %s%s & %s must be configured", group, one, other);
    }
}

static void read_basic_auth(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    static const struct field fields[] = {
        FIELD("username", read_text, username, NULL),
        FIELD("username_file", read_text, username_file, &text_file_name),
        FIELD("password", read_text, password, &text_secret),
        FIELD("password_file", read_text, password_file, &text_file_name),
    };
    struct http_settings *http = out;
    const struct section section = SECTION(fields, http);
    http->auth = HTTP_AUTH_BASIC;
    size_t before = r->reported;
    read_sections(r, at, &section, 1);
    exclusive(r, at, "basic_auth ", "username", "username_file");
    exclusive(r, at, "basic_auth ", "password", "password_file");
    if (before == r->reported && !has(at, "username") && !has(at, "username_file")) {
        reader_error(r, at, "missing required key \"username\" or \"username_file\"");
    }
}

/* The scheme in front of the credentials. */
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

static void read_authorization(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    static const struct field fields[] = {
        FIELD("type", read_auth_type, auth_type, NULL),
        FIELD("credentials", read_text, credentials, &text_credentials),
        FIELD("credentials_file", read_text, credentials_file, &text_file_name),
    };
    struct http_settings *http = out;
    const struct section section = SECTION(fields, http);
    http->auth = HTTP_AUTH_HEADER;
    size_t before = r->reported;
    read_sections(r, at, &section, 1);
    exclusive(r, at, "authorization ", "credentials", "credentials_file");
    if (before == r->reported && !has(at, "credentials") && !has(at, "credentials_file")) {
        reader_error(r, at, "missing required key \"credentials\" or \"credentials_file\"");
    }
}

static void read_bearer(struct reader *r, const struct place *at, const void *arg, void *out)
{
    struct http_settings *http = out;
    http->auth = HTTP_AUTH_HEADER;
    const struct text_kind *kind = arg;
    read_text(r, at, kind, kind->file_name ? &http->credentials_file : &http->credentials);
}

static void read_tls_version(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    static const char *const names[] = {"TLS10", "TLS11", "TLS12", "TLS13"};
    static const struct choices choices = {names, 4};
    unsigned index = 4;
    read_choice(r, at, &choices, &index);
    if (index < 4) {
        *(enum http_tls_version *)out = (enum http_tls_version)(index + HTTP_TLS_1_0);
    }
}

static void check_tls(struct reader *r, const struct place *at)
{
    exclusive(r, at, "", "ca", "ca_file");
    exclusive(r, at, "", "cert", "cert_file");
    exclusive(r, at, "", "key", "key_file");
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
}

static void read_tls(struct reader *r, const struct place *at, const void *arg, void *out)
{
    (void)arg;
    static const struct field fields[] = {
        FIELD("ca", read_text, tls.ca_pem, &text_nonempty),
        FIELD("ca_file", read_text, tls.ca_file, &text_file_name),
        FIELD("cert", read_text, tls.cert_pem, &text_nonempty),
        FIELD("cert_file", read_text, tls.cert_file, &text_file_name),
        FIELD("key", read_text, tls.key_pem, &text_secret),
        FIELD("key_file", read_text, tls.key_file, &text_file_name),
        FIELD("server_name", read_text, tls.server_name, &text_nonempty),
        FIELD("insecure_skip_verify", read_bool, tls.insecure_skip_verify, NULL),
        FIELD("min_version", read_tls_version, tls.min_version, NULL),
        FIELD("max_version", read_tls_version, tls.max_version, NULL),
    };
    const struct section section = SECTION(fields, out);
    size_t before = r->reported;
    read_sections(r, at, &section, 1);
    check_tls(r, at);
    const struct http_settings *http = out;
    if (before == r->reported && http->tls.max_version != HTTP_TLS_DEFAULT &&
        http->tls.max_version <
            (http->tls.min_version != HTTP_TLS_DEFAULT ? http->tls.min_version : HTTP_TLS_1_2)) {
        struct place place = place_of_key(at, "max_version");
        reader_error(r, &place, "max_version is below min_version (TLS12 by default)");
    }
}

/* ---- http_headers
 * --------------------------------------------------------------------------------- */

struct header_list {
    struct http_header *at;
    size_t n;
};

static void add_header(struct reader *r, const struct place *at, const char *name,
                       struct header_list *list)
{
    const char *value = reader_text(r, at, &text_header_value);
    if (value != NULL && name != NULL) {
        list->at[list->n++] = (struct http_header){name, value};
    }
}

static void add_headers(struct reader *r, const struct place *at, const char *name,
                        struct header_list *list)
{
    if (!reader_enter(r, at, YAML_LIST)) {
        return;
    }
    size_t index = 0;
    for (const struct yaml_item *i = at->node->items; i != NULL; i = i->next) {
        struct place element = {.parent = at, .index = index, .node = i->value};
        add_header(r, &element, name, list);
        index++;
    }
}

/* name: "text", name: [texts] or Prometheus' name: {values: [texts], secrets: [texts]}. */
static void read_header(struct reader *r, const struct place *at, const char *name,
                        struct header_list *list)
{
    static const struct field fields[] = {
        {.key = "values", .read = read_elsewhere},
        {.key = "secrets", .read = read_elsewhere},
        {.key = "files", .read = read_later},
    };
    if (at->node->kind == YAML_SCALAR) {
        add_header(r, at, name, list);
        return;
    }
    if (at->node->kind == YAML_LIST) {
        add_headers(r, at, name, list);
        return;
    }
    const struct section section = SECTION(fields, list);
    read_sections(r, at, &section, 1);
    static const char *const keys[] = {"values", "secrets"};
    for (size_t i = 0; i < 2; i++) {
        if (has(at, keys[i])) {
            struct place place = place_of_key(at, keys[i]);
            add_headers(r, &place, name, list);
        }
    }
}

/* arg: "proxy" for the headers of CONNECT. */
static void read_http_headers(struct reader *r, const struct place *at, const void *arg, void *out)
{
    struct http_settings *http = out;
    if (!reader_enter(r, at, YAML_MAPPING)) {
        return;
    }
    /* There are fewer scalars than nodes. */
    struct header_list list = {.at = reader_alloc(r, at->node->weight, sizeof(struct http_header))};
    if (list.at == NULL) {
        return;
    }
    for (const struct yaml_item *i = at->node->items; i != NULL; i = i->next) {
        if (i->key->kind != YAML_SCALAR) {
            continue; /* reported already */
        }
        struct place child = {.parent = at, .key = i->key->text.p, .node = i->value};
        struct place key = {.parent = at, .key = i->key->text.p, .node = i->key};
        const char *problem;
        /* Authorization to a proxy is what these are for. */
        bool own = arg != NULL && sv_eq_str(i->key->text, "Proxy-Authorization");
        if (!own && !check_header_name(i->key->text, &problem)) {
            reader_error(r, &key, "%s", problem);
            continue;
        }
        read_header(r, &child, reader_strndup(r, i->key->text.p, i->key->text.n), &list);
    }
    if (arg != NULL) {
        http->proxy_headers = list.at;
        http->n_proxy_headers = list.n;
    } else {
        http->headers = list.at;
        http->n_headers = list.n;
    }
}

static void check_proxy(struct reader *r, const struct place *at)
{
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

/* ---- oauth2
 * --------------------------------------------------------------------------------------- */

static void read_scopes(struct reader *r, const struct place *at, const void *arg, void *out)
{
    struct http_oauth2 *o = out;
    struct config_strings scopes = {.n = 0};
    read_strings(r, at, arg, &scopes);
    o->scopes = scopes.at;
    o->n_scopes = scopes.n;
}

static void read_params(struct reader *r, const struct place *at, const void *arg, void *out)
{
    static const struct pairs_kind kind = {.name = &text_nonempty, .value = &text_secret};
    struct http_oauth2 *o = out;
    struct config_pairs pairs = {.n = 0};
    (void)arg;
    read_pairs(r, at, &kind, &pairs);
    struct http_header *copy = reader_alloc(r, pairs.n + 1, sizeof(*copy));
    for (size_t i = 0; copy != NULL && i < pairs.n; i++) {
        copy[i] = (struct http_header){pairs.at[i].name, pairs.at[i].value};
    }
    o->params = copy;
    o->n_params = copy != NULL ? pairs.n : 0;
}

static void read_oauth2(struct reader *r, const struct place *at, const void *arg, void *out)
{
#define OAUTH2(key_, read_, member, arg_)                                                          \
    {                                                                                              \
        .key = (key_), .read = (read_), .offset = offsetof(struct http_oauth2, member),            \
        .arg = (arg_), .required = true                                                            \
    }
    static const struct field fields[] = {
        OAUTH2("client_id", read_text, client_id, &text_nonempty),
        OAUTH2("token_url", read_text, token_url, &text_http_url),
        {.key = "client_secret",
         .read = read_text,
         .offset = offsetof(struct http_oauth2, client_secret),
         .arg = &text_secret},
        {.key = "client_secret_file",
         .read = read_text,
         .offset = offsetof(struct http_oauth2, client_secret_file),
         .arg = &text_file_name},
        {.key = "scopes", .read = read_scopes, .arg = &text_nonempty},
        {.key = "endpoint_params", .read = read_params},
    };
#undef OAUTH2
    static const struct field transport[] = {
        {.key = "tls_config", .read = read_tls},
        FIELD("proxy_url", read_text, proxy_url, &text_proxy_url),
        FIELD("no_proxy", read_text, no_proxy, &text_nonempty),
        FIELD("proxy_from_environment", read_bool, proxy_from_environment, NULL),
        {.key = "proxy_connect_header", .read = read_http_headers, .arg = "proxy"},
    };
    (void)arg;
    struct http_settings *http = out;
    struct http_oauth2 *o = reader_alloc(r, 1, sizeof(*o));
    if (o == NULL) {
        return;
    }
    *o = (struct http_oauth2){.n_scopes = 0};
    http_defaults(&o->transport);
    const struct section sections[] = {SECTION(fields, o), SECTION(transport, &o->transport)};
    http->auth = HTTP_AUTH_OAUTH2;
    http->oauth2 = o;
    size_t before = r->reported;
    read_sections(r, at, sections, 2);
    if (at->node->kind != YAML_MAPPING) {
        return;
    }
    exclusive(r, at, "oauth2 ", "client_secret", "client_secret_file");
    if (before == r->reported && !has(at, "client_secret") && !has(at, "client_secret_file")) {
        reader_error(r, at, "missing required key \"client_secret\" or \"client_secret_file\"");
    }
    check_proxy(r, at);
}

/* ---- all of it
 * ------------------------------------------------------------------------------------- */

static const struct field http_fields[] = {
    {.key = "basic_auth", .read = read_basic_auth},
    {.key = "authorization", .read = read_authorization},
    {.key = "bearer_token", .read = read_bearer, .arg = &text_credentials},
    {.key = "bearer_token_file", .read = read_bearer, .arg = &text_file_name},
    {.key = "oauth2", .read = read_oauth2},
    {.key = "tls_config", .read = read_tls},
    FIELD("proxy_url", read_text, proxy_url, &text_proxy_url),
    FIELD("no_proxy", read_text, no_proxy, &text_nonempty),
    FIELD("proxy_from_environment", read_bool, proxy_from_environment, NULL),
    {.key = "proxy_connect_header", .read = read_http_headers, .arg = "proxy"},
    FIELD("follow_redirects", read_bool, follow_redirects, NULL),
    FIELD("enable_http2", read_bool, enable_http2, NULL),
    {.key = "http_headers", .read = read_http_headers},
};
#define HTTP_FIELDS (sizeof(http_fields) / sizeof(http_fields[0]))

void http_defaults(struct http_settings *http)
{
    *http = (struct http_settings){.follow_redirects = true, .enable_http2 = true};
}

struct section http_section(struct http_settings *http)
{
    return (struct section){.fields = http_fields, .n_fields = HTTP_FIELDS, .out = http};
}

bool http_any(const struct yaml_node *n)
{
    for (size_t i = 0; i < HTTP_FIELDS; i++) {
        if (yaml_get(n, http_fields[i].key) != NULL) {
            return true;
        }
    }
    return false;
}

static void check_auth(struct reader *r, const struct place *at)
{
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

void http_check(struct reader *r, const struct place *at)
{
    check_auth(r, at);
    check_proxy(r, at);
}
