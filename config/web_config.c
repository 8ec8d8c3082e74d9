#include "config/web_config.h"

#include <string.h>

#include "base/buf.h"
#include "config/parts.h"

#define ERRORS_TEXT_MAX ((size_t)64 * 1024)

/* ---- values: "$" is nothing special in this file ----------------------------------------------
 */

static const struct text_kind text_file = {
    .expected = "a file name", .min = 1, .raw = true, .file_name = true};
static const struct text_kind text_word = {
    .expected = "a string that is not empty", .min = 1, .raw = true};

static bool is_header_text(struct sv v)
{
    for (size_t i = 0; i < v.n; i++) {
        if ((unsigned char)v.p[i] < ' ' || v.p[i] == 0x7f) {
            return false;
        }
    }
    return true;
}

static const struct text_kind text_header = {.expected =
                                                 "a header value without control characters",
                                             .ok = is_header_text,
                                             .min = 1,
                                             .max = 4096,
                                             .raw = true};

static bool is_frame_option(struct sv v)
{
    return sv_eq_nocase(v, "deny") || sv_eq_nocase(v, "sameorigin");
}

static const struct text_kind text_frame_options = {
    .expected = "\"deny\" or \"sameorigin\"", .ok = is_frame_option, .raw = true};

static bool is_nosniff(struct sv v)
{
    return sv_eq_nocase(v, "nosniff");
}

static const struct text_kind text_nosniff = {
    .expected = "\"nosniff\"", .ok = is_nosniff, .raw = true};

static bool is_user(struct sv v)
{
    return memchr(v.p, ':', v.n) == NULL && is_header_text(v);
}

static const struct text_kind text_user = {.expected =
                                               "a name without colons and control characters",
                                           .ok = is_user,
                                           .min = 1,
                                           .max = 256,
                                           .raw = true};

static bool is_bcrypt_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '.' && c <= '9');
}

/* The range of bcrypt costs. Checking a password takes 0.05 s at a cost of 10, and twice as long
 * for each step more. */
#define BCRYPT_COST_MAX 16

/* Returns true for the form of a bcrypt hash: "$2b$10$" and 53 characters. */
static bool is_bcrypt(struct sv v)
{
    static const char shape[] = "$2?$##$";
    uint64_t cost;
    if (v.n != 60) {
        return false;
    }
    for (size_t i = 0; i < sizeof(shape) - 1; i++) {
        bool free_place = shape[i] == '?' || shape[i] == '#';
        if (!free_place && v.p[i] != shape[i]) {
            return false;
        }
    }
    for (size_t i = sizeof(shape) - 1; i < v.n; i++) {
        if (!is_bcrypt_char(v.p[i])) {
            return false;
        }
    }
    return (v.p[2] == 'a' || v.p[2] == 'b' || v.p[2] == 'y') &&
           parse_u64((struct sv){.p = v.p + 4, .n = 2}, BCRYPT_COST_MAX, &cost) && cost >= 4;
}

static const struct text_kind text_bcrypt = {
    .expected = "a bcrypt hash with a cost of 4 to 16, as `htpasswd -nBC 10 NAME` prints it",
    .ok = is_bcrypt,
    .raw = true,
    .secret = true};

static const struct pairs_kind pairs_users = {.name = &text_user, .value = &text_bcrypt};

/* ---- keys ------------------------------------------------------------------------------------ */

static const char *const auth_names[] = {
    [WEB_CLIENT_NONE] = "NoClientCert",
    [WEB_CLIENT_REQUEST] = "RequestClientCert",
    [WEB_CLIENT_REQUIRE_ANY] = "RequireAnyClientCert",
    [WEB_CLIENT_VERIFY_GIVEN] = "VerifyClientCertIfGiven",
    [WEB_CLIENT_VERIFY] = "RequireAndVerifyClientCert",
};
static const struct choices auths = CHOICES(auth_names);
static const char *const version_names[] = {
    [WEB_TLS_10] = "TLS10",
    [WEB_TLS_11] = "TLS11",
    [WEB_TLS_12] = "TLS12",
    [WEB_TLS_13] = "TLS13",
};
static const struct choices versions = CHOICES(version_names);

