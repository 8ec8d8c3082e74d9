#include "server/access.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"

/* Limit of the credentials that a client must send: "user:password" in base64, or a token. */
#define CREDENTIALS_MAX ((size_t)256 * 1024)

const char *access_scheme(const struct http_settings *s)
{
    if (s->auth == HTTP_AUTH_BASIC) {
        return "Basic";
    }
    return s->auth_type != NULL ? s->auth_type : "Bearer";
}

/* Reads a secret: the text of the configuration, or the content of the file that it names. The
 * caller frees it. */
static bool read_secret(const char *text, const char *file, struct http_files *files, char **ret,
                        struct err *err)
{
    if (file != NULL) {
        return http_files_secret(files, file, ret, err);
    }
    *ret = strdup(text != NULL ? text : "");
    return *ret != NULL || err_memory(err);
}

static bool put_basic(const struct http_settings *s, struct http_files *files, struct buf *out,
                      struct err *err)
{
    char *user = NULL;
    char *password = NULL;
    struct buf plain;
    buf_init(&plain, CREDENTIALS_MAX / 2);
    bool ok = read_secret(s->username, s->username_file, files, &user, err) &&
              read_secret(s->password, s->password_file, files, &password, err);
    ok = ok && ((buf_printf(&plain, "%s:%s", user, password) &&
                 base64_encode((struct sv){plain.data, plain.len}, out)) ||
                err_memory(err));
    buf_wipe(&plain);
    secret_free(user);
    secret_free(password);
    return ok;
}

/* Appends the credentials that must follow the scheme. */
static bool put_credentials(const struct http_settings *s, struct http_files *files,
                            struct buf *out, struct err *err)
{
    if (s->auth == HTTP_AUTH_BASIC) {
        return put_basic(s, files, out, err);
    }
    char *secret = NULL;
    bool ok = read_secret(s->credentials, s->credentials_file, files, &secret, err) &&
              (buf_puts(out, secret) || err_memory(err));
    secret_free(secret);
    return ok;
}

/* Compares two secrets. The time that this takes does not depend on where they differ. */
static bool same_secret(struct sv a, struct sv b)
{
    unsigned char difference = 0;
    if (a.n != b.n) {
        return false;
    }
    for (size_t i = 0; i < a.n; i++) {
        difference |= (unsigned char)a.p[i] ^ (unsigned char)b.p[i];
    }
    return difference == 0;
}

enum access access_check(const struct http_settings *settings, struct http_files *files,
                         const struct request *r, struct err *err)
{
    if (settings == NULL || settings->auth == HTTP_AUTH_NONE) {
        return ACCESS_GRANTED;
    }
    struct sv scheme;
    struct sv given;
    if (!sv_cut(request_header(r, "Authorization"), ' ', &scheme, &given) ||
        !sv_eq_nocase(scheme, access_scheme(settings))) {
        return ACCESS_DENIED;
    }
    struct buf wanted;
    buf_init(&wanted, CREDENTIALS_MAX);
    enum access result = ACCESS_UNKNOWN;
    if (put_credentials(settings, files, &wanted, err)) {
        result = same_secret(sv_trim(given), (struct sv){wanted.data, wanted.len}) ? ACCESS_GRANTED
                                                                                   : ACCESS_DENIED;
    }
    buf_wipe(&wanted);
    return result;
}

bool access_is_ready(const struct http_settings *settings, struct http_files *files,
                     struct err *err)
{
    struct buf wanted;
    buf_init(&wanted, CREDENTIALS_MAX);
    bool ok = settings == NULL || settings->auth == HTTP_AUTH_NONE ||
              put_credentials(settings, files, &wanted, err);
    buf_wipe(&wanted);
    return ok;
}
