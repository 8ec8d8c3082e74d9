#include "bucket/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bucket/answers.h"

/* In the order in which CREDENTIALS_AUTO tries them. */
static const struct credentials_method *const methods[] = {
    &source_configured, &source_environment,     &source_web_identity, &source_container,
    &source_instance,   &source_service_account, &source_metadata};
#define METHODS (sizeof(methods) / sizeof(methods[0]))

const char *credentials_source_name(enum credentials_source s)
{
    static const char *const names[CREDENTIALS_SOURCES] = {
        [CREDENTIALS_CONFIGURED] = "configured",
        [CREDENTIALS_AUTO] = "auto",
        [CREDENTIALS_ENVIRONMENT] = "environment",
        [CREDENTIALS_WEB_IDENTITY] = "web_identity",
        [CREDENTIALS_CONTAINER] = "container",
        [CREDENTIALS_INSTANCE] = "instance",
        [CREDENTIALS_SERVICE_ACCOUNT] = "service_account",
        [CREDENTIALS_METADATA] = "metadata",
    };
    return names[s];
}

bool credentials_source_fits(enum credentials_source s, bool google)
{
    bool of_google = s == CREDENTIALS_SERVICE_ACCOUNT || s == CREDENTIALS_METADATA;
    return s == CREDENTIALS_AUTO || (s == CREDENTIALS_CONFIGURED && !google) ||
           (s != CREDENTIALS_CONFIGURED && of_google == google);
}

/* ---- a fetch --------------------------------------------------------------------------------- */

void credentials_fetch_init(struct credentials_fetch *f, const struct bucket_settings *settings,
                            const struct credentials_world *world)
{
    *f = (struct credentials_fetch){.settings = settings, .world = world, .expires_ns = INT64_MAX};
    buf_init(&f->url, SOURCE_TEXT_MAX);
    buf_init(&f->body, 4 * SOURCE_TEXT_MAX);
    buf_init(&f->secret, SOURCE_TEXT_MAX);
    buf_init(&f->role, SOURCE_TEXT_MAX);
    buf_init(&f->key_id, SOURCE_TEXT_MAX);
    buf_init(&f->key, SOURCE_TEXT_MAX);
    buf_init(&f->session, SOURCE_TEXT_MAX);
    buf_init(&f->bearer, SOURCE_TEXT_MAX);
}

void credentials_fetch_done(struct credentials_fetch *f)
{
    buf_wipe(&f->url);
    buf_wipe(&f->body);
    buf_wipe(&f->secret);
    buf_wipe(&f->role);
    buf_wipe(&f->key_id);
    buf_wipe(&f->key);
    buf_wipe(&f->session);
    buf_wipe(&f->bearer);
}

