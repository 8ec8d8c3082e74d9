#include "cli/one_endpoint.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

#define TEXT_MAX ((size_t)256 * 1024)
#define ERRORS_PATH "write[0]."

/* ---- flags -> the text of a configuration ---------------------------------------------------- */

/* A double-quoted scalar; "${" is doubled, for nothing in a flag is to be expanded. */
static void put_quoted(struct buf *out, const char *text)
{
    struct buf escaped;
    buf_init(&escaped, TEXT_MAX);
    json_escape(sv_from(text), &escaped);
    buf_putc(out, '"');
    for (size_t i = 0; i < escaped.len; i++) {
        bool variable = escaped.data[i] == '$' && escaped.data[i + 1] == '{';
        buf_puts(out, variable ? "$$" : (char[]){escaped.data[i], '\0'});
    }
    buf_putc(out, '"');
    buf_done(&escaped);
}

static void put_key(struct buf *out, const char *key, const char *value)
{
    if (value != NULL) {
        buf_printf(out, "  %s: ", key);
        put_quoted(out, value);
        buf_putc(out, '\n');
    }
}

static void put_pair(struct buf *out, const char *before, const char *key, const char *value)
{
    if (value != NULL) {
        buf_printf(out, "%s%s: ", before, key);
        put_quoted(out, value);
    }
}

static void put_text(struct buf *out, const struct endpoint_flags *f)
{
    buf_puts(out, "write:\n- name: import\n");
    put_key(out, "url", f->url);
    put_key(out, "protocol", f->protocol);
    put_key(out, "tenant_id", f->tenant);
    put_key(out, "bearer_token_file", f->bearer_token_file);
    if (f->username != NULL || f->password_file != NULL) {
        buf_puts(out, "  basic_auth: {");
        put_pair(out, "", "username", f->username == NULL ? "" : f->username);
        put_pair(out, ", ", "password_file", f->password_file);
        buf_puts(out, "}\n");
    }
    if (f->ca_file != NULL || f->insecure_skip_verify) {
        buf_printf(out, "  tls_config: {insecure_skip_verify: %s",
                   f->insecure_skip_verify ? "true" : "false");
        put_pair(out, ", ", "ca_file", f->ca_file);
        buf_puts(out, "}\n");
    }
}

/* ---- the configuration ----------------------------------------------------------------------- */

static void first_error(const struct config_errors *errors, struct err *err)
{
    const struct config_error *e =
        config_errors_count(errors) == 0 ? NULL : config_errors_at(errors, 0);
    if (e == NULL) {
        err_memory(err);
        return;
    }
    const char *path = e->path;
    if (strncmp(path, ERRORS_PATH, strlen(ERRORS_PATH)) == 0) {
        path += strlen(ERRORS_PATH);
    }
    err_set(err, ERR_INPUT, "%s: %s", path, e->message);
}

static struct config *parse(const struct endpoint_flags *flags, struct err *err)
{
    struct config_options options = {.check_rule = NULL};
    struct config_errors *errors = config_errors_new();
    struct config *config = NULL;
    struct buf text;
    buf_init(&text, TEXT_MAX);
    put_text(&text, flags);
    if (buf_too_big(&text)) {
        err_set(err, ERR_INPUT, "the flags are too long");
    } else if (errors == NULL || !buf_ok(&text)) {
        err_memory(err);
    } else {
        config = config_parse("command line", (struct sv){.p = text.data, .n = text.len}, &options,
                              errors);
        if (config == NULL) {
            first_error(errors, err);
        }
    }
    buf_done(&text);
    config_errors_free(errors);
    return config;
}

static void take(struct one_endpoint *o, struct config *config, size_t i)
{
    o->owner = config;
    o->config = *config;
    o->endpoint = config->endpoints[i];
    /* The spool is that of a running program. */
    o->endpoint.spool_directory = NULL;
    o->config.endpoints = &o->endpoint;
    o->config.n_endpoints = 1;
}

bool one_endpoint_from_flags(struct one_endpoint *o, const struct endpoint_flags *flags,
                             struct err *err)
{
    *o = (struct one_endpoint){.owner = NULL};
    struct config *config = parse(flags, err);
    if (config == NULL) {
        return false;
    }
    take(o, config, 0);
    return true;
}

static bool fail_name(const struct config *config, const char *name, struct err *err)
{
    char names[512] = "";
    size_t at = 0;
    for (size_t i = 0; i < config->n_endpoints && at < sizeof(names); i++) {
        int n = snprintf(names + at, sizeof(names) - at, "%s\"%s\"", i == 0 ? "" : ", ",
                         config->endpoints[i].name);
        at += n > 0 ? (size_t)n : 0;
    }
    if (name == NULL) {
        return err_set(err, ERR_INPUT, "%s has %zu endpoints: say which with --endpoint (%s)",
                       config->file, config->n_endpoints, names);
    }
    return err_set(err, ERR_INPUT, "%s has no endpoint \"%s\", only %s", config->file, name, names);
}

bool one_endpoint_from_config(struct one_endpoint *o, struct config *config, const char *name,
                              struct err *err)
{
    *o = (struct one_endpoint){.owner = NULL};
    for (size_t i = 0; i < config->n_endpoints; i++) {
        bool fits =
            name == NULL ? config->n_endpoints == 1 : strcmp(config->endpoints[i].name, name) == 0;
        if (fits) {
            take(o, config, i);
            return true;
        }
    }
    fail_name(config, name, err);
    config_unref(config);
    return false;
}

void one_endpoint_done(struct one_endpoint *o)
{
    o->owner = config_unref(o->owner);
}
