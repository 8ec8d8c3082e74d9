#include "discovery/kubernetes/credentials.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "http/pem.h"

bool exec_parse_time(struct sv text, int64_t *ret_ns)
{
    return clock_take_rfc3339(&text, SIZE_MAX, ret_ns) && text.n == 0;
}

/* ---- credentials ----------------------------------------------------------------------------- */

void exec_credential_done(struct exec_credential *c)
{
    secret_free(c->token);
    secret_free(c->cert_pem);
    secret_free(c->key_pem);
    *c = (struct exec_credential){0};
}

static bool copy_text(const json_t *status, const char *name, char **ret, struct err *err)
{
    const json_t *value = json_object_get(status, name);
    *ret = NULL;
    if (value == NULL || json_is_null(value)) {
        return true;
    }
    if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value)) {
        return err_set(err, ERR_INPUT, "status.%s: expected a string", name);
    }
    if (json_string_length(value) == 0) {
        return true;
    }
    *ret = strdup(json_string_value(value));
    return *ret != NULL || err_memory(err);
}

static bool check_token(const char *token, struct err *err)
{
    for (const char *p = token; *p != '\0'; p++) {
        if ((unsigned char)*p <= 0x20 || *p == 0x7f) {
            return err_set(err, ERR_INPUT,
                           "status.token: white space and control characters are not allowed");
        }
    }
    return strlen(token) <= EXEC_TOKEN_MAX ||
           err_set(err, ERR_LIMIT, "status.token: expected at most %zu bytes", EXEC_TOKEN_MAX);
}

static bool read_expiry(const json_t *status, int64_t *ret_ns, struct err *err)
{
    const json_t *value = json_object_get(status, "expirationTimestamp");
    *ret_ns = INT64_MAX;
    if (value == NULL || json_is_null(value)) {
        return true;
    }
    struct sv text = {json_string_value(value), json_string_length(value)};
    return (json_is_string(value) && exec_parse_time(text, ret_ns)) ||
           err_set(err, ERR_INPUT,
                   "status.expirationTimestamp: expected a time such as \"2026-01-31T12:00:00Z\"");
}

static bool read_status(const json_t *status, struct exec_credential *c, struct err *err)
{
    if (!copy_text(status, "token", &c->token, err) ||
        !copy_text(status, "clientCertificateData", &c->cert_pem, err) ||
        !copy_text(status, "clientKeyData", &c->key_pem, err) ||
        !read_expiry(status, &c->expires_ns, err)) {
        return false;
    }
    if ((c->cert_pem == NULL) != (c->key_pem == NULL)) {
        return err_set(err, ERR_INPUT,
                       "status: expected clientCertificateData and clientKeyData, or neither");
    }
    if (c->token == NULL && c->cert_pem == NULL) {
        return err_set(err, ERR_INPUT, "status: expected a token or a client certificate");
    }
    if (c->cert_pem != NULL && !(pem_check_certificates(sv_from(c->cert_pem), err) &&
                                 pem_check_key(sv_from(c->key_pem), err))) {
        err_wrap(err, "status: the client certificate");
        return false;
    }
    return c->token == NULL || check_token(c->token, err);
}

static bool is_text(const json_t *object, const char *name, const char *want)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL && strcmp(text, want) == 0;
}

bool exec_credential_parse(struct sv text, const char *api_version, struct exec_credential *ret,
                           struct err *err)
{
    struct exec_credential c = {0};
    json_t *json = json_loadb(text.p, text.n, 0, NULL);
    const json_t *status = json_object_get(json, "status");
    bool ok = false;
    if (!json_is_object(json)) {
        err_set(err, ERR_INPUT, "expected an ExecCredential in JSON on stdout");
    } else if (!is_text(json, "kind", "ExecCredential")) {
        err_set(err, ERR_INPUT, "expected the kind ExecCredential on stdout");
    } else if (!is_text(json, "apiVersion", api_version)) {
        err_set(err, ERR_INPUT, "expected the apiVersion %s, as the kubeconfig says", api_version);
    } else if (!json_is_object(status)) {
        err_set(err, ERR_INPUT, "expected a status with credentials");
    } else {
        ok = read_status(status, &c, err);
    }
    json_decref(json);
    if (!ok) {
        exec_credential_done(&c);
        return false;
    }
    *ret = c;
    return true;
}

/* ---- complaints ------------------------------------------------------------------------------ */

/* A word of letters and digits of this length counts as a token: sentences hardly have such
 * words. */
#define LONG_WORD 24
#define HIDDEN "<hidden>"

static bool is_token_char(char c)
{
    return ascii_is_word(c) || c == '-' || c == '+' || c == '=';
}

/* Returns the length of the secret that begins at p; 0 if there is none. */
static size_t secret_at(const char *p, size_t n, const char *const *secrets)
{
    for (; *secrets != NULL; secrets++) {
        size_t len = strlen(*secrets);
        if (len > 0 && len <= n && memcmp(p, *secrets, len) == 0) {
            return len;
        }
    }
    return 0;
}

/* Returns the length of the word at p if it looks like a token, that is, if it is long and has
 * letters and digits; 0 otherwise. */
static size_t token_at(const char *p, size_t n)
{
    size_t len = 0;
    bool letter = false;
    bool digit = false;
    for (; len < n && is_token_char(p[len]); len++) {
        digit = digit || ascii_is_digit(p[len]);
        letter = letter || ascii_is_alpha(p[len]);
    }
    return len >= LONG_WORD && letter && digit ? len : 0;
}

static void put(struct buf *out, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char c = p[i];
        bool space = (unsigned char)c <= 0x20 || c == 0x7f;
        if (!space) {
            buf_putc(out, c);
        } else if (out->len > 0 && out->data[out->len - 1] != ' ') {
            buf_putc(out, ' ');
        }
    }
}

static void hide(struct sv v, const char *const *secrets, struct buf *out)
{
    bool inside = false; /* within a word; tokens begin only where words begin */
    for (size_t i = 0; i < v.n;) {
        size_t n = secret_at(v.p + i, v.n - i, secrets);
        if (n == 0 && !inside) {
            n = token_at(v.p + i, v.n - i);
        }
        if (n > 0) {
            buf_puts(out, HIDDEN);
            inside = false;
            i += n;
        } else {
            inside = is_token_char(v.p[i]);
            put(out, v.p + i, 1);
            i++;
        }
    }
}

void exec_quote(struct sv text, const char *const *secrets, char out[EXEC_QUOTE_MAX + 1])
{
    struct buf hidden;
    struct buf clean;
    buf_init(&hidden, 4 * text.n + 64);
    buf_init(&clean, 16 * text.n + 64);
    hide(text, secrets, &hidden);
    bool ok = buf_ok(&hidden) && utf8_repair((struct sv){hidden.data, hidden.len}, &clean);
    struct sv v = ok ? sv_trim((struct sv){clean.data, clean.len}) : SV("");
    /* Only the end of stderr is kept, where the reason mostly is. */
    if (v.n > EXEC_QUOTE_MAX) {
        v = (struct sv){v.p + (v.n - EXEC_QUOTE_MAX), EXEC_QUOTE_MAX};
        while (v.n > 0 && ((unsigned char)v.p[0] & 0xc0) == 0x80) {
            v = (struct sv){v.p + 1, v.n - 1};
        }
    }
    snprintf(out, EXEC_QUOTE_MAX + 1, "%.*s", SV_ARG(v));
    buf_done(&hidden);
    buf_done(&clean);
}
