/* Access tokens of Google: for the JSON key of a service account (RFC 7523, a JWT that is signed
 * with RS256), and from the metadata server of a machine or of GKE. */
#include <jansson.h>
#include <limits.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "bucket/sources.h"
#include "http/url.h"

#define SCOPE "https://www.googleapis.com/auth/devstorage.read_write"
#define GRANT "urn:ietf:params:oauth:grant-type:jwt-bearer"
#define METADATA_HOST "metadata.google.internal"
#define METADATA_PATH "/computeMetadata/v1/instance/service-accounts/default/token"
/* The longest lifetime that Google grants a JWT. */
#define JWT_SECONDS 3600
/* The longest signature: that of a key of 16,384 bits. */
#define SIGNATURE_MAX 2048

/* Takes {"access_token": .., "expires_in": 3599, "token_type": "Bearer"}. */
static bool take_token(struct credentials_fetch *f, unsigned step, struct sv body, struct err *err)
{
    json_t *json = json_loadb(body.p, body.n, 0, NULL);
    double seconds = json_number_value(json_object_get(json, "expires_in"));
    bool ok = source_take(&f->bearer, json_string_value(json_object_get(json, "access_token"))) &&
              seconds >= 1 && seconds < 1e9;
    json_decref(json);
    (void)step;
    if (!ok) {
        return err_set(err, ERR_INPUT,
                       "expected JSON with access_token and expires_in from %s, got another answer",
                       f->url.data);
    }
    f->expires_ns = f->world->wall_ns(f->world->arg) + (int64_t)seconds * NS_PER_S;
    return true;
}

/* ---- the key of a service account ------------------------------------------------------------ */

struct account {
    json_t *json; /* owner of the texts */
    const char *email;
    const char *key; /* PEM */
    const char *key_id;
    const char *token_url;
};

static const char *key_file(const struct credentials_fetch *f)
{
    return f->settings->service_account_file != NULL
               ? f->settings->service_account_file
               : source_env(f, "GOOGLE_APPLICATION_CREDENTIALS");
}

static bool has_account(const struct credentials_fetch *f)
{
    return key_file(f) != NULL;
}

/* Returns true for a URL to which a signed request may be sent. */
static bool is_safe_url(const char *text, struct err *err)
{
    struct url url;
    if (!url_parse(text, &url, err)) {
        return err_wrap(err, "token_uri");
    }
    bool ok = url.https || source_is_loopback(url.host);
    url_done(&url);
    return ok || err_set(err, ERR_INPUT, "token_uri: expected https");
}

static bool read_account(struct credentials_fetch *f, const char *file, struct account *a,
                         struct err *err)
{
    *a = (struct account){.json = NULL};
    if (!source_read_file(file, &f->secret, err)) {
        return false;
    }
    a->json = json_loadb(f->secret.data, f->secret.len, 0, NULL);
    buf_wipe(&f->secret);
    const char *type = json_string_value(json_object_get(a->json, "type"));
    a->email = json_string_value(json_object_get(a->json, "client_email"));
    a->key = json_string_value(json_object_get(a->json, "private_key"));
    a->key_id = json_string_value(json_object_get(a->json, "private_key_id"));
    a->token_url = json_string_value(json_object_get(a->json, "token_uri"));
    if (type == NULL || strcmp(type, "service_account") != 0 || a->email == NULL ||
        a->key == NULL || a->token_url == NULL) {
        return err_set(err, ERR_INPUT,
                       "%s: expected the JSON key of a service account with type, client_email, "
                       "private_key and token_uri",
                       file);
    }
    return is_safe_url(a->token_url, err) || err_wrap(err, "%s", file);
}

static void account_done(struct account *a)
{
    char *key = (char *)(uintptr_t)a->key;
    if (key != NULL) {
        explicit_bzero(key, strlen(key));
    }
    json_decref(a->json);
}

/* Appends base64 with the alphabet for URLs and without padding (RFC 7515). */
static bool put_base64url(struct sv v, struct buf *out)
{
    struct buf text;
    buf_init(&text, SOURCE_TEXT_MAX);
    bool ok = base64_encode(v, &text);
    for (size_t i = 0; ok && i < text.len && text.data[i] != '='; i++) {
        char c = text.data[i];
        ok = buf_putc(out, c == '+' ? '-' : c == '/' ? '_' : c);
    }
    buf_wipe(&text);
    return ok;
}

