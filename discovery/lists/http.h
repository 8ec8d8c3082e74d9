/* http_sd_configs: lists of targets in JSON, which a URL returns, as in Prometheus.
 *
 * The URL is requested at every refresh_interval, which is also the deadline of a request and is
 * sent as X-Prometheus-Refresh-Interval-Seconds. Only a response with status 200, content type
 * application/json and a list without mistakes is accepted, an empty list included; after any other
 * response the last good targets stay. Everything runs on the loop's thread.
 */
#ifndef PROFPULL_DISCOVERY_LISTS_HTTP_H
#define PROFPULL_DISCOVERY_LISTS_HTTP_H

#include "discovery/lists/listing.h"

struct http_sd;

/* Makes a source; sends nothing yet. The configuration is referenced. NULL if out of memory. */
struct http_sd *http_sd_new(const struct config_http_sd *config,
                            const struct list_options *options);
void http_sd_start(struct http_sd *h);
/* Returns true if the URL has returned a list. */
bool http_sd_is_known(const struct http_sd *h);
/* Accepts NULL, returns NULL. */
struct http_sd *http_sd_free(struct http_sd *h);

/* Returns true for application/json, with or without "; charset=utf-8". */
bool http_sd_is_json(const char *content_type);

#endif
