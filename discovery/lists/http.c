#include "discovery/lists/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "discovery/lists/listing.h"

#define LABEL_URL "__meta_url"

struct http_sd {
    struct http_sd_options options;
    struct listing listing;
    struct loop_timer *timer;
    struct http_transfer *transfer;
    int64_t started_ms;
    bool synced;
    char *shown; /* the URL without its query, for the log */
};

bool http_sd_is_json(const char *content_type)
{
    struct sv type = sv_from(content_type);
    struct sv charset = SV("");
    struct sv rest;
    if (sv_cut(type, ';', &type, &rest)) {
        charset = sv_trim(rest);
        if (charset.n == 0) {
            return false;
        }
    }
    static const char *const charsets[] = {"charset=utf-8", "charset=\"utf-8\""};
    bool ok = charset.n == 0;
    for (size_t i = 0; i < 2; i++) {
        ok = ok || (charset.n == strlen(charsets[i]) &&
                    strncasecmp(charset.p, charsets[i], charset.n) == 0);
    }
    return ok && type.n == strlen("application/json") &&
           strncasecmp(type.p, "application/json", type.n) == 0;
}

static enum discovery_refresh take(struct http_sd *h, const struct http_response *response,
                                   struct static_group *ret, struct err *err)
{
    if (response->result != HTTP_DONE) {
        err_set(err, ERR_NETWORK, "%s", response->error);
        return REFRESH_FAILED;
    }
    if (response->status != 200) {
        err_set(err, ERR_REFUSED, "server returned HTTP status %ld", response->status);
        return REFRESH_FAILED;
    }
    if (!http_sd_is_json(response->content_type)) {
        err_set(err, ERR_INPUT, "unsupported content type \"%.100s\"", response->content_type);
        return REFRESH_FAILED;
    }
    return listing_take(&h->listing, (struct sv){response->body->data, response->body->len},
                        h->options.intern, ret, err);
}

static void say(const struct http_sd *h, const struct err *err)
{
    if (h->listing.broken) {
        log_warn(h->options.log,
                 "http_sd: no list of targets; the last good targets stay as they are",
                 LOG_STR("url", h->shown), LOG_INT("targets", h->listing.n), LOG_ERR(err));
    } else {
        log_info(h->options.log, "http_sd: the list of targets is good again",
                 LOG_STR("url", h->shown), LOG_INT("targets", h->listing.n));
    }
}

static void finish(struct http_sd *h, enum discovery_refresh result, const struct err *err)
{
    metric_inc(h->options.counters->http_refreshes[result]);
    if (listing_note(&h->listing, result)) {
        say(h, err);
    }
    loop_timer_at(h->timer, h->started_ms + h->options.config->refresh_ms);
    if (!h->synced) {
        h->synced = true;
        h->options.on_synced(h->options.arg);
    }
}

static void on_done(void *arg, const struct http_response *response)
{
    struct http_sd *h = arg;
    h->transfer = NULL;
    struct err err = ERR_INIT;
    struct static_group targets = {0};
    enum discovery_refresh result = take(h, response, &targets, &err);
    if (result == REFRESH_CHANGED) {
        h->options.on_change(h->options.arg, h->options.source, targets.at, targets.n);
    }
    static_group_done(&targets);
    finish(h, result, &err);
}

static void ask(void *arg)
{
    struct http_sd *h = arg;
    const struct config_http_sd *config = h->options.config;
    char seconds[32];
    snprintf(seconds, sizeof(seconds), "%.10g", (double)config->refresh_ms / (double)MS_PER_S);
    const struct http_header headers[] = {
        {.name = "Accept", .value = "application/json"},
        {.name = "X-Prometheus-Refresh-Interval-Seconds", .value = seconds},
    };
    h->started_ms = clock_mono_ms();
    h->transfer = http_start(h->options.http, &(struct http_request){
                                                  .url = config->url,
                                                  .settings = &config->http,
                                                  .headers = headers,
                                                  .n_headers = 2,
                                                  .timeout_ms = config->refresh_ms,
                                                  .max_body = CONFIG_FILE_MAX,
                                                  .on_done = on_done,
                                                  .arg = h,
                                              });
    if (h->transfer == NULL) {
        struct err err = ERR_INIT;
        err_memory(&err);
        finish(h, REFRESH_FAILED, &err);
    }
}

struct http_sd *http_sd_new(const struct http_sd_options *options)
{
    struct http_sd *h = calloc(1, sizeof(*h));
    if (h == NULL) {
        return NULL;
    }
    h->options = *options;
    h->listing.mark = (struct config_pair){LABEL_URL, options->config->url};
    h->shown = strndup(options->config->url, strcspn(options->config->url, "?"));
    h->timer = loop_timer_new(options->loop, ask, h);
    return h->timer == NULL || h->shown == NULL ? http_sd_free(h) : h;
}

void http_sd_start(struct http_sd *h)
{
    loop_timer_after(h->timer, 0);
}

bool http_sd_has_targets(const struct http_sd *h)
{
    return h->listing.n > 0;
}

struct http_sd *http_sd_free(struct http_sd *h)
{
    if (h == NULL) {
        return NULL;
    }
    if (h->transfer != NULL) {
        http_cancel(h->transfer);
    }
    loop_timer_free(h->timer);
    free(h->shown);
    free(h);
    return NULL;
}
