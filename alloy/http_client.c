/* The tables for the arguments of HTTP clients, which several components share. */
#include "alloy/targets.h"

#define ROWS(table) .attrs = (table), .n_attrs = sizeof(table) / sizeof((table)[0])
#define BLOCKS(table) .blocks = (table), .n_blocks = sizeof(table) / sizeof((table)[0])

static const struct alloy_attr basic_auth_attrs[] = {
    {.name = "username", .type = ATTR_STRING, .key = "username", .content_key = "username_file"},
    {.name = "password", .type = ATTR_SECRET, .key = "password", .file_key = "password_file"},
    {.name = "password_file", .type = ATTR_STRING, .key = "password_file", .file_name = true},
};
static const struct alloy_schema basic_auth = {ROWS(basic_auth_attrs)};

static const struct alloy_attr authorization_attrs[] = {
    {.name = "type", .type = ATTR_STRING, .key = "type"},
    {.name = "credentials",
     .type = ATTR_SECRET,
     .key = "credentials",
     .file_key = "credentials_file"},
    {.name = "credentials_file", .type = ATTR_STRING, .key = "credentials_file", .file_name = true},
};
static const struct alloy_schema authorization = {ROWS(authorization_attrs)};

static const struct alloy_attr tls_attrs[] = {
    {.name = "ca_pem", .type = ATTR_STRING, .key = "ca", .file_key = "ca_file"},
    {.name = "ca_file", .type = ATTR_STRING, .key = "ca_file", .file_name = true},
    {.name = "cert_pem", .type = ATTR_STRING, .key = "cert", .file_key = "cert_file"},
    {.name = "cert_file", .type = ATTR_STRING, .key = "cert_file", .file_name = true},
    {.name = "key_pem", .type = ATTR_SECRET, .key = "key", .file_key = "key_file"},
    {.name = "key_file", .type = ATTR_STRING, .key = "key_file", .file_name = true},
    {.name = "server_name", .type = ATTR_STRING, .key = "server_name"},
    {.name = "insecure_skip_verify", .type = ATTR_BOOL, .key = "insecure_skip_verify"},
    {.name = "min_version", .type = ATTR_STRING, .key = "min_version"},
};
static const struct alloy_schema tls = {ROWS(tls_attrs)};

static const struct alloy_attr proxy_attrs[] = {
    {.name = "proxy_url", .type = ATTR_SECRET, .key = "proxy_url"},
    {.name = "no_proxy", .type = ATTR_STRING, .key = "no_proxy"},
    {.name = "proxy_from_environment", .type = ATTR_BOOL, .key = "proxy_from_environment"},
    {.name = "proxy_connect_header", .type = ATTR_LISTS_MAP, .key = "proxy_connect_header"},
};
static const struct alloy_inner tls_block[] = {
    {.name = "tls_config", .schema = &tls, .key = "tls_config"},
};
static const struct alloy_schema transport = {ROWS(proxy_attrs), BLOCKS(tls_block)};

static const struct alloy_attr oauth2_attrs[] = {
    {.name = "client_id", .type = ATTR_STRING, .key = "client_id"},
    {.name = "client_secret",
     .type = ATTR_SECRET,
     .key = "client_secret",
     .file_key = "client_secret_file"},
    {.name = "client_secret_file",
     .type = ATTR_STRING,
     .key = "client_secret_file",
     .file_name = true},
    {.name = "scopes", .type = ATTR_STRINGS, .key = "scopes"},
    {.name = "token_url", .type = ATTR_STRING, .key = "token_url"},
    {.name = "endpoint_params", .type = ATTR_STRING_MAP, .key = "endpoint_params"},
};
static const struct alloy_schema oauth2 = {ROWS(oauth2_attrs), .base = &transport};

static const struct alloy_attr client_attrs[] = {
    {.name = "bearer_token",
     .type = ATTR_SECRET,
     .key = "bearer_token",
     .file_key = "bearer_token_file"},
    {.name = "bearer_token_file",
     .type = ATTR_STRING,
     .key = "bearer_token_file",
     .file_name = true},
    {.name = "follow_redirects", .type = ATTR_BOOL, .key = "follow_redirects"},
    {.name = "enable_http2", .type = ATTR_BOOL, .key = "enable_http2"},
    {.name = "http_headers", .type = ATTR_LISTS_MAP, .key = "http_headers"},
};
static const struct alloy_inner client_blocks[] = {
    {.name = "basic_auth", .schema = &basic_auth, .key = "basic_auth"},
    {.name = "authorization", .schema = &authorization, .key = "authorization"},
    {.name = "oauth2", .schema = &oauth2, .key = "oauth2"},
};

const struct alloy_schema alloy_http_client = {ROWS(client_attrs), BLOCKS(client_blocks),
                                               .base = &transport};
