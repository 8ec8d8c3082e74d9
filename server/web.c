#include "server/web.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"

#define HEADERS_MAX ((size_t)64 * 1024)
#define CREDENTIALS_MAX ((size_t)16 * 1024)

struct web {
    const char *file;
    struct http_files *files;
    struct log *log;
    struct metric_cell *failures;
    struct http_file *text; /* the content that was read last, usable or not */
    struct web_config config;
    struct buf headers;
    unsigned version; /* 0: no file has been read yet */
};

/* Appends the headers of the file, without those that every response has anyway. */
static bool put_headers(const struct web_config *config, struct buf *out)
{
    for (enum web_header i = 0; i < WEB_HEADERS; i++) {
        const char *value = config->headers[i];
        if (value != NULL && i != WEB_CONTENT_TYPE_OPTIONS) {
            buf_printf(out, "%s: %s\r\n", web_header_name(i), value);
        }
    }
    return buf_ok(out);
}

static bool take(struct web *w, struct web_config *config, struct err *err)
{
    bool had_tls = w->config.tls.cert_file != NULL;
    bool has_tls = config->tls.cert_file != NULL;
    struct buf headers;
    buf_init(&headers, HEADERS_MAX);
    bool ok = w->version == 0 || had_tls == has_tls ||
              err_set(err, ERR_INPUT, "%s: tls_server_config was %s: this needs a restart", w->file,
                      has_tls ? "added" : "removed");
    ok = ok && (put_headers(config, &headers) || err_memory(err));
    if (!ok) {
        buf_done(&headers);
        return false;
    }
    web_config_done(&w->config);
    buf_done(&w->headers);
    w->config = *config;
    w->headers = headers;
    w->version++;
    return true;
}

/* Reads the file if it has changed. */
static bool renew(struct web *w, struct err *err)
{
    static const struct http_file_rule rule = {.max = WEB_CONFIG_MAX};
    struct http_file *text = http_files_get(w->files, w->file, &rule, clock_mono_ms(), err);
    if (text == NULL || text == w->text) {
        http_file_unref(text);
        return text != NULL;
    }
    http_file_unref(w->text);
    w->text = text;
    struct web_config config;
    bool ok = web_config_parse(w->file, (struct sv){text->data, text->len}, &config, err);
    if (ok && !take(w, &config, err)) {
        web_config_done(&config);
        ok = false;
    }
    return ok;
}

const struct web_config *web_settings(const struct web *w)
{
    return &w->config;
}

void web_renew(struct web *w)
{
    struct err err = ERR_INIT;
    if (!renew(w, &err)) {
        metric_inc(w->failures);
        log_error(w->log, "the web configuration file cannot be used: the last one stays in use",
                  LOG_STR("error", err.msg));
    }
}

unsigned web_version(const struct web *w)
{
    return w->version;
}

struct sv web_headers(const struct web *w)
{
    return (struct sv){.p = w->headers.data, .n = w->headers.len};
}

enum web_user web_user(const struct web_config *config, const struct request *r,
                       const char **ret_hash, struct buf *ret_password)
{
    struct sv scheme;
    struct sv given;
    struct sv user;
    struct sv password;
    struct buf plain;
    if (config->users.n == 0) {
        return WEB_USER_ANY;
    }
    buf_init(&plain, CREDENTIALS_MAX);
    bool ok = sv_cut(request_header(r, "Authorization"), ' ', &scheme, &given) &&
              sv_eq_nocase(scheme, "Basic") && base64_decode(sv_trim(given), &plain) &&
              sv_cut((struct sv){plain.data, plain.len}, ':', &user, &password) &&
              buf_append(ret_password, password.p, password.n);
    enum web_user result = ok ? WEB_USER_UNKNOWN : WEB_USER_NONE;
    for (size_t i = 0; ok && i < config->users.n; i++) {
        if (sv_eq_str(user, config->users.at[i].name)) {
            *ret_hash = config->users.at[i].value;
            result = WEB_USER_KNOWN;
        }
    }
    buf_wipe(&plain);
    return result;
}

struct web *web_new(const char *file, struct http_files *files, struct log *log,
                    struct metric_cell *failures, struct err *err)
{
    struct web *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        err_memory(err);
        return NULL;
    }
    *w = (struct web){.file = file, .files = files, .log = log, .failures = failures};
    buf_init(&w->headers, HEADERS_MAX);
    return renew(w, err) ? w : web_free(w);
}

struct web *web_free(struct web *w)
{
    if (w != NULL) {
        web_config_done(&w->config);
        buf_done(&w->headers);
        http_file_unref(w->text);
        free(w);
    }
    return NULL;
}
