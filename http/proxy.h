/* Which proxy a request takes, and so which host is connected to: libcurl's rules, which are needed
 * before libcurl has the request. Pure functions, except that they read the environment, which
 * never changes. Any thread.
 */
#ifndef PROFPULL_HTTP_PROXY_H
#define PROFPULL_HTTP_PROXY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "http/http.h"
#include "http/url.h"

/* The proxy for a URL by the settings, or else by the environment if they allow it: a URL or
 * host:port. "" if there is none. Borrowed. */
const char *proxy_of(const struct url *url, const struct http_settings *s);
/* The hosts that are contacted directly, by the settings or the environment. Borrowed. */
const char *proxy_exceptions(const struct http_settings *s);
/* True if the list (names with their subdomains, addresses, networks, or "*") has this host. */
bool proxy_is_excepted(const char *list, struct sv host);
/* Host, in lower case and the caller's to free, and port of a proxy. */
bool proxy_parse(const char *proxy, char **ret_host, uint16_t *ret_port, struct err *err);

#endif