const struct credentials_method *credentials_method_of(const struct credentials_fetch *f,
                                                       struct err *err)
{
    enum credentials_source wanted = f->settings->credentials;
    bool google = bucket_url_is_google(sv_from(f->settings->url));
    for (size_t i = 0; i < METHODS; i++) {
        const struct credentials_method *m = methods[i];
        bool found = wanted == CREDENTIALS_AUTO
                         ? m->google == google && m->exists != NULL && m->exists(f)
                         : m->source == wanted;
        if (found) {
            return m;
        }
    }
    err_set(err, ERR_INPUT,
            "no credentials: the environment has neither AWS_ACCESS_KEY_ID, nor AWS_ROLE_ARN with "
            "AWS_WEB_IDENTITY_TOKEN_FILE, nor AWS_CONTAINER_CREDENTIALS_FULL_URI, and "
            "AWS_EC2_METADATA_DISABLED forbids to ask the instance");
    return NULL;
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Copies words that a server sent, without what could be a secret. */
static void copy_words(const char *from, char *out, size_t size)
{
    size_t n = 0;
    for (; from != NULL && from[n] != '\0' && n + 1 < size; n++) {
        out[n] = (unsigned char)from[n] < ' ' ? ' ' : from[n];
    }
    out[n] = '\0';
}

/* Reads {"error": "invalid_grant", "error_description": "..."} of Google, or
 * {"Code": "...", "Message": "..."} of AWS. */
static void read_json(struct sv body, char code[BUCKET_CODE_SIZE], char text[BUCKET_MESSAGE_SIZE])
{
    static const char *const codes[] = {"error", "code", "Code"};
    static const char *const texts[] = {"error_description", "message", "Message"};
    json_t *json = json_loadb(body.p, body.n, 0, NULL);
    for (size_t i = 0; i < 3; i++) {
        const char *c = json_string_value(json_object_get(json, codes[i]));
        const char *t = json_string_value(json_object_get(json, texts[i]));
        if (c != NULL) {
            copy_words(c, code, BUCKET_CODE_SIZE);
        }
        if (t != NULL) {
            copy_words(t, text, BUCKET_MESSAGE_SIZE);
        }
    }
    json_decref(json);
}

void credentials_refusal(const struct credentials_fetch *f, long status, struct sv body,
                         struct err *err)
{
    struct bucket_refusal r = {.code = ""};
    if (!f->plain && !bucket_read_refusal(body, &r)) {
        read_json(body, r.code, r.message);
    }
    err_set(err, ERR_REFUSED, "%s %s answered HTTP %ld%s%s%s%s", f->method, f->url.data, status,
            r.code[0] != '\0' ? " " : "", r.code, r.message[0] != '\0' ? ": " : "", r.message);
}

/* ---- for the sources ------------------------------------------------------------------------- */

const char *source_env(const struct credentials_fetch *f, const char *name)
{
    const char *value = f->world->env(f->world->arg, name);
    return value != NULL && *value != '\0' ? value : NULL;
}

bool source_need(const struct credentials_fetch *f, const char *name, const char **ret,
                 struct err *err)
{
    *ret = source_env(f, name);
    return *ret != NULL || err_set(err, ERR_INPUT, "the environment variable %s is not set", name);
}

static bool read_all(int fd, struct buf *out)
{
    char chunk[4096];
    ssize_t n;
    do {
        n = read(fd, chunk, sizeof(chunk));
        if (n > 0) {
            buf_append(out, chunk, (size_t)n);
        }
    } while (buf_ok(out) && (n > 0 || (n < 0 && errno == EINTR)));
    explicit_bzero(chunk, sizeof(chunk));
    return n == 0;
}

bool source_read_file(const char *path, struct buf *out, struct err *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return err_sys(err, "%s: cannot open", path);
    }
    buf_clear(out);
    bool regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    bool ok = regular ? read_all(fd, out) || err_sys(err, "%s: cannot read", path)
                      : err_set(err, ERR_INPUT, "%s: expected a regular file", path);
    (void)close(fd);
    if (!buf_ok(out)) {
        return err_set(err, ERR_LIMIT, "%s: expected at most %zu bytes", path, SOURCE_TEXT_MAX);
    }
    while (out->len > 0 && strchr(" \t\r\n", out->data[out->len - 1]) != NULL) {
        out->data[--out->len] = '\0';
    }
    if (ok && out->len == 0) {
        return err_set(err, ERR_INPUT, "%s: the file is empty", path);
    }
    return ok;
}

void source_header(struct credentials_fetch *f, const char *name, const char *value)
{
    if (f->n_headers < SOURCE_HEADERS_MAX) {
        f->headers[f->n_headers++] = (struct http_header){name, value};
    }
}

bool source_take(struct buf *out, const char *text)
{
    buf_clear(out);
    for (const char *c = text; c != NULL && *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~') {
            return false;
        }
    }
    return text != NULL && *text != '\0' && buf_puts(out, text);
}

bool source_is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
           (strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == strlen(host));
}

/* ---- keys that are not fetched --------------------------------------------------------------- */

static bool take_configured(struct credentials_fetch *f, unsigned step, struct err *err)
{
    (void)step;
    if (bucket_url_is_google(sv_from(f->settings->url))) {
        return err_set(err, ERR_INPUT,
                       "gs:// needs credentials: auto, service_account or metadata");
    }
    return true;
}

const struct credentials_method source_configured = {.source = CREDENTIALS_CONFIGURED,
                                                     .request = take_configured};

static bool has_environment(const struct credentials_fetch *f)
{
    return source_env(f, "AWS_ACCESS_KEY_ID") != NULL &&
           source_env(f, "AWS_SECRET_ACCESS_KEY") != NULL;
}

static bool take_environment(struct credentials_fetch *f, unsigned step, struct err *err)
{
    const char *id;
    const char *key;
    const char *session = source_env(f, "AWS_SESSION_TOKEN");
    (void)step;
    if (!source_need(f, "AWS_ACCESS_KEY_ID", &id, err) ||
        !source_need(f, "AWS_SECRET_ACCESS_KEY", &key, err)) {
        return false;
    }
    return (source_take(&f->key_id, id) && source_take(&f->key, key) &&
            (session == NULL || source_take(&f->session, session))) ||
           err_set(err, ERR_INPUT,
                   "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or AWS_SESSION_TOKEN: expected a text "
                   "without spaces");
}

const struct credentials_method source_environment = {
    .source = CREDENTIALS_ENVIRONMENT, .exists = has_environment, .request = take_environment};
