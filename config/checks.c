/* Checks of single values: URLs, addresses, names, paths. */
#include <string.h>

#include "base/ascii.h"
#include "base/labels.h"
#include "config/parts.h"
#include "model/masking.h"

/* Longest path of a profile, label value and tenant. */
#define PATH_LEN_MAX 1024
#define TENANT_LEN_MAX 150

static bool has_any(struct sv v, const char *chars)
{
    for (size_t i = 0; i < v.n; i++) {
        if (v.p[i] != '\0' && strchr(chars, v.p[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* Returns true for a text without control characters and spaces. */
static bool is_graphic(struct sv v)
{
    for (size_t i = 0; i < v.n; i++) {
        unsigned char c = (unsigned char)v.p[i];
        if (c <= ' ' || c == 0x7f) {
            return false;
        }
    }
    return true;
}

static bool check_authority(struct sv authority)
{
    struct sv host;
    uint16_t port;
    return split_host_port(authority, &host, &port, NULL) && host.n > 0;
}

/* Splits "scheme://authority/path"; false if the text does not have that form. */
static bool cut_url(struct sv v, struct sv *ret_scheme, struct sv *ret_authority,
                    struct sv *ret_path)
{
    struct sv scheme;
    struct sv rest;
    if (!is_graphic(v) || !sv_cut(v, ':', &scheme, &rest) || !sv_starts_with(rest, SV("//"))) {
        return false;
    }
    rest.p += 2;
    rest.n -= 2;
    size_t end = 0;
    while (end < rest.n && strchr("/?#", rest.p[end]) == NULL) {
        end++;
    }
    *ret_scheme = scheme;
    *ret_authority = (struct sv){rest.p, end};
    *ret_path = (struct sv){rest.p + end, rest.n - end};
    return true;
}

/* Returns true for http:// or https:// with a host, and a path that holds none of the refused
 * characters. */
static bool is_http_url(struct sv v, const char *refused)
{
    struct sv scheme;
    struct sv authority;
    struct sv path;
    return cut_url(v, &scheme, &authority, &path) &&
           (sv_eq_str(scheme, "http") || sv_eq_str(scheme, "https")) && !has_any(authority, "@") &&
           check_authority(authority) && !has_any(path, refused);
}

bool check_http_url(struct sv v)
{
    return is_http_url(v, "?#");
}

static bool check_query_url(struct sv v)
{
    return is_http_url(v, "#");
}

const struct text_kind text_http_url = {
    .expected = "a URL such as \"http://host:4040\" without user, query and fragment",
    .ok = check_http_url,
    .url = true,
};

const struct text_kind text_query_url = {
    .expected = "a URL such as \"http://host/targets\" without user and fragment",
    .ok = check_query_url,
    .url = true,
};

static bool check_proxy_url(struct sv v)
{
    static const char *const schemes[] = {"http",    "https",  "socks4",
                                          "socks4a", "socks5", "socks5h"};
    struct sv scheme;
    struct sv authority;
    struct sv path;
    if (!cut_url(v, &scheme, &authority, &path) || (path.n > 0 && !sv_eq_str(path, "/"))) {
        return false;
    }
    for (size_t i = authority.n; i > 0; i--) {
        if (authority.p[i - 1] == '@') { /* the last "@" counts: a password may hold others */
            authority = (struct sv){authority.p + i, authority.n - i};
            break;
        }
    }
    return sv_in(scheme, schemes, sizeof(schemes) / sizeof(schemes[0])) &&
           check_authority(authority);
}

const struct text_kind text_proxy_url = {
    .expected = "a proxy URL such as \"http://host:3128\" (http, https, socks4, socks5)",
    .ok = check_proxy_url,
    .url = true,
};

bool check_header_value(struct sv v)
{
    for (size_t i = 0; i < v.n; i++) {
        unsigned char c = (unsigned char)v.p[i];
        if ((c < ' ' && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    return true;
}

const struct text_kind text_header_value = {
    .expected = "a header value without line breaks and control characters",
    .ok = check_header_value,
    .secret = true,
};

/* Returns true for a text of ASCII letters, digits and the characters in `others`. */
static bool is_made_of(struct sv v, const char *others)
{
    for (size_t i = 0; i < v.n; i++) {
        if (!ascii_is_alnum(v.p[i]) && (v.p[i] == '\0' || strchr(others, v.p[i]) == NULL)) {
            return false;
        }
    }
    return true;
}

/* Refuses headers that Prometheus reserves, as far as they exist here: we set them ourselves, or
 * they would break the request. */
bool check_header_name(struct sv v, const char **ret_problem)
{
    static const char *const reserved[] = {
        "Authorization",
        "Host",
        "Content-Encoding",
        "Content-Length",
        "Content-Type",
        "User-Agent",
        "Connection",
        "Keep-Alive",
        "Proxy-Authenticate",
        "Proxy-Authorization",
        "Www-Authenticate",
        "Accept-Encoding",
        "Transfer-Encoding",
        "Te",
        "Trailer",
        "Upgrade",
        "Expect",
    };
    if (v.n == 0 || !is_made_of(v, "!#$%&'*+-.^_`|~")) {
        *ret_problem = "not a valid header name";
        return false;
    }
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
        if (sv_eq_nocase(v, reserved[i])) {
            *ret_problem = i == 0 ? "setting this header is not allowed: use basic_auth or "
                                    "authorization"
                                  : "setting this header is not allowed";
            return false;
        }
    }
    return true;
}

/* Any UTF-8 name is allowed, as in Prometheus 3; the YAML parser has checked that the text is
 * UTF-8. */
const struct text_kind text_label_name = {.expected = "a label name that is not empty", .min = 1};

/* External labels reach the server unchanged, so their names must be valid for every server; names
 * that begin with "__" control the agent and the servers. */
static bool check_external_name(struct sv v)
{
    for (size_t i = 0; i < v.n; i++) {
        char c = v.p[i];
        bool first = ascii_is_alpha(c) || c == '_';
        if (!first && (i == 0 || !(ascii_is_digit(c) || c == '.'))) {
            return false;
        }
    }
    return !sv_starts_with(v, SV("__"));
}

static const struct text_kind text_external_name = {
    .expected = "a label name of letters, digits, \"_\" and \".\" that begins with a letter or one "
                "\"_\"",
    .ok = check_external_name,
    .min = 1};
const struct pairs_kind pairs_external = {.name = &text_external_name, .value = &text_any};

const struct pairs_kind pairs_labels = {
    .name = &text_label_name, .value = &text_any, .is_hidden = mask_label};

/* Refuses the parameter "seconds": for all types of a job, it would turn snapshots into deltas. The
 * key `seconds` of a type sets it. */
static bool check_param_name(struct sv v)
{
    return !sv_eq_str(v, "seconds");
}

static const struct text_kind text_param_name = {
    .expected = "the name of a query parameter other than seconds (which is a key of the types)",
    .ok = check_param_name,
    .min = 1};

const struct pairs_kind pairs_params = {
    .name = &text_param_name, .value = &text_any, .lists = true, .is_hidden = mask_param};

static bool check_path_prefix(struct sv v)
{
    return is_graphic(v) && !has_any(v, "?#");
}

const struct text_kind text_path_prefix = {
    .expected = "a path without \"?\", \"#\", spaces and control characters (put a query into "
                "params)",
    .ok = check_path_prefix,
    .max = PATH_LEN_MAX};

static bool check_target(struct sv v)
{
    return is_graphic(v) && !has_any(v, "/@?#");
}

#define TARGET_EXPECTED "host:port without scheme and path (see scheme, path_prefix)"
const struct text_kind text_target = {.expected = TARGET_EXPECTED, .ok = check_target, .min = 1};
const struct text_kind text_raw_target = {
    .expected = TARGET_EXPECTED, .ok = check_target, .min = 1, .raw = true};

const struct text_kind text_namespace = {
    .expected = "the name of a namespace", .ok = check_dns_label, .min = 1, .max = DNS_LABEL_MAX};

static bool check_listen(struct sv v)
{
    if (v.n == 0) {
        return true;
    }
    size_t colon = v.n;
    while (colon > 0 && v.p[colon - 1] != ':') {
        colon--;
    }
    uint64_t port;
    if (colon == 0 || !parse_u64((struct sv){v.p + colon, v.n - colon}, UINT16_MAX, &port)) {
        return false;
    }
    struct sv address = {v.p, colon - 1};
    struct sv host;
    uint16_t none;
    if (address.n == 0) {
        return true;
    }
    if (has_any(address, ":") && address.p[0] != '[') {
        return false; /* IPv6 needs brackets */
    }
    return is_graphic(address) && !has_any(address, "/@?#") &&
           split_host_port(address, &host, &none, NULL) && host.n > 0;
}

const struct text_kind text_listen = {
    .expected = "host:port such as \"0.0.0.0:4041\" or \"[::]:4041\", or \"\" for no server",
    .ok = check_listen};

/* The characters that Pyroscope and its relatives accept in X-Scope-OrgID. */
static bool check_tenant(struct sv v)
{
    return is_made_of(v, "!-_.*'()") && !sv_eq_str(v, ".") && !sv_eq_str(v, "..");
}

const struct text_kind text_tenant = {
    .expected = "at most 150 letters, digits and !-_.*'() (not \".\" or \"..\")",
    .ok = check_tenant,
    .max = TENANT_LEN_MAX};

const struct range range_interval = {.min = 1, .max = UINT64_C(24) * 60 * 60 * 1000};

void check_unique(struct reader *r, const struct place *at, const char *name, struct map *seen)
{
    const struct yaml_node *first = map_get(seen, sv_from(name));
    if (first != NULL) {
        complain_twice(r, at, name, first->line);
    } else if (!map_put(seen, sv_from(name), (void *)(uintptr_t)at->node, NULL)) {
        r->out_of_memory = true;
    }
}

void complain_twice(struct reader *r, const struct place *at, const char *name, int first_line)
{
    reader_error(r, at, "%s is used twice (first on line %d)", reader_quote(r, sv_from(name)),
                 first_line);
}

/* The server adds four labels on ingest; at least one more must fit. */
static const struct range range_names = {5, LABELS_MAX};
static const struct range range_lengths = {16, 65536};

static const struct field label_limits_rows[] = {
    ROW(config_label_limits, "max_names", max_names, &kind_unsigned, .arg = &range_names),
    ROW(config_label_limits, "max_name_length", max_name_length, &kind_unsigned,
        .arg = &range_lengths),
    ROW(config_label_limits, "max_value_length", max_value_length, &kind_unsigned,
        .arg = &range_lengths),
};
const struct schema schema_label_limits =
    SCHEMA(label_limits_rows, sizeof(struct config_label_limits));