static bool put_json(json_t *json, struct buf *out)
{
    char *text = json_dumps(json, JSON_COMPACT);
    bool ok = text != NULL && put_base64url(sv_from(text), out);
    free(text);
    json_decref(json);
    return ok;
}

/* Appends header and claims, which are signed. */
static bool put_claims(const struct credentials_fetch *f, const struct account *a, struct buf *out)
{
    json_int_t now = f->world->wall_ns(f->world->arg) / NS_PER_S;
    json_t *header = json_pack("{s:s, s:s, s:s*}", "alg", "RS256", "typ", "JWT", "kid", a->key_id);
    json_t *claims = json_pack("{s:s, s:s, s:s, s:I, s:I}", "iss", a->email, "scope", SCOPE, "aud",
                               a->token_url, "iat", now, "exp", now + JWT_SECONDS);
    bool ok = put_json(header, out) && buf_putc(out, '.');
    return put_json(claims, out) && ok;
}

static bool sign(const char *pem, struct buf *text)
{
    unsigned char signature[SIGNATURE_MAX];
    size_t n = sizeof(signature);
    size_t len = strlen(pem);
    BIO *bio = len <= INT_MAX ? BIO_new_mem_buf(pem, (int)len) : NULL;
    EVP_PKEY *key = bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = key != NULL && ctx != NULL && EVP_PKEY_is_a(key, "RSA") == 1 &&
              EVP_PKEY_get_size(key) <= SIGNATURE_MAX &&
              EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
              EVP_DigestSign(ctx, signature, &n, (const unsigned char *)text->data, text->len) == 1;
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    BIO_free(bio);
    return ok && buf_putc(text, '.') &&
           put_base64url((struct sv){(const char *)signature, n}, text);
}

static bool make_form(struct credentials_fetch *f, const struct account *a, const char *file,
                      struct err *err)
{
    struct buf jwt;
    buf_init(&jwt, SOURCE_TEXT_MAX);
    bool ok = put_claims(f, a, &jwt) || err_memory(err);
    if (ok && !sign(a->key, &jwt)) {
        ok = err_set(err, ERR_INPUT, "%s: private_key is no usable RSA key in PEM", file);
    }
    buf_clear(&f->body);
    buf_clear(&f->url);
    if (ok) {
        url_encode_pair(SV("grant_type"), SV(GRANT), &f->body);
        buf_putc(&f->body, '&');
        url_encode_pair(SV("assertion"), (struct sv){jwt.data, jwt.len}, &f->body);
        buf_puts(&f->url, a->token_url);
        ok = (buf_ok(&f->body) && buf_ok(&f->url)) || err_memory(err);
    }
    buf_wipe(&jwt);
    return ok;
}

static bool ask_for_account(struct credentials_fetch *f, unsigned step, struct err *err)
{
    struct account a;
    const char *file = key_file(f);
    (void)step;
    if (file == NULL) {
        return err_set(err, ERR_INPUT,
                       "no key of a service account: set service_account_file, or the environment "
                       "variable GOOGLE_APPLICATION_CREDENTIALS");
    }
    bool ok = read_account(f, file, &a, err) && make_form(f, &a, file, err);
    account_done(&a);
    f->method = "POST";
    source_header(f, "Content-Type", "application/x-www-form-urlencoded");
    return ok;
}

const struct credentials_method source_service_account = {
    .source = CREDENTIALS_SERVICE_ACCOUNT,
    .google = true,
    .steps = 1,
    .exists = has_account,
    .request = ask_for_account,
    .answer = take_token,
    .advice = "allow the way to the token_uri of the service account's key"};

/* ---- the metadata server --------------------------------------------------------------------- */

static bool has_metadata(const struct credentials_fetch *f)
{
    (void)f;
    return true;
}

static bool ask_metadata(struct credentials_fetch *f, unsigned step, struct err *err)
{
    const char *host = source_env(f, "GCE_METADATA_HOST");
    (void)step;
    buf_clear(&f->url);
    buf_printf(&f->url, "http://%s%s", host != NULL ? host : METADATA_HOST, METADATA_PATH);
    f->method = "GET";
    f->on_link = true;
    f->flavored = true;
    source_header(f, "Metadata-Flavor", "Google");
    return buf_ok(&f->url) || err_memory(err);
}

const struct credentials_method source_metadata = {
    .source = CREDENTIALS_METADATA,
    .google = true,
    .steps = 1,
    .exists = has_metadata,
    .request = ask_metadata,
    .answer = take_token,
    .advice = "this is no machine of Google Cloud: set service_account_file"};
