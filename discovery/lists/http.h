/* http_sd_configs: lists of targets that a URL answers with, in JSON, as in Prometheus.
 *
 * Asked again after each refresh_interval, which is also the deadline of a request and goes along
 * as X-Prometheus-Refresh-Interval-Seconds. Only an answer with status 200, content type
 * application/json and a list without mistakes is taken; after any other the last good targets
 * stay. An empty list is a good answer. On the loop's thread.
 */
#ifndef PROFPULL_DISCOVERY_LISTS_HTTP_H
#define PROFPULL_DISCOVERY_LISTS_HTTP_H

#include "base/clock.h"
#include "config/config.h"
#include "discovery/counters.h"
#include "http/http.h"

struct http_sd;

struct http_sd_options {
    const struct config_http_sd *config; /* referenced */
    const char *source;                  /* name of the group; referenced */
    struct loop *loop;
    struct http_client *http;
    struct intern *intern;
    struct log *log;
    const struct discovery_counters *counters; /* referenced */
    void (*on_change)(void *arg, const char *source, struct labels *const *targets, size_t n);
    /* Once: the first request has ended, well or not. */
    void (*on_synced)(void *arg);
    void *arg;
};

/* NULL if out of memory. Sends nothing yet. */
struct http_sd *http_sd_new(const struct http_sd_options *options);
void http_sd_start(struct http_sd *h);
/* Accepts NULL, returns NULL. */
struct http_sd *http_sd_free(struct http_sd *h);
/* Does it have targets now? */
bool http_sd_has_targets(const struct http_sd *h);

/* application/json, with or without "; charset=utf-8". */
bool http_sd_is_json(const char *content_type);

#endif
