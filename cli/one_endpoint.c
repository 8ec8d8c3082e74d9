#include "cli/one_endpoint.h"

#include <stdio.h>
#include <string.h>

#include "write/protocol.h"

static void one_endpoint_init(struct one_endpoint *o, struct config *config, size_t i)
{
    o->owner = config;
    o->config = *config;
    o->endpoint = config->endpoints[i];
    /* The spool belongs to a running `profpull run`, so this command does not use it. */
    o->endpoint.spool_directory = NULL;
    /* Retention and merging belong to `profpull run`, too. */
    if (o->endpoint.protocol != NULL && o->endpoint.protocol->is_store) {
        o->endpoint.retention_max_age_ms = 0;
        o->endpoint.retention_max_bytes = 0;
        o->endpoint.store_merge_ms = 0;
    }
    o->config.endpoints = &o->endpoint;
    o->config.n_endpoints = 1;
}

/* The longest URL that a scheme is put in front of. */
#define URL_TEXT_MAX ((size_t)64 * 1024)

/* Appends a URL; "host:port" without a scheme means http. */
static void put_url(const char *url, struct buf *out)
{
    bool has_scheme = strstr(url, "://") != NULL || url[0] == '/' || url[0] == '\0';
    buf_printf(out, "%s%s", has_scheme ? "" : "http://", url);
}

bool one_endpoint_from_flags(struct one_endpoint *o, const struct config_endpoint_flags *flags,
                             struct err *err)
{
    *o = (struct one_endpoint){.owner = NULL};
    struct config_options options = {.protocols = write_protocols()};
    struct config_endpoint_flags completed = *flags;
    struct buf url;
    buf_init(&url, URL_TEXT_MAX);
    if (flags->url != NULL) {
        put_url(flags->url, &url);
        completed.url = buf_ok(&url) ? url.data : flags->url;
    }
    struct config *config = config_endpoint_from_flags(&completed, &options, err);
    buf_done(&url);
    if (config == NULL) {
        return false;
    }
    one_endpoint_init(o, config, 0);
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
            one_endpoint_init(o, config, i);
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