static const struct field tls_rows[] = {
    ROW(web_config, "cert_file", tls.cert_file, &kind_text, .arg = &text_file, .required = true),
    ROW(web_config, "key_file", tls.key_file, &kind_text, .arg = &text_file, .required = true),
    ROW(web_config, "client_ca_file", tls.client_ca_file, &kind_text, .arg = &text_file),
    ROW(web_config, "client_auth_type", tls.client_auth, &kind_choice, .arg = &auths),
    ROW(web_config, "client_allowed_sans", tls.client_allowed_sans, &kind_strings,
        .arg = &text_word),
    ROW(web_config, "min_version", tls.min_version, &kind_choice, .arg = &versions,
        .initial.number = WEB_TLS_12),
    ROW(web_config, "max_version", tls.max_version, &kind_choice, .arg = &versions,
        .initial.number = WEB_TLS_13),
    ROW(web_config, "cipher_suites", tls.cipher_suites, &kind_strings, .arg = &text_word),
    ROW(web_config, "curve_preferences", tls.curves, &kind_strings, .arg = &text_word),
    ROW(web_config, "prefer_server_cipher_suites", tls.prefer_server_cipher_suites, &kind_bool,
        .initial.on = true),
};

/* Refuses TLS settings that would let in clients that the file means to keep out. */
static void check_tls(struct reader *r, const struct place *at, bool clean, void *out)
{
    const struct web_tls *t = &((const struct web_config *)out)->tls;
    bool verifies =
        t->client_auth == WEB_CLIENT_VERIFY || t->client_auth == WEB_CLIENT_VERIFY_GIVEN;
    if (!clean) {
        return;
    }
    if (verifies && t->client_ca_file == NULL) {
        reader_error(r, at, "client_auth_type: %s needs client_ca_file",
                     auth_names[t->client_auth]);
    } else if (!verifies && (t->client_ca_file != NULL || t->client_allowed_sans.n > 0)) {
        reader_error(r, at,
                     "%s has no effect with the client_auth_type %s: expected "
                     "RequireAndVerifyClientCert or VerifyClientCertIfGiven",
                     t->client_ca_file != NULL ? "client_ca_file" : "client_allowed_sans",
                     auth_names[t->client_auth]);
    } else if (t->min_version > t->max_version) {
        reader_error(r, at, "min_version is above max_version");
    }
}

static const struct schema tls = SCHEMA(tls_rows, 0, .check = check_tls);

#define HEADER(name, index, kind) ROW(web_config, name, headers[index], &kind_text, .arg = &(kind))
static const struct field header_rows[] = {
    HEADER("Content-Security-Policy", WEB_CONTENT_SECURITY_POLICY, text_header),
    HEADER("X-Frame-Options", WEB_FRAME_OPTIONS, text_frame_options),
    HEADER("X-Content-Type-Options", WEB_CONTENT_TYPE_OPTIONS, text_nosniff),
    HEADER("X-XSS-Protection", WEB_XSS_PROTECTION, text_header),
    HEADER("Strict-Transport-Security", WEB_STRICT_TRANSPORT_SECURITY, text_header),
};
static const struct schema headers = SCHEMA(header_rows, 0);

const char *web_header_name(enum web_header header)
{
    return header_rows[header].key;
}

static const struct field http_rows[] = {
    ROW(web_config, "http2", http2, &kind_bool, .initial.on = true),
    PART("headers", &kind_mapping, .arg = &headers),
};
static const struct schema http = SCHEMA(http_rows, 0);

static const struct field web_rows[] = {
    PART("tls_server_config", &kind_mapping, .arg = &tls),
    PART("http_server_config", &kind_mapping, .arg = &http),
    ROW(web_config, "basic_auth_users", users, &kind_pairs, .arg = &pairs_users),
};
static const struct schema web = SCHEMA(web_rows, sizeof(struct web_config));

/* ---- reading --------------------------------------------------------------------------------- */

static void read_web(struct reader *r, const void *arg, struct config *c, void *out)
{
    const struct yaml_node *root = reader_parse(r, *(const struct sv *)arg);
    struct place at = {.node = root};
    (void)c;
    if (root == NULL) {
        return;
    }
    schema_defaults(&web, out);
    if (root->kind == YAML_MAPPING || yaml_is_null(root)) {
        schema_read(r, &at, &web, out);
    } else {
        reader_error(r, &at, "expected a mapping, got %s", yaml_what(root));
    }
}

bool web_config_parse(const char *name, struct sv text, struct web_config *ret, struct err *err)
{
    struct config_errors *errors = config_errors_new();
    if (errors == NULL) {
        return err_memory(err);
    }
    struct web_config w = {.memory = NULL};
    w.memory = config_read(name, NULL, errors, read_web, &text, &w);
    if (w.memory == NULL) {
        const struct config_error *e = config_errors_at(errors, 0);
        err_set(err, ERR_INPUT, "%s:%d:%d: %s%s%s", name, e->pos.line, e->pos.column, e->path,
                e->path[0] == '\0' ? "" : ": ", e->message);
    } else {
        *ret = w;
    }
    config_errors_free(errors);
    return w.memory != NULL;
}

void web_config_done(struct web_config *w)
{
    w->memory = config_unref(w->memory);
}
