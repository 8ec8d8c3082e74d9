#include "discovery/lists/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/http.h"

#define LABEL_URL "__meta_url"

static const struct listing_messages messages = {
    .key = "url",
    .broken = "http_sd: no list of targets; the last good targets stay as they are",
    .good = "http_sd: the list of targets is good again",
};

struct http_sd {
    const struct config_http_sd *config;
    struct list_options options;
    struct listing listing;
    struct loop_timer *timer;
    struct http_transfer *transfer;
    int64_t started_ms;
    char *shown; /* the URL without its query, for the log */
};

bool http_sd_is_json(const char *content_type)
{
    struct sv type = sv_from(content_type);
    struct sv rest;
    if (sv_cut(type, ';', &type, &rest)) {
        struct sv charset = sv_trim(rest);
        if (!sv_eq_nocase(charset, "charset=utf-8") &&
            !sv_eq_nocase(charset, "charset=\"utf-8\"")) {
            return false;
        }
    }
    return sv_eq_nocase(type, "application/json");
}

static bool check_response(const struct http_response *response, struct err *err)
{
    if (response->result != HTTP_DONE) {
        return err_set(err, ERR_NETWORK, "%s", response->error);
    }
    if (response->status != 200) {
        return err_set(err, ERR_REFUSED, "server returned HTTP status %ld", response->status);
    }
    return http_sd_is_json(response->content_type) ||
           err_set(err, ERR_INPUT, "unsupported content type \"%.100s\"", response->content_type);
}

/* Processes the result of a request. text is NULL if it failed. */
static void finish(struct http_sd *h, const struct sv *text, struct err *err)
{
    listing_update(&h->listing, &h->options, text, err);
    loop_timer_at(h->timer, h->started_ms + h->config->refresh_ms);
    if (err->kind != ERR_NETWORK) { /* network errors name the URL already */
        (void)err_wrap(err, "%s", h->shown);
    }
    h->options.on_state(h->options.arg, h->listing.broken ? SOURCE_FAILS : SOURCE_WORKS,
                        h->listing.broken ? err->msg : "");
}

static void http_sd_on_done(void *arg, const struct http_response *response)
{
    struct http_sd *h = arg;
    h->transfer = NULL;
    struct err err = ERR_INIT;
    bool ok = check_response(response, &err);
    const struct sv text = ok ? (struct sv){response->body->data, response->body->len} : SV("");
    finish(h, ok ? &text : NULL, &err);
}

static void http_sd_request(void *arg)
{
    struct http_sd *h = arg;
    const struct config_http_sd *config = h->config;
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
                                                  .on_done = http_sd_on_done,
                                                  .arg = h,
                                              });
    if (h->transfer == NULL) {
        struct err err = ERR_INIT;
        err_memory(&err);
        finish(h, NULL, &err);
    }
}

struct http_sd *http_sd_new(const struct config_http_sd *config, const struct list_options *options)
{
    struct http_sd *h = calloc(1, sizeof(*h));
    if (h == NULL) {
        return NULL;
    }
    h->config = config;
    h->options = *options;
    h->shown = strndup(config->url, strcspn(config->url, "?"));
    h->timer = loop_timer_new(options->loop, http_sd_request, h);
    h->listing = (struct listing){.messages = &messages,
                                  .source = options->source,
                                  .shown = h->shown,
                                  .groups = options->counters->groups[GROUPS_HTTP],
                                  .refreshes = options->counters->http_refreshes,
                                  .mark = {LABEL_URL, config->url}};
    return h->timer == NULL || h->shown == NULL ? http_sd_free(h) : h;
}

void http_sd_start(struct http_sd *h)
{
    struct err err = ERR_INIT;
    (void)err_set(&err, ERR_NETWORK, "%s not read yet", h->shown);
    h->options.on_state(h->options.arg, SOURCE_WAITS, err.msg);
    loop_timer_after(h->timer, 0);
}

bool http_sd_is_known(const struct http_sd *h)
{
    return h->listing.known;
}

struct http_sd *http_sd_free(struct http_sd *h)
{
    if (h == NULL) {
        return NULL;
    }
    if (h->transfer != NULL) {
        http_cancel(h->transfer);
    }
    listing_done(&h->listing);
    loop_timer_free(h->timer);
    free(h->shown);
    free(h);
    return NULL;
}
